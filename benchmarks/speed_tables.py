"""The measurements of `speed.py` set in relation to each other, and as Markdown."""

from collections.abc import Iterable
from itertools import pairwise
from math import log
from typing import Any

Row = dict[str, Any]

# Seconds an epoch of the code that the authors of IDGP released, on an H200.
AUTHORS = {"CIFAR-10, ResNet-32": 24.1, "Fashion-MNIST, LeNet": 13.8}
VARIABLES = {"n": "rows", "K": "classes", "T": "trials"}


def derive(record: Row) -> None:
    """Add to the rows how many times faster they are, or how they grow."""
    rows = [row for row in record["rows"] if "seconds" in row]
    usual = {(row["problem"], row["method"]): row["seconds"] for row in _of(rows, section="reference")}
    for row in _of(rows, section="images"):
        own = "idgp" if row["method"] == "idgp" else "proden"
        if (row["problem"], own) in usual:
            row["times_conventional"] = _rounded(usual[row["problem"], own] / row["seconds"])
        if own == "idgp" and "H200" in record["device"]:
            row["times_authors"] = _rounded(AUTHORS[row["problem"]] / row["seconds"])
    for row in _of(rows, section="tables"):
        alone = _of(rows, section="tables", problem=row["problem"], method=row["method"], trials=1)
        usually = min((each["seconds"] for each in alone), default=row["seconds"])
        row["gain"] = _rounded(row.get("alone", usually) / row["seconds"])
    for lines in _lines(rows):
        for before, row in pairwise(lines):
            row["slope"] = _slope(before, row)


def markdown(records: list[Row]) -> Iterable[str]:
    """Yield the tables of all sections."""
    for record in records:
        where = f"{record['device']}, {record['cores']} cores, torch {record['torch']}, commit {record['commit']}"
        yield f"`{record['command']}`: {where}, {record.get('seconds_in_all', 0)} s in all."
        if record["not_begun"]:
            yield f"{record['not_begun']} cases were not begun within the budget."
    rows = _first_found(records)
    derive({**records[0], "rows": rows})
    yield from (*_images(rows), *_tables(rows), *_growth(rows))
    failed = [[r["section"], r["problem"], r["method"], r["form"], r["error"]] for r in rows if "error" in r]
    if failed:
        yield "### What could not be measured"
        yield _grid(["section", "problem", "method", "form", "why"], failed)


def _first_found(records: list[Row]) -> list[Row]:
    """Return every case from the first record that has measured it; with the commit, where there are several."""
    found: dict[tuple[Any, ...], Row] = {}
    for record in records:
        own = {} if len(records) == 1 else {"commit": record["commit"][:7]}
        for row in record["rows"]:
            case = tuple(row[name] for name in ("section", "problem", "method", "form", "trials"))
            if "seconds" not in found.get(case, ()):
                found[case] = row | own
    return list(found.values())


# --- sections ---------------------------------------------------------------------------------------------


def _images(rows: list[Row]) -> Iterable[str]:
    """One table a problem: the conventional way first, then every method."""
    chosen = [row for row in rows if row["section"] in ("reference", "images") and "seconds" in row]
    header = [
        "method",
        "trials",
        "s an epoch and trial",
        "first epoch, s",
        "memory, MB",
        "times faster than the conventional way",
    ]
    header.append("than the authors' code")
    header += ["commit"] * any("commit" in row for row in chosen)
    for problem in dict.fromkeys(row["problem"] for row in chosen):
        own = _of(chosen, problem=problem)
        cells = [
            [
                row["method"],
                f"{row['trials']} together" + row["form"].removeprefix("together")
                if row["trials"] > 1
                else row["form"],
                _number(row["seconds"]) + _scaled(row),
                _number(row.get("first_epoch")),
                _number(row.get("memory_mb")),
                _ratio(row.get("times_conventional")),
                _ratio(row.get("times_authors")),
                *([row["commit"]] if "commit" in row else []),
            ]
            for row in sorted(own, key=lambda row: (row["section"] != "reference", row["method"] != "idgp"))
        ]
        yield f"### {problem}"
        yield _grid(header, cells)


def _tables(rows: list[Row]) -> Iterable[str]:
    """One table a problem: methods by numbers of trials, in milliseconds, with the gain over one alone."""
    chosen = [row for row in rows if row["section"] == "tables" and "seconds" in row]
    for problem in dict.fromkeys(row["problem"] for row in chosen):
        own = [row for row in _of(chosen, problem=problem) if row["form"].startswith("threads")]
        sizes = sorted({row["trials"] for row in own})
        cells = []
        for method in dict.fromkeys(row["method"] for row in own):
            best = [
                min(_of(own, method=method, trials=size), key=lambda row: row["seconds"], default=None)
                for size in sizes
            ]
            cells.append([method, *(_milliseconds(row) for row in best)])
        yield f"### {problem}: ms an epoch and trial with the better number of threads (times faster than alone)"
        yield _grid(["method", *("alone" if size == 1 else f"{size} together" for size in sizes)], cells)
        for row in _of(chosen, problem=problem):
            if row not in own:
                whole = f", {row['seconds_in_all']:.1f} s in all" if "seconds_in_all" in row else ""
                yield f"{row['trials']} trials of {row['method']}, {row['form']}: {_milliseconds(row)} ms{whole}."


def _growth(rows: list[Row]) -> Iterable[str]:
    """One table a variable: seconds, memory and the slope of log seconds against the log of the variable."""
    for lines in _lines([row for row in rows if "seconds" in row]):
        variable, method = lines[0]["problem"], lines[0]["method"]
        cells = [
            [
                f"{int(row['form']):,}",
                _number(_epoch(row)),
                _number(row.get("memory_mb")),
                _ratio(row.get("slope")),
            ]
            for row in lines
        ]
        if len(lines) > 2:
            cells.append(["overall", "", "", _ratio(_slope(lines[0], lines[-1]))])
        yield f"### {method}: growth with the number of {VARIABLES[variable]} {variable}"
        yield _grid([variable, "s an epoch", "memory, MB", "slope"], cells)


# --- parts ------------------------------------------------------------------------------------------------


def _lines(rows: list[Row]) -> list[list[Row]]:
    """Return the rows of each line of growth."""
    growth = _of(rows, section="growth")
    names = dict.fromkeys((row["method"], row["problem"]) for row in growth)
    return [_of(growth, method=method, problem=variable) for method, variable in names]


def _slope(before: Row, row: Row) -> float:
    return _rounded(log(_epoch(row) / _epoch(before)) / log(int(row["form"]) / int(before["form"])))


def _epoch(row: Row) -> float:
    """Seconds of an epoch of all trials."""
    return row["seconds"] * row["trials"]


def _of(rows: Iterable[Row], **wanted: Any) -> list[Row]:
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def _grid(header: list[str], cells: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _scaled(row: Row) -> str:
    return f" (scaled from {row['scaled_from_steps']} steps)" if "scaled_from_steps" in row else ""


def _milliseconds(row: Row | None) -> str:
    if row is None:
        return "–"
    return f"{_number(1000 * row['seconds'])}" + (f" ({_ratio(row['gain'])})" if row["trials"] > 1 else "")


def _number(value: float | None) -> str:
    """Three digits that count."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _ratio(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}" if abs(value) < 10 else _number(value)


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
