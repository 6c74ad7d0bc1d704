"""Networks: a body that turns inputs into features, and a linear head that turns features into outputs.

``NETWORKS`` maps a name to a factory; any callable ``(input_shape, outputs) -> nn.Module`` serves as well, and so
does a module, of which copies are made.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from itertools import pairwise
from math import prod
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from oneof.errors import InputError
from oneof.io.words import shown
from oneof.nn.convnets import LeNetBody, Stages, resnet18_body, resnet32_body, resnext29_body, wideresnet_body
from oneof.nn.own import copy_module, redrawn_copy
from oneof.nn.pretrained import Architecture, is_pretrained, pretrained_body

Shape = tuple[int, ...]
Factory = Callable[[Shape, int], nn.Module]

_MOST_COMPILATIONS = 256
_OF_IMAGES = 4  # axes


class Network(nn.Module):
    """``head(body(x))``; with ``bf16`` the arithmetic inside is bfloat16 and the outputs keep x's type.

    With ``compiled`` the body goes through torch.compile, unless there are kernels for it, which are faster.

    In training no more than ``rows_at_once`` rows pass together, and of such a part P only inputs and outputs are
    kept. The gradient of a loss of outputs u(w) is ``sum_P (du_P / dw)^T dloss / du_P``: in the backward pass each
    part is computed once more and adds its term, whatever the loss makes of all outputs.
    """

    rows_at_once: int | None = None

    def __init__(self, body: nn.Module, head: nn.Module, bf16: bool = False, compiled: bool = False) -> None:
        super().__init__()
        self.body, self.head, self.bf16, self.compiled = body, head, bf16, compiled

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs (..., B, K) of x (..., B, *shape)."""
        return self._in_parts(self._outputs, x)

    def features(self, x: Tensor) -> Tensor:
        """Return what the head sees (..., B, F)."""
        return self._in_parts(self._features, x)

    def _in_parts(self, function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        axis = 0 if x.dim() == _OF_IMAGES else x.dim() - 2  # of the rows
        size = x.shape[axis] if self.rows_at_once is None or not self.training else self.rows_at_once
        if x.shape[axis] <= size:
            return function(x)
        parts = x.tensor_split(-(-x.shape[axis] // size), axis)  # as even as can be
        return torch.cat([self._kept_small(function, part) for part in parts], -2)

    def _kept_small(self, function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        def contexts() -> tuple[Any, Any]:
            return nullcontext(), self._on_copies()  # since running averages have moved the first time

        out: Tensor = checkpoint(function, x, use_reentrant=False, context_fn=contexts)
        return out

    @contextmanager
    def _on_copies(self) -> Iterator[None]:
        """Leave all buffers inside the block as they are: copies stand in their places."""
        kept = [(layer, *each) for layer in self.modules() for each in layer.named_buffers(recurse=False)]
        try:
            for layer, name, buffer in kept:
                setattr(layer, name, buffer.clone())
            yield
        finally:
            for layer, name, buffer in kept:
                setattr(layer, name, buffer)

    def _outputs(self, x: Tensor) -> Tensor:
        with self._autocast(x):
            out: Tensor = self.head(self._body(x))
        return out.to(x.dtype)

    def _features(self, x: Tensor) -> Tensor:
        with self._autocast(x):
            out = self._body(x)
        return out.to(x.dtype)

    def _autocast(self, x: Tensor) -> torch.autocast:
        kind = "cpu" if x.is_meta else x.device.type  # of meta tensors there are shapes alone
        return torch.autocast(kind, torch.bfloat16, enabled=self.bf16)

    def _body(self, x: Tensor) -> Tensor:
        if self.compiled and not (isinstance(self.body, LeNetBody | Stages) and self.body.is_fused(x)):
            return compiled_call()(self.body, x)
        out: Tensor = self.body(x)
        return out

    @torch.no_grad()
    def forward_frozen_stats(self, x: Tensor) -> Tensor:
        """Return the outputs in training mode but leave the running averages of batch normalisation alone."""
        tracking = [layer for layer in self.modules() if getattr(layer, "track_running_stats", False)]
        for layer in tracking:
            layer.track_running_stats = False  # type: ignore[assignment]
        try:
            out: Tensor = self(x)
            return out
        finally:
            for layer in tracking:
                layer.track_running_stats = True  # type: ignore[assignment]


@cache
def compiled_call() -> Callable[[nn.Module, Tensor], Tensor]:
    """Return a compiled ``module(x)``, the same for all networks: those that are alike are compiled once.

    ``Module.compile`` would leave layers of torch.nn itself as they are. By default torch gives up after eight
    compilations in a process, and goes on as if nothing had been asked for.
    """
    settings: Any = torch._dynamo.config  # noqa: SLF001  documented by this name
    settings.recompile_limit = max(settings.recompile_limit, _MOST_COMPILATIONS)
    return torch.compile(_call, dynamic=False)


def _call(module: nn.Module, x: Tensor) -> Tensor:
    out: Tensor = module(x)
    return out


def linear(shape: Shape, outputs: int) -> Network:
    """One linear layer on the flattened input."""
    return Network(_flatten(shape), nn.Linear(prod(shape), outputs))


def mlp(shape: Shape, outputs: int) -> Network:
    """One hidden layer of 256 rectified units."""
    body = nn.Sequential(_flatten(shape), nn.Linear(prod(shape), 256), nn.ReLU())
    return Network(body, nn.Linear(256, outputs))


def mlp5(shape: Shape, outputs: int) -> Network:
    """The five-layer network of PRODEN: 300, 301, 302 and 303 normalised, rectified units."""
    widths = [prod(shape), 300, 301, 302, 303]
    layers = [
        layer
        for inputs, width in pairwise(widths)
        for layer in (nn.Linear(inputs, width, bias=False), nn.BatchNorm1d(width), nn.ReLU())
    ]
    network = Network(nn.Sequential(_flatten(shape), *layers), nn.Linear(303, outputs))
    for layer in network.modules():
        if isinstance(layer, nn.Linear):
            nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(network.head.bias)  # type: ignore[arg-type]
    return network


def lenet(shape: Shape, outputs: int) -> Network:
    """The batch-normalised LeNet of the released IDGP code: 20 and 50 filters of 5 x 5, then 500 units.

    Without its biases in front of a batch normalisation, which takes them away again.
    """
    channels, height, width = _check_image("lenet", shape)
    body = LeNetBody(
        *_convolution(channels, 20),
        *_convolution(20, 50),
        nn.Flatten(),
        nn.Linear(50 * (height // 4) * (width // 4), 500, bias=False),
        nn.BatchNorm1d(500),
        nn.ReLU(),
    )
    return Network(body, nn.Linear(500, outputs))


def resnet18(shape: Shape, outputs: int) -> Network:
    """ResNet-18 with the stem for small images, as PiCO has it."""
    return Network(resnet18_body(_check_image("resnet18", shape)[0]), nn.Linear(512, outputs))


def resnet32(shape: Shape, outputs: int) -> Network:
    """ResNet-32, the paper's network for CIFAR."""
    return Network(resnet32_body(_check_image("resnet32", shape)[0]), nn.Linear(64, outputs))


def wideresnet(shape: Shape, outputs: int) -> Network:
    """WideResNet-34-10, as PLCR has it."""
    return Network(wideresnet_body(_check_image("wideresnet", shape)[0]), nn.Linear(640, outputs))


def resnext29(shape: Shape, outputs: int) -> Network:
    """ResNeXt-29 16 x 64d, the annotator of CIFAR-100."""
    return Network(resnext29_body(_check_image("resnext29", shape)[0]), nn.Linear(1024, outputs))


NETWORKS: dict[str, Factory] = {
    "linear": linear,
    "mlp": mlp,
    "mlp5": mlp5,
    "lenet": lenet,
    "resnet18": resnet18,
    "resnet32": resnet32,
    "wideresnet": wideresnet,
    "resnext29": resnext29,
}


def build(
    network: str | nn.Module | Factory,
    shape: Shape,
    outputs: int,
    bf16: bool = False,
    compiled: bool = False,
    redraw: bool = False,
    architecture: Architecture | None = None,
) -> Network:
    """Make the named network, or wrap what the user's factory makes; ``"auto"`` is lenet or mlp.

    Of a module it is a copy; with ``redraw`` a copy with other weights. A pretrained network by name has the
    weights of its hub, unless its ``architecture`` is given, and a new head.
    """
    if isinstance(network, str) and is_pretrained(network):
        _check_image(network, shape)
        body = pretrained_body(network, architecture)
        module: nn.Module = Network(body, nn.Linear(body.architecture["features"], outputs))
    elif isinstance(network, nn.Module):
        module = redrawn_copy(network) if redraw else copy_module(network)
    else:
        module = _factory(network, shape)(shape, outputs)
    if not isinstance(module, nn.Module):
        raise InputError(
            f"the factory of the network returned a {type(module).__name__}, but must return a torch.nn.Module"
        )
    if not isinstance(module, Network):
        module = Network(module, nn.Identity())
    module.bf16, module.compiled = bf16, compiled
    return module


def _factory(network: str | Factory, shape: Shape) -> Factory:
    if isinstance(network, str) and network == "auto":
        network = "lenet" if len(shape) == 3 else "mlp"
    factory = NETWORKS.get(network) if isinstance(network, str) else network
    if not callable(factory):
        raise InputError(
            f"network is {shown(network)} but must be one of {['auto', *NETWORKS]}, a pretrained one such as "
            "'timm:resnet18', a torch.nn.Module or a callable (input_shape, outputs) -> torch.nn.Module"
        )
    return factory


def is_small(network: str | nn.Module | Factory, shape: Shape) -> bool:
    """Tell whether one thread is faster than several: true of named networks without convolutions."""
    if not isinstance(network, str):  # an array would have no truth value below
        return False
    return network in ("linear", "mlp", "mlp5") or (network == "auto" and len(shape) != 3)


def _check_image(name: str, shape: Shape) -> Shape:
    """Refuse rows that are no images of at least 4 x 4 pixels."""
    if len(shape) != 3 or min(shape[1:]) < 4:
        raise InputError(
            f"the network {name!r} needs images of at least 4 x 4 pixels but the input has shape {shape}; "
            "pass X as (n, height, width) or (n, height, width, channels), or choose network='mlp'"
        )
    return shape


def _flatten(shape: Shape) -> nn.Module:
    """Flatten images; vectors pass as they are, with any axes before them."""
    return nn.Flatten() if len(shape) > 1 else nn.Identity()


def _convolution(inputs: int, outputs: int) -> tuple[nn.Module, ...]:
    """Convolve 5 x 5, normalise, halve the image, rectify: as if rectified first, for a quarter of the work."""
    convolution = nn.Conv2d(inputs, outputs, 5, padding=2, bias=False)
    return convolution, nn.BatchNorm2d(outputs), nn.MaxPool2d(2), nn.ReLU()
