"""First layers of convolutional networks on a GPU: so cheap to convolve that it is done again where needed."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from oneof.kernels import convolutions as kernels
from oneof.kernels.support import frozen_norm, norm_arguments, pixels


def first_layer(x: Tensor, convolution: Any, pooled: bool) -> kernels.First | None:
    """Return the layer that a convolution of x is, if there are kernels for it. They give no gradient of x."""
    channels, height, width = x.shape[1:]
    size = convolution.kernel_size[0]
    layer = kernels.First(channels, height, size, convolution.out_channels, pooled)
    plain = convolution.stride == convolution.dilation == (1, 1) and convolution.groups == 1
    whole = height == width and convolution.padding == (size // 2, size // 2)
    return layer if plain and whole and not x.requires_grad and layer in kernels.FIRST_LAYERS else None


def apply_first(layer: kernels.First, x: Tensor, convolution: Any, normalisation: Any) -> Tensor:
    """Return what a first layer makes of x: convolved, normalised, pooled if so, rectified."""
    x = x.float().contiguous(memory_format=torch.channels_last)
    if not normalisation.training:
        return kernels.first_outputs(layer, x, convolution.weight, frozen_norm(normalisation, layer.stored))
    inputs = (layer, x, convolution.weight, *norm_arguments(normalisation))
    out: Tensor = _First.apply(*inputs)  # type: ignore[no-untyped-call]
    return out


class _First(Function):
    """Convolve, normalise, pool if so, rectify: a convolution so cheap that it is computed anew where needed."""

    @staticmethod
    def forward(ctx: Any, layer: kernels.First, x: Tensor, weight: Tensor, gamma: Tensor, *rest: Any) -> Tensor:
        norm = kernels.normalisation(kernels.first_sums(layer, x, weight), pixels(x), gamma, *rest)
        ctx.save_for_backward(x, weight, norm)
        ctx.layer, ctx.filters = layer, len(gamma)
        return kernels.first_outputs(layer, x, weight, norm)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d: Tensor) -> Any:
        x, weight, norm = ctx.saved_tensors
        d = d.contiguous(memory_format=torch.channels_last)
        total = kernels.first_gradient(ctx.layer, x, weight, norm, d)
        correction = kernels.correction(total[None], norm, pixels(x))
        d_weight = kernels.first_weight_gradient(ctx.layer, total, weight, norm, correction)
        return None, None, d_weight, *correction[2:, : ctx.filters], None, None, None
