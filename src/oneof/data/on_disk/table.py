"""`oneof.open_table`: a table of any size, read once into the cache folder, and then mapped from there."""

import errno
import hashlib
import json
from collections.abc import Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from oneof.data.download import Meter
from oneof.data.folder import StrPath
from oneof.data.on_disk.label_sets import LabelReader
from oneof.data.on_disk.moments import Moments
from oneof.data.on_disk.rows import StoredRows, StoredTexts
from oneof.data.on_disk.source import Checked, Source, ahead, check_numbers, check_unchanged, require
from oneof.data.on_disk.sources import source_of
from oneof.data.on_disk.store import Spool, Writer, open_store
from oneof.errors import InputError, KindError
from oneof.io.arguments import as_path
from oneof.io.files import cache_folder, replacing
from oneof.io.words import reason, shown
from oneof.labels import NamedSets

_VERSION = 1  # goes into every key; raise it when the same table gives another store
_ADVICE = "name them in drop or ids, or make numbers of them"


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
    mean, std : arrays of shape (features,)
        Means and standard deviations of the features, of the values before they were rounded to float32.
    path : Path
        The file.
    """

    def __init__(self, path: Path, arrays: dict[str, NDArray[Any]], facts: dict[str, Any]) -> None:
        self.path, self._arrays = path, arrays
        self.feature_names: list[str] = facts["features"]
        self.X = arrays["X"].view(StoredRows)
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
        numbers, without gaps. They are kept in 32 bits.
    cache : path, optional
        The folder for the file that is made, by default ``oneof/tables`` in the user's cache folder. It is found
        again by name, size and time of the table and by what is asked of it; a table that has changed is read
        anew. ``oneof cache`` lists and removes such files.
    progress : bool, default=False
        Whether to show on standard error how much is read.

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
    folder = cache_folder() / "tables" if cache is None else as_path(cache, "cache")
    return stored(source, candidates, separator, *names, folder, progress)


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
    advice: str = _ADVICE,
) -> StoredTable:
    """Return the store of a source, which is read where there is none of its present content."""
    identity = source.identity()
    asked = [_VERSION, source.key(), candidates, separator, list(ids), list(drop)]
    path = folder / f"{hashlib.sha256(json.dumps(asked).encode()).hexdigest()}.safetensors"
    if (found := open_store(path, identity)) is not None:
        return StoredTable(path, *found)
    kinds = source.kinds()
    apart = [*([] if candidates is None else [candidates]), *ids]
    require([*apart, *drop], list(kinds), source.name)
    numbers = [name for name in kinds if name not in apart and name not in drop]
    check_numbers({name: kinds[name] for name in numbers}, source.name, advice)
    if not numbers:
        raise InputError(f"{source.name} has no column of features, but at least one is needed; drop fewer")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with replacing(path) as part, Reading(source, numbers, candidates, separator, ids, part) as reading:
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


class Reading:
    """One pass over a table: what comes is written, and what is told of all rows is added up."""

    def __init__(
        self,
        source: Source,
        numbers: Sequence[str],
        candidates: str | None,
        separator: str | None,
        ids: Sequence[str],
        part: Path,
    ) -> None:
        self.source, self.numbers, self.ids, self.rows = source, list(numbers), list(ids), 0
        self.labels = None if candidates is None else LabelReader(candidates, separator, source.name)
        self.moments, self._checked = Moments(len(numbers)), Checked(source, self.numbers)
        self._files = ExitStack()
        self._writer = self._files.enter_context(Writer(part))
        self._folder = part.parent
        self._sizes, self._codes = self._spool("I32"), self._spool("I32")
        self._texts = [(self._spool("I32"), self._spool("U8")) for _ in ids]

    def _spool(self, kind: str) -> Spool:
        return Spool(kind, self._files.enter_context(TemporaryFile(dir=self._folder)))

    def __enter__(self) -> "Reading":
        return self

    def __exit__(self, *error: object) -> None:
        self._files.close()

    def read(self, identity: Any, progress: bool) -> None:
        """Read all rows and write the store."""
        written = list(dict.fromkeys([*([] if self.labels is None else [self.labels.column]), *self.ids]))
        with Meter(f"reading {self.source.name}", 1000, visible=progress) as meter:
            pieces = self.source.pieces(written, self.numbers, self._digest, lambda x: meter.show(int(1000 * x)))
            for piece in ahead(pieces):
                for rounded in piece.taken:
                    self._writer.append(rounded)
                self._take(piece.written)
        check_unchanged(self.source, self.rows, identity)
        self._writer.end("X", "F32", [self.rows, len(self.numbers)])
        classes = None if self.labels is None else self._write_sets(self.labels)
        for number, (lengths, _) in enumerate(self._texts):
            self._write_spool(f"length {number}", "I32", lengths)
        for number, (_, texts) in enumerate(self._texts):
            self._write_spool(f"text {number}", "U8", texts)
        facts = {"identity": identity, "features": self.numbers, "classes": classes, "ids": self.ids}
        self._writer.finish(facts | {"mean": self.moments.mean.tolist(), "std": self.moments.std.tolist()})
        self.moments.warn_of_lost(self.numbers, self.source.name)

    def _digest(self, exact: NDArray[np.float64]) -> NDArray[np.float32]:
        rounded = self._checked.rounded(exact)
        self.moments.add(exact)
        return rounded

    def _take(self, frame: Any) -> None:
        if self.labels is not None:
            sizes, codes = self.labels.read(frame[self.labels.column], self.rows)
            self._sizes.add(sizes)
            self._codes.add(codes)
        for name, (lengths, texts) in zip(self.ids, self._texts, strict=True):
            cells = [str(cell).encode() for cell in frame[name]]
            lengths.add(np.array([len(cell) for cell in cells], dtype=np.int32))
            texts.add(np.frombuffer(b"".join(cells), dtype=np.uint8))
        self.rows += len(frame)

    def _write_sets(self, labels: LabelReader) -> list[Any]:
        """Write sizes and candidates, with the numbers that classes have in sorted order; return the classes."""
        names, places = labels.classes()
        self._write_spool("sizes", "I32", self._sizes)
        self._codes.rewind()
        for size in self._sizes.pieces():
            codes = self._codes.take(int(size.sum()))
            keys = np.repeat(np.arange(len(size)), size) * len(names) + places[codes]
            keys.sort()
            self._writer.append((keys % len(names)).astype(np.int32))
        self._writer.end("labels", "I32", [self._codes.count])
        found: list[Any] = names.tolist()
        return found

    def _write_spool(self, name: str, kind: str, spool: Spool) -> None:
        for piece in spool.pieces():
            self._writer.append(piece)
        self._writer.end(name, kind, [spool.count])
