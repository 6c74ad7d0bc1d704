"""docs/results/review.md says what the committed ledger says, and the benchmark's parts do what they say."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def benchmark():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        import review as module
        import review_page

        yield module, review_page
        for name in ("review", "review_page", "review_figure", "votes", "votes_page", "marks"):
            sys.modules.pop(name, None)


def test_the_page_is_what_the_ledger_says(benchmark):
    assert benchmark[1].tables() in benchmark[1].PAGE.read_text()
    for path, text in benchmark[1].review_figure.files(*benchmark[1].read()).items():
        assert path.read_text() == text
        assert f"]({path.name})" in benchmark[1].PAGE.read_text()
    records = [json.loads(line) for line in benchmark[0].LEDGER.read_text().splitlines()]
    drawn = {(each["set"], each["seed"]) for each in records}
    assert drawn == {(name, seed) for name in (*benchmark[0].SETS, "loop") for seed in range(5)}
    assert len(records) == len(drawn)


def test_quality_is_that_of_the_order(benchmark):
    wrong = np.zeros(100, bool)
    wrong[:10] = True
    found = benchmark[0].quality(np.arange(100, 0, -1.0), wrong)
    assert found["auc"] == found["found"] == 1
    assert found["precision"] == [1, 1, 1]
    assert found["accuracy"][0] == 0.9
    assert found["accuracy"][5] == 1
    worst = benchmark[0].quality(np.arange(100.0), wrong)
    assert worst["auc"] == worst["found"] == 0


def test_truths_are_taken_out_at_the_rate(benchmark):
    y = np.arange(4000) % 10
    sets = benchmark[0].without_truth(np.eye(10, dtype=bool)[y], y, 0.1, np.random.default_rng(0))
    assert sets.sum(1).tolist() == [1] * 4000
    assert 0.08 < 1 - sets[np.arange(4000), y].mean() < 0.12
