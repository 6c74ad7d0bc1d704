import pytest
import torch

from oneof import networks


def parameters(network):
    return sum(p.numel() for p in network.parameters())


@pytest.mark.parametrize(
    ("name", "shape", "count"),
    [
        ("linear", (108,), 108 * 16 + 16),
        ("linear", (1, 28, 28), 784 * 16 + 16),
        ("mlp", (64,), 64 * 256 + 256 + 256 * 16 + 16),
        # 5 x 5 filters with bias, batch normalisation of 20, 50 and 500, then 2450-500-16
        ("lenet", (1, 28, 28), 520 + 40 + 25050 + 100 + 2450 * 500 + 500 + 1000 + 500 * 16 + 16),
        ("lenet", (3, 32, 32), 1520 + 40 + 25050 + 100 + 3200 * 500 + 500 + 1000 + 500 * 16 + 16),
    ],
)
def test_parameter_counts_and_shapes(name, shape, count):
    network = networks.build(name, shape, 16)
    assert parameters(network) == count
    assert network(torch.randn(3, *shape)).shape == (3, 16)


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
