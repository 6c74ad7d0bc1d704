"""What becomes of a model whose training diverged: the best weights of before, or an error and no model."""

import warnings
from typing import NoReturn

import torch

from oneof.errors import TrainingDiverged
from oneof.estimator.method_base import MethodBase
from oneof.train.runtime import seed_for, seeded
from oneof.train.trial import Trial

_RESULTS = ("history_", "label_distributions_", "transduction_")


@torch.no_grad()
def recover(model: MethodBase, trial: Trial, error: TrainingDiverged) -> None:
    """Give a model the weights of its best epoch, with a warning; without validation rows raise the error.

    Tables with a row for each example are as they were at the start: those of the end are lost.
    """
    best = trial.state.best_weights
    if not best:
        fail(model, error)
    model.forget()
    with seeded(seed_for(trial.setup.seed, "weights"), trial.data.weight.device):
        model.start(trial.data)
    for name, tensor in model.learned().items():
        if name in best:
            tensor.copy_(best[name])
    warnings.warn(
        f"{error}. The weights of epoch {trial.state.best_epoch + 1} are taken, the best by the validation rows",
        stacklevel=4,
    )


def fail(model: MethodBase, error: TrainingDiverged) -> NoReturn:
    """Raise the error and leave a model that is not fitted."""
    model.forget()
    for name in _RESULTS:
        vars(model).pop(name, None)
    raise error
