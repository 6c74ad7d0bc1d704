"""Many trials at once: each must end as if it had been trained alone, whatever the others do."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch import nn

import oneof
from conftest import MEMBERS, every_method, fit_with
from oneof.estimator.fields import hyperparameters
from oneof.io import tensors as tensor_file
from oneof.train import Paused, TrainingDiverged
from oneof.train.parallel import grouping as together
from oneof.train.parallel.stack import StackedTrials

# Whole vectors of the processor in every batch: what fills none is computed by other code, with other last bits.
ROWS, FEATURES, CLASSES = 88, 16, 4
# Past every warm-up after one epoch; 16 rows are held out, and 8 of 72 are left over by the batches.
SETTINGS = {"epochs": 4, "batch_size": 32, "validation_fraction": 0.18, "device": "cpu"}
NEEDS = {
    "IDGP": {"warm_up": 1},
    "VALEN": {"warm_up": 1},
    "Membership": {"warm_up": 1},
    "PiCO": {"queue_size": 40, "embedding_size": 16},
    "DIRK": {"queue_size": 40, "embedding_size": 16},
    "PaPi": {"ramp": 2, "embedding_size": 16},
    "CroSel": {"warm_up": 1},
    "PLCR": {"ramp": 2},
}
VARIANTS = {
    **{name: (method, {}) for name, method in MEMBERS.items()},
    "idgp ml": (oneof.IDGP, {"objective": "ml"}),
    "idgp uniform": (oneof.IDGP, {"objective": "uniform"}),
    "idgp released": (oneof.IDGP, {"objective": "released"}),
    "idgp rows": (oneof.IDGP, {"distractors": "rows"}),
    "idgp sequential": (oneof.IDGP, {"alternate": "sequential"}),
    "idgp snapshots and views": (oneof.IDGP, {"m": 0.3, "r": 1, "q": 2, "views": "plain+jitter"}),
    "valen warmed and views": (oneof.VALEN, {"inference_start": "warmed", "views": "jitter+plain"}),
    "cosine": (oneof.PRODEN, {"schedule": "cosine"}),
    "no momentum": (oneof.CC, {"momentum": 0.0}),
    "triangular": (oneof.PRODEN, {"schedule": "triangular", "average": 0.5}),
    "triangular without momentum": (oneof.CC, {"schedule": "triangular", "momentum": 0.0}),
    "adamw": (oneof.IDGP, {"optimizer": "adamw", "warm_up": 2}),
    "adamw and phases": (oneof.VALEN, {"optimizer": "adamw", "schedule": "triangular", "warm_up": 2}),
}


def arguments(seed, rows=ROWS):
    """Rows, candidate sets and weights that no other seed has; some rows weigh nothing."""
    rng = np.random.default_rng(seed)
    y = rng.integers(CLASSES, size=rows)
    y[:CLASSES] = np.arange(CLASSES)
    X = rng.normal(size=(rows, FEATURES)) + np.eye(CLASSES, FEATURES)[y]
    candidates = rng.random((rows, CLASSES)) < 0.3
    candidates[np.arange(rows), y] = True
    return {"X": X, "y": candidates, "sample_weight": rng.integers(3, size=rows)}


def trials(method, count=4, **settings):
    """Make models that differ in seed, learning rate and weight decay, and the data of each."""
    models = [method(random_state=i, lr=0.02 * (i + 1), weight_decay=1e-3 * i, **SETTINGS) for i in range(count)]
    for i, model in enumerate(models):
        model.set_params(**NEEDS.get(type(model).__name__, {}) | settings)
        if isinstance(model, oneof.IDGP):
            model.set_params(lr_g=0.01 * (count - i), weight_decay_g=0.1 * i)
    return models, [arguments(100 + i) for i in range(count)]


def alone(models, given):
    return [clone(model).set_params(checkpoint=None).fit(**one) for model, one in zip(models, given, strict=True)]


def everything(model):
    """All that a fit leaves behind, as arrays."""
    learned = {name: tensor.numpy() for name, tensor in model.learned().items()}
    history = {f"history {name}": np.array(values) for name, values in model.history_.items()}
    probabilities = model.predict_proba(arguments(0)["X"])
    return learned | history | {"sets": model.label_distributions_, "probabilities": probabilities}


def assert_close(first, second):
    first, second = everything(first), everything(second)
    assert first.keys() == second.keys()
    for name, value in first.items():
        np.testing.assert_allclose(value, second[name], rtol=1e-8, atol=1e-8, err_msg=name)


def assert_same_bits(first, second):
    first, second = everything(first), everything(second)
    assert first.keys() == second.keys()
    for name, value in first.items():
        assert np.array_equal(value, second[name], equal_nan=True), name


@pytest.fixture
def runs(monkeypatch):
    """Write down every training run: its kind and its number of trials."""
    seen, run = [], together.run_epochs

    def watched_run(training):
        seen.append((type(training).__name__, len(training.trials)))
        run(training)

    monkeypatch.setattr(together, "run_epochs", watched_run)
    return seen


# --- the same as alone ------------------------------------------------------------------------------------


@pytest.mark.parametrize("network", ["linear", "mlp"])
@pytest.mark.parametrize("name", VARIANTS)
def test_each_trial_ends_as_alone(name, network, runs, tmp_path):
    """Weights, tables, history, momentum and random streams, in float64."""
    method, settings = VARIANTS[name]
    models, given = trials(method, network=network, precision="fp64", **settings)
    twins = [clone(model) for model in models]
    for i, (model, twin) in enumerate(zip(models, twins, strict=True)):
        model.set_params(checkpoint=tmp_path / f"together {i}")
        twin.set_params(checkpoint=tmp_path / f"alone {i}").fit(**given[i])
    fitted = oneof.fit_together(models, given)
    assert runs == [("StackedTrials", 4)]
    for i, (model, twin) in enumerate(zip(models, twins, strict=True)):
        assert fitted[i] is model
        assert_close(model, twin)
        files = [tensor_file.read(tmp_path / f"{kind} {i}", "checkpoint") for kind in ("together", "alone")]
        assert_same_checkpoint(*files)
    weights = [model.network_.head.weight for model in models]
    assert not any(torch.allclose(weights[0], other) for other in weights[1:])


def assert_same_checkpoint(first, second):
    (tensors, facts), (others, other_facts) = first, second
    if facts["parameters"]["momentum"] == 0:  # a stack keeps the last gradients and never looks at them
        tensors = {name: tensor for name, tensor in tensors.items() if "momentum" not in name}
    assert tensors.keys() == others.keys()
    assert any(name.startswith("optimizer") for name in tensors) or facts["parameters"]["momentum"] == 0
    for name, tensor in tensors.items():
        torch.testing.assert_close(tensor, others[name], rtol=1e-8, atol=1e-8, msg=lambda text, n=name: n + text)
    state, other_state = facts.pop("state"), other_facts.pop("state")
    assert state["best_score"] == pytest.approx(other_state["best_score"], rel=1e-8)
    assert (state["epoch"], state["best_epoch"]) == (other_state["epoch"], other_state["best_epoch"])
    assert facts == other_facts


@pytest.mark.parametrize("network", ["linear", "mlp"])
@pytest.mark.parametrize("name", VARIANTS)
def test_trials_of_one_seed_read_their_rows_once(name, network, monkeypatch):
    """A grid: three points with one seed, of which the first soon leaves, and one point with another."""
    method, settings = VARIANTS[name]
    models, given = trials(method, network=network, precision="fp64", **settings)
    for i, seed in enumerate([7, 8, 7, 7]):
        models[i].set_params(random_state=seed, patience=1 if i == 0 else None)
        given[i] = arguments(seed)
    models[0].set_params(lr=1e-40)
    seen, make = set(), StackedTrials.batch

    def batch(stack, index):
        made = make(stack, index)
        seen.add((len(index), len(made.views[0])))
        assert len(made.x) == len(index)
        return made

    monkeypatch.setattr(StackedTrials, "batch", batch)
    twins = alone(models, given)
    for model, twin in zip(oneof.fit_together(models, given), twins, strict=True):
        assert_close(model, twin)
    assert seen == ({(4, 4), (3, 3)} if models[0].views else {(4, 2), (3, 2)})


def fit_some(models, given, numbers, **settings):
    chosen = [clone(models[i]).set_params(**settings) for i in numbers]
    return oneof.fit_together(chosen, [given[i] for i in numbers])


@every_method
def test_other_trials_and_their_order_change_no_bit(method, runs):
    """In float32: a stack of one, of three and of twelve, where every other trial has the same seed and rows."""
    models, given = trials(method, 12, network="mlp", epochs=2)
    for i, model in enumerate(models):
        model.set_params(random_state=i % 6)
        given[i] = arguments(i % 6)
    reference = fit_some(models, given, range(12))
    for numbers in ([5], [7, 5, 2], range(11, -1, -1)):
        for i, model in zip(numbers, fit_some(models, given, numbers), strict=True):
            assert_same_bits(model, reference[i])
    assert runs == [("StackedTrials", 12), ("StackedTrials", 1), ("StackedTrials", 3), ("StackedTrials", 12)]


@pytest.mark.parametrize("name", ["idgp", "pico", "valen"])
def test_threads_change_no_bit(name):
    models, given = trials(MEMBERS[name], 8, network="mlp", epochs=2)  # large enough to be shared among threads
    single, double = (fit_some(models, given, range(8), threads=threads) for threads in (1, 2))
    for model, other in zip(single, double, strict=True):
        assert_same_bits(model, other)


def test_a_stack_takes_the_threads_of_its_models_and_gives_them_back():
    models, given = trials(oneof.CC, 2, network="linear")
    seen, before = [], torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        given[0]["on_epoch"] = lambda epoch: seen.append(torch.get_num_threads())
        oneof.fit_together(models, given)
        assert (seen, torch.get_num_threads()) == ([1] * 4, 3)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("owners", [(0, 0, 0), (0, 1, 0)])
@pytest.mark.parametrize("name", ["idgp", "valen"])
def test_trials_on_the_same_rows_end_as_alone(name, owners, runs):
    """Such rows are kept once; sets that differ on the same rows are another table."""
    models, given = trials(MEMBERS[name], 3, network="linear", precision="fp64")
    given = [given[i] for i in owners]
    other_sets = given[0] | {"y": given[0]["y"][::-1].copy()}
    models.append(clone(models[0]))
    given.append(other_sets)
    references = alone(models, given)
    oneof.fit_together(models, given)
    assert runs == [("StackedTrials", 4)]
    for model, reference in zip(models, references, strict=True):
        assert_close(model, reference)


@every_method
def test_a_trial_that_diverges_harms_no_other(method):
    models, given = trials(method, 3, network="linear")
    reference = oneof.fit_together([clone(models[0]), clone(models[2])], [given[0], given[2]])
    models[1].set_params(lr=1e30)
    if isinstance(models[1], oneof.IDGP):
        models[1].set_params(lr_g=1e30)
    with pytest.raises(
        TrainingDiverged, match=r"1 of 3 models diverged \(models\[1\]\) and the others are fitted"
    ):
        oneof.fit_together(models, given)
    assert_same_bits(models[0], reference[0])
    assert_same_bits(models[2], reference[1])
    assert not hasattr(models[1], "network_")


def test_torchs_random_state_has_no_part_and_is_left_alone():
    models, given = trials(oneof.PLCR, 2, network="linear", views="plain+jitter")
    torch.manual_seed(1)
    state = torch.get_rng_state()
    first = oneof.fit_together([clone(model) for model in models], given)
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(2)
    for model, other in zip(first, oneof.fit_together(models, given), strict=True):
        assert_same_bits(model, other)


def test_bf16_is_as_near_to_alone_as_its_digits():
    models, given = trials(oneof.IDGP, network="mlp", precision="bf16")
    for model, other in zip(oneof.fit_together(models, given), alone(models, given), strict=True):
        np.testing.assert_allclose(
            model.predict_proba(given[0]["X"]), other.predict_proba(given[0]["X"]), atol=0.02
        )


# --- early stopping ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["idgp", "plcr"])
def test_trials_stop_each_for_itself_and_keep_their_own_best_weights(name, runs):
    models, given = trials(MEMBERS[name], 6, network="linear", precision="fp64", epochs=25)
    for i, model in enumerate(models):
        model.set_params(patience=[1, 3, 5, 7, None, 2][i])
    references = alone(models, given)
    for model, other in zip(oneof.fit_together(models, given), references, strict=True):
        assert_close(model, other)
    assert runs == [("StackedTrials", 6)]
    lengths = [len(model.history_["loss"]) for model in models]
    assert lengths[4] == max(lengths) == 25
    assert len(set(lengths)) >= 4
    best = [int(np.argmax(model.history_["validation_score"])) for model in models]
    assert any(epoch < length - 1 for epoch, length in zip(best, lengths, strict=True))


def test_rows_that_are_only_watched_are_judged_each_by_its_own(runs):
    """As an experiment does it: validation and test rows of every trial, after every epoch."""
    models, given = trials(oneof.CC, 3, network="linear", precision="fp64", validation_fraction=0.0)
    seen = {"together": [[], [], []], "alone": [[], [], []]}

    def watching(kind, i):
        other = arguments(200 + i, rows=12)

        def metrics(probabilities):
            seen[kind][i].append(probabilities.reshape(probabilities.shape[-2:]))
            certainty = probabilities.max(-1)
            return {"rows": certainty.sum(-1) / certainty.mean(-1), "certainty": certainty.mean(-1)}

        return given[i] | {
            "X_val": other["X"][:5],
            "y_val": other["y"][:5],
            "X_watched": other["X"][5:],
            "metrics": metrics,
        }

    references = [fit_with(clone(model), **watching("alone", i)) for i, model in enumerate(models)]
    oneof.fit_together(models, [watching("together", i) for i in range(3)])
    assert runs == [("StackedTrials", 3)]
    np.testing.assert_allclose(seen["together"], seen["alone"], atol=1e-8)
    for model, reference in zip(models, references, strict=True):
        assert model.history_["rows"] == pytest.approx([12.0] * 4)
        assert_close(model, reference)


def test_trials_of_one_judge_are_judged_at_once(runs):
    """Two share a judge and one has its own; each ends with the numbers that it has alone."""
    models, given = trials(oneof.CC, 3, network="linear", precision="fp64", validation_fraction=0.0)
    other = arguments(200, rows=12)
    shapes = []

    class Judge:
        def __init__(self, label):
            self.label = label

        def metrics(self, probabilities):
            shapes.append(probabilities.shape)
            return {"share": probabilities[..., self.label].mean(-1)}

    shared, own = Judge(0), Judge(1)
    watching = [
        one
        | {"X_val": other["X"][:5], "y_val": other["y"][:5], "X_watched": other["X"][5:], "metrics": by.metrics}
        for one, by in zip(given, (shared, own, shared), strict=True)
    ]
    references = [fit_with(clone(model), **one) for model, one in zip(models, watching, strict=True)]
    del shapes[:]
    oneof.fit_together(models, watching)
    k = len(models[0].classes_)
    assert shapes == [(2, 12, k), (1, 12, k)] * 4
    for model, reference in zip(models, references, strict=True):
        np.testing.assert_allclose(model.history_["share"], reference.history_["share"], atol=1e-8)
        assert_close(model, reference)


# --- checkpoints ------------------------------------------------------------------------------------------


def pause_after(models, given, epochs):
    """Train together for some epochs, then write checkpoints and stop."""
    stops = iter([False] * (epochs - 1) + [True])
    prepared = [model.prepare(**one) for model, one in zip(models, given, strict=True)]
    prepared[0].pause = stops.__next__
    with pytest.raises(Paused):
        together.train_together(prepared)
    assert [trial.state.epoch for trial in prepared] == [epochs] * len(models)


@every_method
def test_a_paused_stack_goes_on_with_other_trials_or_alone(method, runs, tmp_path):
    models, given = trials(method, 5, network="linear", precision="fp64")
    references = alone(models, given)
    paths = [tmp_path / str(i) for i in range(5)]
    for model, path in zip(models, paths, strict=True):
        model.set_params(checkpoint=path)
    pause_after(models[:4], given[:4], 2)
    runs.clear()
    fresh = [clone(model) for model in models]
    oneof.fit_together(fresh[:1], given[:1])
    fresh[1].fit(**given[1])
    oneof.fit_together([fresh[4], fresh[3], fresh[2]], [given[4], given[3], given[2]])
    assert runs == [("StackedTrials", 1), ("StackedTrials", 1), ("StackedTrials", 2)]
    for model, reference in zip(fresh, references, strict=True):
        assert_close(model, reference)


@pytest.mark.parametrize(
    ("queue_size", "kinds"), [(1000, [("StackedTrials", 2)]), (20_000, [("TrainingRun", 1)] * 2)]
)
def test_a_large_queue_is_passed_over_by_one_trial_at_a_time(queue_size, kinds, runs):
    models, given = trials(oneof.PiCO, 2, network="linear", views="plain+jitter", queue_size=queue_size, epochs=1)
    oneof.fit_together(models, given)
    assert runs == kinds


def test_a_pause_changes_no_bit_of_a_stack(tmp_path):
    models, given = trials(oneof.PiCO, 3, network="linear", views="plain+jitter")
    references = oneof.fit_together([clone(model) for model in models], given)
    for i, model in enumerate(models):
        model.set_params(checkpoint=tmp_path / str(i))
    for epochs in (1, 2):  # twice: the first checkpoint is continued and written again
        prepared = [clone(model).prepare(**one) for model, one in zip(models, given, strict=True)]
        prepared[-1].pause = lambda trial=prepared[-1], stop=epochs: trial.state.epoch == stop
        with pytest.raises(Paused):
            together.train_together(prepared)
    for model, reference in zip(oneof.fit_together(models, given), references, strict=True):
        assert_same_bits(model, reference)
    # what is finished trains no more
    again = oneof.fit_together([clone(model) for model in models], given)
    for model, reference in zip(again, references, strict=True):
        assert_same_bits(model, reference)


def test_checkpoints_at_different_epochs_are_continued_side_by_side(runs, tmp_path):
    models, given = trials(oneof.VALEN, 6, network="linear", precision="fp64", patience=3)
    references = alone(models, given)
    for i, model in enumerate(models):
        model.set_params(checkpoint=tmp_path / str(i))
    copies = [clone(model) for model in models]
    pause_after(copies[:2], given[:2], 1)
    pause_after(copies[2:4], given[2:4], 3)
    copies[4].fit(**given[4])  # finished
    runs.clear()
    for model, reference in zip(oneof.fit_together(models, given), references, strict=True):
        assert_close(model, reference)
    assert runs == [("StackedTrials", 2), ("StackedTrials", 2), ("TrainingRun", 1), ("StackedTrials", 1)]


# --- what cannot be stacked -------------------------------------------------------------------------------


def tied(shape, outputs):
    """Use one layer twice: a stack would have to know."""
    layer = nn.Linear(shape[0], shape[0])
    return nn.Sequential(layer, nn.ReLU(), layer, nn.Linear(shape[0], outputs))


@hyperparameters
class Biasless(oneof.CC):
    """A method of one's own, with a layer that none of the others has."""

    def start(self, data):
        super().start(data)
        self.network_.head = nn.Linear(FEATURES, CLASSES, bias=False, dtype=data.dtype)


