"""Annotations: tasks and the labels that people or models gave them, in no tool's format yet."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from oneof.errors import InputError
from oneof.io.arguments import as_array, as_floats
from oneof.io.words import listed, shown, warn
from oneof.labels import Votes, from_votes, rows_text
from oneof.labels.names import class_names, number_labels

Mark = tuple[int, Any, Any]  # the number of a task, who labelled it (None: nobody knows), and one label


@dataclass(frozen=True, eq=False, repr=False)
class Annotations:
    r"""Tasks and their labels, as `read_annotations` reads them and `write_annotations` writes them.

    Attributes
    ----------
    tasks : array of shape (n,)
        The name or number of each task.
    marks : DataFrame
        One line for each label that was given: ``row``, the number of the task; ``worker``, who gave it, None
        where nobody knows; ``label``. The lines of one worker on one task are one vote: one of them is meant.
    classes : array of shape (K,)
        All labels.
    data : DataFrame of n rows
        What the tasks are about: texts, addresses of images, features.
    suggestions : DataFrame of n rows or None
        What a model thinks: ``label``, None where it says nothing, and ``score``.
    field, about : str
        What the labels are called: a column, question or control; and the part of the data that they are about.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from oneof import read_annotations
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "votes.csv")
    ...     _ = path.write_text("task,worker,label\na,anna,cat\na,ben,dog\nb,anna,dog\n")
    ...     labels = read_annotations(path)
    >>> labels.tasks.tolist(), labels.classes.tolist(), labels.sets
    (['a', 'b'], ['cat', 'dog'], [['cat', 'dog'], ['dog']])
    """

    tasks: NDArray[Any]
    marks: pd.DataFrame
    classes: NDArray[Any]
    data: pd.DataFrame
    suggestions: pd.DataFrame | None = None
    field: str = "label"
    about: str = ""

    def __len__(self) -> int:
        return len(self.tasks)

    def __repr__(self) -> str:
        who = self.workers
        given = f"{self.votes_a_task.sum()} votes of {len(who)} annotators" if who else "candidate sets"
        return f"Annotations: {len(self)} tasks, {len(self.classes)} classes, {given}"

    @property
    def workers(self) -> list[Any]:
        """Everybody who gave labels, in the order in which they come; empty where nobody is known."""
        return [who for who in self.marks["worker"].drop_duplicates().tolist() if who is not None]

    @property
    def votes_a_task(self) -> NDArray[np.intp]:
        """How many votes each task has (n,); a set of an unknown annotator counts as one."""
        rows = self.marks["row"].to_numpy(np.intp)
        who = pd.factorize(self.marks["worker"].map(lambda each: ("",) if each is None else each))[0]
        pairs = np.unique(np.stack([rows, who]), axis=1)
        return np.bincount(pairs[0], minlength=len(self))

    @property
    def sets(self) -> list[list[Any]]:
        """The labels that each task was given by anybody; empty where there are none."""
        sets: list[dict[Any, None]] = [{} for _ in range(len(self))]
        for row, label in zip(self.marks["row"].tolist(), self.marks["label"].tolist(), strict=True):
            sets[row][label] = None
        return [list(each) for each in sets]

    @property
    def votes(self) -> list[dict[Any, list[Any]]]:
        """Who gave each task which labels."""
        votes: list[dict[Any, list[Any]]] = [{} for _ in range(len(self))]
        for row, worker, label in self.marks.itertuples(index=False, name=None):
            votes[row].setdefault(worker, []).append(label)
        return votes

    @property
    def y(self) -> Votes | pd.DataFrame:
        """What `fit` takes: votes where tasks have several, else candidate sets as a frame named by classes."""
        empty = np.flatnonzero(self.votes_a_task == 0)
        if empty.size:
            raise InputError(
                f"{rows_text(empty)} have no label, but y needs one for each task: take .labelled() first"
            )
        if self.workers and self.votes_a_task.max() > 1:
            return from_votes(self.marks, self.classes, long=("row", "worker", "label"), tasks=range(len(self)))
        matrix = np.zeros((len(self), len(self.classes)), dtype=bool)
        codes = {name: number for number, name in enumerate(self.classes.tolist())}
        matrix[self.marks["row"].to_numpy(np.intp), [codes[label] for label in self.marks["label"]]] = True
        return pd.DataFrame(matrix, columns=self.classes)

    def labelled(self) -> Self:
        """Return the tasks that have a label."""
        return self.take(np.flatnonzero(self.votes_a_task > 0))

    def take(self, rows: NDArray[np.intp]) -> Self:
        """Return the tasks of these numbers, in this order."""
        place = np.full(len(self), -1)
        place[rows] = np.arange(len(rows))
        marks = self.marks.assign(row=place[self.marks["row"].to_numpy(np.intp)])
        some = self.suggestions
        return replace(
            self,
            tasks=self.tasks[rows],
            marks=marks[marks["row"] >= 0].reset_index(drop=True),
            data=self.data.iloc[rows].reset_index(drop=True),
            suggestions=None if some is None else some.iloc[rows].reset_index(drop=True),
        )

    def suggest(self, labels: ArrayLike, scores: ArrayLike) -> Self:
        """Return the same tasks with what a model thinks of each, such as ``model.disambiguate`` returns it."""
        names, numbers = as_array(labels, "labels"), as_floats(scores, "scores")
        if names.shape != (len(self),) or numbers.shape != (len(self),):
            raise InputError(
                f"labels has shape {names.shape} and scores {numbers.shape}, but there are {len(self)} tasks: "
                "pass one of each for every task"
            )
        if not ((numbers >= 0) & (numbers <= 1)).all():
            bad = numbers[~((numbers >= 0) & (numbers <= 1))][0]
            raise InputError(f"scores holds {bad:g}, but must hold probabilities, from 0 to 1: pass these")
        unknown = sorted(set(names.tolist()) - set(self.classes.tolist()), key=str)
        if unknown:
            raise InputError(
                f"labels holds {listed(unknown)}, but the classes are {listed(self.classes)}: pass labels of these"
            )
        return replace(self, suggestions=suggestion_frame(names.tolist(), numbers.tolist()))

    def onto(self, others: "Annotations", by_name: bool = True) -> "Annotations":
        """Return other tasks with the labels and suggestions of these, matched by name or else by their order."""
        if by_name:
            numbers = {str(task): number for number, task in enumerate(others.tasks.tolist())}
            found = [numbers.get(str(task), -1) for task in self.tasks.tolist()]
            unknown = [task for task, number in zip(self.tasks.tolist(), found, strict=True) if number < 0]
            if unknown:
                raise InputError(
                    f"the tasks {listed(unknown)} are not among those of the other file, which has "
                    f"{listed(others.tasks, 5)}: name the column of ids, or give the file that they come from"
                )
        else:
            if len(self) != len(others):
                raise InputError(
                    f"there are {len(self)} rows and {len(others)} tasks, and no ids by which they could be "
                    "matched: name a column of ids"
                )
            found = list(range(len(self)))
        rows = np.array(found, dtype=np.intp)
        marks = self.marks.assign(row=rows[self.marks["row"].to_numpy(np.intp)])
        some = self.suggestions
        if some is not None:
            some = some.set_axis(rows).reindex(range(len(others)))
            some = suggestion_frame(
                some["label"].where(some["label"].notna(), None).tolist(), some["score"].tolist()
            )
        classes = np.array(sorted({*self.classes.tolist(), *others.classes.tolist()}))
        # What a model suggests leaves the labels of the tasks alone.
        kept = others.marks if some is not None and len(others.marks) else marks
        return replace(others, marks=kept, classes=classes, suggestions=some)


def build(
    tasks: Sequence[Any],
    marks: Iterable[Mark],
    data: pd.DataFrame,
    source: str,
    classes: Any = None,
    suggested: Sequence[tuple[Any, float] | None] = (),
    field: str = "label",
    about: str = "",
    unlabelled: bool = False,
) -> Annotations:
    """Check what a reader of the file ``source`` found, and return it.

    ``suggested`` has an item for each task. Without ``unlabelled``, some task must have a label.
    """
    twice = pd.Series(tasks)[pd.Series(tasks).duplicated()]
    if len(twice):
        raise InputError(f"{source} names the task {shown(twice.iloc[0])} twice: give each task a name of its own")
    rows = list(dict.fromkeys(marks))
    frame = pd.DataFrame(
        {
            "row": np.array([row for row, _, _ in rows], dtype=np.intp),
            "worker": pd.Series([worker for _, worker, _ in rows], dtype=object),
            "label": pd.Series([label for _, _, label in rows], dtype=object),
        }
    )
    some = [each for each in suggested if each is not None]
    if not (rows or some or unlabelled):
        raise InputError(f"{source} holds no label: label some of its tasks first")
    named = [*frame["label"].tolist(), *(label for label, _ in some)]
    where = np.array([*frame["row"], *(i for i, each in enumerate(suggested) if each is not None)], dtype=np.intp)
    if classes is not None:
        classes = class_names(classes)
    names = number_labels(named, where, classes, source)[1]
    suggestions = None
    if some:
        labels = [None if each is None else each[0] for each in suggested]
        scores = [np.nan if each is None else each[1] for each in suggested]
        suggestions = suggestion_frame(labels, scores)
    return Annotations(np.array(tasks), frame, names, data.reset_index(drop=True), suggestions, field, about)


def suggestion_frame(labels: list[Any], scores: list[float]) -> pd.DataFrame:
    """Return suggestions as a frame."""
    return pd.DataFrame({"label": pd.Series(labels, dtype=object), "score": np.array(scores, dtype=np.float64)})


def check_one_label_a_vote(annotations: Annotations, tool: str) -> None:
    """Refuse votes for several labels, where a tool would take each for a vote of its own."""
    several = sorted(
        {row for row, vote in enumerate(annotations.votes) for each in vote.values() if len(each) > 1}
    )
    if several:
        raise InputError(
            f"a vote names several labels in {rows_text(several)}, but {tool} knows votes for one label only: "
            "write a table, or another format that keeps sets"
        )


def check_workers(annotations: Annotations, tool: str) -> None:
    """Refuse labels of unknown annotators, where a tool judges annotators."""
    unknown = annotations.marks["worker"].isna()
    if unknown.any() or not len(unknown):
        raise InputError(
            f"nobody knows who gave the labels, but {tool} holds votes of annotators: give votes, or write "
            "another format"
        )


def warn_of_loss(tool: str, lost: Sequence[str]) -> None:
    """Warn of what a format cannot hold."""
    if lost:
        warn(f"{tool} has no place for {' and '.join(lost)}, which are left out")
