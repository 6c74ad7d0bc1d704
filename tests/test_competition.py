"""Competition against brute force and a literal transcription (see test_golden for the manner), at its edges."""

import math
from itertools import product

import numpy as np
import pytest
import torch

import oneof
from oneof import functional as F
from oneof.cli.demo import make_problem
from oneof.data import corrupt
from test_golden import (
    K,
    Layer,
    N,
    check_layer,
    descend,
    fit,
    prior,
    problem,
    softmax,
    softmax_on,
    some_priors,
    standardise,
)
from test_golden_others import numbers, set_views, shifted, some_views


def log_likelihood(a, S, C, M, j):
    """log P(S | y = j), written out."""
    odds = [torch.exp(a[k] + C[j][k]) if k != j else torch.zeros((), dtype=torch.float64) for k in range(len(a))]
    found = torch.zeros((), dtype=torch.float64)
    for k in range(len(a)):
        if k != j:
            named = 1 - torch.exp(-M * odds[k] / sum(odds))
            found = found + torch.log(named if S[k] else 1 - named)
    return found


def scene(k=5, rows=40):
    torch.manual_seed(0)
    a = 2 * torch.randn(rows, k, dtype=torch.float64)
    C = torch.randn(k, k, dtype=torch.float64)
    S = torch.rand(rows, k) < 0.5
    S[torch.arange(rows), torch.randint(k, (rows,))] = True
    return a, S, C, torch.tensor([[0.7]], dtype=torch.float64)


# --- the formula ------------------------------------------------------------------------------------------


def test_likelihood_is_that_of_the_formula():
    a, S, C, log_M = scene()
    got = F.guess_log_likelihood(a, S, C, log_M)
    for i, j in zip(*np.nonzero(S.numpy()), strict=True):
        assert got[i, j].item() == pytest.approx(log_likelihood(a[i], S[i], C, log_M.exp().item(), j).item())


def test_chances_of_all_sets_of_a_label_sum_to_one():
    a, _, C, log_M = scene(k=4, rows=1)
    sets = torch.tensor(list(product([False, True], repeat=4)))
    found = F.guess_log_likelihood(a.expand(len(sets), -1), sets, C, log_M).exp()
    for j in range(4):
        assert found[sets[:, j], j].sum().item() == pytest.approx(1)


def test_likelihood_is_the_frequency_among_drawn_guesses():
    a, _, C, log_M = scene(k=4, rows=1)
    rng, y, draws = np.random.default_rng(0), 2, 200_000
    p = (a[0] + C[y]).exp().numpy() * (np.arange(4) != y)
    guesses = np.stack([rng.poisson(log_M.exp().item() * share, draws) for share in p / p.sum()], 1) > 0
    guesses[:, y] = True
    for S in np.unique(guesses, axis=0):
        expected = F.guess_log_likelihood(a, torch.tensor(S)[None], C, log_M)[0, y].exp().item()
        assert (guesses == S).all(1).mean() == pytest.approx(expected, abs=0.005)


@pytest.mark.parametrize("one_row", [False, True])
def test_pairs_of_candidates_alone_give_the_same_numbers_and_gradients(one_row):
    a, S, C, log_M = scene(k=7)
    C = C[:1] if one_row else C
    results = []
    for largest in (None, int(S.sum(-1).max()), 7):
        leaves = [tensor.clone().requires_grad_() for tensor in (a, C, log_M)]
        both = leaves[0].expand(2, -1, -1)  # two views, which share their sets
        found = F.guess_log_likelihood(both, S, leaves[1], leaves[2], largest) * S
        found.sum().backward()
        results.append([found, *(leaf.grad for leaf in leaves)])
    for other in results[1:]:
        for have, want in zip(other, results[0], strict=True):
            torch.testing.assert_close(have, want)


def test_stacked_trials_have_their_own_affinities():
    a, S, C, log_M = scene()
    together = F.guess_log_likelihood(
        a.expand(2, -1, -1), S.expand(2, -1, -1), torch.stack([C, -C]), log_M.expand(2, 1, 1), int(S.sum(-1).max())
    )
    for got, own in zip(together, (C, -C), strict=True):
        torch.testing.assert_close(got * S, F.guess_log_likelihood(a, S, own, log_M) * S)


@pytest.mark.parametrize("one_row", [False, True])
def test_certain_scores_give_finite_numbers_and_gradients(one_row):
    a = torch.tensor([[500.0, 0.0, -500.0], [0.0, 0.0, 0.0]], requires_grad=True)
    S = torch.tensor([[False, True, True], [True, True, True]])
    C = torch.zeros(1 if one_row else 3, 3, requires_grad=True)
    found = F.guess_log_likelihood(a, S, C, torch.zeros(1, 1))
    found[S].sum().backward()
    assert found[S].isfinite().all()
    assert a.grad.isfinite().all()
    assert C.grad.isfinite().all()


