"""The queue as columns of a table, which people may fill in and give back."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oneof.review.decisions import DECISION
from oneof.review.ranking import NOTHING, REASONS, Ranking


def listing(ranking: Ranking, classes: NDArray[Any]) -> dict[str, Any]:
    """Return what a ranking says of every row.

    ``prediction`` disregards the candidates, ``outside`` and ``wrong`` are the chances that the truth is no
    candidate and that the answer is wrong, ``reason`` says why the row deserves a look, ``rank`` is its place in
    the queue, and ``decision`` is empty, for people.
    """
    words = np.array([REASONS.get(name, NOTHING) for name in ranking.reason])
    return {
        "prediction": classes[ranking.prediction],
        "outside": ranking.outside.round(4),
        "wrong": ranking.wrong.round(4),
        "reason": words,
        "rank": ranking.rank,
        DECISION: [""] * len(words),
    }
