"""Fitted pipelines on disk: the facts and arrays of every step in one safetensors file. Nothing is unpickled."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict, TypeVar, cast

import torch
from torch import Tensor

from oneof.em import EMClassifier
from oneof.em.model_file import em_parts
from oneof.estimator.model_file import model_parts
from oneof.estimator.model_header import MisfitError
from oneof.io import tensors as tensor_file
from oneof.io.schema import misfits
from oneof.pipeline.transformers import StepFacts, pack, unpack

_T = TypeVar("_T")
METHOD = "Pipeline"
_MODEL = "model"  # before the names of the model's tensors


class PipelineFacts(TypedDict):
    """What the header of a pipeline holds."""

    method: str
    steps: list[StepFacts]
    name: str  # of the last step
    model: dict[str, Any]


def save_pipeline(steps: list[tuple[str, Any]], model: Any, path: Path) -> None:
    """Write fitted steps, the last of which is the model."""
    tensors, facts = em_parts(model) if isinstance(model, EMClassifier) else model_parts(model)
    tensors = {f"{_MODEL}.{name}": tensor for name, tensor in tensors.items()}
    stored: list[StepFacts] = []
    for i, (name, step) in enumerate(steps[:-1]):
        step_facts, arrays = pack(name, step)
        stored.append(step_facts)
        tensors |= {f"step{i}.{key}": torch.tensor(array) for key, array in arrays.items()}
    header: PipelineFacts = {"method": METHOD, "steps": stored, "name": steps[-1][0], "model": facts}
    tensor_file.write(path, "model", tensors, cast(dict[str, Any], header))


def read_pipeline(
    tensors: dict[str, Tensor], facts: dict[str, Any], read: Callable[[dict[str, Tensor], dict[str, Any]], _T]
) -> tuple[list[tuple[str, Any]], tuple[str, _T]]:
    """Return the steps that a file holds, and the last one, which ``read`` makes; raise MisfitError otherwise."""
    for wrong in misfits(facts, PipelineFacts):
        raise MisfitError(wrong)
    header = cast(PipelineFacts, facts)
    parts: dict[str, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        owner, _, name = key.partition(".")
        parts.setdefault(owner, {})[name] = tensor
    names = [*(step["name"] for step in header["steps"]), header["name"]]
    owners = [f"step{i}" for i in range(len(header["steps"]))]
    if parts.keys() - {*owners, _MODEL} or len({*names}) < len(names) or any("__" in name for name in names):
        raise MisfitError("there are tensors of no step, or steps of one name")
    steps: list[tuple[str, Any]] = []
    for owner, step in zip(owners, header["steps"], strict=True):
        arrays = {name: tensor.numpy() for name, tensor in parts.get(owner, {}).items()}
        steps.append((step["name"], unpack(step, arrays)))
    return steps, (header["name"], read(parts.get(_MODEL, {}), header["model"]))
