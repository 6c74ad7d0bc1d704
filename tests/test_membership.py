"""Membership against a slow, literal transcription (see test_golden for the manner), at its edges, on digits."""

import numpy as np
import pytest
import torch

import oneof
from oneof.cli.demo import make_problem
from oneof.data.corrupt import uniform
from oneof.methods import membership
from oneof.testing.small_problems import make_data
from oneof.train.batch import Epoch, make_batch
from test_golden import (
    K,
    Layer,
    N,
    check_layer,
    check_table,
    descend,
    fit,
    prior,
    problem,
    softmax_on,
    some_priors,
    standardise,
)
from test_golden_others import cross_entropy, numbers, set_views, shifted, sigmoid, some_views, uniform_on

# --- the transcription ------------------------------------------------------------------------------------


class Moments:
    """Moving averages of 1 and s of true and of wrong candidates, and what lies halfway between the means."""

    def __init__(self):
        self.true, self.wrong = [[[0.0] * K for _ in range(2)] for _ in range(2)]

    def add(self, weight, belief, S, s):
        for power in range(2):
            for j in range(K):
                true = sum(weight[i] * belief[i][j] * s[i][j] ** power for i in range(N))
                wrong = sum(weight[i] * (S[i][j] - belief[i][j]) * s[i][j] ** power for i in range(N))
                self.true[power][j] = 0.99 * self.true[power][j] + 0.01 * true
                self.wrong[power][j] = 0.99 * self.wrong[power][j] + 0.01 * wrong

    def centre(self, j):
        more = (sum(self.true[0]) + sum(self.wrong[0])) / (20 * K)
        means = [
            (total[j] + more * sum(total) / sum(count)) / (count[j] + more)
            for count, total in (self.true, self.wrong)
        ]
        return sum(means) / 2


class Judge(Layer):
    """Two numbers, lambda - 1 and kappa, with a rate and a decay of their own."""

    def __init__(self):
        super().__init__(1, rate=0.05, decay=0.01)
        self.parameters = [torch.zeros((), dtype=torch.float64, requires_grad=True) for _ in range(2)]

    def __call__(self, u, s, moments):
        more, kappa = self.parameters
        return [(1 + more) * u[j] + kappa * (s[j] - moments.centre(j)) for j in range(K)]


@some_views
@pytest.mark.parametrize("one_in", [10, 3], ids=["nothing held out", "two rows held out"])
@some_priors
def test_membership(one_in, shifts, weigh, monkeypatch):
    epochs, warm_up = 9, 3
    monkeypatch.setattr(membership, "_HELD_OUT", one_in)
    set_views(monkeypatch, shifts)
    model = fit(oneof.Membership, weigh, views="plain+jitter+jitter", warm_up=warm_up, epochs=epochs)
    held_out = model.held_out_[:, 0].tolist()
    assert sum(held_out) == N // one_in
    X, S, weight = problem()
    P = prior(S, weigh)
    rows, f, g, w, history = standardise(X, weight), Layer(K), Layer(K), uniform_on(P), []
    judge, moments, changes = Judge(), Moments(), []
    for epoch in range(epochs):
        u = [[f(shifted(row, shift)) for shift in shifts] for row in rows]
        s = [[g(shifted(row, shift)) for shift in shifts] for row in rows]
        belief = [numbers(softmax_on(u[i][0], P[i])) for i in range(N)]
        s_mean = [[sum(each[j].item() for each in s[i]) / len(shifts) for j in range(K)] for i in range(N)]
        moments.add(weight, belief, S, s_mean)
        losses = []
        for i in range(N):
            scores = judge([value.detach() for value in u[i][0]], s_mean[i], moments)
            if held_out[i]:
                inside = sum(P[i][j] * torch.exp(scores[j]) for j in range(K) if S[i][j])
                losses.append(-torch.log(inside / sum(torch.exp(value) for value in scores)))
            else:
                loss = sum(cross_entropy(w[i], each) for each in u[i]) / len(shifts)
                for each in s[i]:
                    for j in range(K):
                        mu = sigmoid(each[j])
                        loss = loss - torch.log(mu if S[i][j] else 1 - mu) / len(shifts)
                losses.append(loss)
            w[i] = belief[i] if epoch < warm_up else numbers(softmax_on(scores, P[i]))
            changes += [abs(w[i][j] - belief[i][j]) for j in range(K)]
        history.append(descend(losses, weight, f, g, *([judge] if any(held_out) else [])))
    check_layer(model.network_, f)
    check_layer(model.membership_network_, g)
    check_table(model.judge_.weight[0].detach(), numbers(judge.parameters))
    assert model.judge_.bias.item() == pytest.approx(0, abs=1e-12)  # no likelihood knows it
    check_table(model.w_, w)
    check_table(model.moments_, moments.true + moments.wrong)
    assert model.history_["loss"] == pytest.approx(history, abs=1e-9)
    assert (max(changes) > 1e-3) == any(held_out)
    for i in range(N):  # at the end of training, of the rows as they are
        s = numbers(g(rows[i]))
        scores = judge(f(rows[i]), s, moments)
        assert model.label_distributions_[i] == pytest.approx(numbers(softmax_on(scores, P[i])), abs=1e-9)
        assert model.membership_proba(X)[i] == pytest.approx([1 / (1 + np.exp(-v)) for v in s], abs=1e-9)


