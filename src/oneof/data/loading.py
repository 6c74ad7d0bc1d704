"""Known data sets, loaded from their published files, which are downloaded where they are missing."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, overload

import numpy as np

from oneof.data.catalogue import DATASETS, Dataset, File, ImageName, TableName, VoteName
from oneof.data.container import PartialLabels
from oneof.data.download import digest, fetch, remove_archive
from oneof.data.formats import Bytes, read_cifar, read_counts, read_idx, read_mat
from oneof.errors import InputError
from oneof.io.arguments import as_path
from oneof.io.files import cache_folder
from oneof.io.words import alternatives, shown

Root = str | os.PathLike[str] | None
Pair = tuple[PartialLabels, PartialLabels]


@overload
def load_dataset(name: ImageName, root: Root = None) -> Pair: ...
@overload
def load_dataset(name: TableName | VoteName, root: Root = None) -> PartialLabels: ...
@overload
def load_dataset(name: str, root: Root = None) -> PartialLabels | Pair: ...
def load_dataset(name: str, root: Root = None) -> PartialLabels | Pair:
    """Load a known data set; files that are missing are downloaded first.

    Parameters
    ----------
    name : str
        Images, in a training and a test part: mnist, fashion-mnist, kuzushiji-mnist, cifar-10, cifar-100. Their
        candidate sets hold the true label alone; `oneof.data.corrupt` makes others. Tables with real candidate
        sets: lost, birdsong, msrcv2, soccer-player, yahoo-news, fg-net. Images with votes: cifar-10h.
    root : path, optional
        The folder with the files, in the layout of their authors. By default ``$ONEOF_DATA``, and where that is
        not set ``oneof`` in the user's cache folder. Missing files are downloaded into this folder.

    Returns
    -------
    (train, test) : pair of PartialLabels, for images
        Bytes of shape (n, 28, 28) or (n, 32, 32, 3).
    data : PartialLabels, for tables
        Features as they were published, not scaled.
    data : PartialLabels, for cifar-10h
        The test images of cifar-10, the labels that were named, and ``counts``, how often; `votes` weighs them.

    Examples
    --------
    >>> from oneof import load_dataset
    >>> lost = load_dataset("lost")  # doctest: +SKIP
    >>> lost.x.shape, lost.candidates.shape, len(lost.classes)  # doctest: +SKIP
    ((1122, 108), (1122, 16), 16)
    """
    if not isinstance(name, str) or name not in DATASETS:
        raise InputError(f"there is no data set {shown(name)}; {alternatives(str(name).lower(), DATASETS)}")
    dataset = DATASETS[name]
    paths = _locate(dataset, data_folder(root))
    if dataset.format == "mat":
        return _table(dataset, paths[0])
    if dataset.format == "votes":
        return _with_counts(dataset, *paths)
    if dataset.format == "idx":
        train, test = (_single_labels(dataset, read_idx(paths[i], 3), read_idx(paths[i + 1], 1)) for i in (0, 2))
    else:
        train, test = (_single_labels(dataset, *_cifar(dataset, part)) for part in (paths[:-1], paths[-1:]))
    return train, test


class Description(NamedTuple):
    """Facts about a data set that are known without reading it."""

    name: str
    rows: tuple[int, ...]  # of training and test part, or of all
    shape: tuple[int, ...]  # of a row
    classes: int
    set_size: float  # candidates a row, on average
    licence: str
    source: str
    present: bool


def describe_datasets(root: Root = None) -> list[Description]:
    """Describe all known data sets; ``present`` says whether `load_dataset` would find all files of one."""
    folder = data_folder(root)
    return [
        Description(
            name=dataset.name,
            rows=dataset.rows,
            shape=dataset.shape,
            classes=len(dataset.classes),
            set_size=dataset.set_size,
            licence=dataset.licence,
            source=dataset.source,
            present=all(_find(folder, file) for file in dataset.files),
        )
        for dataset in DATASETS.values()
    ]


def data_folder(root: Root = None) -> Path:
    """Return ``root``, if it is not given ``$ONEOF_DATA``, and if that is not set the cache folder."""
    chosen = os.environ.get("ONEOF_DATA") if root is None else as_path(root, "root")
    try:
        return Path(chosen).expanduser() if chosen else cache_folder()
    except RuntimeError:
        raise FileNotFoundError(f"there is no home folder for {shown(chosen)}; pass a whole path") from None


def _locate(dataset: Dataset, folder: Path) -> list[Path]:
    """Return the paths of all files, downloading those that are missing; one with a wrong checksum is refused."""
    found = {file: _find(folder, file) for file in dataset.files}
    for file, path in found.items():
        if path and file.sha256 and (checksum := digest(path, "sha256")) != file.sha256:
            raise InputError(
                f"{shown(path)} has the sha256 checksum {checksum}, but the published file has {file.sha256}; "
                "move it away to have it downloaded, or put the published file in its place"
            )
    missing = [file for file, path in found.items() if path is None]
    if missing:
        fetch(dataset, missing, folder)
    else:
        remove_archive(dataset, folder)
    return [path or folder / file.path for file, path in found.items()]


def _find(folder: Path, file: File) -> Path | None:
    """Return the path of a file or None; in some copies, names differ in case, spaces or punctuation."""
    path = folder / file.path
    for known in (path, folder / (file.other or file.path)):
        if known.is_file():
            return known
    siblings = sorted(path.parent.iterdir()) if path.parent.is_dir() else []
    return next(
        (
            other
            for other in siblings
            if _letters_and_digits(other) == _letters_and_digits(path) and other.is_file()
        ),
        None,
    )


def _letters_and_digits(path: Path) -> str:
    """Return the letters and digits of a file name."""
    return "".join(filter(str.isalnum, path.name.lower()))


def _cifar(dataset: Dataset, paths: Sequence[Path]) -> tuple[Bytes, Bytes]:
    """Return the images of several files, and the last label of each, which is the class (not the superclass)."""
    parts = [read_cifar(path, dataset.label_bytes) for path in paths]
    return np.concatenate([images for images, _ in parts]), np.concatenate([labels[:, -1] for _, labels in parts])


def _single_labels(dataset: Dataset, images: Bytes, labels: Bytes) -> PartialLabels:
    """Return a data set whose candidate sets hold the true label alone."""
    candidates = labels[:, None] == np.arange(len(dataset.classes))
    return PartialLabels(images, candidates, labels.astype(np.int64), np.array(dataset.classes), dataset.name)


def _with_counts(dataset: Dataset, images: Path, counts: Path) -> PartialLabels:
    """Return images with the labels that people named, and how often they did."""
    x, labels = read_cifar(images, dataset.label_bytes)
    matrix = read_counts(counts)
    if matrix.shape != (len(x), len(dataset.classes)):
        raise InputError(
            f"{shown(counts)} has counts of shape {matrix.shape}, but {dataset.name} has {len(x)} images and "
            f"{len(dataset.classes)} classes; put the published file in its place"
        )
    y = labels[:, -1].astype(np.int64)
    return PartialLabels(x, matrix > 0, y, np.array(dataset.classes), dataset.name, matrix)


def _table(dataset: Dataset, path: Path) -> PartialLabels:
    """Read a table; it must have the published shape, since for some files no checksum is known."""
    x, candidates, y = read_mat(path)
    found, expected = (*x.shape, candidates.shape[1]), (*dataset.rows, *dataset.shape, len(dataset.classes))
    if found != expected:
        raise InputError(
            f"{shown(path)} has {found} rows, features and classes, but {dataset.name} has {expected}; put the "
            "published file in its place"
        )
    return PartialLabels(x, candidates, y, np.array(dataset.classes), dataset.name)
