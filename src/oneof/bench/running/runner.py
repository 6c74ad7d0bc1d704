"""The runner: brings a plan's runs to an engine and their records to the ledger, as the only writer."""

import json
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any, TypedDict, cast

from oneof.bench.ledger import Ledger, read
from oneof.bench.plan import Plan, Run
from oneof.bench.record import Record, damage_of, problem_of, reason_of
from oneof.bench.running.deadline import Deadline
from oneof.bench.running.engines import Engine, Task
from oneof.bench.running.order import execution_order, in_time
from oneof.bench.running.problem import make_problem, needs_preparing
from oneof.io.files import replacing
from oneof.io.schema import json_misfit
from oneof.train.runtime import resolve_device

_POLL = 0.5  # seconds between updates of what is shown
_LAST = 100  # results that are remembered


@dataclass
class PlanProgress:
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


class LiveProgress(TypedDict):
    """What ``oneof status`` reads of the progress that a runner wrote; the rest is in the ledger."""

    running: list[str]
    unavailable: dict[str, str]
    last: list[str]
    seconds_left: float | None
    doing: str


Show = Callable[[PlanProgress], None]


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
        self.deadline = None if budget is None else Deadline(budget)
        self.checkpoints = checkpoint_folder(ledger)

    def run(self) -> PlanProgress:
        """Execute until all is done, or the budget is spent."""
        with Ledger(self.path, damage_of) as ledger, self.engine:
            runs = {run.key: run for run in self.plan.runs()}
            done = {key: record for key, record in ledger.records.items() if record["status"] == "done"}
            progress = PlanProgress(total=len(runs), done=len(runs.keys() & done.keys()))
            clock = Clock(done.values(), self.engine.capacity)
            pending = self._prepare([run for key, run in runs.items() if key not in done], progress)
            groups = self._groups(list(runs.values()), {run.key for run in pending}, ledger)
            self.checkpoints.mkdir(exist_ok=True)
            under_way: dict[int, list[Run]] = {}  # by the identity of the task
            while True:
                while groups and len(under_way) < self.engine.capacity and not self._over():
                    group = self._next(groups, clock)
                    task = self._task(group)
                    self.engine.submit(task)
                    under_way[id(task)] = group
                progress.running = [run.name for group in under_way.values() for run in group]
                progress.seconds_left = clock.left(chain(*groups, *under_way.values()))
                self._show(progress)
                if not under_way:
                    break
                for ended in self.engine.collect(_POLL):
                    group = under_way.pop(id(ended.task))
                    if not ended.records:
                        groups = [[run] for run in group] + groups
                    for run, record in zip(group, ended.records, strict=bool(ended.records)):
                        if record is None:  # it was paused and stays open, its checkpoint in place
                            continue
                        if run.key not in done:
                            self._settle(run, record, ledger, progress, clock)
                        if ledger.records[run.key]["status"] == "done":
                            self._checkpoint(run.key).unlink(missing_ok=True)
            self._clean_up()
        return progress  # the ledger was last looked at after its engine had ended

    def _prepare(self, runs: list[Run], progress: PlanProgress) -> list[Run]:
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
                if first or needs_preparing(run.spec):
                    self._show(progress)
                    make_problem(run.spec, self.root, self.device, run.sets)
                ready[problem] = None
            except (OSError, ValueError, ImportError) as error:
                ready[problem] = progress.unavailable[run.dataset] = str(error)
        progress.doing = ""
        return [run for run in runs if run.dataset not in progress.unavailable]

    def _groups(self, runs: list[Run], pending: set[str], ledger: Ledger) -> list[list[Run]]:
        """Return the groups to execute, the most useful first."""
        begun = {key for key in pending if self._checkpoint(key).exists()}
        on_gpu = resolve_device(self.device).type == "cuda"
        return execution_order(runs, pending, pending & ledger.records.keys(), begun, on_gpu)

    def _next(self, groups: list[list[Run]], clock: "Clock") -> list[Run]:
        """Take the first group out of the list, or as much of it as will end within the budget."""
        group = groups.pop(0)
        if self.deadline is not None:
            begun = in_time(group, clock.seconds, self.deadline.left())
            if group[begun:]:
                groups.insert(0, group[begun:])
            group = group[:begun]
        return group

    def _task(self, group: list[Run]) -> Task:
        checkpoints = tuple(self._checkpoint(run.key) for run in group)
        specs, sets = tuple(run.spec for run in group), tuple(run.sets for run in group)
        return Task(specs, self.device, self.root, checkpoints, self.deadline, sets)

    def _checkpoint(self, key: str) -> Path:
        return self.checkpoints / f"{key}.safetensors"

    def _settle(self, run: Run, record: Record, ledger: Ledger, progress: PlanProgress, clock: "Clock") -> None:
        """Write down what became of a run."""
        ledger.append(record)
        if record["status"] == "done":
            progress.done += 1
            clock.add(record)
            accuracy = record["results"]["validation_accuracy"]["test_accuracy"]
            progress.last = [*progress.last, f"{run.name}: {100 * accuracy:.2f} %"][-_LAST:]
        else:
            progress.failed[run.name] = reason_of(record)

    def _over(self) -> bool:
        return self.deadline is not None and self.deadline.has_passed()

    def _show(self, progress: PlanProgress) -> None:
        self.show(progress)
        if self.checkpoints.is_dir():  # for `oneof status` in another terminal
            with replacing(self.checkpoints / "progress.json") as part:
                part.write_text(json.dumps(asdict(progress)), encoding="utf-8")

    def _clean_up(self) -> None:
        (self.checkpoints / "progress.json").unlink(missing_ok=True)
        if not any(self.checkpoints.iterdir()):
            self.checkpoints.rmdir()


