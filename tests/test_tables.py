"""Tables: every format is read and written, and what is wrong with a file is one sentence."""

import csv
import gzip
import pickle
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from oneof import encode
from oneof.data.label_cells import are_json_lists, label_sets
from oneof.data.tables import (
    check_target,
    named_features,
    numeric_features,
    read_table,
    write_table,
)

FRAME = pd.DataFrame({"id": ["007", "008"], "a": [1.5, 2.0], "b": [True, False], "s": ["x|y", "NA"]})


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.tsv", "t.tsv.gz", "T.CSV", "t.parquet"])
def test_what_is_written_is_read_back(tmp_path, name):
    write_table(FRAME, tmp_path / name)
    table = read_table(tmp_path / name, ["s", "id"])
    assert table.columns.to_dict("list") == {"s": ["x|y", "NA"], "id": ["007", "008"]}
    features = numeric_features(table, ["s", "id"])
    assert features.to_dict("list") == {"a": [1.5, 2.0], "b": [1.0, 0.0]}
    assert list(tmp_path.iterdir()) == [tmp_path / name]


def test_gzip_is_gzip_and_the_same_every_time(tmp_path):
    write_table(FRAME, tmp_path / "t.csv.gz")
    first = (tmp_path / "t.csv.gz").read_bytes()
    assert gzip.decompress(first).startswith(b"id,a,b,s")
    assert int.from_bytes(first[4:8], "little") == 1  # the time stamp
    write_table(FRAME, tmp_path / "t.csv.gz")
    assert (tmp_path / "t.csv.gz").read_bytes() == first


def test_lists_stay_lists_in_parquet_and_are_joined_in_text(tmp_path):
    frame = pd.DataFrame({"s": [["x", "y"], ["z"]], "n": [np.array([1, 2]), np.array([3])]})
    write_table(frame, tmp_path / "t.parquet")
    write_table(frame, tmp_path / "t.csv")
    table = read_table(tmp_path / "t.parquet", ["s", "n"])
    assert label_sets(table.columns["s"]) == [["x", "y"], ["z"]]
    assert label_sets(table.columns["n"]) == [[1, 2], [3]]
    assert (tmp_path / "t.csv").read_text() == "s,n\nx|y,1|2\nz,3\n"


def test_a_named_index_of_parquet_is_an_id_but_no_feature(tmp_path):
    pd.DataFrame({"a": [1, 2]}, index=pd.Index([7, 8], name="key")).to_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet", ["key"])
    assert table.columns["key"].tolist() == [7, 8]
    assert list(numeric_features(table)) == ["a"]


def test_gaps_become_nan_whatever_the_column(tmp_path):
    csv = written(tmp_path, "t.csv", "i,f,b\n1,,True\n,2.5,\n")
    assert np.isnan(numeric_features(read_table(csv))).to_numpy().tolist() == [[0, 1, 0], [1, 0, 1]]
    nullable = pd.DataFrame({"i": pd.array([1, None], "Int64"), "b": pd.array([None, True], "boolean")})
    nullable.to_parquet(tmp_path / "t.parquet")
    features = numeric_features(read_table(tmp_path / "t.parquet"))
    assert np.isnan(features).to_numpy().tolist() == [[0, 1], [1, 0]]


def test_a_column_may_be_both_id_and_feature(tmp_path):
    text = 'whole,gaps,truth,float,text\n007,1,True,"1.5",x\n008,,False,1e-3,y\n-9,3,True,NA,\n'
    names = ["whole", "gaps", "truth", "float", "text"]
    table = read_table(written(tmp_path, "t.csv", text), names)
    assert table.columns.to_dict("list") == {
        "whole": ["007", "008", "-9"],
        "gaps": ["1", "", "3"],
        "truth": ["True", "False", "True"],
        "float": ["1.5", "1e-3", "NA"],
        "text": ["x", "y", ""],
    }
    expected = [[7, 1, 1, 1.5], [8, np.nan, 0, 0.001], [-9, 3, 1, np.nan]]
    np.testing.assert_array_equal(named_features(table, names[:4]), expected)
    with pytest.raises(ValueError, match=r"columns 'text' hold no numbers \(such as 'x'\)"):
        named_features(table, ["whole", "text"])


