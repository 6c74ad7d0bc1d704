"""RC, LWS, CAVL, VALEN, PiCO and PLCR against slow, literal transcriptions; see test_golden for the manner.

After them the small checks that belong to these methods: identities, degenerate cases, and their building blocks.
"""

import math
from copy import deepcopy

import numpy as np
import pytest
import torch
from sklearn.neighbors import NearestNeighbors
from torch import nn
from torch.distributions import Dirichlet, kl_divergence

import oneof
from oneof import functional as F
from oneof.functional import adjacency, nearest_neighbours
from oneof.nn import networks
from oneof.testing.small_problems import make_data
from oneof.train.batch import Batch, Epoch, make_batch
from oneof.train.loop import losses_of
from test_golden import (
    D,
    K,
    Layer,
    N,
    check_layer,
    check_table,
    constant,
    descend,
    fit,
    fixed_linear,
    prior,
    problem,
    softmax,
    softmax_on,
    some_priors,
    standardise,
)


class Given(Layer):
    """A linear layer that starts from the weights of a module of any size."""

    def __init__(self, module):
        super().__init__(1)
        self.parameters = [p.detach().clone().requires_grad_() for p in module.parameters()]

    def __call__(self, row):
        weight, bias = self.parameters
        return [sum(weight[j, i] * row[i] for i in range(len(row))) + bias[j] for j in range(len(bias))]


def set_views(monkeypatch, shifts):
    """Let "jitter" shift the rows by fixed numbers."""
    monkeypatch.setattr(oneof.train.batch, "make_views", lambda x, names, flip: [x + shift for shift in shifts])


def shifted(row, shift):
    return [value + shift for value in row]


def watch(monkeypatch, method, *names):
    """Keep copies of what `start` made, and the numbers of the rows in the order of every step."""
    first, orders = {}, []
    start, step = method.start, method.step

    def watched_start(self, data):
        start(self, data)
        first.update({name: deepcopy(getattr(self, name)) for name in names})

    def watched_step(self, batch):
        orders.append(batch.index.tolist())
        return step(self, batch)

    monkeypatch.setattr(method, "start", watched_start)
    monkeypatch.setattr(method, "step", watched_step)
    return first, orders


def sigmoid(t):
    return 1 / (1 + torch.exp(-t))


def numbers(values):
    return [value.item() for value in values]


def cross_entropy(w, u):
    p = softmax(u)
    return -sum(w[j] * torch.log(p[j]) for j in range(K))


def uniform_on(S):
    return [[S[i][j] / S[i].sum() for j in range(K)] for i in range(N)]


def best_candidate(values, inside):
    """The candidate of the largest value, the first where several are equal."""
    best = None
    for j in range(K):
        if inside[j] and (best is None or values[j] > values[best]):
            best = j
    return best


# --- RC, LWS and CAVL: targets from a fresh pass after the step ---------------------------------------------

some_views = pytest.mark.parametrize("shifts", [[0.0], [0.2, -0.3]], ids=["one view", "two views"])


@some_priors
@some_views
def test_rc(shifts, weigh, monkeypatch):
    set_views(monkeypatch, shifts)
    model = fit(oneof.RC, weigh, views="plain+jitter+jitter", epochs=4)
    X, S, weight = problem()
    P = prior(S, weigh)
    rows, f, w, history = standardise(X, weight), Layer(K), uniform_on(P), []
    for _ in range(4):
        losses = [sum(cross_entropy(w[i], f(shifted(rows[i], s))) for s in shifts) / len(shifts) for i in range(N)]
        history.append(descend(losses, weight, f))
        w = [numbers(softmax_on(f(shifted(rows[i], shifts[0])), P[i])) for i in range(N)]
    check_layer(model.network_, f)
    check_table(model.w_, w)
    assert model.history_["loss"] == pytest.approx(history, abs=1e-9)


