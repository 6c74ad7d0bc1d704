"""Views: several versions of each example, every one with its own random draw, on any device.

``PIPELINES`` maps a name to a function ``(x, flip) -> x`` that keeps shape and type, for images (B, C, H, W) of
bytes or of floats in [0, 1], or for rows of standardised features. Names joined by "+" make several views at once:
``make_views(x, "weak+strong+strong", flip=True)``. All draws come from torch's generator of x's device.
"""

from collections.abc import Callable
from math import ceil, log

import torch
from torch import Tensor
from torch.nn.functional import pad

from oneof.augment import draws
from oneof.augment import operations as ops
from oneof.augment.policies import auto_augment, rand_augment
from oneof.errors import InputError

JITTER = 0.1


def make_views(x: Tensor, names: str, flip: bool) -> list[Tensor]:
    """Make one view for each name.

    Parameters
    ----------
    x : Tensor
        Images (B, C, H, W) of bytes or of floats in [0, 1], or rows of standardised features.
    names : str
        Names of ``PIPELINES`` joined by "+", such as "weak+strong+strong".
    flip : bool
        Whether images may be mirrored: True for photographs, False for digits and letters.

    Returns
    -------
    list of Tensor
        The views, each of x's shape and type.
    """
    if not is_views(names):
        raise InputError(f"views is {names!r}, but must be one or more of {[*PIPELINES]} joined by '+'")
    wanted = names.split("+")
    # Views of one name are made in one go: on a GPU, most of the time is spent on starting kernels.
    made = {name: iter(_made(name, x, wanted.count(name), flip)) for name in dict.fromkeys(wanted)}
    return [next(made[name]) for name in wanted]


def _made(name: str, x: Tensor, count: int, flip: bool) -> tuple[Tensor, ...]:
    """Make so many views of one name."""
    with draws.for_copies(count):
        return torch.tensor_split(PIPELINES[name](torch.cat([x] * count), flip), count)


def is_views(value: object) -> bool:
    """Tell whether a value is made of names of ``PIPELINES`` joined by "+"."""
    return isinstance(value, str) and all(name in PIPELINES for name in value.split("+"))


def plain(x: Tensor, flip: bool) -> Tensor:
    """Return x as it is."""
    return x


def noisy(x: Tensor, flip: bool) -> Tensor:
    """Add Gaussian noise to standardised features, a tenth of their deviation."""
    if not x.is_floating_point():
        raise InputError(
            f"x is of type {x.dtype}, but 'jitter' is for standardised features: use 'weak' for images"
        )
    return x + JITTER * draws.randn_like(x)


def weak(x: Tensor, flip: bool) -> Tensor:
    """Mirror half of the images, and shift each by up to an eighth of its sides with reflected borders."""
    return ops.reframe(x, *_random_frame(x, flip))


def strong(x: Tensor, flip: bool) -> Tensor:
    """Go on from "weak" with Cutout and, on three channels, with AutoAugment's policy for CIFAR-10."""
    x = ops.reframe(x, *_random_frame(x, flip), _random_hole(x))
    return ops.from_bytes(auto_augment(ops.to_bytes(x)), x.dtype) if x.shape[1] == 3 else x


def pico_weak(x: Tensor, flip: bool) -> Tensor:
    """Stretch a random window, mirror half, jitter the colours of 80 % and take them from 20 % of the images."""
    window = _random_flip(_random_window(x), flip)
    jittered = torch.where(_chance(x, 0.8), _colour_jitter(window), window)
    return ops.from_bytes(torch.where(_chance(x, 0.2), ops.gray(jittered), jittered), x.dtype)


def pico_strong(x: Tensor, flip: bool) -> Tensor:
    """Stretch a random window, mirror half, apply three random operations, fill a random square with gray."""
    return ops.from_bytes(_gray_square(rand_augment(_random_flip(_random_window(x), flip), 3)), x.dtype)


PIPELINES: dict[str, Callable[[Tensor, bool], Tensor]] = {
    "plain": plain,
    "jitter": noisy,
    "weak": weak,
    "strong": strong,
    "pico-weak": pico_weak,
    "pico-strong": pico_strong,
}


