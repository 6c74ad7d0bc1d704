"""What a comparison found: scores with intervals, which method to take, and how sure that is."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oneof.metrics import approximated_accuracy, covering_rate, set_log_likelihood

Floats = NDArray[np.floating[Any]]

DRAWS = 1000  # resamplings of the rows
_NORMAL = 1.959964  # 97.5 % of a normal distribution lie below
# The least value of a row, for all methods alike: forests, which give exact zeros, compute in another type.
_LEAST = float(np.log(np.finfo(np.float32).eps))
# Powers of the probabilities, of which each method has the best: flat ones, as mixtures of rows make them, then
# cost nothing. None is below 1: to be too sure of wrong labels is a fault that counts.
SHARPENINGS = (1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 8.0)


@dataclass(frozen=True)
class HeldOut:
    """How well rows that were not trained on are predicted, row by row (n,)."""

    log_likelihood: Floats
    approximated_accuracy: Floats
    covering_rate: Floats
    sharpening: float
    plain: bool  # whether every set has one label

    @classmethod
    def of(cls, values: Floats, weight: Floats, plain: bool) -> "HeldOut":
        """Make it of what `judge_rows` returns of all rows, with the power of the highest mean likelihood."""
        *likelihoods, approximated, covered = values
        best = int(np.argmax([np.average(each, weights=weight) for each in likelihoods]))
        return cls(likelihoods[best], approximated, covered, SHARPENINGS[best], plain)


def judge_rows(probabilities: Floats, candidates: NDArray[Any]) -> list[Floats]:
    """Judge rows by their probabilities (n, K) and candidate sets, or weights.

    Returns their set log-likelihoods for each of `SHARPENINGS`, approximated accuracies and covering rates.
    """
    likelihoods = [
        np.maximum(set_log_likelihood(_sharpened(probabilities, power), candidates), _LEAST)
        for power in SHARPENINGS
    ]
    covered = covering_rate(probabilities, candidates)
    return [*likelihoods, approximated_accuracy(probabilities, candidates), covered]


def _sharpened(probabilities: Floats, power: float) -> Floats:
    """``p^power``, scaled to sum to one."""
    raised = (probabilities / probabilities.max(-1, keepdims=True)) ** power
    return np.asarray(raised / raised.sum(-1, keepdims=True)) if power != 1 else probabilities


@dataclass(frozen=True)
class Interval:
    """A mean over rows, and the ends of its 95 % interval."""

    mean: float
    low: float
    high: float

    @classmethod
    def over(cls, values: Floats, weight: Floats) -> "Interval":
        """Return the weighted mean, give or take 1.96 standard errors: those of independent rows."""
        mean = float(np.average(values, weights=weight))
        error = sqrt(float((weight**2 * (values - mean) ** 2).sum())) / float(weight.sum())
        rows = int((weight > 0).sum())
        half = _NORMAL * error * sqrt(rows / (rows - 1)) if rows > 1 else float("nan")
        return cls(mean, mean - half, mean + half)


@dataclass(frozen=True, eq=False)
class MethodScore:
    """A method on held-out rows.

    Attributes
    ----------
    name : str
        The name of the method.
    log_likelihoods : array of shape (n,)
        ``log sum_{j in S} p_j`` of every row, by a fit that has not seen it, p being sharpened.
    log_likelihood : Interval
        Their mean, by which methods are ranked, and its 95 % interval.
    behind : Interval
        The mean over rows of the best method's value minus this one's, and its interval; 0 for the best.
    approximated_accuracy, covering_rate : float
        Means over rows; see `oneof.metrics`.
    sharpening : float
        The power of the probabilities at which their mean log-likelihood is highest, 1 or more: above 1 they are
        flatter than the candidate sets of new rows bear out.
    accuracy : float or None
        Share of right predictions where every row has one label, else None.
    stays_best : float
        Share of resamplings of the rows in which this method has the highest mean.
    """

    name: str
    log_likelihoods: Floats
    log_likelihood: Interval
    behind: Interval
    approximated_accuracy: float
    covering_rate: float
    sharpening: float
    accuracy: float | None
    stays_best: float


@dataclass(frozen=True, eq=False)
class MethodComparison:
    """Methods on the same held-out rows; printed, a table and a sentence.

    Attributes
    ----------
    scores : dict of MethodScore
        By name, the best first.
    best : str
        The method to take: that of the highest mean set log-likelihood.
    sure : float
        Share of 1000 resamplings of the rows (with replacement, all methods on the same rows) in which it stays
        the best. How far trainings depend on their seeds is not in it.
    rows, folds : int
        How many rows there are, and into how many folds they were split.
    left_out : dict of str
        Methods that could not take part, and why.
    """

    scores: Mapping[str, MethodScore]
    best: str
    sure: float
    rows: int
    folds: int
    left_out: Mapping[str, str]

    @property
    def level(self) -> list[str]:
        """The others that are not significantly behind: the interval of their difference to the best reaches 0."""
        others = (score for score in self.scores.values() if score.name != self.best)
        return [score.name for score in others if score.behind.low <= 0]

    @property
    def advice(self) -> str:
        """Which method to take, and how sure that is, in a sentence."""
        if len(self.scores) == 1:
            return f"Take {self.best}: no other method took part."
        stays = f"it stays the best in {100 * self.sure:.4g} % of {DRAWS} resamplings of the rows"
        *first, last = self.level or ["the others"]
        names, are = (", ".join(first) + " and " + last, "are") if first else (last, "is" if self.level else "are")
        return f"Take {self.best}: {stays}; {names} {are} {'not ' * bool(self.level)}significantly behind."

    def table(self) -> list[list[str]]:
        """Return the table as texts, its header first."""
        plain = all(score.accuracy is not None for score in self.scores.values())
        header = ["method", "set log-likelihood", "behind the best", "stays best, %"]
        header += ["accuracy, %"] if plain else ["approximated accuracy, %", "covering rate, %"]
        rows = []
        for name, score in self.scores.items():
            behind = "" if name == self.best else _with_half(score.behind)
            shares = [score.accuracy] if plain else [score.approximated_accuracy, score.covering_rate]
            shown = [f"{100 * (share or 0.0):.1f}" for share in shares]
            rows.append([name, _with_half(score.log_likelihood), behind, f"{100 * score.stays_best:.1f}", *shown])
        return [header, *rows]

    def notes(self) -> list[str]:
        """Say what the numbers are, and who is left out."""
        about = (
            f"{self.rows} rows, each held out in one of {self.folds} folds; set log-likelihood: log of the "
            "probability of the candidate set, higher is better; ±: 95 % interval over rows"
        )
        return [about, *(f"left out: {name}, which {reason}" for name, reason in self.left_out.items())]

    def __str__(self) -> str:
        lines = self.table()
        widths = [max(len(line[k]) for line in lines) for k in range(len(lines[0]))]
        texts = [
            "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]).rstrip() for line in lines
        ]
        return "\n".join([*texts, *self.notes(), self.advice])

    def as_json(self) -> dict[str, Any]:
        """Return plain numbers, without those of single rows."""
        scores = {}
        for name, score in self.scores.items():
            numbers = {key: value for key, value in vars(score).items() if key not in ("name", "log_likelihoods")}
            scores[name] = numbers | {key: asdict(numbers[key]) for key in ("log_likelihood", "behind")}
        own = {"best": self.best, "sure": self.sure, "advice": self.advice, "rows": self.rows, "folds": self.folds}
        return own | {"left_out": dict(self.left_out), "methods": scores}


def judge(
    found: Mapping[str, HeldOut], weight: Floats, seed: int, folds: int, left_out: Mapping[str, str]
) -> MethodComparison:
    """Rank methods by their means over rows; of equal ones the first stays first."""
    names, values = [*found], np.stack([each.log_likelihood for each in found.values()])  # (methods, n)
    means, shares = values @ weight / weight.sum(), highest_shares(values, weight, seed)
    order = np.argsort(-means, kind="stable")
    scores = {}
    for k in order:
        each = found[names[k]]
        approximated = float(np.average(each.approximated_accuracy, weights=weight))
        scores[names[k]] = MethodScore(
            name=names[k],
            log_likelihoods=each.log_likelihood,
            log_likelihood=Interval.over(each.log_likelihood, weight),
            behind=Interval.over(values[order[0]] - each.log_likelihood, weight),
            approximated_accuracy=approximated,
            covering_rate=float(np.average(each.covering_rate, weights=weight)),
            sharpening=each.sharpening,
            accuracy=approximated if each.plain else None,
            stays_best=float(shares[k]),
        )
    best = names[order[0]]
    return MethodComparison(scores, best, scores[best].stays_best, len(weight), folds, dict(left_out))


def highest_shares(values: Floats, weight: Floats, seed: int) -> Floats:
    """Return for each of M methods the share of draws in which its mean over rows (M, n) is the highest.

    A draw takes n rows with replacement, the same for all methods; of equal methods the first has it.
    """
    rng, n = np.random.default_rng(seed), values.shape[1]
    highest = np.zeros(len(values))
    for _ in range(DRAWS):
        drawn = weight * np.bincount(rng.integers(n, size=n), minlength=n)
        highest[(values @ drawn).argmax()] += 1
    return highest / DRAWS


def _with_half(interval: Interval) -> str:
    return f"{interval.mean:.4f} ± {(interval.high - interval.low) / 2:.4f}"
