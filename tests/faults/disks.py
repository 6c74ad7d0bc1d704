"""Disks that are full or read-only: one sentence, no half-written file, and with space the work goes on."""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from faults import lab
from faults.harness import (
    Attempt,
    Case,
    Ended,
    LostError,
    SkippedError,
    check_leaves,
    check_sentence,
    check_words,
    leaves,
)

_PAGE = 4096  # a small disk is filled in pages
_DISK = 64 * 2**20  # bytes


@contextmanager
def small_disk(attempt: Attempt) -> Iterator[Path]:
    """Give a file system of a few megabytes, in memory."""
    folder = attempt.folder / "disk"
    folder.mkdir()
    _mount("-t", "tmpfs", "-o", f"size={_DISK}", "tmpfs", folder)
    try:
        yield folder
    finally:
        for process in attempt.started:
            process.close()
        subprocess.run(["umount", "--lazy", folder], check=False, capture_output=True)


def _mount(*words: Any) -> None:
    if os.geteuid() != 0:
        raise SkippedError("only root may mount a small disk")
    done = subprocess.run(["mount", *map(str, words)], check=False, capture_output=True, text=True)
    if done.returncode:
        raise SkippedError(f"a small disk cannot be mounted here: {done.stderr.strip()}")


def fill(disk: Path, left: int) -> Path:
    """Fill a disk but for so many bytes."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        while (room := os.statvfs(disk).f_bavail * os.statvfs(disk).f_bsize - left) >= _PAGE:
            file.write(bytes(room // _PAGE * _PAGE))
    return filler


Work = Callable[[Attempt, Path], tuple[list[Any], dict[str, Any], Callable[[], None]]]
"""Where to write -> the words of a command, its faults, and a check of what it has written in the end."""


def fit(attempt: Attempt, place: Path) -> tuple[list[Any], dict[str, Any], Callable[[], None]]:
    """A fit that keeps a checkpoint beside its model."""
    words = [*lab.fit_words(attempt, "idgp", place / "model"), "--set", f"checkpoint={place / 'fit.ckpt'}"]

    def check() -> None:
        check_leaves(place, ["fit.ckpt", "model"])
        if (place / "model").read_bytes() != lab.model(attempt, "idgp").content:
            raise LostError("the model differs from the undisturbed one")

    return words, lab.EVERY_EPOCH, check


def predict(attempt: Attempt, place: Path) -> tuple[list[Any], dict[str, Any], Callable[[], None]]:
    """Predictions into a table."""
    model, expected = lab.predictions(attempt)

    def check() -> None:
        check_leaves(place, ["out.csv"])
        if (place / "out.csv").read_bytes() != expected.content:
            raise LostError("the predictions differ from the undisturbed ones")

    return ["predict", model, lab.table(attempt), "--out", place / "out.csv"], {}, check


def report(attempt: Attempt, place: Path) -> tuple[list[Any], dict[str, Any], Callable[[], None]]:
    """The report of a plan."""
    new, made = lab.reports(attempt)[0], lab.ledger(attempt)

    def check() -> None:
        check_leaves(place, new)
        if any((place / name).read_bytes() != content for name, content in new.items()):
            raise LostError("the report differs from the undisturbed one")

    words = ["report", "--plan", made.plan, "--out", place, made.path]
    return words, lab.problem(attempt).faults, check


def run(attempt: Attempt, place: Path) -> tuple[list[Any], dict[str, Any], Callable[[], None]]:
    """A plan with its ledger and checkpoints."""
    made, ledger = lab.ledger(attempt), place / "ledger.jsonl"

    def check() -> None:
        check_leaves(place, ["ledger.jsonl"])
        lab.check_ledger(attempt, ledger)

    return lab.run_words(attempt, made.plan, ledger), lab.problem(attempt).faults, check


WORKS: dict[str, tuple[Work, int]] = {
    "fit": (fit, 120),
    "predict": (predict, 8),
    "report": (report, 120),
    "run": (run, 250),
}
"""With each the most kilobytes that are left on the disk, fewer than it needs."""


def full_disk(attempt: Attempt, name: str) -> None:
    """The disk is full or becomes so: a sentence, no half-written file, and then the work goes on."""
    work, most = WORKS[name]
    with small_disk(attempt) as disk:
        place = disk / "place"
        place.mkdir()
        words, faults, check = work(attempt, place)
        filler = fill(disk, attempt.chance.randint(0, most) * 1024)
        _check_failure(attempt.run(*words, **faults), place)
        filler.unlink()
        attempt.must_succeed(*words, **faults)
        check()


def large_files_refused(attempt: Attempt, name: str) -> None:
    """No file may grow beyond a size, which needs no root: the same demands as on a full disk."""
    work, most = WORKS[name]
    place = attempt.folder / "place"
    place.mkdir()
    words, faults, check = work(attempt, place)
    limit = attempt.chance.randint(0, most) * 256
    _check_failure(attempt.run(*words, **faults, file_size=limit), place)
    attempt.must_succeed(*words, **faults)
    check()


def _check_failure(ended: Ended, place: Path) -> None:
    """Demand success, or a sentence without half-written files."""
    if ended.code:
        check_sentence(ended)
    else:
        check_words(ended)
    if parts := [leaf for leaf in leaves(place) if leaf.endswith(".part")]:
        raise LostError(f"half-written files stay: {parts}")


def read_only(attempt: Attempt, name: str) -> None:
    """Nothing can be written: a sentence."""
    work, _ = WORKS[name]
    with small_disk(attempt) as disk:
        place = disk / "place"
        place.mkdir()
        words, faults, check = work(attempt, place)
        _mount("-o", "remount,ro", disk)
        ended = attempt.run(*words, **faults)
        check_sentence(ended)
        _mount("-o", "remount,rw", disk)
        check_leaves(place, [])
        attempt.must_succeed(*words, **faults)
        check()


def cases() -> list[Case]:
    """All cases of this module."""
    return [
        Case(f"{short}-{name}", about.format(name=name), times, partial(test, name=name))
        for name in WORKS
        for short, about, times, test in (
            ("full-disk", "full disk under `oneof {name}`, then space again", 2, full_disk),
            ("file-size", "files that may not grow (RLIMIT_FSIZE) under `oneof {name}`", 1, large_files_refused),
            ("read-only", "read-only folder under `oneof {name}`", 1, read_only),
        )
    ]
