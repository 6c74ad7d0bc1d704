"""Kernels that make views of images on a GPU: the same bytes as `oneof.augment.operations`, in one pass."""

from math import ceil

import torch
from torch import Tensor

from oneof.kernels.launch import THREADS, available, launch

_SHARED_MEMORY = 48 * 1024  # bytes that a kernel may declare
_TABLES = 3 * 256 * 4  # bytes for each channel


def apply_to(x: Tensor) -> bool:
    """Tell whether x is a batch of images that these kernels take: bytes, gray or of three channels, not large."""
    if not x.is_cuda or x.dtype != torch.uint8 or x.ndim != 4 or x.shape[1] not in (1, 3):
        return False
    needed = 2 * x[0].numel() + x.shape[1] * _TABLES + 64
    return 0 < x.numel() < 2**31 and needed <= _SHARED_MEMORY and available(x.device)


def reframe(
    x: Tensor, mirrored: Tensor | None, top: Tensor, left: Tensor, hole: tuple[Tensor, Tensor, int] | None
) -> Tensor:
    """Return images that are mirrored, shifted, and have a hole: see `oneof.augment.operations.reframe`."""
    x, out = _with_room(x)
    row, column, half = hole or (top, left, 0)
    flips = (0, top) if mirrored is None else (1, mirrored)
    arguments = (x, *flips, top, left, half, row, column, out, len(x) * x.shape[2] * x.shape[3])
    launch(f"views: reframe<{_shape(x)}>", ceil(arguments[-1] / THREADS), *arguments)
    return out


def operate(x: Tensor, operations: Tensor, magnitudes: Tensor, fill: int) -> Tensor:
    """Return images after their operations (B, steps): see `oneof.augment.policies.operate`."""
    x, out = _with_room(x)
    steps = operations.shape[1]
    arguments = (x, operations.contiguous(), magnitudes.contiguous(), steps, fill, out)
    launch(f"views: operate<{_shape(x)}>", len(x), *arguments)
    return out


def _with_room(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return images as they stand beside each other in memory, and room for as many."""
    x = x.contiguous(memory_format=torch.channels_last)
    return x, torch.empty_like(x)


def _shape(x: Tensor) -> str:
    return ",".join(map(str, x.shape[1:]))
