"""Layers of LeNet on a GPU, fused: two blocks of convolution, normalisation, pooling and activation, and units."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn import functional

from oneof.kernels import convolutions as kernels
from oneof.kernels import lenet as lenet_kernels
from oneof.kernels import support
from oneof.kernels.first_layers import apply_first, first_layer
from oneof.kernels.support import frozen_norm, norm_arguments, pixels


def is_lenet(x: Tensor, layers: Sequence[nn.Module]) -> bool:
    """Tell whether there are kernels for LeNet's layers on x."""
    return (
        support.applies(x)
        and support.supports(layers, (20, 50))
        and first_layer(x, layers[0], pooled=True) is not None
    )


def lenet_features(x: Tensor, first: Any, norm_first: Any, second: Any, norm_second: Any) -> Tensor:
    """Return what LeNet's two blocks of convolution, normalisation, pooling and activation make of gray images."""
    layer = first_layer(x, first, pooled=True)
    assert layer is not None
    out = apply_first(layer, x, first, norm_first)
    y: Tensor = _SecondConvolution.apply(out, second.weight)  # type: ignore[no-untyped-call]
    if not norm_second.training:
        return lenet_kernels.second_outputs(y, frozen_norm(norm_second, lenet_kernels.SECOND_STORED))
    features: Tensor = _Second.apply(y, *norm_arguments(norm_second))  # type: ignore[no-untyped-call]
    return features


class _SecondConvolution(Function):
    """The convolution of the second block; inputs and outputs have more channels in memory than filters know."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        more_inputs, more_outputs = x.shape[1] - weight.shape[1], lenet_kernels.SECOND_STORED - weight.shape[0]
        stored = functional.pad(weight.to(x.dtype), (0, 0, 0, 0, 0, more_inputs, 0, more_outputs))
        stored = stored.contiguous(memory_format=torch.channels_last)
        ctx.save_for_backward(x, stored)
        return functional.conv2d(x, stored, padding=2).contiguous(memory_format=torch.channels_last)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d: Tensor) -> Any:
        x, weight = ctx.saved_tensors
        rest = ([1, 1], [2, 2], [1, 1], False, [0, 0], 1)  # stride, padding, dilation, ...
        d_x, _, _ = torch.ops.aten.convolution_backward(d, x, weight, None, *rest, [True, False, False])
        return d_x, lenet_kernels.second_weight_gradient(x, d)


class _Second(Function):
    """The second block, behind its convolution."""

    @staticmethod
    def forward(ctx: Any, y: Tensor, gamma: Tensor, *rest: Any) -> Tensor:
        norm = kernels.normalisation(kernels.statistics(y), pixels(y), gamma, *rest)
        ctx.save_for_backward(y, norm)
        ctx.filters = len(gamma)
        return lenet_kernels.second_outputs(y, norm)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d: Tensor) -> Any:
        y, norm = ctx.saved_tensors
        d = d.contiguous()
        correction = kernels.correction(lenet_kernels.second_gradient(d, y, norm), norm, pixels(y))
        d_y = lenet_kernels.second_gradient_of_y(d, y, norm, correction)
        return d_y, *correction[2:, : ctx.filters], None, None, None


# --- units of a linear layer ------------------------------------------------------------------------------


def units(x: Tensor, linear: Any, normalisation: Any) -> Tensor:
    """Return ``relu(normalise(W x))`` for an even number of units."""
    if not normalisation.training or len(x) == 1:  # torch refuses to normalise a single row
        return functional.relu(normalisation(linear(x)))
    out: Tensor = _Units.apply(x, linear.weight, *norm_arguments(normalisation))  # type: ignore[no-untyped-call]
    return out


class _Units(Function):
    """Multiply, normalise, rectify."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, gamma: Tensor, *rest: Any) -> Tensor:
        narrow = weight.to(x.dtype)
        y = x @ narrow.T
        out, mean, deviation = lenet_kernels.units(y, gamma, *rest)
        ctx.save_for_backward(x, narrow, y, out, gamma, mean, deviation)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d: Tensor) -> Any:
        x, weight, y, out, gamma, mean, deviation = ctx.saved_tensors
        d_y, d_gamma, d_beta = lenet_kernels.units_gradient(d.contiguous(), y, out, gamma, mean, deviation)
        # A product of narrow numbers that comes out wide is known to GPUs alone.
        d_weight = torch.mm(d_y.T, x, out_dtype=torch.float32) if x.is_cuda else d_y.float().T @ x.float()
        return d_y @ weight, d_weight, d_gamma, d_beta, None, None, None
