"""When steps are recorded, without a GPU: an emulated graph sees of Python what there was when it was recorded."""

from contextlib import contextmanager, nullcontext
from unittest.mock import MagicMock

import numpy as np
import pytest
import torch
from sklearn.base import clone

import oneof
from conftest import MEMBERS, every_method
from oneof.train.loop import TrainingRun, run_epochs
from oneof.train.parallel import graphs
from oneof.train.parallel.watched import watched_attributes
from oneof.train.runtime import seed_for, seeded

EPOCHS = 6
SETTINGS = {
    "network": "mlp", "epochs": EPOCHS, "batch_size": 16, "lr": 0.1, "schedule": "constant",
    "validation_fraction": 0.2, "device": "cpu",
}  # fmt: skip


class EmulatedGraph:
    """Computes again, with the attributes, rates and answers about the epoch that it was recorded with."""

    def __init__(self, recording, compute):
        self.compute = compute
        self.runs = [c for c, _ in recording._seen] if hasattr(recording, "_seen") else [recording._run]
        self.recorded = [self.state(run) for run in self.runs]

    @staticmethod
    def state(run):
        return dict(vars(run.method)), run.of_epoch, [group["lr"] for group in run.optimizer.param_groups]

    @staticmethod
    def set(run, state):
        attributes, run.of_epoch, rates = state
        vars(run.method).update(attributes)
        for group, rate in zip(run.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate

    def replay(self):
        present = [self.state(run) for run in self.runs]
        for run, state in zip(self.runs, self.recorded, strict=True):
            self.set(run, state)
        self.compute()
        for run, state in zip(self.runs, present, strict=True):
            self.set(run, state)

    def reset(self):
        self.compute = None


@pytest.fixture
def recordings(monkeypatch):
    """Emulate what records, and write down of what."""
    made = []

    def record(self, compute, generator=None):
        made.append(type(self).__name__)
        self._graph = EmulatedGraph(self, compute)
        return self._graph.replay

    monkeypatch.setattr(graphs.Recording, "_record", record)
    monkeypatch.setattr(torch.cuda, "Stream", MagicMock())
    monkeypatch.setattr(torch.cuda, "current_stream", MagicMock())
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: nullcontext())
    monkeypatch.setattr(graphs, "drawing_from", drawing_from)
    return made


@contextmanager
def drawing_from(generator):
    """Draw from a generator, on the CPU."""
    if generator is None:
        yield
        return
    with torch.random.fork_rng(devices=[]):
        torch.set_rng_state(generator.get_state())
        yield
        generator.set_state(torch.get_rng_state())


def rows(count=80):
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=count)
    x = rng.normal(size=(count, 8)) + 2 * np.eye(4, 8)[y]
    return {"X": x, "y": np.eye(4, dtype=bool)[y] | (rng.random((count, 4)) < 0.3)}


def fit_recorded(model, given, **hooks):
    trial = model.prepare(**given, **hooks)
    with seeded(seed_for(trial.setup.seed, "noise"), torch.device("cpu")):
        run_epochs(graphs.RecordedRun(trial))
    return model.finish(trial)


def assert_same(model, twin):
    assert model.history_ == twin.history_
    for name, tensor in model.learned().items():
        assert torch.equal(tensor, twin.learned()[name]), name


def made(method, **settings):
    views = "jitter+plain" if method.func.needs_views else None
    return method(random_state=0, **SETTINGS | {"views": views} | settings)


@every_method
def test_recorded_steps_are_those_taken_one_by_one(method, recordings):
    """Through the warm-up, and beyond it."""
    recorded = fit_recorded(made(method), rows())
    assert_same(recorded, made(method).fit(**rows()))
    known = {"IDGP": 3, "Membership": 2, "VALEN": 2, "PiCO": 2, "DIRK": 2, "PaPi": 2, "CroSel": 2}
    assert recordings.count("RecordedSteps") == known.get(type(recorded).__name__, 1)
    assert recordings.count("RecordedEvaluation") == (2 if isinstance(recorded, oneof.IDGP) else 1)


@pytest.mark.parametrize(
    ("name", "settings", "count"),
    [
        ("proden", {"schedule": "cosine"}, EPOCHS),
        ("proden", {"schedule": "triangular", "average": 1.5}, 1),
        ("idgp", {"r": 2, "q": 4, "m": 0.5}, 6),
        ("idgp", {"objective": "released", "warm_up": 2}, 3),
        ("plcr", {"ramp": 4}, 1),
        ("pico", {"prototype_start": 4}, 2),
    ],
)
def test_a_change_is_recorded(name, settings, count, recordings):
    recorded = fit_recorded(made(MEMBERS[name], **settings), rows())
    assert_same(recorded, made(MEMBERS[name], **settings).fit(**rows()))
    assert recordings.count("RecordedSteps") == count


