"""What every method must do beyond scikit-learn's contract; being listed in METHODS is enough to be here."""

from functools import partial

import numpy as np
import pytest
import torch

import oneof
from conftest import MEMBERS, every_method
from oneof.testing import contract
from oneof.testing.small_problems import make_data, started, take
from oneof.train.batch import Batch, Epoch
from oneof.train.loop import losses_of

every_objective = pytest.mark.parametrize(
    ("method", "settings"),
    [
        *((method, {}) for method in MEMBERS.values()),
        *((oneof.IDGP, {"objective": objective}) for objective in ("ml", "uniform")),
        (oneof.IDGP, {"objective": "released", "weight_fg": 0.1}),  # with its authors' 1 it fails on uniform sets
        (oneof.IDGP, {"alternate": "sequential"}),
        (oneof.IDGP, {"distractors": "rows"}),
    ],
)


@every_objective
def test_a_leading_axis_of_two_gives_the_numbers_of_two_alone(method, settings):
    contract.check_leading_axis(partial(method, **settings))


@every_objective
def test_permuting_classes_permutes_the_results(method, settings):
    contract.check_permuted_classes(partial(method, **settings))


def test_an_epoch_knows_which_others_would_have_given_its_answers():
    epoch = Epoch(3)
    assert epoch.answers_as(100)  # nothing was asked
    assert epoch.before(5)
    assert not epoch.before(2)
    assert [epoch.answers_as(number) for number in (1, 2, 4, 5)] == [False, True, True, False]
    assert epoch.number == 3
    assert not epoch.answers_as(4)  # whoever knows the number may do anything with it


def test_what_has_passed_moves_with_the_clock():
    clock = torch.tensor(3.0)
    epoch = Epoch(3, clock)
    assert [float(epoch.ramp(10, since)) for since in (0, 1, 5)] == pytest.approx([0.3, 0.2, 0.0])
    assert float(epoch.ramp(2, 0)) == 1
    clock.fill_(5)
    assert float(epoch.ramp(10, 0)) == 0.5
    assert epoch.answers_as(5)


@every_method
def test_no_method_asks_for_the_number_of_the_epoch(method):
    """Steps can be recorded once, or once in every phase."""
    data = make_data(seed=1)
    model, batch = started(method, data), take(data, torch.arange(6), 30, views=3)
    assert list(losses_of(model.step(batch)))
    assert batch.of_epoch.answers_as(31)


BY_ORDER = ("pico", "dirk", "papi", "crosel")  # queues, prototypes, mixtures of neighbouring rows


@pytest.mark.parametrize("method", [method for name, method in MEMBERS.items() if name not in BY_ORDER])
def test_tables_do_not_depend_on_the_order_within_a_batch(method):
    data, order = make_data(), torch.randperm(12, generator=torch.Generator().manual_seed(1))
    settings = {"mixup": 0.0} if hasattr(method.func, "mixup") else {}  # it mixes neighbouring rows
    first, second = (started(partial(method, **settings), data) for _ in range(2))
    for epoch in (0, 10, 11):
        loss = list(losses_of(first.step(take(data, torch.arange(12), epoch))))[-1]
        loss_moved = list(losses_of(second.step(take(data, order, epoch))))[-1]
        torch.testing.assert_close(loss[order], loss_moved)
    for name, tensor in first.learned().items():
        torch.testing.assert_close(tensor, second.learned()[name])


@every_objective
def test_one_label_and_full_sets_in_one_batch_stay_finite(method, settings):
    contract.check_extreme_sets(partial(method, **settings))


@every_objective
def test_few_and_many_classes(method, settings):
    contract.check_class_numbers(partial(method, **settings))


@every_method
def test_classes_that_lie_far_apart_are_learned(method):
    contract.check_learning(method)


@every_objective
def test_sets_of_one_are_supervised_learning(method, settings, digits):
    X, _, y = digits
    model = method(epochs=25, random_state=0, **settings).fit(X[:1200], y[:1200])
    assert model.score(X[1200:], y[1200:]) > 0.9
    assert (model.transduction_ == y[:1200]).all()


@every_objective
def test_learns_digits_from_uniform_candidates(method, settings, digits):
    X, S, y = digits
    model = method(epochs=30, random_state=0, **settings).fit(X[:1200], S[:1200])
    least = 0.88 if getattr(method, "func", method) is oneof.CroSel else 0.9  # its seeds lie from 0.898 to 0.915
    assert model.score(X[1200:], y[1200:]) > least
    assert (model.transduction_ == y[:1200]).mean() > 0.9


