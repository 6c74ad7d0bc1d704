"""What the README and CONTRIBUTING print works as printed."""

import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from sklearn.datasets import load_iris
from typer.testing import CliRunner

import oneof
from oneof import cli
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


def test_the_commands_run(tmp_path, monkeypatch):
    """Every oneof command of the README, on tables with the columns it names."""
    X, y = load_iris(return_X_y=True, as_frame=True)
    names = ["cat", "cow", "dog"]
    sets = [f"{names[t]}|{names[(t + i) % 3]}" for i, t in enumerate(y)]
    X.assign(label=sets).to_csv(tmp_path / "animals.csv", index=False)
    X.to_csv(tmp_path / "new.csv", index=False)
    X.assign(truth=[names[t] for t in y]).to_csv(tmp_path / "checked.csv", index=False)
    monkeypatch.chdir(tmp_path)
    commands = [
        line for block in blocks("README.md", "sh") for line in block.splitlines() if line.startswith("oneof")
    ]
    assert len(commands) == 5
    import shlex

    for command in commands:
        result = CliRunner().invoke(cli.app, shlex.split(command)[1:])
        assert result.exit_code == 0, (command, result.output)
    assert len(pd.read_csv("predictions.csv")) == 150
    margins = pd.read_csv("review.csv")["margin"]
    assert margins.is_monotonic_increasing
    assert margins.min() >= 0


def test_a_tenth_method_is_one_file_and_one_line(digits, monkeypatch, tmp_path):
    """The worked example of CONTRIBUTING, written to a file, listed, fitted, saved and loaded."""
    (example,) = blocks("CONTRIBUTING.md", "python")
    (tmp_path / "average.py").write_text(example)
    monkeypatch.syspath_prepend(tmp_path)
    from average import Average

    monkeypatch.setitem(METHODS, "average", Average)
    X, S, y = digits
    model = Average(epochs=10, smoothing=0.05, random_state=0).fit(X[:1000], S[:1000])
    assert model.score(X[1000:], y[1000:]) > 0.85
    with pytest.raises(ValueError, match="smoothing of Average is 2, but must be a number in"):
        Average(smoothing=2).fit(X, S)
    model.save(tmp_path / "m")
    assert (oneof.load_model(tmp_path / "m").predict(X) == model.predict(X)).all()
    result = CliRunner().invoke(cli.app, ["methods"])
    assert "average" in result.output


def test_links_point_to_files():
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), (page.name, target)
