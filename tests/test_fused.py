"""The way through fused layers and back is right: with kernels that are formulas, it gives what autograd gives."""

from copy import deepcopy

import numpy as np
import pytest
import torch
from torch import nn

from conftest import every_method
from formulas import FORMULAS
from oneof.kernels import convolutions as kernels
from oneof.kernels import residual_layers, support
from oneof.kernels.launch import dry_run, dry_running
from oneof.nn.convnets import LeNetBody, Stages, basic
from oneof.train.workers.norms import share_norms


@pytest.mark.parametrize("stem", [True, False])
@pytest.mark.parametrize("widths", [(16, 16, 16, 16), (16, 32, 32, 64, 64, 64)])
def test_residual_networks_and_their_gradients(widths, stem, monkeypatch):
    torch.manual_seed(0)
    first = [nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    ins = (16, *widths)
    blocks = [basic(a, b, 1 if a == b else 2) for a, b in zip(ins, widths, strict=False)]
    layers = Stages(*(first if stem else []), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten()).double()
    for parameter in layers.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    x = torch.randn(5, 3 if stem else 16, 16, 16, dtype=torch.float64)
    d = torch.randn(5, widths[-1], dtype=torch.float64)

    def learned(network):
        own = x.clone().requires_grad_()
        out = network(own)
        out.backward(d)
        return {"out": out, "x": own.grad} | {
            name: each if each.grad is None else each.grad
            for name, each in (*network.named_parameters(), *network.named_buffers())
        }

    expected = learned(deepcopy(layers))
    merged, apply = [], residual_layers._MergedConvolution.apply
    monkeypatch.setattr(
        residual_layers._MergedConvolution, "apply", lambda *inputs: merged.append(1) or apply(*inputs)
    )
    monkeypatch.setattr(support, "applies", lambda x: True)
    monkeypatch.setattr(kernels, "PRECISION", torch.float64)
    for formula in FORMULAS:
        monkeypatch.setattr(kernels, formula.__name__, formula)
    found = learned(layers)
    normalised_shortcuts = len(set(widths)) - 1
    assert len(merged) == len(widths) - 1 - 2 * normalised_shortcuts
    assert found.keys() == expected.keys()
    for name in expected:
        torch.testing.assert_close(
            found[name], expected[name], rtol=1e-8, atol=1e-10, msg=lambda text, n=name: f"{n}: {text}"
        )


def test_normalisations_by_the_moments_of_all_workers_have_no_kernels():
    layers = nn.Sequential(nn.Conv2d(3, 16, 3, bias=False), nn.BatchNorm2d(16))
    assert support.supports(layers.modules())
    share_norms(layers, None)
    assert not support.supports(layers.modules())


@every_method
def test_a_rehearsal_changes_nothing(method, monkeypatch):
    """Not even where a network only follows another, is looked at in passing, or noise is drawn."""
    rng = np.random.default_rng(0)
    x, sets = rng.integers(256, size=(32, 28, 28), dtype=np.uint8), rng.random((32, 3)) < 0.4
    sets[:, 0] = True
    settings = {"network": "lenet", "epochs": 2, "batch_size": 16, "random_state": 0, "device": "cpu"}
    settings |= {"views": "weak+strong+strong", "precision": "bf16"}
    plain = method(**settings).fit(x, sets)
    forward, kernels_needed = LeNetBody.forward, []

    def needed(self, x):
        if not dry_running.get():
            kernels_needed.append(dry_run(self, x, {True, False}))
        return forward(self, x)

    monkeypatch.setattr(LeNetBody, "forward", needed)
    again = method(**settings).fit(x, sets)
    assert kernels_needed
    assert all(names == kernels_needed[0] for names in kernels_needed)
    assert plain.learned().keys() == again.learned().keys()
    for name, tensor in plain.learned().items():
        assert torch.equal(tensor, again.learned()[name]), name
