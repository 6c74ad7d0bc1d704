"""Rows and labels of wrong shapes, types and values, given to fit, predict, score and disambiguate."""

import datetime

import numpy as np
import pandas as pd
import scipy.sparse
import torch
from sklearn.exceptions import NotFittedError

from misuse.rows import carry_out, parametrize, refused, warned, works
from oneof import CC, IDGP, PRODEN, VALEN, EMClassifier, PiCO

CHANCE = 1 / 3


class Frame:
    """A frame of another library: it has columns, a shape and an array."""

    def __init__(self, frame):
        self.frame, self.columns, self.shape = frame, list(frame), frame.shape

    def __array__(self, dtype=None, copy=None):
        return self.frame.to_numpy(dtype)

    def __len__(self):
        return len(self.frame)


def with_value(X, value, row=3):
    X = np.array(X, dtype=float)
    X[row, 1] = value
    return X


def fits(fitted):
    return hasattr(fitted, "network_")


def good(score):
    return score > CHANCE


def score_of(kit, X, y):
    return kit.model(epochs=20).fit(X, y).score(kit.X, kit.S)


def damaged_text(count):
    """An array of text as a damaged file gives it: no string can hold its first character."""
    codes = np.full(count, ord("a"), dtype=np.uint32)
    codes[0] = 0x110000
    return codes.view("U1")


