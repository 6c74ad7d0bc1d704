"""Hyper-parameters: keyword-only dataclass fields that know what they accept."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from enum import Flag, auto
from numbers import Integral, Real
from typing import Any, TypeVar, dataclass_transform

_T = TypeVar("_T")


class Role(Flag):
    """What a field means beyond its value."""

    NONE = 0
    TRACELESS = auto()
    VARIES_IN_STACK = auto()
    VECTOR_IN_STACK = auto()
    NOT_SAVED = auto()
    NOT_IN_PLANS = auto()


_ROLES = {
    "verbose": Role.TRACELESS | Role.VARIES_IN_STACK | Role.NOT_SAVED | Role.NOT_IN_PLANS,
    "checkpoint": Role.TRACELESS | Role.VARIES_IN_STACK | Role.NOT_SAVED | Role.NOT_IN_PLANS,
    "device": Role.TRACELESS | Role.NOT_SAVED | Role.NOT_IN_PLANS,
    "threads": Role.TRACELESS,
    "random_state": Role.VARIES_IN_STACK | Role.NOT_SAVED | Role.NOT_IN_PLANS,
    "patience": Role.VARIES_IN_STACK,
    **dict.fromkeys(("lr", "weight_decay", "lr_g", "weight_decay_g"), Role.VARIES_IN_STACK | Role.VECTOR_IN_STACK),
}


def names_with(cls: Any, role: Role) -> list[str]:
    """List the fields that have a role."""
    return [each.name for each in fields(cls) if role in _ROLES.get(each.name, Role.NONE)]


def setting(default: Any, expected: str, accepts: Callable[[Any], bool]) -> Any:
    """Declare a field with its default, what it must be (in words), and the test of that."""
    return field(default=default, metadata={"expected": expected, "accepts": accepts})


def number(default: float | None, condition: str = "") -> Any:
    """Declare a real number, such as ``number(0.1, "> 0")`` or ``number(0.9, "in [0, 1]")``."""
    optional = " or None" if default is None else ""
    return setting(default, f"a number {condition}".strip() + optional, _test(Real, condition, default is None))


def count(default: int | None, condition: str = ">= 1", optional: bool = False) -> Any:
    """Declare a whole number; None is accepted when it is the default or ``optional``."""
    optional = optional or default is None
    return setting(
        default, f"a whole number {condition}" + " or None" * optional, _test(Integral, condition, optional)
    )


def choice(default: str | None, *options: str | None) -> Any:
    """Declare one of some names."""
    options = (default, *options)
    return setting(default, f"one of {list(options)}", lambda value: value in options)


_CONDITIONS: dict[str, Callable[[Any], bool]] = {
    "": lambda value: True,
    "> 0": lambda value: value > 0,
    ">= 0": lambda value: value >= 0,
    ">= 1": lambda value: value >= 1,
    "in [0, 1]": lambda value: 0 <= value <= 1,
    "in [0, 1)": lambda value: 0 <= value < 1,
}


def _test(kind: type, condition: str, optional: bool) -> Callable[[Any], bool]:
    holds = _CONDITIONS[condition]

    def accepts(value: Any) -> bool:
        if value is None:
            return optional
        return isinstance(value, kind) and not isinstance(value, bool) and holds(value)

    return accepts


@dataclass_transform(kw_only_default=True, field_specifiers=(setting, number, count, choice))
def hyperparameters(cls: type[_T]) -> type[_T]:
    """Give a class the explicit, keyword-only ``__init__`` that scikit-learn's contract wants."""
    return dataclass(kw_only=True, eq=False, repr=False)(cls)


def check(estimator: Any) -> None:
    """Raise ValueError for the first field whose value is not what it must be."""
    for parameter in fields(estimator):
        value = getattr(estimator, parameter.name)
        accepts = parameter.metadata.get("accepts")
        if accepts is not None and not accepts(value):
            name = f"{parameter.name} of {type(estimator).__name__}"
            raise ValueError(f"{name} is {value!r}, but must be {parameter.metadata['expected']}")
