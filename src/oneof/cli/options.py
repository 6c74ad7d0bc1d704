"""Options and arguments that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

TablePath = Annotated[Path, typer.Argument(metavar="TABLE", help="A .csv, .tsv, .parquet or .npz file.")]
ModelPath = Annotated[Path, typer.Argument(metavar="MODEL", help="A file that oneof fit wrote.")]
TableOut = Annotated[Path, typer.Option("--out", metavar="FILE", help="A .csv, .tsv or .parquet file to write.")]
Candidates = Annotated[str, typer.Option(metavar="COLUMN", help="The column of candidate sets.")]
Separator = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="Stands between the labels of a cell; without it a cell is one label."),
]
Ids = Annotated[
    list[str] | None, typer.Option("--id", metavar="COLUMN", help="A column that names the rows; may be repeated.")
]
Images = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN", help="The column of image files, named from the table's folder: learn from them."
    ),
]

Decisions = Annotated[
    list[Path] | None,
    typer.Option(metavar="FILE", help="Decisions of oneof review, or a table with some; may be repeated."),
]
HeldOutFlag = Annotated[
    bool,
    typer.Option("--held-out", help="Judge each row by a model that has not seen it; 5 fits, kept beside MODEL."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="See oneof methods NAME; may be repeated."),
]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Same seed, same machine: same model.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1.")]
Drop = Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="A column to leave out; may be repeated.")]
Size = Annotated[int | None, typer.Option(help="Scale images to so many pixels a side.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]


def check_size(size: int | None, images: str | None) -> None:
    """Refuse a size without images."""
    if size is not None and images is None:
        raise ValueError(f"--size is {size}, but only images are scaled; pass --images COLUMN or leave it out")
