"""The truth outside the set: weights against brute force, every posterior honours them, and the rate is found."""

import itertools
import math
import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone

import oneof
from conftest import MEMBERS, fit_with
from oneof import functional as F
from oneof.estimator import outside
from oneof.train import Paused

TAKES = {name: method for name, method in MEMBERS.items() if method.func.takes_outside}
REFUSES = {name: method for name, method in MEMBERS.items() if name not in TAKES}
taking = pytest.mark.parametrize("method", TAKES.values(), ids=TAKES)
SETTINGS = {"network": "linear", "epochs": 4, "batch_size": 20, "device": "cpu", "random_state": 0}
K = 5


def drawn(rows=12):
    generator = torch.Generator().manual_seed(0)
    u, s = (2 * torch.randn(rows, K, generator=generator, dtype=torch.float64) for _ in range(2))
    S = torch.rand(rows, K, generator=generator) < 0.5
    S[:, 2] |= ~S.any(-1)
    S[0] = True  # nothing is outside
    return u, s, S


@pytest.fixture(scope="module")
def swapped():
    """Rows of four classes, of which a fifth has any other label in the place of the truth: X, sets, y."""
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=400)
    X = rng.normal(size=(400, 4)) + 5 * np.eye(4)[y]
    S = rng.random((400, 4)) < 0.2
    S[np.arange(400), y] = True
    for i in np.flatnonzero(rng.random(400) < 0.2):
        if (~S[i]).any():
            S[i, rng.choice(np.flatnonzero(~S[i]))] = True
            S[i, y[i]] = False
    return X, S, y


# --- formulas -----------------------------------------------------------------------------------------------


def test_the_weights_are_the_likelihood_of_a_swapped_truth():
    """All sets of one size are enumerated, drawn uniformly around a truth that is then swapped with chance eps."""
    eps, size = 0.15, 2
    chance = {}
    for y in range(K):
        for wrong in itertools.combinations([k for k in range(K) if k != y], size - 1):
            drawn_set = frozenset((y, *wrong))
            p = 1 / math.comb(K - 1, size - 1)
            chance[y, drawn_set] = chance.get((y, drawn_set), 0) + (1 - eps) * p
            for other in set(range(K)) - drawn_set:
                swapped_set = drawn_set - {y} | {other}
                chance[y, swapped_set] = chance.get((y, swapped_set), 0) + eps * p / (K - size)
    weights = F.scale_outside(
        F.outside_weights(torch.tensor([[True, True, False, False, False]]), torch.float64),
        torch.tensor([[eps / (1 - eps)]], dtype=torch.float64),
    )
    S = frozenset((0, 1))
    want = [chance[y, S] / chance[0, S] for y in range(K)]
    assert weights.abs()[0].tolist() == pytest.approx(want, abs=1e-12)
    assert F.members(weights)[0].tolist() == [True, True, False, False, False]


def test_weights_of_candidates_are_kept_and_full_sets_have_no_outside():
    pi = torch.tensor([[0.5, 1.0, 0.0, 0.0], [0.2, 0.3, 0.4, 1.0]], dtype=torch.float64)
    have = F.outside_weights(pi, torch.float64)
    assert have.tolist() == [[0.5, 1.0, -0.75, -0.75], [0.2, 0.3, 0.4, 1.0]]
    assert (F.scale_outside(have, torch.zeros(1, 1)) > 0).tolist() == (pi > 0).tolist()
    assert F.uniform(have, torch.float64)[0].tolist() == pytest.approx([1 / 3, 2 / 3, 0, 0])
    assert F.possible(F.scale_outside(have, torch.zeros(1, 1))).tolist() == (pi > 0).tolist()


def test_the_scale_gives_the_rate():
    u, _, S = drawn(200)
    weights = F.outside_weights(S, u.dtype)
    for rate in (0.01, 0.1, 0.5):
        scale = F.outside_scale(F.posterior(u, weights), weights, torch.tensor([[rate]]))
        r = F.posterior(u, F.scale_outside(weights, scale))
        assert (r * ~S).sum(-1).mean().item() == pytest.approx(rate, abs=1e-6)
    assert F.outside_scale(F.posterior(u, weights), weights, torch.zeros(1, 1)).item() == 0


