"""Tables on disk with gaps, categories, dates and text: numbers and models are those of the table in memory."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow
import pytest

import oneof
from oneof.data.on_disk import encoded, text_rows
from oneof.data.on_disk.encoded import sample
from oneof.data.on_disk.table import open_table
from oneof.data.tables import read_table
from test_cli import fail, succeed
from test_on_disk import Dataset

NAMES = np.array(["cat", "cow", "dog"])
OPTIONS = {"candidates": "label", "separator": "|", "ids": ["id"]}
ROWS = 700


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(text_rows, "ROWS", 100)  # many pieces
    monkeypatch.chdir(tmp_path)
    return tmp_path


def animals(rows=ROWS):
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=rows)
    frame = pd.DataFrame(
        {"weight": (rng.normal(size=rows) + 2 * truth).round(3), "legs": rng.integers(2, 9, rows)}
    )
    frame.loc[rng.random(rows) < 0.1, "weight"] = np.nan
    frame["tame"] = rng.random(rows) < 0.5
    frame["colour"] = np.where(rng.random(rows) < 0.1, None, np.array(["red", "7", "blue"])[truth])
    frame["born"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 500, rows), unit="D")
    frame["note"] = [f"the {NAMES[t]} of {i % 97} sat on {i}" for i, t in enumerate(truth)]
    frame["id"] = np.arange(rows)
    frame["label"] = [f"{NAMES[t]}|{NAMES[(t + i) % 3]}" for i, t in enumerate(truth)]
    return frame


def in_memory(path="animals.csv", kinds=None):
    rows = read_table(Path(path), ["id", "label"]).rows.drop(columns=["id", "label"])
    encoder = oneof.TableEncoder(kinds).fit(rows)
    return encoder, encoder.transform(rows).astype(np.float32)


@pytest.mark.parametrize("kind", ["animals.csv", "animals.tsv.gz", "animals.parquet", "dataset"])
def test_the_numbers_are_those_of_the_table_in_memory(folder, kind):
    frame, path = animals(), folder / kind
    if kind == "dataset":
        frame.to_parquet(path := folder / "animals.parquet")
        order = ["dog", "yak", "cow", "cat"]
        lists = [[order.index(name) for name in cell.split("|")] for cell in frame["label"]]
        given = Dataset(pyarrow.Table.from_pandas(frame.assign(label=lists)), "one")
    else:
        given = path
        frame.to_parquet(path) if kind.endswith("parquet") else frame.to_csv(
            path, index=False, sep="\t" if "tsv" in kind else ","
        )
    options = OPTIONS | ({"separator": None} if kind == "dataset" else {})
    reference, rows = in_memory(path)
    table = open_table(given, **options, encoder=oneof.TableEncoder())
    assert table.encoder.said_ == reference.said_
    assert np.array_equal(table.X, rows)
    assert isinstance(table.X, np.memmap)
    assert table.feature_names == reference.get_feature_names_out().tolist()
    assert np.array_equal(oneof.encode(table.y)[0], oneof.encode(frame["label"], separator="|")[0])
    again = open_table(given, **options, encoder=oneof.TableEncoder())
    assert (again.path, again.encoder.said_) == (table.path, reference.said_)
    frame = frame.drop(columns=["id", "label"])
    assert np.array_equal(again.encoder.transform(frame), table.encoder.transform(frame))


def test_a_fitted_encoder_reads_new_rows_and_kinds_make_another_store(folder):
    animals().to_csv("animals.csv", index=False)
    table = open_table("animals.csv", **OPTIONS, encoder=oneof.TableEncoder())
    animals()[300:].drop(columns="label").assign(more="x").to_csv("new.csv", index=False)
    new = open_table("new.csv", candidates=None, drop=["id"], encoder=table.encoder)
    assert np.array_equal(new.X, table.X[300:])
    kinds = {"legs": "category", "note": "drop"}
    other = open_table("animals.csv", **OPTIONS, encoder=oneof.TableEncoder(kinds))
    assert np.array_equal(other.X, in_memory(kinds=kinds)[1])
    assert len(list((folder / "cache/oneof/tables").iterdir())) == 3


def test_a_pipeline_of_it_is_that_of_the_table_in_memory(folder):
    frame = animals()
    frame.to_csv("animals.csv", index=False)
    table = open_table("animals.csv", **OPTIONS, encoder=oneof.TableEncoder())
    settings = {"network": "linear", "epochs": 3, "random_state": 0, "device": "cpu"}
    model = oneof.PRODEN(**settings).fit(table.X, table.y)
    pipe = oneof.Pipeline([("table", table.encoder), ("model", model)])
    pipe.save("pipe")
    rows = read_table(Path("animals.csv"), ["id", "label"]).rows
    whole = oneof.make_pipeline(oneof.TableEncoder(), oneof.PRODEN(**settings))
    whole.fit(rows.drop(columns=["id", "label"]), oneof.encode(frame["label"], separator="|")[0])
    for one in (pipe, oneof.load_model("pipe")):
        np.testing.assert_allclose(one.predict_proba(rows), whole.predict_proba(rows), atol=1e-5)


# --- samples ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 7, 400])
def test_a_sample_is_of_all_rows_alike_in_their_order(size):
    frame = pd.DataFrame({"row": np.arange(400)})
    pieces = [frame[begin : begin + 30] for begin in range(0, 400, 30)]
    found = sample(pieces, size)["row"].to_numpy()
    assert len(found) == size
    assert (np.diff(found) > 0).all()
    rng = np.random.default_rng(0)  # brute force: all numbers at once
    numbers = np.concatenate([rng.random(len(piece)) for piece in pieces])
    assert np.array_equal(found, np.sort(np.argsort(numbers)[:size]))


def test_of_many_rows_a_sample_decides_and_what_it_has_not_seen_is_told(folder, monkeypatch):
    monkeypatch.setattr(encoded, "_ROWS", 150)
    frame = animals()
    frame.to_csv("animals.csv", index=False)
    rows = read_table(Path("animals.csv"), ["id", "label"]).rows
    drawn = sample([rows[begin : begin + 100] for begin in range(0, ROWS, 100)], 150)
    reference = oneof.TableEncoder().fit(drawn.drop(columns=["id", "label"]))
    table = open_table("animals.csv", **OPTIONS, encoder=oneof.TableEncoder())
    assert table.encoder.said_ == reference.said_
    assert np.array_equal(table.X, reference.transform(rows).astype(np.float32))
    unseen = next(row for row in range(600, ROWS) if row not in set(drawn["id"].astype(int)))
    frame.loc[unseen, "colour"] = "green"
    frame.to_csv("animals.csv", index=False)
    with pytest.warns(UserWarning, match=r"the column 'colour' holds 'green'"):
        table = open_table("animals.csv", **OPTIONS, encoder=oneof.TableEncoder())
    assert not table.X[unseen, [name.startswith("colour") for name in table.feature_names]].any()
    frame["weight"] = frame["weight"].astype(object)
    frame.loc[unseen, "weight"] = "heavy"
    frame.to_csv("animals.csv", index=False)
    with pytest.raises(
        ValueError, match=rf"animals.csv', in the rows from 600 on: .*'heavy' in row {unseen - 600}"
    ):
        open_table("animals.csv", **OPTIONS, encoder=oneof.TableEncoder())


def test_what_is_wrong_is_said(folder):
    frame = animals(90)
    frame.to_csv("animals.csv", index=False)
    with pytest.raises(ValueError, match=r"hold no numbers .*pass encoder=oneof.TableEncoder\(\)"):
        open_table("animals.csv", **OPTIONS)
    with pytest.raises(TypeError, match=r"encoder is 'yes', but must be a TableEncoder or None"):
        open_table("animals.csv", **OPTIONS, encoder="yes")
    with pytest.raises(TypeError, match="kinds is 5, but must be a dict"):
        open_table("animals.csv", **OPTIONS, encoder=oneof.TableEncoder(5))
    fitted = oneof.TableEncoder().fit(frame[["weight", "legs"]])
    with pytest.raises(ValueError, match="has no column 'weight'"):
        open_table("animals.csv", "label", "|", drop=["weight"], encoder=fitted)
    frame[:0].to_csv("empty.csv", index=False)
    with pytest.raises(ValueError, match="has no rows"):
        open_table("empty.csv", **OPTIONS, encoder=oneof.TableEncoder())
    gap = pd.DataFrame({"a": [*[1.0] * 2000, None], "label": "cat"})
    gap.to_csv("gap.csv", index=False)
    with pytest.raises(ValueError, match=r"line 2002 has nothing in the column 'a' \(an encoder fills gaps"):
        open_table("gap.csv", "label")


# --- commands ---------------------------------------------------------------------------------------------

FIT = ("--candidates", "label", "--separator", "|", "--id", "id", "--method", "cc", "--set", "epochs=3")


def fit(*words):
    return succeed("fit", "animals.csv", *FIT, "--device", "cpu", "--quiet", *words).stdout


def test_commands_encode_in_pieces(folder):
    animals().to_csv("animals.csv", index=False)
    said = fit("--on-disk", "--kind", "legs=category", "--out", "disk")
    assert said == fit("--in-memory", "--kind", "legs=category", "--out", "memory").replace("memory", "disk")
    assert "column note: text: 30 components" in said
    for name in ("disk", "memory"):
        place = "--on-disk" if name == "disk" else "--in-memory"
        succeed("predict", name, "animals.csv", "--id", "id", place, "--quiet", "--out", f"{name}.csv")
    first, second = (pd.read_csv(folder / f"{name}.csv") for name in ("disk", "memory"))
    pd.testing.assert_frame_equal(first, second, rtol=1e-5)


def test_columns_of_labels_and_of_images_are_refused(folder):
    frame = animals()
    frame.assign(truth=frame["label"].str.split("|").str[0]).to_csv("animals.csv", index=False)
    said = fail("fit", "animals.csv", *FIT, "--quiet", "--on-disk", "--out", "none")
    assert "the column 'truth' holds labels" in said
    frame.assign(file="a.png").to_csv("animals.csv", index=False)
    said = fail("fit", "animals.csv", *FIT, "--quiet", "--on-disk", "--out", "none")
    assert "the column 'file' names image files (such as 'a.png')" in said


def test_one_warning_of_unknown_categories_for_all_pieces(folder):
    animals().to_csv("animals.csv", index=False)
    fit("--out", "model")
    frame = animals()
    frame.loc[[150, *range(300, 330)], "colour"] = "mauve"
    frame.to_csv("later.csv", index=False)
    done = succeed("predict", "model", "later.csv", "--on-disk", "--quiet", "--out", "answers.csv")
    in_memory = succeed("predict", "model", "later.csv", "--in-memory", "--quiet", "--out", "answers.csv")
    assert done.stderr == in_memory.stderr  # the rows are those of the whole table
    assert done.stderr.count("warning") == 1
    assert "'colour' holds 'mauve' in rows 150, 300, 301" in done.stderr
    assert "... (31 in all), which no row had in training" in done.stderr
