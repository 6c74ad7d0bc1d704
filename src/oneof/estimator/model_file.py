"""Fitted models on disk: one safetensors file with JSON facts; no pickle, no code from the file is run."""

from collections.abc import Mapping
from dataclasses import fields
from os import PathLike
from typing import Any, TypeVar

import numpy as np
import torch

from oneof.estimator.fields import Role, names_with
from oneof.estimator.method_base import MethodBase
from oneof.io import tensors as tensor_file
from oneof.nn import networks
from oneof.train.batch import Data
from oneof.train.rows import Scaler

_M = TypeVar("_M", bound=MethodBase)
_OWN_NETWORK = {"own": True}  # stands for a factory, which a file cannot hold


def save_model(model: MethodBase, path: str | PathLike[str]) -> None:
    """Write a fitted model."""
    not_saved = names_with(model, Role.NOT_SAVED)
    parameters = {f.name: getattr(model, f.name) for f in fields(model) if f.name not in not_saved}
    if not isinstance(model.network, str):
        parameters["network"] = _OWN_NETWORK
    names = getattr(model, "feature_names_in_", None)
    facts = {
        "method": type(model).__name__,
        "parameters": parameters,
        "classes": model.classes_.tolist(),
        "classes_type": "str" if model.classes_.dtype.kind in "OU" else model.classes_.dtype.str,
        "input_shape": model.input_shape_,
        "n_features_in": model.n_features_in_,
        "feature_names_in": None if names is None else list(names),
        "training_rows": model.training_rows_,
        "history": model.history_,
    }
    tensors = {f"learned.{name}": tensor for name, tensor in model.learned().items()}
    tensors |= {"scaler.mean": model.scaler_.mean, "scaler.std": model.scaler_.std}
    tensors["label_distributions"] = torch.as_tensor(model.label_distributions_)
    tensor_file.write(path, "model", tensors, facts)


def read_model(
    path: str | PathLike[str],
    methods: Mapping[str, type[_M]],
    network: networks.Factory | None = None,
    device: str = "auto",
) -> _M:
    """Read a model that `save_model` wrote; ``methods`` are the classes that it may be of, by their names.

    The other parameters are those of `oneof.load_model`.
    """
    tensors, facts = tensor_file.read(path, "model")
    try:
        model = _empty_model(facts, methods, network)
        model.device = device
        model.scaler_ = Scaler(tensors.pop("scaler.mean"), tensors.pop("scaler.std"))
        model.label_distributions_ = tensors.pop("label_distributions").numpy()
        model.start(_placeholder(model))
        learned = model.learned()
        if {f"learned.{name}" for name in learned} != tensors.keys():
            raise KeyError("the networks differ")
        for name, tensor in learned.items():
            tensor.copy_(tensors[f"learned.{name}"])
    except (KeyError, TypeError, RuntimeError) as error:
        raise ValueError(
            f"{str(path)!r} does not hold what its header promises ({error}); save it again"
        ) from None
    model.transduction_ = model.classes_[model.label_distributions_.argmax(1)]
    return model


def _empty_model(
    facts: dict[str, Any],
    methods: Mapping[str, type[_M]],
    network: networks.Factory | None,
) -> _M:
    """Make the estimator with all that the header tells."""
    name = facts["method"]
    if name not in methods:
        raise ValueError(
            f"the file holds a {name!r}, which is none of the methods {sorted(methods)}; if it is your own, pass "
            f'its class: load_model(path, methods={{"{name}": {name}}})'
        )
    parameters = facts["parameters"]
    if parameters["network"] == _OWN_NETWORK:
        if network is None:
            raise ValueError(
                "the model has a network of your own: pass its factory, load_model(path, network=...)"
            )
        parameters["network"] = network
    model = methods[name](**parameters)
    kind = facts["classes_type"]
    model.classes_ = np.array(facts["classes"], dtype=None if kind == "str" else np.dtype(kind))
    model.input_shape_ = None if facts["input_shape"] is None else tuple(facts["input_shape"])
    model.n_features_in_ = facts["n_features_in"]
    if facts["feature_names_in"] is not None:
        model.feature_names_in_ = np.array(facts["feature_names_in"], dtype=object)
    model.training_rows_, model.history_ = facts["training_rows"], facts["history"]
    return model


def _placeholder(model: MethodBase) -> Data:
    """Rows of the right shape that take no memory, to make networks and tables that are then filled."""
    rows, shape = model.training_rows_, model.input_shape_ or (model.n_features_in_,)
    dtype = torch.float64 if model.precision == "fp64" else torch.float32
    return Data(
        torch.zeros((), dtype=dtype).expand(rows, *shape),
        torch.ones((), dtype=torch.bool).expand(rows, len(model.classes_)),
        torch.zeros((), dtype=dtype).expand(rows),
        model.scaler_,
    )
