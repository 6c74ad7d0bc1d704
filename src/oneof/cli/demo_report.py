"""What the demo found: as numbers for JSON, as a table for a terminal, and as the content of its page."""

import platform
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oneof.estimator.classifier import PartialLabelClassifier
from oneof.methods.idgp import IDGP
from oneof.pages.charts import Series
from oneof.pages.demo_page import DemoContent, Example, Gallery, Trained

__all__ = [
    "Contender",
    "ContenderResult",
    "DemoReport",
    "DemoRun",
    "DigitsProblem",
    "Measure",
    "choose",
    "content",
]

_EACH_KIND = 8  # examples of each kind on the page


@dataclass(frozen=True)
class Contender:
    """A way to train, always with its defaults."""

    key: str
    name: str
    make: Callable[..., PartialLabelClassifier]
    about: str  # what it does
    hue: str  # of its line
    sees_truth: bool = False


@dataclass(frozen=True)
class DigitsProblem:
    """Digits whose training labels are hidden in candidate sets."""

    x_train: NDArray[np.float32]  # (n, 64)
    y_train: NDArray[np.int64]  # (n,): the truth, seen only by the upper bound
    candidates: NDArray[np.bool_]  # (n, 10)
    x_validation: NDArray[np.float32]  # served to choose defaults, on other seeds; unused by the demo
    y_validation: NDArray[np.int64]
    x_test: NDArray[np.float32]
    y_test: NDArray[np.int64]


@dataclass(frozen=True)
class DemoRun:
    """One training on one problem, and its results."""

    curve: list[tuple[int, float]]  # epochs done, test accuracy; the last pair is the result
    disambiguation: float | None  # share of training rows resolved to the truth; None where it was given
    posterior: NDArray[np.floating[Any]]  # (n, 10): how likely each candidate of a training row is


@dataclass(frozen=True)
class Measure:
    """One share for each seed; written as percent, mean ± sample standard deviation."""

    values: list[float]

    @property
    def mean(self) -> float:
        """The mean over seeds."""
        return fmean(self.values)

    @property
    def std(self) -> float | None:
        """The sample standard deviation over seeds; a single seed has none."""
        return stdev(self.values) if len(self.values) > 1 else None

    def __str__(self) -> str:
        return f"{100 * self.mean:.1f}" + ("" if self.std is None else f" ± {100 * self.std:.1f}")

    def as_json(self) -> dict[str, Any]:
        """Return plain numbers."""
        return {"per_seed": self.values, "mean": self.mean, "std": self.std}


@dataclass(frozen=True)
class ContenderResult:
    """A contender's runs, one for each seed."""

    contender: Contender
    runs: list[DemoRun]

    @property
    def accuracy(self) -> Measure:
        """Test accuracy after the last epoch: nothing is selected."""
        return Measure([run.curve[-1][1] for run in self.runs])

    @property
    def disambiguation(self) -> Measure | None:
        """Share of training rows whose most likely candidate is the truth."""
        shares = [run.disambiguation for run in self.runs if run.disambiguation is not None]
        return Measure(shares) if shares else None

    def as_json(self) -> dict[str, Any]:
        """Return plain numbers."""
        return {
            "name": self.contender.name,
            "test_accuracy": self.accuracy.as_json(),
            "disambiguation": self.disambiguation.as_json() if self.disambiguation else None,
            "curve": {
                "epochs": [epoch for epoch, _ in self.runs[0].curve],
                "test_accuracy_per_seed": [[accuracy for _, accuracy in run.curve] for run in self.runs],
            },
        }


@dataclass(frozen=True)
class DemoReport:
    """All results of the demo."""

    seeds: list[int]
    problems: list[DigitsProblem]
    results: list[ContenderResult]
    processes: int
    seconds: float

    @property
    def warm_up(self) -> int:
        """The epochs before IDGP's own objective; Membership has as many."""
        return IDGP.warm_up

    @property
    def set_sizes(self) -> list[float]:
        """The mean number of candidates of a training row, for each seed."""
        return [float(problem.candidates.sum(1).mean()) for problem in self.problems]

    def as_json(self) -> dict[str, Any]:
        """Return plain numbers, and what it takes to get them again."""
        first = self.problems[0]
        return {
            "dataset": "scikit-learn digits",
            "rows": {"train": len(first.y_train), "test": len(first.y_test)},
            "seeds": self.seeds,
            "candidate_set_size": Measure(self.set_sizes).as_json(),
            "methods": {result.contender.key: result.as_json() for result in self.results},
            "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]),
            "versions": {name: version(name) for name in ("oneof", "torch", "numpy", "scikit-learn")}
            | {"python": platform.python_version()},
            "platform": platform.platform(),
            "processor": _processor(),
            "processes": self.processes,
            "seconds": round(self.seconds, 1),
        }

    def as_text(self) -> str:
        """Return the table for a terminal."""
        lines = [("trained with", "test accuracy, %", "training rows resolved, %")]
        for result in self.results:
            lines.append((result.contender.name, str(result.accuracy), str(result.disambiguation or "given")))
        table = "\n".join(f"{name:12}  {accuracy:>16}  {resolved:>25}" for name, accuracy, resolved in lines)
        return (
            f"{table}\nmean ± sample standard deviation over {len(self.seeds)} seeds, at the last epoch; "
            f"{fmean(self.set_sizes):.2f} candidates a row; {self.seconds:.0f} s"
        )


