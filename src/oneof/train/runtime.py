"""Where and how to compute: devices, seeds, threads, and the modes of networks and libraries."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache
from hashlib import sha256
from typing import TypeVar

import torch
from torch import Tensor, nn

from oneof.errors import InputError
from oneof.io.words import shown
from oneof.train.rows import Array

_T = TypeVar("_T")


def resolve_device(name: str) -> torch.device:
    """Turn "auto", "cpu", "cuda" or "cuda:1" into a device that is there."""
    if not isinstance(name, str | torch.device):
        raise InputError(f"device is of type {type(name).__name__}, but must be a name such as 'cpu' or 'cuda:1'")
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError):
        device = None
    if device is None or device.type not in ("cpu", "cuda") or (device.type == "cpu" and device.index):
        raise InputError(
            f"device is {shown(name)}, but must be 'auto', 'cpu', 'cuda' or a GPU such as 'cuda:1': only these "
            "are supported"
        )
    if device.type == "cuda" and not 0 <= (device.index or 0) < torch.cuda.device_count():
        raise InputError(
            f"device is {name!r}, but torch sees {torch.cuda.device_count()} GPUs here; use 'cpu' or 'auto'"
        )
    return device


def float_type(precision: str) -> torch.dtype:
    """Return the type of the mathematics; bf16 applies inside the networks alone."""
    return torch.float64 if precision == "fp64" else torch.float32


def is_too_large(x: Array, device: torch.device) -> bool:
    """Tell whether rows would take more than half of a GPU's free memory: networks and views need some too."""
    return device.type == "cuda" and x.nbytes > torch.cuda.mem_get_info(device)[0] / 2


def seed_for(seed: int, purpose: str) -> int:
    """Split one seed by purpose, so that changing one use of chance leaves the others as they were."""
    return int.from_bytes(sha256(f"{seed} {purpose}".encode()).digest()[:7])


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Seed torch inside the block and give its random state back afterwards."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


def rng_state(device: torch.device) -> Tensor:
    """Return the state of torch's generator for a device."""
    return torch.cuda.get_rng_state(device) if device.type == "cuda" else torch.get_rng_state()


def set_rng_state(state: Tensor, device: torch.device) -> None:
    """Put such a state back."""
    if device.type == "cuda":
        torch.cuda.set_rng_state(state, device)
    else:
        torch.set_rng_state(state)


@contextmanager
def cudnn_flags(deterministic: bool) -> Iterator[None]:
    """Let cuDNN try which convolutions are fastest, or keep it to those that give the same bits every time."""
    with torch.backends.cudnn.flags(enabled=True, benchmark=not deterministic, deterministic=deterministic):
        yield


def compute_pair(first: Callable[[], _T], second: Callable[[], _T], device: torch.device) -> tuple[_T, _T]:
    """Return the results of two independent computations; a GPU carries both out at once, on two streams.

    What they read must live until the gradients are there: memory that one stream frees may be taken by the other.
    """
    if device.type != "cuda" or _single_stream.get():
        return first(), second()
    here = torch.cuda.current_stream(device)
    second_stream = _second_stream(here)
    second_stream.wait_stream(here)
    with torch.cuda.stream(second_stream):
        other = second()
    results = first(), other
    here.wait_stream(second_stream)
    return results


_single_stream = ContextVar("single_stream", default=False)


@contextmanager
def single_stream(wanted: bool) -> Iterator[None]:
    """Keep to one stream inside the block: where other trials fill the GPU, a second stream gains nothing."""
    before = _single_stream.set(wanted)
    try:
        yield
    finally:
        _single_stream.reset(before)


@cache
def _second_stream(stream: torch.cuda.Stream) -> torch.cuda.Stream:
    """Return a second stream, always the same one: the allocator keeps the memory of streams apart."""
    second: torch.cuda.Stream = torch.cuda.Stream(stream.device)  # type: ignore[no-untyped-call]
    return second


@contextmanager
def threads(count: int | None) -> Iterator[None]:
    """Compute with so many CPU threads inside the block, at most one for each core; None changes nothing.

    A model may come from a larger machine, and a process that starts too many threads is ended by the system.
    """
    before = torch.get_num_threads()
    if count is not None:
        torch.set_num_threads(min(count, os.cpu_count() or 1))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def eager(compiled: bool) -> AbstractContextManager[object]:
    """Run networks uncompiled inside the block: every new number of rows would be compiled anew."""
    return torch.compiler.set_stance("force_eager") if compiled else nullcontext()


@contextmanager
def evaluating(modules: Iterable[nn.Module]) -> Iterator[None]:
    """Run networks in evaluation mode without gradients, then put their modes back."""
    modes = [(module, module.training) for module in modules]
    for module, _ in modes:
        module.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, mode in modes:
            module.train(mode)
