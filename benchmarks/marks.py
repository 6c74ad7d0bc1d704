"""Parts of a page that a script writes: between its mark and the next end."""

END = "<!-- end -->"


def between(page: str, begin: str, end: str, text: str) -> str:
    """Return the page with another text between two marks."""
    before, rest = page.split(begin)
    return f"{before}{begin}\n\n{text}\n\n{end}{rest.split(end, 1)[1]}"
