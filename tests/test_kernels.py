"""Fused layers give what the layers as written give, up to the rounding of bfloat16."""

import re
from copy import deepcopy
from importlib.resources import files

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import formulas
import oneof
from oneof.augment.views import make_views
from oneof.kernels import convolutions as kernels
from oneof.kernels import image_views as image_kernels
from oneof.kernels import lenet as lenet_kernels
from oneof.kernels import lenet_layers, residual_layers, sgd, support
from oneof.kernels.first_layers import apply_first, first_layer
from oneof.kernels.launch import _kernel, available, dry_run, launch, source
from oneof.nn.convnets import Residual, Stages, basic
from oneof.nn.networks import build

on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


# --- anywhere ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "tile"),
    [
        ((9, 16, 32, 32), (32, 32, 8, 1)),
        ((9, 32, 16, 16), (16, 16, 8, 1)),
        ((9, 64, 8, 8), (8, 8, 8, 1)),
        ((9, 16, 8, 8), (8, 8, 8, 4)),
        ((9, 16, 28, 28), None),
        ((9, 16, 12, 32), None),
        ((9, 64, 96, 96), None),
    ],
)
def test_tiles_are_whole_rows(shape, tile):
    assert kernels.tile_of(torch.Size(shape)) == tile


def test_layers_are_not_fused_on_a_cpu():
    x = torch.randn(2, 1, 28, 28)
    assert not support.applies(x)
    network = build("lenet", (1, 28, 28), 10)
    assert network(x).shape == (2, 10)


def test_the_kernels_are_part_of_the_package():
    folder = files("oneof.kernels").joinpath("cuda")
    assert {"common.cu", "first.cu", "residual.cu", "lenet.cu", "units.cu", "views.cu", "sgd.cu"} <= {
        each.name for each in folder.iterdir()
    }
    assert source("lenet").startswith(source("common"))


@pytest.fixture
def launched(monkeypatch):
    """Kernels and the kinds of their arguments, without any launch; in the end these are what each takes."""
    calls = {}

    def launch(kernel, blocks, *arguments, threads=256):
        calls[kernel] = [Tensor if isinstance(each, Tensor) else type(each) for each in arguments]

    for module in (kernels, lenet_kernels, image_kernels, sgd):
        monkeypatch.setattr(module, "launch", launch)
    for module in (kernels, lenet_kernels, sgd):
        monkeypatch.setattr(module, "processors", lambda device: 4)
    yield calls
    assert calls
    for kernel, given in calls.items():
        file, called = kernel.split(": ")
        base, _, template = called.rstrip(">").partition("<")
        pattern = rf"(?:template <([^>]*)>\s+|extern \"C\" )__global__[^(]*\([^)]*\)\s+{base}\(([^)]*)\)"
        templates, parameters = re.search(pattern, source(file)).groups()
        assert len(template.split(",")) == len((templates or "").split(",")), kernel
        kinds = [
            Tensor if "*" in each else {"int": int, "double": float}[each.split()[0]]
            for each in parameters.split(",")
        ]
        assert kinds == given, kernel


@pytest.mark.parametrize(("name", "shape"), [("lenet", (1, 28, 28)), ("resnet32", (3, 32, 32))])
def test_networks_launch_kernels_with_what_they_take(name, shape, monkeypatch, launched):
    monkeypatch.setattr(support, "applies", lambda x: True)
    network = build(name, shape, 5, bf16=True).to(memory_format=torch.channels_last)
    network(torch.randn(6, *shape)).sum().backward()
    assert all(p.grad.shape == p.shape for p in network.parameters())
    with torch.no_grad():
        assert network.eval()(torch.randn(6, *shape)).shape == (6, 5)


@pytest.mark.parametrize(("name", "shape"), [("lenet", (1, 28, 28)), ("resnet32", (3, 32, 32))])
def test_what_is_launched_was_compiled_before(name, shape, monkeypatch, launched):
    network = build(name, shape, 5, bf16=True).to(memory_format=torch.channels_last)
    follower = deepcopy(network.body).requires_grad_(False)  # as PiCO has one
    before = deepcopy(network.state_dict())
    with monkeypatch.context() as real:
        for module in (kernels, lenet_kernels):
            real.setattr(module, "launch", launch)
        with torch.no_grad():  # as who calls it may have it
            needed = [dry_run(network.body, torch.zeros(9, *shape), m) for m in ({False}, {True, False})]
            assert dry_run(follower, torch.zeros(9, *shape), {True, False}) == needed[1]
    assert not any(parameter.requires_grad for parameter in follower.parameters())
    assert all(torch.equal(value, before[key]) for key, value in network.state_dict().items())
    monkeypatch.setattr(support, "applies", lambda x: True)
    with torch.no_grad():
        network.eval()(torch.randn(9, *shape))
    assert needed[0] == sorted(launched)
    network.train()(torch.randn(9, *shape)).sum().backward()
    assert needed[1] == sorted(launched)


