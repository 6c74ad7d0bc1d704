"""Comparisons of methods: the numbers of a literal loop, the choice by hand, the commands, and one advice."""

import inspect
import io
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import KFold, ShuffleSplit
from typer.testing import CliRunner

import oneof
from conftest import PHONE
from markup import parse
from oneof.cli import app
from oneof.cli.fit import fit
from oneof.comparison.contenders import DEFAULTS
from oneof.comparison.result import DRAWS, HeldOut, Interval, judge, judge_rows
from oneof.comparison.summary import ADVICE, render_page
from oneof.io.progress import StageProgress
from oneof.methods import classifiers
from oneof.train import TrainingDiverged

ROOT = Path(__file__).parent.parent
EXACT = {"network": "linear", "precision": "fp64", "epochs": 4, "lr": 0.05, "batch_size": 20, "device": "cpu"}
TREES = {"parameters": {"n_estimators": 5}, "rounds": 2, "folds": 2}
TINY = {"network": "linear", "epochs": 3, "device": "cpu"}


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    sets = np.eye(3, dtype=bool)[y] | (np.random.default_rng(0).random((150, 3)) < 0.4)
    return X, sets, y


def literal(name, X, S, weight, seed, cv):
    """Fit and predict fold by fold; return log sum_S p^power / sum p^power row by row, for the best power.

    Also whether the prediction is in the set, and its share of the candidates' probabilities.
    """
    known = TREES if name == "em" else EXACT
    powers = (1, 1.25, 1.5, 2, 2.5, 3, 4, 6, 8)
    logs, covered, approximated = np.zeros((len(powers), len(X))), np.zeros(len(X)), np.zeros(len(X))
    for train, test in oneof.CandidateKFold(cv, shuffle=True, random_state=seed).split(X, S):
        model = classifiers()[name](random_state=seed, **known).fit(X[train], S[train], weight[train])
        for row, p in zip(test, model.predict_proba(X[test]), strict=True):
            inside = sum(p[j] for j in range(S.shape[1]) if S[row, j])
            best = max(range(S.shape[1]), key=lambda j: p[j])
            for k, power in enumerate(powers):
                raised = [float(value) ** power for value in p]
                share = sum(raised[j] for j in range(S.shape[1]) if S[row, j]) / sum(raised)
                logs[k, row] = np.log(max(share, np.finfo(np.float32).eps))
            covered[row] = S[row, best]
            approximated[row] = p[best] / inside if S[row, best] else 0.0
    best = max(range(len(powers)), key=lambda k: logs[k] @ weight)
    return logs[best], covered, approximated, powers[best]


def test_scores_are_those_of_a_literal_loop(iris):
    X, S, _ = iris
    rows = np.arange(0, 150, 2)
    X, S = X[rows], S[rows]
    weight = np.random.default_rng(1).random(len(X)) + 0.5
    found = oneof.compare(X, S, ["cc", "competition", "em"], 3, EXACT | TREES, weight, random_state=7)
    assert (found.rows, found.folds, found.left_out) == (75, 3, {})
    means = {}
    for name, score in found.scores.items():
        logs, covered, approximated, power = literal(name, X, S, weight, 7, 3)
        assert score.sharpening == power
        np.testing.assert_allclose(score.log_likelihoods, logs, rtol=1e-8, atol=1e-10)
        means[name] = (logs * weight).sum() / weight.sum()
        assert score.log_likelihood.mean == pytest.approx(means[name])
        assert score.covering_rate == pytest.approx((covered * weight).sum() / weight.sum())
        assert score.approximated_accuracy == pytest.approx((approximated * weight).sum() / weight.sum())
        assert score.accuracy is None
    assert [*found.scores] == sorted(means, key=means.get, reverse=True)


def test_flat_probabilities_cost_nothing_and_sure_mistakes_do():
    """All of 20 rows but two are predicted rightly: what is flat is sharpened, what is too sure stays as it is."""
    S = np.eye(2, dtype=bool)[[0] * 18 + [1] * 2]
    found = {}
    for name, sure in (("flat", 0.6), ("right", 0.9), ("too sure", 0.9999)):
        values = np.stack(judge_rows(np.tile([sure, 1 - sure], (20, 1)), S))
        found[name] = HeldOut.of(values, np.ones(20), plain=False)
    assert {name: each.sharpening for name, each in found.items()} == {"flat": 6.0, "right": 1.0, "too sure": 1.0}
    means = {name: each.log_likelihood.mean() for name, each in found.items()}
    assert means["flat"] == pytest.approx(means["right"], abs=0.01)
    assert means["too sure"] < means["right"] - 0.5


