"""Candidate sets for data sets: the annotator, the cache, the manifest."""

import json
from dataclasses import asdict

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from oneof.data import PartialLabels, corrupt
from oneof.data.annotator import Annotator
from oneof.data.generate import asks_annotator, generate, parameters_of

QUICK = {"epochs": 3, "batch_size": 100}


@pytest.fixture(scope="module")
def data():
    x, y = load_digits(return_X_y=True)
    images = (x * 15).astype(np.uint8).reshape(-1, 8, 8)
    return PartialLabels(images, np.eye(10, dtype=bool)[y], y, range(10), "digits")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "oneof"


PARAMETERS = {"class": {"matrix": "03"}, "pair": {"rate": 0.3}, "uniform": {"rate": 0.3}}


@pytest.mark.parametrize("process", [name for name in corrupt.PROCESSES if name != "hierarchical"])
def test_every_process_gives_sets_with_the_truth_and_a_manifest(process, data, cache):
    made = generate(data, process, parameters=PARAMETERS.get(process), annotator=Annotator(**QUICK), device="cpu")
    assert made.candidates[np.arange(len(data)), data.y].all()
    sizes = made.candidates.sum(1)
    assert made.manifest["mean_size"] == pytest.approx(sizes.mean())
    assert made.manifest["one_label"] == pytest.approx((sizes == 1).mean())
    assert made.manifest["full"] == pytest.approx((sizes == 10).mean())
    assert json.loads(json.dumps(made.manifest)) == made.manifest
    assert (made.manifest["annotator"] is not None) is asks_annotator(process)
    assert 1 < made.manifest["mean_size"] < 7


def test_a_fixed_manifest_of_a_fixed_process(data, cache):
    """The hash of the sets is the hash of their packed bits; the key of the cache holds every setting."""
    first = generate(data, "uniform", parameters={"rate": 0.3}, seed=5)
    assert (first.candidates == corrupt.uniform(data.y, 10, 0.3, seed=5)).all()
    other = generate(data, "uniform", parameters={"rate": 0.3}, seed=6)
    assert first.manifest["sha256"] != other.manifest["sha256"]
    assert len(list((cache / "candidates").iterdir())) == 2


def test_a_second_call_reads_back_what_the_first_kept(data, cache, monkeypatch):
    first = generate(data, annotator=Annotator(**QUICK), device="cpu")
    monkeypatch.setattr(Annotator, "train", lambda *args: pytest.fail("trained again"))
    again = generate(data, annotator=Annotator(**QUICK), device="cpu")
    assert (again.candidates == first.candidates).all()
    assert again.manifest == first.manifest
    # Other draws and another process share the annotator; so does another mode.
    generate(data, annotator=Annotator(**QUICK), seed=1, device="cpu")
    generate(data, "decomposition", annotator=Annotator(**QUICK, mode="batch"), device="cpu")
    assert len(list((cache / "annotators").iterdir())) == 1
    with pytest.raises(pytest.fail.Exception, match="trained again"):
        generate(data, annotator=Annotator(**QUICK, seed=1), device="cpu")


def test_without_a_cache_nothing_is_kept_and_the_sets_are_the_same(data, cache):
    kept = generate(data, annotator=Annotator(**QUICK), device="cpu")
    entries = sorted(cache.rglob("*"))
    free = generate(data, annotator=Annotator(**QUICK), device="cpu", cache=False)
    assert (free.candidates == kept.candidates).all()
    assert sorted(cache.rglob("*")) == entries


def test_a_damaged_cache_is_named(data, cache):
    generate(data, "uniform", parameters={"rate": 0.3})
    (file,) = (cache / "candidates").iterdir()
    file.write_bytes(file.read_bytes()[:50])
    with pytest.raises(ValueError, match="is damaged"):
        generate(data, "uniform", parameters={"rate": 0.3})


