"""Tables of results: what stands in each field, and how that is written as Markdown and LaTeX."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from oneof.bench.report.statistics import Cell, Comparison, Counts, Ranks, Verdict, count, mean_ranks
from oneof.pages.content import MISSING, Entry, Grid
from oneof.pages.frame import one_line

__all__ = [
    "Result",
    "Results",
    "accuracies",
    "accuracy",
    "differences",
    "latex",
    "markdown",
    "markdown_text",
    "plain_marks",
    "signed",
]

_MARKS: dict[Verdict, str] = {"win": "•", "loss": "◦", "undecided": "?", "tie": ""}

_MARKDOWN = str.maketrans({character: "\\" + character for character in r"\`*_[]<>|&~$#"})
_LATEX = str.maketrans(
    {
        **{character: "\\" + character for character in "&%$#_{}"},
        **{character: f"{{{character}}}" for character in "[*"},  # options of the \\ before them otherwise
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "±": r"$\pm$",
        "•": r"$\bullet$",
        "◦": r"$\circ$",
        "−": "$-$",
        "–": "--",
    }
)


@dataclass(frozen=True)
class Result:
    """One method on one data set, and how the reference compares with it.

    Where trials are random splits, ``plain`` is the comparison that takes them for independent, as papers do.
    """

    cell: Cell
    comparison: Comparison | None = None
    plain: Comparison | None = None


@dataclass(frozen=True)
class Results:
    """All that a table of results shows.

    Parameters
    ----------
    title : str
        What the numbers are.
    columns : sequence of str
        The data sets.
    rows : mapping of method to mapping of data set to Result
        A result that is not there is shown as missing.
    reference : str
        The method that the others are compared with.
    apart : sequence of str, default=()
        Methods outside the contest, such as an upper bound: never the best, neither ranked nor counted.
    mixed : sequence of str, default=()
        Data sets on which methods saw different candidate sets: none is the best there, and they are not ranked.
    """

    title: str
    columns: Sequence[str]
    rows: Mapping[str, Mapping[str, Result]]
    reference: str
    apart: Sequence[str] = ()
    mixed: Sequence[str] = ()

    @property
    def contest(self) -> list[str]:
        """The methods that can be the best."""
        return [method for method in self.rows if method not in self.apart]

    @property
    def rivals(self) -> list[str]:
        """The methods that the reference is compared with."""
        return [method for method in self.contest if method != self.reference]


def accuracies(results: Results) -> Grid:
    """Show mean ± standard deviation, the best in bold, the verdicts, their counts and mean ranks."""
    best = {name: _best(results, name) for name in results.columns}
    ranks = _ranks(results)

    def row(method: str) -> list[Entry]:
        found = results.rows[method]
        cells = [accuracy(found.get(name), best[name] if method in results.contest else None) for name in best]
        verdicts = _counts_text(_counts(results, [method])) if method in results.rivals else ""
        rank = f"{ranks.ranks[method]:.2f}" if method in ranks.ranks else ""
        return [Entry(method), *cells, Entry(verdicts), Entry(rank)]

    reference, apart = ([m for m in results.rows if m in group] for group in ([results.reference], results.apart))
    return Grid(
        results.title,
        ["method", *results.columns, f"{results.reference} win/tie/loss/?", "mean rank"],
        [[row(method) for method in group] for group in (reference, results.rivals, apart) if group],
        [*_verdict_notes(results), _rank_note(ranks, results.mixed)],
    )


def differences(results: Results) -> Grid:
    """Show by how many points the reference is above each of its rivals, with 95 % intervals."""
    rows = [
        [Entry(method), *(_difference(results.rows[method].get(name)) for name in results.columns)]
        for method in results.rivals
    ]
    title = f"{results.title}: {results.reference} minus each method, in points, with 95 % intervals"
    return Grid(title, ["method", *results.columns], [rows] if rows else [], _verdict_notes(results))


def plain_marks(results: Results) -> str:
    """Say what the plain paired t-test gives where the corrected one was used, and which marks it adds."""
    places = [(method, name) for name in results.columns for method in results.rivals]
    found = {place: result for place in places if (result := results.rows[place[0]].get(place[1])) is not None}
    pairs = {place: (r.comparison, r.plain) for place, r in found.items() if r.comparison and r.plain}
    counts = count(plain.verdict for _, plain in pairs.values())
    added: dict[tuple[str, str], list[str]] = {}
    for (method, name), (corrected, plain) in pairs.items():
        if plain.verdict in ("win", "loss") and plain.verdict != corrected.verdict:
            added.setdefault((_MARKS[plain.verdict], name), []).append(method)
    more = [f"{mark} on {name} ({', '.join(methods)})" for (mark, name), methods in added.items()]
    return (
        "The plain paired t-test, which takes them for independent, gives "
        f"{results.reference} win/tie/loss/?: {_counts_text(counts)}"
        + (f"; it adds {', '.join(more)}." if more else ".")
    )


def markdown(grid: Grid) -> str:
    """Write a grid as a Markdown table between its title and its notes."""

    def field(entry: Entry) -> str:
        value = _escaped(entry.value, _MARKDOWN)
        return _joined(f"**{value}**" if entry.bold else value, _escaped(entry.remark, _MARKDOWN))

    header = [_escaped(name, _MARKDOWN) for name in grid.header]
    rows = [
        header,
        ["---"] * len(header),
        *([field(entry) for entry in row] for group in grid.groups for row in group),
    ]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    notes = [_escaped(note, _MARKDOWN) for note in grid.notes]
    return "\n\n".join([f"**{_escaped(grid.title, _MARKDOWN)}**", table, *notes]) + "\n"


def markdown_text(text: str) -> str:
    """Escape a text that stands outside a table of Markdown."""
    return _escaped(text, _MARKDOWN)


def latex(grid: Grid) -> str:
    r"""Write a grid as a LaTeX table that needs ``\usepackage{booktabs}``."""

    def field(entry: Entry) -> str:
        value = _escaped(entry.value, _LATEX)
        return _joined(rf"\textbf{{{value}}}" if entry.bold else value, _escaped(entry.remark, _LATEX))

    header = " & ".join(_escaped(name, _LATEX) for name in grid.header) + r" \\"
    lines = [r"% needs \usepackage{booktabs}", r"\begin{table}[t]", r"\centering", r"\small"]
    lines += [rf"\caption{{{_escaped(grid.title, _LATEX)}}}"]
    lines += [rf"\begin{{tabular}}{{l{'c' * (len(grid.header) - 1)}}}", r"\toprule", header]
    for group in grid.groups:
        lines += [r"\midrule", *(" & ".join(map(field, row)) + r" \\" for row in group)]
    lines += [r"\bottomrule", r"\end{tabular}"]
    lines += [rf"\par\smallskip\footnotesize {_escaped(note, _LATEX)}" for note in grid.notes]
    return "\n".join([*lines, r"\end{table}"]) + "\n"


def accuracy(result: Result | None, best: str | None = None) -> Entry:
    """Write mean ± deviation; ``best`` is the mean that is printed in bold."""
    if result is None:
        return Entry(MISSING)
    cell = result.cell
    value = MISSING if math.isnan(cell.mean) else f"{cell.mean:.2f}"
    bold = value == best
    value += "" if math.isnan(cell.std) else f" ± {cell.std:.2f}"
    few = f"({cell.trials} of {cell.planned} trials)" if cell.trials < cell.planned else ""
    return Entry(value, bold, _joined(_mark(result), few))


def _difference(result: Result | None) -> Entry:
    if result is None or result.comparison is None or math.isnan(result.comparison.difference):
        return Entry(MISSING)
    found = result.comparison
    known = "" if math.isnan(found.low) else f" ({signed(found.low)} to {signed(found.high)})"
    return Entry(signed(found.difference) + known, remark=_mark(result))


def _mark(result: Result) -> str:
    return "" if result.comparison is None else _MARKS[result.comparison.verdict]


def signed(value: float) -> str:
    """Write a number of points with its sign."""
    return f"{value:+z.2f}".replace("-", "−")


def _best(results: Results, name: str) -> str | None:
    """Return the highest mean of a data set as it is printed: all that look the same are the best."""
    if name in results.mixed:
        return None
    found = [results.rows[method].get(name) for method in results.contest]
    means = [result.cell.mean for result in found if result is not None and not math.isnan(result.cell.mean)]
    return f"{max(means):.2f}" if means else None


def _ranks(results: Results) -> Ranks:
    return mean_ranks(
        {
            method: {
                name: math.nan if name in results.mixed or name not in row else row[name].cell.mean
                for name in results.columns
            }
            for method, row in results.rows.items()
            if method in results.contest
        }
    )


def _counts(results: Results, methods: Sequence[str]) -> Counts:
    found = [results.rows[method].get(name) for method in methods for name in results.columns]
    return count(
        result.comparison.verdict for result in found if result is not None and result.comparison is not None
    )


def _counts_text(counts: Counts) -> str:
    return f"{counts.win}/{counts.tie}/{counts.loss}/{counts.undecided}"


def _verdict_notes(results: Results) -> list[str]:
    """Explain the marks, where there was anything to compare."""
    counts = _counts(results, results.rivals)
    if counts == Counts(0, 0, 0, 0):
        return []
    return [
        f"• / ◦: {results.reference} wins / loses by a paired two-sided t-test over trials at 0.05. "
        "?: undecided, not significant and not known to 1 point (95 % interval) either. "
        f"{results.reference} in all, win/tie/loss/?: {_counts_text(counts)}."
    ]


def _rank_note(ranks: Ranks, mixed: Sequence[str]) -> str:
    where = "with results of all methods" + (" on the same candidate sets" if mixed else "")
    if ranks.used == 0:
        return f"No mean ranks: there is no data set {where}."
    return f"Mean ranks over {ranks.used} of {ranks.given} data sets, those {where}."


def _joined(*parts: str) -> str:
    return " ".join(part for part in parts if part)


def _escaped(text: str, characters: dict[int, str]) -> str:
    """Escape what a format would not print as it is; a line break would end a row."""
    return one_line(text).translate(characters)