def test_equal_scores_tell_nothing():
    _, S, _, log_M = scene()
    found = F.guess_log_likelihood(torch.zeros(len(S), 5).double(), S, torch.zeros(5, 5).double(), log_M)
    for row, inside in zip(found, S, strict=True):
        assert row[inside].std(unbiased=False).item() == pytest.approx(0, abs=1e-12)


def test_a_label_that_would_have_taken_all_guesses_is_the_true_one():
    a = torch.tensor([[5.0, 1.0, 1.0, 0.0]])
    S = torch.tensor([[True, True, True, False]])
    found = F.guess_log_likelihood(a, S, torch.zeros(1, 4), torch.tensor([[1.0]]))
    assert found[0, 0] > found[0, 1] + 1.5


# --- the method -------------------------------------------------------------------------------------------


class Process(Layer):
    """tau, log M and C, with rates and decays of their own."""

    def __init__(self, S):
        wrong = S.sum() / N - 1
        super().__init__(1, rate=0.03, decay=0.0)
        self.log_rate = math.log(-(K - 1) * math.log(1 - wrong / (K - 1)))
        self.parameters = [torch.tensor([1.0, 0.0], dtype=torch.float64, requires_grad=True)]


class Affinity(Layer):
    def __init__(self):
        super().__init__(1, rate=0.03, decay=0.01)
        self.parameters = [torch.zeros(K, K, dtype=torch.float64), torch.zeros(K, dtype=torch.float64)]
        for parameter in self.parameters:
            parameter.requires_grad_()

    def matrix(self):
        weight, bias = self.parameters
        return [[10 * (weight[k, j] + bias[k]) for k in range(K)] for j in range(K)]


@some_views
@some_priors
@pytest.mark.parametrize("targets", ["own", "first"])
@pytest.mark.parametrize("kappa", [0.0, 0.3])
def test_competition(kappa, targets, shifts, weigh, monkeypatch):
    set_views(monkeypatch, shifts)
    model = fit(oneof.Competition, weigh, views="plain+jitter+jitter", kappa=kappa, targets=targets, epochs=2)
    X, S, weight = problem()
    P = prior(S, weigh)
    rows, f, process, affinity, history = standardise(X, weight), Layer(K), Process(S), Affinity(), []

    def terms(u, i):
        tau, change = process.parameters[0]
        C = affinity.matrix()
        return [
            softmax(u)[j]
            * torch.exp(
                kappa * log_likelihood([tau * v for v in u], S[i], C, torch.exp(process.log_rate + change), j)
            )
            if S[i][j]
            else torch.zeros((), dtype=torch.float64)
            for j in range(K)
        ]

    for _ in range(2):
        losses = []
        for i in range(N):
            views = [terms(f(shifted(rows[i], shift)), i) for shift in shifts]
            if targets == "own":
                losses.append(-sum(torch.log(sum(P[i][j] * t[j] for j in range(K))) for t in views) / len(shifts))
                continue
            r = [P[i][j] * views[0][j].item() for j in range(K)]
            r = [value / sum(r) for value in r]
            bounds = [sum(r[j] * torch.log(P[i][j] * t[j] / r[j]) for j in range(K) if r[j]) for t in views]
            losses.append(-sum(bounds) / len(shifts))
        layers = [f, process, affinity] if kappa else [f]
        history.append(descend(losses, weight, *layers))
    check_layer(model.network_, f)
    if kappa:
        torch.testing.assert_close(model.tie_.bias, process.parameters[0], atol=1e-9, rtol=1e-9)
        check_layer(model.affinity_, affinity)
    assert model.history_["loss"] == pytest.approx(history, abs=1e-9)
    for i in range(N):
        t = terms(f(rows[i]), i)
        r = [P[i][j] * t[j].item() / sum(P[i][k] * t[k].item() for k in range(K)) for j in range(K)]
        assert model.label_distributions_[i] == pytest.approx(r, abs=1e-9)


def test_without_trust_it_is_cc():
    model = fit(oneof.Competition, kappa=0.0, mixup=0.0, epochs=5)
    other = fit(oneof.CC, epochs=5)
    for have, want in zip(model.network_.parameters(), other.network_.parameters(), strict=True):
        torch.testing.assert_close(have, want, atol=1e-12, rtol=1e-12)


