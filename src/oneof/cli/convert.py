"""Command that brings labels from one tool to another: ``oneof convert``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oneof.cli import completion
from oneof.cli.app import app
from oneof.cli.options import Separator
from oneof.cli.output import fold, give, note, say
from oneof.cli.votes import LongColumns, VoteColumns
from oneof.errors import InputError

if TYPE_CHECKING:
    from oneof.data.exchange import Annotations

_FORMAT: dict[str, Any] = {
    "metavar": "FORMAT",
    "help": "table, crowd-kit, cleanlab, label-studio, argilla or hugging-face; where it cannot be told.",
    "autocompletion": completion.formats,
}


@app.command()
def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help="The file or folder to read.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="The file to write.")],
    from_format: Annotated[str | None, typer.Option("--from", **_FORMAT)] = None,
    to_format: Annotated[str | None, typer.Option("--to", **_FORMAT)] = None,
    candidates: Annotated[
        str | None, typer.Option(metavar="NAME", help="The column, question or control of labels in IN.")
    ] = None,
    separator: Separator = None,
    votes: VoteColumns = None,
    long: LongColumns = None,
    id_column: Annotated[str | None, typer.Option("--id", metavar="COLUMN", help="Of tasks, in a table.")] = None,
    classes: Annotated[
        str | None, typer.Option(metavar="A,B,C", help="The names of classes 0, 1, 2 of cleanlab.")
    ] = None,
    split: Annotated[str | None, typer.Option(help="The part of a dataset of Hugging Face.")] = None,
    tasks: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where the tasks of IN come from: their data are kept.")
    ] = None,
    labelled: Annotated[bool, typer.Option("--labelled", help="Leave out tasks without a label.")] = False,
    field: Annotated[
        str | None, typer.Option(metavar="NAME", help="What labels are called in OUT; as in IN by default.")
    ] = None,
    about: Annotated[
        str | None, typer.Option(metavar="NAME", help="Label Studio's toName in OUT; as in IN by default.")
    ] = None,
) -> None:
    """Bring labels from one tool to another: crowd-kit, Label Studio, Argilla, Hugging Face, cleanlab, tables.

    Votes stay votes and sets stay sets where OUT can hold them. None of the tools need be installed.
    """
    from oneof.data.exchange import convert as carry_over

    options: dict[str, Any] = {
        "candidates": candidates,
        "separator": separator,
        "votes": _names(votes, "votes"),
        "long": _names(long, "long", 3),
        "id": id_column,
        "classes": _names(classes, "classes"),
        "split": split,
    }
    found = carry_over(
        source, target, from_format, to_format, tasks=tasks, labelled=labelled, field=field, about=about, **options
    )
    _tell(found, target, to_format)


def _names(text: str | None, option: str, number: int | None = None) -> list[str] | None:
    """Read a comma list of different names."""
    if text is None:
        return None
    names = [name.strip() for name in text.split(",")]
    if "" in names or len(set(names)) < len(names) or (number is not None and len(names) != number):
        example = "task,worker,label" if number == 3 else "a,b,c"
        raise InputError(f"--{option} is {text!r}, but must be different names; write --{option} {example}")
    return names


def _tell(found: "Annotations", target: Path, to_format: str | None) -> None:
    """Say what was written, and how ``oneof fit`` takes it where it does."""
    from oneof.data import tables
    from oneof.data.exchange.tabular import several_votes

    say(fold(f"{found!r} written to {target}"))
    empty = int((found.votes_a_task == 0).sum())
    give({"tasks": len(found), "without_label": empty, "classes": found.classes, "out": target})
    if empty and found.suggestions is None:
        note("hint", f"{empty} of {len(found)} tasks have no label; --labelled leaves them out")
    elif to_format in (None, "table") and tables.is_table(target) and target.suffix != ".npz":
        columns = (
            f"--votes {','.join(map(str, found.workers))}" if several_votes(found) else "--candidates candidates"
        )
        note("hint", f'oneof fit {target} {columns} --separator "|" --id id takes it; --drop leaves columns out')
