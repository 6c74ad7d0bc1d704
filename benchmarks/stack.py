"""What many trials at once cost: IDGP on Lost, linear, as in benchmarks/table2.toml, judged after every epoch.

Run ``ONEOF_DATA=... python benchmarks/stack.py --out stack.json``; a few minutes on two cores. Every figure is the
minimum over repeats of the mean over the epochs after the warm-up. Where the load of the machine shows that others
work on it too, the time of the processor says more than that of the clock.
``--full`` also carries out the whole plan, 12 points of the grid x 5 trials x 500 epochs, with the runner and two
workers, from the start of the processes to the last record.
"""

import argparse
import json
import os
import platform
import subprocess
import time
from dataclasses import replace
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import torch

from oneof.bench.engines import LocalEngine
from oneof.bench.execute import Job, _prepare
from oneof.bench.plan import Plan, read_plan
from oneof.bench.problem import Problem, make_problem
from oneof.bench.runner import Runner
from oneof.compute import threads
from oneof.engine import train
from oneof.stack import train_together

TABLE = Path(__file__).parent / "table2.toml"
TRIALS, EPOCHS = 60, 500
WARM_UP = 10


class Case(NamedTuple):
    """What is measured: so many trials at once, with so many threads."""

    form: str
    trials: int
    threads: int


class Cost(NamedTuple):
    """Seconds an epoch: of the clock, and of the processor with all its threads and processes."""

    clock: float
    processor: float


CASES = [
    *(Case("alone", 1, threads) for threads in (1, 2)),
    *(Case("stack", trials, threads) for trials in (5, 12, 30, 60) for threads in (1, 2)),
    Case("two processes", TRIALS, 1),
]


def plan_of(epochs: int, threads: int) -> Plan:
    """Return the runs of IDGP on Lost, none of which stops early."""
    plan = read_plan(TABLE)
    settings = {**plan.settings, "epochs": epochs, "patience": None, "threads": threads, "warm_up": WARM_UP}
    return replace(plan, datasets=["lost"], methods={"idgp": plan.methods["idgp"]}, settings=settings)


@cache
def problem_of(split: int) -> Problem:
    """Load the rows of a split once."""
    spec = next(run.spec for run in plan_of(1, 1).runs() if run.spec["split"]["seed"] == split)
    return make_problem(spec)


def cost_of_stack(size: int, thread_count: int, epochs: int, alone: bool = False, first: int = 0) -> Cost:
    """Train so many trials together once."""
    runs = plan_of(epochs, thread_count).runs()[first : first + size]
    trials = [_prepare(Job(run.spec, problem_of(run.spec["split"]["seed"]), None), "cpu", None) for run in runs]
    ends: list[Cost] = []
    trials[0].on_epoch = lambda epoch: ends.append(Cost(time.perf_counter(), time.process_time()))
    if alone:
        with threads(thread_count):
            train(trials[0])
    else:
        train_together(trials)
    counted = len(ends) - 1 - WARM_UP
    return Cost(*((end - begin) / counted for begin, end in zip(ends[WARM_UP], ends[-1], strict=True)))


def cost_in_processes(processes: int, epochs: int) -> Cost:
    """Part the trials among processes with one thread each; the clock is that of the slowest."""
    context = get_context("spawn")
    barrier, queue = context.Barrier(processes), context.Queue()
    workers = [
        context.Process(target=_work, args=(i, processes, epochs, barrier, queue)) for i in range(processes)
    ]
    for worker in workers:
        worker.start()
    costs = [queue.get() for _ in workers]
    for worker in workers:
        worker.join()
    return Cost(max(cost.clock for cost in costs), sum(cost.processor for cost in costs))


def _work(number: int, processes: int, epochs: int, barrier: Any, queue: Any) -> None:
    size = TRIALS // processes
    cost_of_stack(size, 1, WARM_UP + 3, first=number * size)  # nothing is done for the first time after this
    barrier.wait()
    queue.put(cost_of_stack(size, 1, epochs, first=number * size))


def cost_of(case: Case, epochs: int) -> Cost:
    """Measure a case once."""
    if case.form == "two processes":
        return cost_in_processes(2, epochs)
    return cost_of_stack(case.trials, case.threads, epochs, alone=case.form == "alone")


def measure(epochs: int, repeats: int) -> list[dict[str, Any]]:
    """Return the cost of every case, an epoch and trial, and the gain over one trial alone at its best."""
    rows = []
    for case in CASES:
        costs = [cost_of(case, epochs) for _ in range(repeats)]
        clock, processor = (min(values) / case.trials for values in zip(*costs, strict=True))
        load = round(os.getloadavg()[0], 2)
        rows.append(case._asdict() | {"seconds": clock, "processor_seconds": processor, "load": load})
    alone = min(row["seconds"] for row in rows if row["form"] == "alone")
    for row in rows:
        row["gain"] = alone / row["seconds"]
        row["seconds_in_all"] = row["seconds"] * TRIALS * EPOCHS
    return rows


def carry_out() -> dict[str, float]:
    """Run the whole plan with two workers; return the seconds in all."""
    begun = time.perf_counter()
    with TemporaryDirectory() as folder:
        progress = Runner(plan_of(EPOCHS, 1), Path(folder) / "ledger.jsonl", LocalEngine(2), device="cpu").run()
    seconds = time.perf_counter() - begun
    if progress.done != TRIALS:
        reasons = [*progress.failed.values(), *progress.unavailable.values()]
        raise SystemExit(f"{progress.done} of {TRIALS} runs are done: {reasons[0]}")
    return {"seconds": round(seconds, 1), "load": round(os.getloadavg()[0], 2)}


def main() -> None:
    """Measure, print the table, write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=30, help="epochs of every measurement (30)")
    parser.add_argument("--repeats", type=int, default=3, help="repeats of every measurement (3)")
    parser.add_argument("--full", action="store_true", help="also carry out the whole plan")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    options = parser.parse_args()
    rows = measure(options.epochs, options.repeats)
    print(
        f"torch {torch.__version__}, {os.cpu_count()} cores, {options.epochs} epochs, {options.repeats} repeats\n"
    )
    print("| trials | threads | ms an epoch and trial | of the processor | gain | s for 60 x 500 epochs | load |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for row in rows:
        print(
            f"| {row['trials']} ({row['form']}) | {row['threads']} | {1000 * row['seconds']:.2f} | "
            f"{1000 * row['processor_seconds']:.2f} | {row['gain']:.1f} | {row['seconds_in_all']:.0f} | "
            f"{row['load']} |"
        )
    full = carry_out() if options.full else None
    if full is not None:
        print(f"\n{TRIALS} trials of {EPOCHS} epochs with the runner and two workers: {full['seconds']} s in all")
    if options.out is not None:
        commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout
        record = {
            "command": f"python benchmarks/stack.py --epochs {options.epochs} --repeats {options.repeats}"
            + " --full" * options.full,
            "commit": commit.strip(),
            "torch": torch.__version__,
            "machine": platform.machine(),
            "cores": os.cpu_count(),
            "results": rows,
            "full": full,
        }
        options.out.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
