"""Layers of convolutional networks on a GPU, fused: few passes over memory to convolve, normalise, rectify, add.

Used in bfloat16, in training and where no gradient is wanted, in place of the layers as written: the same
mathematics, with sums in another order.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn import functional

from oneof import kernels
from oneof.launch import available


def applies(x: Tensor) -> bool:
    """Tell whether x is where there are kernels, and bfloat16 is wanted."""
    if not x.is_cuda or torch.compiler.is_compiling() or x.numel() >= 2**31:
        return False
    if not (torch.is_autocast_enabled("cuda") and torch.get_autocast_dtype("cuda") == torch.bfloat16):
        return False
    return available(x.device)


def fit(layers: Iterable[nn.Module], channels: Sequence[int] = kernels.CHANNELS) -> bool:
    """Tell whether there are kernels for layers: for their convolutions, and for training or evaluation."""
    return all(_fits(layer, channels) for layer in layers)


def _fits(layer: nn.Module, channels: Sequence[int]) -> bool:
    if isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d):
        known = layer.affine and layer.momentum is not None and layer.running_mean is not None
        return known and (layer.training or not torch.is_grad_enabled())
    return not isinstance(layer, nn.Conv2d) or (layer.bias is None and layer.out_channels in channels)


# --- residual networks ------------------------------------------------------------------------------------


def rectified(x: Tensor, convolution: nn.Module, normalisation: nn.Module) -> Tensor:
    """Return ``relu(normalise(convolve(x)))``."""
    if (layer := _first_layer(x, convolution, pooled=False)) is not None:
        return _first(layer, x, convolution, normalisation)
    y, scale, shift, _ = normalised(x, None, convolution, normalisation)
    return _merge(y, scale, shift)


def residual(x: Tensor, main: nn.Sequential, shortcut: nn.Module) -> Tensor:
    """Return ``relu(main(x) + shortcut(x))`` for a block of two convolutions."""
    first, norm_first, _, second, norm_second = main
    x = x.to(torch.bfloat16, memory_format=torch.channels_last)
    y, *activation, x = normalised(x, None, first, norm_first)
    y, scale, shift, _ = normalised(y, activation, second, norm_second)
    if isinstance(shortcut, nn.Sequential):
        z, z_scale, z_shift, _ = normalised(x, None, *shortcut)
        return _merge(y, scale, shift, z, z_scale, z_shift)
    return _merge(y, scale, shift, x)


def normalised(x: Tensor, activation: Any, convolution: Any, normalisation: Any) -> Any:
    """Return the raw outputs of a convolution of x, or of ``relu(scale x + shift)``, their scale and shift, and x.

    For another use of x take this one: its gradient then comes back to where that of the convolution is made.
    """
    alike = convolution.in_channels == convolution.out_channels and convolution.kernel_size == (3, 3)
    plain = convolution.stride == convolution.padding == convolution.dilation == (1, 1) and convolution.groups == 1
    if alike and plain and kernels.tile_of(x.shape) is not None:
        if not normalisation.training:
            y, _ = kernels.convolve(x, activation, kernels.arrange(convolution.weight)[0])
            return y, *_frozen(normalisation), x
        inputs = (x, *(activation or (None, None)), convolution.weight, *_parts(normalisation))
        return _Convolution.apply(*inputs)  # type: ignore[no-untyped-call]
    if activation is not None:
        x = _merge(x, *activation)
    y = convolution(x).contiguous(memory_format=torch.channels_last)
    if not normalisation.training:
        return y, *_frozen(normalisation), x
    return *_Normalisation.apply(y, *_parts(normalisation)), x  # type: ignore[no-untyped-call]


def _merge(
    y: Tensor,
    scale: Tensor,
    shift: Tensor,
    z: Tensor | None = None,
    z_scale: Tensor | None = None,
    z_shift: Tensor | None = None,
) -> Tensor:
    out: Tensor = _Merge.apply(y, scale, shift, z, z_scale, z_shift)  # type: ignore[no-untyped-call]
    return out


def _parts(normalisation: Any) -> tuple[Any, ...]:
    """Return gamma, beta, the running averages if they are to be moved, and the numbers."""
    running = None
    if normalisation.track_running_stats:
        running = (normalisation.running_mean, normalisation.running_var, normalisation.num_batches_tracked)
    return normalisation.weight, normalisation.bias, running, normalisation.momentum, normalisation.eps


def _frozen(normalisation: Any, stored: int | None = None) -> tuple[Tensor, Tensor]:
    """Return the scale and shift of evaluation; zero for channels that are stored but not there."""
    scale = normalisation.weight * torch.rsqrt(normalisation.running_var + normalisation.eps)
    both = torch.stack([scale, normalisation.bias - normalisation.running_mean * scale])
    scale, shift = functional.pad(both, (0, (stored or len(scale)) - len(scale)))
    return scale, shift


# As the gradient of raw outputs y these pass each other that of ``scale y + shift``: who made y, scale and shift
# knows the rest of the way.


class _Convolution(Function):
    """y, scale, shift, x = a convolution of x, or of ``relu(x_scale x + x_shift)``, what normalises it, and x."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, x_scale: Any, x_shift: Any, weight: Tensor, gamma: Tensor, *rest: Any) -> Any:
        activation = None if x_scale is None else (x_scale, x_shift)
        weights = kernels.arrange(weight)
        y, parts = kernels.convolve(x, activation, weights[0])
        scale, shift, mean, deviation = kernels.normalisation(parts, y.numel() // y.shape[1], gamma, *rest)
        ctx.save_for_backward(x, x_scale, x_shift, weights, gamma, y, mean, deviation)
        ctx.set_materialize_grads(False)
        return y, scale, shift, x.view_as(x)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d: Tensor, d_scale: Tensor, d_shift: Tensor, more: Tensor | None) -> Any:
        x, x_scale, x_shift, weights, gamma, y, mean, deviation = ctx.saved_tensors
        activation = None if x_scale is None else (x_scale, x_shift)
        correction, d_gamma = kernels.correction(d_scale, d_shift, gamma, mean, deviation, y.numel() // y.shape[1])
        d_x, parts = kernels.input_gradient(d, y, correction, weights[1], x, activation, more)
        d_activation = (None, None) if activation is None else kernels.add_up(parts)
        d_weight = kernels.weight_gradient(x, activation, d, y, correction)
        return d_x, *d_activation, d_weight, d_gamma, d_shift, None, None, None


class _Normalisation(Function):
    """y, scale, shift = y itself, and what normalises it."""

    @staticmethod
    def forward(ctx: Any, y: Tensor, gamma: Tensor, *rest: Any) -> Any:
        count = y.numel() // y.shape[1]
        scale, shift, mean, deviation = kernels.normalisation(kernels.statistics(y), count, gamma, *rest)
        ctx.save_for_backward(y, gamma, mean, deviation)
        return y.view_as(y), scale, shift

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d: Tensor, d_scale: Tensor, d_shift: Tensor) -> Any:
        y, gamma, mean, deviation = ctx.saved_tensors
        correction, d_gamma = kernels.correction(d_scale, d_shift, gamma, mean, deviation, y.numel() // y.shape[1])
        return kernels.correct(d, y, correction), d_gamma, d_shift, None, None, None


class _Merge(Function):
    """``relu(scale y + shift + shortcut)`` with nothing, z or ``z_scale z + z_shift`` as the shortcut."""

    @staticmethod
    def forward(
        ctx: Any, y: Tensor, scale: Tensor, shift: Tensor, z: Tensor | None, z_scale: Any, z_shift: Any
    ) -> Tensor:
        z_activation = None if z_scale is None else (z_scale, z_shift)
        out = kernels.merge(y, (scale, shift), z, z_activation)
        ctx.save_for_backward(y, z, out)
        ctx.normalised = z_scale is not None
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d: Tensor) -> Any:
        y, z, out = ctx.saved_tensors
        d = d.contiguous(memory_format=torch.channels_last)
        g, (d_scale, d_shift, d_z_scale) = kernels.merge_gradient(d, out, y, z, ctx.normalised)
        d_shortcut = (d_z_scale, d_shift) if ctx.normalised else (None, None)
        return g, d_scale, d_shift, None if z is None else g, *d_shortcut


