"""Compiles the kernels of ``cuda/`` and launches them; torch brings the compiler.

What a network needs is compiled on all cores before its first use, and kept for later processes. To know which
kernels these are, a copy of it makes a dry run on the CPU with two images, where launches are only noted.
"""

import os
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from copy import deepcopy
from functools import cache
from importlib.resources import files
from threading import local
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from oneof.kernels import binaries

THREADS = 256  # of a block, where nothing else is said

dry_running = ContextVar("dry_running", default=False)

_threads = local()
_noted: set[str] = set()
_prepared: WeakKeyDictionary[nn.Module, set[bool]] = WeakKeyDictionary()


@cache
def available(device: torch.device) -> bool:
    """Tell whether kernels can be compiled for a device; warn where that fails unexpectedly."""
    if torch.version.hip or torch.cuda.get_device_capability(device) < (8, 0):
        return False
    try:
        parts = torch.zeros(1, 4, device=device)
        launch("common: add_up_parts", 1, parts, parts[0], 1, 1, threads=512)
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
    if not first.is_cuda:  # a dry run
        _noted.add(kernel)
        return
    _wake_driver(first.device)
    grid = (blocks, 1, 1) if isinstance(blocks, int) else (*blocks, 1)
    with torch.cuda.device(first.device):
        _kernel(kernel, first.device)(grid, (threads, 1, 1), [first, *rest])


@cache
def processors(device: torch.device) -> int:
    """Return how many processors a GPU has; a dry run needs only one."""
    return 1 if device.type == "cpu" else int(torch.cuda.get_device_properties(device).multi_processor_count)


def prepare(network: nn.Module, x: Tensor) -> None:
    """Compile the kernels that a network needs for images like x: for training too, or for evaluation alone."""
    modes, prepared = {True, False} if network.training else {False}, _prepared.setdefault(network, set())
    if modes <= prepared or not x.is_cuda:
        return
    prepared |= modes
    names = dry_run(network, x, modes)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda name: _kernel(name, x.device), names))


def dry_run(network: nn.Module, x: Tensor, modes: set[bool]) -> list[str]:
    """Return the kernels of a network on images like x, in training (True) or in evaluation."""
    twin = deepcopy(network).cpu().requires_grad_()  # also one that only follows another's weights
    few = torch.zeros(2, *x.shape[1:])
    _noted.clear()
    token = dry_running.set(True)
    try:
        with torch.autocast("cpu", torch.bfloat16):
            for mode in modes:
                with torch.set_grad_enabled(mode):
                    out = twin.train(mode)(few).sum()
                    if mode:
                        out.backward()
    finally:
        dry_running.reset(token)
    return sorted(_noted)


def _wake_driver(device: torch.device) -> None:
    """Let the driver know a thread's device, which it learns from the first call of the runtime there."""
    if not hasattr(_threads, "awake"):
        torch.cuda.synchronize(device)
        _threads.awake = True


@cache
def _kernel(kernel: str, device: torch.device) -> Any:
    """Load a kernel, by its file and its name in C++; where it is not kept from before, it is compiled."""
    file, name = kernel.split(": ")
    _wake_driver(device)
    with torch.cuda.device(device):
        return binaries.kernel(source(file), name, torch.cuda.get_device_capability(device))


def source(file: str) -> str:
    """Return the text of a file behind what all have in common."""
    folder = files("oneof.kernels").joinpath("cuda")
    names = dict.fromkeys(("common", file))
    return "".join(folder.joinpath(f"{name}.cu").read_text(encoding="utf-8") for name in names)
