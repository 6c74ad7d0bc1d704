"""An inspection of votes in words: who can be trusted, and who disagrees with whom."""

from collections.abc import Callable

import numpy as np

from oneof.labels import Votes
from oneof.pages.frame import one_line, percent

_LISTED = 5  # annotators in a sentence
_PAIRS = 20  # who disagree most
_ENOUGH = 10  # rows in common, or votes, from which on an annotator is spoken of
_DOUBTFUL = 0.7  # quality below which a row deserves a second look


def vote_numbers(votes: Votes) -> dict[str, str]:
    """Return the numbers that say most, by what they count."""
    numbers = {
        "votes a row, on average": f"{votes.counts.sum() / len(votes):.2f}",
        "of votes are right, by estimate": percent(_right(votes)),
        "is the mean quality of the consensus": percent(float(votes.quality.mean())),
        "of rows have a consensus below 70% quality": percent(float((votes.quality < _DOUBTFUL).mean())),
    }
    if votes.annotators is not None:
        numbers = {"annotators": str(len(votes.annotators))} | numbers
    return numbers


def _right(votes: Votes) -> float:
    """The share of votes that are right, by the posterior of their rows."""
    return float((votes.counts * votes.posterior).sum() / votes.counts.sum())


def vote_findings(votes: Votes, quote: Callable[[str], str]) -> list[str]:
    """Say in sentences what stands out among annotators."""
    said = []
    if votes.annotators is not None:
        known = votes.annotators[votes.annotators["votes"] >= _ENOUGH]
        chance = 1 / len(votes.classes)
        guessing = known["accuracy"] < chance + (1 - chance) / 4
        spam = known[guessing].sort_values("accuracy")
        if len(spam):
            bad = _some([quote(one_line(str(name))) for name in spam.index])
            said.append(f"Hardly better than guessing: {bad}. Their votes count for next to nothing.")
        pairs = votes.pairs[votes.pairs["rows"] >= _ENOUGH]
        for pair in pairs.head(1).itertuples():
            first, second = (quote(one_line(str(name))) for name in (pair.first, pair.second))
            share = percent(pair.agreement)
            said.append(f"{first} and {second} disagree most: they agree on {share} of {pair.rows} rows.")
    wrong = votes.confusion.copy()
    np.fill_diagonal(wrong, 0)
    j, k = np.unravel_index(wrong.argmax(), wrong.shape)
    names = [quote(one_line(str(votes.classes[i]))) for i in (j, k)]
    said.append(f"The most frequent mistake: {names[1]} for what is {names[0]}, {percent(wrong[j, k])} of votes.")
    return said


def _some(names: list[str]) -> str:
    more = len(names) - _LISTED
    return ", ".join(names[:_LISTED]) + (f" and {more} more" if more > 0 else "")


def annotator_bars(votes: Votes) -> list[tuple[str, float]]:
    """Return each annotator with the number of votes, and the estimated accuracy, the best first."""
    if votes.annotators is None:
        return []
    table = votes.annotators.sort_values("accuracy", ascending=False, kind="stable")
    return [
        (f"{one_line(str(name)) or '(blank)'} ({row.votes:.0f} votes)", float(row.accuracy))
        for name, row in table.iterrows()
    ]


def pair_bars(votes: Votes) -> list[tuple[str, float]]:
    """Return two annotators each, and on which share of their common rows they disagree, the most first."""
    if votes.pairs is None:
        return []
    pairs = votes.pairs[votes.pairs["rows"] >= _ENOUGH].head(_PAIRS)
    return [
        (f"{one_line(str(p.first))}, {one_line(str(p.second))} ({p.rows} rows)", 1 - float(p.agreement))
        for p in pairs.itertuples()
        if p.agreement < 1
    ]
