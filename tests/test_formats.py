"""Formats of published files: read as they were written, and refused in one sentence when they are broken."""

import gzip
import pickle
import tracemalloc
import zlib

import numpy as np
import pytest
import scipy.io
from scipy import sparse

from oneof.data.formats import read_cifar, read_idx, read_mat
from oneof.data.matlab import read_matrices
from published import cifar_bytes, idx_bytes, mat_bytes, small_images, small_table


@pytest.mark.parametrize("shape", [(7,), (3, 4, 5), (0, 4, 5)], ids=str)
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gz"])
def test_idx(tmp_path, shape, pack):
    values = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
    path = tmp_path / "file"
    path.write_bytes(pack(idx_bytes(values)))
    found = read_idx(path, len(shape))
    assert found.dtype == np.uint8
    assert np.array_equal(found, values)


IMAGES = idx_bytes(small_images(3, (4, 5)))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it begins with b''"),
        (b"<!DOCTYPE html><html>", "it begins with b'<!DO', but bytes in idx format with"),
        (idx_bytes(np.zeros(30, np.uint8)), "have 1 dimensions, but images have 3 and labels 1; are they swapped"),
        (b"\0\0\x0d\x03" + IMAGES[4:], "it begins with"),  # floats
        (IMAGES[:4], "cannot be read"),
        (IMAGES[:10], "cannot be read"),
        (IMAGES[:-1], r"it promises \[3, 4, 5\] values, but holds fewer"),
        (IMAGES + b"\0", "but holds more"),
        (IMAGES[:4] + b"\xff" * 12 + IMAGES[16:], r"promises \[4294967295, .* but holds fewer"),
        (gzip.compress(IMAGES)[:-9], "cannot be read"),
        (gzip.compress(IMAGES[:-1]), "but holds fewer"),
        (gzip.compress(IMAGES[:4] + b"\xff" * 12), "but holds fewer"),
        (gzip.compress(IMAGES)[:-4] + b"\0\0\0\0", "Incorrect length"),
        (gzip.compress(IMAGES)[:12] + b"\xff" * 20, "cannot be read"),
        (gzip.compress(gzip.compress(IMAGES)), "it begins with"),
    ],
    ids=range(15),
)
def test_hostile_idx(tmp_path, content, message):
    path = tmp_path / "train-images-idx3-ubyte.gz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        read_idx(path, 3)
    assert str(caught.value).startswith(f"{str(path)!r} cannot be read (")
    assert "\n" not in str(caught.value)


def test_no_more_is_unpacked_than_the_header_promises(tmp_path):
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(IMAGES + bytes(50_000_000)))
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="but holds more"):
            read_idx(path, 3)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


def test_a_missing_file_is_said_to_be_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_idx(tmp_path / "absent", 3)


def test_cifar(tmp_path):
    images, coarse, fine = small_images(3, (32, 32, 3)), [1, 2, 3], [30, 99, 0]
    path = tmp_path / "train.bin"
    path.write_bytes(cifar_bytes(images, coarse, fine))
    found, labels = read_cifar(path, 2)
    assert np.array_equal(found, images)
    assert labels.tolist() == [[1, 30], [2, 99], [3, 0]]
    path.write_bytes(cifar_bytes(images, fine))
    found, labels = read_cifar(path, 1)
    assert np.array_equal(found, images)
    assert labels.tolist() == [[30], [99], [0]]


@pytest.mark.parametrize("cut", [0, 1, 3072, 3074 * 2 - 1])
def test_cifar_of_another_length(tmp_path, cut):
    path = tmp_path / "test.bin"
    path.write_bytes(bytes(cut))
    with pytest.raises(ValueError, match=rf"it has {cut} bytes, which are not whole images of 3074 bytes"):
        read_cifar(path, 2)


@pytest.mark.parametrize("keys", [("data", "partial_target", "target"), ("features", "p_labels", "logitlabels")])
@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(("compressed", "dtype"), [(False, float), (True, float), (True, np.uint8), (False, bool)])
def test_mat(tmp_path, keys, as_sparse, transposed, compressed, dtype):
    x, candidates, y = small_table()
    content = mat_bytes(x, candidates, y, keys, as_sparse, transposed, compressed, dtype, extra="words", cell=[{}])
    (tmp_path / "a.mat").write_bytes(content)
    found = read_mat(tmp_path / "a.mat")
    for got, expected in zip(found, (x, candidates, y), strict=True):
        assert np.array_equal(got, expected)
    assert [array.dtype for array in found] == [np.float64, bool, np.int64]


def test_square_label_matrices_are_classes_by_instances(tmp_path):
    x, candidates, y = small_table(n=4, classes=4)
    (tmp_path / "a.mat").write_bytes(mat_bytes(x, candidates, y))
    assert np.array_equal(read_mat(tmp_path / "a.mat")[1], candidates)


def test_integer_and_sparse_features_become_floats(tmp_path):
    x, candidates, y = small_table()
    for features in (np.round(x).astype(np.int16), np.round(x).astype(np.float32), sparse.csc_matrix(np.round(x))):
        (tmp_path / "a.mat").write_bytes(mat_bytes(features, candidates, y))
        assert np.array_equal(read_mat(tmp_path / "a.mat")[0], np.round(x))
        assert read_mat(tmp_path / "a.mat")[0].dtype == np.float64


