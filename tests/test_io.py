"""Files: whole or not there, whoever writes at the same time or was killed; one user at a time."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import oneof
from conftest import fit_with
from oneof.io import files
from oneof.io.files import in_use, replacing
from oneof.io.schema import misfits
from oneof.io.words import shown
from oneof.train import Paused

WRITER = """
    import os, signal, sys, time
    from pathlib import Path
    from oneof.io.files import in_use, replacing

    path, what = Path(sys.argv[1]), sys.argv[2]
    with in_use(path, "taken") if what == "use" else replacing(path) as part:
        if what == "write":
            part.write_text("half")
        print("inside", flush=True)
        time.sleep(60)
"""


def child(path, what):
    """Start a process that writes or uses a file, and wait until it does."""
    command = [sys.executable, "-c", textwrap.dedent(WRITER), str(path), what]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "inside\n"
    return process


def kill(process):
    os.kill(process.pid, signal.SIGKILL)
    process.wait()


def names(folder):
    return sorted(path.name for path in folder.iterdir())


# --- writing ----------------------------------------------------------------------------------------------


def test_writers_of_one_file_never_mix(tmp_path):
    path = tmp_path / "file"
    with replacing(path) as first:
        first.write_text("first")
        with replacing(path) as second:
            assert second != first
            second.write_text("second")
        assert path.read_text() == "second"
        with replacing(path) as third:
            third.write_text("third")
    assert path.read_text() == "first"
    assert names(tmp_path) == ["file"]


def test_what_a_killed_writer_left_goes_with_the_next_and_what_a_living_one_writes_stays(tmp_path):
    path = tmp_path / "file.txt"
    killed, living = child(path, "write"), child(path, "write")
    kill(killed)
    others = ["file.txt.0123456789abcdef.parts", "file.txt.1.part", "file.txt.part", "other.0123456789abcdef.part"]
    for name in others:  # of others: only names that no writer of this file could have given
        (tmp_path / name).write_text("mine")
    try:
        assert len(names(tmp_path)) == 2 + len(others)
        with replacing(path) as part:
            part.write_text("whole")
        (left,) = set(names(tmp_path)) - {"file.txt", *others}
        assert (tmp_path / left).read_text() == "half"
    finally:
        kill(living)
    with replacing(path) as part:
        part.write_text("again")
    assert names(tmp_path) == sorted(["file.txt", *others])


def test_a_writer_that_fails_leaves_nothing(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(KeyError), replacing(path) as part:
        part.write_text({}["new"])
    assert path.read_text() == "old"
    assert names(tmp_path) == ["file"]
    with (
        pytest.raises(FileNotFoundError, match=r"folder .*nowhere' does not exist; create it first"),
        replacing(tmp_path / "nowhere" / "file"),
    ):
        pass


def test_a_new_part_that_another_takes_for_a_leftover_is_not_used(tmp_path, monkeypatch):
    """Between its creation and its lock, a part looks like that of a killed writer."""
    path, lock, first = tmp_path / "file", files.lock, []

    def lock_late(file):
        if not first:
            first.append(True)
            files.remove_leftovers(path)
            assert names(tmp_path) == []
        lock(file)

    monkeypatch.setattr(files, "lock", lock_late)
    with replacing(path) as part:
        part.write_text("whole")
    assert path.read_text() == "whole"
    assert names(tmp_path) == ["file"]


def test_without_locks_parts_are_kept_for_a_day(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "lock", lambda file: (_ for _ in ()).throw(OSError("no locks here")))
    path, part = tmp_path / "file", tmp_path / "file.0123456789abcdef.part"
    part.write_text("half")
    for age, kept in ((60, True), (2 * 24 * 3600, False)):
        os.utime(part, (time.time() - age,) * 2)
        with replacing(path) as new:
            new.write_text("whole")
        assert part.exists() == kept
    with in_use(path, "taken"), in_use(path, "taken"):  # nobody is kept off
        pass
    assert names(tmp_path) == ["file"]


# --- one user at a time -----------------------------------------------------------------------------------


def test_a_file_in_use_is_refused_and_a_killed_user_is_no_obstacle(tmp_path):
    path = tmp_path / "file"
    with in_use(path, "taken"), pytest.raises(BlockingIOError, match="taken"), in_use(path, "taken"):
        pass
    assert names(tmp_path) == []
    other = child(path, "use")
    try:
        with pytest.raises(BlockingIOError, match="taken"), in_use(path, "taken"):
            pass
    finally:
        kill(other)
    with in_use(path, "taken"):
        assert names(tmp_path) == ["file.lock"]
    assert names(tmp_path) == []


def test_two_fits_with_one_checkpoint_at_once_are_refused(blobs, tmp_path):
    X, S, _ = blobs
    path = tmp_path / "fit.ckpt"
    settings = {"epochs": 3, "random_state": 0, "checkpoint": path, "device": "cpu"}
    reasons = []

    def second(epoch):
        with pytest.raises(
            BlockingIOError, match=r"the checkpoint .*fit\.ckpt' is in use by another fit; wait"
        ) as e:
            oneof.CC(**settings).fit(X, S)
        reasons.append(e.value)
        with pytest.raises(BlockingIOError, match="in use by another fit"):
            oneof.fit_together([oneof.CC(**settings)], [{"X": X, "y": S}])

    model = fit_with(oneof.CC(**settings), X, S, on_epoch=second)
    assert len(reasons) == 3
    assert names(tmp_path) == ["fit.ckpt"]
    again = oneof.CC(**settings).fit(X, S)  # and afterwards it is free
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))


def test_a_fit_that_fails_frees_its_checkpoint(blobs, tmp_path):
    X, S, _ = blobs
    settings = {"epochs": 3, "random_state": 0, "checkpoint": tmp_path / "c", "device": "cpu"}
    with pytest.raises(KeyError) as kept:  # whose traceback holds everything alive
        fit_with(oneof.CC(**settings), X, S, on_epoch=lambda _: {}["no"])
    with pytest.raises(Paused):
        fit_with(oneof.CC(**settings), X, S, pause=lambda: True)
    assert names(tmp_path) == ["c"]
    oneof.CC(**settings).fit(X, S)
    assert kept.value.args == ("no",)


def test_a_fit_that_was_prepared_before_another_wrote_is_refused(blobs, tmp_path):
    X, S, _ = blobs
    model = oneof.CC(epochs=2, random_state=0, checkpoint=tmp_path / "c", device="cpu")
    first, second = (model.prepare(X, S) for _ in range(2))
    oneof.train.train(first)
    with pytest.raises(ValueError, match=r"was written since this fit was prepared; prepare it again"):
        oneof.train.train(second)
    assert names(tmp_path) == ["c"]


# --- schemas ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "kind", "said"),
    [
        ({"a": [1, 2.5]}, dict[str, list[float]], []),
        ([1, None], list[int | None], []),
        (None, list[int] | None, []),
        ([1, "x"], list[int] | None, ["[1] is 'x', but must be a whole number"]),
        (True, int, ["it is True, but must be a whole number"]),
        ({"a": [1, None]}, dict[str, list[float]], ["a[1] is None, but must be a number"]),
        (3, str | None, ["it is 3, but must be a text or null"]),
    ],
)
def test_misfits(value, kind, said):
    assert list(misfits(value, kind)) == said


def test_long_values_are_cut():
    assert len(shown("x" * 10_000)) < 200
    assert shown([1, "a"]) == "[1, 'a']"
