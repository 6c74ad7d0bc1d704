"""What every method must do beyond scikit-learn's contract; being listed in METHODS is enough to be here."""

import numpy as np
import pytest
import torch

import oneof
from conftest import MEMBERS, every_method, make_data
from oneof.train.batch import Batch, Data, Epoch
from oneof.train.loop import losses_of
from oneof.train.parallel.stacked_layers import StackedBatch
from oneof.train.runtime import seeded

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


def started(method, data, seed=0, **settings):
    model = method(network="linear", precision="fp64", device="cpu", **settings)
    with seeded(seed, torch.device("cpu")):
        model.start(data)
    return model


def take(data, index, epoch, views=1):
    """Make a batch of the rows ``index`` (B,), or (2, B) of two trials side by side."""
    if index.dim() == 1:
        return Batch(shifted(data.x[index], views), data.candidates[index], index, Epoch(epoch))
    x, S = (torch.stack([table[t, own] for t, own in enumerate(index)]) for table in (data.x, data.candidates))
    rows = index + torch.tensor([[0], [len(data)]])
    return StackedBatch(
        shifted(x, views), S, index, Epoch(epoch), rows, [1, 1], lambda draw, c: [draw(own) for own in c]
    )


def shifted(x, views):
    return [x + 0.1 * view for view in range(views)]


@pytest.fixture
def no_chance(monkeypatch):
    """Let draws be their own mean, so that runs with other shapes can be compared."""
    monkeypatch.setattr(Batch, "dirichlet", lambda self, c: c / c.sum(-1, keepdim=True))
    monkeypatch.setattr(Batch, "uniform", lambda self, rows: torch.full(rows.shape, 0.5))


@every_objective
@pytest.mark.parametrize("epoch", [0, 10, 30])
@pytest.mark.parametrize("views", [1, 3])
def test_a_leading_axis_of_two_gives_the_numbers_of_two_alone(method, settings, epoch, views, no_chance):
    """Two trials on a leading axis: the same losses and tables as each trial alone."""
    trials = [make_data(seed=seed) for seed in (1, 2)]
    stacked = (torch.stack([getattr(t, name) for t in trials]) for name in ("x", "candidates", "weight"))
    both = Data(*stacked, trials[0].scaler)
    indices = torch.tensor([[3, 0, 7, 5], [11, 2, 1, 4]])
    together = started(method, both, **settings)
    alone = [started(method, trial, **settings) for trial in trials]
    tables = [name for name, tensor in vars(together).items() if isinstance(tensor, torch.Tensor) and tensor.dim()]
    for t, model in enumerate(alone):  # the first contents of a queue are drawn for all trials at once
        for name in tables:
            getattr(model, name).copy_(getattr(together, name)[t])
    for visit in range(2):  # the second visit meets tables that the first one wrote
        together.start_epoch(epoch + visit, both)
        losses = list(losses_of(together.step(take(both, indices, epoch + visit, views))))
        ones = []
        for model, trial, index in zip(alone, trials, indices, strict=True):
            model.start_epoch(epoch + visit, trial)
            ones.append(list(losses_of(model.step(take(trial, index, epoch + visit, views)))))
        for i, loss in enumerate(losses):
            torch.testing.assert_close(loss, torch.stack([one[i] for one in ones]))
    for name in tables:
        torch.testing.assert_close(getattr(together, name), torch.stack([getattr(model, name) for model in alone]))


@every_objective
def test_permuting_classes_permutes_the_results(method, settings, no_chance):
    data, order = make_data(), torch.tensor([3, 1, 4, 0, 2])
    moved = Data(data.x, data.candidates[:, order], data.weight, data.scaler)
    model, other = started(method, data, **settings), started(method, moved, **settings)
    if hasattr(model, "prototypes_"):  # while they are all zero, the first candidate is the nearest
        model.prototypes_.copy_(torch.randn(model.prototypes_.shape, generator=torch.Generator().manual_seed(0)))
        other.prototypes_.copy_(model.prototypes_[order])
    for name, source in vars(model).items():
        if isinstance(source, torch.nn.Module):
            permute_classes(source, getattr(other, name), order)
    index = torch.arange(12)
    for epoch in (0, 10, 30):
        model.start_epoch(epoch, data), other.start_epoch(epoch, moved)
        losses = zip(
            losses_of(model.step(take(data, index, epoch, 2))),
            losses_of(other.step(take(moved, index, epoch, 2))),
            strict=True,
        )
        for loss, loss_moved in losses:
            torch.testing.assert_close(loss, loss_moved)
    for table in {"w_", "d_", "membership_", "moments_"} & vars(model).keys():
        torch.testing.assert_close(getattr(model, table)[:, order], getattr(other, table))


