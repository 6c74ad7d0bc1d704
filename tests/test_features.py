"""X that is no table of numbers and no images: one short line says so, without the values of the whole array."""

import numpy as np
import pandas as pd
import pytest
import torch

import oneof
from oneof.estimator.features import check_rows

Y = [0, 1] * 5
TABLE = r"must be a table \(n, features\) or images"


def columns(**given):
    return pd.DataFrame({"a": np.arange(10.0), **given})


@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        (np.arange(10.0), ValueError, r"X has shape \(10,\), but .* Reshape your data with X.reshape\(-1, 1\)"),
        (torch.zeros(10), ValueError, r"X has shape \(10,\)"),
        (pd.Series(np.zeros(10)), ValueError, r"X has shape \(10,\)"),
        (np.array(3.0), ValueError, r"X has shape \(\)"),
        (np.zeros((10, 1, 2, 2, 2)), ValueError, r"X has shape \(10, 1, 2, 2, 2\)"),
        ("rows", TypeError, f"X is of type str, but {TABLE}.*pass an array, tensor, DataFrame or list of rows"),
        (b"rows", TypeError, "X is of type bytes"),
        (None, TypeError, "X is of type NoneType"),
        (3, TypeError, "X is of type int"),
        ({"a": [1] * 10}, TypeError, "X is of type dict"),
        ((row for row in Y), TypeError, "X is of type generator"),
        ([[1, 2], [3]] * 5, ValueError, r"rows of different shapes, \(2,\) in row 0 and \(1,\) in row 1"),
        ([[[1], 2], [3, 4]] * 5, ValueError, r"rows of different shapes, none \(ragged\) in row 0 and \(2,\)"),
        (np.ones((10, 3), complex), ValueError, "Complex data not supported: X is of type complex128"),
        (columns(b=1j), ValueError, "Complex data not supported: the column 'b' of X"),
        (columns(b=["Rome"] * 10), ValueError, "X holds 'Rome' in row 0 of the column 'b'.*TableEncoder"),
        (columns(b=pd.Categorical(["1", "x"] * 5)), ValueError, "X holds 'x' in row 1 of the column 'b'"),
        (
            columns(b=pd.to_datetime(["2020"] * 10)),
            TypeError,
            "'b' of X is of type datetime64.*, but features are",
        ),
        (np.zeros((10, 2), "m8[s]"), TypeError, "X is of type timedelta64"),
        (np.zeros((10, 2), [("a", float)]), TypeError, "X is of type .*, but features are numbers"),
        (np.array([[1, "x" * 9999]] * 10), ValueError, r"X holds 'xxx.*\.\.\.x*' in row 0 of the column 1"),
        (
            np.array([[1, {}]] * 10),
            TypeError,
            r"X holds \{\} in row 0 .*argument must be a string or a real number",
        ),
        ([[10**400, 1]] * 10, ValueError, "X holds an integer of 1329 bits in row 0"),
        (pd.DataFrame(np.zeros((10, 2)), columns=["a", "a"]), ValueError, "several columns of the name 'a'"),
        (pd.DataFrame(np.zeros((10, 2)), columns=["a", 1]), TypeError, r"such as 'a' and 1; pass X.rename\(col"),
        (np.zeros((10, 0, 5)), ValueError, r"shape \(10, 0, 5\), but .* at least one pixel and channel"),
        (np.zeros((10, 4, 4, 0)), ValueError, r"shape \(10, 4, 4, 0\), but .* at least one pixel and channel"),
        (np.zeros((1, 4, 4)), ValueError, r"shape \(1, 4, 4\), but 2 or more images are needed"),
        (np.ma.masked_equal([[1.0, 2], [3, 4]] * 5, 4), ValueError, r"NaN or infinity in rows 1, 3, 5, 7, 9"),
    ],
)
def test_wrong_x_is_one_short_line(x, error, message):
    with pytest.raises(error, match=message) as caught:
        oneof.CC(epochs=1).fit(x, Y)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_every_right_x_gives_its_rows():
    rows = np.arange(20.0).reshape(10, 2)
    model = oneof.CC(epochs=1).fit(rows, Y)
    for x in (rows.tolist(), list(rows), list(rows.astype(np.float32)), torch.as_tensor(rows).bfloat16(), [*rows]):
        found = check_rows(model, x, fitting=False)
        assert np.array_equal(found, rows)
    assert check_rows(model, list(rows.astype(np.float32)), fitting=False).dtype == np.float64
    assert check_rows(model, [["1", "2"]], fitting=False).tolist() == [[1, 2]]
    images = np.random.default_rng(0).random((10, 4, 4))
    fitted = oneof.CC(epochs=1, random_state=0, network="linear").fit(list(images), Y)
    assert fitted.input_shape_ == (1, 4, 4)
    assert np.array_equal(fitted.predict(images.tolist()), fitted.predict(images))


@pytest.mark.filterwarnings("error")
def test_finite_numbers_with_an_infinite_sum_are_finite():
    model = oneof.CC(epochs=1).fit(np.arange(20.0).reshape(10, 2), Y)
    assert np.isfinite(check_rows(model, np.full((2, 2), 1e308), fitting=False)).all()
