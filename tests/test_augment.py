"""Views: their distributions, their draws, and what they refuse."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw, ImageEnhance
from scipy import stats

from oneof.augment import operations as ops
from oneof.augment import policies
from oneof.augment import views as augment
from oneof.augment.policies import NUMBER, OPERATIONS, RANGES, SUB_POLICIES, auto_augment, rand_augment, setting
from oneof.augment.views import PIPELINES, is_views, make_views

IMAGE_PIPELINES = ["plain", "weak", "strong", "pico-weak", "pico-strong"]
RANDOM = IMAGE_PIPELINES[1:]
every_image_pipeline = pytest.mark.parametrize("name", IMAGE_PIPELINES)
every_random_pipeline = pytest.mark.parametrize("name", RANDOM)


@pytest.fixture(autouse=True)
def _seed():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


def noise(*shape):
    return torch.randint(256, shape, dtype=torch.uint8)


def uniform(counts):
    """Tell whether counts may come from a uniform distribution, at a level of one in ten thousand."""
    return stats.chisquare(counts).pvalue > 1e-4


@every_image_pipeline
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(
    "shape",
    [(4, 3, 32, 32), (1, 3, 32, 32), (4, 1, 28, 28), (4, 3, 20, 37), (2, 4, 9, 5), (2, 3, 1, 1)],
    ids=str,
)
def test_views_keep_shape_and_type(name, dtype, shape):
    x = ops.from_bytes(noise(*shape), dtype)
    view = PIPELINES[name](x, True)
    assert (view.shape, view.dtype) == (x.shape, x.dtype)
    assert view.min() >= 0
    assert view.max() <= (255 if dtype == torch.uint8 else 1)


@every_image_pipeline
@pytest.mark.parametrize("channels", [1, 3])
def test_bytes_and_floats_agree(name, channels):
    x = noise(64, channels, 16, 16)
    views = []
    for images in (x, ops.from_bytes(x, torch.float32)):
        torch.manual_seed(1)
        views.append(PIPELINES[name](images, True))
    assert torch.equal(views[0], ops.to_bytes(views[1]))


@every_random_pipeline
def test_the_seed_decides(name):
    x = noise(32, 3, 16, 16)
    views = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        views.append(PIPELINES[name](x, True))
    assert torch.equal(views[0], views[1])
    assert not torch.equal(views[0], views[2])


@every_random_pipeline
def test_every_image_has_its_own_draw(name):
    x = noise(1, 3, 32, 32).expand(64, -1, -1, -1)
    assert len(torch.unique(PIPELINES[name](x, True).flatten(1), dim=0)) >= 40  # of 162 that "weak" can make


@every_random_pipeline
def test_images_do_not_see_each_other(name):
    x = noise(16, 3, 16, 16)
    torch.manual_seed(1)
    before = PIPELINES[name](x, True)
    x[5] = 255 - x[5]
    torch.manual_seed(1)
    after = PIPELINES[name](x, True)
    same = (before == after).flatten(1).all(1)
    assert same.tolist() == [i != 5 for i in range(16)]


@every_image_pipeline
@pytest.mark.parametrize("channels", [1, 3])
def test_nothing_is_read_back(name, channels):
    """Tensors without values refuse to be read, and to meet those of another device."""
    x = torch.empty(8, channels, 32, 32, dtype=torch.uint8, device="meta")
    assert PIPELINES[name](x, True).device == x.device


def test_several_views():
    x = noise(8, 3, 16, 16)
    views = make_views(x, "weak+plain+strong+strong", True)
    assert len(views) == 4
    assert torch.equal(views[1], x)
    assert not torch.equal(views[2], views[3])
    assert all(view.shape == x.shape for view in views)


def test_views_of_tables():
    x = torch.randn(2, 500, 40, dtype=torch.float64)
    plain, first, second = make_views(x, "plain+jitter+jitter", True)
    assert torch.equal(plain, x)
    for noise_ in (first - x, second - x):
        assert stats.kstest(noise_.flatten().numpy(), "norm", (0, 0.1)).pvalue > 1e-4
    assert abs(((first - x) * (second - x)).mean()) < 5 * 0.01 / 40000**0.5


@pytest.mark.parametrize("name", RANDOM)
@pytest.mark.parametrize(
    "x", [torch.zeros(4, 8), torch.zeros(3, 8, 8), torch.zeros(2, 4, 3, 8, 8), torch.zeros(2, 3, 8, 8).int()],
    ids=["table", "3 axes", "5 axes", "int32"],
)  # fmt: skip
def test_image_views_refuse_what_is_no_image(name, x):
    with pytest.raises(ValueError, match=r"x has shape \(.*\) and type torch\.\w+, but this view is for images"):
        make_views(x, name, True)


def test_jitter_refuses_bytes():
    with pytest.raises(ValueError, match=r"x is of type torch.uint8, but 'jitter' is for standardised features"):
        make_views(noise(2, 3, 8, 8), "plain+jitter", True)


def test_names():
    assert all(is_views(name) for name in PIPELINES)
    assert is_views("pico-weak+pico-strong")
    for value in ("", "+", "weak+", "weak +strong", "mirror", "weak+mirror", None, 3, ["weak"]):
        assert not is_views(value)
    with pytest.raises(
        ValueError, match=r"views is 'weak\+mirror', but must be one or more of \['plain', 'jitter'"
    ):
        make_views(noise(1, 3, 8, 8), "weak+mirror", True)


@pytest.mark.parametrize("side", [32, 28])
def test_weak_views_are_shifted_and_mirrored_uniformly(side):
    """Every pixel of the image is unique, so that the shift and the mirror can be read off the view."""
    x = (torch.arange(side * side).view(side, side) / side**2)[None, None].expand(20000, -1, -1, -1)
    lookup = {}
    for mirrored in (False, True):
        image = x[0, 0].numpy()[:, ::-1] if mirrored else x[0, 0].numpy()
        padded = np.pad(image, 4, mode="reflect")
        for i, j in np.ndindex(9, 9):
            lookup[padded[i : i + side, j : j + side].tobytes()] = (mirrored, i, j)
    seen = Counter(lookup[view.numpy().tobytes()] for view in PIPELINES["weak"](x, True)[:, 0])
    assert uniform([seen[key] for key in product((False, True), range(9), range(9))])
    unmirrored = {lookup[view.numpy().tobytes()] for view in PIPELINES["weak"](x[:2000], False)[:, 0]}
    assert unmirrored == set(product((False,), range(9), range(9)))


@every_random_pipeline
def test_flip_mirrors_half_or_none(name, monkeypatch):
    chosen = []
    mirror = ops.flip
    monkeypatch.setattr(ops, "flip", lambda x, these: (chosen.append(these), mirror(x, these))[1])
    PIPELINES[name](noise(4000, 1, 4, 4), False)
    assert not chosen
    PIPELINES[name](noise(4000, 1, 4, 4), True)
    assert len(chosen) == 1
    assert abs(chosen[0].float().mean() - 0.5) < 5 * 0.5 / 4000**0.5


@pytest.mark.parametrize(("height", "width", "length"), [(32, 32, 16), (28, 28, 16), (20, 37, 12)], ids=str)
def test_cutout_is_centred_uniformly(height, width, length):
    """White stays white in a weak view, and one channel has no AutoAugment: the black square is what is left."""
    views = PIPELINES["strong"](torch.ones(20000, 1, height, width), True)[:, 0]
    hole = views == 0
    rows, columns = hole.any(2), hole.any(1)
    assert torch.equal(hole, rows[:, :, None] & columns[:, None, :])
    for mask, side in ((rows, height), (columns, width)):
        first, last = mask.int().argmax(1), side - mask.flip(1).int().argmax(1)
        assert torch.equal(mask.sum(1), last - first)
        centre = torch.where(first > 0, first + length // 2, last - length // 2)
        assert torch.equal(first, (centre - length // 2).clamp_min(0))
        assert torch.equal(last, (centre + length // 2).clamp_max(side))
        assert uniform(torch.bincount(centre, minlength=side))


def record(monkeypatch, policy, count, expected_fill):
    """Let a policy draw; return the operations and magnitudes (count, steps) it would have applied."""
    drawn = []

    def operate(x, operations, magnitudes, fill):
        assert fill == expected_fill
        drawn.extend((operations.int().tolist(), magnitudes.tolist()))
        return x

    monkeypatch.setattr(policies, "operate", operate)
    policy(torch.zeros(count, 3, 1, 1, dtype=torch.uint8))
    return drawn


def test_levels_of_autoaugment():
    """The ranges of the widely used code: level 0 is neutral, level 9 is the end."""
    ends = {"rotate": 30, "shear_x": 0.3, "shear_y": 0.3, "translate_x": 150 / 331, "translate_y": 150 / 331}
    for name, end in ends.items():
        assert [setting(name, level) for level in (0, 9)] == [(name, 0, 0), (name, 0, end)]
    assert [setting("solarize", level) for level in (0, 9)] == [("solarize", 256, 0), ("solarize", 0, 0)]
    assert [setting("posterize", level)[1] for level in range(10)] == [8, 8, 7, 7, 6, 6, 5, 5, 4, 4]
    assert setting("solarize", 3)[1] == pytest.approx(170.667, abs=1e-3)
    assert setting("invert", 7) == ("solarize", 0, 0)
    for name in ("brightness", "contrast", "color", "sharpness"):
        assert setting(name, 6) == (name, 1, pytest.approx(0.6))


def test_table_of_autoaugment():
    """Sums over the printed table: how often each operation occurs, its probabilities and levels."""
    entries = [entry for sub_policy in SUB_POLICIES for entry in sub_policy]
    assert len(SUB_POLICIES) == 25
    totals = {
        name: (len(found), round(sum(p for _, p, _ in found), 1), sum(level for *_, level in found))
        for name in sorted({name for name, *_ in entries})
        for found in [[entry for entry in entries if entry[0] == name]]
    }
    assert totals == {
        "autocontrast": (7, 5.0, 26),
        "brightness": (4, 2.3, 25),
        "color": (5, 2.9, 27),
        "contrast": (2, 0.8, 13),
        "equalize": (9, 4.7, 41),
        "invert": (3, 0.2, 13),
        "posterize": (1, 0.3, 7),
        "rotate": (1, 0.7, 2),
        "sharpness": (5, 2.8, 24),
        "shear_y": (2, 0.7, 15),
        "solarize": (4, 1.9, 18),
        "translate_x": (2, 0.8, 17),
        "translate_y": (5, 3.4, 39),
    }


def test_frequencies_of_autoaugment(monkeypatch):
    """Both operations of an image, with their magnitudes, occur together as often as the table says."""
    count = 50000
    expected = Counter()
    for sub_policy in SUB_POLICIES:
        outcomes = []
        for name, probability, level in sub_policy:
            operation, centre, spread = setting(name, level)
            signed = [(probability / 2, (operation, centre + sign * spread)) for sign in (-1, 1)]
            outcomes.append([(1 - probability, ("identity", 0)), *signed])
        for (p, first), (q, second) in product(*outcomes):
            expected[_key(first, second)] += count * p * q / 25
    operations, magnitudes = record(monkeypatch, auto_augment, count, 128)
    names = list(OPERATIONS)
    seen = Counter(
        _key(*((names[number], magnitude) for number, magnitude in zip(numbers, values, strict=True)))
        for numbers, values in zip(operations, magnitudes, strict=True)
    )
    possible = {key for key, times in expected.items() if times > 0}
    assert set(seen) <= possible
    assert min(expected[key] for key in possible) >= 5
    assert stats.chisquare([seen[key] for key in possible], [expected[key] for key in possible]).pvalue > 1e-4


def _key(*steps):
    """A hashable name of (operation, magnitude) pairs; the magnitude of what has none does not count."""
    idle = ("identity", "autocontrast", "equalize")
    return tuple((name, 0 if name in idle else round(magnitude, 3) + 0.0) for name, magnitude in steps)


def test_ranges_of_randaugment():
    """Those of PiCO's code: small factors only, and signed transforms."""
    ends = {
        (0, 0): ["autocontrast", "equalize", "identity"],
        (0.05, 0.95): ["brightness", "color", "contrast", "sharpness"],
        (4, 8): ["posterize"],
        (-30, 30): ["rotate"],
        (-0.3, 0.3): ["shear_x", "shear_y", "translate_x", "translate_y"],
        (0, 256): ["solarize"],
    }
    assert {name: end for end, names in ends.items() for name in names} == RANGES


