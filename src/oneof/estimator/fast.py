"""Settings for a short training: what `fast` of every method sets, and nothing else."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

FAST = {"epochs": 20, "schedule": "triangular", "average": 1.0}
_PHASES = ("warm_up", "ramp")  # at most a quarter of the epochs each: label tables need what is left
_SHARE = 4


def fast_settings(method: type[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """Return `FAST` and the phases of a method that fit into its epochs, but what is named stays as it is."""
    settings = {**FAST, **named}
    epochs = settings["epochs"]
    if isinstance(epochs, int):  # anything else is refused by `fit`
        quarter = max(1, epochs // _SHARE)
        usual: dict[str, Any] = {each.name: each.default for each in fields(method) if each.name in _PHASES}
        phases = {name: min(length, quarter) for name, length in usual.items()}
        settings = {**phases, **settings}
    return settings