def test_plain_labels_have_an_accuracy(iris):
    X, _, y = iris
    found = oneof.compare(X, y, ["cc"], settings=TINY, random_state=0)
    score = found.scores["cc"]
    assert score.accuracy == score.approximated_accuracy == score.covering_rate
    assert "accuracy, %" in str(found)
    assert "covering" not in str(found)
    assert found.advice == "Take cc: no other method took part."


def test_every_way_to_write_sets_gives_the_same_numbers(iris):
    X, S, _ = iris
    names = np.array(["cat", "cow", "dog"])
    ways = [S, pd.DataFrame(S, columns=names), ["|".join(names[row]) for row in S], [set(names[row]) for row in S]]
    found = [
        oneof.compare(
            X, y, ["cc", "proden"], 2, TINY, separator="|" if isinstance(y[0], str) else None, random_state=0
        )
        if isinstance(y, list)
        else oneof.compare(pd.DataFrame(X).rename(columns=str), y, ["cc", "proden"], 2, TINY, random_state=0)
        for y in ways
    ]
    assert len({str(each) for each in found}) == 1


# --- who takes part ---------------------------------------------------------------------------------------


def test_default_contenders(iris):
    X, S, _ = iris
    found = oneof.compare(X, S, cv=2, settings=TINY | {"warm_up": 1}, random_state=0)
    assert {*found.scores} == {*DEFAULTS}
    found = oneof.compare(X, S, cv=2, settings=TINY | {"warm_up": 1, "views": "plain+jitter"}, random_state=0)
    assert {*found.scores} == {*DEFAULTS, "plcr", "pico"}


def test_methods_without_weights_are_left_out_with_a_word(iris):
    X, S, _ = iris
    weights = oneof.WeightedSets(S * (0.5 + np.random.default_rng(0).random(S.shape)))
    found = oneof.compare(X, weights, ["cc", "lws"], 2, TINY, random_state=0)
    assert [*found.scores] == ["cc"]
    assert found.left_out == {"lws": "takes no weights of candidates"}
    assert "left out: lws, which takes no weights" in str(found)
    mean = found.scores["cc"].log_likelihood.mean
    assert mean < oneof.compare(X, S, ["cc"], 2, TINY, random_state=0).scores["cc"].log_likelihood.mean


def test_images_and_models_of_ones_own():
    rng = np.random.default_rng(0)
    y = np.arange(24) % 2
    X = (rng.random((24, 8, 8)) * 100 + 100 * y[:, None, None]).astype(np.uint8)
    models = {"plain": oneof.CC(epochs=2, network="linear"), "trees": oneof.EMClassifier()}
    found = oneof.compare(X, y, models, KFold(2), {"device": "cpu", "views": "weak"}, random_state=0)
    assert [*found.scores] == ["plain"]
    assert found.left_out == {"trees": "learns from tables, not from images"}
    assert models["plain"].views is None  # what was given stays as it is


def test_a_method_that_diverges_is_left_out(iris):
    X, S, _ = iris
    models = {"fine": oneof.CC(**TINY), "wild": oneof.CC(**TINY, lr=1e30)}
    with pytest.warns(UserWarning, match="wild is left out"):
        found = oneof.compare(X, S, models, 2, random_state=0)
    assert ([*found.scores], found.left_out) == (["fine"], {"wild": "diverged in training"})
    with pytest.warns(UserWarning, match="cc is left out"), pytest.raises(TrainingDiverged, match="every method"):
        oneof.compare(X, S, ["cc"], 2, TINY | {"lr": 1e30}, random_state=0)


def test_a_splitter_must_hold_out_each_row_once(iris):
    X, S, _ = iris
    with pytest.raises(ValueError, match="every row exactly once"):
        oneof.compare(X, S, ["cc"], ShuffleSplit(2, test_size=0.5, random_state=0), TINY)


