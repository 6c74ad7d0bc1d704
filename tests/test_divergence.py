"""Trainings that diverge: an error or the best weights of before, never a model that answers NaN or class 0."""

import warnings

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import oneof
from conftest import MEMBERS, every_method, fit_with
from oneof.bench.running.execute import Job, execute
from oneof.bench.running.problem import Problem
from oneof.data import PartialLabels
from oneof.train import Paused, TrainingDiverged
from oneof.train.divergence import weights_finite, weights_finite_by_trial
from oneof.train.loop import TrainingRun, run_epochs
from oneof.train.parallel import graphs
from oneof.train.runtime import seed_for
from test_recordings import fit_recorded, recordings  # noqa: F401  a fixture

SETTINGS = {
    "epochs": 12, "batch_size": 10, "lr": 0.1, "schedule": "constant", "random_state": 0, "device": "cpu"
}  # fmt: skip
HUGE = {"lr": 1e30}


def made(method, **settings):
    return method(**SETTINGS | settings)


class Breaking(oneof.PRODEN):
    """A method whose weights, losses or tables are spoiled in an epoch."""

    breaks, at = "weight", 3

    def start(self, data):
        super().start(data)
        self.small_ = torch.zeros(2)  # a table without a row for each example

    def step(self, batch):
        if batch.before(self.at):
            self.small_.fill_(1.0)
            yield self.identify(batch, batch.candidates)
            return
        self.small_.fill_(float("nan"))
        if self.breaks == "weight":
            yield self.identify(batch, batch.candidates)
            with torch.no_grad():
                self.network_.head.bias[0] = float("inf")
        elif self.breaks == "output":
            yield self.identify(batch, batch.candidates)
            with torch.no_grad():  # finite weights, whose outputs are not
                self.network_.head.weight.fill_(3e35).mul_(torch.tensor([[1.0], [-1.0], [1.0]]))
                self.network_.body[1].weight.mul_(1e4)
        else:
            yield self.identify(batch, batch.candidates) * float("inf")


@every_method
@pytest.mark.parametrize("network", ["linear", "mlp"])
def test_a_training_that_diverges_is_an_error_and_no_model(method, network, blobs):
    X, S, _ = blobs
    model = made(method, network=network, **HUGE)
    name = type(model).__name__
    message = (
        rf"{name} diverged in epoch \d+ of 12 with lr=1e\+30.*: .* lower lr \(try 1e\+29\), take extreme values"
    )
    with pytest.raises(TrainingDiverged, match=message) as caught:
        model.fit(X, S)
    assert isinstance(caught.value, ArithmeticError)
    assert len(str(caught.value)) < 350
    with pytest.raises(NotFittedError):
        model.predict(X)
    assert not hasattr(model, "label_distributions_")
    model.set_params(lr=0.01).fit(X, S).predict(X)  # and the model can be fitted again


@pytest.mark.parametrize("breaks", ["weight", "loss", "output"])
def test_the_epoch_is_named_and_the_best_weights_of_before_are_kept(breaks, blobs):
    X, S, y = blobs
    method = type("Breaking", (Breaking,), {"breaks": breaks})
    given = {"X_val": X[:20], "y_val": y[:20]} if breaks == "output" else {}
    if not given:
        with pytest.raises(TrainingDiverged, match=r"Breaking diverged in epoch 4 of 12 with lr=0\.1"):
            made(method).fit(X, S)
        given = {"X_val": X[:20], "y_val": y[:20]}
    seen = []
    model = made(method)
    with pytest.warns(
        UserWarning, match=r"diverged in epoch 4 of 12.* The weights of epoch (\d) are taken, the best"
    ):
        fit_with(model, X, S, None, **given, on_epoch=lambda _: seen.append(model.predict_proba(X)))
    assert len(seen) == len(model.history_["loss"]) == 3
    best = int(np.argmax(model.history_["validation_score"]))
    assert np.array_equal(model.predict_proba(X), seen[best])
    assert np.isfinite(model.label_distributions_).all()
    for name, tensor in model.learned().items():
        assert torch.isfinite(tensor).all(), name
    assert (model.small_ == 1).all()  # as it was at the best epoch


