"""Keys of runs: the hash of a spec, from which everything is left out that has its value in the frozen baseline.

``baseline.json`` has a value for every field of the split, of the annotator and of every method. Fields are added
to it, but a value that is in it never changes. When a class gets another default, the runs that rely on it differ
from the baseline, so their keys change. When a class gets a new field, the baseline gets the value that leaves old
results as they were, and runs with this value keep the keys that they had before.
"""

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from oneof.errors import InputError, KindError
from oneof.io.words import shown

__all__ = ["baseline", "difference", "plain", "run_key"]

# 80 bits: among a million runs two share a key with a chance of 4e-13.
_KEY_LENGTH = 20


def run_key(spec: Mapping[str, Any]) -> str:
    """Return the key of a run: a hash of its `difference` from the baseline.

    The order of names does not matter, and 1 is 1.0 since a person writes either; True is not 1.
    """
    return hashlib.sha256(_text(difference(spec)).encode()).hexdigest()[:_KEY_LENGTH]


def difference(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a spec whose values are not those of the baseline, in canonical form.

    A spec is any mapping. Its "settings" are compared with those of its "method", its other names with what the
    baseline has under the same names; names that the baseline does not have are kept.
    """
    canonical = plain(dict(spec), "spec", _canonical_number)
    method = canonical.get("method")
    return _difference(canonical, _canonical_baseline(method if isinstance(method, str) else None))


@cache
def baseline(method: str | None = None) -> dict[str, Any]:
    """Return the baseline in the form of a spec, with the settings of a method or of all methods; read only."""
    content = json.loads(files("oneof.bench").joinpath("baseline.json").read_text(encoding="utf-8"))
    spec: dict[str, Any] = content["spec"]
    own = content["methods"].get(method, {})
    return {**spec, "settings": {**spec["settings"], **own}}


def plain(value: Any, place: str, number: Callable[[float, str], Any]) -> Any:
    """Copy what JSON can hold, every float through ``number``; refuse the rest by its place."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return number(value, place)
    if isinstance(value, list | tuple):
        return [plain(item, f"{place}[{i}]", number) for i, item in enumerate(value)]
    if not isinstance(value, dict):
        raise KindError(
            f"{place} is {shown(value)} of type {type(value).__name__}, but must be a text, number, "
            "truth value, list, dict or None; convert it first"
        )
    for name in value:
        if not isinstance(name, str):
            raise KindError(f"{place} has the name {shown(name)}, but names must be texts; convert it first")
    return {name: plain(item, f"{place}.{name}", number) for name, item in value.items()}


@cache
def _canonical_baseline(method: str | None) -> dict[str, Any]:
    canonical: dict[str, Any] = plain(baseline(method), "baseline", _canonical_number)
    return canonical


def _difference(value: dict[str, Any], base: dict[str, Any]) -> dict[str, Any]:
    found = {}
    for name, item in value.items():
        if name not in base:
            found[name] = item
        elif isinstance(item, dict) and isinstance(base[name], dict):
            rest = _difference(item, base[name])
            if rest:
                found[name] = rest
        elif item != base[name] or _text(item) != _text(base[name]):  # True is 1 for the first alone
            found[name] = item
    return found


def _text(canonical: Any) -> str:
    return json.dumps(canonical, sort_keys=True, separators=(",", ":"))


def _canonical_number(value: float, place: str) -> float:
    if not math.isfinite(value):
        raise InputError(f"{place} is {value!r}, but must be finite to be part of a run's key")
    return int(value) if value.is_integer() else value