X_ROWS = [
    refused(
        "X is text with characters that do not exist",
        ValueError,
        lambda k: k.model().fit(damaged_text(40)[:, None], k.S),
        "X has text with a code point of 0x110000",
    ),
    refused(
        "X and y are swapped, X being a 0/1 matrix", ValueError, lambda k: k.model().fit(k.S, k.X), "only 0 and 1"
    ),
    refused(
        "X and y are swapped, y being labels", ValueError, lambda k: k.model().fit(k.y, k.X), "X has shape (40,)"
    ),
    refused(
        "X is one column, not a table",
        ValueError,
        lambda k: k.model().fit(k.X[:, 0], k.S),
        "X has shape (40,)",
        "reshape(-1, 1)",
    ),
    refused("X is a Series", ValueError, lambda k: k.model().fit(k.frame["a"], k.S), "X has shape (40,)"),
    refused("X is None", TypeError, lambda k: k.model().fit(None, k.S), "NoneType", "a table"),
    refused("X is a number", TypeError, lambda k: k.model().fit(3.0, k.S), "X is of type float"),
    refused("X is a text", TypeError, lambda k: k.model().fit("rows.csv", k.S), "X is of type str"),
    refused("X is a dict of columns", TypeError, lambda k: k.model().fit({"a": k.y}, k.S), "X is of type dict"),
    refused(
        "X is a generator",
        TypeError,
        lambda k: k.model().fit((row for row in k.X), k.S),
        "generator",
        "list of rows",
    ),
    refused("X is a set", TypeError, lambda k: k.model().fit({1, 2}, k.S), "X is of type set", "list of rows"),
    refused(
        "X has five dimensions",
        ValueError,
        lambda k: k.model().fit(np.zeros((40, 1, 1, 1, 1)), k.S),
        "(40, 1, 1, 1, 1)",
    ),
    refused(
        "X has rows of unequal length",
        ValueError,
        lambda k: k.model().fit([[1.0, 2.0], [3.0]], [0, 1]),
        "(2,) in row 0",
        "(1,) in row 1",
    ),
    refused(
        "X has no rows",
        ValueError,
        lambda k: k.model().fit(k.X[:0], k.S[:0]),
        "0 sample(s)",
        wording="scikit-learn's",
    ),
    refused(
        "X has a single row",
        ValueError,
        lambda k: k.model().fit(k.X[:1], k.S[:1]),
        "1 sample(s)",
        wording="scikit-learn's",
    ),
    refused(
        "X has no columns",
        ValueError,
        lambda k: k.model().fit(k.X[:, :0], k.S),
        "0 feature(s)",
        wording="scikit-learn's",
    ),
    refused("X is an empty frame", ValueError, lambda k: k.model().fit(pd.DataFrame(), k.S), "without columns"),
    refused(
        "X has a NaN", ValueError, lambda k: k.model().fit(with_value(k.X, np.nan), k.S), "NaN", "row 3", "impute"
    ),
    refused(
        "X has an infinity",
        ValueError,
        lambda k: k.model().fit(with_value(k.X, -np.inf), k.S),
        "infinity",
        "row 3",
    ),
    refused(
        "X has a gap in a frame of nullable integers",
        ValueError,
        lambda k: k.model().fit(pd.DataFrame({"a": pd.array([1, None, 3], dtype="Int64")}), [0, 1, 0]),
        "NaN",
        "row 1",
    ),
    refused(
        "X has masked values", ValueError, lambda k: k.model().fit(np.ma.masked_greater(k.X, 5), k.S), "NaN", "row"
    ),
    refused(
        "X holds words",
        ValueError,
        lambda k: k.model().fit([["a", "b"], ["c", "d"]], [0, 1]),
        "'a'",
        "row 0",
        "number",
    ),
    refused(
        "X has a column of words",
        ValueError,
        lambda k: k.model().fit(k.frame.assign(kind="wild"), k.S),
        "'kind'",
        "'wild'",
        "TableEncoder",
    ),
    refused(
        "X has a column of categories",
        ValueError,
        lambda k: k.model().fit(k.frame.assign(kind=pd.Categorical(["wild"] * 40)), k.S),
        "'kind'",
        "'wild'",
    ),
    refused(
        "X has a column of dates",
        TypeError,
        lambda k: k.model().fit(k.frame.assign(day=datetime.datetime(2026, 1, 1)), k.S),
        "'day'",
        "numbers",
    ),
    refused(
        "X has a column of lists",
        ValueError,
        lambda k: k.model().fit(pd.DataFrame({"a": [[1], [2]]}), [0, 1]),
        "'a'",
        "[1]",
    ),
    refused(
        "X is an array of dates",
        TypeError,
        lambda k: k.model().fit(np.full((40, 2), np.datetime64("2026-01-01")), k.S),
        "datetime64",
        "numbers",
    ),
    refused("X is complex", ValueError, lambda k: k.model().fit(k.X * 1j, k.S), "Complex data", "complex128"),
    refused(
        "X is an array of objects",
        TypeError,
        lambda k: k.model().fit(np.array([[{}, 1], [2, 3]], dtype=object), [0, 1]),
        "{} in row 0",
        "must be a number",
    ),
    refused(
        "X has integers that no float can hold",
        ValueError,
        lambda k: k.model().fit([[10**400], [1]], [0, 1]),
        "row 0",
        "must be a number",
    ),
    refused(
        "X has two columns of one name",
        ValueError,
        lambda k: k.model().fit(pd.DataFrame(k.X, columns=list("abca")), k.S),
        "'a'",
        "rename",
    ),
    refused(
        "X is a sparse matrix, of which VALEN would make a graph",
        TypeError,
        lambda k: VALEN().fit(scipy.sparse.csr_array(k.X), k.S),
        "sparse",
        "VALEN needs dense rows",
        "toarray()",
    ),
    refused(
        "X is a sparse matrix for EMClassifier",
        TypeError,
        lambda k: EMClassifier().fit(scipy.sparse.csr_array(k.X), k.S),
        "EMClassifier needs dense rows",
    ),
    refused(
        "X is a sparse matrix with a gap",
        ValueError,
        lambda k: k.model().fit(scipy.sparse.csr_array(np.where(k.X[3, 1] == k.X, np.nan, k.X)), k.S),
        "NaN or infinity in row 3",
    ),
    works("X is a sparse matrix", lambda k: score_of(k, scipy.sparse.coo_array(k.X), k.S), good),
    refused(
        "X is a sparse tensor",
        ValueError,
        lambda k: k.model().fit(torch.as_tensor(k.X.copy()).to_sparse(), k.S),
        "dense",
    ),
    refused(
        "X is a tensor without data",
        ValueError,
        lambda k: k.model().fit(torch.zeros(40, 4, device="meta"), k.S),
        "cannot be turned into an array",
    ),
    refused(
        "X is the whole data set with its labels as a tuple",
        ValueError,
        lambda k: k.model().fit((k.X, k.S), k.S),
        "(40, 4) in row 0",
        "(40, 3) in row 1",
    ),
    works("X is nested lists", lambda k: score_of(k, k.X.tolist(), k.S), good),
    works("X is a tuple of tuples", lambda k: score_of(k, tuple(map(tuple, k.X)), k.S), good),
    works(
        "X is a half-precision tensor",
        lambda k: score_of(k, torch.as_tensor(k.X.copy()).to(torch.bfloat16), k.S),
        good,
    ),
    works("X is an array of float16", lambda k: score_of(k, k.X.astype(np.float16), k.S), good),
    works("X is an array of integers", lambda k: fits(k.model().fit((10 * k.X).astype(int), k.S)), bool),
    works("X is an array of booleans", lambda k: fits(k.model().fit(k.X > 1, k.S)), bool),
    works(
        "X is a tensor with a gradient",
        lambda k: fits(k.model().fit(torch.tensor(k.X, requires_grad=True), k.S)),
        bool,
    ),
    works(
        "X is a frame of another library",
        lambda k: k.model().fit(Frame(k.frame), k.S).n_features_in_,
        lambda n: n == 4,
    ),
    works(
        "X has several levels of column names",
        lambda k: k.model().fit(pd.DataFrame(k.X, columns=pd.MultiIndex.from_product([["a", "b"], [0, 1]])), k.S),
        fits,
    ),
    works(
        "X has several levels of row names",
        lambda k: k.model().fit(k.frame.set_index(pd.MultiIndex.from_product([range(10), range(4)])), k.S),
        fits,
    ),
    works(
        "X has columns of booleans and nullable numbers",
        lambda k: k.model().fit(k.frame.assign(big=k.frame["a"] > 1, e=k.frame["b"].astype("Float64")), k.S),
        fits,
    ),
    works("X has a constant column", lambda k: score_of(k, with_constant(k.X), k.S), good),
    works("X is not writeable and in columns", lambda k: score_of(k, np.asfortranarray(k.X), k.S), good),
    works(
        "X is a view with negative strides",
        lambda k: k.model().fit(k.X[::-1, ::-1], k.S[::-1]),
        fits,
    ),
]


