import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from oneof.metrics import approximated_accuracy, covering_rate


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
