"""Damaged files and labels: whatever a reader is given, it reads it or says in one short line what is wrong."""

import gzip
import io
import json
import random
import warnings
import zipfile
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from scipy.io import savemat

from oneof import encode, from_complementary, from_votes
from oneof.data import PartialLabels, decode_images, load_images
from oneof.data.formats import read_cifar, read_idx, read_mat
from oneof.data.label_cells import label_sets
from oneof.data.tables import named_features, numeric_features, read_table

TIMES = 200
LONGEST = 500
TOKENS = [b"", b"\0" * 3000, b"\xff\xfe", b"\n", b"\r", b'"', b",", b"[" * 3000, b"1" * 5000, b"nan", b"x" * 9000]


def damaged(content: bytes, rng: random.Random) -> bytes:
    """Cut, change, repeat or replace a part of a file."""
    data = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 8])):
        start = rng.randrange(len(data) + 1)
        end = min(len(data), start + rng.choice([1, 4, 60]))
        way = rng.randrange(5)
        if way == 0:
            del data[start:]
        elif way == 1 and end > start:
            data[start] = rng.randrange(256)
        elif way == 2:
            data[start:end] = rng.choice(TOKENS)
        elif way == 3:
            data[start:start] = data[start:end] * rng.choice([1, 3])
        elif end > start:
            data[start:end] = rng.randbytes(end - start)
    return bytes(data)


