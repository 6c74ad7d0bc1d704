"""Image operations against Pillow, image by image, and against loops."""

import colorsys

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageOps

from oneof.augment import operations as ops
from oneof.augment.policies import NUMBER, OPERATIONS, operate

SHAPES = {"photo": (3, 32, 32), "digit": (1, 28, 28), "wide": (3, 20, 37)}
every_shape = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)

# Magnitudes over the range of every policy and beyond; Pillow's call for each operation.
CASES = {
    "identity": ([0.0], lambda image, m: image),
    "rotate": ([-180, -90, -30, -6.6667, 0, 0.5, 20, 30, 45], lambda image, m: turned(image, m)),
    "shear_x": ([-0.3, -0.11, 0, 0.2333, 0.3], lambda image, m: moved(image, (1, m, 0, 0, 1, 0))),
    "shear_y": ([-0.3, -0.11, 0, 0.2667, 0.3], lambda image, m: moved(image, (1, 0, 0, m, 1, 0))),
    "translate_x": (
        [-2, -150 / 331, -0.3, 0, 0.01, 0.2, 150 / 331, 2],
        lambda image, m: moved(image, (1, 0, m * image.width, 0, 1, 0)),
    ),
    "translate_y": (
        [-2, -150 / 331, -0.3, 0, 0.01, 0.2, 150 / 331, 2],
        lambda image, m: moved(image, (1, 0, 0, 0, 1, m * image.height)),
    ),
    "posterize": ([1, 4, 5, 6.9, 7, 8], lambda image, m: ImageOps.posterize(image, int(m))),
    "solarize": ([0, 0.5, 1, 85.3333, 128, 199.1, 255, 256], ImageOps.solarize),
    "autocontrast": ([0.0], lambda image, m: ImageOps.autocontrast(image)),
    "equalize": ([0.0], lambda image, m: ImageOps.equalize(image)),
    "brightness": (
        [0, 0.05, 0.1, 0.7, 1, 1.3, 1.9, 5],
        lambda image, m: ImageEnhance.Brightness(image).enhance(m),
    ),
    "contrast": ([0, 0.05, 0.1, 0.7, 1, 1.3, 1.9, 5], lambda image, m: ImageEnhance.Contrast(image).enhance(m)),
    "color": ([0, 0.05, 0.1, 0.7, 1, 1.3, 1.9, 5], lambda image, m: ImageEnhance.Color(image).enhance(m)),
    "sharpness": ([0, 0.05, 0.1, 0.7, 1, 1.3, 1.9, 5], lambda image, m: ImageEnhance.Sharpness(image).enhance(m)),
}
GEOMETRIC = ("rotate", "shear_x", "shear_y", "translate_x", "translate_y")


def turned(image, degrees):
    return image.rotate(degrees, fillcolor=fill(image))


def moved(image, matrix):
    return image.transform(image.size, Image.Transform.AFFINE, matrix, fillcolor=fill(image))


def fill(image):
    return 128 if image.mode == "L" else (128,) * 3


def to_pillow(x):
    return Image.fromarray(x[0].numpy() if len(x) == 1 else x.permute(1, 2, 0).contiguous().numpy())


def from_pillow(image):
    array = torch.from_numpy(np.array(image))
    return array[None] if array.ndim == 2 else array.permute(2, 0, 1)


def images(shape, seed=0):
    """Noise, smooth images, dark and few-coloured ones, and flat ones: (10, C, H, W)."""
    generator = torch.Generator().manual_seed(seed)
    channels, height, width = shape
    noise = torch.rand(3, *shape, generator=generator)
    coarse = torch.rand(3, channels, 4, 4, generator=generator)
    soft = torch.nn.functional.interpolate(coarse, (height, width), mode="bicubic").clamp(0, 1)
    few = (torch.rand(1, *shape, generator=generator) < 0.01) * 0.4 + 0.2
    flat = torch.tensor([0, 0.5, 1])[:, None, None, None].expand(3, *shape)
    return (255 * torch.cat([noise, soft, few, flat])).to(torch.uint8)


def apply(name, x, magnitude):
    count = len(x)
    return operate(x, torch.full((count, 1), NUMBER[name]), torch.full((count, 1), float(magnitude)), fill=128)