@every_method
def test_validation_rows_keep_the_best_weights_of_every_method(method, blobs, tmp_path):
    """A learning rate that explodes after some epochs: what was good before is kept, saved and loaded."""
    X, S, y = blobs
    calm = made(method, epochs=12, warm_up=1) if "warm_up" in method().get_params() else made(method)
    trial = calm.prepare(X, S, X_val=X, y_val=y)

    def explode(epoch):
        if epoch == 3:
            with torch.no_grad():
                for module in calm.modules():
                    for parameter in module.parameters():
                        parameter.fill_(float("nan"))
                for table in calm.tables().values():
                    if table.is_floating_point():
                        table.fill_(float("nan"))

    trial.on_epoch = explode
    with pytest.warns(UserWarning, match="are taken, the best by the validation rows"):
        calm.finish(oneof.train.train(trial))
    assert len(calm.history_["loss"]) == 4
    assert np.isfinite(calm.label_distributions_).all()
    assert calm.score(X, y) > 0.5
    assert all(not tensor.isnan().any() for tensor in calm.learned().values())
    calm.save(tmp_path / "m")
    again = oneof.load_model(tmp_path / "m", device="cpu")
    assert np.array_equal(again.predict_proba(X), calm.predict_proba(X))


def test_an_ordinary_training_warns_of_nothing(blobs):
    X, S, y = blobs
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made(oneof.PRODEN).fit(X, S, X_val=X, y_val=y)


def test_a_checkpoint_never_holds_what_diverged(blobs, tmp_path, monkeypatch):
    X, S, _ = blobs
    monkeypatch.setattr(oneof.train.checkpoint, "SECONDS_BETWEEN_SAVES", 0.0)
    settings = {"checkpoint": tmp_path / "c", "validation_fraction": 0.3}
    for _ in range(2):  # the second goes on from the epoch before, and ends in the same way
        with pytest.warns(UserWarning, match="Breaking diverged in epoch 4 of 12"):
            model = made(Breaking, **settings).fit(X, S)
    tensors, facts = oneof.io.tensors.read(tmp_path / "c", "checkpoint")
    assert facts["state"]["epoch"] == 3
    assert all(not tensor.isnan().any() for tensor in tensors.values())
    assert len(model.history_["loss"]) == 3
    assert [path.name for path in tmp_path.iterdir()] == ["c"]


# --- several trials ---------------------------------------------------------------------------------------


def test_fit_together_fits_the_others_and_names_those_that_diverged(blobs):
    X, S, _ = blobs
    models = [made(oneof.CC, network="linear", lr=lr) for lr in (0.1, 1e30, 0.2, 1e30)]
    models.append(made(oneof.PRODEN, network="mlp5", lr=1e30))  # one that is not stacked
    models.append(made(Breaking, validation_fraction=0.3))
    alone = [clone(models[i]).fit(X, S) for i in (0, 2)]
    with (
        pytest.raises(
            TrainingDiverged, match=r"3 of 6 models diverged \(models\[1\], models\[3\], models\[4\]\) and"
        ),
        pytest.warns(UserWarning, match="Breaking diverged in epoch 4"),
    ):
        oneof.fit_together(models, [{"X": X, "y": S}] * 6)
    for i, other in zip((0, 2), alone, strict=True):
        np.testing.assert_allclose(models[i].predict_proba(X), other.predict_proba(X), atol=1e-6)
    assert models[5].history_["loss"]


def test_many_names_are_cut(blobs):
    X, S, _ = blobs
    models = [made(oneof.CC, network="linear", **HUGE) for _ in range(30)]
    with pytest.raises(TrainingDiverged, match=r"30 of 30 models.*models\[9\], \.\.\. \(30 in all\)\)") as caught:
        oneof.fit_together(models, [{"X": X, "y": S}] * 30)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("breaks", ["weight", "loss", "output"])
