"""Votes: every form gives the same ballots, weights are likelihoods, and annotators are told apart."""

import math
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold, cross_val_score

import oneof
from oneof.labels.annotators import _fit, _row_likelihoods, from_counts, judge
from oneof.labels.ballots import Marks, read_long, read_wide

NAMES = ["cat", "cow", "dog"]
PLAIN = Marks(None, None)


def confusion(accuracy, k=3):
    return np.where(np.eye(k, dtype=bool), accuracy, (1 - accuracy) / (k - 1))


def simulate(rows, matrices, seen=1.0, seed=0):
    """Draw true labels, and votes of annotators with known confusion matrices; -1 where one did not vote."""
    rng = np.random.default_rng(seed)
    k = len(matrices[0])
    y = rng.integers(k, size=rows)
    votes = np.stack([[rng.choice(k, p=matrix[t]) for t in y] for matrix in matrices], 1)
    return y, np.where(rng.random(votes.shape) < seen, votes, -1)


def frame(votes):
    return pd.DataFrame(votes).map(lambda vote: None if vote < 0 else NAMES[vote])


# --- the model ----------------------------------------------------------------------------------------------


def test_likelihoods_are_products_of_chances():
    """Of the estimated chances, literally: one vote after the other, tempered by the correlation."""
    _, votes = simulate(200, [confusion(0.9), confusion(0.6), confusion(0.8)], seen=0.8)
    votes = votes[(votes >= 0).any(1)]
    counts = np.stack([(votes == j).sum(1) for j in range(3)], 1).astype(float)
    found = judge(from_counts(counts))
    for i in range(20):
        n = counts[i].sum()
        logs = [
            sum(counts[i, k] * math.log(found.confusion[j, k]) for k in range(3))
            / (1 + (n - 1) * found.correlation)
            for j in range(3)
        ]
        have = found.log_likelihood[i]
        assert (have - have[0]).tolist() == pytest.approx([v - logs[0] for v in logs], abs=1e-4)
        raw = [found.shares[j] * math.exp(logs[j]) for j in range(3)]
        assert found.posterior[i].tolist() == pytest.approx([v / sum(raw) for v in raw], abs=1e-4)


def test_em_raises_the_likelihood_of_the_votes():
    """With the prior of the chances; of independent votes it is the likelihood that EM climbs."""
    _, votes = simulate(300, [confusion(0.8, 4)] * 5, seed=1)
    counts = np.stack([(votes == j).sum(1) for j in range(4)], 1).astype(float)
    values = []
    for rounds in (1, 2, 4, 8, 16, 32):
        found = _fit(from_counts(counts), 0.0, rounds)
        of_rows = counts @ np.log(found.confusion).T + np.log(found.shares)
        values.append(np.logaddexp.reduce(of_rows, 1).sum())
    assert (np.diff(values) > -0.05).all()  # the assumed accuracy itself moves a little


def test_the_likelihood_of_a_row_is_that_of_an_urn():
    """Polya's: each answer makes the same answer more likely; in the limit of no correlation, independence."""
    chances, shares, rho = confusion(0.7), np.array([0.5, 0.3, 0.2]), 0.25
    size, total = (1 - rho) / rho, 0.0
    for j in range(3):
        seen, value = [0, 0, 0], shares[j]
        for answer in (0, 0, 1, 2, 0):
            value *= (size * chances[j, answer] + seen[answer]) / (size + sum(seen))
            seen[answer] += 1
        total += value
    assert _row_likelihoods(np.array([[3.0, 1, 1]]), chances, shares, rho)[0] == pytest.approx(math.log(total))


def test_a_majority_counts_by_the_accuracy_of_annotators():
    """2:1 means a (K - 1) / (1 - a) for annotators of accuracy a, not 2."""
    for accuracy in (0.6, 0.8, 0.95):
        _, votes = simulate(3000, [confusion(accuracy)] * 3, seed=2)
        weights = oneof.from_votes(frame(votes))
        two_to_one = weights.counts.max(1) == 2
        found = np.median(1 / np.sort(weights.weights[two_to_one], 1)[:, -2])
        expected = 2 * accuracy / (1 - accuracy)
        rho = weights.correlation
        assert math.log(found) == pytest.approx(math.log(expected) / (1 + 2 * rho), abs=0.3)


