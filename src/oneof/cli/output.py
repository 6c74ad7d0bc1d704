"""What commands print: results as text or, with ``--json``, as one JSON object; notes on standard error.

Results go to standard output and all else to standard error, where ``--quiet`` leaves errors, warnings and hints.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from math import isfinite
from os import PathLike, fspath
from typing import Any

import typer

from oneof.pages.frame import one_line

fold = one_line  # for all that is printed: what comes out of a file must not control the terminal

_ALWAYS = ("error", "warning", "hint", "failed", "unavailable")  # notes that --quiet leaves


@dataclass
class _Wanted:
    """What the options of the running command ask for."""

    json: bool = False
    quiet: bool = False


wanted = _Wanted()


def reset() -> None:
    """Forget the options of the command before."""
    wanted.json = wanted.quiet = False


def say(text: str, err: bool = False) -> None:
    """Print results as text; with ``--json`` they come by `give` alone."""
    if err or not wanted.json:
        typer.echo(text, err=err)


def give(facts: Any) -> None:
    """Print results as JSON where that is asked for; numbers that JSON does not know become null."""
    if wanted.json:
        typer.echo(json.dumps(_plain(facts), indent=1, allow_nan=False))


def tell_written(rows: int, columns: Sequence[str], out: PathLike[str]) -> None:
    """Say how many rows of a table were written, and where; - is standard output."""
    give({"rows": rows, "columns": list(columns), "out": out})
    standard = fspath(out) == "-"
    if not (standard and wanted.quiet):
        say(fold(f"{rows} rows written to {fspath(out)}"), err=standard)


def note(kind: str, text: str) -> None:
    """Say something on standard error."""
    if kind in _ALWAYS or not wanted.quiet:
        typer.echo(fold(f"{kind}: {text}"), err=True)


def show_grid(header: Sequence[str], rows: list[list[str]]) -> None:
    """Print a table of results as text."""
    if wanted.json:
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    terminal = sys.stdout.isatty()
    grid = Table(*header, box=None, pad_edge=False)
    for row in rows:
        grid.add_row(*(Text(fold(cell)) for cell in row))  # Text: brackets are no markup here
    Console(force_terminal=terminal, width=None if terminal else 200).print(grid)


def _plain(value: Any) -> Any:
    """Return what JSON can hold: texts, finite numbers, lists and dicts."""
    if isinstance(value, float):
        return float(value) if isfinite(value) else None
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, PathLike):
        return fspath(value)
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if hasattr(value, "_asdict"):
        return _plain(value._asdict())
    if hasattr(value, "tolist"):  # arrays, and numbers of NumPy
        return _plain(value.tolist())
    return [_plain(item) for item in value]
