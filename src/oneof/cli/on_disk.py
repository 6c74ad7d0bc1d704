"""Tables of any size: ``oneof fit`` learns from them on disk, ``oneof predict`` reads and writes pieces."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oneof.cli.output import tell_written, wanted
from oneof.errors import InputError

if TYPE_CHECKING:
    from oneof.cli.encoding import Encoded
    from oneof.cli.votes import Labels
    from oneof.methods import Model

LARGE = 2**30  # bytes of a file, from which on it is not read whole
_ADVICE = "make numbers of them, or fit a model on a table with such columns"
_JUDGED = 2**16  # rows by which a column of labels is told


def in_pieces(table: Path, on_disk: bool | None, hindrances: Mapping[str, Any]) -> bool:
    """Tell whether a table is read in pieces: as the option says, else by its size and where nothing hinders it.

    ``hindrances`` are what needs the whole table, in words, where they are given.
    """
    from oneof.data.on_disk.sources import is_pieced

    of_files = table.is_dir() and next(table.rglob("*.parquet"), None) is not None
    hindered = next((words for words, given in hindrances.items() if given), None)
    if not (of_files or on_disk):
        large = table.is_file() and is_pieced(table) and table.stat().st_size >= LARGE
        return on_disk is None and large and hindered is None
    why = "--on-disk is given" if on_disk else f"{str(table)!r} is a folder of Parquet files"
    if on_disk is False:
        raise InputError(f"--in-memory is given, but {why[:-1]}s, which are read in pieces; leave it out")
    if hindered is not None:
        raise InputError(f"{why}, but {hindered} whole table in memory; leave one of them out")
    return True


def training_rows(
    table: Path, labels: "Labels", others: Sequence[str], kinds: Sequence[str] | None
) -> tuple["Encoded", Any]:
    """Return features and candidate sets of a table that stays on disk.

    ``others`` are the columns that are no features. The rest is encoded where its first rows are not all numbers,
    or ``kinds`` say what some columns shall be.
    """
    from oneof.cli.encoding import Encoded, kinds_of, said_of
    from oneof.cli.model_tables import refuse_image
    from oneof.data.on_disk.encoded import categories
    from oneof.data.on_disk.source import NUMERIC
    from oneof.data.on_disk.sources import source_of
    from oneof.data.on_disk.table import stored
    from oneof.io.files import cache_folder
    from oneof.pipeline import TableEncoder
    from oneof.pipeline.label_columns import refuse_labels

    source, asked = source_of(table), kinds_of(kinds)
    held = {name: kind for name, kind in source.kinds().items() if name not in (labels.column, *others)}
    for name, kind in held.items():
        refuse_image(name, kind)
    mixed = asked or any(kind not in NUMERIC[:2] for kind in held.values())
    encoder = TableEncoder(asked or None) if mixed else None
    apart, folder = list(dict.fromkeys(others)), cache_folder() / "tables"
    kept = stored(source, labels.column, labels.separator, [], apart, folder, not wanted.quiet, encoder)
    if kept.encoder is not None and kept.y is not None:
        rows = categories(kept.encoder, kept.X[:_JUDGED])
        refuse_labels(rows, kept.encoder.used_columns(), asked, kept.y[: len(rows)])
    return said_of(Encoded(kept.X, kept.encoder)), kept.y


def predict_in_pieces(model: "Model", table: Path, out: Path, ids: Sequence[str]) -> None:
    """Write the most likely class of every row as it is read; after an error nothing is written."""
    import numpy as np

    from oneof.cli.model_tables import with_ids
    from oneof.data.download import Meter
    from oneof.data.on_disk.source import Checked, ahead, check_unchanged
    from oneof.data.on_disk.sources import source_of
    from oneof.data.table_pieces import appending

    source, rows, columns = source_of(table), 0, list[str]()
    known, names, predict = _encoded(model, source, ids) or _plain(model, source, ids)
    identity = source.identity()
    with appending(out) as append, Meter(f"reading {source.name}", 1000, visible=not wanted.quiet) as meter:
        checked = Checked(known, names).exact
        for piece in ahead(known.pieces(list(ids), names, checked, lambda x: meter.show(int(1000 * x)))):
            label, probability = predict(np.concatenate(piece.taken))
            result = with_ids(piece.written, {"prediction": label[:, 0], "probability": probability[:, 0]})
            append(result)
            rows, columns = rows + len(result), list(result)
        check_unchanged(source, rows, identity)
    tell_written(rows, columns, out)


def _plain(model: "Model", source: Any, ids: Sequence[str]) -> tuple[Any, list[str], Any]:
    """Return the rows of a source for a model of numbers, their columns, and what predicts them."""
    import pandas as pd

    names = _features(model, source, ids)
    return source, names, lambda x: model.predict_top(pd.DataFrame(x, columns=names), 1)


def _encoded(model: "Model", source: Any, ids: Sequence[str]) -> tuple[Any, list[str], Any] | None:
    """Return the same for a model that encodes columns; None of others."""
    from oneof.cli.model_tables import encoder_of
    from oneof.data.on_disk.encoded import EncodedRows
    from oneof.data.on_disk.source import require
    from oneof.pipeline import Pipeline

    encoder = encoder_of(model)
    if encoder is None:
        return None
    require([*ids, *encoder.used_columns()], list(source.kinds()), source.name)
    behind = Pipeline(model.steps[1:])
    return (
        EncodedRows(source, encoder),
        encoder.get_feature_names_out().tolist(),
        lambda x: behind.predict_top(x, 1),
    )


def _features(model: "Model", source: Any, ids: Sequence[str]) -> list[str]:
    """Return the columns that a model was fitted on: by their names, or all that are no ids."""
    from oneof.data.on_disk.source import check_numbers, require

    kinds = source.kinds()
    require(ids, list(kinds), source.name)
    known = getattr(model, "feature_names_in_", None)
    names = [name for name in kinds if name not in ids] if known is None else known.tolist()
    require(names, list(kinds), source.name)
    for name in set(ids) & set(names):
        raise InputError(
            f"--id names {name!r}, which is a feature of the model; leave it out, or pass --in-memory"
        )
    check_numbers({name: kinds[name] for name in names}, source.name, _ADVICE)
    if len(names) != model.n_features_in_:
        raise InputError(
            f"{source.name} has {len(names)} features, but the model was fitted on {model.n_features_in_}; give "
            "those that it was fitted on, in the same order"
        )
    return names
