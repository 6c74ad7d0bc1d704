"""How long a plan will take: from its ledger where runs are done, else from timed steps on random rows."""

import time
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oneof.bench.ledger import read
from oneof.bench.plan import Plan, Run, run_class
from oneof.bench.record import damage_of
from oneof.bench.running.board import duration
from oneof.data.catalogue import Dataset
from oneof.em import EMClassifier
from oneof.estimator import PartialLabelClassifier
from oneof.estimator.checks import check_warm_up
from oneof.train import train

_STEPS = 3  # that are timed, after one epoch of as many that warms up


class Whole(NamedTuple):
    """How many runs a plan has."""

    runs: int
    left: int

    def __str__(self) -> str:
        return f"{self.runs} runs, {self.left} left"


class Part(NamedTuple):
    """How long the runs of one method on one data set will take."""

    method: str
    dataset: str
    runs: int
    seconds: float  # of one run
    source: str

    def __str__(self) -> str:
        return f"{self.method} on {self.dataset}: {self.runs} runs of {duration(self.seconds)} ({self.source})"


class Total(NamedTuple):
    """How long all runs that are left will take."""

    hours: float
    workers: int

    def __str__(self) -> str:
        return f"about {self.hours:.2f} hours with {self.workers} at a time; annotators not included"


def as_facts(said: Iterable[Whole | Part | Total]) -> dict[str, Any]:
    """Put what `estimate` said together."""
    facts: dict[str, Any] = {"parts": []}
    for each in said:
        if isinstance(each, Part):
            facts["parts"].append(each._asdict())
        else:
            facts |= each._asdict()
    return facts


def estimate(plan: Plan, ledger: Path, workers: int, device: str) -> Iterator[Whole | Part | Total]:
    """Say one by one how many runs there are, how many are left, and how long these will take."""
    runs = plan.runs()
    records = read([ledger], damage_of, missing_ok=True).records
    warn_of_settings(runs)
    left = [run for run in runs if records.get(run.key, {}).get("status") != "done"]
    yield Whole(len(runs), len(left))
    counts = Counter((run.dataset, run.label) for run in left)
    total = 0.0
    for dataset, label in counts:
        alike = [run for run in runs if (run.dataset, run.label) == (dataset, label)]
        known = [records[run.key]["seconds"] for run in alike if records.get(run.key, {}).get("status") == "done"]
        at_once = issubclass(run_class(alike[0].spec), EMClassifier)
        guess = time_fit if at_once else time_run
        seconds = fmean(known) if known else guess(alike[0], device)
        total += seconds * counts[dataset, label]
        timed = "one timed fit" if at_once else f"{_STEPS} timed steps, evaluation not included"
        source = f"mean of {len(known)} done" if known else timed
        yield Part(label, dataset, counts[dataset, label], seconds, source)
    yield Total(total / 3600 / workers, workers)


def warn_of_settings(runs: Iterable[Run]) -> None:
    """Warn once of each method and its settings that a fit would warn of."""
    models = (run_class(run.spec)(**run.spec["settings"]) for run in runs)
    trained = (model for model in models if isinstance(model, PartialLabelClassifier))
    for model in {(type(model), model.epochs, getattr(model, "warm_up", 0)): model for model in trained}.values():
        check_warm_up(model)


def time_run(run: Run, device: str) -> float:
    """Guess the seconds of a training from a few steps on random rows of the right shape."""
    settings, rows = dict(run.spec["settings"]), _training_rows(run)
    size = _batch_size(run, rows)
    x, candidates = _random_rows(run.facts, size * _STEPS)
    ends: list[float] = []
    timed = {**settings, "epochs": 2, "patience": None, "batch_size": size}
    if "warm_up" in settings:
        timed["warm_up"] = min(settings["warm_up"], 1)  # the second epoch, which is timed, comes after it
    model: Any = run_class(run.spec)(**timed, device=device)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # these rows and epochs are no user's
        train(model.prepare(x, candidates, on_epoch=lambda epoch: ends.append(time.monotonic())))
    steps: int = rows // size * settings["epochs"]
    return (ends[1] - ends[0]) / _STEPS * steps


def _batch_size(run: Run, rows: int) -> int:
    """Return the rows in a step of a run, which may depend on the network and on the number of rows."""
    model: Any = run_class(run.spec)(**run.spec["settings"])
    shape = run.facts.shape
    model.input_shape_ = shape if len(shape) > 1 else None
    size: int = model.batch_of(rows)
    return size


def time_fit(run: Run, _: str) -> float:
    """Guess the seconds of an EMClassifier from one round on random rows, as many as a fit of a fold has."""
    settings = run.spec["settings"]
    x, candidates = _random_rows(run.facts, _training_rows(run))
    model = EMClassifier(**{**settings, "rounds": 1, "folds": 2}, random_state=0)
    begin = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(x, candidates)
    # That were two fits of half the rows, and one of all.
    fits: int = settings["rounds"] * (settings["folds"] - 1) + 1
    return (time.monotonic() - begin) / 2 * fits


def _training_rows(run: Run) -> int:
    dataset, split = run.facts, run.spec["split"]
    share: float = 1 - split["validation"] - (0 if len(dataset.rows) == 2 else split["test"])
    return round(share * dataset.rows[0])


def _random_rows(dataset: Dataset, rows: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return random rows of the shape of a data set, and candidate sets."""
    rng = np.random.default_rng(0)
    kind = np.uint8 if len(dataset.shape) > 1 else float
    x = rng.integers(0, 256, size=(rows, *dataset.shape)).astype(kind)
    candidates = rng.random((rows, len(dataset.classes))) < 0.3
    candidates[np.arange(rows), np.arange(rows) % len(dataset.classes)] = True
    return x, candidates
