"""Columns of labels among the features: what would be learned from them is of no use for rows without labels."""

import warnings
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from oneof.errors import InputError, OneofError
from oneof.io.words import shown
from oneof.labels import SparseSets, encode_sets
from oneof.pipeline.column_kinds import as_texts

_NEARLY_ALL = 0.95  # of the rows of a column of labels have it among their candidates


def refuse_labels(frame: Any, kinds: Mapping[str, str], asked: Collection[str], y: Any) -> None:
    """Refuse categories that are candidates of nearly all of their rows, but for columns that were asked for.

    ``kinds`` has the kind of each column. What ``y`` is wrong with is said by the classifier that learns from it.
    """
    columns = [name for name, kind in kinds.items() if kind == "category" and name not in asked]
    try:
        with warnings.catch_warnings(action="ignore"):
            sets, classes = encode_sets(y) if columns else (np.empty((0, 0)), np.empty(0))
    except OneofError:
        return
    candidates = sets.matrix if isinstance(sets, SparseSets) else sets
    numbers = {str(name): number for number, name in enumerate(classes.tolist())}
    for column in columns if candidates.shape[0] == len(frame) else ():
        texts = as_texts(frame[column])
        known = np.array([text is not None for text in texts])
        labels = np.array([numbers.get(text, -1) for text in texts[known]])
        if (labels >= 0).all() and (candidates[np.flatnonzero(known), labels] > 0).mean() >= _NEARLY_ALL:
            raise InputError(
                f"the column {shown(column, 60)} holds labels (such as {shown(texts[known][0], 40)}), which are "
                f"candidates of their rows; drop it (on the command line --drop {column}), or say that it is a "
                f"category to learn from it (kinds={{{shown(column, 40)}: 'category'}}, --kind {column}=category)"
            )
