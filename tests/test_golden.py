"""Every method against a slow, literal transcription of its formulas: loops, float64, no shared helpers.

The whole data set is one batch, so an epoch is a step. Networks are linear with fixed first weights.
"""

import math

import numpy as np
import pytest
import torch
from torch import nn

import oneof
from oneof.methods.idgp_released import coupling
from oneof.methods.mixing import Mixing

N, D, K = 6, 3, 4
RATE, MOMENTUM, DECAY, RATE_G, DECAY_G = 0.3, 0.5, 0.01, 0.2, 0.02


def fixed_linear(shape, outputs):
    layer = nn.Linear(shape[0], outputs)
    numbers = torch.arange(outputs * (shape[0] + 1), dtype=torch.float32)
    with torch.no_grad():
        layer.weight.copy_(torch.sin(numbers[: outputs * shape[0]]).view(outputs, shape[0]))
        layer.bias.copy_(torch.cos(numbers[outputs * shape[0] :]))
    return layer


def problem():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N, D)) * 2 + 1
    S = np.array([[1, 1, 0, 0], [0, 1, 0, 0], [1, 0, 1, 1], [1, 1, 1, 1], [0, 0, 1, 1], [0, 1, 1, 0]], dtype=bool)
    weight = np.array([1.0, 2.0, 0.5, 1.0, 1.0, 3.0])
    return X, S, weight


some_priors = pytest.mark.parametrize("weigh", [False, True], ids=["sets", "weights"])


def prior(S, weigh):
    """The factors of the candidates: 1, or weights whose largest in each row is 1."""
    weights = S * (0.1 + np.abs(np.sin(np.arange(S.size).reshape(S.shape))))
    return weights / weights.max(1, keepdims=True) if weigh else S


class Layer:
    """A linear layer with stochastic gradient descent, written out."""

    def __init__(self, outputs, rate=RATE, decay=DECAY):
        first = fixed_linear((D,), outputs).double()
        self.parameters = [first.weight.detach().clone(), first.bias.detach().clone()]
        self.velocity, self.rate, self.decay = [None, None], rate, decay
        for parameter in self.parameters:
            parameter.requires_grad_()

    def __call__(self, row):
        weight, bias = self.parameters
        return [sum(weight[j, i] * row[i] for i in range(D)) + bias[j] for j in range(len(bias))]

    def update(self, gradients):
        for i, gradient in enumerate(gradients):
            step = gradient + self.decay * self.parameters[i].detach()
            self.velocity[i] = step if self.velocity[i] is None else MOMENTUM * self.velocity[i] + step
            with torch.no_grad():
                self.parameters[i] -= self.rate * self.velocity[i]


def descend(losses, weight, *layers):
    """Update layers by the weighted mean of losses; return its value."""
    loss = sum(w * value for w, value in zip(weight, losses, strict=True)) / sum(weight)
    gradients = [torch.autograd.grad(loss, layer.parameters, retain_graph=True) for layer in layers]
    for layer, gradient in zip(layers, gradients, strict=True):
        layer.update(gradient)
    return loss.item()


def standardise(X, weight):
    mean = [sum(weight[i] * X[i][j] for i in range(N)) / sum(weight) for j in range(D)]
    var = [sum(weight[i] * (X[i][j] - mean[j]) ** 2 for i in range(N)) / sum(weight) for j in range(D)]
    return [[(X[i][j] - mean[j]) / math.sqrt(var[j]) for j in range(D)] for i in range(N)]


def softmax(u):
    total = sum(torch.exp(value) for value in u)
    return [torch.exp(value) / total for value in u]


def softmax_on(u, inside):
    """The softmax on the candidates; ``inside`` may be weights of them."""
    odds = [inside[j] * torch.exp(u[j]) if inside[j] else torch.zeros((), dtype=torch.float64) for j in range(K)]
    return [value / sum(odds) for value in odds]


def constant(values):
    return [value.detach() for value in values]


def check_layer(network, layer):
    for have, want in zip(network.parameters(), layer.parameters, strict=True):
        torch.testing.assert_close(have, want, atol=1e-9, rtol=1e-9)


def check_table(have, want):
    torch.testing.assert_close(have, torch.tensor(want, dtype=torch.float64), atol=1e-9, rtol=1e-9)