@pytest.mark.parametrize("compressed", [False, True])
def test_matrices_are_those_that_scipy_reads(tmp_path, compressed):
    rng = np.random.default_rng(0)
    kinds = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"]
    variables = {f"v{kind}": rng.integers(0, 100, (3, 4)).astype(kind) for kind in kinds}
    variables |= {"one": np.array([[2.5]]), "row": rng.normal(size=(1, 9)), "wide": rng.normal(size=(70, 80))}
    variables["thin"] = sparse.random(40, 30, 0.1, "csc", random_state=1)
    variables["nothing"] = sparse.csc_matrix((5, 6))
    scipy.io.savemat(tmp_path / "a.mat", variables, do_compression=compressed)
    found = read_matrices((tmp_path / "a.mat").read_bytes(), variables)
    for name, value in scipy.io.loadmat(tmp_path / "a.mat", variable_names=variables).items():
        if name in variables:
            expected = value.toarray() if sparse.issparse(value) else value
            assert np.array_equal(found.pop(name), expected), name
    assert not found


X, S, Y = small_table()
ONES = np.eye(4)[Y].T


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"data": X}, "it lacks a matrix of data, partial_target or target"),
        ({"data": X, "partial_target": S.T, "target": np.array(["a", 1], object)}, "it lacks a matrix"),
        ({"data": X, "partial_target": S.T, "target": {"a": 1}}, "it lacks a matrix"),
        ({"data": X, "partial_target": S.T, "target": "words"}, "it lacks a matrix"),
        ({"data": X, "partial_target": S.T, "target": ONES * 1j}, "its target has shape .* real numbers"),
        ({"data": X[None], "partial_target": S.T, "target": ONES}, r"its data has shape \[1, 12, 5\]"),
        ({"data": X[:0], "partial_target": S.T, "target": ONES}, r"its data has shape \[0, 5\]"),
        ({"data": X[1:], "partial_target": S.T, "target": ONES}, "which do not go together"),
        ({"data": X, "partial_target": S.T, "target": ONES[1:]}, "which do not go together"),
        ({"data": X, "partial_target": S.T, "target": ONES.T}, "which do not go together"),
        ({"data": X, "partial_target": 2.0 * S.T, "target": ONES}, "its candidates are not all 0 or 1"),
        ({"data": X, "partial_target": np.nan * S.T, "target": ONES}, "its candidates are not all 0 or 1"),
        ({"data": X, "partial_target": S.T, "target": 0 * ONES}, "its true labels are not one for each instance"),
        (
            {"data": X, "partial_target": S.T, "target": 0 * ONES + 1},
            "its true labels are not one for each instance",
        ),
    ],
    ids=range(14),
)
def test_matrices_that_are_no_data_set(tmp_path, variables, message):
    scipy.io.savemat(tmp_path / "x.mat", variables)
    with pytest.raises(ValueError, match=message) as caught:
        read_mat(tmp_path / "x.mat")
    assert str(caught.value).endswith("); put the published file in its place")
    assert "\n" not in str(caught.value)


def test_files_that_are_no_matlab_5(tmp_path):
    path = tmp_path / "x.mat"
    hdf5 = b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + bytes(384) + b"\x89HDF\r\n\x1a\n"
    scipy.io.savemat(path, {"data": X, "partial_target": S.T, "target": ONES}, format="4")
    for content in (b"", b"MATLAB 5.0", b"<html>" * 99, hdf5, path.read_bytes(), pickle.dumps({"data": X})):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"it is not of MATLAB version 5; save it there with `save -v7`"):
            read_mat(path)


@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("compressed", [False, True])
def test_broken_matlab_files_are_read_or_refused(tmp_path, as_sparse, compressed):
    """Random changes behind the header: an error in one sentence, or matrices, but never a crash."""
    rng, path = np.random.default_rng(0), tmp_path / "x.mat"
    content = np.frombuffer(mat_bytes(X, S, Y, as_sparse=as_sparse, compressed=compressed), np.uint8)
    messages = []
    for attempt in range(250):
        broken = content.copy()
        broken[rng.integers(128, len(broken), size=3)] = rng.integers(256, size=3)
        path.write_bytes(broken[: rng.integers(128, len(broken))] if attempt % 5 == 0 else broken)
        try:
            read_mat(path)
        except ValueError as error:
            messages.append(str(error))
    assert len(messages) > 75
    assert not any("\n" in message for message in messages)


def test_a_deflated_matrix_is_bounded_by_its_shape(tmp_path):
    """A few kilobytes claim to be a small matrix and hold a hundred megabytes."""
    content = mat_bytes(np.zeros((2, 2)), np.ones((2, 2)), np.array([0, 1]))
    (_, first) = np.frombuffer(content, "<u4", 2, 128)
    inflated = zlib.decompress(content[136 : 136 + first])
    bomb = zlib.compress(inflated + bytes(100_000_000))
    rest = content[136 + first :]
    (tmp_path / "x.mat").write_bytes(content[:132] + np.uint32(len(bomb)).tobytes() + bomb + rest)
    tracemalloc.start()
    try:
        assert read_mat(tmp_path / "x.mat")[0].tolist() == [[0, 0], [0, 0]]
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()
