"""The way through fused layers and back is right: with kernels that are formulas, it gives what autograd gives."""

from copy import deepcopy

import pytest
import torch
from torch import nn

from formulas import FORMULAS
from oneof import fused, kernels
from oneof.convnets import Stages, basic


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
    merged, apply = [], fused._MergedConvolution.apply
    monkeypatch.setattr(fused._MergedConvolution, "apply", lambda *inputs: merged.append(1) or apply(*inputs))
    monkeypatch.setattr(fused, "applies", lambda x: True)
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