def permute_classes(source, target, order):
    """Copy a network so that its classes stand in another order: outputs of a head, inputs of a decoder."""
    target.load_state_dict(source.state_dict())
    with torch.no_grad():
        if hasattr(source, "head"):
            blocks = torch.arange(source.head.out_features).view(-1, len(order))[:, order].flatten()
            target.head.weight.copy_(source.head.weight[blocks])
            target.head.bias.copy_(source.head.bias[blocks])
        elif isinstance(source, torch.nn.Sequential) and source[0].in_features == len(order):
            target[0].weight.copy_(source[0].weight[:, order])


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


@pytest.mark.parametrize("method", [method for name, method in MEMBERS.items() if name != "pico"])
def test_tables_do_not_depend_on_the_order_within_a_batch(method, no_chance):
    data, order = make_data(), torch.randperm(12, generator=torch.Generator().manual_seed(1))
    settings = {"mixup": 0.0} if method.func is oneof.Competition else {}  # it mixes neighbouring rows
    first, second = started(method, data, **settings), started(method, data, **settings)
    for epoch in (0, 10, 11):
        loss = list(losses_of(first.step(take(data, torch.arange(12), epoch))))[-1]
        loss_moved = list(losses_of(second.step(take(data, order, epoch))))[-1]
        torch.testing.assert_close(loss[order], loss_moved)
    for name, tensor in first.learned().items():
        torch.testing.assert_close(tensor, second.learned()[name])


@every_objective
@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_one_label_and_full_sets_in_one_batch_stay_finite(method, settings, scale):
    data = make_data(dtype=torch.float32)
    candidates = data.candidates.clone()
    candidates[0], candidates[1], candidates[1, 2] = True, False, True
    data = Data(scale * data.x, candidates, data.weight, data.scaler)
    model = method(network="linear", device="cpu", **settings)
    with seeded(0, torch.device("cpu")):
        model.start(data)
    for epoch in (0, 10, 30):
        for loss in losses_of(model.step(take(data, torch.arange(12), epoch))):
            assert torch.isfinite(loss).all()
            gradients = torch.autograd.grad(loss.sum(), model.network_.parameters(), allow_unused=True)
            assert all(g is None or torch.isfinite(g).all() for g in gradients)
    for tensor in model.learned().values():
        assert torch.isfinite(tensor.float()).all()


@every_objective
@pytest.mark.parametrize("classes", [2, 200])
def test_few_and_many_classes(method, settings, classes):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(260, 6)), rng.integers(classes, size=260)
    S = rng.random((260, classes)) < 3 / classes
    S[np.arange(260), y] = True
    S[0], S[1] = True, False
    S[1, y[1]] = True
    model = method(epochs=25, random_state=0, **settings).fit(X, S)
    probabilities = model.predict_proba(X)
    assert probabilities.shape == (260, classes)
    assert np.allclose(probabilities.sum(1), 1, atol=1e-5)
    assert (model.label_distributions_[~S] == 0).all()
    assert np.allclose(model.label_distributions_.sum(1), 1, atol=1e-5)


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
    assert model.score(X[1200:], y[1200:]) > 0.9
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


@every_method
@pytest.mark.parametrize("kind", ["uint8", "float", "colour", "colour float"])
def test_images(method, kind, digits):
    X, S, y = digits
    images = (X * 15).reshape(-1, 8, 8)
    if "colour" in kind:
        images = np.stack([images, 255 - images, images // 2], axis=-1)
    images = images.astype(np.float64 if "float" in kind else np.uint8)
    model = method(epochs=10, random_state=0, **image_views(method)).fit(images[:1200], S[:1200])
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
    model = started(oneof.IDGP, data, warm_up=0, m=0.5, d=0.5)
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
    settings = {"warm_up": 1, "m": 0.3, "d": 0.5, "likelihood_weight": 0.4}
    model = started(oneof.IDGP, data, objective=objective, alternate=alternate, **settings)

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

    views = shifted(data.x[index], 3)
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
