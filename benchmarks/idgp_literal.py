"""When the literal objective of the IDGP paper diverges: prior weights lambda-hat - 1 as they are, not scaled.

Run ``python benchmarks/idgp_literal.py`` (ONEOF_DATA names the folder of the data sets); every line of
benchmarks/results/idgp-literal.jsonl is a setting on Lost, with the epoch (from 1) in which a loss or a weight was
no longer finite, and the validation accuracy, or that of the best epoch before. Settings already in the file are
skipped.
"""

import itertools
import json
import platform
import subprocess
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from oneof import IDGP, load_dataset
from oneof import functional as F
from oneof.estimator.fields import hyperparameters
from oneof.train import TrainingDiverged, train
from oneof.train.batch import Batch

LEDGER = Path(__file__).parent / "results" / "idgp-literal.jsonl"
SEED, EPOCHS = 0, 100
GRID = {"a": (0.1, 1.0, 10.0), "b": (1.0, 2.0), "lr": (0.001, 0.003, 0.01, 0.03, 0.1)}


@hyperparameters
class Literal(IDGP):
    """Eq. 6 to the letter: no weight is scaled, and the likelihood has weight 1."""

    def _prior(self, batch: Batch, u: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        inside = F.indicator(batch.candidates, u.dtype)
        w, AB = (F.log_prior_weight(each, self.a, self.b, self.gamma).exp() for each in (u, v))
        A, B = AB.chunk(2, -1)
        return w * inside, A, B


def measure(settings: dict[str, float]) -> dict[str, Any]:
    """Train on nine tenths of Lost, and score the last tenth."""
    lost = load_dataset("lost")
    order = torch.randperm(len(lost), generator=torch.Generator().manual_seed(SEED)).numpy()
    held, training = order[: len(lost) // 10], order[len(lost) // 10 :]
    model = Literal(
        network="linear", epochs=EPOCHS, batch_size=256, warm_up=0, weight_decay=1e-4, weight_decay_g=1e-4,
        likelihood_weight=1.0, d=0.0, random_state=SEED, device="cpu", threads=1, **settings,
    )  # fmt: skip
    done: list[float] = []
    trial = model.prepare(
        lost.x[training], lost.candidates[training], X_val=lost.x[held], y_val=lost.y[held],
        callbacks=[lambda report: done.append(report.loss)],
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the epoch that is taken instead
        try:
            model.finish(train(trial))
        except TrainingDiverged:
            return {"diverged_in_epoch": len(done) + 1, "validation_accuracy": None}
    diverged = len(done) + 1 if trial.diverged is not None else None
    return {
        "diverged_in_epoch": diverged,
        "validation_accuracy": round(model.score(lost.x[held], lost.y[held]), 4),
    }


def main() -> None:
    """Measure the settings that are not in the ledger yet."""
    done = [json.loads(line) for line in LEDGER.read_text().splitlines()] if LEDGER.exists() else []
    describe = ["git", "describe", "--always", "--dirty"]
    commit = subprocess.run(describe, capture_output=True, text=True).stdout.strip()
    for values in itertools.product(*GRID.values()):
        settings = dict(zip(GRID, values, strict=True))
        if any(record["settings"] == settings for record in done):
            continue
        record = {
            "settings": settings, **measure(settings), "seed": SEED, "epochs": EPOCHS, "commit": commit,
            "torch": torch.__version__, "machine": platform.machine(),
        }  # fmt: skip
        with LEDGER.open("a") as ledger:
            ledger.write(json.dumps(record) + "\n")
        print(settings, record["diverged_in_epoch"], record["validation_accuracy"], flush=True)


if __name__ == "__main__":
    main()
