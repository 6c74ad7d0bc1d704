"""Layers of residual networks on a GPU, fused: few passes over memory to convolve, normalise, rectify, add.

Used in bfloat16, in training and where no gradient is wanted, in place of the layers as written: the same
mathematics, with sums in another order.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from oneof.kernels import convolutions as kernels
from oneof.kernels.first_layers import apply_first, first_layer
from oneof.kernels.support import frozen_norm, norm_arguments, pixels


def rectified(x: Tensor, convolution: nn.Module, normalisation: nn.Module) -> Tensor:
    """Return ``relu(normalise(convolve(x)))``."""
    if (layer := first_layer(x, convolution, pooled=False)) is not None:
        return apply_first(layer, x, convolution, normalisation)
    y, norm, _ = normalised(x, None, convolution, normalisation)
    return _Sum(y, norm).compute()


class _Sum(NamedTuple):
    """``relu(scale y + shift + shortcut)``, not computed yet; the shortcut is nothing, z, or z normalised too."""

    y: Tensor
    norm: Tensor
    z: Tensor | None = None
    z_norm: Tensor | None = None

    def compute(self) -> Tensor:
        out: Tensor = _Merge.apply(*self)  # type: ignore[no-untyped-call]
        return out


def residuals(x: Tensor, blocks: Iterable[tuple[Any, Any]]) -> Tensor:
    """Return what blocks ``relu(main(x) + shortcut(x))`` of two convolutions make of x, one after the other."""
    before: Tensor | _Sum = x.to(kernels.PRECISION, memory_format=torch.channels_last)
    for (first, norm_first, _, second, norm_second), shortcut in blocks:
        y, norm, x = normalised(before, None, first, norm_first)
        y, norm, _ = normalised(y, norm, second, norm_second)
        z, z_norm, _ = normalised(x, None, *shortcut) if isinstance(shortcut, nn.Sequential) else (x, None, x)
        before = _Sum(y, norm, z, z_norm)
    return before.compute() if isinstance(before, _Sum) else before


def normalised(x: Tensor | _Sum, x_norm: Tensor | None, convolution: Any, normalisation: Any) -> Any:
    """Return the raw outputs of a convolution of x, or of ``relu(scale x + shift)``, their norm, and x.

    A sum is computed on the way, where there is a kernel for that. For another use of x take this one: its
    gradient then comes back to where that of the convolution is made.
    """
    known, training = _has_kernels(convolution, x[0] if isinstance(x, _Sum) else x), normalisation.training
    weights = (convolution.weight, *norm_arguments(normalisation))
    if isinstance(x, _Sum) and known and x.z is not None and x.z_norm is None:
        if training:
            return _MergedConvolution.apply(*x[:3], *weights)  # type: ignore[no-untyped-call]
        out, y, _ = kernels.convolve_sum(x.y, x.norm, x.z, kernels.arrange(convolution.weight)[0])
        return y, frozen_norm(normalisation), out
    if isinstance(x, _Sum):
        x = x.compute()
    if known and training:
        return _Convolution.apply(x, x_norm, *weights)  # type: ignore[no-untyped-call]
    if known:
        y, _ = kernels.convolve(x, x_norm, kernels.arrange(convolution.weight)[0])
        return y, frozen_norm(normalisation), x
    if x_norm is not None:
        x = _Sum(x, x_norm).compute()
    y = convolution(x).contiguous(memory_format=torch.channels_last)
    if not training:
        return y, frozen_norm(normalisation), x
    return *_Normalisation.apply(y, *weights[1:]), x  # type: ignore[no-untyped-call]


def _has_kernels(convolution: Any, x: Tensor) -> bool:
    alike = convolution.in_channels == convolution.out_channels and convolution.kernel_size == (3, 3)
    plain = convolution.stride == convolution.padding == convolution.dilation == (1, 1) and convolution.groups == 1
    return alike and plain and kernels.tile_of(x.shape) is not None


# These functions pass each other special gradients: for raw outputs y the gradient of ``scale y + shift``, and for
# a norm its correction. The function that computed y makes the gradient of y from both.


class _Convolution(Function):
    """y, norm, x = a convolution of x, or of ``relu(scale x + shift)``, what normalises it, and x."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, x_norm: Any, weight: Tensor, gamma: Tensor, *rest: Any) -> Any:
        weights = kernels.arrange(weight)
        y, parts = kernels.convolve(x, x_norm, weights[0])
        norm = kernels.normalisation(parts, pixels(y), gamma, *rest)
        ctx.save_for_backward(x, x_norm, weights, y, norm)
        ctx.set_materialize_grads(False)
        return y, norm, x.view_as(x)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d: Tensor, correction: Tensor, more: Tensor | None) -> Any:
        x, x_norm, weights, y, norm = ctx.saved_tensors
        d_x, parts = kernels.input_gradient(d, y, norm, correction, weights[1], x, x_norm=x_norm, more=more)
        x_correction = None if x_norm is None else kernels.correction(parts, x_norm, pixels(x))
        d_weight = kernels.weight_gradient(x, x_norm, d, y, norm, correction)
        return d_x, x_correction, d_weight, *correction[2:], None, None, None


