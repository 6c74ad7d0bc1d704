"""Methods of other packages: a real package, found by its entry point in processes of its own."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import oneof

SOURCE = '''
from oneof import functional as F
from oneof.estimator import PartialLabelClassifier, hyperparameters, number


@hyperparameters
class Average(PartialLabelClassifier):
    """All candidates count alike."""

    smoothing: float = number(0.0, "in [0, 1]", doc="Share of all labels.")

    def step(self, batch):
        target = F.uniform(batch.candidates)
        target = (1 - self.smoothing) * target + self.smoothing / target.shape[-1]
        return F.mean([F.soft_cross_entropy(u, target) for u in batch.forward(self.network_)])


class IDGP(Average):
    """Its name is taken."""


no_class = 3
'''


@pytest.fixture
def site(tmp_path):
    """A folder as pip --target leaves it: a module, and its dist-info with entry points."""
    folder = tmp_path / "site"
    info = folder / "averages-1.0.dist-info"
    info.mkdir(parents=True)
    (folder / "averages.py").write_text(SOURCE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: averages\nVersion: 1.0\n")
    return folder


def declare(site, *lines):
    (site / "averages-1.0.dist-info" / "entry_points.txt").write_text("\n".join(["[oneof.methods]", *lines, ""]))


def run(site, *arguments, folder):
    source = Path(oneof.__file__).parents[1]
    paths = os.pathsep.join([str(site), str(source)])
    environment = {**os.environ, "PYTHONPATH": paths, "COLUMNS": "200", "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, *map(str, arguments)], capture_output=True, text=True, env=environment, cwd=folder
    )


def write_table(path):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    frame = pd.DataFrame(rng.normal(size=(60, 3)) + 4 * np.eye(3)[y], columns=["a", "b", "c"])
    frame["candidates"] = ["xyz"[t] if i // 3 % 3 else f"{'xyz'[t]}|{'xyz'[(t + 1) % 3]}" for i, t in enumerate(y)]
    frame.to_csv(path, index=False)
    return frame


PLAN = """
title = "Others"
trials = 1
datasets = ["lost"]
reference = "average"
[settings]
epochs = 2
[methods.average]
smoothing = 0.1
[methods.cc]
"""


def test_commands_plans_and_files_know_a_method_of_another_package(site, tmp_path):
    declare(site, "average = averages:Average")
    frame = write_table(tmp_path / "table.csv")
    listed = run(site, "-m", "oneof", "methods", folder=tmp_path)
    assert "All candidates count alike." in listed.stdout
    assert not listed.stderr
    assert "Share of all labels." in run(site, "-m", "oneof", "methods", "average", folder=tmp_path).stdout

    settings = ["--set", "epochs=60", "--set", "smoothing=0.1", "--device", "cpu", "--quiet"]
    fit = ["fit", "table.csv", "--separator", "|", "--method", "average", *settings, "--out", "model"]
    done = run(site, "-m", "oneof", *fit, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    done = run(site, "-m", "oneof", "predict", "model", "table.csv", "--out", "found.csv", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    right = pd.read_csv(tmp_path / "found.csv")["prediction"] == frame["candidates"].str[0]
    assert right.mean() > 0.9
    compared = ["compare", "table.csv", "--separator", "|", "--methods", "average,cc", "--set", "epochs=5"]
    done = run(site, "-m", "oneof", *compared, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "average" in done.stdout

    (tmp_path / "plan.toml").write_text(PLAN)
    code = """
import oneof
from oneof.bench.plan_file import read_plan
from oneof.bench.plan import run_class
print(type(oneof.load_model("model")).__name__)
runs = list(read_plan("plan.toml").runs())
print(sorted(run_class(run.spec).__name__ for run in runs), len({run.key for run in runs}))
"""
    done = run(site, "-c", code, folder=tmp_path)
    assert done.stdout.split("\n")[:2] == ["Average", "['Average', 'CC'] 2"], done.stderr
    with pytest.raises(ValueError, match="holds a 'Average'"):  # here the package is not installed
        oneof.load_model(tmp_path / "model")


BROKEN = {  # entry points, and what is said of each
    "idgp = averages:Average": "there is a method of this name already",
    "clash = averages:IDGP": "there is a class of the name IDGP already",
    "nothing = averages:no_class": "is no class made from oneof.estimator.PartialLabelClassifier",
    "absent = averages:Absent": "AttributeError",
    "module = absent_module:Absent": "ModuleNotFoundError",
    "Upper = averages:Average": "must be one word in lower case",
}


def test_broken_or_clashing_entry_points_are_one_warning_each(site, tmp_path):
    declare(site, *BROKEN)
    code = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import oneof
    oneof.METHODS, oneof.load_model
    print(len(caught))
    from oneof.methods import classifiers
    assert {**classifiers()} == {**classifiers()} == {**oneof.METHODS, "em": oneof.EMClassifier}
for each in caught:
    print(each.message)
"""
    done = run(site, "-c", code, folder=tmp_path)
    first, *said = done.stdout.splitlines()
    assert first == "0", done.stderr
    assert len(said) == len(BROKEN), done.stderr
    for line, words in BROKEN.items():
        (own,) = [text for text in said if text.startswith(f"the method {line.split()[0]!r} ")]
        assert "of 'averages' is left out" in own
        assert words in own


def test_nothing_of_others_is_imported_before_it_is_asked_for(site, tmp_path):
    (site / "averages.py").write_text("raise SystemExit('imported')")
    declare(site, "average = averages:Average")
    done = run(site, "-c", "import oneof; oneof.METHODS; oneof.load_model; print('well')", folder=tmp_path)
    assert done.stdout == "well\n"