def test_a_mixed_list_is_fitted_in_its_order_each_as_alone(runs):
    settings = SETTINGS | {"precision": "fp64", "epochs": 2, "optimizer": "sgd"}
    images = arguments(8)
    images["X"] = np.random.default_rng(0).random((ROWS, 8, 8))
    pairs = [
        (oneof.CC(network="linear", random_state=0, **settings), arguments(1)),
        (oneof.CC(network="lenet", random_state=1, **settings), images),
        (oneof.CC(network="mlp5", random_state=2, **settings), arguments(2)),
        (oneof.CC(network="linear", random_state=3, **settings), arguments(3, rows=ROWS + 5)),
        (oneof.RC(network="linear", random_state=4, **settings), arguments(4)),
        (oneof.CC(network=tied, random_state=5, **settings), arguments(5)),
        (oneof.CC(network=tied, random_state=6, **settings), arguments(6)),
        (oneof.CC(network="linear", random_state=7, **settings | {"batch_size": 9}), arguments(7)),
        (oneof.CC(network="linear", random_state=8, lr=0.2, **settings), arguments(8)),
        (oneof.CC(network="linear", random_state=9, **settings), arguments(9) | {"sample_weight": None}),
        (Biasless(network="linear", random_state=10, **settings), arguments(10)),
    ]
    models, given = map(list, zip(*pairs, strict=True))
    references = alone(models, given)
    fitted = oneof.fit_together(models, given)
    assert runs == [
        ("StackedTrials", 3), ("TrainingRun", 1), ("TrainingRun", 1), ("StackedTrials", 1), ("StackedTrials", 1),
        ("TrainingRun", 1), ("TrainingRun", 1), ("StackedTrials", 1), ("TrainingRun", 1),
    ]  # fmt: skip
    for i, (model, reference) in enumerate(zip(fitted, references, strict=True)):
        assert model is models[i]
        X = given[i]["X"]
        np.testing.assert_allclose(model.predict_proba(X), reference.predict_proba(X), atol=1e-8)
        np.testing.assert_allclose(model.label_distributions_, reference.label_distributions_, atol=1e-8)
        assert model.history_["loss"] == pytest.approx(reference.history_["loss"], rel=1e-8)


