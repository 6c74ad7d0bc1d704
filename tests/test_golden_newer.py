"""Methods after IDGP against slow, literal transcriptions; see test_golden for the manner. POP is there."""

import math
from copy import deepcopy

import pytest
import torch

import oneof
from oneof import functional as F
from oneof.train.batch import Batch
from test_golden import (
    K,
    Layer,
    N,
    check_layer,
    check_table,
    constant,
    descend,
    fit,
    prior,
    problem,
    softmax,
    softmax_on,
    some_priors,
    standardise,
)
from test_golden_others import (
    NEAR,
    Given,
    cross_entropy,
    dot,
    numbers,
    set_views,
    shifted,
    some_views,
    unit,
    watch,
)

DIRK = {
    "contrastive_weight": 0.7, "temperature": 0.4, "target_temperature": 0.6, "teacher_momentum": 0.8,
    "queue_size": 10, "embedding_size": 3,
}  # fmt: skip


def rectified(p, inside):
    """The target t of DIRK for probabilities p."""
    mass = sum(p[j] for j in range(K) if inside[j])
    rest = sum(p[j] for j in range(K) if not inside[j])
    a = [p[j] / mass if inside[j] else 0.0 for j in range(K)]
    if all(inside):
        return a
    c = [0.0 if inside[j] else p[j] / rest for j in range(K)]
    M = 1 / mass
    smallest = min(a[j] for j in range(K) if inside[j])
    alpha = M * max(c) / (M * max(c) + smallest)
    return [alpha * a[j] + (1 - alpha) * c[j] for j in range(K)]


@pytest.mark.parametrize("contrast_start", [0, 2])
@pytest.mark.parametrize("reference", [0.7, 0.0], ids=["with REF", "without REF"])
def test_dirk(contrast_start, reference, monkeypatch):
    epochs, (weak, strong) = 4, (0.2, -0.3)
    tau, tau_t, m = DIRK["temperature"], DIRK["target_temperature"], DIRK["teacher_momentum"]
    set_views(monkeypatch, [weak, strong])
    first, orders = watch(monkeypatch, oneof.DIRK, "projection_", "queue_", "queue_targets_")
    settings = DIRK | {"contrastive_weight": reference, "contrast_start": contrast_start}
    model = fit(oneof.DIRK, views="plain+jitter", epochs=epochs, **settings)

    X, S, weight = problem()
    rows, history = standardise(X, weight), []
    student = [Layer(K), Given(first["projection_"][0]), Given(first["projection_"][2])]
    teacher = deepcopy(student)

    def run(encoder, row):
        layer, hidden, out = encoder
        u = layer(row)
        return u, unit(out([torch.relu(value) for value in hidden(u)]))

    queue, queue_t, pointer = list(first["queue_"].unbind()), first["queue_targets_"].tolist(), 0
    assert not any(map(any, queue_t))
    for epoch in range(epochs):
        order, t, k, u, q = orders[epoch], {}, {}, {}, {}
        for i in order:
            outputs, embedding = run(teacher, shifted(rows[i], weak))
            k[i], t[i] = constant(embedding), rectified(numbers(softmax(outputs)), S[i])
            u[i], q[i] = run(student, shifted(rows[i], weak))[0], run(student, shifted(rows[i], strong))[1]
            inside, outside = ([t[i][j] for j in range(K) if S[i][j] == part] for part in (True, False))
            assert min(inside) >= max(outside, default=0)
        everything = [q[i] for i in order] + [k[i] for i in order] + queue
        targets = [t[i] for i in order] * 2 + queue_t
        losses = [None] * N
        for place, i in enumerate(order):
            if epoch >= contrast_start:
                others = [a for a in range(len(everything)) if a != place]
                total = sum(torch.exp(dot(q[i], everything[a]) / tau) for a in others)
                mode = t[i].index(max(t[i]))
                positive = [a for a in others if any(targets[a]) and targets[a].index(max(targets[a])) == mode]
                like = [
                    torch.exp(
                        dot(unit(torch.tensor(t[i]).double()), unit(torch.tensor(targets[a]).double())) / tau_t
                    )
                    for a in positive
                ]
                ref = -sum(
                    share / sum(like) * torch.log(torch.exp(dot(q[i], everything[a]) / tau) / total)
                    for share, a in zip(like, positive, strict=True)
                )
            else:
                own = torch.exp(dot(q[i], k[i]) / tau)
                ref = -torch.log(own / (own + sum(torch.exp(dot(q[i], other) / tau) for other in queue)))
            losses[i] = cross_entropy(t[i], u[i]) + reference * ref
        history.append(descend(losses, weight, *(student if reference else student[:1])))
        for average, layer in zip(teacher, student, strict=True):
            pairs = zip(average.parameters, layer.parameters, strict=True)
            average.parameters = [m * old.detach() + (1 - m) * new.detach() for old, new in pairs]
        for i in order:
            queue[pointer], queue_t[pointer] = torch.stack(k[i]), t[i]
            pointer = (pointer + 1) % DIRK["queue_size"]
    trained = [*model.network_.parameters(), *model.projection_.parameters()]
    averages = [*model.teacher_.parameters(), *model.teacher_projection_.parameters()]
    for parameters, encoder in ((trained, student), (averages, teacher)):
        wanted = [parameter for layer in encoder for parameter in layer.parameters]
        for have, want in zip(parameters, wanted, strict=True):
            torch.testing.assert_close(have, want, **NEAR)
    torch.testing.assert_close(model.queue_, torch.stack(queue), **NEAR)
    torch.testing.assert_close(model.queue_targets_, torch.tensor(queue_t, dtype=torch.float64), **NEAR)
    assert model.history_["loss"] == pytest.approx(history, abs=1e-9)


