"""The queue as one page that needs no server: its decisions are downloaded as a file."""

import base64
import hashlib
import json
import re
from typing import Any

from oneof.review.cards import card, facts
from oneof.review.material import Material
from oneof.review.ranking import Ranking
from oneof.review.web_files import web_file

_SCRIPTS = ("dom.js", "queue.js", "card.js", "app.js", "static.js")


def static_page(material: Material, ranking: Ranking, limit: int, model: Any = None) -> str:
    """Return the first rows of the queue as one HTML document."""
    rows = [int(row) for row in ranking.order[:limit]]
    cards = [card(material, ranking, row, model) for row in rows]
    shown = set(rows) | {each["row"] for one in cards for each in one["neighbours"]}
    pictures = {row: _picture(material, row) for row in shown} if material.has_images else {}
    kept = {"facts": facts(material), "cards": cards, "images": pictures}
    script, style = _bundle(), web_file("style.css")
    allowed, styled = _digest(script), _digest(style)
    policy = f"default-src 'none'; script-src 'sha256-{allowed}'; style-src 'sha256-{styled}'; img-src data:"
    # "<" never stands in the data itself, so that no text can end the element.
    data = json.dumps(kept, ensure_ascii=True).replace("<", "\\u003c")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>Review</title>
<style>{style}</style>
</head>
<body>
<script type="application/json" id="kept">{data}</script>
<script type="module">{script}</script>
</body>
</html>
"""


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _bundle() -> str:
    """Join the modules of the front end into one: each imports only what stands before it."""
    texts = [re.sub(r"^import .*\n|^export ", "", web_file(name), flags=re.MULTILINE) for name in _SCRIPTS]
    return "\n" + "\n".join(texts) + "\nstart(source);\n"


def _picture(material: Material, row: int) -> str | None:
    try:
        return "data:image/png;base64," + base64.b64encode(material.picture(row)).decode()
    except ValueError:
        return None
