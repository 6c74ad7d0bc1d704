"""On a GPU: recorded steps, trials and networks side by side, and rows that stay on the host change nothing."""

import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone

import oneof
from conftest import MEMBERS, every_method
from oneof.estimator.with_workers import check_trial, tables_of_rows, take
from oneof.methods.mixing import Mixing
from oneof.train import Paused
from oneof.train.parallel import graphs
from oneof.train.workers.part import cut
from oneof.train.workers.run import train_part

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

VIEWS = "weak+strong+strong"
EXACT = {"device": "cuda", "deterministic": True, "precision": "fp32"}
EPOCHS = 4
# How often steps are recorded: once, or also when the warm-up is over and when snapshots are complete.
RECORDINGS = {"idgp": 3, "membership": 2, "valen": 2, "pico": 2, "dirk": 2, "papi": 2, "crosel": 2}


@pytest.fixture(scope="module")
def images():
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=384)
    x = rng.integers(120, size=(384, 28, 28)).astype(np.uint8)
    for label in range(4):
        x[y == label, 7 * label : 7 * label + 7] += 100
    return x, np.eye(4, dtype=bool)[y] | (rng.random((384, 4)) < 0.3)


def make(name, seed=0, **settings):
    given = {
        "network": "lenet",
        "epochs": EPOCHS,
        "batch_size": 64,
        "lr": 0.02,
        "schedule": "constant",  # another learning rate is another recording
        "views": VIEWS,
        **EXACT,
        **settings,
    }
    return MEMBERS[name](random_state=seed, **given)


def assert_alike(model, other, **tolerance):
    assert model.learned().keys() == other.learned().keys()
    for key, tensor in model.learned().items():
        torch.testing.assert_close(
            tensor, other.learned()[key], msg=lambda text, n=key: f"{n}: {text}", **tolerance
        )


def record_nothing(monkeypatch):
    for kind in (graphs.RecordedSteps, graphs.RecordedEvaluation):
        monkeypatch.setattr(kind, "_record", lambda self, compute, generator=None: compute)


@pytest.fixture
def recordings(monkeypatch):
    """Count how often steps are recorded, and not the evaluation."""
    made, record = [], graphs.RecordedSteps._record

    def counted(self, step, generator):
        made.append(1)
        return record(self, step, generator)

    monkeypatch.setattr(graphs.RecordedSteps, "_record", counted)
    return made


@every_method
def test_recorded_steps_are_those_taken_one_by_one(method, images, recordings, monkeypatch):
    name = method.func.__name__.lower()
    recorded = make(name).fit(*images)
    assert len(recordings) == RECORDINGS.get(name, 1)
    record_nothing(monkeypatch)
    assert_alike(recorded, make(name).fit(*images), rtol=1e-4, atol=1e-4)


@every_method
def test_trials_side_by_side_end_as_alone(method, images, recordings):
    name = method.func.__name__.lower()
    models = [make(name, seed, lr=lr) for seed, lr in ((0, 0.02), (1, 0.02), (2, 0.05))]
    alone = [clone(model).fit(*images) for model in models]
    del recordings[:]
    together = oneof.fit_together(models, [{"X": images[0], "y": images[1]}] * 3)
    assert len(recordings) == 3 * RECORDINGS.get(name, 1)
    for model, twin in zip(together, alone, strict=True):
        assert_alike(model, twin, rtol=1e-4, atol=1e-4)


