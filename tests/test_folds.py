"""CandidateKFold, scorers, and disambiguation of anybody's probabilities."""

import numpy as np
import pandas as pd
import pytest
import sklearn
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import oneof
from oneof import CandidateKFold
from oneof.metrics import approximated_accuracy, set_log_likelihood

NAMES = np.array(["cat", "cow", "dog"])


@st.composite
def matrices(draw):
    """Candidate sets of any balance, sorted as tables often are."""
    n, K = draw(st.integers(6, 60)), draw(st.integers(2, 6))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    y = np.sort(rng.choice(K, size=n, p=rng.dirichlet(np.ones(K))))
    S = rng.random((n, K)) < draw(st.sampled_from([0.0, 0.2, 0.6]))
    S[np.arange(n), y] = True
    return S


# --- folds -------------------------------------------------------------------------------------------------------


@given(S=matrices(), n_splits=st.integers(2, 6), shuffle=st.booleans())
def test_folds_part_the_rows(S, n_splits, shuffle):
    folds = CandidateKFold(n_splits, shuffle=shuffle, random_state=3 if shuffle else None)
    parts = list(folds.split(S, S))
    assert len(parts) == folds.get_n_splits() == n_splits
    assert np.array_equal(np.sort(np.concatenate([test for _, test in parts])), np.arange(len(S)))
    for train, test in parts:
        assert np.array_equal(np.union1d(train, test), np.arange(len(S)))
        assert not np.intersect1d(train, test).size


def test_training_parts_have_every_label():
    """Rare labels of rows sorted by class; cut in order, nearly all training parts lack one."""
    rng, lacking = np.random.default_rng(0), {"ours": 0, "cut": 0}
    for _ in range(50):
        y = np.sort(rng.choice(8, size=120, p=np.array([2, 2, 3, 8, 15, 20, 25, 25]) / 100))
        S = rng.random((120, 8)) < 0.02
        S[np.arange(120), y] = True
        for name, splitter in (("ours", CandidateKFold(5)), ("cut", KFold(5))):
            parts = [train for train, _ in splitter.split(S, S)]
            lacking[name] += sum(bool((~S[train].any(0))[S.sum(0) >= 2].any()) for train in parts)
    assert lacking["ours"] == 0
    assert lacking["cut"] > 20


@pytest.mark.parametrize("shuffle", [False, True])
def test_plain_labels_are_split_as_by_stratification(shuffle):
    """With one label a row, every fold has its share of every class, up to one row."""
    y = np.repeat([0, 1, 2], [50, 23, 7])
    for _, test in CandidateKFold(5, shuffle=shuffle, random_state=0 if shuffle else None).split(None, y):
        assert (np.abs(np.bincount(y[test], minlength=3) - np.array([10, 4.6, 1.4])) < 1).all()


def test_balance_is_better_than_that_of_random_folds():
    rng = np.random.default_rng(0)
    y = rng.choice(12, size=300, p=np.arange(1, 13) / 78)
    S = rng.random((300, 12)) < 0.15
    S[np.arange(300), y] = True

    def imbalance(splitter):
        return np.mean([np.abs(S[test].mean(0) - S.mean(0)).mean() for _, test in splitter.split(S, S)])

    random = np.mean([imbalance(KFold(5, shuffle=True, random_state=seed)) for seed in range(5)])
    ours = CandidateKFold(5, shuffle=True, random_state=0)
    assert imbalance(ours) < random / 3
    assert max(len(test) for _, test in ours.split(S, S)) <= 66


def test_every_form_of_y_is_split_alike(blobs):
    X, S, _ = blobs
    sets = [NAMES[row].tolist() for row in S]
    expected = [test.tolist() for _, test in CandidateKFold(4).split(X, S)]
    for other in (sets, pd.Series(sets), pd.DataFrame(S, columns=NAMES), torch.as_tensor(S)):
        assert [test.tolist() for _, test in CandidateKFold(4).split(X, other)] == expected


def test_seeds_and_repr():
    S = np.eye(3)[np.arange(30) % 3]

    def first(seed):
        return next(iter(CandidateKFold(3, shuffle=True, random_state=seed).split(S, S)))[1].tolist()

    assert first(1) == first(1) != first(2)
    assert repr(CandidateKFold(3)) == "CandidateKFold(n_splits=3, random_state=None, shuffle=False)"


@pytest.mark.filterwarnings("error::UserWarning")
def test_rows_sorted_by_class_are_no_trap():
    X, y = load_iris(return_X_y=True)  # sorted by class
    S = np.random.default_rng(0).random((len(y), 3)) < 0.3
    S[np.arange(len(y)), y] = True
    assert cross_val_score(oneof.CC(epochs=20, random_state=0), X, S, cv=CandidateKFold(3)).mean() > 0.6
    search = GridSearchCV(oneof.CC(epochs=20, random_state=0), {"lr": [1e-7, 0.1]}, cv=CandidateKFold(3))
    assert search.fit(X, S).best_params_ == {"lr": 0.1}


def test_the_warning_of_sorted_rows_names_the_splitter():
    X, y = load_iris(return_X_y=True)
    with pytest.warns(UserWarning, match=r"cv=oneof\.CandidateKFold\(5\)"):
        cross_val_score(oneof.CC(epochs=1, random_state=0), X, np.eye(3)[y], cv=3)


# --- scorers -----------------------------------------------------------------------------------------------------


