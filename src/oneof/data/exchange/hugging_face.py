"""Datasets of Hugging Face with columns of ClassLabel: Parquet files, and the folders that save_to_disk writes."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from oneof.data.exchange.annotations import Annotations, Mark, build
from oneof.data.exchange.json_files import plain, read_json
from oneof.data.exchange.label_studio import suggestions
from oneof.errors import InputError
from oneof.io.files import replacing
from oneof.io.words import alternatives, listed, reason, shown

_LISTS = ("List", "Sequence", "LargeList")
_VOTES, _WORKER, _LABELS = "votes", "worker", "labels"  # the column of votes, and what each of them holds
_ID, _PREDICTION, _PROBABILITY = "id", "prediction", "probability"
_KEY = b"huggingface"  # of Arrow's metadata


def read_hugging_face(path: Path, candidates: str | None = None, split: str | None = None) -> Annotations:
    """Read a Parquet file, or a folder of ``save_to_disk``; ``candidates`` names the column of labels."""
    table, features = _table(path, split)
    column = _column(features, path, candidates)
    names = _names(features[column])
    rows = table.to_pylist()
    marks: list[Mark] = []
    for row, facts in enumerate(rows):
        cell = facts[column]
        if column == _VOTES:
            for vote in cell or []:
                marks += [(row, vote[_WORKER], _named(number, names, row, path)) for number in vote[_LABELS]]
        else:
            numbers = cell if isinstance(cell, list) else [] if cell is None else [cell]
            marks += [(row, None, _named(number, names, row, path)) for number in numbers]
    ids = [facts.get(_ID, row) for row, facts in enumerate(rows)]
    apart = {column, _ID}
    if column == _VOTES:  # beside votes, lists of the same classes are what the votes name
        apart |= {name for name, each in features.items() if _is_list(each) and _names(each) == names}
    suggested: list[tuple[Any, float] | None] = []
    if {_PREDICTION, _PROBABILITY} <= features.keys() and _names(features[_PREDICTION]) == names:
        apart |= {_PREDICTION, _PROBABILITY}
        pairs = [(facts[_PREDICTION], facts[_PROBABILITY]) for facts in rows]
        suggested = [
            None if label is None else (_named(label, names, row, path), np.nan if p is None else float(p))
            for row, (label, p) in enumerate(pairs)
        ]
    field = "candidates" if column == _VOTES else column
    kept = [name for name in table.column_names if name not in apart]
    data = pd.DataFrame(
        {name: _cells(rows, name, features) for name in kept}, index=range(len(rows)), dtype=object
    )
    return build(ids, marks, data, shown(path), names, suggested, field)


def _table(path: Path, split: str | None) -> tuple[Any, dict[str, Any]]:
    """Return the rows and the features."""
    pyarrow = _pyarrow(path)
    if path.is_dir():
        return _folder(pyarrow, path, split)
    if split is not None:
        raise InputError(f"split is {shown(split)}, but {shown(path)} is one file; leave it out")
    if not path.is_file():
        raise FileNotFoundError(f"there is no file or folder {shown(path)}; check the path")
    try:
        table = pyarrow.parquet.read_table(path)
        features = json.loads((table.schema.metadata or {}).get(_KEY, b"{}")).get("info", {}).get("features")
    except (OSError, ValueError, AttributeError, pyarrow.ArrowException) as error:
        raise InputError(f"{shown(path)} cannot be read ({reason(error)}); write it again") from None
    if not isinstance(features, dict) or not features.keys() <= set(table.column_names):
        raise InputError(
            f"{shown(path)} has no features of Hugging Face, but they name the classes; write it with "
            "dataset.to_parquet, or read it as a table"
        )
    return table, features


def _folder(pyarrow: Any, path: Path, split: str | None) -> tuple[Any, dict[str, Any]]:
    """Return what ``save_to_disk`` wrote: of a DatasetDict one of its splits."""
    if (path / "dataset_dict.json").is_file():
        splits = read_json(path / "dataset_dict.json").get("splits", [])
        if split not in splits:
            raise InputError(f"{shown(path)} has the splits {listed(splits)}; name one of them with split")
        path = path / str(split)
    elif split is not None:
        raise InputError(f"split is {shown(split)}, but {shown(path)} has no splits; leave it out")
    try:
        features = read_json(path / "dataset_info.json")["features"]
        files = [path / each["filename"] for each in read_json(path / "state.json")["_data_files"]]
        if any(file.parent != path for file in files):  # a forged name could lead anywhere
            raise InputError("it names files outside of the folder")
        parts = [pyarrow.ipc.open_stream(pyarrow.memory_map(str(file))).read_all() for file in files]
        table = pyarrow.concat_tables(parts)
        if not features.keys() <= set(table.column_names):
            raise InputError("its features are not those of its rows")
    except (OSError, ValueError, TypeError, KeyError, AttributeError, pyarrow.ArrowException) as error:
        raise InputError(
            f"{shown(path)} is no folder that dataset.save_to_disk wrote ({reason(error)}); write it again"
        ) from None
    return table, features


def _column(features: dict[str, Any], path: Path, wanted: str | None) -> str:
    """Return the column of labels: votes, or else the one that is a list of ClassLabel, or else a ClassLabel."""
    classed = [name for name, each in features.items() if _names(each)]
    if wanted is not None:
        if wanted not in classed:
            raise InputError(
                f"{shown(path)} has no column {shown(wanted)} of ClassLabel; {alternatives(wanted, classed)}"
            )
        return wanted
    if _VOTES in classed:
        return _VOTES
    lists = [name for name in classed if _is_list(features[name])]
    found = lists or [name for name in classed if name != _PREDICTION]
    if len(found) != 1:
        what = f"has the columns {listed(found)} of ClassLabel" if found else "has no column of ClassLabel"
        fix = "name one with candidates" if found else "cast the column of labels to List(ClassLabel(names=...))"
        raise InputError(f"{shown(path)} {what}; {fix}")
    return found[0]


def _names(feature: Any) -> list[str] | None:
    """Return the classes of a ClassLabel, of a list of them, or of votes that hold such lists."""
    if isinstance(feature, list) and len(feature) == 1:  # the form of a list of tables in earlier versions
        feature = {"_type": "List", "feature": feature[0]}
    if not isinstance(feature, dict):
        return None
    if feature.get("_type") in _LISTS:
        return _names(feature.get("feature"))
    if feature.get("_type") == "ClassLabel":
        names = feature.get("names")
        return names if isinstance(names, list) and all(isinstance(each, str) for each in names) else None
    return _names(feature[_LABELS]) if feature.keys() == {_WORKER, _LABELS} else None


def _is_list(feature: Any) -> bool:
    return isinstance(feature, list) or (isinstance(feature, dict) and feature.get("_type") in _LISTS)


def _cells(rows: list[Any], name: str, features: dict[str, Any]) -> list[Any]:
    """Return a column of data; single labels by their names."""
    classes = None if _is_list(features.get(name)) else _names(features.get(name))
    cells = [facts[name] for facts in rows]
    if classes is None:
        return cells
    return [classes[cell] if isinstance(cell, int) and 0 <= cell < len(classes) else None for cell in cells]


def _named(number: Any, names: list[str] | None, row: int, path: Path) -> str:
    if names is None or not isinstance(number, int) or not 0 <= number < len(names):
        raise InputError(
            f"{shown(path)} holds the label {shown(number)} in row {row}, but has {len(names or ())} classes; "
            "mend it"
        )
    return names[number]


def write_hugging_face(annotations: Annotations, path: Path) -> None:
    """Write a Parquet file whose metadata hold the features: ``Dataset.from_parquet`` has them."""
    pyarrow = _pyarrow(path)
    names = [str(name) for name in annotations.classes.tolist()]
    number = {name: code for code, name in enumerate(annotations.classes.tolist())}
    label = {"names": names, "_type": "ClassLabel"}
    # Earlier versions know no List, and later ones still read these forms.
    listed_label = {"feature": label, "length": -1, "_type": "Sequence"}
    field = "candidates" if annotations.field == "label" else annotations.field
    columns = {_ID: annotations.tasks.tolist()} | {
        str(k): v.map(plain).tolist() for k, v in annotations.data.items()
    }
    if field in columns:
        raise InputError(f"the tasks have data called {shown(field)}, as the labels are; rename one of them")
    columns[field] = [[number[each] for each in labels] for labels in annotations.sets]
    features: dict[str, Any] = {field: listed_label}
    types = {field: pyarrow.list_(pyarrow.int64())}
    if annotations.workers:
        columns[_VOTES] = [
            [{_WORKER: str(who), _LABELS: [number[each] for each in labels]} for who, labels in votes.items()]
            for votes in annotations.votes
        ]
        features[_VOTES] = [{_WORKER: {"dtype": "string", "_type": "Value"}, _LABELS: listed_label}]
        types[_VOTES] = pyarrow.list_(
            pyarrow.struct({_WORKER: pyarrow.string(), _LABELS: pyarrow.list_(pyarrow.int64())})
        )
    if annotations.suggestions is not None:
        pairs = list(suggestions(annotations))
        columns[_PREDICTION] = [each and number[each[0]] for each in pairs]
        columns[_PROBABILITY] = [each and plain(each[1]) for each in pairs]
        features[_PREDICTION] = label
        types |= {_PREDICTION: pyarrow.int64(), _PROBABILITY: pyarrow.float64()}
    _write(pyarrow, columns, types, features, path)


def _write(pyarrow: Any, columns: dict[str, Any], types: dict[str, Any], features: Any, path: Path) -> None:
    try:
        table = pyarrow.table({name: pyarrow.array(cells, types.get(name)) for name, cells in columns.items()})
    except pyarrow.ArrowException as error:
        raise InputError(
            f"the data of the tasks fit into no column ({reason(error)}); write another format"
        ) from None
    for each in table.schema:
        if each.name not in features:
            known = pyarrow.types.is_primitive(each.type) or pyarrow.types.is_string(each.type)
            if not known or pyarrow.types.is_temporal(each.type):
                raise InputError(
                    f"the data {shown(each.name)} are of type {each.type}, which is not written; leave them out"
                )
            kind = {"double": "float64", "float": "float32"}.get(str(each.type), str(each.type))
            features[each.name] = {"dtype": kind, "_type": "Value"}
    ordered = {name: features[name] for name in table.column_names}
    table = table.replace_schema_metadata({_KEY: json.dumps({"info": {"features": ordered}})})
    with replacing(path) as part:
        pyarrow.parquet.write_table(table, part)


def _pyarrow(path: Path) -> Any:
    try:
        import pyarrow  # noqa: PLC0415 - pyarrow is optional
        import pyarrow.ipc  # noqa: PLC0415
        import pyarrow.parquet  # noqa: PLC0415
    except ImportError:
        raise InputError(f"{shown(path)} needs pyarrow, which is missing; pip install oneof[parquet]") from None
    return pyarrow
