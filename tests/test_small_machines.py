"""What a small fit adds to a process that has imported torch and scikit-learn, and what keeps it small."""

import json
import subprocess
import sys

import pytest
import torch

from oneof.train.adamw import AdamW
from oneof.train.sgd import SGD

MOST = 60e6  # bytes that a small fit may add
FIT = """
import json, sys
from pathlib import Path
import numpy as np, sklearn.linear_model, torch

def memory():
    return 1024 * int(next(l for l in Path("/proc/self/status").open() if l.startswith("VmHWM")).split()[1])

before = memory()
import oneof
rng = np.random.default_rng(0)
X = rng.normal(size=(200, 5))
sets = np.eye(3, dtype=bool)[np.arange(200) % 3] | (rng.random((200, 3)) < 0.3)
oneof.IDGP(epochs=3, warm_up=1, random_state=0, device="cpu").fit(X, sets).predict(X)
print(json.dumps([memory() - before, sorted(sys.modules)]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_a_small_fit_adds_little():
    run = subprocess.run([sys.executable, "-c", FIT], capture_output=True, text=True, check=True)
    added, modules = json.loads(run.stdout)
    assert added < MOST
    assert not {"torch._dynamo", "sympy", "oneof.kernels", "pyarrow.dataset"} & set(modules)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_adamw_is_that_of_torch(momentum):
    torch.manual_seed(0)
    first = [torch.randn(5, 3, dtype=torch.float64, requires_grad=True) for _ in range(2)]
    second = [tensor.detach().clone().requires_grad_() for tensor in first]
    groups = [[{"params": [a], "lr": 0.3}, {"params": [b], "weight_decay": 0.1}] for a, b in (first, second)]
    ours = AdamW(groups[0], lr=0.1, momentum=momentum)
    theirs = torch.optim.AdamW(groups[1], lr=0.1, betas=(momentum, 0.999), weight_decay=0.0)
    for step in range(5):
        for (a, b), optimizer in ((first, ours), (second, theirs)):
            optimizer.zero_grad()
            (
                a.square().sum() if step in (0, 2) else (a.sin().sum() * b.sum())
            ).backward()  # b has no part at first
            optimizer.step()
        for one, other in zip(first, second, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_a_plain_group_of_adamw_descends_as_by_sgd(momentum):
    torch.manual_seed(0)
    first = [torch.randn(5, 3, dtype=torch.float64, requires_grad=True) for _ in range(2)]
    second = [tensor.detach().clone().requires_grad_() for tensor in first]
    ours = AdamW(
        [{"params": first[:1]}, {"params": first[1:], "lr": 0.3, "weight_decay": 0.1, "plain": True}],
        0.1,
        momentum,
    )
    theirs = torch.optim.SGD([{"params": second[1:], "lr": 0.3, "weight_decay": 0.1}], momentum=momentum)
    adaptive = AdamW([{"params": second[:1]}], 0.1, momentum)
    for step in range(4):
        for (a, b), optimizers in ((first, [ours]), (second, [theirs, adaptive])):
            for optimizer in optimizers:
                optimizer.zero_grad()
            (a.square().sum() if step == 2 else (a.sin().sum() * b.sum())).backward()  # b has no part in one
            for optimizer in optimizers:
                optimizer.step()
        for one, other in zip(first, second, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_the_optimiser_is_that_of_torch_to_the_bit(momentum):
    torch.manual_seed(0)
    first = [torch.randn(5, 3, requires_grad=True), torch.randn(4, requires_grad=True)]
    second = [tensor.detach().clone().requires_grad_() for tensor in first]
    groups = [[{"params": [a], "lr": 0.3}, {"params": [b], "weight_decay": 0.1}] for a, b in (first, second)]
    ours = SGD(groups[0], lr=0.1, momentum=momentum)
    theirs = torch.optim.SGD(groups[1], lr=0.1, momentum=momentum)
    for step in range(4):
        for (a, b), optimizer in ((first, ours), (second, theirs)):
            optimizer.zero_grad()
            loss = a.square().sum() if step == 2 else (a.sin().sum() * b.sum())  # one that b has no part in
            loss.backward()
            optimizer.step()
        for one, other in zip(first, second, strict=True):
            assert torch.equal(one, other)
            buffers = [
                optimizer.state[tensor].get("momentum_buffer")
                for optimizer, tensor in ((ours, one), (theirs, other))
            ]
            assert buffers[0] is buffers[1] is None or torch.equal(*buffers)
