"""Strings that hold several labels: how they are split, and a warning where they were not."""

from collections import Counter
from typing import Any

from oneof.errors import KindError
from oneof.io.words import shown, warn
from oneof.labels.reading import is_missing

_SEPARATORS = ("|", ";", ",")
_DISTINCT_PARTS = 0.75  # of all parts; above it, a comma belongs to names such as "Smith, John"


def split(texts: list[Any], separator: str) -> list[Any]:
    """Split every string into its labels; missing cells stay, to be refused later together with their rows."""
    for row, text in enumerate(texts):
        if not isinstance(text, str) and not is_missing(text):
            raise KindError(
                f"separator is given, but row {row} is of type {type(text).__name__}: "
                "pass strings only, or leave separator out"
            )
    return [
        [part.strip() for part in text.split(separator) if part.strip()] if isinstance(text, str) else text
        for text in texts
    ]


def warn_of_joined(rows: list[Any]) -> None:
    """Warn where most rows are strings that seem to hold several labels; in a list, each string is one label."""
    counts = Counter(row for row in rows if isinstance(row, str))
    lists = [text for text in counts if is_list_text(text)]
    if 2 * sum(counts[text] for text in lists) > len(rows):
        warn(
            f"labels such as {shown(lists[0])} look like lists written as text, but count as one class each: pass "
            "lists, such as [json.loads(text) for text in y]"
        )
    elif (separator := _separator(counts, len(rows))) is not None:
        text = next(text for text in counts if separator in text)
        warn(
            f"most labels contain {separator!r}, such as {shown(text)}, but count as one class each: pass "
            f"separator={separator!r} to split them, or lists of one string each if they are class names"
        )


def separator_between(labels: list[Any]) -> str | None:
    """Return the separator that most labels contain, where they seem to be several labels in one string."""
    return _separator(Counter(label for label in labels if isinstance(label, str)), len(labels))


def is_list_text(text: str) -> bool:
    """Say whether a string looks like a list that JSON or Python wrote."""
    return text.startswith("[") and text.endswith("]")


def _separator(counts: Counter[str], total: int) -> str | None:
    for separator in _SEPARATORS:
        if 2 * sum(count for text, count in counts.items() if separator in text) > total:
            parts = [part.strip() for text in counts for part in text.split(separator)]
            if separator != "," or len(set(parts)) <= _DISTINCT_PARTS * len(parts):
                return separator
    return None
