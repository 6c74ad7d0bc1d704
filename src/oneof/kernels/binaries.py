"""Compiled kernels in the cache folder: they are compiled once for each source, kind of GPU and compiler."""

import json
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch.cuda import _utils as compiler  # torch has no public way

from oneof.io import tensors as tensor_file
from oneof.io.files import cache_folder

_OPTIONS = ["--std=c++17"]


class Binary(NamedTuple):
    """Code for a GPU, and the name of its kernel there, which is not that in C++."""

    code: bytes
    symbol: str


def compile_kernel(source: str, name: str) -> Binary:
    """Compile a kernel for the current GPU."""
    return Binary(*compiler._nvrtc_compile(source, name, nvcc_options=_OPTIONS))  # noqa: SLF001


def load(binary: Binary) -> Any:
    """Hand code to the driver; return what launches its kernel."""
    found: Any = compiler._cuda_load_module(binary.code, [binary.symbol])  # noqa: SLF001
    return found[binary.symbol]


def kernel(
    source: str,
    name: str,
    capability: tuple[int, int],
    compile_kernel: Callable[[str, str], Binary] = compile_kernel,
    load: Callable[[Binary], Any] = load,
) -> Any:
    """Return a kernel: from the cache folder, or compiled and kept there.

    A file that is damaged, or that the driver refuses, is made anew. Where nothing can be kept, nothing is.
    """
    path = _path(source, name, capability)
    kept = None if path is None else _read(path)
    if kept is not None:
        with suppress(RuntimeError):  # the driver's: it is compiled below
            return load(kept)
    made = compile_kernel(source, name)
    if path is not None:
        with suppress(OSError):
            _write(path, made)
    return load(made)


def key(source: str, name: str, capability: tuple[int, int]) -> str:
    """Return what tells a binary from others; torch brings the compiler, so that its version is torch's."""
    facts = [source, name, list(capability), _OPTIONS, torch.__version__, torch.version.cuda]
    return sha256(json.dumps(facts).encode()).hexdigest()[:32]


def _path(source: str, name: str, capability: tuple[int, int]) -> Path | None:
    """Return where a binary is kept; None where there is no place for a cache."""
    try:
        return cache_folder() / "kernels" / f"{key(source, name, capability)}.safetensors"
    except OSError:
        return None


def _read(path: Path) -> Binary | None:
    """Read a binary back; None where there is none that is whole."""
    try:
        tensors, facts = tensor_file.read(path, "kernel")
        binary = Binary(tensors["code"].numpy().tobytes(), facts["symbol"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return binary if _checksum(binary) == facts.get("sha256") else None


def _write(path: Path, binary: Binary) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    code = torch.frombuffer(bytearray(binary.code), dtype=torch.uint8)
    tensor_file.write(path, "kernel", {"code": code}, {"symbol": binary.symbol, "sha256": _checksum(binary)})


def _checksum(binary: Binary) -> str:
    return sha256(binary.code + str(binary.symbol).encode()).hexdigest()
