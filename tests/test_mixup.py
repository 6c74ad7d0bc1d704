"""mixup=: mixtures of rows are taught the mixtures of their targets, by every method that has a table of these."""

import numpy as np
import pytest
import torch
from sklearn.base import clone

import oneof
from conftest import MEMBERS
from oneof.testing.small_problems import make_data
from oneof.train.batch import Batch, Epoch, make_batch

MIXES = {name: method for name, method in MEMBERS.items() if issubclass(method.func, oneof.PRODEN)}
mixing = pytest.mark.parametrize("method", MIXES.values(), ids=MIXES)
SETTINGS = {"network": "linear", "epochs": 3, "batch_size": 20, "device": "cpu", "random_state": 0}


def losses(model, batch):
    found = model.step(batch)
    return (found if isinstance(found, torch.Tensor) else next(iter(found))).detach()


@pytest.mark.parametrize("method", [oneof.PRODEN, oneof.RC])
def test_golden_losses_are_those_of_rows_and_of_mixtures(method, monkeypatch):
    data, t = make_data(), np.linspace(0.5, 1, 12, endpoint=False)
    drawn = torch.as_tensor(2 * t - 1)
    monkeypatch.setattr(Batch, "uniform", lambda self, rows: drawn)
    model = method(network="linear", precision="fp64", mixup=0.7)
    model.input_shape_ = None
    model.start(data)
    batch = make_batch(data, torch.arange(12), Epoch(0))
    W, b = (part.detach().numpy() for part in (model.network_.head.weight, model.network_.head.bias))
    x, S = data.x.numpy(), data.candidates.numpy()

    def loss(row, target):
        u = [sum(W[j, f] * row[f] for f in range(4)) + b[j] for j in range(5)]
        total = np.log(sum(np.exp(each) for each in u))
        return -sum(target[j] * (u[j] - total) for j in range(5))

    w = [S[i] / sum(S[i]) for i in range(12)]
    want = [
        loss(x[i], w[i]) + 0.7 * loss(t[i] * x[i] + (1 - t[i]) * x[i - 1], t[i] * w[i] + (1 - t[i]) * w[i - 1])
        for i in range(12)
    ]
    np.testing.assert_allclose(losses(model, batch).numpy(), want, atol=1e-12)


@mixing
def test_it_changes_what_is_learned_and_a_stack_ends_as_if_alone(method, blobs):
    X, S, _ = blobs
    plain = method(**SETTINGS).fit(X, S)
    models = [method(**SETTINGS | {"random_state": i}, mixup=1.0) for i in range(2)]
    for model in oneof.fit_together(models, [{"X": X, "y": S}] * 2):
        alone = clone(model).fit(X, S)
        np.testing.assert_allclose(model.predict_proba(X), alone.predict_proba(X), atol=1e-6)
    assert np.abs(models[0].predict_proba(X) - plain.predict_proba(X)).max() > 1e-3


def test_checkpoints_of_before_do_not_name_it():
    assert "mixup" not in oneof.PRODEN(network="linear").identity()
    assert oneof.Competition(network="linear").identity()["mixup"] is None  # which has always named its own
