"""Label inputs of every Python type, written as trees of JSON so that they can be damaged and kept.

A table ``{"kind": K, "data": D}`` stands for an object of another type made of D; see `KINDS`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy import sparse

KINDS: dict[str, Callable[[Any, Any], Any]] = {
    "array": lambda data, dtype: np.array(data, dtype=dtype),
    "series": lambda data, dtype: pd.Series(data, dtype=dtype),
    "frame": lambda data, _: pd.DataFrame(data),
    "category": lambda data, _: pd.Series(pd.Categorical(data)),
    "sparse": lambda data, dtype: sparse.csr_matrix(np.array(data, dtype=dtype)),
    "tensor": lambda data, _: torch.tensor(data),
    "masked": lambda data, _: np.ma.masked_equal(np.array(data), 0),
    "set": lambda data, _: set(data),
    "frozenset": lambda data, _: frozenset(data),
    "tuple": lambda data, _: tuple(data),
    "generator": lambda data, _: (item for item in data),
    "bytes": lambda data, _: str(data).encode("utf-8", "replace"),
    "complex": lambda data, _: complex(data),
    "date": lambda data, _: pd.Timestamp(data),
    "NA": lambda data, _: pd.NA,
    "NaT": lambda data, _: pd.NaT,
}

LISTS = [["cat", "dog"], ["dog"], ["cow", "cat"], ["cow"]]
MATRIX = [[1, 0, 1], [0, 1, 0], [1, 1, 0], [0, 0, 1]]
NAMES = ["cat", "cow", "dog"]

SEEDS: list[dict[str, Any]] = [
    {"y": LISTS},
    {"y": LISTS, "classes": NAMES},
    {"y": ["cat|dog", "dog", "cow|cat", "cow"], "separator": "|"},
    {"y": ["cat", "dog", "cow", "cat"]},
    {"y": [0, 1, 2, 1], "classes": [0, 1, 2]},
    {"y": [[0, 1], [2], [1, 2], [0]]},
    {"y": {"kind": "array", "data": MATRIX, "dtype": "int64"}},
    {"y": {"kind": "array", "data": MATRIX, "dtype": "float32"}, "classes": NAMES},
    {"y": {"kind": "array", "data": [0, 1, 2, 1], "dtype": "uint8"}},
    {"y": {"kind": "array", "data": ["a", "b", "c", "a"], "dtype": "object"}},
    {"y": {"kind": "frame", "data": {"cat": [1, 0, 1], "dog": [0, 1, 1]}}},
    {"y": {"kind": "series", "data": ["a", "b", "c", "a"], "dtype": "object"}},
    {"y": {"kind": "series", "data": ["a|b", "b"], "dtype": "str"}, "separator": "|"},
    {"y": {"kind": "category", "data": ["a", "b", "c"]}},
    {"y": {"kind": "sparse", "data": MATRIX, "dtype": "float64"}},
    {"y": {"kind": "tensor", "data": MATRIX}},
    {"y": {"kind": "masked", "data": [1, 3, 2, 1]}},
    {"y": [{"kind": "set", "data": ["a", "b"]}, {"kind": "tuple", "data": ["b"]}]},
    {"y": [{"kind": "array", "data": [1, 2], "dtype": "int8"}, {"kind": "array", "data": [3], "dtype": "int8"}]},
]
VOTES: list[dict[str, Any]] = [
    {"votes": [["cat", "dog", "cat"], ["dog", None, "dog"], ["cow", "cow", ""]]},
    {"votes": [[0, 1, 1], [2, 2, 0], [1, 1]], "min_votes": 2},
    {"votes": {"kind": "array", "data": [[0, 1], [1, 2], [2, 2]], "dtype": "int64"}, "classes": [0, 1, 2]},
    {"votes": {"kind": "array", "data": [[0.0, float("nan")], [1.0, 2.0]], "dtype": "float64"}},
    {"votes": {"kind": "frame", "data": {"ann": ["a", "b"], "bob": ["b", None]}}, "min_votes": 1},
    {"votes": [{"kind": "tuple", "data": ["a", "b"]}, {"kind": "array", "data": ["b"], "dtype": "object"}]},
]


def build(tree: Any) -> Any:
    """Make the object that a tree stands for; raise whatever its type raises where there is no such object."""
    if isinstance(tree, list):
        return [build(item) for item in tree]
    if isinstance(tree, dict):
        made = {key: build(value) for key, value in tree.items()}
        kind = made.get("kind")
        if isinstance(kind, str) and kind in KINDS:
            return KINDS[kind](made.get("data"), made.get("dtype"))
        return made
    return tree
