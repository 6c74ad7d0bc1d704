"""Seconds until an accuracy is reached: ``python benchmarks/time_to_accuracy.py --device cuda``.

IDGP and CC learn CIFAR-10 (ResNet-32) and Fashion-MNIST (LeNet) from the candidate sets of table1-cifar10.toml and
table1-fashion.toml, by a short recipe and three seeds. Every training has a process of its own. Its clock runs
from the call of `fit` (the rows go to the device, the first step loads the kernels, validation and test rows are
judged after every epoch) and from the start of the process; kernels and candidate sets were made before and are
kept in the cache folder. Beside it the conventional way (`speed_reference.py`) is timed on the same machine.

Recipes are chosen by validation rows: ``--search`` trains those of SEARCH once, with the sets of another trial,
and looks at no test row; the shortest one within 0.2 points of the best is what is measured later. Without a
search it is the first. Lines go to --out, and what is there is not done again; ``--draw`` writes the page.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from oneof.bench.keys import baseline, run_key
from oneof.bench.ledger import Ledger, read
from oneof.bench.plan import plan_fields
from oneof.bench.plan_file import read_plan
from oneof.methods import METHODS

FOLDER = Path(__file__).parent
LEDGER = FOLDER / "results" / "time-to-accuracy.jsonl"
PLANS = {"cifar-10": "table1-cifar10", "fashion-mnist": "table1-fashion"}
SEEDS = (0, 1, 2)
SEARCH_TRIAL = 3  # whose sets no measured training has
WITHIN = 0.002  # of the best validation accuracy: there the quickest recipe is chosen
ALIKE = 1.15  # times as many seconds are as quick: the first training of a process has to load more

Recipe = dict[str, Any]  # what a recipe adds to `fast` of the method; the plan says the rest
_TWO = {"views": "weak+strong", "epochs": 30}  # as long as 20 epochs of three views
SEARCH: dict[tuple[str, str], list[Recipe]] = {
    ("cifar-10", "idgp"): [
        {"lr": 0.1}, {"lr": 0.2}, {"lr": 0.1, **_TWO}, {"lr": 0.1, "average": 0.0}, {"lr": 0.1, "epochs": 12},
        {"lr": 0.05}, {"lr": 0.1, "epochs": 30}, {"lr": 0.1, "warm_up": 2},
    ],
    ("cifar-10", "cc"): [
        {"lr": 0.3}, {"lr": 0.3, **_TWO}, {"lr": 0.15}, {"lr": 0.3, "average": 0.0}, {"lr": 0.5},
        {"lr": 0.3, "epochs": 30},
    ],
    ("fashion-mnist", "idgp"): [
        {"lr": 0.2}, {"lr": 0.1}, {"lr": 0.2, **_TWO}, {"lr": 0.2, "average": 0.0}, {"lr": 0.2, "epochs": 30},
        {"lr": 0.4}, {"lr": 0.2, "epochs": 12},
    ],
    ("fashion-mnist", "cc"): [
        {"lr": 0.3}, {"lr": 0.6}, {"lr": 0.3, **_TWO}, {"lr": 0.3, "average": 0.0}, {"lr": 0.3, "epochs": 30},
    ],
    # To try the command out: scikit-learn's digits, two epochs.
    ("digits", "idgp"): [{"lr": 0.1, "epochs": 2}, {"lr": 0.1, "epochs": 2, "average": 0.0}],
    ("digits", "cc"): [{"lr": 0.1, "epochs": 2}],
}  # fmt: skip
DRY = {"network": "lenet", "batch_size": 64, "weight_decay": 1e-4}


# --- what is done -----------------------------------------------------------------------------------------


def spec_of(part: str, dataset: str, method: str, recipe: Recipe, seed: int) -> dict[str, Any]:
    """Return all that can change the result of a training; ``part`` is "run" or "search"."""
    cls, problem = METHODS[method], problem_spec(dataset, seed)
    shared = DRY if dataset == "digits" else _plan(dataset).settings
    everywhere = {**baseline(cls.__name__)["settings"], "threads": 1, **shared}
    named = {name: value for name, value in everywhere.items() if name not in ("epochs", "schedule", "average")}
    allowed = [name for name in plan_fields(cls) if name in named and name not in ("warm_up", "ramp")]
    model = cls.fast(**{name: named[name] for name in allowed} | recipe)
    settings = {name: getattr(model, name) for name in plan_fields(cls)}
    kind = {"experiment": "time to accuracy", "part": part, "recipe": recipe, "labels": "candidates", "seed": seed}
    return {**problem, **kind, "method": cls.__name__, "version": cls.version, "settings": settings}


def problem_spec(dataset: str, trial: int) -> dict[str, Any]:
    """Return what decides the rows and the candidate sets of a trial."""
    if dataset == "digits":
        return {"dataset": dataset, "trial": trial}
    run = _plan_run(dataset, trial)
    return {name: run.spec[name] for name in ("protocol", "dataset", "data", "split", "candidates")}


def files_of(specs: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Return the files of candidate sets, by their checksums."""
    plans = [_plan(name) for name in {spec["dataset"] for spec in specs} & PLANS.keys()]
    files = [file for plan in plans for each in plan.candidates.files.values() for file in each]
    return {file.sha256: str(file.path) for file in files}


