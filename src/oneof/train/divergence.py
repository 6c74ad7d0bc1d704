"""Trainings that diverge: a loss, a weight or a probability that is no longer a finite number."""

import math
from collections.abc import Iterable

import torch
from torch import Tensor
from torch.nn.utils import get_total_norm

from oneof.errors import TrainingDiverged
from oneof.train.method import Method


def diverged_error(method: Method, epoch: int) -> TrainingDiverged:
    """Return the error of a training that diverged in an epoch, counted from 0."""
    lr = method.lr_
    others = sorted({group.get("lr", lr) for group in method.parameter_groups()} - {lr})
    rates = f"lr={lr:g}" + (
        f" (and {', '.join(f'{rate:g}' for rate in others)} of other networks)" if others else ""
    )
    return TrainingDiverged(
        f"{type(method).__name__} diverged in epoch {epoch + 1} of {method.epochs} with {rates}: its loss, "
        f"weights or outputs are not finite any more; lower lr (try {lr / 10:g}), take extreme values out of X, "
        "or hold rows out (validation_fraction), so that the best weights are kept"
    )


def weights_finite(weights: Iterable[Tensor]) -> Tensor:
    """Tell whether all weights of a trial are finite (), without reading back."""
    floats = _floats(weights)
    if floats[0].is_cuda:
        return torch.isfinite(get_total_norm(floats, math.inf))  # a few kernels for all weights
    return torch.isfinite(torch.stack([each.sum() for each in floats]).sum())


def weights_finite_by_trial(weights: Iterable[Tensor]) -> Tensor:
    """As `weights_finite`, for each of T trials (T,) whose weights stand on a leading axis."""
    sums = [each.sum(tuple(range(1, each.dim()))) for each in _floats(weights)]
    return torch.isfinite(torch.stack(sums).sum(0))


def _floats(weights: Iterable[Tensor]) -> list[Tensor]:
    """Return what can become infinite. Sums are fast, and only overflow where weights are diverging anyway."""
    return [each.detach() for each in weights if each.is_floating_point()]


def finite_losses(losses: Tensor, finite: Tensor) -> list[float]:
    """Return mean losses (...), NaN where weights are not finite: one number tells of both, and is read back."""
    return torch.where(finite, losses, math.nan).reshape(-1).tolist()
