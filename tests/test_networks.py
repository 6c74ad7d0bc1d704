from functools import partial

import pytest
import torch
from torch import nn

from oneof.nn import networks
from oneof.train.runtime import eager


def parameters(network):
    return sum(p.numel() for p in network.parameters())


@pytest.mark.parametrize(
    ("name", "shape", "count"),
    [
        ("linear", (108,), 108 * 16 + 16),
        ("linear", (1, 28, 28), 784 * 16 + 16),
        ("mlp", (64,), 64 * 256 + 256 + 256 * 16 + 16),
        # 5 x 5 filters without bias, batch normalisation of 20, 50 and 500, then 2450-500-16
        ("lenet", (1, 28, 28), 500 + 40 + 25000 + 100 + 2450 * 500 + 1000 + 500 * 16 + 16),
        ("lenet", (3, 32, 32), 1500 + 40 + 25000 + 100 + 3200 * 500 + 1000 + 500 * 16 + 16),
    ],
)
def test_parameter_counts_and_shapes(name, shape, count):
    network = networks.build(name, shape, 16)
    assert parameters(network) == count
    assert network(torch.randn(3, *shape)).shape == (3, 16)


def block(inputs, outputs, projection=True):
    """Two normalised 3 x 3 convolutions and, where the shape changes, a normalised 1 x 1 shortcut."""
    weights = 9 * inputs * outputs + 9 * outputs * outputs + 4 * outputs
    return weights + (inputs * outputs + 2 * outputs) * projection


def wide(inputs, outputs):
    """Normalisation before each 3 x 3 convolution, and a bare 1 x 1 shortcut where the shape changes."""
    weights = 2 * inputs + 9 * inputs * outputs + 2 * outputs + 9 * outputs * outputs
    return weights + inputs * outputs * (inputs != outputs)


def bottleneck(inputs, outputs):
    """1 x 1, then 3 x 3 in 16 groups, then 1 x 1, each normalised; a shortcut where the shape changes."""
    width = 4 * outputs
    weights = inputs * width + 9 * width * width // 16 + width * outputs + 4 * width + 2 * outputs
    return weights + (inputs * outputs + 2 * outputs) * (inputs != outputs)


RESNET32 = 27 * 16 + 32 + 5 * block(16, 16, False)
RESNET32 += block(16, 32) + 4 * block(32, 32, False) + block(32, 64) + 4 * block(64, 64, False) + 64 * 10 + 10
RESNET18 = 27 * 64 + 128 + 2 * block(64, 64, False) + 512 * 10 + 10
RESNET18 += sum(block(w // 2, w) + block(w, w, False) for w in (128, 256, 512))
WIDE = 27 * 16 + wide(16, 160) + wide(160, 320) + wide(320, 640) + 2 * 640 + 640 * 10 + 10
WIDE += 4 * sum(wide(w, w) for w in (160, 320, 640))
RESNEXT = 27 * 64 + 128 + bottleneck(64, 256) + bottleneck(256, 512) + bottleneck(512, 1024) + 1024 * 10 + 10
RESNEXT += 2 * sum(bottleneck(w, w) for w in (256, 512, 1024))
MLP5 = 784 * 300 + 300 * 301 + 301 * 302 + 302 * 303 + 2 * (300 + 301 + 302 + 303) + 303 * 10 + 10


@pytest.mark.parametrize(
    ("name", "shape", "count", "published", "features"),
    [
        ("mlp5", (1, 28, 28), MLP5, 513_360, 303),
        ("resnet32", (3, 32, 32), RESNET32, 466_906, 64),
        ("resnet18", (3, 32, 32), RESNET18, 11_173_962, 512),
        ("wideresnet", (3, 32, 32), WIDE, 46_160_474, 640),
        ("resnext29", (3, 32, 32), RESNEXT, 68_155_210, 1024),
    ],
)
def test_deep_networks_have_the_published_size(name, shape, count, published, features):
    with torch.device("meta"):  # shapes alone: the largest has 68 million weights
        network = networks.build(name, shape, 10)
        assert parameters(network) == count == published
        seen = network.body(torch.empty(2, *shape))
        assert (seen.shape, network.head(seen).shape) == ((2, features), (2, 10))


@pytest.mark.parametrize("name", ["mlp5", "lenet", "resnet18", "resnet32", "wideresnet", "resnext29"])
def test_deep_networks_learn_a_batch_of_small_gray_images(name):
    torch.manual_seed(0)
    network = networks.build(name, (1, 8, 8), 2)
    x, y = torch.randn(6, 1, 8, 8), torch.tensor([0, 1, 0, 1, 0, 1])
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    losses = []
    for _ in range(2):
        loss = torch.nn.functional.cross_entropy(network(x), y)
        optimizer.zero_grad()
        loss.backward()
        assert all(p.grad is not None and p.grad.isfinite().all() for p in network.parameters())
        optimizer.step()
        losses.append(loss.item())
    assert losses[1] < losses[0]


@pytest.mark.parametrize("name", ["lenet", "resnet18", "resnet32", "wideresnet", "resnext29"])
def test_convolutions_refuse_tables_in_one_sentence(name):
    with pytest.raises(ValueError, match=rf"the network '{name}' needs images of at least 4 x 4 pixels"):
        networks.build(name, (30,), 2)


def test_auto_chooses_by_shape():
    assert parameters(networks.build("auto", (64,), 4)) == parameters(networks.build("mlp", (64,), 4))
    assert parameters(networks.build("auto", (1, 8, 8), 4)) == parameters(networks.build("lenet", (1, 8, 8), 4))


def test_vectors_may_have_axes_before_them():
    network = networks.build("mlp", (5,), 3)
    x = torch.randn(2, 4, 5)
    torch.testing.assert_close(network(x)[1], network(x[1]))


def test_bf16_computes_inside_and_returns_float32():
    network = networks.build("mlp", (5,), 3, bf16=True)
    x = torch.randn(4, 5)
    inside = []
    network.head.register_forward_hook(lambda module, args, out: inside.append(out.dtype))
    assert network(x).dtype == torch.float32
    assert inside == [torch.bfloat16]


def test_every_network_is_compiled_when_asked_for(monkeypatch):
    """Torch compiles eight networks and then goes on without a word; alike networks are compiled once."""
    networks.compiled_call.cache_clear()
    torch._dynamo.reset()
    compiled = []

    def backend(graph, inputs):
        compiled.append(graph)
        return graph.forward

    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=backend))
    x = torch.ones(3, 4)
    try:
        for hidden in (*range(5, 17), 5, 16):
            body = nn.Sequential(nn.Linear(4, hidden), nn.ReLU())
            network = networks.Network(body, nn.Linear(hidden, 2), compiled=True)
            torch.testing.assert_close(network(x), network.head(body(x)))
            with eager(True):
                network(x[:2])
    finally:
        networks.compiled_call.cache_clear()
        torch._dynamo.reset()
    assert len(compiled) == 12


@pytest.mark.parametrize(("name", "shape"), [("lenet", (1, 28, 28)), ("resnet32", (3, 32, 32))])
def test_networks_are_compiled_in_one_piece(name, shape):
    body = networks.build(name, shape, 3).body
    x = torch.randn(2, *shape)
    out = torch.compile(body.eval(), backend="eager", fullgraph=True)(x)
    torch.testing.assert_close(out, body(x))
