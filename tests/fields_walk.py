"""A walk over all fields of all methods: pairs of models that differ in one field alone.

Every pair is of a form that a tiny table can be fitted with, and in which the field matters.
"""

import re
from dataclasses import fields
from inspect import get_annotations

import pytest

from conftest import NEEDS
from oneof import METHODS

TINY = {
    "network": "linear", "precision": "fp64", "device": "cpu", "epochs": 6, "batch_size": 20, "random_state": 0,
    "optimizer": "sgd",  # named, since a rate or decay that is given by itself would choose it
}  # fmt: skip
VIEWS = "plain+jitter+jitter"
RELEASED = {"objective": "released"}
DEEP = {"network": "mlp"}  # embeddings of a linear network are made of the row itself, which nothing trains
# Where a field of IDGP, or of all methods, matters: what must be set beside it.
BESIDE = {
    "r": {"m": 0.5}, "queue_size": DEEP | {"lr": 0.1, "schedule": "constant", "weight_decay": 1e-3},
    "contrastive_weight": DEEP, "temperature": DEEP, "target_temperature": DEEP, "embedding_size": DEEP,
    "contrast_start": DEEP, "alignment_weight": DEEP, "ramp": DEEP, "mixing_beta": DEEP,
    "prototype_momentum_start": DEEP, "prototype_momentum_end": DEEP,
    "increase": {"theta": 0.05, "epochs": 40}, "theta_end": {"theta": 0.05, "epochs": 40},
    "outside_rule": {"outside": 0.2}, "targets": {"views": VIEWS},
    "patience": {"validation_fraction": 0.3, "epochs": 30},
    "temperature_f": RELEASED, "temperature_g": RELEASED,
    "weight_f": RELEASED, "weight_fg": RELEASED, "weight_g": RELEASED, "weight_gf": RELEASED,
    "weight_consistency": RELEASED, "consistency": RELEASED,
}  # fmt: skip
# Which method shows a field that all or many have, where CC refuses it or has it not.
ALL_HAVE = {"outside_rule": "proden", "mixup": "proden"}
# Values that no rule finds. All views of a table but these are the row itself.
OTHERS = {
    "views": "jitter+jitter", "checkpoint": "other.checkpoint", "random_state": 1, "patience": 1,
    "scaling": "whole",  # None is columns
}  # fmt: skip


def every_field():
    """Every field of every method, inherited ones included."""
    return [
        pytest.param(name, each.name, id=f"{name}-{each.name}")
        for name, method in METHODS.items()
        for each in fields(method)
    ]


def every_field_once():
    """Every field, by the method that declares it; those that all methods have, by CC, or where it is refused."""
    return [
        pytest.param(name, each.name, id=f"{name}-{each.name}")
        for name, method in METHODS.items()
        for each in fields(method)
        if name == ALL_HAVE.get(each.name, "cc") or each.name in get_annotations(method)
    ]


def pair(name, field, **settings):
    """Return two models of a method that differ in one field."""
    settings = TINY | NEEDS.get(name, {}) | BESIDE.get(field, {}) | settings
    first = METHODS[name](**settings)
    return first, METHODS[name](**settings | {field: other_value(first, field)})


def other_value(model, name):
    """Return a value that the field of a model accepts, and which is not the one it has."""
    (field,) = (each for each in fields(model) if each.name == name)
    accepts = field.metadata.get("accepts") or (lambda value: True)
    now = getattr(model, name)
    for value in [OTHERS[name]] if name in OTHERS else _proposals(now, field.metadata.get("expected", "")):
        if value != now and accepts(value):
            return value
    raise AssertionError(f"no other value of {name} is known; add one to OTHERS")


def _proposals(now, expected):
    if isinstance(now, bool):
        return [not now]
    if isinstance(now, int):
        return [now + 1]
    if isinstance(now, float):
        return [2 * now, 0.5]
    named = re.findall(r"'([^']+)'", expected)  # the options of a choice
    return [*named, 0.25, 3]
