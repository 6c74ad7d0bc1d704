"""The paper's theory: bounds that hold, printed forms that do not."""

import re
from itertools import product
from math import exp, log, sqrt
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from oneof import functional as F
from oneof.theory import (
    estimation_error_bound,
    largest_loss,
    linear_complexity,
    loss_upper_bound,
    parameter_bounds,
    set_constant,
    simulated_complexity,
)

PAGE = Path(__file__).parent.parent / "docs" / "theory.md"
SEEDS = st.integers(0, 2**32 - 1)
CLASSES = st.integers(2, 7)
CONSTANTS = st.tuples(st.sampled_from([0.1, 1.0, 10.0]), st.sampled_from([0.0, 1.0, 2.5]), st.floats(0.5, 2.0))
quick = settings(max_examples=60)


class Example:
    """One example: outputs in [-A, A], a third of them at the ends, a set, and the parameters of Eq. 8 and 9."""

    def __init__(self, seed, c, A, a, b, gamma):
        self.random = random = np.random.default_rng(seed)
        outputs = random.uniform(-A, A, (3, c))
        outputs = np.where(random.random((3, c)) < 1 / 3, A * np.sign(outputs), outputs)
        self.S = [j for j in range(c) if random.random() < 0.5] or [int(random.integers(c))]
        self.c, self.high = c, a * exp(A / gamma) + b
        self.low = a * exp(-A / gamma) + b
        lam, alpha, beta = (a * np.exp(outputs / gamma) + b).tolist()
        o = [float(j in self.S) for j in range(c)]
        total = sum(lam) + sum(o)
        self.theta = [(lam[j] + o[j]) / total for j in range(c)]
        self.z = [(alpha[j] + o[j]) / (alpha[j] + beta[j] + o[j]) for j in range(c)]

    def weights(self, low, high):
        """Three rows of constant weights, a third of them the largest."""
        drawn = self.random.uniform(low, high, (3, self.c))
        return np.where(self.random.random((3, self.c)) < 1 / 3, high, drawn).tolist()


def chance_of_the_others(z, S, j):
    """The chance of the wrong candidates of S when j is the correct label."""
    chance = 1.0
    for k in range(len(z)):
        chance *= z[k] if k in S and k != j else 1 - z[k]
    return chance


def literal_loss(theta, z, S, w, A, B):
    """Eq. 4 and 6 of one example, term by term."""
    loss = -log(sum(theta[j] * chance_of_the_others(z, S, j) for j in S))
    for j in range(len(theta)):
        loss -= w[j] * log(theta[j]) + A[j] * log(z[j]) + B[j] * log(1 - z[j])
    return loss


def tensors(theta, z, S, w, A, B):
    """The arguments of `loss_upper_bound`."""
    theta, z, w, A, B = (torch.tensor(values, dtype=torch.float64) for values in (theta, z, w, A, B))
    return theta.log(), z.logit(), torch.tensor([j in S for j in range(len(z))]), w, A, B


# --- The largest loss -------------------------------------------------------------------------------------


@quick
@given(SEEDS, CLASSES, st.floats(0, 6), CONSTANTS)
def test_parameters_stay_within_their_bounds(seed, c, A, constants):
    a, b, gamma = constants
    example = Example(seed, c, A, a, b, gamma)
    bounds = parameter_bounds(A, c, a=a, b=b, gamma=gamma)
    assert min(example.theta) >= bounds.B * (1 - 1e-12)
    assert min(example.z) >= bounds.E * (1 - 1e-12)
    assert max(example.z) <= bounds.F * (1 + 1e-12)


@quick
@given(SEEDS, CLASSES, st.floats(0, 6), CONSTANTS)
def test_no_loss_exceeds_the_largest(seed, c, A, constants):
    """For weights of the concentrations themselves, negative ones included, and for weights scaled to [0, rho]."""
    a, b, gamma = constants
    example = Example(seed, c, A, a, b, gamma)
    raw = literal_loss(example.theta, example.z, example.S, *example.weights(example.low - 1, example.high - 1))
    assert raw <= largest_loss(A, c, a=a, b=b, gamma=gamma)
    for rho in (0.0, 0.3, 2.0):
        scaled = literal_loss(example.theta, example.z, example.S, *example.weights(0, rho))
        assert 0 <= scaled <= largest_loss(A, c, rho=rho, a=a, b=b, gamma=gamma)


def test_largest_loss_is_nearly_attained_where_the_prior_overwhelms_the_outputs():
    c, b = 10, 1000.0
    weights = [[b] * c] * 3  # a exp(0) + b - 1 with a = 1
    theta, z = [1 / c] * c, [0.5] * c
    attained = literal_loss(theta, z, range(c), *weights) / largest_loss(0, c, b=b)
    assert 0.99 < attained < 1