@every_shape
@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_are_those_of_pillow(name, shape):
    magnitudes, pillow = CASES[name]
    x = images(shape)
    for magnitude in magnitudes:
        expected = torch.stack([from_pillow(pillow(to_pillow(image), magnitude)) for image in x])
        difference = (apply(name, x, magnitude).int() - expected.int()).abs()
        if name in GEOMETRIC:
            assert (difference == 0).float().mean((1, 2, 3)).min() >= 0.99, magnitude
        else:
            assert difference.max() <= 1, magnitude
        if name not in ("rotate", "autocontrast"):
            assert difference.max() == 0, magnitude


@pytest.mark.parametrize("name", [name for name in OPERATIONS if name not in ("autocontrast", "equalize")])
def test_neutral_magnitudes_change_nothing(name):
    x = images(SHAPES["photo"])
    assert torch.equal(apply(name, x, OPERATIONS[name]), x)


def test_autocontrast_reaches_both_ends():
    x = images(SHAPES["photo"])[:7]  # those that are not flat
    stretched = apply("autocontrast", x, 0).flatten(2)
    assert (stretched.amin(2) == 0).all()
    assert (stretched.amax(2) == 255).all()


def test_solarizing_from_zero_on_inverts():
    x = images(SHAPES["photo"])
    assert torch.equal(apply("solarize", x, 0), 255 - x)


@every_shape
def test_every_image_takes_its_own_operation(shape):
    """A batch of mixed operations gives what each gives alone."""
    x = images(shape)[torch.arange(140) % 10]
    names = [list(OPERATIONS)[i % 14] for i in range(140)]
    magnitudes = [CASES[name][0][i % len(CASES[name][0])] for i, name in enumerate(names)]
    numbers = torch.tensor([NUMBER[name] for name in names])
    mixed = operate(x, numbers[:, None], torch.tensor(magnitudes)[:, None], fill=128)
    for i, (name, magnitude) in enumerate(zip(names, magnitudes, strict=True)):
        assert torch.equal(mixed[i : i + 1], apply(name, x[i : i + 1], magnitude)), name


def test_fill():
    x = images(SHAPES["photo"])
    away = torch.full((len(x), 1), NUMBER["translate_x"])
    assert (operate(x, away, torch.full((len(x), 1), 2.0), fill=7) == 7).all()


@every_shape
def test_crops_are_those_of_a_reflected_border(shape):
    height, width = shape[1:]
    x = torch.rand(81, *shape)
    top, left = (torch.arange(81) // 9) - 4, (torch.arange(81) % 9) - 4
    padded = np.pad(x.numpy(), ((0, 0), (0, 0), (4, 4), (4, 4)), mode="reflect")
    for image, i, j, whole in zip(ops.crop(x, top, left), top + 4, left + 4, padded, strict=True):
        assert np.array_equal(image.numpy(), whole[:, i : i + height, j : j + width])
    as_bytes = images(shape)
    shifted = ops.crop(as_bytes, top[:10], left[:10])
    assert torch.equal(shifted.float(), ops.crop(as_bytes.float(), top[:10], left[:10]))


def test_crops_of_tiny_images():
    x = torch.tensor([[[[1, 2]]]], dtype=torch.uint8)
    zero = torch.tensor([0])
    assert ops.crop(x, zero, torch.tensor([1])).tolist() == [[[[2, 1]]]]
    assert ops.crop(x, zero, torch.tensor([-1])).tolist() == [[[[2, 1]]]]


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32], ids=str)
def test_flip_and_erase(dtype):
    x = images((3, 9, 7)).to(dtype)
    chosen = torch.arange(10) % 3 == 0
    for before, after, mirrored in zip(x, ops.flip(x, chosen), chosen, strict=True):
        assert torch.equal(after, before[:, :, [*range(7)][::-1]] if mirrored else before)
    box = [
        torch.tensor(values) for values in ([-3] * 10, range(10), range(10), [5] * 10)
    ]  # top, left, bottom, right
    for i, (before, after) in enumerate(zip(x, ops.erase(x, *box, fill=9), strict=True)):
        expected = before.clone()
        expected[:, :i, i:5] = 9
        assert torch.equal(after, expected)
        assert after.dtype == dtype


