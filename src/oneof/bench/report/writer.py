"""Reports: what a plan's ledgers hold, as Markdown, LaTeX and one HTML page, with figures as SVG files.

The same plan and ledgers give the same bytes: nothing depends on the day or the machine.
"""

import os
from collections.abc import Iterable
from pathlib import Path

from oneof.bench.ledger import read
from oneof.bench.plan import Plan
from oneof.bench.record import damage_of
from oneof.bench.report.grids import latex, markdown, markdown_text
from oneof.bench.report.paper import read_paper
from oneof.bench.report.provenance import command, summary
from oneof.bench.report.results import Report, collect
from oneof.bench.report.sections import sections
from oneof.io.files import replacing
from oneof.pages.charts import standalone
from oneof.pages.content import Figure, Grid, Section
from oneof.pages.report_page import render

__all__ = ["write_report"]


def write_report(
    plan: Plan,
    ledgers: Iterable[str | os.PathLike[str]],
    folder: str | os.PathLike[str],
    paper: str | os.PathLike[str] | None = None,
) -> list[Path]:
    """Write report.md, report.tex, report.html and the figures of the Markdown file.

    Parameters
    ----------
    plan : Plan
        What was to be done.
    ledgers : iterable of path-like
        Where results are; they count as one.
    folder : path-like
        Where to write; it is created.
    paper : path-like, optional
        A file of printed numbers; by default paper.toml beside the plan, if there is one.

    Returns
    -------
    list of Path
        The files.
    """
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{str(folder)!r} is a file, but a report is a folder of files; name a folder")
    if paper is None and (beside := plan.path.with_name("paper.toml")).is_file():
        paper = beside
    printed = read_paper(Path(paper), plan.paper) if paper is not None and plan.paper is not None else None
    report = collect(plan, read(ledgers, damage_of), printed)
    found = sections(report)
    figures = [part for section in found for part in section.parts if isinstance(part, Figure)]
    contents = {
        "report.html": render(plan.title, " ".join(summary(report)), command(report), found),
        "report.md": _markdown(report, found),
        "report.tex": _latex(found),
        **{f"{figure.name}.svg": standalone(figure) for figure in figures},
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        with replacing(folder / name) as part:
            part.write_bytes(content.encode())
    return [folder / name for name in contents]


def _markdown(report: Report, found: list[Section]) -> str:
    head = [f"# {markdown_text(report.plan.title)}", markdown_text(" ".join(summary(report)))]
    parts = [*head, f"    {command(report)}"]
    for section in found:
        parts += [f"## {section.title}", markdown_text(section.text)]
        for part in section.parts:
            parts += _figure(part) if isinstance(part, Figure) else [markdown(part).strip()]
    return "\n\n".join(parts) + "\n"


def _figure(figure: Figure) -> list[str]:
    words = markdown_text("; ".join(panel.words for panel in figure.panels))
    return [f"![{words}]({figure.name}.svg)", *(markdown(table).strip() for table in figure.tables)]


def _latex(found: list[Section]) -> str:
    """Write the tables, also those that stand for a figure, but not where each number comes from."""
    parts = [part for section in found if section.printed for part in section.parts]
    tables = [table for part in parts for table in ([part] if isinstance(part, Grid) else part.tables)]
    return "\n".join(map(latex, tables))
