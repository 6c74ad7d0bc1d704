"""Learning rates from step to step and averaged weights, beside a training written out with loops."""

import numpy as np
import pytest
import torch

import oneof
from conftest import every_method
from oneof.train import train
from oneof.train.course import SCHEDULES
from oneof.train.runtime import seed_for

SETTINGS = {
    "network": "linear", "precision": "fp64", "epochs": 5, "batch_size": 20, "lr": 0.3, "momentum": 0.9,
    "weight_decay": 0.01, "random_state": 0, "device": "cpu",
}  # fmt: skip


def rows(count=70):
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=count)
    x = rng.normal(size=(count, 6)) + np.eye(4, 6)[y]
    return x, np.eye(4, dtype=bool)[y] | (rng.random((count, 4)) < 0.3)


def written_out(average, rate):
    """Train CC's linear network with autograd alone; return its weights and their average after every epoch."""
    trial = oneof.CC(**SETTINGS).prepare(*rows())
    x = trial.data.scaler.load(trial.data.x, torch.float64)
    w, b = (p.detach().clone().requires_grad_() for p in trial.method.network_.parameters())
    order = torch.Generator().manual_seed(seed_for(trial.setup.seed, "order"))
    moving, means, found, step = [torch.zeros_like(w), torch.zeros_like(b)], None, [], 0
    for _ in range(5):
        for index in torch.randperm(70, generator=order)[:60].view(3, 20):
            p = (x[index] @ w.t() + b).softmax(-1)
            loss = -(p * trial.data.sets[index]).sum(-1).log().mean()
            for i, (parameter, gradient) in enumerate(zip((w, b), torch.autograd.grad(loss, (w, b)), strict=True)):
                moving[i] = 0.9 * moving[i] + gradient + 0.01 * parameter.detach()
                parameter.data -= 0.3 * rate(step) * moving[i]
            step += 1
            share = max(1 / step, 1 / max(average * 3, 1))
            now = [w.detach().clone(), b.detach().clone()]
            means = now if means is None else [m + share * (n - m) for m, n in zip(means, now, strict=True)]
        found.append((now, means))
    return found


def triangle(step):
    """Over 15 steps: up over the first three, down over the others, each at its middle."""
    return (step + 0.5) / 3 if step < 3 else (15 - step - 0.5) / 12


@pytest.mark.parametrize(
    ("settings", "average", "rate"),
    [
        ({"schedule": "triangular"}, 0, triangle),
        ({"schedule": "triangular", "average": 2.0}, 2.0, triangle),
        ({"schedule": "constant", "average": 0.1}, 0.1, lambda step: 1.0),
        ({"schedule": "cosine", "average": 1.0}, 1.0, lambda step: 0.5 + 0.5 * np.cos(np.pi * (step // 3) / 5)),
    ],
)
def test_a_training_is_the_one_written_out(settings, average, rate):
    model = oneof.CC(**SETTINGS | settings).fit(*rows())
    weights, means = written_out(average, rate)[-1]
    learned = dict(zip(("weight", "bias"), model.network_.parameters(), strict=True))
    for found, expected in zip(learned.values(), means if average else weights, strict=True):
        np.testing.assert_allclose(found.detach(), expected, rtol=1e-10)
    assert average in (0, 0.1) or not torch.allclose(weights[0], means[0], rtol=1e-3)


def test_the_average_is_what_is_judged_and_whose_best_epoch_is_kept():
    x, s = rows()
    settings = {"schedule": "triangular", "average": 2.0}
    probabilities = []

    def seen(p):
        probabilities.append(p[-70:])
        return {}

    model = oneof.CC(**SETTINGS | settings)
    trial = train(model.prepare(x, s, X_val=x, y_val=s, X_watched=x, metrics=seen))
    model.finish(trial)
    of_average = [means for _, means in written_out(2.0, triangle)]
    for found, (w, b) in zip(probabilities, of_average, strict=True):
        expected = (trial.data.scaler.load(trial.data.x, torch.float64) @ w.t() + b).softmax(-1)
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    best = of_average[int(np.argmax(model.history_["validation_score"]))]
    np.testing.assert_allclose(model.network_.head.weight.detach(), best[0], rtol=1e-10)


def test_running_statistics_are_averaged_and_whole_numbers_kept():
    x = np.random.default_rng(0).integers(256, size=(60, 8, 8), dtype=np.uint8)
    settings = {"network": "resnet32", "epochs": 2, "batch_size": 20, "random_state": 0, "device": "cpu"}
    plain, averaged = (
        oneof.CC(**settings, average=average).fit(x, np.arange(60) % 2).network_.state_dict()
        for average in (0, 1.0)
    )
    counted = [name for name, value in plain.items() if not value.is_floating_point()]
    assert counted
    assert all(int(averaged[name]) == int(plain[name]) == 6 for name in counted)
    means = [name for name in plain if name.endswith("running_mean")]
    assert all(not torch.equal(plain[name], averaged[name]) for name in means)


@every_method
def test_fast_sets_what_is_not_named_and_shows_it(method):
    settings = {
        name: value for name, value in method.keywords.items() if name not in ("epochs", "warm_up", "ramp")
    }
    model = method.func.fast(**settings)
    assert (model.epochs, model.schedule, model.average) == (20, "triangular", 1.0)
    phases = [getattr(model, name) for name in ("warm_up", "ramp") if hasattr(model, name)]
    assert all(phase <= 5 for phase in phases)
    assert "schedule='triangular'" in repr(model)
    assert "average=1.0" in repr(model)
    named = method.func.fast(**settings, epochs=7, schedule="cosine")
    assert (named.epochs, named.schedule) == (7, "cosine")
    assert getattr(named, "warm_up", 1) == 1


def test_fast_keeps_the_warm_up_that_is_named_and_a_shorter_default():
    assert oneof.IDGP.fast(warm_up=9).warm_up == 9
    assert oneof.IDGP.fast(epochs=100).warm_up == oneof.IDGP().warm_up


def test_a_triangle_rises_for_a_fifth_and_falls_to_zero():
    schedule = SCHEDULES["triangular"]
    assert [schedule(t) for t in (0, 0.1, 0.2, 0.6, 1)] == pytest.approx([0, 0.5, 1, 0.5, 0])
