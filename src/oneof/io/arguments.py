"""What users pass to public functions, as arrays and paths; what cannot be one is refused in one sentence."""

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oneof.errors import InputError, KindError
from oneof.io.words import reason, shown


def as_array(value: Any, name: str) -> NDArray[Any]:
    """Return a value, called ``name`` in messages, as an array; a tensor may have a gradient or lie on a GPU."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise InputError(f"{name} has masked values, which are missing; fill them or drop their rows")
    try:
        array = np.asarray(_from_tensor(value) if hasattr(value, "detach") else value)
    except (ValueError, TypeError, ArithmeticError, RuntimeError) as error:
        raise InputError(
            f"{name} is {shown(value, 80)}, which cannot be turned into an array ({reason(error, 120)}); pass a "
            "dense array, tensor or frame, or lists of equal length"
        ) from None
    check_text(array, name)
    return array


def check_text(array: NDArray[Any], name: str) -> None:
    """Refuse text with code points that Python's strings cannot hold: turning it into one is a SystemError."""
    if array.dtype.kind != "U" or not array.itemsize:
        return
    codes = np.ascontiguousarray(array).view(np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
    if codes.max(initial=0) > sys.maxunicode:
        raise InputError(
            f"{name} has text with a code point of {hex(codes.max())}, but the last character is "
            f"{hex(sys.maxunicode)}; the array is damaged, make it again"
        )


def as_floats(value: Any, name: str) -> NDArray[np.float64]:
    """Return a value as a new array of real numbers."""
    array = as_array(value, name)
    try:
        if array.dtype.kind not in "buifO":
            raise KindError(f"its type is {array.dtype}")
        return array.astype(np.float64)
    except (ValueError, TypeError, ArithmeticError) as error:
        raise InputError(
            f"{name} is {shown(value, 80)}, but must hold real numbers ({reason(error, 120)}); convert it first"
        ) from None


def as_path(value: Any, name: str) -> Path:
    """Return a value as a path."""
    if not isinstance(value, str | os.PathLike):
        raise KindError(f"{name} is {shown(value)}, but must be a path; pass a string or a pathlib.Path")
    text = os.fspath(value)
    if not isinstance(text, str) or not text or "\0" in text:
        raise InputError(f"{name} is {shown(text)}, which names no file; pass a path such as 'model.safetensors'")
    return Path(text)


def target_path(value: Any) -> Path:
    """Return the path of a file that is to be written."""
    path = as_path(value, "path")
    if path.is_dir():
        raise IsADirectoryError(f"{shown(path)} is a folder, but a file is to be written; add a file name")
    return path


def _from_tensor(tensor: Any) -> Any:
    tensor = tensor.detach().cpu()
    # NumPy has no such type; as float32 its values stay the same.
    return (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()
