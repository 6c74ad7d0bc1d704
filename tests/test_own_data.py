"""Data sets of one's own in plans: known by their checksum, whatever reads them."""

import hashlib
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import oneof
from oneof import cli, errors
from oneof.bench.plan_file import read_plan
from oneof.bench.running.problem import make_problem

rng = np.random.default_rng(0)
T = np.arange(90) % 3
NAMES = np.array(["cat", "cow", "dog"])
TABLE = pd.DataFrame(4 * np.eye(3)[T] + rng.normal(size=(90, 3)), columns=list("xyz"))
PLAN = """
title = "Animals"
datasets = ["animals"]
trials = 2

[settings]
network = "linear"
epochs = 5

[methods.cc]
[methods.supervised]

[data.animals]
path = "{path}"
sha256 = "{sha256}"
{more}
"""
OF_TABLE = 'truth = "species"\ncandidates = "label"\nseparator = "|"'


def write(folder, path="animals.csv", more=OF_TABLE, sha256=None):
    """Write the data and a plan that names it."""
    sets = ["|".join(sorted({NAMES[t], NAMES[rng.integers(3)]})) for t in T]
    TABLE.assign(species=NAMES[T], label=sets).to_csv(folder / "animals.csv", index=False)
    np.savez(folder / "animals.npz", x=TABLE.to_numpy(), candidates=np.eye(3)[T], y=T, classes=NAMES)
    found = hashlib.sha256((folder / path).read_bytes()).hexdigest() if (folder / path).exists() else "0" * 64
    (folder / "plan.toml").write_text(PLAN.format(path=path, sha256=sha256 or found, more=more))
    return folder / "plan.toml"


def test_runs_and_their_report(tmp_path, monkeypatch):
    plan = write(tmp_path)
    monkeypatch.chdir(tmp_path)
    for command in (["run", "plan.toml", "--workers", "2", "--device", "cpu"], ["report", "--plan", "plan.toml"]):
        result = CliRunner().invoke(cli.app, [*command, *(["--out", "report"] if command[0] == "report" else [])])
        assert result.exit_code == 0, result.output
    assert "4 of 4 runs are done" in (tmp_path / "report" / "report.md").read_text()
    run = read_plan(plan).runs()[0]
    assert str(tmp_path) not in repr(run.spec)  # a ledger names no path
    problem = make_problem(run.spec, None, "cpu", run.sets)
    assert len(problem.train) + len(problem.validation) + len(problem.test) == 90
    assert set(problem.train.classes) == set(NAMES)
    assert problem.train.candidates.sum(1).mean() > 1


def test_the_file_decides_the_key_and_its_path_does_not(tmp_path):
    key = read_plan(write(tmp_path)).runs()[0].key
    (tmp_path / "deeper").mkdir()
    content = (tmp_path / "animals.csv").read_bytes()
    (tmp_path / "deeper" / "other.csv").write_bytes(content)
    moved = (tmp_path / "plan.toml").read_text().replace("animals.csv", "deeper/other.csv")
    (tmp_path / "plan.toml").write_text(moved)
    assert read_plan(tmp_path / "plan.toml").runs()[0].key == key
    (tmp_path / "plan.toml").write_text(moved.replace('candidates = "label"\nseparator = "|"', ""))
    with pytest.raises(errors.InputError, match="hold no numbers"):  # the column of candidates is none of features
        read_plan(tmp_path / "plan.toml")


def test_readers_of_arrays_and_of_other_packages(tmp_path, monkeypatch):
    plan = read_plan(
        write(
            tmp_path, "animals.npz", 'reader = "npz"\n[candidates]\nprocess = "uniform"\nparameters = {rate = 0.4}'
        )
    )
    problem = make_problem(plan.runs()[0].spec, None, "cpu", plan.runs()[0].sets)
    assert problem.facts["mean_size"] > 1

    def read(path, half):
        part = oneof.PartialLabels(TABLE.to_numpy(), np.eye(3)[T], T, NAMES, "theirs")
        return part.take(np.arange(60)), part.take(np.arange(60, 90))

    entry = SimpleNamespace(name="theirs", load=lambda: read)
    monkeypatch.setattr("oneof.data.own.entry_points", lambda group: [entry] if group == "oneof.readers" else [])
    plan = read_plan(write(tmp_path, "animals.npz", 'reader = "theirs"\nhalf = true'))
    problem = make_problem(plan.runs()[0].spec, None, "cpu", plan.runs()[0].sets)
    assert len(problem.test) == 30


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"sha256": "0" * 64},
            r"animals.csv' has the sha256 checksum \w{64}, but the plan has '0+'; name",
        ),
        ({"path": "nothing.csv"}, r"there is no file .*nothing.csv' of 'animals'"),
        ({"more": 'truth = "breed"'}, r"animals.csv' cannot be read by 'table' \(.*'breed'"),
        ({"more": ""}, r"the reader 'table' cannot be used: missing a required argument: 'truth'"),
        (
            {"more": OF_TABLE + "\nsep = 1"},
            r"'table' cannot be used: got an unexpected keyword argument 'sep'",
        ),
        ({"more": 'reader = "tabel"'}, r"there is no reader 'tabel'; did you mean 'table'\?"),
        ({"more": 'reader = "npz"'}, r"animals.csv' cannot be read by 'npz' \("),
        ({"more": OF_TABLE + "\nday = 2026-01-01"}, r"data.animals.day"),
        ({"more": OF_TABLE + '\n[data.lost]\npath = "x"'}, "data has 'lost'|'lost'"),
    ],
)
def test_what_cannot_be_used_is_one_sentence(change, said, tmp_path):
    with pytest.raises((errors.InputError, FileNotFoundError)) as caught:
        read_plan(write(tmp_path, **change))
    assert re.search(said, str(caught.value))
    assert "\n" not in str(caught.value)