@pytest.mark.parametrize("flip", [True, False])
def test_views_launch_kernels_with_what_they_take(flip, monkeypatch, launched):
    monkeypatch.setattr(image_kernels, "apply_to", lambda x: True)
    for shape in ((1, 28, 28), (3, 32, 32)):
        for view in make_views(torch.zeros(6, *shape, dtype=torch.uint8), "weak+strong+pico-strong", flip):
            assert view.shape == (6, *shape)
    assert {kernel.split("<")[0] for kernel in launched} == {"views: reframe", "views: operate"}


def test_sgd_launches_a_kernel_with_what_it_takes(monkeypatch, launched):
    monkeypatch.setattr(sgd, "available", lambda device: True)
    large, small = nn.Linear(512, 512), nn.Linear(8, 2)
    optimizer = sgd.FusedSGD([*large.parameters(), *small.parameters()], lr=0.1, momentum=0.9)
    before = large.weight.clone(), small.weight.clone()
    (large(torch.ones(1, 512)).sum() + small(torch.ones(1, 8)).sum()).backward()
    optimizer.step()
    assert torch.equal(large.weight, before[0]), "left to the kernel"
    assert not torch.equal(small.weight, before[1])
    assert large.weight.grad is not None


# --- on a GPU ---------------------------------------------------------------------------------------------


def rounded(tensor):
    return tensor.bfloat16().float()


def channels_last(*size):
    return rounded(torch.randn(*size, device="cuda")).contiguous(memory_format=torch.channels_last)


def gradients(module, x, d, precision, wanted=True):
    """Outputs, and gradients of everything, x only if wanted, for the gradient d of the outputs."""
    module = deepcopy(module)
    x = x.clone().requires_grad_(wanted)
    with torch.autocast("cuda", torch.bfloat16, enabled=precision == "bf16"):
        out = module(x)
    out.backward(d.to(out.dtype))
    found = {name: parameter.grad for name, parameter in module.named_parameters()}
    found |= {"out": out} | ({"x": x.grad} if wanted else {})
    return found | {f"buffer {k}": v for k, v in module.named_buffers()}


def error(found, expected, name):
    """The relative error of one of them."""
    return (found[name].float() - expected[name].float()).norm() / expected[name].float().norm()


def assert_close(found, expected, tolerance):
    for name in expected:
        assert error(found, expected, name) < tolerance, f"{name}: {error(found, expected, name)}"


@pytest.fixture
def exact():
    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = False
    yield
    torch.backends.cudnn.allow_tf32 = before


def assert_alike(found, expected):
    """Up to the rounding of images that come out; parts of sums by what they add up to."""
    if isinstance(found, tuple):
        for one, other in zip(found, expected, strict=True):
            assert_alike(one, other)
        return
    if found.ndim == 3:
        found, expected = found.double().sum(0), expected.sum(0)
    assert found.shape == expected.shape
    assert (found.double() - expected).norm() <= 0.006 * expected.norm()


@on_gpu
@pytest.mark.parametrize("images", [1, 37, 300])
@pytest.mark.parametrize(("channels", "side"), [(16, 32), (32, 16), (64, 8), (16, 8), (32, 4)])
def test_kernels_are_their_formulas(channels, side, images):
    torch.manual_seed(0)
    x, y, z, d, more = (channels_last(images, channels, side, side).bfloat16() for _ in range(5))
    norm, x_norm, correction = (torch.randn(4, channels, device="cuda") for _ in range(3))
    weight, pixels = rounded(torch.randn(channels, channels, 3, 3, device="cuda")), images * side**2
    forward, back = kernels.arrange(weight)

    def compare(name, *arguments, images_alone=False, **named):
        """Compute by the kernel, and by the formula in double precision."""

        def widened(value):
            value = weight if value is forward or value is back else value
            return value.double() if isinstance(value, Tensor) else value

        found = getattr(kernels, name)(*arguments, **named)
        wide = {key: widened(value) for key, value in named.items()}
        expected = getattr(formulas, name)(*map(widened, arguments), **wide)
        assert_alike(*(each[0] if images_alone else each for each in (found, expected)))
        return found

    gradient = (d, y, norm, correction, back, x)
    for given in (None, x_norm):
        _, parts = compare("convolve", x, given, forward)
        compare("input_gradient", *gradient, x_norm=given, images_alone=given is None)
        compare("weight_gradient", x, given, d, y, norm, correction)
    compare("convolve_sum", y, norm, z, forward)
    compare("input_gradient", *gradient, more=more, images_alone=True)
    _, gradient_parts = compare("input_gradient", *gradient, more=more, raw=z)
    compare("normalisation", parts, pixels, norm[0], norm[1], None, 0.1, 1e-5)
    compare("correction", gradient_parts, norm, pixels)
    compare("correct", d, y, norm, correction)
    compare("statistics", y)
    for shortcut in ((None, None), (z, None), (z, x_norm)):
        compare("merge", y, norm, *shortcut)
        compare("merge_gradient", d, x, y, shortcut[0], shortcut[1] is not None)


