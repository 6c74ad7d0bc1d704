"""What attempts share: small tables, plans and data sets, and what comes out when nothing disturbs."""

import hashlib
import shutil
import threading
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import bench_data
from faults.harness import Attempt, LostError
from oneof.bench.ledger import read
from published import mat_bytes

SETTINGS = {  # of the methods that are killed: small, and each with all that it keeps between epochs
    "cc": {},
    "proden": {},
    "idgp": {"warm_up": 5},
    "pico": {"views": "plain+jitter+jitter", "queue_size": 64},
    "valen": {"warm_up": 5},
    "membership": {"warm_up": 5},
}
EPOCHS = 60
EVERY_EPOCH = {"saves": 0.0}

PLAN = """
title = "Small"
datasets = ["lost"]
trials = 2

[settings]
network = "linear"
epochs = 30
batch_size = 50

[methods.cc]
[methods.supervised]
[methods.idgp]
[methods.proden]

[[override]]
methods = ["proden"]
network = "mlp5"
epochs = 5
"""
RUNS = 8

_lock = threading.RLock()
_made: dict[Any, Any] = {}


def once(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a thing once for all attempts, in the folder above theirs."""

    @wraps(function)
    def made(attempt: Attempt, *arguments: Any) -> Any:
        key = (attempt.folder.parent, function.__name__, *arguments)
        with _lock:
            if key not in _made:
                folder = attempt.folder.parent / "-".join(["lab", function.__name__, *map(str, arguments)])
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                own = Attempt(folder, attempt.cache, attempt.chance)
                _made[key] = function(own, *arguments)
            return _made[key]

    return made


def _rows(count: int, features: int, classes: int) -> tuple[Any, Any, Any]:
    """Rows, candidate sets of two and true labels."""
    rng = np.random.default_rng(0)
    y = rng.integers(classes, size=count)
    x = (rng.normal(size=(count, features)) + 2 * np.eye(classes, features)[y]).round(4)
    candidates = np.eye(classes, dtype=bool)[y]
    candidates[np.arange(count), (y + rng.integers(1, classes, size=count)) % classes] = True
    return x, candidates, y


@once
def table(lab: Attempt) -> Path:
    """A CSV file of 200 rows."""
    x, candidates, _ = _rows(200, 6, 4)
    frame = pd.DataFrame(x, columns=[f"f{i}" for i in range(x.shape[1])])
    frame["candidates"] = ["|".join(f"c{k}" for k in np.flatnonzero(row)) for row in candidates]
    path = lab.folder / "table.csv"
    frame.to_csv(path, index=False)
    return path


def fit_words(attempt: Attempt, method: str, out: Path, epochs: int = EPOCHS, seed: int = 0) -> list[Any]:
    """The words of ``oneof fit`` on the table."""
    settings = {"epochs": epochs, "batch_size": 50, "threads": 1, **SETTINGS[method]}
    sets = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    options = ["--separator", "|", "--method", method, "--device", "cpu", "--seed", seed]
    return ["fit", table(attempt), *options, *sets, "--out", out]


class Undisturbed(NamedTuple):
    """A file as it comes out when nothing disturbs, and the seconds that this takes."""

    content: bytes
    seconds: float


@once
def model(lab: Attempt, method: str, epochs: int = EPOCHS, seed: int = 0) -> Undisturbed:
    """The model of an undisturbed fit, which keeps no checkpoints."""
    path = lab.folder / "model"
    ended = lab.must_succeed(*fit_words(lab, method, path, epochs, seed))
    return Undisturbed(path.read_bytes(), ended.seconds)


@once
def predictions(lab: Attempt) -> tuple[Path, Undisturbed]:
    """A model and the undisturbed file of its predictions."""
    path, out = lab.folder / "model", lab.folder / "out.csv"
    path.write_bytes(model(lab, "cc").content)
    ended = lab.must_succeed("predict", path, table(lab), "--out", out)
    return path, Undisturbed(out.read_bytes(), ended.seconds)


class Problem(NamedTuple):
    """A small data set under the name of a known one, and what it takes to find it."""

    root: Path
    faults: dict[str, Any]


@once
def problem(lab: Attempt) -> Problem:
    """A table of 300 rows under the name of Lost."""
    x, candidates, y = _rows(300, 8, 5)
    content = mat_bytes(x, candidates, y)
    path = lab.folder / "realworld" / "lost.mat"
    path.parent.mkdir()
    path.write_bytes(content)
    file = {"path": "realworld/lost.mat", "size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    entry = {"rows": [300], "shape": [8], "classes": list(range(5)), "files": [file]}
    return Problem(lab.folder, {"datasets": {"lost": entry}, **EVERY_EPOCH})


def write_plan(folder: Path, text: str = PLAN) -> Path:
    """Write a plan into a folder."""
    path = folder / "plan.toml"
    path.write_text(text)
    return path


def run_words(attempt: Attempt, plan: Path, ledger: Path, workers: int = 1) -> list[Any]:
    """The words of ``oneof run`` on the small data set."""
    place = ["--data", problem(attempt).root, "--device", "cpu", "--workers", workers]
    return ["run", plan, "--ledger", ledger, *place]


class Ledgers(NamedTuple):
    """A plan, its ledger, what this says, and the seconds that it took."""

    plan: Path
    path: Path
    results: dict[str, Any]
    seconds: float


@once
def ledger(lab: Attempt) -> Ledgers:
    """The ledger of the plan that nothing disturbed."""
    plan, path = write_plan(lab.folder), lab.folder / "ledger.jsonl"
    ended = lab.must_succeed(*run_words(lab, plan, path), **problem(lab).faults)
    results = bench_data.results(read([path]).records)
    assert len(results) == RUNS
    return Ledgers(plan, path, results, ended.seconds)


def check_ledger(attempt: Attempt, path: Path) -> None:
    """Demand the keys and the results of the undisturbed ledger."""
    expected = ledger(attempt).results
    records = read([path]).records
    missing, extra = expected.keys() - records.keys(), records.keys() - expected.keys()
    failed = [
        record["error"].strip().splitlines()[-1] for record in records.values() if record["status"] != "done"
    ]
    if missing or extra or failed:
        raise LostError(
            f"{len(missing)} records are missing, {len(extra)} unexpected, {len(failed)} failed {failed[:1]}"
        )
    found = bench_data.results(records)
    if differ := [key for key in expected if found[key] != expected[key]]:
        raise LostError(f"{len(differ)} of {len(expected)} records differ from the undisturbed ones")


def done_keys(path: Path) -> list[str]:
    """The keys of the runs that a ledger has as done; none where there is no ledger yet."""
    records = read([path]).records if path.is_file() else {}
    return [key for key, record in records.items() if record["status"] == "done"]


def finish_plan(attempt: Attempt, plan: Path, path: Path) -> None:
    """Run a plan to its end without faults, and compare."""
    attempt.must_succeed(*run_words(attempt, plan, path), **problem(attempt).faults)
    check_ledger(attempt, path)
    if (rest := path.with_suffix(".checkpoints")).exists():
        raise LostError(f"the folder of checkpoints stays: {[file.name for file in rest.iterdir()][:5]}")


@once
def reports(lab: Attempt) -> tuple[dict[str, bytes], dict[str, bytes], Path, float]:
    """The report of the plan, that of its first half, the ledger of that, and the seconds that a report takes."""
    made, half = ledger(lab), lab.folder / "half.jsonl"
    records = [line for line in made.path.read_bytes().splitlines(keepends=True) if line.strip()]
    half.write_bytes(b"".join(records[: RUNS // 2]))
    ended = lab.must_succeed(
        "report", "--plan", made.plan, "--out", lab.folder / "new", made.path, **problem(lab).faults
    )
    lab.must_succeed("report", "--plan", made.plan, "--out", lab.folder / "old", half, **problem(lab).faults)
    new, old = (
        {path.name: path.read_bytes() for path in (lab.folder / name).iterdir()} for name in ("new", "old")
    )
    assert old.keys() == new.keys()
    return new, old, half, ended.seconds