class Restless(oneof.PRODEN):
    """A method whose tables, numbers and memory change between epochs."""

    def start_epoch(self, epoch, data):
        if epoch == 2:
            self.scale_ = 2.0
        if epoch == 4:
            self.w_ = self.w_.clone()

    def step(self, batch):
        return getattr(self, "scale_", 1.0) * super().step(batch)


def test_a_method_may_change_as_it_likes(recordings):
    recorded = fit_recorded(Restless(random_state=0, **SETTINGS), rows())
    assert_same(recorded, Restless(random_state=0, **SETTINGS).fit(**rows()))
    assert recordings.count("RecordedSteps") == 3


class Counting(oneof.PRODEN):
    """A method that knows the number of its epoch."""

    def step(self, batch):
        return (1 + batch.epoch) * super().step(batch)


def test_who_knows_the_number_of_the_epoch_is_recorded_with_every_one(recordings):
    recorded = fit_recorded(Counting(random_state=0, **SETTINGS), rows())
    assert_same(recorded, Counting(random_state=0, **SETTINGS).fit(**rows()))
    assert recordings.count("RecordedSteps") == EPOCHS


@pytest.mark.parametrize(("schedule", "count"), [("constant", 1), ("cosine", 0)])
def test_epochs_of_few_steps_are_recorded_when_the_next_is_alike(schedule, count, recordings):
    settings = {"batch_size": 32, "schedule": schedule}
    recorded = fit_recorded(made(MEMBERS["proden"], **settings), rows())
    assert_same(recorded, made(MEMBERS["proden"], **settings).fit(**rows()))
    assert recordings.count("RecordedSteps") == count


@every_method
def test_trials_side_by_side_end_as_alone(method, recordings):
    """With other seeds, rates, numbers of epochs and warm-ups, and noise."""
    models = [made(method, views="jitter+jitter", lr=0.01 * (i + 1), epochs=3 + 2 * i) for i in range(3)]
    for i, model in enumerate(models):
        model.set_params(random_state=i, **{"warm_up": i + 1} if hasattr(model, "warm_up") else {})
    assert_as_alone(models)
    assert "RecordedSteps" in recordings


def test_trials_of_different_methods_side_by_side_end_as_alone(recordings):
    models = [made(method, views="jitter+jitter") for method in MEMBERS.values()]
    for i, model in enumerate(models):
        model.set_params(random_state=i)
    assert_as_alone(models)
    assert recordings.count("RecordedSteps") >= len(models)


def assert_as_alone(models):
    twins = [clone(model).fit(**rows()) for model in models]
    trials = [model.prepare(**rows()) for model in models]
    generators = [torch.Generator().manual_seed(seed_for(trial.setup.seed, "noise")) for trial in trials]
    run_epochs(graphs.ConcurrentTrials([TrainingRun(trial) for trial in trials], generators))
    for trial, twin in zip(trials, twins, strict=True):
        assert_same(trial.method.finish(trial), twin)


# --- what a recording depends on --------------------------------------------------------------------------


class Changing(oneof.CC):
    """A method with an attribute of some kind that changes in its third epoch."""

    kind = staticmethod(lambda value: value)

    def start(self, data):
        super().start(data)
        self.part_ = self.kind(0.0)

    def start_epoch(self, epoch, data):
        if epoch == 3:
            self.part_ = self.kind(1.0)

    def step(self, batch):
        value = self.part_
        while isinstance(value, (list, tuple, dict)):
            value = value["a"] if isinstance(value, dict) else value[0]
        return super().step(batch) * float(value)


KINDS = {
    "number": float,
    "list": lambda value: [value],
    "nested": lambda value: {"a": [value, "b"]},
    "tuple": lambda value: (value,),
    "array": lambda value: np.array([value])[0:1].reshape(()),
    "numpy scalar": np.float32,
    "tensor": torch.tensor,
}


@pytest.mark.parametrize("kind", KINDS)
def test_an_attribute_of_any_watched_kind_ends_a_recording_when_it_changes(kind, recordings):
    method = type("Changing", (Changing,), {"kind": staticmethod(KINDS[kind])})
    recorded = fit_recorded(method(random_state=0, **SETTINGS), rows())
    plain = method(random_state=0, **SETTINGS).fit(**rows())
    assert_same(recorded, plain)
    assert recordings.count("RecordedSteps") == 2


def test_an_attribute_that_cannot_be_watched_is_refused(recordings):
    method = type("Changing", (Changing,), {"kind": staticmethod(lambda value: [object()])})
    with pytest.raises(TypeError, match="part_ of Changing is of type object, which cannot be watched"):
        watched_attributes(_started(method(random_state=0, **SETTINGS)))


def _started(model):
    return model.prepare(**rows()).method