def _check_images(x: Tensor) -> None:
    """Refuse what is not a batch of images."""
    if x.ndim != 4 or not (x.dtype == torch.uint8 or x.is_floating_point()):
        raise InputError(
            f"x has shape {tuple(x.shape)} and type {x.dtype}, but this view is for images (batch, channels, "
            "height, width) of bytes or floats: use 'plain' or 'jitter' for tables"
        )


def _uniform(x: Tensor) -> Tensor:
    """Draw a number in [0, 1) for each image."""
    return draws.rand(x)


def _chance(x: Tensor, probability: float) -> Tensor:
    """Choose images (B, 1, 1, 1), each with this probability."""
    return (_uniform(x) < probability)[:, None, None, None]


def _random_flip(x: Tensor, flip: bool) -> Tensor:
    """Mirror half of the images, where that is allowed."""
    return ops.flip(x, _uniform(x) < 0.5) if flip else x


def _random_frame(x: Tensor, flip: bool) -> tuple[Tensor | None, Tensor, Tensor]:
    """Draw which images are mirrored, where that is allowed, and how far each is shifted down and to the right."""
    _check_images(x)
    height, width = x.shape[-2:]
    mirrored = _uniform(x) < 0.5 if flip else None
    return mirrored, _random_shift(x, height), _random_shift(x, width)


def _random_shift(x: Tensor, side: int) -> Tensor:
    """Draw offsets of up to an eighth of the side, both ways: 4 pixels for sides of 28 and 32."""
    padding = min(ceil(side / 8), side - 1)  # a reflected border is narrower than the image
    return draws.randint(x, -padding, padding + 1)


def _random_hole(x: Tensor) -> tuple[Tensor, Tensor, int]:
    """Draw the centre of a square half as wide as the shorter side: 16 pixels for 28 and 32 (Cutout)."""
    height, width = x.shape[-2:]
    row = draws.randint(x, 0, height)
    column = draws.randint(x, 0, width)
    return row, column, 2 * ceil(min(height, width) / 8)


def _random_window(x: Tensor) -> Tensor:
    """Stretch a window of 20 to 100 % of the area with sides in a ratio of 3:4 to 4:3 over the frame, in bytes.

    The first of ten draws that fits is taken; if none does, the largest window in the frame with such a ratio.
    """
    _check_images(x)
    height, width = x.shape[-2:]
    area = height * width * (0.2 + 0.8 * draws.rand(x, 10))
    ratio = ((2 * draws.rand(x, 10) - 1) * log(4 / 3)).exp()
    heights, widths = (area / ratio).sqrt().round(), (area * ratio).sqrt().round()
    fits = (heights >= 1) & (heights <= height) & (widths >= 1) & (widths <= width)
    first = pad(fits, (0, 1), value=True).to(torch.uint8).argmax(1, keepdim=True)
    largest = min(height, round(width * 4 / 3)), min(width, round(height * 4 / 3))
    h = pad(heights, (0, 1), value=largest[0]).gather(1, first)[:, 0]
    w = pad(widths, (0, 1), value=largest[1]).gather(1, first)[:, 0]
    top, left = (_uniform(x) * (height - h + 1)).floor(), (_uniform(x) * (width - w + 1)).floor()
    return ops.resized_crop(ops.to_bytes(x), top, left, h, w)


def _colour_jitter(x: Tensor) -> Tensor:
    """Change brightness, contrast and colour by up to 40 % and turn the hue by up to a tenth, in random order."""
    factor = 0.6 + 0.8 * draws.rand(x, 3)
    turn = 0.2 * _uniform(x) - 0.1
    order = draws.rand(x, 4).argsort(1)
    for change in order.unbind(1):  # every image has an order of its own: each step offers it all four changes
        factors = torch.where(change[:, None] == torch.arange(3, device=x.device), factor, 1)
        x = ops.enhance(x, *factors.unbind(1))
        x = ops.hue(x, torch.where(change == 3, turn, 0))
    return x


def _gray_square(x: Tensor) -> Tensor:
    """Fill a square of up to half the width with gray, as the released code of PiCO draws it."""
    height, width = x.shape[-2:]
    side = 0.5 * width * _uniform(x)
    top = (_uniform(x) * height - side / 2).clamp_min(0).floor()
    left = (_uniform(x) * width - side / 2).clamp_min(0).floor()
    return ops.erase(x, top, left, (top + side).floor() + 1, (left + side).floor() + 1, fill=123)