def test_confusion_is_found_with_its_directions():
    matrix = np.array([[0.9, 0.1, 0.0], [0.0, 0.8, 0.2], [0.05, 0.05, 0.9]])
    y, votes = simulate(4000, [matrix] * 4, seed=3)
    found = oneof.from_votes(frame(votes))
    np.testing.assert_allclose(found.confusion, matrix, atol=0.04)
    assert found.correlation <= 0.02
    assert (found.consensus == np.array(NAMES)[y]).mean() > 0.93


def test_two_votes_do_not_tell_directions():
    matrix = np.array([[0.7, 0.3, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    _, votes = simulate(2000, [matrix] * 2, seed=4)
    found = oneof.from_votes(frame(votes))
    tie = found.weights[(found.counts[:, 0] == 1) & (found.counts[:, 1] == 1)]
    assert len(tie) > 100
    assert (tie[:, :2] > 0.5).all()  # either may be true; features will tell


def test_correlation_is_found():
    """A third of the rows is so hard that everybody guesses between two labels."""
    rng = np.random.default_rng(5)
    y = rng.integers(3, size=1500)
    chances = np.where(rng.random((1500, 1)) < 1 / 3, 0.5 * (np.eye(3)[y] + np.eye(3)[(y + 1) % 3]), np.eye(3)[y])
    counts = np.stack([rng.multinomial(9, p) for p in 0.97 * chances + 0.01])
    hard = oneof.vote_counts(counts)
    assert hard.correlation >= 0.1
    independent = oneof.vote_counts(np.stack([rng.multinomial(9, p) for p in confusion(0.8)[y]]))
    assert independent.correlation <= 0.02
    torn = (hard.counts == 5).any(1) & (hard.counts == 4).any(1)
    assert np.median(np.sort(hard.weights[torn], 1)[:, -2]) > 0.1  # 5:4 decides nothing


# --- annotators ---------------------------------------------------------------------------------------------


def test_annotators_are_told_apart():
    accuracies = [0.95, 0.9, 0.8, 0.6, 0.34]
    y, votes = simulate(800, [confusion(a) for a in accuracies], seen=0.6, seed=6)
    kept = (votes >= 0).any(1)
    found = oneof.from_votes(frame(votes[kept]).set_axis(list("abcde"), axis=1))
    assert found.annotators.index.tolist() == list("abcde")
    assert found.annotators["accuracy"].tolist() == pytest.approx(accuracies, abs=0.05)
    assert found.annotators["votes"].tolist() == (votes[kept] >= 0).sum(0).tolist()
    majority = found.counts.argmax(1)
    assert (found.consensus == np.array(NAMES)[y[kept]]).mean() > (majority == y[kept]).mean() + 0.02
    assert found.quality.mean() == pytest.approx((found.consensus == np.array(NAMES)[y[kept]]).mean(), abs=0.03)


def test_who_disagrees_with_whom():
    votes = pd.DataFrame({"a": ["x", "x", "y", "x"], "b": ["x", "y", "y", None], "c": ["y", "y", None, None]})
    found = oneof.from_votes(votes)
    pairs = {(p.first, p.second): (p.rows, p.agreement) for p in found.pairs.itertuples()}
    assert pairs == {("a", "b"): (3, pytest.approx(2 / 3)), ("a", "c"): (2, 0.0), ("b", "c"): (2, 0.5)}
    assert found.pairs["agreement"].is_monotonic_increasing
    assert found.annotators["agreement"].tolist() == pytest.approx([2 / 5, 3 / 5, 1 / 4])


def test_an_annotator_of_few_votes_is_taken_for_an_average_one():
    _, votes = simulate(300, [confusion(0.9)] * 3, seed=7)
    table = frame(votes).assign(new=None)
    wrong = (votes[0, 0] + 1) % 3
    table.loc[0, "new"] = NAMES[wrong]  # one vote, against three
    found = oneof.from_votes(table)
    assert 0.75 < found.annotators.loc["new", "accuracy"] < 0.93
    assert np.isfinite(found.weights).all()


def test_one_vote_a_row_is_a_plain_label():
    found = oneof.from_votes(pd.DataFrame({"only": ["x", "y", "x"]}))
    assert found.weights.tolist() == [[1, 0], [0, 1], [1, 0]]
    assert len(found.pairs) == 0
    assert math.isnan(found.annotators.loc["only", "agreement"])


# --- forms --------------------------------------------------------------------------------------------------


def same_ballots(one, other):
    for name in ("shape", "row", "annotator", "times", "denies", "vote", "label"):
        np.testing.assert_array_equal(getattr(one.ballots, name), getattr(other.ballots, name))


def test_wide_and_long_are_the_same():
    _, votes = simulate(50, [confusion(0.8)] * 3, seen=0.7, seed=8)
    votes = votes[(votes >= 0).all(1) | (votes[:, 0] >= 0)]  # every task has a first vote, in order
    wide = frame(votes).set_axis(["a", "b", "c"], axis=1)
    long = wide.rename_axis("task").reset_index().melt("task", var_name="worker", value_name="label").dropna()
    long = long.sort_values(["task", "worker"])
    same_ballots(read_wide(wide, None, PLAIN), read_long(long, ("task", "worker", "label"), None, None, PLAIN))
    one = oneof.from_votes(wide)
    other = oneof.from_votes(long, long=("task", "worker", "label"))
    np.testing.assert_allclose(one.weights, other.weights)
    assert other.tasks.tolist() == wide.index.tolist()
    assert other[[3]].tasks.tolist() == [3]
    shuffled = oneof.from_votes(long, long=("task", "worker", "label"), tasks=wide.index[::-1])
    np.testing.assert_allclose(shuffled.weights, one.weights[::-1], atol=1e-9)


def test_counts_are_votes_of_nobody_in_particular():
    _, votes = simulate(200, [confusion(0.8)] * 4, seed=9)
    ragged = [[NAMES[v] for v in row] for row in votes]
    ragged[0] = [*ragged[0], "cat"]  # so that columns are no annotators
    counts = np.array([[row.count(name) for name in NAMES] for row in ragged])
    by_counts, by_votes = oneof.vote_counts(counts, NAMES), oneof.from_votes(ragged)
    np.testing.assert_allclose(by_counts.weights, by_votes.weights, atol=1e-6)
    assert by_counts.annotators is by_votes.annotators is None
    assert (by_counts.counts == counts).all()
    named = oneof.vote_counts(pd.DataFrame(counts, columns=NAMES))
    assert named.classes.tolist() == NAMES


def test_a_vote_for_several_labels_means_one_of_them():
    _, votes = simulate(300, [confusion(0.8)] * 3, seed=10)
    wide = frame(votes).astype(object)
    wide.loc[0] = ["cat|dog", "dog", "cow|dog"]
    cells = wide.to_numpy().tolist()
    cells[1] = [["cat", "dog"], "dog", {"cow", "dog"}]
    found = oneof.from_votes(cells, separator="|")
    assert found.candidates[0].all()
    assert found.counts[0].tolist() == found.counts[1].tolist() == [1, 1, 3]
    np.testing.assert_allclose(found.weights[0], found.weights[1], atol=1e-9)
    assert found.weights[0].argmax() == 2
    assert found.consensus[0] == "dog"


def test_denials():
    _, votes = simulate(300, [confusion(0.8)] * 3, seed=11)
    wide = frame(votes)
    wide.loc[0] = ["not cat", None, None]
    wide.loc[1] = ["not cat", "cat", "dog"]
    wide.loc[2] = ["cat", None, "dog"]
    wide.loc[3] = ["not cat", "not dog", "not cow"]
    found = oneof.from_votes(wide, classes=NAMES, denial="not ")
    assert found.candidates[:4].tolist() == [
        [False, True, True],
        [True, False, True],
        [True, False, True],
        [True] * 3,
    ]
    assert found.weights[1, 0] < found.weights[2, 0] / 2  # denied by one
    plain = oneof.from_votes(wide.drop(index=range(4)), classes=NAMES)
    np.testing.assert_allclose(found.confusion, plain.confusion, atol=0.02)  # denials judge rows


def test_labels_twice_in_a_long_table_are_one_vote():
    long = pd.DataFrame({"task": [1, 1, 1, 2], "worker": list("aaba"), "label": ["x", "y", "x", "y"]})
    found = oneof.from_votes(long, long=("task", "worker", "label"))
    assert found.counts.tolist() == [[2, 1], [0, 1]]
    assert found.annotators["votes"].tolist() == [2, 1]
    twice = pd.concat([long, long])
    assert oneof.from_votes(twice, long=("task", "worker", "label")).counts.tolist() == found.counts.tolist()


def test_min_votes_leaves_weights_of_the_others():
    _, votes = simulate(100, [confusion(0.7)] * 5, seed=12)
    found = oneof.from_votes(frame(votes), min_votes=2)
    assert ((found.weights > 0) == (found.counts >= 2)).all()
    assert (found.weights.max(1) == 1).all()


# --- as y ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def task():
    """Rows whose features tell two of three labels apart, which annotators confuse."""
    rng = np.random.default_rng(13)
    y, votes = simulate(240, [np.array([[0.6, 0.0, 0.4], [0.1, 0.8, 0.1], [0.4, 0.0, 0.6]])] * 3, seed=13)
    return rng.normal(size=(240, 3)) + 2.5 * np.eye(3)[y], oneof.from_votes(frame(votes)), y


def test_votes_are_y(task):
    X, votes, y = task
    model = oneof.IDGP(network="linear", epochs=30, random_state=0, device="cpu").fit(X, votes)
    assert model.classes_.tolist() == NAMES
    truth = np.array(NAMES)[y]
    resolved = model.disambiguate(X, votes)
    assert (resolved.label == truth).mean() > (votes.consensus == truth).mean() + 0.1
    assert 0 < model.score(X, votes) <= 1
    scores = cross_val_score(clone(model), X, votes, cv=KFold(3, shuffle=True, random_state=0))
    assert np.isfinite(scores).all()


def test_votes_keep_what_belongs_to_rows(task):
    _, votes, _ = task
    part = votes[5:8]
    assert isinstance(part, oneof.Votes)
    assert part.consensus.tolist() == votes.consensus[5:8].tolist()
    assert part.quality.tolist() == votes.quality[5:8].tolist()
    assert part.counts.shape == (3, 3)
    assert part.annotators is votes.annotators
    again = pickle.loads(pickle.dumps(votes))
    assert (again.weights == votes.weights).all()
    assert repr(votes).startswith("Votes: 240 rows, 3 classes")


def test_rows_are_resolved_by_models_that_have_not_seen_them(task):
    X, votes, y = task
    model = oneof.IDGP(network="linear", epochs=30, random_state=0, device="cpu")
    found = oneof.resolve(model, X, votes, folds=4)
    truth = np.array(NAMES)[y]
    assert (found.label == truth).mean() > (votes.consensus == truth).mean() + 0.1
    # sure of itself as often as it is right
    assert found.probability.mean() == pytest.approx((found.label == truth).mean(), abs=0.08)
    log_p = np.zeros((240, 3))
    for train, rest in KFold(4, shuffle=True, random_state=0).split(X):
        log_p[rest] = clone(model).fit(X[train], votes[train]).predict_log_proba(X[rest])
    powers = np.linspace(0.05, 5, 500)

    def likelihood(power):
        p = np.exp(power * log_p)
        return np.log((votes.weights * p).sum(1) / p.sum(1)).sum()

    best = max(powers, key=likelihood)
    want = votes.weights * np.exp(best * log_p)
    want /= want.sum(1, keepdims=True)
    np.testing.assert_allclose(found.probability, want.max(1), atol=0.02)
    assert not hasattr(model, "classes_")
    plain = oneof.resolve(model, pd.DataFrame(X), [NAMES[t] for t in y])
    assert plain.label.tolist() == truth.tolist()


# --- crowd-kit ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("aggregate", ["dawid-skene", "glad", "mmsr"])
def test_crowd_kit_judges(aggregate):
    pytest.importorskip("crowdkit", reason="crowd-kit is not installed: pip install oneof[votes]")
    y, votes = simulate(200, [confusion(a) for a in (0.9, 0.85, 0.8, 0.7)], seed=14)
    found = oneof.from_votes(frame(votes), aggregate=aggregate)
    assert (found.consensus == np.array(NAMES)[y]).mean() > 0.85
    assert (found.weights.max(1) == 1).all()
    right = [(votes[:, a] == y).mean() for a in range(4)]
    assert found.annotators["accuracy"].tolist() == pytest.approx(right, abs=0.05)
    with pytest.raises(ValueError, match="known annotators"):
        oneof.from_votes([["cat"], ["dog", "cat"]], aggregate=aggregate)


def test_without_crowd_kit_one_sentence_says_so(monkeypatch):
    import builtins

    real = builtins.__import__

    def missing(name, *args, **kwargs):
        if name.startswith("crowdkit"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ImportError, match=r"pip install oneof\[votes\]"):
        oneof.from_votes([["a", "b"], ["b", "b"]], aggregate="glad")