@every_shape
def test_resized_crops_are_those_of_pillow(shape):
    """Pillow rounds between its two passes: one level of difference."""
    rng = np.random.default_rng(0)
    _, height, width = shape
    x = images(shape)[torch.arange(60) % 10]
    h, w = rng.integers(1, height + 1, 60), rng.integers(1, width + 1, 60)
    h[0], w[0] = height, width
    top, left = rng.integers(0, height - h + 1), rng.integers(0, width - w + 1)
    stretched = ops.resized_crop(x, *(torch.from_numpy(side).float() for side in (top, left, h, w)))
    assert torch.equal(stretched[0], x[0])
    for before, after, i, j, m, n in zip(x, stretched, top, left, h, w, strict=True):
        window = to_pillow(before).crop((j, i, j + n, i + m))
        expected = from_pillow(window.resize((width, height), Image.Resampling.BILINEAR))
        assert (after.int() - expected.int()).abs().max() <= 1
        exact = torch.nn.functional.interpolate(
            before[None, :, i : i + m, j : j + n].double(), (height, width), mode="bilinear"
        )[0]
        assert (after - exact).abs().max() <= 0.501


def test_hue_turns_exactly():
    """Within one level of colorsys in float64."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(256, (5, 3, 6, 6), dtype=torch.uint8, generator=generator)
    x[:, 1, 0], x[:, :, 1], x[:, 2, 2] = x[:, 0, 0], 77, x[:, 1, 2]  # ties, grays
    turns = torch.tensor([-0.5, -0.1, 0, 0.033, 0.1])
    turned = ops.hue(x, turns)
    for before, after, turn in zip(x, turned, turns.tolist(), strict=True):
        for i, j in np.ndindex(6, 6):
            h, s, v = colorsys.rgb_to_hsv(*(before[:, i, j] / 255).double().tolist())
            expected = 255 * np.array(colorsys.hsv_to_rgb((h + turn) % 1, s, v))
            assert np.abs(after[:, i, j].numpy() - expected).max() <= 0.51
    assert torch.equal(turned[2], x[2])


def test_hue_is_near_that_of_pillow():
    """Pillow keeps hue and saturation in bytes: there and back alone costs up to 6 levels."""
    x = images(SHAPES["photo"])
    for turn in (-0.1, -0.04, 0.02, 0.1):
        turned = ops.hue(x, torch.full((len(x),), turn))
        for before, after in zip(x, turned, strict=True):
            h, s, v = to_pillow(before).convert("HSV").split()
            h = h.point(lambda level: (level + round(255 * turn)) % 256)  # noqa: B023
            expected = from_pillow(Image.merge("HSV", (h, s, v)).convert("RGB"))
            difference = (after.int() - expected.int()).abs()
            assert difference.max() <= 14
            assert difference.float().mean() <= 2


@every_shape
def test_gray_is_that_of_pillow(shape):
    x = images(shape)
    expected = torch.stack([from_pillow(to_pillow(image).convert("L")) for image in x])
    assert torch.equal(ops.gray(x), expected)


def test_one_channel_has_no_colour():
    x = images(SHAPES["digit"])
    assert torch.equal(apply("color", x, 0.3), x)
    assert torch.equal(ops.hue(x, torch.full((len(x),), 0.3)), x)
    assert torch.equal(ops.gray(x), x)


@pytest.mark.parametrize("shape", [(3, 1, 1), (1, 2, 5), (3, 3, 1)], ids=str)
@pytest.mark.parametrize("name", OPERATIONS)
def test_tiny_images(name, shape):
    x = images(shape)
    magnitude = CASES[name][0][-1]
    expected = torch.stack([from_pillow(CASES[name][1](to_pillow(image), magnitude)) for image in x])
    assert (apply(name, x, magnitude).int() - expected.int()).abs().max() <= 1


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
def test_bytes_survive_floats(dtype):
    levels = torch.arange(256, dtype=torch.uint8)
    floats = ops.from_bytes(levels, dtype)
    assert floats.dtype == dtype
    assert torch.equal(ops.to_bytes(floats), levels)
    assert ops.to_bytes(torch.tensor([-0.5, 1.5], dtype=dtype)).tolist() == [0, 255]
