"""TableEncoder: tables as people have them, with gaps, categories, dates and text, as numbers."""

from collections.abc import Mapping, Sequence
from typing import Any, Self, TypedDict, cast

import numpy as np
import pandas as pd
import scipy.sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from oneof.errors import InputError, KindError
from oneof.estimator.features import as_numpy, check_column_names
from oneof.estimator.model_header import MisfitError
from oneof.io.arguments import check_text
from oneof.io.frames import as_pandas
from oneof.io.schema import misfits
from oneof.io.words import listed, reason, shown, warn
from oneof.pipeline.column_kinds import KINDS, Array, find_kind
from oneof.pipeline.columns import (
    Block,
    Categories,
    CategoryFacts,
    DateFacts,
    NumberFacts,
    Numbers,
    Text,
    TextFacts,
)
from oneof.pipeline.label_columns import refuse_labels
from oneof.pipeline.unknown_categories import Unknown


class EncoderFacts(TypedDict):
    """What a file holds of an encoder, beside arrays."""

    columns: list[str]  # all of them, in their order
    named: bool  # whether X had names of columns
    kinds: dict[str, str] | None  # the parameter
    said: dict[str, str]
    numbers: list[NumberFacts]
    dates: list[DateFacts]
    categories: list[CategoryFacts]
    texts: list[TextFacts]


class TableEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turn the columns of a table into numbers: what each becomes follows from what it holds.

    - Numbers and booleans stay; gaps are filled with the median, and a further column says where they were.
    - Dates, also as text, become the day, and waves of the year, of the week, and of the day if there are times.
    - Text of at most 40 different values, and columns of pandas' type ``category``, become a column of 0 and 1 for
      each value. A gap is one more value. A value that no row had in training counts as none, with a warning.
    - Other text becomes 30 components (truncated SVD) of the tf-idf weights of its 3- and 4-grams.
    - A column that is empty, has one text everywhere, or a different one without spaces in every row, as
      identifiers have, is left out; of the last there is a warning.

    Columns are known by their names: they may come in another order later, and others beside them do not matter.

    Parameters
    ----------
    kinds : dict, optional
        What columns shall be that are not taken for what they are: "number", "category", "date", "text" or "drop"
        by name, such as ``{"zip": "category"}``.

    Attributes
    ----------
    said_ : dict
        What became of each column, in words.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : array
        Names of the columns, if X had names.

    Examples
    --------
    >>> frame = pd.DataFrame({"age": [3, None, 5, 4], "pet": ["cat", "dog", "cat", "dog"]})
    >>> encoder = TableEncoder().fit(frame)
    >>> encoder.transform(frame).tolist()
    [[3.0, 0.0, 1.0, 0.0], [4.0, 1.0, 0.0, 1.0], [5.0, 0.0, 1.0, 0.0], [4.0, 0.0, 0.0, 1.0]]
    >>> encoder.said_
    {'age': 'number, 1 gap filled with the median 4', 'pet': 'category: cat, dog'}
    """

    def __init__(self, kinds: Mapping[str, str] | None = None) -> None:
        self.kinds = kinds

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn what becomes of each column.

        Parameters
        ----------
        X : frame or array of shape (n, columns)
            A table of pandas or polars; columns of an array are named x0, x1 and so on.
        y : candidate sets, optional
            Labels of the rows, as the classifier of a pipeline takes them: a category that is a candidate of
            nearly all of its rows is refused, since it holds labels, unless `kinds` names it.
        """
        frame = self._frame(X, fitting=True)
        wanted = self._wanted(frame)
        found = {name: find_kind(name, frame[name], wanted.get(name)) for name in frame}
        self.blocks_ = [
            block.fit(frame)
            for block in _blocks(
                [{"name": name} for name, kind in found.items() if kind.name == "number"],
                [
                    {"name": name, "format": kind.format, "times": False}
                    for name, kind in found.items()
                    if kind.name == "date"
                ],
                [{"name": name, "categories": []} for name, kind in found.items() if kind.name == "category"],
                [{"name": name, "ngrams": []} for name, kind in found.items() if kind.name == "text"],
            )
        ]
        if not self.blocks_:
            raise InputError(
                f"nothing is left to learn from: {'; '.join(f'{shown(n, 40)}: {k.why}' for n, k in found.items())}"
                "; pass a table with other columns, or say what they are by kinds"
            )
        said: dict[str, str] = {}
        for block in self.blocks_:
            said |= block.describe(frame)
        self.said_ = {
            name: f"{said[name]}{f' ({kind.why})' * bool(kind.why)}" if name in said else f"left out: {kind.why}"
            for name, kind in found.items()
        }
        for name, kind in found.items():
            if kind.fix:
                warn(f"the column {shown(name, 60)} is doubtful ({self.said_[name]}); {kind.fix}")
        if y is not None:
            refuse_labels(frame, self.used_columns(), wanted, y)
        return self

    def transform(self, X: Any) -> Array:
        """Return a table as numbers (n, outputs) of float64; what cannot be read as in training is refused."""
        check_is_fitted(self)
        frame = self._frame(X, fitting=False)
        for name, cells in self.unknown(frame).items():
            cells.warn(name)
        return self.encode(frame)

    def encode(self, frame: Any) -> Array:
        """Return a frame of the columns that are used as numbers, without a word on unknown categories."""
        return np.concatenate([block.transform(frame) for block in self.blocks_], axis=1)

    def unknown(self, frame: Any) -> dict[str, Unknown]:
        """Return what the columns of categories hold that no row had in training."""
        blocks = [block for block in self.blocks_ if isinstance(block, Categories)]
        return {name: cells for block in blocks for name, cells in block.unknown(frame).items()}

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the columns of numbers, such as "pet=cat"."""
        check_is_fitted(self)
        return np.array([name for block in self.blocks_ for name in block.names()], dtype=object)

    def sources(self) -> list[str]:
        """Return of each column of numbers the name of the column that it was made of."""
        return [name for block in self.blocks_ for name in block.sources()]

    def used_columns(self) -> dict[str, str]:
        """Return the kinds of the columns that are not left out, by name."""
        facts = self.facts()
        kinds: dict[str, Any] = {"number": facts["numbers"], "date": facts["dates"]}
        kinds |= {"category": facts["categories"], "text": facts["texts"]}
        return {column["name"]: kind for kind, columns in kinds.items() for column in columns}

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "blocks_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags

    # --- files --------------------------------------------------------------------------------------------

    def facts(self) -> EncoderFacts:
        """Return what JSON can hold of a fitted encoder."""
        numbers = next((block for block in self.blocks_ if isinstance(block, Numbers)), Numbers([], []))
        return {
            "columns": list(self.said_),
            "named": hasattr(self, "feature_names_in_"),
            "kinds": None if self.kinds is None else dict(self.kinds),
            "said": self.said_,
            "numbers": numbers.numbers,
            "dates": numbers.dates,
            "categories": [c for block in self.blocks_ if isinstance(block, Categories) for c in block.columns],
            "texts": [block.column for block in self.blocks_ if isinstance(block, Text)],
        }

    def arrays(self) -> dict[str, Array]:
        """Return all else, by name."""
        return {
            f"{i}.{name}": array for i, block in enumerate(self.blocks_) for name, array in block.arrays().items()
        }

    @classmethod
    def restore(cls, facts: dict[str, Any], arrays: Mapping[str, Array]) -> Self:
        """Make the encoder that a file holds; raise MisfitError for what is none."""
        for wrong in misfits(facts, EncoderFacts):
            raise MisfitError(wrong)
        header = cast(EncoderFacts, facts)
        made, columns = cls(header["kinds"]), header["columns"]
        blocks = _blocks(header["numbers"], header["dates"], header["categories"], header["texts"])
        used = [
            each["name"]
            for part in ("numbers", "dates", "categories", "texts")
            for each in cast(list[dict[str, Any]], facts[part])
        ]
        if not blocks or len({*columns}) < len(columns) or not {*used} <= {*columns} or len({*used}) < len(used):
            raise MisfitError("the columns of the table are not those that are encoded")
        places = {f"{i}." for i in range(len(blocks))}
        if any(name.partition(".")[0] + "." not in places for name in arrays):
            raise MisfitError("there are arrays of no column")
        made.blocks_ = []
        for i, block in enumerate(blocks):
            own = {
                name.partition(".")[2]: array for name, array in arrays.items() if name.partition(".")[0] == str(i)
            }
            made.blocks_.append(block.restore(own))
        made.said_, made.n_features_in_ = header["said"], len(columns)
        if header["named"]:
            made.feature_names_in_ = np.array(columns, dtype=object)
        return made

    # --- frames -------------------------------------------------------------------------------------------

    def _frame(self, X: Any, fitting: bool) -> Any:
        """Return X as a frame; that of before is known by the names of its columns."""
        X = as_pandas(X)
        if not isinstance(X, pd.DataFrame):
            return self._from_array(X, fitting)
        if fitting:
            check_column_names(X)
            validate_data(self, X, reset=True, skip_check_array=True)
            if not len(X):
                raise InputError("X is a frame of 0 rows, but at least 1 is needed; pass the rows to learn from")
            return X.rename(columns=str)
        if not hasattr(self, "feature_names_in_") and X.shape[1] == self.n_features_in_:
            return X.set_axis(list(self.said_), axis=1)
        missing = [name for name in self.used_columns() if name not in X]
        if missing:
            raise InputError(f"X lacks the columns {listed(missing)} that the encoder was fitted on; add them")
        return X[list(self.used_columns())]

    def _from_array(self, X: Any, fitting: bool) -> Any:
        """Have scikit-learn check an array; its columns are named by their numbers."""
        if not fitting and hasattr(self, "feature_names_in_"):
            raise KindError(
                f"X is of type {type(X).__name__}, but the encoder was fitted on a frame, whose columns have "
                "names; pass a frame"
            )
        if scipy.sparse.issparse(X):
            raise KindError("X is a sparse matrix, which holds numbers already; leave the encoder out")
        X = as_numpy(X)
        check_text(X if isinstance(X, np.ndarray) else np.empty(0), "X")
        try:
            array = validate_data(self, X, reset=fitting, dtype=None, ensure_all_finite=False)
        except (ValueError, TypeError, OverflowError) as error:
            raise (KindError if isinstance(error, TypeError) else InputError)(reason(error, 300)) from None
        names = [f"x{i}" for i in range(array.shape[1])]
        return pd.DataFrame(array, columns=names).infer_objects()

    def _wanted(self, frame: Any) -> Mapping[str, str]:
        """Return the kinds that were asked for; refuse those that there are not."""
        if not isinstance(self.kinds, Mapping | None):
            raise KindError(
                f"kinds is {shown(self.kinds)}, but must be a dict; pass such as {{'zip': 'category'}}"
            )
        for name, kind in (self.kinds or {}).items():
            if name not in frame:
                raise InputError(
                    f"kinds names the column {shown(name)}, but X has {listed(frame)}; name one of these"
                )
            if kind not in KINDS:
                raise InputError(f"kinds says that {shown(name)} is {shown(kind)}, but must be one of {[*KINDS]}")
        return self.kinds or {}


def _blocks(
    numbers: Sequence[NumberFacts],
    dates: Sequence[DateFacts],
    categories: Sequence[CategoryFacts],
    texts: Sequence[TextFacts],
) -> list[Block]:
    """Return blocks, not fitted yet, of the columns of each kind."""
    blocks: list[Block] = []
    if numbers or dates:
        blocks.append(Numbers([*numbers], [*dates]))
    if categories:
        blocks.append(Categories([*categories]))
    return [*blocks, *(Text(column) for column in texts)]
