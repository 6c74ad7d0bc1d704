"""Rows of the tables, and how each is judged."""

import ast
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import oneof

LONGEST = 400  # characters of a message
SOURCE = Path(oneof.__file__).parent


@dataclass(frozen=True)
class Row:
    """What a person does, and what must happen."""

    what: str
    do: Callable[[Any], Any]  # is given the kit
    error: type[Exception] | None = None
    warning: bool = False
    words: tuple[str, ...] = ()
    holds: Callable[[Any], bool] | None = None  # of the result
    wording: str = "ours"


def refused(what, error, do, *words, wording="ours"):
    """An error of this type with these words; ``wording`` may be scikit-learn's, where its contract wants it."""
    return Row(what, do, error=error, words=words, wording=wording)


def warned(what, do, *words, holds=lambda result: result is not None):
    """A warning with these words, and a sensible result."""
    return Row(what, do, warning=True, words=words, holds=holds)


def works(what, do, holds):
    """A result for which ``holds`` is true, without any warning."""
    return Row(what, do, holds=holds)


def parametrize(rows):
    """Make a test of every row, with its words as the name."""
    names = [row.what for row in rows]
    assert len(set(names)) == len(names), "two rows have the same words"
    return pytest.mark.parametrize("row", rows, ids=names)


def carry_out(row, kit):
    """Do what a row says and judge what happens."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if row.error is not None:
            with pytest.raises(row.error) as found:
                row.do(kit)
            check_message(str(found.value), row.words, row.wording)
            assert row.wording != "ours" or is_ours(found.value), traceback.format_tb(found.value.__traceback__)[
                -1
            ]
            return
        result = row.do(kit)
    texts = [str(each.message) for each in caught]
    assert row.holds(result), result
    if not row.warning:
        assert texts == []
        return
    matching = [text for text in texts if all(word in text for word in row.words)]
    assert matching, texts
    check_message(matching[0], row.words, row.wording)


def check_message(text, words, wording="ours"):
    assert all(word in text for word in words), text
    assert 0 < len(text) <= LONGEST or wording != "ours", len(text)  # theirs list all settings
    assert wording != "ours" or "\n" not in text, text


def is_ours(error):
    """Whether the library itself raised an error, instead of passing on one from inside another library."""
    innermost = traceback.extract_tb(error.__traceback__)[-1]
    path = Path(innermost.filename)
    return path.is_relative_to(SOURCE) and any(
        first <= innermost.lineno <= last for first, last in _raise_statements(path)
    )


@cache
def _raise_statements(path):
    statements = ast.walk(ast.parse(path.read_text()))
    return [(each.lineno, each.end_lineno) for each in statements if isinstance(each, ast.Raise)]