def test_integers_with_gaps_and_booleans_are_features_beside_columns_of_text(tmp_path):
    text = "id,whole,gaps,truth,unsure\n1,5,1,True,False\n2,6,,False,\n3,7,9007199254740993,True,True\n"
    table = read_table(written(tmp_path, "t.csv", text), ["id"])
    features = numeric_features(table, ["id"])
    assert list(features) == ["whole", "gaps", "truth", "unsure"]
    expected = [[5, 1, 1, 0], [6, np.nan, 0, np.nan], [7, float("9007199254740993"), 1, 1]]
    np.testing.assert_array_equal(features, expected)


def random_cells(rng, rows):
    """Columns of every kind that a table may have, as the text of their cells."""
    floats, wholes = (
        rng.normal(size=rows) * 10.0 ** rng.integers(-300, 300, rows),
        rng.integers(-(2**62), 2**62, rows),
    )
    texts = ["x", "NA", "", " y ", 'a"b', "p,q", "p|q", "two\nlines", "null", "007", "nan", "\u00e9", "'", "\t"]
    return {
        "float": list(map(repr, floats.tolist())),
        "float gaps": [rng.choice(["", "NaN", "1.25", "-inf", "0.1"]) for _ in range(rows)],
        "short": [f"{value:.3g}" for value in floats],
        "whole": list(map(str, wholes.tolist())),
        "whole gaps": [rng.choice(["", "NA", str(value)]) for value in wholes],
        "truth": [rng.choice(["True", "False"]) for _ in range(rows)],
        "truth gaps": [rng.choice(["TRUE", "false", ""]) for _ in range(rows)],
        "code": [f"{value % 1000:03d}" for value in wholes],
        "text": [rng.choice(texts) for _ in range(rows)],
        "nothing": [""] * rows,
        "spaces": [rng.choice([" 1", "2 ", "3"]) for _ in range(rows)],
        "self": ["1"] * rows,
    }


@pytest.mark.parametrize("seed", range(20))
def test_one_reading_gives_what_two_readings_give(tmp_path, seed):
    """Literally two readings: one with the types that pandas guesses, one more of the asked columns as text."""
    rng = np.random.default_rng(seed)
    cells = random_cells(rng, rows=1 + seed * 3)
    order = rng.permutation(list(cells)).tolist()
    path = tmp_path / "t.tsv.gz" if seed % 2 else tmp_path / "t.csv"
    with (gzip.open if seed % 2 else open)(path, "wt", newline="") as file:
        writer = csv.writer(file, delimiter="\t" if seed % 2 else ",")
        writer.writerow(order)
        writer.writerows(zip(*(cells[name] for name in order), strict=True))
    options = {"sep": "\t" if seed % 2 else ",", "index_col": False}
    guessed = pd.read_csv(path, **options)
    columns = rng.permutation(order)[: rng.integers(0, len(order))].tolist()
    text = pd.read_csv(path, **options, usecols=columns, dtype=str, na_filter=False)[columns] if columns else None

    table = read_table(path, columns)
    if columns:
        pd.testing.assert_frame_equal(table.columns, text)
        assert table.columns.to_dict("list") == {name: cells[name] for name in columns}
    rest = [name for name in order if name not in columns]
    pd.testing.assert_frame_equal(table.rows[rest], guessed[rest])
    assert list(table.rows) == order
    numeric = [name for name in order if name != "text"]
    expected = pd.DataFrame({name: guessed[name].to_numpy(dtype=float, na_value=np.nan) for name in numeric})
    pd.testing.assert_frame_equal(named_features(table, numeric), expected, check_exact=True)
    if seed:  # a single cell of text may be missing or a number
        with pytest.raises(ValueError, match="the columns 'text' hold no numbers"):
            named_features(table, ["text"])


def test_short_rows_and_repeated_names(tmp_path):
    path = written(tmp_path, "t.csv", "a,b,a\n1,x,3\n\n2\n")
    table = read_table(path, ["b", "a.1"])
    assert table.columns.to_dict("list") == {"b": ["x", ""], "a.1": ["3", ""]}
    np.testing.assert_array_equal(named_features(table, ["a.1", "a"]), [[3, 1], [np.nan, 2]])
    table = read_table(path, ["a"])
    assert table.columns.to_dict("list") == {"a": ["1", "2"]}
    np.testing.assert_array_equal(named_features(table, ["a.1", "a"]), [[3, 1], [np.nan, 2]])


