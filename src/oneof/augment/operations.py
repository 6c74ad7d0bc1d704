"""Image operations on a whole batch, where every image has its own parameters.

Images x are (B, C, H, W) bytes and parameters are (B,); `reframe` and its parts take images of any type.
Operations follow Pillow's arithmetic. Nothing is read back from the device, and shapes are static.

`affine`, `lookup` and `enhance` hold several operations each, of which an image takes at most one while the others
are neutral: a batch in which every image takes another operation costs one transform, one look-up and one blend.
"""

from math import pi

import torch
from torch import Tensor
from torch.nn.functional import pad

from oneof.acceleration import faster


def to_bytes(x: Tensor) -> Tensor:
    """Round floats in [0, 1] to bytes in 0..255; bytes stay as they are."""
    return x if x.dtype == torch.uint8 else (255 * x.float()).round().clamp(0, 255).to(torch.uint8)


def from_bytes(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Undo `to_bytes`."""
    return x if dtype == torch.uint8 else (x.float() / 255).to(dtype)


def reframe(
    x: Tensor, mirrored: Tensor | None, top: Tensor, left: Tensor, hole: tuple[Tensor, Tensor, int] | None = None
) -> Tensor:
    """Mirror the images that are chosen, if any, shift the frame, then make a hole if there is to be one.

    See `flip` and `crop`. A hole (row, column, half) is black and reaches ``half`` pixels from its centre.
    """
    if (kernel := faster("reframe", x)) is not None:
        reframed: Tensor = kernel(x, mirrored, top, left, hole)
        return reframed
    x = crop(x if mirrored is None else flip(x, mirrored), top, left)
    if hole is None:
        return x
    row, column, half = hole
    return erase(x, row - half, column - half, row + half, column + half, fill=0)


def flip(x: Tensor, chosen: Tensor) -> Tensor:
    """Mirror the chosen images left to right."""
    return torch.where(_per_image(chosen), x.flip(-1), x)


def crop(x: Tensor, top: Tensor, left: Tensor) -> Tensor:
    """Shift the frame so that its corner lies at (top, left); what lies outside the image mirrors its inside.

    Offsets are less than a side in absolute value: with padding p, they run from -p to p.
    """
    height, width = x.shape[-2:]
    return _pick(x, _reflected(top, height)[:, :, None], _reflected(left, width)[:, None, :])


def erase(x: Tensor, top: Tensor, left: Tensor, bottom: Tensor, right: Tensor, fill: int) -> Tensor:
    """Fill the rows top <= i < bottom of the columns left <= j < right; a hole may reach over the border."""
    row, column = _pixels(x)
    rows = (row >= top[:, None]) & (row < bottom[:, None])  # (B, H)
    columns = (column >= left[:, None]) & (column < right[:, None])  # (B, W)
    return x.masked_fill(rows[:, None, :, None] & columns[:, None, None, :], fill)


def resized_crop(x: Tensor, top: Tensor, left: Tensor, height: Tensor, width: Tensor) -> Tensor:
    """Stretch a window of each image over the whole frame, bilinearly; windows are no larger than the image."""
    rows = _stretch(top, height, x.shape[-2])[:, None]
    columns = _stretch(left, width, x.shape[-1])[:, None]
    return (rows @ x.float() @ columns.mT + 0.5).to(torch.uint8)


def affine(
    x: Tensor,
    rotate: Tensor,
    shear_x: Tensor,
    shear_y: Tensor,
    translate_x: Tensor,
    translate_y: Tensor,
    fill: int,
) -> Tensor:
    """Rotate by degrees against the clock about the centre, shear, or translate by a share of the side.

    A pixel centred at column j and row i, or at v = j - W/2 and u = i - H/2, takes the byte at
    column W/2 + cos v - sin u + shear_x i + translate_x W, row H/2 + sin v + cos u + shear_y j + translate_y H,
    or ``fill`` outside the image. An image has at most one parameter that is not 0.
    """
    height, width = x.shape[-2:]
    row, column = _pixels(x)
    i, j = row + 0.5, column + 0.5
    u, v = i - height / 2, j - width / 2
    angle = (rotate * (pi / 180))[:, None]
    cos, sin = angle.cos(), angle.sin()
    right, down = translate_x * width + (width / 2 + 1), translate_y * height + (height / 2 + 1)
    columns = (shear_x[:, None] * i - sin * u)[:, :, None] + (cos * v + right[:, None])[:, None, :]  # (B, H, W)
    rows = (cos * u + down[:, None])[:, :, None] + (shear_y[:, None] * j + sin * v)[:, None, :]
    framed = pad(x, (1, 1, 1, 1), value=fill)  # hence + 1 above: the border stands for all that lies outside
    return _pick(framed, rows.long().clamp(0, height + 1), columns.long().clamp(0, width + 1))


def lookup(x: Tensor, posterize: Tensor, solarize: Tensor, autocontrast: Tensor, equalize: Tensor) -> Tensor:
    """Replace bytes by their entries in a table of 256 for each image and channel.

    Keep that many upper bits (neutral: 8), invert the levels from a threshold on (neutral: 256, all: 0), stretch
    the levels to 0..255 or level the histogram (both boolean). An image takes at most one of them.
    """
    levels = torch.arange(256, device=x.device)
    shift = 8 - posterize.long()[:, None, None]
    table = (levels >> shift) << shift
    table = torch.where(table < solarize[:, None, None], table, 255 - table)  # (B, 1, 256)
    index = x.flatten(2).long()
    low, high = index.aminmax(dim=2, keepdim=True)
    table = torch.where(autocontrast[:, None, None], _stretched(levels, low, high), table)
    table = torch.where(equalize[:, None, None], _levelled(levels, index, high), table)  # (B, C, 256)
    return table.to(torch.uint8).gather(2, index).view(x.shape)


def enhance(
    x: Tensor, brightness: Tensor, contrast: Tensor, color: Tensor, sharpness: Tensor | None = None
) -> Tensor:
    """Blend an image with its degenerate form d: d + factor (x - d), cut to a byte.

    d is black for brightness, the mean of the gray image for contrast, the gray image for color, and the smoothed
    image for sharpness. An image has at most one factor that is not 1.
    """
    luminance = gray(x).float()
    mean = (luminance.mean((2, 3), keepdim=True) + 0.5).floor()
    degenerate = torch.where(_per_image(color != 1), luminance, mean * _per_image(contrast != 1))
    factor = brightness * contrast * color
    if sharpness is not None:
        factor = factor * sharpness
        degenerate = torch.where(_per_image(sharpness != 1), smooth(x), degenerate)
    return (degenerate + _per_image(factor) * (x.float() - degenerate)).clamp(0, 255).to(torch.uint8)


def hue(x: Tensor, turn: Tensor) -> Tensor:
    """Turn the hue by a share of the colour circle; images without three channels have none.

    With value v = max(r, g, b), chroma c = v - min(r, g, b) and hue h in sixths of the circle, the red channel is
    v - c max(0, min(k, 4 - k, 1)) with k = 5 + h mod 6; green has 3 in the place of 5, and blue has 1.
    """
    if x.shape[1] != 3:
        return x
    red, green, blue = x.float().unbind(1)
    value = x.amax(1).float()
    chroma = value - x.amin(1)
    unit = chroma.clamp_min(1)
    others = torch.where(value == green, 2 + (blue - red) / unit, 4 + (red - green) / unit)
    sixths = torch.where(value == red, (green - blue) / unit, others) + 6 * turn[:, None, None]  # (B, H, W)
    channel = torch.arange(5, 0, -2, device=x.device)[:, None, None]
    k = (channel + sixths[:, None]) % 6  # (B, 3, H, W)
    return (value[:, None] - chroma[:, None] * torch.minimum(k, 4 - k).clamp(0, 1) + 0.5).to(torch.uint8)


def gray(x: Tensor) -> Tensor:
    """The luminance (B, 1, H, W) of three channels; other images are their own."""
    if x.shape[1] != 3:
        return x
    red, green, blue = x.int().unbind(1)
    return ((19595 * red + 38470 * green + 7471 * blue + 32768) >> 16).to(torch.uint8)[:, None]


def smooth(x: Tensor) -> Tensor:
    """Mean of each pixel, counted five times, and its eight neighbours, rounded, in floats; the border stays."""
    x = x.float()
    rows = x[:, :, :-2] + x[:, :, 1:-1] + x[:, :, 2:]
    box = rows[..., :-2] + rows[..., 1:-1] + rows[..., 2:]
    x[:, :, 1:-1, 1:-1] = ((box + 4 * x[:, :, 1:-1, 1:-1]) / 13 + 0.5).floor()
    return x


def _per_image(values: Tensor) -> Tensor:
    """Let one value for each image meet its pixels: (B,) becomes (B, 1, 1, 1)."""
    return values[:, None, None, None]


def _pixels(x: Tensor) -> tuple[Tensor, Tensor]:
    """Number the rows (H,) and the columns (W,)."""
    return torch.arange(x.shape[-2], device=x.device), torch.arange(x.shape[-1], device=x.device)


def _pick(x: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Compose images of the pixels at these places, (B, H, W) after broadcasting, in all channels alike."""
    index = rows * x.shape[-1] + columns
    picked = x.flatten(2).gather(2, index.flatten(1)[:, None].expand(-1, x.shape[1], -1))
    return picked.reshape(*x.shape[:2], *index.shape[1:])


def _reflected(start: Tensor, side: int) -> Tensor:
    """Number ``side`` pixels (B, side) from start on, folded at both ends: -1 becomes 1, side becomes side - 2."""
    position = (start[:, None] + torch.arange(side, device=start.device)).abs()
    return (side - 1) - (side - 1 - position).abs()


def _stretch(start: Tensor, length: Tensor, side: int) -> Tensor:
    """Weights (B, side, side) with which pixels of a window make up the pixels of the whole side."""
    pixel = torch.arange(side, device=start.device)
    source = ((pixel + 0.5) * (length[:, None] / side) - 0.5).clamp_min(0)
    source = start[:, None] + torch.minimum(source, length[:, None] - 1)  # (B, side)
    return (1 - (source[..., None] - pixel).abs()).clamp_min(0)


def _stretched(levels: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Tables that bring the lowest level to 0 and the highest to 255; a flat channel stays."""
    table = ((levels - low) * 255).clamp_min(0) // (high - low).clamp_min(1)
    return torch.where(high > low, table.clamp_max(255), levels)


def _levelled(levels: Tensor, index: Tensor, high: Tensor) -> Tensor:
    """Tables that even out the histogram, by Pillow's whole-number recipe."""
    counts = torch.zeros(*index.shape[:2], 256, dtype=torch.int64, device=index.device)
    counts.scatter_add_(2, index, torch.ones_like(index))
    below = pad(counts.cumsum(2), (1, -1))
    step = (index.shape[2] - counts.gather(2, high)) // 255
    return torch.where(step > 0, ((step // 2 + below) // step.clamp_min(1)).clamp_max(255), levels)