def fit(method, weigh=False, **settings):
    X, S, weight = problem()
    y = oneof.WeightedSets(prior(S, weigh)) if weigh else S
    settings = {"network": fixed_linear, "precision": "fp64", "device": "cpu", "random_state": 0} | settings
    settings = {"lr": RATE, "schedule": "constant", "momentum": MOMENTUM, "weight_decay": DECAY} | settings
    if issubclass(method, Mixing):
        settings = {"mixup": 0.0} | settings  # which the papers have not
    return method(**settings).fit(X, y, sample_weight=weight)


@some_priors
def test_cc(weigh):
    model = fit(oneof.CC, weigh, epochs=3)
    X, S, weight = problem()
    P = prior(S, weigh)
    rows, f, history = standardise(X, weight), Layer(K), []
    for _ in range(3):
        losses = []
        for i in range(N):
            p = softmax(f(rows[i]))
            losses.append(-torch.log(sum(P[i][j] * p[j] for j in range(K) if S[i][j])))
        history.append(descend(losses, weight, f))
    check_layer(model.network_, f)
    assert model.history_["loss"] == pytest.approx(history, abs=1e-9)


@some_priors
def test_proden(weigh):
    model = fit(oneof.PRODEN, weigh, epochs=3)
    X, S, weight = problem()
    P = prior(S, weigh)
    rows, f, history = standardise(X, weight), Layer(K), []
    w = [[P[i][j] / P[i].sum() for j in range(K)] for i in range(N)]
    for _ in range(3):
        u = [f(row) for row in rows]
        losses = [-sum(w[i][j] * torch.log(softmax(u[i])[j]) for j in range(K)) for i in range(N)]
        w = [[value.item() for value in softmax_on(constant(u[i]), P[i])] for i in range(N)]
        history.append(descend(losses, weight, f))
    check_layer(model.network_, f)
    check_table(model.w_, w)
    assert model.history_["loss"] == pytest.approx(history, abs=1e-9)


@some_priors
def test_pop(weigh):
    theta, end, increase, warm_up, period, epochs = 0.3, 0.35, 0.2, 2, 2, 16
    model = fit(oneof.POP, weigh, epochs=epochs, warm_up=warm_up, period=period, theta=theta, theta_end=end,
                increase=increase)  # fmt: skip
    X, S, weight = problem()
    P = prior(S, weigh)
    rows, f, left = standardise(X, weight), Layer(K), P.astype(float).copy()
    w = [[P[i][j] / P[i].sum() for j in range(K)] for i in range(N)]
    record, thresholds, leavers = [None] * period, [], 0
    for epoch in range(epochs):
        u = [f(row) for row in rows]
        losses = [-sum(w[i][j] * torch.log(softmax(u[i])[j]) for j in range(K)) for i in range(N)]
        w = [[value.item() for value in softmax_on(constant(u[i]), left[i])] for i in range(N)]
        descend(losses, weight, f)
        record[epoch % period] = w
        if epoch >= warm_up and epoch % period == 0:
            gone = 0
            for i in range(N):
                mean = [sum(snapshot[i][j] for snapshot in record) / period for j in range(K)]
                for j in range(K):
                    if mean[j] / max(mean) < theta:
                        gone += left[i][j] > 0
                        left[i][j] = mean[j] = 0
                w[i] = [value / sum(mean) for value in mean]
            if theta < end and gone < 1e-4 * N * K:
                theta = min(theta * (1 + increase), end)
            thresholds.append(theta)
            leavers += gone
    assert leavers > 2
    assert 0.3 < thresholds[-1] == thresholds[-2]  # it has grown, and then stopped
    check_layer(model.network_, f)
    check_table(model.w_, w)
    check_table(model.kept_.double(), left.tolist())
    assert model.theta_.item() == pytest.approx(theta, abs=1e-12)


IDGP = {
    "a": 0.7, "b": 1.3, "gamma": 1.7, "m": 0.6, "d": 0.3, "eps": 0.05, "warm_up": 1, "r": 2, "q": 1,
    "prior_weight": 0.8, "distractor_prior_weight": 0.4, "likelihood_weight": 0.9, "lr_g": RATE_G,
    "weight_decay_g": DECAY_G,
}  # fmt: skip