@pytest.mark.parametrize("columns", [[], ["a"], ["a", "b"]])
def test_a_delimiter_at_the_end_of_every_row_is_no_column(tmp_path, columns):
    table = read_table(written(tmp_path, "t.csv", "a,b\n1,2,\n3,4,\n"), columns)
    assert table.columns.to_dict("list") == {name: {"a": ["1", "3"], "b": ["2", "4"]}[name] for name in columns}
    np.testing.assert_array_equal(named_features(table, ["a", "b"]), [[1, 2], [3, 4]])


def test_text_files_are_parsed_once(tmp_path, monkeypatch):
    path, parse, parsed = written(tmp_path, "t.csv", "a,b\n1,2\n"), pd.read_csv, []
    monkeypatch.setattr(pd, "read_csv", lambda *args, **kwargs: parsed.append(args[0]) or parse(*args, **kwargs))
    table = read_table(path, ["a"])
    assert named_features(table, ["a", "b"]).to_dict("list") == {"a": [1.0], "b": [2.0]}
    assert parsed.count(path) == 1


def test_rows_longer_than_the_header_are_refused_with_and_without_columns(tmp_path):
    path = written(tmp_path, "t.csv", "a,b\n1,2,3\n1,2,3\n")
    for columns in ([], ["b"], ["a", "b"]):
        with pytest.raises(ValueError, match=r"cannot be read \(Length of header"):
            read_table(path, columns)


def test_npz_with_and_without_class_names(tmp_path):
    x, matrix = np.zeros((2, 3)), np.array([[1, 0, 1], [0, 1, 0]])
    np.savez(tmp_path / "t.npz", x=x, candidates=matrix, classes=["p", "q", "r"], plain=["p", "q"])
    table = read_table(tmp_path / "t.npz", ["candidates", "plain"])
    assert table.rows.shape == (2, 3)
    assert label_sets(table.columns["candidates"]) == [["p", "r"], ["q"]]
    assert label_sets(table.columns["plain"]) == ["p", "q"]
    assert named_features(table, ["any"]) is table.rows
    np.savez(tmp_path / "t.npz", x=np.zeros((2, 4, 4, 1)), candidates=matrix)
    table = read_table(tmp_path / "t.npz", ["candidates"])
    assert numeric_features(table).shape == (2, 4, 4, 1)
    assert label_sets(table.columns["candidates"]) == [[0, 2], [1]]


def test_columns_of_a_model_by_name_in_its_order(tmp_path):
    table = read_table(written(tmp_path, "t.csv", "b,text,a\n1,x,2\n"))
    assert named_features(table, ["a", "b"]).to_dict("list") == {"a": [2.0], "b": [1.0]}
    with pytest.raises(ValueError, match=r"lacks the columns 'c', 'd' that the model was fitted on; add them"):
        named_features(table, ["a", "c", "d"])
    with pytest.raises(ValueError, match=r"columns 'text' hold no numbers \(such as 'x'\)"):
        named_features(table, ["text"])


def test_label_sets_of_strings():
    cells = pd.Series(["a | b", " c ", "|"])
    assert label_sets(cells, "|") == [["a", "b"], ["c"], []]
    assert label_sets(pd.Series([" c ", " "])) == ["c", None]
    with pytest.raises(ValueError, match="separator is '', but must have a character"):
        label_sets(cells, "")


@pytest.mark.parametrize("separator", [None, "|", ","])
def test_json_lists_are_lists(separator):
    cells = pd.Series(['["a", "b"]', '[ "c,d" ] ', "", "[]", "[1, 2.0]"])
    assert label_sets(cells[:4], separator) == [["a", "b"], ["c,d"], None, []]
    assert label_sets(cells[4:], separator) == [[1, 2.0]]
    assert label_sets(cells[4:], separator, np.array(["1", "2"])) == [["1", "2"]]
    assert are_json_lists(cells)


