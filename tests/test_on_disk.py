"""Tables that stay on disk: read once, whole or not at all, and the models are those of tables in memory."""

import gzip
import os
import subprocess
import sys
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow
import pytest

import oneof
from oneof.data.on_disk import text_rows
from oneof.data.on_disk.moments import Moments
from oneof.data.on_disk.table import open_table
from oneof.data.tables import read_table
from oneof.labels import NamedSets
from test_cli import fail, succeed

NAMES = np.array(["cat", "cow", "dog", "yak"])
FEATURES = list("abcde")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(text_rows, "ROWS", 100)  # many pieces
    monkeypatch.setattr(text_rows, "_BLOCK", 2**12)
    return tmp_path / "cache" / "oneof" / "tables"


def animals(rows=500):
    rng = np.random.default_rng(0)
    truth = rng.integers(4, size=rows)
    frame = pd.DataFrame((rng.normal(size=(rows, 5)) + 3 * np.eye(4, 5)[truth]).round(4), columns=FEATURES)
    frame["e"] = rng.integers(0, 9, rows)
    others = rng.integers(4, size=(rows, 2))
    frame["label"] = ["|".join(NAMES[[o, t, p, t]]) for t, (o, p) in zip(truth, others, strict=True)]
    frame["id"] = [f"é{row}" * (row % 3) for row in range(rows)]
    return frame


def opened(folder, frame, name="animals.csv", **options):
    frame.to_csv(folder / name, index=False, sep="\t" if ".tsv" in name else ",")
    return open_table(folder / name, **{"candidates": "label", "separator": "|", "ids": ["id"]} | options)


