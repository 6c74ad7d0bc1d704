"""Membership against a slow, literal transcription (see test_golden for the manner), at its edges, on digits."""

import numpy as np
import pytest
import torch

import oneof
from conftest import make_data
from oneof import functional as F
from oneof.demo import make_problem
from oneof.engine import make_batch
from test_golden import K, Layer, N, check_layer, check_table, descend, fit, problem, softmax_on, standardise
from test_golden_others import cross_entropy, numbers, set_views, shifted, sigmoid, some_views, uniform_on

# --- the transcription ------------------------------------------------------------------------------------


class Moments:
    """Moving averages of 1, s and s^2 of true and of wrong candidates, and what follows from them."""

    def __init__(self):
        self.true, self.wrong = [[[0.0] * K for _ in range(3)] for _ in range(2)]

    def add(self, weight, belief, S, s):
        for power in range(3):
            for j in range(K):
                true = sum(weight[i] * belief[i][j] * s[i][j] ** power for i in range(N))
                wrong = sum(weight[i] * (S[i][j] - belief[i][j]) * s[i][j] ** power for i in range(N))
                self.true[power][j] = 0.99 * self.true[power][j] + 0.01 * true
                self.wrong[power][j] = 0.99 * self.wrong[power][j] + 0.01 * wrong

    def normals(self):
        """Means of both kinds and the variance, from the definition of a variance: E (s - m)^2."""
        rows = sum(self.true[0]) + sum(self.wrong[0])
        means, spread = [], 0.0
        for count, first, second in (self.true, self.wrong):
            overall, more = sum(first) / sum(count), rows / (20 * K)
            means.append([(first[j] + more * overall) / (count[j] + more) for j in range(K)])
            spread += sum(
                count[j] * ((second[j] / count[j]) - 2 * means[-1][j] * (first[j] / count[j]) + means[-1][j] ** 2)
                for j in range(K)
            )
        return *means, spread / rows

    def tilt(self, s, kappa):
        m1, m0, v = self.normals()
        if kappa is None:
            rows = [self.true[0][j] + self.wrong[0][j] for j in range(K)]
            kappa = max(sum(rows[j] * (m1[j] - m0[j]) / v for j in range(K)) / sum(rows), 0.0)
        return [kappa * (s[j] - (m1[j] + m0[j]) / 2) for j in range(K)]


@some_views
@pytest.mark.parametrize("kappa", [None, 0.0, 0.8], ids=["estimated", "none", "given"])
def test_membership(kappa, shifts, monkeypatch):
    epochs, warm_up = 8, 3
    set_views(monkeypatch, shifts)
    settings = {"kappa": kappa, "warm_up": warm_up, "epochs": epochs}
    model = fit(oneof.Membership, views="plain+jitter+jitter", **settings)
    X, S, weight = problem()
    rows, f, g, w, history = standardise(X, weight), Layer(K), Layer(K), uniform_on(S), []
    moments, tilts = Moments(), []
    for epoch in range(epochs):
        losses, belief, s_mean, u_first = [], [], [], []
        for i in range(N):
            u, s = ([net(shifted(rows[i], shift)) for shift in shifts] for net in (f, g))
            loss = sum(cross_entropy(w[i], each) for each in u) / len(shifts)
            for each in s:
                for j in range(K):
                    mu = sigmoid(each[j])
                    loss = loss - torch.log(mu if S[i][j] else 1 - mu) / len(shifts)
            losses.append(loss)
            u_first.append(u[0])
            belief.append(numbers(softmax_on(u[0], S[i])))
            s_mean.append([sum(each[j].item() for each in s) / len(shifts) for j in range(K)])
        moments.add(weight, belief, S, s_mean)
        for i in range(N):
            tilt = moments.tilt(s_mean[i], kappa) if epoch >= warm_up else [0.0] * K
            tilts += tilt
            w[i] = numbers(softmax_on([u_first[i][j] + tilt[j] for j in range(K)], S[i]))
        history.append(descend(losses, weight, f, g))
    check_layer(model.network_, f)
    check_layer(model.membership_network_, g)
    check_table(model.w_, w)
    check_table(model.moments_, moments.true + moments.wrong)
    assert model.history_["loss"] == pytest.approx(history, abs=1e-9)
    assert kappa == 0 or max(map(abs, tilts)) > 0.1
    for i in range(N):  # at the end of training, of the rows as they are
        u, s = numbers(f(rows[i])), numbers(g(rows[i]))
        tilt = moments.tilt(s, kappa)
        tilted = [torch.tensor(u[j] + tilt[j], dtype=torch.float64) for j in range(K)]
        assert model.label_distributions_[i] == pytest.approx(numbers(softmax_on(tilted, S[i])), abs=1e-9)
        assert model.membership_proba(X)[i] == pytest.approx([1 / (1 + np.exp(-v)) for v in s], abs=1e-9)