def test_models_that_were_fitted_before_are_fitted_anew(runs):
    """Tables of an earlier fit, under other settings and with other rows, are in nobody's way."""
    models, given = trials(oneof.IDGP, 3, network="linear", precision="fp64", objective="released")
    references = alone(models, given)
    models[0].set_params(objective="map").fit(**arguments(9, rows=30))
    models[0].set_params(objective="released")
    models[1].fit(**given[0])
    for model, reference in zip(oneof.fit_together(models, given), references, strict=True):
        np.testing.assert_allclose(model.label_distributions_, reference.label_distributions_, atol=1e-8)
        np.testing.assert_allclose(model.w_, reference.w_, atol=1e-8)
    assert sum(number for _, number in runs) == 3


# --- hostile input ----------------------------------------------------------------------------------------


def test_an_empty_list_is_fitted_at_once():
    assert oneof.fit_together([], []) == []


def test_lists_of_different_lengths_are_refused():
    models, given = trials(oneof.CC, 3)
    with pytest.raises(ValueError, match=r"there are 3 models and 2 sets of arguments, but each model needs one"):
        oneof.fit_together(models, given[:2])


def test_the_same_model_twice_is_refused():
    models, given = trials(oneof.CC, 3)
    models[2] = models[0]
    with pytest.raises(ValueError, match=r"models\[0\] and models\[2\] are the same object.*clone\(model\)"):
        oneof.fit_together(models, given)
    assert not hasattr(models[0], "classes_")


