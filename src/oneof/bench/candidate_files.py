"""Candidate sets in files: a plan that names them means the same sets on every machine.

Files of ``oneof corrupt`` and of ``oneof sets`` serve. Those of ``oneof sets`` are small, and beside them are the
scores of the annotator, from which the oracle knows how likely each set was.
"""

import json
import zipfile
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oneof.data.catalogue import DATASETS
from oneof.data.corrupt.chances import INDEPENDENT
from oneof.data.generate import Generated, asks_annotator, checksum, scaled_likelihoods
from oneof.errors import InputError
from oneof.io.files import replacing
from oneof.io.words import shown

__all__ = [
    "CandidateFile",
    "CandidateSets",
    "describe_file",
    "read_likelihoods",
    "read_sets",
    "write_scores",
    "write_sets",
]

_SCORE_STEP = 2.0**-10  # a chance that is made of rounded scores is off by a factor of 1.001 at most


@dataclass(frozen=True)
class CandidateFile:
    """Where candidate sets are, and the checksums of sets and scores: the path may change, these may not."""

    path: Path
    sha256: str
    scores_sha256: str | None = None


@dataclass(frozen=True)
class CandidateSets:
    """Candidate sets (n, K), and how they were made, as far as the file tells it."""

    candidates: NDArray[np.bool_]
    manifest: dict[str, Any] = field(default_factory=dict)

    @property
    def data_sha256(self) -> str | None:
        """The checksum of the rows that they were made for."""
        return self._text("data_sha256")

    @property
    def scores_sha256(self) -> str | None:
        """The checksum of the scores that the annotator had, where these are kept beside the sets."""
        return self._text("scores_sha256")

    def _text(self, name: str) -> str | None:
        value = self.manifest.get(name)
        return value if isinstance(value, str) else None


def describe_file(path: Path, dataset: str) -> CandidateFile:
    """Read and check the candidate sets of a data set."""
    found = read_sets(path, dataset)
    return CandidateFile(path, checksum(found.candidates), found.scores_sha256)


def read_sets(path: Path, dataset: str) -> CandidateSets:
    """Read candidate sets; they must have the rows and the classes of the data set."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {str(path)!r} of candidate sets; check the path")
    arrays = _arrays(path)
    rows, classes = DATASETS[dataset].rows[0], list(DATASETS[dataset].classes)
    matrix = arrays.get("candidates")
    if matrix is None:
        raise InputError(f"{str(path)!r} has no array 'candidates'; name a file that oneof corrupt wrote")
    if matrix.shape != (rows, len(classes)):
        raise InputError(
            f"the candidates of {str(path)!r} have shape {matrix.shape}, but {dataset} has {rows} rows and "
            f"{len(classes)} classes; name a file of this data set"
        )
    if matrix.dtype.kind not in "biuf" or not np.isin(matrix, (0, 1)).all() or not matrix.any(1).all():
        raise InputError(
            f"the candidates of {str(path)!r} must be a matrix of 0 and 1 without empty rows; name a file that "
            "oneof corrupt wrote"
        )
    names = arrays.get("classes")
    if names is not None and names.tolist() != classes:
        raise InputError(
            f"the classes of {str(path)!r} are {shown(names.tolist())}, but those of {dataset} are "
            f"{shown(classes)}; name a file of this data set"
        )
    manifest = _manifest(arrays.get("manifest"))
    if manifest.get("data", dataset) != dataset:
        raise InputError(
            f"{str(path)!r} has candidate sets of {shown(manifest['data'])}, but {dataset} was expected"
        )
    return CandidateSets(matrix.astype(bool), manifest)


def write_sets(path: Path, classes: NDArray[Any], made: Generated, scores_sha256: str | None) -> None:
    """Write candidate sets without their rows, and how they were made."""
    manifest = made.manifest if scores_sha256 is None else {**made.manifest, "scores_sha256": scores_sha256}
    with replacing(path) as part, part.open("wb") as file:
        np.savez_compressed(
            file, candidates=made.candidates, classes=classes, manifest=np.array(json.dumps(manifest))
        )


def write_scores(path: Path, scores: NDArray[Any]) -> str:
    """Write the scores (n, K) of an annotator beside a file of sets; return their checksum.

    Chances depend on differences of the scores of a row alone. These count from the second largest, in whole
    numbers of steps: 32 below it a chance is 0 to the last digit, and 32 above it all others are.
    """
    second = np.partition(scores, -2, axis=1)[:, -2:-1]
    steps = np.clip(np.rint((scores - second) / _SCORE_STEP), -(2**15), 2**15 - 1).astype("<i2")
    found = sha256(steps.tobytes()).hexdigest()
    with replacing(_scores_path(path, found)) as part, part.open("wb") as file:
        np.savez_compressed(file, scores=steps)
    return found


def _scores_path(path: Path, scores_sha256: str) -> Path:
    """Return where the scores are that belong to a file of sets; sets of one annotator share them."""
    return path.with_name(f"scores-{scores_sha256[:16]}.npz")


def read_likelihoods(path: Path, found: CandidateSets) -> NDArray[Any]:
    """Return P(S | x, y = j) (n, K), up to a factor for each row; the file must say how its sets were drawn."""
    process, arguments = found.manifest.get("process"), found.manifest.get("parameters")
    if process not in INDEPENDENT or not isinstance(arguments, dict):
        raise InputError(
            f"the oracle learns from the likelihoods of candidate sets, but {str(path)!r} does not say that a "
            f"process drew them one by one ({', '.join(INDEPENDENT)}); write it with oneof sets, or leave the "
            "oracle out"
        )
    if asks_annotator(process):
        arguments = {**arguments, "scores": _read_scores(path, found)}
    try:
        return scaled_likelihoods(found.candidates, process, arguments)
    except (ValueError, TypeError) as error:
        raise InputError(f"the manifest of {str(path)!r} cannot be used ({error}); write it anew") from None


def _read_scores(path: Path, found: CandidateSets) -> NDArray[Any]:
    """Read the annotator's scores, which must be those that the sets were drawn by."""
    wanted = found.scores_sha256
    if wanted is None:
        raise InputError(
            f"the oracle must know the annotator, but {str(path)!r} has no scores of it; write the sets with "
            "oneof sets, or leave the oracle out"
        )
    file = _scores_path(path, wanted)
    if not file.is_file():
        raise FileNotFoundError(
            f"the oracle needs the annotator's scores in {str(file)!r}, which is missing; copy it from where the "
            "sets were written"
        )
    steps = _arrays(file).get("scores")
    if steps is None or steps.shape != found.candidates.shape or sha256(steps.tobytes()).hexdigest() != wanted:
        raise InputError(f"{str(file)!r} is damaged, or has other scores; copy it again from where it was written")
    return steps * _SCORE_STEP


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Read all arrays but the rows; readers of damaged files raise errors of many kinds."""
    try:
        if not zipfile.is_zipfile(path):
            raise InputError("it is no zip archive")
        with np.load(path, allow_pickle=False) as file:
            return {
                name: file[name] for name in ("candidates", "classes", "manifest", "scores") if name in file.files
            }
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(
            f"{str(path)!r} cannot be read ({reason}); name a file that oneof corrupt wrote"
        ) from None


def _manifest(array: NDArray[Any] | None) -> dict[str, Any]:
    """Return how the sets were made; a file that does not tell it may be used as well."""
    try:
        content = {} if array is None else json.loads(str(array))
    except (ValueError, RecursionError):
        content = {}
    return content if isinstance(content, dict) else {}
