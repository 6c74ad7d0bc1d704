"""Engines: where runs are executed. An engine takes tasks and gives records back; it never writes the ledger."""

import os
import sys
import threading
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from json import dumps, loads
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from oneof.bench.record import Record, Spec, problem_of
from oneof.bench.running.deadline import Deadline
from oneof.bench.running.execute import Job, died, execute, failure, lacks_memory
from oneof.bench.running.problem import Problem, make_problem
from oneof.data.own import OwnData
from oneof.pages.frame import one_line

_PROBLEMS_KEPT = 2  # by a worker, so that runs on the same rows share them


@dataclass(frozen=True)
class Task:
    """Runs to execute together, where to keep their checkpoints, and when to pause."""

    specs: tuple[Spec, ...]
    device: str
    root: str | None
    checkpoints: tuple[Path | None, ...]
    deadline: Deadline | None
    sets: tuple[Path | OwnData | None, ...] | None = None  # files of candidate sets or rows; None: no run has one

    def problems_of(self) -> list[tuple[Spec, Path | OwnData | None]]:
        """Return the spec of each run with the file of its candidate sets."""
        return list(zip(self.specs, self.sets or [None] * len(self.specs), strict=True))


@dataclass(frozen=True)
class TaskResult:
    """What became of a task: the record of each run, None where it was paused; no records: try them one by one."""

    task: Task
    records: list[Record | None]


def lost(task: Task, reason: str) -> TaskResult:
    """Return the result of a task whose process is gone; of several runs each is to be tried alone."""
    return TaskResult(task, [died(task.specs[0], reason, task.device)] if len(task.specs) == 1 else [])


class Engine(Protocol):
    """So many tasks at once (``capacity``), each submitted once; ``collect`` waits for some to end."""

    @property
    def capacity(self) -> int:
        """How many tasks may be under way."""

    def submit(self, task: Task) -> None:
        """Begin a task; at most ``capacity`` may be under way."""

    def collect(self, timeout: float) -> list[TaskResult]:
        """Return the tasks that ended, after waiting for at most so many seconds."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class LocalEngine:
    """Processes on this machine, each with one task at a time. One that dies is replaced; its run has failed."""

    def __init__(self, workers: int) -> None:
        self.capacity = workers
        self._context = get_context("spawn")  # a fork of a process with threads may hang
        self._idle: list[_Worker] = []
        self._busy: list[_Worker] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self._busy + self._idle:
            worker.process.kill()
        for worker in self._busy + self._idle:
            worker.process.join()
        self._busy, self._idle = [], []

    def submit(self, task: Task) -> None:
        """Hand a task to an idle process, or to a new one."""
        worker = self._idle.pop() if self._idle else _Worker(self._context)
        worker.task = task
        try:
            worker.pipe.send(task)
        except OSError:  # it died while idle
            worker = _Worker(self._context)
            worker.task = task
            worker.pipe.send(task)
        self._busy.append(worker)

    def collect(self, timeout: float) -> list[TaskResult]:
        """Return the tasks that ended, after waiting for at most so many seconds."""
        ready = wait([worker.pipe for worker in self._busy], timeout)
        return [self._finish(worker) for worker in [w for w in self._busy if w.pipe in ready]]

    def _finish(self, worker: "_Worker") -> TaskResult:
        self._busy.remove(worker)
        assert worker.task is not None
        try:
            records = worker.pipe.recv()
        except (EOFError, OSError):
            worker.process.join()
            return lost(worker.task, f"its process ended with exit code {worker.process.exitcode}")
        self._idle.append(worker)
        return TaskResult(worker.task, records)


class _Worker:
    """A process that executes the tasks it receives."""

    def __init__(self, context: Any) -> None:
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs, os.getpid()), daemon=True)
        self.process.start()
        theirs.close()  # so that the end of the process is the end of the pipe
        self.task: Task | None = None


def _work(pipe: Connection, parent: int) -> None:
    """Execute tasks until the pipe closes or the parent is gone."""
    threading.Thread(target=_follow, args=(parent,), daemon=True).start()
    warnings.showwarning = _show_warning
    while True:
        try:
            task = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send(execute_task(task))
        except BaseException as error:  # a library that panics for lack of memory raises no Exception
            if isinstance(error, Exception) and not lacks_memory(error):
                raise
            os._exit(1)  # not even a record fits into the memory: the runner writes one


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Put a warning on one line, since the terminal is shared with the board and other processes."""
    print(one_line(f"warning: {message}"), file=sys.stderr, flush=True)


def _follow(parent: int) -> None:
    """End this process when its parent was killed: nobody would read its results."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def execute_task(task: Task, problems: Sequence[Problem] | None = None) -> list[Record | None]:
    """Make the problems of a task, unless they are at hand, and execute it."""
    if problems is None:
        try:
            problems = [
                _problem(problem_text(spec), task.root, task.device, sets) for spec, sets in task.problems_of()
            ]
        except Exception as error:
            return [failure(spec, error, task.device) for spec in task.specs]
    jobs = [Job(*each) for each in zip(task.specs, problems, task.checkpoints, strict=True)]
    return execute(jobs, task.device, task.deadline)


def problem_text(spec: Mapping[str, Any]) -> str:
    """Return what tells the problem of a run from others."""
    known = {"labels": spec["labels"]} if spec["labels"] == "likelihoods" else {}  # it has them beside its sets
    return dumps(problem_of(spec) | known, sort_keys=True)


@lru_cache(maxsize=_PROBLEMS_KEPT)
def _problem(text: str, root: str | None, device: str, sets: Path | OwnData | None) -> Problem:
    return make_problem(loads(text), root, device, sets)
