"""What a report shows, as plain data: tables in no format yet, figures, and the sections that hold them."""

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["MISSING", "Entry", "Figure", "Grid", "Panel", "Section"]

MISSING = "–"  # stands where there is no number


@dataclass(frozen=True)
class Entry:
    """A field of a grid: a value, whether it is the best, and a remark behind it."""

    value: str
    bold: bool = False
    remark: str = ""


@dataclass(frozen=True)
class Grid:
    """A table: groups of rows with rules between them, and notes below."""

    title: str
    header: Sequence[str]
    groups: Sequence[Sequence[Sequence[Entry]]]
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Panel:
    """One chart as SVG; ``words`` describe it to readers who cannot see it."""

    width: int
    height: int
    body: str
    words: str


@dataclass(frozen=True)
class Figure:
    """Panels that belong together, and tables with the same numbers."""

    name: str  # of the file, without its ending
    title: str
    panels: Sequence[Panel]
    tables: Sequence[Grid] = ()


@dataclass(frozen=True)
class Section:
    """A heading, a text, and the tables and figures below it."""

    name: str  # of the anchor
    title: str
    text: str
    parts: Sequence[Grid | Figure]
    printed: bool = True  # in LaTeX as well