def with_constant(X):
    X = np.array(X)
    X[:, 3] = 7
    return X


Y_ROWS = [
    refused(
        "y is text with characters that do not exist",
        ValueError,
        lambda k: k.model().fit(k.X, damaged_text(40)),
        "y has text with a code point of 0x110000",
    ),
    refused(
        "a set is an array of text with characters that do not exist",
        ValueError,
        lambda k: k.model().fit(k.X, [damaged_text(2)] * 40),
        "a row has text with a code point of 0x110000",
    ),
    refused("y is None", ValueError, lambda k: k.model().fit(k.X, None), "requires y", wording="ours"),
    refused("y is a text", TypeError, lambda k: k.model().fit(k.X, "label"), "y is of type str", "list"),
    refused("y is a number", TypeError, lambda k: k.model().fit(k.X, 3), "y is of type int"),
    refused(
        "y is a generator",
        TypeError,
        lambda k: k.model().fit(k.X, (s for s in k.sets)),
        "generator",
        "into a list",
    ),
    refused("y is a dict", TypeError, lambda k: k.model().fit(k.X, {0: "cat"}), "y is of type dict"),
    refused("y is a set", TypeError, lambda k: k.model().fit(k.X, {"cat", "dog"}), "y is of type set"),
    refused("y is longer", ValueError, lambda k: k.model().fit(k.X[:39], k.S), "39 rows", "y has 40"),
    refused("y is shorter", ValueError, lambda k: k.model().fit(k.X, k.sets[:7]), "40 rows", "y has 7"),
    refused("y is empty", ValueError, lambda k: k.model().fit(k.X, []), "0 rows"),
    refused(
        "y has an empty set",
        ValueError,
        lambda k: k.model().fit(k.X, [[], *k.sets[1:]]),
        "empty in row 0",
        "drop the rows",
    ),
    refused(
        "y has a row of zeros",
        ValueError,
        lambda k: k.model().fit(k.X, np.vstack([k.S[:39], [0, 0, 0]])),
        "empty in row 39",
    ),
    refused("y has one class", ValueError, lambda k: k.model().fit(k.X, ["cat"] * 40), "1 class", "'cat'"),
    refused(
        "y holds all classes everywhere",
        ValueError,
        lambda k: k.model().fit(k.X, np.ones((40, 3))),
        "all 3 classes",
        "nothing to learn",
    ),
    refused(
        "y is a matrix of probabilities",
        ValueError,
        lambda k: k.model().fit(k.X, np.full((40, 3), 0.3)),
        "0.3",
        "only 0 and 1",
    ),
    refused(
        "y is a matrix with -1 for no",
        ValueError,
        lambda k: k.model().fit(k.X, np.where(k.S, 1, -1)),
        "-1",
        "only 0 and 1",
    ),
    refused(
        "y is a matrix with NaN", ValueError, lambda k: k.model().fit(k.X, with_value(k.S, np.nan)), "nan", "row 3"
    ),
    refused("y is a matrix of names", ValueError, lambda k: k.model().fit(k.X, np.array(k.votes)), "from_votes"),
    refused(
        "y has three dimensions", ValueError, lambda k: k.model().fit(k.X, k.S[:, :, None]), "(40, 3, 1)", "1 or 2"
    ),
    refused(
        "y mixes names and numbers",
        ValueError,
        lambda k: k.model().fit(k.X, [0, *k.sets[1:]]),
        "mixes strings",
        "numbers",
    ),
    refused(
        "y holds continuous numbers",
        ValueError,
        lambda k: k.model().fit(k.X, k.X[:, 0]),
        "continuous",
        wording="scikit-learn's",
    ),
    refused(
        "y holds missing labels",
        ValueError,
        lambda k: k.model().fit(k.X, [None, *k.names[1:]]),
        "missing",
        "row 0",
    ),
    refused(
        "y holds dates",
        TypeError,
        lambda k: k.model().fit(k.X, pd.Series(pd.date_range("2026", periods=40)).astype("datetime64[ns]")),
        "datetime64",
        "strings or integers",
    ),
    refused(
        "y holds time spans",
        TypeError,
        lambda k: k.model().fit(k.X, pd.Series(pd.to_timedelta(range(40), unit="D"))),
        "timedelta64",
    ),
    refused(
        "y holds dicts", TypeError, lambda k: k.model().fit(k.X, [{"label": "cat"}] * 40), "dict", "row 0", "list"
    ),
    refused(
        "y holds lists of lists",
        TypeError,
        lambda k: k.model().fit(k.X, [[["cat"], ["dog"]]] * 40),
        "list in row 0",
        "strings or integers",
    ),
    refused(
        "y is a sparse tensor",
        ValueError,
        lambda k: k.model().fit(k.X, torch.as_tensor(k.S.copy()).to_sparse()),
        "dense",
    ),
    works("y is a sparse matrix", lambda k: score_of(k, k.X, scipy.sparse.csr_array(k.S)), good),
    works("y is a Series of categories", lambda k: score_of(k, k.X, pd.Series(k.y).astype("category")), good),
    works("y is a list of single labels", lambda k: score_of(k, k.X, k.y.tolist()), good),
    works("y is a tensor of labels", lambda k: score_of(k, k.X, torch.as_tensor(k.y.copy())), good),
    works(
        "y has names that are numbers in quotes",
        lambda k: k.model().fit(k.X, k.y.astype(str)).classes_.tolist(),
        lambda names: names == ["0", "1", "2"],
    ),
    works(
        "y is a frame whose rows are named otherwise",
        lambda k: score_of(k, k.X, pd.DataFrame(k.S, index=range(100, 140))),
        good,
    ),
    warned(
        "y holds sets as text",
        lambda k: k.model().fit(k.X, ["|".join(sorted({"cat", *s})) for s in k.sets]),
        "'|'",
        "separator='|'",
        holds=fits,
    ),
    works(
        "y holds sets as text, and the separator is given",
        lambda k: k.model().fit(k.X, ["|".join(s) for s in k.sets], separator="|").classes_.tolist(),
        lambda classes: classes == ["cat", "cow", "dog"],
    ),
    warned(
        "y has a class that no row may have",
        lambda k: k.model().fit(k.X, np.c_[k.S, np.zeros(40, bool)]),
        "class 3",
        "no training row",
        holds=fits,
    ),
    warned(
        "y is a column, not a vector",
        lambda k: k.model().fit(k.X, k.y[:, None]),
        "column-vector",
        holds=fits,
    ),
]

