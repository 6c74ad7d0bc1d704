"""A plan under way: its clock, its workers, its memory, its ledger and its progress file are disturbed."""

import os
import re
import signal
import time
from functools import partial
from pathlib import Path

from faults import lab
from faults.harness import (
    LIMIT,
    Attempt,
    Case,
    Command,
    Ended,
    LostError,
    SkippedError,
    check_sentence,
    check_words,
    short,
)
from oneof.bench.ledger import read

_LONG = lab.PLAN.replace("epochs = 30", "epochs = 1000000")
_BUDGET, _SLACK = 4, 40.0  # seconds; the slack is for processes that start and end on a busy machine
_DAY = 86400.0


def clock_back(attempt: Attempt) -> None:
    """The budget ends a plan in time although the clock is set back."""
    plan, ledger = lab.write_plan(attempt.folder, _LONG), attempt.folder / "ledger.jsonl"
    ended = _with_jump(attempt, plan, ledger, _BUDGET, -_DAY, _BUDGET + _SLACK)
    if ended.code:
        raise LostError(f"the plan ended with {ended.code}: {short(ended.err)}")


def clock_moved(attempt: Attempt, by: float) -> None:
    """The clock jumps in a plan with a budget: whatever it does, the next call ends it as if nothing had been."""
    plan, ledger = lab.write_plan(attempt.folder), attempt.folder / "ledger.jsonl"
    ended = _with_jump(attempt, plan, ledger, 600, by, LIMIT)
    if ended.code:
        raise LostError(f"the plan ended with {ended.code}: {short(ended.err)}")
    lab.finish_plan(attempt, plan, ledger)


def _with_jump(attempt: Attempt, plan: Path, ledger: Path, budget: int, by: float, limit: float) -> Ended:
    """Run a plan whose clock jumps soon after it has begun."""
    jump, words = attempt.folder / "jump", [*lab.run_words(attempt, plan, ledger), "--budget", budget]
    command = attempt.start(*words, **lab.problem(attempt).faults, clock={"when": str(jump), "by": by})
    if command.wait_until(ledger.is_file):
        time.sleep(attempt.chance.uniform(0, 0.9 * _BUDGET))
        jump.touch()
    ended = command.wait(limit)
    check_words(ended)
    return ended


def worker_killed(attempt: Attempt) -> None:
    """A worker is killed alone: the plan goes on, and each run is done or has failed with a reason."""
    plan, ledger = lab.write_plan(attempt.folder), attempt.folder / "ledger.jsonl"
    command = attempt.start(*lab.run_words(attempt, plan, ledger, 2), **lab.problem(attempt).faults)
    for _ in range(attempt.chance.randint(1, 3)):
        if not command.wait_until(lambda: bool(_workers(command))):
            break
        time.sleep(attempt.chance.uniform(0, 0.6 * lab.ledger(attempt).seconds))
        for pid in _workers(command)[:1]:
            os.kill(pid, signal.SIGKILL)
    _check_goes_on(attempt, command.wait(), plan, ledger)


def no_memory(attempt: Attempt) -> None:
    """Workers get little memory: runs fail with advice, the plan goes on, and the next call does them."""
    plan, ledger = lab.write_plan(attempt.folder), attempt.folder / "ledger.jsonl"
    memory = attempt.chance.choice([1, 10, 40, 70, 100, 120]) * 2**20
    ended = attempt.run(*lab.run_words(attempt, plan, ledger), **lab.problem(attempt).faults, memory=memory)
    failed = [record for record in read([ledger]).records.values() if record["status"] == "failed"]
    for record in failed:
        if "out of memory" not in record["error"]:
            raise LostError(f"a run without memory failed without saying so: {short(record['error'], end=True)}")
    _check_goes_on(attempt, ended, plan, ledger, of_libraries=True)


def _check_goes_on(attempt: Attempt, ended: Ended, plan: Path, ledger: Path, of_libraries: bool = False) -> None:
    """Demand a record of every run, a reason where one failed, and success of the next call."""
    (check_sentence if ended.code else check_words)(ended, of_libraries)
    records, expected = read([ledger]).records, lab.ledger(attempt).results
    if missing := expected.keys() - records.keys():
        raise LostError(f"{len(missing)} runs have no record: {short(ended.err, end=True)}")
    failed = [record for record in records.values() if record["status"] == "failed"]
    if bool(failed) != bool(ended.code):
        raise LostError(f"{len(failed)} runs failed, but the exit code is {ended.code}")
    if not all(record["error"].strip() for record in failed):
        raise LostError("a run failed without a reason")
    lab.finish_plan(attempt, plan, ledger)


