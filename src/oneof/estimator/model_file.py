"""Fitted models on disk: one safetensors file with JSON facts; no pickle, no code from the file is run."""

from collections.abc import Mapping
from os import PathLike
from typing import Any, TypeVar, cast

import torch
from torch import Tensor, nn

from oneof.estimator.method_base import MethodBase
from oneof.estimator.model_header import MisfitError, check_rows_agree, described_model, facts_of
from oneof.estimator.saved_distributions import distribution_tensors, take_distributions
from oneof.io import tensors as tensor_file
from oneof.nn.networks import Factory
from oneof.train.batch import Data
from oneof.train.rows import Scaler
from oneof.train.runtime import float_type
from oneof.train.sets import DeviceSets

_M = TypeVar("_M", bound=MethodBase)


def save_model(model: MethodBase, path: str | PathLike[str]) -> None:
    """Write a fitted model."""
    tensor_file.write(path, "model", *model_parts(model))


def model_parts(model: MethodBase) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors and the facts that a file holds of a fitted model."""
    tensors = {f"learned.{name}": tensor for name, tensor in model.learned().items()}
    tensors |= {"scaler.mean": model.scaler_.mean, "scaler.std": model.scaler_.std}
    tensors |= distribution_tensors(model.label_distributions_)
    return tensors, cast(dict[str, Any], facts_of(model))


def read_model(
    tensors: dict[str, Tensor],
    facts: dict[str, Any],
    methods: Mapping[str, type[_M]],
    network: nn.Module | Factory | None = None,
    device: str = "auto",
) -> _M:
    """Make a model of what `save_model` wrote into a file; ``methods`` are the classes it may be of, by name.

    The other parameters are those of `oneof.load_model`. What does not fit raises MisfitError.
    """
    model = described_model(facts, methods, network)
    model.device = device
    _take_rows(model, tensors)
    _take_learned(model, tensors)
    vars(model).pop("architecture_", None)
    return model


def _take_rows(model: MethodBase, tensors: dict[str, Tensor]) -> None:
    """Give a model its scaler and the label distributions of the rows that it was fitted on."""
    shape = Scaler.shape_for(model.input_shape_ or (model.n_features_in_,))
    mean, std = (_scaler_part(tensors, name, shape) for name in ("mean", "std"))
    if not (std > 0).all():
        raise MisfitError("the tensor 'scaler.std' holds numbers that are not above 0")
    model.scaler_ = Scaler(mean, std)

    take_distributions(model, tensors)
    check_rows_agree(model, model.label_distributions_.shape[0])


def _scaler_part(tensors: dict[str, Tensor], name: str, shape: tuple[int, ...]) -> Tensor:
    part = tensors.pop(f"scaler.{name}", None)
    if part is None or tuple(part.shape) != shape or part.dtype != torch.float64:
        raise MisfitError(f"there is no tensor 'scaler.{name}' of float64 and shape {shape}")
    if not tensor_file.is_finite(part):
        raise MisfitError(f"the tensor 'scaler.{name}' holds NaN or infinity")
    return part


def _take_learned(model: MethodBase, tensors: dict[str, Tensor]) -> None:
    """Make the networks and tables of a model and fill them with what was learned."""
    if isinstance(model.network, str):
        _check_shapes(model, tensors)
    try:
        with torch.random.fork_rng(devices=[]):  # weights are drawn, and overwritten
            places = _started(model, "cpu")
    except (RuntimeError, TypeError, ValueError, MemoryError) as error:
        raise MisfitError((str(error).splitlines() or [type(error).__name__])[0]) from error
    _check_learned(model, tensors, places)
    for name, tensor in places.items():
        tensor.copy_(tensors[name])


def _check_shapes(model: MethodBase, tensors: dict[str, Tensor]) -> None:
    """Compare shapes alone, which take no memory: a header that lies may ask for more than there is."""
    try:
        with torch.device("meta"):
            places = _started(model, "meta")
    except Exception:
        return  # a method of the user's own may need numbers; any other error comes again with them
    _check_learned(model, tensors, places)


def _started(model: MethodBase, device: str) -> dict[str, Tensor]:
    model.forget()
    model.start(_placeholder(model, device))
    return {f"learned.{name}": tensor for name, tensor in model.learned().items()}


def _check_learned(model: MethodBase, tensors: dict[str, Tensor], places: dict[str, Tensor]) -> None:
    # Tables may hold minus infinity, the logarithm of a weight of 0.
    finite = {f"learned.{name}" for name in model.weights()}
    for wrong in tensor_file.tensor_misfits(tensors, places, finite):
        raise MisfitError(wrong)


def _placeholder(model: MethodBase, device: str) -> Data:
    """Rows of the right shape that take no memory, to make networks and tables that are then filled."""
    rows, shape = model.training_rows_, model.input_shape_ or (model.n_features_in_,)
    dtype, classes = float_type(model.precision), len(model.classes_)
    candidates = model.training_candidates_
    return Data(
        torch.zeros((), dtype=dtype, device=device).expand(rows, *shape),
        torch.ones((), dtype=torch.bool, device=device).expand(rows, classes)
        if candidates is None
        else DeviceSets.placeholder(rows, candidates, classes, device),
        torch.zeros((), dtype=dtype, device=device).expand(rows),
        model.scaler_,
    )
