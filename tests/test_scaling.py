"""Tables are scaled by columns or as a whole, and `resolve` chooses between both where a model leaves it open."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import oneof
from oneof.estimator import resolve as module
from oneof.labels import SparseSets
from oneof.train import rows as rows_module
from oneof.train.rows import SCALINGS, Scaler, SparseRows

rng = np.random.default_rng(0)
N, K = 90, 3
T = np.arange(N) % K
X = np.column_stack([2 * np.eye(K)[T] + rng.normal(0, 1, (N, K)), rng.normal(5, 0.01, (N, 20)), np.full(N, 7.0)])
SETS = np.eye(K, dtype=bool)[T] | (rng.random((N, K)) < 0.3)
SETTINGS = {"network": "linear", "epochs": 8, "device": "cpu", "random_state": 0, "precision": "fp64"}


def model(**settings):
    return oneof.CC(**SETTINGS | settings)


def by_hand(x, weight):
    """Means, and the root of the mean weighted variance of the columns that vary; loops and no helper of ours."""
    means, variances = [], []
    for column in x.T:
        mean = sum(w * value for w, value in zip(weight, column, strict=True)) / sum(weight)
        means.append(mean)
        if len(set(column)) > 1:
            variances.append(
                sum(w * (value - mean) ** 2 for w, value in zip(weight, column, strict=True)) / sum(weight)
            )
    return np.array(means), (sum(variances) / len(variances)) ** 0.5


@pytest.mark.parametrize("block", [7, 65536])
def test_whole_is_one_number_for_all_columns_that_vary(block, monkeypatch):
    monkeypatch.setattr(rows_module, "_TABLE_BLOCK", block)
    weight, rows = rng.random(N), np.arange(0, N, 2)
    means, scale = by_hand(X[rows], weight[rows])
    scaler = Scaler.fit(X, rows, weight[rows], "whole")
    assert_allclose(scaler.mean, means, rtol=1e-12)
    assert_allclose(scaler.std[:-1], scale, rtol=1e-12)
    assert scaler.std[-1] == 1
    assert len(set(scaler.std[:-1].tolist())) == 1
    sparse = Scaler.fit(SparseRows(scipy.sparse.csr_array(X)), rows, weight[rows], "whole")
    assert (sparse.mean == 0).all()
    assert_allclose(sparse.std, scaler.std, rtol=1e-9)


def test_a_constant_column_of_a_sparse_table_is_not_blown_up():
    """Rounding leaves it a variance: 7 was divided by 1e-8."""
    for scaling in SCALINGS:
        for rows in (90, 91, 1000):
            x = scipy.sparse.csr_array(np.column_stack([np.full(rows, 7.0), np.arange(rows) % 2]))
            std = Scaler.fit(SparseRows(x), np.arange(rows), np.ones(rows), scaling).std
            assert_allclose(std, [1, 0.5], rtol=1e-3)


def test_a_table_of_constants_is_left_alone():
    assert (Scaler.fit(np.ones((5, 3)), np.arange(5), np.ones(5), "whole").std == 1).all()


def test_none_is_columns_to_the_last_bit():
    open_, columns, whole = (model(scaling=scaling).fit(X, SETS) for scaling in (None, *SCALINGS))
    assert_allclose(columns.scaler_.std[:-1], X.std(0)[:-1], rtol=1e-12)
    assert_array_equal(open_.predict_proba(X), columns.predict_proba(X))
    assert np.abs(whole.predict_proba(X) - columns.predict_proba(X)).max() > 0.01


def test_the_network_sees_rows_that_are_divided_by_one_number(tmp_path):
    fitted = model(scaling="whole", validation_fraction=0.2).fit(X, SETS)
    layer = next(each for each in fitted.network_.modules() if isinstance(each, torch.nn.Linear))
    weight, bias = (each.detach().numpy() for each in (layer.weight, layer.bias))
    scale = fitted.scaler_.std[0].item()
    scores = (X - fitted.scaler_.mean.numpy()) / np.append(np.full(K + 20, scale), 1) @ weight.T + bias
    p = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    assert_allclose(fitted.predict_proba(X), p, rtol=1e-6)
    fitted.save(tmp_path / "m")
    loaded = oneof.load_model(tmp_path / "m")
    assert loaded.scaling == "whole"
    assert_array_equal(loaded.predict_proba(X), fitted.predict_proba(X))


def test_sparse_rows_and_rows_on_disk_are_scaled_alike(tmp_path):
    kept = np.memmap(tmp_path / "x", np.float64, "w+", shape=X.shape)
    kept[:] = X
    fitted = model(scaling="whole").fit(X, SETS)
    assert_allclose(model(scaling="whole").fit(kept, SETS).predict_proba(X), fitted.predict_proba(X), rtol=1e-9)
    sparse = model(scaling="whole").fit(scipy.sparse.csr_array(X), SETS)
    assert_allclose(sparse.scaler_.std, fitted.scaler_.std, rtol=1e-9)
    assert_allclose(sparse.predict_proba(X), sparse.predict_proba(scipy.sparse.csr_array(X)), rtol=1e-9)


def test_images_have_a_scale_a_channel():
    images = rng.integers(0, 256, (12, 8, 8, 3), dtype=np.uint8)
    one, other = (
        model(epochs=1, batch_size=6, scaling=scaling).fit(images, SETS[:12]) for scaling in (None, "whole")
    )
    assert_array_equal(one.scaler_.std, other.scaler_.std)
    assert_array_equal(one.predict_proba(images), other.predict_proba(images))


def test_a_checkpoint_of_another_scaling_is_refused_and_a_warm_start_keeps_its_own(tmp_path):
    model(scaling="whole", checkpoint=tmp_path / "c").fit(X, SETS)
    with pytest.raises(ValueError, match="scaling"):
        model(checkpoint=tmp_path / "c").fit(X, SETS)
    going = model(scaling="whole", warm_start=True).fit(X, SETS)
    before = going.scaler_
    assert going.set_params(scaling="columns").fit(2 * X, SETS).scaler_ is before


# --- what resolve chooses ---------------------------------------------------------------------------------------


def loss_by_hand(scaling, x, weights, folds):
    """The least mean of -log sum_j pi_j softmax(lambda log p)_j over a grid of lambda, row by row."""
    p = np.zeros((len(x), K))
    for i in range(folds):
        train, rest = oneof_folds(len(x), folds)[i]
        p[rest] = model(scaling=scaling).fit(x[train], weights[train]).predict_proba(x[rest])
    losses = []
    for power in np.exp(np.linspace(np.log(0.05), np.log(5), 400)):
        rows = [np.log((w * q**power).sum() / (q**power).sum()) for w, q in zip(weights, p, strict=True)]
        losses.append(-np.mean(rows))
    return min(losses)


def oneof_folds(rows, folds):
    return module.folds_of(rows, folds, 0)


# What tells the classes apart: three columns of large variance, or twenty of small variance beside a large one.
LARGE = X
SMALL = np.column_stack([0.1 * np.eye(K)[T] + rng.normal(0, 0.05, (N, K)), rng.normal(0, 50, N)])


@pytest.mark.parametrize(("x", "best"), [(LARGE, "whole"), (SMALL, "columns")], ids=["large", "small"])
@pytest.mark.parametrize("form", ["dense", "frame", "sparse"])
def test_resolve_takes_what_makes_the_candidates_likelier(x, best, form):
    forms = {"dense": SETS, "frame": pd.DataFrame(SETS), "sparse": scipy.sparse.csr_array(SETS)}
    given = pd.DataFrame(x) if form == "frame" else x
    losses = {scaling: loss_by_hand(scaling, x, SETS, 3) for scaling in SCALINGS}
    assert min(losses, key=losses.get) == best
    found = oneof.resolve(model(), given, forms[form], folds=3)
    named = oneof.resolve(model(scaling=best), given, forms[form], folds=3)
    assert (found.scaling, named.scaling) == (best, None)
    for one, other in zip(found, named, strict=True):
        assert_array_equal(one, other)
    sets = SparseSets(scipy.sparse.csr_array(SETS)) if form == "sparse" else SETS
    judged = judge(model(scaling=best), x, sets)
    assert judged.loss == pytest.approx(losses[best], abs=1e-4)


def judge(each, x, sets):
    return module._judged(each, x, sets, np.arange(K), oneof_folds(N, 3))


def test_weights_are_honoured_and_other_trainings_are_not_made(monkeypatch):
    weights = np.where(SETS, rng.uniform(0.2, 1, SETS.shape), 0)
    fits = []
    fitted_on_others = module.held_out_log_proba

    def noted(each, *given):
        fits.append(each.scaling)
        return fitted_on_others(each, *given)

    monkeypatch.setattr(module, "held_out_log_proba", noted)
    found = oneof.resolve(model(), X, oneof.WeightedSets(weights), folds=3)
    assert fits == list(SCALINGS)
    assert found.scaling == "whole"
    oneof.resolve(model(scaling="columns"), X, oneof.WeightedSets(weights), folds=3)
    images = rng.integers(0, 256, (12, 8, 8, 3), dtype=np.uint8)
    assert oneof.resolve(model(epochs=1), images, SETS[:12], folds=2).scaling is None
    assert fits == [*SCALINGS, "columns", None]


def test_with_labels_off_the_sets_losses_of_two_rates_can_be_compared(monkeypatch):
    """-log P(S) by brute force: a set holds its label with 1 - rate, else one of the others, which are alike."""
    each, log_p = oneof.PRODEN(**SETTINGS, outside=0.2), np.log(rng.dirichlet(np.ones(K), N))
    monkeypatch.setattr(module, "held_out_log_proba", lambda *given: log_p)
    sets = SETS & (SETS.sum(1, keepdims=True) < K) | np.eye(K, dtype=bool)[T]
    off = -module.with_outside(sets, 0.5) * (~sets)  # the weights of labels off the sets, at even odds
    losses = []
    for power in np.exp(np.linspace(np.log(0.05), np.log(5), 2000)):
        p = np.exp(power * log_p)
        p /= p.sum(1, keepdims=True)
        losses.append(-np.log((0.8 * sets * p).sum(1) + 0.2 * (np.abs(off) * p).sum(1)).mean())
    assert judge(each, X, sets).loss == pytest.approx(min(losses), abs=1e-5)


def test_a_chosen_scaling_is_taken_by_a_fit():
    found = oneof.resolve(model(), X, SETS, folds=3)
    assert clone(model()).set_params(scaling=found.scaling).fit(X, SETS).scaling == "whole"
