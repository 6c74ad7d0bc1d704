"""Candidate generation against the six-step recipe of the released codes, and by frequency."""

import numpy as np
import pytest

from oneof.data.corrupt import flip_chances, instance_dependent

K = 10


def recipe(y, p, rate):
    """The released codes' steps, literally, in float64."""
    chances = []
    for label, row in zip(y, p, strict=True):
        row = row.copy()
        row[label] = 0
        row = row / row.max()
        row = row / row.mean() * rate
        chances.append(np.minimum(row, 1))
    return np.array(chances)


@pytest.fixture
def annotator():
    rng = np.random.default_rng(0)
    scores, y = 3 * rng.normal(size=(200, K)), rng.integers(K, size=200)
    p = np.exp(scores)
    return y, scores, p / p.sum(1, keepdims=True)


@pytest.mark.parametrize("rate", [0.1, 0.4, 1.0])
def test_chances_equal_the_recipe(annotator, rate):
    y, scores, p = annotator
    expected = recipe(y, p, rate)
    assert np.allclose(flip_chances(y, scores, rate), expected)
    assert np.allclose(flip_chances(y, np.log(p), rate), expected)
    hot = np.exp(scores / 2)
    assert np.allclose(flip_chances(y, scores, rate, temperature=2.0), recipe(y, hot, rate))


def test_scaling_by_the_maximum_always_adds_the_top_distractor(annotator):
    y, scores, _ = annotator
    wrong = scores.copy()
    wrong[np.arange(200), y] = -np.inf
    chances = flip_chances(y, scores, scaling="max")
    assert (chances[np.arange(200), wrong.argmax(1)] == 1).all()
    assert np.allclose(chances, np.exp(wrong - wrong.max(1, keepdims=True)))


def test_frequencies_agree_with_the_formula(annotator):
    y, scores, _ = annotator
    y, scores = y[:20], scores[:20]
    drawn = np.mean([instance_dependent(y, scores, seed=seed) for seed in range(3000)], axis=0)
    expected = flip_chances(y, scores)
    expected[np.arange(20), y] = 1
    sigma = np.sqrt(expected * (1 - expected) / 3000)
    assert (np.abs(drawn - expected) <= 5 * sigma + 1e-12).all()
    assert drawn.sum(1).mean() == pytest.approx(expected.sum(1).mean(), abs=0.05)


@pytest.mark.parametrize("certainty", [1, 50, 1e4])
def test_truth_is_inside_and_sizes_lie_where_they_must(certainty):
    """Mean size is between 2 (all confusion on one label) and 1 + rate K = 5, however sure the annotator is."""
    rng = np.random.default_rng(1)
    y = rng.integers(K, size=5000)
    scores = rng.normal(size=(5000, K))
    scores[np.arange(5000), y] += 5
    S = instance_dependent(y, certainty * scores, rate=0.4, seed=2)
    assert S[np.arange(5000), y].all()
    assert 1.95 <= S.sum(1).mean() <= 5.05
    assert np.isfinite(flip_chances(y, certainty * scores)).all()


def test_seeds(annotator):
    y, scores, _ = annotator
    assert np.array_equal(instance_dependent(y, scores, seed=4), instance_dependent(y, scores, seed=4))
    assert not np.array_equal(instance_dependent(y, scores, seed=4), instance_dependent(y, scores, seed=5))


def test_wrong_input(annotator):
    y, scores, _ = annotator
    with pytest.raises(ValueError, match="scaling is 'sum', but must be 'mean' or 'max'"):
        instance_dependent(y, scores, scaling="sum")
    with pytest.raises(ValueError, match="the numbers 0 to 9"):
        instance_dependent(y + 1, scores)
    with pytest.raises(ValueError, match="the numbers 0 to 9"):
        instance_dependent(y.astype(float), scores)
