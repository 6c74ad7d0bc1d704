"""Command that turns images or texts into features of a pretrained network: ``oneof embed``."""

from pathlib import Path
from typing import Annotated, Any

import typer

from oneof.cli.app import app
from oneof.cli.options import Device, Images
from oneof.cli.output import fold, give, say, wanted
from oneof.errors import InputError


@app.command()
def embed(
    table: Annotated[
        Path, typer.Argument(metavar="TABLE", help="A table, or a folder with one sub-folder of images a class.")
    ],
    model: Annotated[str, typer.Option(metavar="NAME", help="timm:NAME, torchvision:NAME, or hf:NAME or folder.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="A .npz, .parquet or .csv file to write.")],
    images: Images = None,
    text: Annotated[str | None, typer.Option(metavar="COLUMN", help="The column of texts.")] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Rows at a time.")] = 64,
    device: Device = "auto",
) -> None:
    """Write features of a pretrained network for each row, beside its other columns.

    Compute them once; oneof fit, compare and predict then learn from them within seconds.
    """
    from oneof.data import tables
    from oneof.data.embedding import embed as compute

    tables.check_target(out, [table], table=out.suffix.lower() != ".npz")
    items, columns = _rows(table, images, text)
    features = compute(items, model, text is not None, batch_size, device, not wanted.quiet)
    _write(features, columns, out)
    give({"rows": len(features), "features": features.shape[1], "out": out})
    say(fold(f"{len(features)} rows of {features.shape[1]} features written to {out}"))


def _rows(table: Path, images: str | None, text: str | None) -> tuple[list[Any], Any]:
    """Return what is embedded, and the columns that stay."""
    import pandas as pd

    from oneof.data import tables
    from oneof.data.embedding import class_folders
    from oneof.data.folder import image_paths

    if (images is None) == (text is None) and not (table.is_dir() and text is None):
        raise InputError("there is nothing to embed, or too much; pass either --images COLUMN or --text COLUMN")
    if table.is_dir():
        if images is not None or text is not None:
            raise InputError(
                f"{str(table)!r} is a folder, whose images have no column; leave --images and --text out"
            )
        files, names = class_folders(table)
        return [table / file for file in files], pd.DataFrame({"file": files, "candidates": names})
    column = str(images if text is None else text)
    names_of_columns = list(tables.read_table(table).rows)
    tables.read_table(table, [column])  # which says what is wrong with its name
    data = tables.read_table(table, names_of_columns).columns  # all as written
    cells = data[column].tolist()
    return (cells if text else list(image_paths(table, column, cells))), data.drop(
        columns=[column] if text else []
    )


def _write(features: Any, columns: Any, out: Path) -> None:
    from zipfile import ZipFile

    import numpy as np
    import pandas as pd

    from oneof.data import tables
    from oneof.io.files import replacing

    if out.suffix.lower() != ".npz":
        named = pd.DataFrame(features, columns=[f"f{i}" for i in range(features.shape[1])])
        taken = [name for name in columns if name in named]
        if taken:
            raise InputError(f"the table has columns {taken[:5]}, as features are called; rename them")
        tables.write_table(pd.concat([columns.reset_index(drop=True), named], axis=1), out)
        return
    arrays: dict[str, Any] = {str(name): columns[name].astype(str).to_numpy(str) for name in columns}
    if "x" in arrays:
        raise InputError("the table has a column 'x', as the features of an .npz file are called; rename it")
    # Not by numpy.savez, which takes no array of the name 'file'.
    with replacing(out) as part, ZipFile(part, "w") as archive:
        for name, array in {"x": features, **arrays}.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
