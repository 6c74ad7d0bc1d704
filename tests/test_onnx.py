"""Models as ONNX files: onnxruntime gives the probabilities that `predict_proba` gives."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pandas as pd
import pytest
import torch
from torch import nn

import oneof

CLASSES = ["ant", "bee", "cat"]


def problem(shape, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, *shape)) if len(shape) == 1 else rng.integers(0, 256, (60, *shape)).astype(np.uint8)
    sets = rng.random((60, 3)) < 0.4
    sets[np.arange(60), rng.integers(0, 3, 60)] = True
    return X, sets


def probabilities(path, X):
    session = onnxruntime.InferenceSession(path)
    kind = {"tensor(double)": np.float64, "tensor(float)": np.float32}[session.get_inputs()[0].type]
    (found,) = session.run(["probabilities"], {"X": X.astype(kind)})
    return found, session.get_modelmeta().custom_metadata_map


@pytest.mark.parametrize(
    ("method", "shape", "settings"),
    [
        ("cc", (5,), {"network": "linear"}),
        ("idgp", (5,), {"network": "mlp", "warm_up": 1}),
        ("idgp", (5,), {"objective": "released", "temperature_f": 2.0, "warm_up": 1}),
        ("proden", (5,), {"network": "mlp5", "precision": "fp64"}),
        ("rc", (6, 6, 3), {"network": "mlp"}),
        ("idgp", (12, 8, 1), {"network": "lenet", "warm_up": 1}),
        ("cc", (8, 8, 3), {"network": "resnet32"}),
    ],
)
def test_onnxruntime_gives_the_same_probabilities_for_any_number_of_rows(tmp_path, method, shape, settings):
    X, sets = problem(shape)
    model = oneof.METHODS[method](epochs=3, random_state=0, **settings).fit(X, sets, classes=CLASSES)
    expected = model.predict_proba(X)
    path = tmp_path / "model.onnx"
    model.to_onnx(path)
    for rows in (1, 2, 60):
        found, metadata = probabilities(path, X[:rows])
        np.testing.assert_allclose(found, expected[:rows], atol=1e-5, rtol=0)
    assert np.ptp(expected) > 0.1  # else any file would do
    assert json.loads(metadata["oneof.classes"]) == CLASSES
    assert json.loads(metadata["oneof.method"]) == type(model).__name__
    np.testing.assert_array_equal(model.predict_proba(X), expected)  # the model itself stays as it was
    assert [each.name for each in tmp_path.iterdir()] == ["model.onnx"]


def test_columns_whose_digits_float32_has_no_room_for(tmp_path):
    X, sets = problem((3,))
    frame = pd.DataFrame(X * [1, 10, 1000] + [0, 0, 1.7e9], columns=["a", "b", "time"])
    model = oneof.CC(epochs=3, random_state=0).fit(frame, sets)
    model.to_onnx(tmp_path / "model.onnx")
    found, metadata = probabilities(tmp_path / "model.onnx", frame.to_numpy())
    np.testing.assert_allclose(found, model.predict_proba(frame), atol=1e-5, rtol=0)
    assert json.loads(metadata["oneof.feature_names"]) == ["a", "b", "time"]


def test_float_images_and_a_network_of_ones_own(tmp_path):
    X, sets = problem((6, 6, 2))
    X = X / 255.0
    network = nn.Sequential(nn.Conv2d(2, 4, 3), nn.GELU(), nn.Flatten(), nn.LazyLinear(3))
    network(torch.zeros(1, 2, 6, 6))
    model = oneof.CC(network=network, epochs=2, random_state=0).fit(X, sets)
    model.to_onnx(tmp_path / "model.onnx")
    found, _ = probabilities(tmp_path / "model.onnx", X)
    np.testing.assert_allclose(found, model.predict_proba(X), atol=1e-5, rtol=0)


class Branching(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x):
        return self.layer(x) if float(x.sum()) > 0 else -self.layer(x)


def test_what_cannot_be_exported_is_one_sentence_and_no_file(tmp_path, monkeypatch):
    X, sets = problem((4,))
    model = oneof.CC(network=Branching(), epochs=1, random_state=0).fit(X, sets)
    with pytest.raises(ValueError, match="the network of CC cannot be written as ONNX") as caught:
        model.to_onnx(tmp_path / "model.onnx")
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr("oneof.estimator.onnx_file.find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"pip install oneof\[onnx\]"):
        model.to_onnx(tmp_path / "model.onnx")


def run_oneof(*arguments):
    command = [sys.executable, "-m", "oneof", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


def test_the_command(tmp_path: Path):
    X, sets = problem((4,))
    model = oneof.CC(epochs=2, random_state=0).fit(X, sets)
    model.save(tmp_path / "model.safetensors")
    done = run_oneof("export", tmp_path / "model.safetensors", tmp_path / "model.onnx")
    assert done.returncode == 0, done.stderr
    assert "X float64 (n, 4) -> probabilities (n, 3)" in " ".join(done.stdout.split())
    assert not done.stderr
    found, _ = probabilities(tmp_path / "model.onnx", X)
    np.testing.assert_allclose(found, model.predict_proba(X), atol=1e-5, rtol=0)

    wrong = run_oneof("export", tmp_path / "model.safetensors", tmp_path / "model.pt")
    assert wrong.returncode != 0
    assert "name a file such as model.onnx" in " ".join(wrong.stderr.split())
    oneof.EMClassifier(rounds=2, folds=2).fit(X, sets).save(tmp_path / "em.safetensors")
    wrong = run_oneof("export", tmp_path / "em.safetensors", tmp_path / "em.onnx")
    assert wrong.returncode != 0
    assert "holds a model of type EMClassifier" in " ".join(wrong.stderr.split())
