"""What messages quote is on one line and short, whatever it is."""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from oneof import encode
from oneof.io.words import alternatives, join_first, listed, reason, shortened, shown


class Unwilling:
    def __repr__(self):
        raise RuntimeError("no")


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a\nb", r"'a\nb'"),
        (3, "3"),
        (None, "None"),
        (0.5, "0.5"),
        ((6, 4), "(6, 4)"),
        (["a", 1], "['a', 1]"),
        (np.float32(0.5), "0.5"),
        (np.str_("x"), "'x'"),
        (torch.tensor(3), "3"),
        (Path("a") / "b", "'a/b'"),
        (np.zeros((3, 4)), "<ndarray of shape (3, 4)>"),
        (torch.zeros(3), "<Tensor of shape (3,)>"),
        (pd.DataFrame({"a": [1]}), "<DataFrame of shape (1, 1)>"),
        (10**9999, "an integer of 33216 bits"),
        (-(10**9999), "an integer of 33216 bits"),
        ("x" * 999, f"'{'x' * 77}...{'x' * 78}'"),
        (Path("x" * 999), f"'{'x' * 77}...{'x' * 78}'"),
    ],
    ids=range(17),
)
def test_shown(value, text):
    assert shown(value) == text


@pytest.mark.parametrize(
    "value", [nested(100_000), "\0" * 9999, Unwilling(), {"k" * 999: "v" * 999}, b"\n" * 999], ids=range(5)
)
def test_nothing_is_shown_at_length(value):
    assert len(shown(value)) <= 160
    assert shown(value).isprintable()
    assert len(shown(value, 20)) <= 20


def test_lists_say_how_many_there_are():
    assert listed([]) == ""
    assert listed(["b", 1]) == "'b', 1"
    assert listed(range(30), most=3) == "0, 1, 2, ... (30 in all)"
    long = listed([letter * 999 for letter in "xyzu"])
    assert long.startswith("'xxx")
    assert long.endswith("(4 in all)")
    assert len(long) < 180
    assert join_first(["x" * 999]) == shortened("x" * 999, 150)


def test_alternatives():
    assert alternatives("lrr", ["lr", "epochs"]) == "did you mean 'lr'?"
    assert alternatives("zzz", ["lr", "epochs"]) == "there are 'lr', 'epochs'"
    assert alternatives("zzz", [f"column{i}" for i in range(12)]).endswith("'column9', ... (12 in all)")


def test_reasons():
    assert reason(ValueError("two\n lines\0")) == "two lines"
    assert reason(MemoryError()) == "MemoryError"
    assert len(reason(ValueError("x" * 9999), 50)) == 50


def test_warnings_name_the_line_that_called_the_package():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        encode(["a|b", "b|c"])
    assert [Path(each.filename).name for each in caught] == ["test_words.py"]
