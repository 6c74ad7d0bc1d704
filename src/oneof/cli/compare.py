"""Command for choosing a method: ``oneof compare``."""

import json
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from oneof.cli.app import app
from oneof.cli.method_options import shared_settings
from oneof.cli.options import (
    Candidates,
    CandidatesPrefix,
    Device,
    Drop,
    Format,
    Ids,
    Images,
    Kinds,
    Numbers,
    Seed,
    Separator,
    Settings,
    Size,
    TablePath,
    check_format,
    check_size,
    column_names,
)
from oneof.cli.output import give, note, say, wanted
from oneof.cli.votes import (
    CountColumns,
    Denial,
    LongColumns,
    VoteColumns,
    VotesFile,
    label_options,
)
from oneof.errors import InputError

if TYPE_CHECKING:
    from oneof.comparison import MethodComparison

_Methods = Annotated[
    str | None,
    typer.Option(metavar="NAMES", help="Those to compare, such as cc,idgp; see oneof methods."),
]


@app.command()
def compare(
    table: TablePath,
    candidates: Candidates = "candidates",
    candidates_prefix: CandidatesPrefix = None,
    separator: Separator = None,
    votes: VoteColumns = None,
    long: LongColumns = None,
    counts: CountColumns = None,
    votes_file: VotesFile = None,
    denial: Denial = None,
    methods: _Methods = None,
    cv: Annotated[int, typer.Option(help="Number of folds.")] = 5,
    settings: Settings = None,
    seed: Seed = 0,
    device: Device = "auto",
    ids: Ids = None,
    drop: Drop = None,
    kinds: Kinds = None,
    form: Format = None,
    images: Images = None,
    size: Size = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Also draw a page.")] = None,
    json_out: Numbers = None,
) -> None:
    """Say which method to take: all are judged by the candidate sets of held-out rows.

    No true labels are needed. Settings of --set go to all methods that have them.
    """
    from oneof.cli.encoding import training_table
    from oneof.comparison import compare as judge
    from oneof.train.runtime import resolve_device

    _check_targets(table, html, json_out)
    check_size(size, images, table)
    check_format(form, table)
    resolve_device(device)
    shared = shared_settings(settings or []) | {"device": device}
    names = None if methods is None else [name.strip() for name in methods.split(",")]
    labels = label_options(candidates, candidates_prefix, separator, votes, long, counts, votes_file, denial)
    others = [*column_names(ids), *column_names(drop)]
    labels.check_apart(column_names(drop), column_names(ids))
    encoded, y = training_table(table, labels, others, kinds, images, size, form)
    found = judge(encoded.rows, y, names, cv, shared, random_state=seed, verbose=int(not wanted.quiet))
    _write(found, table.name, html, json_out)
    say(str(found))
    give(found.as_json())
    for path in filter(None, (html, json_out)):
        note("written", str(path))


def _check_targets(table: Path, *targets: Path | None) -> None:
    from oneof.data import tables

    named = [target for target in targets if target is not None]
    for target in named:
        tables.check_target(target, [table], table=False)
    if len({target.resolve() for target in named}) < len(named):
        raise InputError(f"--html and --json are both {str(named[0])!r}; name two files")


def _write(found: "MethodComparison", title: str, html: Path | None, json_out: Path | None) -> None:
    """Write page and numbers: both or neither."""
    from oneof.comparison.summary import render_page
    from oneof.io.files import replacing

    with ExitStack() as files:
        if html is not None:
            files.enter_context(replacing(html)).write_text(render_page(found, title), encoding="utf-8")
        if json_out is not None:
            numbers = json.dumps(found.as_json(), indent=1) + "\n"
            files.enter_context(replacing(json_out)).write_text(numbers, encoding="utf-8")
