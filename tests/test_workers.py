"""One training by several workers: the weights, tables and scores are those of one process."""

import os

import numpy as np
import pytest
import scipy.sparse
import torch
from numpy.testing import assert_allclose
from torch import nn

import oneof
from conftest import MEMBERS
from gloo import Drawing, EndsEarly, Workers
from oneof.augment import PIPELINES, make_views
from oneof.augment.draws import for_part
from oneof.estimator.with_workers import check_trial, tables_of_rows, take
from oneof.labels import sparse_sets
from oneof.train import TrainingDiverged
from oneof.train.loop import TrainingRun
from oneof.train.workers.part import cut

rng = np.random.default_rng(0)
N, K = 90, 7
T = np.arange(N) % K
X = np.eye(K, 5)[T] + rng.normal(0, 0.5, (N, 5))
SETS = np.eye(K, dtype=bool)[T] | (rng.random((N, K)) < 0.25)
WEIGHT = rng.random(N)
SETTINGS = {"epochs": 4, "device": "cpu", "random_state": 0, "precision": "fp64", "batch_size": 16}
IN_PARTS = [name for name, method in MEMBERS.items() if vars(method.func).get("trains_in_parts")]
EXACT = 1e-8


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Workers, as many as $ONEOF_WORKERS says; by default two."""
    workers = Workers(int(os.environ.get("ONEOF_WORKERS", "2")), tmp_path_factory.mktemp("workers"))
    yield workers
    workers.close()


def by(workers, model, X=X, y=SETS, **given):
    """Fit a model by workers, as `fit_with_workers` does by Ray."""
    trial = model.prepare(X, y, **given)
    check_trial(model, trial, workers.size)
    take(trial, workers.train(cut(trial, tables_of_rows(model, trial), workers.size)))
    return model.finish(trial)


def assert_same(one, other):
    """Both models hold the same numbers."""
    assert one.learned().keys() == other.learned().keys()
    for name, tensor in other.learned().items():
        assert_allclose(one.learned()[name], tensor, rtol=0, atol=EXACT, err_msg=name)
    assert one.history_.keys() == other.history_.keys()
    for name, values in other.history_.items():
        assert_allclose(one.history_[name], values, atol=EXACT)
    assert (one.transduction_ == other.transduction_).all()


def assert_fits_alike(workers, method, settings=SETTINGS, X=X, y=SETS, **given):
    together = by(workers, method(**settings), X, y, **given)
    assert_same(together, method(**settings).fit(X, y, **given))
    return together


def test_what_cannot_be_trained_in_parts_is_known():
    assert set(MEMBERS) - set(IN_PARTS) == {"valen"}


@pytest.mark.parametrize("name", IN_PARTS)
def test_every_method(name, two):
    assert_fits_alike(two, MEMBERS[name], SETTINGS | {"network": "linear"}, sample_weight=WEIGHT)


@pytest.mark.parametrize("name", ["rc", "pico", "crosel"])
def test_batch_normalisation_sees_all_rows(name, two):
    assert_fits_alike(two, MEMBERS[name], SETTINGS | {"network": "mlp5"})


class Averaged(nn.Module):
    """Normalisations with a cumulative average, without weights, and without any average."""

    def __init__(self, shape, outputs):
        super().__init__()
        self.layers = nn.Sequential(
            nn.BatchNorm1d(*shape, momentum=None),
            nn.BatchNorm1d(*shape, affine=False),
            nn.Linear(*shape, outputs),
            nn.BatchNorm1d(outputs, track_running_stats=False),
        )

    def forward(self, x):
        return self.layers(x)


def test_every_kind_of_batch_normalisation(two):
    assert_fits_alike(two, oneof.RC, SETTINGS | {"network": Averaged})


def test_views_of_images_are_drawn_for_whole_steps(two):
    images = np.random.default_rng(1).integers(0, 256, (24, 8, 8, 3), dtype=np.uint8)
    settings = SETTINGS | {"epochs": 2, "batch_size": 6, "network": "lenet", "views": "strong+pico-strong"}
    assert_fits_alike(two, oneof.PRODEN, settings, images, SETS[:24])


@pytest.mark.parametrize("names", [*PIPELINES, "weak+strong+weak"])
def test_a_part_draws_what_the_whole_draws(names):
    x = torch.randn(7, 5) if names == "jitter" else torch.rand(7, 3, 8, 8)
    x = x if x.dim() == 2 else x.to(memory_format=torch.channels_last)
    torch.manual_seed(0)
    whole, state = make_views(x, names, True), torch.get_rng_state()
    for places in (torch.tensor([5, 1, 2]), torch.tensor([], dtype=torch.int64)):
        torch.manual_seed(0)
        with for_part(places, 7):
            part = make_views(x[places], names, True)
        for one, other in zip(part, whole, strict=True):
            assert torch.equal(one, other[places])
        assert torch.equal(torch.get_rng_state(), state)


def test_steps_without_rows_of_some_worker(two):
    assert_fits_alike(two, oneof.PRODEN, SETTINGS | {"batch_size": 2, "epochs": 2, "mixup": 1.0, "network": "mlp"})


@pytest.mark.parametrize("name", ["proden", "idgp", "membership", "pico"])
def test_sparse_sets(name, two, monkeypatch):
    for place in ("oneof.labels.sparse_sets", "oneof.labels.encoding"):
        monkeypatch.setattr(f"{place}.takes_less", lambda *sizes: True)
    model = assert_fits_alike(two, MEMBERS[name])
    assert isinstance(model.prepare(X, SETS).rows[1], sparse_sets.SparseSets)


def test_sparse_rows_and_single_precision(two):
    settings = {**SETTINGS, "precision": "fp32"}
    rows = scipy.sparse.csr_array(np.where(np.abs(X) > 0.5, X, 0))
    one, other = by(two, oneof.CC(**settings), rows), oneof.CC(**settings).fit(rows, SETS)
    assert_allclose(one.predict_proba(rows), other.predict_proba(rows), atol=1e-4)


@pytest.mark.parametrize("rule", ["share", "alim"])
def test_labels_outside_the_sets(rule, two):
    assert_fits_alike(two, oneof.PRODEN, SETTINGS | {"outside": 0.2, "outside_rule": rule})


def test_validation_rows_decide_alike(two):
    settings = SETTINGS | {"epochs": 12, "validation_fraction": 0.3, "patience": 2}
    model = assert_fits_alike(two, oneof.PRODEN, settings)
    assert len(model.history_["loss"]) < 12


def test_fewer_validation_rows_than_workers(two):
    assert_fits_alike(two, oneof.CC, X_val=X[:1], y_val=SETS[:1])


def test_tables_as_long_as_there_are_rows_are_not_cut(two):
    # as many rows for training as classes, and as places in the queue
    rows, names = np.arange(16), np.arange(16)[:, None]
    settings = SETTINGS | {"views": "jitter+jitter", "queue_size": 16, "batch_size": 8, "embedding_size": 4}
    assert_fits_alike(two, oneof.PiCO, settings, X[rows], names.tolist())


def test_another_number_of_workers_goes_on(two, tmp_path):
    settings = SETTINGS | {"network": "linear", "validation_fraction": 0.2, "warm_up": 1}
    reference = oneof.IDGP(**settings).fit(X, SETS)
    alone, together = (oneof.IDGP(checkpoint=tmp_path / name, **settings) for name in ("alone", "together"))
    with pytest.raises(oneof.train.Paused):
        oneof.train.train(alone.prepare(X, SETS, pause=lambda: True))
    assert_same(by(two, alone), reference)
    trial = together.prepare(X, SETS)
    parts = cut(trial, tables_of_rows(together, trial), two.size)
    for part in parts:
        part.method.__class__ = EndsEarly
    with pytest.raises(InterruptedError):
        two.train(parts)
    trial = together.prepare(X, SETS)
    assert TrainingRun(trial).epoch == 2
    assert_same(together.fit(X, SETS), reference)


def test_divergence_is_told_and_the_best_weights_are_taken(two):
    settings = SETTINGS | {"epochs": 8, "network": "mlp", "validation_fraction": 0.2}
    with pytest.raises(TrainingDiverged, match=r"diverged in epoch 1 of 8"):
        by(two, oneof.CC(**settings, lr=1e100))
    with pytest.warns(UserWarning, match=r"diverged in epoch 2 of 8.* of epoch 1 are taken"):
        model = by(two, oneof.CC(**settings, lr=1e30))
    with pytest.warns(UserWarning, match=r"diverged in epoch 2 of 8.* of epoch 1 are taken"):
        reference = oneof.CC(**settings, lr=1e30).fit(X, SETS)
    assert_allclose(model.predict_proba(X), reference.predict_proba(X))


def test_layers_that_draw_are_refused(two):
    def dropping(shape, outputs):
        return nn.Sequential(nn.Linear(*shape, 8), nn.Dropout(), nn.Linear(8, outputs))

    with pytest.raises(ValueError, match="layer Dropout"):
        by(two, oneof.CC(network=dropping, **SETTINGS))
    with pytest.raises(ValueError, match="different random numbers"):
        by(two, oneof.CC(network=Drawing, **SETTINGS))


def test_warnings_of_workers_are_told(two):
    trial = oneof.IDGP(**SETTINGS, warm_up=1, b=0.5).prepare(X, SETS)
    outcome = two.train(cut(trial, trial.method.row_tables(), two.size))
    assert len(outcome.warned) == 1
    assert outcome.warned[0].startswith("b is 0.5: below 1")


def test_rows_that_pass_networks_in_parts(two):
    settings = SETTINGS | {"network": "mlp", "rows_at_once": 3}
    assert_same(by(two, oneof.PRODEN(**settings)), oneof.PRODEN(**settings | {"rows_at_once": None}).fit(X, SETS))
    with pytest.raises(ValueError, match=r"rows_at_once is 3, but the network has the layer BatchNorm1d"):
        by(two, oneof.PRODEN(**settings | {"network": "mlp5"}))


def test_bfloat16_inside_networks(two):
    settings = SETTINGS | {"network": "mlp", "precision": "bf16"}
    one, other = by(two, oneof.PRODEN(**settings)), oneof.PRODEN(**settings).fit(X, SETS)
    assert_allclose(one.predict_proba(X), other.predict_proba(X), atol=0.02)
