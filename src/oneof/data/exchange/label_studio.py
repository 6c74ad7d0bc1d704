"""Label Studio's JSON: choices of annotations in; tasks with annotations, and predictions with scores, out."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import numpy as np
import pandas as pd

from oneof.data.exchange.annotations import Annotations, Mark, build
from oneof.data.exchange.json_files import read_items, write_json
from oneof.errors import InputError
from oneof.io.words import alternatives, listed, shown, warn

_MODEL = "oneof"


class LabelStudioRegion(TypedDict):
    """One answer: that of a control tag, ``from_name``, about an object tag, ``to_name``."""

    from_name: NotRequired[str]
    to_name: NotRequired[str]
    type: NotRequired[str]
    value: NotRequired[dict[str, Any]]


class LabelStudioAnswer(TypedDict):
    """An annotation or a prediction."""

    result: list[LabelStudioRegion]
    completed_by: NotRequired[int | str | dict[str, Any] | None]
    was_cancelled: NotRequired[bool | None]
    score: NotRequired[float | None]


class LabelStudioTask(TypedDict):
    """A task of a project."""

    data: dict[str, Any]
    id: NotRequired[int | str | None]
    annotations: NotRequired[list[LabelStudioAnswer]]
    predictions: NotRequired[list[LabelStudioAnswer | int]]  # a number: the server left it out of the export


def read_label_studio(path: Path, candidates: str | None = None, unlabelled: bool = False) -> Annotations:
    """Read a project that was exported as JSON; ``candidates`` names the control where it has several."""
    tasks: list[Any] = read_items(
        path, LabelStudioTask, "Label Studio", "export the project as JSON, not JSON-MIN"
    )
    control, about = _control(tasks, path, candidates, unlabelled)
    marks: list[Mark] = []
    suggested: list[tuple[Any, float] | None] = []
    skipped = 0
    for row, task in enumerate(tasks):
        for answer in task.get("annotations", []):
            skipped += bool(answer.get("was_cancelled"))
            if not answer.get("was_cancelled"):
                who = _worker(answer)
                marks += [(row, who, label) for label in _choices(answer, control, row, path)]
        suggested.append(_suggested(_told(task), control, row, path))
    if skipped:
        warn(f"{skipped} annotations of {shown(path)} were skipped by their annotators and are left out")
    ids = [row if (name := task.get("id")) is None else name for row, task in enumerate(tasks)]
    data = pd.DataFrame([task["data"] for task in tasks], dtype=object)
    return build(ids, marks, data, shown(path), None, suggested, control, about, unlabelled)


def _told(task: Any) -> list[Any]:
    """Return the predictions of a task that an export holds, not only counts."""
    return [each for each in task.get("predictions", []) if not isinstance(each, int)]


def _control(tasks: list[Any], path: Path, wanted: str | None, unlabelled: bool) -> tuple[str, str]:
    """Return the names of the control of choices and of the object that it is about."""
    found: dict[str, str] = {}
    for task in tasks:
        for answer in [*task.get("annotations", []), *_told(task)]:
            for region in answer["result"]:
                if region.get("type") == "choices":
                    found.setdefault(region.get("from_name", ""), region.get("to_name", ""))
    if not found and unlabelled:
        return wanted or "label", ""
    if not found:
        raise InputError(f"{shown(path)} has no choices, but they are the labels: annotate with <Choices>")
    if wanted is None and len(found) > 1:
        raise InputError(f"{shown(path)} has choices of the controls {listed(found)}; name one with candidates")
    name = next(iter(found)) if wanted is None else wanted
    if name not in found:
        raise InputError(f"{shown(path)} has no choices of the control {shown(name)}; {alternatives(name, found)}")
    return name, found[name]


def _choices(answer: Any, control: str, row: int, path: Path) -> list[str]:
    """Return the choices of an answer; a control that answers for several regions is no label of the task."""
    regions = [each for each in answer["result"] if each.get("from_name") == control]
    if len(regions) > 1:
        raise InputError(
            f"the control {shown(control)} answers {len(regions)} times in one annotation of task {row} of "
            f"{shown(path)}, as it does for regions; a task needs one answer: name another control"
        )
    choices = regions[0].get("value", {}).get("choices") if regions else []
    if not isinstance(choices, list) or not all(isinstance(each, str) and each for each in choices):
        raise InputError(
            f"the choices of task {row} of {shown(path)} are {shown(choices, 80)}, but must be a list of texts; "
            "export it again"
        )
    return choices


def _worker(answer: Any) -> Any:
    who = answer.get("completed_by")
    return who.get("email") or who.get("id") if isinstance(who, dict) else who


def _suggested(answers: list[Any], control: str, row: int, path: Path) -> tuple[Any, float] | None:
    """Return the choice and score of the last prediction."""
    found = [(_choices(each, control, row, path), each.get("score")) for each in answers]
    one = [
        (choices[0], np.nan if score is None else float(score)) for choices, score in found if len(choices) == 1
    ]
    return one[-1] if one else None


def write_label_studio(annotations: Annotations, path: Path) -> None:
    """Write tasks to import into a project; each prediction has the score of its choice."""
    data = annotations.data
    about = annotations.about or (str(data.columns[0]) if len(data.columns) else "text")
    tasks = []
    for task, facts, votes, suggestion in zip(
        annotations.tasks.tolist(),
        data.to_dict("records"),
        annotations.votes,
        suggestions(annotations),
        strict=True,
    ):
        item: dict[str, Any] = {"id": task, "data": facts}
        item["annotations"] = [
            {"result": [_region(annotations.field, about, labels)], "ground_truth": False}
            | ({} if who is None else {"completed_by": who if isinstance(who, int) else {"email": str(who)}})
            for who, labels in votes.items()
        ]
        if suggestion is not None:
            label, score = suggestion
            result = [_region(annotations.field, about, [label])]
            item["predictions"] = [{"model_version": _MODEL, "score": score, "result": result}]
        tasks.append(item)
    write_json(tasks, path)


def _region(control: str, about: str, labels: list[Any]) -> dict[str, Any]:
    return {
        "from_name": control,
        "to_name": about,
        "type": "choices",
        "value": {"choices": list(map(str, labels))},
    }


def suggestions(annotations: Annotations) -> Iterator[tuple[Any, float] | None]:
    """Give what a model thinks of each task, None where it says nothing."""
    if annotations.suggestions is None:
        yield from [None] * len(annotations)
        return
    for label, score in annotations.suggestions.itertuples(index=False, name=None):
        yield None if label is None else (label, score)