def test_trials_of_different_methods_side_by_side_end_as_alone(images):
    models = [make(name, seed) for seed, name in enumerate(MEMBERS)]
    alone = [clone(model).fit(*images) for model in models]
    together = oneof.fit_together(models, [{"X": images[0], "y": images[1]}] * len(models))
    for model, twin in zip(together, alone, strict=True):
        assert_alike(model, twin, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "settings", "count"),
    [
        ("proden", {"schedule": "cosine"}, EPOCHS),
        ("proden", {"schedule": "triangular", "average": 1.5}, 1),
        ("idgp", {"r": 2, "q": 3, "m": 0.5}, 4),
        ("plcr", {"ramp": 2}, 1),
    ],
)
def test_a_change_is_recorded(name, settings, count, images, recordings, monkeypatch):
    recorded = make(name, **settings).fit(*images)
    assert len(recordings) == count
    record_nothing(monkeypatch)
    assert_alike(recorded, make(name, **settings).fit(*images), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "name", [n for n, m in MEMBERS.items() if issubclass(m.func, Mixing) and not m.func.needs_views]
)
def test_recorded_steps_mix_rows_too(name, images, recordings, monkeypatch):
    """As they do by default where there are no views."""
    recorded = make(name, views=None).fit(*images)
    assert recordings
    record_nothing(monkeypatch)
    assert_alike(recorded, make(name, views=None).fit(*images), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("settings", [{}, {"schedule": "triangular", "average": 1.0}])
def test_trials_that_leave_do_not_disturb_the_others(settings, images, recordings):
    models = [make("proden", seed, epochs=epochs, **settings) for seed, epochs in ((0, 4), (1, 2), (2, 4))]
    alone = [clone(model).fit(*images) for model in models]
    del recordings[:]
    together = oneof.fit_together(models, [{"X": images[0], "y": images[1]}] * 3)
    assert len(recordings) == 3
    for model, twin in zip(together, alone, strict=True):
        assert_alike(model, twin, rtol=1e-4, atol=1e-4)


class Waiting(oneof.PRODEN):
    """A method that reads a number back in every step, which cannot be recorded."""

    def step(self, batch):
        losses = super().step(batch)
        assert float(losses.detach().sum()) > 0
        return losses


def test_steps_that_cannot_be_recorded_are_taken_one_by_one(images):
    models = [Waiting(**make("proden", seed).get_params()) for seed in range(2)]
    with pytest.warns(UserWarning, match="cannot be recorded as a CUDA graph"):
        together = oneof.fit_together(models, [{"X": images[0], "y": images[1]}] * 2)
    for seed, model in enumerate(together):
        assert_alike(model, make("proden", seed).fit(*images), rtol=1e-4, atol=1e-4)


@every_method
def test_a_recorded_evaluation_sees_the_present_weights(method, images, monkeypatch):
    """Also that of trials side by side, which have other weights, and rows, each."""
    x, candidates = images
    name = method.func.__name__.lower()
    given = [{"X": x[i:], "y": candidates[i:], "X_val": x[:i], "y_val": candidates[:i]} for i in (40, 80)]
    recorded = oneof.fit_together([make(name, seed) for seed in range(2)], given)
    record_nothing(monkeypatch)
    for model, twin in zip(recorded, oneof.fit_together([make(name, s) for s in range(2)], given), strict=True):
        assert model.history_ == twin.history_
        assert len(set(model.history_["validation_score"])) == EPOCHS


@pytest.mark.parametrize("name", ["idgp", "membership", "valen", "crosel"])
def test_networks_side_by_side_are_those_one_after_the_other(name, images, monkeypatch):
    both = make(name).fit(*images)
    monkeypatch.setattr("oneof.train.batch.compute_pair", lambda first, second, device: (first(), second()))
    assert_alike(both, make(name).fit(*images), rtol=0, atol=0)


@pytest.mark.parametrize("name", ["idgp", "cc"])
def test_deterministic_gives_the_same_bits_every_time(name, images):
    assert_alike(make(name).fit(*images), make(name).fit(*images), rtol=0, atol=0)


@pytest.mark.parametrize("views", [None, VIEWS])
def test_rows_that_stay_on_the_host_are_the_same_rows(views, images, recordings, monkeypatch):
    kept = make("idgp", views=views).fit(*images)
    del recordings[:]
    monkeypatch.setattr("oneof.estimator.preparation.is_too_large", lambda x, device: True)
    streamed = make("idgp", views=views).fit(*images)
    assert not recordings  # a recording cannot ask the host
    assert_alike(streamed, kept, rtol=1e-4, atol=1e-4)


def test_trials_side_by_side_pause_and_go_on(images, tmp_path):
    x, candidates = images
    whole = [make("idgp", seed).fit(x, candidates) for seed in (0, 1)]
    models = [make("idgp", seed, checkpoint=tmp_path / f"{seed}") for seed in (0, 1)]
    trials = [model.prepare(x, candidates, pause=lambda: True) for model in models]
    with pytest.raises(Paused):
        oneof.train.parallel.grouping.train_together(trials)
    resumed = [make("idgp", seed, checkpoint=tmp_path / f"{seed}") for seed in (0, 1)]
    for model, twin in zip(oneof.fit_together(resumed, [{"X": x, "y": candidates}] * 2), whole, strict=True):
        assert_alike(model, twin, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["cc", "proden", "idgp"])
def test_the_gpu_agrees_with_the_cpu(name, images):
    """Tables in double precision: views of images and mixtures of rows draw from the device's own generator."""
    x = images[0].reshape(384, -1)[:, ::16].astype(np.float64)
    settings = {"network": "mlp", "views": None, "precision": "fp64", "deterministic": False}
    if issubclass(MEMBERS[name].func, Mixing):
        settings["mixup"] = 0.0
    fits = [make(name, **settings | {"device": device}).fit(x, images[1]) for device in ("cuda", "cpu")]
    assert np.allclose(*(model.predict_proba(x) for model in fits), atol=1e-8)


@pytest.mark.parametrize("name", ["idgp", "pico"])
def test_compiled_networks_learn_the_same(name, images):
    plain, compiled = (make(name, compile=compiled, epochs=2).fit(*images) for compiled in (False, True))
    assert np.allclose(plain.predict_proba(images[0]), compiled.predict_proba(images[0]), atol=0.02)


@every_method
def test_every_method_learns_in_bfloat16(method, images):
    model = make(method.func.__name__.lower(), precision="bf16", epochs=2).fit(*images)
    assert np.isfinite(model.predict_proba(images[0])).all()


def test_bfloat16_learns_what_float32_learns(images):
    x, candidates = images
    single, half = (
        make("idgp", precision=precision, epochs=8).fit(x, candidates) for precision in ("fp32", "bf16")
    )
    assert (single.predict(x) == half.predict(x)).mean() > 0.95


@pytest.fixture(scope="module")
def nccl(tmp_path_factory):
    """This process is the only worker of a training; others would join it by NCCL. It needs no Ray."""
    store = tmp_path_factory.mktemp("nccl") / "store"
    torch.distributed.init_process_group("nccl", init_method=f"file://{store}", rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


def by_a_worker(model, x, y, **given):
    """Fit a model as `fit_with_workers(gpus=True)` does by Ray, by one worker that is sent what it needs."""
    trial = model.prepare(x, y, **given)
    check_trial(model, trial, 1)
    sent = pickle.dumps(cut(trial, tables_of_rows(model, trial), 1))
    (part,) = pickle.loads(sent)
    take(trial, pickle.loads(pickle.dumps(train_part(part, torch.device("cuda")))))
    return model.finish(trial)


@pytest.mark.parametrize("name", [name for name, m in MEMBERS.items() if vars(m.func).get("trains_in_parts")])
def test_a_worker_with_nccl_learns_tables_as_one_process(name, images, nccl):
    x = images[0].reshape(384, -1)[:, ::16].astype(np.float64)
    settings = {"network": "mlp5", "views": "plain+jitter+jitter", "precision": "fp64", "average": 1.0}
    given = {"X_val": x[:40], "y_val": images[1][:40]}
    one, other = (fit(make(name, **settings), x, images[1], **given) for fit in (by_a_worker, fit_alone))
    assert_alike(one, other, rtol=0, atol=1e-8)
    assert np.allclose(one.history_["validation_score"], other.history_["validation_score"], atol=1e-8)


@pytest.mark.parametrize("name", ["proden", "idgp", "pico"])
def test_a_worker_with_nccl_learns_images_as_one_process(name, images, nccl):
    one, other = (fit(make(name, precision="fp64"), *images) for fit in (by_a_worker, fit_alone))
    assert_alike(one, other, rtol=0, atol=1e-8)


def test_one_process_goes_on_from_the_checkpoint_of_a_worker_with_nccl(images, nccl, tmp_path):
    file = tmp_path / "checkpoint"
    one = by_a_worker(make("idgp", checkpoint=file), *images)
    assert_alike(make("idgp", checkpoint=file).fit(*images), one, rtol=0, atol=0)


def test_a_worker_with_nccl_learns_in_bfloat16(images, nccl):
    one, other = (fit(make("idgp", precision="bf16", epochs=8), *images) for fit in (by_a_worker, fit_alone))
    assert (one.predict(images[0]) == other.predict(images[0])).mean() > 0.95


def fit_alone(model, x, y, **given):
    return model.fit(x, y, **given)
