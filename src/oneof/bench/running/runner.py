"""The runner: brings a plan's runs to an engine and their records to the ledger, as the only writer."""

import json
import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any

from oneof.bench.ledger import Ledger, read
from oneof.bench.plan import Plan, Run
from oneof.bench.running.engines import Engine, Record, Task
from oneof.bench.running.problem import make_problem, needs_training, problem_of
from oneof.data.catalogue import DATASETS
from oneof.io.files import replacing
from oneof.methods import METHODS
from oneof.train.parallel.grouping import can_stack
from oneof.train.runtime import resolve_device

_GLANCE = 0.5  # seconds between looks at the clock
_LAST = 100  # results that are remembered
_STACK = 32  # runs that are trained at once: linear and mlp networks on tables
_STACK_BYTES = 2**30
_CONVOY = 12  # others, on a GPU


@dataclass
class Progress:
    """Where a plan stands."""

    total: int
    done: int = 0
    running: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)  # run -> what went wrong
    unavailable: dict[str, str] = field(default_factory=dict)  # data set -> what is missing
    last: list[str] = field(default_factory=list)  # the latest results
    seconds_left: float | None = None
    doing: str = ""  # what keeps runs from beginning

    @property
    def left(self) -> int:
        """Runs that are neither done nor failed."""
        return self.total - self.done - len(self.failed)


Show = Callable[[Progress], None]


def name_of(run: Run) -> str:
    """Name a run for people."""
    point = ", ".join(f"{name} {value}" for name, value in run.point.items())
    return f"{run.label} on {run.dataset}, trial {run.trial}" + (f" ({point})" if point else "")


def checkpoint_folder(ledger: Path) -> Path:
    """Return the folder beside a ledger in which runs under way keep their checkpoints."""
    return ledger.with_suffix(".checkpoints")


class Runner:
    """Executes the runs of a plan that its ledger does not have yet.

    Parameters
    ----------
    plan : Plan
        What to do.
    ledger : Path
        Finished runs in it are skipped, failed ones tried again.
    engine : Engine
        Where runs are executed.
    device, root : str
        As for every classifier; the folder of the data sets.
    budget : float, optional
        Seconds after which runs write their checkpoints and stop; the next call continues them.
    show : callable
        Is given the progress, twice a second and whenever it changes.
    """

    def __init__(
        self,
        plan: Plan,
        ledger: Path,
        engine: Engine,
        *,
        device: str = "auto",
        root: str | None = None,
        budget: float | None = None,
        show: Show = lambda progress: None,
    ) -> None:
        self.plan, self.path, self.engine = plan, ledger, engine
        self.device, self.root, self.show = device, root, show
        self.deadline = None if budget is None else time.time() + budget
        self.checkpoints = checkpoint_folder(ledger)

    def run(self) -> Progress:
        """Execute until all is done, or the budget is spent."""
        with Ledger(self.path) as ledger, self.engine:
            runs = {run.key: run for run in self.plan.runs()}
            done = {key: record for key, record in ledger.records.items() if record["status"] == "done"}
            progress = Progress(total=len(runs), done=len(runs.keys() & done.keys()))
            clock = Clock(done.values(), self.engine.capacity)
            pending = self._prepare([run for key, run in runs.items() if key not in done], progress)
            groups = self._groups(list(runs.values()), {run.key for run in pending}, ledger)
            self.checkpoints.mkdir(exist_ok=True)
            under_way: dict[int, list[Run]] = {}  # by the identity of the task
            while True:
                while groups and len(under_way) < self.engine.capacity and not self._over():
                    task = self._task(groups[0])
                    self.engine.submit(task)
                    under_way[id(task)] = groups.pop(0)
                progress.running = [name_of(run) for group in under_way.values() for run in group]
                progress.seconds_left = clock.left(chain(*groups, *under_way.values()))
                self._show(progress)
                if not under_way:
                    break
                for outcome in self.engine.collect(_GLANCE):
                    group = under_way.pop(id(outcome.task))
                    if not outcome.records:
                        groups = [[run] for run in group] + groups
                    for run, record in zip(group, outcome.records, strict=bool(outcome.records)):
                        if run.key not in done:
                            self._settle(run, record, ledger, progress, clock)
        self._clean_up()
        return progress

    def _prepare(self, runs: list[Run], progress: Progress) -> list[Run]:
        """Train the annotators that runs need, once, and set runs apart whose data cannot be had."""
        ready: dict[str, str | None] = {}  # problem -> what is wrong with it
        for run in runs:
            problem = json.dumps(problem_of(run.spec), sort_keys=True)
            if problem in ready or self._over():
                continue
            # Reading the files is enough to know that they are there; the workers read them again.
            first = all(run.dataset not in other for other in ready)
            progress.doing = f"preparing {run.dataset}"
            try:
                if first or needs_training(run.spec):
                    self._show(progress)
                    make_problem(run.spec, self.root, self.device)
                ready[problem] = None
            except (OSError, ValueError, ImportError) as error:
                ready[problem] = progress.unavailable[run.dataset] = str(error)
        progress.doing = ""
        return [run for run in runs if run.dataset not in progress.unavailable]

    def _groups(self, runs: list[Run], pending: set[str], ledger: Ledger) -> list[list[Run]]:
        """Return the groups to execute.

        The last bits of a stack depend on its company. So on a CPU a group that was cut off is executed again as a
        whole, and its numbers are those of an undisturbed run; runs that failed are tried again alone.
        """
        groups, on_gpu = [], resolve_device(self.device).type == "cuda"
        for group in together(runs, on_gpu):
            left = [run for run in group if run.key in pending]
            if left and all(run.key in ledger.records for run in left):
                groups += [[run] for run in left]
            elif left:
                groups.append(left if on_gpu else group)
        return groups

    def _task(self, group: list[Run]) -> Task:
        checkpoints = tuple(self._checkpoint(run) for run in group)
        return Task(tuple(run.spec for run in group), self.device, self.root, checkpoints, self.deadline)

    def _checkpoint(self, run: Run) -> Path:
        return self.checkpoints / f"{run.key}.safetensors"

    def _settle(self, run: Run, record: Record | None, ledger: Ledger, progress: Progress, clock: "Clock") -> None:
        """Write down what became of a run; one that was paused stays open, its checkpoint in place."""
        if record is None:
            return
        ledger.append(record)
        if record["status"] == "done":
            progress.done += 1
            clock.add(record)
            accuracy = record["results"]["validation_accuracy"]["test_accuracy"]
            progress.last = [*progress.last, f"{name_of(run)}: {100 * accuracy:.2f} %"][-_LAST:]
            self._checkpoint(run).unlink(missing_ok=True)
        else:
            progress.failed[name_of(run)] = record["error"].strip().splitlines()[-1]

    def _over(self) -> bool:
        return self.deadline is not None and time.time() >= self.deadline

    def _show(self, progress: Progress) -> None:
        self.show(progress)
        if self.checkpoints.is_dir():  # for `oneof status` in another terminal
            with replacing(self.checkpoints / "progress.json") as part:
                part.write_text(json.dumps(asdict(progress)), encoding="utf-8")

    def _clean_up(self) -> None:
        (self.checkpoints / "progress.json").unlink(missing_ok=True)
        if not any(self.checkpoints.iterdir()):
            self.checkpoints.rmdir()


