"""Fitted models as ONNX files: rows go in as people have them, and the probabilities of the labels come out."""

import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy, deepcopy
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import Tensor, nn

from oneof.errors import InputError
from oneof.estimator.method_base import MethodBase
from oneof.io.files import replacing
from oneof.io.words import reason
from oneof.nn.networks import Network

_PACKAGES = ("onnx", "onnxscript")  # which torch's exporter needs


class OnnxClassifier(nn.Module):
    """A fitted model on a CPU in evaluation mode, with its scaler: what `predict_proba` computes, in float32."""

    mean: Tensor
    std: Tensor

    def __init__(self, model: MethodBase) -> None:
        super().__init__()
        self.model = copy(model)
        self.networks = nn.ModuleList()
        for name, value in model.learned_attributes().items():
            copied = deepcopy(value).to("cpu")
            copied = copied.float() if isinstance(copied, nn.Module) or copied.is_floating_point() else copied
            if isinstance(copied, Network):
                copied.bf16 = copied.compiled = False
            if isinstance(copied, nn.Module):
                self.networks.append(copied)
            setattr(self.model, name, copied)
        self.images = model.input_shape_ is not None
        self.register_buffer("mean", model.scaler_.mean.cpu().clone())
        self.register_buffer("std", model.scaler_.std.cpu().clone())
        self.eval()

    def forward(self, X: Tensor) -> Tensor:
        """Return the probabilities (n, K) of rows (n, features), or of images (n, height, width, channels)."""
        # Tables are scaled in float64, as `fit` does: a column of times has digits that float32 has no room for.
        x = (X.permute(0, 3, 1, 2).double() if self.images else X) - self.mean
        scores: Tensor = self.model.class_scores((x / self.std).float())
        return scores.softmax(-1)


def write_onnx(model: MethodBase, path: Path) -> None:
    """Write a fitted model as an ONNX file, whole or not at all."""
    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if missing:
        raise InputError(f"to_onnx needs {' and '.join(missing)}, missing here; pip install oneof[onnx]")
    try:
        with _quiet(), torch.no_grad():
            program = torch.onnx.export(
                OnnxClassifier(model),
                (_example(model),),
                input_names=["X"],
                output_names=["probabilities"],
                dynamic_shapes={"X": {0: torch.export.Dim("rows", min=1)}},
                dynamo=True,
                verbose=False,
            )
    except Exception as error:  # whatever a network of the user's own does that a graph cannot
        raise InputError(
            f"the network of {type(model).__name__} cannot be written as ONNX ({type(error).__name__}: "
            f"{reason(error)}); use one whose forward has no branches that depend on values, such as network='mlp'"
        ) from error
    assert program is not None  # torch returns None for its earlier exporter alone
    program.model.metadata_props.update(_metadata(model))
    with replacing(path) as part:
        program.save(part, external_data=False)


def _example(model: MethodBase) -> Tensor:
    """Rows of the form that the file takes: tables in float64, images in float32 with the channels last."""
    if model.input_shape_ is None:
        return torch.zeros(2, model.n_features_in_, dtype=torch.float64)
    channels, height, width = model.input_shape_
    return torch.zeros(2, height, width, channels)


def _metadata(model: MethodBase) -> dict[str, str]:
    names = getattr(model, "feature_names_in_", None)
    facts = {
        "classes": model.classes_.tolist(),
        "method": type(model).__name__,
        "feature_names": None if names is None else list(names),
    }
    return {f"oneof.{name}": json.dumps(fact) for name, fact in facts.items() if fact is not None}


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep off what torch's exporter says of itself: missing packages that no network here needs."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