def test_a_trial_leaves_a_stack_when_it_diverges(breaks, blobs):
    """In its own epoch, with its own best weights; the others go on to the end."""
    X, S, y = blobs
    given = {"X": X, "y": S, "X_val": X[:20], "y_val": y[:20]}
    models = [made(oneof.CC, network="mlp", random_state=seed, momentum=0.0) for seed in range(3)]
    references = [clone(model).fit(**given) for model in models]
    trials = [model.prepare(**given) for model in models]

    def spoil(epoch):
        if epoch == 2:
            stack = stacks[0]
            with torch.no_grad():
                if breaks == "output":
                    stack.method.network_.head.weight[1].fill_(3e38)
                    stack.method.network_.body[1].weight[1].fill_(1.0)
                elif breaks == "loss":
                    stack.data.weight[1] = float("nan")
                else:
                    stack.method.network_.head.bias[1, 0] = float("-inf")

    stacks = []
    made_stack = oneof.train.parallel.stack.StackedTrials.__init__

    def watch(stack, started):
        made_stack(stack, started)
        stacks.append(stack)

    trials[0].on_epoch = spoil
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(oneof.train.parallel.stack.StackedTrials, "__init__", watch)
        oneof.train.train_together(trials)
    assert [trial.diverged is not None for trial in trials] == [False, True, False]
    assert [trial.state.epoch for trial in trials] == [12, 3, 12]
    with pytest.warns(UserWarning, match="CC diverged in epoch 4 of 12"):
        models[1].finish(trials[1])
    for i in (0, 2):
        models[i].finish(trials[i])
        assert models[i].history_["loss"] == pytest.approx(references[i].history_["loss"], rel=1e-4)
        np.testing.assert_allclose(models[i].predict_proba(X), references[i].predict_proba(X), atol=1e-4)
    best = references[1].history_["validation_score"][:3]
    assert models[1].history_["validation_score"] == pytest.approx(best, abs=1e-4)
    assert models[1].score(X[:20], y[:20]) == pytest.approx(max(best), abs=1e-3)


def test_recorded_steps_diverge_as_others_do(blobs, recordings):  # noqa: F811
    X, S, _ = blobs
    with pytest.raises(TrainingDiverged, match="CC diverged in epoch 1 of 12"):
        fit_recorded(made(oneof.CC, **HUGE), {"X": X, "y": S})
    with pytest.warns(UserWarning, match="Breaking diverged in epoch 4"):
        fit_recorded(made(Breaking, validation_fraction=0.3), {"X": X, "y": S})


def test_a_trial_side_by_side_leaves_when_it_diverges(blobs, recordings):  # noqa: F811
    X, S, _ = blobs
    models = [made(oneof.CC, lr=lr, validation_fraction=0.2) for lr in (0.1, 1e30, 0.05)]
    twins = [clone(models[i]).fit(X, S) for i in (0, 2)]
    trials = [model.prepare(X, S) for model in models]
    generators = [torch.Generator().manual_seed(seed_for(trial.setup.seed, "noise")) for trial in trials]
    run_epochs(graphs.ConcurrentTrials([TrainingRun(trial) for trial in trials], generators))
    with pytest.raises(TrainingDiverged, match="CC diverged in epoch 1 of 12"):
        models[1].finish(trials[1])
    for i, twin in zip((0, 2), twins, strict=True):
        assert models[i].finish(trials[i]).history_ == twin.history_


def test_a_pause_goes_on_without_what_diverged(blobs, tmp_path):
    X, S, _ = blobs
    models = [made(oneof.CC, network="linear", lr=lr, checkpoint=tmp_path / str(lr)) for lr in (0.1, 1e30)]
    trials = [model.prepare(X, S) for model in models]
    trials[0].pause = lambda: trials[0].state.epoch == 2
    with pytest.raises(Paused):
        oneof.train.train_together(trials)
    assert [path.name for path in tmp_path.iterdir()] == ["0.1"]
    assert trials[1].diverged is not None


# --- one check an epoch -----------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_weights_that_are_not_finite_are_found(value):
    weights = [torch.randn(3, 4), torch.randn(3, 2, 2), torch.arange(3)]
    assert weights_finite(weights)
    assert weights_finite_by_trial(weights).tolist() == [True] * 3
    weights[1][1, 0, 1] = value
    assert not weights_finite(weights)
    assert weights_finite_by_trial(weights).tolist() == [True, False, True]


