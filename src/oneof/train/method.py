"""What training asks of a method: the interface between the loop and the estimators above it."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from torch import Tensor, nn

from oneof.train.batch import Batch, Data


class Method(Protocol):
    """A method that has been started: its networks and tables exist. `PartialLabelClassifier` is one."""

    network: str | nn.Module | Callable[..., nn.Module]
    epochs: int
    rows_at_once: int | None
    momentum: float
    schedule: str
    average: float
    patience: int | None
    views: str | None
    flips: bool
    compile: bool
    deterministic: bool
    verbose: int
    tables_of_rows_: frozenset[str] | None

    @property
    def optimizer_(self) -> str:
        """The optimiser: sgd or adamw."""

    @property
    def lr_(self) -> float:
        """The learning rate."""

    @property
    def batch_size_(self) -> int:
        """The number of rows in a step, at most all."""

    def weigh_outside(self, epoch: int, data: Data) -> None:
        """Say before an epoch how much labels weigh that are no candidates."""

    def seen(self, batch: Batch) -> Batch:
        """Return a batch as its step sees it: with these weights."""

    def start_epoch(self, epoch: int, data: Data) -> None:
        """Do what must be done between epochs."""

    def step(self, batch: Batch) -> Tensor | Iterable[Tensor]:
        """Return the losses (..., B) of a batch, or yield several."""

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Return the optimiser's parameter groups."""

    def class_scores(self, x: Tensor) -> Tensor:
        """Return scores (..., B, K) whose softmax is the predicted distribution."""

    def learned_attributes(self) -> Mapping[str, Tensor | nn.Module]:
        """Return every network and table, by the name of its attribute."""

    def modules(self) -> list[nn.Module]:
        """Return every network."""

    def weights(self) -> dict[str, Tensor]:
        """Return the weights and running averages of every network, by name."""

    def predictor(self) -> dict[str, Tensor]:
        """Return the weights, and the tables that have no row for each training row, by name."""

    def tables(self) -> dict[str, Tensor]:
        """Return every label table, by name."""

    def row_tables(self) -> dict[str, Tensor]:
        """Return the tables that have a row for each training row, or a value for each candidate, by name."""

    def learned(self) -> dict[str, Tensor]:
        """Return all that training changes: weights and label tables, by name."""

    def thread_count(self) -> int | None:
        """Return the number of CPU threads to train with; None leaves it as it is."""

    def step_attributes(self) -> Mapping[str, Any]:
        """Return the attributes that steps may depend on."""

    def stack_settings(self) -> Mapping[str, Any]:
        """Return the settings in which all trials of a stack agree."""
