"""Image files decoded into one array of bytes, in threads."""

import os
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

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


def decode(files: list[Path], size: Any, channels: int | None, workers: int | None, progress: bool) -> Bytes:
    """Read all headers, from which the shape of the result follows, and then decode into one array."""
    try:
        from PIL.Image import DecompressionBombWarning  # noqa: PLC0415 - Pillow is optional
    except ImportError:
        raise InputError("images need Pillow, which is missing; pip install oneof[data]") from None
    with warnings.catch_warnings():
        warnings.simplefilter("error", DecompressionBombWarning)
        headers = _in_threads(_read_header, files, workers, Meter("headers", len(files), visible=False))
        if size is None:
            size = _common_size(files, [size for size, _ in headers])
        gray = channels == 1 or (channels is None and all(is_gray for _, is_gray in headers))
        try:
            images = np.empty((len(files), *size) if gray else (len(files), *size, 3), np.uint8)
        except (MemoryError, ValueError):  # ValueError for sizes beyond any memory
            raise InputError(
                f"{len(files)} images of height and width {shown(size)} do not fit into memory; pass a smaller "
                "size"
            ) from None

        def fill(path: Path, row: int) -> None:
            images[row] = _read_pixels(path, size, "L" if gray else "RGB")

        _in_threads(fill, files, workers, Meter("decoding images", len(files), visible=progress))
    return images


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
    work: Callable[[Path, int], Any], files: list[Path], workers: int | None, meter: Meter
) -> list[Any]:
    """Call ``work`` with each file and its row, in threads: Pillow decodes without the interpreter lock."""

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
    broken = {path: each for path, each in zip(files, results, strict=True) if isinstance(each, Exception)}
    if broken:
        room = _ROOM // min(len(broken), _SHOWN) // 2
        named = (f"{shown(path, room)} ({reason(error, room)})" for path, error in broken.items())
        raise InputError(
            f"no image can be read from {join_first(named, _SHOWN, 2 * _ROOM)}; mend the files or drop their rows"
        )
    return results


def _read_header(path: Path, _: int) -> tuple[tuple[int, int], bool]:
    """Return height and width of the upright image, and whether it is gray, from the header."""
    with _opened(path) as image:
        width, height = image.size
        if not (width and height):
            raise InputError(f"it is {width} pixels wide and {height} high")
        # Without EXIF data in the header the image is upright, or Pillow turns it itself, as it does for TIFF.
        turned = "exif" in image.info and image.getexif().get(_ORIENTATION) in _TURNED
        return ((width, height) if turned else (height, width)), image.mode in _GRAY


def _read_pixels(path: Path, size: tuple[int, int], mode: str) -> Bytes:
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
