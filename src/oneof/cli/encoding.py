"""Tables with gaps, categories, dates and text as commands encode them: what each column becomes is printed."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from oneof.cli.output import fold, say
from oneof.cli.votes import Labels
from oneof.errors import InputError

if TYPE_CHECKING:
    from oneof.methods import Classifier, Model
    from oneof.pipeline import TableEncoder


class Encoded(NamedTuple):
    """Features as numbers, and what made them; None where they were numbers already."""

    rows: Any
    encoder: "TableEncoder | None"

    @property
    def said(self) -> dict[str, str]:
        """What each column became, in words; empty where all were numbers."""
        return {} if self.encoder is None else dict(self.encoder.said_)

    def joined(self, model: "Classifier") -> "Model":
        """Return a fitted model together with the encoder of its rows."""
        from oneof.pipeline import Pipeline

        return model if self.encoder is None else Pipeline([("table", self.encoder), ("model", model)])


def training_table(
    table: Path,
    labels: Labels,
    others: Sequence[str],
    kinds: Sequence[str] | None,
    images: str | None,
    size: int | tuple[int, int] | None,
    form: str | None,
    decisions: Sequence[Path] | None = None,
    ids: Sequence[str] = (),
) -> tuple[Encoded, Any]:
    """Return the features of a table as numbers, and its labels; print what each column becomes.

    ``others`` and ``ids`` are the columns that are no features besides those of labels; ``decisions`` are merged
    into the labels.
    """
    from oneof.cli.model_tables import read_training

    wanted = kinds_of(kinds)
    rows, y = read_training(table, labels, others, images, size, form, wanted, decisions, ids)
    return encode_table(rows, wanted, y), y


def kinds_of(texts: Sequence[str] | None) -> dict[str, str]:
    """Read COLUMN=KIND texts."""
    from oneof.pipeline.column_kinds import KINDS

    kinds: dict[str, str] = {}
    for text in texts or []:
        name, equals, kind = (part.strip() for part in text.rpartition("="))
        if not (name and equals) or kind not in KINDS:
            raise InputError(f"--kind is {text!r}, but must be COLUMN=KIND with one of {', '.join(KINDS)}")
        if kinds.setdefault(name, kind) != kind:
            raise InputError(f"--kind gives {name!r} two kinds, {kinds[name]!r} and {kind!r}; give one")
    return kinds


def encode_table(rows: Any, kinds: Mapping[str, str], y: Any) -> Encoded:
    """Turn features into numbers where they are none, and print what each column becomes.

    Columns of labels are refused: true labels among the features would be learnt from.
    """
    import pandas as pd

    from oneof.pipeline import TableEncoder

    if not isinstance(rows, pd.DataFrame):
        if kinds:
            raise InputError(
                f"--kind names {next(iter(kinds))!r}, but the rows are no table of columns; leave it out"
            )
        return Encoded(rows, None)
    numeric = all(pd.api.types.is_numeric_dtype(kind) for kind in rows.dtypes)
    if numeric and not kinds and rows.notna().all(axis=None):
        return Encoded(rows, None)
    encoder = TableEncoder(kinds or None).fit(rows, y)
    return said_of(Encoded(encoder.transform(rows), encoder))


def said_of(encoded: Encoded) -> Encoded:
    """Print what each column became."""
    for name, said in encoded.said.items():
        say(fold(f"column {name}: {said}"))
    return encoded
