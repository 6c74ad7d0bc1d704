"""Processes that are disturbed, how an attempt ends, and the table of all cases."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from faults import hooks

LIMIT = 120.0  # seconds after which a process hangs
_SHOWN = 300  # characters of a message
TESTS = Path(__file__).parents[1]


class LostError(Exception):
    """A finished record or a promised file is gone, a result differs, or a process hangs."""


class TracebackError(Exception):
    """A traceback where a sentence was due."""


class SkippedError(Exception):
    """The machine does not allow this case."""


class Ended(NamedTuple):
    """A process that has ended."""

    code: int
    out: str
    err: str
    seconds: float


class Group:
    """A process with a group of its own.

    It is not reaped before its group is killed: until then the system gives its number to nobody else, so that no
    other process can be hit.
    """

    def __init__(self, command: Sequence[str], **options: Any) -> None:
        self.process = subprocess.Popen(command, start_new_session=True, **options)
        self.pid = self.process.pid

    @property
    def code(self) -> int | None:
        """The exit code, that of a signal below 0, None while the process runs."""
        if self.process.returncode is not None:
            return self.process.returncode
        ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is None:
            return None
        return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status

    def kill(self) -> None:
        """Kill this process alone: what it has started must notice."""
        if self.process.returncode is None:
            os.kill(self.pid, signal.SIGKILL)

    def wait_until(self, condition: Callable[[], bool], limit: float) -> bool:
        """Wait for a condition; False if the process ends before it holds, or does not end in time."""
        deadline = time.monotonic() + limit
        while self.code is None and time.monotonic() < deadline:
            if condition():
                return True
            time.sleep(0.02)
        return False

    def close(self) -> None:
        """End the whole group."""
        if self.process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self.process.wait()


def environment_of(place: Path, **more: str) -> dict[str, str]:
    """Return the environment of a process in which faults can be installed."""
    (place / "site").mkdir(exist_ok=True)
    (place / "site" / "sitecustomize.py").write_text(hooks.SITECUSTOMIZE)
    paths = [str(place / "site"), str(TESTS), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), **more}


class Command(Group):
    """``oneof ...`` with faults installed."""

    def __init__(self, place: Path, arguments: Sequence[Any], faults: dict[str, Any], cache: Path) -> None:
        self.words = [str(argument) for argument in arguments]
        environment = environment_of(
            place,
            XDG_CACHE_HOME=str(cache),
            NO_PROXY="127.0.0.1",
            OMP_NUM_THREADS="1",  # several attempts share the cores
            **{hooks.VARIABLE: json.dumps(faults)},
        )
        self._files = [tempfile.TemporaryFile("w+", dir=place) for _ in range(2)]  # noqa: SIM115 - open as long as this
        self._begun = time.monotonic()
        super().__init__(
            [sys.executable, "-m", "oneof", *self.words],
            stdin=subprocess.DEVNULL,
            stdout=self._files[0],
            stderr=self._files[1],
            env=environment,
        )

    def wait(self, limit: float = LIMIT) -> Ended:
        """Wait for the end; a process that does not come to one hangs."""
        super().wait_until(lambda: False, limit)
        code = self._ended(limit)
        return Ended(code, *self._said(), time.monotonic() - self._begun)

    def wait_until(self, condition: Callable[[], bool], limit: float = LIMIT) -> bool:
        """Wait for a condition; False if the process ends before it holds."""
        if super().wait_until(condition, limit):
            return True
        self._ended(limit)
        return False

    @property
    def has_spoken(self) -> bool:
        """Whether a result was printed: what is done to the process now comes after its work."""
        return os.fstat(self._files[0].fileno()).st_size > 0

    def _ended(self, limit: float) -> int:
        if (code := self.code) is None:
            self.close()
            raise LostError(f"oneof {self.words[0]} hung for {limit:g} s")
        return code

    def _said(self) -> tuple[str, str]:
        texts = []
        for file in self._files:
            file.seek(0)
            texts.append(file.read())
        return texts[0], texts[1]


@dataclass
class Attempt:
    """One attempt at a case: a folder of its own, and chance that its seed repeats."""

    folder: Path
    cache: Path
    chance: random.Random
    started: list[Command] = field(default_factory=list)
    kills: int = 0  # that hit a process before its end

    def start(self, *arguments: Any, **faults: Any) -> Command:
        """Start ``oneof ...`` with these faults."""
        command = Command(self.folder, arguments, faults, self.cache)
        self.started.append(command)
        return command

    def run(self, *arguments: Any, **faults: Any) -> Ended:
        """Run ``oneof ...`` to its end."""
        return self.start(*arguments, **faults).wait()

    def must_succeed(self, *arguments: Any, **faults: Any) -> Ended:
        """Run a command that nothing keeps from success."""
        ended = self.run(*arguments, **faults)
        check_words(ended)
        if ended.code != 0:
            raise LostError(f"oneof {arguments[0]} ended with {ended.code}: {short(ended.err)}")
        return ended

    def close(self) -> None:
        """End what still runs and remove the folder."""
        for command in self.started:
            command.close()
        shutil.rmtree(self.folder, ignore_errors=True)


_TRACEBACK = "Traceback (most recent call last)"
_OURS = re.compile(r'File ".*/oneof/')


def check_words(ended: Ended, of_libraries: bool = False) -> None:
    """Refuse tracebacks; those ``of_libraries``, in which no line of oneof stands, may be allowed."""
    for text in (ended.out, ended.err):
        for trace in text.split(_TRACEBACK)[1:]:
            if not of_libraries or _OURS.search(trace):
                raise TracebackError(short(trace, end=True))


def check_sentence(ended: Ended, of_libraries: bool = False) -> None:
    """Demand that a command which failed says why, in one line that begins with "error: " or "failed: "."""
    check_words(ended, of_libraries)
    lines = [line for line in ended.err.splitlines() if line.startswith(("error: ", "failed: ", "unavailable: "))]
    if ended.code < 0:
        raise LostError(f"the process ended by signal {-ended.code}: {short(ended.err)}")
    if ended.code == 0 or not lines:
        raise LostError(f"exit code {ended.code} without a sentence: {short(ended.out + ended.err)}")
    if max(map(len, lines)) > 1000:
        raise LostError(f"a sentence of {max(map(len, lines))} characters: {short(max(lines, key=len))}")


def short(text: str, end: bool = False) -> str:
    """Return a text as one short line."""
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else "... " + line[-_SHOWN:] if end else line[:_SHOWN] + " ..."


def leaves(folder: Path) -> list[str]:
    """List the files in a folder and below."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def check_leaves(folder: Path, expected: Iterable[str]) -> None:
    """Demand just these files."""
    if (found := leaves(folder)) != sorted(expected):
        raise LostError(f"the folder holds {found}, but should hold {sorted(expected)}")