class Paper:
    """Section 3 and Algorithm 1 of the paper, one example and one label at a time."""

    def __init__(self, objective, S, P):
        self.objective, self.S, self.P = objective, S, P
        self.f, self.g = Layer(K), Layer(2 * K, RATE_G, DECAY_G)
        wrong = (S.sum() - N) / (N * (K - 1))
        self.p = min(max(wrong, 0.01), 0.99)

    def concentration(self, output):
        return IDGP["a"] * torch.exp(output / IDGP["gamma"]) + IDGP["b"]

    def theta(self, u, o):  # Eq. 8
        lam = [self.concentration(u[j]) + o[j] for j in range(K)]
        return [value / sum(lam) for value in lam]

    def z(self, v, o, constant=False):  # Eq. 9
        if self.objective == "uniform" or constant:
            return [torch.tensor(self.p, dtype=torch.float64)] * K
        alpha, beta = ([self.concentration(v[j + k]) for j in range(K)] for k in (0, K))
        return [(alpha[j] + o[j]) / (alpha[j] + beta[j] + o[j]) for j in range(K)]

    def likelihood(self, theta, z, o, pi):  # Eq. 4
        total = 0.0
        for j in range(K):
            if o[j]:
                term = pi[j] * theta[j]
                for k in range(K):
                    term = term * (z[k] if o[k] and k != j else 1 - z[k])
                total = total + term
        return -torch.log(total)

    def rows(self, theta, z, o, pi):  # distractors="rows": a label counts as far as f takes it for wrong
        belief = [float(pi[j] * theta[j]) if o[j] else 0.0 for j in range(K)]
        belief = [value / sum(belief) for value in belief]
        return -sum((o[j] - belief[j]) * torch.log(z[j]) + (1 - o[j]) * torch.log(1 - z[j]) for j in range(K))

    def prior(self, theta, z, w, A, B):  # Eq. 6
        return -sum(
            w[j] * torch.log(theta[j]) + A[j] * torch.log(z[j]) + B[j] * torch.log(1 - z[j]) for j in range(K)
        )

    def weights(self, i, u, v, u_snap, v_snap):  # Eq. 10 and 11, scaled
        if self.objective == "ml":
            return [0.0] * K, [0.0] * K, [0.0] * K

        def mixed(now, then, share):
            now = self.concentration(now) - 1
            return now if then is None else share * (self.concentration(then) - 1) + (1 - share) * now

        w = [
            self.P[i][j] * mixed(u[j], None if u_snap is None else u_snap[j], IDGP["m"])
            if self.S[i][j]
            else IDGP["eps"]
            for j in range(K)
        ]
        ab = [mixed(v[j], None if v_snap is None else v_snap[j], IDGP["d"]) for j in range(2 * K)]
        A = [IDGP["distractor_prior_weight"] * ab[j] / (ab[j] + ab[j + K]) for j in range(K)]
        B = [IDGP["distractor_prior_weight"] * ab[j + K] / (ab[j] + ab[j + K]) for j in range(K)]
        return [IDGP["prior_weight"] * value / sum(w) for value in w], A, B


