"""Label distributions of the rows that a model was fitted on, in its file: dense, or sparse in parts."""

from typing import Any

import torch
from scipy import sparse
from torch import Tensor

from oneof.estimator.model_header import MisfitError
from oneof.labels import most_likely

_NAME = "label_distributions"
_PARTS = ("starts", "columns", "values")
_ROUNDING = 1e-3  # by which the sum of a label distribution may differ from 1


def distribution_tensors(distributions: Any) -> dict[str, Tensor]:
    """Return the tensors that a file holds of label distributions."""
    if not sparse.issparse(distributions):
        return {_NAME: torch.as_tensor(distributions)}
    starts, columns, values = map(
        torch.as_tensor, (distributions.indptr, distributions.indices, distributions.data)
    )
    return {
        f"{_NAME}.{name}": part for name, part in zip(_PARTS, (starts.long(), columns.int(), values), strict=True)
    }


def take_distributions(model: Any, tensors: dict[str, Tensor]) -> None:
    """Give a model the label distributions of the rows that it was fitted on."""
    parts = [tensors.pop(f"{_NAME}.{name}", None) for name in _PARTS]
    classes = len(model.classes_)
    if any(part is not None for part in parts):
        model.label_distributions_ = _sparse(parts, classes)
        model.transduction_ = model.classes_[most_likely(model.label_distributions_)]
        return
    distributions = tensors.pop(_NAME, torch.empty(0))
    if distributions.dim() != 2 or distributions.shape[1] != classes:
        raise MisfitError(f"{_NAME} has shape {tuple(distributions.shape)}, but there are {classes} classes")
    if not (distributions >= 0).all() or not ((distributions.sum(1) - 1).abs() <= _ROUNDING).all():
        raise MisfitError(f"{_NAME} holds rows that are no distributions")
    model.label_distributions_ = distributions.numpy()
    model.transduction_ = model.classes_[model.label_distributions_.argmax(1)]


def _sparse(parts: list[Tensor | None], classes: int) -> Any:
    """Return a sparse matrix (n, K); refuse parts that make none, since SciPy would trust them."""
    starts, columns, values = parts
    if (
        starts is None
        or columns is None
        or values is None
        or {part.dim() for part in (starts, columns, values)} != {1}
    ):
        raise MisfitError(f"{_NAME} lacks one of its parts {', '.join(_PARTS)}")
    whole = starts.dtype == torch.int64 and columns.dtype == torch.int32 and values.is_floating_point()
    sizes = starts.diff()
    if not (whole and len(sizes) and starts[0] == 0 and (sizes > 0).all()) or not (
        starts[-1] == len(columns) == len(values)
    ):
        raise MisfitError(f"{_NAME} has parts that do not fit each other")
    begins = torch.zeros(len(columns), dtype=torch.bool)
    begins[starts[:-1]] = True
    if not ((columns >= 0) & (columns < classes)).all() or not (begins[1:] | (columns.diff() > 0)).all():
        raise MisfitError(f"{_NAME} has columns that are no classes in rising order, of which there are {classes}")
    sums = torch.segment_reduce(values, "sum", lengths=sizes)
    if not (values >= 0).all() or not ((sums - 1).abs() <= _ROUNDING).all():
        raise MisfitError(f"{_NAME} holds rows that are no distributions")
    return sparse.csr_array((values.numpy(), columns.numpy(), starts.numpy()), (len(sizes), classes))