@every_method
def test_wrong_sets_degrade_gently(method, digits):
    """In 5 % of the rows the truth is not a candidate."""
    X, S, y = digits
    S = S[:1200].copy()
    missed = np.random.default_rng(5).choice(1200, 60, replace=False)
    S[missed, y[missed]] = False
    S[missed, (y[missed] + 1) % 10] = True  # no set is empty
    clean = method(epochs=30, random_state=0).fit(X[:1200], digits[1][:1200]).score(X[1200:], y[1200:])
    dirty = method(epochs=30, random_state=0).fit(X[:1200], S).score(X[1200:], y[1200:])
    assert dirty > clean - 0.06


@every_method
@pytest.mark.parametrize("rows", [5, 99, 100, 101, 150])
def test_batches_that_do_not_divide_the_rows(method, rows, digits):
    X, S, _ = digits
    images = (X[:rows] * 15).astype(np.uint8).reshape(-1, 8, 8)
    for network, x in (("mlp", X[:rows]), ("lenet", images)):
        views = image_views(method) if network == "lenet" else {}
        model = method(network=network, epochs=2, batch_size=100, random_state=0, **views).fit(x, S[:rows])
        assert np.isfinite(model.history_["loss"]).all()
        assert model.predict(x).shape == (rows,)


@every_method
def test_disambiguate(method, blobs):
    X, S, _ = blobs
    model = method(epochs=15, random_state=0).fit(X, S)
    result = model.disambiguate(X, S)
    assert np.array_equal(result.label, model.transduction_)
    assert np.allclose(result.probability, model.label_distributions_.max(1))
    ordered = np.sort(model.label_distributions_, axis=1)
    assert np.allclose(result.margin, ordered[:, -1] - ordered[:, -2])
    assert np.allclose(result.margin[S.sum(1) == 1], 1)
    assert S[np.arange(len(S)), model.classes_.searchsorted(result.label)].all()
    narrowed = S.copy()
    narrowed[0] = [False, False, True]
    assert model.disambiguate(X[:1], narrowed[:1]).label.tolist() == [2]


def image_views(method):
    """Views of images for a method that needs some; digits must not be mirrored."""
    return {"views": "plain+weak+weak", "flips": False} if method.func.needs_views else {}


KINDS = ["uint8", "float", "colour", "colour float"]
SLOW = ("papi", "crosel")  # several passes a step: bytes in grey and numbers in colour are enough


