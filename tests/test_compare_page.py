"""The page on comparing methods shows what the ledger of its benchmark holds."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import compare

    yield compare
    sys.modules.pop("compare")


def test_the_tables_of_the_page_are_those_of_the_ledger(benchmark):
    page = benchmark.PAGE.read_text(encoding="utf-8")
    assert page.partition(benchmark.BEGIN)[2].partition(benchmark.END)[0].strip() == benchmark.tables()


def test_what_a_choice_costs_is_counted_from_the_best_of_the_five(benchmark, monkeypatch):
    accuracy = {"cc": 90.0, "proden": 91.5, "membership": 95.0, "idgp": 90.0, "competition": 94.5}
    record = {"problem": "digits", "seed": 0, "taken": "competition", "sure": 0.8, "accuracy": accuracy}
    monkeypatch.setattr(benchmark, "records", lambda: [record])
    lines = benchmark.tables().splitlines()
    assert "| digits | competition, 80 % | 94.5 | 95.0 (membership) |" in lines
    assert "| **what `compare` takes** | 0.50 | 0.50 | 1 of 1 |" in lines
    assert "| always proden | 3.50 | 3.50 | 0 of 1 |" in lines