def together(runs: list[Run], on_gpu: bool = False) -> list[list[Run]]:
    """Group runs that the engine can train at once."""
    groups: dict[tuple[str, int], list[Run]] = {}  # by what they have in common, and how many may go together
    for run in runs:
        method = METHODS[run.spec["method"].lower()](**run.spec["settings"])
        stackable = can_stack(method.network, DATASETS[run.dataset].shape)
        most = _stack_size(run.dataset) if stackable else _CONVOY if on_gpu else 1
        alike = method.stack_settings() if stackable else method.network  # trials side by side need not be alike
        groups.setdefault((json.dumps([run.dataset, run.spec["method"], alike]), most), []).append(run)
    return [part for (_, most), group in groups.items() for part in _alike_parts(group, most)]


def _alike_parts(group: list[Run], most: int) -> list[list[Run]]:
    """Split a group into parts of about the same size, so that workers end together."""
    size = math.ceil(len(group) / math.ceil(len(group) / most))
    return [group[i : i + size] for i in range(0, len(group), size)]


def _stack_size(dataset: str) -> int:
    """Return how many trials on a table fit a stack: rows and about ten tables of labels for each, in floats."""
    facts = DATASETS[dataset]
    bytes_a_trial = 4 * facts.rows[0] * (facts.shape[0] + 10 * len(facts.classes))
    return max(1, min(_STACK, _STACK_BYTES // bytes_a_trial))


class Clock:
    """Guesses how long runs will take from those that are done."""

    def __init__(self, records: Iterable[dict[str, Any]], capacity: int) -> None:
        self.capacity = capacity
        self._seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
        for record in records:
            self.add(record)

    def add(self, record: dict[str, Any]) -> None:
        """Learn from a run that is done."""
        self._seconds[_kind(record["spec"])].append(record["seconds"])

    def left(self, runs: Iterable[Run]) -> float | None:
        """Return the seconds that these runs will take, None when nothing is known."""
        if not self._seconds:
            return None
        typical = fmean(fmean(values) for values in self._seconds.values())
        known = {kind: fmean(values) for kind, values in self._seconds.items()}
        return sum(known.get(_kind(run.spec), typical) for run in runs) / self.capacity


def progress_of(plan: Plan, ledger: Path) -> Progress:
    """Return where a plan stands, from its ledger and from what its runner last said."""
    runs = {run.key: run for run in plan.runs()}
    records = read([ledger]).records if ledger.is_file() else {}
    mine = {key: records[key] for key in runs if key in records}
    failed = {
        name_of(runs[key]): record["error"].strip().splitlines()[-1]
        for key, record in mine.items()
        if record["status"] == "failed"
    }
    progress = Progress(total=len(runs), done=len(mine) - len(failed), failed=failed)
    said = checkpoint_folder(ledger) / "progress.json"
    if said.is_file():
        live = json.loads(said.read_text(encoding="utf-8"))
        for name in ("running", "unavailable", "last", "seconds_left", "doing"):
            setattr(progress, name, live[name])
    return progress


def _kind(spec: Any) -> tuple[str, str]:
    return spec["dataset"], spec["method"]
