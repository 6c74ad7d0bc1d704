"""Where and how to compute: devices, seeds, threads, and the modes of networks and libraries."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache
from hashlib import sha256
from typing import TypeVar

import torch
from torch import Tensor, nn

from oneof.train.rows import Array

_T = TypeVar("_T")


def resolve_device(name: str) -> torch.device:
    """Turn "auto", "cpu", "cuda" or "cuda:1" into a device that is there."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError):
        raise ValueError(f"device is {name!r}, but must be 'auto', 'cpu', 'cuda' or 'cuda:1'") from None
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ValueError(
            f"device is {name!r}, but torch sees {torch.cuda.device_count()} GPUs here; use 'cpu' or 'auto'"
        )
    return device


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
    """Return the state of the generator that a device draws from."""
    return torch.cuda.get_rng_state(device) if device.type == "cuda" else torch.get_rng_state()


def set_rng_state(state: Tensor, device: torch.device) -> None:
    """Let a device draw on from such a state."""
    if device.type == "cuda":
        torch.cuda.set_rng_state(state, device)
    else:
        torch.set_rng_state(state)


@contextmanager
def convolutions(deterministic: bool) -> Iterator[None]:
    """Let cuDNN try which convolutions are fastest, or keep it to those that give the same bits every time."""
    with torch.backends.cudnn.flags(enabled=True, benchmark=not deterministic, deterministic=deterministic):
        yield


def side_by_side(first: Callable[[], _T], second: Callable[[], _T], device: torch.device) -> tuple[_T, _T]:
    """Return the results of two computations, neither of which needs the other's; a GPU carries both out at once.

    What they read must live until the gradients are there: memory that one stream frees may be taken by the other.
    """
    if device.type != "cuda" or _crowded.get():
        return first(), second()
    here = torch.cuda.current_stream(device)
    beside = _stream_beside(here)
    beside.wait_stream(here)
    with torch.cuda.stream(beside):
        other = second()
    results = first(), other
    here.wait_stream(beside)
    return results


_crowded = ContextVar("crowded", default=False)


@contextmanager
def crowded(by_others: bool) -> Iterator[None]:
    """Leave a GPU that others fill anyway to them: inside the block nothing is carried out side by side."""
    before = _crowded.set(by_others)
    try:
        yield
    finally:
        _crowded.reset(before)


@cache
def _stream_beside(stream: torch.cuda.Stream) -> torch.cuda.Stream:
    """Return a companion, always the same: the allocator keeps memory apart by streams."""
    companion: torch.cuda.Stream = torch.cuda.Stream(stream.device)  # type: ignore[no-untyped-call]
    return companion


@contextmanager
def threads(count: int | None) -> Iterator[None]:
    """Compute with so many CPU threads inside the block; None changes nothing."""
    before = torch.get_num_threads()
    if count is not None:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def uncompiled(compiled: bool) -> AbstractContextManager[object]:
    """Run networks as they are written inside the block: every new number of rows would be compiled anew."""
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
