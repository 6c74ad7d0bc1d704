"""How long a plan will take: from its ledger where runs are done, else from timed steps on random rows."""

import time
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from oneof.bench.ledger import read
from oneof.bench.plan import Plan, Run
from oneof.bench.record import damage_of
from oneof.bench.running.board import duration
from oneof.data.catalogue import DATASETS
from oneof.estimator.checks import check_warm_up
from oneof.methods import METHODS
from oneof.train import train

_STEPS = 3  # that are timed, after one epoch of as many that warms up


def estimate(plan: Plan, ledger: Path, workers: int, device: str) -> Iterator[str]:
    """Say line by line how many runs there are, how many are left, and how long these will take."""
    runs = plan.runs()
    records = read([ledger], damage_of, missing_ok=True).records
    warn_of_settings(runs)
    left = [run for run in runs if records.get(run.key, {}).get("status") != "done"]
    yield f"{len(runs)} runs, {len(left)} left"
    counts = Counter((run.dataset, run.label) for run in left)
    total = 0.0
    for dataset, label in counts:
        alike = [run for run in runs if (run.dataset, run.label) == (dataset, label)]
        known = [records[run.key]["seconds"] for run in alike if records.get(run.key, {}).get("status") == "done"]
        seconds = fmean(known) if known else time_run(alike[0].spec, device)
        total += seconds * counts[dataset, label]
        source = f"mean of {len(known)} done" if known else f"{_STEPS} timed steps, evaluation not included"
        yield f"{label} on {dataset}: {counts[dataset, label]} runs of {duration(seconds)} ({source})"
    yield f"about {total / 3600 / workers:.2f} hours with {workers} at a time; annotators not included"


def warn_of_settings(runs: Iterable[Run]) -> None:
    """Warn once of each method and its settings that a fit would warn of."""
    models = (METHODS[run.spec["method"].lower()](**run.spec["settings"]) for run in runs)
    for model in {(type(model), model.epochs, getattr(model, "warm_up", 0)): model for model in models}.values():
        check_warm_up(model)


def time_run(spec: Mapping[str, Any], device: str) -> float:
    """Guess the seconds of a run from a few steps on random rows of the right shape."""
    dataset, settings = DATASETS[spec["dataset"]], dict(spec["settings"])
    share = 1 - spec["split"]["validation"] - (0 if len(dataset.rows) == 2 else spec["split"]["test"])
    rows = round(share * dataset.rows[0])
    size = min(settings["batch_size"], rows)
    rng, sample = np.random.default_rng(0), size * _STEPS
    x = rng.integers(0, 256, size=(sample, *dataset.shape)).astype(np.uint8 if len(dataset.shape) > 1 else float)
    candidates = rng.random((sample, len(dataset.classes))) < 0.3
    candidates[np.arange(sample), np.arange(sample) % len(dataset.classes)] = True
    ends: list[float] = []
    timed = {**settings, "epochs": 2, "patience": None}
    if "warm_up" in settings:
        timed["warm_up"] = min(settings["warm_up"], 1)  # the second epoch, which is timed, comes after it
    model = METHODS[spec["method"].lower()](**timed, device=device)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # these rows and epochs are no user's
        train(model.prepare(x, candidates, on_epoch=lambda epoch: ends.append(time.monotonic())))
    steps: int = rows // size * settings["epochs"]
    return (ends[1] - ends[0]) / _STEPS * steps
