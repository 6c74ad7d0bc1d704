"""Tables as people have them on the command line: columns of every kind, every format, standard streams."""

import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import oneof
from oneof.cli import app
from oneof.data.tables import read_table, write_table

FIT = ["--method", "cc", "--set", "epochs=30", "--device", "cpu", "--quiet"]
SETS = ["--candidates", "label", "--separator", "|"]
NAMES = np.array(["cat", "cow", "dog"])


def pets(rows=120):
    rng = np.random.default_rng(0)
    t = np.arange(rows) % 3
    words = [["purrs", "sleeps"], ["grazes", "milk"], ["barks", "walks"]]
    frame = pd.DataFrame(
        {
            "chip": [f"C-{i:03d}" for i in range(rows)],
            "weight": (np.array([4, 600, 20])[t] * np.exp(rng.normal(0, 0.3, rows))).round(1),
            "code": np.char.zfill(rng.integers(0, 3, rows).astype(str), 2),
            "colour": rng.choice(["black", "brown", "white"], rows),
            "indoors": pd.Series(rng.random(rows) < np.array([0.8, 0, 0.5])[t], dtype=object),
            "born": (pd.Timestamp("2015-01-01") + pd.to_timedelta(rng.integers(0, 3000, rows), "D")),
            "notes": [" ".join(rng.choice([*words[k], "quiet", "young", "old", "likes"], 4)) for k in t],
        }
    )
    for name in ("weight", "colour", "indoors", "born", "notes"):
        frame.loc[rng.random(rows) < 0.1, name] = None
    frame["born"] = frame["born"].dt.strftime("%d.%m.%Y")
    frame["label"] = ["|".join(sorted({NAMES[k], NAMES[rng.integers(3)]})) for k in t]
    return frame.assign(truth=NAMES[t])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A mixed table, and a model that was fitted on it."""
    folder = tmp_path_factory.mktemp("tables")
    pets().to_csv(folder / "pets.csv", index=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        result = run(
            "fit", "pets.csv", *SETS, "--drop", "truth, chip", "--kind", "code=category", *FIT, "--out", "model"
        )
    assert result.exit_code == 0, result.output
    (folder / "said").write_text(result.stdout)
    return folder


@pytest.fixture(autouse=True)
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)


def run(*args, given=None):
    return CliRunner().invoke(app, list(args), input=given)


def works(*args, given=None):
    result = run(*args, given=given)
    assert result.exit_code == 0, result.output
    return result


def test_every_column_is_told(folder):
    frame = pets()
    assert (folder / "said").read_text().splitlines()[:6] == [
        f"column weight: number, {frame['weight'].isna().sum()} gaps filled with the median "
        f"{frame['weight'].median():g}",
        "column code: category: 00, 01, 02",
        f"column colour: category: black, brown, white, {frame['colour'].isna().sum()} gaps as one more",
        f"column indoors: true or false as 1 or 0, {frame['indoors'].isna().sum()} gaps filled with the median 0",
        f"column born: date: day, season, weekday, {frame['born'].isna().sum()} gaps filled with the median",
        f"column notes: text: 12 components of its 3- and 4-grams, {frame['notes'].isna().sum()} gaps as 0",
    ]


def test_all_commands_do_the_same_with_each_column():
    model = oneof.load_model("model")
    frame = pd.read_csv("pets.csv", dtype={"code": str})
    expected = model.predict_proba(frame)
    works("predict", "model", "pets.csv", "--id", "chip,truth", "--out", "p.csv")
    found = pd.read_csv("p.csv")
    assert found["prediction"].tolist() == model.classes_[expected.argmax(1)].tolist()
    np.testing.assert_allclose(found["probability"], expected.max(1), rtol=1e-6)
    accuracy = (found["prediction"] == found["truth"]).mean()
    assert accuracy > 0.9
    assert (
        f"approximated accuracy  {accuracy:.4f}" in works("score", "model", "pets.csv", "--labels", "truth").stdout
    )
    works("disambiguate", "model", "pets.csv", *SETS, "--out", "d.csv")
    choice = model.disambiguate(frame, frame["label"].tolist(), separator="|")
    assert pd.read_csv("d.csv")["label"].tolist() == choice.label.tolist()
    drop = ["--drop", "truth,chip", "--methods", "cc", "--cv", "2", "--set", "epochs=2", "--quiet"]
    compared = works("compare", "pets.csv", *SETS, *drop).stdout
    assert "column colour: category: black, brown, white" in compared


def test_other_rows_orders_and_columns_are_predicted():
    frame = pets()[::-1].drop(columns=["label", "truth", "chip"])[:3]
    frame = frame[[*frame][::-1]].assign(more="x", weight=np.nan)
    frame.to_csv("new.csv", index=False)
    assert "3 rows written to o.csv" in works("predict", "model", "new.csv", "--out", "o.csv").stdout
    frame.assign(colour="pink").to_csv("new.csv", index=False)
    assert (
        "warning: the column 'colour' holds 'pink' in rows"
        in works("predict", "model", "new.csv", "--out", "o.csv").stderr
    )
    frame.drop(columns="colour").to_csv("new.csv", index=False)
    refused = run("predict", "model", "new.csv", "--out", "o.csv")
    assert refused.stderr == "error: 'new.csv' lacks the columns 'colour' that the model was fitted on; add them\n"


@pytest.mark.parametrize("name", ["t.csv", "t.tsv.gz", "t.jsonl", "t.jsonl.gz", "t.ndjson", "t.parquet", "t.xlsx"])
def test_every_format_gives_the_same_predictions(name):
    expected = pd.read_csv("pets.csv", dtype={"code": str})
    write_table(expected, Path(name))
    works("predict", "model", name, "--id", "chip", "--out", f"out-{name}")
    works("predict", "model", "pets.csv", "--id", "chip", "--out", "plain.csv")
    found = read_table(Path(f"out-{name}"), ["chip"]).rows
    pd.testing.assert_frame_equal(found, pd.read_csv("plain.csv"), check_dtype=False, rtol=1e-6)


@pytest.mark.parametrize("form", [None, "tsv", "jsonl", "parquet", "xlsx"])
def test_standard_input_and_output(form):
    frame, content = pd.read_csv("pets.csv", dtype={"code": str}), io.BytesIO()
    from oneof.data.table_formats import writer

    writer(f".{form or 'csv'}", "-")(frame, content)
    extra = [] if form is None else ["--format", form]
    result = works("predict", "model", "-", "--id", "chip", "--out", "-", *extra, given=content.getvalue())
    assert result.stderr == "120 rows written to -\n"
    works("predict", "model", "pets.csv", "--id", "chip", "--out", "plain.csv")
    if form in (None, "tsv"):
        text = result.stdout.replace("\t", ",") if form else result.stdout
        assert text == Path("plain.csv").read_text()
    elif form == "jsonl":
        records = [json.loads(line) for line in result.stdout.splitlines()]
        assert [record["chip"] for record in records] == frame["chip"].tolist()
    trained = works(
        "fit", "-", *SETS, "--drop", "truth,chip", *FIT, "--out", "m", *extra, given=content.getvalue()
    )
    assert "CC model written to m" in trained.stdout


def test_columns_of_0_and_1_are_candidate_sets():
    frame = pets().drop(columns=["truth", "chip", "code"])
    sets = [set(label.split("|")) for label in frame.pop("label")]
    for name in NAMES:
        frame[f"is_{name}"] = [int(name in each) for each in sets]
    frame.to_csv("onehot.csv", index=False)
    prefix = ["--candidates-prefix", "is_"]
    works("fit", "onehot.csv", *prefix, *FIT, "--out", "m")
    model = oneof.load_model("m")
    assert model.classes_.tolist() == NAMES.tolist()
    assert "is_cat" not in model.feature_names_in_
    joined = frame.drop(columns=[f"is_{name}" for name in NAMES])
    joined.assign(label=["|".join(each) for each in sets]).to_csv("joined.csv", index=False)
    works("fit", "joined.csv", *SETS, *FIT, "--out", "m2")
    np.testing.assert_array_equal(model.predict_proba(frame), oneof.load_model("m2").predict_proba(frame))
    works("disambiguate", "m", "onehot.csv", *prefix, "--out", "a.csv")
    works("disambiguate", "m", "joined.csv", *SETS, "--out", "b.csv")
    assert pd.read_csv("a.csv")["label"].tolist() == pd.read_csv("b.csv")["label"].tolist()
    assert works("score", "m", "onehot.csv", *prefix).stdout == (
        works("score", "m", "joined.csv", "--labels", "label", "--separator", "|").stdout
    )
    assert "120 rows" in works("inspect", "onehot.csv", *prefix).stdout


def test_json_lines_hold_lists_and_gaps():
    rows = [
        {"a": i % 7, "b": None if i % 5 else 1.5, "s": ["cat"] if i % 2 else ["cow", "cat"]} for i in range(20)
    ]
    rows[3].pop("a")
    Path("l.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n\n")
    result = works("fit", "l.jsonl", "--candidates", "s", *FIT, "--out", "m")
    assert "column a: number, 1 gap filled with the median 3\ncolumn b: number, 16 gaps" in result.stdout


def test_a_workbook_of_several_sheets_says_which_is_read(tmp_path):
    with pd.ExcelWriter(tmp_path / "b.xlsx") as file:
        pd.DataFrame({"a": [1, 2], "s": ["NA", "=1+1"]}).to_excel(file, sheet_name="one", index=False)
        pd.DataFrame({"z": [1]}).to_excel(file, sheet_name="two", index=False)
    with pytest.warns(UserWarning, match="has the sheets 'one', 'two', of which the first is read"):
        table = read_table(tmp_path / "b.xlsx", ["s"])
    assert table.columns["s"].tolist()[0] == "NA"
    write_table(pd.DataFrame({"s": ["=1+1", ["p", "q"]], "p": [0.1, np.nan]}), tmp_path / "c.xlsx")
    assert read_table(tmp_path / "c.xlsx", ["s"]).columns["s"].tolist() == ["=1+1", "p|q"]


def test_what_is_fitted_on_complete_numbers_is_what_it_was():
    """No encoder, no pipeline, and the numbers of the method alone."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 3)), columns=list("abc")).assign(flag=rng.random(40) < 0.5)
    sets = [["cat", "dog"] if i % 3 else ["cow"] for i in range(40)]
    frame.assign(label=["|".join(each) for each in sets]).to_csv("n.csv", index=False)
    assert "column" not in works("fit", "n.csv", *SETS, *FIT, "--out", "m").stdout
    model = oneof.load_model("m")
    assert isinstance(model, oneof.CC)
    alone = oneof.CC(epochs=30, random_state=0, device="cpu").fit(frame.astype(float), sets)
    np.testing.assert_array_equal(
        model.predict_proba(frame.astype(float)), alone.predict_proba(frame.astype(float))
    )