def test_numbers_are_read_back_once_an_epoch(blobs, monkeypatch):
    X, S, _ = blobs
    read = []
    plain = {name: getattr(torch.Tensor, name) for name in ("item", "tolist", "__bool__", "__float__")}
    for name, function in plain.items():
        monkeypatch.setattr(torch.Tensor, name, lambda self, *a, f=function, n=name: read.append(n) or f(self, *a))
    trial = made(oneof.CC, epochs=5).prepare(X, S)
    read.clear()
    counts = []
    trial.on_epoch = lambda _: counts.append(read.count("tolist") + read.count("item") + read.count("__bool__"))
    oneof.train.train(trial)
    assert np.diff(counts).tolist() == [1] * 4


# --- predictions ------------------------------------------------------------------------------------------


def test_predictions_of_nan_are_refused_with_their_rows(blobs):
    X, S, _ = blobs
    model = made(oneof.CC).fit(X, S)
    far = X.copy()
    far[[3, 5]] = 1e200
    message = r"CC gives NaN in rows 3, 5 \(2 in all\): their values or its weights are too large"
    for predict in (model.predict, model.predict_proba, model.predict_log_proba):
        with pytest.raises(ValueError, match=message):
            predict(far)
    for judge in (model.score, model.disambiguate):
        with pytest.raises(ValueError, match=message):
            judge(far, S)
    with torch.no_grad():
        model.network_.head.weight.fill_(float("nan"))
    with pytest.raises(ValueError, match=r"CC gives NaN in rows 0, 1, 2"):
        model.predict(X)


@pytest.mark.parametrize("name", ["idgp", "membership"])
def test_other_probabilities_of_nan_are_refused_too(name, blobs):
    X, S, _ = blobs
    model = made(MEMBERS[name]).fit(X, S)
    far = np.full_like(X, 1e200)
    with pytest.raises(ValueError, match="gives NaN in rows 0, 1"):
        (model.distractor_proba if name == "idgp" else model.membership_proba)(far)


def test_the_rates_of_other_networks_are_named(blobs):
    X, S, _ = blobs
    with pytest.raises(TrainingDiverged, match=r"with lr=0\.1 \(and 1e\+30 of other networks\): its loss"):
        made(MEMBERS["idgp"], lr_g=1e30).fit(X, S)


# --- experiments ------------------------------------------------------------------------------------------


def test_an_experiment_that_diverges_is_a_failure_of_its_own_kind(blobs):
    X, S, y = blobs
    data = PartialLabels(X, S, y, list(range(3)), "made")
    problem = Problem(data.take(range(24)), data.take(range(24, 32)), data.take(range(32, 40)), {})
    settings = {"network": "linear", "epochs": 3, "patience": None}
    specs = [
        {"method": "CC", "settings": settings | {"lr": lr}, "labels": "candidates", "seed": 0}
        for lr in (0.1, 1e30)
    ]
    done, failed = execute([Job(spec, problem, None) for spec in specs], "cpu", None)
    assert (done["status"], failed["status"]) == ("done", "failed")
    assert "reason" not in done
    assert failed["reason"] == "diverged"
    assert failed["error"].startswith("CC diverged in epoch ")
    assert "\n" not in failed["error"]
    assert failed["seconds"] >= 0


def test_an_experiment_whose_distributions_are_lost_has_diverged_too(blobs, monkeypatch):
    X, S, y = blobs
    data = PartialLabels(X, S, y, list(range(3)), "made")
    problem = Problem(data.take(range(24)), data.take(range(24, 32)), data.take(range(32, 40)), {})
    spec = {"method": "CC", "settings": {"network": "linear", "epochs": 2}, "labels": "candidates", "seed": 0}
    monkeypatch.setattr(oneof.CC, "label_posterior", lambda self, x, S: torch.full(S.shape, float("nan")))
    (failed,) = execute([Job(spec, problem, None)], "cpu", None)
    assert (failed["status"], failed["reason"]) == ("failed", "diverged")