@dataclass(frozen=True)
class Case:
    """What is tried, how often, and how."""

    name: str
    about: str
    times: int
    run: Callable[[Attempt], None]
    alone: bool = False  # beside nothing else


@dataclass
class Row:
    """What came out of a case."""

    case: str
    about: str
    tried: int = 0
    survived: int = 0
    lost: int = 0
    traceback: int = 0
    kills: int = 0
    skipped: str = ""
    failures: list[str] = field(default_factory=list)


class Suite:
    """Carries out cases, several attempts at once; no attempt begins after the budget."""

    def __init__(self, cases: Sequence[Case], seed: int, times: float, workers: int, budget: float) -> None:
        self.cases, self.seed, self.times = cases, seed, times
        self.workers, self.deadline = workers, time.monotonic() + budget
        self.not_begun = 0
        self._lock = threading.Lock()

    def run(self) -> list[Row]:
        """Carry out all cases."""
        rows = {case.name: Row(case.name, case.about) for case in self.cases}
        with tempfile.TemporaryDirectory(prefix="oneof-faults-") as root:
            jobs = [(case, i) for case in self.cases for i in range(self._times(case))]
            jobs.sort(key=lambda job: job[1])  # so that a budget that ends early leaves no case untried

            def attempt(job: tuple[Case, int]) -> None:
                self._attempt(*job, rows[job[0].name], Path(root))

            for job in [job for job in jobs if job[0].alone]:
                attempt(job)
            with ThreadPoolExecutor(self.workers) as pool:
                try:
                    list(pool.map(attempt, [job for job in jobs if not job[0].alone]))
                except KeyboardInterrupt:
                    self.deadline = 0.0  # attempts under way clean up behind themselves, no other begins
                    raise
        return list(rows.values())

    def _times(self, case: Case) -> int:
        return max(1, round(case.times * self.times))

    def _attempt(self, case: Case, number: int, row: Row, root: Path) -> None:
        if time.monotonic() > self.deadline:
            with self._lock:
                self.not_begun += 1
            return
        folder = root / f"{case.name}-{number}"
        folder.mkdir()
        attempt = Attempt(folder, root / "cache", random.Random(f"{self.seed}/{case.name}/{number}"))
        outcome, text = "survived", ""
        try:
            case.run(attempt)
        except SkippedError as error:
            outcome, text = "skipped", str(error)
        except TracebackError as error:
            outcome, text = "traceback", str(error)
        except Exception as error:
            outcome, text = (
                "lost",
                str(error) if isinstance(error, LostError) else f"{type(error).__name__}: {error}",
            )
        finally:
            attempt.close()
        with self._lock:
            row.kills += attempt.kills
            self._note(row, number, outcome, text.replace(str(folder), "FOLDER").replace(str(root), "ROOT"))

    def _note(self, row: Row, number: int, outcome: str, text: str) -> None:
        if outcome == "skipped":
            row.skipped = text
            return
        row.tried += 1
        setattr(row, outcome, getattr(row, outcome) + 1)
        if outcome != "survived":
            row.failures.append(f"attempt {number}: {outcome}: {text}")
            print(f"{row.case}, attempt {number}: {outcome}: {text}", file=sys.stderr, flush=True)
