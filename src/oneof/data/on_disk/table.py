"""`oneof.open_table`: a table of any size, read once into the cache folder, and then mapped from there."""

import errno
import hashlib
import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from oneof.data.folder import StrPath
from oneof.data.on_disk.encoded import fitted_on, from_bytes, to_bytes
from oneof.data.on_disk.reading import Reading, meter
from oneof.data.on_disk.rows import StoredRows, StoredTexts
from oneof.data.on_disk.source import Source, check_names, check_numbers, require
from oneof.data.on_disk.sources import source_of
from oneof.data.on_disk.store import open_store
from oneof.errors import InputError, KindError
from oneof.io.arguments import as_path
from oneof.io.files import cache_folder, replacing
from oneof.io.words import reason, shown
from oneof.labels import NamedSets
from oneof.pipeline import TableEncoder

_VERSION = 2  # goes into every key; raise it when the same table gives another store
_ADVICE = "name them in drop or ids, or pass encoder=oneof.TableEncoder()"


class StoredTable:
    """A table on disk, of which nothing is in memory but what is asked for: ``model.fit(table.X, table.y)``.

    Attributes
    ----------
    X : array of shape (n, features), float32
        The features, mapped from the file; slices of it are views.
    y : candidate sets or None
        What `fit`, `score` and `disambiguate` take as y; None where ``candidates=None``.
    classes : array of shape (K,) or None
        The labels, sorted.
    ids : dict
        For each column named in ``ids`` its texts, as they are written: ``table.ids["name"][17]``.
    feature_names : list of str
        The columns of X.
    encoder : TableEncoder or None
        What made numbers of the columns, fitted, where ``encoder`` was given:
        ``oneof.Pipeline([("table", table.encoder), ("model", model)])`` takes tables as they are.
    mean, std : arrays of shape (features,)
        Means and standard deviations of the features, of the values before they were rounded to float32.
    path : Path
        The file.
    """

    def __init__(self, path: Path, arrays: dict[str, NDArray[Any]], facts: dict[str, Any]) -> None:
        self.path, self._arrays = path, arrays
        self.feature_names: list[str] = facts["features"]
        self.X = arrays["X"].view(StoredRows)
        self.encoder = None if facts["encoder"] is None else from_bytes(facts["encoder"], arrays["encoder"])
        if self.encoder is None:  # whose own columns have the names, as in a pipeline
            self.X.feature_names = self.feature_names
        self.classes = None if facts["classes"] is None else np.array(facts["classes"])
        self.mean, self.std = (np.array(facts[name]) for name in ("mean", "std"))
        self.ids = {
            name: StoredTexts(arrays[f"text {number}"], arrays[f"length {number}"])
            for number, name in enumerate(facts["ids"])
        }

    def __len__(self) -> int:
        return len(self.X)

    def __repr__(self) -> str:
        sets = "" if self.y is None else f", {self.y.shape[1]} classes, {len(self._arrays['labels'])} candidates"
        return f"{type(self).__name__}: {len(self)} rows, {self.X.shape[1]} features{sets}, in {shown(self.path)}"

    @cached_property
    def y(self) -> NamedSets | None:
        """The candidate sets."""
        if self.classes is None:
            return None
        starts, labels = np.zeros(len(self) + 1, dtype=np.int64), self._arrays["labels"]
        self._arrays["sizes"].cumsum(out=starts[1:])
        shape = len(self), len(self.classes)
        return NamedSets(sparse.csr_array((np.ones(len(labels), dtype=bool), labels, starts), shape), self.classes)


