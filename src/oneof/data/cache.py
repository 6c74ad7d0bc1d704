"""The cache folder: files that can be made or downloaded again, how large they are, and what is removed."""

import os
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from oneof.errors import InputError
from oneof.io.files import cache_folder
from oneof.io.words import shown

KINDS = {
    "images": "decoded images of your own tables",
    "large-images": "decoded images that stay on disk",
    "annotators": "classifiers that made candidate sets",
    "candidates": "candidate sets that were made",
    "kernels": "kernels that were compiled for a GPU",
    "tables": "tables that stay on disk",
}
LIMIT_VARIABLE = "ONEOF_IMAGE_CACHE_GB"
_LIMIT = 2.0  # gigabytes
_SUFFIXES = (".npy", ".safetensors")
_ABANDONED = 24 * 3600.0  # seconds after which a file that was not written to the end is nobody's


class Usage(NamedTuple):
    """What the cache holds of one kind."""

    kind: str
    meaning: str
    files: int
    size: int  # bytes
    folder: Path


def cache_usage(kinds: Collection[str] = tuple(KINDS)) -> list[Usage]:
    """Return how many files of each kind the cache holds, and how large they are."""
    folders = {kind: cache_folder() / kind for kind in kinds}
    found = {kind: [status for _, status in _files(folder)] for kind, folder in folders.items()}
    return [
        Usage(kind, KINDS[kind], len(each), sum(status.st_size for status in each), folders[kind])
        for kind, each in found.items()
    ]


def clear_cache(kinds: Collection[str] = tuple(KINDS)) -> list[Usage]:
    """Remove the files of some kinds, and return what was removed; data sets, kept beside them, stay."""
    removed = []
    for kind in kinds:
        folder = cache_folder() / kind
        sizes = [status.st_size for path, status in list(_files(folder)) if _remove(path)]
        removed.append(Usage(kind, KINDS[kind], len(sizes), sum(sizes), folder))
    return removed


def image_limit() -> int:
    """Return how many bytes of decoded images are kept: ``$ONEOF_IMAGE_CACHE_GB`` gigabytes, by default 2."""
    text = os.environ.get(LIMIT_VARIABLE, "").strip()
    try:
        limit = float(text) if text else _LIMIT
    except ValueError:
        limit = -1.0
    if not 0 <= limit < float("inf"):
        raise InputError(
            f"{LIMIT_VARIABLE} is {shown(text)}, but must be a number of gigabytes; set it to 2, or 0"
        )
    return int(limit * 1e9)


def make_room(folder: Path, limit: int) -> list[int]:
    """Remove the files of a folder that were used longest ago until it is within a limit; return their sizes."""
    files = sorted(_files(folder), key=lambda each: each[1].st_mtime_ns)
    total, removed = sum(status.st_size for _, status in files), []
    for path, status in files:
        if total <= limit:
            break
        if _remove(path):
            removed.append(status.st_size)
            total -= status.st_size
    return removed


def mark_used(path: Path) -> None:
    """Set the time of a file to now: what was used longest ago is removed first."""
    with suppress(OSError):  # the cache may be read-only
        os.utime(path)


def size_text(size: int) -> str:
    """Return a number of bytes in words: "0 bytes", "3.1 MB"."""
    for unit, power in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= power:
            return f"{size / power:.1f} {unit}"
    return f"{size} bytes"


def _files(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield the files that oneof wrote, and those that it did not finish writing."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):
                path, status = Path(entry.path), entry.stat(follow_symlinks=False)
                abandoned = path.suffix == ".part" and time.time() - status.st_mtime > _ABANDONED
                if entry.is_file(follow_symlinks=False) and (path.suffix in _SUFFIXES or abandoned):
                    yield path, status


def _remove(path: Path) -> bool:
    with suppress(OSError):  # gone already, or in use on Windows
        path.unlink()
        return True
    return False