@pytest.mark.parametrize(
    ("method", "kind"),
    [
        pytest.param(method, kind, id=f"{kind}-{name}")
        for kind in KINDS
        for name, method in MEMBERS.items()
        if name not in SLOW or kind in (KINDS[0], KINDS[-1])
    ],
)
def test_images(method, kind, digits):
    X, S, y = digits
    images = (X * 15).reshape(-1, 8, 8)
    if "colour" in kind:
        images = np.stack([images, 255 - images, images // 2], axis=-1)
    images = images.astype(np.float64 if "float" in kind else np.uint8)
    settings = image_views(method) | ({"warm_up": 5} if "warm_up" in method.keywords else {})  # one locks IDGP in
    model = method(epochs=10, random_state=0, **settings).fit(images[:1200], S[:1200])
    assert model.score(images[1200:], y[1200:]) > 0.85
    assert model.n_features_in_ == (192 if "colour" in kind else 64)


@every_method
def test_sample_weight_zero_forgets_rows(method, digits):
    X, S, y = digits
    X, S, y = X[:600], S[:600].copy(), y[:600]
    lies = np.arange(600) % 2 == 1
    S[lies] = np.eye(10, dtype=bool)[(y[lies] + 1) % 10]
    model = method(epochs=30, random_state=0).fit(X, S, sample_weight=(~lies).astype(float))
    assert (model.predict(X) == y).mean() > 0.65  # below a half when the lies count


@every_method
def test_own_network_and_views(method, blobs):
    X, S, y = blobs

    def two_layers(shape, outputs):
        return torch.nn.Sequential(
            torch.nn.Linear(shape[0], 16), torch.nn.Tanh(), torch.nn.Dropout(0.1), torch.nn.Linear(16, outputs)
        )

    settings = {"network": two_layers, "views": "plain+jitter+jitter", "epochs": 25, "random_state": 0}
    model = method(**settings).fit(X, S)
    assert model.score(X, y) > 0.9
    assert np.array_equal(model.predict_proba(X), method(**settings).fit(X, S).predict_proba(X))


@pytest.mark.parametrize("objective", ["map", "uniform"])
def test_idgp_cuts_negative_prior_weights_and_says_so_once(objective, blobs, tmp_path, recwarn):
    X, S, y = blobs
    with pytest.warns(UserWarning, match="b is 0.2: below 1 the prior weights") as caught:
        model = oneof.IDGP(objective=objective, b=0.2, a=0.1, epochs=25, random_state=0).fit(X, S)
    assert len(caught) == 1
    assert np.isfinite(model.history_["loss"]).all()
    assert model.score(X, y) > 0.9
    model.save(tmp_path / "m")
    recwarn.clear()
    oneof.load_model(tmp_path / "m").predict(X)
    assert not recwarn.list


def test_idgp_snapshots_are_written_once_and_carry_no_gradient():
    """Rows that an epoch leaves out are taken at their next visit; what is taken stays."""
    data = make_data()
    model = started(partial(oneof.IDGP, warm_up=0, m=0.5, d=0.5), data)
    for index in (torch.arange(6), torch.arange(6), torch.arange(12)):  # rows 6 to 11 come late
        before = model.u_.clone(), model.v_.clone(), model.u_taken_.clone()
        for loss in losses_of(model.step(take(data, index, 0))):
            assert not model.u_.requires_grad
            assert not model.w_.requires_grad
            torch.autograd.grad(loss.sum(), model.network_.parameters())
        with torch.no_grad():
            model.network_.head.bias += torch.randn(5, dtype=torch.float64)  # another step, other outputs
        taken = before[2][:, 0]
        assert torch.equal(model.u_[taken], before[0][taken])
        assert torch.equal(model.v_[taken], before[1][taken])
    assert model.u_taken_.all()
    assert model.v_taken_.all()


@pytest.mark.parametrize("alternate", ["simultaneous", "sequential"])
@pytest.mark.parametrize("objective", ["map", "ml", "uniform"])
@pytest.mark.parametrize("epoch", [0, 1])
def test_idgp_learns_from_each_view_as_if_it_were_alone(epoch, objective, alternate):
    """In the warm-up (epoch 0) and after it: weights follow each view's own outputs, tables the first view's."""
    data, index = make_data(), torch.arange(12)
    settings = {"warm_up": 1, "m": 0.3, "d": 0.5, "likelihood_weight": 0.4, "mixup": 0.0}
    model = started(partial(oneof.IDGP, objective=objective, alternate=alternate, **settings), data)

    def step(views, epoch):
        """Return a step's losses with the gradients of their means, and the tables that it leaves."""
        results = []
        for losses in losses_of(model.step(Batch(views, data.candidates[index], index, Epoch(epoch)))):
            parameters = [parameter for module in model.modules() for parameter in module.parameters()]
            gradients = torch.autograd.grad(losses.mean(), parameters, allow_unused=True, materialize_grads=True)
            results.append(torch.cat([losses.detach(), *(each.flatten() for each in gradients)]))
        return torch.stack(results), {name: table.clone() for name, table in tables_of(model).items()}

    step([data.x[index] - 1], 1)  # snapshots that are no view's own outputs
    before = {name: table.clone() for name, table in tables_of(model).items()}

    def step_from_there(views):
        for name, table in before.items():
            getattr(model, name).copy_(table)
        return step(views, epoch)

    views = [data.x[index] + 0.1 * view for view in range(3)]
    alone = [step_from_there([view]) for view in views]
    together, tables = step_from_there(views)
    torch.testing.assert_close(together, torch.stack([results for results, _ in alone]).mean(0))
    torch.testing.assert_close(tables, alone[0][1])


def tables_of(model):
    return {name: value for name, value in vars(model).items() if isinstance(value, torch.Tensor)}


@pytest.mark.parametrize("method", [oneof.IDGP, oneof.VALEN, oneof.Membership])
def test_a_training_that_ends_in_its_warm_up_says_so(method, blobs, recwarn):
    X, S, _ = blobs
    with pytest.warns(UserWarning, match=f"warm_up is 3 and epochs is 3, so that {method.__name__} never gets"):
        method(epochs=3, warm_up=3).fit(X, S)
    recwarn.clear()
    method(epochs=3, warm_up=2).fit(X, S)
    method(epochs=1, warm_up=0).fit(X, S)
    assert not recwarn.list
