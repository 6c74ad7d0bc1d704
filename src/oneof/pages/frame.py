"""What our HTML pages share: the frame of a document that needs no network, and the base of its style."""

from html import escape

POLICY = "default-src 'none'; style-src 'unsafe-inline'"  # nothing is fetched, nothing runs
COLOURS = """
:root { color-scheme: light dark; --page: #fbfaf8; --card: #fff; --ink: #1c1b1a; --soft: #65615c; --rule: #dedad4 }
@media (prefers-color-scheme: dark) {
  :root { --page: #161618; --card: #202023; --ink: #eceae6; --soft: #a5a19b; --rule: #3a3a3e } }
"""
_BASE = """
* { box-sizing: border-box; margin: 0; padding: 0 }
body { margin: auto; padding: 2.5rem 1.25rem 3rem; max-width: 62rem; background: var(--page); color: var(--ink);
  font: 1rem/1.55 system-ui, "Segoe UI", Roboto, sans-serif; font-variant-numeric: tabular-nums }
h1 { margin-bottom: .6rem; font-size: clamp(1.8rem, 5vw, 2.5rem); line-height: 1.15; letter-spacing: -.02em }
h2 { margin: 3rem 0 .8rem; font-size: 1.3rem } h3 { margin: 1.6rem 0 .6rem; font-size: 1rem }
.lead { max-width: 44rem; font-size: 1.1rem } figcaption { max-width: 50rem; margin: .7rem 0 }
"""


def document(title: str, style: str, body: str, policy: str = "") -> str:
    """Return a whole document.

    Parameters
    ----------
    title : str
        Its title, as plain text.
    style : str
        CSS that gives the names in ``COLOURS`` a value, and what differs from the base.
    body : str
        What is shown, as HTML.
    policy : str, default=""
        A Content-Security-Policy, such as ``POLICY``; none when empty.
    """
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n' if policy else ""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
{meta}<title>{escape(title)}</title>
<style>{_BASE}{style}</style>
</head>
<body>
{body}
</body>
</html>
"""