WEIGHT_ROWS = [
    refused(
        "sample_weight is too short",
        ValueError,
        lambda k: k.model().fit(k.X, k.S, np.ones(39)),
        "(39,)",
        "(40,)",
        wording="scikit-learn's",
    ),
    refused(
        "sample_weight is negative",
        ValueError,
        lambda k: k.model().fit(k.X, k.S, -np.ones(40)),
        "egative",
        wording="scikit-learn's",
    ),
    refused(
        "sample_weight is zero",
        ValueError,
        lambda k: k.model().fit(k.X, k.S, np.zeros(40)),
        "zero",
        wording="scikit-learn's",
    ),
    refused(
        "sample_weight has a NaN",
        ValueError,
        lambda k: k.model().fit(k.X, k.S, np.r_[np.nan, np.ones(39)]),
        "NaN",
        wording="scikit-learn's",
    ),
]

VALIDATION_ROWS = [
    refused(
        "X_val without y_val", ValueError, lambda k: k.model().fit(k.X, k.S, X_val=k.X), "belong together", "both"
    ),
    refused(
        "y_val without X_val", ValueError, lambda k: k.model().fit(k.X, k.S, y_val=k.S), "belong together", "both"
    ),
    refused(
        "X_val with other features",
        ValueError,
        lambda k: k.model().fit(k.X, k.S, X_val=k.X[:, :3], y_val=k.S),
        "3 features",
        wording="scikit-learn's",
    ),
    refused(
        "y_val with an unknown label",
        ValueError,
        lambda k: k.model().fit(k.X, k.names, X_val=k.X[:2], y_val=["cat", "horse"]),
        "'horse'",
        "row 1",
    ),
    refused(
        "y_val shorter than X_val",
        ValueError,
        lambda k: k.model().fit(k.X, k.S, X_val=k.X, y_val=k.S[:3]),
        "40 rows",
        "y has 3",
    ),
    refused(
        "X_val beside validation_fraction",
        ValueError,
        lambda k: k.model(validation_fraction=0.2).fit(k.X, k.S, X_val=k.X, y_val=k.S),
        "not both",
    ),
    refused(
        "patience without validation rows",
        ValueError,
        lambda k: k.model(patience=3).fit(k.X, k.S),
        "no validation rows",
        "validation_fraction",
    ),
    refused(
        "validation_fraction leaves one row",
        ValueError,
        lambda k: k.model(validation_fraction=0.97).fit(k.X, k.S),
        "leaves 1 of 40",
    ),
]

