"""The journal of decisions: JSON lines in a file that only grows, each on the disk before anybody goes on."""

import json
import os
import threading
from collections.abc import Iterable, Mapping
from io import FileIO
from pathlib import Path
from typing import Any, Literal, NotRequired, Self, TypedDict

from oneof.errors import InputError
from oneof.io.files import check_folder
from oneof.io.locks import lock
from oneof.io.schema import json_misfit
from oneof.io.words import shown

__all__ = ["Decision", "Journal", "entries_of", "in_force"]

ACTIONS = ("label", "none", "skip", "undo")


class Decision(TypedDict):
    """One line: what somebody decided about a row. Undo, too, is a line."""

    row: int
    action: Literal["label", "none", "skip", "undo"]
    label: NotRequired[str | int]  # of the action "label"
    candidates: NotRequired[list[str | int]]  # as they were when this was decided
    at: NotRequired[str]
    by: NotRequired[str]


class Journal:
    """The one writer of a journal; several threads may share it.

    A line is on the disk when `append` returns. A process that is killed in the middle of a line leaves a line
    that counts for nothing, and its lock goes with it.

    Raises
    ------
    BlockingIOError
        While another process writes to it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if path.is_dir():
            raise IsADirectoryError(f"{shown(path)} is a folder, but decisions go into a file; add a file name")
        check_folder(path)
        self._mutex = threading.Lock()
        self._file = FileIO(path, "a+")
        try:
            _take(self._file, path)
            self.entries, self.learned = _read(path)
        except BaseException:
            self._file.close()
            raise

    def append(self, entry: Mapping[str, Any]) -> None:
        """Write a line; what cannot be written whole is an OSError, and no decision."""
        line = json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        with self._mutex:
            end = self._file.seek(0, os.SEEK_END)
            if end and self._byte(end - 1) != b"\n":
                line = b"\n" + line  # behind a line that a kill has torn
            left = memoryview(line)
            while left:
                left = left[os.write(self._file.fileno(), left) :]
            os.fsync(self._file.fileno())
            if "row" in entry:
                self.entries.append(entry)  # type: ignore[arg-type]

    def close(self) -> None:
        """Let the next writer in."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _byte(self, place: int) -> bytes:
        self._file.seek(place)
        return self._file.read(1)


def entries_of(path: Path) -> list[Decision]:
    """Read the decisions of a journal."""
    return _read(path)[0]


def in_force(entries: Iterable[Decision]) -> dict[int, Decision]:
    """Return the decision that counts for each row: the last one, unless it was undone or skipped."""
    last: dict[int, Decision] = {}
    for entry in entries:
        if entry["action"] == "undo":
            last.pop(entry["row"], None)
        elif entry["action"] != "skip":
            last[entry["row"]] = entry
    return last


def _read(path: Path) -> tuple[list[Decision], dict[str, Any] | None]:
    """Return the decisions, and what was said of the last learning; a torn last line does not count."""
    entries: list[Decision] = []
    learned: dict[str, Any] | None = None
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        found, wrong = _entry_of(line)
        if wrong is None and "learned" in found:
            learned = found
        elif wrong is None:
            entries.append(found)
        elif not (wrong == _TORN and _may_be_torn(lines, number)):
            raise InputError(
                f"line {number} of {shown(path)} is no decision ({wrong}); mend or delete the line, or name "
                f"another "
                "file"
            )
    return entries, learned


_TORN = "it is no JSON, or torn"


def _may_be_torn(lines: list[bytes], number: int) -> bool:
    """Return whether a line may be what a kill left: one that begins like ours but has no end."""
    line = lines[number - 1].strip()
    return line.startswith(b"{") and not line.endswith(b"}")


def _entry_of(line: bytes) -> tuple[Any, str | None]:
    try:
        found = json.loads(line.decode())
    except (ValueError, RecursionError):
        return None, _TORN
    if isinstance(found, dict) and "learned" in found:
        return found, None
    wrong = json_misfit(found, Decision)
    if wrong is None and found["action"] == "label" and "label" not in found:
        wrong = "it has no 'label'"
    if wrong is None and found["row"] < 0:
        wrong = f"row is {found['row']}, but rows are numbered from 0"
    return found, wrong


def _take(file: FileIO, path: Path) -> None:
    try:
        lock(file)
    except BlockingIOError:
        raise BlockingIOError(
            f"the decisions {shown(path)} are being written by another review; close it, or pass --decisions with "
            "another file"
        ) from None
    except OSError:  # a file system without locks keeps nobody off
        pass
