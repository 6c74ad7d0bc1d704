"""A folder with one sub-folder of images a class, and JSON lines that name images, on the command line."""

import json
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from torch import nn
from typer.testing import CliRunner

import oneof
from oneof.cli import app

CLASSES = ("blue", "green", "red")
SETTINGS = ["--method", "cc", "--set", "epochs=40", "--quiet"]


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Pictures of three colours: in folders a class, in one that may be of two, and without any class."""
    base = tmp_path_factory.mktemp("pictures")
    rng = np.random.default_rng(0)
    lines = []
    for row in range(24):
        name = CLASSES[row % 3]
        pixels = rng.integers(0, 60, (8, 8, 3), dtype=np.uint8)
        pixels[..., 2 - row % 3] += 180
        unsure = "blue|green" if row % 3 < 2 and row % 4 == 0 else name
        for place in (f"plain/{name}", f"sets/{unsure}", "new"):
            (base / place).mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels).save(base / place / f"{row:02}.png")
        lines.append(json.dumps({"file": f"new/{row:02}.png", "labels": unsure.split("|")}))
    (base / "plain" / "notes.txt").write_text("no image")
    (base / "images.jsonl").write_text("\n".join(lines) + "\n")
    return base


def run(folder, *arguments):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        done = CliRunner().invoke(app, list(map(str, arguments)))
    assert done.exit_code == 0, done.output
    return done.output


def truth(files):
    return [CLASSES[int(row) % 3] for row in files.str.extract(r"(\d+)[.]png$")[0]]


def right(folder, out):
    found = pd.read_csv(folder / out)
    return (found["prediction"] == truth(found["file"])).mean()


@pytest.mark.parametrize(
    ("source", "options", "size"),
    [
        ("plain", [], "1.00"),
        ("sets", ["--separator", "|"], "1.17"),
        ("images.jsonl", ["--images", "file", "--candidates", "labels"], "1.17"),
    ],
)
def test_fit_and_predict(source, options, size, pictures):
    said = run(pictures, "fit", source, *options, *SETTINGS, "--out", "model")
    assert f"24 rows, 192 features, 3 classes, {size} candidates" in said
    run(pictures, "predict", "model", "new", "--out", "found.csv")
    assert pd.read_csv(pictures / "found.csv")["file"].tolist() == [f"{row:02}.png" for row in range(24)]
    assert right(pictures, "found.csv") == 1
    run(pictures, "predict", "model", "plain", "--out", "found.csv")
    assert pd.read_csv(pictures / "found.csv")["file"][0] == "blue/00.png"
    assert right(pictures, "found.csv") == 1


def test_score_and_disambiguate_a_folder(pictures):
    run(pictures, "fit", "sets", "--separator", "|", *SETTINGS, "--out", "model")
    assert "accuracy  1.0000" in run(pictures, "score", "model", "plain", "--labels", "candidates")
    run(pictures, "disambiguate", "model", "sets", "--separator", "|", "--out", "labels.csv")
    found = pd.read_csv(pictures / "labels.csv")
    assert found["label"].tolist() == truth(found["file"])


def test_images_get_the_size_of_a_pretrained_network(pictures, monkeypatch):
    class Small(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 6)

        def forward(self, x):
            return self.layer(x.mean((2, 3)))

    timm = ModuleType("timm")
    timm.create_model = lambda name, pretrained, num_classes: Small()
    timm.get_pretrained_cfg = lambda name, allow_unregistered: SimpleNamespace(input_size=(3, 6, 4))
    config = {"input_size": (3, 6, 4), "mean": (0.5,) * 3, "std": (0.5,) * 3}
    timm.data = SimpleNamespace(resolve_model_data_config=lambda module: config)
    monkeypatch.setitem(sys.modules, "timm", timm)
    said = run(
        pictures, "fit", "plain", *SETTINGS, "--set", "network=timm:small", "--set", "lr=0.1", "--out", "tuned"
    )
    assert "24 rows, 72 features, 3 classes" in said
    assert oneof.load_model(pictures / "tuned").input_shape_ == (3, 6, 4)
    run(pictures, "predict", "tuned", "new", "--out", "found.csv")
    assert right(pictures, "found.csv") == 1