def check_holds(table, frame):
    assert np.array_equal(table.X, frame[FEATURES].to_numpy(np.float32))
    assert table.X.dtype == np.float32
    assert isinstance(table.X, np.memmap)
    sets, classes = oneof.encode(frame["label"], separator="|")
    assert table.classes.tolist() == classes.tolist()
    assert np.array_equal(oneof.encode(table.y)[0], sets)
    assert table.ids["id"][:] == frame["id"].tolist()
    exact = frame[FEATURES].to_numpy(np.float64)
    assert np.allclose(table.mean, exact.mean(0), rtol=1e-12, atol=1e-12)
    assert np.allclose(table.std, exact.std(0), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv.gz"])
@pytest.mark.parametrize("engine", ["pyarrow", "pandas"])
def test_what_was_read_is_what_the_file_holds(tmp_path, monkeypatch, name, engine):
    if engine == "pandas":
        monkeypatch.setattr(text_rows, "find_spec", lambda name: None)
    check_holds(opened(tmp_path, animals(), name), animals())


def test_parquet_files_and_folders_hold_the_same(tmp_path):
    frame = animals()
    (tmp_path / "parts").mkdir()
    for number, part in enumerate([frame[:200], frame[200:201], frame[201:]]):
        part.to_parquet(tmp_path / "parts" / f"{number}.parquet")
    frame.to_parquet(tmp_path / "one.parquet")
    options = {"candidates": "label", "separator": "|", "ids": ["id"]}
    for name in ("parts", "one.parquet"):
        check_holds(open_table(tmp_path / name, **options), frame)
    lists = frame.assign(label=[cell.split("|") for cell in frame["label"]])
    lists.to_parquet(tmp_path / "lists.parquet")
    check_holds(open_table(tmp_path / "lists.parquet", "label", ids=["id"]), frame)


class Classes:
    def __init__(self, names):
        self.names = names


class Dataset:
    """What `datasets.Dataset` has of what is asked here; tried with the library, 5.2."""

    def __init__(self, table, fingerprint):
        self.table, self._fingerprint, self.num_rows = table, fingerprint, len(table)
        self.features = Features(dict.fromkeys(table.column_names))
        self.features.arrow_schema = table.schema
        self.features["label"] = SimpleNamespace(feature=Classes(["dog", "yak", "cow", "cat"]))

    def select_columns(self, names):
        return type(self)(self.table.select(names), "")

    def with_format(self, name):
        assert name == "arrow"
        return self

    def iter(self, batch_size):
        yield from (pyarrow.Table.from_batches([part]) for part in self.table.to_batches(90))


class Features(dict):
    arrow_schema = None


def test_datasets_of_hugging_face_name_classes(cache):
    frame = animals()
    order = ["dog", "yak", "cow", "cat"]
    numbers = [[order.index(name) for name in cell.split("|")] for cell in frame["label"]]
    table = pyarrow.Table.from_pandas(frame.assign(label=numbers))
    check_holds(open_table(Dataset(table, "one"), "label", ids=["id"]), frame)
    check_holds(open_table(Dataset(table, "one"), "label", ids=["id"]), frame)
    assert len(list(cache.iterdir())) == 1
    open_table(Dataset(table[:90], "two"), "label", ids=["id"])
    assert len(list(cache.iterdir())) == 2
    with pytest.raises(
        ValueError, match=r"the columns 'label', 'id' of the dataset .* \(such as 'classes such as dog'\)"
    ):
        open_table(Dataset(table, "one"), None)


def test_cells_of_every_kind(tmp_path):
    text = 'x,t,"l, m"\n1e3,True,"a|""b"""\n-2,false," a "\n\n0.5,TRUE,NA|a\n'
    (tmp_path / "t.csv").write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    table = open_table(tmp_path / "t.csv", "l, m", "|")
    assert table.X.tolist() == [[1000, 1], [-2, 0], [0.5, 1]]
    assert table.classes.tolist() == ['"b"', "NA", "a"]
    assert np.asarray(table.y).tolist() == [[True, False, True], [False, False, True], [False, True, True]]
    (tmp_path / "j.csv").write_text('x,l\n1,"[""a"", ""b""]"\n2,"[""b""]"\n')
    assert oneof.encode(open_table(tmp_path / "j.csv", "l").y)[0].tolist() == [[True, True], [False, True]]


@pytest.mark.filterwarnings("ignore:warm_up is 10")
@pytest.mark.parametrize("method", [oneof.CC, oneof.PRODEN, oneof.IDGP])
def test_the_model_is_that_of_the_table_in_memory(tmp_path, method):
    frame = animals()
    table = opened(tmp_path, frame)
    settings = {"network": "mlp", "epochs": 3, "validation_fraction": 0.2, "random_state": 0, "device": "cpu"}
    rows = frame[FEATURES].astype(np.float32)
    with_names = method(**settings).fit(rows, frame["label"], separator="|")
    mapped = method(**settings).fit(table.X, table.y)
    assert mapped.feature_names_in_.tolist() == FEATURES
    assert mapped.classes_.tolist() == with_names.classes_.tolist()
    assert mapped.history_ == with_names.history_
    assert np.array_equal(mapped.label_distributions_, with_names.label_distributions_)
    assert np.array_equal(mapped.predict_proba(table.X), with_names.predict_proba(rows))
    assert mapped.score(table.X, table.y) == with_names.score(rows, frame["label"], separator="|")
    with pytest.raises(ValueError, match="feature names should match"):
        mapped.predict(opened(tmp_path, frame.rename(columns={"a": "z"}), "z.csv").X)


def test_sparse_sets_give_the_same_model(tmp_path, monkeypatch):
    table = opened(tmp_path, animals())
    settings = {"network": "linear", "epochs": 2, "validation_fraction": 0.2, "random_state": 0, "device": "cpu"}
    dense = oneof.PRODEN(**settings).fit(table.X, table.y)
    monkeypatch.setattr("oneof.labels.sparse_sets.LEAST_CELLS", 0)
    monkeypatch.setattr("oneof.labels.sparse_sets._SMALLER", 0)
    sparse = oneof.PRODEN(**settings).fit(table.X, table.y)
    assert np.allclose(sparse.label_distributions_.toarray(), dense.label_distributions_, atol=1e-6)
    assert sparse.history_["validation_score"] == pytest.approx(dense.history_["validation_score"], abs=1e-6)


def test_neither_rows_nor_held_out_rows_are_copied(tmp_path, monkeypatch):
    monkeypatch.setattr("oneof.train.rows._TABLE_BLOCK", 1000)
    rows = np.memmap(tmp_path / "wide", np.float32, "w+", shape=(40_000, 400))  # 64 MB
    rows[:] = np.random.default_rng(0).random(400, dtype=np.float32)
    rows[:, 0] = y = np.arange(40_000) % 4
    model = oneof.CC(network="linear", epochs=1, validation_fraction=0.5, batch_size=1000, device="cpu")
    tracemalloc.start()
    model.fit(rows, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < rows.nbytes / 2


def test_a_table_is_read_once_and_anew_when_it_changes(tmp_path, cache):
    frame = animals()
    first = opened(tmp_path, frame)
    made = first.path.stat().st_ino
    assert open_table(tmp_path / "animals.csv", "label", "|", ["id"]).path.stat().st_ino == made
    changed = opened(tmp_path, frame.assign(a=7.0))
    assert changed.path == first.path  # of one table one store is kept
    assert (changed.X[:, 0] == 7).all()
    assert np.array_equal(first.X, frame[FEATURES].to_numpy(np.float32))  # who has it open goes on with it
    open_table(tmp_path / "animals.csv", None, drop=["label", "id"])
    assert len(list(cache.iterdir())) == 2
    damaged = bytearray(changed.path.read_bytes())
    changed.path.write_bytes(damaged[:-5])
    check_holds(open_table(tmp_path / "animals.csv", "label", "|", ["id"]), frame.assign(a=7.0))
    assert "tables: removed" in succeed("cache", "--clear", "--kind", "tables").stdout
    assert list(cache.glob("*")) == []


def test_a_table_that_changes_while_it_is_read_is_refused(tmp_path, cache, monkeypatch):
    add = Moments.add

    def add_and_touch(self, piece):
        os.utime(tmp_path / "animals.csv", ns=(1, 1))
        add(self, piece)

    monkeypatch.setattr(Moments, "add", add_and_touch)
    with pytest.raises(ValueError, match="was changed while it was read; read it again"):
        opened(tmp_path, animals())
    assert list(cache.glob("*")) == []


def test_a_killed_read_leaves_nothing_that_is_taken_for_whole(tmp_path, cache):
    frame = animals()
    frame.to_csv(tmp_path / "animals.csv", index=False)
    slow = (
        "import sys, time\nfrom oneof.data.on_disk import text_rows\n"
        "from oneof.data.on_disk.moments import Moments\n"
        "text_rows.ROWS, text_rows._BLOCK, add = 50, 2**11, Moments.add\n"
        "def slowly(self, piece):\n    add(self, piece); print('piece', flush=True); time.sleep(60)\n"
        "Moments.add = slowly\nimport oneof\noneof.open_table(sys.argv[1], 'label', '|', ['id'])\n"
    )
    child = subprocess.Popen([sys.executable, "-c", slow, tmp_path / "animals.csv"], stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"piece\n"
    child.kill()
    child.wait()
    (part,) = cache.iterdir()
    assert part.suffix == ".part"
    check_holds(open_table(tmp_path / "animals.csv", "label", "|", ["id"]), frame)
    assert not part.exists()


LINES = ["a,b,label", *["1,2,cat|dog"] * 300]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("1,2", "line 252 has 2 cells, but the header has 3"),
        ("1,2,cat,4", "line 252 has 4 cells, but the header has 3"),
        ("1,heavy,cat", "line 252 has 'heavy' in the column 'b', which is no number"),
        (",2,cat", "line 252 has nothing in the column 'a'"),
        ("NA,2,cat", "line 252 has nothing in the column 'a'"),
        ("1e39,2,cat", "line 252 has '1e39' in the column 'a', which is no finite number of 32 bits"),
        ("1,2,", "the candidate set is empty in row 250 of the column 'label'"),
        ("1,2, | ", "the candidate set is empty in row 250"),
    ],
)
@pytest.mark.parametrize("engine", ["pyarrow", "pandas"])
def test_damaged_rows_are_named(tmp_path, cache, monkeypatch, line, words, engine):
    if engine == "pandas":
        if line == "1,2":
            words = "empty in row 250"  # pandas fills short lines
        monkeypatch.setattr(text_rows, "find_spec", lambda name: None)
    lines = [*LINES[:251], line, *LINES[251:]]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    with pytest.raises(ValueError, match=words.replace("|", r"\|")):
        open_table(tmp_path / "t.csv", "label", "|")
    assert list(cache.glob("*")) == []


def test_what_else_is_wrong_is_said(tmp_path):
    frame = animals(300)
    with pytest.raises(ValueError, match=r"the columns 'c' of .* hold no numbers \(such as 'é'\)"):
        opened(tmp_path, frame.assign(c="é"))
    with pytest.raises(ValueError, match="has no column 'lable'; did you mean 'label'"):
        opened(tmp_path, frame, candidates="lable")
    with pytest.warns(UserWarning, match=r"the columns 'a' of .* vary by little around large values"):
        opened(tmp_path, frame.assign(a=frame["a"] + 1e8))
    with pytest.warns(UserWarning, match="most labels contain '|'"):
        opened(tmp_path, frame, separator=None)
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress("\n".join(LINES * 99).encode())[:-99])
    with pytest.raises(ValueError, match=r"cut.csv.gz' cannot be read"):
        open_table(tmp_path / "cut.csv.gz", "label", "|")
    gap = animals().assign(a=[*[1.0] * 499, None])
    gap.to_parquet(tmp_path / "gap.parquet")
    with pytest.raises(ValueError, match="row 499 has nothing in the column 'a'"):
        open_table(tmp_path / "gap.parquet", "label", "|", ["id"])
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 no more")
    with pytest.raises(ValueError, match=r"bad.parquet' cannot be read"):
        open_table(tmp_path / "bad.parquet", "label")


