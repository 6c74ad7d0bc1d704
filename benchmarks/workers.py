"""What one training by several workers costs beside one process: seconds and bytes a row, and the time of sums.

``python benchmarks/workers.py`` runs all cases on this machine with gloo, each training in processes of its own,
writes benchmarks/results/workers.json and the table of docs/scale.md; ``--draw`` writes the page alone. Ray is
left out: it starts the workers, and has no part in a step.
"""

import argparse
import json
import pickle
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from marks import END, between
from scale import problem

import oneof
from oneof.bench.running.execute import circumstances
from oneof.estimator.with_workers import tables_of_rows
from oneof.io.files import replacing
from oneof.train import Trial, train
from oneof.train.workers.group import Group
from oneof.train.workers.part import WorkerPart, cut
from oneof.train.workers.run import train_part

ROOT = Path(__file__).parents[1]
FIGURES, PAGE = ROOT / "benchmarks" / "results" / "workers.json", ROOT / "docs" / "scale.md"
MARK = "<!-- workers, written by benchmarks/workers.py -->"
ORDERED = 50_000_000
ROWS = {"rows": 100_000, "candidates": 5, "epochs": 2, "batch_size": 1000}
CASES: dict[str, dict[str, Any]] = {
    "linear-1k": ROWS | {"classes": 1_000, "network": "linear"},
    "mlp-1k": ROWS | {"classes": 1_000, "network": "mlp"},
    "linear-10k": ROWS | {"classes": 10_000, "network": "linear", "rows": 40_000},
    "mlp-10k": ROWS | {"classes": 10_000, "network": "mlp", "rows": 20_000},
}


def main() -> None:
    """Run cases and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draw", action="store_true", help="write the page alone")
    figures = {} if not parser.parse_args().draw else json.loads(FIGURES.read_text())
    for name, case in {} if figures else CASES.items():
        figures[name] = case | measured(case) | {"command": "python benchmarks/workers.py", **circumstances("cpu")}
        print(name, figures[name], flush=True)
        with replacing(FIGURES) as beside:
            beside.write_text(json.dumps(figures, indent=1) + "\n")
    PAGE.write_text(between(PAGE.read_text(), MARK, END, table(figures)))


def measured(case: Mapping[str, Any]) -> dict[str, Any]:
    """Return the seconds of a training alone and by one and two workers, and the bytes of a row."""
    X, y = problem(case)
    settings = {name: case[name] for name in ("epochs", "batch_size", "network")}
    model = oneof.PRODEN(random_state=0, device="cpu", threads=1, **settings)
    trial, prepare = timed(lambda: model.prepare(X, y))
    parameters = sum(each.numel() for each in model.network_.parameters())
    found: dict[str, Any] = {"gradient_bytes": parameters * 4}
    tables = tables_of_rows(model, trial)
    for workers in (1, 2):
        parts, send = timed(partial(sent, trial, tables, workers))
        found[f"workers_{workers}"] = by_workers(parts)
        if workers == 1:
            found["row_bytes"] = (len(parts[0]) - parameters * 4) / case["rows"]
    _, alone = timed(lambda: train(trial))
    found["alone"] = {"seconds": trial.state.seconds, "cpu": alone, "sums": 0.0}
    _, finish = timed(lambda: model.finish(trial))
    order, shuffle = timed(lambda: torch.randperm(ORDERED))
    driver = {"prepare": prepare, "send": send, "finish": finish}
    return found | {"driver": driver, "order": shuffle / len(order)}


def sent(trial: Trial, tables: set[str], workers: int) -> list[bytes]:
    """Return the parts of workers as they travel."""
    return [pickle.dumps(part) for part in cut(trial, tables, workers)]


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """Return what some work gives, and its CPU seconds."""
    begun = time.process_time()
    return work(), time.process_time() - begun


def by_workers(parts: list[bytes]) -> dict[str, float]:
    """Return the seconds of the first of several workers, its CPU seconds, and those that sums took."""
    context = get_context("spawn")
    answers = context.SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        common = (len(parts), f"file://{folder}/store", answers)
        processes = [context.Process(target=work, args=(rank, part, *common)) for rank, part in enumerate(parts)]
        for process in processes:
            process.start()
        found: dict[str, float] = answers.get()
        for process in processes:
            process.join()
    return found


def work(rank: int, part: bytes, size: int, store: str, answers: Any) -> None:
    """Train as one of the workers; the first one tells how long it took."""
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=store, rank=rank, world_size=size)
    own: WorkerPart = pickle.loads(part)
    spent, add = [0.0], Group.add

    def measured_sum(group: Group, tensor: torch.Tensor) -> torch.Tensor:
        begun = time.perf_counter()
        add(group, tensor)
        spent[0] += time.perf_counter() - begun
        return tensor

    Group.add = measured_sum  # type: ignore[method-assign]
    cpu = time.process_time()
    outcome = train_part(own, torch.device("cpu"))
    cpu = time.process_time() - cpu
    torch.distributed.barrier()
    if outcome is not None:
        answers.put({"seconds": outcome.state.seconds, "cpu": cpu, "sums": spent[0]})


def table(figures: Mapping[str, Any]) -> str:
    """Return a row for each case."""
    first = next(iter(figures.values()))
    heads = (
        "network",
        "classes",
        "gradients of a step",
        "bytes of a row",
        "alone",
        "the one of 1",
        "each of 2",
        "prepare",
        "send",
        "finish",
    )
    lines = [
        f"`python benchmarks/workers.py`, seed 0: PRODEN, 50 features, 5 candidates, batches of "
        f"{first['batch_size']}, one thread a process, on a {first['device']} with 2 cores and torch "
        f"{first['versions']['torch']}, commit {first['commit']}. CPU microseconds a row: of an epoch alone, by "
        "the one of 1 worker and by each of 2, and once for the process that starts them.",
        "",
        f"| {' | '.join(heads)} |",
        "| --- |" + " ---: |" * (len(heads) - 1),
    ]
    for case in figures.values():
        once, scale = 1e6 / case["rows"], 1e6 / (case["rows"] * case["epochs"])
        alone, one, two = (case[name]["cpu"] for name in ("alone", "workers_1", "workers_2"))
        driver = [f"{once * case['driver'][name]:.1f}" for name in ("prepare", "send", "finish")]
        lines.append(
            f"| {case['network']} | {case['classes']:,} | {case['gradient_bytes'] / 1e6:.1f} MB "
            f"| {case['row_bytes']:.0f} | {scale * alone:.1f} | {scale * one:.1f} ({one / alone:.2f}) "
            f"| {scale * two:.1f} ({two / alone:.2f}) | {' | '.join(driver)} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
