"""Argilla's records as JSON: responses of users in; responses, and suggestions with scores, out."""

from pathlib import Path
from typing import Any, NotRequired, TypedDict
from uuid import UUID

import numpy as np
import pandas as pd

from oneof.data.exchange.annotations import Annotations, Mark, build, warn_of_loss
from oneof.data.exchange.json_files import read_items, write_json
from oneof.data.exchange.label_studio import suggestions
from oneof.errors import InputError
from oneof.io.schema import is_number
from oneof.io.words import alternatives, listed, shown

_MODEL, _CANDIDATES = "oneof", "candidates"  # agents of suggestions: a model, and sets of unknown annotators


class ArgillaResponse(TypedDict):
    """The answer of a user to a question."""

    value: Any
    user_id: NotRequired[str | None]


class ArgillaSuggestion(TypedDict):
    """The answer of a model to a question."""

    value: Any
    score: NotRequired[Any]
    agent: NotRequired[str | None]


class ArgillaRecord(TypedDict):
    """A record of a dataset."""

    fields: dict[str, Any]
    id: NotRequired[str | int | None]
    metadata: NotRequired[dict[str, Any] | None]
    responses: NotRequired[dict[str, list[ArgillaResponse]] | None]
    suggestions: NotRequired[dict[str, ArgillaSuggestion] | None]


def read_argilla(path: Path, candidates: str | None = None, unlabelled: bool = False) -> Annotations:
    """Read what ``dataset.records.to_json`` writes; ``candidates`` names the question where there are several.

    Argilla does not write whether a response was submitted: drafts count, too.
    """
    records: list[Any] = read_items(path, ArgillaRecord, "Argilla", "export it with dataset.records.to_json(path)")
    question = _question(records, path, candidates, unlabelled)
    marks: list[Mark] = []
    suggested: list[tuple[Any, float] | None] = []
    for row, record in enumerate(records):
        for response in (record.get("responses") or {}).get(question, []):
            labels = _labels(response["value"], row, path)
            marks += [(row, response.get("user_id"), label) for label in labels]
        suggestion = (record.get("suggestions") or {}).get(question)
        labels = _labels(suggestion["value"], row, path) if suggestion else []
        if suggestion and suggestion.get("agent") == _CANDIDATES:
            marks += [(row, None, label) for label in labels]
            labels = []
        score: Any = suggestion.get("score") if suggestion else None
        suggested.append((labels[0], float(score) if is_number(score) else np.nan) if len(labels) == 1 else None)
    ids = [row if (name := record.get("id")) is None else name for row, record in enumerate(records)]
    data = pd.DataFrame([record["fields"] for record in records], dtype=object)
    return build(ids, marks, data, shown(path), None, suggested, question, "", unlabelled)


def _question(records: list[Any], path: Path, wanted: str | None, unlabelled: bool) -> str:
    """Return the question about labels: one whose answers are texts or lists of texts."""
    found: dict[str, None] = {}
    for record in records:
        for name, responses in (record.get("responses") or {}).items():
            if any(_are_labels(each["value"]) for each in responses):
                found[name] = None
        for name, suggestion in (record.get("suggestions") or {}).items():
            if _are_labels(suggestion["value"]):
                found[name] = None
    if not found and unlabelled:
        return wanted or "label"
    if not found:
        raise InputError(f"{shown(path)} has no answers that are labels; answer a question of labels first")
    if wanted is None and len(found) > 1:
        raise InputError(f"{shown(path)} has answers to the questions {listed(found)}; name one with candidates")
    name = next(iter(found)) if wanted is None else wanted
    if name not in found:
        raise InputError(f"{shown(path)} has no labels of the question {shown(name)}; {alternatives(name, found)}")
    return name


def _are_labels(value: Any) -> bool:
    items = value if isinstance(value, list) else [value]
    return bool(items) and all(isinstance(each, str) and each for each in items)


def _labels(value: Any, row: int, path: Path) -> list[str]:
    """Return the labels of an answer, none where there is none."""
    if value is None or value == []:
        return []
    if not _are_labels(value):
        raise InputError(
            f"the answer in record {row} of {shown(path)} is {shown(value, 80)}, but must be a label or a list of "
            "labels; name another question"
        )
    return value if isinstance(value, list) else [value]


def write_argilla(annotations: Annotations, path: Path) -> None:
    """Write records for ``dataset.records.from_json``; each suggestion has its score.

    Sets of unknown annotators are suggestions for a question with several labels.
    """
    _check_users(annotations)
    if annotations.suggestions is not None and annotations.marks["worker"].isna().any():
        warn_of_loss("a record of Argilla with a suggestion of a model", ["candidate sets of unknown annotators"])
    records = []
    for task, facts, votes, suggestion in zip(
        annotations.tasks.tolist(),
        annotations.data.to_dict("records"),
        annotations.votes,
        suggestions(annotations),
        strict=True,
    ):
        given = [
            {"value": _answer(labels), "user_id": str(who)} for who, labels in votes.items() if who is not None
        ]
        thought: dict[str, Any] = {}
        if suggestion is not None:
            thought = {"value": suggestion[0], "score": suggestion[1], "agent": _MODEL}
        elif None in votes:
            thought = {"value": votes[None], "score": None, "agent": _CANDIDATES}
        records.append(
            {
                "id": str(task),
                "fields": facts,
                "metadata": {},
                "suggestions": {annotations.field: thought} if thought else {},
                "responses": {annotations.field: given} if given else {},
                "vectors": {},
            }
        )
    write_json(records, path)


def _answer(labels: list[Any]) -> Any:
    return labels[0] if len(labels) == 1 else labels


def _check_users(annotations: Annotations) -> None:
    """Refuse annotators that Argilla could not know."""
    strange = [who for who in annotations.workers if not _is_uuid(who)]
    if strange:
        raise InputError(
            f"the annotators are called {listed(strange, 5)}, but Argilla knows its users by their UUIDs: rename "
            "them to these in a long table, task, worker, label"
        )


def _is_uuid(who: Any) -> bool:
    try:
        UUID(str(who))
    except ValueError:
        return False
    return True
