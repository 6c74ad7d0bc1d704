"""Commands for data: ``oneof datasets``, ``corrupt`` and ``inspect``."""

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oneof.cli import completion
from oneof.cli.app import DataFolder, app, named_values
from oneof.cli.options import (
    Candidates,
    CandidatesPrefix,
    Drop,
    Format,
    Separator,
    TablePath,
    check_format,
    column_names,
)
from oneof.cli.output import fold, give, note, say, show_grid, wanted
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
    from oneof.data import PartialLabels
    from oneof.data.generate import Generated
    from oneof.data.tables import Table


class Mode(StrEnum):
    """Statistics of an annotator's batch normalisation."""

    EVAL = "eval"
    BATCH = "batch"


@app.command()
def datasets(data: DataFolder = None) -> None:
    """List the data sets that oneof knows."""
    from oneof.data import describe_datasets

    known = describe_datasets(data)
    give({"datasets": [each._asdict() for each in known]})
    rows = [
        [
            each.name,
            " + ".join(map(str, each.rows)),
            " x ".join(map(str, each.shape)),
            str(each.classes),
            f"{each.set_size:.2f}",
            "yes" if each.present else "no",
            each.licence,
            each.source,
        ]
        for each in known
    ]
    show_grid(["name", "rows", "row", "classes", "set size", "present", "licence", "source"], rows)


