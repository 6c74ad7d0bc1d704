import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from oneof.metrics import approximated_accuracy, covering_rate, weighted_mean


def test_by_hand():
    p = [[0.5, 0.3, 0.2], [0.5, 0.3, 0.2], [0.1, 0.1, 0.8]]
    S = [[1, 1, 0], [0, 1, 1], [1, 1, 1]]
    assert approximated_accuracy(p, S) == pytest.approx([0.625, 0.0, 0.8])
    assert covering_rate(p, S).tolist() == [1, 0, 1]


@given(arrays(float, (7, 4), elements=st.floats(0.001, 1)), arrays(int, 7, elements=st.integers(0, 3)))
def test_on_plain_labels_both_are_accuracy(p, y):
    S = np.eye(4, dtype=bool)[y]
    correct = p.argmax(1) == y
    assert approximated_accuracy(p, S) == pytest.approx(correct.astype(float))
    assert covering_rate(p, S).tolist() == correct.tolist()


def test_underflow_is_zero_not_nan():
    assert approximated_accuracy([[1.0, 0.0, 0.0]], [[0, 1, 1]]).tolist() == [0.0]


@pytest.mark.parametrize("metric", [approximated_accuracy, covering_rate])
@pytest.mark.parametrize("labels", [[0, 1, 2], [[0], [1], [2]], [["cat"], ["dog"], ["cow"]], np.ones((3, 4))])
def test_candidates_are_a_matrix_not_labels(metric, labels):
    """Three labels of three classes would be taken for one row of a matrix."""
    with pytest.raises(ValueError, match=r"both must be numbers \(n, K\).*oneof\.encode"):
        metric(np.eye(3), labels)


@pytest.mark.parametrize("weight", [[0, 0], [1, -1], [np.nan, 1], [np.inf, 1], [1e308, 1e308]])
def test_weights_that_cannot_weigh(weight):
    with pytest.raises(ValueError, match=r"sample_weight lies between .* some must be positive"):
        weighted_mean(np.ones(2), weight)


@pytest.mark.parametrize("weight", [[1], [1, 1, 1], [[1, 1]], ["a", "b"], 1])
def test_weights_of_another_shape(weight):
    with pytest.raises(ValueError, match="must hold 2 numbers, one for each row"):
        weighted_mean(np.ones(2), weight)


def test_weights_count():
    assert weighted_mean(np.array([0.0, 1.0]), [1, 3]) == 0.75
    assert weighted_mean(np.array([0.0, 1.0])) == 0.5
