"""Commands for review: ``oneof review`` and ``apply``."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from oneof.cli.app import app
from oneof.cli.options import Candidates, Ids, Separator, TableOut, TablePath


class NoneOfThese(StrEnum):
    """What becomes of rows that were decided as none of their candidates."""

    OTHERS = "others"
    DROP = "drop"


@app.command()
def apply(
    table: TablePath,
    decisions: Annotated[
        list[Path],
        typer.Argument(metavar="DECISIONS...", help="Journals of oneof review, or tables with decisions."),
    ],
    out: TableOut,
    candidates: Candidates = "candidates",
    separator: Separator = None,
    ids: Ids = None,
    none: Annotated[
        NoneOfThese, typer.Option(help="none of these: all other classes are left, or the row is dropped.")
    ] = NoneOfThese.OTHERS,
) -> None:
    """Write a copy of a table with decisions merged into its candidate sets.

    Decisions are journals of oneof review (.jsonl), or tables whose column decision people filled in, such as
    those of oneof disambiguate: with a class, or with none of these. Rows are found by their number, or by --id.
    """
    from oneof.cli.model_tables import write_results
    from oneof.cli.review_tables import apply_to_table
    from oneof.data import tables

    tables.check_target(out, [table, *decisions])
    write_results(apply_to_table(table, decisions, candidates, separator, ids or [], none.value), out)
