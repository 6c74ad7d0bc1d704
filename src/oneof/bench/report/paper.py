"""The numbers that a paper prints, as TOML: [table.data-set] with ``method = [mean, standard deviation]``."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oneof.bench.toml_files import read_toml
from oneof.errors import InputError
from oneof.io.schema import is_number
from oneof.io.words import shown

__all__ = ["Paper", "read_paper"]


@dataclass(frozen=True)
class Paper:
    """One table of a paper."""

    source: str
    about: str
    numbers: Mapping[str, Mapping[str, tuple[float, float]]]  # data set -> method -> mean and deviation


def read_paper(path: str | Path, table: str) -> Paper:
    """Read a table of printed numbers."""
    path = Path(path)
    content = read_toml(path, "file of printed numbers")
    rows = content.get(table)
    if not isinstance(rows, dict):
        tables = ", ".join(sorted(name for name in content if name not in ("source", "about")))
        raise InputError(f"the plan's paper is {table!r}, but {str(path)!r} has the tables {tables}")
    for name, row in rows.items():
        if not isinstance(row, dict):
            place = f"{table}.{name}"
            raise InputError(f"the printed numbers {place} are {shown(row)}, but must be a table: write [{place}]")
    about = content.get("about", {})
    return Paper(
        str(content.get("source", "")),
        str(about.get(table, "")) if isinstance(about, dict) else "",
        {
            name: {label: _pair(f"{table}.{name}.{label}", value) for label, value in row.items()}
            for name, row in rows.items()
        },
    )


def _pair(place: str, value: Any) -> tuple[float, float]:
    if not isinstance(value, list) or len(value) != 2 or not all(map(is_number, value)):
        raise InputError(
            f"the printed number {place} is {shown(value)}, but must be a mean and a standard deviation"
        )
    return float(value[0]), float(value[1])
