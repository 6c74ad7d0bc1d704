"""The record of a run: what the runner writes into a ledger, and reports read from it."""

from collections.abc import Iterator, Mapping
from functools import cache
from types import UnionType
from typing import Any, Literal, NotRequired, TypedDict, cast, get_args, get_origin, get_type_hints, is_typeddict

__all__ = [
    "CRITERIA",
    "WAYS",
    "Circumstances",
    "Criterion",
    "CurvePoints",
    "DoneRecord",
    "EpochResult",
    "FailedRecord",
    "Record",
    "ResultsByWay",
    "Spec",
    "Transduction",
    "ValidationScores",
    "Way",
    "check_record",
    "problem_of",
    "reason_of",
]

Criterion = Literal["validation_accuracy", "approximated_accuracy", "covering_rate"]
Way = Literal[Criterion, "last_epoch"]
# Curves on the validation rows by which an epoch can be chosen, and whether they need true labels.
CRITERIA: dict[Way, bool] = {"validation_accuracy": True, "approximated_accuracy": False, "covering_rate": False}
# Every way to choose an epoch, and the validation score by which the grid point is chosen with it.
WAYS: dict[Way, Criterion] = {
    "validation_accuracy": "validation_accuracy",
    "approximated_accuracy": "approximated_accuracy",
    "covering_rate": "covering_rate",
    "last_epoch": "approximated_accuracy",
}

_SHOWN = 100  # characters of a value in a message


class Spec(TypedDict):
    """All that can change the result of a run; its hash is the key."""

    protocol: int
    dataset: str
    data: str  # the checksum of its files
    split: dict[str, Any]
    candidates: dict[str, Any] | None  # None: those of the data set
    labels: Literal["candidates", "true"]
    method: str  # the name of its class
    version: int
    settings: dict[str, Any]
    seed: int


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
    candidates: dict[str, Any]  # facts about the candidate sets
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
    return str(lines[-1]) if lines else "unknown"


def check_record(record: Mapping[str, Any]) -> Record:
    """Return a record as what it is; raise ValueError where something is missing or of another type."""
    kind = DoneRecord if record["status"] == "done" else FailedRecord
    wrong = next(_misfits(record, kind), None)
    if wrong is not None:
        raise ValueError(
            f"the record {record['key']!r} in the ledgers is not whole ({wrong}); delete its line and run the "
            "plan again"
        )
    return cast(Record, record)


_hints = cache(get_type_hints)  # which takes longer than all checks of a record
_WORDS = {str: "a text", int: "a whole number", float: "a number", bool: "true or false", type(None): "null"}


def _misfits(value: Any, kind: Any, place: str = "") -> Iterator[str]:
    """Say what keeps a value from being of a type: a TypedDict, dict, list, union, literal or plain type."""
    if not _is_of(value, kind):
        yield f"{place or 'it'} is {repr(value)[:_SHOWN]}, but must be {_in_words(kind)}"
    elif is_typeddict(kind):
        for name, part in _hints(kind).items():
            if name in value:
                yield from _misfits(value[name], part, f"{place}.{name}".lstrip("."))
            elif name in kind.__required_keys__:
                yield f"{place or 'it'} has no {name!r}"
    elif get_origin(kind) is dict:
        for name, item in value.items():
            yield from _misfits(item, get_args(kind)[1], f"{place}.{name}")
    elif get_origin(kind) is list:
        for i, item in enumerate(value):
            yield from _misfits(item, get_args(kind)[0], f"{place}[{i}]")


def _is_of(value: Any, kind: Any) -> bool:
    """Compare the value itself; of containers not what they hold."""
    origin, parts = get_origin(kind) or kind, get_args(kind)
    if origin is Any:
        return True
    if origin is Literal:
        return value in parts
    if origin is UnionType:
        return any(_is_of(value, part) for part in parts)
    if isinstance(value, bool):
        return origin is bool
    if origin is dict or is_typeddict(origin):
        return isinstance(value, Mapping)
    return isinstance(value, int | float if origin is float else origin)


def _in_words(kind: Any) -> str:
    origin, parts = get_origin(kind) or kind, get_args(kind)
    if origin in (Literal, UnionType):
        return " or ".join(map(_in_words if origin is UnionType else repr, parts))
    return _WORDS.get(origin, "a list" if origin is list else "a table")