@some_priors
@pytest.mark.parametrize("alternate", ["simultaneous", "sequential"])
@pytest.mark.parametrize("objective", ["map", "ml", "uniform", "rows"])
def test_idgp_as_in_the_paper(objective, alternate, weigh):
    epochs, rows_count = 5, objective == "rows"
    named = {"objective": "map", "distractors": "rows"} if rows_count else {"objective": objective}
    model = fit(oneof.IDGP, weigh, alternate=alternate, epochs=epochs, **named, **IDGP)
    X, S, weight = problem()
    P = prior(S, weigh)
    rows, paper, history = standardise(X, weight), Paper(objective, S, P), []
    f, g = paper.f, paper.g
    w0 = [[P[i][j] / P[i].sum() for j in range(K)] for i in range(N)]
    u_snap, v_snap = [None] * N, [None] * N
    for epoch in range(epochs):
        u, v = [f(row) for row in rows], [g(row) for row in rows]
        if epoch < IDGP["warm_up"]:
            losses = []
            for i in range(N):
                p, z = softmax([value / IDGP["gamma"] for value in u[i]]), paper.z(v[i], S[i])
                loss = -sum(w0[i][j] * torch.log(p[j]) for j in range(K))
                for j in range(K):
                    target = S[i][j] - w0[i][j]
                    loss = loss - target * torch.log(z[j]) - (1 - target) * torch.log(1 - z[j])
                losses.append(loss)
            w0 = [
                [value.item() for value in softmax_on([t.detach() / IDGP["gamma"] for t in u[i]], P[i])]
                for i in range(N)
            ]
            history.append(descend(losses, weight, *([f] if objective == "uniform" else [f, g])))
            continue
        hats = []
        for i in range(N):
            u_i, v_i = constant(u[i]), constant(v[i])
            hats.append(paper.weights(i, u_i, v_i, u_snap[i], v_snap[i]))
            if objective != "ml" and epoch == IDGP["r"]:
                u_snap[i] = u_i
            if objective != "ml" and epoch == IDGP["q"]:
                v_snap[i] = v_i

        def objective_of(u, v, hats=hats):
            values = []
            for i in range(N):
                theta, z = paper.theta(u[i], S[i]), paper.z(v[i], S[i], rows_count)
                share = 1.0 if objective == "ml" else IDGP["likelihood_weight"]
                values.append(share * paper.likelihood(theta, z, S[i], P[i]) + paper.prior(theta, z, *hats[i]))
                if rows_count:
                    values[-1] = values[-1] + paper.rows(theta, paper.z(v[i], S[i]), S[i], P[i])
            return values

        if objective == "uniform":
            history.append(descend(objective_of(u, v), weight, f))
        elif alternate == "simultaneous":
            history.append(descend(objective_of(u, v), weight, f, g))
        else:
            descend(objective_of([constant(each) for each in u], v), weight, g)
            v = [constant(g(row)) for row in rows]
            history.append(descend(objective_of(u, v), weight, f))
    check_layer(model.network_, f)
    check_layer(model.distractor_network_, g)
    check_table(model.w_, w0)
    if objective != "ml":
        for table, snapshot in ((model.u_, u_snap), (model.v_, v_snap)):
            check_table(table, [[math.log(paper.concentration(value) - 1) for value in row] for row in snapshot])
    assert model.history_["loss"] == pytest.approx(history, abs=1e-9)
    # the responsibilities of Eq. 4 at the end of training
    for i in range(N):
        theta, z = paper.theta(constant(f(rows[i])), S[i]), paper.z(constant(g(rows[i])), S[i], rows_count)
        odds = [P[i][j] * theta[j] * (1 - z[j]) / z[j] if S[i][j] else 0.0 for j in range(K)]
        assert model.label_distributions_[i] == pytest.approx([float(v / sum(odds)) for v in odds], abs=1e-9)


RELEASED = {
    "temperature_f": 1.4, "temperature_g": 0.8, "weight_f": 0.7, "weight_fg": 0.3, "weight_g": 0.6,
    "weight_gf": 0.5, "weight_consistency": 0.9, "warm_up": 1, "lr_g": RATE_G, "weight_decay_g": DECAY_G,
}  # fmt: skip