def test_scorers_are_means_of_metrics(blobs):
    X, S, y = blobs
    sets = [NAMES[row].tolist() for row in S]
    model = make_pipeline(StandardScaler(), oneof.CC(epochs=5, random_state=0)).fit(X, sets)
    p = model.predict_proba(X)
    assert np.isclose(oneof.SCORERS["approximated_accuracy"](model, X, sets), approximated_accuracy(p, S).mean())
    assert oneof.SCORERS["covering_rate"](model, X, sets) == S[np.arange(40), p.argmax(1)].mean()
    by_hand = np.mean([np.log(sum(p[i, k] for k in range(3) if S[i, k])) for i in range(40)])
    assert np.isclose(oneof.SCORERS["set_log_likelihood"](model, X, sets), by_hand)
    assert oneof.SCORERS["accuracy"](model, X, NAMES[y]) == (model.predict(X) == NAMES[y]).mean()


def test_scorers_judge_classifiers_of_others(blobs):
    X, S, y = blobs
    forest = RandomForestClassifier(5, random_state=0).fit(X, NAMES[y])
    frame = pd.DataFrame(S, columns=NAMES)
    assert oneof.SCORERS["covering_rate"](forest, X, frame) > 0.9
    assert np.isfinite(oneof.SCORERS["set_log_likelihood"](forest, X, frame))


def test_all_scorers_at_once(blobs):
    X, S, _ = blobs
    several = {name: scorer for name, scorer in oneof.SCORERS.items() if name != "accuracy"}
    result = cross_validate(oneof.CC(epochs=20, random_state=0), X, S, cv=CandidateKFold(4), scoring=several)
    assert {f"test_{name}" for name in several} <= result.keys()
    search = GridSearchCV(
        oneof.CC(epochs=20, random_state=0),
        {"lr": [1e-7, 0.1]},
        cv=CandidateKFold(3),
        scoring=oneof.SCORERS["set_log_likelihood"],
    )
    assert search.fit(X, S).best_params_ == {"lr": 0.1}


def test_accuracy_takes_true_labels_beside_candidate_sets(blobs):
    """Fit on candidate sets, judged by true labels that travel through the same folds."""
    X, S, y = blobs
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = oneof.SCORERS["accuracy"].set_score_request(truth=True)
        settings = {"cv": CandidateKFold(4), "params": {"truth": y}}
        found = cross_validate(oneof.CC(epochs=20, random_state=0), X, S, scoring=scorer, **settings)
    by_hand = [
        (oneof.CC(epochs=20, random_state=0).fit(X[train], S[train]).predict(X[test]) == y[test]).mean()
        for train, test in CandidateKFold(4).split(X, S)
    ]
    assert found["test_score"].tolist() == by_hand


def test_the_set_likelihood_of_zero_is_that_of_the_resolution():
    p, S = np.array([[1.0, 0.0], [0.25, 0.75]]), np.array([[False, True], [True, False]])
    assert np.allclose(set_log_likelihood(p, S), [np.log(np.finfo(float).eps), np.log(0.25)])


# --- probabilities from anywhere ---------------------------------------------------------------------------------


def test_disambiguation_of_a_model_at_hand(blobs):
    X, S, y = blobs
    sets = [NAMES[row].tolist() for row in S]
    model = LogisticRegression()
    p = cross_val_predict(model, X, NAMES[y], cv=4, method="predict_proba")
    found = oneof.disambiguate(p, sets, classes=NAMES)
    for i, row in enumerate(S):
        inside = {NAMES[k]: p[i, k] for k in range(3) if row[k]}
        best = max(inside, key=inside.get)
        first, *others = sorted((value / sum(inside.values()) for value in inside.values()), reverse=True)
        assert found.label[i] == best
        assert np.isclose(found.probability[i], first)
        assert np.isclose(found.margin[i], first - (others[0] if others else 0))
    assert oneof.disambiguate(pd.DataFrame(p, columns=NAMES), sets).label.tolist() == found.label.tolist()
    assert oneof.disambiguate(torch.as_tensor(p), S).label.tolist() == [*map(NAMES.tolist().index, found.label)]
    texts = ["|".join(names) for names in sets]
    assert oneof.disambiguate(p, texts, NAMES, separator="|").label.tolist() == found.label.tolist()


def test_disambiguation_is_that_of_a_method(blobs):
    X, S, _ = blobs
    model = oneof.CC(epochs=5, random_state=0, precision="fp64").fit(X, S)
    ours, theirs = model.disambiguate(X, S), oneof.disambiguate(model.predict_proba(X), S)
    assert type(ours) is type(theirs)
    assert ours.label.tolist() == theirs.label.tolist()
    assert np.allclose(ours.probability, theirs.probability)


def test_classes_of_a_frame_in_another_order_are_not_swapped():
    p = pd.DataFrame([[0.7, 0.2, 0.1]], columns=["dog", "cat", "cow"])
    assert oneof.disambiguate(p, [["cat", "dog"]]).label.tolist() == ["dog"]


def test_rows_whose_candidates_are_impossible_are_doubtful():
    with pytest.warns(UserWarning, match="probability 0 in row 1"):
        found = oneof.disambiguate([[0.5, 0.5, 0], [0, 0, 1]], np.array([[1, 1, 0], [1, 1, 0]]))
    assert found.probability.tolist() == [0.5, 0.5]
