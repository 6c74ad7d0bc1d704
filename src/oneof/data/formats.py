"""The formats in which authors publish data sets: idx, CIFAR's bytes, MATLAB 5, counts. Nothing is unpickled."""

import gzip
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oneof.data.matlab import read_matrices
from oneof.errors import InputError
from oneof.io.words import reason, shown

Bytes = NDArray[np.uint8]

_DEFLATE_RATIO = 1032  # no gzip file unpacks to more than this many times its size
_CIFAR_PIXELS = 3 * 32 * 32
# Features, candidates and true labels: as published, and as some repositories renamed them.
_MAT_KEYS = (("data", "partial_target", "target"), ("features", "p_labels", "logitlabels"))


def read_idx(path: Path, ndim: int) -> Bytes:
    """Read bytes in idx format, gzip-compressed or plain.

    The format is the magic number ``00 00 08 ndim``, the length of each dimension as a big-endian 32-bit integer,
    and the values.

    Parameters
    ----------
    path : Path
        The file.
    ndim : int
        The number of dimensions: 3 for images, 1 for labels.

    Returns
    -------
    read-only array of uint8
    """
    with _reading(path), path.open("rb") as raw:
        compressed = raw.peek(2)[:2] == b"\x1f\x8b"
        most = path.stat().st_size * (_DEFLATE_RATIO if compressed else 1)
        file: Any = gzip.GzipFile(fileobj=raw) if compressed else raw
        header = file.read(4 + 4 * ndim)
        if header[:3] != b"\0\0\x08":
            raise InputError(
                f"it begins with {header[:4]!r}, but bytes in idx format with {bytes([0, 0, 8, ndim])!r}"
            )
        if header[3:4] != bytes([ndim]):
            raise InputError(
                f"its values have {header[3]} dimensions, but images have 3 and labels 1; are they swapped?"
            )
        shape = np.frombuffer(header, ">u4", offset=4).tolist()
        size = math.prod(shape)
        # Checked before unpacking: the header of a broken file may state a size that exceeds the memory.
        content = file.read(size + 1) if size <= most and len(shape) == ndim else b""
        if len(content) != size:
            raise InputError(f"it promises {shape} values, but holds {'more' if len(content) > size else 'fewer'}")
    return np.frombuffer(content, np.uint8).reshape(shape)


def read_cifar(path: Path, labels: int) -> tuple[Bytes, Bytes]:
    """Read the binary version of CIFAR.

    Every row has the ``labels`` bytes of its labels, and 1024 bytes each of red, green and blue.

    Parameters
    ----------
    path : Path
        The file.
    labels : int
        The number of labels in a row: 1 in CIFAR-10, 2 (coarse, then fine) in CIFAR-100.

    Returns
    -------
    images : array of uint8 of shape (n, 32, 32, 3)
    labels : array of uint8 of shape (n, labels)
    """
    row = labels + _CIFAR_PIXELS
    with _reading(path):
        content = np.fromfile(path, np.uint8)
        if not content.size or content.size % row:
            raise InputError(
                f"it has {content.size} bytes, which are not whole images of {row} bytes with their labels"
            )
    rows = content.reshape(-1, row)
    planes = rows[:, labels:].reshape(-1, 3, 32, 32)
    return np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), rows[:, :labels].copy()


def read_mat(path: Path) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.int64]]:
    """Read a table with candidate labels from a MATLAB 5 file (``save -v7`` or older).

    The file holds ``data`` (instances x features), ``partial_target`` and ``target`` (classes x instances, 0/1),
    or the same as ``features``, ``p_labels`` and ``logitlabels``. Label matrices may be sparse, and transposed.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    x : array of shape (n, features)
        The features as they are in the file, not scaled.
    candidates : boolean array of shape (n, K)
    y : array of int of shape (n,)
    """
    with _reading(path):
        found = read_matrices(path.read_bytes(), [key for keys in _MAT_KEYS for key in keys])
        keys = next((keys for keys in _MAT_KEYS if found.keys() >= set(keys)), None)
        if keys is None:
            raise InputError(f"it lacks a matrix of {_MAT_KEYS[0][0]}, {_MAT_KEYS[0][1]} or {_MAT_KEYS[0][2]}")
        x, sets, truth = (found[key] for key in keys)
        if sets.shape != truth.shape or len(x) not in sets.shape:
            raise InputError(
                f"its features have shape {x.shape}, its candidates {sets.shape} and its true labels {truth.shape}"
                ", which do not go together"
            )
        if sets.shape[1] == len(x):  # also if square: published files are classes x instances
            sets, truth = sets.T, truth.T
        if not (np.isin(sets, (0, 1)).all() and np.isin(truth, (0, 1)).all() and (truth.sum(1) == 1).all()):
            raise InputError("its candidates are not all 0 or 1, or its true labels are not one for each instance")
    return x.astype(np.float64, order="C"), sets.astype(bool, order="C"), truth.argmax(1).astype(np.int64)


def read_counts(path: Path) -> NDArray[np.int64]:
    """Read how often each class was named for each image: a .npy file, or an .npz file with ``counts``.

    Returns
    -------
    array of int of shape (n, K)
    """
    with _reading(path):
        content = np.load(path, allow_pickle=False)
        counts = content["counts"] if isinstance(content, np.lib.npyio.NpzFile) else content
        whole = counts.ndim == 2 and counts.dtype.kind in "uif" and (counts % 1 == 0).all()
        if not (whole and (counts >= 0).all() and (counts.sum(1) > 0).all()):
            raise InputError("it holds no matrix of whole numbers with a vote in every row")
    return np.asarray(counts, dtype=np.int64)


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn any error about the content of a file into one sentence; broken files cause errors of many kinds."""
    try:
        yield
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise InputError(
            f"{shown(path)} cannot be read ({reason(error)}); put the published file in its place"
        ) from None
