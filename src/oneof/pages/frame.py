"""What the pages share: the palette, a document that needs no network, and how texts are written."""

from html import escape

__all__ = ["GREY", "HUES", "PALETTE", "POLICY", "SHADES", "document", "one_line", "percent", "safe", "shorten"]

POLICY = "default-src 'none'; style-src 'unsafe-inline'"  # nothing is fetched, nothing runs

_COLOURS = {  # name: colour in the light form, colour in the dark form
    "page": ("#fbfaf8", "#161618"),
    "card": ("#ffffff", "#202023"),
    "ink": ("#1c1b1a", "#eceae6"),
    "soft": ("#65615c", "#a5a19b"),
    "rule": ("#dedad4", "#3a3a3e"),
    "accent": ("#1d4fd8", "#82aaff"),
    "right": ("#15703a", "#5fd38d"),
    "wrong": ("#b3261e", "#ff8a80"),
    "chosen": ("#ff8c1a", "#ff8c1a"),
    # On a shade, which is the same in both forms.
    "on-light": ("#111111", "#111111"),
    "on-dark": ("#ffffff", "#ffffff"),
}
_LINES = {  # classes that set --hue, the colour of a line and of its name
    "grey": ("#6f6b66", "#a8a4a0"),
    "hue0": ("#1d4fd8", "#82aaff"),
    "hue1": ("#b35c00", "#f5a54a"),
    "hue2": ("#00796b", "#43cdb9"),
    "hue3": ("#9333c7", "#cf94f5"),
    "hue4": ("#c2255c", "#ff86ae"),
    "hue5": ("#4d7c0f", "#a8d65c"),
    "hue6": ("#0b7fab", "#5cc8f2"),
    "hue7": ("#8a5a2b", "#d9a878"),
    "hue8": ("#b3261e", "#ff8a80"),
    "hue9": ("#55608f", "#b3bce6"),
}
GREY, *HUES = _LINES
SHADES = ((240, 244, 252), (16, 52, 140))  # red, green and blue of the lowest and the highest value of a heat map


def _form(i: int) -> str:
    colours = "; ".join(f"--{name}: {pair[i]}" for name, pair in _COLOURS.items())
    lines = " ".join(f".{name} {{ --hue: {pair[i]} }}" for name, pair in _LINES.items())
    return f":root {{ {colours} }}\n{lines}"


PALETTE = f"""
:root {{ color-scheme: light dark }}
{_form(0)}
@media (prefers-color-scheme: dark) {{
{_form(1)} }}
"""
_BASE = """
* { box-sizing: border-box; margin: 0; padding: 0 }
body { margin: auto; padding: 2.5rem 1.25rem 3rem; max-width: 62rem; background: var(--page); color: var(--ink);
  font: 1rem/1.55 system-ui, "Segoe UI", Roboto, sans-serif; font-variant-numeric: tabular-nums }
h1 { margin-bottom: .6rem; font-size: clamp(1.8rem, 5vw, 2.5rem); line-height: 1.15; letter-spacing: -.02em }
h2 { margin: 3rem 0 .8rem; font-size: 1.3rem } h3 { margin: 1.6rem 0 .6rem; font-size: 1rem }
.lead { max-width: 44rem; font-size: 1.1rem } figcaption { max-width: 50rem; margin: .7rem 0 }
/* What is wider than its frame fades at the right edge until it is scrolled to its end; or a shadow says so. */
@supports (animation-timeline: scroll()) {
  .scroll { animation: more linear both; animation-timeline: scroll(self inline) }
  @keyframes more { 0%, 95% { mask-image: linear-gradient(to left, #0003, #000 3.5rem) } } }
@supports not (animation-timeline: scroll()) {
  .scroll { background: linear-gradient(to left, var(--page) 40%, transparent) right / 3rem 100% no-repeat local,
    linear-gradient(to left, var(--soft), transparent) right / .9rem 100% no-repeat scroll } }
@media print { .scroll { animation: none } }
"""


def document(title: str, style: str, body: str, policy: str = POLICY) -> str:
    """Return a whole document.

    Parameters
    ----------
    title : str
        Its title, as plain text.
    style : str
        CSS besides the palette and the base.
    body : str
        What is shown, as HTML.
    policy : str, default=POLICY
        The Content-Security-Policy.
    """
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{safe(title)}</title>
<style>{PALETTE}{_BASE}{style}</style>
</head>
<body>
{body}
</body>
</html>
"""


def one_line(text: str) -> str:
    """Bring a text to one line, and drop what controls a terminal or the direction of text."""
    return " ".join("".join(letter for letter in text if letter.isprintable() or letter.isspace()).split())


def safe(text: str) -> str:
    """Bring a text to one line and escape it for HTML and SVG."""
    return escape(one_line(text))


def shorten(name: str, longest: int) -> str:
    """Cut the middle out of a name that is too long: many names differ only at their end."""
    tail = longest // 3
    return name if len(name) <= longest else f"{name[: longest - tail - 1]}…{name[-tail:]}"


def percent(share: float) -> str:
    """Write a share; 0.0% and 100.0% are exact, other shares are never rounded to them."""
    if 0 < share < 0.001:
        return "under 0.1%"
    if 0.999 < share < 1:
        return "over 99.9%"
    return f"{100 * share:.1f}%"