# --- the rows that only the judge sees ------------------------------------------------------------------------


def started(data, seed=0, **settings):
    torch.manual_seed(seed)
    model = oneof.Membership(network="linear", precision="fp64", device="cpu", **settings)
    model.set_training_rows(data)
    model.start(data)
    return model


def test_one_row_in_ten_is_drawn():
    """Not every tenth: the classes of rows may come in turn."""
    data = make_data(rows=209)
    drawn = [started(data, seed).held_out_[:, 0].nonzero()[:, 0] for seed in range(3)]
    assert [len(rows) for rows in drawn] == [20] * 3
    assert drawn[0].tolist() != drawn[1].tolist() != drawn[2].tolist()
    for rows in drawn:
        assert len((rows % 10).unique()) > 5


def gradients(model, losses):
    losses.sum().backward()
    modules = model.network_, model.membership_network_, model.judge_
    return [torch.cat([p.grad.flatten() for p in module.parameters()]) for module in modules]


def test_held_out_rows_teach_the_judge_and_nothing_else():
    found = []
    for change in (0.0, 1.0):
        data = make_data(rows=40)
        model = started(data)
        held_out = model.held_out_[:, 0]
        data.x[held_out] += change
        data.candidates[held_out] ^= bool(change)
        data.candidates[held_out, 0] = True
        found.append(gradients(model, model.step(make_batch(data, torch.arange(40), Epoch(0)))))
    (f, g, judge), (f_changed, g_changed, judge_changed) = found
    assert torch.equal(f, f_changed)
    assert torch.equal(g, g_changed)
    assert f.norm() > 0
    assert g.norm() > 0
    assert not torch.allclose(judge, judge_changed)
    model = started(data)
    others = (~held_out).nonzero()[:, 0]
    f, g, judge = gradients(model, model.step(make_batch(data, others, Epoch(0))))
    assert (judge == 0).all()


def test_the_judge_has_a_rate_of_its_own():
    model = started(make_data(), lr=0.3, weight_decay=0.02)
    groups = model.parameter_groups()
    modules = model.network_, model.membership_network_, model.judge_
    for group, module in zip(groups, modules, strict=True):
        assert [id(p) for p in group["params"]] == [id(p) for p in module.parameters()]
    assert [group.get("lr") for group in groups] == [None, 0.3, 0.05]  # None: that of the optimiser
    assert [group["weight_decay"] for group in groups] == [0.02, 0.02, 0.01]
    assert all((p == 0).all() for p in model.judge_.parameters())


