"""How IDGP's defaults were chosen: validation accuracy on scikit-learn's digits, seeds 100 to 109.

Run ``python benchmarks/idgp_defaults.py``; every line of benchmarks/results/idgp-defaults.jsonl is a setting with
its mean validation accuracy over the seeds. Settings already in the file are skipped. The test parts are never
looked at. A field that a line does not name has its value in the baseline of oneof.bench.keys: a line keeps its
meaning when a default changes.

The fields of ``searched`` were varied one at a time when the default of ``likelihood_weight`` was 0.1. Their lines
were relabelled since: they name that weight, and the fits are those of then.
"""

import json
import platform
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import torch
from joblib import Parallel, delayed

import oneof
from oneof.bench.keys import baseline, difference, run_key
from oneof.bench.plan import plan_fields
from oneof.cli.demo import make_problem
from oneof.cli.demo_report import DigitsProblem

SEEDS = range(100, 110)
LEDGER = Path(__file__).parent / "results" / "idgp-defaults.jsonl"

Settings = tuple[str, dict[str, float | str]]


def searched(**fields: float | str) -> Settings:
    """Return IDGP with the weight that the likelihood had while the other fields were chosen."""
    return "IDGP", {"likelihood_weight": 0.1, **fields}


# The defaults of today, but for mixup: 400 / n, on the 1078 rows of this table 0.371.
TODAY: dict[str, float | str] = {
    "optimizer": "adamw", "lr": 0.01, "weight_decay": 1.0, "schedule": "cosine", "batch_size": 53
}  # fmt: skip

SETTINGS: list[Settings] = [
    *(("CC", {"lr": lr}) for lr in (0.05, 0.1, 0.2, 0.4)),
    *(("PRODEN", {"lr": lr}) for lr in (0.05, 0.1, 0.2, 0.4)),
    ("IDGP", {}),
    *(("IDGP", {"likelihood_weight": weight}) for weight in (0.0, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3)),
    *(("IDGP", {"weight_decay_g": decay}) for decay in (0.03, 0.1, 0.3)),
    *(("IDGP", {"lr": rate}) for rate in (0.2, 0.4)),
    *(searched(weight_decay_g=decay) for decay in (0.1, 0.3, 1.0)),
    *(searched(lr_g=rate) for rate in (0.003, 0.01, 0.1)),
    *(searched(lr=rate) for rate in (0.05, 0.2, 0.4)),
    *(searched(gamma=gamma) for gamma in (0.5, 1.0, 1.5)),
    *(searched(a=a) for a in (1.0, 100.0)),
    *(searched(warm_up=epochs) for epochs in (5, 20)),
    *(searched(distractor_prior_weight=weight) for weight in (0.0, 0.3)),
    *(searched(m=m, r=r) for m, r in ((0.1, 20), (0.9, 10))),
    searched(alternate="sequential"),
    searched(objective="uniform"),
    *(("IDGP", {"objective": objective}) for objective in ("ml", "released")),  # these know no such weight
    ("IDGP", {"objective": "released", "consistency": "always"}),
    ("IDGP", {"objective": "released", "consistency": "always", "weight_fg": 1.0}),  # the default of today
    *(("IDGP", {**TODAY, "mixup": mixup}) for mixup in (0.0, 0.371, 0.5, 1.0)),
    *(("IDGP", {**TODAY, "mixup": 0.371, "likelihood_weight": weight}) for weight in (0.0, 0.1)),
]


def spec_of(method: str, settings: dict[str, float | str]) -> dict[str, Any]:
    """Return a method with all its settings, those of the baseline where they are not named."""
    known = baseline(method)["settings"]
    named = {name: known[name] for name in plan_fields(getattr(oneof, method))}
    return {"method": method, "settings": named | settings}


def key_of(record: dict[str, Any]) -> str:
    """Return what tells the method and the settings of a line or a spec from others."""
    return run_key({name: record[name] for name in ("method", "settings")})


def validate(method: str, settings: dict[str, float | str], seed: int, problem: DigitsProblem) -> float:
    """Return the validation accuracy of one fit."""
    named = spec_of(method, settings)["settings"]
    model = getattr(oneof, method)(**{**named, "random_state": seed, "device": "cpu", "threads": 1})
    model.fit(problem.x_train, problem.candidates)
    return model.score(problem.x_validation, problem.y_validation)


def main() -> None:
    """Measure the settings that are not in the ledger yet."""
    done = [json.loads(line) for line in LEDGER.read_text().splitlines()] if LEDGER.exists() else []
    seen = {key_of(record) for record in done}
    problems = {seed: make_problem(seed) for seed in SEEDS}
    describe = ["git", "describe", "--always", "--dirty"]
    commit = subprocess.run(describe, capture_output=True, text=True).stdout.strip()
    for method, settings in SETTINGS:
        spec = spec_of(method, settings)
        if key_of(spec) in seen:
            continue
        scores = Parallel(n_jobs=-1)(
            delayed(validate)(method, settings, seed, problem) for seed, problem in problems.items()
        )
        record = {
            "method": method,
            "settings": {**difference(spec).get("settings", {}), **settings},
            "validation_accuracy": round(float(np.mean(scores)), 4),
            "std": round(float(np.std(scores, ddof=1)), 4),
            "seeds": [SEEDS[0], SEEDS[-1]],
            "commit": commit,
            "torch": torch.__version__,
            "machine": platform.machine(),
        }
        with LEDGER.open("a") as ledger:
            ledger.write(json.dumps(record) + "\n")
        print(f"{method:7s} {record['validation_accuracy']:.4f} ± {record['std']:.4f}  {settings}", flush=True)


if __name__ == "__main__":
    main()