def open_table(
    table: Any,
    candidates: str | None = "candidates",
    separator: str | None = None,
    ids: Sequence[str] = (),
    drop: Sequence[str] = (),
    cache: StrPath | None = None,
    progress: bool = False,
    encoder: TableEncoder | None = None,
) -> StoredTable:
    r"""Open a table of any size: it is read once, in pieces, and stays on disk.

    Parameters
    ----------
    table : path or datasets.Dataset
        A .csv or .tsv file (also .gz), a .parquet file, a folder of such, or a dataset of Hugging Face. pyarrow
        reads Parquet, and text several times faster than pandas does.
    candidates : str or None, default="candidates"
        The column of candidate sets; None where there is none.
    separator : str, optional
        Splits the strings of this column, such as ``"cat|dog"``; without it, a string is one label.
    ids, drop : sequences of str
        Columns that are no features: those that name the rows, and those that are left out. All others must hold
        numbers, without gaps, unless there is an encoder. They are kept in 32 bits.
    cache : path, optional
        The folder for the file that is made, by default ``oneof/tables`` in the user's cache folder. It is found
        again by name, size and time of the table and by what is asked of it; a table that has changed is read
        anew. ``oneof cache`` lists and removes such files.
    progress : bool, default=False
        Whether to show on standard error how much is read.
    encoder : TableEncoder, optional
        Makes numbers of gaps, categories, dates and text. One that is fitted encodes; of one that is not a copy is
        fitted first, on all rows up to 131,072 or 4 million cells, else on so many drawn at random.

    Returns
    -------
    StoredTable
        ``model.fit(table.X, table.y)`` takes it, and copies nothing of it into memory but the rows of a batch.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from oneof import open_table
    >>> with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
    ...     path = Path(folder, "animals.csv")
    ...     _ = path.write_text("weight,legs,label\n4.1,4,cat|dog\n0.3,2,hen\n")
    ...     table = open_table(path, candidates="label", separator="|", cache=folder)
    ...     print(table.X.shape, table.feature_names, *table.classes)
    (2, 2) ['weight', 'legs'] cat dog hen
    """
    names = _names_of(ids, "ids"), _names_of(drop, "drop")
    for name, value in {"candidates": candidates, "separator": separator}.items():
        if not isinstance(value, str | None):
            raise KindError(f"{name} is {shown(value)}, but must be a string or None; pass one")
    if not hasattr(table, "with_format"):
        table = as_path(table, "table")
    if not isinstance(progress, bool):
        raise KindError(f"progress is {shown(progress)}, but must be True or False; pass one of them")
    source = source_of(table)
    if not isinstance(encoder, TableEncoder | None):
        raise KindError(
            f"encoder is {shown(encoder)}, but must be a TableEncoder or None; pass oneof.TableEncoder()"
        )
    folder = cache_folder() / "tables" if cache is None else as_path(cache, "cache")
    return stored(source, candidates, separator, *names, folder, progress, encoder)


def _names_of(given: Any, what: str) -> list[str]:
    if (
        isinstance(given, str)
        or not isinstance(given, Sequence)
        or not all(isinstance(each, str) for each in given)
    ):
        raise KindError(f"{what} is {shown(given)}, but must be a list of names of columns; pass such as ['id']")
    return list(dict.fromkeys(given))


def stored(
    source: Source,
    candidates: str | None,
    separator: str | None,
    ids: Sequence[str],
    drop: Sequence[str],
    folder: Path,
    progress: bool,
    encoder: TableEncoder | None = None,
) -> StoredTable:
    """Return the store of a source, which is read where there is none of its present content."""
    identity = source.identity()
    asked = [_VERSION, source.key(), candidates, separator, list(ids), list(drop), *_mark(encoder)]
    path = folder / f"{hashlib.sha256(json.dumps(asked).encode()).hexdigest()}.safetensors"
    if (found := open_store(path, identity)) is not None:
        return StoredTable(path, *found)
    kinds = source.kinds()
    apart = [*([] if candidates is None else [candidates]), *ids]
    require([*apart, *drop], list(kinds), source.name)
    columns = [name for name in kinds if name not in apart and name not in drop]
    if not columns:
        raise InputError(f"{source.name} has no column of features, but at least one is needed; drop fewer")
    check_names(columns, source.name)
    if encoder is None:
        check_numbers({name: kinds[name] for name in columns}, source.name, _ADVICE)
    else:
        encoder = _fitted(source, columns, encoder, progress)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (
            replacing(path) as part,
            Reading(source, columns, encoder, candidates, separator, ids, part) as reading,
        ):
            reading.read(identity, progress)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EDQUOT):
            raise
        raise OSError(
            f"the rows of {source.name} cannot be kept in {shown(folder)} ({reason(error)}); make room there, or "
            "name another folder: cache= of open_table, or XDG_CACHE_HOME"
        ) from None
    if (made := open_store(path, identity)) is None:
        raise OSError(f"{shown(path)} was written and cannot be read; look at the disk")
    return StoredTable(path, *made)


def _mark(encoder: TableEncoder | None) -> list[Any]:
    """Return what tells one encoder from others: what it was told, or what it has learned."""
    if encoder is None:
        return []
    if not encoder.__sklearn_is_fitted__():
        return ["fitted here", repr(encoder.kinds)]
    return [encoder.facts(), hashlib.sha256(to_bytes(encoder).tobytes()).hexdigest()]


def _fitted(source: Source, columns: Sequence[str], encoder: TableEncoder, progress: bool) -> TableEncoder:
    """Return an encoder that is fitted: it, or a copy."""
    if encoder.__sklearn_is_fitted__():
        require(list(encoder.used_columns()), columns, source.name)
        return encoder
    with meter(source.name, progress) as show:
        return fitted_on(source, columns, encoder, show)