def test_a_table_of_words_is_reviewed_by_its_own_columns(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    colour, truth = np.array(["red", "blue"])[y], np.array(["cat", "dog"])[y]
    frame = pd.DataFrame({"colour": colour, "size": rng.normal(size=40), "label": truth})
    frame.loc[::3, "label"] = "cat|dog"
    frame.loc[1, "size"] = np.nan
    frame.to_csv(tmp_path / "t.csv", index=False)
    labels = ["--candidates", "label", "--separator", "|"]
    model, table = str(tmp_path / "m"), str(tmp_path / "t.csv")
    runner = CliRunner()
    given = ["fit", table, *labels, "--method", "cc", "--set", "epochs=10", "--quiet", "--out", model]
    assert runner.invoke(app, given).exit_code == 0
    page = tmp_path / "queue.html"
    assert runner.invoke(app, ["review", model, table, *labels, "--static", str(page)]).exit_code == 0
    assert '{"name": "colour", "value": "red"' in page.read_text()
    assert "colour=" not in page.read_text()  # which is what the encoder makes of it
    out = tmp_path / "d.csv"
    assert (
        runner.invoke(app, ["disambiguate", model, table, *labels, "--held-out", "--out", str(out)]).exit_code == 0
    )
    judged = pd.read_csv(out)
    assert (judged["label"] == truth).mean() > 0.9
    (tmp_path / "d.jsonl").write_text('{"row": 0, "decision": "dog"}\n')
    result = runner.invoke(app, [*given, "--decisions", str(tmp_path / "d.jsonl")])
    assert result.exit_code == 0, result.output
