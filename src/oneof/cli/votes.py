"""Options for votes of several annotators: which columns hold them, and how they are read."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from oneof.errors import InputError

if TYPE_CHECKING:
    from oneof.data.tables import Table
    from oneof.labels import Votes

_ENOUGH = 10  # rows, from which on it is no chance that numbers have the same sum in all

VoteColumns = Annotated[
    str | None,
    typer.Option("--votes", metavar="A,B,C", help="Columns of votes, one an annotator, instead of --candidates."),
]
LongColumns = Annotated[
    str | None,
    typer.Option("--long", metavar="TASK,WORKER,LABEL", help="Columns of votes, one row a vote."),
]
CountColumns = Annotated[
    str | None,
    typer.Option("--counts", metavar="A,B,C", help="Columns of how often each class was named."),
]
VotesFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="The table of --long, where TABLE has one row a task, with the task's column."
    ),
]
Denial = Annotated[
    str | None, typer.Option(metavar="TEXT", help="Stands before a label that a vote excludes, such as 'not '.")
]


@dataclass(frozen=True)
class VoteOptions:
    """How votes are given on the command line."""

    kind: str  # votes, long or counts
    columns: list[str]
    separator: str | None
    denial: str | None
    file: Path | None

    @property
    def in_table(self) -> list[str]:
        """The columns that the table of features has."""
        return self.columns[:1] if self.file else self.columns

    def read(self, data: "Table", classes: Any = None) -> "tuple[Table, Votes]":
        """Return votes for the rows of a table, and the table, of which long votes leave one row a task."""
        if self.kind == "counts":
            return data, self._counts(data, classes)
        if self.kind == "votes":
            return data, self._judged(data.columns[self.columns], classes)
        if self.file is None:
            data, votes, tasks = _one_row_a_task(data, self.columns)
        else:
            data, votes, tasks = _with_file(data, self.columns, self.file)
        return data, self._judged(votes, classes, long=tuple(self.columns), tasks=tasks)

    def _judged(self, votes: Any, classes: Any, **long: Any) -> "Votes":
        from oneof.data.label_cells import number_to_text
        from oneof.labels import from_votes

        options = {"separator": self.separator, "denial": self.denial} | long
        for name in self.columns[2:] if long else self.columns:
            _refuse_measurements(name, votes[name])
        if classes is None:
            return from_votes(votes, **options)
        # As text, in which files hold labels; the classes of a model may be numbers.
        cells = (
            votes.assign(**{self.columns[2]: votes[self.columns[2]].map(number_to_text)})
            if long
            else (votes.map(number_to_text))
        )
        return replace(from_votes(cells, [str(name) for name in classes], **options), classes=classes)

    def _counts(self, data: "Table", classes: Any) -> "Votes":
        import pandas as pd

        from oneof.labels import vote_counts

        names = self.columns if classes is None else [str(name) for name in classes]
        if missing := [name for name in names if name not in self.columns]:
            raise InputError(f"--counts lacks the classes {missing[:5]} of the model; name all of its columns")
        counts = data.columns[names].replace("", 0).apply(pd.to_numeric, errors="coerce")
        for name in names:
            if counts[name].isna().any():
                row = int(counts[name].isna().to_numpy().argmax())
                cell = data.columns[name].iloc[row]
                raise InputError(
                    f"the column {name!r} holds {cell!r} in row {row}, but --counts are whole numbers"
                )
        _refuse_forgotten(data, counts)
        return vote_counts(counts, classes)


class Labels(NamedTuple):
    """Where the labels of a table are: in columns of votes, in one column, or in columns of 0 and 1."""

    given: VoteOptions | None
    column: str
    separator: str | None = None
    prefix: str | None = None

    @property
    def in_table(self) -> list[str]:
        """The columns that are read apart from features."""
        if self.prefix is not None:
            return []
        return self.given.in_table if self.given else [self.column]

    def check_apart(self, dropped: Sequence[str] = (), ids: Sequence[str] = ()) -> None:
        """Refuse columns that are to be left out, or to name rows, and hold the labels."""
        tasks = self.in_table[:1] if self.given and self.given.kind == "long" else []
        kind = self.given.kind if self.given else "candidates"
        option = "--candidates-prefix" if self.prefix is not None else f"--{kind}"
        for what, names in (("--drop", dropped), ("--id", [name for name in ids if name not in tasks])):
            for name in names:
                if name in self.in_table or (self.prefix is not None and name.startswith(self.prefix)):
                    raise InputError(
                        f"{what} names {name!r}, which holds labels by {option}; leave it out of one of them"
                    )


def label_options(
    candidates: str,
    prefix: str | None,
    separator: str | None,
    votes: str | None,
    long: str | None,
    counts: str | None,
    votes_file: Path | None,
    denial: str | None,
) -> Labels:
    """Return where the labels of a table are; refuse options that do not go together."""
    other = candidates_option(candidates, prefix)
    given = vote_options(other, votes, long, counts, votes_file, denial, separator)
    if prefix == "":
        raise InputError("--candidates-prefix is '', but must be what columns begin with; pass one such as 'is_'")
    if prefix is not None and separator is not None:
        raise InputError("--separator splits the cells of one column; leave it out with --candidates-prefix")
    return Labels(given, candidates, separator, prefix)


def scored_labels(
    labels: str | None,
    prefix: str | None,
    separator: str | None,
    votes: str | None,
    long: str | None,
    counts: str | None,
    votes_file: Path | None,
    denial: str | None,
) -> Labels:
    """Return where the labels are that predictions are judged by, which have no column by default."""
    if labels is not None and prefix is not None:
        raise InputError(f"--labels is {labels!r} and --candidates-prefix is {prefix!r}; give one of them")
    other = ("--labels", labels) if prefix is None else ("--candidates-prefix", prefix)
    given = vote_options(other, votes, long, counts, votes_file, denial, separator)
    if given is None and other[1] is None:
        raise InputError(
            "there is nothing to score by; pass --labels COLUMN, or votes by --votes, --long or --counts"
        )
    return Labels(given, labels or "labels", separator, prefix)


def candidates_option(column: str, prefix: str | None = None) -> tuple[str, str | None]:
    """Return the option of candidate sets and what was given for it, None where that is the default."""
    if prefix is None:
        return "--candidates", None if column == "candidates" else column
    if column != "candidates":
        raise InputError(f"--candidates is {column!r} and --candidates-prefix is {prefix!r}; give one of them")
    return "--candidates-prefix", prefix


def vote_options(
    other: tuple[str, str | None],
    votes: str | None,
    long: str | None,
    counts: str | None,
    votes_file: Path | None,
    denial: str | None,
    separator: str | None,
) -> VoteOptions | None:
    """Return how votes are given, None where candidate sets are; refuse options that do not go together.

    ``other`` is the option of candidate sets, and what was given for it.
    """
    given = {"votes": votes, "long": long, "counts": counts}
    chosen = [(kind, text) for kind, text in given.items() if text is not None]
    if not chosen:
        for name, value in (("--votes-file", votes_file), ("--denial", denial)):
            if value is not None:
                raise InputError(f"{name} is {str(value)!r}, but there are no votes; pass --votes or --long")
        return None
    if len(chosen) > 1:
        raise InputError(f"--{chosen[0][0]} and --{chosen[1][0]} are two forms of votes; give one of them")
    ((kind, text),) = chosen
    name, value = other
    if value is not None:
        raise InputError(f"--{kind} holds the labels, and so does {name} {value!r}; give one of them")
    columns = [name.strip() for name in (text or "").split(",")]
    if "" in columns or len(set(columns)) < len(columns) or (kind == "long" and len(columns) != 3):
        example = "task,worker,label" if kind == "long" else "anna,ben,carl"
        raise InputError(f"--{kind} is {text!r}, but must name different columns; write --{kind} {example}")
    if votes_file is not None and kind != "long":
        raise InputError(f"--votes-file is a long table; pass --long with its columns, not --{kind}")
    if kind == "counts" and (separator is not None or denial is not None):
        raise InputError("--counts are numbers; leave out --separator and --denial")
    return VoteOptions(kind, columns, separator, denial, votes_file)


def _refuse_measurements(name: str, column: Any) -> None:
    """Refuse votes that are all numbers, and not all whole, as from_votes does where they are no text."""
    import numpy as np
    import pandas as pd

    texts = column.dropna().astype(str).str.strip()
    numbers = pd.to_numeric(texts[texts != ""], errors="coerce").to_numpy(dtype=float)
    if np.isfinite(numbers).all() and (numbers % 1 != 0).any():
        cell = texts[texts != ""].iloc[int((numbers % 1 != 0).argmax())]
        raise InputError(
            f"the column {name!r} of votes holds {cell!r}, but must hold the labels of one annotator, which are "
            "class names; name another column, or turn its numbers into names"
        )


def _refuse_forgotten(data: "Table", counts: Any) -> None:
    """Refuse counts that have the same sum in every row together with one further column, and not without it."""
    import numpy as np
    import pandas as pd

    sums = counts.sum(axis=1).to_numpy()
    if isinstance(data.rows, np.ndarray) or len(sums) < _ENOUGH or (sums == sums[0]).all():
        return
    for name in data.rows.columns.difference(data.columns.columns, sort=False):
        more = pd.to_numeric(data.rows[name], errors="coerce").to_numpy(dtype=float)
        if (more >= 0).all() and (more % 1 == 0).all() and (sums + more == sums[0] + more[0]).all():
            raise InputError(
                f"the column {name!r} and those of --counts add up to {sums[0] + more[0]:g} in every row, as the "
                f"counts of all classes do; pass --counts {','.join([*counts, name])}, or --drop {name}"
            )


def _one_row_a_task(data: "Table", columns: list[str]) -> "tuple[Table, Any, Any]":
    """Return the first row of each task, all votes, and the tasks; refuse tasks whose rows differ."""
    import numpy as np

    if isinstance(data.rows, np.ndarray):
        raise InputError(
            "--long needs rows of a table; give the images one row each, and the votes by --votes-file"
        )
    task = data.columns[columns[0]]
    features = data.rows.drop(columns=columns, errors="ignore")
    differ = features.assign(**{columns[0]: task}).groupby(columns[0], sort=False).nunique(dropna=False) > 1
    if differ.any().any():
        row, column = next(zip(*np.nonzero(differ.to_numpy()), strict=True))
        raise InputError(
            f"the column {differ.columns[column]!r} has different values in the rows of task "
            f"{differ.index[row]!r}, but features belong to a task; mend them, or pass --votes-file"
        )
    first = (~task.duplicated()).to_numpy()
    part = data._replace(
        rows=data.rows[first].reset_index(drop=True), columns=data.columns[first].reset_index(drop=True)
    )
    return part, data.columns[columns], task[first].tolist()


def _with_file(data: "Table", columns: list[str], file: Path) -> "tuple[Table, Any, Any]":
    """Return the table, the votes of another file, and the tasks in the order of the table."""
    from oneof.data.tables import read_table

    return data, read_table(file, columns).columns[columns], data.columns[columns[0]].tolist()
