"""What a recorded step depends on among the attributes of a method: a recording must never be stale."""

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from torch import Tensor, nn

from oneof.errors import KindError
from oneof.train.method import Method

_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_LARGEST = 2**20  # bytes of an array that are compared after every epoch


def watched_attributes(method: Method) -> dict[str, Any]:
    """Return what tells the attributes that steps may depend on from changed ones, by name.

    Values of numbers and words, also within lists, dicts and arrays; of tensors and networks where they are in
    memory, since a recording reads what they hold. An attribute that cannot be watched is refused.
    """
    owner = type(method).__name__
    return {name: _mark(f"{name} of {owner}", value) for name, value in method.step_attributes().items()}


def _mark(name: str, value: Any) -> Any:
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, Tensor):
        return "tensor", value.data_ptr(), tuple(value.shape)
    if isinstance(value, nn.Module):
        return "module", id(value), tuple(tensor.data_ptr() for tensor in value.state_dict().values())
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufcSU" and value.nbytes <= _LARGEST:
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, Mapping):
        return "mapping", tuple((key, _mark(name, each)) for key, each in value.items())
    if isinstance(value, list | tuple):
        return type(value).__name__, tuple(_mark(name, each) for each in value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if callable(value):
        return id(value)
    raise KindError(
        f"the attribute {name} is of type {type(value).__name__}, which cannot be watched for changes while steps "
        "are replayed on a GPU; keep it as a tensor, a number, a text, or a list or dict of these"
    )
