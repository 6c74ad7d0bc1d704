"""Data sets of one's own in plans: a path and a reader, with a checksum: a plan means the same rows anywhere."""

import hashlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import numpy as np

from oneof.data.catalogue import Dataset, File
from oneof.data.container import PartialLabels
from oneof.data.download import digest
from oneof.data.tables import numeric_features, read_table
from oneof.errors import InputError
from oneof.io.words import alternatives, reason, shown
from oneof.labels import encode

__all__ = ["READERS", "OwnData", "describe_own", "load_own", "reader_named"]

_GROUP = "oneof.readers"  # entry points: functions of a path and options that return PartialLabels, or two of them
Loaded = PartialLabels | tuple[PartialLabels, PartialLabels]


@dataclass(frozen=True)
class OwnData:
    """A data set that a plan names: where it is, what reads it, and the checksum that its file must have."""

    name: str
    path: Path
    sha256: str
    reader: str = "table"
    options: tuple[tuple[str, Any], ...] = ()  # of the reader

    @property
    def checksum(self) -> str:
        """What tells it from others: the file and how it is read; its path may change."""
        return hashlib.sha256(repr((self.sha256, self.reader, self.options)).encode()).hexdigest()[:16]


def _table(path: Path, truth: str, candidates: str | None = None, separator: str | None = None) -> PartialLabels:
    """Read a table of numbers with a column of true labels and, where the plan draws none, one of candidates."""
    columns = [name for name in (truth, candidates) if name is not None]
    table = read_table(path, columns)
    rows = np.asarray(numeric_features(table, columns), dtype=np.float64)
    single, classes = encode(table.columns[truth])
    if candidates is not None:
        named, classes = encode(table.columns[candidates], separator=separator)
        missing = sorted({str(each) for each in table.columns[truth]} - set(map(str, classes.tolist())))
        if missing:
            raise InputError(
                f"the true label {shown(missing[0])} is a candidate of no row; check the column {truth!r}"
            )
        single, _ = encode(table.columns[truth], classes)
    sets = named if candidates is not None else single
    return PartialLabels(rows, sets, single.argmax(1), classes, path.name)


def _npz(path: Path) -> PartialLabels:
    """Read the arrays x, candidates, y and classes of an npz file, such as one of oneof corrupt."""
    with np.load(path, allow_pickle=False) as file:
        missing = [name for name in ("x", "candidates", "y", "classes") if name not in file.files]
        if missing:
            raise InputError(f"it has no array {shown(missing[0])}")
        return PartialLabels(file["x"], file["candidates"], file["y"], file["classes"], path.name)


READERS: Mapping[str, Callable[..., Loaded]] = {"table": _table, "npz": _npz}


def reader_named(name: str, options: Mapping[str, Any]) -> Callable[..., Loaded]:
    """Return a reader, ours or one of an installed package, which must take these options."""
    found = {each.name: each for each in entry_points(group=_GROUP)}
    if name not in READERS and name not in found:
        raise InputError(f"there is no reader {shown(name)}; {alternatives(name, [*READERS, *found])}")
    try:
        read: Callable[..., Loaded] = READERS[name] if name in READERS else found[name].load()
        inspect.signature(read).bind(Path(), **options)
    except Exception as error:  # whatever a package of somebody else's does when it is imported
        raise InputError(f"the reader {shown(name)} cannot be used: {reason(error)}") from None
    return read


def load_own(data: OwnData) -> Loaded:
    """Read a data set, whose file must be the one that the plan means, and whose true labels must be known."""
    if not data.path.is_file():
        raise FileNotFoundError(
            f"there is no file {shown(data.path)} of {shown(data.name)}; check its path in the plan"
        )
    if (found := digest(data.path, "sha256")) != data.sha256:
        raise InputError(
            f"{shown(data.path)} has the sha256 checksum {found}, but the plan has {shown(data.sha256)}; name "
            "the file that is meant, or write its checksum into the plan"
        )
    read = reader_named(data.reader, dict(data.options))
    try:
        loaded = read(data.path, **dict(data.options))
    except Exception as error:  # damaged files make readers raise errors of many kinds
        raise InputError(f"{shown(data.path)} cannot be read by {shown(data.reader)} ({reason(error)})") from None
    parts = loaded if isinstance(loaded, tuple) else (loaded,)
    if len(parts) > 2 or not all(isinstance(part, PartialLabels) and part.y is not None for part in parts):
        raise InputError(
            f"the reader {shown(data.reader)} must return PartialLabels with true labels, or two of them, for "
            "training and test"
        )
    first, *rest = (replace(part, name=data.name) for part in parts)
    return (first, rest[0]) if rest else first


@lru_cache(maxsize=16)
def describe_own(data: OwnData) -> Dataset:
    """Return the facts of a data set, as the catalogue has those of published ones."""
    loaded = load_own(data)
    parts = loaded if isinstance(loaded, tuple) else (loaded,)
    first = parts[0]
    return Dataset(
        name=data.name,
        format="own",
        rows=tuple(map(len, parts)),
        shape=tuple(first.x.shape[1:]),
        classes=tuple(first.classes.tolist()),
        set_size=float(first.candidates.sum(1).mean()),
        licence="",
        source=data.path.name,
        files=(File(data.path.name, data.path.stat().st_size, data.sha256),),
    )
