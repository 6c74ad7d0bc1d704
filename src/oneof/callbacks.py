"""Callbacks for ``fit(callbacks=...)``: what trainings tell the tools that people watch and steer them with.

A callback is any callable that is given an `EpochReport` after every epoch: its number from 0, the loss, and
scores by name. One that returns True ends the training after this epoch. Those below hand the numbers to what you
have opened yourself, so that none of these tools is needed to import this module.
"""

from typing import Any

from oneof.errors import InputError, KindError
from oneof.io.words import shown
from oneof.train.trial import EpochReport

__all__ = ["EpochReport", "MLflow", "OptunaPruning", "TensorBoard", "WandB"]


def _with(value: Any, name: str, method: str, good: str) -> Any:
    """Return what a callback writes to; refuse what lacks the method, before a training has begun."""
    if isinstance(value, type) or not callable(getattr(value, method, None)):
        raise KindError(f"{name} is {shown(value, 60)}, which has no {method}; pass {good}")
    return value


class TensorBoard:
    """Writes loss and scores to a ``torch.utils.tensorboard.SummaryWriter``."""

    def __init__(self, writer: Any, prefix: str = "") -> None:
        self.writer, self.prefix = _with(writer, "writer", "add_scalar", "SummaryWriter('runs')"), prefix

    def __call__(self, report: EpochReport) -> None:
        """Add a point to every curve."""
        for name, value in report.numbers().items():
            self.writer.add_scalar(f"{self.prefix}{name}", value, report.epoch)


class MLflow:
    """Logs loss and scores to the active run of MLflow; ``mlflow`` is the module, or has its `log_metrics`."""

    def __init__(self, mlflow: Any) -> None:
        self.mlflow = _with(mlflow, "mlflow", "log_metrics", "the module mlflow")

    def __call__(self, report: EpochReport) -> None:
        """Log all numbers at this step."""
        self.mlflow.log_metrics(report.numbers(), step=report.epoch)


class WandB:
    """Logs loss and scores to a run of Weights & Biases, as ``wandb.init()`` returns it."""

    def __init__(self, run: Any) -> None:
        self.run = _with(run, "run", "log", "what wandb.init() returns")

    def __call__(self, report: EpochReport) -> None:
        """Log all numbers at this step."""
        self.run.log(report.numbers(), step=report.epoch)


class OptunaPruning:
    """Reports a score to an Optuna trial, and raises ``optuna.TrialPruned`` where it is not worth going on."""

    def __init__(self, trial: Any, score: str = "validation_score") -> None:
        self.trial, self.score = (
            _with(trial, "trial", "should_prune", "the trial that an objective is given"),
            score,
        )

    def __call__(self, report: EpochReport) -> None:
        """Report the score, and ask."""
        numbers = report.numbers()
        if self.score not in numbers:
            raise InputError(
                f"score is {self.score!r}, but an epoch has {sorted(numbers)}; pass X_val and y_val to fit, or "
                "set validation_fraction"
            )
        self.trial.report(numbers[self.score], report.epoch)
        if self.trial.should_prune():
            from optuna import TrialPruned  # noqa: PLC0415  which has made the trial

            raise TrialPruned(f"pruned after epoch {report.epoch}")