@on_gpu
@pytest.mark.parametrize("images", [1, 37])
@pytest.mark.parametrize(
    ("inputs", "outputs", "side"),
    [(16, 16, 32), (32, 32, 16), (64, 64, 8), (16, 16, 8), (16, 32, 32), (32, 64, 16)],
)
@pytest.mark.parametrize("count", [1, 3])
def test_residual_blocks(count, inputs, outputs, side, images, exact, monkeypatch):
    torch.manual_seed(0)
    stride = 1 if inputs == outputs else 2
    blocks = Stages(basic(inputs, outputs, stride), *(basic(outputs, outputs, 1) for _ in range(count - 1)))
    blocks = blocks.cuda().to(memory_format=torch.channels_last)
    for parameter in blocks.parameters():
        parameter.data = rounded(parameter + 0.1 * torch.randn_like(parameter))
    # Away from zero, where rounding would decide what is rectified.
    x, d = (
        channels_last(images, inputs, side, side).abs(),
        channels_last(images, outputs, side // stride, side // stride),
    )
    calls, residuals = [], residual_layers.residuals
    monkeypatch.setattr(
        residual_layers, "residuals", lambda *args: calls.append(args[0].device.type) or residuals(*args)
    )
    found = gradients(blocks, x, d, "bf16")
    assert calls.count("cuda") == 1
    monkeypatch.setattr(support, "applies", lambda x: False)
    plain, expected = (gradients(blocks, x, d, precision) for precision in ("bf16", "fp32"))
    # Rounding decides what is rectified near zero, so by how much is for cuDNN to say; of several blocks, which
    # leave more to chance, all in all.
    own, others = (np.array([error(each, expected, name).item() for name in expected]) for each in (found, plain))
    assert (own < 0.15 * count).all(), dict(zip(expected, own, strict=True))
    if count > 1:
        own, others = own.mean(), others.mean()
    assert (own <= 1.3 * others + 1e-3).all(), (list(expected), own, others)


@on_gpu
@pytest.mark.parametrize("images", [1, 37])
@pytest.mark.parametrize("side", [16, 32])
def test_a_stem(images, side, exact):
    torch.manual_seed(0)
    stem = Stages(nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU()).cuda()
    for parameter in stem.parameters():
        parameter.data = rounded(parameter + 0.1 * torch.randn_like(parameter))
    x, d = channels_last(images, 3, side, side), channels_last(images, 16, side, side)
    found, expected = (gradients(stem, x, d, precision, wanted=False) for precision in ("bf16", "fp32"))
    assert_close(found, expected, 0.005 if side == 32 else 0.02)
    with_x = gradients(stem, x, d, "bf16")  # by way of cuDNN
    assert_close(with_x, gradients(stem, x, d, "fp32"), 0.06)


@on_gpu
@pytest.mark.parametrize("images", [1, 2, 37, 300])
def test_lenets_first_block(images, exact):
    torch.manual_seed(0)
    block = nn.Sequential(
        nn.Conv2d(1, 20, 5, padding=2, bias=False), nn.BatchNorm2d(20), nn.MaxPool2d(2), nn.ReLU()
    )
    block = block.cuda()
    for parameter in block.parameters():
        parameter.data = rounded(parameter + 0.1 * torch.randn_like(parameter))
    x, d = channels_last(images, 1, 28, 28), channels_last(images, 20, 14, 14)
    expected = gradients(block, x, d, "fp32")
    own = deepcopy(block)
    out = apply_first(first_layer(x, own[0], pooled=True), x, own[0], own[1])
    assert out.shape == (images, 24, 14, 14)
    assert not out[:, 20:].any()
    out.backward(torch.cat([d, torch.randn_like(d[:, :4])], 1).bfloat16())
    found = {name: parameter.grad for name, parameter in own.named_parameters()}
    found |= {"out": out[:, :20]} | {f"buffer {k}": v for k, v in own.named_buffers()}
    del expected["x"]
    assert_close(found, expected, 0.005)


@on_gpu
@pytest.mark.parametrize("images", [1, 37, 300])
def test_lenets_second_block(images, exact):
    torch.manual_seed(0)
    block = nn.Sequential(nn.BatchNorm2d(50), nn.MaxPool2d(2), nn.ReLU(), nn.Flatten()).cuda()
    for parameter in block.parameters():
        parameter.data = rounded(parameter + 0.1 * torch.randn_like(parameter))
    y, d = channels_last(images, 50, 14, 14), rounded(torch.randn(images, 2450, device="cuda"))
    expected = gradients(block, y, d, "fp32")
    own, wide = deepcopy(block), nn.functional.pad(y, (0, 0, 0, 0, 0, 14)).bfloat16()
    wide = wide.contiguous(memory_format=torch.channels_last).requires_grad_()
    out = lenet_layers._Second.apply(wide, *support.norm_arguments(own[0]))
    out.backward(d.bfloat16())
    assert not wide.grad[:, 50:].any()
    found = {name: parameter.grad for name, parameter in own.named_parameters()}
    found |= {"out": out, "x": wide.grad[:, :50]} | {f"buffer {k}": v for k, v in own.named_buffers()}
    assert_close(found, expected, 0.005)


@on_gpu
@pytest.mark.parametrize("images", [1, 37, 300])
def test_lenets_second_convolution(images, exact):
    torch.manual_seed(0)
    layer = nn.Conv2d(20, 50, 5, padding=2, bias=False).cuda().to(memory_format=torch.channels_last)
    layer.weight.data = rounded(layer.weight)
    x, d = channels_last(images, 20, 14, 14), channels_last(images, 50, 14, 14)
    expected = gradients(layer, x, d, "fp32")
    wide = nn.functional.pad(x, (0, 0, 0, 0, 0, 4)).bfloat16().contiguous(memory_format=torch.channels_last)
    out = lenet_layers._SecondConvolution.apply(wide.requires_grad_(), layer.weight)
    assert out.shape == (images, 64, 14, 14)
    assert not out[:, 50:].any()
    out.backward(nn.functional.pad(d, (0, 0, 0, 0, 0, 14)).to(out).contiguous(memory_format=torch.channels_last))
    found = {"weight": layer.weight.grad, "out": out[:, :50], "x": wide.grad[:, :20]}
    assert layer.weight.grad.stride() == layer.weight.stride()
    assert_close(found, expected, 0.005)


@on_gpu
@pytest.mark.parametrize(("rows", "width"), [(2, 500), (300, 500), (77, 6)])
def test_units(rows, width, exact):
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Linear(64, width, bias=False), nn.BatchNorm1d(width), nn.ReLU()).cuda()
    for parameter in layers.parameters():
        parameter.data = rounded(parameter + 0.1 * torch.randn_like(parameter))
    x, d = (rounded(torch.randn(rows, count, device="cuda")) for count in (64, width))
    plain, expected = (gradients(layers, x, d, precision) for precision in ("bf16", "fp32"))
    own, narrow = deepcopy(layers), x.bfloat16().requires_grad_()
    out = lenet_layers.units(narrow, own[0], own[1])
    out.backward(d.bfloat16())
    found = {name: parameter.grad for name, parameter in own.named_parameters()}
    found |= {"out": out, "x": narrow.grad} | {f"buffer {k}": v for k, v in own.named_buffers()}
    assert own[0].weight.grad.dtype == torch.float32
    for name in expected:  # as with residual blocks
        assert error(found, expected, name) <= 1.3 * error(plain, expected, name) + 2e-3, name


