"""Statistics of results against arithmetic by hand and against scipy."""

import math
import random
import statistics as stdlib

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from oneof.bench.report.statistics import (
    Cell,
    Comparison,
    Counts,
    Ranks,
    Selection,
    cell,
    compare,
    count,
    mean_ranks,
    select,
)

# Quantiles of the t distribution from a printed table: 97.5 % with 4, 2 and 1 degrees of freedom.
T4, T2, T1 = 2.776445, 4.302653, 12.706205


def trials(*scores):
    return dict(enumerate(scores))


def test_cell_by_hand():
    """Mean 270 / 3 = 90; squares 1 + 0 + 1 over 3 - 1: deviation 1."""
    assert cell(trials(89, 90, 91), planned=5) == Cell(90.0, 1.0, 3, 5)


def test_cell_with_too_few_scores():
    one = cell(trials(91.5), planned=5)
    assert (one.mean, one.trials) == (91.5, 1)
    assert math.isnan(one.std)
    none = cell({}, planned=5)
    assert none.trials == 0
    assert math.isnan(none.mean)
    assert math.isnan(none.std)


@given(st.lists(st.floats(0, 100), min_size=2, max_size=8))
def test_cell_equals_the_sample_statistics(scores):
    found = cell(trials(*scores), planned=len(scores))
    assert found.mean == pytest.approx(stdlib.fmean(scores), abs=1e-8)
    assert found.std == pytest.approx(stdlib.stdev(scores), abs=1e-8)


def test_equal_scores_have_no_deviation():
    assert cell(trials(91.1, 91.1, 91.1), planned=3) == Cell(91.1, 0.0, 3, 3)


def test_comparison_by_hand():
    """Differences 1 2 3 2 2: mean 2, squares 1 + 0 + 1 over 4 = 0.5, error sqrt(0.5 / 5) = 0.316228.

    t = 2 / 0.316228 = 6.324555 with 4 degrees of freedom, for which the distribution has the closed form
    p = 1 - sin(a) (1 + cos(a)^2 / 2) with tan(a) = t / 2. Half-width 2.776445 * 0.316228 = 0.877989.
    """
    found = compare(trials(91, 92, 93, 92, 92), trials(90, 90, 90, 90, 90))
    a = math.atan(6.324555 / 2)
    assert found.difference == 2
    assert found.low == pytest.approx(2 - 0.877989, abs=1e-5)
    assert found.high == pytest.approx(2 + 0.877989, abs=1e-5)
    assert found.p == pytest.approx(1 - math.sin(a) * (1 + math.cos(a) ** 2 / 2), abs=1e-6)
    assert found.p == pytest.approx(0.0032, abs=1e-4)
    assert found.verdict == "win"


def test_resplits_by_hand():
    """The same with 800 rows to train and 100 to test: error sqrt((1/5 + 100/800) 0.5) = 0.403113.

    t = 2 / 0.403113 = 4.961389; half-width 2.776445 * 0.403113 = 1.119221.
    """
    found = compare(trials(91, 92, 93, 92, 92), trials(90, 90, 90, 90, 90), resplits=(800, 100))
    a = math.atan(4.961389 / 2)
    assert found.difference == 2
    assert found.high - found.difference == pytest.approx(1.119221, abs=1e-5)
    assert found.difference - found.low == pytest.approx(1.119221, abs=1e-5)
    assert found.p == pytest.approx(1 - math.sin(a) * (1 + math.cos(a) ** 2 / 2), abs=1e-6)
    assert found.verdict == "win"


