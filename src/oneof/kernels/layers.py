"""Layers of convolutional networks on a GPU, fused: few passes over memory to convolve, normalise, rectify, add.

Used in bfloat16, in training and where no gradient is wanted, in place of the layers as written: the same
mathematics, with sums in another order.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn import functional

from oneof.kernels import convolutions as kernels
from oneof.kernels import lenet as lenet_kernels
from oneof.kernels.launch import available, dry_running


def applies(x: Tensor) -> bool:
    """Tell whether x is where there are kernels, and bfloat16 is wanted."""
    if torch.compiler.is_compiling():
        return False
    if dry_running.get():
        return True
    if not x.is_cuda or x.numel() >= 2**31:
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
    weights = (convolution.weight, *_parts(normalisation))
    if isinstance(x, _Sum) and known and x.z is not None and x.z_norm is None:
        if training:
            return _MergedConvolution.apply(*x[:3], *weights)  # type: ignore[no-untyped-call]
        out, y, _ = kernels.convolve_sum(x.y, x.norm, x.z, kernels.arrange(convolution.weight)[0])
        return y, _frozen(normalisation), out
    if isinstance(x, _Sum):
        x = x.compute()
    if known and training:
        return _Convolution.apply(x, x_norm, *weights)  # type: ignore[no-untyped-call]
    if known:
        y, _ = kernels.convolve(x, x_norm, kernels.arrange(convolution.weight)[0])
        return y, _frozen(normalisation), x
    if x_norm is not None:
        x = _Sum(x, x_norm).compute()
    y = convolution(x).contiguous(memory_format=torch.channels_last)
    if not training:
        return y, _frozen(normalisation), x
    return *_Normalisation.apply(y, *weights[1:]), x  # type: ignore[no-untyped-call]


def _has_kernels(convolution: Any, x: Tensor) -> bool:
    alike = convolution.in_channels == convolution.out_channels and convolution.kernel_size == (3, 3)
    plain = convolution.stride == convolution.padding == convolution.dilation == (1, 1) and convolution.groups == 1
    return alike and plain and kernels.tile_of(x.shape) is not None


def _parts(normalisation: Any) -> tuple[Any, ...]:
    """Return gamma, beta, the running averages if they are to be moved, and the numbers."""
    running = None
    if normalisation.track_running_stats:
        running = (normalisation.running_mean, normalisation.running_var, normalisation.num_batches_tracked)
    return normalisation.weight, normalisation.bias, running, normalisation.momentum, normalisation.eps


def _frozen(normalisation: Any, stored: int | None = None) -> Tensor:
    """Return the scale and shift of evaluation; zero for channels that are stored but not there."""
    scale = normalisation.weight * torch.rsqrt(normalisation.running_var + normalisation.eps)
    both = torch.stack([scale, normalisation.bias - normalisation.running_mean * scale])
    return functional.pad(both, (0, (stored or len(scale)) - len(scale)))


def _pixels(y: Tensor) -> int:
    return y.numel() // y.shape[1]


# As gradients these pass each other what is needed: for raw outputs y that of ``scale y + shift``, and for a norm
# the correction, by which who made y finds the rest of the way.


class _Convolution(Function):
    """y, norm, x = a convolution of x, or of ``relu(scale x + shift)``, what normalises it, and x."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, x_norm: Any, weight: Tensor, gamma: Tensor, *rest: Any) -> Any:
        weights = kernels.arrange(weight)
        y, parts = kernels.convolve(x, x_norm, weights[0])
        norm = kernels.normalisation(parts, _pixels(y), gamma, *rest)
        ctx.save_for_backward(x, x_norm, weights, y, norm)
        ctx.set_materialize_grads(False)
        return y, norm, x.view_as(x)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d: Tensor, correction: Tensor, more: Tensor | None) -> Any:
        x, x_norm, weights, y, norm = ctx.saved_tensors
        d_x, parts = kernels.input_gradient(d, y, norm, correction, weights[1], x, x_norm=x_norm, more=more)
        x_correction = None if x_norm is None else kernels.correction(parts, x_norm, _pixels(x))
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
        norm = kernels.normalisation(parts, _pixels(y), gamma, *rest)
        ctx.save_for_backward(raw, raw_norm, x, weights, y, norm)
        return y, norm, x

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d: Tensor, correction: Tensor, more: Tensor) -> Any:
        raw, raw_norm, x, weights, y, norm = ctx.saved_tensors
        more = more.contiguous(memory_format=torch.channels_last)
        g, parts = kernels.input_gradient(d, y, norm, correction, weights[1], x, more=more, raw=raw)
        raw_correction = kernels.correction(parts, raw_norm, _pixels(raw))
        d_weight = kernels.weight_gradient(x, None, d, y, norm, correction)
        return g, raw_correction, g, d_weight, *correction[2:], None, None, None


class _Normalisation(Function):
    """y, norm = y itself, and what normalises it."""

    @staticmethod
    def forward(ctx: Any, y: Tensor, gamma: Tensor, *rest: Any) -> Any:
        norm = kernels.normalisation(kernels.statistics(y), _pixels(y), gamma, *rest)
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
        correction = kernels.correction(parts, norm, _pixels(y))
        z_correction = None if z_norm is None else kernels.correction(parts, z_norm, _pixels(z), scale=2)
        return g, correction, None if z is None else g, z_correction


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
        return kernels.first_outputs(layer, x, convolution.weight, _frozen(normalisation, layer.stored))
    inputs = (layer, x, convolution.weight, *_parts(normalisation))
    out: Tensor = _First.apply(*inputs)  # type: ignore[no-untyped-call]
    return out


class _First(Function):
    """Convolve, normalise, pool if so, rectify: a convolution so cheap that it is computed anew where needed."""

    @staticmethod
    def forward(ctx: Any, layer: kernels.First, x: Tensor, weight: Tensor, gamma: Tensor, *rest: Any) -> Tensor:
        norm = kernels.normalisation(kernels.first_sums(layer, x, weight), _pixels(x), gamma, *rest)
        ctx.save_for_backward(x, weight, norm)
        ctx.layer, ctx.filters = layer, len(gamma)
        return kernels.first_outputs(layer, x, weight, norm)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d: Tensor) -> Any:
        x, weight, norm = ctx.saved_tensors
        d = d.contiguous(memory_format=torch.channels_last)
        total = kernels.first_gradient(ctx.layer, x, weight, norm, d)
        correction = kernels.correction(total[None], norm, _pixels(x))
        d_weight = kernels.first_weight_gradient(ctx.layer, total, weight, norm, correction)
        return None, None, d_weight, *correction[2:, : ctx.filters], None, None, None


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
        return lenet_kernels.second_outputs(y, _frozen(norm_second, lenet_kernels.SECOND_STORED))
    features: Tensor = _Second.apply(y, *_parts(norm_second))  # type: ignore[no-untyped-call]
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
        norm = kernels.normalisation(kernels.statistics(y), _pixels(y), gamma, *rest)
        ctx.save_for_backward(y, norm)
        ctx.filters = len(gamma)
        return lenet_kernels.second_outputs(y, norm)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d: Tensor) -> Any:
        y, norm = ctx.saved_tensors
        d = d.contiguous()
        correction = kernels.correction(lenet_kernels.second_gradient(d, y, norm), norm, _pixels(y))
        d_y = lenet_kernels.second_gradient_of_y(d, y, norm, correction)
        return d_y, *correction[2:, : ctx.filters], None, None, None


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