@pytest.mark.parametrize(
    "cell",
    [
        "['a', 'b']",
        "[a]",
        '["a"',
        '[["a"]]',
        '[{"a": 1}]',
        "[true]",
        "[null]",
        '"a"',
        "cat",
        "[" * 10**5 + "]" * 10**5,
        "[" + "1" * 5000 + "]",
        3,
        None,
    ],
    ids=range(13),
)
def test_other_cells_are_no_json_lists(cell):
    cells = pd.Series(['["a", "b"]', cell], dtype=object)
    assert not are_json_lists(cells)
    assert label_sets(cells) == ['["a", "b"]', cell]


def test_a_column_without_text_holds_no_json_lists():
    for cells in ([""], [], [1, 2], [["a"], ["b"]], [np.array(["a", "b"])]):
        assert not are_json_lists(pd.Series(cells, dtype=object))


@pytest.mark.parametrize(
    ("cells", "classes", "expected"),
    [
        (["1_0", "1" * 5000, "+1"], [1, 3], ["1_0", "1" * 5000, 1]),
        ([3, 1], ["1", "3"], ["3", "1"]),
        ([3.0, 1.0], ["1", "3"], ["3", "1"]),
        ([[3, 1], [1]], ["1", "3"], [["3", "1"], ["1"]]),
        (["3", "1"], [1, 3], [3, 1]),
        (["3", "one"], [1, 3], [3, "one"]),
        ([1.5], ["1", "3"], [1.5]),
    ],
)
def test_labels_are_written_as_the_classes_are(cells, classes, expected):
    found = label_sets(pd.Series(cells), classes=np.array(classes))
    assert found == expected
    assert [type(cell) for cell in found] == [type(cell) for cell in expected]