class Clock:
    """Guesses how long runs will take from those that are done."""

    def __init__(self, records: Iterable[Mapping[str, Any]], capacity: int) -> None:
        self.capacity = capacity
        self._seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
        for record in records:
            self.add(record)

    def add(self, record: Mapping[str, Any]) -> None:
        """Learn from a run that is done."""
        self._seconds[_kind(record["spec"])].append(record["seconds"])

    def seconds(self, run: Run) -> float | None:
        """Return the seconds that a run will take, None when nothing is known."""
        if not self._seconds:
            return None
        known = self._seconds.get(_kind(run.spec))
        return fmean(known) if known else fmean(fmean(values) for values in self._seconds.values())

    def left(self, runs: Iterable[Run]) -> float | None:
        """Return the seconds that these runs will take, None when nothing is known."""
        each = [self.seconds(run) for run in runs]
        return None if not self._seconds else sum(value or 0.0 for value in each) / self.capacity


def progress_of(plan: Plan, ledger: Path) -> PlanProgress:
    """Return where a plan stands, from its ledger and from what its runner last wrote."""
    runs = {run.key: run for run in plan.runs()}
    records = read([ledger], damage_of, missing_ok=True).records
    mine = {key: records[key] for key in runs if key in records}
    failed = {runs[key].name: reason_of(record) for key, record in mine.items() if record["status"] == "failed"}
    progress = PlanProgress(total=len(runs), done=len(mine) - len(failed), failed=failed)
    live = _live_progress(checkpoint_folder(ledger) / "progress.json")
    for name, value in (live or {}).items():
        setattr(progress, name, value)
    return progress


def _live_progress(file: Path) -> LiveProgress | None:
    """Read what a runner last wrote; a damaged file is ignored with a warning."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:  # nothing runs
        return None
    except (ValueError, RecursionError):
        wrong: str | None = "it is no JSON"
    else:
        wrong = json_misfit(content, LiveProgress)
    if wrong is not None:
        warnings.warn(f"{str(file)!r} is damaged ({wrong}) and is ignored; delete it", stacklevel=3)
        return None
    return cast(LiveProgress, {name: content[name] for name in LiveProgress.__required_keys__})


def _kind(spec: Any) -> tuple[str, str]:
    return spec["dataset"], spec["method"]