def test_targets_of_dirk_keep_every_candidate_above_the_others_at_any_scale():
    generator = torch.Generator().manual_seed(0)
    for scale in (1.0, 30.0, 1e4):
        logits = scale * torch.randn(200, 5, generator=generator)
        inside = torch.rand(200, 5, generator=generator) < 0.5
        inside[:, 0] = True
        t = F.rectified(logits, inside)
        torch.testing.assert_close(t.sum(-1), torch.ones(200))
        lowest = t.masked_fill(~inside, 2).amin(-1)
        assert (lowest >= t.masked_fill(inside, -1).amax(-1) - 1e-6).all()


def lambda_of_alim(p, S, P, eta):
    """The value at place ``eta N`` of what the best candidate has over the best other label, at most 1."""
    margins = []
    for i in range(N):
        best = max(P[i][j] * p[i][j] for j in range(K) if S[i][j])
        other = max((max(P[i]) * p[i][j] for j in range(K) if not S[i][j]), default=0.0)
        margins.append(best / other if other else math.inf)
    return min(sorted(margins)[int(N * eta)], 1.0)


@some_priors
@pytest.mark.parametrize("method", [oneof.PRODEN, oneof.RC])
@pytest.mark.parametrize("eta", [0.34, 0.9], ids=["some rows", "most rows"])
def test_alim(method, weigh, eta):
    epochs = 4
    model = fit(method, weigh, epochs=epochs, outside=eta, outside_rule="alim", mixup=0.0)
    X, S, weight = problem()
    P = prior(S, weigh)
    rows, f, history, lam, seen = standardise(X, weight), Layer(K), [], 0.0, []
    w = [[P[i][j] / P[i].sum() for j in range(K)] for i in range(N)]

    def targets(u):
        found = []
        for i in range(N):
            p = softmax(constant(u[i]))
            own = [float(p[j]) * (P[i][j] if S[i][j] else lam * max(P[i])) for j in range(K)]
            found.append([value / sum(own) for value in own])
        return found

    for epoch in range(epochs):
        u = [f(row) for row in rows]
        if epoch > 0:  # a tenth of the epochs, one at least, trusts the sets
            lam = lambda_of_alim([numbers(softmax(each)) for each in u], S, P, eta)
            seen.append(lam)
        losses = [cross_entropy(w[i], u[i]) for i in range(N)]
        if method is oneof.PRODEN:
            w = targets(u)
        history.append(descend(losses, weight, f))
        if method is oneof.RC:
            w = targets([f(row) for row in rows])
    assert (seen[-1] < 1) == (eta < 0.5)
    check_layer(model.network_, f)
    check_table(model.w_, w)
    assert model.outside_scale_.item() == pytest.approx(lam, abs=1e-12)
    assert model.history_["loss"] == pytest.approx(history, abs=1e-9)


PAPI = {
    "alignment_weight": 0.7, "ramp": 2, "temperature": 0.6, "mixing_beta": 3.0, "embedding_size": 3,
    "prototype_momentum_start": 0.8, "prototype_momentum_end": 0.4, "phi_start": 0.9, "phi_end": 0.5,
}  # fmt: skip


