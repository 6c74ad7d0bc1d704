"""The formula sheet against brute force, finite differences, and the paper's degenerate cases."""

import inspect
from itertools import product
from math import exp, log

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from oneof import functional as F

torch.set_default_dtype(torch.float32)
SEEDS = st.integers(0, 2**32 - 1)
quick = settings(max_examples=40, deadline=None)


def draw(seed: int, k: int, rows: int = 3) -> tuple[Tensor, Tensor, Tensor]:
    """Scores, distractor logits and non-empty candidate sets, in float64."""
    generator = torch.Generator().manual_seed(seed)
    scores, distractors = 3 * torch.randn(2, rows, k, generator=generator, dtype=torch.float64)
    candidates = torch.rand(rows, k, generator=generator) < 0.5
    candidates[torch.arange(rows), torch.randint(k, (rows,), generator=generator)] = True
    return scores, distractors, candidates


def brute_force_likelihood(theta: list[float], z: list[float], candidates: list[bool]) -> float:
    """Eq. 4, read off the page: one term for each candidate that may be the correct label."""
    total = 0.0
    for j, inside in enumerate(candidates):
        if not inside:
            continue
        term = theta[j]
        for k, also_inside in enumerate(candidates):
            term *= z[k] if also_inside and k != j else 1 - z[k]
        total += term
    return total


def softmax(values: list[float]) -> list[float]:
    total = sum(map(exp, values))
    return [exp(value) / total for value in values]


def sigmoid(value: float) -> float:
    return 1 / (1 + exp(-value))


@pytest.mark.parametrize("k", [2, 3, 4, 5, 6])
def test_generation_nll_equals_enumeration_over_every_set(k):
    scores, distractors, _ = draw(k, k, rows=1)
    theta, z = softmax(scores[0].tolist()), [sigmoid(s) for s in distractors[0].tolist()]
    total = 0.0
    for candidates in product([False, True], repeat=k):
        if not any(candidates):
            continue
        expected = brute_force_likelihood(theta, z, list(candidates))
        mask = torch.tensor([candidates])
        assert F.generation_nll(scores, distractors, mask).item() == pytest.approx(-log(expected), abs=1e-10)
        total += expected
        # responsibilities are the terms of the sum, normalised
        r = F.responsibilities(scores, distractors, mask)[0]
        for j in range(k):
            alone = [theta[i] if i == j else 0.0 for i in range(k)]
            share = brute_force_likelihood(alone, z, list(candidates)) / expected
            assert r[j].item() == pytest.approx(share, abs=1e-12)
    # Eq. 4 is no distribution over sets: it sums to the chance that the correct label is not drawn as wrong
    assert total == pytest.approx(sum(t * (1 - p) for t, p in zip(theta, z, strict=True)), abs=1e-12)


@quick
@given(SEEDS, st.integers(2, 6))
def test_gradients_of_the_likelihood_are_those_of_the_derivation(seed, k):
    scores, distractors, candidates = draw(seed, k)
    scores.requires_grad_(), distractors.requires_grad_()
    F.generation_nll(scores, distractors, candidates).sum().backward()
    theta, z = scores.softmax(-1), distractors.sigmoid()
    r = F.responsibilities(scores, distractors, candidates)
    torch.testing.assert_close(scores.grad, (theta - r).detach(), atol=1e-10, rtol=1e-8)
    expected = (z - (candidates.double() - r)).detach()
    torch.testing.assert_close(distractors.grad, expected, atol=1e-10, rtol=1e-8)


@quick
@given(SEEDS, st.integers(2, 6))
def test_gradients_of_the_prior_are_those_of_the_derivation(seed, k):
    scores, distractors, _ = draw(seed, k)
    w, A, B = torch.rand(3, *scores.shape, dtype=torch.float64)
    scores.requires_grad_(), distractors.requires_grad_()
    F.prior_nll(scores, distractors, w, A, B).sum().backward()
    theta, z = scores.softmax(-1).detach(), distractors.sigmoid().detach()
    torch.testing.assert_close(scores.grad, w.sum(-1, keepdim=True) * theta - w, atol=1e-10, rtol=1e-8)
    torch.testing.assert_close(distractors.grad, (A + B) * z - A, atol=1e-10, rtol=1e-8)


