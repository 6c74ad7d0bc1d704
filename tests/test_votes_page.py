"""docs/results/votes.md says what the committed ledger says, and the benchmark's parts do what they say."""

import json
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
RECORDS = [json.loads(line) for line in (ROOT / "benchmarks" / "results" / "votes.jsonl").read_text().splitlines()]


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import votes

    return votes


@pytest.fixture
def page(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import votes_page

    return votes_page


def test_the_page_is_that_of_the_ledger(page):
    assert page.tables() in page.PAGE.read_text(), "write it again with python benchmarks/votes.py --page"


def test_every_draw_is_there_once(benchmark):
    assert len(set(map(benchmark.key, RECORDS))) == len(RECORDS)
    assert all(0 <= value <= 100 for r in RECORDS for value in r["right"].values())


def test_the_page_never_mixes_settings(page, monkeypatch, tmp_path):
    other = RECORDS[-1] | {"models": [{"method": "IDGP", "version": 1, "settings": {"lr": 7}}], "right": {}}
    monkeypatch.setattr(page, "LEDGER", tmp_path / "votes.jsonl")
    page.LEDGER.write_text("\n".join(json.dumps(record) for record in [other, *RECORDS, other, RECORDS[-1]]))
    assert other not in page.read()
    assert RECORDS[-1] in page.read()


def test_the_page_counts_in_how_many_draws_columns_were_scaled_as_a_whole(page, monkeypatch, tmp_path):
    first = next(record for record in RECORDS if record["models"] == RECORDS[-1]["models"])
    drawn = [first | {"scaling": scaling} for scaling in ("whole", "columns", "whole")]
    monkeypatch.setattr(page, "LEDGER", tmp_path / "votes.jsonl")
    page.LEDGER.write_text("\n".join(map(json.dumps, drawn)))
    header, _, row, *_ = page.tables().splitlines()
    assert header.endswith("| draws | scaled as a whole |")
    assert row.endswith("| 3 | 2 |")


def test_settings_tell_one_rule_for_defaults_from_another(benchmark, monkeypatch):
    before = benchmark.settings()
    assert [each["method"] for each in before] == ["IDGP", "CC"]
    assert {"optimizer", "lr", "weight_decay"} <= before[0]["settings"].keys()
    record = {"source": "people", "votes": 2, "draw": 0}
    keys = {benchmark.key(record | {"models": before})}
    monkeypatch.setattr(benchmark.oneof.CC, "lr_", 0.123)
    keys.add(benchmark.key(record | {"models": benchmark.settings()}))
    assert len(keys) == 2
    assert benchmark.settings()[1]["settings"]["lr"] == 0.123


def test_settings_are_those_of_a_fit(benchmark):
    rows = benchmark.SHAPES + benchmark.COLOURS
    x, y = np.random.default_rng(0).normal(size=(benchmark.ROWS, rows)), np.arange(benchmark.ROWS) % 3
    model = benchmark.oneof.IDGP(epochs=1, random_state=0, device="cpu")
    with pytest.warns(UserWarning, match="warm_up"):
        model.fit(x, y)
    (said, _) = benchmark.settings()
    for name in ("optimizer", "lr", "weight_decay", "batch_size"):
        assert said["settings"][name] == getattr(model, f"{name}_")


def test_intervals(page):
    mean, low, high = page.interval([1.0, 2.0, 3.0, 4.0])
    assert mean == 2.5
    assert high - mean == pytest.approx(mean - low) == pytest.approx(3.1824 * 1.2910 / 2, abs=1e-3)


def test_votes_of_people_are_drawn_without_replacement(benchmark):
    counts = np.zeros((50, 10), dtype=int)
    counts[:, 3], counts[:, 5] = 2, 3
    votes = benchmark.draw("people", 4, np.zeros(50, int), counts, seed=0)
    assert votes.shape == (50, 4)
    found = benchmark.counted(votes)
    assert (found <= counts).all()
    assert set(found[:, 3].tolist()) == {1, 2}


def test_simulated_annotators_have_the_stated_chances(benchmark):
    y = np.arange(4000) % 10
    votes = benchmark.draw("simulated", 5, y, np.zeros((4000, 10)), seed=1)
    assert ((votes >= 0).sum(1) == 5).all()
    right = [(votes[seen, a] == y[seen]).mean() for a in range(30) for seen in [votes[:, a] >= 0]]
    assert 0.4 < min(right) < max(right) < 1
    matrix = benchmark.confusion(np.random.default_rng(0))
    assert matrix.sum(1) == pytest.approx(np.ones(10))
    assert np.ptp(np.diag(matrix)) == pytest.approx(0)


def test_features_are_those_of_the_images(benchmark):
    images = np.random.default_rng(0).integers(0, 256, (300, 32, 32, 3), dtype=np.uint8)
    x = benchmark.features(images)
    assert x.shape == (300, 200)
    assert np.isfinite(x).all()
    brighter = benchmark._gradients(np.full((1, 32, 32), 0.5, np.float32))
    assert (brighter == 0).all()  # no gradient, no direction