def let_mixtures_be(monkeypatch, shares):
    """Let the shares t of mixtures be these, one after the other; check what they are drawn from."""
    left, asked = iter(shares), []

    def draw(batch, concentration):
        asked.append(concentration.tolist())
        t = next(left)
        return concentration.new_tensor([t, 1 - t])

    monkeypatch.setattr(Batch, "dirichlet", draw)
    return asked


def divergence(w, q):
    """KL(w || q)."""
    return sum(w[j] * (math.log(w[j]) - torch.log(q[j])) for j in range(K) if w[j] > 0)


@some_priors
@some_views
def test_papi(shifts, weigh, monkeypatch):
    epochs, shares = 5, [0.3, 0.6, 0.45, 0.8, 0.5]
    set_views(monkeypatch, shifts)
    asked = let_mixtures_be(monkeypatch, shares)
    first, orders = watch(monkeypatch, oneof.PaPi, "projection_")
    model = fit(oneof.PaPi, weigh, views="plain+jitter", epochs=epochs, **PAPI)
    assert asked == [[PAPI["mixing_beta"]] * 2] * epochs

    X, S, weight = problem()
    P = prior(S, weigh)
    rows, history = standardise(X, weight), []
    layer, hidden, out = network = [Layer(K), Given(first["projection_"][0]), Given(first["projection_"][2])]

    def run(row):
        u = layer(row)
        return u, unit(out([torch.relu(value) for value in hidden(u)]))

    w = [[P[i][j] / P[i].sum() for j in range(K)] for i in range(N)]
    prototypes = [[0.0] * PAPI["embedding_size"] for _ in range(K)]
    both = [shifts[0], shifts[-1]]
    for epoch in range(epochs):
        order, t = orders[epoch], shares[epoch]
        falling = (epoch - 1) / epochs
        phi = 0.99 if epoch == 0 else falling * (PAPI["phi_end"] - PAPI["phi_start"]) + PAPI["phi_start"]
        m = 0.99 if epoch == 0 else (
            falling * (PAPI["prototype_momentum_end"] - PAPI["prototype_momentum_start"])
            + PAPI["prototype_momentum_start"]
        )  # fmt: skip
        lam = min(epoch / PAPI["ramp"], 1) * PAPI["alignment_weight"]
        seen = [[run(shifted(rows[i], shift)) for i in range(N)] for shift in both]
        pseudo = [[numbers(softmax_on(constant(u), P[i])) for i, (u, _) in enumerate(view)] for view in seen]
        w = [[phi * w[i][j] + (1 - phi) * pseudo[0][i][j] for j in range(K)] for i in range(N)]
        losses = [None] * N
        for place, i in enumerate(order):
            other = order[place - 1]
            alignment = 0.0
            for shift in both:
                x, x_other = shifted(rows[i], shift), shifted(rows[other], shift)
                q = run([t * a + (1 - t) * b for a, b in zip(x, x_other, strict=True)])[1]
                s = softmax(
                    [dot(q, torch.tensor(p, dtype=torch.float64)) / PAPI["temperature"] for p in prototypes]
                )
                alignment = alignment + t * divergence(w[i], s) + (1 - t) * divergence(w[other], s)
            losses[i] = cross_entropy(w[i], seen[0][i][0]) + lam * alignment
        for view in range(2):
            for i in order:
                label = pseudo[view][i].index(max(pseudo[view][i]))
                q = numbers(seen[view][i][1])
                prototypes[label] = [
                    m * old + (1 - m) * new for old, new in zip(prototypes[label], q, strict=True)
                ]
        for label, p in enumerate(prototypes):
            length = math.sqrt(sum(value**2 for value in p))
            prototypes[label] = [value / length for value in p] if length else p
        history.append(descend(losses, weight, *network))
    for have, want in zip(
        [*model.network_.parameters(), *model.projection_.parameters()],
        [parameter for each in network for parameter in each.parameters],
        strict=True,
    ):
        torch.testing.assert_close(have, want, **NEAR)
    check_table(model.w_, w)
    torch.testing.assert_close(model.prototypes_, torch.tensor(prototypes, dtype=torch.float64), **NEAR)
    assert model.history_["loss"] == pytest.approx(history, abs=1e-9)


