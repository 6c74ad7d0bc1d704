"""Reads TOML files: what is wrong with a file is one sentence, and every number in it is one that can be used."""

import tomllib
from pathlib import Path
from typing import Any

from oneof.errors import InputError
from oneof.io.schema import is_number

__all__ = ["read_toml"]

_LARGEST = 2**63  # whole numbers of TOML have 64 bits


def read_toml(path: Path, kind: str) -> dict[str, Any]:
    """Read a file of this kind, such as "plan"."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        wrong = _wrong_number("", content)
    except (FileNotFoundError, IsADirectoryError):
        raise FileNotFoundError(f"there is no {kind} {str(path)!r}; check the path") from None
    except RecursionError:
        raise InputError(f"the {kind} {str(path)!r} is nested too deeply; mend it there") from None
    except ValueError as error:  # no TOML, no UTF-8, or a number of thousands of digits
        raise InputError(f"the {kind} {str(path)!r} is not valid TOML ({error}); mend it there") from None
    if wrong is not None:
        raise InputError(f"the {kind} {str(path)!r}: {wrong}")
    return content


def _wrong_number(place: str, value: Any) -> str | None:
    """Say which number is infinite, NaN or too large."""
    if isinstance(value, dict):
        parts = {f"{place}.{name}".lstrip("."): item for name, item in value.items()}
    elif isinstance(value, list):
        parts = {f"{place}[{i}]": item for i, item in enumerate(value)}
    elif isinstance(value, float) and not is_number(value):
        return f"{place} is {value}, but must be a finite number"
    elif isinstance(value, int) and abs(value) >= _LARGEST:
        return f"{place} is a whole number of more than 64 bits; write a smaller one"
    else:
        return None
    return next((wrong for name, item in parts.items() if (wrong := _wrong_number(name, item))), None)