@pytest.mark.parametrize("views", [None, "jitter+plain"])
def test_of_fewer_than_ten_rows_none_is_held_out_and_f_is_prodens(views, digits):
    X, S, _ = digits
    settings = {"epochs": 15, "views": views, "random_state": 4, "device": "cpu"}
    model = oneof.Membership(warm_up=2, **settings).fit(X[:9], S[:9])
    proden = oneof.PRODEN(**settings).fit(X[:9], S[:9])
    assert not model.held_out_.any()
    for have, want in zip(model.network_.parameters(), proden.network_.parameters(), strict=True):
        assert torch.equal(have, want)
    assert torch.equal(model.w_, proden.w_)
    assert np.array_equal(model.label_distributions_, proden.label_distributions_)
    assert oneof.Membership(**settings).fit(X[:10], S[:10]).held_out_.sum() == 1


# --- edges --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [2, 5, 12])
@pytest.mark.parametrize("classes", [2, 7])
def test_few_rows(rows, classes, tmp_path):
    rng = np.random.default_rng(rows)
    X, S = rng.normal(size=(rows, 3)), np.ones((rows, classes), dtype=bool)
    S[0, 1:] = False  # the only set that is not full
    model = oneof.Membership(epochs=20, warm_up=3, random_state=0, device="cpu").fit(X, S)
    assert all(torch.isfinite(tensor).all() for tensor in model.learned().values())
    assert model.moments_.shape == (4, classes)
    assert model.label_distributions_[0].tolist() == [1.0] + [0.0] * (classes - 1)
    assert np.allclose(model.label_distributions_.sum(1), 1)
    model.save(tmp_path / "model")
    again = oneof.load_model(tmp_path / "model", device="cpu").learned()
    assert again.keys() == model.learned().keys()
    assert all(torch.equal(again[name], tensor) for name, tensor in model.learned().items())


@pytest.mark.parametrize("full", [True, False], ids=["full sets", "sets of one"])
def test_batches_in_which_all_sets_are_alike(full):
    """A full set tells g to say yes to everything; the weights stay distributions on the sets."""
    data = make_data(dtype=torch.float32)
    data.candidates[:] = full
    data.candidates[:, 0] = True
    model = oneof.Membership(network="linear", device="cpu", warm_up=1)
    model.set_training_rows(data)
    model.start(data)
    for epoch in range(4):
        losses = model.step(make_batch(data, torch.arange(12), Epoch(epoch)))
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
        model = started(each)
        model.step(make_batch(each, torch.arange(12), Epoch(0)))
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
    model.judge_.to("meta")
    posterior = model.label_posterior(torch.empty(5, 4, device="meta"), torch.ones(5, 3, device="meta").bool())
    assert (posterior.shape, posterior.device.type) == ((5, 3), "meta")


# --- behaviour ----------------------------------------------------------------------------------------------


def test_it_is_clearly_ahead_of_proden_where_look_alikes_are_candidates():
    """Validation rows of a seed that no published number is made of."""
    digits = make_problem(100)
    membership, proden = (
        method(random_state=100, device="cpu", mixup=0.0).fit(digits.x_train, digits.candidates)
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
    assert membership.judge_.weight[0, 1] > 0.02


def test_it_is_near_proden_where_candidates_are_drawn_at_random():
    """Trust in membership that is not learned from other rows costs seven points here."""
    problems = {seed: make_problem(seed) for seed in range(100, 104)}
    sets = [uniform(p.y_train, 10, 0.6, seed=seed) for seed, p in problems.items()]
    given = [{"X": p.x_train, "y": S} for p, S in zip(problems.values(), sets, strict=True)]
    means = []
    for method in (oneof.Membership, oneof.PRODEN):
        models = oneof.fit_together([method(random_state=seed, device="cpu") for seed in problems], given)
        scores = [m.score(p.x_validation, p.y_validation) for m, p in zip(models, problems.values(), strict=True)]
        means.append(np.mean(scores))
    assert means[0] >= means[1] - 0.03
