"""oneof datasets, corrupt and inspect: real commands on made and real files."""

import json

import numpy as np
import pandas as pd
import pytest

import bench_data
from oneof.data import corrupt
from oneof.data.catalogue import DATASETS
from test_cli import fail, succeed


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return bench_data.write_soccer_player(tmp_path_factory.mktemp("data"))


def test_datasets_lists_all_and_says_which_are_there(root):
    lines = succeed("datasets", "--data", root).stdout.splitlines()
    assert len(lines) == 1 + len(DATASETS)
    for line, name in zip(lines[1:], DATASETS, strict=True):
        assert line.startswith(name)
        assert (" yes " in line) is (name == "soccer-player")
    assert "17472" in next(line for line in lines if line.startswith("soccer-player"))


@pytest.mark.parametrize(
    "options",
    [
        ["--process", "uniform", "--rate", 0.01],
        ["--process", "uniform-sets", "--set", "version=code"],
        ["--process", "pair", "--rate", 0.5],
        ["--process", "instance", "--rate", 0.02, "--network", "linear", "--epochs", 1, "--quiet"],
        ["--process", "decomposition", "--set", "mean_size=3", "--network", "linear", "--epochs", 1, "--quiet"],
    ],
    ids=lambda options: options[1],
)
def test_corrupt_writes_sets_and_manifest_that_inspect_reads(options, root, tmp_path):
    out = tmp_path / "sets.npz"
    said = succeed("corrupt", "soccer-player", *options, "--data", root, "--device", "cpu", "--out", out).stdout
    assert "17472 candidate sets written to" in said
    with np.load(out, allow_pickle=False) as file:
        candidates, y, classes = file["candidates"], file["y"], file["classes"]
        manifest = json.loads(file["manifest"].item())
        assert file["x"].shape == (17472, 279)
    assert candidates[np.arange(len(y)), y].all()
    assert f"mean size           {candidates.sum(1).mean():.4f}" in said
    assert manifest["mean_size"] == pytest.approx(candidates.sum(1).mean())
    assert len(classes) == 171
    page = tmp_path / "page.html"
    shown = succeed("inspect", out, "--truth", "y", "--html", page)
    assert "17472 rows" in shown.stdout
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    again = tmp_path / "again.npz"
    succeed("corrupt", "soccer-player", *options, "--data", root, "--device", "cpu", "--out", again)
    with np.load(again, allow_pickle=False) as file:
        assert (file["candidates"] == candidates).all()


def test_what_corrupt_writes_can_be_learned_and_scored(root, tmp_path):
    sets, model = tmp_path / "sets.npz", tmp_path / "model"
    succeed("corrupt", "soccer-player", "--process", "pair", "--rate", 0.5, "--data", root, "--out", sets)
    settings = ["--set", "network=linear", "--set", "epochs=3", "--set", "batch_size=1024", "--quiet"]
    succeed("fit", sets, "--method", "cc", *settings, "--device", "cpu", "--out", model)
    said = succeed("score", model, sets, "--labels", "y").stdout
    assert "this is the accuracy" in said
    assert float(said.split()[2]) > 0.4


def test_inspect_reads_a_table_of_ones_own(tmp_path):
    table = tmp_path / "mine.csv"
    cells = ["cat|dog"] * 15 + ["dog"] * 15
    pd.DataFrame({"a": range(30), "candidates": cells, "truth": ["cat"] * 15 + ["dog"] * 15}).to_csv(
        table, index=False
    )
    said = succeed("inspect", table, "--separator", "|").stdout
    assert "30 rows" in said
    assert "'dog'" in said
    assert "every set" in said
    with_truth = succeed("inspect", table, "--separator", "|", "--truth", "truth").stdout
    assert with_truth != said


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["lots", "--out", "x.npz"], "there is no data set 'lots'"),
        (["soccer-player", "--out", "x.csv"], "must end in .npz"),
        (["soccer-player", "--out", "x.npz", "--process", "pears"], "process is 'pears'"),
        (["soccer-player", "--out", "x.npz", "--process", "pair"], "needs a value for 'rate'"),
        (["soccer-player", "--out", "x.npz", "--epochs", "0"], "epochs of Annotator is 0"),
        (["soccer-player", "--out", "x.npz", "--network", "vgg"], "network of Annotator is 'vgg'"),
        (["soccer-player", "--out", "x.npz", "--set", "rate"], "has no value"),
        (["soccer-player", "--out", "x.npz", "--device", "tpu"], "device is 'tpu'"),
        (["soccer-player", "--out", "none/x.npz"], "none"),
        (
            ["soccer-player", "--out", "x.npz", "--process", "pair", "--rate", "0.3", "--set", "rate=0.4"],
            "--rate is 0.3 and --set rate is 0.4; give one of them",
        ),
        (
            ["soccer-player", "--out", "x.npz", "--process", "pair", "--rate", "0.3", "--epochs", "3"],
            "the process 'pair' asks no annotator; leave out --network, --epochs, --mode and --annotator-seed",
        ),
    ],
)
def test_corrupt_refuses_in_one_line(options, words, root, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert words in fail("corrupt", *options, "--data", root, "--quiet")
    assert not list(tmp_path.iterdir())


def test_inspect_refuses_in_one_line(tmp_path):
    (tmp_path / "t.csv").write_text("a,candidates\n1,x\n2,y\n")
    assert "no column 'truth'" in fail("inspect", tmp_path / "t.csv", "--truth", "truth")
    assert "no column 'c'" in fail("inspect", tmp_path / "t.csv", "--candidates", "c")
    assert "does not exist" in fail("inspect", tmp_path / "t.csv", "--html", tmp_path / "none" / "page.html")


SIZES = {  # of the processes that need no annotator, by their formulas, K = 10
    ("uniform", "rate=0.3"): 1 + 9 * 0.3 + 0.7**9,
    ("uniform-sets", "version=theory"): 1 + 9 * (2**8 - 1) / (2**9 - 1),
    ("class", "matrix=03"): 5.0,
    ("class", "matrix=04"): 2.8,
    ("pair", "rate=0.3"): 1.3,
}


@pytest.mark.real_data
@pytest.mark.parametrize("name", ["mnist", "fashion-mnist", "kuzushiji-mnist", "cifar-10"])
def test_sizes_on_real_sets_are_those_of_the_formulas(name, real_dataset):
    train, _ = real_dataset(name)
    for (process, setting), size in SIZES.items():
        key, _, value = setting.partition("=")
        arguments = (
            {"matrix": value}
            if process == "class"
            else {"n_classes": 10, key: float(value) if key == "rate" else value}
        )
        sets = corrupt.PROCESSES[process](train.y, **arguments)
        assert sets.sum(1).mean() == pytest.approx(size, abs=0.03), process