def test_labels_of_pandas_strings_are_encoded(tmp_path):
    table = read_table(written(tmp_path, "t.csv", "a,s\n1,x|y\n2,y\n"), ["s"])
    candidates, classes = encode(label_sets(table.columns["s"], "|"))
    assert candidates.tolist() == [[True, True], [False, True]]
    assert classes.tolist() == ["x", "y"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.xls", b"", r"must end in .csv, .*xlsx or .npz; rename or convert"),
        ("t.csv", b"", r"cannot be read \(No columns to parse from file\)"),
        ("t.csv", b"a,b\n", r"has no rows, but at least one is needed; fill the table"),
        ("t.csv", b"a,b\n1,2\n1,2,3\n", r"cannot be read \(.*line 3, saw 3\)"),
        ("t.csv", b"a,b\n1,2,3\n1,2,3\n", r"cannot be read \(Length of header"),
        ("t.csv", b"a,\xe9\n1,2\n", r"cannot be read \('utf-8' codec"),
        ("t.csv.gz", b"a,b\n1,2\n", r"cannot be read \(Not a gzipped file"),
        ("t.csv.gz", gzip.compress(b"a,b\n1,2\n" * 99, mtime=0)[:-9], r"cannot be read \(Compressed file ended"),
        ("t.parquet", b"nonsense", r"cannot be read"),
        ("t.npz", b"nonsense", r"cannot be read \(it is no zip archive\)"),
    ],
)
def test_damaged_files(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        read_table(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_a_damaged_archive_is_no_traceback(tmp_path):
    np.savez(tmp_path / "t.npz", x=np.zeros((50, 3)), candidates=np.ones((50, 2)))
    content = bytearray((tmp_path / "t.npz").read_bytes())
    content[200:260] = b"\0" * 60
    content[50:90] = b"\0" * 40
    (tmp_path / "t.npz").write_bytes(content)
    with pytest.raises(ValueError, match="cannot be read"):
        read_table(tmp_path / "t.npz", ["candidates"])


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"y": np.zeros(2)}, "has no column 'x'"),
        ({"x": np.zeros((2, 2))}, "has no column 's'"),
        ({"x": np.zeros(2), "s": np.zeros(2)}, r"array x of .* has shape \(2,\), but must be a table"),
        ({"x": np.zeros((2, 2)), "s": np.zeros(3)}, r"'s' of .* has shape \(3,\), but x has 2 rows"),
        ({"x": np.zeros((2, 2)), "s": np.array(0)}, r"'s' of .* has shape \(\), but x has 2 rows"),
        ({"x": np.zeros((2, 2)), "s": np.array([[0, 2], [1, 0]])}, "values such as 2"),
        ({"x": np.zeros((2, 2)), "s": np.eye(2), "classes": ["a"]}, "classes has 1 names and y has 2 columns"),
        ({"x": np.zeros((0, 2)), "s": np.zeros((0, 2))}, "has no rows"),
        ({"x": np.zeros((2, 0)), "s": np.zeros(2)}, r"x of .* has shape \(2, 0\), but must be a table"),
        ({"x": np.zeros((2, 0, 5)), "s": np.zeros(2)}, r"has shape \(2, 0, 5\)"),
        ({"x": np.zeros((2, 4, 4, 0)), "s": np.zeros(2)}, r"has shape \(2, 4, 4, 0\)"),
        (
            {"x": np.array([["a", "b"]]), "s": np.zeros(1)},
            "array 'x' of .* is of type <U1, but must hold numbers; con",
        ),
        ({"x": np.ones((1, 2), complex), "s": np.zeros(1)}, "'x' of .* is of type complex128"),
        (
            {"x": np.zeros((1, 2)), "s": np.zeros(1, "M8[D]")},
            r"'s' of .* is of type datetime64\[D\], but .* or text",
        ),
        ({"x": np.zeros((1, 2)), "s": np.zeros(1, "V8")}, "'s' of .* is of type"),
        ({"x": np.zeros((1, 2)), "s": np.zeros(1, [("n" * 900, int)])}, "'s' of .* is of type"),
        ({"x": np.array([[None, 1]]), "s": np.zeros(1)}, r"cannot be read \(Object arrays cannot be loaded"),
    ],
)
def test_arrays_that_are_no_table(tmp_path, arrays, message):
    np.savez(tmp_path / "t.npz", **arrays)
    with pytest.raises(ValueError, match=message):
        read_table(tmp_path / "t.npz", ["s"])


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("damaged", ["s", "classes", "x"])
def test_text_of_code_points_that_no_character_has(tmp_path, order, damaged):
    text = np.frombuffer(np.array([0x110000, 65], f"{order}u4").tobytes(), f"{order}U1")
    arrays = {"x": np.zeros((2, 2)), "s": np.eye(2), "classes": ["p", "q"], damaged: text}
    np.savez(tmp_path / "t.npz", **arrays)
    message = "must hold numbers" if damaged == "x" else "has text with a code point of 0x110000, but"
    with pytest.raises(ValueError, match=f"the array '{damaged}' of .* {message}"):
        read_table(tmp_path / "t.npz", ["s"])


def test_members_that_are_no_arrays(tmp_path):
    np.savez(tmp_path / "t.npz", x=np.zeros((2, 2)))
    with zipfile.ZipFile(tmp_path / "t.npz", "a") as file:
        file.writestr("s", b"no array")
        file.writestr("p.npy", pickle.dumps([1, 2]))
    with pytest.raises(
        ValueError, match=r"the array 's' of .* is of type bytes, no array, but must hold numbers or t"
    ):
        read_table(tmp_path / "t.npz", ["s"])
    with pytest.raises(ValueError, match=r"'p' of .* is of type bytes, no array"):
        read_table(tmp_path / "t.npz", ["p"])


def test_long_names_are_quoted_shortly(tmp_path):
    header = ",".join(["c" * 5000, "d" * 5000, "\0" * 5000])
    path = written(tmp_path, "t.csv", f"{header}\n{'x' * 9000},{'y' * 9000},z\n")
    acts = (
        lambda: read_table(path, ["e" * 5000]),
        lambda: read_table(path, ["c" * 4999]),
        lambda: numeric_features(read_table(path)),
        lambda: named_features(read_table(path), ["f" * 5000, "g" * 5000]),
        lambda: read_table(tmp_path / ("h" * 3000 + ".csv")),
        lambda: read_table(tmp_path / ("h" * 3000 + ".xls")),
    )
    for act in acts:
        with pytest.raises((ValueError, OSError)) as caught:
            act()
        assert len(str(caught.value)) < 500


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no file '.*t\.csv'; check the path"):
        read_table(tmp_path / "t.csv")
    (tmp_path / "f.csv").mkdir()
    with pytest.raises(FileNotFoundError, match="there is no file"):
        read_table(tmp_path / "f.csv")


