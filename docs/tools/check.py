"""The built site in a browser: ``python docs/tools/check.py build/site``.

Every page is opened from the disk, as a reader without a network would: nothing may be asked of another machine,
nothing written to the console, and nothing may be wider than a phone. Search has to find something, and axe looks
at contrast.
"""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
DESKTOP, PHONE = 1400, 400
LOOKED_AT = (
    "index.html",
    "votes.html",
    "tutorials/votes.html",
    "api/labels.html",
    "api/IDGP.html",
    "results/index.html",
)
HERE = ("file:", "data:", "blob:")


def opened(browser: Browser, path: Path, width: int, scheme: str, troubles: list[str]) -> Page:
    """Return a page whose troubles are noted."""
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
    where = f"{path.parent.name}/{path.name} at {width}, {scheme}"

    def asked(url: str) -> None:
        if not url.startswith(HERE):
            troubles.append(f"{where}: asks for {url}")

    page.on("console", lambda said: troubles.append(f"{where}: console: {said.text}"))
    page.on("pageerror", lambda error: troubles.append(f"{where}: error: {error}"))
    page.on("requestfailed", lambda request: troubles.append(f"{where}: not found: {request.url}"))
    page.on("request", lambda request: asked(request.url))
    page.goto(path.resolve().as_uri())
    return page


def weak_contrasts(page: Page) -> Iterator[str]:
    """Yield what is hard to read on a page: the element, its colours and their contrast."""
    for violation in Axe().run(page, options={"runOnly": ["color-contrast"]}).response["violations"]:
        for node in violation["nodes"]:
            seen = node["any"][0]["data"]
            yield f"{seen['fgColor']} on {seen['bgColor']} is {seen['contrastRatio']}: {node['target'][0]}"


def look(browser: Browser, site: Path) -> Iterator[str]:
    """Yield what is wrong with a site."""
    troubles: list[str] = []
    for path in sorted(site.rglob("*.html")):
        if path.name == "404.html":  # its links begin at the root of a server
            continue
        page = opened(browser, path, PHONE, "light", troubles)
        wider = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        if wider > 0:
            yield f"{path.relative_to(site)}: {wider} pixels wider than a phone"
        page.close()
    for name in LOOKED_AT:
        for scheme in ("light", "dark"):
            page = opened(browser, site / name, DESKTOP, scheme, troubles)
            yield from (f"{name}, {scheme}: {weak}" for weak in weak_contrasts(page))
            page.close()
    page = opened(browser, site / "index.html", DESKTOP, "light", troubles)
    page.locator("input.md-search__input").press_sequentially("disambiguate")
    page.locator(".md-search-result__item").first.wait_for(timeout=20_000)
    yield from troubles


def main(site: Path) -> int:
    """Open every page; print what is wrong and return 1 if anything is."""
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        print(f"no browser is installed to look at the site: none of {', '.join(BROWSERS)}; install one of them")
        return 1
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        wrong = list(dict.fromkeys(look(browser, site)))
        browser.close()
    print(
        "\n".join(wrong)
        or "every page is quiet, fetches nothing and fits a phone; contrast is enough, search finds"
    )
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
