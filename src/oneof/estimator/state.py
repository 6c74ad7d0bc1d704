"""What training changes: the networks and label tables that a method sets on itself, by name."""

from copy import deepcopy
from typing import Any

from numpy.typing import NDArray
from torch import Tensor, nn

from oneof.train.rows import Scaler


class Learned:
    """Finds every tensor and module among the attributes, so that no method has to list its own.

    Parameters of the constructor are none of them, whatever their type: they are the user's.
    """

    # What a fit sets, apart from the networks and tables of its method.
    classes_: NDArray[Any]
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    input_shape_: tuple[int, ...] | None  # of images; None for a table
    scaler_: Scaler
    training_rows_: int
    training_candidates_: int | None  # where sets were sparse: tables of one axis have a value for each candidate
    tables_of_rows_: frozenset[str] | None = None  # their names, where they have a part of the rows
    architecture_: Any  # of a pretrained network, while a model file is read
    history_: dict[str, list[float]]
    label_distributions_: Any  # array (n, K), or a sparse one
    transduction_: NDArray[Any]

    def learned_attributes(self) -> dict[str, Tensor | nn.Module]:
        """Return the networks and tables that `start` made, by name."""
        parameters = getattr(type(self), "__dataclass_fields__", {})
        return {
            name: value
            for name, value in vars(self).items()
            if isinstance(value, Tensor | nn.Module) and name not in parameters
        }

    def modules(self) -> list[nn.Module]:
        """Return every network that `start` made."""
        return [value for value in self.learned_attributes().values() if isinstance(value, nn.Module)]

    def weights(self) -> dict[str, Tensor]:
        """Return the weights and running averages of every network, by name; they share memory with it."""
        return {
            f"{name}.{key}": tensor
            for name, module in self.learned_attributes().items()
            if isinstance(module, nn.Module)
            for key, tensor in module.state_dict().items()
        }

    def tables(self) -> dict[str, Tensor]:
        """Return the label tables and all other tensors that training changes, by name."""
        return {name: value for name, value in self.learned_attributes().items() if isinstance(value, Tensor)}

    def row_tables(self) -> dict[str, Tensor]:
        """Return the tables that have a row for each example, or a value for each of their candidates, by name."""
        if self.tables_of_rows_ is not None:
            return {name: table for name, table in self.tables().items() if name in self.tables_of_rows_}
        sizes = {(self.training_rows_,), (self.training_candidates_,)}
        return {name: table for name, table in self.tables().items() if table.shape[:1] in sizes}

    def predictor(self) -> dict[str, Tensor]:
        """Return all tensors by which the method predicts: weights, and tables without a row for each example."""
        of_examples = self.row_tables()
        return self.weights() | {name: each for name, each in self.tables().items() if name not in of_examples}

    def learned(self) -> dict[str, Tensor]:
        """Return all that training changes: weights and label tables, by name."""
        return self.weights() | self.tables()

    def forget(self) -> None:
        """Drop every network and table, so that nothing of an earlier fit is taken for part of the next."""
        for name in self.learned_attributes():
            delattr(self, name)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle networks and tables as they are on a CPU, so that any machine can load them."""
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]  # scikit-learn's
        return {key: _on_cpu(value) for key, value in state.items()}


def _on_cpu(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.cpu()
    if isinstance(value, nn.Module) and any(p.device.type != "cpu" for p in value.parameters()):
        return deepcopy(value).cpu()
    return value
