"""Known data sets from their published files: where these are looked for, and what they hold."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, overload

import numpy as np

from oneof.data.catalogue import DATASETS, Dataset, File, ImageName, TableName
from oneof.data.container import PartialLabels
from oneof.data.download import digest, fetch
from oneof.data.formats import Bytes, read_cifar, read_idx, read_mat
from oneof.data.tables import alternatives

Root = str | os.PathLike[str] | None
Pair = tuple[PartialLabels, PartialLabels]


@overload
def load_dataset(name: ImageName, root: Root = None) -> Pair: ...
@overload
def load_dataset(name: TableName, root: Root = None) -> PartialLabels: ...
@overload
def load_dataset(name: str, root: Root = None) -> PartialLabels | Pair: ...
def load_dataset(name: str, root: Root = None) -> PartialLabels | Pair:
    """Load a known data set; files that are missing are downloaded first.

    Parameters
    ----------
    name : str
        Images, in a training and a test part: mnist, fashion-mnist, kuzushiji-mnist, cifar-10, cifar-100. Their
        candidate sets hold the true label alone; `oneof.data.corrupt` makes others. Tables with real candidate
        sets: lost, birdsong, msrcv2, soccer-player, yahoo-news, fg-net.
    root : path, optional
        The folder with the files, in the layout of their authors. By default ``$ONEOF_DATA``, and where that is
        not set ``oneof`` in the user's cache folder. Missing files are downloaded into this folder.

    Returns
    -------
    (train, test) : pair of PartialLabels, for images
        Bytes of shape (n, 28, 28) or (n, 32, 32, 3).
    data : PartialLabels, for tables
        Features as they were published, not scaled.
    """
    if name not in DATASETS:
        raise ValueError(f"there is no data set {name!r}; {alternatives(str(name).lower(), DATASETS)}")
    dataset = DATASETS[name]
    paths = _locate(dataset, data_folder(root))
    if dataset.format == "mat":
        return _table(dataset, paths[0])
    if dataset.format == "idx":
        train, test = (_certain(dataset, read_idx(paths[i], 3), read_idx(paths[i + 1], 1)) for i in (0, 2))
    else:
        train, test = (_certain(dataset, *_cifar(dataset, part)) for part in (paths[:-1], paths[-1:]))
    return train, test


class Description(NamedTuple):
    """What is known of a data set without reading it."""

    name: str
    rows: tuple[int, ...]  # of training and test part, or of all
    shape: tuple[int, ...]  # of a row
    classes: int
    set_size: float  # candidates a row, on average
    licence: str
    source: str
    present: bool


def describe_datasets(root: Root = None) -> list[Description]:
    """Describe all known data sets, and say which have their files in the folder that `load_dataset` looks in."""
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
    """Return the first that is given of ``root``, ``$ONEOF_DATA`` and the cache folder."""
    chosen = os.environ.get("ONEOF_DATA") if root is None else root
    try:
        return Path(chosen).expanduser() if chosen else cache_folder()
    except RuntimeError:
        raise FileNotFoundError(f"there is no home folder for {str(chosen)!r}; pass a whole path") from None


def cache_folder() -> Path:
    """Return ``$XDG_CACHE_HOME/oneof``, by default ``~/.cache/oneof``."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        return (base if base.is_absolute() else Path.home() / ".cache") / "oneof"
    except RuntimeError:
        raise FileNotFoundError("there is no home folder for the cache; set XDG_CACHE_HOME to a folder") from None


def _locate(dataset: Dataset, folder: Path) -> list[Path]:
    """Return the paths of all files, downloading those that are missing; one with a wrong checksum is refused."""
    found = {file: _find(folder, file) for file in dataset.files}
    for file, path in found.items():
        if path and file.sha256 and (checksum := digest(path, "sha256")) != file.sha256:
            raise ValueError(
                f"{str(path)!r} has the sha256 checksum {checksum}, but the published file has {file.sha256}; "
                "move it away to have it downloaded, or put the published file in its place"
            )
    missing = [file for file, path in found.items() if path is None]
    if missing:
        fetch(dataset, missing, folder)
    return [path or folder / file.path for file, path in found.items()]


def _find(folder: Path, file: File) -> Path | None:
    """Return the path of a file; copies of some have names that differ in case, spaces or punctuation."""
    path = folder / file.path
    if path.is_file():
        return path
    siblings = sorted(path.parent.iterdir()) if path.parent.is_dir() else []
    return next((other for other in siblings if _bare(other) == _bare(path) and other.is_file()), None)


def _bare(path: Path) -> str:
    """Return the letters and digits of a file name."""
    return "".join(filter(str.isalnum, path.name.lower()))


def _cifar(dataset: Dataset, paths: Sequence[Path]) -> tuple[Bytes, Bytes]:
    """Return the images of several files, and the last label of each, which is the finest."""
    parts = [read_cifar(path, dataset.label_bytes) for path in paths]
    return np.concatenate([images for images, _ in parts]), np.concatenate([labels[:, -1] for _, labels in parts])


def _certain(dataset: Dataset, images: Bytes, labels: Bytes) -> PartialLabels:
    """Make candidate sets of one out of true labels."""
    candidates = labels[:, None] == np.arange(len(dataset.classes))
    return PartialLabels(images, candidates, labels.astype(np.int64), np.array(dataset.classes), dataset.name)


def _table(dataset: Dataset, path: Path) -> PartialLabels:
    """Read a table, which must have the published size: some files have no checksum to be known by."""
    x, candidates, y = read_mat(path)
    found, expected = (*x.shape, candidates.shape[1]), (*dataset.rows, *dataset.shape, len(dataset.classes))
    if found != expected:
        raise ValueError(
            f"{str(path)!r} has {found} rows, features and classes, but {dataset.name} has {expected}; put the "
            "published file in its place"
        )
    return PartialLabels(x, candidates, y, np.array(dataset.classes), dataset.name)
