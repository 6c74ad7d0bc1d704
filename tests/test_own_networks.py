"""Networks of your own: a module is copied, never trained itself; what cannot serve is refused before training."""

import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch import nn

import oneof
from conftest import MEMBERS, fit_with
from oneof.nn import networks
from oneof.nn.own import copy_module, describe_module, redrawn_copy
from oneof.train import Paused
from oneof.train.parallel.grouping import can_stack

FEATURES, CLASSES = 4, 3  # of the blobs
VIEWS = {"plcr": {"views": "plain+jitter"}, "pico": {"views": "plain+jitter"}}
NOT_IDGP = [name for name in MEMBERS if name != "idgp"]


def module(outputs=CLASSES):
    return nn.Sequential(nn.Linear(FEATURES, 16), nn.BatchNorm1d(16), nn.Tanh(), nn.Linear(16, outputs))


def state(network):
    return {name: tensor.clone() for name, tensor in network.state_dict().items()}


def assert_same(first, second):
    assert first.keys() == second.keys()
    for name, tensor in first.items():
        assert torch.equal(tensor, second[name]), name


@pytest.mark.parametrize("name", NOT_IDGP)
def test_a_copy_of_the_module_is_trained_and_the_module_stays(name, blobs, tmp_path):
    X, S, y = blobs
    given = module()
    before = state(given)
    settings = {"network": given, "epochs": 12, "random_state": 0, "device": "cpu", **VIEWS.get(name, {})}
    model = MEMBERS[name](**settings).fit(X, S)
    assert model.network is given
    assert_same(state(given), before)
    assert all(parameter.grad is None for parameter in given.parameters())
    assert model.score(X, y) > 0.8
    body = model.network_.body
    assert type(body) is nn.Sequential
    assert not torch.equal(body[0].weight, given[0].weight)
    again = MEMBERS[name](**settings).fit(X, S)
    assert_same(model.learned(), again.learned())
    model.save(tmp_path / "m")
    for passed in (given, module(), lambda shape, outputs: module(outputs)):
        loaded = oneof.load_model(tmp_path / "m", network=passed, device="cpu")
        assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))
        assert loaded.network is passed
    copied = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copied.predict_proba(X), model.predict_proba(X))
    assert_same(state(copied.network), before)


def test_the_classifier_starts_from_the_weights_of_the_module(blobs):
    X, S, _ = blobs
    given = module()
    model = oneof.CC(network=given, epochs=1, lr=1e-30, momentum=0.0, weight_decay=0.0, device="cpu").fit(X, S)
    assert torch.equal(model.network_.body[3].weight, given[3].weight)
    model.fit(X, S)  # a second fit starts from them again
    assert torch.equal(model.network_.body[3].weight, given[3].weight)


def test_a_clone_has_a_module_of_its_own(blobs):
    X, S, _ = blobs
    model = oneof.CC(network=module(), epochs=2, random_state=0, device="cpu").fit(X, S)
    other = clone(model)
    assert other.network is not model.network
    assert_same(state(other.network), state(model.network))
    assert np.array_equal(other.fit(X, S).predict_proba(X), model.predict_proba(X))


def test_a_second_network_has_weights_of_its_own(blobs):
    X, S, _ = blobs
    given = module()
    settings = {"warm_up": 0, "epochs": 1, "lr": 1e-30, "weight_decay": 0.0, "random_state": 0, "device": "cpu"}
    model = oneof.Membership(network=given, **settings).fit(X, S)
    assert torch.equal(model.network_.body[0].weight, given[0].weight)
    assert not torch.equal(model.membership_network_.body[0].weight, given[0].weight)


def test_a_redrawn_copy_keeps_what_is_frozen_and_asks_parents_last():
    class Scaled(nn.Sequential):
        def reset_parameters(self):
            nn.init.constant_(self[1].weight, 7.0)

    given = Scaled(nn.Linear(2, 2), nn.Linear(2, 2))
    given[0].bias.requires_grad_(False)
    before = state(given)
    copied = redrawn_copy(given)
    assert_same(state(given), before)
    assert torch.equal(copied[0].bias, given[0].bias)
    assert not torch.equal(copied[0].weight, given[0].weight)
    assert (copied[1].weight == 7).all()


class Raw(nn.Module):
    """A module with weights that nobody can draw anew."""

    def __init__(self, form=None):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(FEATURES, CLASSES))
        self.form = form

    def forward(self, x):
        return self.form(x @ self.weight) if self.form else x @ self.weight


def frozen():
    return module().requires_grad_(False)


