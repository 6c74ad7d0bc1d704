"""Options and arguments that several commands share."""

import csv
from pathlib import Path
from typing import Annotated

import typer

from oneof.cli import completion
from oneof.cli.output import wanted
from oneof.errors import InputError

TablePath = Annotated[
    Path,
    typer.Argument(
        metavar="TABLE",
        help="A .csv, .tsv, .jsonl, .xlsx, .parquet or .npz file, - for standard input, or a folder of images.",
    ),
]
ModelPath = Annotated[Path, typer.Argument(metavar="MODEL", help="A file that oneof fit wrote.")]
TableOut = Annotated[
    Path,
    typer.Option(
        "--out",
        metavar="FILE",
        help="A .csv, .tsv, .jsonl, .xlsx or .parquet file to write, or - for standard output.",
    ),
]
Format = Annotated[
    str | None, typer.Option("--format", metavar="NAME", help="Of -: csv, tsv, jsonl, xlsx, parquet or npz.")
]
Candidates = Annotated[str, typer.Option(metavar="COLUMN", help="The column of candidate sets.")]
CandidatesPrefix = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="Before the names of columns of 0 and 1, one a class, such as is_."),
]
Separator = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="Stands between the labels of a cell; without it a cell is one label."),
]
Ids = Annotated[
    list[str] | None, typer.Option("--id", metavar="COLUMNS", help="Columns that name the rows, such as id,name.")
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
MethodName = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="See oneof methods; auto takes the one that oneof compare recommends.",
        autocompletion=completion.learners,
    ),
]
EstimatorName = Annotated[
    str | None, typer.Option(metavar="NAME", help="What --method em fits: see oneof methods em.")
]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Same seed, same machine: same model.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1.")]
Workers = Annotated[
    int | None, typer.Option(min=1, help="Train by so many processes, each with a part of the rows; needs Ray.")
]
Cluster = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="Of the Ray cluster of the workers, or auto; without it they run here."),
]
Gpus = Annotated[bool, typer.Option("--gpus", help="Give every worker a GPU of its own.")]
Drop = Annotated[list[str] | None, typer.Option(metavar="COLUMNS", help="Columns to leave out, such as a,b,c.")]
OnDisk = Annotated[
    bool | None,
    typer.Option(
        "--on-disk/--in-memory",
        help="Read the table in pieces, or whole; by default whole below 1 GB.",
    ),
]
Kinds = Annotated[
    list[str] | None,
    typer.Option(
        "--kind",
        metavar="COLUMN=KIND",
        help="What a column shall be: number, category, date, text or drop; may be repeated.",
    ),
]
Size = Annotated[int | None, typer.Option(help="Scale images to so many pixels a side.")]


def _file_of_numbers(path: Path | None) -> Path | None:
    """Tell ``--json``, which prints, from ``--json FILE``."""
    if str(path) != "-":
        return path
    wanted.json = True
    return None


Numbers = Annotated[
    Path | None,
    typer.Option(
        "--json",
        metavar="[FILE]",
        callback=_file_of_numbers,
        help="Print the numbers as JSON instead, or also write them to FILE.",
    ),
]


def column_names(texts: list[str] | None) -> list[str]:
    """Return the columns that lists such as ``a,b,c`` name, each once; a name with a comma stands in quotes."""
    names = [name.strip() for row in csv.reader(texts or [], skipinitialspace=True) for name in row]
    if "" in names:
        raise InputError(f"{','.join(texts or [])!r} names a column without a name; write such as a,b,c")
    return list(dict.fromkeys(names))


def check_format(form: str | None, *paths: Path) -> None:
    """Refuse a format where no table is standard input or output."""
    if form is not None and not any(str(path) == "-" for path in paths):
        raise InputError(
            f"--format is {form!r}, but is for - alone, and files are known by their extensions; leave it out"
        )


def check_json(out: Path) -> None:
    """Refuse to print a table and JSON about it into one stream."""
    if wanted.json and str(out) == "-":
        raise InputError("--json and --out - both take standard output; leave --json out, or name a file")


def check_size(size: int | None, images: str | None, table: Path) -> None:
    """Refuse a size without images."""
    if size is not None and images is None and not table.is_dir():
        raise InputError(f"--size is {size}, but only images are scaled; pass --images COLUMN or leave it out")
