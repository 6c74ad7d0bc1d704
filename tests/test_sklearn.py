"""The estimator contract of scikit-learn, for every method."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import oneof
from conftest import MEMBERS, every_method
from oneof import DIRK, PLCR, CroSel, Membership, PaPi, PiCO
from oneof.methods.mixing import Mixing
from oneof.testing.contract import SKLEARN_SETTINGS

# PLCR, PiCO and DIRK draw noise for every row, or compare the rows of a batch; Membership draws rows that only its
# judge sees; PaPi, CroSel and all with mixup mix rows of a batch. A row of weight two is not two rows.
PAIRED = (PLCR, PiCO, DIRK, PaPi, CroSel, Membership)
ROWS_COUNT = {
    f"check_sample_weight_equivalence_on_{kind}_data": "a weight of two cannot imitate two rows that meet or part"
    for kind in ("dense", "sparse")
}

# The target of a sure teacher is nearly a tie of the label and the likeliest other one, whatever a row weighs.
NEAR_TIES = {"check_class_weight_classifiers": "a target near a tie gives an enormous weight little to win by"}


def fails(estimator):
    mixing = isinstance(estimator, Mixing) and estimator.mixes  # by default, on the few rows of a check
    known = ROWS_COUNT if isinstance(estimator, PAIRED) or mixing else {}
    return known | (NEAR_TIES if isinstance(estimator, DIRK) else {})


@parametrize_with_checks(
    [method(**SKLEARN_SETTINGS) for method in MEMBERS.values()],
    expected_failed_checks=fails,
)
def test_scikit_learn(estimator, check):
    check(estimator)


@every_method
def test_pickle_and_clone(method, blobs):
    X, S, _ = blobs
    model = method(epochs=3, random_state=0).fit(X, S)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(model.predict_proba(X), again.predict_proba(X))
    fresh = clone(model)
    assert fresh.get_params() == model.get_params()
    assert not hasattr(fresh, "network_")
    assert np.array_equal(fresh.fit(X, S).predict_proba(X), model.predict_proba(X))


@every_method
def test_pipeline_cross_validation_and_grid_search(method, blobs):
    X, S, y = blobs
    pipeline = make_pipeline(MinMaxScaler(), method(epochs=20, random_state=0))
    assert pipeline.fit(X, S).score(X, y) > 0.9
    assert cross_val_score(method(epochs=20, random_state=0), X, S, cv=KFold(4)).mean() > 0.7
    assert cross_val_score(method(epochs=5, random_state=0), X, S, cv=3).shape == (3,)
    search = GridSearchCV(method(epochs=20, random_state=0), {"lr": [1e-7, 0.1]}, cv=KFold(3)).fit(X, S)
    assert search.best_params_ == {"lr": 0.1}
    assert search.best_estimator_.predict(X).shape == y.shape


def test_lists_in_cross_validation_name_encode(blobs):
    X, _, y = blobs
    names = [{int(label)} for label in y[:38]] + [{0, 9}, {1, 9}]  # class 9 is in the last fold alone
    with pytest.raises(ValueError, match=r"unknown labels \(9\).*oneof\.encode"):
        cross_val_score(oneof.CC(epochs=1), X, names, cv=KFold(4), error_score="raise")
    matrix, classes = oneof.encode(names)
    assert cross_val_score(oneof.CC(epochs=1), X, matrix, cv=KFold(4), error_score="raise").shape == (4,)
    assert classes.tolist() == [0, 1, 2, 9]


def sorted_iris():
    X, y = load_iris(return_X_y=True)  # sorted by class
    candidates = np.random.default_rng(0).random((len(y), 3)) < 0.3
    candidates[np.arange(len(y)), y] = True
    return X, np.eye(3)[y], candidates


def test_folds_of_sorted_rows_are_doubtful():
    X, plain, candidates = sorted_iris()
    with pytest.warns(UserWarning, match="training row") as caught:
        cross_val_score(oneof.CC(epochs=2, random_state=0), X, plain, cv=3)
    texts = [str(each.message) for each in caught if each.category is UserWarning]
    assert (
        len([text for text in texts if "of no training row" in text and "cv=oneof.CandidateKFold(5)" in text]) == 3
    )
    assert len([text for text in texts if "count as wrong" in text]) == 3
    # Here every class is a candidate of training rows, but the true label of none in one of the folds.
    with pytest.warns(UserWarning, match=r"class 0 is a candidate of nearly all rows of y, .*CandidateKFold"):
        cross_val_score(oneof.CC(epochs=2, random_state=0), X, candidates, cv=3)


@pytest.mark.filterwarnings("error::UserWarning")
def test_shuffled_folds_are_not():
    X, plain, candidates = sorted_iris()
    for matrix in (plain, candidates):
        folds = KFold(3, shuffle=True, random_state=0)
        assert cross_val_score(oneof.CC(epochs=20, random_state=0), X, matrix, cv=folds).mean() > 0.6


def test_a_separator_reaches_everything_that_takes_labels(blobs):
    X, S, y = blobs
    names = np.array(["cat", "cow", "dog"])
    sets, texts = [names[row].tolist() for row in S], ["|".join(names[row]) for row in S]
    settings = {"epochs": 3, "random_state": 0, "patience": 2}
    expected = oneof.CC(**settings).fit(X, sets, X_val=X, y_val=sets)
    model = oneof.CC(**settings).fit(X, pd.Series(texts), X_val=X, y_val=texts, separator="|")
    assert model.classes_.tolist() == names.tolist()
    assert model.history_ == expected.history_
    assert model.score(X, texts, separator="|") == expected.score(X, sets)
    assert model.score(X, names[y], separator="|") == expected.score(X, names[y])
    assert model.disambiguate(X, texts, separator="|").label.tolist() == expected.transduction_.tolist()
    (other,) = oneof.fit_together(
        [oneof.CC(**settings)], [{"X": X, "y": texts, "X_val": X, "y_val": texts, "separator": "|"}]
    )
    assert np.allclose(other.history_["loss"], expected.history_["loss"])
    for act in (model.score, model.disambiguate):
        with pytest.raises(ValueError, match=r"unknown labels \('cat\|.*: pass separator='\|'"):
            act(X, texts)
    with pytest.warns(UserWarning, match=r"contain '\|'.*pass separator='\|' to split them"):
        oneof.CC(epochs=1).fit(X[:30], [text if "|" in text else f"{text}|dog" for text in texts[:30]])


def test_a_model_without_class_names_says_how_to_give_them(blobs):
    X, S, y = blobs
    names = np.array(["cat", "cow", "dog"])
    with pytest.raises(
        ValueError, match=r"the numbers 0, 1, 2, .*fit with pandas\.DataFrame\(matrix, columns=names\)"
    ):
        oneof.CC(epochs=1).fit(X, S).score(X, names[y])
    model = oneof.CC(epochs=1).fit(X, pd.DataFrame(S, columns=names))
    assert 0 <= model.score(X, names[y]) <= 1
    with pytest.raises(ValueError, match=r"names such as 'cat': pass names, or model\.classes_\[y\]"):
        model.score(X, y)
    assert model.score(X, model.classes_[y]) == model.score(X, names[y])


@every_method
def test_every_form_of_x_and_y(method, blobs):
    X, S, _ = blobs
    X = X.astype(np.float32)
    settings = {"epochs": 2, "random_state": 0}
    model = method(**settings).fit(X, S)
    expected = model.predict_proba(X)
    frame = pd.DataFrame(X, columns=list("abcd"))
    for other in (torch.as_tensor(X), torch.tensor(X, requires_grad=True), frame, X.tolist()):
        assert np.allclose(method(**settings).fit(other, S).predict_proba(other), expected, atol=1e-6)
    sets = [set(np.flatnonzero(row).tolist()) for row in S]
    for other in (scipy.sparse.csr_matrix(S), S.astype(int), pd.DataFrame(S), torch.as_tensor(S), sets):
        assert np.array_equal(method(**settings).fit(X, other).predict_proba(X), expected)
    fitted = method(**settings).fit(frame, S)
    assert fitted.feature_names_in_.tolist() == list("abcd")
    with pytest.raises(ValueError, match="feature names"):
        fitted.predict(frame.rename(columns={"a": "z"}))


@every_method
def test_class_names_survive(method, blobs):
    X, S, y = blobs
    names = np.array(["cat", "cow", "dog"])
    sets = [names[row].tolist() for row in S]
    model = method(epochs=20, random_state=0).fit(X, sets)
    assert model.classes_.tolist() == names.tolist()
    assert (model.predict(X) == names[y]).mean() > 0.9
    assert model.score(X, names[y]) > 0.9
    assert set(model.transduction_) <= set(names)
    assert all(label in candidates for label, candidates in zip(model.transduction_, sets, strict=True))
    named = method(epochs=2, random_state=0).fit(X, S, classes=names)
    framed = method(epochs=2, random_state=0).fit(X, pd.DataFrame(S, columns=names))
    assert named.classes_.tolist() == framed.classes_.tolist() == names.tolist()
    assert np.array_equal(named.predict_proba(X), framed.predict_proba(X))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"S": np.ones((40, 3))}, "every candidate set holds all 3 classes"),
        ({"S": np.eye(3)[np.zeros(40, int)][:, :1]}, "class"),
        ({"rows": slice(0, 39)}, "X has 39 rows and y has 40"),
        ({"nan": [2, 5]}, r"NaN or infinity in rows 2, 5 \(2 in all\)"),
        ({"inf": [3]}, "NaN or infinity in row 3"),
        ({"sample_weight": np.zeros(40)}, "sum to 0|zero"),
        ({"sample_weight": -np.ones(40)}, "[Nn]egative"),
        ({"X_val": np.zeros((2, 4))}, "X_val and y_val belong together"),
        ({"X_val": np.zeros((2, 4)), "y_val": [0, 7]}, r"unknown labels \(7\) in row 1"),
    ],
)
def test_defects_of_data_are_named(change, message, blobs):
    X, S, _ = blobs
    X, change = X.copy(), dict(change)
    X[change.pop("nan", [])] = np.nan
    X[change.pop("inf", [])] = np.inf
    with pytest.raises(ValueError, match=message):
        oneof.CC(epochs=1).fit(X[change.pop("rows", slice(None))], change.pop("S", S), **change)


def test_wrong_rows_at_predict_are_named(blobs):
    X, S, _ = blobs
    model = oneof.CC(epochs=1).fit(X, S)
    with pytest.raises(ValueError, match=r"3 features.*expecting 4 features"):
        model.predict(X[:, :3])
    with pytest.raises(ValueError, match=r"rows of shape \(1, 2, 2\).*shape \(4,\)"):
        model.predict(X.reshape(40, 2, 2))
    with pytest.raises(ValueError, match="X has 3 rows and y has 40"):
        model.disambiguate(X[:3], S)
    images = oneof.CC(epochs=1, network="linear").fit(X.reshape(40, 2, 2), S)
    with pytest.raises(ValueError, match=r"shape \(1, 2, 1\)"):
        images.predict(X.reshape(40, 2, 2)[:, :, :1])


@pytest.mark.parametrize(
    ("parameter", "value", "expectation"),
    [
        ("lr", 0, "a number > 0"),
        ("lr", "fast", "a number > 0"),
        ("epochs", 0, "a whole number >= 1"),
        ("epochs", 1.5, "a whole number >= 1"),
        ("batch_size", True, "a whole number >= 1"),
        ("momentum", 1, r"a number in \[0, 1\)"),
        ("patience", 0, "a whole number >= 1 or None"),
        ("precision", "fp16", r"one of \['fp32', 'bf16', 'fp64'\]"),
        ("views", "mirror", r"None or names of \['plain'"),
        ("objective", "em", r"one of \['map', 'ml', 'uniform', 'released'\]"),
        ("m", 1.2, r"a number in \[0, 1\]"),
        ("a", 0, "a number > 0"),
        ("lr_g", -1, "a number > 0 or None"),
    ],
)
def test_wrong_parameters_are_named(parameter, value, expectation, blobs):
    X, S, _ = blobs
    with pytest.raises(ValueError, match=rf"{parameter} of IDGP is {value!r}, but must be {expectation}"):
        oneof.IDGP(**{parameter: value}).fit(X, S)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"network": "vgg"}, "network is 'vgg' but must be one of"),
        ({"network": 5}, "network is 5 but must be one of"),
        ({"validation_fraction": 0.97}, "leaves 1 of 40 rows for training"),
        ({"network": "lenet"}, "needs images of at least 4 x 4"),
        ({"device": "tpu9"}, "device is 'tpu9', but must be"),
        ({"device": "cuda:99"}, "torch sees . GPUs"),
        ({"patience": 3}, "no validation rows"),
        ({"validation_fraction": 0.2, "with_val": True}, "not both"),
    ],
)
def test_settings_that_cannot_be(settings, message, blobs):
    X, S, y = blobs
    validation = {"X_val": X, "y_val": y} if settings.pop("with_val", False) else {}
    with pytest.raises(ValueError, match=message):
        oneof.PRODEN(**settings).fit(X, S, **validation)