@pytest.mark.real_data
def test_on_real_sets_the_choice_is_no_disaster(real_dataset):
    """On Lost, without a true label: what is taken is near the best, and a spoilt model is last."""
    data = real_dataset("lost")
    models = {"cc": oneof.CC(epochs=15), "spoilt": oneof.CC(epochs=15, lr=1e-4), "proden": oneof.PRODEN(epochs=15)}
    found = oneof.compare(data.x, data.candidates, models, 3, {"device": "cpu"}, random_state=0)
    truth = {}
    for name, model in models.items():
        model.set_params(device="cpu", random_state=0).fit(data.x[::2], data.candidates[::2])
        truth[name] = (model.predict(data.x[1::2]) == data.y[1::2]).mean()
    assert [*found.scores][-1] == "spoilt" == min(truth, key=truth.get)
    assert truth[found.best] > max(truth.values()) - 0.05


# --- intervals, and how sure the choice is ----------------------------------------------------------------


def held_out(values):
    return HeldOut(values, np.full(len(values), 0.5), np.ones(len(values)), 1.0, False)


def test_intervals_are_those_of_means_of_independent_rows():
    values = np.random.default_rng(0).normal(size=200)
    found = Interval.over(values, np.ones(200))
    half = 1.959964 * values.std(ddof=1) / np.sqrt(200)
    mean = values.mean()
    assert (found.mean, found.low, found.high) == pytest.approx((mean, mean - half, mean + half))
    # Over many samples the interval holds the mean of 0 about as often as it says, with weights too.
    rng = np.random.default_rng(1)
    weight = rng.random(200) + 0.2
    intervals = [Interval.over(rng.normal(size=200), weight) for _ in range(1000)]
    assert 0.93 < np.mean([each.low < 0 < each.high for each in intervals]) < 0.97


def test_choice_and_certainty_are_those_of_loops():
    rng = np.random.default_rng(3)
    base = -rng.random(40)
    values = {"a": base, "b": base + rng.normal(0.01, 0.1, 40), "c": base - 1}
    weight = rng.random(40) + 0.5
    found = judge({name: held_out(each) for name, each in values.items()}, weight, 5, 2, {})
    mean = {
        name: sum(w * v for w, v in zip(weight, each, strict=True)) / sum(weight) for name, each in values.items()
    }
    assert found.best == max(mean, key=mean.get)
    again, stays = np.random.default_rng(5), dict.fromkeys(values, 0)
    for _ in range(DRAWS):
        rows = again.integers(40, size=40)
        drawn = {name: sum(weight[i] * each[i] for i in rows) for name, each in values.items()}
        stays[max(drawn, key=drawn.get)] += 1
    assert {name: score.stays_best for name, score in found.scores.items()} == {
        name: count / DRAWS for name, count in stays.items()
    }
    assert found.sure == stays[found.best] / DRAWS
    other = "a" if found.best == "b" else "b"
    assert found.level == [other]
    assert found.scores["c"].behind.mean == pytest.approx(mean[found.best] - mean["c"])
    assert found.advice.endswith(f"resamplings of the rows; {other} is not significantly behind.")
    assert (found.scores[found.best].behind.low, found.scores[found.best].behind.high) == (0, 0)


@pytest.mark.parametrize(
    ("shifts", "words"),
    [
        ({"b": -1, "c": -1}, "the others are significantly behind."),
        ({"b": 0, "c": -1}, "b is not significantly behind."),
        ({"b": 0, "c": 0}, "b and c are not significantly behind."),
    ],
)
def test_the_advice_names_who_is_level(shifts, words):
    values = {"a": -np.linspace(0, 1, 50)}
    values |= {name: values["a"] + shift - 1e-3 * (-1) ** np.arange(50) for name, shift in shifts.items()}
    values["a"] = values["a"] + 1e-9
    found = judge({name: held_out(each) for name, each in values.items()}, np.ones(50), 0, 5, {})
    assert found.best == "a"
    assert found.advice.endswith(words)


# --- the commands and the page ----------------------------------------------------------------------------