def test_the_likelihood_of_idgp_sums_over_the_label_in_the_place_of_the_truth():
    u, s, S = drawn()
    pi = F.scale_outside(F.outside_weights(S, u.dtype), torch.tensor([[0.3]]))
    theta, z = u.softmax(-1), s.sigmoid()
    have, r = F.generation_nll(u, s, pi), F.responsibilities(u, s, pi)
    for i in range(len(u)):
        inside = [j for j in range(K) if S[i, j]]

        def process(drawn_by_z, i=i):
            return math.prod(float(z[i, k] if k in drawn_by_z else 1 - z[i, k]) for k in range(K))

        terms = []
        for j in range(K):
            free = [j] if j in inside else inside  # the labels that need no z, each as likely
            chances = [process([k for k in inside if k != m]) for m in free]
            terms.append(float(pi[i, j].abs() * theta[i, j]) * sum(chances) / len(chances))
        assert have[i].item() == pytest.approx(-math.log(sum(terms)), abs=1e-10)
        assert r[i].tolist() == pytest.approx([term / sum(terms) for term in terms], abs=1e-10)
    assert torch.autograd.gradcheck(lambda v: F.generation_nll(u[:4], v, pi[:4]), s[:4].clone().requires_grad_())
    w, A, B = (torch.rand_like(u) for _ in range(3))
    want = 0.3 * have + F.prior_nll(u, s, w, A, B)
    torch.testing.assert_close(F.map_nll(u, s, pi, 0.3, w, A, B), want, atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("rows", [K, 1], ids=["pairs", "one row"])
@pytest.mark.parametrize("largest", [None, 4])
def test_the_likelihood_of_competition_has_one_of_the_set_in_the_place_of_the_truth(rows, largest):
    a, _, S = (part[1:] for part in drawn())
    S[S.all(-1), 0] = False
    C = torch.randn(rows, K, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    M = 2.3
    log_rate = torch.tensor([[M]], dtype=torch.float64).log()
    have = F.guess_log_likelihood(a, F.outside_weights(S, a.dtype), C, log_rate, largest, outside=True)
    plain = F.guess_log_likelihood(a, S, C, log_rate, largest)
    for i, j in itertools.product(range(len(a)), range(K)):
        odds = [math.exp(a[i, k] + C[j if rows > 1 else 0, k]) if k != j else 0.0 for k in range(K)]
        guessed = [1 - math.exp(-M * odd / sum(odds)) for odd in odds]
        inside = [k for k in range(K) if S[i, k]]
        if j in inside:
            assert have[i, j].item() == pytest.approx(plain[i, j].item(), abs=1e-12)
            continue
        chances = [
            math.prod(guessed[k] if k in inside and k != m else 1 - guessed[k] for k in range(K) if k != j)
            for m in inside
        ]
        assert have[i, j].item() == pytest.approx(math.log(sum(chances) / len(chances)), abs=1e-9)


def test_golden_targets_are_those_of_alim_with_a_scale_for_the_mean(swapped):
    """ALIM's w ~ p (S + lambda (1 - S)) by loops: lambda grows with the set, and its scale gives the rate."""
    X, S, _ = swapped
    X, S = X[:40], S[:40]
    model = oneof.PRODEN(**SETTINGS | {"epochs": 2, "batch_size": 40, "precision": "fp64", "outside": 0.25})
    before = {}

    def note(epoch):
        if epoch == 0:
            before["p"] = model.predict_proba(X)

    fit_with(model, X, S, on_epoch=note)
    p, n = before["p"], len(S)

    def targets(scale):
        w = np.zeros(S.shape)
        for i in range(n):
            size = sum(S[i])
            for j in range(4):
                lam = scale * size / (4 - size) if size < 4 else 0.0
                w[i, j] = p[i, j] * (1.0 if S[i, j] else lam)
            w[i] /= sum(w[i])
        return w

    low, high = 1e-9, 1e9
    for _ in range(60):
        middle = math.sqrt(low * high)
        w = targets(middle)
        share = sum(w[i, j] for i in range(n) for j in range(4) if not S[i, j]) / n
        low, high = (middle, high) if share < 0.25 else (low, middle)
    assert model.outside_scale_.item() == pytest.approx(low, rel=1e-6)
    np.testing.assert_allclose(model.w_.numpy(), targets(low), atol=1e-6)  # of the second epoch's only step


# --- models -------------------------------------------------------------------------------------------------


@taking
def test_models_find_the_truth_outside_the_sets(method, swapped):
    X, S, y = swapped
    model = method(**SETTINGS | {"epochs": 30, "outside": 0.2, "lr": 0.03}).fit(X, S)
    missing = ~S[np.arange(len(y)), y]
    found = model.disambiguate(X, S)
    label, probability, _ = found
    assert found.outside.mean() == pytest.approx(0.2, abs=0.06)
    assert found.outside[missing].mean() > 0.7
    assert found.outside[~missing].mean() < 0.1
    assert (label == y).mean() > 0.93
    assert (model.transduction_ == label).all()
    assert (probability <= 1).all()
    sure = model.label_distributions_[np.arange(len(y)), label]
    np.testing.assert_allclose(sure, probability, atol=1e-6)


def test_alims_lambda_puts_the_likeliest_label_outside_in_that_share_of_the_rows():
    u, _, S = drawn(200)
    weights = F.outside_weights(S, u.dtype, "alim")
    assert weights.tolist() == torch.where(S, 1.0, -1.0).tolist()
    for rate in (0.01, 0.1, 0.3):
        scale = F.alim_scale(F.posterior(u, weights), weights, torch.tensor([[rate]]))
        r = F.posterior(u, F.scale_outside(weights, scale))
        best = r.argmax(-1, keepdim=True)
        assert (~S.gather(-1, best)).double().mean().item() == pytest.approx(rate, abs=1 / 200 + 1e-9)
    assert F.alim_scale(F.posterior(u, weights), weights, torch.tensor([[0.99]])).item() == 1
    assert F.alim_scale(F.posterior(u, weights), weights, torch.zeros(1, 1)).item() == 0


@pytest.mark.parametrize("name", ["proden", "rc"])
def test_alim_finds_the_truth_outside_the_sets(name, swapped):
    X, S, y = swapped
    settings = SETTINGS | {"epochs": 30, "outside": 0.2, "outside_rule": "alim", "lr": 0.03}
    found = TAKES[name](**settings).fit(X, S).disambiguate(X, S)
    missing = ~S[np.arange(len(y)), y]
    assert found.outside[missing].mean() > 0.5
    assert found.outside[~missing].mean() < 0.1
    assert (found.label == y).mean() > 0.9


@pytest.mark.parametrize(
    ("method", "rule"),
    [(method, rule) for method in TAKES.values() for rule in ("share", "alim")[: 1 + method.func.takes_alim]],
)
def test_a_stack_ends_as_if_alone(method, rule, blobs):
    X, S, _ = blobs
    models = [method(**SETTINGS | {"random_state": i, "outside": 0.1, "outside_rule": rule}) for i in range(3)]
    for model in oneof.fit_together(models, [{"X": X, "y": S}] * 3):
        alone = clone(model).fit(X, S)
        np.testing.assert_allclose(model.predict_proba(X), alone.predict_proba(X), atol=1e-6)
        np.testing.assert_allclose(model.label_distributions_, alone.label_distributions_, atol=1e-6)


@pytest.mark.parametrize(
    ("method", "rate", "rule"),
    [(oneof.Competition, 0.2, "share"), (oneof.Competition, "auto", "share"), (oneof.PRODEN, "auto", "alim")],
)
def test_a_killed_fit_goes_on_and_a_file_keeps_the_scale(method, rate, rule, swapped, tmp_path):
    X, S, _ = swapped
    model = method(checkpoint=tmp_path / "c", outside=rate, outside_rule=rule, **SETTINGS | {"lr": 0.03})
    with pytest.raises(Paused):
        fit_with(model, X, S, pause=lambda: True)
    resumed, whole = model.fit(X, S), clone(model).set_params(checkpoint=None).fit(X, S)
    assert (resumed.label_distributions_ == whole.label_distributions_).all()
    assert resumed.outside_rate_.item() == whole.outside_rate_.item()
    whole.save(tmp_path / "m")
    loaded = oneof.load_model(tmp_path / "m", device="cpu")
    assert (loaded.disambiguate(X, S).outside == whole.disambiguate(X, S).outside).all()


def test_checkpoints_of_before_do_not_name_the_field():
    assert "outside" not in oneof.CC(network="linear").identity()
    assert oneof.CC(network="linear", outside=0.1).identity()["outside"] == 0.1


def test_weights_of_candidates_count_beside_it(swapped):
    X, S, y = swapped
    weights = oneof.WeightedSets(S * np.where(np.eye(4)[y] > 0, 1.0, 0.1))
    model = oneof.CC(outside=0.2, **SETTINGS | {"epochs": 20}).fit(X, weights)
    assert (model.disambiguate(X, weights).label == y).mean() > 0.95


@pytest.mark.parametrize("method", REFUSES.values(), ids=REFUSES)
def test_methods_without_probabilities_of_other_labels_say_so(method, blobs):
    X, S, _ = blobs
    with pytest.raises(
        ValueError, match=r"outside is 0\.1, but \w+ has no probabilities of labels outside the sets"
    ):
        method(**SETTINGS, outside=0.1).fit(X, S)


def test_the_released_objective_refuses_it(blobs):
    X, S, _ = blobs
    with pytest.raises(ValueError, match="objective='released' has no place for outside"):
        oneof.IDGP(objective="released", outside=0.1, **SETTINGS).fit(X, S)


# --- the rate -----------------------------------------------------------------------------------------------


def test_the_rate_is_estimated(swapped):
    X, S, y = swapped
    model = oneof.CC(**SETTINGS | {"epochs": 20})
    truth = (~S[np.arange(len(y)), y]).mean()
    assert oneof.outside_rate(model, X, S) == pytest.approx(truth, abs=0.05)
    whole = S.copy()
    whole[np.arange(len(y)), y] = True
    assert oneof.outside_rate(model, X, whole) < 0.01
    auto = clone(model).set_params(outside="auto")
    assert auto.fit(X, S).outside_rate_.item() == pytest.approx(truth, abs=0.05)
    assert auto.fit(X, whole).outside_rate_.item() == 0
    assert (auto.predict(X) == clone(model).fit(X, whole).predict(X)).all()


def test_the_rate_of_many_classes_is_estimated_from_some_rows(monkeypatch):
    monkeypatch.setattr(outside, "_MOST_NUMBERS", 60_000)
    rng = np.random.default_rng(0)
    y = rng.integers(40, size=1200)
    S = rng.random((1200, 40)) < 0.1
    S[np.arange(1200), y] = rng.random(1200) > 0.1
    S[~S.any(1), 0] = True
    log_p = np.log(np.where(np.eye(40)[y] > 0, 0.9, 0.1 / 39))
    assert outside.fitted_rate(log_p, S) == pytest.approx(0.1, abs=0.03)


def test_resolve_knows_of_it(swapped):
    X, S, y = swapped
    found = oneof.resolve(oneof.CC(outside=0.2, **SETTINGS | {"epochs": 20}), X, S)
    missing = ~S[np.arange(len(y)), y]
    assert found.outside[missing].mean() > 0.7
    assert found.outside[~missing].mean() < 0.1


def test_the_result_unpacks_to_three_and_survives_pickle():
    found = oneof.disambiguate([[0.5, 0.5], [0.9, 0.1]], [[0, 1], [0]])
    label, probability, margin = found
    assert len(found) == 3
    assert found._asdict().keys() == {"label", "probability", "margin"}
    assert found.outside.tolist() == [0, 0]
    given = type(found)(label, probability, margin, np.array([0.1, 0.2]))
    assert pickle.loads(pickle.dumps(given)).outside.tolist() == [0.1, 0.2]
