"""Deep convolutional networks for images: ResNet-18 and -32, WideResNet-34-10 and ResNeXt-29.

All keep the resolution of a small image in the stem (3 x 3, stride 1), halve it at two or three stages and average
what is left: these averages are the features. Convolutions start from normal(0, sqrt(2 / (k k outputs))).
"""

from collections.abc import Callable
from itertools import pairwise

from torch import Tensor, nn

from oneof.acceleration import faster

Block = Callable[[int, int, int], nn.Module]  # (inputs, outputs, stride) -> module


class Residual(nn.Module):
    """``relu(main(x) + shortcut(x))``."""

    def __init__(self, main: nn.Sequential, shortcut: nn.Module) -> None:
        super().__init__()
        self.main, self.shortcut = main, shortcut

    def forward(self, x: Tensor) -> Tensor:
        """Return the rectified sum."""
        if (fused := faster("residual block", x, self)) is not None:
            return fused(x)  # type: ignore[no-any-return]
        out: Tensor = (self.main(x) + self.shortcut(x)).relu_()
        return out


class Stages(nn.Sequential):
    """Layers one after the other; as many of the first as can be are computed in few passes over memory."""

    def is_fused(self, x: Tensor) -> bool:
        """Tell whether all layers are computed in fewer passes than they are written in."""
        return faster("all stages", x, self) is not None

    def forward(self, x: Tensor) -> Tensor:
        """Return the output of the last layer."""
        layers = list(self)
        if (fused := faster("first stages", x, self)) is not None:
            x, layers = fused(x)
        for layer in layers:
            x = layer(x)
        return x


class LeNetBody(nn.Sequential):
    """Two blocks of convolution, normalisation, pooling and activation, then normalised, rectified units."""

    def is_fused(self, x: Tensor) -> bool:
        """Tell whether all layers are computed in fewer passes than they are written in."""
        return faster("lenet", x, self) is not None

    def forward(self, x: Tensor) -> Tensor:
        """Return the output of the last layer."""
        if (fused := faster("lenet", x, self)) is not None:
            return fused(x)  # type: ignore[no-any-return]
        for layer in self:
            x = layer(x)
        return x


class Preactivated(nn.Module):
    """``main(a) + shortcut(x)`` with ``a = relu(normalise(x))``; a shortcut that changes the shape sees a."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.activate = nn.Sequential(nn.BatchNorm2d(inputs), nn.ReLU())
        self.main = nn.Sequential(
            *_normalised(inputs, outputs, 3, stride), nn.ReLU(), _convolution(outputs, outputs, 3)
        )
        changes = stride != 1 or inputs != outputs
        self.shortcut = _convolution(inputs, outputs, 1, stride) if changes else None

    def forward(self, x: Tensor) -> Tensor:
        """Return the sum."""
        a = self.activate(x)
        out: Tensor = self.main(a) + (x if self.shortcut is None else self.shortcut(a))
        return out


def basic(inputs: int, outputs: int, stride: int) -> Residual:
    """Two convolutions of 3 x 3 (He et al., CVPR 2016)."""
    main = (*_normalised(inputs, outputs, 3, stride), nn.ReLU(), *_normalised(outputs, outputs, 3))
    return Residual(nn.Sequential(*main), _projection(inputs, outputs, stride))


def grouped(inputs: int, outputs: int, stride: int) -> Residual:
    """A bottleneck whose middle convolution has 16 groups (Xie et al., CVPR 2017); 64 filters a group at 256."""
    width = 4 * outputs
    main = (
        *_normalised(inputs, width, 1),
        nn.ReLU(),
        *_normalised(width, width, 3, stride, groups=16),
        nn.ReLU(),
        *_normalised(width, outputs, 1),
    )
    return Residual(nn.Sequential(*main), _projection(inputs, outputs, stride))


def resnet18_body(channels: int) -> nn.Module:
    """Four stages of two blocks, 64 to 512 filters; 512 features."""
    return _body([*_normalised(channels, 64, 3), nn.ReLU()], basic, 64, [64, 128, 256, 512], blocks=2)


def resnet32_body(channels: int) -> nn.Module:
    """Three stages of five blocks, 16 to 64 filters; 64 features."""
    return _body([*_normalised(channels, 16, 3), nn.ReLU()], basic, 16, [16, 32, 64], blocks=5)


def wideresnet_body(channels: int) -> nn.Module:
    """WideResNet-34-10 (Zagoruyko & Komodakis, BMVC 2016): three stages of five blocks; 640 features."""
    last = [nn.BatchNorm2d(640), nn.ReLU()]
    return _body([_convolution(channels, 16, 3)], Preactivated, 16, [160, 320, 640], blocks=5, last=last)


def resnext29_body(channels: int) -> nn.Module:
    """ResNeXt-29, 16 x 64d: three stages of three blocks, 256 to 1024 filters; 1024 features."""
    return _body([*_normalised(channels, 64, 3), nn.ReLU()], grouped, 64, [256, 512, 1024], blocks=3)


def _body(
    stem: list[nn.Module],
    block: Block,
    inputs: int,
    widths: list[int],
    blocks: int,
    last: list[nn.Module] | None = None,
) -> nn.Module:
    """Stack a stem and the stages, each but the first halving the image, and average."""
    layers = list(stem)
    for stage, (before, width) in enumerate(pairwise([inputs, *widths])):
        layers.append(block(before, width, 1 if stage == 0 else 2))
        layers += [block(width, width, 1) for _ in range(blocks - 1)]
    return Stages(*layers, *(last or []), nn.AdaptiveAvgPool2d(1), nn.Flatten())


def _convolution(inputs: int, outputs: int, size: int, stride: int = 1, groups: int = 1) -> nn.Conv2d:
    layer = nn.Conv2d(inputs, outputs, size, stride, size // 2, groups=groups, bias=False)
    nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
    return layer


def _normalised(
    inputs: int, outputs: int, size: int, stride: int = 1, groups: int = 1
) -> tuple[nn.Module, nn.Module]:
    return _convolution(inputs, outputs, size, stride, groups), nn.BatchNorm2d(outputs)


def _projection(inputs: int, outputs: int, stride: int) -> nn.Module:
    """The shortcut: the identity, or a normalised 1 x 1 convolution where the shape changes."""
    if stride == 1 and inputs == outputs:
        return nn.Identity()
    return nn.Sequential(*_normalised(inputs, outputs, 1, stride))
