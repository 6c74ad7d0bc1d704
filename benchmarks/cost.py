"""What a step of every method costs, relative to a step of CC: ``python benchmarks/cost.py``.

Each method is fitted for a few epochs on random rows, on one CPU thread; only the epochs count, and methods with
phases are measured after their warm-up. Time is the processor's, not the clock's. Methods are interleaved, CC is
measured three times in every repeat, and a ratio is the median over repeats of the ratios within a repeat: other
work on the machine then does less harm. Prints Markdown tables and writes benchmarks/results/cost.json. With names
of methods, ``python benchmarks/cost.py papi crosel``, only these are measured beside CC, and added to the file.
"""

import argparse
import json
import platform
import subprocess
import time
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import torch

from oneof import METHODS
from oneof.train import Data, train

RESULTS = Path(__file__).parent / "results" / "cost.json"
BATCH, CLASSES = 100, 10
MAIN_PHASE = {
    "idgp": {"warm_up": 0}, "valen": {"warm_up": 0}, "crosel": {"warm_up": 0}, "pico": {"prototype_start": 0},
    "dirk": {"contrast_start": 0},
}  # fmt: skip


class Problem(NamedTuple):
    """Rows of one shape, the network for them, and how long to measure."""

    name: str
    shape: tuple[int, ...]
    network: str
    epochs: int
    repeats: int


PROBLEMS = [
    Problem("table 1200 x 64, mlp", (1200, 64), "mlp", 8, 9),
    Problem("images 600 x 28 x 28, lenet", (600, 28, 28), "lenet", 1, 4),
]


def entries(chosen: list[str]) -> dict[str, tuple[str, str | None]]:
    """Name what is measured: these methods, and CC once more with views."""
    methods = {name: (name, "plain+jitter+jitter" if METHODS[name].needs_views else None) for name in chosen}
    return {"cc": ("cc", None), "cc, views": ("cc", "plain+jitter+jitter")} | methods


def seconds_per_step(method: str, views: str | None, problem: Problem) -> float:
    """Fit once; return the median over epochs of the CPU time of a step."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=problem.shape).astype(np.float32)
    candidates = rng.random((len(x), CLASSES)) < 0.3
    candidates[np.arange(len(x)), rng.integers(CLASSES, size=len(x))] = True
    model = METHODS[method](
        network=problem.network, epochs=problem.epochs, batch_size=BATCH, lr=0.01, views=views, random_state=0,
        device="cpu", threads=1, **MAIN_PHASE.get(method, {}),
    )  # fmt: skip
    begins: list[float] = []
    ends: list[float] = []
    prepare = model.start_epoch

    def start_epoch(epoch: int, data: Data) -> None:
        prepare(epoch, data)  # not counted: VALEN's search for neighbours comes once in a fit
        begins.append(time.process_time())

    model.start_epoch = start_epoch
    train(model.prepare(x, candidates, on_epoch=lambda epoch: ends.append(time.process_time())))
    return median(end - begin for begin, end in zip(begins, ends, strict=True)) / (len(x) // BATCH)


def measure(problem: Problem, chosen: list[str]) -> dict[str, dict[str, float]]:
    """Return seconds per step and the ratios to CC with one view and with the same views."""
    measured = entries(chosen)
    names = [*measured]
    half = len(names) // 2
    order = ["cc", *names[1:half], "cc", *names[half:], "cc"]
    seconds_per_step("cc", None, problem)  # so that nothing is done for the first time in the first repeat
    times: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(problem.repeats):
        repeat: dict[str, list[float]] = {name: [] for name in names}
        for name in order:
            repeat[name].append(seconds_per_step(*measured[name], problem))
        for name in names:
            times[name].append(median(repeat[name]))

    def ratio(name: str, reference: str) -> float:
        return round(median(a / b for a, b in zip(times[name], times[reference], strict=True)), 2)

    return {
        name: {
            "seconds": round(median(times[name]), 6),
            "ratio": ratio(name, "cc"),
            "ratio_same_views": ratio(name, "cc, views" if views else "cc"),
        }
        for name, (_, views) in measured.items()
    }


def cpu_model() -> str:
    """Name the processor."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    return next((line.split(": ")[1] for line in lines if line.startswith("model name")), platform.processor())


def main() -> None:
    """Measure all, print the table, write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("methods", nargs="*", help="measure only these beside CC, and add them to the file")
    some = parser.parse_args().methods
    chosen = some or [*METHODS]
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    begin = time.perf_counter()
    results = {problem.name: measure(problem, chosen) for problem in PROBLEMS}
    for name, rows in results.items():
        print(f"\n{name}, batch {BATCH}: CC takes {1000 * rows['cc']['seconds']:.2f} ms a step\n")
        print("| method | views | ms a step | times CC | times CC with the same views |")
        print("| --- | --- | --- | --- | --- |")
        for entry, row in rows.items():
            views = 3 if entries(chosen)[entry][1] else 1
            numbers = f"{1000 * row['seconds']:.2f} | {row['ratio']:.2f} | {row['ratio_same_views']:.2f}"
            print(f"| {entry} | {views} | {numbers} |")
    if some:
        record = json.loads(RESULTS.read_text())
        for name, rows in results.items():
            added = {method: {**rows[method], "commit": commit, "cpu": cpu_model()} for method in some}
            record["results"][name] |= added
    else:
        record = whole_record(commit, results)
    RESULTS.write_text(json.dumps(record, indent=2) + "\n")
    print(f"\n{time.perf_counter() - begin:.0f} s in all; written to {RESULTS}")


def whole_record(commit: str, results: dict[str, Any]) -> dict[str, Any]:
    """Return what the file says of a measurement of all methods."""
    return {
        "command": "python benchmarks/cost.py",
        "commit": commit,
        "torch": torch.__version__,
        "cpu": cpu_model(),
        "threads": 1,
        "batch_size": BATCH,
        "repeats": {problem.name: problem.repeats for problem in PROBLEMS},
        "results": results,
    }


if __name__ == "__main__":
    main()
