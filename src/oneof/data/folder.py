"""Images of your own: a table names their files and candidate sets; decoded once, then read from a cache."""

import hashlib
import json
import os
import stat
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from oneof.data.cache import cache_folder
from oneof.data.container import PartialLabels
from oneof.data.decoding import Bytes, decode, listed
from oneof.data.tables import label_sets, read_table
from oneof.io.arguments import as_path
from oneof.io.files import replacing
from oneof.labels import encode, rows_text

StrPath = str | os.PathLike[str]
Cache = StrPath | Literal[False] | None
Size = int | tuple[int, int] | None

_VERSION = 1  # goes into every key of the cache; raise it when the same files give other bytes


def load_images(
    table: StrPath,
    folder: StrPath | None = None,
    candidates: str = "candidates",
    file: str = "file",
    separator: str | None = "|",
    size: Size = None,
    cache: Cache = None,
    workers: int | None = None,
    progress: bool = False,
) -> PartialLabels:
    """Load images that a table names together with their candidate labels.

    Parameters
    ----------
    table : path
        A .csv, .tsv or .parquet file with one row for each image.
    folder : path, optional
        Where the image files are, by default beside the table.
    candidates, file : str
        The columns of the candidate sets, such as ``cat|dog``, and of the file names.
    separator : str or None, default="|"
        Between the labels of a set; None takes each cell for a single label.
    size, cache, workers, progress
        As for `decode_images`.

    Returns
    -------
    PartialLabels
        Images (n, height, width, 3), or (n, height, width) where all of them are gray; ``y`` is None.
    """
    path = as_path(table, "table")
    columns = read_table(path, [file, candidates]).columns
    names = columns[file].tolist()
    paths = image_paths(path, file, names, folder)
    sets = label_sets(columns[candidates], separator)
    empty = [repr(name) for name, labels in zip(names, sets, strict=True) if labels is None or labels == []]
    if empty:
        raise ValueError(
            f"the candidate set is empty for {listed(empty)}, but every image needs at least one label; fill in "
            f"the column {candidates!r} of {str(path)!r} or drop the rows"
        )
    matrix, classes = encode(sets)
    images = decode_images(paths, size, None, cache, workers, progress)
    return PartialLabels(images, matrix, None, classes, path.stem)


def image_paths(table: Path, file: str, names: Sequence[Any], folder: StrPath | None = None) -> list[Path]:
    """Return the paths of the files that the column ``file`` of a table names, in a folder or beside it."""
    nameless = [row for row, name in enumerate(names) if not (isinstance(name, str) and name)]
    if nameless:
        raise ValueError(f"{str(table)!r} names no file in {rows_text(nameless)}; fill in the column {file!r}")
    base = table.parent if folder is None else Path(folder)
    return [base / name for name in names]


def decode_images(
    paths: Sequence[StrPath],
    size: Size = None,
    channels: Literal[1, 3] | None = None,
    cache: Cache = None,
    workers: int | None = None,
    progress: bool = False,
) -> Bytes:
    """Decode image files, turned upright as their EXIF data say, into one array.

    Parameters
    ----------
    paths : sequence of paths
        BMP, GIF, JPEG, JPEG 2000, PNG, PPM, TIFF or WebP files. Transparency is dropped, and of 16 bits the upper
        8 are kept.
    size : int or (height, width), optional
        The size to which every image is scaled, its proportions not kept. By default all must have the same.
    channels : {1, 3}, optional
        1 for gray, 3 for colour; by default gray only where all images are.
    cache : path, False or None
        The folder in which decoded images are kept, by default ``oneof/images`` in the user's cache folder; False
        keeps none. They are found again by the names, sizes and times of the files, `size` and `channels`.
    workers : int, optional
        The number of threads, by default one for each processor.
    progress : bool, default=False
        Whether to show on standard error how many are done.

    Returns
    -------
    array of uint8 of shape (n, height, width) for gray images, (n, height, width, 3) for colour
        Read-only where it comes from the cache.
    """
    if isinstance(size, int | np.integer):
        size = (size, size)
    _check_settings(size, channels, workers)
    files = [Path(path) for path in paths]
    key = _key(files, size, channels)
    if cache is False:
        return decode(files, size, channels, workers, progress)
    store = (cache_folder() / "images" if cache is None else Path(cache)) / f"{key}.npy"
    images = _load_cached(store, len(files))
    if images is None:
        images = decode(files, size, channels, workers, progress)
        _save_cached(store, images)
    return images


def _check_settings(size: Any, channels: Any, workers: Any) -> None:
    if not (size is None or (isinstance(size, tuple | list) and len(size) == 2 and all(map(_is_count, size)))):
        raise ValueError(
            f"size is {size!r}, but must be a number of pixels or (height, width); pass 32 or (32, 48)"
        )
    if channels not in (None, 1, 3):
        raise ValueError(
            f"channels is {channels!r}, but must be 1 for gray or 3 for colour; pass one of them or None"
        )
    if not (workers is None or _is_count(workers)):
        raise ValueError(f"workers is {workers!r}, but must be a number of threads; pass 1 or more, or None")


def _is_count(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and int(value) > 0


def _key(files: list[Path], size: Any, channels: int | None) -> str:
    """Return the hash of settings and of names, sizes and times of the files; refuse files that do not exist."""
    if not files:
        raise ValueError("there are no images to decode; pass at least one path")
    facts, missing = [], []
    for path in files:
        try:
            status = path.stat()
        except (OSError, ValueError):  # ValueError for a name with a null byte
            status = None
        if status and stat.S_ISREG(status.st_mode):
            facts.append((str(path.absolute()), status.st_size, status.st_mtime_ns))
        else:
            missing.append(repr(str(path)))
    if missing:
        raise FileNotFoundError(f"there is no file {listed(missing)}; check the names and the folder")
    text = json.dumps([_VERSION, size and [int(side) for side in size], channels, facts])
    return hashlib.sha256(text.encode()).hexdigest()


def _load_cached(store: Path, rows: int) -> Bytes | None:
    """Return decoded images from the cache; None where it has none, or a damaged file."""
    try:
        images = np.load(store, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    if not isinstance(images, np.ndarray) or images.dtype != np.uint8 or images.ndim not in (3, 4):
        return None
    return images if len(images) == rows else None


def _save_cached(store: Path, images: Bytes) -> None:
    """Put decoded images into the cache, if it can be written to."""
    try:
        store.parent.mkdir(parents=True, exist_ok=True)
        with replacing(store) as part, part.open("wb") as file:
            np.save(file, images, allow_pickle=False)
    except OSError as error:
        warnings.warn(
            f"decoded images cannot be kept in {str(store.parent)!r} ({error.strerror}); pass another folder as "
            "cache, or False",
            stacklevel=3,
        )
