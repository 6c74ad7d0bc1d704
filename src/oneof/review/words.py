"""Why a row is in the queue, in words."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oneof.io.words import shown
from oneof.review.ranking import NOTHING, REASONS, Ranking

_NAMED = 4  # labels in a sentence


def percent(chance: float) -> str:
    """Write a chance in whole percent; certainty is never claimed."""
    return f"{min(max(round(100 * float(chance)), 1), 99)} %"


def name_of(label: Any) -> str:
    """Quote a class."""
    return shown(str(label), 60)


def sentences(
    ranking: Ranking, row: int, classes: NDArray[Any], inside: NDArray[np.bool_], counts: NDArray[Any] | None
) -> list[str]:
    """Say why a row is in the queue, the main reason first."""
    strength = ranking.strengths[row]
    main = ranking.reason_of(row)
    if not main:
        return [f"{NOTHING.capitalize()}: {name_of(classes[ranking.answer[row]])} is the answer of all evidence."]
    told = [name for name in REASONS if name == main or strength[list(REASONS).index(name)] >= 0.1]
    told.sort(key=lambda name: name != main)
    return [_SAY[name](ranking, row, classes, inside, counts) for name in told]


def _outside(ranking: Ranking, row: int, classes: Any, inside: Any, counts: Any) -> str:
    chances = ranking.posterior[row]
    best = np.where(inside, -1, chances).argmax()
    chance, other = percent(ranking.outside[row]), name_of(classes[best])
    if chances[best] > chances[ranking.answer[row]]:
        return f"The truth is probably outside the set ({chance}): {other} is likelier than any of its candidates."
    return f"The truth may be outside the set ({chance}), such as {other}."


def _single(ranking: Ranking, row: int, classes: Any, inside: Any, counts: Any) -> str:
    only, best = ranking.answer[row], np.where(inside, -1, ranking.posterior[row]).argmax()
    chances = ranking.posterior[row]
    return (
        f"Its only candidate is {name_of(classes[only])} ({percent(chances[only])}), but models that have not "
        f"seen the "
        f"row think of {name_of(classes[best])} ({percent(chances[best])})."
    )


def _doubtful(ranking: Ranking, row: int, classes: Any, inside: Any, counts: Any) -> str:
    chances = np.where(inside, ranking.posterior[row], -1)
    first = [k for k in np.argsort(-chances)[:2] if chances[k] >= 0]
    said = " or ".join(f"{name_of(classes[k])} ({percent(chances[k])})" for k in first)
    return f"The choice within the set is doubtful: {said}."


def _votes(ranking: Ranking, row: int, classes: Any, inside: Any, counts: Any) -> str:
    most = [k for k in np.argsort(-counts[row], kind="stable")[:_NAMED] if counts[row, k] > 0]
    said = ", ".join(f"{int(counts[row, k])} x {name_of(classes[k])}" for k in most)
    return f"Annotators disagree: {said}."


def _twin(ranking: Ranking, row: int, classes: Any, inside: Any, counts: Any) -> str:
    twin = ranking.twin[row]
    return f"Row {twin} is nearly the same, but its answer is {name_of(classes[ranking.answer[twin]])}."


_SAY = {"outside": _outside, "single": _single, "doubtful": _doubtful, "votes": _votes, "twin": _twin}