def test_frequencies_of_randaugment(monkeypatch):
    operations, magnitudes = record(monkeypatch, lambda x: rand_augment(x, 3), 30000, 0)
    counts = Counter(map(tuple, operations))
    assert uniform([counts[triple] for triple in product(range(14), repeat=3)])
    turns = [
        row for row, numbers in zip(magnitudes, operations, strict=True) if numbers[:2] == [NUMBER["rotate"]] * 2
    ]
    assert abs(np.corrcoef(np.array(turns)[:, :2].T)[0, 1]) < 5 / len(turns) ** 0.5
    operations, magnitudes = np.ravel(operations), np.ravel(magnitudes)
    for name, (low, high) in RANGES.items():
        values = magnitudes[operations == NUMBER[name]]
        assert (low <= values).all()
        assert (values <= high).all()
        if high > low:
            assert stats.kstest(values, "uniform", (low, high - low)).pvalue > 1e-4


def torchvision_window(rng, height, width):
    """RandomResizedCrop's recipe for one image: top, left, height, width."""
    for _ in range(10):
        area = height * width * rng.uniform(0.2, 1)
        ratio = np.exp(rng.uniform(np.log(3 / 4), np.log(4 / 3)))
        w, h = round(np.sqrt(area * ratio)), round(np.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            return rng.integers(height - h + 1), rng.integers(width - w + 1), h, w
    w, h = min(width, round(height * 4 / 3)), min(height, round(width * 4 / 3))
    return rng.integers(height - h + 1), rng.integers(width - w + 1), h, w


@pytest.mark.parametrize(("height", "width"), [(32, 32), (12, 48), (48, 12)], ids=str)
def test_windows_are_distributed_as_those_of_torchvision(height, width, monkeypatch):
    drawn = []
    monkeypatch.setattr(ops, "resized_crop", lambda x, *window: (drawn.append(torch.stack(window, 1)), x)[1])
    PIPELINES["pico-strong"](torch.zeros(6000, 1, height, width, dtype=torch.uint8), False)
    top, left, h, w = drawn[0].T.numpy()
    assert (top >= 0).all()
    assert (left >= 0).all()
    assert (top + h <= height).all()
    assert (left + w <= width).all()
    rng = np.random.default_rng(0)
    expected = np.array([torchvision_window(rng, height, width) for _ in range(6000)])
    their_top, their_left, their_h, their_w = expected.T
    pairs = [(top, their_top), (left, their_left), (h, their_h), (w, their_w), (h * w, their_h * their_w)]
    for ours, theirs in pairs:
        assert stats.ks_2samp(ours, theirs).pvalue > 1e-4


def test_colour_jitter_takes_every_image_through_its_own_order(monkeypatch):
    """Replayed with Pillow, image by image; hue is kept exact here, for Pillow has it in bytes only."""
    count = 48
    coarse = torch.rand(count, 3, 4, 4)
    x = (255 * torch.nn.functional.interpolate(coarse, (16, 16), mode="bilinear")).to(torch.uint8)
    torch.manual_seed(3)
    jittered = augment._colour_jitter(x)
    torch.manual_seed(3)
    factors = 0.6 + 0.8 * torch.rand(count, 3)
    turns = 0.2 * torch.rand(count) - 0.1
    orders = torch.rand(count, 4).argsort(1)
    assert len({tuple(order) for order in orders.tolist()}) > 15
    enhancers = (ImageEnhance.Brightness, ImageEnhance.Contrast, ImageEnhance.Color)
    for i in range(count):
        image = x[i]
        for change in orders[i].tolist():
            if change == 3:
                image = ops.hue(image[None], turns[i : i + 1])[0]
            else:
                pillow = Image.fromarray(image.permute(1, 2, 0).contiguous().numpy())
                enhanced = enhancers[change](pillow).enhance(factors[i, change].item())
                image = torch.from_numpy(np.array(enhanced)).permute(2, 0, 1)
        assert torch.equal(jittered[i], image)


def test_colour_jitter_meets_80_and_grayscale_20_percent(monkeypatch):
    monkeypatch.setattr(augment, "_colour_jitter", lambda x: 255 - x)
    x = torch.tensor([200, 100, 0], dtype=torch.uint8)[:, None, None].expand(10000, 3, 2, 2)
    views = PIPELINES["pico-weak"](x, True)[:, :, 0, 0]
    gray = (views == views[:, :1]).all(1)
    assert abs(gray.float().mean() - 0.2) < 5 * 0.4 / 100
    inverted = torch.where(gray, views[:, 0] != 118, views[:, 2] == 255)  # 118 is the gray of x
    assert abs(inverted.float().mean() - 0.8) < 5 * 0.4 / 100


def test_gray_squares_are_those_of_pico():
    """The released code draws a rectangle with whole first and fractional last coordinates, ends included."""
    x = noise(100, 1, 20, 30)
    torch.manual_seed(3)
    filled = augment._gray_square(x)
    torch.manual_seed(3)
    side, y, z = 15 * torch.rand(100), 20 * torch.rand(100), 30 * torch.rand(100)
    for before, after, length, row, column in zip(x, filled, *(v.tolist() for v in (side, y, z)), strict=True):
        expected = Image.fromarray(before[0].numpy())
        top, left = int(max(0, row - length / 2)), int(max(0, column - length / 2))
        ImageDraw.Draw(expected).rectangle((left, top, min(30, left + length), min(20, top + length)), 123)
        assert np.array_equal(after[0].numpy(), np.array(expected))


def test_one_channel_keeps_to_what_it_has():
    """Colour, hue and grayscale leave one channel alone: three equal channels take the same path."""
    x = noise(200, 1, 16, 16)
    for name in ("weak", "pico-weak", "pico-strong"):
        views = []
        for images in (x, x.expand(-1, 3, -1, -1)):
            torch.manual_seed(1)
            views.append(PIPELINES[name](images, True))
        assert torch.equal(views[0].expand(-1, 3, -1, -1), views[1])