@on_gpu
@pytest.mark.parametrize(("name", "shape"), [("lenet", (1, 28, 28)), ("resnet32", (3, 32, 32))])
def test_peeking_moves_no_averages_and_gives_the_same_bits(name, shape):
    network = build(name, shape, 5, bf16=True).cuda().to(memory_format=torch.channels_last)
    x = channels_last(8, *shape)
    before = deepcopy(network.state_dict())
    out = network.forward_frozen_stats(x)
    assert all(torch.equal(value, before[key]) for key, value in network.state_dict().items())
    assert torch.equal(out, network(x))
    assert not torch.equal(network.state_dict()["body.1.running_mean"], before["body.1.running_mean"])


@on_gpu
@pytest.mark.parametrize(("name", "shape"), [("lenet", (1, 28, 28)), ("resnet32", (3, 32, 32))])
def test_evaluation(name, shape, monkeypatch):
    network = build(name, shape, 5, bf16=True).cuda().to(memory_format=torch.channels_last)
    with torch.no_grad():
        for _ in range(5):
            network(channels_last(64, *shape) + 0.5)
        network.eval()
        x = channels_last(9, *shape)
        found = network(x)
        calls = []
        monkeypatch.setattr(support, "applies", lambda x: calls.append(1))
        plain = network(x)
        network.bf16 = False
        expected = network(x)
    assert calls
    own, others = ((each - expected).norm() / expected.norm() for each in (found, plain))
    assert own <= 1.5 * others
    x.requires_grad_()
    network(x).sum().backward()  # as written, since layers in evaluation have no gradients when fused
    assert x.grad.isfinite().all()