@pytest.mark.parametrize(
    ("method", "network", "message"),
    [
        (
            "idgp",
            module(),
            r"IDGP needs a network with 6 outputs beside the one with 3.*network=lambda shape, out",
        ),
        ("membership", Raw(), r"Raw has weights and no reset_parameters\(\).*pass a factory instead: network=lam"),
        ("cc", module(5), r"network gives float32 of shape \(2, 5\) for two rows of shape \(4,\).* \(2, 3\)"),
        ("idgp", module(5), r"network gives float32 of shape \(2, 5\) for two rows of shape \(4,\).* \(2, 3\)"),
        (
            "cc",
            nn.Linear(7, 3),
            r"network cannot take rows of shape \(4,\): .* raised RuntimeError: mat1 and mat2",
        ),
        ("cc", Raw(lambda u: (u, u)), r"network gives a tuple for two rows"),
        ("cc", Raw(lambda u: u.argmax(1)), r"network gives int64 of shape \(2,\) for two rows"),
        ("cc", frozen(), "network has no parameters that can be trained"),
        ("cc", lambda shape, outputs: nn.Identity(), r"network gives float32 of shape \(2, 4\) for two rows"),
        (
            "cc",
            lambda shape, outputs: 5,
            "the factory of the network returned a int, but must return a torch.nn.M",
        ),
        ("cc", lambda shape, outputs: module(outputs + 1), r"network gives float32 of shape \(2, 4\)"),
    ],
)
def test_what_cannot_serve_is_refused_in_one_sentence(method, network, message, blobs):
    X, S, _ = blobs
    with pytest.raises(ValueError, match=message) as caught:
        MEMBERS[method](network=network, epochs=1, device="cpu").fit(X, S)
    assert len(str(caught.value)) < 400


def test_a_factory_that_returns_one_module_twice_is_refused(blobs):
    X, S, _ = blobs
    given = module()
    with pytest.raises(ValueError, match="the same module twice, but Membership needs networks that share no"):
        oneof.Membership(network=lambda shape, outputs: given, epochs=1, warm_up=0).fit(X, S)


def test_idgp_takes_a_module_where_its_networks_are_alike(blobs):
    X, S, _ = blobs
    model = oneof.IDGP(objective="released", warm_up=1, epochs=3, network=module(), device="cpu").fit(X, S)
    assert type(model.distractor_network_.body) is nn.Sequential


def test_a_checkpoint_knows_the_module(blobs, tmp_path):
    X, S, _ = blobs
    given = module()
    settings = {"epochs": 3, "random_state": 0, "checkpoint": tmp_path / "c", "device": "cpu"}
    with pytest.raises(Paused):
        fit_with(oneof.CC(network=given, **settings), X, S, pause=lambda: True)
    with pytest.raises(
        ValueError, match=r"network was 'torch\.nn.*Sequential \w{16}' and is 'torch\.nn.*Sequential"
    ):
        oneof.CC(network=module(), **settings).fit(X, S)  # other weights
    resumed = oneof.CC(network=given, **settings).fit(X, S)
    whole = oneof.CC(network=given, **settings | {"checkpoint": None}).fit(X, S)
    assert_same(resumed.learned(), whole.learned())


def test_descriptions_tell_modules_apart():
    given = module()
    assert describe_module(given) == describe_module(copy_module(given))
    assert describe_module(given) != describe_module(redrawn_copy(given))
    assert describe_module(nn.Sequential(given, nn.Dropout(0.1))) != describe_module(
        nn.Sequential(given, nn.Dropout())
    )
    before = describe_module(given)
    given[0].weight.requires_grad_(False)
    assert describe_module(given) != before


def test_modules_are_neither_small_nor_stacked():
    linear = nn.Linear(FEATURES, CLASSES)
    assert not networks.is_small(linear, (FEATURES,))
    assert not can_stack(linear, (FEATURES,))


def test_modules_are_fitted_together_each_as_alone(blobs):
    X, S, _ = blobs
    given = nn.Linear(FEATURES, CLASSES)
    models = [oneof.CC(network=given, epochs=2, random_state=i, device="cpu") for i in range(2)]
    alone = [clone(model).fit(X, S) for model in models]
    for model, other in zip(oneof.fit_together(models, [{"X": X, "y": S}] * 2), alone, strict=True):
        assert np.array_equal(model.predict_proba(X), other.predict_proba(X))


def test_a_network_that_a_file_does_not_need_is_said(blobs, tmp_path):
    X, S, _ = blobs
    oneof.CC(epochs=1).fit(X, S).save(tmp_path / "m")
    with pytest.warns(UserWarning, match=r"the file names the network 'auto', so that network= has no effect"):
        oneof.load_model(tmp_path / "m", network=module())


def test_a_tensor_among_the_parameters_is_no_part_of_what_is_learned(blobs):
    X, S, _ = blobs

    @oneof.estimator.hyperparameters
    class Weighted(oneof.CC):
        per_class: object = None

        def step(self, batch):
            return super().step(batch) * self.per_class.sum()

    weight = torch.ones(3)
    models = [Weighted(per_class=weight, epochs=2, random_state=i, device="cpu") for i in range(2)]
    oneof.fit_together(models, [{"X": X, "y": S}] * 2)
    for model in models:
        assert model.per_class is weight
        assert "per_class" not in model.learned()
