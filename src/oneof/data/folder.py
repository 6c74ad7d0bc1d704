"""Images of your own: a table names their files and candidate sets; decoded once, then read from a cache."""

import hashlib
import json
import math
import os
import shutil
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from oneof.data.cache import (
    LIMIT_VARIABLE,
    cache_usage,
    image_limit,
    make_room,
    mark_used,
    size_text,
)
from oneof.data.container import PartialLabels
from oneof.data.decoding import Bytes, decode, decode_to, decoded_shape, listed_files
from oneof.data.label_cells import label_sets
from oneof.data.tables import read_table
from oneof.errors import InputError, KindError
from oneof.io.arguments import as_path
from oneof.io.files import cache_folder, replacing
from oneof.io.memory import free_memory
from oneof.io.words import shown, warn
from oneof.labels import encode, rows_text

StrPath = str | os.PathLike[str]
Cache = StrPath | Literal[False] | None
Size = int | tuple[int, int] | None

_LARGEST_SIDE = 2**31
_SHARE = 4  # images of more than a quarter of the free memory stay on disk: a fit has two copies for some time
_IN_MEMORY = 2 * 10**9  # bytes that do not, where the system does not say what is free
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
    r"""Load images that a table names together with their candidate labels.

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
    size, cache, workers, progress : as for `decode_images`
        Height and width, where decoded images are kept, how many threads decode, and whether progress is shown.

    Returns
    -------
    PartialLabels
        Images (n, height, width, 3), or (n, height, width) where all of them are gray; ``y`` is None.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from PIL import Image
    >>> from oneof import load_images
    >>> with TemporaryDirectory() as folder:
    ...     for name, colour in {"a.png": "red", "b.png": "blue"}.items():
    ...         Image.new("RGB", (8, 8), colour).save(Path(folder, name))
    ...     table = Path(folder, "labels.csv")
    ...     _ = table.write_text("file,candidates\na.png,cat|dog\nb.png,cow\n")
    ...     data = load_images(table, cache=False)
    >>> data.x.shape, data.candidates.shape, data.classes.tolist()
    ((2, 8, 8, 3), (2, 3), ['cat', 'cow', 'dog'])
    """
    path = as_path(table, "table")
    if path.is_dir():
        raise InputError(
            f"table is the folder {shown(path)}, but must be a table that names images and their labels: write "
            "one, or learn from a folder with one sub-folder a class by the command oneof fit FOLDER"
        )
    _check_columns(candidates, file, separator)
    columns = read_table(path, [file, candidates]).columns
    names = columns[file].tolist()
    paths = image_paths(path, file, names, folder)
    sets = label_sets(columns[candidates], separator)
    empty = [name for name, labels in zip(names, sets, strict=True) if labels is None or labels == []]
    if empty:
        raise InputError(
            f"the candidate set is empty for {listed_files(empty)}, but every image needs at least one label; "
            f"fill in the column {shown(candidates)} of {shown(path)} or drop the rows"
        )
    matrix, classes = encode(sets)
    images = decode_images(paths, size, None, cache, workers, progress)
    return PartialLabels(images, matrix, None, classes, path.stem)


def _check_columns(candidates: Any, file: Any, separator: Any) -> None:
    for name, value in {"candidates": candidates, "file": file}.items():
        if not isinstance(value, str):
            raise KindError(f"{name} is {shown(value)}, but must be the name of a column; pass a string")
    if not isinstance(separator, str | None):
        raise KindError(f"separator is {shown(separator)}, but must be a string; pass one such as '|', or None")


