"""Candidate sets in files of ``oneof corrupt``: a plan that names them means the same sets on every machine."""

import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oneof.bench.schema import shown
from oneof.data.catalogue import DATASETS
from oneof.data.generate import checksum

__all__ = ["CandidateFile", "CandidateSets", "describe_file", "read_sets"]


@dataclass(frozen=True)
class CandidateFile:
    """Where candidate sets are, and the checksum of the sets: the path may change, the sets may not."""

    path: Path
    sha256: str


@dataclass(frozen=True)
class CandidateSets:
    """Candidate sets (n, K), and the checksum of the rows that they were made for, where the file tells it."""

    candidates: NDArray[np.bool_]
    data_sha256: str | None


def describe_file(path: Path, dataset: str) -> CandidateFile:
    """Read and check the candidate sets of a data set."""
    return CandidateFile(path, checksum(read_sets(path, dataset).candidates))


def read_sets(path: Path, dataset: str) -> CandidateSets:
    """Read candidate sets; they must have the rows and the classes of the data set."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {str(path)!r} of candidate sets; check the path")
    arrays = _arrays(path)
    rows, classes = DATASETS[dataset].rows[0], list(DATASETS[dataset].classes)
    matrix = arrays.get("candidates")
    if matrix is None:
        raise ValueError(f"{str(path)!r} has no array 'candidates'; name a file that oneof corrupt wrote")
    if matrix.shape != (rows, len(classes)):
        raise ValueError(
            f"the candidates of {str(path)!r} have shape {matrix.shape}, but {dataset} has {rows} rows and "
            f"{len(classes)} classes; name a file of this data set"
        )
    if matrix.dtype.kind not in "biuf" or not np.isin(matrix, (0, 1)).all() or not matrix.any(1).all():
        raise ValueError(
            f"the candidates of {str(path)!r} must be a matrix of 0 and 1 without empty rows; name a file that "
            "oneof corrupt wrote"
        )
    names = arrays.get("classes")
    if names is not None and names.tolist() != classes:
        raise ValueError(
            f"the classes of {str(path)!r} are {shown(names.tolist())}, but those of {dataset} are "
            f"{shown(classes)}; name a file of this data set"
        )
    manifest = _manifest(arrays.get("manifest"))
    if manifest.get("data", dataset) != dataset:
        raise ValueError(
            f"{str(path)!r} has candidate sets of {shown(manifest['data'])}, but {dataset} was expected"
        )
    made_for = manifest.get("data_sha256")
    return CandidateSets(matrix.astype(bool), made_for if isinstance(made_for, str) else None)


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Read all arrays but the rows; readers of damaged files raise errors of many kinds."""
    try:
        if not zipfile.is_zipfile(path):
            raise ValueError("it is no zip archive")
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in ("candidates", "classes", "manifest") if name in file.files}
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(
            f"{str(path)!r} cannot be read ({reason}); name a file that oneof corrupt wrote"
        ) from None


def _manifest(array: NDArray[Any] | None) -> dict[str, Any]:
    """Return how the sets were made; a file that does not tell it may be used as well."""
    try:
        content = {} if array is None else json.loads(str(array))
    except (ValueError, RecursionError):
        content = {}
    return content if isinstance(content, dict) else {}
