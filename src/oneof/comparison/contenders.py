"""Contenders: the methods that are compared, each as a model with its settings, and those left out with a word."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from sklearn.base import clone

from oneof.em import EMClassifier
from oneof.errors import InputError, KindError
from oneof.estimator.classifier import PartialLabelClassifier
from oneof.io.words import join_first, listed, shown
from oneof.methods import Classifier, classifiers

# The cheapest first: of methods that are equal to the last bit the first is taken.
DEFAULTS = ("cc", "proden", "membership", "idgp", "competition")
WITH_VIEWS = ("plcr", "pico")  # where settings name several views
_OWN = ("random_state", "verbose", "checkpoint")  # of a comparison itself, or of one fit alone

Contenders = dict[str, Classifier]


def choose_contenders(
    methods: Any, settings: Any, is_table: bool, weighted: bool
) -> tuple[Contenders, dict[str, str]]:
    """Return the models to compare by name, and why others are left out.

    Parameters
    ----------
    methods, settings
        As `compare` takes them.
    is_table : bool
        Whether rows are those of a table.
    weighted : bool
        Whether candidates have weights.
    """
    given = _check_settings(settings)
    models = _named(methods, given)
    _apply(models, given)
    reasons = {name: _unfit(model, is_table, weighted) for name, model in models.items()}
    left_out = {name: reason for name, reason in reasons.items() if reason}
    chosen = {name: model for name, model in models.items() if name not in left_out}
    if not chosen:
        why = join_first(f"{name} {reason}" for name, reason in left_out.items())
        raise InputError(f"no method is left to compare: {why}; name others in methods")
    return chosen, left_out


def _check_settings(settings: Any) -> dict[str, Any]:
    if settings is None:
        return {}
    if not isinstance(settings, Mapping) or not all(isinstance(name, str) for name in settings):
        raise KindError(
            f"settings is {shown(settings)}, but must be a dict of names and values; pass such as {{'epochs': 50}}"
        )
    for name in _OWN:
        if name in settings:
            why = "is of one fit alone" if name == "checkpoint" else "is an argument of compare itself"
            raise InputError(f"settings holds {name!r}, which {why}; leave it out of settings")
    return dict(settings)


def _named(methods: Any, settings: Mapping[str, Any]) -> Contenders:
    """Return the models that are meant, each a new one with its own settings."""
    if isinstance(methods, Mapping):
        return _own_models(methods)
    if methods is None:
        views = settings.get("views")
        methods = [*DEFAULTS, *(WITH_VIEWS if isinstance(views, str) and "+" in views else ())]
    known: dict[str, Any] = {**classifiers()}
    if isinstance(methods, str) or not isinstance(methods, Sequence) or not methods:
        raise KindError(
            f"methods is {shown(methods)}, but must be a list of names, such as ['cc', 'idgp'], or a dict of "
            "models by name"
        )
    for position, name in enumerate(methods):
        if not isinstance(name, str) or name.lower() not in known:
            raise InputError(f"{shown(name)} is no method; choose among {', '.join(known)}")
        if name.lower() in [earlier.lower() for earlier in methods[:position]]:
            raise InputError(f"methods names {name!r} twice; name each once, or pass a dict of models by name")
    return {name.lower(): known[name.lower()]() for name in methods}


def _own_models(methods: Mapping[Any, Any]) -> Contenders:
    for name, model in methods.items():
        if not isinstance(name, str) or not isinstance(model, PartialLabelClassifier | EMClassifier):
            raise KindError(
                f"methods holds {shown(name)}: {shown(model)}, but must be a dict of models by name; pass such as "
                "{'slow': oneof.IDGP(lr=0.01)}"
            )
    if not methods:
        raise InputError("methods is empty, but there is nothing to compare then; name at least one")
    return {name: clone(model) for name, model in methods.items()}


def _apply(models: Contenders, settings: Mapping[str, Any]) -> None:
    """Give every model those settings that it has; refuse one that none of them has."""
    names = {key: [each.name for each in fields(model)] for key, model in models.items()}
    known = {name for own in names.values() for name in own}
    for name in settings:
        if name not in known:
            raise InputError(
                f"no method among {listed(models)} has a setting {shown(name)}; see oneof methods NAME"
            )
    for key, model in models.items():
        model.set_params(**{name: value for name, value in settings.items() if name in names[key]})


def _unfit(model: Classifier, is_table: bool, weighted: bool) -> str:
    """Say why a model cannot compete on these rows; nothing where it can."""
    if isinstance(model, EMClassifier):
        return "" if is_table else "learns from tables, not from images"
    if weighted and not model.takes_weights:
        return "takes no weights of candidates"
    if model.needs_views and (model.views is None or "+" not in str(model.views)):
        return "compares several views of each example, and settings name none"
    return ""
