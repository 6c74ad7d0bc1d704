"""Tensors and JSON facts in one safetensors file. Nothing is unpickled."""

import json
import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from oneof.errors import InputError
from oneof.io.files import replacing
from oneof.io.words import reason, shown

# The newest format of each kind of file.
FORMATS = {"model": 1, "candidates": 1, "checkpoint": 2, "kernel": 1, "held-out": 1}


def write(path: str | os.PathLike[str], kind: str, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
    """Write tensors and JSON facts into one safetensors file."""
    header = {"oneof": json.dumps({"kind": kind, "version": FORMATS[kind], **facts})}
    plain: dict[str, Tensor] = {}
    places: set[int] = set()
    for name, tensor in tensors.items():
        plain[name] = tensor.detach().cpu().contiguous()
        if (place := plain[name].untyped_storage().data_ptr()) in places:
            plain[name] = plain[name].clone()  # safetensors refuses tensors that share memory, as tied weights do
        places.add(place)
    with replacing(path) as part:
        part.write_bytes(safetensors.torch.save(plain, header))


def read(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read back what `write` wrote; whatever is wrong with the file is said in one sentence."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {str(path)!r}")
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (safetensors.SafetensorError, OSError) as error:
        raise InputError(
            f"{str(path)!r} is damaged or is no safetensors file ({reason(error)}); use a file that oneof wrote"
        ) from None
    try:
        facts = json.loads(header["oneof"])
        found, version = facts["kind"], facts["version"]
        if not isinstance(found, str) or not isinstance(version, int) or isinstance(version, bool):
            raise TypeError
    except (KeyError, TypeError, ValueError, RecursionError):
        raise InputError(f"{str(path)!r} was not written by oneof; a {kind} of oneof was expected") from None
    if found != kind:
        raise InputError(f"{str(path)!r} holds a {shown(found)[1:-1]}, but a {kind} was expected")
    if version > FORMATS[kind]:
        raise InputError(
            f"{str(path)!r} has format {shown(version)}, newer than format {FORMATS[kind]} that this oneof reads; "
            "upgrade oneof"
        )
    return tensors, facts


def tensor_misfits(
    tensors: Mapping[str, Tensor], places: Mapping[str, Tensor], finite: Collection[str]
) -> Iterator[str]:
    """Say what keeps tensors that were read from taking the places of others, by name.

    Each must be there, with the same shape and type, without NaN; those that are named in ``finite`` also without
    infinity.
    """
    for name in sorted(places.keys() - tensors.keys()):
        yield f"there is no tensor {name!r}"
    for name in sorted(tensors.keys() - places.keys()):
        yield f"the tensor {shown(name)} has no place"
    for name in sorted(tensors.keys() & places.keys()):
        tensor, place = tensors[name], places[name]
        if (tensor.shape, tensor.dtype) != (place.shape, place.dtype):
            yield f"the tensor {name!r} is {_form(tensor)}, but must be {_form(place)}"
        elif tensor.isnan().any() or (name in finite and not is_finite(tensor)):
            yield f"the tensor {name!r} holds NaN or infinity"


def is_finite(tensor: Tensor) -> bool:
    """Tell whether no value is NaN or infinite."""
    return bool(torch.isfinite(tensor).all())


def _form(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} of shape {tuple(tensor.shape)}"
