"""The ledger: what came out of every run, one line of JSON each, in a file that only grows."""

import json
import math
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any, Self
from weakref import WeakSet

from oneof.bench.keys import plain, run_key
from oneof.errors import InputError
from oneof.io.locks import lock
from oneof.io.words import shown

__all__ = ["Ledger", "Records", "read"]

_STATUS = ("done", "failed")
_LINES = 3  # that a message names

# Says what is wrong with a record, None where it is whole.
Check = Callable[[Mapping[str, Any]], str | None]


@dataclass(frozen=True)
class Records:
    """What ledgers hold: the record that counts for each key, and the number of lines that could not be read."""

    records: dict[str, dict[str, Any]]
    skipped: int


class Ledger:
    """The one writer of a ledger.

    Each record is on the disk when `append` returns. A process that is killed in the middle of a line leaves a
    line that `read` skips, and its lock goes with it.

    Parameters
    ----------
    path : path-like
        A file of JSON lines, created if it is not there.
    check : callable, optional
        As for `read`.

    Attributes
    ----------
    records : dict
        The record that counts for each key.
    skipped : int
        How many lines could not be read when the ledger was opened.

    Raises
    ------
    BlockingIOError
        While another writer has the ledger open.
    """

    def __init__(self, path: str | os.PathLike[str], check: Check | None = None) -> None:
        self.path = Path(path)
        if not self.path.parent.is_dir():
            raise FileNotFoundError(f"the folder {str(self.path.parent)!r} does not exist; create it first")
        _refuse_folder(self.path)
        # Unbuffered: nothing is left to be written by a close, or by a copy of this process.
        self._file = FileIO(self.path, "a+")
        _open_files.add(self._file)
        try:
            _lock(self._file, self.path)
            found = read([self.path], check)
        except BaseException:
            self._file.close()
            raise
        self.records, self.skipped = found.records, found.skipped
        self._size = self._file.seek(0, os.SEEK_END)

    def append(self, record: Mapping[str, Any]) -> None:
        """Add a record with a ``key`` and a ``status``; numbers that are not finite are written as null.

        Where it has a ``spec``, the key is that of the spec.
        """
        record = plain(record, "record", lambda value, _: value if math.isfinite(value) else None)
        if not _is_record(record):
            raise InputError(
                f"the record is {shown(record)}, but must be a dict with a text as 'key' and 'done' or "
                "'failed' as 'status'"
            )
        self.check_untouched()
        keyed = _with_key(record)
        line = json.dumps(keyed, separators=(",", ":"), allow_nan=False).encode() + b"\n"
        # An empty file is started with a newline too: behind another ledger with a torn end nothing is glued.
        line = line if self._last_byte() == b"\n" else b"\n" + line
        left = memoryview(line)
        while left:
            left = left[os.write(self._file.fileno(), left) :]
        os.fsync(self._file.fileno())
        self._size = self._file.seek(0, os.SEEK_END)
        _settle(self.records, keyed)

    def check_untouched(self) -> None:
        """Raise OSError if somebody else has deleted, replaced or cut off the file: records would be lost."""
        mine = os.fstat(self._file.fileno())
        try:
            found = os.path.samestat(mine, self.path.stat())
        except FileNotFoundError:
            found = False
        if not found or mine.st_size < self._size:
            raise OSError(
                f"the ledger {shown(self.path)} was {'cut off' if found else 'deleted or replaced'} by another "
                "program while runs were recorded; leave it alone and call again: what is missing is carried out"
            )

    def close(self) -> None:
        """Let the next writer in."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Let go of the ledger, and look once more whether it is all there if nothing else went wrong."""
        try:
            if kind is None:
                self.check_untouched()
        finally:
            self.close()

    def _last_byte(self) -> bytes:
        end = self._file.seek(0, os.SEEK_END)
        self._file.seek(max(end - 1, 0))
        return self._file.read(1)


