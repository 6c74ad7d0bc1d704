"""EMClassifier in plans: runs without epochs are carried out, recorded, timed and reported as all others are."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import bench_data
from oneof import EMClassifier
from oneof.bench.ledger import read
from oneof.bench.plan_file import read_plan
from oneof.bench.record import check_record
from oneof.bench.running.engines import LocalEngine
from oneof.bench.running.order import together
from oneof.bench.running.problem import make_problem
from oneof.bench.running.runner import Runner
from oneof.cli import app

PLAN = """
title = "Trees"
datasets = ["soccer-player"]
trials = 2
reference = "trees"

[settings]
network = "linear"
epochs = 2
batch_size = 4096
lr = 0.5

[methods.trees]
method = "em"
estimator = "extra-trees"
rounds = 1
folds = 2

[methods.cc]

[[override]]
methods = ["trees"]
parameters = {n_estimators = 2, max_depth = 12}
"""


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """The plan, its records, its ledger and the data."""
    root = bench_data.write_soccer_player(tmp_path_factory.mktemp("data"))
    folder = tmp_path_factory.mktemp("trees")
    (folder / "plan.toml").write_text(PLAN)
    plan = read_plan(folder / "plan.toml")
    progress = Runner(plan, folder / "ledger.jsonl", LocalEngine(1), device="cpu", root=str(root)).run()
    assert (progress.done, progress.failed, progress.unavailable) == (4, {}, {})
    return plan, read([folder / "ledger.jsonl"]).records, folder / "ledger.jsonl", root


def test_settings_of_networks_reach_networks_alone(done):
    plan, *_ = done
    settings = {run.label: run.spec["settings"] for run in plan.runs()}
    assert settings["trees"] == {
        "estimator": "extra-trees",
        "parameters": {"n_estimators": 2, "max_depth": 12},
        "rounds": 1,
        "folds": 2,
        "tol": 0.01,
    }
    assert settings["cc"]["epochs"] == 2
    assert sorted(map(len, together(plan.runs()))) == [1, 1, 2]  # no stack of trees


def test_a_record_is_that_of_a_fit(done):
    plan, records, _, root = done
    runs = [run for run in plan.runs() if run.label == "trees"]
    for run in runs:
        record = check_record(records[run.key])
        assert record["spec"] == json.loads(json.dumps(run.spec))
        assert (record["epochs"], record["curves"]["epoch"]) == (1, [0])
        assert record["device"].endswith("CPU")
        assert record["seconds"] > 0
    problem = make_problem(runs[0].spec, root)
    model = EMClassifier(**runs[0].spec["settings"], random_state=0).fit(problem.train.x, problem.train.candidates)
    results = records[runs[0].key]["results"]
    accuracy = (model.predict(problem.test.x) == problem.test.y).mean()
    for way in ("validation_accuracy", "approximated_accuracy", "covering_rate", "last_epoch"):
        assert results[way]["test_accuracy"] == pytest.approx(accuracy, abs=1e-6)
    assert results["transductive"]["accuracy"] == pytest.approx((model.transduction_ == problem.train.y).mean())
    assert records[runs[0].key]["curves"]["loss"] == [pytest.approx(model.history_["loss"][-1], rel=1e-3)]
    assert accuracy > 5 / 171


def test_a_report_has_both(done, tmp_path):
    plan, _, ledger, _ = done
    result = CliRunner().invoke(app, ["report", str(ledger), "--plan", str(plan.path), "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    text = next(tmp_path.rglob("report.md")).read_text()
    assert "| trees |" in text
    assert "| cc |" in text


def test_a_report_without_curves_and_with_shared_ledgers(done, tmp_path):
    plan, _, ledger, _ = done
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "other.jsonl").write_bytes(ledger.read_bytes())
    (tmp_path / "results" / "mine.jsonl").write_text("")
    (tmp_path / "mine.toml").write_text('shares = ["other"]\ncurves = false\n' + PLAN)
    mine = read_plan(tmp_path / "mine.toml")
    assert [run.key for run in mine.runs()] == [run.key for run in plan.runs()]
    command = ["report", "--plan", str(mine.path), "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    text = (tmp_path / "out" / "report.md").read_text()
    assert "4 of 4 runs are done" in text
    assert "Learning curves" not in text
    assert not list((tmp_path / "out").glob("curves*.svg"))


def test_dry_times_one_fit(done, tmp_path, monkeypatch):
    plan, *_ = done
    monkeypatch.setattr("oneof.bench.running.estimate._training_rows", lambda spec: 400)
    result = CliRunner().invoke(
        app, ["run", str(plan.path), "--dry", "--ledger", str(tmp_path / "no"), "--device", "cpu"]
    )
    assert result.exit_code == 0, result.output
    assert "(one timed fit)" in result.output


def test_sets_without_a_choice_have_no_loss(tmp_path):
    from oneof.bench.running.execute import Job, execute
    from oneof.bench.running.problem import Problem
    from oneof.data import PartialLabels

    rng = np.random.default_rng(0)
    y = np.arange(30) % 3
    part = PartialLabels(rng.normal(size=(30, 2)) + 3 * np.eye(3, 2)[y], np.eye(3)[y], y, ["a", "b", "c"], "made")
    (tmp_path / "plan.toml").write_text(PLAN)
    spec = next(run.spec for run in read_plan(tmp_path / "plan.toml").runs() if run.label == "trees")
    (record,) = execute([Job(spec, Problem(part, part, part, {"sha256": "0"}), None)], "cpu", None)
    assert check_record(record)["curves"]["loss"] == [None]
    assert record["results"]["last_epoch"]["test_accuracy"] > 0.9


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('"extra-trees"', '"extra-tree"'), "estimator of EMClassifier is 'extra-tree'"),
        (('title = "Trees"', 'title = "Trees"\ncurves = 1'), "curves is 1, but must be true or false"),
        (
            ('title = "Trees"', 'title = "Trees"\nshares = "other"'),
            "shares is 'other', but must be a list of names",
        ),
        (("rounds = 1", "rounds = 0"), "rounds of EMClassifier is 0"),
        (("rounds = 1", "epochs = 1"), "methods.trees names 'epochs'"),
        (("{n_estimators = 2, max_depth = 12}", "5"), "parameters of EMClassifier is 5"),
    ],
)
def test_what_is_wrong_in_a_plan_is_one_sentence(change, words, tmp_path):
    (tmp_path / "plan.toml").write_text(PLAN.replace(*change))
    with pytest.raises(ValueError, match="the plan") as found:
        read_plan(tmp_path / "plan.toml")
    assert words in str(found.value)
