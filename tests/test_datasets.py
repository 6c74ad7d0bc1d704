"""Data sets: the container checks itself, known names load, and real files hold what the catalogue says."""

import pickle
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import scipy.io
from scipy import sparse

from oneof.data import PartialLabels, describe_datasets, load_dataset
from oneof.data.catalogue import CIFAR100_SUPERCLASSES, DATASETS, ImageName, TableName, VoteName
from oneof.data.formats import read_cifar
from oneof.data.loading import data_folder
from oneof.io.files import cache_folder
from published import cifar_bytes, idx_gz, mat_bytes, published, put, small_images, small_table

SETS = [[1, 1, 0], [0, 1, 0], [1, 0, 1]]
NAMES = ["ant", "bee", "cat"]
X, S, Y = small_table()


def make(**changes):
    fields = {"x": np.zeros((3, 2)), "candidates": SETS, "y": [0, 1, 2], "classes": NAMES, "name": "zoo"}
    return PartialLabels(**fields | changes)


def test_what_is_stored():
    data = make()
    assert len(data) == 3
    assert data.candidates.dtype == bool
    assert data.candidates.tolist() == np.array(SETS, bool).tolist()
    assert data.y.dtype == np.int64
    assert data.classes.tolist() == NAMES
    assert make(y=None).y is None
    assert make(candidates=sparse.csr_matrix(SETS)).candidates.tolist() == data.candidates.tolist()


def test_arrays_are_read_only_but_not_the_callers():
    x, candidates, y = np.zeros((3, 2), np.float32), np.array(SETS, bool), np.array([0, 1, 2])
    data = make(x=x, candidates=candidates, y=y)
    for array in (data.x, data.candidates, data.y, data.classes):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[1]
    with pytest.raises(FrozenInstanceError):
        data.x = x
    x[0, 0] = 7  # the caller's own array is still writable, and x is not copied
    assert data.x[0, 0] == 7
    y[0], candidates[0] = 1, True


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (np.zeros((3, 2)), "3 rows, 2 features"),
        (np.zeros((3, 5, 4), np.uint8), "3 rows, 5 x 4 pixels"),
        (np.zeros((3, 5, 4, 3), np.float32), "3 rows, 5 x 4 x 3 pixels"),
    ],
)
def test_repr(x, text):
    assert repr(make(x=x)) == f"PartialLabels 'zoo': {text}, 3 classes, 1.67 candidates a row"


def test_taking_rows():
    data = make(x=np.arange(6.0).reshape(3, 2))
    for rows in ([2, 0], np.array([2, 0]), [-1, 0]):
        part = data.take(rows)
        assert part.x.tolist() == [[4, 5], [0, 1]]
        assert part.candidates.astype(int).tolist() == [SETS[2], SETS[0]]
        assert part.y.tolist() == [2, 0]
        assert (part.classes.tolist(), part.name) == (NAMES, "zoo")
    assert data.take([True, False, True]).y.tolist() == [0, 2]
    assert data.take(slice(1, None)).y.tolist() == [1, 2]
    assert np.shares_memory(data.take(slice(1, None)).x, data.x)
    assert make(y=None).take([1]).y is None
    for rows in ([3], [0.5], [True], [[0, 1]], [], 1, slice(5, 9)):
        with pytest.raises(ValueError, match=r"rows cannot be taken from 'zoo'|rows has shape"):
            data.take(rows)


def test_other_candidates_and_coverage():
    data = make()
    assert data.coverage == 1.0
    other = data.with_candidates([[0, 1, 0], [0, 1, 1], [0, 1, 1]])
    assert other.coverage == pytest.approx(2 / 3)  # a truth outside of its set is not refused
    assert other.x is not data.x
    assert np.shares_memory(other.x, data.x)
    assert make(y=None).coverage is None
    with pytest.raises(ValueError, match="candidates of 'zoo' has shape"):
        data.with_candidates(SETS[:2])


