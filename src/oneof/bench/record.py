"""The record of a run: what the runner writes into a ledger, and reports read from it."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, Literal, NotRequired, TypedDict, cast, get_args

from oneof.errors import InputError
from oneof.io.schema import json_misfit
from oneof.io.words import shown

__all__ = [
    "CRITERIA",
    "WAYS",
    "CandidateFacts",
    "Circumstances",
    "Criterion",
    "CurvePoints",
    "DoneRecord",
    "EpochResult",
    "FailedRecord",
    "Labels",
    "Record",
    "ResultsByWay",
    "Spec",
    "Transduction",
    "ValidationScores",
    "Way",
    "check_record",
    "damage_of",
    "problem_of",
    "reason_of",
]

Criterion = Literal["validation_accuracy", "approximated_accuracy", "covering_rate"]
Way = Literal[Criterion, "last_epoch"]
Labels = Literal[
    "candidates", "true", "likelihoods"
]  # what a run learns from; the last is P(S | x, y) of its sets
# Curves on the validation rows by which an epoch can be chosen, and whether they need true labels.
CRITERIA: dict[Way, bool] = {"validation_accuracy": True, "approximated_accuracy": False, "covering_rate": False}
# Every way to choose an epoch, and the validation score by which the grid point is chosen with it.
WAYS: dict[Way, Criterion] = {
    "validation_accuracy": "validation_accuracy",
    "approximated_accuracy": "approximated_accuracy",
    "covering_rate": "covering_rate",
    "last_epoch": "approximated_accuracy",
}

_LONGEST = 500  # characters of a reason why a run failed


class Spec(TypedDict):
    """All that can change the result of a run; its hash is the key."""

    protocol: int
    dataset: str
    data: str  # the checksum of its files
    split: dict[str, Any]
    candidates: dict[str, Any] | None  # None: those of the data set
    labels: Labels
    method: str  # the name of its class
    version: int
    settings: dict[str, Any]
    seed: int


class CandidateFacts(TypedDict, total=False):
    """What the candidate sets of all training and validation rows are like."""

    mean_size: float
    one_label: float
    full: float
    certain_distractor: float
    annotator_train_accuracy: float
    annotator_test_accuracy: float
    annotator: dict[str, Any]
    sha256: str  # of the sets; records of data sets with sets of their own had none in the beginning


class Circumstances(TypedDict):
    """Where and with what a run was made."""

    device: str
    versions: dict[str, str]
    commit: str | None


class ValidationScores(TypedDict):
    """Scores on the validation rows at an epoch; None where a model that diverged has none."""

    validation_accuracy: float | None
    approximated_accuracy: float | None
    covering_rate: float | None


class EpochResult(TypedDict):
    """The test accuracy at an epoch, counted from 0, and the validation scores there."""

    epoch: int
    validation: ValidationScores
    test_accuracy: float
    true_labels: bool  # whether they were used to choose the epoch


class Transduction(TypedDict):
    """The share of training rows whose most likely candidate is the true label."""

    accuracy: float
    true_labels: bool


class ResultsByWay(TypedDict):
    """What came out, by the way in which the epoch was chosen."""

    validation_accuracy: EpochResult
    approximated_accuracy: EpochResult
    covering_rate: EpochResult
    last_epoch: EpochResult
    transductive: Transduction


class CurvePoints(TypedDict):
    """Points of curves over the epochs, counted from 0; None where a value is NaN."""

    epoch: list[int]
    loss: list[float | None]
    validation_accuracy: list[float]
    approximated_accuracy: list[float | None]
    covering_rate: list[float | None]
    test_accuracy: list[float]


class DoneRecord(Circumstances):
    """A run that is done."""

    key: str
    status: Literal["done"]
    spec: Spec
    seconds: float
    memory: dict[str, float]  # peak megabytes
    candidates: CandidateFacts
    epochs: int
    results: ResultsByWay
    curves: CurvePoints


class FailedRecord(Circumstances):
    """A run that failed."""

    key: str
    status: Literal["failed"]
    spec: Spec
    error: str
    reason: NotRequired[Literal["diverged"]]  # where the kind of failure is known
    seconds: NotRequired[float]


Record = DoneRecord | FailedRecord


def problem_of(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a spec that decides rows and candidate sets."""
    return {name: spec[name] for name in ("dataset", "data", "split", "candidates")}


def reason_of(record: Mapping[str, Any]) -> str:
    """Return the last line of what went wrong in a run that failed."""
    lines = record["error"].strip().splitlines()
    return str(lines[-1])[:_LONGEST] if lines else "unknown"


def check_record(record: Mapping[str, Any]) -> Record:
    """Return a record as what it is; raise ValueError where something is missing or of another type."""
    wrong = damage_of(record)
    if wrong is not None:
        raise InputError(
            f"the record {record['key']!r} in the ledgers is not whole ({wrong}); delete its line and run the "
            "plan again"
        )
    return cast(Record, record)


def damage_of(record: Mapping[str, Any]) -> str | None:
    """Say what is missing in a record, of another type, or cannot be; None where it is whole."""
    if record.get("status") == "failed":
        return json_misfit(record, FailedRecord)
    wrong = json_misfit(record, DoneRecord)
    return wrong if wrong is not None else next(_contradictions(cast(DoneRecord, record)), None)


def _contradictions(record: DoneRecord) -> Iterator[str]:
    results, curves = record["results"], record["curves"]
    for place, count, least in (
        ("seconds", record["seconds"], 0),
        ("epochs", record["epochs"], 1),
        *((f"results.{way}.epoch", results[way]["epoch"], 0) for way in WAYS),
    ):
        if count < least:
            yield f"{place} is {shown(count)}, but must be {least} or more"
    for place, share in _shares(record):
        if share is not None and not 0 <= share <= 1:
            yield f"{place} is {shown(share)}, but must be from 0 to 1"
    epochs = curves["epoch"]
    if not epochs or epochs[0] < 0 or any(b <= a for a, b in pairwise(epochs)):
        yield f"curves.epoch is {shown(epochs)}, but must be rising numbers of epochs"
    for name, points in _curves(record).items():
        if len(points) != len(epochs):
            yield f"curves.{name} has another number of points than curves.epoch"


def _shares(record: DoneRecord) -> Iterator[tuple[str, float | None]]:
    """Give all accuracies and rates, by their place."""
    results, curves = record["results"], _curves(record)
    criteria: tuple[Criterion, ...] = get_args(Criterion)
    yield "results.transductive.accuracy", results["transductive"]["accuracy"]
    for way in WAYS:
        yield f"results.{way}.test_accuracy", results[way]["test_accuracy"]
        for criterion in criteria:
            yield f"results.{way}.validation.{criterion}", results[way]["validation"][criterion]
    for name in (*criteria, "test_accuracy"):
        for i, value in enumerate(curves[name]):
            yield f"curves.{name}[{i}]", value


def _curves(record: DoneRecord) -> dict[str, list[float | None]]:
    return {name: cast(Any, record["curves"])[name] for name in CurvePoints.__annotations__}