@on_gpu
@pytest.mark.parametrize(("network", "shape"), [("lenet", (28, 28)), ("resnet32", (16, 16, 3))])
def test_trials_in_bfloat16_are_the_same_bits_alone_again_and_side_by_side(network, shape):
    rng = np.random.default_rng(0)
    x, sets = rng.integers(256, size=(128, *shape), dtype=np.uint8), rng.random((128, 4)) < 0.4
    sets[:, 0] = True
    settings = {"network": network, "epochs": 2, "batch_size": 16, "lr": 0.01, "warm_up": 1, "device": "cuda"}
    model = oneof.IDGP(precision="bf16", deterministic=True, **settings)
    members = [deepcopy(model).set_params(random_state=seed) for seed in (0, 1)]
    alone = [deepcopy(member).fit(x, sets) for member in (*members, members[0])]
    together = oneof.fit_together([deepcopy(member) for member in members], [{"X": x, "y": sets}] * 2)
    for other in (alone[2], together[0]):
        for key, tensor in alone[0].learned().items():
            assert torch.equal(tensor, other.learned()[key]), key
    assert not torch.equal(alone[0].network_.head.weight, alone[1].network_.head.weight)


@on_gpu
@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32), (3, 7, 9)])
@pytest.mark.parametrize("flip", [True, False])
def test_views_are_those_of_tensor_operations(shape, flip, monkeypatch):
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(256, (600, *shape), generator=generator, dtype=torch.uint8)
    x //= torch.randint(1, 30, (600, shape[0], 1, 1), generator=generator, dtype=torch.uint8)  # few levels, or one
    x = x.contiguous(memory_format=torch.channels_last).cuda()

    def views():
        torch.manual_seed(1)
        return make_views(x, "weak+strong+strong+pico-strong", flip)

    fast = views()
    monkeypatch.setattr(image_kernels, "apply_to", lambda x: False)
    for one, other in zip(fast, views(), strict=True):
        assert torch.equal(one, other)


@on_gpu
def test_sgd_is_that_of_torch():
    network = nn.Sequential(nn.Linear(1024, 512), nn.ReLU(), nn.Linear(512, 3)).cuda()
    other = deepcopy(network)
    settings = {"lr": 0.03, "momentum": 0.9, "weight_decay": 0.01}
    ours = sgd.FusedSGD(network.parameters(), **settings)
    theirs = torch.optim.SGD(other.parameters(), **settings)
    for _ in range(5):
        x = torch.randn(64, 1024, device="cuda")
        for each, optimizer in ((network, ours), (other, theirs)):
            optimizer.zero_grad(set_to_none=True)
            each(x).square().mean().backward()
            optimizer.step()
    for one, two in zip(network.parameters(), other.parameters(), strict=True):
        assert torch.equal(one, two)
        assert torch.equal(ours.state[one]["momentum_buffer"], theirs.state[two]["momentum_buffer"])


@on_gpu
def test_without_a_compiler_cudnn_does_the_work(monkeypatch):
    def fail(*args, **kwargs):
        raise RuntimeError("no compiler\nanywhere")

    available.cache_clear()
    _kernel.cache_clear()
    monkeypatch.setattr("oneof.kernels.binaries.kernel", fail)
    network = build("lenet", (1, 28, 28), 5, bf16=True).cuda()
    with pytest.warns(
        UserWarning, match="cannot be compiled .no compiler anywhere.; those of torch and cuDNN are used"
    ):
        assert network(channels_last(8, 1, 28, 28)).isfinite().all()
    available.cache_clear()


def test_residual_blocks_of_other_networks_stay_as_they_are():
    wide = basic(64, 128, 2)
    assert isinstance(wide, Residual)
    assert not support.supports(wide.modules())
    assert support.supports(basic(16, 32, 2).modules())
    assert not support.supports(basic(16, 32, 2).eval().modules())
    with torch.no_grad():
        assert support.supports(basic(16, 32, 2).eval().modules())
