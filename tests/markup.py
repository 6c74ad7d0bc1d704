"""Reading of HTML and SVG: elements, and what a page says apart from its looks."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "br"}
_TELLING = ("aria-label", "id", "href", "data-sort")


@dataclass
class Element:
    tag: str
    attributes: dict
    children: list = field(default_factory=list)

    @property
    def text(self):
        return " ".join("".join(c if isinstance(c, str) else c.text for c in self.children).split())

    def all(self, tag, name=""):
        for child in self.children:
            if isinstance(child, Element):
                if child.tag == tag and name in ["", *child.attributes.get("class", "").split()]:
                    yield child
                yield from child.all(tag, name)


class _Tree(HTMLParser):
    """A parser that refuses tags that do not match."""

    def __init__(self, text):
        super().__init__()
        self.open = [Element("document", {})]
        self.feed(text)
        self.close()
        assert [element.tag for element in self.open] == ["document"], "a tag was never closed"

    def handle_starttag(self, tag, attrs):
        element = Element(tag, dict(attrs))
        self.open[-1].children.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag, attrs):
        self.open[-1].children.append(Element(tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop().tag == tag

    def handle_data(self, data):
        self.open[-1].children.append(data)


def parse(text):
    """The tree of a page or picture."""
    return _Tree(text).open[0]


def told(text):
    """What a page or picture tells: texts, descriptions and links in their order; of a picture, sorted, its texts
    and how many lines, dots and fields it has.

    Neither style nor places count: a change of looks alone does not change what is told.
    """
    return list(_told(parse(text)))


def _told(element):
    if element.tag in ("style", "script"):
        return
    if element.tag == "svg":
        yield "texts", sorted(_words(element))
        yield "marks", {tag: len(list(element.all(tag))) for tag in ("path", "circle", "rect")}
        return
    yield from ((name, element.attributes[name]) for name in _TELLING if name in element.attributes)
    for child in element.children:
        if isinstance(child, Element):
            yield from _told(child)
        elif words := " ".join(child.split()):
            yield "text", words


def _words(picture):
    if "aria-label" in picture.attributes:
        yield picture.attributes["aria-label"]
    for child in picture.children:
        if isinstance(child, Element):
            yield from _words(child) if child.tag != "style" else ()
        elif words := " ".join(child.split()):
            yield words
