"""Which layers there are kernels for, and what all fused layers need of a batch normalisation."""

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm

from oneof.kernels import convolutions as kernels
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


def supports(layers: Iterable[nn.Module], channels: Sequence[int] = kernels.CHANNELS) -> bool:
    """Tell whether there are kernels for layers: for their convolutions, and for training or evaluation."""
    return all(_supports_layer(layer, channels) for layer in layers)


def _supports_layer(layer: nn.Module, channels: Sequence[int]) -> bool:
    if isinstance(layer, _BatchNorm):  # others than these two take their moments from elsewhere
        known = isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d)
        known = known and layer.affine and layer.momentum is not None and layer.running_mean is not None
        return known and (layer.training or not torch.is_grad_enabled())
    return not isinstance(layer, nn.Conv2d) or (layer.bias is None and layer.out_channels in channels)


def norm_arguments(normalisation: Any) -> tuple[Any, ...]:
    """Return gamma, beta, the running averages if they are to be moved, and the numbers."""
    running = None
    if normalisation.track_running_stats:
        running = (normalisation.running_mean, normalisation.running_var, normalisation.num_batches_tracked)
    return normalisation.weight, normalisation.bias, running, normalisation.momentum, normalisation.eps


def frozen_norm(normalisation: Any, stored: int | None = None) -> Tensor:
    """Return the scale and shift of evaluation; zero for channels that are stored but not there."""
    scale = normalisation.weight * torch.rsqrt(normalisation.running_var + normalisation.eps)
    both = torch.stack([scale, normalisation.bias - normalisation.running_mean * scale])
    return functional.pad(both, (0, (stored or len(scale)) - len(scale)))


def pixels(y: Tensor) -> int:
    """Return the number of pixels in a batch of images."""
    return y.numel() // y.shape[1]