@some_priors
@some_views
def test_crosel(shifts, weigh, monkeypatch):
    epochs, warm_up, memory, threshold, lam = 8, 3, 2, 0.55, 0.7
    set_views(monkeypatch, shifts)
    drawn = [0.3, 0.6, 0.45, 0.8, 0.5, 0.9, 0.2, 0.35, 0.65, 0.55]
    asked = let_mixtures_be(monkeypatch, drawn)
    start = oneof.CroSel.start

    def start_apart(model, data):  # else the two networks of `fixed_linear` would be one
        start(model, data)
        with torch.no_grad():
            model.second_network_.body.weight.mul_(-1.3)

    monkeypatch.setattr(oneof.CroSel, "start", start_apart)
    _, orders = watch(monkeypatch, oneof.CroSel)
    model = fit(oneof.CroSel, weigh, views="plain+jitter", epochs=epochs, warm_up=warm_up, memory=memory,
                threshold=threshold, consistency_weight=lam, mixing_beta=0.4)  # fmt: skip
    assert asked == [[0.4, 0.4]] * len(drawn)

    X, S, weight = problem()
    P = prior(S, weigh)
    rows, history = standardise(X, weight), []
    networks, draws = [Layer(K), Layer(K)], iter(drawn)
    with torch.no_grad():
        networks[1].parameters[0].mul_(-1.3)
    bank = [[[] for _ in range(N)] for _ in range(2)]  # predictions (label, probability), the latest last
    weak, strong = shifts[0], shifts[-1]
    shares, picks = [], []
    for epoch in range(epochs):
        order, totals = orders[epoch], [0.0] * N
        selected, share = [{}, {}], 0.0
        if epoch >= warm_up:
            for network in range(2):
                for i in range(N):
                    last = bank[network][i][-memory:]
                    label = last[-1][0]
                    agree = len(last) == memory and all(each[0] == label for each in last)
                    if agree and sum(p for _, p in last) / memory > threshold and S[i][label]:
                        selected[network][i] = label
            share = (len(selected[0]) + len(selected[1])) / (2 * N)
            shares.append(share)
            picks.append([dict(each) for each in selected])
        for network, f in enumerate(networks):
            if epoch < warm_up:
                for i in range(N):
                    for shift in shifts:
                        p = softmax(f(shifted(rows[i], shift)))
                        covered = sum(P[i][j] * p[j] for j in range(K) if S[i][j])
                        totals[i] = totals[i] - torch.log(covered) / len(shifts)
                continue
            others, b = selected[1 - network], next(draws)
            t = max(b, 1 - b)
            target = {
                shift: [numbers(softmax_on(constant(f(shifted(rows[i], shift))), P[i])) for i in range(N)]
                for shift in (weak, strong)
            }
            for place, i in enumerate(order):
                before, mixed = order[place - 1], 0.0
                for shift, taught_by in ((weak, strong), (strong, weak)):
                    x, x_before = shifted(rows[i], shift), shifted(rows[before], shift)
                    row = [t * a + (1 - t) * c for a, c in zip(x, x_before, strict=True)]
                    goal = [t * target[taught_by][i][j] + (1 - t) * target[taught_by][before][j] for j in range(K)]
                    mixed = mixed + cross_entropy(goal, f(row)) / 2
                totals[i] = totals[i] + lam * (1 - share) * mixed
                if i in others:
                    known = -torch.log(softmax(f(shifted(rows[i], weak)))[others[i]])
                    totals[i] = totals[i] + known * N / len(others)
        history.append(descend(totals, weight, *networks))
        for network, f in enumerate(networks):
            for i in range(N):
                p = numbers(softmax(f(rows[i])))
                bank[network][i].append((p.index(max(p)), max(p)))
    assert 0 < shares[-1] < 1
    assert picks[-1][0] != picks[-1][1]  # so that the crossing is seen
    check_layer(model.network_, networks[0])
    check_layer(model.second_network_, networks[1])
    chosen = [[picks[-1][network].get(i, -1) for network in range(2)] for i in range(N)]
    assert model.selected_.tolist() == chosen
    assert model.share_.item() == pytest.approx(shares[-1])
    assert model.history_["loss"] == pytest.approx(history, abs=1e-9)
    scores = [[(a + b) / 2 for a, b in zip(*(f(row) for f in networks), strict=True)] for row in rows]
    want = [numbers(softmax(constant(each))) for each in scores]
    torch.testing.assert_close(
        torch.tensor(model.predict_proba(X)), torch.tensor(want, dtype=torch.float64), **NEAR
    )