def test_the_annotator_sees_its_rows_alone(data, cache):
    """Other labels outside its rows change the sets there, but not the annotator."""
    rows = np.arange(900)
    y = data.y.copy()
    y[900:] = (y[900:] + 1) % 10
    other = PartialLabels(data.x, np.eye(10, dtype=bool)[y], y, range(10), "digits")
    quick = Annotator(**QUICK)
    first, second = (quick.scores(quick.train(d.x[rows], d.y[rows], 10, device="cpu"), d.x) for d in (data, other))
    assert (first == second).all()
    made = generate(data, annotator=quick, rows=rows, test=data.take(slice(900, None)), device="cpu")
    assert made.manifest["annotator_train_accuracy"] == pytest.approx(
        (first[rows].argmax(1) == data.y[rows]).mean()
    )
    assert made.manifest["annotator_test_accuracy"] == pytest.approx(
        (first[900:].argmax(1) == data.y[900:]).mean()
    )
    assert made.manifest["annotator_train_accuracy"] > made.manifest["annotator_test_accuracy"] > 0.6
    expected = corrupt.instance_dependent(data.y, first, rate=0.4)
    assert (made.candidates == expected).all()


def test_batch_mode_uses_the_statistics_of_the_rows_at_hand(data):
    annotator = Annotator(**QUICK, network="mlp5")
    model = annotator.train(data.x, data.y, 10, device="cpu")
    before = {name: tensor.clone() for name, tensor in model.weights().items()}
    shifted = np.clip(data.x.astype(int) + 60, 0, 255).astype(np.uint8)
    by_batch = Annotator(**QUICK, network="mlp5", mode="batch").scores(model, shifted)
    by_learned = annotator.scores(model, shifted)
    assert (by_batch.argmax(1) == data.y).mean() > (by_learned.argmax(1) == data.y).mean()
    assert np.allclose(np.exp(by_batch).sum(1), 1, atol=1e-5)
    assert all(torch.equal(before[name], tensor) for name, tensor in model.weights().items())


@pytest.mark.parametrize(
    ("shape", "classes", "expected"),
    [
        ((5, 7), 3, ("mlp5", 20)),
        ((5, 28, 28), 10, ("mlp5", 20)),
        ((5, 28, 28, 1), 10, ("mlp5", 20)),
        ((5, 32, 32, 3), 10, ("resnet32", 50)),
        ((5, 32, 32, 3), 100, ("resnext29", 50)),
    ],
)
def test_the_network_of_the_annotator_follows_the_data(shape, classes, expected):
    decided = Annotator().resolve(np.zeros(shape), classes)
    assert (decided.network, decided.epochs) == expected
    own = Annotator(network="lenet", epochs=7).resolve(np.zeros(shape), classes)
    assert (own.network, own.epochs) == ("lenet", 7)
    assert asdict(own) == asdict(Annotator(network="lenet", epochs=7))


@pytest.mark.parametrize(
    ("process", "parameters", "words"),
    [
        ("instant", {}, "process is 'instant', but must be one of instance, "),
        ("pair", {}, "the process 'pair' needs a value for 'rate'"),
        ("pair", {"rates": 1}, "the process 'pair' has no parameter 'rates'; it takes rate"),
        ("uniform", {"seed": 1}, "has no parameter 'seed'; it takes rate, forced"),
        ("hierarchical", {"rate": 0.1}, "needs groups of classes, but 'digits' has none"),
        ("uniform", {"rate": 2}, "rate is 2"),
    ],
)
def test_wrong_parameters_are_one_sentence(process, parameters, words, data, cache):
    with pytest.raises(ValueError, match=words) as caught:
        generate(data, process, parameters=parameters)
    assert "\n" not in str(caught.value)
    assert not cache.exists()


def test_data_without_truth_are_refused(data):
    with pytest.raises(ValueError, match="has no true labels"):
        generate(PartialLabels(data.x, data.candidates, None, data.classes, "mine"))


def test_parameters_are_those_one_may_choose():
    assert parameters_of("instance") == ["rate", "scaling", "temperature"]
    assert parameters_of("uniform-sets") == ["version"]


@pytest.mark.real_data
def test_hierarchical_sets_stay_within_superclasses(real_dataset, cache):
    train, _ = real_dataset("cifar-100")
    from oneof.data.catalogue import CIFAR100_SUPERCLASSES

    groups = np.array(CIFAR100_SUPERCLASSES)
    made = generate(train, "hierarchical", parameters={"rate": 0.5}, cache=False)
    inside = groups[train.y][:, None] == groups[None]
    assert not (made.candidates & ~inside).any()
    assert made.manifest["mean_size"] == pytest.approx(1 + 4 * 0.5, abs=0.02)