def test_named_sets_are_told_by_their_names(tmp_path):
    table = opened(tmp_path, animals(50))
    assert isinstance(table.y, NamedSets)
    more = ["yak", "ant", "dog", "cow", "cat"]
    assert np.array_equal(oneof.encode(table.y, classes=more)[0][:, [4, 3, 2, 0]], oneof.encode(table.y)[0])
    with pytest.raises(ValueError, match=r"names unknown labels \('yak'\) in row \d+"):
        oneof.encode(table.y, classes=["cat", "cow", "dog"])
    with pytest.raises(TypeError, match="separator is given, but y holds sets that are split already"):
        oneof.encode(table.y, separator="|")
    assert np.array_equal(np.asarray(table.y[[3, 1]]), np.asarray(table.y)[[3, 1]])


def test_moments_of_pieces_are_those_of_the_whole():
    x = np.random.default_rng(0).normal(1e6, 1, size=(1000, 3)) * [1, 0, 1e-3]
    moments = Moments(3)
    for piece in np.split(x, [1, 10, 700]):
        moments.add(piece)
    assert np.allclose(moments.mean, x.mean(0), rtol=1e-14)
    assert np.allclose(moments.std, x.std(0), rtol=1e-9)


FIT = [
    "--separator",
    "|",
    "--candidates",
    "label",
    "--method",
    "cc",
    "--set",
    "epochs=3",
    "--set",
    "network=linear",
]


