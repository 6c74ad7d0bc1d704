"""mixup=: mixtures of rows are taught the mixtures of their targets, by every method that has a table of these."""

import numpy as np
import pytest
import torch
from sklearn.base import clone

import oneof
from conftest import MEMBERS
from oneof.methods.mixing import Mixing
from oneof.testing.small_problems import make_data
from oneof.train.batch import Batch, Epoch, make_batch

MIXES = {name: method for name, method in MEMBERS.items() if issubclass(method.func, Mixing)}
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
    plain = method(**SETTINGS, mixup=0.0).fit(X, S)
    models = [method(**SETTINGS | {"random_state": i}, mixup=1.0) for i in range(2)]
    for model in oneof.fit_together(models, [{"X": X, "y": S}] * 2):
        alone = clone(model).fit(X, S)
        np.testing.assert_allclose(model.predict_proba(X), alone.predict_proba(X), atol=1e-6)
    assert np.abs(models[0].predict_proba(X) - plain.predict_proba(X)).max() > 1e-3


def weight_for(method, rows, **settings):
    model = MEMBERS[method](**settings)
    model.training_rows_ = rows
    return model.mixing_weight


@pytest.mark.parametrize(("rows", "weight"), [(60, 1.0), (400, 1.0), (800, 0.5), (10_000, 0.04), (10_001, 0.0)])
@pytest.mark.parametrize("method", ["proden", "membership", "idgp"])
def test_the_default_is_for_few_rows_without_views(method, rows, weight):
    assert weight_for(method, rows) == weight
    assert weight_for(method, rows, views="plain+jitter") == 0
    assert weight_for(method, rows, views="plain+jitter", mixup=0.3) == 0.3


def test_a_method_that_loses_by_mixtures_does_without(blobs):
    X, S, _ = blobs
    assert oneof.CAVL(**SETTINGS | {"epochs": 1}).fit(X, S).mixing_weight == 0
    assert oneof.PRODEN(**SETTINGS | {"epochs": 1}).fit(X, S).mixing_weight == 1


def test_checkpoints_that_do_not_name_it_mean_none():
    assert "mixup" not in oneof.PRODEN(network="linear", mixup=0.0).identity()
    assert oneof.PRODEN(network="linear").identity()["mixup"] is None


def test_rows_held_out_by_membership_teach_its_network_no_mixture(monkeypatch):
    data, drawn = make_data(), torch.linspace(0, 0.9, 12, dtype=torch.float64)
    monkeypatch.setattr(Batch, "uniform", lambda self, rows: drawn)
    found = []
    for mixup in (0.0, 1.0):
        model = oneof.Membership(network="linear", precision="fp64", mixup=mixup)
        model.input_shape_ = None
        torch.manual_seed(0)
        model.start(data)
        model.held_out_[:] = (torch.arange(12) % 5 == 0).unsqueeze(-1)  # rows 0, 5 and 10
        found.append(losses(model, make_batch(data, torch.arange(12), Epoch(0))))
    mixed = (found[1] != found[0]).nonzero()[:, 0].tolist()
    assert mixed == [2, 3, 4, 7, 8, 9]  # neither held out nor behind a row that is


@pytest.mark.parametrize("warm_up", [0, 5])
def test_mixtures_of_idgp_are_taught_the_weights_of_the_visit_before(warm_up, monkeypatch):
    data, given = make_data(), []
    monkeypatch.setattr(Batch, "mixup", lambda self, network, w: given.append((network(self.x), w)) or w.sum(-1))
    model = oneof.IDGP(network="linear", precision="fp64", warm_up=warm_up)
    model.input_shape_ = None
    model.set_training_rows(data)
    model.start(data)
    S = data.candidates.double()
    for epoch in range(2):
        losses(model, make_batch(data, torch.arange(12), Epoch(epoch)))
    u = model.network_(data.x).detach()
    torch.testing.assert_close(given[0][1], S / S.sum(-1, keepdim=True))
    inside = (u / model.gamma).exp() * S
    torch.testing.assert_close(given[1][1], inside / inside.sum(-1, keepdim=True))
    torch.testing.assert_close(given[1][0], (model.a * (u / model.gamma).exp() + model.b).log())


def test_the_released_objective_has_no_place_for_it(blobs):
    X, S, _ = blobs
    with pytest.warns(UserWarning, match="mixup is 1.0, which has no part in objective='released'"):
        oneof.IDGP(**SETTINGS | {"epochs": 1}, objective="released", warm_up=0, mixup=1.0).fit(X, S)
