"""What the ledger of benchmarks/default_suite.py says: which rule to take for defaults, and what it costs.

``python benchmarks/default_suite_results.py`` writes docs/results/defaults.md again, and its figure.

Regret is the accuracy of the best setting that a search of twelve random points finds, less that of a rule, in
points. Validation rows choose, the best point of a search and the rule alike; test rows measure.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from default_suite import LEDGER
from default_suite_figure import regrets
from default_suite_points import NOW, RATES, SEARCHED, current, random_points, rules, with_sgd
from default_suite_problems import PROBLEMS
from marks import END, between

from oneof.bench.ledger import read
from oneof.io.files import replacing
from oneof.methods import METHODS
from oneof.pages.charts import standalone
from oneof.pages.content import Figure

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "results" / "defaults.md"
FIGURE = ROOT / "docs" / "results" / "defaults.svg"
BEGIN = "<!-- written by benchmarks/default_suite_results.py -->"
BEFORE, SGD, UNMIXED = "before", "the defaults of today with SGD", "the defaults of today without mixup"
FEWEST = 6  # random points of a search that counts
NAMES = [METHODS[method].__name__ for method in SEARCHED]
RULES = [name for stack in rules(1).values() for name in stack]

Part = Literal["validation", "test"]
PARTS: tuple[Part, Part] = ("validation", "test")
Case = tuple[str, str]  # a problem and a method


@dataclass(frozen=True)
class Suite:
    """Mean accuracies over seeds in percent, by problem, method and point; trainings that diverged count as 0."""

    scores: Mapping[tuple[str, str, str], Mapping[Part, float]]

    @cached_property
    def measured(self) -> list[Case]:
        """The problems and methods whose defaults of before and of now are known."""
        both = [(problem, name) for problem in PROBLEMS for name in NAMES]
        return [case for case in both if (*case, BEFORE) in self.scores and self.now(case)]

    @cached_property
    def cases(self) -> list[Case]:
        """Those of them that were searched."""
        return [case for case in self.measured if len(self._searched(case)) >= FEWEST]

    @cached_property
    def points(self) -> dict[str, list[str]]:
        """The random points of each problem that all its cases have: the same search for every one."""
        return {
            problem: [
                point
                for point in random_points(problem)
                if all((*case, point) in self.scores for case in self.cases if case[0] == problem)
            ]
            for problem in dict(self.cases)
        }

    def _searched(self, case: Case) -> list[str]:
        return [point for point in random_points(case[0]) if (*case, point) in self.scores]

    @property
    def problems(self) -> list[str]:
        """The problems that have cases."""
        return [problem for problem in PROBLEMS if any(case[0] == problem for case in self.cases)]

    def now(self, case: Case) -> str:
        """Return the defaults of today, or the rule that is nearest where they were not measured; "" for none."""
        if (*case, NOW) in self.scores:
            return NOW
        near = nearest_rule(case)
        return near if (*case, near) in self.scores else ""

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
    def ruled(self) -> list[Case]:
        """The cases of problems on which rules, of which the first is before, were measured with all methods."""
        without = {case[0] for case in self.cases if not any((*case, rule) in self.scores for rule in RULES[1:])}
        return [case for case in self.cases if case[0] not in without]

    @cached_property
    def rules(self) -> list[str]:
        """The rules that all these cases have."""
        return [rule for rule in RULES if all((*case, rule) in self.scores for case in self.ruled)]

    def best_rule(self, cases: Sequence[Case]) -> str:
        """Return the rule whose mean regret on the validation rows of some cases is least."""
        return min(self.rules, key=lambda rule: fmean(self.regrets(lambda _: rule, "validation", cases)))


def read_suite(path: Path = LEDGER) -> Suite:
    """Read the ledger; of the defaults only what was measured with those of today, or these with SGD, counts."""
    scores = {}
    for record in read([path]).records.values():
        spec = record["spec"]
        point, method = spec["point"], spec["method"].lower()
        if point == NOW and spec["settings"] == with_sgd(method):
            point = SGD
        elif point == NOW:
            now = current(method, spec["problem"])
            # Competition mixed rows before settings named it.
            alone = {name: value for name, value in now.items() if name != "mixup" or method == "competition"}
            point = NOW if spec["settings"] == now else UNMIXED if spec["settings"] == alone else None
            if point is None:
                continue
        means = {part: 100 * fmean(value or 0.0 for value in record[part]) for part in PARTS}
        scores[spec["problem"], spec["method"], point] = means
    return Suite(scores)


def nearest_rule(case: Case) -> str:
    """Return the rule whose rate, decay and batch are nearest to what the defaults are on a problem."""
    stacks, now = rules(PROBLEMS[case[0]].train), current(case[1].lower(), case[0])
    alike = {"adamw": stacks["adamw"], "sgd": stacks["batch 100"] | stacks["batch by n"]}[now["optimizer"]]
    distance = {
        name: sum(abs(log(rule[each] / now[each])) for each in ("lr", "weight_decay", "batch_size"))
        for name, rule in alike.items()
    }
    return min(distance, key=lambda name: distance[name])


# --- choices ------------------------------------------------------------------------------------------------


def common(suite: Suite) -> str:
    """Return the one rule for all methods."""
    return suite.best_rule(suite.ruled)


def by_method(suite: Suite) -> dict[str, str]:
    """Return a rule for each method."""
    return {
        name: suite.best_rule([case for case in suite.ruled if case[1] == name])
        for name in NAMES
        if any(case[1] == name for case in suite.ruled)
    }


def left_out(suite: Suite, one_for_all: bool) -> Callable[[Case], str]:
    """Return the choice for each case by all other problems."""
    chosen: dict[Any, str] = {}

    def rule_of(case: Case) -> str:
        key = case[0] if one_for_all else case
        if key not in chosen:
            others = [each for each in suite.ruled if each[0] != case[0] and (one_for_all or each[1] == case[1])]
            chosen[key] = suite.best_rule(others)
        return chosen[key]

    return rule_of


def less_for_many_inputs(rule: str, case: Case) -> str:
    """Return the rule whose rate is nearest to that of a rule times 100 / inputs, where there are more."""
    stack = rules(PROBLEMS[case[0]].train)["batch 100"]
    wanted = stack[rule]["lr"] * min(1.0, 100 / PROBLEMS[case[0]].inputs)
    rate = min(RATES, key=lambda each: abs(log(each / wanted)))
    alike = {**stack[rule], "lr": rate}
    return next(name for name, settings in stack.items() if settings == alike)


def left_out_by_inputs(suite: Suite) -> Callable[[Case], str]:
    """Return the choice among rules whose rates depend on the inputs, for each case by all other problems."""
    measured = [rule for rule in rules(1)["batch 100"] if rule in suite.rules]
    chosen: dict[str, str] = {}

    def cost(rule: str, cases: Sequence[Case]) -> float:
        return fmean(suite.regrets(lambda case: less_for_many_inputs(rule, case), "validation", cases))

    def rule_of(case: Case) -> str:
        if case[0] not in chosen:
            others = [each for each in suite.ruled if each[0] != case[0]]
            chosen[case[0]] = min(measured, key=lambda rule: cost(rule, others))
        return less_for_many_inputs(chosen[case[0]], case)

    return rule_of


# --- tables -------------------------------------------------------------------------------------------------


def tables(suite: Suite) -> str:
    """Return what all choices cost, then the defaults by method and by problem, and every rule."""
    one, per_method = common(suite), by_method(suite)
    defaults: dict[str, Callable[[Case], str]] = {
        "before: lr 0.1 (VALEN 0.03), constant, batches of 100": lambda _: BEFORE,
        "the defaults of today with SGD": lambda _: SGD,
        "**now**: AdamW and mixup": suite.now,
    }
    by_rule: dict[str, Callable[[Case], str]] = {
        f"one rule for all methods: {one}": lambda _: one,
        "one rule for all methods, chosen by the other problems": left_out(suite, one_for_all=True),
        "one rule with less for more than 100 inputs, chosen by the other problems": left_out_by_inputs(suite),
        "a rule for each method": lambda case: per_method[case[1]],
        "a rule for each method, chosen by the other problems": left_out(suite, one_for_all=False),
    }
    near = sum(suite.now(case) != NOW for case in suite.cases)
    searched = sorted({len(suite.points[problem]) for problem in suite.problems})
    state = (
        f"{len(suite.cases)} pairs of a method and a problem so far, each with {' or '.join(map(str, searched))} "
        f"random points. *Now* was measured with the defaults themselves"
        + (f" but for {near} pairs, where it is the measured rule that is nearest to them." if near else ".")
        + f" Rules were measured on {len(suite.ruled)} of them." * (len(suite.ruled) < len(suite.cases))
    )
    head = ["defaults", "mean regret", "worst", "above 1 point", "above 3", "mean on validation rows"]
    lines = [[name, *_summary(suite, rule, suite.cases)] for name, rule in defaults.items()]
    lines += [[name, *_summary(suite, rule, suite.ruled)] for name, rule in by_rule.items()]
    return "\n\n".join(
        [
            state,
            _table(head, lines),
            _by(suite, 1, NAMES, "method"),
            _by(suite, 0, suite.problems, "problem"),
            _mixing(suite),
            _table(
                ["rule", *head[1:]], [[r, *_summary(suite, lambda _, r=r: r, suite.ruled)] for r in suite.rules]
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
        for rule_of in (lambda _: BEFORE, suite.now):
            regrets = dict(zip(cases, suite.regrets(rule_of, "test", cases), strict=True))
            worst = max(regrets, key=lambda case: regrets[case])
            cells += [f"{fmean(regrets.values()):.2f}", f"{regrets[worst]:.2f} ({worst[1 - place]})"]
        lines.append(cells)
    return _table([title, "before: mean", "worst", "now: mean", "worst"], lines)


def _mixing(suite: Suite) -> str:
    """Return what mixup gains the methods that have it by default."""
    lines = []
    for name in NAMES:
        cases = [(problem, name) for problem in PROBLEMS if (problem, name, UNMIXED) in suite.scores]
        cases = [case for case in cases if (*case, NOW) in suite.scores]
        gains = {
            part: [suite.scores[(*case, NOW)][part] - suite.scores[(*case, UNMIXED)][part] for case in cases]
            for part in PARTS
        }
        if cases:
            place = {gain: case[0] for gain, case in zip(gains["test"], cases, strict=True)}
            ends = [f"{gain:+.2f} ({place[gain]})" for gain in (max(place), min(place))]
            lines.append([name, f"{len(cases)}", *(f"{fmean(gains[part]):+.2f}" for part in PARTS), *ends])
    return _table(["mixup", "problems", "mean gain on validation rows", "on test rows", "most", "least"], lines)


def _summary(suite: Suite, rule_of: Callable[[Case], str], cases: Sequence[Case]) -> list[str]:
    regrets = suite.regrets(rule_of, "test", cases)
    above = [f"{sum(regret > bound for regret in regrets)} of {len(regrets)}" for bound in (1, 3)]
    seen = fmean(suite.regrets(rule_of, "validation", cases))
    return [f"{fmean(regrets):.2f}", f"{max(regrets):.2f}", *above, f"{seen:.2f}"]


def _table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *lines))


def figure(suite: Suite) -> Figure:
    """Draw the regret of every case as a dot."""
    own = {name: [case for case in suite.cases if case[1] == name] for name in NAMES}
    return regrets(
        {
            name: (suite.regrets(lambda _: BEFORE, "test", cases), suite.regrets(suite.now, "test", cases))
            for name, cases in own.items()
            if cases
        }
    )


def main(ledger: Path = LEDGER) -> None:
    """Write page and figure."""
    suite = read_suite(ledger)
    page = between(PAGE.read_text(encoding="utf-8"), BEGIN, END, tables(suite))
    for path, text in ((PAGE, page), (FIGURE, standalone(figure(suite)))):
        with replacing(path) as part:
            part.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