# --- first layers -----------------------------------------------------------------------------------------


def _first_layer(x: Tensor, convolution: Any, pooled: bool) -> kernels.First | None:
    """Return the layer that a convolution of x is, if there are kernels for it. They give no gradient of x."""
    channels, height, width = x.shape[1:]
    size = convolution.kernel_size[0]
    layer = kernels.First(channels, height, size, convolution.out_channels, pooled)
    plain = convolution.stride == convolution.dilation == (1, 1) and convolution.groups == 1
    whole = height == width and convolution.padding == (size // 2, size // 2)
    return layer if plain and whole and not x.requires_grad and layer in kernels.FIRST_LAYERS else None


def _first(layer: kernels.First, x: Tensor, convolution: Any, normalisation: Any) -> Tensor:
    x = x.float().contiguous(memory_format=torch.channels_last)
    if not normalisation.training:
        return kernels.first_outputs(layer, x, convolution.weight, *_frozen(normalisation, layer.stored))
    inputs = (layer, x, convolution.weight, *_parts(normalisation))
    out: Tensor = _First.apply(*inputs)  # type: ignore[no-untyped-call]
    return out


class _First(Function):
    """Convolve, normalise, pool if so, rectify: a convolution so cheap that it is computed anew where needed."""

    @staticmethod
    def forward(ctx: Any, layer: kernels.First, x: Tensor, weight: Tensor, gamma: Tensor, *rest: Any) -> Tensor:
        parts, count = kernels.first_sums(layer, x, weight), x.numel() // x.shape[1]
        scale, shift, mean, deviation = kernels.normalisation(parts, count, gamma, *rest)
        ctx.save_for_backward(x, weight, gamma, scale, shift, mean, deviation)
        ctx.layer = layer
        return kernels.first_outputs(layer, x, weight, scale, shift)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d: Tensor) -> Any:
        x, weight, gamma, scale, shift, mean, deviation = ctx.saved_tensors
        d = d.contiguous(memory_format=torch.channels_last)
        d_scale, d_shift, total = kernels.first_gradient(ctx.layer, x, weight, scale, shift, d)
        correction, d_gamma = kernels.correction(d_scale, d_shift, gamma, mean, deviation, x.numel() // x.shape[1])
        d_weight = kernels.first_weight_gradient(ctx.layer, total, weight, correction)
        return None, None, d_weight, d_gamma, d_shift[: len(gamma)], None, None, None


# --- LeNet ------------------------------------------------------------------------------------------------


def is_lenet(x: Tensor, layers: Sequence[nn.Module]) -> bool:
    """Tell whether there are kernels for LeNet's layers on x."""
    return applies(x) and fit(layers, (20, 50)) and _first_layer(x, layers[0], pooled=True) is not None


def lenet_features(x: Tensor, first: Any, norm_first: Any, second: Any, norm_second: Any) -> Tensor:
    """Return what LeNet's two blocks of convolution, normalisation, pooling and activation make of gray images."""
    layer = _first_layer(x, first, pooled=True)
    assert layer is not None
    out = _first(layer, x, first, norm_first)
    y: Tensor = _SecondConvolution.apply(out, second.weight)  # type: ignore[no-untyped-call]
    if not norm_second.training:
        return kernels.second_outputs(y, *_frozen(norm_second, kernels.SECOND_STORED))
    features: Tensor = _Second.apply(y, *_parts(norm_second))  # type: ignore[no-untyped-call]
    return features


class _SecondConvolution(Function):
    """The convolution of the second block; inputs and outputs have more channels in memory than filters know."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        more_inputs, more_outputs = x.shape[1] - weight.shape[1], kernels.SECOND_STORED - weight.shape[0]
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
        return d_x, kernels.second_weight_gradient(x, d)


class _Second(Function):
    """The second block, behind its convolution."""

    @staticmethod
    def forward(ctx: Any, y: Tensor, gamma: Tensor, *rest: Any) -> Tensor:
        count = y.numel() // y.shape[1]
        scale, shift, mean, deviation = kernels.normalisation(kernels.statistics(y), count, gamma, *rest)
        ctx.save_for_backward(y, gamma, scale, shift, mean, deviation)
        return kernels.second_outputs(y, scale, shift)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d: Tensor) -> Any:
        y, gamma, scale, shift, mean, deviation = ctx.saved_tensors
        d = d.contiguous()
        d_scale, d_shift = kernels.second_gradient(d, y, scale, shift)
        count = y.numel() // y.shape[1]
        correction, d_gamma = kernels.correction(d_scale, d_shift, gamma, mean, deviation, count)
        d_y = kernels.second_gradient_of_y(d, y, scale, shift, correction)
        return d_y, d_gamma, d_shift[: len(gamma)], None, None, None


# --- units of a linear layer ------------------------------------------------------------------------------


def units(x: Tensor, linear: Any, normalisation: Any) -> Tensor:
    """Return ``relu(normalise(W x))`` for an even number of units."""
    if not normalisation.training or len(x) == 1:  # torch refuses to normalise a single row
        return functional.relu(normalisation(linear(x)))
    out: Tensor = _Units.apply(x, linear.weight, *_parts(normalisation))  # type: ignore[no-untyped-call]
    return out


class _Units(Function):
    """Multiply, normalise, rectify."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, gamma: Tensor, *rest: Any) -> Tensor:
        narrow = weight.to(x.dtype)
        y = x @ narrow.T
        out, mean, deviation = kernels.units(y, gamma, *rest)
        ctx.save_for_backward(x, narrow, y, out, gamma, mean, deviation)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d: Tensor) -> Any:
        x, weight, y, out, gamma, mean, deviation = ctx.saved_tensors
        d_y, d_gamma, d_beta = kernels.units_gradient(d.contiguous(), y, out, gamma, mean, deviation)
        # A product of narrow numbers that comes out wide is known to GPUs alone.
        d_weight = torch.mm(d_y.T, x, out_dtype=torch.float32) if x.is_cuda else d_y.float().T @ x.float()
        return d_y @ weight, d_weight, d_gamma, d_beta, None, None, None