def test_one_checkpoint_file_for_two_models_is_refused(tmp_path):
    models, given = trials(oneof.CC, 2)
    models[0].set_params(checkpoint=tmp_path / "fit")
    models[1].set_params(checkpoint=str(tmp_path / "fit"))
    with pytest.raises(ValueError, match=r"models\[0\] and models\[1\] both have the checkpoint .*name another"):
        oneof.fit_together(models, given)
    assert not (tmp_path / "fit").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": np.zeros((ROWS, CLASSES))}, "row"),
        ({"X": np.full((ROWS, FEATURES), np.nan)}, "NaN"),
        ({"lr": -1.0}, "lr of"),
    ],
)
def test_an_error_in_the_last_is_told_before_the_first_is_trained(change, message, runs):
    models, given = trials(oneof.CC, 3)
    models[2].set_params(lr=change.get("lr", 0.1))
    given[2] |= {name: value for name, value in change.items() if name != "lr"}
    with pytest.raises(ValueError, match=message):
        oneof.fit_together(models, given)
    assert runs == []


# --- methods do not know ----------------------------------------------------------------------------------


def test_no_method_knows_of_trials_stacks_or_gpus():
    folder = Path(oneof.__file__).parent / "methods"
    forbidden = re.compile(
        r"\btrials?\b|cuda|oneof\.(stack|together|graphs)|(?<!torch\.)\bstack\(|\.(item|tolist|cpu)\(", re.I
    )
    files = sorted(folder.glob("*.py"))
    assert len(files) > len(oneof.METHODS)
    code = {
        path.name: re.sub(r"^ *(>>>|\.\.\.).*", "", path.read_text(), flags=re.M) for path in files
    }  # no examples
    found = [f"{name}: {match.group()}" for name, text in code.items() for match in forbidden.finditer(text)]
    assert found == []