@some_views
def test_lws(shifts, monkeypatch):
    set_views(monkeypatch, shifts)
    beta0, beta = 0.7, 1.9
    model = fit(oneof.LWS, views="plain+jitter+jitter", epochs=4, beta0=beta0, beta=beta)
    X, S, weight = problem()
    rows, f, history = standardise(X, weight), Layer(K), []
    w = [[1 / K] * K for _ in range(N)]

    def psi(t):
        return sigmoid(-t)

    for _ in range(4):
        losses = []
        for i in range(N):
            total = 0.0
            for shift in shifts:
                u = f(shifted(rows[i], shift))
                total = total + beta0 * sum(w[i][j] * psi(u[j]) for j in range(K) if S[i][j])
                total = total + beta * sum(w[i][j] * psi(-u[j]) for j in range(K) if not S[i][j])
            losses.append(total / len(shifts))
        history.append(descend(losses, weight, f))
        for i in range(N):
            u = constant(f(shifted(rows[i], shifts[0])))
            inside = sum(torch.exp(u[j]) for j in range(K) if S[i][j])
            outside = sum(torch.exp(u[j]) for j in range(K) if not S[i][j])
            w[i] = [(torch.exp(u[j]) / (inside if S[i][j] else outside)).item() for j in range(K)]
    check_layer(model.network_, f)
    check_table(model.w_, w)
    assert model.history_["loss"] == pytest.approx(history, abs=1e-9)


@some_views
def test_cavl(shifts, monkeypatch):
    set_views(monkeypatch, shifts)
    model = fit(oneof.CAVL, views="plain+jitter+jitter", epochs=4)
    X, S, weight = problem()
    rows, f, w, history = standardise(X, weight), Layer(K), uniform_on(S), []
    for _ in range(4):
        losses = [sum(cross_entropy(w[i], f(shifted(rows[i], s))) for s in shifts) / len(shifts) for i in range(N)]
        history.append(descend(losses, weight, f))
        for i in range(N):
            u = constant(f(shifted(rows[i], shifts[0])))
            chosen = best_candidate([abs(1 - u[j]) * u[j] for j in range(K)], S[i])
            w[i] = [float(j == chosen) for j in range(K)]
    check_layer(model.network_, f)
    check_table(model.w_, w)
    assert model.history_["loss"] == pytest.approx(history, abs=1e-9)


# --- VALEN --------------------------------------------------------------------------------------------------

VALEN = {
    "warm_up": 2, "reconstruction_weight": 1.3, "divergence_weight": 0.2, "inference_weight": 1.7,
    "classifier_weight": 0.8, "neighbours": 2, "feature_weight": 0.6, "set_weight": 0.9, "floor": 0.05,
}  # fmt: skip


def flow(concentration):
    """What takes the place of a Dirichlet sample: without chance, but with a gradient."""
    powers = [c**1.3 for c in concentration]
    return [power / sum(powers) for power in powers]


def graph_of(rows, k):
    """Each row's k nearest others by Euclidean distance, the nearest first; and the dense matrix A."""
    neighbours, A = [], []
    for i in range(N):
        distance = [math.sqrt(sum((rows[i][d] - rows[j][d]) ** 2 for d in range(D))) for j in range(N)]
        neighbours.append(sorted((j for j in range(N) if j != i), key=lambda j: distance[j])[:k])
        row = [float(j == i or j in neighbours[i]) for j in range(N)]
        A.append([value / sum(row) for value in row])
    return neighbours, A


def log_gamma_kl(alpha):
    """KL(Dir(alpha) || Dir(1)), term by term."""
    total = sum(alpha)
    value = torch.lgamma(total) - sum(torch.lgamma(a) for a in alpha) - math.lgamma(K)
    return value + sum((a - 1) * (torch.digamma(a) - torch.digamma(total)) for a in alpha)