def _workers(command: Command) -> list[int]:
    """The processes that execute runs for a command."""
    tasks = Path(f"/proc/{command.pid}/task/{command.pid}/children")
    if not Path("/proc/self/task").is_dir():
        raise SkippedError("needs /proc")
    try:
        children = [int(pid) for pid in tasks.read_text().split()]
        return [pid for pid in children if b"multiprocessing-fork" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    except OSError:  # one of them has just ended
        return []


def ledger_damaged(attempt: Attempt, how: str, last: bool = False) -> None:
    """Somebody deletes or truncates the ledger under a running plan, or as it ends (``last``).

    What a call says at its end must be true: either it fails with a sentence, or the ledger holds as many runs as
    it tells. The next call then has all of them. A process lives on a little after its last words; what is done to
    the ledger then is nothing that it could have told.
    """
    plan, ledger = lab.write_plan(attempt.folder), attempt.folder / "ledger.jsonl"
    command = attempt.start(*lab.run_words(attempt, plan, ledger), **lab.problem(attempt).faults)
    runs, wait = (lab.RUNS, 0.2) if last else (1, 1.0)
    too_late = True
    if command.wait_until(lambda: len(lab.done_keys(ledger)) >= runs):
        time.sleep(attempt.chance.uniform(0, wait))
        too_late = command.has_spoken
        if how == "deleted":
            ledger.unlink()
        else:
            os.truncate(ledger, attempt.chance.randint(0, ledger.stat().st_size))
    ended = command.wait()
    if ended.code:
        check_sentence(ended)
    else:
        check_words(ended)
        told = int(re.match(r"\d+", ended.out).group())
        if (found := len(lab.done_keys(ledger))) < told and not too_late:
            raise LostError(f"it tells {told} runs done, but the ledger holds {found}")
    lab.finish_plan(attempt, plan, ledger)


_BROKEN = (b"", b"{", b"[]", b"null", b"{}", b'{"running": 3}', b"\xff\xfe\x00", b'"text"', b"[" * 100_000)


def progress_damaged(attempt: Attempt) -> None:
    """progress.json is overwritten with nonsense: `oneof status` survives, and the plan does not notice."""
    plan, ledger = lab.write_plan(attempt.folder), attempt.folder / "ledger.jsonl"
    progress = ledger.with_suffix(".checkpoints") / "progress.json"
    command = attempt.start(*lab.run_words(attempt, plan, ledger), **lab.problem(attempt).faults)
    content = attempt.chance.choice(_BROKEN)
    while command.wait_until(progress.is_file):
        try:
            progress.write_bytes(content)
        except FileNotFoundError:
            break
        time.sleep(0.1)
    ended = command.wait()
    check_words(ended)
    if ended.code:
        raise LostError(f"the plan ended with {ended.code}: {short(ended.err)}")
    progress.parent.mkdir(exist_ok=True)
    progress.write_bytes(content)  # as if the runner had been killed
    status = attempt.run("status", plan, "--ledger", ledger, **lab.problem(attempt).faults)
    check_words(status)
    if f"{lab.RUNS} of {lab.RUNS} runs done" not in status.out:
        raise LostError(f"status says {short(status.out + status.err)} where progress.json holds {content[:20]!r}")
    lab.finish_plan(attempt, plan, ledger)


def cases() -> list[Case]:
    """All cases of this module."""
    return [
        Case("clock-back", "clock set back a day: `--budget` still pauses the plan in time", 2, clock_back),
        Case("clock-moved-back", "clock set back a day: the same ledger", 2, partial(clock_moved, by=-_DAY)),
        Case("clock-forward", "clock set forward a day: the same ledger", 2, partial(clock_moved, by=_DAY)),
        Case(
            "worker-killed", "kill -9 of a worker alone: the plan goes on, the next call mends", 4, worker_killed
        ),
        Case("no-memory", "a worker without memory (RLIMIT_AS): a failed run with advice", 4, no_memory),
        *(
            Case(
                f"ledger-{how}{'-at-end' * last}",
                f"ledger {how} {'as a plan ends' if last else 'under a running plan'}: noticed, and mended by the "
                "next call",
                3,
                partial(ledger_damaged, how=how, last=last),
            )
            for how in ("deleted", "truncated")
            for last in (False, True)
        ),
        Case("progress-broken", "progress.json overwritten with nonsense", 4, progress_damaged),
    ]