@app.command()
def corrupt(
    dataset: Annotated[
        str, typer.Argument(metavar="NAME", help="See oneof datasets.", autocompletion=completion.datasets)
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The .npz file to write.")],
    process: Annotated[
        str,
        typer.Option(
            help="instance, decomposition, uniform, uniform-sets, class, ...", autocompletion=completion.processes
        ),
    ] = "instance",
    rate: Annotated[float | None, typer.Option(help="How often wrong labels join a set.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the process, such as scaling=max."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same sets.")] = 0,
    network: Annotated[str, typer.Option(help="Of the annotator; auto is the paper's.")] = "auto",
    epochs: Annotated[int | None, typer.Option(help="Of the annotator: fewer make harder sets.")] = None,
    mode: Annotated[Mode, typer.Option(help="Batch normalisation of the annotator.")] = Mode.EVAL,
    annotator_seed: Annotated[int, typer.Option(help="Of the annotator.")] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1.")] = "auto",
    data: DataFolder = None,
) -> None:
    """Make candidate sets for the training part of a data set out of its true labels.

    The file holds x, candidates, y, classes and a manifest; oneof fit, score and inspect read it.
    """
    from oneof.data import tables
    from oneof.data.annotator import Annotator
    from oneof.data.generate import asks_annotator, generate
    from oneof.train.runtime import resolve_device

    tables.check_target(out, table=False)
    if out.suffix != ".npz":
        raise InputError(f"--out is {str(out)!r}, but must end in .npz; rename it")
    resolve_device(device)
    annotator = Annotator(network=network, epochs=epochs, mode=mode.value, seed=annotator_seed)
    parameters = _parameters(settings or [], rate)
    if annotator != Annotator() and not asks_annotator(process):
        raise InputError(
            f"the process {process!r} asks no annotator; leave out --network, --epochs, --mode and "
            "--annotator-seed"
        )
    train, test = _parts(dataset, data)
    if asks_annotator(process):
        note("annotator", "a clean classifier that says which wrong labels are likely, trained once and kept")
    sources: Any = {"annotator": annotator, "test": test, "device": device, "verbose": int(not wanted.quiet)}
    _write_sets(out, train, generate(train, process, seed=seed, parameters=parameters, **sources))


def _parameters(settings: list[str], rate: float | None) -> dict[str, Any]:
    """Read the parameters of a process; its rate has an option of its own."""
    parameters = named_values(settings, "scaling=max")
    if rate is not None:
        if "rate" in parameters:
            raise InputError(f"--rate is {rate} and --set rate is {parameters['rate']!r}; give one of them")
        parameters["rate"] = rate
    return parameters


def _parts(dataset: str, folder: Path | None) -> "tuple[PartialLabels, PartialLabels | None]":
    """Load the training part of a data set, and its test part if it has one."""
    from oneof.data import load_dataset

    loaded = load_dataset(dataset, folder)
    return loaded if isinstance(loaded, tuple) else (loaded, None)


def _write_sets(out: Path, train: "PartialLabels", made: "Generated") -> None:
    """Write candidate sets with their rows, and print what is worth knowing about them."""
    import numpy as np

    from oneof.io.files import replacing

    with replacing(out) as part, part.open("wb") as file:
        manifest = np.array(json.dumps(made.manifest))
        truth = train.classes[train.y]
        np.savez(file, x=train.x, candidates=made.candidates, y=truth, classes=train.classes, manifest=manifest)
    for name in ("mean_size", "one_label", "full", "certain_distractor"):
        say(f"{name.replace('_', ' '):20}{made.manifest[name]:.4f}")
    for name in ("annotator_train_accuracy", "annotator_test_accuracy"):
        if made.manifest.get(name) is not None:
            say(f"{name.replace('_', ' '):26}{made.manifest[name]:.4f}")
    give({**made.manifest, "rows": len(made.candidates), "out": out})
    say(fold(f"{len(made.candidates)} candidate sets written to {out}"))


@app.command()
def inspect(
    table: TablePath,
    candidates: Candidates = "candidates",
    separator: Separator = None,
    votes: VoteColumns = None,
    long: LongColumns = None,
    counts: CountColumns = None,
    votes_file: VotesFile = None,
    denial: Denial = None,
    truth: Annotated[str | None, typer.Option(metavar="COLUMN", help="The column of true labels, if any.")] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Also draw a page.")] = None,
    candidates_prefix: CandidatesPrefix = None,
    form: Format = None,
    outside: Annotated[
        bool, typer.Option("--outside", help="Also estimate how many rows lack their true label.")
    ] = False,
    drop: Drop = None,
) -> None:
    """Say how ambiguous candidate sets are, and where no method can learn from them.

    Of votes it says, too, whom to trust. --outside fits the method competition to the other columns.
    """
    from oneof.cli.model_tables import labels_of, read, truth_for
    from oneof.data import tables
    from oneof.data.inspection import inspect as look
    from oneof.data.inspection_summary import as_facts, lines, write_page

    if html is not None:
        tables.check_target(html, [table], table=False)
    check_format(form, table)
    where = label_options(candidates, candidates_prefix, separator, votes, long, counts, votes_file, denial)
    where.check_apart(column_names(drop))
    columns = [*where.in_table, *([] if truth is None else [truth])]
    data, labels = labels_of(read(table, columns, None, form=form), where)
    classes = labels.classes if where.given else labels.columns.to_numpy()
    result = look(labels, classes, None if truth is None else truth_for(data, truth, classes))
    for line in lines(result):
        say(line)
    rate = _outside_rate(data, [*columns, *column_names(drop)], labels) if outside else None
    give({**as_facts(result), "estimated_outside": rate})
    if rate is not None:
        say(_outside_line(rate))
    if html is not None:
        write_page(result, html, table.name)
        note("page", str(html))


def _outside_rate(data: "Table", apart: list[str], labels: Any) -> float:
    """Estimate how many rows lack their true label."""
    from oneof.cli.encoding import encode_table
    from oneof.cli.model_tables import features
    from oneof.estimator.outside import outside_rate
    from oneof.methods import METHODS

    settings: dict[str, Any] = {"random_state": 0}
    rows = encode_table(features(data, apart), {}, labels).rows
    return outside_rate(METHODS["competition"](**settings), rows, labels)


def _outside_line(rate: float) -> str:
    from oneof.estimator.outside import LEAST_RATE

    if rate < LEAST_RATE:
        return fold("Hardly any row lacks its true label (estimated: below 1 %).")
    return fold(
        f"About {100 * rate:.0f} % of the rows lack their true label (estimated); fit with "
        f"--set outside={rate:.2f}."
    )
