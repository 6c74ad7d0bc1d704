"""Fused networks: which parts of LeNet and of residual networks are computed by kernels."""

from collections.abc import Callable
from itertools import takewhile

from torch import Tensor, nn

from oneof.kernels import lenet_layers, residual_layers, support
from oneof.kernels.launch import prepare
from oneof.nn.convnets import LeNetBody, Residual, Stages

Forward = Callable[[Tensor], Tensor]


def residual_block(x: Tensor, block: Residual) -> Forward | None:
    """Return a fused forward pass of one block, None where there are no kernels for it."""
    if not (support.applies(x) and _has_kernels(block)):
        return None
    return lambda x: residual_layers.residuals(x, [(block.main, block.shortcut)])


def all_stages(x: Tensor, stages: Stages) -> Forward | None:
    """Return a fused forward pass where there are kernels for all layers."""
    return stages.__call__ if support.applies(x) and support.supports(stages.modules()) else None


def first_stages(x: Tensor, stages: Stages) -> Callable[[Tensor], tuple[Tensor, list[nn.Module]]] | None:
    """Return a fused pass through the first layers, which gives its output and the layers that are left."""
    return (lambda x: _pass_first_stages(x, stages)) if support.applies(x) else None


def _pass_first_stages(x: Tensor, stages: Stages) -> tuple[Tensor, list[nn.Module]]:
    """Pass the first convolution, if it has a kernel, and the residual blocks behind it that have."""
    if support.supports(stages.modules()):
        prepare(stages, x)
    layers = list(stages)
    stem = layers[:3]
    if all(map(isinstance, stem, (nn.Conv2d, nn.BatchNorm2d, nn.ReLU))) and support.supports(stem):
        x, layers = residual_layers.rectified(x, stem[0], stem[1]), layers[3:]
    blocks = [(layer.main, layer.shortcut) for layer in takewhile(_has_kernels, layers)]
    return (residual_layers.residuals(x, blocks) if blocks else x), layers[len(blocks) :]


def lenet(x: Tensor, body: LeNetBody) -> Forward | None:
    """Return a fused forward pass of LeNet's body, None where there are no kernels for it."""
    return (lambda x: _pass_lenet(x, body)) if lenet_layers.is_lenet(x, list(body)) else None


def _pass_lenet(x: Tensor, body: LeNetBody) -> Tensor:
    prepare(body, x)
    first, norm_first, _, _, second, norm_second, _, _, _, linear, norm, _ = body
    return lenet_layers.units(lenet_layers.lenet_features(x, first, norm_first, second, norm_second), linear, norm)


def _has_kernels(layer: nn.Module) -> bool:
    """Tell whether a layer is a block of two convolutions that there are kernels for."""
    return isinstance(layer, Residual) and len(layer.main) == 5 and support.supports(layer.modules())