def _processor() -> str:
    """Name the processor; on Linux Python itself does not know it."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


# --- the page ---------------------------------------------------------------------------------------------


def content(report: DemoReport) -> DemoContent:
    """Return what the page shows."""
    problem = report.problems[0]
    return DemoContent(
        train_rows=len(problem.y_train),
        test_rows=len(problem.y_test),
        set_size=fmean(report.set_sizes),
        seeds=len(report.seeds),
        warm_up=report.warm_up,
        trained=[_trained(result) for result in report.results],
        findings=_findings(report),
        gallery=_gallery(problem, _idgp(report).runs[0], report.seeds[0]),
        facts=_facts(report),
    )


def _idgp(report: DemoReport) -> ContenderResult:
    return next(result for result in report.results if result.contender.key == "idgp")


def _trained(result: ContenderResult) -> Trained:
    contender = result.contender
    curves = [[(epoch, 100 * share) for epoch, share in run.curve] for run in result.runs]
    mean = [(points[0][0], fmean(percent for _, percent in points)) for points in zip(*curves, strict=True)]
    return Trained(
        key=contender.key,
        name=contender.name,
        about=contender.about,
        accuracies=[100 * value for value in result.accuracy.values],
        accuracy=str(result.accuracy),
        resolved=str(result.disambiguation or "given"),
        series=Series(
            contender.name,
            contender.hue,
            mean,
            faint=curves,
            bold=contender.key == "idgp",
            dashed=contender.sees_truth,
        ),
    )


def _findings(report: DemoReport) -> str:
    """Say what the numbers say, whoever is the best."""
    idgp, weak = _idgp(report), [result for result in report.results if not result.contender.sees_truth]
    best = max(result.accuracy.mean for result in weak)
    leaders = " and ".join(result.contender.name for result in weak if result.accuracy.mean == best)
    gaps = []
    for other in weak:
        if other is not idgp:
            gap = [a - b for a, b in zip(idgp.accuracy.values, other.accuracy.values, strict=True)]
            higher = f"({sum(g > 0 for g in gap)} of {len(gap)})"
            gaps.append(f"{other.contender.name} {100 * fmean(gap):+.1f} {higher}".replace("-", "−"))
    return (
        f"Highest mean test accuracy without true labels: {leaders}, {100 * best:.1f}%. "
        f"IDGP minus the others, in points, and in how many seeds IDGP is higher: {', '.join(gaps)}."
    )


def choose(posterior: NDArray[Any], truth: NDArray[Any]) -> dict[str, list[int]]:
    """Choose training rows, none twice: some at random, the least sure ones, and the surest mistakes."""
    wrong = posterior.argmax(1) != truth
    rising = np.argsort(posterior.max(1), kind="stable").tolist()
    random = np.random.default_rng(0).permutation(len(truth))[:_EACH_KIND].tolist()
    unsure = [row for row in rising if row not in random][:_EACH_KIND]
    mistakes = [row for row in rising[::-1] if wrong[row] and row not in random + unsure][:_EACH_KIND]
    return {"Drawn at random": random, "Least sure": unsure, "Surest mistakes": mistakes}


def _gallery(problem: DigitsProblem, run: DemoRun, seed: int) -> Gallery:
    answers = run.posterior.argmax(1)

    def example(row: int) -> Example:
        return Example(
            row=row,
            pixels=problem.x_train[row].tolist(),
            candidates=np.flatnonzero(problem.candidates[row]).tolist(),
            truth=int(problem.y_train[row]),
            answer=int(answers[row]),
            sure=float(run.posterior[row].max()),
        )

    kinds = {title: list(map(example, rows)) for title, rows in choose(run.posterior, problem.y_train).items()}
    return Gallery(seed, kinds, _EACH_KIND, len(answers), int((answers != problem.y_train).sum()))


def _facts(report: DemoReport) -> dict[str, str]:
    numbers = report.as_json()
    return {
        "Command": numbers["command"],
        "Data": "the handwritten digits inside scikit-learn, 8 × 8 pixels; each seed splits them anew: 60% to "
        "train, 20% to test, 20% left out; such rows, of other seeds, served to choose defaults (splits of "
        "several seeds overlap)",
        "Candidates": "a network trained on the true labels scores every image; a wrong label joins the set with "
        "a chance that follows its score (rate 0.4)",
        "Seeds": ", ".join(map(str, report.seeds)),
        "Epochs": " or ".join(map(str, sorted({result.runs[0].curve[-1][0] for result in report.results}))),
        "Versions": ", ".join(f"{name} {number}" for name, number in numbers["versions"].items()),
        "Machine": f"{numbers['processor']}; {numbers['platform']}; processes: {numbers['processes']}",
        "Time": f"{numbers['seconds']} seconds",
    }