def fit(table, *options):
    return succeed("fit", str(table), *FIT, "--device", "cpu", "--quiet", "--id", "id", *options)


def test_commands_read_and_write_in_pieces(tmp_path, cache, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = animals().astype(dict.fromkeys(FEATURES, np.float32))
    frame.to_csv("animals.csv", index=False)
    frame[["id", *FEATURES[::-1]]].to_parquet("new.parquet")
    said = fit("animals.csv", "--on-disk", "--out", "disk").stdout
    assert said == fit("animals.csv", "--in-memory", "--out", "memory").stdout.replace("memory", "disk")
    assert len(list(cache.iterdir())) == 1
    models = [oneof.load_model(name) for name in ("disk", "memory")]
    assert np.allclose(*(each.label_distributions_ for each in models), atol=1e-5)
    for ending in (".csv", ".tsv.gz", ".jsonl", ".parquet"):
        pieces, whole = f"pieces{ending}", f"whole{ending}"
        told = succeed("predict", "disk", "new.parquet", "--id", "id", "--on-disk", "--out", pieces).stdout
        assert told == f"500 rows written to {pieces}\n"
        succeed("predict", "disk", "new.parquet", "--id", "id", "--out", whole)
        first, second = (read_table(tmp_path / name).rows for name in (pieces, whole))
        pd.testing.assert_frame_equal(first, second, rtol=1e-5)
    monkeypatch.setattr("oneof.cli.on_disk.LARGE", 1000)
    fit("animals.csv", "--out", "large")  # by its size
    assert (tmp_path / "large").read_bytes() == (tmp_path / "disk").read_bytes()
    (tmp_path / "parts").mkdir()
    frame.to_parquet("parts/0.parquet")
    fit("parts", "--out", "parts.model")
    assert np.array_equal(oneof.load_model("parts.model").label_distributions_, models[0].label_distributions_)


def test_predictions_are_written_whole_or_not_at_all(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = animals()
    frame.to_csv("animals.csv", index=False)
    fit("animals.csv", "--out", "model")
    (tmp_path / "out.csv").write_text("as before")
    lines = (tmp_path / "animals.csv").read_text().splitlines()
    lines[400] = lines[400].replace(",", ",x", 1)
    (tmp_path / "bad.csv").write_text("\n".join(lines))
    said = fail("predict", "model", "bad.csv", "--on-disk", "--out", "out.csv", "--quiet")
    assert "line 401 has 'x" in said
    assert (tmp_path / "out.csv").read_text() == "as before"
    assert sorted(path.name for path in tmp_path.glob("out*")) == ["out.csv"]
