"""Image files decoded in threads, into one array of bytes or into a file that holds such an array."""

import math
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oneof.data.download import Meter
from oneof.errors import InputError
from oneof.io.words import join_first, reason, shown

if TYPE_CHECKING:
    from PIL.Image import Image

Bytes = NDArray[np.uint8]

# Only formats that Pillow decodes itself: for others, such as EPS, it starts another program.
_FORMATS = ("BMP", "GIF", "JPEG", "JPEG2000", "PNG", "PPM", "TIFF", "WEBP")
_GRAY = {"1", "L", "LA", "La", "I;16", "I;16B", "I;16L"}
_ORIENTATION, _TURNED = 0x0112, range(5, 9)  # an EXIF tag, and its values for images turned by 90 degrees
_BLOCK = 32  # images that a thread takes at a time
_SHOWN = 3  # files in a message
_ROOM = 330  # characters for them


def decoded_shape(files: list[Path], size: Any, channels: int | None, workers: int | None) -> tuple[int, ...]:
    """Return the shape of all images together, (n, height, width) or (n, height, width, 3), from their headers."""
    try:
        import PIL.Image  # noqa: F401, PLC0415 - Pillow is optional
    except ImportError:
        raise InputError("images need Pillow, which is missing; pip install oneof[data]") from None
    headers: list[Any] = [None] * len(files)
    meter = Meter("headers", len(files), visible=False)
    _in_threads(_read_header, files, workers, meter, headers.__setitem__)
    if size is None:
        size = _common_size(files, [size for size, _ in headers])
    gray = channels == 1 or (channels is None and all(is_gray for _, is_gray in headers))
    height, width = map(int, size)
    return (len(files), height, width) if gray else (len(files), height, width, 3)


def decode(files: list[Path], shape: tuple[int, ...], workers: int | None, progress: bool) -> Bytes:
    """Decode images into one array of the shape that `decoded_shape` gave."""
    try:
        images = np.empty(shape, np.uint8)
    except (MemoryError, ValueError):  # ValueError for sizes beyond any memory
        raise InputError(
            f"{len(files)} images of height and width {shown(shape[1:3])} do not fit into memory; pass a smaller "
            "size"
        ) from None
    _decode(files, shape, workers, progress, images.__setitem__)
    return images


def decode_to(
    file: IO[bytes], files: list[Path], shape: tuple[int, ...], workers: int | None, progress: bool
) -> None:
    """Write the same array as an .npy file; in memory are only images that are being decoded."""
    np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": shape})
    begin, size, one_at_a_time = file.tell(), math.prod(shape[1:]), Lock()

    def write(row: int, pixels: Bytes) -> None:
        with one_at_a_time:  # not into a mapped file: there a full disk would kill the process
            file.seek(begin + row * size)
            file.write(np.ascontiguousarray(pixels).data)

    _decode(files, shape, workers, progress, write)


def _decode(
    files: list[Path],
    shape: tuple[int, ...],
    workers: int | None,
    progress: bool,
    keep: Callable[[int, Bytes], None],
) -> None:
    def read(path: Path) -> Bytes:
        return _read_pixels(path, shape[1:3], "L" if len(shape) == 3 else "RGB")

    _in_threads(read, files, workers, Meter("decoding images", len(files), visible=progress), keep)


@contextmanager
def _bombs_refused() -> Iterator[None]:
    from PIL.Image import DecompressionBombWarning  # noqa: PLC0415 - Pillow is optional

    with warnings.catch_warnings():
        warnings.simplefilter("error", DecompressionBombWarning)
        yield


def _common_size(files: list[Path], sizes: list[tuple[int, int]]) -> tuple[int, int]:
    """Return the height and width that all images have."""
    for path, size in zip(files, sizes, strict=True):
        if size != sizes[0]:
            raise InputError(
                f"{shown(files[0])} has height and width {sizes[0]}, and {shown(path)} has {size}, but all images "
                "must have one size; pass size=(height, width) to scale them"
            )
    return sizes[0]


def _in_threads(
    read: Callable[[Path], Any],
    files: list[Path],
    workers: int | None,
    meter: Meter,
    keep: Callable[[int, Any], None],
) -> None:
    """Read files in threads (Pillow decodes without the interpreter lock), and keep what each row's file gives."""

    def block(start: int) -> dict[Path, Exception]:
        broken: dict[Path, Exception] = {}
        for row, path in enumerate(files[start : start + _BLOCK], start):
            try:
                found = read(path)
            except Exception as error:  # broken images cause errors of every kind
                broken[path] = error
            else:
                keep(row, found)
        return broken

    broken: dict[Path, Exception] = {}
    with _bombs_refused(), meter, ThreadPoolExecutor(workers or os.cpu_count()) as pool:
        starts = range(0, len(files), _BLOCK)
        for start, found in zip(starts, pool.map(block, starts), strict=True):
            broken |= found
            meter.show(min(start + _BLOCK, len(files)))
    if broken:
        room = _ROOM // min(len(broken), _SHOWN) // 2
        named = (f"{shown(path, room)} ({reason(error, room)})" for path, error in broken.items())
        raise InputError(
            f"no image can be read from {join_first(named, _SHOWN, 2 * _ROOM)}; mend the files or drop their rows"
        )


def _read_header(path: Path) -> tuple[tuple[int, int], bool]:
    """Return height and width of the upright image, and whether it is gray, from the header."""
    with _opened(path) as image:
        width, height = image.size
        if not (width and height):
            raise InputError(f"it is {width} pixels wide and {height} high")
        # Without EXIF data in the header the image is upright, or Pillow turns it itself, as it does for TIFF.
        turned = "exif" in image.info and image.getexif().get(_ORIENTATION) in _TURNED
        return ((width, height) if turned else (height, width)), image.mode in _GRAY


def _read_pixels(path: Path, size: tuple[int, ...], mode: str) -> Bytes:
    """Return the pixels of an image: upright, in gray ("L") or colour ("RGB"), and of this height and width."""
    from PIL import Image, ImageOps  # noqa: PLC0415 - Pillow is optional

    with _opened(path) as image:
        image.draft(
            None, (2 * max(size), 2 * max(size))
        )  # a large JPEG is decoded at a reduced size, which is faster
        upright = ImageOps.exif_transpose(image)
    if upright.mode.startswith("I;16"):
        upright = Image.fromarray((np.asarray(upright) >> 8).astype(np.uint8))
    elif upright.mode in ("I", "F"):
        raise InputError(f"its values are of type {upright.mode}, but must have 8 or 16 bits")
    elif upright.mode == "P":
        upright = upright.convert("RGBA")  # its palette may hold transparent colours
    upright = upright.convert(mode)
    height, width = size
    return np.asarray(upright if upright.size == (width, height) else upright.resize((width, height)))


def _opened(path: Path) -> "Image":
    from PIL import Image, UnidentifiedImageError  # noqa: PLC0415 - Pillow is optional

    try:
        return Image.open(path, formats=_FORMATS)
    except UnidentifiedImageError:
        raise InputError(f"it is none of {', '.join(_FORMATS)}") from None
    except (Image.DecompressionBombWarning, Image.DecompressionBombError):
        most = Image.MAX_IMAGE_PIXELS
        raise InputError(f"it says that it has more than {most} pixels, as a decompression bomb does") from None


def listed_files(paths: Iterable[Any]) -> str:
    """Quote the first few of distinct paths or names, and say how many there are."""
    every = list(dict.fromkeys(map(str, paths)))
    return join_first((shown(path, _ROOM // _SHOWN) for path in every), _SHOWN, 2 * _ROOM)