@pytest.mark.parametrize(
    ("correct", "inference_start", "shifts", "scale"),
    [
        (1.0, "initial", [0.0], 1.0),
        (0.4, "initial", [0.0], 1.0),
        (0.4, "warmed", [0.1, 0.3, -0.2], 1.0),
        (0.4, "initial", [0.0], 20.0),  # alpha reaches both of its bounds
    ],
)
@some_priors
def test_valen(correct, inference_start, shifts, scale, weigh, monkeypatch):
    epochs = 5
    monkeypatch.setattr(
        Batch, "dirichlet", lambda self, c: torch.pow(c, 1.3) / torch.pow(c, 1.3).sum(-1, keepdim=True)
    )
    set_views(monkeypatch, shifts)
    first, _ = watch(monkeypatch, oneof.VALEN, "network_", "decoder_")

    def scaled_linear(shape, outputs):
        layer = fixed_linear(shape, outputs)
        with torch.no_grad():
            layer.weight *= scale
        return layer

    model = fit(
        oneof.VALEN, weigh, views="plain+jitter+jitter", network=scaled_linear, epochs=epochs, correct=correct,
        inference_start=inference_start, **VALEN,
    )  # fmt: skip

    X, S, weight = problem()
    rows, history = standardise(X, weight), []
    neighbours, A = graph_of(rows, VALEN["neighbours"])
    net, enc = Given(first["network_"]), Given(first["network_"])
    hidden, out = Given(first["decoder_"][0]), Given(first["decoder_"][2])
    P = prior(S, weigh)
    own, drawn = uniform_on(P), None  # O and D of the text
    alphas = []
    for epoch in range(epochs):
        views = [[shifted(row, shift) for row in rows] for shift in shifts]
        u = [[net(row) for row in view] for view in views]
        newest = [numbers(softmax_on(u[0][i], P[i])) for i in range(N)]
        if epoch < VALEN["warm_up"]:  # PRODEN
            losses = [sum(cross_entropy(own[i], each[i]) for each in u) / len(shifts) for i in range(N)]
            history.append(descend(losses, weight, net))
            own = newest
            continue
        if drawn is None:
            drawn = [list(row) for row in own]
            if inference_start == "warmed":
                enc.parameters = [p.detach().clone().requires_grad_() for p in net.parameters]
            # The text's warm-up has an optimiser of its own; the one of this library keeps the momentum of net.
        e = [[enc(row) for row in view] for view in views]
        d = [flow([c + VALEN["floor"] for c in softmax_on(e[0][i], P[i])]) for i in range(N)]
        losses = []
        for i in range(N):
            alpha = [torch.clamp(torch.exp(value / 4), 0.01, 30) for value in e[0][i]]
            alphas += numbers(alpha)
            decoded = out([torch.relu(value) for value in hidden(d[i])])
            L_recx = sum((decoded[j] - views[0][i][j]) ** 2 for j in range(D)) / D
            L_recy = 0.0
            for j in range(K):
                s = sigmoid(d[i][j])
                L_recy = L_recy - (torch.log(s) if S[i][j] else torch.log(1 - s)) / K
            similar = [sigmoid(sum(d[i][j] * d[other][j] for j in range(K))) for other in range(N)]
            similar = softmax(similar)
            L_recA = sum((similar[other] - A[i][other]) ** 2 for other in range(N)) / N
            L_d = sum(cross_entropy(own[i], each[i]) for each in e)
            L_o = sum(cross_entropy(drawn[i], each[i]) for each in u)
            reconstruction = VALEN["feature_weight"] * L_recx + VALEN["set_weight"] * L_recy + L_recA
            losses.append(
                VALEN["reconstruction_weight"] * reconstruction
                + VALEN["divergence_weight"] * log_gamma_kl(alpha)
                + VALEN["inference_weight"] * L_d
                + VALEN["classifier_weight"] * L_o
            )
        history.append(descend(losses, weight, net, enc, hidden, out))
        for i in range(N):
            inside = sum(d[i][j].item() for j in range(K) if S[i][j])
            new = [d[i][j].item() / inside if S[i][j] else 0.0 for j in range(K)]
            drawn[i] = [correct * new[j] + (1 - correct) * own[i][j] for j in range(K)]
        own = newest
    check_layer(model.network_, net)
    check_layer(model.inference_network_, enc)
    check_layer(model.decoder_[0], hidden)
    check_layer(model.decoder_[2], out)
    check_table(model.w_, own)
    check_table(model.d_, drawn)
    assert model.neighbours_.tolist() == neighbours
    assert model.history_["loss"] == pytest.approx(history, abs=1e-9, rel=1e-9)
    if scale > 1:
        assert min(alphas) == 0.01
        assert max(alphas) == 30


def test_valen_starts_its_distributions_from_the_warm_up(monkeypatch):
    """At the end of the warm-up D is O, and neither the inference network nor the decoder has moved."""
    first, _ = watch(monkeypatch, oneof.VALEN, "inference_network_", "decoder_")
    seen = []
    start_epoch = oneof.VALEN.start_epoch

    def watched(self, epoch, data):
        start_epoch(self, epoch, data)
        seen.append((self.w_.clone(), self.d_.clone(), deepcopy(self.inference_network_), deepcopy(self.decoder_)))

    monkeypatch.setattr(oneof.VALEN, "start_epoch", watched)
    fit(oneof.VALEN, warm_up=2, epochs=4)
    own, drawn, inference, decoder = seen[2]
    assert torch.equal(own, drawn)
    assert not torch.equal(own, seen[0][0])
    for module, name in ((inference, "inference_network_"), (decoder, "decoder_")):
        for have, want in zip(module.parameters(), first[name].parameters(), strict=True):
            assert torch.equal(have, want)
    assert not torch.equal(seen[3][0], seen[3][1])


