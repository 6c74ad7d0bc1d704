"""Kernels of LeNet alone: its second block, and units of a linear layer; see `oneof.kernels.convolutions`."""

from math import ceil
from typing import Any

import torch
from torch import Tensor

from oneof.kernels.convolutions import PRECISION, add_up
from oneof.kernels.launch import launch, processors

SECOND_STORED = 64  # channels of the second block's 50 filters in memory
_GRADIENT_THREADS = 320


def second_outputs(y: Tensor, norm: Tensor) -> Tensor:
    """Return the features (B, 2450) of raw outputs y (B, 64, 14, 14) of the second convolution."""
    out = torch.empty(len(y), 50 * 7 * 7, dtype=PRECISION, device=y.device)
    launch("lenet: second_block", len(y), y, *norm[:2], out, len(y))
    return out


def second_gradient(d: Tensor, y: Tensor, norm: Tensor) -> Tensor:
    """Return parts (parts, 2, C) of the gradients of scale and shift from that of the features."""
    sums = torch.empty(min(len(y), 4 * processors(y.device)), 2, y.shape[1], device=y.device)
    arguments = (d, y, *norm[:2], norm, norm, norm, y, sums, len(y))
    launch("lenet: second_gradient<OF_VECTORS>", len(sums), *arguments)
    return sums


def second_gradient_of_y(d: Tensor, y: Tensor, norm: Tensor, correction: Tensor) -> Tensor:
    """Return the gradient of y from that of the features."""
    out = torch.empty_like(y)
    arguments = (d, y, *norm[:2], norm[0], *correction[:2], out, norm, len(y))
    launch("lenet: second_gradient<OF_Y>", len(y), *arguments)
    return out


def second_weight_gradient(x: Tensor, d: Tensor) -> Tensor:
    """Return the gradient of the second convolution's weights (50, 20, 5, 5), channels last in memory.

    From its inputs x (B, 24, 14, 14) and the gradient d (B, 64, 14, 14) of its outputs.
    """
    blocks = min(len(x), processors(x.device))
    parts = torch.empty(blocks, 50, 5, 5, 20, device=x.device)
    launch("lenet: second_weight_gradient", (blocks, 2), x, d, parts, len(x), threads=_GRADIENT_THREADS)
    return add_up(parts).permute(0, 3, 1, 2)


def units(
    y: Tensor, gamma: Tensor, beta: Tensor, running: Any, momentum: float, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return ``relu(normalise(y))`` for y (B, even number), mean and inverse deviation; move running averages."""
    out, (rows, width) = torch.empty_like(y), y.shape
    mean, deviation = torch.empty(2, width, device=y.device)
    averages = (eps, momentum, int(running is not None), *(running or (mean, mean, mean)))
    arguments = (y, rows, width // 2, gamma, beta, *averages, out, mean, deviation)
    launch("units: units", ceil(width / 4), *arguments)
    return out, mean, deviation


def units_gradient(
    d: Tensor, y: Tensor, out: Tensor, gamma: Tensor, mean: Tensor, deviation: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of y, gamma and beta from d, that of the units ``out``."""
    d_y, (rows, width) = torch.empty_like(y), y.shape
    d_gamma, d_beta = torch.empty(2, width, device=y.device)
    arguments = (d, y, out, rows, width // 2, gamma, mean, deviation, d_y, d_gamma, d_beta)
    launch("units: units_gradient", ceil(width / 4), *arguments)
    return d_y, d_gamma, d_beta
