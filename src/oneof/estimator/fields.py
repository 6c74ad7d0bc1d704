"""Hyper-parameters: keyword-only dataclass fields that say what they accept, what they mean and their roles."""

import math
from collections.abc import Callable
from dataclasses import Field, dataclass, field, fields
from enum import Flag
from inspect import get_annotations
from numbers import Integral, Real
from types import MappingProxyType
from typing import Any, TypedDict, TypeVar, Unpack, dataclass_transform

from oneof.errors import InputError
from oneof.estimator.docstrings import class_docstring
from oneof.io.words import shown

_T = TypeVar("_T")
_LARGEST = 2**63  # from which on torch has no whole numbers


class Role(Flag):
    """How checkpoints, stacks of trials, model files and plans treat a field; most have no role."""

    TRACELESS = 1  # it does not change what is learned
    VARIES_IN_STACK = 2  # trials of one stack may differ in it
    VECTOR_IN_STACK = 4 | VARIES_IN_STACK  # ... because the optimiser of a stack has it as a vector
    NOT_SAVED = 8  # model files do not hold it
    NOT_IN_PLANS = 16  # the runner sets it, plans do not
    LATER = 32  # earlier files do not name it: see first_values


class About(TypedDict, total=False):
    """What every field specifier takes beside default and accepted values."""

    doc: str  # one or two sentences
    roles: Role
    option: str  # the option of ``oneof fit`` that sets it
    first: Any  # with LATER: what files mean that do not name it, where this is not the default


def setting(
    default: Any,
    expected: str = "",
    accepts: Callable[[Any], bool] | None = None,
    kw_only: bool = True,
    **about: Unpack[About],
) -> Any:
    """Declare a field with its default, what it must be (in words), and a test of that for `check`."""
    return field(default=default, kw_only=kw_only, metadata={"expected": expected, "accepts": accepts, **about})


def number(default: float | None, condition: str = "", optional: bool = False, **about: Unpack[About]) -> Any:
    """Declare a real, finite number, such as ``number(0.1, "> 0")`` or ``number(0.9, "in [0, 1]")``.

    None is accepted when it is the default or ``optional``.
    """
    optional = optional or default is None
    expected = f"a number {condition}".strip() + " or None" * optional
    return setting(default, expected, _test(Real, condition, optional), **about)


def count(default: int | None, condition: str = ">= 1", optional: bool = False, **about: Unpack[About]) -> Any:
    """Declare a whole number; None is accepted when it is the default or ``optional``."""
    optional = optional or default is None
    expected = f"a whole number {condition}".strip() + " or None" * optional
    return setting(default, expected, _test(Integral, condition, optional), **about)


def choice(default: str | None, *options: str | None, **about: Unpack[About]) -> Any:
    """Declare one of some names; the first is the default."""
    options = (default, *options)

    def accepts(value: Any) -> bool:
        return isinstance(value, str | None) and value in options  # of an array, `in` makes no truth value

    return setting(default, f"one of {list(options)}", accepts, **about)


def flag(default: bool, **about: Unpack[About]) -> Any:
    """Declare a field that is True or False."""
    return setting(default, "True or False", lambda value: isinstance(value, bool), **about)


_CONDITIONS: dict[str, Callable[[Any], bool]] = {
    "": lambda value: True,
    "> 0": lambda value: value > 0,
    ">= 0": lambda value: value >= 0,
    ">= 1": lambda value: value >= 1,
    ">= 2": lambda value: value >= 2,
    "in [0, 1]": lambda value: 0 <= value <= 1,
    "in [0, 1)": lambda value: 0 <= value < 1,
    "in [1, 1024]": lambda value: 1 <= value <= 1024,
}


def _test(kind: type, condition: str, optional: bool) -> Callable[[Any], bool]:
    holds = _CONDITIONS[condition]

    def accepts(value: Any) -> bool:
        if value is None:
            return optional
        return isinstance(value, kind) and not isinstance(value, bool) and not _excess(value) and holds(value)

    return accepts


def _excess(value: Any) -> str:
    """Say what a number must be that torch cannot compute with; of all other values nothing."""
    if isinstance(value, Integral):
        return "" if -_LARGEST < int(value) < _LARGEST else "below 2**63: "
    return "finite: " if isinstance(value, Real) and not math.isfinite(value) else ""


@dataclass_transform(kw_only_default=True)  # without specifiers every value is a default to type checkers
def hyperparameters(cls: type[_T]) -> type[_T]:
    """Give a class the explicit, keyword-only ``__init__`` that scikit-learn needs, and document its fields.

    A field of the base class that is declared again keeps all that the new declaration does not say.
    """
    for name in get_annotations(cls):
        _inherit_metadata(cls, name)
    docstring = cls.__doc__  # dataclass writes one where there is none
    made = dataclass(kw_only=True, eq=False, repr=False)(cls)
    made.__doc__ = class_docstring(made, docstring)
    return made


def _inherit_metadata(cls: type, name: str) -> None:
    """Let a field that is declared again keep the roles and words of the inherited one."""
    inherited = getattr(cls, "__dataclass_fields__", {}).get(name)
    if inherited is None or name not in vars(cls):
        return
    own = vars(cls)[name]
    if not isinstance(own, Field):
        own = field(default=own)
        setattr(cls, name, own)
    own.metadata = MappingProxyType({**inherited.metadata, **own.metadata})


def names_with(estimator: Any, role: Role) -> list[str]:
    """Return the names of the fields of an estimator, or of its class, that have a role."""
    return [each.name for each in fields(estimator) if role in each.metadata.get("roles", Role(0))]


def first_values(estimator: Any) -> dict[str, Any]:
    """Return the values of the fields that are LATER, as files mean them that do not name these fields."""
    later = names_with(estimator, Role.LATER)
    return {
        each.name: each.metadata.get("first", each.default) for each in fields(estimator) if each.name in later
    }


def check(estimator: Any) -> None:
    """Raise ValueError for the first field whose value is not what it must be."""
    for parameter in fields(estimator):
        value = getattr(estimator, parameter.name)
        accepts = parameter.metadata.get("accepts")
        if accepts is not None and not accepts(value):
            name = f"{parameter.name} of {type(estimator).__name__}"
            expected = _excess(value) + parameter.metadata["expected"]
            raise InputError(f"{name} is {shown(value)}, but must be {expected}")