@pytest.mark.parametrize("b", [0.0, 0.3, 1.0, 2.5])
def test_concentrations_equal_equations_8_and_9(b):
    a, gamma = 0.7, 1.6
    u, v_alpha, candidates = draw(1, 5)
    v_beta = draw(2, 5)[0]
    o = candidates.double()
    lam, alpha, beta = (a * (t / gamma).exp() + b for t in (u, v_alpha, v_beta))
    theta = (lam + o) / (lam + o).sum(-1, keepdim=True)
    z = (alpha + o) / (alpha + beta + o)
    scores = F.label_scores(u, a, b, gamma, candidates)
    distractors = F.distractor_logits(v_alpha, v_beta, a, b, gamma, candidates)
    torch.testing.assert_close(scores.softmax(-1), theta)
    torch.testing.assert_close(distractors.sigmoid(), z)
    torch.testing.assert_close(F.label_scores(u, a, b, gamma).softmax(-1), lam / lam.sum(-1, keepdim=True))
    torch.testing.assert_close(F.distractor_logits(v_alpha, v_beta, a, b, gamma).sigmoid(), alpha / (alpha + beta))


@pytest.mark.parametrize("b", [0.0, 1.0, 2.5])
def test_slopes_of_the_concentrations(b):
    a, gamma = 0.7, 1.6
    u, v_alpha, candidates = draw(3, 5)
    v_beta, o = draw(4, 5)[0], candidates.double()
    inputs = [t.clone().requires_grad_() for t in (u, v_alpha, v_beta)]
    F.label_scores(inputs[0], a, b, gamma, candidates).sum().backward()
    F.distractor_logits(inputs[1], inputs[2], a, b, gamma, candidates).sum().backward()
    lam, alpha, beta = (a * (t / gamma).exp() + b for t in (u, v_alpha, v_beta))
    torch.testing.assert_close(inputs[0].grad, (lam - b) / (gamma * (lam + o)))
    torch.testing.assert_close(inputs[1].grad, (alpha - b) / (gamma * (alpha + o)))
    torch.testing.assert_close(inputs[2].grad, -(beta - b) / (gamma * beta))


@pytest.mark.parametrize("b", [0.0, 1.0, 3.0])
def test_gradcheck_of_the_whole_objective(b):
    u, v_alpha, candidates = draw(5, 4)
    v_beta = draw(6, 4)[0]
    w, A, B = torch.rand(3, *u.shape, dtype=torch.float64)

    def objective(u, v_alpha, v_beta):
        scores = F.label_scores(u, 0.5, b, 1.3, candidates)
        distractors = F.distractor_logits(v_alpha, v_beta, 0.5, b, 1.3, candidates)
        whole = F.map_nll(scores, distractors, candidates, 0.3, w, A, B)
        nll = F.generation_nll(scores, distractors, candidates)
        torch.testing.assert_close(whole, 0.3 * nll + F.prior_nll(scores, distractors, w, A, B))
        return whole

    assert torch.autograd.gradcheck(objective, [t.requires_grad_() for t in (u, v_alpha, v_beta)])
    assert torch.autograd.gradcheck(lambda t: F.candidate_nll(t, candidates), u)
    assert torch.autograd.gradcheck(lambda t: F.soft_cross_entropy(t, w), u)
    assert torch.autograd.gradcheck(lambda t: F.bernoulli_nll(t, A, B), u)
    assert torch.autograd.gradcheck(lambda t: F.posterior(t, candidates), u)


def test_prior_weights_equal_equations_10_and_11():
    a, gamma, m = 0.7, 1.6, 0.8
    then, now, candidates = draw(7, 5)
    for b in (0.4, 1.0, 2.5):
        first, second = (a * (t / gamma).exp() + b for t in (then, now))
        mixed = (m * first + (1 - m) * second - 1).clamp(min=0)  # mixed first, then cut
        lam = [(each - 1).clamp(min=0) for each in (first, second)]
        if b < 1:
            assert not torch.allclose(mixed, m * lam[0] + (1 - m) * lam[1])
        logs = [F.log_prior_weight(t, a, b, gamma) for t in (then, now)]
        log_w = F.log_less(F.log_mix(*(F.log_excess(t, a, b, gamma) for t in (then, now)), m), 1 - b)
        torch.testing.assert_close(log_w.exp(), mixed)
        for eps in (0.0, 1e-3):
            raw = torch.where(candidates, mixed, eps)
            expected = (raw / raw.sum(-1, keepdim=True)).nan_to_num(0)
            torch.testing.assert_close(F.dirichlet_weights(log_w, candidates, eps), expected)
        A, B = F.beta_weights(*logs)
        torch.testing.assert_close(A, (lam[0] / (lam[0] + lam[1])).nan_to_num(0))
        torch.testing.assert_close(A + B, ((lam[0] + lam[1]) > 0).double())
    assert F.log_mix(then, now, 0) is now
    assert F.log_mix(then, now, 1) is then


