"""How long an epoch takes: trials on random rows, prepared, trained and judged as the runner of plans does it."""

import gc
import os
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import torch
from cost import MAIN_PHASE

from oneof.bench.plan_file import read_plan
from oneof.bench.running.engines import LocalEngine
from oneof.bench.running.execute import Job, peak_memory, prepare_trial
from oneof.bench.running.problem import Problem
from oneof.bench.running.runner import Runner
from oneof.data import PartialLabels
from oneof.train import Paused, train
from oneof.train.parallel.grouping import train_together
from oneof.train.rows import Scaler

BATCH = 256
# That of the paper, each learning rate with each weight decay.
GRID = [{"lr": lr, "weight_decay": decay} for lr in (1e-2, 1e-3, 1e-4) for decay in (1e-5, 1e-4, 1e-3, 1e-2)]
MB = 1024**2

Figures = dict[str, Any]

_held = 0  # bytes on the GPU that could not be freed before a case


class Shape(NamedTuple):
    """A problem by its size."""

    name: str
    row: tuple[int, ...]
    classes: int
    network: str
    rows: int
    validation: int
    test: int

    def of(self, share: float) -> "Shape":
        """Return the same with a share of the rows."""
        counts = {name: max(2, round(share * getattr(self, name))) for name in ("rows", "validation", "test")}
        return self._replace(**counts)

    @property
    def steps(self) -> int:
        """Steps of an epoch."""
        return max(1, self.rows // BATCH)


@lru_cache(maxsize=2)
def random_problem(shape: Shape) -> Problem:
    """Make rows, candidate sets of about three in ten labels, and true labels."""
    rng = np.random.default_rng(0)

    def draw(count: int) -> PartialLabels:
        size = (count, *shape.row)
        image = len(shape.row) > 1
        x = rng.integers(256, size=size, dtype=np.uint8) if image else rng.standard_normal(size, dtype=np.float32)
        y = rng.integers(shape.classes, size=count)
        candidates = rng.integers(10, size=(count, shape.classes), dtype=np.uint8) < 3
        candidates[np.arange(count), y] = True
        return PartialLabels(x, candidates, y, np.arange(shape.classes), shape.name)

    return Problem(draw(shape.rows), draw(shape.validation), draw(shape.test), {})


def measure(
    shape: Shape,
    method: str,
    device: str,
    trials: int = 1,
    most: int = 2,
    enough: float = 1.5,
    warm: int = 1,
    points: int = 1,
    **settings: Any,
) -> Figures:
    """Train one trial, or several together; return seconds an epoch and trial, judging included.

    The first ``warm`` epochs warm up. The mean is over those that follow: as many as fit into ``enough`` seconds,
    at least one and at most ``most``. Methods with phases are in their main phase. Every seed has ``points`` of a
    grid.
    """
    forget()
    settings = {
        "network": shape.network,
        "epochs": 1000,
        "batch_size": BATCH,
        "patience": None,
    } | settings
    settings |= MAIN_PHASE.get(method, {})
    spec = {"method": method, "labels": "candidates"}
    with _one_scaler(shape):
        own = [{"seed": i // points, "settings": settings | GRID[i % points]} for i in range(trials)]
        jobs = [Job(spec | each, random_problem(shape), None) for each in own]
        prepared = [prepare_trial(job, device, None) for job in jobs]
    first, ends = prepared[0], [_now(device)]
    first.on_epoch = lambda epoch: ends.append(_now(device))
    first.pause = lambda: len(ends) > most + warm or (len(ends) > warm + 1 and ends[-1] - ends[warm] >= enough)
    with suppress(Paused):
        if trials == 1:
            train(first)
        else:
            train_together(prepared)
    epochs = len(ends) - 1 - warm
    at_once = sum(trial.state.epoch > 0 for trial in prepared)  # the others have not begun
    figures = {
        "seconds": (ends[-1] - ends[warm]) / epochs / at_once,
        "epochs": epochs,
        "first_epoch": ends[1] - ends[0],
    }
    return figures | gpu_memory(device)


def measure_apart(*args: Any, **settings: Any) -> Figures:
    """Measure in a process of its own, with the memory that it takes beyond that of a tiny fit."""
    with ProcessPoolExecutor(1, _context()) as pool:
        return pool.submit(_measure_with_memory, *args, **settings).result()


def _measure_with_memory(shape: Shape, *args: Any, **settings: Any) -> Figures:
    measure(shape._replace(classes=2, rows=4, validation=2, test=2), *args, **settings)
    before = _process_memory()
    figures = measure(shape, *args, **settings)
    return figures | {"memory_mb": _process_memory() - before}


def measure_beside(processes: int, *args: Any, **settings: Any) -> Figures:
    """Measure in several processes at the same time, as workers of the runner; the slowest counts."""
    context = _context()
    with ProcessPoolExecutor(processes, context, _meet_at, (context.Barrier(processes),)) as pool:
        parts = [pool.submit(_measure_at_once, *args, **settings) for _ in range(processes)]
        slowest = max((part.result() for part in parts), key=lambda figures: figures["seconds"])
    return slowest | {"seconds": slowest["seconds"] / processes}


def measure_gain(processes: int, shape: Shape, method: str, device: str, trials: int, **settings: Any) -> Figures:
    """Measure `measure_beside` and one trial alone in turns, five times; medians count.

    A shared machine may be twice as fast from one minute to the next, which would decide a ratio of two cases.
    """
    alone, beside = [], []
    for _ in range(5):
        alone.append(measure(shape, method, device, **settings)["seconds"])
        beside.append(measure_beside(processes, shape, method, device, trials, **settings)["seconds"])
    return {"seconds": median(beside), "alone": median(alone)}


def _context() -> Any:
    """Processes that begin with everything imported and nothing computed."""
    context = get_context("forkserver")
    context.set_forkserver_preload(["oneof.bench.running.runner"])
    return context


def _meet_at(barrier: Any) -> None:
    global _barrier
    _barrier = barrier


def _measure_at_once(shape: Shape, *args: Any, **settings: Any) -> Figures:
    random_problem(shape)
    _barrier.wait(timeout=120)
    return measure(shape, *args, **settings)


def carry_out(epochs: int) -> Figures:
    """Run 60 trials of IDGP on Lost, 12 points of a grid and 5 splits, by the runner with two workers."""
    if "ONEOF_DATA" not in os.environ:
        return {"error": "needs the real data: set ONEOF_DATA to their folder"}
    plan = read_plan(Path(__file__).parent / "table2.toml")
    settings = {**plan.settings, "epochs": epochs, "patience": None, "threads": 1}
    plan = replace(plan, datasets=["lost"], methods={"idgp": plan.methods["idgp"]}, settings=settings)
    begun = time.perf_counter()
    with TemporaryDirectory() as folder:
        progress = Runner(plan, Path(folder) / "ledger.jsonl", LocalEngine(2), device="cpu").run()
    seconds = time.perf_counter() - begun
    if progress.done != len(plan.runs()):
        return {"error": [*progress.failed.values(), *progress.unavailable.values()][0]}
    return {"seconds": seconds / epochs / progress.done, "epochs": epochs, "seconds_in_all": seconds}


def forget() -> None:
    """Free what earlier cases have left."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        global _held
        _held = torch.cuda.memory_allocated()


def gpu_memory(device: str) -> Figures:
    """Return the largest memory that tensors took on the GPU since all was forgotten.

    Beyond what could not be freed: scratch memory that cuBLAS keeps for every stream.
    """
    return {"memory_mb": (torch.cuda.max_memory_allocated() - _held) / MB} if device == "cuda" else {}


@contextmanager
def _one_scaler(shape: Shape) -> Iterator[None]:
    """Let all trials share the statistics of their rows: to take them anew would take longer than to measure."""
    fit, made = Scaler.fit, _SCALERS

    def fit_once(*rows: Any) -> Scaler:
        if shape not in made:
            made[shape] = fit(*rows)
        return made[shape]

    with patch.object(Scaler, "fit", fit_once):
        yield


_SCALERS: dict[Shape, Scaler] = {}


def _now(device: str) -> float:
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def _process_memory() -> float:
    """Return the largest resident memory so far, in MB; that of getrusage begins with the parent's."""
    status = Path("/proc/self/status")
    if not status.exists():
        return peak_memory()["process_mb"]
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024
