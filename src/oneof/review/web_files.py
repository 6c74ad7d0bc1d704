"""The files of the front end, as the package ships them."""

from importlib.resources import files

from oneof.pages.frame import PALETTE


def web_file(name: str) -> str:
    """Return the text of a file; the colours are those of all pages."""
    text = (files("oneof.review") / "web" / name).read_text(encoding="utf-8")
    return PALETTE + text if name == "style.css" else text