# --- PiCO ---------------------------------------------------------------------------------------------------

PICO = {
    "contrastive_weight": 0.7, "temperature": 0.4, "encoder_momentum": 0.8, "prototype_momentum": 0.6,
    "queue_size": 10, "embedding_size": 3, "phi_start": 0.9, "phi_end": 0.5,
}  # fmt: skip

NEAR = {"atol": 1e-9, "rtol": 1e-9}


def unit(vector):
    length = torch.sqrt(sum(value**2 for value in vector))
    return [value / length for value in vector] if length > 0 else vector


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("prototype_start", [0, 2])
def test_pico(prototype_start, monkeypatch):
    epochs, (weak, strong) = 4, (0.2, -0.3)
    tau, mm, pm = PICO["temperature"], PICO["encoder_momentum"], PICO["prototype_momentum"]
    set_views(monkeypatch, [weak, strong])
    first, orders = watch(monkeypatch, oneof.PiCO, "projection_", "queue_", "queue_labels_")
    model = fit(oneof.PiCO, views="plain+jitter+jitter", epochs=epochs, prototype_start=prototype_start, **PICO)

    X, S, weight = problem()
    rows, history = standardise(X, weight), []
    # the network is one layer, whose outputs are features as well
    query = [Layer(K), Given(first["projection_"][0]), Given(first["projection_"][2])]
    key = deepcopy(query)

    def embed(encoder, row):
        layer, hidden, out = encoder
        u = layer(row)
        return u, unit(out([torch.relu(value) for value in hidden(u)]))

    zero = torch.zeros((), dtype=torch.float64)
    P = [[zero] * PICO["embedding_size"] for _ in range(K)]
    queue, queue_labels = list(first["queue_"].unbind()), first["queue_labels_"].tolist()
    assert [float(torch.linalg.norm(row)) for row in queue] == pytest.approx([1.0] * PICO["queue_size"])
    assert queue_labels == [-1] * PICO["queue_size"]
    conf, pointer, phi = uniform_on(S), 0, 0.99
    for epoch in range(epochs):
        order = orders[epoch]  # the prototypes and the queue depend on the order of the rows
        u, q, pseudo, score = {}, {}, {}, {}
        for i in order:
            u[i], q[i] = embed(query, shifted(rows[i], weak))
            pseudo[i] = best_candidate(softmax(u[i]), S[i])
            score[i] = softmax([dot(constant(q[i]), P[j]) for j in range(K)])
        for i in order:
            P[pseudo[i]] = [
                pm * old + (1 - pm) * new for old, new in zip(P[pseudo[i]], constant(q[i]), strict=True)
            ]
        P = [unit(row) for row in P]
        for average, layer in zip(key, query, strict=True):
            average.parameters = [
                mm * old.detach() + (1 - mm) * new.detach()
                for old, new in zip(average.parameters, layer.parameters, strict=True)
            ]
        k = {i: constant(embed(key, shifted(rows[i], strong))[1]) for i in order}
        everything = [q[i] for i in order] + [k[i] for i in order] + list(queue)
        labels = [pseudo[i] for i in order] * 2 + list(queue_labels)
        losses = [None] * N
        for place, i in enumerate(order):
            if epoch >= prototype_start:
                t = best_candidate(score[i], S[i])
                conf[i] = [phi * conf[i][j] + (1 - phi) * (j == t) for j in range(K)]
                denominator = sum(
                    torch.exp(dot(q[i], other) / tau) for a, other in enumerate(everything) if a != place
                )
                positive = [a for a in range(len(everything)) if a != place and labels[a] == pseudo[i]]
                L_cont = -sum(
                    torch.log(torch.exp(dot(q[i], everything[a]) / tau) / denominator) for a in positive
                ) / len(positive)
            else:
                own = torch.exp(dot(q[i], k[i]) / tau)
                L_cont = -torch.log(own / (own + sum(torch.exp(dot(q[i], other) / tau) for other in queue)))
            losses[i] = cross_entropy(conf[i], u[i]) + PICO["contrastive_weight"] * L_cont
        for i in order:
            queue[pointer], queue_labels[pointer] = torch.stack(k[i]), pseudo[i]
            pointer = (pointer + 1) % PICO["queue_size"]
        history.append(descend(losses, weight, *query))
        phi = PICO["phi_start"] + epoch / epochs * (PICO["phi_end"] - PICO["phi_start"])
    trained = [*model.network_.parameters(), *model.projection_.parameters()]
    averages = [*model.key_network_.parameters(), *model.key_projection_.parameters()]
    for parameters, encoder in ((trained, query), (averages, key)):
        wanted = [parameter for layer in encoder for parameter in layer.parameters]
        for have, want in zip(parameters, wanted, strict=True):
            torch.testing.assert_close(have, want, **NEAR)
    torch.testing.assert_close(model.prototypes_, torch.stack([torch.stack(row) for row in P]), **NEAR)
    torch.testing.assert_close(model.queue_, torch.stack(queue), **NEAR)
    torch.testing.assert_close(model.w_, torch.tensor(conf, dtype=torch.float64), **NEAR)
    assert model.queue_labels_.tolist() == queue_labels
    assert model.pointer_.item() == pointer
    assert model.history_["loss"] == pytest.approx(history, abs=NEAR["atol"])