# --- PRODEN as a special case -------------------------------------------------------------------------------


@pytest.mark.parametrize("views", [None, "jitter+plain"])
@pytest.mark.parametrize("never", [{"kappa": 0.0, "warm_up": 0}, {"warm_up": 20}], ids=["kappa", "warm-up"])
def test_without_trust_in_membership_it_is_proden(views, never, digits):
    X, S, _ = digits
    settings = {"epochs": 15, "views": views, "random_state": 4, "device": "cpu"}
    model, proden = (
        method(**settings).fit(X[:300], S[:300])
        for method in (lambda **common: oneof.Membership(**never, **common), oneof.PRODEN)
    )
    for have, want in zip(model.network_.parameters(), proden.network_.parameters(), strict=True):
        assert torch.equal(have, want)
    assert torch.equal(model.w_, proden.w_)
    with_trust = oneof.Membership(**settings).fit(X[:300], S[:300])
    assert not torch.equal(with_trust.w_, proden.w_)


def test_sets_of_one_teach_f_what_they_teach_proden(digits):
    """No wrong candidate was ever seen: kappa is 0 and larger sets are left to f."""
    X, S, y = digits
    settings = {"epochs": 15, "random_state": 0, "device": "cpu"}
    model, proden = (method(**settings).fit(X[:300], y[:300]) for method in (oneof.Membership, oneof.PRODEN))
    assert F.discriminant(model.moments_)[0].item() == 0
    assert np.array_equal(model.predict_proba(X), proden.predict_proba(X))
    for have, want in zip(model.disambiguate(X, S), proden.disambiguate(X, S), strict=True):
        assert np.array_equal(have, want)


# --- edges --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [2, 3, 5])
@pytest.mark.parametrize("classes", [2, 7])
def test_fewer_rows_than_moments(rows, classes, tmp_path):
    rng = np.random.default_rng(rows)
    X, S = rng.normal(size=(rows, 3)), np.ones((rows, classes), dtype=bool)
    S[0, 1:] = False  # the only set that is not full
    model = oneof.Membership(epochs=20, warm_up=3, random_state=0, device="cpu").fit(X, S)
    assert all(torch.isfinite(tensor).all() for tensor in model.learned().values())
    assert model.moments_.shape == (6, classes)
    assert model.label_distributions_[0].tolist() == [1.0] + [0.0] * (classes - 1)
    assert np.allclose(model.label_distributions_.sum(1), 1)
    model.save(tmp_path / "model")
    assert torch.equal(oneof.load_model(tmp_path / "model", device="cpu").moments_, model.moments_)