@pytest.mark.parametrize(("views", "consistency"), [(1, "always"), (1, "views"), (3, "always")])
def test_idgp_as_released(views, consistency, monkeypatch):
    """Section 3.4's restatement of the released code, with products and divisions as its authors wrote them."""
    shifts = [0.0, 0.3, -0.2][:views]
    monkeypatch.setattr(oneof.train.batch, "make_views", lambda x, names, flip: [x + shift for shift in shifts])
    epochs = 105  # past the end of the ramp of the consistency term
    rate = 0.02
    X, S, weight = problem()
    model = oneof.IDGP(
        objective="released", views="plain+jitter+jitter", epochs=epochs, network=fixed_linear, precision="fp64",
        device="cpu", random_state=0, lr=rate, schedule="constant", momentum=MOMENTUM, weight_decay=DECAY,
        consistency=consistency,
        **RELEASED | {"lr_g": rate},
    ).fit(X, S, sample_weight=weight)  # fmt: skip
    rows, history = standardise(X, weight), []
    f, g = Layer(K, rate), Layer(K, rate, DECAY_G)
    d = [[S[i][j] / S[i].sum() for j in range(K)] for i in range(N)]
    bm = [[float(S[i][j]) for j in range(K)] for i in range(N)]
    T1, T2 = RELEASED["temperature_f"], RELEASED["temperature_g"]
    for epoch in range(epochs):
        ramp = min((epoch - 2) / 100, 1.0)
        losses, new_d, new_bm = [], [], []
        for i in range(N):
            best = max((j for j in range(K) if S[i][j]), key=lambda j: d[i][j])
            terms = []
            for shift in shifts:
                row = [value + shift for value in rows[i]]
                u, v = f(row), g(row)
                p = softmax([value / T1 for value in u])
                z = [1 / (1 + torch.exp(-value / T2)) for value in v]
                L_f = -sum(d[i][j] * torch.log(p[j]) for j in range(K))
                L_g = -sum(bm[i][j] * torch.log(z[j]) + (1 - bm[i][j]) * torch.log(1 - z[j]) for j in range(K))
                # the "noisy output": g is turned over at the pseudo-label before the weights are built
                noisy = [1 - z[j].detach() if j == best else z[j].detach() for j in range(K)]
                odds = [(1 - noisy[j]) / noisy[j] if S[i][j] else 0.0 for j in range(K)]
                L_fg = -sum(odds[j] / sum(odds) * torch.log(p[j]) for j in range(K))
                inside = sum(p[j].detach() for j in range(K) if S[i][j])
                L_gf = 0.0
                for j in range(K):
                    if S[i][j]:
                        L_gf = L_gf - p[j].detach() / inside * torch.log(1 - z[j]) - torch.log(z[j])
                    else:
                        L_gf = L_gf - torch.log(1 - z[j])
                plain_p, plain_z = softmax(u), [1 / (1 + torch.exp(-value)) for value in v]
                L_c = sum(
                    d[i][j] * (math.log(d[i][j]) - torch.log(plain_p[j])) for j in range(K) if d[i][j] > 0
                ) + sum(bm[i][j] * (math.log(bm[i][j]) - torch.log(plain_z[j])) for j in range(K) if bm[i][j] > 0)
                if epoch == 0:
                    terms.append(L_f)
                elif epoch == 1:
                    terms.append(L_g)
                else:
                    value = RELEASED["weight_f"] * L_f + RELEASED["weight_fg"] * L_fg
                    value = value + RELEASED["weight_g"] * L_g + RELEASED["weight_gf"] * L_gf
                    left_out = views == 1 and consistency == "views"
                    terms.append(value + (0 if left_out else ramp * RELEASED["weight_consistency"] * L_c))
                if shift == 0.0:
                    new_d.append([t.item() for t in softmax_on([value.detach() / T1 for value in u], S[i])])
                    new_bm.append([z[j].item() * S[i][j] for j in range(K)])
            losses.append(sum(terms))
        d = new_d if epoch != 1 else d
        bm = new_bm if epoch >= 1 else bm
        trained = {0: [f], 1: [g]}.get(epoch, [f, g])
        history.append(descend(losses, weight, *trained))
    check_layer(model.network_, f)
    check_layer(model.distractor_network_, g)
    check_table(model.w_, d)
    check_table(model.membership_, bm)
    assert model.history_["loss"] == pytest.approx(history, abs=1e-8)


@pytest.mark.parametrize("certainty", [5.0, 60.0, 1e4])
def test_released_weights_when_the_sigmoid_rounds_to_one(certainty):
    """The odds (1 - g)/g, turned over at the pseudo-label, in float32 where 1 - g is zero, against exact ones."""
    S = torch.tensor([[True, True, True, False]])
    d = torch.tensor([[0.2, 0.7, 0.1, 0.0]])  # the pseudo-label is 1
    s = torch.tensor([[1.0, -1.0, 0.5, 0.3]]) * certainty
    eta = [-certainty, -certainty, -0.5 * certainty]  # log odds of the candidates: -s, but +s at the pseudo-label
    top = max(eta)
    expected = [math.exp(value - top) for value in eta]
    U = torch.zeros(1, 4, requires_grad=True)
    coupling(U, s, d, S, weight_fg=1.0, weight_gf=0.0).sum().backward()
    # the gradient of the cross-entropy to q at equal scores is 1/4 - q
    q = (0.25 - U.grad[0]).tolist()
    assert q == pytest.approx([*(value / sum(expected) for value in expected), 0.0], abs=1e-6)
