"""What becomes of the columns of a table: blocks of columns of one kind, each by transformers of scikit-learn.

A block is fitted on a frame and turns frames into numbers. Its state is JSON facts and arrays, of which the same
transformers are made again through their public ways.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any, TypedDict

import numpy as np
import pandas as pd
from pandas.api import types
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder

from oneof.estimator.model_header import MisfitError
from oneof.io.words import join_first
from oneof.pipeline.column_kinds import Array, as_dates, as_numbers, as_texts
from oneof.pipeline.unknown_categories import NAMED, Unknown

_MOST_CATEGORIES = 255  # columns of one category: the most frequent ones
_COMPONENTS, _NGRAMS = 30, 10_000  # of a text
_NOISE = 1e-6  # a component so much smaller than the largest
_DAY = 86400.0


class NumberFacts(TypedDict):
    """A column of numbers."""

    name: str


class DateFacts(TypedDict):
    """A column of dates: how they are written, and whether they have times."""

    name: str
    format: str | None
    times: bool


class CategoryFacts(TypedDict):
    """A column of categories; null stands for a gap."""

    name: str
    categories: list[str | None]


class TextFacts(TypedDict):
    """A column of text: its n-grams, in the order of their numbers."""

    name: str
    ngrams: list[str]


class Numbers:
    """Numbers and dates: gaps are filled with the median, and where there were any, a column says so."""

    def __init__(self, numbers: list[NumberFacts], dates: list[DateFacts]) -> None:
        self.numbers, self.dates = numbers, dates

    def fit(self, frame: Any) -> "Numbers":
        """Learn the medians."""
        for date in self.dates:
            dates = as_dates(date["name"], frame[date["name"]], date["format"]).dropna()
            date["times"] = bool((dates != dates.dt.normalize()).any())
        self._imputer = _imputer().fit(self._values(frame))
        return self

    def transform(self, frame: Any) -> Array:
        """Return numbers (n, columns), and behind them which were missing."""
        return np.asarray(self._imputer.transform(self._values(frame)))

    def names(self) -> list[str]:
        """Return the names of the new columns."""
        plain = [column["name"] for column in self.numbers]
        plain += [f"{date['name']} {part}" for date in self.dates for part in _date_parts(date["times"])]
        missing = [f"{plain[i]} missing" for i in self._imputer.indicator_.features_]
        return [*plain, *missing]

    def sources(self) -> list[str]:
        """Return of each new column which one it was made of."""
        plain = [column["name"] for column in self.numbers]
        plain += [date["name"] for date in self.dates for _ in _date_parts(date["times"])]
        return [*plain, *(plain[i] for i in self._imputer.indicator_.features_)]

    def describe(self, frame: Any) -> dict[str, str]:
        """Say of each column what became of it."""
        said = {}
        filled = dict(zip(self.names(), self._imputer.statistics_, strict=False))
        for number in self.numbers:
            values = as_numbers(number["name"], frame[number["name"]])
            gaps = int(np.isnan(values).sum())
            with_gaps = f", {_gaps(gaps)} filled with the median {filled[number['name']]:g}" if gaps else ""
            flag = types.infer_dtype(frame[number["name"]], skipna=True) == "boolean"
            said[number["name"]] = f"{'true or false as 1 or 0' if flag else 'number'}{with_gaps}"
        for date in self.dates:
            gaps = int(as_dates(date["name"], frame[date["name"]], date["format"]).isna().sum())
            with_gaps = f", {_gaps(gaps)} filled with the median" if gaps else ""
            parts = "day, season, weekday" + ", hour" * date["times"]
            said[date["name"]] = f"date: {parts}{with_gaps}"
        return said

    def arrays(self) -> dict[str, Array]:
        """Return the medians, and the columns that had gaps."""
        return {
            "median": self._imputer.statistics_,
            "had_gaps": np.isin(np.arange(len(self._imputer.statistics_)), self._imputer.indicator_.features_),
        }

    def restore(self, arrays: Mapping[str, Array]) -> "Numbers":
        """Take over what was learned; see `arrays`."""
        width = len(self.numbers) + sum(len(_date_parts(date["times"])) for date in self.dates)
        median = _checked(arrays, "median", (width,), "f")
        gaps = _checked(arrays, "had_gaps", (width,), "b")
        # Two rows with these medians, and with gaps where there were any: what is learned of them is the same.
        self._imputer = _imputer().fit(np.stack([median, np.where(gaps, np.nan, median)]))
        return self

    def _values(self, frame: Any) -> Array:
        numbers = [as_numbers(column["name"], frame[column["name"]]) for column in self.numbers]
        dates = [
            part
            for date in self.dates
            for part in _date_values(as_dates(date["name"], frame[date["name"]], date["format"]), date["times"])
        ]
        return np.stack([*numbers, *dates], axis=1)


class Categories:
    """Categories: a column of 0 and 1 for each; a gap is a category where there were any."""

    def __init__(self, columns: list[CategoryFacts]) -> None:
        self.columns = columns

    def fit(self, frame: Any) -> "Categories":
        """Learn the categories, of very many the most frequent ones."""
        for column in self.columns:
            counts = Counter(as_texts(frame[column["name"]]).tolist())
            kept = sorted(counts, key=lambda cell: (-counts[cell], cell or ""))[:_MOST_CATEGORIES]
            column["categories"] = sorted(kept, key=lambda cell: (cell is None, cell or ""))
        return self.restore({})

    def transform(self, frame: Any) -> Array:
        """Return columns of 0 and 1; a category that is not known has only 0."""
        cells = np.stack([as_texts(frame[column["name"]]) for column in self.columns], axis=1)
        return np.asarray(self._encoder.transform(cells))

    def unknown(self, frame: Any) -> dict[str, Unknown]:
        """Return the cells that no row had in training, by column; not of columns with very many categories."""
        found = {}
        for column in self.columns:
            if len(column["categories"]) < _MOST_CATEGORIES:
                texts, known = as_texts(frame[column["name"]]), {*column["categories"], None}
                rows = [row for row, cell in enumerate(texts) if cell not in known]
                if rows:
                    found[column["name"]] = Unknown(texts[rows[0]], rows[:NAMED], len(rows))
        return found

    def names(self) -> list[str]:
        """Return the names of the new columns."""
        return [
            f"{column['name']} missing" if cell is None else f"{column['name']}={cell}"
            for column in self.columns
            for cell in column["categories"]
        ]

    def sources(self) -> list[str]:
        """Return of each new column which one it was made of."""
        return [column["name"] for column in self.columns for _ in column["categories"]]

    def describe(self, frame: Any) -> dict[str, str]:
        """Say of each column what became of it."""
        said = {}
        for column in self.columns:
            texts = as_texts(frame[column["name"]])
            gaps = sum(cell is None for cell in texts)
            known = [cell for cell in column["categories"] if cell is not None]
            rest = len(set(texts.tolist()) - {None}) - len(known)
            said[column["name"]] = (
                f"category: {join_first(known, most=4, room=60)}"
                + f", and {rest} rare ones that count as none" * bool(rest)
                + f", {_gaps(gaps)} as one more" * bool(gaps)
            )
        return said

    def arrays(self) -> dict[str, Array]:
        """None: categories are text."""
        return {}

    def restore(self, arrays: Mapping[str, Array]) -> "Categories":
        """Make the encoder of the categories."""
        lists: list[Any] = [np.array(column["categories"], dtype=object) for column in self.columns]
        if any(not len(each) or len(set(each.tolist())) < len(each) for each in lists):
            raise MisfitError("categories of a column are none, or named twice")
        self._encoder = OneHotEncoder(categories=lists, handle_unknown="ignore", sparse_output=False)
        self._encoder.fit(np.array([[each[0] for each in lists]], dtype=object))
        return self


class Text:
    """Free text: the main components (latent semantic analysis) of tf-idf weights of its 3- and 4-grams."""

    def __init__(self, column: TextFacts) -> None:
        self.column = column

    def fit(self, frame: Any) -> "Text":
        """Learn the n-grams, their weights and their components."""
        texts = self._texts(frame)
        self._weights = _vectorizer(max_features=_NGRAMS)
        weights = self._weights.fit_transform(texts)
        self.column["ngrams"] = self._weights.get_feature_names_out().tolist()
        self._components = TruncatedSVD(min(_COMPONENTS, *weights.shape), random_state=0).fit(weights)
        size = self._components.singular_values_
        real = size > _NOISE * size.max()  # the others are what rounding leaves of texts with few n-grams
        self._components.components_ = np.ascontiguousarray(self._components.components_[real])
        return self

    def transform(self, frame: Any) -> Array:
        """Return the components (n, 30 or fewer) of every text; those of a gap are 0."""
        return np.asarray(self._components.transform(self._weights.transform(self._texts(frame))))

    def names(self) -> list[str]:
        """Return the names of the new columns."""
        return [f"{self.column['name']} {i}" for i in range(len(self._components.components_))]

    def sources(self) -> list[str]:
        """Return of each new column which one it was made of."""
        return [self.column["name"]] * len(self._components.components_)

    def describe(self, frame: Any) -> dict[str, str]:
        """Say what became of the column."""
        gaps = sum(not text for text in self._texts(frame))
        number = len(self._components.components_)
        parts = f"text: {number} components of its 3- and 4-grams" + f", {_gaps(gaps)} as 0" * bool(gaps)
        return {self.column["name"]: parts}

    def arrays(self) -> dict[str, Array]:
        """Return the weights of the n-grams and the components."""
        return {"idf": self._weights.idf_, "components": self._components.components_}

    def restore(self, arrays: Mapping[str, Array]) -> "Text":
        """Take over what was learned; see `arrays`."""
        ngrams = self.column["ngrams"]
        if not ngrams or len(set(ngrams)) < len(ngrams):
            raise MisfitError("n-grams of a text are none, or named twice")
        components = arrays.get("components", np.empty((0, 0)))
        _checked(arrays, "components", (max(1, len(components)), len(ngrams)), "f")
        self._weights = _vectorizer(vocabulary=ngrams)
        self._weights.idf_ = _checked(arrays, "idf", (len(ngrams),), "f")
        self._components = TruncatedSVD(len(components))
        self._components.components_ = components
        return self

    def _texts(self, frame: Any) -> list[str]:
        return [text or "" for text in as_texts(frame[self.column["name"]])]


Block = Numbers | Categories | Text


def _imputer() -> SimpleImputer:
    return SimpleImputer(strategy="median", add_indicator=True)


def _vectorizer(**settings: Any) -> TfidfVectorizer:
    return TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 4), sublinear_tf=True, **settings)


def _date_parts(times: bool) -> list[str]:
    waves = ("season", "weekday", "hour")[: 2 + times]
    return ["day", *(f"{wave} {part}" for wave in waves for part in ("sin", "cos"))]


def _date_values(dates: Any, times: bool) -> list[Array]:
    """Return the number of the day since 1970, and where in the year, the week and the day a time is, as waves.

    Waves of a gap are 0.
    """
    begin = pd.Timestamp(0).as_unit("s")  # in nanoseconds it would not bear years after 2262
    seconds = (dates - begin) / pd.Timedelta(seconds=1)
    day = seconds.to_numpy(dtype=float) / _DAY
    year = dates.dt.day_of_year.to_numpy(dtype=float) / 366
    phases = [year, day / 7, *[day] * times]
    return [day, *(np.nan_to_num(wave(2 * np.pi * phase)) for phase in phases for wave in (np.sin, np.cos))]


def _gaps(number: int) -> str:
    return "1 gap" if number == 1 else f"{number} gaps"


def _checked(arrays: Mapping[str, Array], name: str, shape: tuple[int, ...], kind: str) -> Array:
    """Return an array that was read from a file; refuse one of another shape or kind, or that is not finite."""
    array = arrays.get(name)
    if array is None or array.shape != shape or array.dtype.kind != kind or not np.isfinite(array).all():
        raise MisfitError(f"there is no finite tensor {name!r} of shape {shape}")
    return array