def test_survives_pickling():
    data = pickle.loads(pickle.dumps(make()))
    assert repr(data) == repr(make())


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (
            {"x": np.zeros((3, 2), int)},
            ValueError,
            r"x of 'zoo' has shape \(3, 2\) and type int64, but must be a table",
        ),
        ({"x": np.zeros((3, 2), np.uint8)}, ValueError, "must be a table .* of floats or images"),
        ({"x": np.zeros((3, 4, 4), int)}, ValueError, "of uint8 or floats: reshape or convert it"),
        ({"x": np.zeros(3)}, ValueError, "reshape or convert it"),
        ({"x": np.zeros((0, 2))}, ValueError, "must not be empty: pass at least one row"),
        ({"x": [["a", "b"]] * 3}, ValueError, "reshape or convert it"),
        ({"x": np.zeros((2, 2))}, ValueError, r"has shape \(3, 3\), but x has 2 rows and classes 3 names"),
        ({"classes": NAMES[:2]}, ValueError, "classes 2 names: pass one row for each row of x"),
        ({"classes": ["only"], "candidates": [[1]] * 3}, ValueError, "each of at least two classes"),
        ({"classes": ["a", "a", "b"]}, ValueError, "classes holds 'a' more than once"),
        ({"classes": ["a", 1, None]}, ValueError, "classes"),
        (
            {"candidates": [[1, 1, 2], [0, 1, 0], [1, 0, 1]]},
            ValueError,
            "holds values such as 2, but may hold only",
        ),
        ({"candidates": [[1, np.nan, 0], [0, 1, 0], [1, 0, 1]]}, ValueError, "values such as nan"),
        ({"candidates": [[1, 1, 0], [0, 0, 0], [1, 0, 1]]}, ValueError, "the candidate set is empty in row 1"),
        ({"y": [0, 1]}, ValueError, r"y of 'zoo' has shape \(2,\)"),
        ({"y": [0.0, 1.0, 2.0]}, ValueError, "type float64, but must hold 3 integers"),
        ({"y": [0, 1, 3]}, ValueError, "y of 'zoo' holds 3, but must hold the numbers 0 to 2"),
        ({"y": [0, 1, -1]}, ValueError, "holds -1"),
        ({"name": 3}, TypeError, "name is of type int"),
    ],
)
def test_wrong_fields(changes, error, message):
    with pytest.raises(error, match=message) as caught:
        make(**changes)
    assert "\n" not in str(caught.value)


@pytest.fixture
def tiny(monkeypatch, tmp_path):
    """Give a function that puts small files in the place of published ones, and their folder."""

    def place(name, contents, **changes):
        dataset = published(name, contents, **changes)
        monkeypatch.setitem(DATASETS, name, dataset)
        return put(tmp_path, dataset, contents)

    return place


def idx_files(train=6, test=4):
    digits = [np.arange(n, dtype=np.uint8) % 10 for n in (train, test)]
    images = [small_images(n, (28, 28), seed=n) for n in (train, test)]
    return images, digits, [idx_gz(part) for pair in zip(images, digits, strict=True) for part in pair]


def test_idx_images_come_in_two_parts(tiny, tmp_path):
    images, labels, contents = idx_files()
    for name, first in {"mnist": 0, "fashion-mnist": "T-shirt/top", "kuzushiji-mnist": "o"}.items():
        tiny(name, contents)
        parts = load_dataset(name, tmp_path)
        for part, x, y in zip(parts, images, labels, strict=True):
            assert np.array_equal(part.x, x)
            assert part.y.tolist() == y.tolist()
            assert np.array_equal(part.candidates, np.eye(10, dtype=bool)[y])
            assert part.name == name
            assert part.classes[0] == first


def test_cifar_images_come_in_two_parts(tiny, tmp_path):
    images, y = small_images(6, (32, 32, 3)), np.array([0, 9, 3, 1, 2, 5])
    tiny("cifar-10", [cifar_bytes(images[[i]], y[[i]]) for i in range(6)])
    train, test = load_dataset("cifar-10", tmp_path)
    assert np.array_equal(train.x, images[:5])
    assert np.array_equal(test.x, images[5:])
    assert [*train.y, *test.y] == y.tolist()
    assert train.classes[train.y].tolist() == ["airplane", "truck", "cat", "automobile", "bird"]
    fine, coarse = np.array([0, 99, 41, 5, 7, 8]), np.full(6, 19)
    tiny("cifar-100", [cifar_bytes(images[:4], coarse, fine), cifar_bytes(images[4:], coarse, fine[4:])])
    train, test = load_dataset("cifar-100", tmp_path)
    assert np.array_equal(train.x, images[:4])
    assert train.classes[train.y].tolist() == ["apple", "worm", "lawn_mower", "bed"]
    assert test.y.tolist() == [7, 8]


@pytest.mark.parametrize("spelling", ["Soccer Player.mat", "soccer_player.mat", "SoccerPlayer.mat"])
def test_tables_come_as_one_and_under_any_usual_name(tiny, tmp_path, spelling):
    (path,) = tiny("soccer-player", [mat_bytes(X, S, Y)], rows=(12,), shape=(5,), classes=(0, 1, 2, 3))
    path.rename(path.with_name(spelling))
    data = load_dataset("soccer-player", tmp_path)
    assert np.array_equal(data.x, X)
    assert np.array_equal(data.candidates, S)
    assert data.y.tolist() == Y.tolist()
    assert data.classes.tolist() == [0, 1, 2, 3]
    (path.parent / "yahoo news.mat").write_bytes(b"")
    present = {row.name: row.present for row in describe_datasets(tmp_path)}
    assert present["soccer-player"]
    assert present["yahoo-news"]
    assert not present["lost"]