def read(
    paths: Iterable[str | os.PathLike[str]], check: Check | None = None, *, missing_ok: bool = False
) -> Records:
    """Read ledgers as if they were one, in this order.

    Lines that are no records are skipped, counted and warned of, also the one that a writer is just writing; empty
    lines are not. The key of a record that has a ``spec`` is computed from it, so that records which were written
    when keys were made in another way still count. Of several records with the same key, done beats failed, then
    the last wins.

    Parameters
    ----------
    paths : iterable of path-like
        The ledgers.
    check : callable, optional
        Says what is wrong with a record, such as `oneof.bench.record.damage_of`; lines with such records are
        skipped too. Without it every JSON object with a key and a status is a record.
    missing_ok : bool, default=False
        Whether a ledger that does not exist is an empty one.
    """
    records: dict[str, dict[str, Any]] = {}
    skipped = 0
    for path in map(Path, paths):
        _refuse_folder(path)
        if not path.is_file():
            if missing_ok:
                continue
            raise FileNotFoundError(
                f"there is no ledger {str(path)!r}; check the path, or oneof run the plan first"
            )
        wrong: dict[int, str] = {}  # by the number of the line
        for number, found in _records_of(path, check):
            if isinstance(found, str):
                wrong[number] = found
            else:
                _settle(records, found)
        _warn_of(path, wrong)
        skipped += len(wrong)
    return Records(records, skipped)


def _records_of(path: Path, check: Check | None) -> Iterator[tuple[int, dict[str, Any] | str]]:
    """Give the number of each line that is not empty, and its record, or what is wrong with it."""
    first = True
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if line.isspace():
                continue
            if first and not line.lstrip().startswith((b"{", b"\0")):  # NUL bytes: the machine lost its power
                raise InputError(
                    f"{str(path)!r} is no ledger: line {number} is no record of a run; name another file"
                )
            first = False
            yield number, _record_of(line, check)


def _record_of(line: bytes, check: Check | None) -> dict[str, Any] | str:
    try:
        # Decoded first: from bytes, json would guess UTF-16 where NUL bytes stand between others.
        content = _DECODER.decode(line.decode())
    except ValueError:
        return "it is no JSON, or torn"
    except RecursionError:
        return "it is nested too deeply"
    if not _is_record(content):
        return "it has no text as 'key', or its 'status' is neither 'done' nor 'failed'"
    try:
        record = _with_key(content)
        wrong = None if check is None else check(record)
    except ValueError as error:
        return str(error)
    except RecursionError:
        return "it is nested too deeply"
    return record if wrong is None else wrong


def _warn_of(path: Path, wrong: Mapping[int, str]) -> None:
    """Name the first lines that do not count."""
    if wrong:
        lines = [f"line {number}: {reason}" for number, reason in list(wrong.items())[:_LINES]]
        more = ["..."] if len(wrong) > _LINES else []
        count, runs = ("1 line", "its run does") if len(wrong) == 1 else (f"{len(wrong)} lines", "their runs do")
        warnings.warn(
            f"{count} of the ledger {str(path)!r} cannot be read; {runs} not count ({'; '.join(lines + more)})",
            stacklevel=3,
        )


def _refuse_folder(path: Path) -> None:
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder, but a ledger is a file; add a file name")


def _is_record(record: Any) -> bool:
    return isinstance(record, dict) and isinstance(record.get("key"), str) and record.get("status") in _STATUS


def _with_key(record: Mapping[str, Any]) -> dict[str, Any]:
    """Give a record the key of its spec, where it has one."""
    spec = record.get("spec")
    return {**record, "key": run_key(spec)} if isinstance(spec, dict) else {**record}


def _settle(records: dict[str, dict[str, Any]], record: dict[str, Any]) -> None:
    """Let the later record of a key win, unless a failed one follows a done one."""
    known = records.get(record["key"])
    if known is None or record["status"] == "done" or known["status"] == "failed":
        records[record["key"]] = record


def _refuse_constant(name: str) -> None:
    raise InputError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def _lock(file: FileIO, path: Path) -> None:
    """Take the lock that the operating system drops when the process ends, however it ends."""
    try:
        lock(file)
    except BlockingIOError:
        raise BlockingIOError(
            f"the ledger {str(path)!r} is being written by another process; wait for it, or write to another file"
        ) from None
    except OSError as error:
        raise OSError(
            f"the ledger {str(path)!r} cannot be locked ({error.strerror}); keep it on a disk with file locks"
        ) from None


_open_files: WeakSet[FileIO] = WeakSet()


def _close_copies() -> None:
    for file in list(_open_files):
        file.close()


# A forked process shares the lock: it would keep it when the writer is killed.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_copies)
