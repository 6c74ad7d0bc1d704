"""Files that are whole or not there: written beside their final name, then renamed. One user at a time."""

import os
import re
import secrets
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from io import FileIO
from pathlib import Path

from oneof.io.locks import lock

# Where files cannot be locked, a part that is so old is taken for the part of a writer that was killed.
_DAY = 24 * 60 * 60.0


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a path to write to; when the block ends well its file takes the place of ``path``.

    Every writer has a part of its own, so that several writers of one path never mix: the last one to end wins.
    """
    path = Path(path)
    with beside(path) as part:
        yield part
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        part.replace(path)


@contextmanager
def beside(path: Path) -> Iterator[Path]:
    """Give the path of a new file beside ``path``, which is deleted when the block ends.

    What is left of it when the process is killed is deleted by the next call with the same ``path``.
    """
    check_folder(path)
    remove_leftovers(path)
    with _new_part(path) as part:
        try:
            yield part
        finally:
            part.unlink(missing_ok=True)


def remove_leftovers(path: Path) -> None:
    """Delete what killed writers of ``path`` have left: parts that nobody has locked."""
    is_part = re.compile(re.escape(path.name) + r"\.[0-9a-f]{16}\.part").fullmatch
    parts: list[Path] = []
    with suppress(OSError):  # a folder may be written to and not be listed
        parts = [each for each in path.parent.iterdir() if is_part(each.name)]
    for part in parts:
        # It may be gone already, or be not ours to delete; Windows deletes no open file.
        with suppress(OSError), nullcontext() if sys.platform == "win32" else FileIO(part, "a") as file:
            ours = None if file is None else _lock_if_free(file, part)
            if ours or (ours is None and time.time() - part.stat().st_mtime > _DAY):
                part.unlink()


@contextmanager
def in_use(path: str | os.PathLike[str], refusal: str) -> Iterator[None]:
    """Keep others from using ``path`` inside the block; raise BlockingIOError(refusal) while another does.

    The lock is that of a file beside it, ``path`` + ".lock", which is deleted at the end. The operating system
    drops the lock of a process that was killed. Where files cannot be locked, nobody is kept off.
    """
    path = Path(path)
    check_folder(path)
    guard = path.with_name(path.name + ".lock")
    file = _open_locked(guard, refusal)
    try:
        yield
    finally:
        with suppress(OSError):  # Windows deletes no open file
            guard.unlink()
        file.close()
        if sys.platform == "win32":
            with suppress(OSError):  # another may have opened it by now
                guard.unlink()


def check_folder(path: Path) -> None:
    """Refuse a path in a folder that is not there."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"the folder {str(path.parent)!r} does not exist; create it first")


def _open_locked(guard: Path, refusal: str) -> FileIO:
    while True:
        file = FileIO(guard, "a")
        try:
            if _lock(file, guard) is not False:
                return file
        except BlockingIOError:
            file.close()
            raise BlockingIOError(refusal) from None
        file.close()  # the one who had it has just deleted it


@contextmanager
def _new_part(path: Path) -> Iterator[Path]:
    """Give the name of a new file beside ``path``, locked while it is written: it is no leftover."""
    while True:
        part = path.with_name(f"{path.name}.{secrets.token_hex(8)}.part")
        file = FileIO(part, "x")
        try:
            if sys.platform == "win32":  # where an open file cannot be renamed
                file.close()
            elif _lock_if_free(file, part) is False:  # another writer took it for a leftover
                continue
            yield part
            return
        finally:
            file.close()


def _lock_if_free(file: FileIO, path: Path) -> bool | None:
    """As `_lock`; False also while another has the lock."""
    try:
        return _lock(file, path)
    except BlockingIOError:
        return False


def _lock(file: FileIO, path: Path) -> bool | None:
    """Lock an open file; tell whether it is still the one of that name, None where files cannot be locked."""
    try:
        lock(file)
    except BlockingIOError:
        raise
    except OSError:
        return None
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def cache_folder() -> Path:
    """Return ``$XDG_CACHE_HOME/oneof``, by default ``~/.cache/oneof``."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        return (base if base.is_absolute() else Path.home() / ".cache") / "oneof"
    except RuntimeError:
        raise FileNotFoundError("there is no home folder for the cache; set XDG_CACHE_HOME to a folder") from None