def test_a_table_of_another_size_is_refused(tmp_path):
    put(tmp_path, DATASETS["yahoo-news"], [mat_bytes(X, S, Y)])
    message = (
        r"has \(12, 5, 4\) rows, features and classes, but yahoo-news has \(22991, 163, 219\); put the published"
    )
    with pytest.raises(ValueError, match=message):
        load_dataset("yahoo-news", tmp_path)


def test_a_wrong_checksum_is_refused_and_the_file_left_alone(tiny, tmp_path):
    paths = tiny("mnist", idx_files()[2])
    content = paths[2].read_bytes()[:-1] + b"\x01"
    paths[2].write_bytes(content)
    message = (
        r"t10k-images-idx3-ubyte.gz' has the sha256 checksum \w{64}, but the published file has \w{64}; move it"
    )
    with pytest.raises(ValueError, match=message):
        load_dataset("mnist", tmp_path)
    assert paths[2].read_bytes() == content


def test_unknown_names():
    with pytest.raises(ValueError, match=r"^there is no data set 'fashion_mnist'; did you mean 'fashion-mnist'"):
        load_dataset("fashion_mnist")
    with pytest.raises(ValueError, match=r"there is no data set 'MSRC-v2'; did you mean 'msrcv2'"):
        load_dataset("MSRC-v2")
    with pytest.raises(
        ValueError, match=r"there is no data set 'zzz'; there are 'mnist', 'fashion-mnist',.*12 in all"
    ):
        load_dataset("zzz")


def test_where_files_are_looked_for(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("ONEOF_DATA", str(tmp_path / "data"))
    assert data_folder(tmp_path / "root") == tmp_path / "root"
    assert data_folder() == tmp_path / "data"
    monkeypatch.setenv("ONEOF_DATA", "")
    assert data_folder() == tmp_path / "cache" / "oneof"
    for not_absolute in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", not_absolute)
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        assert cache_folder() == tmp_path / "home" / ".cache" / "oneof"
    assert data_folder("~/files") == tmp_path / "home" / "files"
    with pytest.raises(FileNotFoundError, match="there is no home folder for '~nobody-here/x'; pass a whole path"):
        data_folder("~nobody-here/x")

    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    with pytest.raises(FileNotFoundError, match="no home folder for the cache; set XDG_CACHE_HOME"):
        cache_folder()


def test_the_catalogue_agrees_with_itself():
    assert list(DATASETS) == [*get_args(ImageName), *get_args(TableName), *get_args(VoteName)]
    for dataset in DATASETS.values():
        assert len(dataset.rows) == (2 if dataset.name in get_args(ImageName) else 1)
        assert all(file.urls or dataset.archive for file in dataset.files if file.sha256)
        assert all(len(file.sha256) == 64 and file.size for file in dataset.files if file.sha256)
    assert [name for name, dataset in DATASETS.items() if not dataset.files[0].sha256] == [
        "soccer-player",
        "yahoo-news",
    ]
    assert sorted(CIFAR100_SUPERCLASSES) == [number for number in range(20) for _ in range(5)]


def test_descriptions_without_any_file(tmp_path):
    rows = describe_datasets(tmp_path / "absent")
    assert [row.name for row in rows] == list(DATASETS)
    assert not any(row.present for row in rows)
    assert rows[3][:5] == ("cifar-10", (50000, 10000), (32, 32, 3), 10, 1.0)


def agrees(name, *parts):
    """Check what the catalogue says against what the files hold."""
    facts = next(row for row in describe_datasets() if row.name == name)
    assert tuple(map(len, parts)) == facts.rows
    for part in parts:
        assert part.x.shape[1:] == facts.shape
        assert part.candidates.shape[1] == len(part.classes) == facts.classes
        assert part.candidates.sum(1).mean() == pytest.approx(facts.set_size, abs=5e-5)
        assert part.coverage == 1.0


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("name", "in_train", "in_test"),
    [
        (
            "mnist",
            [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949],
            [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009],
        ),
        ("fashion-mnist", [6000] * 10, [1000] * 10),
        ("kuzushiji-mnist", [6000] * 10, [1000] * 10),
        ("cifar-10", [5000] * 10, [1000] * 10),
        ("cifar-100", [500] * 100, [100] * 100),
    ],
)
def test_real_images(name, in_train, in_test, real_dataset):
    train, test = real_dataset(name)
    agrees(name, train, test)
    assert train.x.dtype == test.x.dtype == np.uint8
    assert np.bincount(train.y).tolist() == in_train
    assert np.bincount(test.y).tolist() == in_test
    if name == "cifar-100":
        _, labels = read_cifar(data_folder() / "cifar-100-binary" / "test.bin", 2)
        assert np.array_equal(np.array(CIFAR100_SUPERCLASSES)[test.y], labels[:, 0])


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("name", "sizes", "certain", "lowest", "highest"),
    [
        ("lost", (1, 3), 67, -7558, 7168),
        ("birdsong", (1, 4), 1632, -0.0226, 101040),
        ("msrcv2", (1, 7), 140, 0, 1),
        ("fg-net", (2, 11), 0, -5.07, 4.96),
    ],
)
def test_real_tables(name, sizes, certain, lowest, highest, real_dataset):
    data = real_dataset(name)
    agrees(name, data)
    found = data.candidates.sum(1)
    assert (found.min(), found.max()) == sizes
    assert (found == 1).sum() == certain
    assert (data.x.min(), data.x.max()) == pytest.approx((lowest, highest), rel=2e-3)
    expected = scipy.io.loadmat(data_folder() / DATASETS[name].files[0].path)
    sets, truth = (sparse.csc_matrix(expected[key]).toarray().T for key in ("partial_target", "target"))
    assert np.array_equal(data.x, expected["data"])
    assert np.array_equal(data.candidates, sets)
    assert np.array_equal(data.y, truth.argmax(1))


