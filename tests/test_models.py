"""Models on disk: what is read back is what was saved, and nothing else is ever taken for a model."""

import json

import numpy as np
import pandas as pd
import pytest
import safetensors.torch
import torch

import oneof
from conftest import every_method
from oneof.estimator import hyperparameters, number
from oneof.io import files, tensors
from oneof.testing import contract


@every_method
@pytest.mark.parametrize("names", [("cat", "cow", "dog"), (3, 5, 8), (False, True, 2)], ids=str)
def test_round_trip(method, names):
    contract.check_save(method, names)


@every_method
def test_what_files_hold_beside_what_is_learned(method, blobs, tmp_path):
    X, S, _ = blobs
    frame = pd.DataFrame(X, columns=["w", "x", "y", "z"])
    model = method(epochs=4, lr=0.07, random_state=0, device="cpu").fit(frame, S)
    model.save(tmp_path / "model")
    again = oneof.load_model(tmp_path / "model", device="cpu")
    assert again.lr == 0.07
    if isinstance(model, oneof.IDGP):
        assert np.array_equal(again.distractor_proba(frame), model.distractor_proba(frame))
    if isinstance(model, oneof.Membership):
        assert np.array_equal(again.membership_proba(frame), model.membership_proba(frame))
    with pytest.raises(ValueError, match="feature names"):
        again.predict(frame[["x", "w", "y", "z"]])


@pytest.mark.parametrize("objective", ["ml", "uniform", "released"])
def test_round_trip_of_images_and_objectives(objective, digits, tmp_path):
    X, S, _ = digits
    images = (X[:120] * 15).astype(np.uint8).reshape(-1, 8, 8)
    settings = {"epochs": 3, "warm_up": 1, "random_state": 0, "device": "cpu"}
    model = oneof.IDGP(objective=objective, **settings).fit(images, S[:120])
    model.save(tmp_path / "m")
    again = oneof.load_model(tmp_path / "m", device="cpu")
    assert np.array_equal(again.predict_proba(images), model.predict_proba(images))
    assert np.array_equal(again.distractor_proba(images), model.distractor_proba(images))


def own_network(shape, outputs):
    return torch.nn.Linear(shape[0], outputs)


def test_own_network_is_passed_again(blobs, tmp_path):
    X, S, _ = blobs
    model = oneof.CC(network=own_network, epochs=2).fit(X, S)
    model.save(tmp_path / "m")
    with pytest.raises(ValueError, match=r"network of your own.*load_model\(path, network="):
        oneof.load_model(tmp_path / "m")
    again = oneof.load_model(tmp_path / "m", network=own_network)
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    with pytest.raises(ValueError, match="does not hold what its header promises"):
        oneof.load_model(
            tmp_path / "m", network=lambda shape, outputs: torch.nn.Linear(shape[0], outputs, bias=False)
        )


@hyperparameters
class Mine(oneof.CC):
    """A method that is not of this library."""

    power: float = number(2.0, "> 0")


def test_a_method_from_outside_is_passed_to_load_model(blobs, tmp_path):
    X, S, _ = blobs
    model = Mine(power=3, epochs=2, random_state=0, device="cpu").fit(X, S)
    model.save(tmp_path / "m")
    with pytest.raises(ValueError, match=r'holds a \'Mine\'.*load_model\(path, methods={"Mine": Mine}\)'):
        oneof.load_model(tmp_path / "m")
    again = oneof.load_model(tmp_path / "m", device="cpu", methods={"mine": Mine})
    assert type(again) is Mine
    assert again.power == 3
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    oneof.CC(epochs=1).fit(X, S).save(tmp_path / "m")
    assert type(oneof.load_model(tmp_path / "m", methods={"mine": Mine})) is oneof.CC


@pytest.fixture
def saved(blobs, tmp_path):
    X, S, _ = blobs
    path = tmp_path / "model.safetensors"
    oneof.IDGP(epochs=1, random_state=0).fit(X, S).save(path)
    return path


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.999])
def test_truncated_files_are_refused(saved, share):
    whole = saved.read_bytes()
    saved.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(ValueError, match="damaged or is no safetensors file"):
        oneof.load_model(saved)


def test_foreign_newer_and_other_files_are_refused(saved, tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        oneof.load_model(tmp_path / "nothing")
    foreign = tmp_path / "foreign"
    safetensors.torch.save_file({"x": torch.zeros(2)}, foreign, {"format": "pt"})
    with pytest.raises(ValueError, match="was not written by oneof"):
        oneof.load_model(foreign)
    for metadata in ({"oneof": "[]"}, {"oneof": "{"}, {"oneof": "{}"}):
        safetensors.torch.save_file({"x": torch.zeros(2)}, foreign, metadata)
        with pytest.raises(ValueError, match="was not written by oneof"):
            oneof.load_model(foreign)
    torch.save({"x": torch.zeros(2)}, foreign)  # a pickle is not even looked into
    with pytest.raises(ValueError, match="no safetensors file"):
        oneof.load_model(foreign)
    rewrite(saved, lambda facts: facts | {"version": tensors.FORMATS["model"] + 1})
    with pytest.raises(ValueError, match="newer than format 1 that this oneof reads; upgrade"):
        oneof.load_model(saved)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda facts: facts | {"method": "Magic"},
            r"'Magic', which is none of the methods \['CAVL', .*load_model\(path, methods={\"Magic\": Magic}\)",
        ),
        (lambda facts: facts | {"parameters": facts["parameters"] | {"magic": 1}}, "promises.*magic"),
        (lambda facts: facts | {"training_rows": 3}, "promises"),
        (lambda facts: facts | {"classes": [0, 1]}, "promises"),
        (lambda facts: {key: facts[key] for key in facts if key != "classes"}, "promises.*classes"),
    ],
)
def test_headers_that_lie_are_refused(saved, change, message):
    rewrite(saved, change)
    with pytest.raises(ValueError, match=message):
        oneof.load_model(saved)


def rewrite(path, change):
    tensors = safetensors.torch.load_file(path)
    with safetensors.safe_open(path, "pt") as file:
        facts = json.loads(file.metadata()["oneof"])
    safetensors.torch.save_file(tensors, path, {"oneof": json.dumps(change(facts))})


def test_a_failed_save_leaves_the_old_file(saved, monkeypatch):
    before = saved.read_bytes()
    model = oneof.load_model(saved)
    monkeypatch.setattr(files.os, "fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        model.save(saved)
    assert saved.read_bytes() == before
    assert [p.name for p in saved.parent.iterdir()] == [saved.name]


def test_saving_before_fitting_is_refused(tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        oneof.CC().save(tmp_path / "m")


def test_source_unpickles_nothing():
    from pathlib import Path

    for source in Path(oneof.__file__).parent.rglob("*.py"):
        text = source.read_text()
        assert not any(word in text for word in ("pickle.load", "torch.load(", "allow_pickle=True", "joblib.load"))