@pytest.fixture
def table(iris, tmp_path, monkeypatch):
    X, S, _ = iris
    names = np.array(["cat", "cow", "dog"])
    frame = pd.DataFrame(X, columns=list("abcd")).assign(id=range(150), label=["|".join(names[row]) for row in S])
    frame.to_csv(tmp_path / "pets.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return frame


FROM_TABLE = "pets.csv --candidates label --separator | --id id --set network=linear --set epochs=3 --device cpu"


def run(typed):
    result = CliRunner().invoke(app, typed.split())
    assert result.exit_code == 0, result.output
    return result


def test_the_command_says_what_the_function_finds(table, iris):
    result = run(f"compare {FROM_TABLE} --methods cc,proden --cv 3 --seed 4 --html c.html --json c.json")
    found = oneof.compare(table[list("abcd")], iris[1], ["cc", "proden"], 3, TINY, random_state=4)
    assert result.stdout == f"{found}\n"
    assert "comparison  cc done, 1 of 2" in result.stderr
    assert json.loads(Path("c.json").read_text()) == json.loads(json.dumps(found.as_json()))
    assert Path("c.html").read_text() == render_page(found, "pets.csv")


def test_auto_fits_the_method_that_is_recommended(table, iris):
    warm_up = "--set warm_up=1"
    result = run(f"fit {FROM_TABLE} {warm_up} --method auto --quiet --out model")
    found = oneof.compare(table[list("abcd")], iris[1], settings=TINY | {"warm_up": 1}, random_state=0)
    assert result.stdout.splitlines()[0] == found.advice
    cls = classifiers()[found.best]
    assert type(oneof.load_model("model")) is cls
    # The same file as by name, but for settings that the method does not have.
    settings = f"{FROM_TABLE} {warm_up}" if hasattr(cls, "warm_up") else FROM_TABLE
    run(f"fit {settings} --method {found.best} --quiet --out named")
    assert Path("model").read_bytes() == Path("named").read_bytes()


def test_a_terminal_sees_a_bar_that_ends_full(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    with StageProgress("comparison", ["cc", "proden"], visible=True) as progress:
        for stage in progress.stages:
            progress.advance(0.5)
            progress.finish(stage)
        assert progress._bar.finished
    assert "comparison" in screen.getvalue()


@pytest.fixture(scope="module")
def page(iris):
    X, S, _ = iris
    names = ["<b>&", "x" * 90]
    models = {name: cls(**TINY) for name, cls in zip(names, (oneof.CC, oneof.PRODEN), strict=True)}
    return render_page(oneof.compare(X, S, models, 2, random_state=0), "<script>.csv")


def test_the_page_shows_every_method_and_is_self_contained(page):
    assert not re.search(r"https?:|<script|<link|@import|url\(|\bsrc=|\bhref=|<b>", page)
    tree = parse(page)
    rows = [row for row in tree.all("tr") if "data-method" in row.attributes]
    assert {row.attributes["data-method"] for row in rows} >= {"x" * 90}
    assert [len([*row.all("circle", "end")]) for row in rows] == [1, 1]
    assert [row.attributes["class"] for row in rows] == ["taken", "other"]


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_quiet_and_fits_a_phone(open_page, page, scheme):
    opened = open_page(page, PHONE, scheme)
    assert opened.troubles == []
    assert opened.overflow() == 0
    short = opened.page.locator("tbody tr[data-method='<b>&'] th")  # the other name takes three lines
    assert short.bounding_box()["height"] < 60


# --- one advice -------------------------------------------------------------------------------------------


def plain(text):
    """Return a text without marks of Markdown, on one line."""
    return " ".join(re.sub(r"\]\([^)]*\)|[`*\[]", "", text).split())


def test_every_place_gives_the_same_advice(tmp_path, monkeypatch):
    from oneof.cli import demo

    said = []
    monkeypatch.setattr(demo, "_processes", lambda: 1)
    demo.run_demo(tmp_path / "demo.html", None, said.append, [0], 1)
    places = {
        "README": plain((ROOT / "README.md").read_text()),
        "docs/methods/index.md": plain((ROOT / "docs/methods/index.md").read_text()),
        "docs/results/index.md": plain((ROOT / "docs/results/index.md").read_text()),
        "docs/compare.md": plain((ROOT / "docs/compare.md").read_text()),
        "oneof methods": plain(run("methods").stdout),
        "demo": plain(" ".join(said)),
    }
    assert [name for name, text in places.items() if ADVICE.removeprefix("Which method? ") not in text] == []
    advised = re.search(r"take (\w+)\.$", ADVICE)[1]
    assert advised in classifiers()
    assert inspect.signature(fit).parameters["method"].default == advised
