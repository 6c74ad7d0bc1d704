"""The local web application: its addresses, and who may ask."""

import asyncio
import hmac
import json
import secrets
import socket
from collections.abc import Callable
from typing import Any

from oneof.errors import InputError
from oneof.review.cards import card, facts
from oneof.review.session import STATES, DecidedMeanwhileError, Session
from oneof.review.web_files import web_file

try:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route
except ImportError:  # optional: `need_server` says so
    uvicorn = None  # type: ignore[assignment]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
KINDS = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
FILES = ("style.css", "icon.svg", "dom.js", "queue.js", "card.js", "app.js", "server.js", "main.js")
_MOST_ITEMS = 200
_LARGEST_BODY = 10_000  # bytes
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def need_server() -> None:
    """Refuse to begin without what the server is made of."""
    if uvicorn is None:
        raise InputError("oneof review needs Starlette and uvicorn, which are missing; pip install oneof[review]")


def make_app(session: Session, token: str, origins: frozenset[str]) -> Any:
    """Return the application; every address begins with the token."""
    ask, base = _Handlers(session), f"/{token}"
    routes = [
        Route(f"{base}/", ask.page),
        Route(f"{base}/web/{{name}}", ask.file),
        Route(f"{base}/api/facts", ask.facts),
        Route(f"{base}/api/queue", ask.queue),
        Route(f"{base}/api/card/{{row:int}}", ask.card),
        Route(f"{base}/api/status", ask.status),
        Route(f"{base}/api/decide", ask.decide, methods=["POST"]),
        Route(f"{base}/api/undo", ask.undo, methods=["POST"]),
        Route(f"{base}/api/learn", ask.learn, methods=["POST"]),
        Route(f"{base}/image/{{row:int}}", ask.image),
    ]
    app = Starlette(routes=routes, exception_handlers={ValueError: _refused})
    app.add_middleware(_Guard, token=token, origins=origins)
    return app


class _Handlers:
    """One method for each address."""

    def __init__(self, session: Session) -> None:
        self.session = session

    async def page(self, request: Any) -> Any:
        return Response(web_file("index.html"), media_type="text/html")

    async def file(self, request: Any) -> Any:
        name = request.path_params["name"]
        if name not in FILES:
            return Response("there is no such file", 404)
        return Response(web_file(name), media_type=KINDS[name.rpartition(".")[2]])

    async def facts(self, request: Any) -> Any:
        return JSONResponse(facts(self.session.material) | {"status": self.session.status()})

    async def queue(self, request: Any) -> Any:
        asked = request.query_params
        start, count = _whole(asked.get("start")), min(_whole(asked.get("count"), 50), _MOST_ITEMS)
        state = asked.get("state", "open")
        chosen = (state if state in STATES else "open", asked.get("reason", ""), asked.get("label", ""))
        return JSONResponse(self.session.queue(*chosen, start, count))

    async def card(self, request: Any) -> Any:
        row, now = request.path_params["row"], self.session
        if row >= len(now.material):
            return JSONResponse({"error": f"there is no row {row}"}, 404)
        found = await asyncio.to_thread(card, now.material, now.ranking, row, now.model)
        return JSONResponse(found | now.state_of(row))

    async def image(self, request: Any) -> Any:
        row, material = request.path_params["row"], self.session.material
        if row >= len(material) or not material.has_images:
            return Response("there is no image", 404)
        try:
            return Response(await asyncio.to_thread(material.picture, row), media_type="image/png")
        except ValueError as error:
            return Response(str(error), 404, media_type="text/plain")

    async def decide(self, request: Any) -> Any:
        asked = await _body(request)
        row, seen = asked.get("row"), asked.get("seen")
        if type(row) is not int or type(seen) is not int:
            raise InputError("row and seen must be whole numbers")
        given = (row, str(asked.get("action")), asked.get("label"), seen, _by(asked))
        try:
            return JSONResponse(await asyncio.to_thread(self.session.decide, *given))
        except DecidedMeanwhileError:
            return JSONResponse(self.session.state_of(row), 409)

    async def undo(self, request: Any) -> Any:
        asked = await _body(request)
        row = asked.get("row")
        if row is not None and type(row) is not int:
            raise InputError("row must be a whole number")
        found = await asyncio.to_thread(self.session.undo, _by(asked), row)
        return JSONResponse(found or {"row": None, "status": self.session.status()})

    async def learn(self, request: Any) -> Any:
        await _body(request)
        return JSONResponse({"started": self.session.start_learning(), "status": self.session.status()})

    async def status(self, request: Any) -> Any:
        return JSONResponse(self.session.status())


class _Guard:
    """Lets in only who knows the token, asks by the right name, and comes from our own page."""

    def __init__(self, app: Any, token: str, origins: frozenset[str]) -> None:
        self.app, self.token, self.origins = app, token, origins
        self.hosts = {origin.partition("://")[2] for origin in origins}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        wrong = self._wrong(scope, headers)

        async def send_safe(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [
                    *message.get("headers", []),
                    *((name.lower().encode(), value.encode()) for name, value in HEADERS.items()),
                ]
            await send(message)

        if wrong:
            await Response(wrong, 403, media_type="text/plain")(scope, receive, send_safe)
        else:
            await self.app(scope, receive, send_safe)

    def _wrong(self, scope: Any, headers: dict[str, str]) -> str:
        first = scope["path"].split("/")[1]
        if not hmac.compare_digest(first.encode(), self.token.encode()):
            return "the address lacks the token; open the one that oneof review printed"
        if headers.get("host") not in self.hosts:  # a foreign name that leads here: DNS rebinding
            return "the review has another address; open the one that oneof review printed"
        origin = headers.get("origin")
        if (scope["method"] != "GET" or origin is not None) and origin not in self.origins:
            return "requests of other pages are refused"
        return ""


async def _refused(request: Any, error: Exception) -> Any:
    return JSONResponse({"error": str(error)}, 400)


async def _body(request: Any) -> dict[str, Any]:
    """Return what was posted: a small JSON object."""
    raw = b""
    async for part in request.stream():
        raw += part
        if len(raw) > _LARGEST_BODY:
            raise InputError("the request is too large")
    try:
        asked = json.loads(raw or b"{}")
    except (ValueError, RecursionError):
        raise InputError("the request is no JSON") from None
    if not isinstance(asked, dict):
        raise InputError("the request must be an object")
    return asked


def _by(asked: dict[str, Any]) -> str:
    by = asked.get("by")
    if not isinstance(by, str) or not 1 <= len(by) <= 40:
        raise InputError("by must name the browser")
    return by


def _whole(text: str | None, default: int = 0) -> int:
    return int(text) if text is not None and text.isdecimal() and len(text) < 10 else default


def serve(session: Session, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Serve until Ctrl-C; ``ready`` is told the address once it can be opened."""
    need_server()
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise OSError(
            f"port {port} of {host} cannot be used ({error.strerror}); pass another --port, or leave it out"
        ) from None
    port = listener.getsockname()[1]
    shown = f"[{host}]" if ":" in host else host
    names = {shown, "localhost"} if host in _LOOPBACK else {shown, "localhost", "127.0.0.1", socket.gethostname()}
    token = secrets.token_urlsafe(24)
    app = make_app(session, token, frozenset(f"http://{name}:{port}" for name in names))
    config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=2)

    class _Announcing(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            ready(f"http://{shown}:{port}/{token}/")

    _Announcing(config).run([listener])
