"""Rows of a step that pass a network in parts: less memory, and the weights of the whole step."""

import copy

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn

import oneof
from conftest import MEMBERS, every_method, fit_with
from oneof.nn import networks
from oneof.train import Paused

rng = np.random.default_rng(0)
N, K = 60, 5
T = np.arange(N) % K
X = np.eye(K, 6)[T] + rng.normal(0, 0.5, (N, 6))
SETS = np.eye(K, dtype=bool)[T] | (rng.random((N, K)) < 0.25)
SETTINGS = {
    "network": "mlp",
    "epochs": 4,
    "batch_size": 16,
    "precision": "fp64",
    "device": "cpu",
    "random_state": 0,
}
SIZE = 5  # of a part, which divides no step


def assert_same(one, other):
    """Both models hold the same numbers but for rounding."""
    assert one.learned().keys() == other.learned().keys()
    for name, tensor in other.learned().items():
        if name != "judge_.bias":  # which cancels, so that rounding alone moves it
            assert_allclose(one.learned()[name], tensor, rtol=0, atol=1e-10, err_msg=name)
    assert_allclose(one.history_["loss"], other.history_["loss"], rtol=1e-10)
    assert_allclose(one.predict_proba(X), other.predict_proba(X), atol=1e-10)


@every_method
def test_every_method_learns_the_weights_of_whole_steps(method):
    whole = method(**SETTINGS).fit(X, SETS)
    model = method(**SETTINGS, rows_at_once=SIZE)
    trial = model.prepare(X, SETS)
    network, widths = model.network_, []
    network.body.register_forward_hook(lambda layer, given, out: widths.append((layer.training, len(out))))
    model.finish(oneof.train.train(trial))
    assert_same(model, whole)
    assert max(rows for training, rows in widths if training) <= SIZE  # and not 16, the rows of a step


@pytest.mark.parametrize(
    "settings",
    [
        {"views": "plain+jitter+jitter"},
        {"mixup": 1.0},
        {"outside": 0.2},
        {"optimizer": "adamw", "schedule": "triangular", "average": 1.0, "validation_fraction": 0.3},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_with_other_settings(settings):
    assert_same(
        *(oneof.PRODEN(**SETTINGS | settings, rows_at_once=size).fit(X, SETS) for size in (SIZE, None)),
    )


def test_a_step_that_updates_twice_and_peeks():
    settings = SETTINGS | {"warm_up": 1, "alternate": "sequential"}
    assert_same(*(oneof.IDGP(**settings, rows_at_once=size).fit(X, SETS) for size in (SIZE, None)))


def test_trials_of_a_stack():
    models = [oneof.IDGP(**SETTINGS | {"random_state": i, "warm_up": 1}, rows_at_once=SIZE) for i in range(2)]
    whole = [oneof.IDGP(**SETTINGS | {"random_state": i, "warm_up": 1}) for i in range(2)]
    given = [{"X": X, "y": SETS}] * 2
    for one, other in zip(oneof.fit_together(models, given), oneof.fit_together(whole, given), strict=True):
        assert_same(one, other)


def test_a_killed_fit_goes_on_to_the_same_bits(tmp_path):
    settings = SETTINGS | {"rows_at_once": SIZE, "network": "mlp5"}
    reference = oneof.PRODEN(**settings).fit(X, SETS)
    model = oneof.PRODEN(**settings, checkpoint=tmp_path / "fit")
    with pytest.raises(Paused):
        fit_with(model, X, SETS, pause=lambda: True)
    model.fit(X, SETS)
    assert all(torch.equal(tensor, reference.learned()[name]) for name, tensor in model.learned().items())


def noisy(shape, outputs):
    """A network that normalises and draws."""
    return nn.Sequential(nn.Linear(*shape, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, outputs))


@pytest.mark.parametrize("call", ["forward", "features"])
def test_parts_are_passes_of_their_own_of_which_only_the_ends_are_kept(call):
    """Written out: a pass and a backward pass for each part; moments, draws and averages are those of a part."""
    torch.manual_seed(0)
    network = networks.build(noisy, (6,), K).double()
    other, x = copy.deepcopy(network), torch.from_numpy(X[:16])
    network.rows_at_once = SIZE
    torch.manual_seed(1)
    out = getattr(network, call)(x)
    state = torch.get_rng_state()
    out.square().sum().backward()
    assert torch.equal(torch.get_rng_state(), state)  # drawing again leaves what comes after as it was
    torch.manual_seed(1)
    parts = [getattr(other, call)(part) for part in x.tensor_split(4)]
    assert [len(part) for part in parts] == [4, 4, 4, 4]  # even ones: none of a single row
    for part in parts:
        part.square().sum().backward()
    assert_allclose(out.detach(), torch.cat(parts).detach(), atol=1e-12)
    for one, same in zip(network.parameters(), other.parameters(), strict=True):
        assert_allclose(one.grad, same.grad, atol=1e-10)
    for name, buffer in other.named_buffers():
        assert_allclose(dict(network.named_buffers())[name], buffer, atol=1e-12, err_msg=name)


def saved_bytes(size):
    """How much a pass of training keeps for the gradients."""
    network = networks.build("mlp", (6,), K)
    network.rows_at_once, saved = size, []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t.nbytes) or t, lambda t: t):
        network(torch.randn(4096, 6))
    return sum(saved)


def test_what_is_kept_does_not_grow_with_the_width_of_the_network():
    assert saved_bytes(64) < saved_bytes(None) / 50
    assert saved_bytes(4096) == saved_bytes(None)


def test_images_in_bfloat16():
    images = np.random.default_rng(1).integers(0, 256, (24, 8, 8, 3), dtype=np.uint8)
    settings = SETTINGS | {"network": "lenet", "batch_size": 12, "epochs": 2, "precision": "bf16"}
    model = oneof.CC(**settings, rows_at_once=4, views="weak+weak").fit(images, SETS[:24])
    assert int(model.network_.body[1].num_batches_tracked) == 2 * 2 * 6  # epochs, steps, parts of 24 rows
    assert np.isfinite(model.predict_proba(images)).all()


def test_evaluation_is_not_cut():
    network = networks.build("linear", (6,), K)
    network.rows_at_once, calls = 2, []
    network.head.register_forward_hook(lambda *given: calls.append(0))
    network.eval()(torch.randn(16, 6))
    assert len(calls) == 1


def test_too_few_rows_to_normalise_are_refused():
    for size in (1, 2):
        with pytest.raises(ValueError, match=rf"rows_at_once is {size}, but the layer BatchNorm1d .* 3 or more"):
            oneof.CC(**SETTINGS | {"network": "mlp5", "rows_at_once": size}).fit(X, SETS)
    for size in (3, 4, 7):
        oneof.CC(**SETTINGS | {"network": "mlp5", "rows_at_once": size, "epochs": 1}).fit(X, SETS)


def test_methods_do_not_know_of_it():
    assert {"rows_at_once"} & {name for each in MEMBERS.values() for name in vars(each.func)} == set()
