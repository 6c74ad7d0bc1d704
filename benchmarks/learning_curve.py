"""How the risk of IDGP falls as the training rows grow, beside the bound of Theorem 1.

Fashion-MNIST with the candidate sets of benchmarks/table1-25.toml; parts of the training rows, each within the
next; three seeds. The same networks on all true labels give the risk from which the excess is counted.

``python benchmarks/learning_curve.py --data FOLDER`` carries out what benchmarks/results/learning-curve.jsonl does
not hold yet and then draws; ``--draw`` only draws docs/results/learning-curve.svg and the table in docs/theory.md.
What is finished is on the disk: the command may be killed at any time and given again.
"""

import argparse
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial
from itertools import groupby, product
from pathlib import Path
from typing import Any

import numpy as np
from learning_curve_results import LEDGER, ROOT, SEEDS, SIZES, Run, draw
from torch import Tensor

from oneof import CC, IDGP
from oneof import functional as F
from oneof.bench.keys import run_key
from oneof.bench.ledger import Ledger
from oneof.bench.plan import plan_fields
from oneof.bench.plan_file import read_plan
from oneof.bench.record import problem_of
from oneof.bench.running.execute import circumstances
from oneof.bench.running.problem import Problem, make_problem
from oneof.data import PartialLabels
from oneof.estimator.classifier import PartialLabelClassifier
from oneof.estimator.together import fit_together
from oneof.theory import estimation_error_bound
from oneof.train.runtime import seed_for

PLAN = ROOT / "benchmarks" / "table1-25.toml"
SHARED: Mapping[str, Any] = {"epochs": 25, "weight_decay": 1e-4}
# The linear network's rate has the best mean accuracy on the validation rows, over 540 and 5400 training rows of
# seed 0, among 0.0003, 0.001, 0.003, 0.01 and 0.03; LeNet's is what benchmarks/table1-25.toml chose for IDGP.
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "linear": {"lr": 0.01, "schedule": "cosine"},
    "lenet": {"lr": 0.05, "views": "weak+strong+strong", "precision": "bf16"},
}
FEWEST_STEPS, LARGEST_BATCH = 16, 256  # of an epoch: 400 steps at least in all
W, A, RHO = 2.0, 30.0, 2.0  # of the bound; the linear models that are learnt lie within W and A


def runs(networks: Iterable[str]) -> list[Run]:
    """Return all runs, the references of each network first."""
    kinds = [("true", SIZES[-1]), *(("candidates", rows) for rows in SIZES)]
    return [Run(network, *kind, seed) for network, kind, seed in product(networks, kinds, SEEDS)]


