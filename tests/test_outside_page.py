"""The page of rows whose true label is missing shows what the ledger holds."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import outside

    yield outside
    sys.modules.pop("outside")


def test_the_tables_of_the_page_are_those_of_the_ledger(benchmark):
    page = benchmark.PAGE.read_text(encoding="utf-8")
    assert page.partition(benchmark.BEGIN)[2].partition(benchmark.END)[0].strip() == benchmark.tables()