@cache
def _plan(dataset: str) -> Any:
    return read_plan(FOLDER / f"{PLANS[dataset]}.toml")


@cache
def _plan_run(dataset: str, trial: int) -> Any:
    return next(run for run in _plan(dataset).runs() if run.trial == trial and run.label == "cc")


def searched(dataset: str, method: str) -> list[dict[str, Any]]:
    """Return the specs of a search, the more promising ones first."""
    return [spec_of("search", dataset, method, recipe, SEARCH_TRIAL) for recipe in SEARCH[dataset, method]]


def chosen(dataset: str, method: str, records: dict[str, Any]) -> Recipe:
    """Return the quickest recipe within 0.2 points of the best validation accuracy; of several the best."""
    found = [records[key] for spec in searched(dataset, method) if (key := run_key(spec)) in records]
    if not found:
        return SEARCH[dataset, method][0]
    best = max(record["validation_accuracy"] for record in found)
    near = [record for record in found if record["validation_accuracy"] >= best - WITHIN]
    quickest = min(record["seconds"] for record in near)
    short = [record for record in near if record["seconds"] <= ALIKE * quickest]
    recipe: Recipe = max(short, key=lambda record: record["validation_accuracy"])["spec"]["recipe"]
    return recipe


def reference_spec(dataset: str, method: str) -> dict[str, Any]:
    """Return what the conventional way is asked to do."""
    kind = {"experiment": "time to accuracy", "part": "reference"}
    return {**kind, "dataset": dataset, "reference": method, "settings": {}}


