"""The ledger loses nothing: real kills, real locks, garbage between the lines."""

import json
import math
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oneof.bench.keys import run_key
from oneof.bench.ledger import Ledger, read

pytestmark = pytest.mark.filterwarnings("ignore:.* of the ledger .* cannot be read")
posix = pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL and fork")

# An empty package takes the place of ours, which would load torch: most kills would hit that.
PROGRAM = """
import os, sys, time, types
package = sys.modules["oneof"] = types.ModuleType("oneof")
package.__path__ = [sys.argv[1]]
from oneof.bench.ledger import Ledger
ledger = Ledger(sys.argv[2])
"""
APPEND = """
print("open", flush=True)
first = len(ledger.records)
for i in range(first, first + 100000):
    ledger.append({"key": str(i), "status": "done", "text": "x" * 200000})
    print(i, flush=True)
"""
SLEEP = """
print("open", flush=True)
time.sleep(60)
"""
FORK = """
if os.fork() == 0:
    print(os.getpid(), flush=True)  # by the child: what it does after a fork is done then
time.sleep(60)
"""


def start(path, code):
    """A writer in a process of its own, and the first line that it says."""
    package = Path(__file__).parent.parent / "src" / "oneof"
    command = [sys.executable, "-c", PROGRAM + code, str(package), str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    return process, process.stdout.readline().strip()


def kill(process):
    """Kill -9, and what the process had said until then."""
    process.send_signal(signal.SIGKILL)
    said, _ = process.communicate()
    return said.split()


def done(key, **more):
    return {"key": key, "status": "done", **more}


def failed(key, **more):
    return {"key": key, "status": "failed", **more}


def line(record):
    return json.dumps(record).encode() + b"\n"


@posix
def test_kills_lose_nothing_that_was_said_to_be_written(tmp_path):
    """Large records, so that a kill can tear a line; whatever append returned for is there."""
    path, rng = tmp_path / "ledger.jsonl", random.Random(0)
    written = set()
    for kills in range(1, 21):
        process, said = start(path, APPEND)
        assert said == "open"
        written |= {process.stdout.readline().strip() for _ in range(rng.randrange(3))}
        time.sleep(rng.uniform(0, 0.01))
        written |= set(kill(process))
        found = read([path])
        assert found.skipped <= kills
        assert written <= set(found.records)
        # A kill between the write and the word loses the word alone.
        assert len(found.records) <= len(written) + kills
        with Ledger(path) as ledger:
            ledger.append(done(f"after {kills}"))
        assert read([path]).records[f"after {kills}"] == done(f"after {kills}")
        written.add(f"after {kills}")


def test_every_line_is_synced_before_append_returns(tmp_path, monkeypatch):
    path, synced = tmp_path / "ledger.jsonl", []
    monkeypatch.setattr("os.fsync", lambda _: synced.append(path.read_bytes()))
    with Ledger(path) as ledger:
        for i in range(3):
            ledger.append(done(str(i)))
            assert len(synced) == i + 1
            assert synced[-1] == path.read_bytes()


@pytest.mark.parametrize("cut", [1, 2, 20, 40, 59])
def test_torn_end_becomes_a_line_of_its_own(tmp_path, cut):
    path = tmp_path / "ledger.jsonl"
    with Ledger(path) as ledger:
        ledger.append(done("a"))
        ledger.append(done("b", text="x" * 30))
    content = path.read_bytes()
    path.write_bytes(content[:-cut])
    with Ledger(path) as ledger:
        assert ledger.skipped == (cut > 1)
        ledger.append(done("c"))
    found = read([path])
    assert list(found.records) == (["a", "b", "c"] if cut == 1 else ["a", "c"])
    assert found.skipped == (cut > 1)


def _cut(path):
    os.truncate(path, path.stat().st_size - 1)


def _replace(path):
    path.with_name("copy").write_bytes(path.read_bytes())
    path.with_name("copy").replace(path)


@pytest.mark.parametrize(
    ("harm", "word"), [(Path.unlink, "deleted or replaced"), (_replace, "deleted or replaced"), (_cut, "cut off")]
)
@posix
def test_a_writer_notices_that_its_file_is_gone_or_cut(tmp_path, harm, word):
    path = tmp_path / "ledger.jsonl"
    told = pytest.raises(OSError, match=f"was {word} by another program")
    with told, Ledger(path) as ledger:  # also as it is closed
        ledger.append({"key": "a", "status": "done"})
        with path.open("ab") as other:
            other.write(b'{"key": "b", "status": "done"}\n')  # more is no harm
        ledger.append({"key": "c", "status": "done"})
        ledger.check_untouched()
        harm(path)
        with pytest.raises(OSError, match=f"was {word} by another program"):
            ledger.append({"key": "d", "status": "done"})
    assert list(ledger.records) == ["a", "c"]


@posix
def test_an_error_of_another_kind_is_not_hidden_by_a_ledger_that_is_gone(tmp_path):
    path = tmp_path / "ledger.jsonl"
    with pytest.raises(ZeroDivisionError), Ledger(path):
        path.unlink() or 1 / 0
    with Ledger(path):  # the lock was let go
        pass


def test_second_writer_is_refused_until_the_first_closes(tmp_path):
    path = tmp_path / "ledger.jsonl"
    with Ledger(path) as first:
        first.append(done("a"))
        with pytest.raises(BlockingIOError, match=r"ledger\.jsonl' is being written by another process; wait"):
            Ledger(path)
        assert list(read([path]).records) == ["a"]
        first.append(done("b"))
    with Ledger(path) as second:
        assert list(second.records) == ["a", "b"]
        second.append(done("c"))
    assert list(read([path]).records) == ["a", "b", "c"]


@posix
def test_lock_dies_with_its_process(tmp_path):
    path = tmp_path / "ledger.jsonl"
    process, said = start(path, SLEEP)
    try:
        assert said == "open"
        with pytest.raises(BlockingIOError, match="being written by another process"):
            Ledger(path)
    finally:
        kill(process)
    with Ledger(path) as ledger:
        ledger.append(done("a"))


@posix
def test_forked_process_does_not_inherit_the_lock(tmp_path):
    """A worker that outlives a killed driver must not keep the next driver out."""
    path = tmp_path / "ledger.jsonl"
    process, child = start(path, FORK)
    try:
        with pytest.raises(BlockingIOError):
            Ledger(path)
        process.send_signal(signal.SIGKILL)
        process.wait()
        os.kill(int(child), 0)  # fails if the worker does not live any more
        Ledger(path).close()
    finally:
        os.kill(int(child), signal.SIGKILL)
        process.stdout.close()


def test_done_beats_failed_then_the_last_wins(tmp_path):
    path = tmp_path / "ledger.jsonl"
    with Ledger(path) as ledger:
        for record in (failed("a", n=1), failed("a", n=2), done("b", n=1), done("b", n=2), failed("b", n=3)):
            ledger.append(record)
        ledger.append(failed("c", n=1))
        ledger.append(done("c", n=2))
        expected = {"a": failed("a", n=2), "b": done("b", n=2), "c": done("c", n=2)}
        assert ledger.records == expected
    assert read([path]).records == expected


@pytest.mark.parametrize("torn", [0, 5], ids=["whole", "torn"])
def test_ledgers_merge_by_concatenation(tmp_path, torn):
    """Even where the first one ends in a torn line, the second loses nothing."""
    one, two, both = (tmp_path / name for name in ("one", "two", "both"))
    with Ledger(one) as ledger:
        ledger.append(done("a", n=1))
        ledger.append(failed("b", n=1))
        ledger.append(done("z"))
    with Ledger(two) as ledger:
        ledger.append(done("b", n=2))
        ledger.append(failed("a", n=2))
    one.write_bytes(one.read_bytes()[: -torn or None])
    both.write_bytes(one.read_bytes() + two.read_bytes())
    found = read([both])
    assert found == read([one, two])
    last = {} if torn else {"z": done("z")}
    assert found.records == {"a": done("a", n=1), "b": done("b", n=2), **last}
    assert found.skipped == bool(torn)


def test_the_key_is_that_of_the_spec(tmp_path):
    """Also in a line that was written when keys were made in another way, and for a record with a wrong one."""
    path, spec = tmp_path / "ledger.jsonl", {"method": "CC", "settings": {"lr": 0.1, "epochs": 5}}
    key = run_key(spec)
    path.write_bytes(line(done("of old", spec=spec, n=1)) + line(failed("older", spec=spec, n=2)))
    expected = {key: done(key, spec=spec, n=1)}
    assert read([path]).records == expected
    with Ledger(path) as ledger:
        assert ledger.records == expected
        ledger.append(done("wrong", spec=spec, n=3))
        assert ledger.records == read([path]).records == {key: done(key, spec=spec, n=3)}
    assert json.loads(path.read_bytes().splitlines()[-1])["key"] == key


UNREADABLE = {
    "torn": b'{"key":"a","status":"do',
    "number": b"1",
    "list": b'[{"key":"a","status":"done"}]',
    "no key": b'{"status":"done"}',
    "key is a number": b'{"key":1,"status":"done"}',
    "no status": b'{"key":"a"}',
    "unknown status": b'{"key":"a","status":"running"}',
    "status is a list": b'{"key":"a","status":["done"]}',
    "two in one": b'{"key":"a","status":"done"}{"key":"b","status":"done"}',
    "nan": b'{"key":"a","status":"done","x":NaN}',
    "infinity": b'{"key":"a","status":"done","x":-Infinity}',
    "nul": b"\0\0\0\0",
    "nul before a record": b'\0\0{"key":"a","status":"done"}',
    "utf-16": '{"key":"a","status":"done"}'.encode("utf-16-le"),
    "latin-1": '{"key":"é","status":"done"}'.encode("latin-1"),
    "deep": b"[" * 100_000,
    "infinite setting": b'{"key":"a","status":"done","spec":{"settings":{"lr":1e999}}}',
    "long number": b'{"key":"a","status":"done","x":' + b"1" * 10_000 + b"}",
}


@pytest.mark.parametrize("garbage", UNREADABLE.values(), ids=UNREADABLE)
def test_unreadable_line_is_skipped_and_counted(tmp_path, garbage):
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(line(done("first")) + garbage + b"\n" + line(done("last")))
    found = read([path])
    assert list(found.records) == ["first", "last"]
    assert found.skipped == 1


def test_empty_lines_and_windows_line_ends_are_no_harm(tmp_path):
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(b"\n  \n" + line(done("a")).replace(b"\n", b"\r\n") + b"\r\n" + line(done("b")))
    assert read([path]) == read([path, path])
    assert list(read([path]).records) == ["a", "b"]
    assert read([path]).skipped == 0


@given(
    st.lists(st.binary(max_size=60) | st.sampled_from([line(done("x")), b"\n", b"{", b"\0", b"NaN"]), max_size=8)
)
def test_whatever_stands_between_records_leaves_them_alone(tmp_path_factory, between):
    path = tmp_path_factory.mktemp("garbage") / "ledger.jsonl"
    for i, garbage in enumerate(between):
        with Ledger(path) as ledger:
            ledger.append(done(str(i), i=i))
        with path.open("ab") as file:
            file.write(garbage)
    Ledger(path).close()
    found = read([path])
    for i in range(len(between)):
        assert found.records[str(i)] == done(str(i), i=i)
    assert found.skipped <= sum(garbage.count(b"\n") + 1 for garbage in between)


def test_records_are_what_is_read_back(tmp_path):
    path = tmp_path / "ledger.jsonl"
    record = done("a", curve=(1.5, math.nan, -math.inf), text="é\n\ud800\u2028", deep={"x": [None, True, 3]})
    with Ledger(path) as ledger:
        ledger.append(record)
        kept = ledger.records["a"]
    assert kept["curve"] == [1.5, None, None]
    assert read([path]).records == {"a": kept}
    assert kept["text"] == record["text"]
    assert math.isnan(record["curve"][1])
    assert b"NaN" not in path.read_bytes()


def test_records_that_cannot_be_written_leave_no_trace(tmp_path):
    path = tmp_path / "ledger.jsonl"
    with Ledger(path) as ledger:
        with pytest.raises(
            TypeError, match=r"record\.curve\[1\] is .* of type float32, but must be a text, number"
        ):
            ledger.append(done("a", curve=[1.0, np.float32(2)]))
        with pytest.raises(TypeError, match="record has the name 3, but names must be texts"):
            ledger.append({**done("a"), 3: 4})
        for wrong in ({"key": "a"}, {"key": 1, "status": "done"}, done("a", status="running"), ["key"]):
            with pytest.raises(ValueError, match="must be a dict with a text as 'key' and 'done' or 'failed'"):
                ledger.append(wrong)
        assert ledger.records == {}
    assert path.read_bytes() == b""
    with pytest.raises(ValueError, match="closed"):
        ledger.append(done("a"))


def test_paths_that_cannot_be(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"the folder .*nowhere' does not exist; create it first"):
        Ledger(tmp_path / "nowhere" / "ledger.jsonl")
    with pytest.raises(IsADirectoryError, match="is a folder, but a ledger is a file; add a file name"):
        Ledger(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"there is no ledger .*nowhere'"):
        read([tmp_path / "nowhere"])
    assert list(tmp_path.iterdir()) == []
