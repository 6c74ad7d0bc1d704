"""What is decided before a training begins, and where it stands: what a checkpoint keeps beside the tensors."""

from dataclasses import dataclass, field

from torch import Tensor

from oneof.train.rows import Scaler


@dataclass(frozen=True)
class Setup:
    """What is decided before a training begins."""

    seed: int
    held_out: Tensor  # numbers of the rows kept for validation
    scaler: Scaler


@dataclass
class State:
    """Where a training stands: all that is neither a weight nor a label table."""

    epoch: int = 0
    history: dict[str, list[float]] = field(default_factory=dict)
    best_epoch: int = -1
    best_score: float = float("-inf")
    best_weights: dict[str, Tensor] = field(default_factory=dict)
    seconds: float = 0.0  # spent so far
    average: dict[str, Tensor] = field(default_factory=dict)  # of all weights, where the method wants it

    def stopped(self, patience: int | None) -> bool:
        """Tell whether the score has not risen for ``patience`` epochs."""
        return patience is not None and self.best_epoch >= 0 and self.epoch - 1 - self.best_epoch >= patience
