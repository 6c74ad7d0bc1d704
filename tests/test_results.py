"""Published results say what the committed ledgers say."""

import importlib
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from markup import told
from oneof.bench.ledger import read
from oneof.bench.plan_file import read_plan
from oneof.bench.record import check_record
from oneof.bench.report.results import collect
from oneof.bench.report.writer import write_report

ROOT = Path(__file__).parents[1]
LEDGERS = sorted((ROOT / "benchmarks" / "results").glob("*.jsonl"))
REPORTS = sorted(path.parent.name for path in (ROOT / "docs" / "results").glob("*/report.md"))


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_is_rebuilt_from_its_ledger(name, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)  # a report names its plan as the command did
    plan = read_plan(Path("benchmarks") / f"{name}.toml")
    write_report(plan, plan.ledgers(), tmp_path)
    published = ROOT / "docs" / "results" / name
    assert {file.name for file in published.iterdir()} == {file.name for file in tmp_path.iterdir()}
    for file in sorted(published.iterdir()):
        told_by = told if file.suffix in (".html", ".svg") else str  # of pages and pictures, the looks may change
        old, new = (told_by((folder / file.name).read_text(encoding="utf-8")) for folder in (published, tmp_path))
        assert old == new, (
            f"{file.name} is not what the ledger says; write it again with "
            f"oneof report --plan benchmarks/{name}.toml --out docs/results/{name}"
        )


def test_the_short_version_is_what_the_ledgers_say(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    summary = importlib.import_module("summary")
    for page, text in summary.pages().items():
        assert page.read_text(encoding="utf-8") == text, (
            f"the table in {page.name} is not what the ledgers say; run python benchmarks/summary.py"
        )


def test_reports_are_found():
    assert REPORTS


@pytest.mark.parametrize("name", REPORTS)
def test_records_of_a_report_are_whole(name):
    ledger = read([ROOT / "benchmarks" / "results" / f"{name}.jsonl"])
    assert ledger.skipped == 0
    keys = {run.key for run in read_plan(ROOT / "benchmarks" / f"{name}.toml").runs()}
    for key, record in ledger.records.items():
        assert check_record(record)["status"] == "done"
        assert key in keys, "a record of another plan"
        assert record["commit"], "a published number has its commit"


@pytest.mark.parametrize("name", REPORTS)
def test_a_committed_ledger_is_as_it_is_published(name, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    publish = importlib.import_module("publish")
    source = ROOT / "benchmarks" / "results" / f"{name}.jsonl"
    assert source.read_text(encoding="utf-8").splitlines() == publish.lines_of(_plan(name), read([source]))


def test_publishing_keeps_whole_curves_of_chosen_points_alone(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    publish = importlib.import_module("publish")
    plan, ledger = _plan("table3"), read([ROOT / "benchmarks" / "results" / "table3.jsonl"])
    thin = {key for key, record in ledger.records.items() if len(record["curves"]["epoch"]) == 2}
    chosen = [
        trial.key
        for row in collect(plan, ledger).outcomes.values()
        for outcome in row.values()
        if (choice := outcome.choose()) is not None
        for trial in choice.trials.values()
    ]
    assert publish.unchosen(plan, ledger) == thin
    assert len(chosen) == 2 * 4 * 5
    assert not thin & set(chosen)


def _plan(name):
    return read_plan(ROOT / "benchmarks" / f"{name}.toml")


def test_committed_ledgers_stay_small():
    assert sum(path.stat().st_size for path in LEDGERS) < 20 * 2**20


SEARCHES = {"table1-search": "table1-fashion", "table1-cifar10-search": "table1-cifar10"}  # and where it is used


@pytest.mark.parametrize("name", [name for name in SEARCHES if name in REPORTS])
def test_learning_rates_are_those_that_the_search_chose(name, monkeypatch):
    """By validation, inside the grid, and taken over by the plans that name the search."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    chosen = importlib.import_module("chosen")
    plan = _plan(name)
    for used in (SEARCHES[name], f"{SEARCHES[name]}-realistic"):
        for dataset, label, _, point in chosen.choices(plan, plan.ledgers()):
            assert chosen.edges(plan, point) == [], f"the grid of {label} must be widened"
            assert _plan(used).estimator(label, dataset, {}).lr == point["lr"], f"{label} in {used}"


def test_choices_are_printed_as_lines_and_as_overrides(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    chosen = importlib.import_module("chosen")
    plan = _plan("table1-search")
    lines = list(chosen.lines_of(plan, plan.ledgers()))
    assert len(lines) == len(plan.methods)
    assert "fashion-mnist lws: lr 1.0" in lines
    blocks = "\n".join(chosen.overrides(plan, plan.ledgers()))
    overrides = tomllib.loads(blocks)["override"]
    assert {label: each["lr"] for each in overrides for label in each["methods"]}["lws"] == 1.0
    narrow = replace(plan, grid={"lr": [0.003, 0.01, 0.03, 0.1]})
    assert "fashion-mnist cc: lr 0.1 (lr is at the edge)" in chosen.lines_of(narrow, plan.ledgers())
    assert "fashion-mnist cc: nothing is done" in chosen.lines_of(plan, [ROOT / "none.jsonl"])
