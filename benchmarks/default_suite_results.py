"""What the ledger of benchmarks/default_suite.py says: which rule to take for defaults, and what it costs.

``python benchmarks/default_suite_results.py`` writes docs/results/defaults.md again, and its figure.

Regret is the accuracy of the best setting that a search of twelve random points finds, less that of a rule, in
points. Validation rows choose, the best point of a search and the rule alike; test rows measure.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from default_suite import LEDGER, NOW, SEARCHED, current, random_points, rules
from default_suite_problems import PROBLEMS
from marks import END, between

from oneof.bench.ledger import read
from oneof.io.files import replacing
from oneof.methods import METHODS
from oneof.pages.charts import standalone
from oneof.pages.content import Figure, Panel
from oneof.pages.frame import GREY, HUES, safe

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "results" / "defaults.md"
FIGURE = ROOT / "docs" / "results" / "defaults.svg"
BEGIN = "<!-- written by benchmarks/default_suite_results.py -->"
BEFORE = "before"
FEWEST = 3  # random points of a search that counts
NAMES = [METHODS[method].__name__ for method in SEARCHED]
RULES = [name for stack in rules(1).values() for name in stack]

Part = Literal["validation", "test"]
Case = tuple[str, str]  # a problem and a method


@dataclass(frozen=True)
class Suite:
    """Mean accuracies over seeds in percent, by problem, method and point; trainings that diverged count as 0."""

    scores: Mapping[tuple[str, str, str], Mapping[Part, float]]

    @cached_property
    def points(self) -> dict[str, list[str]]:
        """The random points of each problem that all its methods have: the same search for every one."""
        methods = {
            problem: [name for name in NAMES if (problem, name, BEFORE) in self.scores] for problem in PROBLEMS
        }
        return {
            problem: [
                point
                for point in random_points(problem)
                if all((problem, name, point) in self.scores for name in methods[problem])
            ]
            for problem in PROBLEMS
            if methods[problem]
        }

    @cached_property
    def cases(self) -> list[Case]:
        """The problems and methods that were searched, with the defaults of before and of now."""
        return [
            (problem, name)
            for problem, points in self.points.items()
            for name in NAMES
            if len(points) >= FEWEST and all((problem, name, rule) in self.scores for rule in (BEFORE, NOW))
        ]

    @property
    def problems(self) -> list[str]:
        """The problems that have cases."""
        return [problem for problem in PROBLEMS if any(case[0] == problem for case in self.cases)]

    @cached_property
    def found(self) -> dict[Case, str]:
        """The random point of each case that is best on the validation rows."""
        return {
            case: max(self.points[case[0]], key=lambda point: self.scores[(*case, point)]["validation"])
            for case in self.cases
        }

    def regret(self, case: Case, rule: str, part: Part) -> float:
        """Return by how many points the best point of the search is ahead of a rule; below 0 the rule is ahead."""
        return self.scores[(*case, self.found[case])][part] - self.scores[(*case, rule)][part]

    def regrets(self, rule_of: Callable[[Case], str], part: Part, cases: Iterable[Case]) -> list[float]:
        """Return the regrets of all cases, each with a rule of its own."""
        return [self.regret(case, rule_of(case), part) for case in cases]

    @cached_property
    def rules(self) -> list[str]:
        """The rules that all cases have."""
        return [rule for rule in RULES if all((*case, rule) in self.scores for case in self.cases)]

    def best_rule(self, cases: Sequence[Case]) -> str:
        """Return the rule whose mean regret on the validation rows of some cases is least."""
        return min(self.rules, key=lambda rule: fmean(self.regrets(lambda _: rule, "validation", cases)))


def read_suite(path: Path = LEDGER) -> Suite:
    """Read the ledger; of the defaults of today only what was measured with these very ones counts."""
    scores = {}
    defaults = {METHODS[method].__name__: current(method) for method in SEARCHED}
    for record in read([path]).records.values():
        spec = record["spec"]
        if spec["point"] == NOW and spec["settings"] != defaults[spec["method"]]:
            continue
        means = {part: 100 * fmean(value or 0.0 for value in record[part]) for part in ("validation", "test")}
        scores[spec["problem"], spec["method"], spec["point"]] = means
    return Suite(scores)


# --- choices ------------------------------------------------------------------------------------------------


def common(suite: Suite) -> str:
    """Return the one rule for all methods."""
    return suite.best_rule(suite.cases)


def by_method(suite: Suite) -> dict[str, str]:
    """Return a rule for each method."""
    return {
        name: suite.best_rule([case for case in suite.cases if case[1] == name])
        for name in NAMES
        if any(case[1] == name for case in suite.cases)
    }


def left_out(suite: Suite, one_for_all: bool) -> Callable[[Case], str]:
    """Return the choice for each case by all other problems."""
    chosen: dict[Any, str] = {}

    def rule_of(case: Case) -> str:
        key = case[0] if one_for_all else case
        if key not in chosen:
            others = [each for each in suite.cases if each[0] != case[0] and (one_for_all or each[1] == case[1])]
            chosen[key] = suite.best_rule(others)
        return chosen[key]

    return rule_of


# --- tables -------------------------------------------------------------------------------------------------


def tables(suite: Suite) -> str:
    """Return what all choices cost, then the defaults by method and by problem, and every rule."""
    one, per_method = common(suite), by_method(suite)
    choices: dict[str, Callable[[Case], str]] = {
        "before: lr 0.1 (VALEN 0.03), constant, batches of 100": lambda _: BEFORE,
        "**now**": lambda _: NOW,
        f"one rule for all methods: {one}": lambda _: one,
        "one rule for all methods, chosen by the other problems": left_out(suite, one_for_all=True),
        "a rule for each method": lambda case: per_method[case[1]],
        "a rule for each method, chosen by the other problems": left_out(suite, one_for_all=False),
    }
    head = ["defaults", "mean regret", "worst", "above 1 point", "above 3", "mean on validation rows"]
    return "\n\n".join(
        [
            _table(head, [[name, *_summary(suite, rule, suite.cases)] for name, rule in choices.items()]),
            _by(suite, 1, NAMES, "method"),
            _by(suite, 0, suite.problems, "problem"),
            _table(
                ["rule", *head[1:]], [[r, *_summary(suite, lambda _, r=r: r, suite.cases)] for r in suite.rules]
            ),
        ]
    )


def _by(suite: Suite, place: int, names: Sequence[str], title: str) -> str:
    """Return mean and worst regret before and now, for each method or each problem."""
    lines = []
    for name in names:
        cases = [case for case in suite.cases if case[place] == name]
        if not cases:
            continue
        cells = [name]
        for rule in (BEFORE, NOW):
            regrets = {case: suite.regret(case, rule, "test") for case in cases}
            worst = max(regrets, key=lambda case: regrets[case])
            cells += [f"{fmean(regrets.values()):.2f}", f"{regrets[worst]:.2f} ({worst[1 - place]})"]
        lines.append(cells)
    return _table([title, "before: mean", "worst", "now: mean", "worst"], lines)


def _summary(suite: Suite, rule_of: Callable[[Case], str], cases: Sequence[Case]) -> list[str]:
    regrets = suite.regrets(rule_of, "test", cases)
    above = [f"{sum(regret > bound for regret in regrets)} of {len(regrets)}" for bound in (1, 3)]
    seen = fmean(suite.regrets(rule_of, "validation", cases))
    return [f"{fmean(regrets):.2f}", f"{max(regrets):.2f}", *above, f"{seen:.2f}"]


def _table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *lines))


# --- figure -------------------------------------------------------------------------------------------------

_LEFT, _WIDTH, _ROW, _TOP, _LOW, _HIGH = 110, 560, 26, 40, -4.0, 20.0


def figure(suite: Suite) -> Figure:
    """Draw the regret of every case as a dot: a line for each method, before above and now below."""
    parts = []
    for tick in range(int(_LOW), int(_HIGH) + 1, 2):
        x = _place(tick)
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{_TOP + _ROW * len(NAMES)}"/>')
        parts.append(f'<text x="{x:.1f}" y="{_TOP + _ROW * len(NAMES) + 16}" text-anchor="middle">{tick}</text>')
    for number, name in enumerate(NAMES):
        middle = _TOP + _ROW * (number + 0.5)
        parts.append(f'<text x="{_LEFT - 8}" y="{middle + 4:.1f}" text-anchor="end">{safe(name)}</text>')
        cases = [case for case in suite.cases if case[1] == name]
        for rule, hue, shift in ((BEFORE, GREY, -5), (NOW, HUES[0], 5)):
            for case in cases:
                regret = suite.regret(case, rule, "test")
                dot = f'<circle class="dot" cx="{_place(regret):.1f}" cy="{middle + shift:.1f}" r="3.2"/>'
                parts.append(f'<g class="{hue}">{dot}</g>')
    legend = ((GREY, "before", _LEFT), (HUES[0], "now", _LEFT + 70))
    parts += [f'<g class="{hue}"><text class="name" x="{x}" y="22">{word}</text></g>' for hue, word, x in legend]
    about = "Regret of every method on every problem, before and now"
    panel = Panel(_LEFT + _WIDTH + 20, _TOP + _ROW * len(NAMES) + 24, "".join(parts), about)
    title = f"Points behind a search of twelve settings, a dot for each problem; beyond {_HIGH:g} at the edge"
    return Figure("defaults", title, [panel])


def _place(regret: float) -> float:
    share = (min(max(regret, _LOW), _HIGH) - _LOW) / (_HIGH - _LOW)
    return _LEFT + _WIDTH * share


def main(ledger: Path = LEDGER) -> None:
    """Write page and figure."""
    suite = read_suite(ledger)
    page = between(PAGE.read_text(encoding="utf-8"), BEGIN, END, tables(suite))
    for path, text in ((PAGE, page), (FIGURE, standalone(figure(suite)))):
        with replacing(path) as part:
            part.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