def test_missing_column_with_close_matches(tmp_path):
    path = written(tmp_path, "t.csv", "a,candidates\n1,x\n")
    with pytest.raises(ValueError, match=r"has no column 'candidate'; did you mean 'candidates'\?"):
        read_table(path, ["candidate"])
    with pytest.raises(ValueError, match=r"has no column 'zzz'; there are 'a', 'candidates'"):
        read_table(path, ["zzz"])


def test_columns_that_are_no_features(tmp_path):
    table = read_table(written(tmp_path, "t.csv", "a,city,day\n1,Rome,2020-01-01\n"))
    with pytest.raises(ValueError, match=r"'city', 'day' hold no numbers \(such as 'Rome'\).*--drop or --id"):
        numeric_features(table)
    assert list(numeric_features(table, ["city", "day"])) == ["a"]
    row_numbers = read_table(written(tmp_path, "u.csv", ",a\n0,1\n"))
    with pytest.raises(ValueError, match=r"has a column without a name.*--drop 'Unnamed: 0'"):
        numeric_features(row_numbers)


@pytest.mark.parametrize("columns", [["s"], []])
def test_parquet_with_text_that_is_no_utf8(tmp_path, columns):
    """As a feature it would be quoted in a message."""
    path = tmp_path / "t.parquet"
    pd.DataFrame({"a": [1.0, 2.0], "s": ["first", "second"]}).to_parquet(path, compression=None)
    path.write_bytes(path.read_bytes().replace(b"first", b"\xff\xferst"))
    words = r"the column 's' holds text that is no UTF-8|Unknown error: Wrapping"  # the latter of pandas 2
    with pytest.raises(ValueError, match=rf"t.parquet' cannot be read \(({words})"):
        read_table(path, columns)


def test_parquet_with_a_column_twice(tmp_path):
    import pyarrow
    import pyarrow.parquet

    columns = pyarrow.table([pyarrow.array([1]), pyarrow.array([2])], names=["a", "a"])
    pyarrow.parquet.write_table(columns, tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="cannot be read"):
        read_table(tmp_path / "t.parquet")


def test_without_pyarrow_one_sentence_says_what_to_install(tmp_path, monkeypatch):
    FRAME.to_parquet(tmp_path / "t.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for action in (read_table, check_target, lambda path: write_table(FRAME, path)):
        with pytest.raises(ValueError, match=r"needs pyarrow, which is missing; pip install oneof\[parquet\]"):
            action(tmp_path / "t.parquet")


def test_targets_are_checked_before_any_work(tmp_path, monkeypatch):
    path = written(tmp_path, "t.csv", "a\n1\n")
    check_target(tmp_path / "new.csv", [path, tmp_path / "absent"])
    check_target(tmp_path / "model", table=False)
    with pytest.raises(ValueError, match=r"must end in .csv, .csv.gz, .tsv, .tsv.gz, .jsonl, .* or .xlsx"):
        check_target(tmp_path / "t.npz")
    with pytest.raises(ValueError, match="is an input and would be overwritten"):
        check_target(tmp_path / "." / "t.csv", [path])
    with pytest.raises(FileNotFoundError, match=r"the folder '.*nowhere' does not exist; create it first"):
        check_target(tmp_path / "nowhere" / "t.csv")
    with pytest.raises(IsADirectoryError, match="is a folder, but a file is to be written"):
        check_target(tmp_path, table=False)
    assert list(tmp_path.iterdir()) == [path]

    def refuse(dir):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    with pytest.raises(OSError, match=r"cannot be written to \(Permission denied\); choose another"):
        check_target(tmp_path / "t.csv")


def test_a_failing_write_leaves_the_old_file(tmp_path):
    path = written(tmp_path, "t.parquet", "old")
    with pytest.raises(ValueError, match="Conversion failed"):
        write_table(pd.DataFrame({"a": [["x"], 1]}), path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
