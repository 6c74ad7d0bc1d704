"""What the README, CONTRIBUTING and the page of commands print works as printed."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import bench_data
import oneof
from oneof import cli
from oneof.bench.plan_file import read_plan
from oneof.bench.published import find_plan
from oneof.methods import METHODS

ROOT = Path(__file__).parent.parent


def blocks(name, language):
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / name).read_text(), re.DOTALL)


def test_the_python_snippet_is_short_and_runs():
    (snippet,) = blocks("README.md", "python")
    lines = [line for line in snippet.splitlines() if line.strip()]
    assert len(lines) <= 10
    done = subprocess.run([sys.executable, "-c", snippet], capture_output=True, text=True, check=True)
    assert "setosa" in done.stdout
    assert "worth a second look" in done.stdout


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120


def test_the_example_of_our_own_method_runs(capsys):
    exec(blocks("docs/methods/membership.md", "python")[0], {})
    accuracy, *chances = capsys.readouterr().out.splitlines()
    assert float(accuracy) > 0.9
    assert len(chances) == 3


def carry_out(section, monkeypatch, folder):
    """Run every oneof command of a section of docs/command-line.md in a folder; return how many there are."""
    monkeypatch.chdir(folder)
    (text,) = re.findall(
        rf"^## {section}\n(.*?)^## ", (ROOT / "docs" / "command-line.md").read_text(), re.DOTALL | re.MULTILINE
    )
    commands = re.findall(r"^oneof .*", text, re.MULTILINE)
    for command in commands:
        result = CliRunner().invoke(cli.app, shlex.split(command)[1:])
        assert result.exit_code == 0, (command, result.output)
    return len(commands)


def test_the_commands_run(tmp_path, monkeypatch):
    """On the tables and the images that the page itself writes."""
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks("docs/command-line.md", "python"):
        exec(block, names)
    assert carry_out("With a table of yours", monkeypatch, tmp_path) == 10
    assert len(pd.read_csv("predictions.csv")) == 15
    margins = pd.read_csv("review.csv")["margin"]
    assert margins.is_monotonic_increasing
    assert margins.min() >= 0
    assert Path("sets.html").exists()
    assert pd.read_csv("names.csv")["file"].tolist() == names["files"][50:]


def test_the_experiments_run(tmp_path, monkeypatch):
    """With a made data set behind every name, and a small plan in the place of the one that is printed."""
    read_plan(find_plan(Path("table2-quick")))
    small = bench_data.PLAN.replace("trials = 2", "trials = 1").replace("epochs = 4", "epochs = 1")
    plan = tmp_path / "table2-quick.toml"
    plan.write_text(small)
    monkeypatch.setattr("oneof.bench.published.published_plans", lambda: {"table2-quick": plan})
    monkeypatch.setenv("ONEOF_DATA", str(bench_data.write_soccer_player(tmp_path / "data")))
    y = np.arange(300) % 10
    part = oneof.PartialLabels((25 * y[:, None, None]).astype(np.uint8), np.eye(10)[y], y, range(10), "made")
    monkeypatch.setattr("oneof.data.load_dataset", lambda name, root: (part, part))
    assert carry_out("Experiments", monkeypatch, tmp_path) == 5
    with np.load("mnist.npz", allow_pickle=False) as made:
        assert made["candidates"].shape == (300, 10)
    assert "3 of 3 runs are done" in Path("report/report.md").read_text()


def test_one_more_method_is_one_file_and_one_line(digits, monkeypatch, tmp_path):
    """The worked example of CONTRIBUTING, written to a file, listed, fitted, saved and loaded."""
    (example,) = blocks("CONTRIBUTING.md", "python")
    (tmp_path / "average.py").write_text(example)
    monkeypatch.syspath_prepend(tmp_path)
    from average import Average

    X, S, y = digits
    model = Average(epochs=10, smoothing=0.05, random_state=0).fit(X[:1000], S[:1000])
    assert model.score(X[1000:], y[1000:]) > 0.85
    with pytest.raises(ValueError, match="smoothing of Average is 2, but must be a number in"):
        Average(smoothing=2).fit(X, S)
    model.save(tmp_path / "m")
    assert (oneof.load_model(tmp_path / "m", methods={"average": Average}).predict(X) == model.predict(X)).all()
    monkeypatch.setitem(METHODS, "average", Average)
    assert (oneof.load_model(tmp_path / "m").predict(X) == model.predict(X)).all()
    result = CliRunner().invoke(cli.app, ["methods"])
    assert "average" in result.output


def test_links_point_to_files():
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        words = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", words):
            assert (page.parent / target).exists(), (page.name, target)
