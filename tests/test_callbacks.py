"""Callbacks: what they are told, how they end a training, and the ready ones with the tools they are for."""

from types import SimpleNamespace

import numpy as np
import pytest

import oneof
from oneof.callbacks import MLflow, OptunaPruning, TensorBoard, WandB
from oneof.train import train


def model(**settings):
    # The cosine depends on the number of epochs: fits of fewer epochs would not begin alike.
    return oneof.CC(
        network="linear", random_state=0, **{"epochs": 6, "lr": 0.1, "schedule": "constant"} | settings
    )


def test_callbacks_are_told_what_the_history_says(blobs):
    X, S, y = blobs
    told = []
    fitted = model().fit(X, S, X_val=X, y_val=y, callbacks=[told.append])
    assert [report.epoch for report in told] == list(range(6))
    assert [report.loss for report in told] == fitted.history_["loss"]
    assert [report.scores["validation_score"] for report in told] == fitted.history_["validation_score"]
    assert told[0].numbers().keys() == {"loss", "validation_score"}


def test_metrics_are_among_the_scores(blobs):
    X, S, _ = blobs
    told = []
    trial = model().prepare(X, S, X_watched=X, metrics=lambda p: {"largest": p.max()}, callbacks=[told.append])
    train(trial)
    assert [report.scores["largest"] for report in told] == trial.state.history["largest"]


def test_true_ends_the_training_and_all_are_told(blobs):
    X, S, _ = blobs
    told = []
    stopped = model().fit(X, S, callbacks=[lambda report: report.epoch == 2, told.append])
    assert len(stopped.history_["loss"]) == len(told) == 3
    assert np.array_equal(stopped.predict_proba(X), model(epochs=3).fit(X, S).predict_proba(X))
    assert len(model().fit(X, S, callbacks=[lambda report: 1]).history_["loss"]) == 6  # True alone ends it


def test_a_stop_keeps_the_best_weights(blobs):
    X, S, y = blobs
    scores = []

    def falls(report):
        scores.append(report.scores["validation_score"])
        return report.epoch == 4

    fitted = model().fit(X, S, X_val=X, y_val=y, callbacks=[falls])
    assert fitted.score(X, y) == pytest.approx(max(scores))


def test_one_of_a_stack_may_stop(blobs):
    X, S, _ = blobs
    models = [model(), model(lr=0.05)]
    given = [{"X": X, "y": S, "callbacks": [lambda report: report.epoch == 1]}, {"X": X, "y": S}]
    first, second = oneof.fit_together(models, given)
    assert (len(first.history_["loss"]), len(second.history_["loss"])) == (2, 6)
    assert np.allclose(first.predict_proba(X), model(epochs=2).fit(X, S).predict_proba(X), atol=1e-6)


def test_an_error_of_a_callback_is_the_users(blobs):
    X, S, _ = blobs

    def fails(report):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        model().fit(X, S, callbacks=[fails])


@pytest.mark.parametrize("wrong", [None, 3, print, [3], {"a": print}, "print"])
def test_callbacks_are_a_list_of_callables(wrong, blobs):
    X, S, _ = blobs
    with pytest.raises(TypeError, match=r"callbacks is .*pass \[callback\]"):
        model().fit(X, S, callbacks=wrong)


# --- ready ones --------------------------------------------------------------------------------------------------


def test_numbers_reach_what_people_watch(blobs):
    """With objects that have the methods of the real ones."""
    X, S, y = blobs
    points, steps, logged = [], [], []
    writer = SimpleNamespace(add_scalar=lambda *point: points.append(point))
    mlflow = SimpleNamespace(log_metrics=lambda numbers, step: steps.append((step, numbers)))
    run = SimpleNamespace(log=lambda numbers, step: logged.append((step, numbers)))
    callbacks = [TensorBoard(writer, "cc/"), MLflow(mlflow), WandB(run)]
    history = model(epochs=2).fit(X, S, X_val=X, y_val=y, callbacks=callbacks).history_
    assert points == [
        (f"cc/{name}", history[name][epoch], epoch) for epoch in range(2) for name in ("loss", "validation_score")
    ]
    expected = [
        (epoch, {name: history[name][epoch] for name in ("loss", "validation_score")}) for epoch in range(2)
    ]
    assert steps == logged == expected


def test_tensorboard_writes_a_file(blobs, tmp_path):
    pytest.importorskip("tensorboard")
    from torch.utils.tensorboard import SummaryWriter

    X, S, _ = blobs
    with SummaryWriter(tmp_path) as writer:
        model(epochs=2).fit(X, S, callbacks=[TensorBoard(writer)])
    assert next(tmp_path.iterdir()).stat().st_size > 0


def test_optuna_prunes(blobs):
    optuna = pytest.importorskip("optuna")
    X, S, y = blobs
    optuna.logging.set_verbosity(optuna.logging.ERROR)

    def objective(trial):
        lr = trial.suggest_categorical("lr", [0.1, 1e-9])
        fitted = model(lr=lr, batch_size=5).fit(X, S, X_val=X, y_val=y, callbacks=[OptunaPruning(trial)])
        return fitted.score(X, y)

    study = optuna.create_study(
        direction="maximize",
        sampler=optuna.samplers.GridSampler({"lr": [0.1, 1e-9]}, seed=1),
        pruner=optuna.pruners.ThresholdPruner(lower=0.85, n_warmup_steps=3),
    )
    study.optimize(objective, n_trials=2)
    states = {trial.params["lr"]: trial.state.name for trial in study.trials}
    assert states == {0.1: "COMPLETE", 1e-9: "PRUNED"}


def test_optuna_needs_a_score(blobs):
    pytest.importorskip("optuna")
    X, S, _ = blobs
    with pytest.raises(ValueError, match=r"score is 'validation_score', but an epoch has \['loss'\]; pass X_val"):
        model().fit(X, S, callbacks=[OptunaPruning(SimpleNamespace(should_prune=bool))])