def test_largest_loss_is_within_a_factor_of_two_at_ordinary_settings():
    """All weights as large as they get, one label at A and the others at -A, a single candidate, z at its ends."""
    c, low, high = 10, exp(-5) + 1, exp(5) + 1
    lam = [high] + [low] * (c - 1)
    theta = [(value + (j == 0)) / (sum(lam) + 1) for j, value in enumerate(lam)]
    z = [(high + 1) / (high + low + 1)] + [high / (high + low)] * (c - 1)
    share = literal_loss(theta, z, [0], *[[high - 1] * c] * 3) / largest_loss(5, c)
    assert share == pytest.approx(0.53, abs=0.005)  # as told on the page


def test_weights_below_zero_give_losses_below_zero():
    """With b < 1 the loss is not within [0, M], which the deviation term needs."""
    assert literal_loss([0.5, 0.5], [0.5, 0.5], [0], *[[-0.9] * 2] * 3) < 0


# --- Eq. 12 -----------------------------------------------------------------------------------------------


@quick
@given(SEEDS, CLASSES, st.floats(0, 6), CONSTANTS)
def test_corrected_upper_bound_holds(seed, c, A, constants):
    example = Example(seed, c, A, *constants)
    arguments = example.theta, example.z, example.S, *example.weights(-0.5, 3)
    loss = literal_loss(*arguments)
    bound = float(loss_upper_bound(*tensors(*arguments)))
    assert loss <= bound + 1e-9 * (1 + abs(bound))
    if len(example.S) == 1:
        assert bound == pytest.approx(loss, rel=1e-9)


@quick
@given(SEEDS, CLASSES, st.floats(0, 6), CONSTANTS)
def test_set_constant_equals_the_formula_and_is_never_positive(seed, c, A, constants):
    example = Example(seed, c, A, *constants)
    z, S = example.z, example.S
    w, positive, negative = example.weights(0, 3)
    expected = log(len(S)) + sum(log(chance_of_the_others(z, S, j)) for j in S) / len(S)
    expected += sum(positive[j] * log(z[j]) + negative[j] * log(1 - z[j]) for j in range(c))
    _, distractors, candidates, _, positive, negative = tensors(example.theta, z, S, w, positive, negative)
    found = float(set_constant(distractors, candidates, positive, negative))
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert found <= 1e-12


def test_upper_bound_as_printed_fails():
    """Minus instead of plus before the cross-entropies: three labels, all chances alike, two candidates."""
    arguments = [1 / 3] * 3, [0.5] * 3, [0, 1], [0.0] * 3, [0.0] * 3, [0.0] * 3
    loss = literal_loss(*arguments)
    assert loss == pytest.approx(log(12))
    K = log(2) + log(1 / 8)
    assert -(K + log(3)) == pytest.approx(log(4 / 3))  # printed
    assert log(4 / 3) < loss
    assert float(loss_upper_bound(*tensors(*arguments))) == pytest.approx(loss)  # corrected


def test_beta_terms_of_the_candidates_alone_fail():
    """K as printed in Section 4 has the Beta terms under the mean over S; here the other label has some weight."""
    theta, z, S, w, A, B = [0.5, 0.5], [0.5, 0.5], [0], [0.0, 0.0], [0.0, 0.0], [0.0, 1.0]
    K = log(1) + sum(log(chance_of_the_others(z, S, j)) + A[j] * log(z[j]) + B[j] * log(1 - z[j]) for j in S)
    loss = literal_loss(theta, z, S, w, A, B)
    assert -K - log(theta[0]) < loss - 0.5
    assert float(loss_upper_bound(*tensors(theta, z, S, w, A, B))) == pytest.approx(loss)


def test_dirichlet_terms_of_the_candidates_twice_fail():
    """The last sum of the derivation runs over S where the other labels are meant; here one has some weight."""
    theta, z, S, w, nothing = [0.5, 0.5], [0.5, 0.5], [0], [0.0, 1.0], [0.0, 0.0]
    K = log(1) + sum(log(chance_of_the_others(z, S, j)) for j in S)
    printed = -K - sum((w[j] + 1) * log(theta[j]) for j in S) - sum(w[j] * log(theta[j]) for j in S)
    loss = literal_loss(theta, z, S, w, nothing, nothing)
    assert printed < loss - 0.5
    assert float(loss_upper_bound(*tensors(theta, z, S, w, nothing, nothing))) == pytest.approx(loss)


# --- Lemmas and Theorem 1 ---------------------------------------------------------------------------------


def test_deviation_as_printed_fails_more_often_than_promised():
    """One function, its loss 0 or M = 1 with equal chance: no complexity, only the deviation remains."""
    n, xi = 1000, 0.05
    right = sqrt(log(2 / xi) / (2 * n))

    def chance_beyond(deviation):
        return 2 * binom.cdf(np.floor(n * (0.5 - deviation)), n, 0.5)

    assert chance_beyond(right) <= xi
    assert chance_beyond(right / 2) > 3 * xi


