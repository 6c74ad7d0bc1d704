"""Your own images: a table names their files and candidate sets; decoded once, then read from a cache."""

import hashlib
import json
import os
import stat
import warnings
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from oneof.data.cache import cache_folder
from oneof.data.container import PartialLabels
from oneof.data.download import Meter
from oneof.data.tables import label_sets, read_table
from oneof.io.files import replacing
from oneof.labels import encode, rows_text

if TYPE_CHECKING:
    from PIL.Image import Image

StrPath = str | os.PathLike[str]
Cache = StrPath | Literal[False] | None
Size = int | tuple[int, int] | None
Bytes = NDArray[np.uint8]

_VERSION = 1  # of what is cached: raise it when the same files give other bytes
# Only those that Pillow itself decodes: it hands others, such as EPS, to a program.
_FORMATS = ("BMP", "GIF", "JPEG", "JPEG2000", "PNG", "PPM", "TIFF", "WEBP")
_GRAY = {"1", "L", "LA", "La", "I;16", "I;16B", "I;16L"}
_ORIENTATION, _LYING = 0x0112, range(5, 9)  # an EXIF tag, and its values for images that lie on their side
_BLOCK = 32  # images that a thread takes at a time
_SHOWN = 3  # files in a message


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
    path = Path(table)
    columns = read_table(path, [file, candidates]).columns
    names = columns[file].tolist()
    paths = image_paths(path, file, names, folder)
    sets = label_sets(columns[candidates], separator)
    empty = [repr(name) for name, labels in zip(names, sets, strict=True) if labels is None or labels == []]
    if empty:
        raise ValueError(
            f"the candidate set is empty for {_listed(empty)}, but every image needs at least one label; fill in "
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
        return _decode(files, size, channels, workers, progress)
    store = (cache_folder() / "images" if cache is None else Path(cache)) / f"{key}.npy"
    images = _recall(store, len(files))
    if images is None:
        images = _decode(files, size, channels, workers, progress)
        _keep(store, images)
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
    """Return a name for what these files, as they are now, are decoded to; refuse files that are not there."""
    if not files:
        raise ValueError("there are no images to decode; pass at least one path")
    facts, missing = [], []
    for path in files:
        try:
            status = path.stat()
        except (OSError, ValueError):  # the latter for a name with a null byte
            status = None
        if status and stat.S_ISREG(status.st_mode):
            facts.append((str(path.absolute()), status.st_size, status.st_mtime_ns))
        else:
            missing.append(repr(str(path)))
    if missing:
        raise FileNotFoundError(f"there is no file {_listed(missing)}; check the names and the folder")
    text = json.dumps([_VERSION, size and [int(side) for side in size], channels, facts])
    return hashlib.sha256(text.encode()).hexdigest()


def _recall(store: Path, rows: int) -> Bytes | None:
    """Return decoded images from the cache; None where it has none, or a damaged file."""
    try:
        images = np.load(store, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    if not isinstance(images, np.ndarray) or images.dtype != np.uint8 or images.ndim not in (3, 4):
        return None
    return images if len(images) == rows else None


def _keep(store: Path, images: Bytes) -> None:
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


def _decode(files: list[Path], size: Any, channels: int | None, workers: int | None, progress: bool) -> Bytes:
    """Look at all headers, which tell the shape of the result, and then decode into it."""
    try:
        from PIL.Image import DecompressionBombWarning
    except ImportError:
        raise ValueError("images need Pillow, which is missing; pip install oneof[data]") from None
    with warnings.catch_warnings():
        warnings.simplefilter("error", DecompressionBombWarning)
        headers = _in_threads(_look, files, workers, Meter("headers", len(files), shown=False))
        if size is None:
            size = _common_size(files, [size for size, _ in headers])
        gray = channels == 1 or (channels is None and all(is_gray for _, is_gray in headers))
        try:
            images = np.empty((len(files), *size) if gray else (len(files), *size, 3), np.uint8)
        except MemoryError:
            raise ValueError(
                f"{len(files)} images of height and width {size} do not fit into memory; pass a smaller size"
            ) from None

        def fill(path: Path, row: int) -> None:
            images[row] = _read(path, size, "L" if gray else "RGB")

        _in_threads(fill, files, workers, Meter("decoding images", len(files), shown=progress))
    return images


def _common_size(files: list[Path], sizes: list[tuple[int, int]]) -> tuple[int, int]:
    """Return the height and width that all images have."""
    for path, size in zip(files, sizes, strict=True):
        if size != sizes[0]:
            raise ValueError(
                f"{str(files[0])!r} has height and width {sizes[0]}, and {str(path)!r} has {size}, but all images "
                "must have one size; pass size=(height, width) to scale them"
            )
    return sizes[0]


def _in_threads(
    work: Callable[[Path, int], Any], files: list[Path], workers: int | None, meter: Meter
) -> list[Any]:
    """Work on each file and its row in threads: Pillow decodes without holding Python's lock."""

    def block(start: int) -> list[Any]:
        outcomes: list[Any] = []
        for row, path in enumerate(files[start : start + _BLOCK], start):
            try:
                outcomes.append(work(path, row))
            except Exception as error:  # broken images cause errors of every kind
                outcomes.append(error)
        return outcomes

    results: list[Any] = []
    with meter, ThreadPoolExecutor(workers or os.cpu_count()) as pool:
        for outcomes in pool.map(block, range(0, len(files), _BLOCK)):
            results += outcomes
            meter.show(len(results))
    broken = [
        f"{str(path)!r} ({' '.join(str(result).split()) or type(result).__name__})"
        for path, result in zip(files, results, strict=True)
        if isinstance(result, Exception)
    ]
    if broken:
        raise ValueError(f"no image can be read from {_listed(broken)}; mend the files or drop their rows")
    return results


def _look(path: Path, _: int) -> tuple[tuple[int, int], bool]:
    """Return height and width once upright, and whether an image is gray, from its header."""
    with _opened(path) as image:
        width, height = image.size
        # Without EXIF data in the header there is nothing to turn, or Pillow turns by itself, as it does TIFF.
        lying = "exif" in image.info and image.getexif().get(_ORIENTATION) in _LYING
        return ((width, height) if lying else (height, width)), image.mode in _GRAY


def _read(path: Path, size: tuple[int, int], mode: str) -> Bytes:
    """Return the pixels of an image: upright, in gray ("L") or colour ("RGB"), and of this height and width."""
    from PIL import Image, ImageOps

    with _opened(path) as image:
        image.draft(None, (2 * max(size), 2 * max(size)))  # a large JPEG decodes to a part of its size at once
        upright = ImageOps.exif_transpose(image)
    if upright.mode.startswith("I;16"):
        upright = Image.fromarray((np.asarray(upright) >> 8).astype(np.uint8))
    elif upright.mode in ("I", "F"):
        raise ValueError(f"its values are of type {upright.mode}, but must have 8 or 16 bits")
    elif upright.mode == "P":
        upright = upright.convert("RGBA")  # its palette may hold transparent colours
    upright = upright.convert(mode)
    height, width = size
    return np.asarray(upright if upright.size == (width, height) else upright.resize((width, height)))


def _opened(path: Path) -> "Image":
    from PIL import Image, UnidentifiedImageError

    try:
        return Image.open(path, formats=_FORMATS)
    except UnidentifiedImageError:
        raise ValueError(f"it is none of {', '.join(_FORMATS)}") from None


def _listed(texts: Iterable[str]) -> str:
    """List the first few of some texts, and how many different ones there are."""
    every = list(dict.fromkeys(texts))
    return ", ".join(every[:_SHOWN]) + (f", ... ({len(every)} in all)" if len(every) > _SHOWN else "")
