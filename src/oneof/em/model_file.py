"""EMClassifiers on disk: one safetensors file with JSON facts; no pickle, no class but those named here."""

from collections.abc import Callable
from dataclasses import fields
from hashlib import sha256
from itertools import pairwise
from os import PathLike
from typing import Any, TypedDict, TypeVar, cast

import numpy as np
import torch
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from torch import Tensor

from oneof.em.estimators import ESTIMATORS, Array, last_step
from oneof.em.forms import pack, unpack
from oneof.estimator.fields import Role, check, names_with
from oneof.estimator.model_header import CommonFacts, MisfitError, common_facts, set_common
from oneof.estimator.saved_distributions import take_distributions
from oneof.io import tensors as tensor_file
from oneof.io.schema import misfits
from oneof.io.words import reason, shown

_T = TypeVar("_T")
_FORM = "form."  # before the names of a form's arrays
_CLASSES = {
    cls.__name__: cls
    for cls in (LogisticRegression, DecisionTreeClassifier, RandomForestClassifier, ExtraTreesClassifier)
}
_OF_LIBRARIES = {"LGBMClassifier": "lightgbm", "XGBClassifier": "xgboost"}


class EstimatorFacts(TypedDict):
    """A classifier that was given as an object: its class, its parameters, and whether a scaler is before it."""

    name: str
    scaled: bool
    parameters: dict[str, Any]


class EMFacts(CommonFacts):
    """What the header of an EMClassifier holds."""

    estimator: str | EstimatorFacts
    form: str  # see oneof.em.forms
    columns: list[int]  # the class number of each column of the form's probabilities
    sha256: str  # of the form's arrays


def save_em_model(model: Any, path: str | PathLike[str]) -> None:
    """Write a fitted EMClassifier."""
    tensor_file.write(path, "model", *em_parts(model))


def em_parts(model: Any) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors and the facts that a file holds of a fitted EMClassifier."""
    form = pack(model.estimator_, model.n_features_in_, len(model.columns_))
    arrays = {name: np.ascontiguousarray(array) for name, array in form.arrays().items()}
    tensors = {f"{_FORM}{name}": torch.tensor(array) for name, array in arrays.items()}
    tensors["label_distributions"] = torch.as_tensor(model.label_distributions_)
    settings = {name: _plain(getattr(model, name)) for name in _saved_names(type(model))}
    facts: EMFacts = {
        **common_facts(model, settings),
        "estimator": model.estimator if isinstance(model.estimator, str) else _describe(model.estimator),
        "form": form.kind,
        "columns": model.columns_.tolist(),
        "sha256": _checksum(arrays),
    }
    return tensors, cast(dict[str, Any], facts)


def read_em_model(cls: Callable[..., _T], tensors: dict[str, Tensor], facts: dict[str, Any]) -> _T:
    """Make an EMClassifier (``cls``) of what is in a file; raise MisfitError where it cannot be made."""
    for wrong in misfits(facts, EMFacts):
        raise MisfitError(wrong)
    header = cast(EMFacts, facts)
    settings, saved = header["parameters"], _saved_names(cls)
    for name in sorted(settings.keys() ^ set(saved)):
        raise MisfitError(
            f"the setting {shown(name)} is " + ("missing" if name in saved else "none of EMClassifier")
        )
    model: Any = cls(**settings, estimator=_described(header["estimator"]))
    try:
        check(model)
    except ValueError as error:
        raise MisfitError(str(error)) from None
    if header["input_shape"] is not None:
        raise MisfitError(f"input_shape is {shown(header['input_shape'])}, but EMClassifier learns from tables")
    set_common(model, header)
    take_distributions(model, tensors)
    model.columns_ = _columns(header["columns"], len(model.classes_))
    arrays = {name.removeprefix(_FORM): tensor.numpy() for name, tensor in tensors.items()}
    if not all(name.startswith(_FORM) for name in tensors) or _checksum(arrays) != header["sha256"]:
        raise MisfitError("the arrays of the classifier are not those that were saved")
    model.estimator_ = unpack(header["form"], arrays, model.n_features_in_, len(model.columns_))
    return cast(_T, model)


def _saved_names(cls: Any) -> list[str]:
    left_out = {*names_with(cls, Role.NOT_SAVED), "estimator"}
    return [field.name for field in fields(cls) if field.name not in left_out]


def _describe(estimator: Any) -> EstimatorFacts:
    """Describe a classifier that was given as an object; its class is one of those that have a form."""
    parameters = last_step(estimator).get_params(deep=False)
    return {
        "name": type(last_step(estimator)).__name__,
        "scaled": isinstance(estimator, Pipeline),
        "parameters": {name: _plain(value) for name, value in parameters.items() if _is_plain(value)},
    }


def _described(facts: str | EstimatorFacts) -> Any:
    """Make the classifier, not fitted, that a header describes."""
    if isinstance(facts, str):
        return facts
    name = facts["name"]
    if name not in _CLASSES and name not in _OF_LIBRARIES:
        raise MisfitError(f"estimator is {shown(name)}, but must be one of {[*_CLASSES, *_OF_LIBRARIES]}")
    made: Any = _CLASSES[name]() if name in _CLASSES else ESTIMATORS[_OF_LIBRARIES[name]]()
    try:
        made.set_params(**facts["parameters"])
    except (TypeError, ValueError) as error:
        raise MisfitError(f"{name} does not take its parameters: {reason(error, 120)}") from None
    return make_pipeline(StandardScaler(), made) if facts["scaled"] else made


def _columns(numbers: list[int], n_classes: int) -> Array:
    """Return the class number of each column of a form."""
    rising = all(first < second for first, second in pairwise(numbers))
    if not numbers or not rising or numbers[0] < 0 or numbers[-1] >= n_classes:
        raise MisfitError(f"columns is {shown(numbers)}, but must be rising numbers of the {n_classes} classes")
    return np.array(numbers, dtype=np.int64)


def _checksum(arrays: dict[str, Array]) -> str:
    digest = sha256()
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype.str} {arrays[name].shape}\n".encode())
        digest.update(np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()


def _plain(value: Any) -> Any:
    """Return a setting as JSON has it."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return value.item() if isinstance(value, np.generic) else value


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict | list | tuple):
        return all(map(_is_plain, value.values() if isinstance(value, dict) else value))
    return isinstance(value, str | int | float | np.generic | None)
