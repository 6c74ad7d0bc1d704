"""Class names: which labels may serve as one, and the class number of every label."""

from collections.abc import Sequence
from itertools import repeat
from types import NoneType
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oneof.errors import InputError, KindError
from oneof.io.arguments import as_array
from oneof.io.words import listed, shown
from oneof.labels.reading import is_missing, to_python
from oneof.labels.separators import separator_between
from oneof.labels.validation import ForeignLabelsError, rows_text

# Missing and complex values are refused later, each with an error message of its own.
_READABLE = (str, int, float, complex, NoneType, type(pd.NA), type(pd.NaT))


def number_labels(
    labels: list[Any], rows: NDArray[np.intp], classes: Any, source: str
) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Return the class number of each label, and the class names; ``source`` names the labels in messages."""
    distinct = _distinct(labels, rows, source)
    names = np.array(sorted(distinct)) if classes is None else class_names(classes)
    numbers = {name: number for number, name in enumerate(names.tolist())}
    codes = np.fromiter(map(numbers.get, labels, repeat(-1)), dtype=np.intp, count=len(labels))
    outside = np.flatnonzero(codes < 0)
    if outside.size:
        unknown = sorted({labels[i] for i in outside})
        separator = separator_between(unknown)
        raise ForeignLabelsError(
            f"{source} names unknown labels ({listed(unknown)}) in {rows_text(rows[outside])}, but only those in "
            "classes are expected",
            f"pass separator={separator!r}" if separator else "add them to classes or mend the rows",
            also_for_model=separator is not None,
        )
    return codes, names


def _distinct(labels: list[Any], rows: NDArray[np.intp], source: str) -> set[Any]:
    """Return the distinct labels, refusing those that cannot name a class."""
    foreign = {kind for kind in set(map(type, labels)) if not issubclass(kind, _READABLE)}
    if foreign:
        i = next(i for i, label in enumerate(labels) if type(label) in foreign)
        raise KindError(
            f"{source} holds a label of type {type(labels[i]).__name__} in row {rows[i]}, but labels must be "
            "strings or integers: convert it, and write each set as a list, tuple, set or 1-d array"
        )
    distinct = set(labels)
    if any(map(is_missing, distinct)):
        where = rows[[is_missing(label) for label in labels]]
        raise InputError(
            f"{source} holds missing labels (None or NaN) in {rows_text(where)}, but every label must be "
            "known: fill them in or drop them"
        )
    texts = [label for label in distinct if isinstance(label, str)]
    if 0 < len(texts) < len(distinct):
        text, number = min(texts), next(label for label in labels if not isinstance(label, str))
        raise InputError(
            f"{source} mixes strings such as {shown(text)} and numbers such as {shown(number)}, but class names "
            "must be of one kind: convert them all to strings"
        )
    for label in distinct:
        _check_label(label, source)
    return distinct


def _check_label(label: Any, source: str) -> None:
    """Refuse measurements, and labels that an array cannot hold as they are."""
    if isinstance(label, str):
        if label.endswith("\0"):
            raise InputError(
                f"{source} holds the label {shown(label)}, but arrays drop NUL characters at the end: remove them"
            )
    elif isinstance(label, int):
        if not -(2**63) <= label < 2**63:
            raise InputError(
                f"{source} holds the label {shown(label)}, but integers must have 64 bits: convert all labels to "
                "strings"
            )
    elif not (isinstance(label, float) and label.is_integer()):
        # Words of scikit-learn, which other tools look for.
        kind = "Complex data not supported" if isinstance(label, complex) else "Unknown label type: continuous"
        found = "infinity" if label in (float("inf"), -float("inf")) else shown(label)
        raise InputError(f"{kind}. {source} holds {found}, but labels must be strings or integers: convert them")


def column_names(
    own: list[Any] | None, classes: Any, width: int, source: str, fix: str = "", fixed: bool = False
) -> NDArray[Any]:
    """Name the columns of a matrix: by `classes`, else by its ``own`` names, else by number.

    Classes that are partly the own names, or these in another order, are refused with the ``fix``: columns would
    be swapped silently. ``fixed`` names are labels that somebody gave: all other classes are refused, but for
    numbers of columns.
    """
    if classes is None:
        return np.arange(width) if own is None else class_names(own, f"the header of {source}")
    names = class_names(classes)
    if len(names) != width:
        raise ForeignLabelsError(
            f"classes has {len(names)} names and {source} has {width} columns", "name each column exactly once"
        )
    if own is None or own == names.tolist():
        return names
    same = set(own) == set(names.tolist())
    foreign = fixed and not are_numbers(names.tolist())
    if foreign or same or not (are_numbers(own) or set(own).isdisjoint(names.tolist())):
        how = "[classes] to reorder" if same else ".reindex(columns=classes, fill_value=0) to complete"
        raise ForeignLabelsError(
            f"the columns of {source} are [{listed(own)}], but the classes are, in this order, [{listed(names)}]",
            fix or f"pass {source}{how} them, or {source}.to_numpy() to rename them",
            also_for_model=True,
        )
    return names


def are_numbers(own: list[Any] | None) -> bool:
    """Tell whether columns have no names but their numbers, which pandas gives them."""
    return own is None or own == list(range(len(own)))


def columns_of(table: Any) -> list[Any] | None:
    """Return the names of the columns of a frame, None where a table has none."""
    return table.columns.tolist() if isinstance(table, pd.DataFrame) else None


def class_names(classes: Any, source: str = "classes") -> NDArray[Any]:
    """Return given class names as an array, in their order."""
    names = as_array(classes, "classes").tolist() if hasattr(classes, "tolist") else classes
    if not isinstance(names, Sequence) or isinstance(names, str):
        raise KindError(
            f"classes is of type {type(classes).__name__}, but the order of classes matters: "
            "pass a list or 1-d array of names"
        )
    names = to_python(names)
    distinct = _distinct(names, np.arange(len(names)), source)
    if len(distinct) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"{source} holds {shown(twice)} more than once: name each class exactly once")
    return np.array(names)