def test_pico_labels_are_float64_throughout():
    model = fit(oneof.PiCO, views="plain+jitter+jitter", epochs=4, prototype_start=0, **PICO)
    torch.testing.assert_close(model.w_.sum(-1), torch.ones(N, dtype=torch.float64), atol=1e-12, rtol=0)


# --- PLCR ---------------------------------------------------------------------------------------------------


@some_priors
def test_plcr(weigh, monkeypatch):
    shifts, epochs, final, ramp = [0.1, 0.3, -0.4], 5, 0.6, 2
    set_views(monkeypatch, shifts)
    model = fit(oneof.PLCR, weigh, views="plain+jitter+jitter", epochs=epochs, weight=final, ramp=ramp)
    X, S, weight = problem()
    P = prior(S, weigh)
    rows, f, w, history = standardise(X, weight), Layer(K), uniform_on(P), []
    for epoch in range(epochs):
        lam = min(epoch / ramp * final, final)
        losses, new = [], []
        for i in range(N):
            p = [softmax(f(shifted(rows[i], shift))) for shift in shifts]
            L_con = sum(
                w[i][j] * (math.log(w[i][j]) - torch.log(view[j])) for view in p for j in range(K) if w[i][j] > 0
            )
            L_sup = -sum(torch.log(1 - p[0][j]) for j in range(K) if not S[i][j])
            losses.append(lam * L_con + L_sup)
            roots = [(p[0][j] * p[1][j] * p[2][j]).item() ** (1 / 3) * P[i][j] for j in range(K)]
            new.append([value / sum(roots) for value in roots])
        history.append(descend(losses, weight, f))
        w = new
    check_layer(model.network_, f)
    check_table(model.w_, w)
    assert model.history_["loss"] == pytest.approx(history, abs=1e-9)


def test_plcr_target_is_the_normalised_cube_root_of_the_product():
    generator = torch.Generator().manual_seed(1)
    logits = 4 * torch.randn(3, 50, K, generator=generator, dtype=torch.float64)
    S = torch.rand(50, K, generator=generator) < 0.5
    S[:, 1] = True
    product = logits.softmax(-1).prod(0) ** (1 / 3) * S
    have = F.posterior(logits.log_softmax(-1).mean(0), S)
    torch.testing.assert_close(have, product / product.sum(-1, keepdim=True), atol=1e-12, rtol=1e-12)


def test_plcr_ramp_leaves_its_parameters_alone():
    X, S, _ = problem()
    model = oneof.PLCR(views="plain+jitter+jitter", weight=0.7, ramp=3, epochs=2, device="cpu")
    before = model.get_params()
    model.fit(X, S)
    assert model.get_params() == before
    assert model.weight == 0.7


# --- RC, CAVL and LWS: special cases ------------------------------------------------------------------------