@pytest.mark.parametrize("scale", [1e4, -1e4])
@pytest.mark.parametrize("b", [0.0, 1.0])
@pytest.mark.parametrize("size", [1, 3, 6])
def test_huge_logits_stay_finite_in_float32(scale, b, size):
    k = 6
    base = torch.linspace(-1, 1, k)
    u, v_alpha, v_beta = ((scale * t).requires_grad_() for t in (base.clone(), base.flip(0).clone(), base.roll(2)))
    for start in range(k):
        candidates = torch.zeros(k, dtype=torch.bool)
        candidates[[(start + i) % k for i in range(size)]] = True
        scores = F.label_scores(u, 1.0, b, 0.5, candidates)
        distractors = F.distractor_logits(v_alpha, v_beta, 1.0, b, 0.5, candidates)
        w = F.dirichlet_weights(F.log_prior_weight(u.detach(), 1.0, 1.0, 0.5), candidates)
        A, B = F.beta_weights(*(F.log_prior_weight(v.detach(), 1.0, 1.0, 0.5) for v in (v_alpha, v_beta)))
        values = [
            F.generation_nll(scores, distractors, candidates),
            F.prior_nll(scores, distractors, w, A, B),
            F.candidate_nll(u, candidates),
            F.soft_cross_entropy(u, F.posterior(u.detach(), candidates)),
        ]
        for value in values:
            assert torch.isfinite(value)
            for gradient in torch.autograd.grad(value, [u, v_alpha, v_beta], retain_graph=True, allow_unused=True):
                assert gradient is None or torch.isfinite(gradient).all()
        r = F.responsibilities(scores, distractors, candidates)
        torch.testing.assert_close(r.sum(), torch.tensor(1.0))
        assert (r[~candidates] == 0).all()


@quick
@given(SEEDS, st.integers(2, 6))
def test_permuting_classes_permutes_the_results(seed, k):
    scores, distractors, candidates = draw(seed, k)
    order = torch.randperm(k, generator=torch.Generator().manual_seed(seed))
    moved = [t[:, order] for t in (scores, distractors, candidates)]
    close = torch.testing.assert_close
    close(F.generation_nll(*moved), F.generation_nll(scores, distractors, candidates))
    close(F.responsibilities(*moved), F.responsibilities(scores, distractors, candidates)[:, order])
    close(F.candidate_nll(moved[0], moved[2]), F.candidate_nll(scores, candidates))
    close(F.posterior(moved[0], moved[2]), F.posterior(scores, candidates)[:, order])
    w = F.dirichlet_weights(scores, candidates, 0.1)
    close(F.dirichlet_weights(moved[0], moved[2], 0.1), w[:, order])
    close(F.soft_cross_entropy(moved[0], w[:, order]), F.soft_cross_entropy(scores, w))


@quick
@given(SEEDS, st.integers(2, 6), st.floats(0.05, 0.95))
def test_constant_z_gives_cc(seed, k, p):
    """Appendix of the paper: with a constant flipping probability the likelihood is CC's, up to |S|."""
    scores, _, candidates = draw(seed, k)
    size = candidates.sum(-1)
    constant = torch.full_like(scores, log(p / (1 - p)))
    shift = -((k + 1 - size) * log(1 - p) + (size - 1) * log(p))
    expected = F.candidate_nll(scores, candidates) + shift
    torch.testing.assert_close(F.generation_nll(scores, constant, candidates), expected)


def test_cc_and_cross_entropy_by_hand():
    logits = torch.tensor([log(2.0), log(3.0), log(5.0)], dtype=torch.float64)
    mask = torch.tensor([True, False, True])
    assert F.candidate_nll(logits, mask).item() == pytest.approx(-log(0.7))
    assert F.posterior(logits, mask).tolist() == pytest.approx([2 / 7, 0, 5 / 7])
    assert F.uniform(mask).tolist() == [0.5, 0, 0.5]
    target = torch.tensor([0.25, 0.0, 0.75], dtype=torch.float64)
    assert F.soft_cross_entropy(logits, target).item() == pytest.approx(-0.25 * log(0.2) - 0.75 * log(0.5))
    full = torch.ones(3, dtype=torch.bool)
    logits.requires_grad_()
    F.candidate_nll(logits, full).backward()
    assert F.candidate_nll(logits, full).item() == pytest.approx(0, abs=1e-15)
    assert logits.grad.abs().max() < 1e-15


