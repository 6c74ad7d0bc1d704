"""Commands for review: ``oneof review`` and ``apply``."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from oneof.cli.app import app
from oneof.cli.options import (
    Candidates,
    CandidatesPrefix,
    Ids,
    Images,
    ModelPath,
    Separator,
    TableOut,
    TablePath,
    check_json,
    column_names,
)
from oneof.cli.output import fold, give, note, say
from oneof.cli.votes import CountColumns, Denial, LongColumns, VoteColumns, VotesFile, label_options


class NoneOfThese(StrEnum):
    """What becomes of rows that were decided as none of their candidates."""

    OTHERS = "others"
    DROP = "drop"


@app.command()
def review(
    model: ModelPath,
    table: TablePath,
    candidates: Candidates = "candidates",
    separator: Separator = None,
    ids: Ids = None,
    images: Images = None,
    text: Annotated[str | None, typer.Option(metavar="COLUMN", help="A column of texts to show.")] = None,
    votes: VoteColumns = None,
    long: LongColumns = None,
    counts: CountColumns = None,
    votes_file: VotesFile = None,
    denial: Denial = None,
    decisions: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The journal; TABLE.decisions.jsonl by default.")
    ] = None,
    static: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write one page that needs no server, and stop.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Rows of the page of --static.")] = 300,
    host: Annotated[str, typer.Option(help="Where to listen; others can then reach it.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any that is free.")] = 0,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the address alone.")] = False,
    candidates_prefix: CandidatesPrefix = None,
) -> None:
    """See which answers are probably wrong, decide, and learn again, in your browser.

    Rows are ranked by models that have not seen them: five fits, made once and kept beside MODEL. Every decision
    goes to a journal, which oneof fit --decisions and oneof apply read; TABLE itself stays as it is.
    """
    from oneof.cli.review_tables import material_of, open_session, write_static
    from oneof.review.server import need_server, serve

    if static is None:
        need_server()
    labels = label_options(candidates, candidates_prefix, separator, votes, long, counts, votes_file, denial)
    labels.check_apart(ids=column_names(ids))
    fitted, material = material_of(model, table, labels, column_names(ids), images, text)
    if static is not None:
        write_static(fitted, model, material, static, limit, [model, table])
        return
    with open_session(
        fitted, model, material, decisions or table.with_name(f"{table.name}.decisions.jsonl")
    ) as session:
        serve(session, host, port, lambda address: _announce(address, host, no_browser))


def _announce(address: str, host: str, no_browser: bool) -> None:
    """Say where the review is, and open it."""
    import webbrowser

    say(fold(f"review at {address} (Ctrl-C ends it; decisions are kept)"))
    give({"address": address})
    if host not in ("127.0.0.1", "localhost", "::1"):
        note("warning", f"everybody who can reach {host} and knows this address can decide")
    if not no_browser:
        webbrowser.open(address)


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

    check_json(out)
    tables.check_target(out, [table, *decisions])
    write_results(apply_to_table(table, decisions, candidates, separator, column_names(ids), none.value), out)