def image_paths(table: Path, file: str, names: Sequence[Any], folder: StrPath | None = None) -> list[Path]:
    """Return the paths of the files that the column ``file`` of a table names, in a folder or beside it."""
    nameless = [row for row, name in enumerate(names) if not (isinstance(name, str) and name)]
    if nameless:
        raise InputError(
            f"{shown(table)} names no file in {rows_text(nameless)}; fill in the column {shown(file)}"
        )
    base = table.parent if folder is None else as_path(folder, "folder")
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
        keeps none. They are found again by the names, sizes and times of the files, `size` and `channels`. The
        default folder holds at most 2 GB, or ``$ONEOF_IMAGE_CACHE_GB``: what was used longest ago is removed.
        Images of more than a quarter of the free memory stay on disk: they are decoded into a file of
        ``oneof/large-images``, which has no limit, or of this folder. ``oneof cache`` lists and clears both.
    workers : int, optional
        The number of threads, by default one for each processor.
    progress : bool, default=False
        Whether to show on standard error how many are done.

    Returns
    -------
    array of uint8 of shape (n, height, width) for gray images, (n, height, width, 3) for colour
        Read-only where it comes from the cache, and mapped (`numpy.memmap`) where the images stay on disk.
    """
    if isinstance(size, int | np.integer):
        size = (size, size)
    _check_settings(size, channels, workers)
    files = [Path(path) for path in paths]
    name = f"{_key(files, size, channels)}.npy"
    if cache is False:
        return decode(files, decoded_shape(files, size, channels, workers), workers, progress)
    limit = image_limit() if cache is None else None  # a folder of the user's own has none
    folders = [cache_folder() / kind for kind in ("images", "large-images")] if cache is None else []
    stores = [each / name for each in folders or [as_path(cache, "cache")]]
    for store in stores:
        if (images := _load_cached(store, len(files), size)) is not None:
            return images
    shape = decoded_shape(files, size, channels, workers)
    if _stays_on_disk(math.prod(shape)):
        return _decode_on_disk(stores[-1], files, shape, workers, progress)
    images = decode(files, shape, workers, progress)
    _save_cached(stores[0], images, limit, progress)
    return images


def _stays_on_disk(size: int) -> bool:
    free = free_memory()
    return size > (_IN_MEMORY if free is None else free // _SHARE)


def _decode_on_disk(
    store: Path, files: list[Path], shape: tuple[int, ...], workers: int | None, progress: bool
) -> Bytes:
    """Decode images into a file, whole or not at all, and map it."""
    size = math.prod(shape)
    try:
        store.parent.mkdir(parents=True, exist_ok=True)
        with replacing(store) as part, part.open("r+b") as file:  # what a killed writer has left is gone by now
            if size > (free := shutil.disk_usage(store.parent).free):
                raise OSError(0, f"{size_text(free)} are free there")
            decode_to(file, files, shape, workers, progress)
        images: Bytes = np.load(store, mmap_mode="r", allow_pickle=False)
    except OSError as error:
        raise InputError(
            f"{len(files)} images of height and width {shown(shape[1:3])} do not fit into memory, since they take "
            f"{size_text(size)}, and cannot be kept in {shown(store.parent)} ({error.strerror}); pass a smaller "
            "size, or another folder as cache (or set XDG_CACHE_HOME to one); with cache=False they are decoded "
            "into memory all the same"
        ) from None
    where = shown(store.parent)
    text = f"decoded images of {size_text(size)} stay on disk in {where}; oneof cache --clear removes them"
    if progress:
        print(text, file=sys.stderr)
    else:
        warn(text)
    return images


def _check_settings(size: Any, channels: Any, workers: Any) -> None:
    if not (size is None or (isinstance(size, tuple | list) and len(size) == 2 and all(map(_is_count, size)))):
        raise InputError(
            f"size is {shown(size)}, but must be a number of pixels or (height, width); pass 32 or (32, 48)"
        )
    if size is not None and max(size) > _LARGEST_SIDE:
        raise InputError(
            f"size is {shown(size)}, but more than {_LARGEST_SIDE} pixels a side do not fit into memory; "
            "pass a smaller size"
        )
    if channels not in (None, 1, 3):
        raise InputError(
            f"channels is {shown(channels)}, but must be 1 for gray or 3 for colour; pass one of them or None"
        )
    if not (workers is None or _is_count(workers)):
        raise InputError(f"workers is {shown(workers)}, but must be a number of threads; pass 1 or more, or None")


def _is_count(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and int(value) > 0


def _key(files: list[Path], size: Any, channels: int | None) -> str:
    """Return the hash of settings and of names, sizes and times of the files; refuse files that do not exist."""
    if not files:
        raise InputError("there are no images to decode; pass at least one path")
    facts, missing = [], []
    for path in files:
        try:
            status = path.stat()
        except (OSError, ValueError):  # ValueError for a name with a null byte
            status = None
        if status and stat.S_ISREG(status.st_mode):
            facts.append((str(path.absolute()), status.st_size, status.st_mtime_ns))
        else:
            missing.append(path)
    if missing:
        raise FileNotFoundError(f"there is no file {listed_files(missing)}; check the names and the folder")
    text = json.dumps([_VERSION, size and [int(side) for side in size], channels, facts])
    return hashlib.sha256(text.encode()).hexdigest()


def _load_cached(store: Path, rows: int, size: Any) -> Bytes | None:
    """Return decoded images from the cache, mapped if they are large; None for none, or a damaged file."""
    try:
        images: Bytes = np.load(store, mmap_mode="r", allow_pickle=False)
        if not isinstance(images, np.ndarray) or images.dtype != np.uint8 or images.ndim not in (3, 4):
            return None
        if len(images) != rows or 0 in images.shape or images.shape[3:] not in ((), (3,)):
            return None
        if size is not None and images.shape[1:3] != tuple(size):
            return None
        if not _stays_on_disk(images.nbytes):
            images = np.array(images)
            images.flags.writeable = False
    except (OSError, ValueError, EOFError):
        return None
    mark_used(store)
    return images


def _save_cached(store: Path, images: Bytes, limit: int | None, progress: bool) -> None:
    """Put decoded images into the cache, if it can be written to and they do not exceed its limit."""
    if limit is not None and images.nbytes > limit:
        warn(
            f"decoded images of {size_text(images.nbytes)} are not kept, since the cache holds at most "
            f"{size_text(limit)}, so that they are decoded again next time; set {LIMIT_VARIABLE} to more, or "
            "pass a folder as cache, or False"
        )
        return
    try:
        store.parent.mkdir(parents=True, exist_ok=True)
        with replacing(store) as part, part.open("wb") as file:
            np.save(file, images, allow_pickle=False)
    except OSError as error:
        warn(
            f"decoded images cannot be kept in {shown(store.parent)} ({error.strerror}); pass another folder as "
            "cache, or False"
        )
        return
    if limit is not None:
        _keep_small(store.parent, images.nbytes, limit, progress)


def _keep_small(folder: Path, added: int, limit: int, progress: bool) -> None:
    """Remove what was used longest ago beyond the limit, and say where the cache is and how large."""
    removed = make_room(folder, limit)
    (usage,) = cache_usage(["images"])
    text = f"the cache of decoded images in {shown(folder)} holds {size_text(usage.size)} of {size_text(limit)}"
    if removed:
        gone = f"{len(removed)} of the files used longest ago"
        warn(f"{text}, after the removal of {gone}; set {LIMIT_VARIABLE} to keep more")
    elif usage.size - added <= limit / 2 < usage.size:
        warn(f"{text}; oneof cache --clear empties it")
    elif progress:
        print(f"{text}; oneof cache --clear empties it", file=sys.stderr)