def test_rc_is_proden_when_nothing_moves():
    X, S, weight = problem()
    rc, proden = (
        method(network=fixed_linear, precision="fp64", device="cpu", random_state=0, lr=1e-12, epochs=4).fit(
            X, S, sample_weight=weight
        )
        for method in (oneof.RC, oneof.PRODEN)
    )
    torch.testing.assert_close(rc.w_, proden.w_, atol=1e-9, rtol=0)
    assert rc.history_["loss"] == pytest.approx(proden.history_["loss"], abs=1e-9)
    moving = fit(oneof.RC, epochs=4).w_ - fit(oneof.PRODEN, epochs=4).w_
    assert moving.abs().max() > 1e-3


@pytest.mark.parametrize("shift", [0.0, -50.0, 50.0], ids=["any", "all negative", "all positive"])
def test_cavl_always_picks_a_candidate(shift):
    generator = torch.Generator().manual_seed(2)
    logits = 5 * torch.randn(500, K, generator=generator) + shift
    S = torch.rand(500, K, generator=generator) < 0.4
    S[:, 0] |= ~S.any(-1)
    target = F.class_activation(logits, S)
    assert (target.sum(-1) == 1).all()
    assert (target * ~S == 0).all()
    value = (1 - logits).abs() * logits
    assert ((value * target).sum(-1) == value.masked_fill(~S, float("-inf")).amax(-1)).all()


def test_cavl_with_negative_outputs_fits_to_candidates():
    """The released code chooses a non-candidate here."""

    def negative(shape, outputs):
        layer = fixed_linear(shape, outputs)
        with torch.no_grad():
            layer.bias -= 100
        return layer

    model = fit(oneof.CAVL, network=negative, epochs=3)
    X, S, weight = problem()
    rows = torch.tensor(standardise(X, weight), dtype=torch.float64)
    assert (model.network_(rows) < 0).all()
    assert (model.w_.sum(-1) == 1).all()
    assert (model.w_[~torch.as_tensor(S)] == 0).all()


def test_lws_weights_sum_to_one_on_each_side():
    data = make_data()
    data.candidates[0] = True  # a full set has no other side
    model = oneof.LWS(network="linear", precision="fp64", device="cpu", beta0=1.2, beta=0.7)
    model.start(data)
    assert (model.w_ == 1 / data.n_classes).all()
    batch = make_batch(data, torch.arange(len(data)), Epoch(0), None)
    u = model.network_(batch.x).sigmoid()
    pushed = torch.where(data.candidates, 1.2 * (1 - u), 0.7 * u)
    steps = iter(losses_of(model.step(batch)))
    losses = next(steps)
    torch.testing.assert_close(losses, pushed.sum(-1) / data.n_classes)
    losses.sum().backward()
    assert next(steps, None) is None
    ones = torch.ones(len(data), dtype=torch.float64)
    torch.testing.assert_close((model.w_ * data.candidates).sum(-1), ones)
    full = data.candidates.all(-1)
    torch.testing.assert_close((model.w_ * ~data.candidates).sum(-1), ones.masked_fill(full, 0.0))
    assert full.tolist().count(True) == 1
    # on the full set the second part of the loss is zero: beta is without effect
    parts = [next(iter(losses_of(model.set_params(beta=beta).step(batch)))) for beta in (0.7, 7.0)]
    assert torch.equal(parts[0][full], parts[1][full])
    assert not torch.equal(parts[0], parts[1])


# --- PiCO: prototypes and queue -----------------------------------------------------------------------------


@pytest.mark.parametrize("p", [0.0, 0.3, 0.99, 1.0])
@pytest.mark.parametrize("classes", [1, 3, 6], ids=["one class", "half of the classes", "all"])
def test_pico_prototypes_in_closed_form_equal_the_loop(p, classes):
    generator = torch.Generator().manual_seed(classes)
    model = oneof.PiCO(prototype_momentum=p)
    model.prototypes_ = torch.randn(6, 5, generator=generator, dtype=torch.float64)
    model.prototypes_[2] = 0.0
    expected = model.prototypes_.clone()
    for _ in range(3):
        q = torch.randn(17, 5, generator=generator, dtype=torch.float64)
        labels = torch.randint(classes, (17,), generator=generator)
        model.prototypes_.copy_(F.moved_prototypes(model.prototypes_, q, labels, model.prototype_momentum))
        for i in range(17):
            expected[labels[i]] = p * expected[labels[i]] + (1 - p) * q[i]
        for j in range(6):
            length = expected[j].norm()
            expected[j] = expected[j] / length if length > 0 else expected[j]
        torch.testing.assert_close(model.prototypes_, expected, atol=1e-12, rtol=1e-12)


