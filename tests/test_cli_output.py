"""What all commands share: a quick start, JSON, quiet, exit codes, completion, and ``oneof doctor``."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer
from typer.testing import CliRunner

import bench_data
from oneof.cli import app, output

ROOT = Path(__file__).parent.parent
COMMANDS = dict(typer.main.get_command(app).commands)
HEAVY = ("torch", "sklearn", "pandas", "scipy", "numpy")
TINY = "--method cc --set epochs=2 --set network=linear --device cpu --separator |"
CPU_SECONDS = 0.4


def run(line):
    return CliRunner().invoke(app, line.split())


def facts(line):
    """Run a command with --json; return what it prints, which must be JSON and nothing else."""
    result = run(line)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    y = np.arange(30) % 3
    names = np.array(["cat", "cow", "dog"])
    pets = pd.DataFrame(rng.normal(size=(30, 2)) + 4 * y[:, None], columns=["legs", "length"])
    pets["candidates"] = [f"{names[t]}|{names[(t + 1) % 3]}" if i % 4 == 0 else names[t] for i, t in enumerate(y)]
    pets.assign(truth=names[y]).to_csv(tmp_path / "checked.csv", index=False)
    pets.to_csv(tmp_path / "pets.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("option", ["--help", "--version", "fit --help", "doctor --help"])
def test_help_comes_at_once(option):
    """No heavy package is imported, and a start takes little of a processor (other programs cost waiting only)."""
    program = (
        "import os, sys\nfrom oneof.cli import main\ntry:\n    main()\nexcept SystemExit as end:\n"
        f"    heavy = [name for name in {HEAVY} if name in sys.modules]\n"
        "    sys.exit(f'{end.code} {heavy} {sum(os.times()[:2])}')"
    )
    best = float("inf")
    for _ in range(3):  # the first writes what later starts read
        done = subprocess.run([sys.executable, "-c", program, *option.split()], capture_output=True, text=True)
        code, rest = done.stderr.strip().split(maxsplit=1)
        heavy, seconds = rest.rsplit(maxsplit=1)
        assert (code, heavy) == ("0", "[]")
        best = min(best, float(seconds))
    assert best < CPU_SECONDS


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_json_and_quiet(name):
    options = {each for parameter in COMMANDS[name].params for each in parameter.opts}
    assert {"--json", "--quiet"} <= options


def test_results_as_json(folder):
    fitted = facts(f"fit pets.csv {TINY} --out model --json --quiet")
    assert fitted["rows"] == 30
    assert fitted["mean_set_size"] == pytest.approx(38 / 30)
    assert (fitted["method"], fitted["out"]) == ("CC", "model")
    scores = facts("score model checked.csv --labels truth --json")
    assert scores["one_label_each"]
    text = run("score model checked.csv --labels truth").stdout
    assert f"{scores['approximated_accuracy']:.4f}" in text.splitlines()[0]
    assert facts("predict model pets.csv --out p.csv --json") == {
        "rows": 30,
        "columns": ["prediction", "probability"],
        "out": "p.csv",
    }
    assert facts("disambiguate model pets.csv --separator | --out d.csv --json")["rows"] == 30
    assert facts("disambiguate model pets.csv --separator | --out d.html --json")["out"] == "d.html"
    assert facts("convert pets.csv c.json --to label-studio --separator | --json")["tasks"] == 30
    seen = facts("inspect pets.csv --separator | --json")
    assert seen["rows"] == 30
    assert seen["mean_size"] == pytest.approx(38 / 30)
    assert set(seen["frequency"]) == {"cat", "cow", "dog"}
    assert seen["findings"]


def test_lists_as_json():
    assert {"idgp", "cc", "em"} <= facts("methods --json")["methods"].keys()
    settings = {each["setting"]: each for each in facts("methods idgp --json")["settings"]}
    assert settings["epochs"]["accepts"]
    assert {"lost", "cifar-10"} <= {each["name"] for each in facts("datasets --json")["datasets"]}
    assert {each["kind"] for each in facts("cache --json")["kept"]} == {
        "images",
        "annotators",
        "candidates",
        "kernels",
        "large-images",
        "tables",
    }
    assert facts("cache --clear --kind candidates --json")["removed"][0]["kind"] == "candidates"


def test_experiments_as_json(folder, monkeypatch):
    monkeypatch.setenv("ONEOF_DATA", str(bench_data.write_soccer_player(folder / "data")))
    small = bench_data.PLAN.replace("trials = 2", "trials = 1").replace("epochs = 4", "epochs = 1")
    (folder / "p.toml").write_text(small)
    dry = facts("run p.toml --dry --json")
    assert dry["runs"] == dry["left"] == sum(part["runs"] for part in dry["parts"])
    assert dry["hours"] >= 0
    assert facts("status p.toml --json")["done"] == 0
    done = run("run p.toml --json --quiet --workers 1")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["done"] == dry["runs"]
    assert done.stderr == ""  # no progress
    files = facts("report --plan p.toml --out r --json")["files"]
    assert all(Path(file).is_file() for file in files)


def test_comparisons_print_json_or_write_it(folder):
    line = "compare pets.csv --separator | --methods cc,proden --cv 2 --set epochs=2 --device cpu --quiet"
    printed = facts(f"{line} --json")
    assert set(printed["methods"]) == {"cc", "proden"}
    assert printed == facts(f"compare --json - {line.removeprefix('compare ')}")
    result = run(f"{line} --json c.json")
    assert result.stdout.startswith("method")
    assert json.loads((folder / "c.json").read_text()) == printed
    assert result.stderr == ""  # --quiet: no note that it was written


def test_quiet_leaves_hints_warnings_and_errors(folder):
    hint = run("fit pets.csv --method cc --set epochs=2 --set network=linear --device cpu --out m")
    quiet = run("fit pets.csv --method cc --set epochs=2 --set network=linear --device cpu --out m --quiet")
    assert "hint: " in hint.stderr
    assert "epoch 2/2" in hint.stderr
    assert quiet.stderr.startswith("hint: ")
    assert quiet.stderr.count("\n") == 1
    assert quiet.stdout == hint.stdout
    assert run("fit nothing.csv --out m --quiet").stderr.startswith("error: ")


def test_json_knows_no_nan_and_no_numpy(capsys):
    output.wanted.json = True
    try:
        output.give({"a": np.float64("nan"), "b": np.arange(2), "c": Path("d"), 1: [np.bool_(True), float("inf")]})
    finally:
        output.reset()
    assert json.loads(capsys.readouterr().out) == {"a": None, "b": [0, 1], "c": "d", "1": [True, None]}


def test_doctor(folder, monkeypatch):
    monkeypatch.setenv("ONEOF_DATA", str(bench_data.write_soccer_player(folder / "data")))
    found = facts("doctor --json")
    assert found["packages"]["needed"]["torch"] == __import__("torch").__version__
    assert "timm" in found["packages"]["optional"]
    assert "ruff" not in found["packages"]["optional"]
    assert found["data"] | {"missing": 0} == {
        "folder": str(folder / "data"),
        "present": ["soccer-player"],
        "missing": 0,
    }
    assert found["wrong"] == []
    assert not (Path(found["cache"]["folder"]) / "doctor").exists()
    assert "data: " in run("doctor").stdout


def test_doctor_says_what_is_wrong(folder, monkeypatch):
    (folder / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "file"))
    result = run("doctor --json")
    assert result.exit_code == 1
    assert "cannot be written" in json.loads(result.stdout)["wrong"][0]
    assert "failed: the cache folder" in result.stderr


@pytest.mark.parametrize(
    ("shell", "mark"), [("bash", "complete -o"), ("zsh", "#compdef oneof"), ("fish", "complete --command oneof")]
)
def test_completion_scripts(shell, mark):
    environment = os.environ | {"_ONEOF_COMPLETE": f"source_{shell}"}
    done = subprocess.run([sys.executable, "-m", "oneof"], capture_output=True, text=True, env=environment)
    assert done.returncode == 0
    assert mark in done.stdout


@pytest.mark.parametrize(
    ("words", "expected"),
    [("oneof dis", "disambiguate"), ("oneof cache --kind ker", "kernels"), ("oneof fit --q", "--quiet")],
)
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions(shell, words, expected):
    asked = {
        "bash": {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)},
        "zsh": {"_TYPER_COMPLETE_ARGS": words},
        "fish": {"_TYPER_COMPLETE_ARGS": words, "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
    }[shell]
    environment = os.environ | asked | {"_ONEOF_COMPLETE": f"complete_{shell}"}
    done = subprocess.run([sys.executable, "-m", "oneof"], capture_output=True, text=True, env=environment)
    assert expected in done.stdout


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("methods compe", "competition"),
        ("fit --method au", "auto"),
        ("run table2-q", "table2-quick"),
        ("report --plan table2-q", "table2-quick"),
        ("corrupt fash", "fashion-mnist"),
        ("corrupt mnist --process uniform-s", "uniform-sets"),
        ("convert a b --to arg", "argilla"),
    ],
)
def test_completions_of_names(words, expected):
    words = ["oneof", *words.split()]
    asked = {"COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1), "_ONEOF_COMPLETE": "complete_bash"}
    result = CliRunner().invoke(app, env=asked, prog_name="oneof")
    assert result.stdout.split() == [expected]


def test_the_page_names_every_command_and_exit_code():
    page = (ROOT / "docs" / "command-line.md").read_text()
    assert set(re.findall(r"^\| `oneof ([a-z]+)", page, re.MULTILINE)) == set(COMMANDS)
    assert re.findall(r"^\| (\d+) \|", page, re.MULTILINE) == ["0", "1", "2", "130"]
