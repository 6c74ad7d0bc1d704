"""One model fitted by several workers, on one machine or many."""

import warnings
from contextlib import nullcontext
from copy import copy
from typing import Any, TypeVar

import torch
from numpy.typing import ArrayLike
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

from oneof.errors import InputError, KindError
from oneof.estimator.classifier import PartialLabelClassifier
from oneof.io.words import shown
from oneof.train.runtime import seeded
from oneof.train.trial import Trial
from oneof.train.workers.part import cut
from oneof.train.workers.run import Outcome

_M = TypeVar("_M", bound=PartialLabelClassifier)
_DRAWING = (_DropoutNd, nn.RReLU)  # layers
_FEW = 3  # rows, with which a method shows which of its tables have a row for each


def fit_with_workers(
    model: _M,
    X: Any,
    y: Any,
    sample_weight: ArrayLike | None = None,
    X_val: Any = None,
    y_val: Any = None,
    separator: str | None = None,
    classes: Any = None,
    *,
    workers: int = 2,
    cluster: str | None = None,
    gpus: bool = False,
) -> _M:
    """Fit a model by several processes, each with a part of the rows and of their label tables.

    The result is that of ``model.fit(X, y)`` but for rounding, whatever the number of workers: all see the same
    batches in the same order, with the same random numbers. It needs Ray Train (extra ``cluster``).

    Parameters
    ----------
    model : PartialLabelClassifier
        A method with its settings; one that cannot be trained so is refused. With ``checkpoint`` a training that
        loses a worker goes on from the file, which all machines must see at the same path; without, it begins
        again. The file is that of `fit`: another number of workers may go on from it.
    X, y, sample_weight, X_val, y_val, separator, classes : see `fit`
        The rows, their candidate sets and what else `fit` takes.
    workers : int, default=2
        How many processes train.
    cluster : str, optional
        Address of a Ray cluster, ``"auto"`` for the one that runs on this machine; None starts one here.
    gpus : bool, default=False
        Whether every worker computes on a GPU of its own, and not on a CPU core.

    Returns
    -------
    PartialLabelClassifier
        The model, fitted.

    Examples
    --------
    >>> from oneof import CC, fit_with_workers
    >>> model = fit_with_workers(CC(epochs=5), X, y, workers=2)  # doctest: +SKIP
    """
    _check_arguments(model, workers, cluster, gpus)
    from oneof.train.workers import ray_train  # noqa: PLC0415  an optional package

    with ray_train.cluster_of(workers, cluster, gpus):
        trial = model.prepare(X, y, sample_weight, X_val, y_val, separator=separator, classes=classes)
        check_trial(model, trial, workers)
        with nullcontext() if trial.checkpoint is None else trial.checkpoint.in_use():
            outcome = ray_train.train_on_ray(cut(trial, tables_of_rows(model, trial), workers), gpus)
    take(trial, outcome)
    for text in dict.fromkeys(outcome.warned):
        warnings.warn(text, stacklevel=2)
    return model.finish(trial)


def take(trial: Trial, outcome: Outcome) -> None:
    """Let a trial be as the workers left it."""
    trial.state = outcome.state
    if outcome.diverged:
        trial.diverged = trial.divergence()
        return
    for name, tensor in trial.method.learned().items():
        tensor.data.copy_(outcome.learned[name])


def tables_of_rows(model: PartialLabelClassifier, trial: Trial) -> set[str]:
    """Return the names of the tables that have a row for each training row, or a value for each candidate.

    A table of the classes may be as long by chance. So the method is started once more, on few rows.
    """
    few = copy(model)
    few.forget()
    data = trial.data.part(torch.arange(min(_FEW, len(trial.data) - 1)))
    few.set_training_rows(data)
    with seeded(0, data.weight.device):
        few.start(data)
    return few.row_tables().keys() & model.row_tables().keys()


def _check_arguments(model: Any, workers: Any, cluster: Any, gpus: Any) -> None:
    if not isinstance(model, PartialLabelClassifier):
        raise KindError(f"model is {shown(model, 60)}, but must be a method with settings, such as oneof.PRODEN()")
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise InputError(f"workers is {shown(workers, 60)}, but must be a whole number >= 1")
    if not isinstance(cluster, str | None) or cluster == "":
        raise InputError(
            f"cluster is {shown(cluster, 60)}, but must be an address such as 'host:6379', 'auto', or None"
        )
    if not isinstance(gpus, bool):
        raise InputError(f"gpus is {shown(gpus, 60)}, but must be True or False")
    if not vars(type(model)).get("trains_in_parts", False):
        raise InputError(
            f"{type(model).__name__} cannot be trained by several workers, since its rows share what is not "
            "summed over them; use fit, or a method such as PRODEN"
        )


def check_trial(model: PartialLabelClassifier, trial: Trial, workers: int) -> None:
    """Refuse a trial that so many workers cannot train."""
    if workers > len(trial.data):
        raise InputError(f"workers is {workers}, but there are {len(trial.data)} training rows; ask for fewer")
    for module in model.modules():
        for layer in module.modules():
            if isinstance(layer, _BatchNorm) and model.rows_at_once is not None:
                raise InputError(
                    f"rows_at_once is {model.rows_at_once}, but the network has the layer {type(layer).__name__}, "
                    "whose moments several workers sum up over whole steps; leave it out, or take more workers"
                )
            if isinstance(layer, _DRAWING) and getattr(layer, "p", None) != 0:
                raise InputError(
                    f"the network has the layer {type(layer).__name__}, which draws for each row and cannot be "
                    "trained by several workers; use fit, or a network without it"
                )