def test_pico_queue_goes_round():
    model = oneof.PiCO()
    length, size = 7, 3
    model.queue_, model.queue_labels_ = torch.zeros(length, 2), torch.full((length,), -1)
    model.pointer_ = torch.zeros((), dtype=torch.int64)
    place, expected, labels = 0, [[0.0, 0.0]] * length, [-1] * length
    for step in range(6):
        k = torch.arange(size * 2, dtype=torch.float32).view(size, 2) + 10 * step
        model._enqueue(k, torch.arange(size) + 3 * step)
        for i in range(size):
            expected[place], labels[place] = k[i].tolist(), i + 3 * step
            place = (place + 1) % length
        assert model.queue_.tolist() == expected
        assert model.queue_labels_.tolist() == labels
        assert model.pointer_.item() == place


def test_pico_queue_holds_at_least_one_batch():
    model = fit(oneof.PiCO, views="plain+jitter+jitter", epochs=2, queue_size=4)
    assert model.queue_.shape[0] == N
    assert (model.queue_labels_ >= 0).all()


# --- VALEN: divergence, graph and sample --------------------------------------------------------------------


def test_dirichlet_kl_equals_the_library():
    generator = torch.Generator().manual_seed(3)
    alpha = (torch.rand(200, 5, generator=generator, dtype=torch.float64) * 8 - 4.6).exp()  # 0.01 to 30
    alpha.requires_grad_()
    have, want = F.dirichlet_kl(alpha), kl_divergence(Dirichlet(alpha), Dirichlet(torch.ones_like(alpha)))
    torch.testing.assert_close(have, want, atol=1e-10, rtol=1e-10)
    slopes = [torch.autograd.grad(value.sum(), alpha)[0] for value in (have, want)]
    torch.testing.assert_close(*slopes, atol=1e-8, rtol=1e-8)
    assert (have >= 0).all()
    assert F.dirichlet_kl(torch.ones(4)).item() == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("k", [1, 3, 7])
def test_neighbours_equal_scikit_learn_and_the_block_equals_the_dense_matrix(k):
    rng = np.random.default_rng(4)
    x = rng.normal(size=(700, 6))  # more rows than one block of distances
    have = nearest_neighbours(torch.as_tensor(x), k)
    want = NearestNeighbors(n_neighbors=k).fit(x).kneighbors(return_distance=False)
    assert np.array_equal(have.numpy(), want)
    dense = np.zeros((700, 700))
    for i in range(700):
        dense[i, want[i]] = 1.0
    dense += np.eye(700)
    dense /= dense.sum(1, keepdims=True)
    index = torch.as_tensor(rng.permutation(700)[:120])
    block = adjacency(have[index], index).double()
    np.testing.assert_allclose(block, dense[index][:, index], atol=1e-7)
    assert (block.diagonal() > 0).all()
    whole = torch.arange(700)
    np.testing.assert_allclose(adjacency(have, whole).sum(1), np.ones(700), atol=1e-5)


def a_batch(*axes, classes):
    """A batch that is asked for nothing but samples."""
    index = torch.arange(axes[-1]).expand(axes)
    return Batch([], torch.ones(*axes, classes, dtype=torch.bool), index, Epoch(0))


@pytest.mark.parametrize("concentration", [[0.4, 1.0, 2.5], [0.75, 0.26, 0.01], [8.0, 8.0, 8.0]])
def test_gradient_of_a_dirichlet_sample(concentration):
    """Its mean is the derivative of the mean c_i / sum c: (1[i=j] sum c - c_i) / (sum c)^2."""
    count, K3 = 20_000, 3
    c = torch.tensor(concentration, dtype=torch.float64)

    def slopes(draw):
        leaf = c.repeat(count, 1).requires_grad_()
        sample = draw(leaf)
        each = [torch.autograd.grad(sample[:, i].sum(), leaf, retain_graph=True)[0] for i in range(K3)]
        each = torch.stack(each, 1)  # (count, i, j)
        return sample.detach(), each.mean(0), each.std(0) / math.sqrt(count)

    with torch.random.fork_rng():
        torch.manual_seed(5)
        sample, mean, error = slopes(a_batch(count, classes=K3).dirichlet)
        _, other_mean, other_error = slopes(lambda leaf: Dirichlet(leaf).rsample())
    total = c.sum()
    torch.testing.assert_close(sample.sum(-1), torch.ones(count, dtype=torch.float64))
    deviation = (c * (total - c) / (total + 1)).sqrt() / total  # of one sample
    assert ((sample.mean(0) - c / total).abs() < 5 * deviation / math.sqrt(count)).all()
    analytic = (torch.eye(K3) * total - c[:, None]) / total**2
    assert ((mean - analytic).abs() < 5 * error + 1e-4).all()
    assert ((mean - other_mean).abs() < 5 * (error**2 + other_error**2).sqrt() + 1e-4).all()


