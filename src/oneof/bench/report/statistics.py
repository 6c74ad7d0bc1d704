"""From scores to verdicts: pure functions of numbers. Accuracies are in percent, a point is one percent."""

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from scipy import stats

from oneof.errors import InputError

__all__ = [
    "Cell",
    "Comparison",
    "Counts",
    "Ranks",
    "Selection",
    "cell",
    "compare",
    "count",
    "mean_ranks",
    "select",
]

Verdict = Literal["win", "tie", "loss", "undecided"]
Point = TypeVar("Point", bound=Hashable)

LEVEL = 0.05
# A difference that is not significant is a tie when it is known this well, in points.
TIE_HALF_WIDTH = 1.0
# Far below the step of any accuracy, far above the error of floats: what is equal on paper is equal here.
_DECIMALS = 9


@dataclass(frozen=True)
class Cell:
    """Scores of one method on one data set; NaN where there are too few for a mean (0) or a deviation (1)."""

    mean: float
    std: float
    trials: int
    planned: int


@dataclass(frozen=True)
class Comparison:
    """The mean of paired differences, its 95 % interval, the p-value and what follows; NaN where unknown."""

    difference: float
    low: float
    high: float
    p: float
    verdict: Verdict


@dataclass(frozen=True)
class Counts:
    """How often each verdict was reached."""

    win: int
    tie: int
    loss: int
    undecided: int


@dataclass(frozen=True)
class Ranks:
    """Mean rank of each method, 1 the best, over those ``used`` of the ``given`` data sets where all have a score.

    No data set used, no ranks.
    """

    ranks: dict[str, float]
    used: int
    given: int


@dataclass(frozen=True)
class Selection(Generic[Point]):
    """The chosen point of a grid and its mean score; with fewer trials than planned no point was complete."""

    point: Point
    mean: float
    trials: int
    planned: int


def cell(scores: Mapping[int, float], planned: int) -> Cell:
    """Return mean and sample standard deviation, sqrt(sum (x - mean)^2 / (J - 1)), of the scores of J trials."""
    mean, variance = _moments(_finite(scores).values())
    return Cell(mean, math.sqrt(variance), len(scores), planned)


def compare(
    ours: Mapping[int, float], theirs: Mapping[int, float], resplits: tuple[int, int] | None = None
) -> Comparison:
    """Compare two methods by the trials that both have: a paired two-sided t-test at 0.05.

    With d the differences ours - theirs of J trials and s their sample standard deviation, t = mean(d) / sqrt(v)
    has J - 1 degrees of freedom, where v = s^2 / J for independent trials. Random re-splits of one data set share
    rows, and v = (1/J + n_test/n_train) s^2 (Nadeau and Bengio, Machine Learning 52, 2003).

    Parameters
    ----------
    ours, theirs : mapping of trial to accuracy in percent
        A trial is the same split, candidate labels and seed for both.
    resplits : (n_train, n_test), optional
        The sizes of the parts, where the trials are random re-splits of one data set.

    Returns
    -------
    Comparison
        A significant difference is a "win" or "loss" of ours. Any other is a "tie" if the 95 % interval reaches
        at most 1 point to each side of it, otherwise "undecided", as is everything with fewer than 2 trials.
    """
    ours, theirs = _finite(ours), _finite(theirs)
    differences = [ours[trial] - theirs[trial] for trial in ours if trial in theirs]
    j = len(differences)
    mean, variance = _moments(differences)
    if j < 2:
        return Comparison(mean, math.nan, math.nan, math.nan, "undecided")
    error = math.sqrt(variance * (1 / j + _overlap(resplits)))
    # Where all differences are the same, t is infinite, or 0/0 if they are zero.
    p = 2 * float(stats.t.sf(abs(mean) / error, j - 1)) if error > 0 else float(mean == 0)
    half = float(stats.t.ppf(1 - LEVEL / 2, j - 1)) * error
    return Comparison(mean, mean - half, mean + half, p, _verdict(mean, half, p))


def count(verdicts: Iterable[Verdict]) -> Counts:
    """Count the verdicts."""
    counter = Counter(verdicts)
    return Counts(counter["win"], counter["tie"], counter["loss"], counter["undecided"])


def mean_ranks(means: Mapping[str, Mapping[str, float]]) -> Ranks:
    """Rank methods by their means on each data set, and average over data sets; equals share their mean rank.

    Parameters
    ----------
    means : mapping of method to mapping of data set to mean accuracy
        What is missing or NaN takes its data set out of the ranking, which would favour somebody otherwise.
    """
    names = list(dict.fromkeys(name for row in means.values() for name in row))
    used = [name for name in names if not any(math.isnan(row.get(name, math.nan)) for row in means.values())]
    if not used:
        return Ranks({}, 0, len(names))
    table = [[-round(row[name], _DECIMALS) for name in used] for row in means.values()]
    ranks = stats.rankdata(table, axis=0).mean(axis=1).tolist()
    return Ranks(dict(zip(means, ranks, strict=True)), len(used), len(names))


def select(scores: Mapping[Point, Mapping[int, float]], planned: int) -> Selection[Point] | None:
    """Choose the point of a grid with the best mean validation score over trials.

    Parameters
    ----------
    scores : mapping of point to mapping of trial to validation score
        In the order of the grid: of points that are equal the first is taken. Only the points with the most trials
        compete, which are those with all planned trials once there are any.
    planned : int
        The number of trials that a complete point has.

    Returns
    -------
    Selection or None
        None if no point has a score.
    """
    most = min(planned, max(map(len, scores.values()), default=0))
    if most == 0:
        return None
    means = {point: _moments(_finite(row).values())[0] for point, row in scores.items() if len(row) >= most}
    best = max(means, key=means.__getitem__)
    return Selection(best, means[best], len(scores[best]), planned)


def _moments(values: Iterable[float]) -> tuple[float, float]:
    """Return mean and sample variance, NaN where there are too few values."""
    rounded = [round(value, _DECIMALS) for value in values]
    n = len(rounded)
    if n == 0:
        return math.nan, math.nan
    mean = round(math.fsum(rounded) / n, _DECIMALS)
    squares = math.fsum((value - mean) ** 2 for value in rounded)
    return mean, squares / (n - 1) if n > 1 else math.nan


def _finite(scores: Mapping[int, float]) -> Mapping[int, float]:
    for trial, score in scores.items():
        if not math.isfinite(score):
            raise InputError(f"the score of trial {trial!r} is {score!r}, but must be finite; leave the trial out")
    return scores


def _overlap(resplits: tuple[int, int] | None) -> float:
    """Return what the correction for re-splits adds to 1/J."""
    if resplits is None:
        return 0.0
    n_train, n_test = resplits
    if min(n_train, n_test) < 1:
        raise InputError(f"resplits is {resplits!r}, but must be the numbers of training and test rows, 1 or more")
    return n_test / n_train


def _verdict(mean: float, half: float, p: float) -> Verdict:
    if p < LEVEL:
        return "win" if mean > 0 else "loss"
    return "tie" if half <= TIE_HALF_WIDTH else "undecided"
