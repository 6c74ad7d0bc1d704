"""IDGP with likelihood_weight=None: the weight is the one whose model covers the sets of held-out rows best."""

import numpy as np
import pytest
import torch

import oneof
from oneof.estimator import held_out_choice
from oneof.methods import idgp
from oneof.testing.small_problems import make_data
from oneof.train import train
from oneof.train.parallel import grouping

SETTINGS = {
    "network": "linear", "epochs": 6, "batch_size": 20, "warm_up": 2, "precision": "fp64", "device": "cpu",
    "random_state": 3, "optimizer": "sgd",
}  # fmt: skip


@pytest.fixture
def rows():
    data = make_data(rows=60, features=5, classes=4, seed=3)
    return data.x.numpy(), data.candidates.numpy()


@pytest.fixture
def judged(monkeypatch):
    """Record every training that was judged, by whom, and what it cost."""
    found, cost = [], held_out_choice._cost

    def recorded(trial, judges):
        found.append((trial, judges, cost(trial, judges)))
        return found[-1][2]

    monkeypatch.setattr(held_out_choice, "_cost", recorded)
    return found


def test_the_weight_is_the_one_that_covers_held_out_sets_best(rows, judged):
    X, S = rows
    weight = np.linspace(0.5, 2, 60)
    model = oneof.IDGP(likelihood_weight=None, **SETTINGS).fit(X, S, sample_weight=weight)
    tried = [float(trial.method.likelihood_weight_) for trial, _, _ in judged]
    assert tried == [*idgp.WEIGHTS] * 5  # folds
    assert len({tuple(row) for _, judges, _ in judged for row in judges.x.tolist()}) == 60  # every row judges
    for trial, judges, cost in judged:
        seen = torch.cat([trial.data.x, judges.x]).numpy()
        assert len(judges) == 12
        assert np.array_equal(np.sort(seen, 0), np.sort(model.scaler_.store(X, torch.float64).numpy(), 0))
        p = trial.method.class_scores(judges.x).softmax(-1).detach().numpy()
        covered = -np.log((p * judges.candidates.numpy()).sum(1))
        assert cost == pytest.approx(covered @ judges.weight.numpy(), abs=1e-12)
    costs = {w: sum(cost for one, (_, _, cost) in zip(tried, judged, strict=True) if one == w) for w in tried}
    best = min(costs, key=costs.get)
    assert float(model.likelihood_weight_) == best
    fixed = oneof.IDGP(likelihood_weight=best, **SETTINGS).fit(X, S, sample_weight=weight)
    np.testing.assert_allclose(model.predict_proba(X), fixed.predict_proba(X), atol=1e-12)


def test_with_many_rows_one_fold_judges(rows, judged, monkeypatch):
    monkeypatch.setattr(held_out_choice, "_ENOUGH", 12)
    oneof.IDGP(likelihood_weight=None, **SETTINGS).fit(*rows)
    assert len(judged) == 3


def test_a_training_that_diverges_is_not_chosen(rows, monkeypatch):
    monkeypatch.setattr(idgp, "WEIGHTS", (1e300, 0.1))
    model = oneof.IDGP(likelihood_weight=None, **SETTINGS).fit(*rows)
    assert float(model.likelihood_weight_) == 0.1


def test_a_checkpoint_keeps_the_choice(rows, judged, tmp_path):
    settings = SETTINGS | {"likelihood_weight": None, "checkpoint": tmp_path / "c"}
    whole = oneof.IDGP(**SETTINGS | {"likelihood_weight": None}).fit(*rows)
    judged.clear()
    first = oneof.IDGP(**settings)
    with pytest.raises(oneof.train.Paused):
        train(first.prepare(*rows, pause=lambda: True))
    assert len(judged) == 15
    second = oneof.IDGP(**settings).fit(*rows)
    assert len(judged) == 15
    assert second.likelihood_weight_ == first.likelihood_weight_
    assert np.array_equal(second.predict_proba(rows[0]), whole.predict_proba(rows[0]))


def test_the_choice_is_saved_and_validation_rows_stop_every_training(rows, judged, tmp_path):
    X, S = rows
    model = oneof.IDGP(**SETTINGS | {"likelihood_weight": None, "validation_fraction": 0.2, "patience": 1}).fit(
        X, S
    )
    assert judged
    assert all(len(trial.sets) == 12 and trial.state.best_weights for trial, _, _ in judged)
    model.save(tmp_path / "m")
    again = oneof.load_model(tmp_path / "m")
    assert again.likelihood_weight_ == model.likelihood_weight_
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))


def test_a_stack_has_the_weight_of_each_trial(rows, monkeypatch):
    """Models that chose different weights are trained as one stack, and end as alone."""
    X, S = rows
    weights = iter([0.01, 1.0] * 2)
    monkeypatch.setattr("oneof.estimator.classifier.choose_number", lambda *given: next(weights))
    seen, run = [], grouping.run_epochs
    monkeypatch.setattr(
        grouping, "run_epochs", lambda training: (seen.append(len(training.trials)), run(training))
    )
    models = [oneof.IDGP(likelihood_weight=None, **SETTINGS) for _ in range(2)]
    oneof.fit_together(models, [{"X": X, "y": S}] * 2)
    assert seen == [2]
    for model in models:
        alone = oneof.IDGP(likelihood_weight=None, **SETTINGS).fit(X, S)
        assert alone.likelihood_weight_ == model.likelihood_weight_
        np.testing.assert_allclose(model.predict_proba(X), alone.predict_proba(X), atol=1e-10)
    assert not np.allclose(models[0].predict_proba(X), models[1].predict_proba(X))


def test_rows_in_the_memory_of_the_host_choose_the_same(rows, tmp_path):
    X, S = rows
    on_disk = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", X.dtype, X.shape)
    on_disk[:] = X
    models = [oneof.IDGP(likelihood_weight=None, **SETTINGS).fit(x, S) for x in (X, on_disk)]
    assert models[0].likelihood_weight_ == models[1].likelihood_weight_


def test_distractors_of_rows_know_rows():
    """Each row has one of two features, which says which wrong label joins; labels are equally often wrong."""
    rng = np.random.default_rng(0)
    y, kind = rng.integers(0, 2, 400), rng.integers(0, 2, 400)
    X = np.stack([y + 0.1 * rng.normal(size=400), kind + 0.1 * rng.normal(size=400)], 1)
    S = np.zeros((400, 4), bool)
    S[np.arange(400), y] = S[np.arange(400), 2 + kind] = True
    settings = {"network": "linear", "optimizer": "sgd", "epochs": 40, "device": "cpu", "random_state": 0}
    z = oneof.IDGP(distractors="rows", **settings).fit(X, S).distractor_proba(X)
    assert (z[np.arange(400), 2 + kind] > 0.8).all()
    assert (z[np.arange(400), 3 - kind] < 0.2).all()
    blunt = oneof.IDGP(**settings).fit(X, S).distractor_proba(X)
    assert (blunt[:, 2:].max(0) - blunt[:, 2:].min(0) < 0.5).all()
