"""Weights of candidates: every posterior honours them, equal ones are plain sets, and they survive everything."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import KFold, cross_val_score, train_test_split

import oneof
from conftest import MEMBERS, fit_with
from oneof import functional as F
from oneof.metrics import approximated_accuracy, covering_rate
from oneof.train import Paused

TAKES = {name: method for name, method in MEMBERS.items() if method.func.takes_weights}
REFUSES = {name: method for name, method in MEMBERS.items() if name not in TAKES}
taking = pytest.mark.parametrize("method", TAKES.values(), ids=TAKES)
SETTINGS = {"network": "linear", "epochs": 4, "batch_size": 20, "device": "cpu", "random_state": 0}
K = 5


@pytest.fixture
def weighted(blobs):
    X, S, y = blobs
    weights = S * np.random.default_rng(1).uniform(0.05, 1, S.shape)
    return X, oneof.WeightedSets(weights, ["a", "b", "c"]), y


# --- formulas -----------------------------------------------------------------------------------------------


def drawn():
    generator = torch.Generator().manual_seed(0)
    u, s = (3 * torch.randn(40, K, generator=generator, dtype=torch.float64) for _ in range(2))
    S = torch.rand(40, K, generator=generator) < 0.5
    S[:, 2] |= ~S.any(-1)
    pi = torch.where(S, torch.rand(40, K, generator=generator, dtype=torch.float64) + 0.01, 0.0)
    return u, s, S, pi


def test_losses_sum_over_weighted_candidates():
    u, s, S, pi = drawn()
    theta, z = u.softmax(-1), s.sigmoid()
    for i in range(len(u)):
        inside = [j for j in range(K) if S[i, j]]
        likelihood = generation = 0.0
        for j in inside:
            likelihood = likelihood + pi[i, j] * theta[i, j]
            term = pi[i, j] * theta[i, j]
            for k in range(K):
                term = term * (z[i, k] if k in inside and k != j else 1 - z[i, k])
            generation = generation + term
        assert F.candidate_nll(u, pi)[i].item() == pytest.approx(-likelihood.log().item(), abs=1e-12)
        assert F.generation_nll(u, s, pi)[i].item() == pytest.approx(-generation.log().item(), abs=1e-12)
        odds = [pi[i, j] * theta[i, j] * (1 - z[i, j]) / z[i, j] if j in inside else 0.0 for j in range(K)]
        r = [float(value / sum(odds)) for value in odds]
        assert F.responsibilities(u, s, pi)[i].tolist() == pytest.approx(r, abs=1e-12)
        assert F.uniform(pi, torch.float64)[i].tolist() == pytest.approx((pi[i] / pi[i].sum()).tolist(), abs=1e-12)


def test_map_is_the_weighted_likelihood_and_the_prior():
    u, s, _, pi = drawn()
    w, A, B = (torch.rand_like(u) for _ in range(3))
    want = 0.3 * F.generation_nll(u, s, pi) + F.prior_nll(u, s, w, A, B)
    torch.testing.assert_close(F.map_nll(u, s, pi, 0.3, w, A, B), want, atol=1e-12, rtol=1e-12)


def test_gradients_are_those_of_the_losses():
    x, s, _, pi = (t[:4] for t in drawn())
    assert torch.autograd.gradcheck(lambda u: F.candidate_nll(u, pi), x.clone().requires_grad_())
    assert torch.autograd.gradcheck(lambda u: F.generation_nll(u, s, pi), x.clone().requires_grad_())


@pytest.mark.parametrize("eps", [0.0, 0.05])
def test_prior_weights_of_the_dirichlet(eps):
    u, _, S, pi = drawn()
    raw = torch.where(S, pi * u.exp(), eps)
    have = F.dirichlet_weights(u, pi, eps)
    torch.testing.assert_close(have, raw / raw.sum(-1, keepdim=True), atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_least_weight_is_still_a_candidate(dtype):
    sets = oneof.WeightedSets([[1.0, 1e-300, 0.0]])
    pi = torch.as_tensor(sets.weights, dtype=dtype)
    assert F.members(pi).tolist() == [[True, True, False]]
    r = F.posterior(torch.tensor([[0.0, 80.0, 200.0]], dtype=dtype), pi)
    assert r[0, 1] > 0.99
    assert r[0, 2] == 0
    assert torch.isfinite(F.candidate_nll(torch.zeros(1, 3, dtype=dtype), pi)).all()


# --- models -------------------------------------------------------------------------------------------------


@taking
def test_equal_weights_are_plain_sets(method, blobs):
    X, S, _ = blobs
    settings = SETTINGS | {"precision": "fp64"}
    plain = method(**settings).fit(X, S)
    equal = method(**settings).fit(X, oneof.WeightedSets(0.3 * S))
    assert equal.history_["loss"] == pytest.approx(plain.history_["loss"], abs=1e-12)
    np.testing.assert_allclose(equal.predict_proba(X), plain.predict_proba(X), atol=1e-12)
    np.testing.assert_allclose(equal.label_distributions_, plain.label_distributions_, atol=1e-12)
    assert equal.score(X, oneof.WeightedSets(0.3 * S)) == pytest.approx(plain.score(X, S), abs=1e-12)


@taking
def test_weights_decide_where_rows_say_nothing(method):
    """All rows are alike; the labels that weigh more win, in training and in the posterior of single rows."""
    X, rng = np.random.default_rng(0).normal(size=(60, 3)) * 1e-3, np.random.default_rng(1)
    chosen = rng.integers(2, size=60)
    sets = oneof.WeightedSets(np.where(np.eye(3)[chosen] > 0, 1.0, [0.02, 0.02, 0.0]))
    model = method(**SETTINGS | {"epochs": 6, "optimizer": "sgd"}).fit(X, sets)
    assert (model.transduction_ == chosen).all()
    assert (model.disambiguate(X, sets).label == chosen).all()


@taking
def test_a_posterior_is_that_of_plain_sets_times_weights(method, weighted):
    X, sets, _ = weighted
    model = method(**SETTINGS | {"precision": "fp64"}).fit(X, sets)
    plain = model.evaluate(model.label_posterior, X, sets.candidates)
    want = plain * sets.weights
    np.testing.assert_allclose(model.label_distributions_, want / want.sum(1, keepdims=True), atol=1e-12)


@pytest.mark.parametrize("method", REFUSES.values(), ids=REFUSES)
def test_methods_without_a_place_for_weights_say_so(method, weighted):
    X, sets, _ = weighted
    with pytest.raises(
        ValueError, match=r"weights of its candidates, but \w+ has no place for them; use a method"
    ):
        method(**SETTINGS).fit(X, sets)
    model = method(**SETTINGS).fit(X, sets.candidates)
    for ask in (model.score, model.disambiguate):
        with pytest.raises(ValueError, match=r"pass y\.candidates"):
            ask(X, sets)


def test_the_released_objective_refuses_weights(weighted):
    X, sets, _ = weighted
    with pytest.raises(ValueError, match="objective='released' has no place for weights"):
        oneof.IDGP(objective="released", **SETTINGS).fit(X, sets)


@taking
def test_a_stack_ends_as_if_alone(method, weighted):
    X, sets, _ = weighted
    models = [method(**SETTINGS | {"random_state": i, "validation_fraction": 0.2}) for i in range(3)]
    given = [{"X": X, "y": sets}, {"X": X, "y": sets}, {"X": X, "y": sets.candidates}]
    for model, own in zip(oneof.fit_together(models, given), given, strict=True):
        alone = clone(model).fit(**own)
        np.testing.assert_allclose(model.predict_proba(X), alone.predict_proba(X), atol=1e-6)
        np.testing.assert_allclose(model.label_distributions_, alone.label_distributions_, atol=1e-6)


def test_a_killed_fit_goes_on_with_its_weights(weighted, tmp_path):
    X, sets, _ = weighted
    model = oneof.IDGP(warm_up=1, checkpoint=tmp_path / "c", **SETTINGS)
    with pytest.raises(Paused):
        fit_with(model, X, sets, pause=lambda: True)
    with pytest.raises(ValueError, match="other data"):
        clone(model).fit(X, sets.candidates)
    resumed, whole = model.fit(X, sets), clone(model).set_params(checkpoint=None).fit(X, sets)
    assert (resumed.label_distributions_ == whole.label_distributions_).all()


def test_a_saved_model_takes_weights(weighted, tmp_path):
    X, sets, _ = weighted
    model = oneof.IDGP(warm_up=1, **SETTINGS).fit(X, sets)
    model.save(tmp_path / "m")
    loaded = oneof.load_model(tmp_path / "m", device="cpu")
    assert (loaded.disambiguate(X, sets).probability == model.disambiguate(X, sets).probability).all()
    assert loaded.classes_.tolist() == ["a", "b", "c"]


def test_rows_on_disk(weighted, tmp_path):
    X, sets, _ = weighted
    np.save(tmp_path / "x.npy", X)
    model = oneof.PRODEN(**SETTINGS)
    from_disk = clone(model).fit(np.load(tmp_path / "x.npy", mmap_mode="r"), sets)
    np.testing.assert_allclose(from_disk.predict_proba(X), model.fit(X, sets).predict_proba(X), atol=1e-6)


def test_tools_of_scikit_learn_split_weighted_sets(weighted):
    X, sets, _ = weighted
    model = oneof.CC(**SETTINGS)
    scores = cross_val_score(model, X, sets, cv=KFold(4, shuffle=True, random_state=0))
    folds = KFold(4, shuffle=True, random_state=0).split(X)
    assert scores == pytest.approx(
        [clone(model).fit(X[a], sets[a]).score(X[b], sets[b]) for a, b in folds], abs=1e-12
    )
    _, X_test, _, sets_test = train_test_split(X, sets, random_state=0)
    assert isinstance(sets_test, oneof.WeightedSets)
    assert sets_test.shape == (len(X_test), 3)


def test_validation_rows_are_judged_by_weights(weighted):
    X, sets, _ = weighted
    model = oneof.CC(**SETTINGS | {"epochs": 1}).fit(X, sets, X_val=X[:10], y_val=sets[:10])
    assert model.history_["validation_score"] == [pytest.approx(model.score(X[:10], sets[:10]), abs=1e-6)]


# --- metrics ------------------------------------------------------------------------------------------------


def test_the_value_of_a_prediction_is_its_posterior():
    p, pi = np.array([[0.5, 0.3, 0.2], [0.5, 0.3, 0.2]]), np.array([[0.1, 1.0, 0.0], [0.0, 0.5, 1.0]])
    assert approximated_accuracy(p, pi).tolist() == pytest.approx([0.05 / 0.35, 0.0])
    assert covering_rate(p, pi).tolist() == [1.0, 0.0]
    assert (approximated_accuracy(p, (pi > 0) * 1.0) == approximated_accuracy(p, pi > 0)).all()
    with pytest.raises(ValueError, match="negative weights"):
        approximated_accuracy(p, -pi)


# --- the container ------------------------------------------------------------------------------------------


def test_weighted_sets_are_a_matrix_and_its_names():
    sets = oneof.WeightedSets([[4, 2, 0], [0, 0, 3]], ["x", "y", "z"])
    assert sets.weights.tolist() == [[1, 0.5, 0], [0, 0, 1]]
    assert np.asarray(sets).tolist() == [[True, True, False], [False, False, True]]
    assert np.asarray(sets, dtype=int).tolist() == [[1, 1, 0], [0, 0, 1]]
    candidates, classes = sets
    assert candidates.tolist() == np.asarray(sets).tolist()
    assert classes.tolist() == ["x", "y", "z"]
    assert sets[[1]].weights.tolist() == sets[np.array([False, True])].weights.tolist() == [[0, 0, 1]]
    assert oneof.encode(sets)[1].tolist() == ["x", "y", "z"]
    assert repr(sets) == "WeightedSets: 2 rows, 3 classes, 1.50 candidates a row"
    assert oneof.WeightedSets([[1, 1]]).classes.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([1, 2],), ValueError, r"shape \(2,\), but must be \(n, K\)"),
        (([[1, -1]],), ValueError, "-1 in row 0"),
        (([[1, 1], [1, np.nan]],), ValueError, "nan in row 1"),
        (([[1, 1], [0, 0]],), ValueError, "all 0 in row 1"),
        (([[1, 1]], ["a"]), ValueError, "1 names and weights has 2 columns"),
        (([["a", "b"]],), ValueError, "must hold real numbers"),
        (([[1.0]],), ValueError, "at least two classes"),
    ],
)
def test_weights_that_can_be_none_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        oneof.WeightedSets(*arguments)


def test_a_single_row_is_asked_for_by_a_list():
    sets = oneof.WeightedSets([[1, 1], [1, 0]])
    with pytest.raises(TypeError, match=r"pass a list of numbers or a slice, or ask for \.candidates"):
        sets[1]
    with pytest.raises(ValueError, match="numbers from 0 to 1"):
        sets[[5]]


def test_weights_for_other_classes_are_refused(weighted):
    X, sets, _ = weighted
    model = oneof.CC(**SETTINGS).fit(X, sets)
    with pytest.raises(ValueError, match="classes"):
        model.score(X, oneof.WeightedSets(sets.weights, ["a", "b", "z"]))
    y = oneof.WeightedSets(sets.weights[:, ::-1], ["c", "b", "a"])
    with pytest.raises(ValueError, match=r"make a frame, .*, and pass WeightedSets"):
        model.score(X, y)
    frame = pd.DataFrame(y.weights, columns=y.classes).reindex(columns=model.classes_, fill_value=0)
    assert model.score(X, oneof.WeightedSets(frame, model.classes_)) == model.score(X, sets)  # as the message says


def test_full_sets_whose_weights_differ_can_be_learned_from():
    X = np.random.default_rng(0).normal(size=(30, 2))
    weights = np.where(X[:, :1] > 0, [[1.0, 0.1]], [[0.1, 1.0]])
    model = oneof.CC(**SETTINGS | {"epochs": 20}).fit(X, oneof.WeightedSets(weights))
    assert (model.predict(X) == weights.argmax(1)).mean() > 0.9
    with pytest.raises(ValueError, match="nothing to learn"):
        oneof.CC(**SETTINGS).fit(X, oneof.WeightedSets(np.ones((30, 2))))