def test_resplits_can_take_a_verdict_back():
    """Differences 0.5 1 1.5: error of independent trials sqrt(0.25 / 3) = 0.288675, t = 3.4641, p = 0.0742.

    Differences 0.8 1 1.2: error sqrt(0.04 / 3) = 0.11547, t = 8.66 > 4.302653. With as many rows to test as to
    train sqrt((1/3 + 1) 0.04) = 0.23094, t = 4.3301 > 4.302653. With twice as many sqrt((1/3 + 2) 0.04) =
    0.305505, t = 3.2733 < 4.302653, half-width 4.302653 * 0.305505 = 1.314481 > 1.
    """
    ours, theirs = trials(90.8, 91, 91.2), trials(90, 90, 90)
    assert compare(trials(90.5, 91, 91.5), theirs).verdict == "undecided"
    assert compare(ours, theirs).verdict == "win"
    assert compare(ours, theirs, resplits=(50, 50)).verdict == "win"
    corrected = compare(ours, theirs, resplits=(50, 100))
    assert corrected.high - 1 == pytest.approx(T2 * 0.305505, abs=1e-5)
    assert corrected.verdict == "undecided"


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 100)), min_size=2, max_size=8))
def test_independent_trials_equal_scipy(pairs):
    ours, theirs = np.array(pairs).T
    assume(np.std(ours - theirs) > 1e-3)
    expected = stats.ttest_rel(ours, theirs)
    interval = expected.confidence_interval(0.95)
    found = compare(trials(*ours), trials(*theirs))
    assert found.p == pytest.approx(expected.pvalue, abs=1e-5)
    assert found.low == pytest.approx(interval.low, abs=1e-5)
    assert found.high == pytest.approx(interval.high, abs=1e-5)


def test_losing_mirrors_winning():
    ours, theirs = trials(91, 92, 93, 92, 92), trials(90, 90, 90, 90, 90)
    won, lost = compare(ours, theirs, (80, 10)), compare(theirs, ours, (80, 10))
    assert lost == Comparison(-won.difference, -won.high, -won.low, won.p, "loss")


@pytest.mark.parametrize("resplits", [None, (80, 10)])
def test_differences_without_variance(resplits):
    """On paper 91.1 - 90.2 and 93.7 - 92.8 are the same, in floats they are not."""
    ours = trials(91.1, 92.3, 93.7)
    assert 91.1 - 90.2 != 93.7 - 92.8
    assert compare(ours, ours, resplits) == Comparison(0.0, 0.0, 0.0, 1.0, "tie")
    assert compare(ours, trials(90.2, 91.4, 92.8), resplits) == Comparison(0.9, 0.9, 0.9, 0.0, "win")
    assert compare(ours, trials(91.2, 92.4, 93.8), resplits) == Comparison(-0.1, -0.1, -0.1, 0.0, "loss")
    almost = trials(91.1 + 1e-13, 92.3 + 1e-13, 93.7 + 1e-13)
    assert compare(almost, ours, resplits).verdict == "tie"


def test_tie_needs_a_narrow_interval():
    """Differences d and -d: deviation d sqrt(2), error d, half-width 12.706205 d: 1 point at d = 0.0787017."""
    tie = compare(trials(90 + 0.0786, 90 - 0.0786), trials(90, 90))
    assert tie.verdict == "tie"
    assert tie.high == pytest.approx(T1 * 0.0786, abs=1e-6)
    assert tie.p == 1
    assert compare(trials(90 + 0.0788, 90 - 0.0788), trials(90, 90)).verdict == "undecided"


def test_significance_turns_at_the_printed_quantile():
    """Differences m - 1, m, m, m, m + 1: squares 2 over 4, error sqrt(0.5 / 5): significant above T4 times it."""
    edge = T4 * math.sqrt(0.1)
    for mean, verdict in ((edge - 1e-3, "tie"), (edge + 1e-3, "win"), (-edge - 1e-3, "loss")):
        ours = trials(*(50 + mean + step for step in (-1, 0, 0, 0, 1)))
        assert compare(ours, trials(50, 50, 50, 50, 50)).verdict == verdict


def test_pairs_are_the_trials_that_both_have():
    """Trials 2 and 5 are common: differences 1 and 3, mean 2."""
    found = compare({1: 0.0, 2: 91.0, 5: 93.0}, {5: 90.0, 2: 90.0, 7: 99.0})
    assert found.difference == 2
    assert found.verdict == "undecided"
    assert found.high - 2 == pytest.approx(T1 * 1, abs=1e-5)


