"""The header of a model file: what it must hold, and the estimator that it describes."""

import math
import warnings
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, NotRequired, TypedDict, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from torch import nn

from oneof.errors import InputError
from oneof.estimator.fields import Role, check, first_values, names_with
from oneof.estimator.method_base import FIRST_OPTIMIZER, MethodBase
from oneof.estimator.preparation import held_out_rows
from oneof.io.schema import misfits
from oneof.io.words import shown
from oneof.nn.networks import Factory
from oneof.nn.pretrained import Architecture, PretrainedBody, check_architecture, is_pretrained

_M = TypeVar("_M", bound=MethodBase)
_OWN_NETWORK = {"own": True}  # stands for a module or a factory, which a file cannot hold


class MisfitError(InputError):
    """Something in a file is not what it must be; the message says what, and the reader adds the file."""


class CommonFacts(TypedDict):
    """What the header of every model file holds, beside its kind and version."""

    method: str  # the name of the class
    parameters: dict[str, Any]
    classes: list[Any]
    classes_type: str
    input_shape: list[int] | None
    n_features_in: int
    feature_names_in: list[str] | None
    history: dict[str, list[float]]


class ModelFacts(CommonFacts):
    """What the header of a model with networks holds."""

    training_rows: int
    training_candidates: NotRequired[int]  # where sets were sparse
    architecture: NotRequired[Architecture]  # of a pretrained network


def facts_of(model: MethodBase) -> ModelFacts:
    """Return the header of a fitted model with networks."""
    facts = {**common_facts(model, _saved_settings(model)), "training_rows": model.training_rows_}
    if model.training_candidates_ is not None:
        facts["training_candidates"] = model.training_candidates_
    if is_pretrained(model.network):
        facts["architecture"] = cast(PretrainedBody, model.network_.body).architecture
    return cast(ModelFacts, facts)


def common_facts(model: Any, settings: dict[str, Any]) -> CommonFacts:
    """Return what every header says of a fitted model."""
    names = getattr(model, "feature_names_in_", None)
    return {
        "method": type(model).__name__,
        "parameters": settings,
        "classes": model.classes_.tolist(),
        "classes_type": "str" if model.classes_.dtype.kind in "OU" else model.classes_.dtype.str,
        "input_shape": None if model.input_shape_ is None else list(model.input_shape_),
        "n_features_in": model.n_features_in_,
        "feature_names_in": None if names is None else list(names),
        "history": model.history_,
    }


def _saved_settings(model: MethodBase) -> dict[str, Any]:
    """Return the settings that a model file holds, as JSON has them."""
    settings = {name: getattr(model, name) for name in _saved_names(type(model))}
    if not isinstance(model.network, str):
        settings["network"] = _OWN_NETWORK
    for name, value in settings.items():
        if isinstance(value, np.generic):
            settings[name] = value.item()
        elif not isinstance(value, str | int | float | list | tuple | dict | None):
            raise InputError(
                f"{name} of {type(model).__name__} is of type {type(value).__name__}, which a model file cannot "
                "hold; set it to a number, a text, None, or a list or dict of these, and fit again"
            )
    return settings


def _saved_names(cls: type[MethodBase]) -> list[str]:
    not_saved = names_with(cls, Role.NOT_SAVED)
    return [field.name for field in fields(cls) if field.name not in not_saved]


def described_model(
    facts: dict[str, Any], methods: Mapping[str, type[_M]], network: nn.Module | Factory | None
) -> _M:
    """Make the estimator that a header describes, without what it has learned."""
    for wrong in misfits(facts, ModelFacts):
        raise MisfitError(wrong)
    header = cast(ModelFacts, facts)
    name = header["method"]
    if name not in methods:
        raise InputError(
            f"the file holds a {shown(name)}, which is none of the methods {sorted(methods)}; if it is your own, "
            f'pass its class: load_model(path, methods={{"{shown(name)[1:-1]}": {shown(name)[1:-1]}}})'
        )
    model = methods[name](**_settings(header, methods[name], network))
    try:
        check(model)
    except ValueError as error:
        raise MisfitError(str(error)) from None
    set_common(model, header)
    model.training_rows_ = header["training_rows"]
    model.training_candidates_ = header.get("training_candidates")
    if is_pretrained(model.network):
        model.architecture_ = _architecture(header)
    return model


