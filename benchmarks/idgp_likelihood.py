"""The weight of IDGP's likelihood: fixed, or chosen by held-out candidate sets; and a z that knows rows.

Run ``python benchmarks/idgp_likelihood.py [problem ...]`` (ONEOF_DATA names the folder of the data sets); every
line of benchmarks/results/idgp-likelihood.jsonl is a setting on the problem of one seed. What is in the
file already is skipped. Problems:

- digits: the demo's, 100 epochs, default network; seeds that the choice of defaults has not seen;
- lost, msrcv2, birdsong: the splits, settings and early stopping of table2-splits.toml;
- fashion-mnist: table1-mlp.toml, one hidden layer, 20 epochs, annotator of 5 epochs, with 20,000 rows; with all
  54,000 as fashion-mnist-54000.

``area``: the mean over labels k of the area under the ROC curve of z_k for "k is a wrong candidate of this row",
on one row in ten that was left out, over rows whose true label is not k.
"""

import json
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

import oneof
from oneof.bench.running.problem import make_problem
from oneof.cli.demo import make_problem as make_digits

LEDGER = Path(__file__).parent / "results" / "idgp-likelihood.jsonl"
_REAL = {"network": "linear", "epochs": 500, "patience": 50, "batch_size": 256, "lr": 0.01}
_IMAGES = {"network": "mlp", "epochs": 20, "schedule": "cosine", "batch_size": 256, "lr": 0.05, "warm_up": 5}
PROBLEMS: dict[str, tuple[range, dict[str, Any]]] = {
    "digits": (range(110, 116), {}),
    "lost": (range(10), {**_REAL, "weight_decay": 0.01}),
    "msrcv2": (range(10), {**_REAL, "weight_decay": 1e-5}),
    "birdsong": (range(5), {**_REAL, "weight_decay": 1e-5}),
    "fashion-mnist": (range(1), {**_IMAGES, "weight_decay": 1e-4}),
    "fashion-mnist-54000": (range(1), {**_IMAGES, "weight_decay": 1e-4}),
}
SETTINGS: list[dict[str, Any]] = [
    *({"likelihood_weight": weight} for weight in (0.01, 0.1, 1.0)),
    {"likelihood_weight": None},
    *({"distractors": distractors, "left_out": 0.1} for distractors in ("labels", "rows")),
]


def problem_of(name: str, seed: int) -> dict[str, NDArray[Any]]:
    """Return training rows with candidate sets and true labels, and validation and test rows."""
    if name == "digits":
        made = make_digits(seed)
        return {
            "x": made.x_train, "y": made.y_train, "S": made.candidates, "x_val": made.x_validation,
            "y_val": made.y_validation, "x_test": made.x_test, "y_test": made.y_test,
        }  # fmt: skip
    images, full = name.startswith("fashion"), name.endswith("54000")
    drawn = {"process": "instance", "parameters": {"rate": 0.4}, "annotator": {"epochs": 5}, "seed": seed}
    dataset = "fashion-mnist" if images else name
    split = {"seed": 0 if images else seed, "validation": 0.1, "test": 0.1}
    found = make_problem(
        {"dataset": dataset, "split": split, "candidates": drawn if images else None}, device="cpu"
    )
    rows = slice(20_000 if images and not full else None)
    return {
        "x": found.train.x[rows], "y": found.train.y[rows], "S": found.train.candidates[rows],
        "x_val": found.validation.x, "y_val": found.validation.y, "x_test": found.test.x, "y_test": found.test.y,
    }  # fmt: skip


def area(z: NDArray[Any], S: NDArray[Any], y: NDArray[Any]) -> float:
    """Return the mean over labels of the area under the ROC curve, over rows that have another true label."""
    areas = []
    for k in range(S.shape[1]):
        rows = y != k
        if 0 < S[rows, k].sum() < rows.sum():
            areas.append(roc_auc_score(S[rows, k], z[rows, k]))
    return float(np.mean(areas))


def measure(name: str, seeds: list[int], settings: dict[str, Any]) -> list[dict[str, Any]]:
    """Fit on the problems of some seeds, those that are alike together."""
    own = {**PROBLEMS[name][1], **settings}
    share = own.pop("left_out", 0)
    problems = [problem_of(name, seed) for seed in seeds]
    out, models, given = [], [], []
    for seed, p in zip(seeds, problems, strict=True):
        left = np.zeros(len(p["x"]), bool)
        left[np.random.default_rng(seed).permutation(len(left))[: int(share * len(left))]] = True
        out.append(left)
        models.append(oneof.IDGP(random_state=seed, device="cpu", threads=1, **own))
        judged = {"X_val": p["x_val"], "y_val": p["y_val"]} if "patience" in own else {}
        given.append({"X": p["x"][~left], "y": p["S"][~left], **judged})
    begun = time.perf_counter()
    oneof.fit_together(models, given)
    seconds = (time.perf_counter() - begun) / len(models)
    records = []
    for model, p, left in zip(models, problems, out, strict=True):
        found = {f"{part}_accuracy": model.score(p[f"x_{part}"], p[f"y_{part}"]) for part in ("val", "test")}
        found["resolved"] = float((model.transduction_ == p["y"][~left]).mean())
        if left.any():
            found["area"] = area(model.distractor_proba(p["x"][left]), p["S"][left], p["y"][left])
        if settings.get("likelihood_weight", 0) is None:
            found["chosen"] = float(model.likelihood_weight_)
        records.append({key: round(value, 4) for key, value in found.items()} | {"seconds": round(seconds, 1)})
    return records


def main() -> None:
    """Measure what is not in the ledger yet."""
    done = [json.loads(line) for line in LEDGER.read_text().splitlines()] if LEDGER.exists() else []
    describe = ["git", "describe", "--always", "--dirty"]
    commit = subprocess.run(describe, capture_output=True, text=True).stdout.strip()
    for name in sys.argv[1:] or PROBLEMS:
        for settings in SETTINGS:
            seen = {r["seed"] for r in done if r["problem"] == name and r["settings"] == settings}
            seeds = [seed for seed in PROBLEMS[name][0] if seed not in seen]
            if not seeds or (name.endswith("54000") and settings.get("likelihood_weight", 1.0) in (0.1, 1.0)):
                continue  # of all rows only what is to be confirmed
            records = measure(name, seeds, settings)
            with LEDGER.open("a") as ledger:
                for seed, record in zip(seeds, records, strict=True):
                    line = {"problem": name, "settings": settings, "seed": seed, **record, "commit": commit}
                    line |= {"torch": torch.__version__, "machine": platform.machine()}
                    ledger.write(json.dumps(line) + "\n")
            means = {key: round(float(np.mean([r[key] for r in records])), 4) for key in records[0]}
            print(name, settings, means, [r["chosen"] for r in records if "chosen" in r], flush=True)


if __name__ == "__main__":
    main()