# --- votes --------------------------------------------------------------------------------------------------

COUNTS = np.array([[40, 11], [0, 51], [25, 26]])


@pytest.fixture
def voted(tmp_path, monkeypatch):
    """Three images and the votes on them, in two of ten classes."""
    counts = np.zeros((3, 10), dtype=np.int64)
    counts[:, :2] = COUNTS
    rows = np.zeros((3, 3073), np.uint8)
    rows[:, 0] = [0, 1, 1]
    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    rows.tofile(folder / "test_batch.bin")
    (tmp_path / "cifar-10h").mkdir()
    file = replace(DATASETS["cifar-10h"].files[0], sha256="")
    dataset = replace(DATASETS["cifar-10h"], files=(file, DATASETS["cifar-10h"].files[1]))
    monkeypatch.setitem(DATASETS, "cifar-10h", dataset)
    return tmp_path, counts


@pytest.mark.parametrize("kind", ["npy", "npz"])
def test_votes_on_images(voted, kind):
    folder, counts = voted
    if kind == "npy":
        np.save(folder / "cifar-10h" / "cifar10h-counts.npy", counts)
    else:
        np.savez(folder / "cifar-10h" / "counts.npz", counts=counts.astype(np.uint8))
    data = load_dataset("cifar-10h", folder)
    assert data.x.shape == (3, 32, 32, 3)
    assert data.y.tolist() == [0, 1, 1]
    assert (data.counts == counts).all()
    assert (data.candidates == (counts > 0)).all()
    assert data.votes.consensus.tolist() == ["airplane", "automobile", "automobile"]
    assert data.take([2]).counts.tolist() == counts[[2]].tolist()
    assert data.with_candidates(np.ones((3, 10))).counts is None
    with pytest.raises(ValueError, match="has no counts of votes"):
        _ = data.with_candidates(np.ones((3, 10))).votes


@pytest.mark.parametrize(
    "content",
    [np.ones((2, 10), int), np.full((3, 10), 0.5), np.zeros((3, 10), int), np.array([[{}] * 10] * 3), np.ones(3)],
    ids=["other rows", "shares", "no votes", "a pickle", "a list"],
)
def test_counts_that_are_none_are_refused(voted, content):
    folder, _ = voted
    np.save(folder / "cifar-10h" / "cifar10h-counts.npy", content, allow_pickle=True)
    with pytest.raises(ValueError, match=r"put the published file in its place$"):
        load_dataset("cifar-10h", folder)


def test_missing_counts_are_asked_for(voted):
    with pytest.raises(FileNotFoundError, match=r"get it from https://github\.com/jcpeterson/cifar-10h"):
        load_dataset("cifar-10h", voted[0])


def test_counts_of_a_data_set_are_those_of_its_candidates():
    with pytest.raises(ValueError, match="pass counts > 0 as candidates"):
        PartialLabels(np.zeros((1, 2)), [[1, 1]], None, ["a", "b"], "x", np.array([[2, 0]]))


@pytest.mark.real_data
def test_cifar_10h(real_dataset):
    data = real_dataset("cifar-10h")
    assert len(data) == 10000
    assert data.candidates.sum(1).mean() == pytest.approx(1.9404, abs=5e-5)
    assert data.coverage == pytest.approx(0.9996)
    assert (data.counts.argmax(1) == data.y).mean() > 0.99
