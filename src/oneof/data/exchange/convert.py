"""Labels from one tool to another: which formats there are, how a file is told, and the way between two files."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from oneof.data.exchange.annotations import Annotations
from oneof.data.exchange.argilla import read_argilla, write_argilla
from oneof.data.exchange.hugging_face import read_hugging_face, write_hugging_face
from oneof.data.exchange.json_files import read_json
from oneof.data.exchange.label_studio import read_label_studio, write_label_studio
from oneof.data.exchange.tabular import (
    LONG,
    read_cleanlab,
    read_crowd_kit,
    read_our_table,
    write_cleanlab,
    write_crowd_kit,
    write_our_table,
)
from oneof.data.tables import check_target, is_table, read_table
from oneof.errors import InputError, KindError
from oneof.io.arguments import as_path
from oneof.io.words import alternatives, listed, shown


@dataclass(frozen=True)
class Format:
    """How files of a tool are read and written, and the extensions of those that are written."""

    read: Callable[..., Annotations]
    write: Callable[[Annotations, Path], None]
    extensions: tuple[str, ...]
    names: tuple[str, ...] = ()  # what may be called otherwise in a file: the labels (field), what they are about


_TABLES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet")
FORMATS: dict[str, Format] = {
    "table": Format(read_our_table, write_our_table, _TABLES),
    "crowd-kit": Format(read_crowd_kit, write_crowd_kit, _TABLES),
    "cleanlab": Format(read_cleanlab, write_cleanlab, (*_TABLES, ".npy", ".npz")),
    "label-studio": Format(read_label_studio, write_label_studio, (".json",), ("field", "about")),
    "argilla": Format(read_argilla, write_argilla, (".json",), ("field",)),
    "hugging-face": Format(read_hugging_face, write_hugging_face, (".parquet",), ("field",)),
}


def convert(
    source: Any,
    target: Any,
    from_format: str | None = None,
    to_format: str | None = None,
    *,
    tasks: Any = None,
    labelled: bool = False,
    field: str | None = None,
    about: str | None = None,
    **options: Any,
) -> Annotations:
    r"""Read labels in the format of one tool and write them in that of another; neither tool is needed.

    Parameters
    ----------
    source, target : path
        The file, or folder, to read and the file to write.
    from_format, to_format : str, optional
        ``"table"``, ``"crowd-kit"``, ``"cleanlab"``, ``"label-studio"``, ``"argilla"`` or ``"hugging-face"``. By
        default told by the content of ``source``, and by the extension of ``target`` where only one tool has it.
    tasks : path, optional
        A file with the tasks that ``source`` speaks of: their data are taken from there, as when predictions in a
        table go back to the project that the labels came from. They are matched by ``id``, or else by order.
    labelled : bool, default=False
        Leave out tasks without a label.
    field, about : str, optional
        What labels are called in ``target`` (a column, question or control), and the part of a task that they are
        about (Label Studio's ``toName``); by default as in ``source``.
    **options
        Of the format that is read; see `read_annotations`.

    Returns
    -------
    Annotations
        What was written.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from oneof import convert
    >>> with TemporaryDirectory() as folder:
    ...     votes, project = Path(folder, "votes.csv"), Path(folder, "project.json")
    ...     _ = votes.write_text("task,worker,label\na,anna,cat\na,ben,dog\nb,anna,dog\n")
    ...     labels = convert(votes, project, to_format="label-studio")
    ...     project.stat().st_size > 0, len(labels.tasks)
    (True, 2)
    """
    _check_options({"field": field, "about": about})
    if not isinstance(labelled, bool):
        raise KindError(f"labelled is {shown(labelled, 60)}, but must be True or False; pass one of them")
    source, target = as_path(source, "source"), as_path(target, "target")
    kind = _target_format(target, to_format)
    for option, value in (("field", field), ("about", about)):
        if value is not None and option not in FORMATS[kind].names:
            having = [name for name, each in FORMATS.items() if option in each.names]
            raise InputError(
                f"{option} is {shown(value, 60)}, but {shown(target)} is written as {kind}, which has none; leave "
                f"it out, or write {' or '.join(having)}"
            )
    others = None if tasks is None else as_path(tasks, "tasks")
    check_target(target, [each for each in (source, others) if each is not None], table=False)
    found = read_annotations(source, from_format, **options)
    if others is not None:
        alone: dict[str, Any] = (
            {"unlabelled": True} if _source_format(others) in ("label-studio", "argilla") else {}
        )
        by_name = options.get("id") is not None or _are_named(found)
        found = found.onto(read_annotations(others, **alone), by_name)
    if labelled:
        found = found.labelled()
    found = replace(found, field=field or found.field, about=about or found.about)
    FORMATS[kind].write(found, target)
    return found


def read_annotations(path: Any, format: str | None = None, **options: Any) -> Annotations:
    r"""Read labels, and what they are labels of.

    Parameters
    ----------
    path : path
        A file, or for ``"hugging-face"`` also a folder.
    format : str, optional
        The name of a format, see `convert`; by default told by the content.
    **options
        ``candidates``: the column, question or control of labels. ``separator``, ``votes``, ``id`` of tables:
        what stands between labels, the columns of votes, that of the tasks. ``long`` of crowd-kit: three columns.
        ``classes`` of cleanlab: the names of classes 0, 1, ... ``split`` of hugging-face. ``unlabelled=True`` of
        label-studio and argilla: take files without any label.

    Returns
    -------
    Annotations
        Tasks and the labels that they were given.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from oneof import read_annotations
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "votes.csv")
    ...     _ = path.write_text("task,worker,label\na,anna,cat\na,ben,dog\nb,anna,dog\n")
    ...     read_annotations(path).classes.tolist()
    ['cat', 'dog']
    """
    path = as_path(path, "path")
    name = _known(format, "format") if format is not None else _source_format(path)
    reader = FORMATS[name].read
    accepted = [each for each in inspect.signature(reader).parameters if each != "path"]
    given = {each: value for each, value in options.items() if value is not None}
    _check_options(given)
    for each in given:
        if each not in accepted:
            raise KindError(
                f"{each} is given, but {shown(path)} is read as {name}, which has {listed(accepted)}; leave it "
                "out, or name another format"
            )
    if not path.exists():
        raise FileNotFoundError(f"there is no file {shown(path)}; check the path")
    return reader(path, **given)


def write_annotations(annotations: Annotations, path: Any, format: str | None = None) -> None:
    r"""Write labels in the format of a tool.

    Parameters
    ----------
    annotations : Annotations
        What `read_annotations` returns.
    path : path
        The file or folder to write.
    format : str, optional
        The format; by default the one that alone has the extension.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from oneof import read_annotations, write_annotations
    >>> with TemporaryDirectory() as folder:
    ...     path, table = Path(folder, "votes.csv"), Path(folder, "table.csv")
    ...     _ = path.write_text("task,worker,label\na,anna,cat\na,ben,dog\nb,anna,dog\n")
    ...     write_annotations(read_annotations(path), table, "table")
    ...     print(table.read_text().splitlines())
    ['id,anna,ben', 'a,cat,dog', 'b,dog,']
    """
    path = as_path(path, "path")
    if not isinstance(annotations, Annotations):
        raise KindError(f"annotations is {shown(annotations, 60)}, but must be what read_annotations returns")
    kind = _target_format(path, format)
    check_target(path, table=False)
    FORMATS[kind].write(annotations, path)


def _check_options(options: Mapping[str, Any]) -> None:
    """Refuse options that are no names, or no lists of different names."""
    for option, value in options.items():
        if option in ("votes", "long", "classes"):
            fine = isinstance(value, list | tuple) and all(isinstance(each, str) for each in value)
            if (
                not fine
                or len(set(value)) < len(value)
                or len(value) < 2
                or (option == "long" and len(value) != 3)
            ):
                least = "three" if option == "long" else "at least two"
                raise InputError(
                    f"{option} is {shown(value, 60)}, but must be a list of {least} different names; pass one"
                )
        elif option != "unlabelled" and not (value is None or (isinstance(value, str) and value)):
            raise KindError(f"{option} is {shown(value, 60)}, but must be a text; pass one, or None")


def _known(name: Any, option: str) -> str:
    if not isinstance(name, str) or name not in FORMATS:
        hint = alternatives(name, FORMATS) if isinstance(name, str) else f"there are {listed(FORMATS)}"
        raise InputError(f"{option} is {shown(name, 60)}, which is no known format; {hint}")
    return name


def _are_named(found: Annotations) -> bool:
    """Say whether tasks have names of their own, not only numbers from 0."""
    return bool(found.tasks.tolist() != list(range(len(found))))


def _target_format(path: Path, name: str | None) -> str:
    """Return the format of a file to write: the given one, a table, or the only one with the extension."""
    if name is not None:
        kinds = FORMATS[_known(name, "to_format")].extensions
        if not path.name.lower().endswith(kinds):
            raise InputError(f"{shown(path)} must end in {' or '.join(kinds)} to hold {name}; rename it")
        return name
    if is_table(path) and path.suffix != ".npz":
        return "table"
    fitting = [each for each, kind in FORMATS.items() if path.name.lower().endswith(kind.extensions)]
    if len(fitting) == 1:
        return fitting[0]
    what = f"may be {' or '.join(fitting)}" if fitting else "has an extension that no format has"
    raise InputError(f"{shown(path)} {what}; say which with --to (in Python to_format or format)")


def _source_format(path: Path) -> str:
    """Tell the format of a file by what is in it."""
    if not path.exists():
        raise FileNotFoundError(f"there is no file {shown(path)}; check the path")
    kind = path.suffix.lower()
    if path.is_dir():
        return "hugging-face"
    if kind == ".json":
        content = read_json(path)
        first = content[0] if isinstance(content, list) and content else None
        if isinstance(first, Mapping) and "data" in first:
            return "label-studio"
        if isinstance(first, Mapping) and "fields" in first:
            return "argilla"
    elif kind in (".npy", ".npz"):
        return "cleanlab"
    elif is_table(path):
        if kind == ".parquet" and _has_features(path):
            return "hugging-face"
        return "crowd-kit" if set(LONG) <= set(read_table(path).rows) else "table"
    raise InputError(f"the format of {shown(path)} cannot be told; say which of {listed(FORMATS)} with --from")


def _has_features(path: Path) -> bool:
    try:
        from pyarrow import ArrowException, parquet  # noqa: PLC0415 - pyarrow is optional
    except ImportError:
        return False  # the reader of tables says what is missing
    try:
        return b"huggingface" in (parquet.read_schema(path).metadata or {})
    except (OSError, ArrowException):
        return False
