"""`oneof.testing.check_method`: sound methods pass, and each way to break one is found by the check for it."""

import pytest
import torch

from oneof import CC
from oneof import functional as F
from oneof.estimator import PartialLabelClassifier, hyperparameters, number
from oneof.testing import check_method, contract


@hyperparameters
class Sound(PartialLabelClassifier):
    """All candidates count alike at first, then by what the network says."""

    mix: float = number(0.5, "in [0, 1]")

    def start(self, data):
        super().start(data)
        self.w_ = data.uniform()

    def step(self, batch):
        (u,) = batch.forward(self.network_)[:1]
        target = batch.take(self.w_).to(u)
        batch.put(self.w_, torch.lerp(target, F.posterior(u, batch.candidates), self.mix))
        return F.soft_cross_entropy(u, target)


class LastTrialOnly(Sound):
    def step(self, batch):
        losses = super().step(batch)
        return losses - losses.mean() + losses.flatten()[-1]


class FirstClassIsDear(Sound):
    def step(self, batch):
        return super().step(batch) + self.network_(batch.x)[..., 0] ** 2


class LogOfNothing(Sound):
    def step(self, batch):
        p = torch.softmax(self.network_(batch.x), -1)
        return -(p * batch.candidates).sum(-1).log() - (1 - p).mul(~batch.candidates).sum(-1).log()


class LabelsOffTheSet(Sound):
    def label_posterior(self, x, candidates):
        return torch.softmax(self.class_scores(x), -1)


class AgainstTheSets(Sound):
    def step(self, batch):
        return -super().step(batch).clamp(max=3)


class Forgetful(Sound):
    """What it counts is no tensor, so that no checkpoint keeps it."""

    def start(self, data):
        super().start(data)
        self.steps = 0

    def step(self, batch):
        self.steps += 1
        return super().step(batch) * (1 + 0.1 * self.steps)


class Unsaved(Sound):
    """Predicts by something that is no tensor, so that no file keeps it."""

    def start(self, data):
        super().start(data)
        self.factor = 1.0

    def step(self, batch):
        self.factor += 0.1
        return super().step(batch)

    def class_scores(self, x):
        return self.factor * super().class_scores(x)


class BackToFront(Sound):
    def predict(self, X):
        return super().predict(X)[::-1]


BROKEN = [
    (LastTrialOnly, contract.check_leading_axis),
    (FirstClassIsDear, contract.check_permuted_classes),
    (LogOfNothing, contract.check_extreme_sets),
    (LabelsOffTheSet, contract.check_class_numbers),
    (AgainstTheSets, contract.check_learning),
    (Forgetful, contract.check_resume),
    (Unsaved, contract.check_save),
]


@pytest.fixture
def no_checks_of_others(monkeypatch):
    """scikit-learn's checks take seconds, and have tests of their own for every method."""
    monkeypatch.setattr(contract, "check_estimator", lambda *given, **named: None)


def test_a_sound_method_passes(no_checks_of_others):
    check_method(Sound, {"mix": 0.9})


def test_checks_of_scikit_learn_are_made():
    with pytest.raises(AssertionError) as caught:
        check_method(BackToFront)
    assert any(entry.path.name == "estimator_checks.py" for entry in caught.traceback)


@pytest.mark.parametrize(("method", "check"), BROKEN, ids=lambda each: each.__name__)
@pytest.mark.filterwarnings("ignore")
def test_each_way_to_break_a_method_is_found(method, check, no_checks_of_others):
    others = {each.__name__: "not asked here" for each in contract._CHECKS if each is not check}
    with pytest.raises(AssertionError) as caught:
        check_method(method, expected_failed_checks=others)
    assert caught.value.__notes__[-1] == f"This is {check.__name__} of oneof.testing.check_method."
    check_method(method, expected_failed_checks=others | {check.__name__: "known"})


def test_every_check_has_a_method_that_breaks_it():
    assert {check for _, check in BROKEN} == set(contract._CHECKS)


@pytest.mark.parametrize("given", [CC(), "cc", int, None])
def test_what_is_no_method_is_refused(given):
    with pytest.raises(TypeError, match="must be a class made from"):
        check_method(given)