def test_fewer_than_two_pairs_decide_nothing():
    one = compare({1: 91.0, 2: 92.0}, {2: 90.0})
    assert one.difference == 2
    assert one.verdict == "undecided"
    none = compare({1: 91.0}, {2: 90.0})
    assert none.verdict == "undecided"
    assert all(map(math.isnan, (one.low, one.high, one.p, none.difference, none.low, none.high, none.p)))


def test_wrong_numbers():
    with pytest.raises(ValueError, match="the score of trial 1 is nan, but must be finite; leave the trial out"):
        compare(trials(90, math.nan), trials(90, 90))
    with pytest.raises(ValueError, match="the score of trial 0 is inf"):
        cell(trials(math.inf), planned=1)
    with pytest.raises(
        ValueError, match=r"resplits is \(0, 10\), but must be the numbers of training and test rows"
    ):
        compare(trials(1, 2), trials(2, 1), resplits=(0, 10))


def test_counts():
    assert count(["win", "tie", "win", "undecided", "loss", "win"]) == Counts(win=3, tie=1, loss=1, undecided=1)
    assert count([]) == Counts(0, 0, 0, 0)


def test_mean_ranks_by_hand():
    """A: 1, 2.5, 3; B: 2, 2.5, 1; C: 3, 1, 2. On the fourth data set C is missing, on the fifth B is NaN."""
    means = {
        "A": {"one": 90, "two": 80, "three": 70, "four": 99, "five": 99},
        "B": {"one": 89, "two": 80, "three": 72, "four": 98, "five": math.nan},
        "C": {"one": 88, "two": 81, "three": 71, "five": 98},
    }
    assert mean_ranks(means) == Ranks({"A": 6.5 / 3, "B": 5.5 / 3, "C": 6 / 3}, used=3, given=5)


def test_ranks_of_what_is_equal_on_paper():
    """In floats 0.1 + 0.2 is above 0.3."""
    assert mean_ranks({"A": {"one": 0.1 + 0.2}, "B": {"one": 0.3}}).ranks == {"A": 1.5, "B": 1.5}


def test_no_complete_data_set_no_ranks():
    assert mean_ranks({"A": {"one": 1.0}, "B": {"two": 1.0}}) == Ranks({}, 0, 2)
    assert mean_ranks({}) == Ranks({}, 0, 0)


def test_selection_by_hand():
    """Means 80, (80 + 86) / 2 = 83 and (85 + 79) / 2 = 82."""
    grid = {"a": trials(80, 80), "b": trials(80, 86), "c": trials(85, 79)}
    assert select(grid, planned=2) == Selection("b", 83.0, 2, 2)


def test_first_of_equal_points_is_chosen():
    """In floats the means of 0.8, 0.9 and of 0.85, 0.85 differ."""
    assert (0.8 + 0.9) / 2 != 0.85
    assert select({"b": trials(0.85, 0.85), "a": trials(0.8, 0.9)}, planned=2).point == "b"
    assert select({"a": trials(0.8, 0.9), "b": trials(0.85, 0.85)}, planned=2).point == "a"


def test_order_of_trials_does_not_matter():
    rng = random.Random(0)
    rows = {point: [rng.random() for _ in range(5)] for point in range(12)}
    chosen = select({point: trials(*row) for point, row in rows.items()}, planned=5)
    assert chosen == select({point: trials(*sorted(row)) for point, row in rows.items()}, planned=5)


def test_incomplete_points_compete_only_among_themselves():
    whole, better, single = trials(80, 80, 80), trials(90, 90), trials(99)
    assert select({"single": single, "better": better, "whole": whole}, 3) == Selection("whole", 80.0, 3, 3)
    assert select({"single": single, "better": better, "empty": {}}, 3) == Selection("better", 90.0, 2, 3)
    more = trials(70, 70, 70, 70)  # more trials than planned are no advantage
    assert select({"more": more, "whole": whole}, 3) == Selection("whole", 80.0, 3, 3)


def test_nothing_to_select():
    assert select({}, planned=5) is None
    assert select({"a": {}}, planned=5) is None


def test_points_may_be_anything_hashable():
    assert select({(0.01, 1e-4): trials(1), (0.1, 1e-4): trials(2)}, planned=1).point == (0.1, 1e-4)