def read_or_refuse(act):
    """Call a reader; only errors of one short line may come out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return act()
        except (ValueError, TypeError, OSError) as error:
            text = str(error)
            assert text
            assert "\n" not in text
            assert len(text) <= LONGEST, text
            assert text.isprintable(), text
    return None


def as_table(path, columns=("s", "id")):
    table = read_table(path, list(columns))
    with suppress(ValueError):
        named_features(table, ["a", "b"])
    read_or_refuse(lambda: numeric_features(table, columns))
    for separator in (None, "|"):
        sets = read_or_refuse(lambda separator=separator: label_sets(table.columns["s"], separator))
        read_or_refuse(lambda sets=sets: encode(sets) if sets is not None else None)
    return table


def csv_bytes():
    rows = ["a,b,s,id", '1.5,2,"x|y",007', "2.5,,y,008", '3,True,"[""x"", ""z""]",009', "nan,4,é,010"]
    return "\n".join(rows).encode()


def parquet_bytes():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [1, 2], "s": [["x", "y"], ["z"]], "id": ["1", "2"]})
    return frame.to_parquet()


def npz_bytes(compressed=False):
    file = io.BytesIO()
    save = np.savez_compressed if compressed else np.savez
    save(
        file, x=np.ones((3, 2)), s=np.eye(3)[:, :2] + [[0, 1], [0, 0], [1, 0]], id=np.arange(3), classes=["p", "q"]
    )
    return file.getvalue()


TABLES = {
    ".csv": csv_bytes(),
    ".tsv": csv_bytes().replace(b",", b"\t"),
    ".csv.gz": gzip.compress(csv_bytes(), mtime=0),
    ".parquet": parquet_bytes(),
    ".npz": npz_bytes(),
    "-packed.npz": npz_bytes(compressed=True),
}


@pytest.mark.parametrize("kind", TABLES)
def test_damaged_tables(kind, tmp_path):
    rng, path = random.Random(kind), tmp_path / f"t{kind}"
    path.write_bytes(TABLES[kind])
    assert as_table(path) is not None
    for _ in range(TIMES):
        path.write_bytes(damaged(TABLES[kind], rng))
        read_or_refuse(lambda: as_table(path))


KINDS = ["?", "i1", "u8", "f2", "f8", "g", "c8", "U3", "S3", "M8[s]", "m8[D]", "V4", [("f", int), ("g", "U2")]]
SHAPES = [(), (0,), (3,), (3, 0), (3, 2), (3, 1), (3, 2, 2), (3, 0, 5), (3, 4, 4, 0), (2, 2), (3, 1, 1, 1, 1)]


def test_npz_of_every_type_and_shape(tmp_path):
    rng, path = random.Random(0), tmp_path / "t.npz"
    for _ in range(TIMES):
        arrays = {name: np.zeros(rng.choice(SHAPES), rng.choice(KINDS)) for name in ("x", "s", "id", "classes")}
        arrays["x"] = rng.choice([arrays["x"], np.ones((3, 2))])
        np.savez(path, **{name: array for name, array in arrays.items() if rng.random() < 0.9})
        if rng.random() < 0.2:
            with zipfile.ZipFile(path, "a") as file:
                file.writestr(rng.choice(["s", "id", "x", "new.npy"]), rng.choice(TOKENS))
        read_or_refuse(lambda: as_table(path))


def test_cells_of_every_kind(tmp_path):
    rng, path = random.Random(1), tmp_path / "t.csv"
    cells = [
        "",
        "1",
        "x",
        "NA",
        "x|y",
        "\0" * 900,
        "z" * 9000,
        "[" * 9000 + "]" * 9000,
        '["a"]',
        "['a']",
        "[1e999]",
    ]
    cells += [
        '["a", 1]',
        "[[]]",
        "1e400",
        "-",
        "1_0",
        "\ud7ff",
        "\u2028",
        "é" * 300,
        "١",
        "|" * 999,
        "true",
        "9" * 400,
    ]
    for _ in range(TIMES):
        rows = [["a", "b", "s", "id"]] + [
            [rng.choice(cells) for _ in range(4)] for _ in range(rng.randrange(1, 5))
        ]
        text = "\n".join(",".join(json.dumps(cell).replace('\\"', '""') for cell in row) for row in rows)
        path.write_text(text, encoding="utf-8")
        read_or_refuse(lambda: as_table(path))


def idx_bytes():
    header = bytes([0, 0, 8, 3]) + b"".join(side.to_bytes(4, "big") for side in (2, 3, 4))
    return header + bytes(range(24))


def mat_bytes(compressed):
    file = io.BytesIO()
    sets = np.array([[1, 0, 1], [1, 1, 0]])
    matrices = {
        "data": np.arange(12.0).reshape(3, 4),
        "partial_target": sets,
        "target": sets * [[0, 0, 1], [1, 1, 0]],
    }
    savemat(file, matrices, do_compression=compressed)
    return file.getvalue()


BINARY = {
    "idx": (idx_bytes(), lambda path: read_idx(path, 3)),
    "idx.gz": (gzip.compress(idx_bytes(), mtime=0), lambda path: read_idx(path, 3)),
    "labels": (idx_bytes(), lambda path: read_idx(path, 1)),
    "cifar": (bytes(3073 * 2), lambda path: read_cifar(path, 1)),
    "mat": (mat_bytes(False), read_mat),
    "packed mat": (mat_bytes(True), read_mat),
}


@pytest.mark.parametrize("kind", BINARY)
def test_damaged_published_files(kind, tmp_path):
    content, read = BINARY[kind]
    rng, path = random.Random(kind), tmp_path / "file"
    for _ in range(TIMES):
        path.write_bytes(damaged(content, rng))
        read_or_refuse(lambda: read(path))


IMAGES = ["BMP", "GIF", "JPEG", "JPEG2000", "PNG", "PPM", "TIFF", "WEBP"]


@pytest.mark.parametrize("kind", IMAGES)
def test_damaged_images(kind, tmp_path):
    file = io.BytesIO()
    values = np.random.default_rng(0).integers(256, size=(9, 7, 3), dtype=np.uint8)
    Image.fromarray(values).save(file, kind)
    rng, path = random.Random(kind), tmp_path / "a"
    for _ in range(TIMES // 3):
        path.write_bytes(damaged(file.getvalue(), rng))
        found = read_or_refuse(lambda: decode_images([path], rng.choice([None, 5]), cache=False, workers=1))
        assert found is None or (found.dtype == np.uint8 and found.size)


def test_damaged_tables_of_images(tmp_path):
    Image.fromarray(np.zeros((2, 3), np.uint8)).save(tmp_path / "a.png")
    content = b"file,candidates\na.png,x|y\na.png,y\na.png,z|x\n"
    rng, path = random.Random(2), tmp_path / "t.csv"
    for _ in range(TIMES // 3):
        path.write_bytes(damaged(content, rng))
        read_or_refuse(lambda: load_images(path, cache=False, workers=1))


LABELS = [
    "a",
    "b",
    1,
    2.5,
    True,
    None,
    np.nan,
    pd.NA,
    pd.NaT,
    b"b",
    "",
    "x" * 9000,
    "\0" * 900,
    "a|b",
    '["a"]',
    1j,
]
LABELS += [
    10**400,
    -(2**63),
    np.float32(1),
    np.datetime64("2020"),
    object,
    {},
    (),
    [],
    [["a"]],
    {"a"},
    np.zeros(2),
]
LABELS += [np.zeros((0, 2)), float("inf"), "\ud800", frozenset("ab"), range(2), np.array("a"), pd.Series(["a"])]


def container(rng, items):
    rows = [[rng.choice(items) for _ in range(rng.randrange(4))] for _ in range(rng.randrange(5))]
    flat = [rng.choice(items) for _ in range(rng.randrange(6))]
    objects = np.empty(len(flat), object)
    objects[:] = flat
    grid = np.empty((len(flat), rng.randrange(1, 4)), object)
    for cell in np.ndindex(grid.shape):
        grid[cell] = rng.choice(items)
    frames = [pd.Series(flat, dtype=object), pd.DataFrame(grid, dtype=object)]
    return rng.choice([rows, flat, objects, grid, *frames, *items])


def test_labels_of_every_kind():
    rng = random.Random(3)
    for _ in range(5 * TIMES):
        items = rng.choice([LABELS, LABELS, LABELS[:8], [0, 1, 2], ["a|b", "b", "x" * 9000]])
        y, classes = container(rng, items), rng.choice([None, None, container(rng, items)])
        separator = rng.choice([None, None, "|", "", 3])
        read_or_refuse(lambda y=y, classes=classes, separator=separator: encode(y, classes, separator))
        read_or_refuse(lambda y=y, classes=classes, separator=separator: from_complementary(y, classes, separator))
        read_or_refuse(lambda y=y, classes=classes: from_votes(y, classes, rng.choice([1, 2, "x", 10**5000])))


def test_data_sets_of_every_kind():
    rng = random.Random(4)
    for _ in range(TIMES):
        x = np.zeros(rng.choice(SHAPES), rng.choice(KINDS))
        candidates = rng.choice([np.ones((3, 2)), np.zeros(rng.choice(SHAPES), rng.choice(KINDS)), "a", None])
        y = rng.choice([None, [0, 1, 0], np.zeros(rng.choice(SHAPES), rng.choice(KINDS)), "n" * 5000])
        name, classes = (
            rng.choice(["n", "n" * 5000, 3]),
            rng.choice([["a", "b"], ["a" * 5000] * 2, 3, [10**400, 1]]),
        )
        read_or_refuse(lambda given=(x, candidates, y, classes, name): PartialLabels(*given))