@quick
@given(SEEDS, CLASSES, st.floats(0, 6), CONSTANTS)
def test_loss_is_lipschitz_in_the_outputs_of_f(seed, c, A, constants):
    """By sqrt(2) (1 + sum of weights) / gamma, and the cross-entropy by L = sqrt(2) / gamma."""
    a, b, gamma = constants
    example = Example(seed, c, A, *constants)
    _, distractors, candidates, *weights = tensors(example.theta, example.z, example.S, *example.weights(0, 2))
    u = torch.tensor(example.random.uniform(-A, A, c), requires_grad=True)
    scores = F.label_scores(u, a, b, gamma, candidates)
    loss = F.generation_nll(scores, distractors, candidates) + F.prior_nll(scores, distractors, *weights)
    (slope,) = torch.autograd.grad(loss, u, retain_graph=True)
    assert float(slope.norm()) <= sqrt(2) * (1 + float(weights[0].sum())) / gamma + 1e-9
    (slope,) = torch.autograd.grad(-scores.log_softmax(-1)[0], u)
    assert float(slope.norm()) <= sqrt(2) / gamma + 1e-9


def test_lipschitz_constant_is_attained():
    u = torch.tensor([-8.0, 8.0], dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(-F.label_scores(u, 1, 0, 0.5).log_softmax(-1)[0], u)
    assert float(slope.norm()) == pytest.approx(sqrt(2) / 0.5, rel=1e-6)


@quick
@given(SEEDS, st.integers(1, 8), st.integers(1, 4))
def test_complexity_bounds_the_mean_over_all_signs(seed, n, features):
    """From above, and by Khintchine's inequality never more than sqrt(2) above."""
    X = np.random.default_rng(seed).normal(size=(n, features))
    exact = np.mean([3 * np.linalg.norm(np.array(signs) @ X) / n for signs in product([-1, 1], repeat=n)])
    assert exact * (1 - 1e-12) <= linear_complexity(X, 3) <= sqrt(2) * exact * (1 + 1e-12)


def test_simulated_complexity_is_the_mean_over_all_signs():
    X = np.random.default_rng(0).normal(size=(8, 3))
    exact = np.mean([2 * np.linalg.norm(np.array(signs) @ X) / 8 for signs in product([-1, 1], repeat=8)])
    assert simulated_complexity(X, 2, draws=20_000) == pytest.approx(exact, rel=0.02)
    assert simulated_complexity(X, 2, seed=1) != simulated_complexity(X, 2, seed=2)


def test_theorem_equals_the_formula():
    X = [[3.0, 4.0], [0.0, 5.0], [5.0, 0.0], [4.0, 3.0]]
    bound = estimation_error_bound(X, 3, W=2, A=1, rho=0.5, xi=0.1, a=2, b=1, gamma=0.5)
    M = largest_loss(1, 3, rho=0.5, a=2, b=1, gamma=0.5)
    complexity = 2 * 10 / 4
    expected = 4 * sqrt(2) * 0.5 * 3 * (sqrt(2) / 0.5) * 3 * complexity + 2 * M * sqrt(log(2 / 0.1) / 8)
    assert bound.M == M
    assert bound.total == pytest.approx(expected)


def test_theorem_falls_with_the_root_of_n():
    X = np.ones((5, 2))
    few, many = (estimation_error_bound(rows, 4, W=1, A=2, rho=1).total for rows in (X, np.tile(X, (100, 1))))
    assert many == pytest.approx(few / 10)


def test_largest_loss_is_finite_where_z_may_round_to_one():
    assert parameter_bounds(300, 3, b=0).F == 1
    assert np.isfinite(largest_loss(300, 3, rho=1, b=0))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"c": 1}, "c is 1, but must be at least 2"),
        ({"W": 0}, "W is 0, but must be positive and finite"),
        ({"W": float("nan")}, "W is nan, but must be positive and finite"),
        ({"A": -1}, "A is -1, but must be from 0 to 300 gamma"),
        ({"A": 1e6}, "A is 1000000.0, but must be from 0"),
        ({"rho": -1}, "rho is -1, but must be at least 0"),
        ({"xi": 1}, "xi is 1, but must be between 0 and 1"),
        ({"a": 0}, "a is 0, but must be positive"),
        ({"b": -1}, "b is -1, but must be at least 0"),
        ({"gamma": 0}, "gamma is 0, but must be positive"),
        ({"X": [1.0, 2.0]}, r"X has shape \(2,\), but must have rows and columns"),
        ({"X": [[float("inf")]]}, "X holds numbers that are not finite"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_bad_arguments_are_refused(change, complaint):
    arguments = {"X": [[1.0]], "c": 3, "W": 1, "A": 1, "rho": 1} | change
    with pytest.raises(ValueError, match=complaint):
        estimation_error_bound(**arguments)


# --- The page ---------------------------------------------------------------------------------------------


def test_the_page_prints_what_its_snippets_print(capsys):
    """Each snippet goes on from the one before; the block after it holds its output."""
    pairs = re.findall(r"```python\n(.*?)```\n+```text\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(pairs) == 2
    names = {}
    for snippet, printed in pairs:
        exec(snippet, names)
        assert capsys.readouterr().out == printed
