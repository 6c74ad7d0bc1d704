"""A number of a method, chosen by the candidate sets of held-out rows: no true label is needed."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from sklearn.base import clone
from torch import Tensor

from oneof import functional as F
from oneof.train.batch import Data
from oneof.train.evaluation import block_size, map_blocks
from oneof.train.parallel.grouping import train_together
from oneof.train.rows import first_rows
from oneof.train.runtime import seed_for, seeded, threads
from oneof.train.trial import Trial

if TYPE_CHECKING:
    from oneof.estimator.classifier import PartialLabelClassifier

_FOLDS = 5
_ENOUGH = 1000  # judges of one fold: where it has so many, the other folds are not needed


def choose_number(model: "PartialLabelClassifier", trial: Trial, name: str, values: Sequence[float]) -> float:
    """Return the value whose models cover the candidate sets of held-out rows best: least -log sum_S p.

    For every fold one training with each value on the other rows, with the settings of the model; those of small
    networks on tables are one stack. ``name`` is the learned attribute that holds the number.
    """
    n = len(trial.data)
    generator = torch.Generator().manual_seed(seed_for(trial.setup.seed, "likelihood weight"))
    order = torch.randperm(n, generator=generator)
    size = max(1, n // _FOLDS)
    folds = 1 if size >= _ENOUGH else min(_FOLDS, n)
    costs = torch.zeros(len(values))
    with threads(model.thread_count()):
        parts = []
        for begin in range(0, folds * size, size):
            others = torch.cat([order[:begin], order[begin + size :]])
            parts.append([trial.data.part(rows.sort().values) for rows in (order[begin : begin + size], others)])
        rivals = [[_rival(model, trial, others, name, value) for value in values] for _, others in parts]
        train_together([rival for of_fold in rivals for rival in of_fold])
        for (judges, _), of_fold in zip(parts, rivals, strict=True):
            costs += torch.tensor([_cost(rival, judges) for rival in of_fold])
    return values[int(costs.nan_to_num(torch.inf).argmin())]


def _rival(model: "PartialLabelClassifier", trial: Trial, data: Data, name: str, value: float) -> Trial:
    """A training of the same settings with one of the values; it stops where the validation rows say so."""
    rival = clone(model).set_params(checkpoint=None, verbose=0)
    rival.classes_, rival.scaler_ = model.classes_, model.scaler_
    rival.input_shape_, rival.n_features_in_ = model.input_shape_, model.n_features_in_
    rival.set_training_rows(data)
    with seeded(seed_for(trial.setup.seed, "weights"), data.weight.device):
        rival.start(data)
    getattr(rival, name).fill_(value)
    watched = None if trial.sets is None or trial.watched is None else first_rows(trial.watched, len(trial.sets))
    return Trial(rival, data, trial.setup, trial.rows, watched=watched, sets=trial.sets)


def _cost(trial: Trial, judges: Data) -> float:
    """The sum of -log sum_S p over rows that the training has not seen; infinite where it diverged."""
    if trial.diverged is not None:
        return float("inf")
    trial.restore_best()
    size = block_size(judges, judges.x)
    everything = torch.arange(len(judges), device=judges.weight.device)

    def costs_of(rows: Tensor, index: Tensor) -> Tensor:
        sets = judges.sets_of(index)
        sets = sets if sets.dtype == torch.bool else sets.clamp(min=0)  # see outside_weights
        return F.candidate_nll(trial.method.class_scores(rows), sets)

    blocks = zip(judges.blocks(size), torch.split(everything, size), strict=True)
    costs = torch.cat(map_blocks(trial.method, costs_of, blocks))
    return float((costs * judges.weight).sum())
