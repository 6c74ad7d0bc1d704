"""Compiles the kernels of ``cuda/`` at first use and launches them; torch brings the compiler."""

import warnings
from functools import cache
from importlib.resources import files
from threading import local
from typing import Any

import torch
from torch import Tensor

THREADS = 256  # of a block, where nothing else is said

_threads = local()


@cache
def available(device: torch.device) -> bool:
    """Tell whether kernels can be compiled for a device; warn where that fails unexpectedly."""
    if torch.version.hip or torch.cuda.get_device_capability(device) < (8, 0):
        return False
    try:
        parts = torch.zeros(1, 1, device=device)
        launch("common: add_up_parts", 1, parts, parts[0], 1, 1, threads=1024)
    except Exception as error:  # a compiler that is missing, another interface of torch, ...
        warnings.warn(
            f"kernels of our own cannot be compiled ({' '.join(str(error).split())[:200]}); those of torch and "
            "cuDNN are used, which are slower",
            stacklevel=2,
        )
        return False
    return True


def launch(
    kernel: str, blocks: int | tuple[int, int], first: Tensor, *rest: Tensor | int | float, threads: int = THREADS
) -> None:
    """Launch a kernel, ``"file: name"``, on the current stream of the first argument's device."""
    if not hasattr(_threads, "ready"):  # the driver knows a thread's device only after a call of the runtime
        _threads.ready = torch.zeros(1, device=first.device)
    grid = (blocks, 1, 1) if isinstance(blocks, int) else (*blocks, 1)
    with torch.cuda.device(first.device):
        _kernel(kernel, first.device)(grid, (threads, 1, 1), [first, *rest])


@cache
def processors(device: torch.device) -> int:
    """Return how many processors a GPU has."""
    return int(torch.cuda.get_device_properties(device).multi_processor_count)


@cache
def _kernel(kernel: str, device: torch.device) -> Any:
    """Compile a kernel, by its file and its name in C++."""
    file, name = kernel.split(": ")
    with torch.cuda.device(device):
        return torch.cuda._compile_kernel(source(file), name, nvcc_options=["--std=c++17"])


def source(file: str) -> str:
    """Return the text of a file behind what all have in common."""
    folder = files("oneof").joinpath("cuda")
    names = dict.fromkeys(("common", file))
    return "".join(folder.joinpath(f"{name}.cu").read_text(encoding="utf-8") for name in names)
