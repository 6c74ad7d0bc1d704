"""EMClassifier: the rounds against loops in float64, scikit-learn's contract, and what it does on real digits."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from sklearn.base import clone
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

import oneof
from oneof.em.estimators import fit_copies
from oneof.em.rounds import learn
from oneof.labels import CandidateKFold

EM = oneof.EMClassifier
NAMED = ["extra-trees", "random-forest", "logistic", "lightgbm", "xgboost"]


def named(name, **settings):
    """A named estimator in a small form; a library that is not installed skips the test visibly."""
    if name in ("lightgbm", "xgboost"):
        pytest.importorskip(name)
    parameters = None if name == "logistic" else {"n_estimators": 10}
    return EM(name, parameters=parameters, random_state=0, **settings)


# --- scikit-learn's contract -----------------------------------------------------------------------------------


@parametrize_with_checks([EM(LogisticRegression()), EM(DecisionTreeClassifier()), EM(GaussianNB())])
def test_scikit_learn(estimator, check):
    check(estimator)


def test_boosted_trees_keep_the_contract():
    pytest.importorskip("lightgbm")
    from sklearn.utils.estimator_checks import check_estimator

    check_estimator(EM("lightgbm", parameters={"n_estimators": 5}))


def test_pickle_clone_and_nested_parameters(blobs):
    X, S, _ = blobs
    model = EM(ExtraTreesClassifier(5), random_state=0).fit(X, S)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(model.predict_proba(X), again.predict_proba(X))
    fresh = clone(model)
    assert not hasattr(fresh, "estimator_")
    assert np.array_equal(fresh.fit(X, S).predict_proba(X), model.predict_proba(X))
    assert fresh.set_params(estimator__n_estimators=3).fit(X, S).estimator_.n_estimators == 3
    search = GridSearchCV(EM(LogisticRegression()), {"estimator__C": [1e-6, 1.0]}, cv=CandidateKFold(3))
    assert search.fit(X, S).best_params_ == {"estimator__C": 1.0}


def test_the_given_classifier_stays_as_it_is(blobs):
    X, S, _ = blobs
    inside = RandomForestClassifier(3)
    before = inside.get_params()
    EM(inside, parameters={"n_estimators": 2}, random_state=0).fit(X, S)
    assert inside.get_params() == before
    assert not hasattr(inside, "estimators_")


# --- mathematics -------------------------------------------------------------------------------------------------


def em_by_loops(estimator, X, candidates, weight, rounds, folds, seed):
    """The definition: every copy in a list, every fold and every sum by itself."""
    n, K = candidates.shape
    r = [[candidates[i, j] / sum(candidates[i]) for j in range(K)] for i in range(n)]

    def fit(rows):
        copies = [(X[i], j, weight[i] * r[i][j]) for i in rows for j in range(K) if r[i][j] >= 1e-3]
        x, y, w = map(np.array, zip(*copies, strict=True))
        return clone(estimator).fit(x, y, sample_weight=w)

    losses = []
    for _ in range(rounds):
        after = [None] * n
        total = 0.0
        for training, test in CandidateKFold(folds, shuffle=True, random_state=seed).split(X, candidates > 0):
            model = fit(training)
            for i in test:
                p = dict(zip(model.classes_, model.predict_proba(X[i : i + 1])[0], strict=True))
                joint = [candidates[i, j] * p.get(j, 0.0) for j in range(K)]
                after[i] = [value / sum(joint) for value in joint]
                total -= weight[i] * np.log(sum(joint))
        losses.append(total / sum(weight))
        r = after
    return np.array(r), losses, fit(range(n))


@pytest.mark.parametrize("weighted_candidates", [False, True])
def test_rounds_are_those_of_loops(weighted_candidates, blobs):
    X, S, _ = blobs
    rng = np.random.default_rng(3)
    candidates = S * rng.uniform(0.2, 1, S.shape) if weighted_candidates else S.astype(float)
    weight = rng.uniform(0.5, 2, len(X))
    estimator = LogisticRegression()
    found = learn(estimator, X, candidates, weight, 3, 4, 0.0, 5)
    r, losses, model = em_by_loops(estimator, X, candidates, weight, 3, 4, 5)
    assert np.allclose(found.distributions, r, atol=1e-12)
    assert np.allclose(found.history["loss"], losses, atol=1e-12)
    assert np.allclose(found.fitted.probabilities(X, 3), model.predict_proba(X), atol=1e-12)


def test_weights_of_candidates_are_honoured(blobs):
    X, S, y = blobs
    plain = EM(LogisticRegression(), random_state=0).fit(X, S)
    equal = EM(LogisticRegression(), random_state=0).fit(X, oneof.WeightedSets(S))
    assert np.array_equal(equal.predict_proba(X), plain.predict_proba(X))
    weights = np.where(np.eye(3)[y] > 0, 1.0, 1e-6) * S  # somebody knows it
    known = EM(LogisticRegression(), random_state=0).fit(X, oneof.WeightedSets(weights))
    assert (known.transduction_ == y).all()
    assert known.history_["change"][0] < 1e-4
    model = EM(LogisticRegression(), random_state=0).fit(X, S)
    p = model.predict_proba(X) * weights
    found = model.disambiguate(X, oneof.WeightedSets(weights))
    assert np.allclose(found.probability, p.max(1) / p.sum(1))
    assert np.allclose(
        oneof.disambiguate(model.predict_proba(X), oneof.WeightedSets(weights))[1], found.probability
    )
    votes = oneof.from_votes([[int(t), int(t), int((t + 1) % 3)] for t in y])
    assert EM(LogisticRegression(), random_state=0).fit(X, votes).score(X, y) > 0.9


def test_labels_of_a_row_come_from_fits_that_have_not_seen_it(blobs):
    """A tree that grows to the end repeats what it was given: in-sample nothing would change."""
    X, S, y = blobs
    tree = DecisionTreeClassifier(random_state=0)
    uniform = S / S.sum(1, keepdims=True)
    in_sample = fit_copies(tree, X, uniform, np.ones(len(X))).probabilities(X, 3)
    assert np.allclose(in_sample, uniform)
    model = EM(tree, random_state=0).fit(X, S)
    assert model.history_["change"][0] > 0.1
    assert (model.transduction_ == y).mean() > (uniform.max(1) == 1).mean() + 0.2


def test_certain_rows_need_no_rounds(blobs):
    X, _, y = blobs
    model = EM(LogisticRegression(), random_state=0).fit(X, y)
    assert model.history_ == {"loss": [], "change": []}
    assert np.array_equal(model.predict_proba(X), LogisticRegression().fit(X, y).predict_proba(X))
    assert np.array_equal(model.label_distributions_, np.eye(3)[y])


def test_rounds_end_when_labels_settle(blobs):
    X, S, _ = blobs
    long = EM(LogisticRegression(), rounds=50, tol=1e-4, random_state=0).fit(X, S).history_["change"]
    assert long[-1] <= 1e-4 < min(long[:-1])
    assert len(EM(LogisticRegression(), rounds=2, tol=0, random_state=0).fit(X, S).history_["loss"]) == 2


def test_rows_of_weight_0_are_only_predicted(blobs):
    X, S, _ = blobs
    weight = np.ones(40)
    weight[30:] = 0
    model = EM(LogisticRegression(), random_state=0).fit(X, S, sample_weight=weight)
    fewer = EM(LogisticRegression(), random_state=0).fit(X[:30], S[:30])
    assert np.array_equal(model.predict_proba(X), fewer.predict_proba(X))
    p = fewer.predict_proba(X[30:]) * S[30:]
    assert np.allclose(model.label_distributions_[30:], p / p.sum(1, keepdims=True))


def test_a_class_that_a_fold_lacks_and_one_that_no_row_keeps():
    X = np.arange(8.0)[:, None]
    sets = [{"a"}, {"a"}, {"a", "b"}, {"a"}, {"a"}, {"a", "b"}, {"a"}, {"a"}]
    model = EM(GaussianNB(), random_state=0).fit(X, sets)  # b is certain nowhere
    assert model.classes_.tolist() == ["a", "b"]
    assert np.allclose(model.predict_proba(X).sum(1), 1)
    frame = pd.DataFrame({"a": [1, 1, 1, 1], "b": [0, 0, 0, 0]})
    with pytest.warns(UserWarning, match="'b' is a candidate of no training row"):
        alone = EM(GaussianNB()).fit(X[:4], frame)
    assert alone.predict_proba(X).tolist() == [[1.0, 0.0]] * 8


# --- what it does ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMED)
def test_every_named_estimator_learns(name, blobs):
    X, S, y = blobs
    assert named(name).fit(X, S).score(X, y) > 0.85


@pytest.mark.parametrize("inside", [HistGradientBoostingClassifier(max_iter=10), GaussianNB()], ids=repr)
def test_any_other_classifier_learns(inside, blobs):
    X, S, y = blobs
    assert EM(inside, random_state=0).fit(X, S).score(X, y) > 0.85


def test_a_pipeline_inside_and_outside(blobs):
    X, S, y = blobs
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    inside = EM(pipeline, parameters={"C": 0.5}, random_state=0).fit(X, S)
    assert inside.estimator_[-1].C == 0.5
    assert inside.score(X, y) > 0.9
    assert make_pipeline(StandardScaler(), EM(LogisticRegression(), random_state=0)).fit(X, S).score(X, y) > 0.9


def test_rounds_help_on_digits(digits):
    """Out of fold the rounds find labels that uniform weights do not, and test accuracy rises."""
    X, S, y = digits
    train, test = np.arange(1000), np.arange(1000, 1797)
    settings = {"parameters": {"n_estimators": 30}, "random_state": 0}
    model = EM("extra-trees", **settings).fit(X[train], S[train])
    plain = fit_copies(ExtraTreesClassifier(30, random_state=0), X[train], S[train] / S[train].sum(1)[:, None],
                       np.ones(1000))  # fmt: skip
    assert model.history_["loss"][-1] < model.history_["loss"][0]
    assert (model.transduction_ == y[train]).mean() > 0.93
    assert model.score(X[test], y[test]) >= (plain.probabilities(X[test], 10).argmax(1) == y[test]).mean()


def test_every_form_of_x_and_y(blobs):
    X, S, _ = blobs
    X = X.astype(np.float32)
    expected = EM(LogisticRegression(), random_state=0).fit(X, S).predict_proba(X)
    frame = pd.DataFrame(X, columns=list("abcd"))
    for other in (torch.as_tensor(X), frame, X.tolist()):
        model = EM(LogisticRegression(), random_state=0).fit(other, S)
        assert np.allclose(model.predict_proba(other), expected, atol=1e-4)  # a list is float64
    sets = [set(np.flatnonzero(row).tolist()) for row in S]
    for other in (scipy.sparse.csr_matrix(S), S.astype(int), pd.DataFrame(S), torch.as_tensor(S), sets):
        assert np.array_equal(EM(LogisticRegression(), random_state=0).fit(X, other).predict_proba(X), expected)
    names = np.array(["cat", "cow", "dog"])
    texts = ["|".join(names[row]) for row in S]
    model = EM(LogisticRegression(), random_state=0).fit(frame, texts, separator="|")
    assert model.classes_.tolist() == names.tolist()
    assert model.feature_names_in_.tolist() == list("abcd")
    assert np.array_equal(model.predict_proba(frame), expected)
    found = model.disambiguate(frame, texts, separator="|")
    assert all(label in text.split("|") for label, text in zip(found.label, texts, strict=True))
    assert model.score(frame, texts, separator="|") == model.score(frame, [text.split("|") for text in texts])


def test_scores_and_weights(blobs):
    X, S, y = blobs
    model = EM(LogisticRegression(C=0.01), random_state=0).fit(X, S)
    weight = np.random.default_rng(0).random(40)
    right = model.predict(X) == y
    assert model.score(X, y) == right.mean()
    assert np.isclose(model.score(X, y, sample_weight=weight), np.average(right, weights=weight))
    assert np.allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))
    assert cross_val_score(model, X, S, cv=CandidateKFold(4)).mean() > 0.7


def test_what_is_inside_must_take_weights(blobs):
    X, S, _ = blobs
    for wrong in (KNeighborsClassifier(), LogisticRegression, "forest", 3, None, make_pipeline(StandardScaler())):
        with pytest.raises(ValueError, match=r"estimator of EMClassifier is .*takes? sample_weight"):
            EM(wrong).fit(X, S)


def test_rows_to_score_whose_label_no_training_row_had_are_doubtful(blobs):
    X, _, y = blobs
    matrix = np.eye(3, dtype=bool)[y]
    with pytest.warns(UserWarning, match="class 2 is a candidate of no training row"):
        model = EM(LogisticRegression(), rounds=1, random_state=0).fit(X[y < 2], matrix[y < 2])
    with pytest.warns(UserWarning, match=r"y has no label but 2 in rows .* count as wrong.*CandidateKFold"):
        model.score(X, matrix)
