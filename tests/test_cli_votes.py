"""Votes on the command line: every form fits the same model, and what does not go together is one line."""

import numpy as np
import pandas as pd
import pytest

import oneof
from test_cli import fail, succeed
from test_votes import NAMES, confusion, simulate

TINY = ["--method", "cc", "--set", "epochs=5", "--set", "network=linear", "--quiet"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The same votes wide, long, long in a file of their own, and as counts."""
    path = tmp_path_factory.mktemp("votes")
    y, votes = simulate(120, [confusion(a) for a in (0.9, 0.8, 0.7)], seed=20)
    x = pd.DataFrame(np.random.default_rng(0).normal(size=(120, 2)) + 2 * np.eye(3)[y][:, :2], columns=["u", "v"])
    named = pd.DataFrame(votes, columns=["anna", "ben", "carl"]).map(lambda v: NAMES[v])
    named.iloc[5, 1] = None
    x.join(named).assign(truth=np.array(NAMES)[y]).to_csv(path / "wide.csv", index=False)
    long = named.rename_axis("task").reset_index().melt("task", var_name="worker", value_name="label").dropna()
    long = long.sort_values(["task", "worker"])
    long.to_csv(path / "votes.csv", index=False)
    x.rename_axis("task").reset_index().to_csv(path / "items.csv", index=False)
    long.join(x, on="task").to_csv(path / "long.csv", index=False)
    counts = pd.DataFrame({name: (named == name).sum(1) for name in NAMES})
    x.join(counts).to_csv(path / "counts.csv", index=False)
    return path


FORMS = {
    "wide": ["wide.csv", "--votes", "anna,ben,carl", "--drop", "truth"],
    "long": ["long.csv", "--long", "task,worker,label"],
    "long, in a file of its own": ["items.csv", "--long", "task,worker,label", "--votes-file", "votes.csv"],
    "counts": ["counts.csv", "--counts", "cat,cow,dog"],
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form(form, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    table, *options = FORMS[form]
    said = succeed("fit", table, *options, *TINY, "--out", tmp_path / "m").stdout
    assert "120 rows, 2 features, 3 classes" in said
    options = [option for option in options if option not in ("--drop", "truth")]
    assert "approximated accuracy" in succeed("score", tmp_path / "m", table, *options).stdout
    succeed("disambiguate", tmp_path / "m", table, *options, "--out", tmp_path / "out.csv")
    out = pd.read_csv(tmp_path / "out.csv")
    wide = pd.read_csv(folder / "wide.csv", keep_default_na=False)
    votes = oneof.from_votes(wide[["anna", "ben", "carl"]])
    assert out["candidates"].tolist() == ["|".join(votes.classes[row]) for row in votes.candidates]
    model = oneof.load_model(tmp_path / "m", device="cpu")
    if form != "counts":  # which do not know who voted
        assert out["label"].tolist() == model.disambiguate(wide[["u", "v"]], votes).label.tolist()
    assert (out["label"] == wide["truth"]).mean() > 0.85


def test_several_labels_and_denials(folder, tmp_path):
    table = pd.read_csv(folder / "wide.csv").drop(columns="truth")
    table.loc[0, ["anna", "ben", "carl"]] = ["cat|dog", "not cow", "dog"]
    table.to_csv(tmp_path / "t.csv", index=False)
    options = ["--votes", "anna,ben,carl", "--separator", "|", "--denial", "not "]
    succeed("fit", tmp_path / "t.csv", *options, *TINY, "--out", tmp_path / "m")
    succeed("disambiguate", tmp_path / "m", tmp_path / "t.csv", *options, "--out", tmp_path / "out.csv")
    assert pd.read_csv(tmp_path / "out.csv")["candidates"][0] == "cat|dog"


def test_numbers_as_classes(folder, tmp_path):
    table = pd.read_csv(folder / "wide.csv").drop(columns="truth")
    table[["anna", "ben", "carl"]] = table[["anna", "ben", "carl"]].map(
        lambda name: {"cat": 1, "cow": 2}.get(name, 3)
    )
    table.to_parquet(tmp_path / "t.parquet")
    table.to_csv(tmp_path / "t.csv", index=False)
    succeed("fit", tmp_path / "t.parquet", "--votes", "anna,ben,carl", *TINY, "--out", tmp_path / "m")
    for kind in ("csv", "parquet"):
        said = succeed("score", tmp_path / "m", tmp_path / f"t.{kind}", "--votes", "anna,ben,carl").stdout
        assert "covering rate" in said


def test_an_inspection_speaks_of_annotators(folder, tmp_path):
    said = succeed(
        "inspect", folder / "wide.csv", "--votes", "anna,ben,carl", "--html", tmp_path / "p.html"
    ).stdout
    assert "3 annotators" in said
    assert "disagree most: they agree on" in said
    assert "votes that are right, by estimate" in said
    page = (tmp_path / "p.html").read_text()
    for text in (
        "How far annotators can be trusted",
        "Who disagrees with whom",
        "anna (120 votes)",
        "ben (119 votes)",
    ):
        assert text in page
    counts = succeed("inspect", folder / "counts.csv", "--counts", "cat,cow,dog").stdout
    assert "votes a row, on average" in counts
    assert "annotators" not in counts
    assert "annotators" not in succeed("inspect", folder / "wide.csv", "--candidates", "truth").stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--votes", "anna,ben", "--counts", "u"],
            "--votes and --counts are two forms of votes; give one of them",
        ),
        (["--votes", "anna,ben", "--candidates", "carl"], "so does --candidates 'carl'; give one of them"),
        (["--votes", "anna,,ben"], "must name different columns; write --votes anna,ben,carl"),
        (["--votes", "anna,anna"], "must name different columns"),
        (["--long", "anna,ben"], "write --long task,worker,label"),
        (["--votes", "anna,zoe"], "has no column 'zoe'"),
        (["--votes-file", "x.csv"], "there are no votes; pass --votes or --long"),
        (["--denial", "not "], "there are no votes"),
        (["--votes", "anna,ben", "--votes-file", "x.csv"], "pass --long with its columns, not --votes"),
        (["--counts", "u,v", "--separator", "|"], "--counts are numbers; leave out"),
        (["--counts", "anna,ben"], "the column 'anna' holds"),
        (["--long", "anna,ben,carl"], "has different values in the rows of task"),
        (["--votes", "anna,ben,carl", "--method", "lws"], "LWS has no place for them"),
    ],
)
def test_what_does_not_go_together_is_one_line(options, message, folder, tmp_path):
    quiet = ["--set", "epochs=1", "--set", "network=linear", "--quiet", "--drop", "truth", "--out", tmp_path / "m"]
    assert message in fail("fit", folder / "wide.csv", *options, *quiet)
    assert not (tmp_path / "m").exists()


def test_a_score_needs_labels(folder, tmp_path):
    model = tmp_path / "m"
    succeed("fit", folder / "wide.csv", "--votes", "anna,ben,carl", "--drop", "truth", *TINY, "--out", model)
    assert "there is nothing to score by; pass --labels COLUMN" in fail("score", model, folder / "wide.csv")
    both = ["--labels", "truth", "--votes", "anna,ben,carl"]
    assert "so does --labels 'truth'; give one of them" in fail("score", model, folder / "wide.csv", *both)
    wrong = ["--counts", "cat,cow"]
    assert "--counts lacks the classes" in fail("score", model, folder / "counts.csv", *wrong)