def estimator(run: Run, device: str = "auto") -> PartialLabelClassifier:
    """Return IDGP, or cross-entropy for true labels; batches are smaller for few rows, as powers of two."""
    # Ten times the default: the likelihood is what the bound speaks of.
    method = partial(IDGP, likelihood_weight=0.1) if run.labels == "candidates" else CC
    batch_size = min(LARGEST_BATCH, 2 ** int(np.log2(run.rows // FEWEST_STEPS)))
    settings = {**SHARED, **SETTINGS[run.network], "network": run.network, "batch_size": batch_size}
    return method(**settings, random_state=run.seed, device=device)


@cache
def plan_specs() -> dict[int, Mapping[str, Any]]:
    """Return a spec of the plan for each seed: it decides split and candidate sets."""
    return {run.trial: run.spec for run in read_plan(PLAN).runs()}


def spec_of(run: Run) -> dict[str, Any]:
    """Return all that can change the result of a run."""
    model = estimator(run)
    return {
        **run._asdict(),
        **problem_of(plan_specs()[run.seed]),
        "method": type(model).__name__,
        "version": model.version,
        "settings": {name: getattr(model, name) for name in plan_fields(type(model))},
    }


def carry_out(networks: Sequence[str], device: str, data: Path | None, budget: float) -> None:
    """Carry out what is missing, all seeds of one size at once; begin nothing after ``budget`` seconds."""
    begun = time.monotonic()
    with Ledger(LEDGER) as ledger:
        missing = [run for run in runs(networks) if run_key(spec_of(run)) not in ledger.records]
        problems = {seed: make_problem(plan_specs()[seed], data, device) for seed in {run.seed for run in missing}}
        for _, group in groupby(missing, key=lambda run: run[:3]):
            if time.monotonic() - begun > budget:
                print(f"{budget:g} seconds are over; give the command again for the rest")
                break
            for record in carry_out_group(list(group), problems, device):
                ledger.append(record)
                print(*(record["spec"][name] for name in Run._fields), record["test_accuracy"], flush=True)


def carry_out_group(group: Sequence[Run], problems: Mapping[int, Problem], device: str) -> list[dict[str, Any]]:
    """Train and judge some runs."""
    begun = time.monotonic()
    rows = [rows_of(run, problems[run.seed]) for run in group]
    models = fit_together([estimator(run, device) for run in group], [{"X": x, "y": y} for x, y in rows])
    seconds = (time.monotonic() - begun) / len(group)
    return [
        {
            "key": run_key(spec_of(run)),
            "status": "done",
            "spec": spec_of(run),
            **circumstances(device),
            "seconds": round(seconds, 3),
            "candidates_sha256": problems[run.seed].facts["sha256"],
            **judge(model, x, problems[run.seed]),
        }
        for run, model, (x, _) in zip(group, models, rows, strict=True)
    ]


def rows_of(run: Run, problem: Problem) -> tuple[Any, Any]:
    """Return images and sets of the first rows in an order of the seed: each part lies within the next."""
    order = np.random.default_rng(seed_for(run.seed, "learning curve")).permutation(len(problem.train))
    part = problem.train.take(np.sort(order[: run.rows]))
    return part.x, part.candidates if run.labels == "candidates" else np.eye(len(part.classes), dtype=bool)[part.y]


def judge(model: PartialLabelClassifier, x: Any, problem: Problem) -> dict[str, float | None]:
    """Measure a model on the test rows, on sets that it has not seen, and by Theorem 1 where it is linear."""
    accuracy = float((model.predict(problem.test.x) == problem.test.y).mean())
    measured = {"test_accuracy": accuracy, "test_risk": 1 - accuracy, "candidate_risk": None}
    if isinstance(model, IDGP):
        measured["candidate_risk"] = candidate_risk(model, problem.validation)
        if model.network == "linear":
            measured |= theorem(model, x, problem.validation)
    return {name: value if value is None else float(f"{value:.6g}") for name, value in measured.items()}


def candidate_risk(model: IDGP, rows: PartialLabels) -> float:
    """Return the mean of the first term of the loss, minus the log-likelihood of a set (Eq. 4)."""

    def loss(x: Tensor, S: Tensor) -> Tensor:
        l = F.label_scores(model.network_(x), model.a, model.b, model.gamma, S)  # noqa: E741
        return F.generation_nll(l, model.distractor_logits(model.distractor_network_(x), S), S)

    return float(model.evaluate(loss, rows.x, rows.candidates).mean())


def theorem(model: IDGP, x: Any, rows: PartialLabels) -> dict[str, float]:
    """Return the bound for the training rows, and what shows whether the model is one of those it speaks of."""
    seen = model.evaluate(lambda x: x.flatten(1), x)  # as the network takes them
    seen = np.c_[seen, np.ones(len(seen))]
    head: Any = model.network_.head
    weights = np.c_[head.weight.detach().cpu(), head.bias.detach().cpu()]
    return {
        "bound": estimation_error_bound(
            seen, len(weights), W=W, A=A, rho=RHO, a=model.a, b=model.b, gamma=model.gamma
        ).total,
        "largest_weights": float(np.linalg.norm(weights, axis=1).max()),
        "largest_output": float(np.abs(model.evaluate(model.network_, rows.x)).max()),
    }


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draw", action="store_true", help="only draw what the ledger holds")
    parser.add_argument("--networks", nargs="+", choices=SETTINGS, default=list(SETTINGS))
    parser.add_argument("--device", default="auto")
    parser.add_argument("--data", type=Path, help="folder of the data sets; by default $ONEOF_DATA or the cache")
    parser.add_argument("--budget", type=float, default=float("inf"), help="begin nothing after so many seconds")
    given = parser.parse_args()
    if not given.draw:
        carry_out(given.networks, given.device, given.data, given.budget)
    draw()


if __name__ == "__main__":
    main()
