"""Small files in the formats of the published data sets, and catalogue entries that describe them."""

import gzip
import hashlib
import io
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import scipy.io
from scipy import sparse

from oneof.data.catalogue import DATASETS, Archive, Dataset


def idx_bytes(values: np.ndarray) -> bytes:
    return bytes([0, 0, 8, values.ndim]) + np.array(values.shape, ">u4").tobytes() + values.tobytes()


def idx_gz(values: np.ndarray) -> bytes:
    return gzip.compress(idx_bytes(values), mtime=0)


def cifar_bytes(images: np.ndarray, *labels: np.ndarray) -> bytes:
    """Rows of labels and three planes of colour, byte by byte."""
    rows = bytearray()
    for i in range(len(images)):
        rows += bytes(int(label[i]) for label in labels)
        for colour in range(3):
            rows += bytes(images[i, row, column, colour] for row in range(32) for column in range(32))
    return bytes(rows)


def mat_bytes(
    x: np.ndarray,
    candidates: np.ndarray,
    y: np.ndarray,
    keys: tuple[str, str, str] = ("data", "partial_target", "target"),
    as_sparse: bool = False,
    transposed: bool = True,
    compressed: bool = True,
    dtype: type = float,
    **more: object,
) -> bytes:
    """Write a MATLAB file; the published label matrices are transposed with respect to the data."""
    matrices = [candidates.astype(dtype), np.eye(candidates.shape[1], dtype=dtype)[y]]
    if transposed:
        matrices = [matrix.T for matrix in matrices]
    if as_sparse:
        matrices = [sparse.csc_matrix(matrix) for matrix in matrices]
    file = io.BytesIO()
    scipy.io.savemat(file, dict(zip(keys, [x, *matrices], strict=True)) | more, do_compression=compressed)
    return file.getvalue()


def small_images(rows: int, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(256, size=(rows, *shape), dtype=np.uint8)


def small_table(n: int = 12, features: int = 5, classes: int = 4) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, candidate sets and true labels of few rows."""
    rng = np.random.default_rng(3)
    y = rng.integers(classes, size=n)
    candidates = rng.random((n, classes)) < 0.3
    candidates[np.arange(n), y] = True
    return rng.normal(size=(n, features)), candidates, y


def published(name: str, contents: list[bytes], base: str = "http://localhost:9", **changes: object) -> Dataset:
    """Return the catalogue's entry of a data set as if these contents were its files, served under ``base``."""
    dataset = DATASETS[name]
    files = tuple(
        replace(
            file,
            size=len(content),
            sha256=hashlib.sha256(content).hexdigest(),
            urls=(f"{base}/{Path(file.path).name}",),
        )
        for file, content in zip(dataset.files, contents, strict=True)
    )
    return replace(dataset, files=files, **changes)


def put(root: Path, dataset: Dataset, contents: list[bytes]) -> list[Path]:
    """Write the files of a data set where they are looked for."""
    paths = [root / file.path for file in dataset.files]
    for path, content in zip(paths, contents, strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return paths


def tar_gz(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as tar:
        for member, content in members:
            tar.addfile(member, io.BytesIO(content))
    return file.getvalue()


def member(name: str, content: bytes = b"", **changes: object) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for field, value in changes.items():
        setattr(info, field, value)
    return info, content


def archived(dataset: Dataset, archive: bytes, url: str) -> Dataset:
    """Return a data set whose files are in this archive."""
    md5 = hashlib.md5(archive, usedforsecurity=False).hexdigest()
    return replace(dataset, archive=Archive((url,), len(archive), md5))
