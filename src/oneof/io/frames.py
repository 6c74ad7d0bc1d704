"""Frames of other libraries as those of pandas; none of them is imported here."""

from typing import Any

import pandas as pd

from oneof.errors import KindError


def as_pandas(value: Any) -> Any:
    """Return frames and series of polars as those of pandas, column by column; all else stays as it is."""
    kind = type(value)
    if kind.__module__.partition(".")[0] != "polars":
        return value
    if kind.__name__ == "LazyFrame":
        raise KindError("X or y is a polars LazyFrame, which has no rows yet; pass frame.collect()")
    if kind.__name__ == "Series":
        return pd.Series(_cells(value), name=value.name)
    if kind.__name__ == "DataFrame":
        return pd.DataFrame({name: _cells(value[name]) for name in value.columns}, index=range(value.height))
    return value


def _cells(series: Any) -> Any:
    """Return the cells of a series of polars; a categorical stays one, and gaps stay gaps."""
    name = str(series.dtype)
    if name.startswith(("Categorical", "Enum")):
        return pd.Categorical(series.to_list())
    if name.startswith(("List", "Array", "Struct", "Object")):
        return pd.Series(series.to_list(), dtype=object)
    if name.startswith("Decimal"):
        return [None if cell is None else float(cell) for cell in series.to_list()]
    return series.to_numpy()
