"""Kernels of convolutional networks. Images are bfloat16, channels last; what one computes stands beside it.

Two tensors go through all of them. A norm (4, C) normalises raw outputs y: scale, shift, mean and inverse
deviation, or the first two alone where nothing is learned. Its gradient comes as a correction (4, C): p, q, and
those of gamma and beta. With d the gradient of ``scale y + shift``, that of y is ``scale d + p y + q``.
"""

from collections.abc import Sequence
from math import ceil
from typing import Any, NamedTuple

import torch
from torch import Tensor

from oneof.kernels.launch import THREADS, launch, processors

PRECISION = torch.bfloat16  # of images
CHANNELS = (16, 32, 64)  # for which there are convolutions

# By channels, how many blocks of a convolution share a processor.
_AT_ONCE = {16: 3, 32: 2, 64: 2}
_GRADIENT_THREADS = 192
_SUMMERS, _WIDE_SUMMERS = 1024, 512
_SIZE = 3  # of a filter
_PIXELS_BY_CHANNELS = 4096  # of a tile

Pair = tuple[Tensor, Tensor]


class Tile(NamedTuple):
    """``rows`` whole rows of ``images`` images of ``height`` x ``width`` pixels."""

    height: int
    width: int
    rows: int
    images: int


def tile_of(shape: torch.Size) -> Tile | None:
    """Return the tiles of images (B, C, H, W), or None where whole rows do not fill any."""
    channels, height, width = shape[1:]
    pixels = _PIXELS_BY_CHANNELS // channels
    rows = min(pixels // width, height)
    if rows == 0 or pixels % (rows * width) or height % rows:
        return None
    return Tile(height, width, rows, pixels // (rows * width))


def _blocks(x: Tensor, tile: Tile, at_once: int) -> int:
    """As many blocks as processors take at once, each ``at_once``, or one for each tile."""
    tiles = ceil(x.shape[0] * tile.height / (tile.rows * tile.images))
    return min(tiles, at_once * processors(x.device))


# --- convolutions -----------------------------------------------------------------------------------------


def arrange(weight: Tensor) -> Tensor:
    """Return weights (N, C, 3, 3) as `convolve` needs them: for outputs, and for gradients of inputs."""
    outputs, inputs = weight.shape[:2]
    out = torch.empty(2, weight.numel(), dtype=PRECISION, device=weight.device)
    grid = (ceil(weight.numel() / 8 / THREADS), 2)
    launch(f"residual: arrange<{inputs},{outputs},{_SIZE}>", grid, weight, *weight.stride(), out)
    return out


def convolve(x: Tensor, norm: Tensor | None, weights: Tensor) -> Pair:
    """Return raw outputs y for x, or for ``relu(scale x + shift)``, and parts of the sums of y and y^2."""
    if norm is None:
        return _convolve("PLAIN", "STATISTICS", x, x, None, weights)
    return _convolve("ACTIVATED", "STATISTICS", x, x, (norm[0], *norm[:2]), weights)


def convolve_sum(y: Tensor, norm: Tensor, z: Tensor, weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return ``x = relu(scale y + shift + z)`` and, for it, what `convolve` returns."""
    x = torch.empty_like(y)
    return x, *_convolve("MERGED", "STATISTICS", y, z, (norm[0], *norm[:2]), weights, x=x)


def input_gradient(
    d: Tensor,
    y: Tensor,
    norm: Tensor,
    correction: Tensor,
    weights: Tensor,
    x: Tensor,
    x_norm: Tensor | None = None,
    more: Tensor | None = None,
    raw: Tensor | None = None,
) -> Pair:
    """Return the gradient of x, and parts (parts, 2, C) of those of a scale and shift, if there are any.

    With ``x_norm`` it is that of ``scale x + shift``, as ``relu(scale x + shift)`` was convolved. Without, x may
    have had another use, and ``more`` is the gradient from there; if ``x = relu(scale raw + shift + shortcut)``,
    it is that of either summand.
    """
    write = "AS_IT_IS" if more is None else "ADDED" if raw is None else "MERGE_GRADIENT"
    if x_norm is not None:
        write = "ACTIVATION_GRADIENT"
    beside = {"before": more, "norm": x_norm, "x": x, "raw": raw}
    return _convolve("CORRECTED", write, d, y, (norm[0], *correction[:2]), weights, **beside)


def _convolve(
    read: str,
    write: str,
    first: Tensor,
    second: Tensor,
    vectors: Sequence[Tensor] | None,
    weights: Tensor,
    before: Tensor | None = None,
    norm: Tensor | None = None,
    x: Tensor | None = None,
    raw: Tensor | None = None,
) -> Pair:
    """Convolve what is read of ``first``; see the kernel for the ways to read and write."""
    channels = first.shape[1]
    tile = tile_of(first.shape)
    assert tile is not None
    at_once = _AT_ONCE[channels]
    out, blocks = torch.empty_like(first), _blocks(first, tile, at_once)
    sums = torch.empty(blocks, 2, channels, device=first.device)
    before, x, raw = (out if each is None else each for each in (before, x, raw))
    scale_and_shift = (sums, sums) if norm is None else norm[:2]
    vectors = [sums] * 3 if vectors is None else vectors
    arguments = (first, second, *vectors, weights, out, before, *scale_and_shift, x, raw, sums)
    name = f"residual: convolve<{_listed(channels, channels, *tile, _SIZE, read, write, at_once)}>"
    launch(name, blocks, *arguments, len(first))
    return out, sums


def weight_gradient(
    x: Tensor, x_norm: Tensor | None, d: Tensor, y: Tensor, norm: Tensor, correction: Tensor
) -> Tensor:
    """Return the gradient of the weights (C, C, 3, 3), channels last in memory."""
    channels = x.shape[1]
    part = min(channels, 32)
    tile = tile_of(x.shape)
    assert tile is not None
    blocks = max(1, _blocks(x, tile, 2) * part // channels)
    parts = torch.empty(blocks, channels, _SIZE, _SIZE, channels, device=x.device)
    read = "PLAIN" if x_norm is None else "ACTIVATED"
    name = _listed(channels, part, channels, *tile, read)
    scale_and_shift = (norm if x_norm is None else x_norm)[:2]
    arguments = (x, *scale_and_shift, d, y, norm[0], *correction[:2], parts, len(x))
    grid = (blocks, channels // part)
    launch(f"residual: weight_gradient<{name}>", grid, *arguments, threads=_GRADIENT_THREADS)
    return add_up(parts).permute(0, 3, 1, 2)


# --- normalisation ----------------------------------------------------------------------------------------


def statistics(y: Tensor) -> Tensor:
    """Return parts of the sums of y and y^2."""
    sums = torch.empty(_blocks_for_octets(y), 2, y.shape[1], device=y.device)
    launch(f"common: statistics<{y.shape[1]}>", len(sums), y, sums, y.numel() // 8)
    return sums


def normalisation(
    parts: Tensor, count: int, gamma: Tensor, beta: Tensor, running: Any, momentum: float, eps: float
) -> Tensor:
    """Return the norm of outputs, and move the running averages, if any.

    From parts (parts, 2, C) of the sums of y and y^2 over ``count`` pixels; gamma may have fewer channels, others
    are zero then.
    """
    channels, width = len(gamma), parts.shape[-1]
    norm = torch.empty(4, width, device=gamma.device)
    numbers = (len(parts), count, channels, width)
    averages = (eps, momentum, int(running is not None), *(running or (norm, norm, norm)))
    arguments = (parts, *numbers, gamma, beta, *averages, norm)
    launch("common: normalisation", ceil(width / 16), *arguments, threads=_SUMMERS)
    return norm


def correction(parts: Tensor, norm: Tensor, count: int, scale: int = 0, shift: int = 1) -> Tensor:
    """Return the correction for parts (parts, sums, C), of which two sums are the gradients of scale and shift."""
    width = norm.shape[1]
    out = torch.empty_like(norm)
    numbers = (len(parts), parts.stride(0), scale * width, shift * width, count, width)
    launch("common: correction", ceil(width / 16), parts, *numbers, norm, out, threads=_SUMMERS)
    return out


def correct(d: Tensor, y: Tensor, norm: Tensor, correction: Tensor) -> Tensor:
    """Return ``scale d + p y + q``."""
    out = torch.empty_like(y)
    arguments = (d, y, norm[0], *correction[:2], out, y.numel() // 8)
    launch(f"residual: correct<{y.shape[1]}>", _blocks_for_octets(y), *arguments)
    return out


def merge(y: Tensor, norm: Tensor, z: Tensor | None, z_norm: Tensor | None) -> Tensor:
    """Return ``relu(scale y + shift + shortcut)``; the shortcut is nothing, z, or z normalised too."""
    out = torch.empty_like(y)
    z_pair = (norm if z_norm is None else z_norm)[:2]
    arguments = (y, *norm[:2], y if z is None else z, *z_pair, out, y.numel() // 8)
    launch(f"residual: merge<{y.shape[1]},{_shortcut(z, z_norm)}>", _blocks_for_octets(y), *arguments)
    return out


def merge_gradient(d: Tensor, out: Tensor, y: Tensor, z: Tensor | None, normalised: bool) -> Pair:
    """Return the gradient g of either summand, d where ``out`` is not zero, and parts of sums of g y, g, g z."""
    g = torch.empty_like(y)
    sums = torch.empty(_blocks_for_octets(y), 3, y.shape[1], device=y.device)
    shortcut = "NORMALISED" if normalised else "IDENTITY"
    arguments = (d, out, y, y if z is None else z, g, sums, y.numel() // 8)
    launch(f"residual: merge_gradient<{y.shape[1]},{shortcut}>", len(sums), *arguments)
    return g, sums


def add_up(parts: Tensor) -> Tensor:
    """Return the sum over the first axis; behind it there are multiples of four numbers."""
    out = torch.empty_like(parts[0])
    arguments = (parts, out, len(parts), out.numel() // 4)
    launch("common: add_up_parts", ceil(out.numel() / 128), *arguments, threads=_WIDE_SUMMERS)
    return out


# --- first layers -----------------------------------------------------------------------------------------


class First(NamedTuple):
    """A first layer: square images, and filters on them; with or without a pooling of 2 x 2."""

    channels: int
    side: int
    size: int
    filters: int
    pooled: bool

    @property
    def stored(self) -> int:
        """Channels of its outputs in memory: a multiple of eight, of which those beyond the filters are zero."""
        return ceil(self.filters / 8) * 8

    def __str__(self) -> str:
        return _listed(*map(int, self))


FIRST_LAYERS = (First(1, 28, 5, 20, True), First(3, 32, 3, 16, False))  # those of LeNet and ResNet-32


def first_sums(layer: First, x: Tensor, weight: Tensor) -> Tensor:
    """Return parts (parts, 2, stored) of the sums of the convolution's outputs and their squares."""
    sums = torch.empty(_blocks_for_images(x), 2, layer.stored, device=x.device)
    nothing = [sums] * 4
    launch(f"first: first_layer<{layer},SUMS>", len(sums), x, weight, *weight.stride(), *nothing, sums, len(x))
    return sums


def first_outputs(layer: First, x: Tensor, weight: Tensor, norm: Tensor) -> Tensor:
    """Return the layer's outputs (B, stored, side, side), or half as many to a side."""
    side = layer.side // 2 if layer.pooled else layer.side
    out = torch.empty(len(x), side, side, layer.stored, dtype=PRECISION, device=x.device).permute(0, 3, 1, 2)
    name, rest = f"first: first_layer<{layer},OUTPUTS>", (*norm[:2], out, out, norm, len(x))
    launch(name, ceil(len(x) / 2), x, weight, *weight.stride(), *rest)
    return out


def first_gradient(layer: First, x: Tensor, weight: Tensor, norm: Tensor, d: Tensor) -> Tensor:
    """Return sums: the gradients of scale and shift, and what `first_weight_gradient` needs to know."""
    width = layer.stored
    sums = torch.empty(min(_blocks_for_images(x), processors(x.device)), 2 * width + 2048, device=x.device)
    name, rest = f"first: first_layer<{layer},GRADIENTS>", (*norm[:2], d, d, sums, len(x))
    launch(name, len(sums), x, weight, *weight.stride(), *rest)
    return add_up(sums)


def first_weight_gradient(layer: First, total: Tensor, weight: Tensor, norm: Tensor, correction: Tensor) -> Tensor:
    """Return the gradient of the weights."""
    out = torch.empty_like(weight)
    arguments = (total, weight, *weight.stride(), norm[0], *correction[:2], out)
    launch(f"first: first_weight_gradient<{layer}>", 1, *arguments)
    return out


def _blocks_for_images(x: Tensor) -> int:
    return min(ceil(len(x) / 2), 2 * processors(x.device))


def _shortcut(z: Tensor | None, z_norm: Tensor | None) -> str:
    if z is None:
        return "NONE"
    return "IDENTITY" if z_norm is None else "NORMALISED"


def _blocks_for_octets(y: Tensor) -> int:
    return min(ceil(y.numel() / 8 / THREADS), 4 * processors(y.device))


def _listed(*values: int | str) -> str:
    return ",".join(map(str, values))