def measured(dataset: str, method: str, records: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the specs of the trainings that count."""
    return [spec_of("run", dataset, method, chosen(dataset, method, records), seed) for seed in SEEDS]


# --- in the parent process --------------------------------------------------------------------------------


def carry_out(given: argparse.Namespace) -> None:
    """Do what is missing in the ledger; begin nothing after the budget."""
    begun = time.monotonic()
    pairs = [(dataset, method) for dataset in given.datasets for method in given.methods]
    with Ledger(given.out) as ledger:
        groups = list((_searches if given.search else _measurements)(pairs, ledger.records))
        missing = [[spec for spec in group if run_key(spec) not in ledger.records] for group in groups]
        prepare([spec for group in missing for spec in group if spec["part"] != "reference"], given.device)
        print(f"{time.monotonic() - begun:5.0f} s  candidate sets and kernels are there", flush=True)
        for group in filter(None, missing):
            left = given.budget - (time.monotonic() - begun)
            if left <= 0:
                print(f"{given.budget:g} seconds are over; give the command again for the rest")
                return
            for record in in_a_process(group, given.device, left):
                ledger.append(record)
                print(f"{time.monotonic() - begun:5.0f} s  {told(record)}", flush=True)


def _searches(pairs: Sequence[tuple[str, str]], records: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
    """Give the trainings of each process: all of a data set in one, method by method."""
    for dataset in dict.fromkeys(dataset for dataset, _ in pairs):
        methods = [method for other, method in pairs if other == dataset]
        rounds = max(len(SEARCH[dataset, method]) for method in methods)
        yield [
            specs[i] for i in range(rounds) for method in methods if i < len(specs := searched(dataset, method))
        ]


def _measurements(pairs: Sequence[tuple[str, str]], records: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
    """Give the trainings of each process: one; seed by seed, and all references in one after the first seed."""
    for seed in range(len(SEEDS)):
        for dataset, method in pairs:
            yield [measured(dataset, method, records)[seed]]
        if seed == 0:
            yield [reference_spec(dataset, method) for dataset, method in pairs]


def in_a_process(specs: Sequence[dict[str, Any]], device: str, budget: float) -> Iterator[dict[str, Any]]:
    """Carry out trainings in a process of their own; give the records as they come."""
    task = json.dumps({"specs": specs, "device": device, "budget": budget, "files": files_of(specs)})
    command = [sys.executable, str(FOLDER / "time_to_accuracy_run.py")]
    begun = {"ONEOF_BEGUN": repr(time.time())}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ | begun
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(task)
        child.stdin.close()
        for line in child.stdout:
            if line.startswith("{"):
                yield json.loads(line)
            else:
                print(line, end="")
    if child.returncode:
        raise RuntimeError(f"a training ended with exit code {child.returncode}; its last words stand above")


def prepare(specs: Sequence[dict[str, Any]], device: str) -> None:
    """Have candidate sets and kernels made by another process, so that they are kept: nobody counts this."""
    if specs:
        task = json.dumps({"specs": specs, "device": device, "files": files_of(specs), "prepare": True})
        command = [sys.executable, str(FOLDER / "time_to_accuracy_run.py")]
        subprocess.run(command, input=task, text=True, check=True)


def told(record: dict[str, Any]) -> str:
    """Say in a line what came out."""
    spec = record["spec"]
    if spec["part"] == "reference":
        return f"{spec['dataset']}, {spec['reference']}, conventional: {record['seconds_per_epoch']} s an epoch"
    accuracy = record["validation_accuracy"]
    start = f"{spec['part']}: {spec['dataset']}, {spec['method']}, {spec['recipe']}, seed {spec['seed']}"
    test = f", test {100 * record['test_accuracy']:.2f}" if "test_accuracy" in record else ""
    return f"{start}: {record['seconds']:.1f} s, validation {100 * accuracy:.2f}{test}"


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path, default=LEDGER, help="the ledger (%(default)s)")
    parser.add_argument("--search", action="store_true", help="choose recipes, by validation rows")
    parser.add_argument("--datasets", nargs="+", choices=PLANS, default=list(PLANS))
    parser.add_argument("--methods", nargs="+", choices=["idgp", "cc"], default=["idgp", "cc"])
    parser.add_argument("--budget", type=float, default=float("inf"), help="begin nothing after so many seconds")
    parser.add_argument("--dry", action="store_true", help="try it out: two epochs of scikit-learn's digits")
    parser.add_argument("--draw", action="store_true", help="only write the page from the ledger")
    given = parser.parse_args()
    if given.dry:
        given.datasets = ["digits"]
    if given.draw:
        from time_to_accuracy_results import draw  # noqa: PLC0415  needs what only pages need

        draw(read([given.out], missing_ok=True).records)
        return
    carry_out(given)


if __name__ == "__main__":
    main()
