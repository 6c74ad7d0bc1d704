"""What each part of a short training gives: ``python benchmarks/short_training.py``, on the CPU, in minutes.

IDGP and CC with one hidden layer on 10,000 rows of Fashion-MNIST as tables, candidate sets of table1-mlp.toml, 10
epochs, by schedule and average of weights, and 40 epochs with a cosine beside them. For each, the learning rate
of three with the best mean counts. Accuracies are those of the 6,000 validation rows at the last epoch, means over
three seeds; test rows are not looked at.
"""

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np

from oneof import METHODS, fit_together
from oneof.bench.plan_file import read_plan
from oneof.bench.running.execute import commit
from oneof.bench.running.problem import Problem, make_problem
from oneof.train import TrainingDiverged

PLAN = Path(__file__).parent / "table1-mlp.toml"
ROWS, SEEDS, RATES = 10_000, (0, 1, 2), (0.01, 0.03, 0.1)
SHARED = {"network": "mlp", "batch_size": 100, "weight_decay": 1e-4, "device": "cpu", "threads": 1}
TRAININGS: dict[str, dict[str, Any]] = {
    "constant": {"schedule": "constant", "average": 0.0},
    "constant, average": {"schedule": "constant"},
    "cosine": {"schedule": "cosine", "average": 0.0},
    "cosine, average": {"schedule": "cosine"},
    "triangular": {"average": 0.0},
    "triangular, average (fast)": {},
    "40 epochs, cosine": {"epochs": 40, "schedule": "cosine", "warm_up": 10, "average": 0.0},
}


def problems() -> dict[int, Problem]:
    """Return rows and candidate sets of each seed."""
    runs = {run.trial: run for run in read_plan(PLAN).runs() if run.dataset == "fashion-mnist"}
    return {seed: make_problem(runs[seed].spec, None, "cpu") for seed in SEEDS}


def accuracies(method: str, settings: dict[str, Any], rows: dict[int, Problem]) -> dict[float, list[float]]:
    """Return the validation accuracies of all seeds, by learning rate."""
    cls = METHODS[method]
    own = {name: value for name, value in settings.items() if name != "warm_up" or hasattr(cls(), "warm_up")}
    points = [(rate, seed) for rate in RATES for seed in SEEDS]
    models = [cls.fast(**SHARED | {"epochs": 10} | own, lr=rate, random_state=seed) for rate, seed in points]
    given = [
        {"X": tables(rows[seed].train.x[:ROWS]), "y": rows[seed].train.candidates[:ROWS]} for _, seed in points
    ]
    with suppress(TrainingDiverged):  # the others are fitted all the same
        fit_together(models, given)
    found: dict[float, list[float]] = {rate: [] for rate in RATES}
    for (rate, seed), model in zip(points, models, strict=True):
        held_out, fitted = rows[seed].validation, hasattr(model, "transduction_")
        found[rate].append(float((model.predict(tables(held_out.x)) == held_out.y).mean()) if fitted else 0.0)
    return found


def tables(x: np.ndarray) -> np.ndarray:
    """Return images as rows of numbers."""
    return x.reshape(len(x), -1).astype(np.float32)


def lines() -> Iterator[str]:
    """Give the table, line by line as it is measured."""
    rows = problems()
    yield "| training | IDGP | lr | CC | lr |\n| --- | --- | --- | --- | --- |"
    for name, settings in TRAININGS.items():
        cells = [name]
        for method in ("idgp", "cc"):
            found = accuracies(method, settings, rows)
            rate = max(found, key=lambda rate: fmean(found[rate]))
            cells += [f"{100 * fmean(found[rate]):.2f} ± {100 * stdev(found[rate]):.2f}", f"{rate:g}"]
        yield f"| {' | '.join(cells)} |"


def main() -> None:
    """Print the table."""
    begun = time.process_time()
    for line in lines():
        print(line, flush=True)
    print(f"\nValidation accuracy, %; commit {commit()}, {time.process_time() - begun:.0f} CPU seconds.")


if __name__ == "__main__":
    main()