@pytest.mark.parametrize("full", [True, False], ids=["full sets", "sets of one"])
def test_batches_in_which_all_sets_are_alike(full):
    """A full set tells g to say yes to everything; the weights stay distributions on the sets."""
    data = make_data(dtype=torch.float32)
    data.candidates[:] = full
    data.candidates[:, 0] = True
    model = oneof.Membership(network="linear", device="cpu", warm_up=1)
    model.start(data)
    for epoch in range(4):
        losses = model.step(make_batch(data, torch.arange(12), epoch))
        assert torch.isfinite(losses).all()
        torch.testing.assert_close(model.w_.sum(-1), torch.ones(12))
        assert (model.w_[~data.candidates] == 0).all()
        assert torch.isfinite(model.moments_).all()
        assert not model.moments_.requires_grad
    assert (model.w_.max() < 1) == full


def test_rows_without_weight_leave_no_trace_in_the_moments():
    data, other = make_data(), make_data()
    data.weight[6:] = other.weight[6:] = 0
    other.x[6:] += 100
    moments = []
    for each in (data, other):
        torch.manual_seed(0)
        model = oneof.Membership(network="linear", precision="fp64", device="cpu")
        model.start(each)
        model.step(make_batch(each, torch.arange(12), 0))
        moments.append(model.moments_)
    assert torch.equal(*moments)
    assert moments[0].abs().sum() > 0


def test_label_posterior_is_zero_outside_the_set_and_membership_is_a_chance(digits):
    X, S, y = digits
    model = oneof.Membership(epochs=20, random_state=0, device="cpu").fit(X[:1000], S[:1000])
    x = torch.randn(50, 64, generator=torch.Generator().manual_seed(0)) * 30
    candidates = torch.as_tensor(S[:50])
    posterior = model.label_posterior(x, candidates)
    assert (posterior[~candidates] == 0).all()
    torch.testing.assert_close(posterior.sum(-1), torch.ones(50))
    mu = model.membership_proba(X)
    assert mu.shape == S.shape
    assert mu.min() >= 0
    assert mu.max() <= 1
    # here wrong labels join by 0.3, all alike, and the true one always
    true = mu[np.arange(len(X)), y]
    assert true[1000:].mean() > 0.85
    assert (mu.sum(1) - true)[1000:].mean() / 9 == pytest.approx(0.3, abs=0.1)


def test_tables_follow_the_networks_to_another_device(blobs):
    """A loaded or unpickled model has its tables in the host's memory, wherever its networks go."""
    X, S, _ = blobs
    model = oneof.Membership(epochs=2, random_state=0, device="cpu").fit(X, S)
    model.network_, model.membership_network_ = (torch.nn.Linear(4, 3, device="meta") for _ in range(2))
    posterior = model.label_posterior(torch.empty(5, 4, device="meta"), torch.ones(5, 3, device="meta").bool())
    assert (posterior.shape, posterior.device.type) == ((5, 3), "meta")


@pytest.mark.parametrize("kappa", [-0.1, "much"])
def test_wrong_trust_is_named(kappa, blobs):
    X, S, _ = blobs
    with pytest.raises(ValueError, match=rf"kappa of Membership is {kappa!r}, but must be a number >= 0 or None"):
        oneof.Membership(kappa=kappa).fit(X, S)


# --- behaviour ----------------------------------------------------------------------------------------------


def test_it_is_clearly_ahead_of_proden_where_look_alikes_are_candidates():
    """Validation rows of a seed that no published number is made of."""
    digits = make_problem(100)
    membership, proden = (
        method(random_state=100, device="cpu").fit(digits.x_train, digits.candidates)
        for method in (oneof.Membership, oneof.PRODEN)
    )
    scores = [model.score(digits.x_validation, digits.y_validation) for model in (membership, proden)]
    assert scores[0] >= scores[1] + 0.03
    resolved = [(model.transduction_ == digits.y_train).mean() for model in (membership, proden)]
    assert resolved[0] >= resolved[1] + 0.03
    # The cause: the true label is nearly always taken for a candidate, the others seldom.
    mu = membership.membership_proba(digits.x_validation)
    true = mu[np.arange(len(mu)), digits.y_validation]
    assert true.mean() > 0.95
    assert (mu.sum(1) - true).mean() / 9 < 0.3