PREDICT_ROWS = [
    refused(
        "predict before fit", NotFittedError, lambda k: CC().predict(k.X), "not fitted", wording="scikit-learn's"
    ),
    refused(
        "score before fit",
        NotFittedError,
        lambda k: IDGP().score(k.X, k.S),
        "not fitted",
        wording="scikit-learn's",
    ),
    refused(
        "disambiguate before fit",
        NotFittedError,
        lambda k: PRODEN().disambiguate(k.X, k.S),
        "not fitted",
        wording="scikit-learn's",
    ),
    refused(
        "save before fit",
        NotFittedError,
        lambda k: CC().save(k.folder / "model"),
        "not fitted",
        wording="scikit-learn's",
    ),
    refused(
        "a card that would take the place of its model",
        ValueError,
        lambda k: k.fitted.save(k.folder / "model.md", card=True),
        "model.md' is the name of the card; name the model otherwise",
    ),
    refused(
        "a card that is a number",
        TypeError,
        lambda k: k.fitted.save(k.folder / "model", card=1.5),
        "card is 1.5, but must be True, False, or words",
    ),
    refused(
        "predict with fewer features",
        ValueError,
        lambda k: k.fitted.predict(k.X[:, :3]),
        "3 features",
        "4 features",
        wording="scikit-learn's",
    ),
    refused(
        "predict with more features",
        ValueError,
        lambda k: k.fitted.predict(np.c_[k.X, k.X]),
        "8 features",
        "4 features",
        wording="scikit-learn's",
    ),
    refused("predict one row as a vector", ValueError, lambda k: k.fitted.predict(k.X[0]), "reshape(1, -1)"),
    refused("predict None", TypeError, lambda k: k.fitted.predict(None), "NoneType"),
    refused(
        "predict no rows",
        ValueError,
        lambda k: k.fitted.predict(k.X[:0]),
        "0 sample(s)",
        wording="scikit-learn's",
    ),
    refused("predict rows with NaN", ValueError, lambda k: k.fitted.predict(with_value(k.X, np.nan)), "row 3"),
    refused(
        "predict a frame with other column names",
        ValueError,
        lambda k: k.by_name.predict(k.frame.rename(columns={"a": "z"})),
        "feature names",
        "- z",
        wording="scikit-learn's",
    ),
    refused(
        "predict a frame with columns in another order",
        ValueError,
        lambda k: k.by_name.predict(k.frame[list("dcba")]),
        "feature names",
        "order",
        wording="scikit-learn's",
    ),
    refused(
        "predict a frame with the label still in it",
        ValueError,
        lambda k: k.by_name.predict(k.frame.assign(label=1.0)),
        "feature names",
        "- label",
        wording="scikit-learn's",
    ),
    warned(
        "predict an array after fitting a frame",
        lambda k: k.by_name.predict(k.X),
        "does not have valid feature names",
        holds=lambda found: len(found) == 40,
    ),
    refused(
        "predict images with a model of tables",
        ValueError,
        lambda k: k.fitted.predict(k.images),
        "(1, 6, 6)",
        "(4,)",
    ),
    refused(
        "predict a table with a model of images",
        ValueError,
        lambda k: k.of_images.predict(k.images.reshape(40, 36)),
        "(40, 36)",
        "(n, height, width)",
    ),
    refused(
        "predict images of another size",
        ValueError,
        lambda k: k.of_images.predict(k.images[:, :4, :4]),
        "(1, 4, 4)",
        "(1, 6, 6)",
    ),
    refused(
        "predict colour images with a model of gray ones",
        ValueError,
        lambda k: k.of_images.predict(np.stack([k.images] * 3, axis=3)),
        "(3, 6, 6)",
        "(1, 6, 6)",
    ),
    refused(
        "score with labels that the model does not know",
        ValueError,
        lambda k: k.by_name.score(k.X[:2], ["cat", "horse"]),
        "'horse'",
        "row 1",
    ),
    refused(
        "score with names after fitting numbers", ValueError, lambda k: k.fitted.score(k.X, k.names), "'cat'", "40"
    ),
    refused(
        "score with a matrix of more classes",
        ValueError,
        lambda k: k.fitted.score(k.X, np.eye(4)[k.y]),
        "3",
        "4 columns",
    ),
    refused("score without labels", ValueError, lambda k: k.fitted.score(k.X, None), "target y is None"),
    refused("score with too few labels", ValueError, lambda k: k.fitted.score(k.X, k.y[:5]), "y has 5"),
    refused(
        "disambiguate without candidates", ValueError, lambda k: k.fitted.disambiguate(k.X, None), "y is None"
    ),
    refused(
        "disambiguate with too few sets", ValueError, lambda k: k.fitted.disambiguate(k.X, k.S[:3]), "y has 3"
    ),
    refused(
        "disambiguate an empty set",
        ValueError,
        lambda k: k.by_name.disambiguate(k.frame[:2], [["cat"], []]),
        "empty in row 1",
    ),
    refused(
        "disambiguate with columns in another order",
        ValueError,
        lambda k: k.by_name.disambiguate(
            k.frame[:2], pd.DataFrame([[1, 0, 1], [0, 1, 1]], columns=["dog", "cow", "cat"])
        ),
        "order",
    ),
    works("predict a single row", lambda k: k.fitted.predict(k.X[:1]), lambda found: found.shape == (1,)),
    works(
        "score with a label that the test rows lack",
        lambda k: k.by_name.score(k.frame[:1], ["cat"]),
        lambda score: score in (0, 1),
    ),
]

