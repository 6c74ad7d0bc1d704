"""The numbers that a paper prints, as TOML: [table.data-set] with ``method = [mean, standard deviation]``."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file of printed numbers {str(path)!r}; check the path") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(
            f"the printed numbers {str(path)!r} are not valid TOML ({error}); mend them there"
        ) from None
    rows = content.get(table)
    if not isinstance(rows, dict):
        tables = ", ".join(sorted(name for name in content if name not in ("source", "about")))
        raise ValueError(f"the plan's paper is {table!r}, but {str(path)!r} has the tables {tables}")
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
    try:
        mean, std = map(float, value)
    except (TypeError, ValueError):
        raise ValueError(
            f"the printed number {place} is {value!r}, but must be a mean and a standard deviation"
        ) from None
    return mean, std