def test_mixed_rows_are_taught_the_mixture_of_their_weights(monkeypatch):
    t = torch.tensor([0.1, 0.9, 0.4, 0.0, 0.6, 0.5], dtype=torch.float64)
    monkeypatch.setattr("oneof.train.batch.Batch.uniform", lambda batch, rows: t[rows])
    monkeypatch.setattr(torch, "randperm", lambda n, **_: torch.arange(n))
    model = fit(oneof.Competition, kappa=0.0, mixup=0.7, epochs=3)
    X, S, weight = problem()
    rows, f, history = standardise(X, weight), Layer(K), []
    for _ in range(3):
        r = [numbers(softmax_on(f(row), S[i])) for i, row in enumerate(rows)]
        losses = []
        for i in range(N):
            share = 0.5 + 0.5 * t[i].item()
            mixed = [share * rows[i][d] + (1 - share) * rows[i - 1][d] for d in range(len(rows[i]))]
            target = [share * r[i][j] + (1 - share) * r[i - 1][j] for j in range(K)]
            theta, inside = softmax(f(mixed)), softmax(f(rows[i]))
            own = -torch.log(sum(inside[j] for j in range(K) if S[i][j]))
            losses.append(own - 0.7 * sum(target[j] * torch.log(theta[j]) for j in range(K)))
        history.append(descend(losses, weight, f))
    check_layer(model.network_, f)
    assert model.history_["loss"] == pytest.approx(history, abs=1e-9)


def test_mixup_is_for_rows_without_views(monkeypatch):
    asked = []
    monkeypatch.setattr("oneof.train.batch.Batch.mixup", lambda batch, network, r: asked.append(1) or r.sum(-1))
    fit(oneof.Competition, epochs=1, mixup=None)
    assert len(asked) == 1
    fit(oneof.Competition, epochs=1, mixup=0.0)
    fit(oneof.Competition, epochs=1, views="plain+jitter", mixup=None)
    assert len(asked) == 1
    fit(oneof.Competition, epochs=1, views="plain+jitter", mixup=1.0)
    assert len(asked) == 2


@pytest.mark.parametrize("k", [40, 300], ids=["pairs", "one row for all"])
def test_many_classes(k):
    rng = np.random.default_rng(0)
    X, S = rng.normal(size=(2 * k, 6)), rng.random((2 * k, k)) < 3 / k
    S[np.arange(2 * k), np.arange(2 * k) % k] = True
    model = oneof.Competition(network="linear", epochs=2, batch_size=32, random_state=0, device="cpu").fit(X, S)
    assert model.affinity_.weight.shape == (k, k if k <= 256 else 1)
    distribution = model.label_distributions_
    assert (distribution[~S] == 0).all()
    np.testing.assert_allclose(distribution.sum(1), 1, rtol=1e-5)


def test_it_finds_digits_among_look_alikes():
    problem = make_problem(100)
    accuracy = {}
    for method in (oneof.Competition, oneof.CC):
        model = method(epochs=30, random_state=0, device="cpu", threads=1).fit(problem.x_train, problem.candidates)
        accuracy[method] = (model.transduction_ == problem.y_train).mean()
    assert accuracy[oneof.Competition] > 0.9
    assert accuracy[oneof.Competition] > accuracy[oneof.CC] + 0.03


# --- the annotator known ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("process", "arguments"),
    [
        ("instance", {"rate": 0.3}),
        ("class", {"matrix": [[1, 0.5, 0.1], [0.2, 1, 0], [0.3, 0.3, 1]]}),
        ("pair", {"n_classes": 3, "rate": 0.4}),
        ("hierarchical", {"groups": [0, 0, 1], "rate": 0.4}),
    ],
)
def test_likelihoods_of_sets_are_their_frequencies(process, arguments):
    n, y = 50_000, 1
    if process == "instance":
        arguments = arguments | {"scores": np.tile([0.3, 1.0, -0.5], (n, 1))}
    drawn = corrupt.PROCESSES[process](np.full(n, y), **arguments, seed=0)
    for S in np.unique(drawn, axis=0):
        row = {"scores": arguments["scores"][:1]} if process == "instance" else {}
        found = corrupt.set_log_likelihoods(S[None], process, arguments | row)
        assert np.exp(found[0, y]) == pytest.approx((drawn == S).all(1).mean(), abs=0.01)
        assert (found[0] == -np.inf)[~S].all()


def test_likelihoods_of_other_processes_are_refused():
    with pytest.raises(
        ValueError, match="does not draw labels one by one; the likelihood of its sets is known for"
    ):
        corrupt.set_log_likelihoods(np.ones((2, 3)), "uniform-sets", {"n_classes": 3})