IMAGE_ROWS = [
    refused(
        "images of 64-bit integers",
        ValueError,
        lambda k: k.model().fit(k.images.astype(int), k.S),
        "int64",
        "uint8 or float",
    ),
    refused(
        "images with infinite pixels",
        ValueError,
        lambda k: k.model().fit(np.where(k.images == 0, np.inf, k.images), k.S),
        "infinity",
    ),
    refused(
        "floats up to 255 for views that change colours",
        ValueError,
        lambda k: k.model(views="plain+strong").fit(k.images.astype(np.float32), k.S),
        "255",
        "uint8",
    ),
    refused(
        "views for images on a table",
        ValueError,
        lambda k: k.model(views="weak").fit(k.X, k.S),
        "for images",
        "'plain' or 'jitter'",
    ),
    refused(
        "a network for images on a table",
        ValueError,
        lambda k: k.model(network="lenet").fit(k.X, k.S),
        "'lenet' needs images",
        "network='mlp'",
    ),
    refused(
        "a network for images on tiny images",
        ValueError,
        lambda k: k.model(network="lenet").fit(k.images[:, :3, :3], k.S),
        "4 x 4",
    ),
    refused(
        "a method that compares views without views",
        ValueError,
        lambda k: PiCO(epochs=1).fit(k.X, k.S),
        "views is None",
        "plain+jitter+jitter",
    ),
    works("bytes are images", lambda k: k.of_images.input_shape_, lambda shape: shape == (1, 6, 6)),
    works(
        "floats are images",
        lambda k: k.model().fit(k.images / 255, k.S).input_shape_,
        lambda shape: shape == (1, 6, 6),
    ),
    works(
        "half-precision floats are images",
        lambda k: k.model().fit((k.images / 255).astype(np.float16), k.S).input_shape_,
        lambda shape: shape == (1, 6, 6),
    ),
    works(
        "colour images have channels first in messages",
        lambda k: k.model().fit(np.stack([k.images] * 3, axis=3), k.S).input_shape_,
        lambda shape: shape == (3, 6, 6),
    ),
]


@parametrize([*X_ROWS, *Y_ROWS, *WEIGHT_ROWS, *VALIDATION_ROWS, *PREDICT_ROWS, *IMAGE_ROWS])
def test_data(row, kit):
    carry_out(row, kit)