def _architecture(header: ModelFacts) -> Architecture:
    if "architecture" not in header:
        raise MisfitError("there is no 'architecture' of its pretrained network")
    if (wrong := check_architecture(header["architecture"])) is not None:
        raise MisfitError(f"architecture cannot be used: {wrong}")
    return header["architecture"]


def set_common(model: Any, header: CommonFacts) -> None:
    """Give a model its classes, inputs and history."""
    model.classes_ = _classes(header)
    _set_inputs(model, header)
    model.history_ = header["history"]


def _settings(header: ModelFacts, cls: type[MethodBase], network: nn.Module | Factory | None) -> dict[str, Any]:
    saved = _saved_names(cls)
    first = {name: value for name, value in first_values(cls).items() if name in saved}
    settings = {"optimizer": FIRST_OPTIMIZER, **first, **header["parameters"]}
    unknown = sorted(settings.keys() - saved)
    if unknown:
        raise MisfitError(f"{cls.__name__} has no setting {shown(unknown[0])}")
    missing = [name for name in saved if name not in settings]
    if missing:
        warnings.warn(
            f"the file does not say {', '.join(missing)} of {cls.__name__}; the defaults are taken", stacklevel=5
        )
    if settings.get("network") == _OWN_NETWORK:
        if network is None:
            raise InputError(
                "the model has a network of your own: pass it or its factory, load_model(path, network=...)"
            )
        settings["network"] = network
    elif network is not None:
        warnings.warn(
            f"the file names the network {shown(settings.get('network', 'auto'))}, so that network= has no effect",
            stacklevel=5,
        )
    return settings


def _classes(header: CommonFacts) -> NDArray[Any]:
    names, kind = header["classes"], header["classes_type"]
    plain = all(isinstance(name, str | int | float) for name in names)
    try:
        array = np.array(names, dtype=None if kind == "str" else np.dtype(kind))
    except (TypeError, ValueError, OverflowError):
        raise MisfitError(f"classes are not of the type {shown(kind)} that classes_type says") from None
    kinds = "OU" if kind == "str" else "biuf"
    if not plain or array.dtype.kind not in kinds or array.ndim != 1 or array.tolist() != names:
        raise MisfitError(f"classes are not of the type {shown(kind)} that classes_type says")
    if len(set(names)) < max(2, len(names)):
        raise MisfitError(f"classes are {shown(names)}, but must be at least two different names")
    return array


def _set_inputs(model: Any, header: CommonFacts) -> None:
    shape, features, names = header["input_shape"], header["n_features_in"], header["feature_names_in"]
    if features < 1:
        raise MisfitError(f"n_features_in is {features}, but must be >= 1")
    if shape is not None and (len(shape) != 3 or min(shape) < 1 or math.prod(shape) != features):
        raise MisfitError(f"input_shape is {shown(shape)}, but must be the shape of {features} pixels")
    if names is not None and (shape is not None or len(names) != features):
        raise MisfitError(f"feature_names_in has {len(names)} names, but n_features_in is {features}")
    model.input_shape_ = None if shape is None else tuple(shape)
    model.n_features_in_ = features
    if names is not None:
        model.feature_names_in_ = np.array(names, dtype=object)


def check_rows_agree(model: MethodBase, rows: int) -> None:
    """Refuse a header whose number of training rows does not fit the number of all rows given to `fit`."""
    candidates = model.training_candidates_
    if candidates is not None and not model.training_rows_ <= candidates <= model.training_rows_ * len(
        model.classes_
    ):
        raise MisfitError(f"training_candidates is {candidates}, but training_rows is {model.training_rows_}")
    held_out = held_out_rows(model.validation_fraction, rows)
    if model.training_rows_ < 1 or model.training_rows_ + held_out != rows:
        raise MisfitError(
            f"training_rows is {model.training_rows_}, but of the {rows} rows that label_distributions has, "
            f"{held_out} were held out"
        )