class _MergedConvolution(Function):
    """y, norm, x = a convolution of ``x = relu(scale raw + shift + z)``, what normalises it, and x."""

    @staticmethod
    def forward(
        ctx: Any, raw: Tensor, raw_norm: Tensor, z: Tensor, weight: Tensor, gamma: Tensor, *rest: Any
    ) -> Any:
        weights = kernels.arrange(weight)
        x, y, parts = kernels.convolve_sum(raw, raw_norm, z, weights[0])
        norm = kernels.normalisation(parts, pixels(y), gamma, *rest)
        ctx.save_for_backward(raw, raw_norm, x, weights, y, norm)
        return y, norm, x

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d: Tensor, correction: Tensor, more: Tensor) -> Any:
        raw, raw_norm, x, weights, y, norm = ctx.saved_tensors
        more = more.contiguous(memory_format=torch.channels_last)
        g, parts = kernels.input_gradient(d, y, norm, correction, weights[1], x, more=more, raw=raw)
        raw_correction = kernels.correction(parts, raw_norm, pixels(raw))
        d_weight = kernels.weight_gradient(x, None, d, y, norm, correction)
        return g, raw_correction, g, d_weight, *correction[2:], None, None, None


class _Normalisation(Function):
    """y, norm = y itself, and what normalises it."""

    @staticmethod
    def forward(ctx: Any, y: Tensor, gamma: Tensor, *rest: Any) -> Any:
        norm = kernels.normalisation(kernels.statistics(y), pixels(y), gamma, *rest)
        ctx.save_for_backward(y, norm)
        return y.view_as(y), norm

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d: Tensor, correction: Tensor) -> Any:
        y, norm = ctx.saved_tensors
        return kernels.correct(d, y, norm, correction), *correction[2:], None, None, None


class _Merge(Function):
    """``relu(scale y + shift + shortcut)`` with nothing, z or ``z_scale z + z_shift`` as the shortcut."""

    @staticmethod
    def forward(ctx: Any, y: Tensor, norm: Tensor, z: Tensor | None, z_norm: Tensor | None) -> Tensor:
        out = kernels.merge(y, norm, z, z_norm)
        ctx.save_for_backward(y, norm, z, z_norm, out)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d: Tensor) -> Any:
        y, norm, z, z_norm, out = ctx.saved_tensors
        d = d.contiguous(memory_format=torch.channels_last)
        g, parts = kernels.merge_gradient(d, out, y, z, z_norm is not None)
        correction = kernels.correction(parts, norm, pixels(y))
        z_correction = None if z_norm is None else kernels.correction(parts, z_norm, pixels(z), scale=2)
        return g, correction, None if z is None else g, z_correction