def test_dirichlet_samples_have_leading_axes():
    c = torch.rand(2, 3, 5, 4, generator=torch.Generator().manual_seed(6)).add(0.01).requires_grad_()
    with torch.random.fork_rng():
        torch.manual_seed(6)
        sample = a_batch(2, 3, 5, classes=4).dirichlet(c)
    assert sample.shape == c.shape
    assert ((sample >= 0) & (sample <= 1)).all()
    torch.testing.assert_close(sample.sum(-1), torch.ones(2, 3, 5))
    (slope,) = torch.autograd.grad(sample.square().sum(), c)
    assert slope.shape == c.shape
    assert slope.isfinite().all()
    assert (slope != 0).any(-1).all()


# --- building blocks ----------------------------------------------------------------------------------------


def test_complementary_nll_equals_its_formula():
    generator = torch.Generator().manual_seed(7)
    logits = 3 * torch.randn(60, K, generator=generator, dtype=torch.float64)
    S = torch.rand(60, K, generator=generator) < 0.5
    S[:, 0] |= ~S.any(-1)
    logits.requires_grad_()
    have = F.complementary_nll(logits, S)
    want = -((1 - logits.softmax(-1)).log() * ~S).sum(-1)
    torch.testing.assert_close(have, want, atol=1e-12, rtol=1e-12)
    slopes = [torch.autograd.grad(value.sum(), logits)[0] for value in (have, want)]
    torch.testing.assert_close(*slopes, atol=1e-11, rtol=1e-11)
    few = logits[:3].detach().requires_grad_()
    assert torch.autograd.gradcheck(lambda each: F.complementary_nll(each, S[:3]), few)


@pytest.mark.parametrize("inside", [[0], [1, 2], [0, 1, 2, 3]])
def test_complementary_nll_at_huge_logits(inside):
    S = torch.zeros(K, dtype=torch.bool)
    S[inside] = True
    corners = torch.cartesian_prod(*[torch.tensor([-1e4, 0.0, 1e4])] * K)  # (81, K), ties among them
    corners.requires_grad_()
    losses = F.complementary_nll(corners, S.expand(len(corners), K))
    assert losses.dtype == torch.float32
    assert losses.isfinite().all()
    assert (losses >= 0).all()
    (slope,) = torch.autograd.grad(losses.sum(), corners)
    assert slope.isfinite().all()
    for u, loss, gradient in zip(corners.detach(), losses, slope, strict=True):
        tops = (u == u.max()).nonzero().flatten().tolist()
        if len(tops) == 1 and not S[tops[0]]:  # a certain non-candidate: it is pushed down, with all its force
            assert loss.item() == pytest.approx((u.max() - u.sort().values[-2]).item(), abs=2)
            assert gradient[tops[0]].item() == pytest.approx(1.0)


def test_peek_is_a_training_pass_that_leaves_the_running_averages():
    def normalised(shape, outputs):
        return nn.Sequential(nn.Linear(shape[0], 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, outputs))

    torch.manual_seed(8)
    network = networks.build(normalised, (D,), K)
    x = torch.randn(9, D) + 3
    network(torch.randn(9, D))  # averages that are not the first ones
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    peeked = network.forward_frozen_stats(x)
    for name, tensor in network.state_dict().items():
        assert torch.equal(tensor, before[name]), name
    assert not peeked.requires_grad
    assert torch.equal(peeked, network(x))
    norm = network.body[1]
    assert not torch.equal(norm.running_mean, before["body.1.running_mean"])  # a pass proper moves them again
    assert norm.num_batches_tracked == 2
    network.eval()
    assert not torch.allclose(peeked, network(x))
    network.train()
    with pytest.raises(RuntimeError):
        network.forward_frozen_stats(torch.zeros(4, D + 1))
    assert norm.track_running_stats
