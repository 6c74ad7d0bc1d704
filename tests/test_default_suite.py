"""The default suite: its points, what a killed search leaves, and what the ledger says about rules."""

import json
import re
import sys
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest

import oneof
from oneof.bench.ledger import Ledger
from oneof.methods import METHODS

ROOT = Path(__file__).parents[1]


@pytest.fixture
def suite(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import default_suite

    return default_suite


@pytest.fixture
def results(suite):
    import default_suite_results

    return default_suite_results


@pytest.fixture
def made_up(results):
    """Scores of three problems with a winner that is known: lower learning rates are better by a point a step."""
    rng, scores = np.random.default_rng(0), {}
    for problem in list(results.PROBLEMS)[:3]:
        for method in results.NAMES:
            for point in ("now", results.SGD, *results.RULES, *results.random_points(problem)):
                value = (
                    70 + rng.normal() - 30 * (point == "before") + 9 * ("lr 0.03, decay 0.001, batch 100" in point)
                )
                scores[problem, method, point] = {"validation": value, "test": value + rng.normal()}
    return results.Suite(scores)


def test_every_method_has_the_same_effort(suite):
    tasks = suite.tasks()
    effort = {method: [(t.problem, t.points) for t in tasks if t.method == method] for method in suite.SEARCHED}
    first = effort["cc"]
    beside_now = [[points for points in own if "now" not in points[1]] for own in effort.values()]
    assert all(others == beside_now[0] for others in beside_now)
    assert {len(own) for own in effort.values()} == {(6 + 18) * 17}  # six: defaults, those with SGD, four stacks
    assert len({problem for problem, _ in first}) == 17
    for problem in suite.PROBLEMS:
        points = suite.random_points(problem)
        assert len(points) == 12 + 6
        assert len({point["lr"] for point in points.values()}) == 12 + 6
        assert sum(point.get("optimizer") == "adamw" for point in points.values()) == 6
    assert first[0] == ("lost", {"now": suite.current("cc", "lost")})
    # Round by round: a search that is cut off has as many tasks of each method, but for one.
    for cut in (100, 1000):
        counts = [sum(task.method == method for task in tasks[:cut]) for method in suite.SEARCHED]
        assert max(counts) - min(counts) <= 1


def test_all_processes_are_among_the_problems(suite):
    from oneof.data.corrupt import PROCESSES

    assert {problem.process for problem in suite.PROBLEMS.values()} == {*PROCESSES, None}


@pytest.mark.parametrize("name", ["few rows", "pairs", "classes", "votes"])
def test_problems_are_functions_of_the_seed(suite, name):
    problem = suite.PROBLEMS[name]
    first, again, other = problem.make(0), problem.make(0), problem.make(1)
    assert len(first.x) == problem.train == len(first.candidates)
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not np.array_equal(first.x, other.x)
    assert first.candidates.any(1).all()


def test_a_point_has_the_baselines_values_where_it_names_none(suite):
    problem = suite.PROBLEMS["few rows"]
    before = suite.estimator(problem, "valen", {})
    assert (before.lr, before.schedule, before.epochs, before.batch_size) == (0.03, "constant", 100, 100)
    point = suite.random_points("few rows")["random 0"]
    assert suite.estimator(problem, "cc", point).lr == point["lr"]
    assert suite.estimator(problem, "competition", point).mixup == point["mixup"]
    assert suite.estimator(problem, "pico", point).views == "plain+jitter+jitter"


def test_a_search_goes_on_where_it_was(suite, tmp_path):
    """What is in the ledger is not carried out again; a training that diverges is noted and counts as 0."""
    for seed in range(4):
        assert suite.prepare(str(tmp_path), "few rows", seed) is None
    points = {"good": {"epochs": 2}, "bad": {"epochs": 2, "lr": 1e20}}
    task = suite.Task("few rows", "cc", points)
    assert suite.carry_out(task, str(tmp_path), "cpu", 0.0) == []  # the deadline has passed
    records = suite.carry_out(task, str(tmp_path), "cpu", float("inf"))
    with Ledger(tmp_path / "ledger.jsonl") as ledger:
        assert not suite._done(task, ledger)
        for record in records:
            ledger.append(record)
        assert suite._done(task, ledger)
        assert not suite._done(suite.Task("few rows", "rc", points), ledger)
    good, bad = (json.loads(line) for line in (tmp_path / "ledger.jsonl").read_text().split("\n") if line)
    assert all(0.25 < value < 1 for value in good["validation"] + good["test"])
    assert bad["validation"] == bad["test"] == [None] * 4
    import default_suite_results

    read = default_suite_results.read_suite(tmp_path / "ledger.jsonl")
    assert read.scores["few rows", "CC", "bad"] == {"validation": 0, "test": 0}
    assert read.scores["few rows", "CC", "good"]["test"] == pytest.approx(100 * fmean(good["test"]))


def test_regret_is_that_of_loops(results, made_up):
    """Validation rows choose the point and the rule, test rows measure."""
    assert len(made_up.cases) == 3 * len(results.NAMES)
    best = "cosine, lr 0.03, decay 0.001, batch 100"
    assert results.common(made_up) == best
    assert set(results.by_method(made_up).values()) == {best}
    rule_of = results.left_out(made_up, one_for_all=True)
    regrets = []
    for problem, method in made_up.cases:
        of_case = {point: value for (p, m, point), value in made_up.scores.items() if (p, m) == (problem, method)}
        random = {point: value for point, value in of_case.items() if re.match(r"(random|adamw) \d", point)}
        point = max(random, key=lambda name: random[name]["validation"])
        regrets.append(of_case[point]["test"] - of_case[best]["test"])
        assert rule_of((problem, method)) == best
    assert made_up.regrets(lambda _: best, "test", made_up.cases) == pytest.approx(regrets)
    text = results.tables(made_up)
    assert f"| {fmean(regrets):.2f} | {max(regrets):.2f} |" in text
    drawn = results.standalone(results.figure(made_up))
    assert drawn.count("<circle") == 2 * len(made_up.cases)


def test_a_cut_off_search_is_the_same_for_every_method(results, made_up):
    """A point that one method lacks counts for none; the nearest rule stands in for defaults of today."""
    lost = {key: value for key, value in made_up.scores.items() if key != ("lost", "CC", "random 3")}
    del lost["msrcv2", "CC", "now"]
    cut = results.Suite(lost)
    adamw = [f"adamw {i}" for i in range(6)]
    assert cut.points["lost"] == [*(f"random {i}" for i in range(12) if i != 3), *adamw]
    assert len(cut.points["msrcv2"]) == 12 + 6
    assert made_up.now(("msrcv2", "CC")) == "now"
    near = "adamw, cosine, lr 0.01, decay 1, batch by n"  # an mlp on 1054 rows: 0.01, 1 and 52
    assert cut.now(("msrcv2", "CC")) == near
    del lost["msrcv2", "CC", near]
    assert set(made_up.cases) - set(results.Suite(lost).cases) == {("msrcv2", "CC")}


def test_the_page_is_what_the_ledger_says(results):
    suite = results.read_suite()
    page = results.PAGE.read_text(encoding="utf-8")
    again = "write it again with python benchmarks/default_suite_results.py"
    assert results.between(page, results.BEGIN, results.END, results.tables(suite)) == page, again
    assert results.standalone(results.figure(suite)) == results.FIGURE.read_text(encoding="utf-8"), again


def test_names_are_those_of_methods(results):
    assert {cls.__name__ for cls in METHODS.values()} >= set(results.NAMES)
    assert "default_suite" in sys.modules


@pytest.mark.parametrize(
    ("cls", "network", "optimizer", "rows", "features", "expected"),
    [
        ("CC", "auto", None, 300, 20, ("adamw", 0.01, 1.0, 32)),
        ("LWS", "mlp", None, 1100, 200, ("adamw", 0.003, 1.0, 55)),
        ("VALEN", "linear", None, 2500, 100, ("adamw", 0.1, 0.3, 100)),
        ("CC", "linear", None, 2500, 101, ("adamw", 0.1, 1.0, 100)),
        ("LWS", "linear", None, 20, 5, ("sgd", 0.1, 1e-3, 20)),
        ("CC", "mlp5", None, 300, 200, ("sgd", 0.1, 1e-3, 100)),
        ("CC", "mlp5", "adamw", 300, 200, ("adamw", 0.001, 0.05, 100)),
        ("CC", "auto", "sgd", 300, 20, ("sgd", 0.1, 5e-3, 32)),
        ("CC", "mlp", "sgd", 1100, 200, ("sgd", 0.05, 5e-3, 55)),
        ("VALEN", "linear", "sgd", 2500, 50, ("sgd", 0.03, 5e-3, 100)),
        ("LWS", "auto", "sgd", 20, 5, ("sgd", 0.1, 1e-3, 20)),
    ],
)
def test_none_is_by_network_features_and_rows(cls, network, optimizer, rows, features, expected, tmp_path):
    """The fitted model shows it, also when it is loaded; what is named is taken."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(rows, features)), rng.integers(3, size=rows)
    settings = {"network": network, "optimizer": optimizer, "epochs": 1, "device": "cpu", "random_state": 0}
    if cls == "VALEN":
        settings["warm_up"] = 0
    model = getattr(oneof, cls)(**settings).fit(X, y)
    model.save(tmp_path / "model.safetensors")
    for each in (model, oneof.load_model(tmp_path / "model.safetensors")):
        assert (each.lr, each.weight_decay, each.batch_size) == (None, None, None)
        assert each.optimizer_ == expected[0]
        assert (each.lr_, each.weight_decay_, each.batch_size_) == pytest.approx(expected[1:])
    named = getattr(oneof, cls)(**settings, lr=0.02, weight_decay=0.0, batch_size=7).fit(X, y)
    assert (named.lr_, named.weight_decay_, named.batch_size_) == (0.02, 0.0, 7)
    assert named.optimizer_ == (optimizer or "sgd"), "a rate that is given by itself is one of SGD"
    same = dict(zip(("optimizer", "lr", "weight_decay", "batch_size"), expected, strict=True))
    twin = getattr(oneof, cls)(**settings | same).fit(X, y)
    assert np.allclose(twin.predict_proba(X), model.predict_proba(X), atol=1e-6)