@quick
@given(SEEDS)
def test_leading_axes_give_the_numbers_of_a_loop(seed):
    generator = torch.Generator().manual_seed(seed)
    u, v = torch.randn(2, 2, 3, 4, 5, generator=generator, dtype=torch.float64)
    candidates = torch.rand(2, 3, 4, 5, generator=generator) < 0.5
    candidates[..., 0] = True
    functions = {
        "generation_nll": lambda u, v, S: F.generation_nll(u, v, S),
        "candidate_nll": lambda u, v, S: F.candidate_nll(u, S),
        "responsibilities": lambda u, v, S: F.responsibilities(u, v, S),
        "posterior": lambda u, v, S: F.posterior(u, S),
        "label_scores": lambda u, v, S: F.label_scores(u, 2.0, 1.0, 0.5, S),
        "distractor_logits": lambda u, v, S: F.distractor_logits(u, v, 2.0, 0.0, 0.5, S),
        "prior_nll": lambda u, v, S: F.prior_nll(u, v, F.posterior(v, S), *F.beta_weights(u, v)),
        "map_nll": lambda u, v, S: F.map_nll(u, v, S, 0.3, F.posterior(v, S), *F.beta_weights(u, v)),
        "uniform": lambda u, v, S: F.uniform(S),
    }
    for name, function in functions.items():
        at_once = function(u, v, candidates)
        for i, j, k in np.ndindex(2, 3, 4):
            one = function(u[i, j, k], v[i, j, k], candidates[i, j, k])
            torch.testing.assert_close(at_once[i, j, k], one, msg=name)


# --- Membership: what is merely frequent --------------------------------------------------------------------

TRUE, WRONG = 0, 1
Sample = tuple[int, int, float, float]  # kind, label, how much it counts, s


def samples(seed: int, k: int, count: int = 40) -> list[Sample]:
    """Numbers s of true and of wrong candidates, some labels often and some seldom; higher where true."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(k, size=count, p=rng.dirichlet(np.ones(k)))
    kinds = rng.permutation(count) % 2
    return [
        (int(kind), int(label), float(rng.random()), float(rng.normal(2 - 3 * kind + 0.3 * label, 1.5)))
        for kind, label in zip(kinds, labels, strict=True)
    ]


def moments_of(rows: list[Sample], k: int, dtype: torch.dtype = torch.float64) -> Tensor:
    sums = [[0.0] * k for _ in range(4)]
    for kind, label, weight, s in rows:
        sums[2 * kind][label] += weight
        sums[2 * kind + 1][label] += weight * s
    return torch.tensor(sums, dtype=dtype)


def weighted_mean(values: list[tuple[float, float]]) -> float:
    return sum(weight * s for weight, s in values) / sum(weight for weight, _ in values)


@quick
@given(SEEDS, st.integers(2, 6))
def test_midpoints_lie_between_the_means_of_true_and_of_wrong_candidates(seed, k):
    """Each mean has one more row than there are: an average one of its kind, worth 1/20 of an average label."""
    rows = samples(seed, k)
    invented = sum(weight for _, _, weight, _ in rows) / k / 20
    have = F.midpoints(moments_of(rows, k))
    for j in range(k):
        means = []
        for kind in (TRUE, WRONG):
            overall = weighted_mean([(weight, s) for own, _, weight, s in rows if own == kind])
            of_label = [(weight, s) for own, label, weight, s in rows if (own, label) == (kind, j)]
            means.append(weighted_mean([*of_label, (invented, overall)]))
        assert have[j].item() == pytest.approx((means[TRUE] + means[WRONG]) / 2, abs=1e-9)


def test_midpoints_of_leading_axes_are_the_numbers_of_a_loop():
    k, axes = 4, (2, 3)
    moments = torch.stack([moments_of(samples(seed, k), k) for seed in range(6)]).view(*axes, 4, k)
    have = F.midpoints(moments)
    assert have.shape == (*axes, k)
    for i in np.ndindex(axes):
        torch.testing.assert_close(have[i], F.midpoints(moments[i]), atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_midpoints_without_rows_are_finite(dtype):
    assert (F.midpoints(torch.zeros(2, 4, 3, dtype=dtype)) == 0).all()
    for kind in (TRUE, WRONG):  # the mean of a kind that was never seen is 0
        rows = [row for row in samples(0, 3) if row[0] == kind]
        centre = F.midpoints(moments_of(rows, 3, dtype))
        assert centre.dtype == dtype
        overall = weighted_mean([(weight, s) for _, _, weight, s in rows])
        assert centre.mean().item() == pytest.approx(overall / 2, abs=0.3)


def test_midpoint_of_a_label_never_seen_is_that_of_all_labels():
    k = 4
    rows = [row for row in samples(1, k) if row[1] != 2]
    overall = [weighted_mean([(weight, s) for own, _, weight, s in rows if own == kind]) for kind in (TRUE, WRONG)]
    assert F.midpoints(moments_of(rows, k))[2].item() == pytest.approx(sum(overall) / 2, abs=1e-12)


def test_every_formula_of_the_package_is_exported():
    modules = [module for module in vars(F).values() if inspect.ismodule(module)]
    formulas = {
        name
        for module in modules
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_")
    }
    shared = set(vars(F.common)) & formulas
    assert sorted(formulas - shared | {"indicator", "members", "possible", "posterior_and_entropy"}) == F.__all__
