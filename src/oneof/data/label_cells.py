"""The cells of a column of labels: text, numbers and lists, turned into labels and sets of labels."""

import json
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oneof.errors import InputError
from oneof.labels.separators import is_list_text

_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")


def label_sets(column: Any, separator: str | None = None, classes: NDArray[Any] | None = None) -> list[Any]:
    """Turn the cells of a column into labels and sets of labels, which :func:`oneof.encode` takes.

    Parameters
    ----------
    column : Series
        Strings, numbers or lists. Where all cells are JSON lists, such as ``["cat", "dog"]``, they are read as
        such.
    separator : str, optional
        Splits strings; without it a string is one label.
    classes : array, optional
        The classes of a model: labels are written as these are, 3 as "3" or "3" as 3.

    Returns
    -------
    list
        One item per row.
    """
    if separator == "":
        raise InputError("separator is '', but must have a character; pass one such as '|'")
    cells = _parsed(column.tolist()) or [_split(cell, separator) for cell in column.tolist()]
    if classes is None:
        return cells
    as_classes = number_to_text if isinstance(classes.tolist()[0], str) else _text_to_number
    return [list(map(as_classes, cell)) if isinstance(cell, list) else as_classes(cell) for cell in cells]


def are_json_lists(column: Any) -> bool:
    """Say whether a column of text holds JSON lists of labels, and may hold empty cells, but nothing else."""
    return _parsed(column.tolist()) is not None


def _parsed(cells: list[Any]) -> list[Any] | None:
    """Return the lists that the cells are in JSON, None for empty cells; None where not all are lists."""
    texts = [cell.strip() for cell in cells if isinstance(cell, str)]
    if len(texts) < len(cells) or not any(texts) or not all(is_list_text(text) for text in texts if text):
        return None
    try:
        lists = [json.loads(text) if text else None for text in texts]
    except (ValueError, RecursionError):  # RecursionError for thousands of brackets
        return None
    labels = [label for each in lists if each for label in each]
    kinds = {type(label) for label in labels}
    return lists if kinds <= {str, int, float} else None


def unsplit(sets: list[Any]) -> list[Any]:
    """Return the labels of sets if a separator has split none of them, else nothing."""
    labels = [label for each in sets if isinstance(each, list) for label in each]
    return labels if all(len(each) < 2 for each in sets if isinstance(each, list)) else []


def _split(cell: Any, separator: str | None) -> Any:
    if isinstance(cell, np.ndarray):
        return cell.tolist()
    if not isinstance(cell, str):
        return cell
    if separator is None:
        return cell.strip() or None
    return [part.strip() for part in cell.split(separator) if part.strip()]


def number_to_text(label: Any) -> Any:
    """Write a whole number as text; anything else stays as it is."""
    whole = isinstance(label, float) and label.is_integer()
    return str(int(label) if whole else label) if whole or isinstance(label, int) else label


def _text_to_number(label: Any) -> Any:
    if not isinstance(label, str) or not _WHOLE_NUMBER.fullmatch(label):
        return label
    try:
        return int(label)
    except ValueError:  # thousands of digits
        return label
