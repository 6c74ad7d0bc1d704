"""Whether speed costs accuracy: IDGP on Fashion-MNIST, LeNet, 25 epochs, three seeds, in three ways.

``python benchmarks/quality.py --data FOLDER --out FILE`` trains in float32 and in bfloat16 one by one, and in
bfloat16 together, on the sets and with the settings of benchmarks/table1-8.toml but for the epochs, writes test
accuracies at the epoch that validation chooses as JSON and prints them as a table.
"""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

from oneof.bench.plan import Run
from oneof.bench.plan_file import read_plan
from oneof.bench.running.execute import Job, circumstances, execute
from oneof.bench.running.problem import make_problem
from oneof.io.files import replacing

PLAN = Path(__file__).parent / "table1-8.toml"
EPOCHS = 25
WAYS = {
    "float32, one by one": ("fp32", False),
    "bfloat16, one by one": ("bf16", False),
    "bfloat16, together": ("bf16", True),
}


def runs() -> list[Run]:
    """Return IDGP's runs, one for each seed."""
    return [run for run in read_plan(PLAN).runs() if (run.dataset, run.label) == ("fashion-mnist", "idgp")]


def accuracies(jobs: list[Job], precision: str, together: bool, device: str) -> list[float]:
    """Train every job and return test accuracies in percent."""
    jobs = [
        Job(
            {**job.spec, "settings": {**job.spec["settings"], "epochs": EPOCHS, "precision": precision}},
            job.problem,
            None,
        )
        for job in jobs
    ]
    groups = [jobs] if together else [[job] for job in jobs]
    records = [record for group in groups for record in execute(group, device, None)]
    return [_accuracy(record) for record in records if record is not None]


def _accuracy(record: Mapping[str, Any]) -> float:
    if record["status"] != "done":
        raise RuntimeError(record["error"])
    return round(100 * float(record["results"]["validation_accuracy"]["test_accuracy"]), 2)


def table(found: Mapping[str, list[float]]) -> str:
    """Return the numbers as Markdown."""
    lines = ["| way | seeds | mean |", "| --- | --- | --- |"]
    for way, values in found.items():
        lines.append(f"| {way} | {', '.join(f'{value:.2f}' for value in values)} | {fmean(values):.2f} |")
    return "\n".join(lines)


def main() -> None:
    """Train in all ways."""
    parser = argparse.ArgumentParser(description="Whether speed costs accuracy.")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    jobs = [Job(run.spec, make_problem(run.spec, options.data, options.device), None) for run in runs()]
    found: dict[str, list[float]] = {}
    for way, (precision, together) in WAYS.items():
        found[way] = accuracies(jobs, precision, together, options.device)
        print(way, found[way], flush=True)
        with replacing(options.out) as file:
            file.write_text(
                json.dumps({"test_accuracy": found, **circumstances(options.device)}, indent=1) + "\n",
                encoding="utf-8",
            )
    print(table(found))


if __name__ == "__main__":
    main()
