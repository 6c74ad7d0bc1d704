"""The contract of a method: what every one must do, as functions that raise where it does not."""

import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import fields
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.estimator_checks import check_estimator
from torch import Tensor, nn

from oneof.errors import InputError, KindError
from oneof.estimator.classifier import PartialLabelClassifier
from oneof.io.words import shown
from oneof.methods import load_model
from oneof.testing.small_problems import Make, blobs, make_data, started, take
from oneof.train import checkpoint, train
from oneof.train.batch import Data
from oneof.train.loop import losses_of

# float64, because a check of scikit-learn demands that repeated and weighted rows agree to 1e-7
SKLEARN_SETTINGS: dict[str, Any] = {"epochs": 30, "precision": "fp64", "device": "cpu"}
_EPOCHS = (0, 10, 30)  # in and after any warm-up
_FEW: dict[str, Any] = {"epochs": 7, "random_state": 3, "device": "cpu"}
_GOOD = 0.9  # accuracy on classes that lie far apart


def check_method(
    method: type[PartialLabelClassifier],
    settings: Mapping[str, Any] | None = None,
    expected_failed_checks: Mapping[str, str] | None = None,
) -> None:
    """Check that a method does what every method must do; takes some seconds.

    These are scikit-learn's checks of estimators, and ours: trials on a leading axis have the numbers of trials
    alone (`check_leading_axis`), classes in another order give the same model (`check_permuted_classes`), sets of
    one label and of all labels leave everything finite (`check_extreme_sets`), two and 200 classes are learned
    (`check_class_numbers`), classes that lie far apart are told apart (`check_learning`), a training that is cut
    off ends with the same bits (`check_resume`), and a saved model is read back (`check_save`).

    Parameters
    ----------
    method : class
        Made from `oneof.estimator.PartialLabelClassifier`.
    settings : dict, optional
        Settings of the method that are not its defaults, such as views where it compares some.
    expected_failed_checks : dict, optional
        Names of checks that the method cannot pass, and why, as scikit-learn's `check_estimator` has it.

    Raises
    ------
    AssertionError
        Or what the method itself raises, with a note that names the check, where it does not hold.

    Examples
    --------
    >>> import oneof
    >>> from oneof.testing import check_method
    >>> check_method(oneof.CC)
    """
    if not (isinstance(method, type) and issubclass(method, PartialLabelClassifier)):
        raise KindError(
            f"method is {shown(method)}, but must be a class made from oneof.estimator.PartialLabelClassifier; "
            "pass the class itself, and its settings as settings={...}"
        )
    for name, given in (("settings", settings), ("expected_failed_checks", expected_failed_checks)):
        if not isinstance(given, Mapping | None):
            raise KindError(f"{name} is {shown(given)}, but must be a dict or None; pass {name}={{...}}")
    known = {field.name for field in fields(method)}
    if unknown := [name for name in settings or {} if name not in known]:
        raise InputError(
            f"settings has {shown(unknown[0])}, but {method.__name__} has no such setting; correct it"
        )
    make, failing = partial(method, **(settings or {})), dict(expected_failed_checks or {})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of fits this short, and of rows this few
        check_estimator(make(**SKLEARN_SETTINGS), on_skip=None, expected_failed_checks=failing)
        for check in _CHECKS:
            if check.__name__ in failing:
                continue
            try:
                check(make)
            except Exception as error:
                error.add_note(f"This is {check.__name__} of oneof.testing.check_method.")
                raise


def check_leading_axis(method: Make, epochs: tuple[int, ...] = _EPOCHS, views: tuple[int, ...] = (1, 3)) -> None:
    """Two trials on a leading axis have the same losses and tables as each trial alone."""
    for epoch in epochs:
        for count in views:
            _compare_stacked(method, epoch, count)


def _compare_stacked(method: Make, epoch: int, views: int) -> None:
    trials = [make_data(seed=seed) for seed in (1, 2)]
    x, candidates, weight = (
        torch.stack([getattr(trial, name) for trial in trials]) for name in ("x", "candidates", "weight")
    )
    both = Data(x, candidates, weight, trials[0].scaler)
    indices = torch.tensor([[3, 0, 7, 5], [11, 2, 1, 4]])
    together, alone = started(method, both), [started(method, trial) for trial in trials]
    tables = [name for name, table in together.tables().items() if table.dim()]
    for t, model in enumerate(alone):  # the first contents of a queue are drawn for all trials at once
        for name in tables:
            getattr(model, name).copy_(getattr(together, name)[t])
    for visit in range(2):  # the second visit meets tables that the first one wrote
        losses = _losses(together, both, indices, epoch + visit, views)
        ones = [
            _losses(model, trial, index, epoch + visit, views)
            for model, trial, index in zip(alone, trials, indices, strict=True)
        ]
        for i, loss in enumerate(losses):
            torch.testing.assert_close(loss, torch.stack([one[i] for one in ones]))
    for name in tables:
        torch.testing.assert_close(getattr(together, name), torch.stack([getattr(model, name) for model in alone]))


def _losses(model: PartialLabelClassifier, data: Data, index: Tensor, epoch: int, views: int = 1) -> list[Tensor]:
    """Return the losses of one step."""
    model.start_epoch(epoch, data)
    return list(losses_of(model.step(take(data, index, epoch, views))))


def check_permuted_classes(method: Make) -> None:
    """Classes in another order give the same losses, and label tables in that order."""
    data, order, index = make_data(), torch.tensor([3, 1, 4, 0, 2]), torch.arange(12)
    moved = Data(data.x, data.candidates[:, order], data.weight, data.scaler)
    model, other = started(method, data), started(method, moved)
    for name, part in model.learned_attributes().items():
        if isinstance(part, nn.Module):
            _permute_classes(part, getattr(other, name), order)
        elif part.dim() == 2 and len(part) == len(order):  # a row a class: were all 0, the first would be nearest
            part.copy_(torch.randn(part.shape, generator=torch.Generator().manual_seed(0)))
            getattr(other, name).copy_(part[order])
    for epoch in _EPOCHS:
        losses = zip(_losses(model, data, index, epoch, 2), _losses(other, moved, index, epoch, 2), strict=True)
        for loss, loss_moved in losses:
            torch.testing.assert_close(loss, loss_moved)
    for name, table in model.tables().items():
        if table.shape == data.candidates.shape:
            torch.testing.assert_close(table[:, order], getattr(other, name))


def _permute_classes(source: nn.Module, target: nn.Module, order: Tensor) -> None:
    """Copy a network so that its classes stand in another order: outputs of a head, inputs of a decoder."""
    target.load_state_dict(source.state_dict())
    with torch.no_grad():
        if isinstance(head := getattr(source, "head", None), nn.Linear):
            blocks = torch.arange(head.out_features).view(-1, len(order))[:, order].flatten()
            target.head.weight.copy_(head.weight[blocks])  # type: ignore[union-attr, operator]
            target.head.bias.copy_(head.bias[blocks])  # type: ignore[union-attr, operator]
        elif isinstance(source, nn.Sequential) and getattr(source[0], "in_features", None) == len(order):
            target[0].weight.copy_(source[0].weight[:, order])  # type: ignore[index]


def check_extreme_sets(method: Make, scales: tuple[float, ...] = (1.0, 1e4)) -> None:
    """Sets of one label and of all labels in one batch leave losses, gradients and tables finite."""
    for scale in scales:
        data = make_data(dtype=torch.float32, scale=scale)
        data.candidates[0], data.candidates[1], data.candidates[1, 2] = True, False, True
        model = started(method, data, precision="fp32")
        for epoch in _EPOCHS:
            for loss in losses_of(model.step(take(data, torch.arange(12), epoch))):
                assert torch.isfinite(loss).all(), f"a loss of epoch {epoch} is not finite: {loss}"
                gradients = torch.autograd.grad(loss.sum(), list(model.network_.parameters()), allow_unused=True)
                assert all(g is None or torch.isfinite(g).all() for g in gradients), "a gradient is not finite"
        for name, tensor in model.learned().items():
            assert torch.isfinite(tensor.float()).all(), f"{name} is not finite"


def check_class_numbers(method: Make, numbers: tuple[int, ...] = (2, 200)) -> None:
    """Two classes and 200, with sets of one label and of all: probabilities sum to 1, labels are candidates."""
    for classes in numbers:
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(260, 6)), rng.integers(classes, size=260)
        S = rng.random((260, classes)) < 3 / classes
        S[np.arange(260), y] = True
        S[0], S[1] = True, np.arange(classes) == y[1]
        model = method(epochs=25, random_state=0).fit(X, S)
        probabilities = model.predict_proba(X)
        assert probabilities.shape == (260, classes)
        np.testing.assert_allclose(probabilities.sum(1), 1, atol=1e-5)
        assert (model.label_distributions_[~S] == 0).all(), "label_distributions_ is not 0 off the candidate sets"
        np.testing.assert_allclose(model.label_distributions_.sum(1), 1, atol=1e-5)


def check_learning(method: Make) -> None:
    """Classes that lie far apart are told apart, in the rows of the fit too; and twice with the same bits."""
    X, S, y = blobs()
    model, again = (method(epochs=30, random_state=0, device="cpu").fit(X, S) for _ in range(2))
    for name, right in (("predict", model.predict(X) == y), ("transduction_", model.transduction_ == y)):
        assert right.mean() > _GOOD, f"{name} is right for {right.mean():.0%} of rows that are easy to tell apart"
    np.testing.assert_array_equal(model.disambiguate(X, S).label, model.transduction_)
    _assert_same(model.learned(), again.learned())


class _CutOff(Exception):  # noqa: N818  nothing went wrong
    pass


def check_resume(
    method: Make,
    X: NDArray[Any] | None = None,
    S: NDArray[np.bool_] | None = None,
    stops: tuple[int, ...] = (1, 4),
) -> None:
    """A training that is cut off after an epoch goes on from its checkpoint, and ends with the same bits."""
    if X is None or S is None:
        X, S, _ = blobs()
    settings = {"validation_fraction": 0.2, **_FEW}
    whole = method(**settings).fit(X, S)
    for stop in stops:
        with TemporaryDirectory() as folder:
            make = partial(method, **settings, checkpoint=Path(folder) / "checkpoint")

            def cut_off(epoch: int, after: int = stop) -> None:
                if epoch == after + 1:  # in the middle of an epoch that is not saved yet
                    raise _CutOff

            with patch.object(checkpoint, "SECONDS_BETWEEN_SAVES", 0.0), suppress(_CutOff):
                _fit(make(), X, S, cut_off)
            epochs: list[int] = []
            resumed = _fit(make(), X, S, epochs.append)
            again = _fit(make(), X, S, epochs.append)  # a finished checkpoint trains no more
        assert epochs == list(range(stop + 1, _FEW["epochs"])), f"epochs {epochs} came after epoch {stop}"
        for model in (resumed, again):
            _assert_same(whole.learned(), model.learned())
            assert model.history_ == whole.history_
            assert torch.equal(model.scaler_.mean, whole.scaler_.mean)
            np.testing.assert_array_equal(model.label_distributions_, whole.label_distributions_)


def _fit(
    model: PartialLabelClassifier, X: NDArray[Any], S: NDArray[np.bool_], on_epoch: Callable[[int], None]
) -> PartialLabelClassifier:
    return model.finish(train(model.prepare(X, S, on_epoch=on_epoch)))


def check_save(method: Make, names: tuple[Any, ...] = ("cat", "cow", "dog")) -> None:
    """A model that was saved and loaded is the same in all that can be asked of it."""
    X, S, _ = blobs(classes=len(names))
    sets = [[names[j] for j in np.flatnonzero(row)] for row in S]
    model = method(validation_fraction=0.1, **_FEW).fit(X, sets)
    cls = type(model)
    with TemporaryDirectory() as folder:
        path, second = Path(folder) / "model", Path(folder) / "second"
        model.save(path)
        again = load_model(path, device="cpu", methods={cls.__name__: cls})
        assert type(again) is cls
        again.save(second)
        assert second.read_bytes() == path.read_bytes()
    assert again.set_params(random_state=model.random_state).identity() == model.identity()  # files hold no seed
    assert again.history_ == model.history_
    assert again.classes_.dtype == model.classes_.dtype
    _assert_same(model.learned(), again.learned())
    for name in ("classes_", "transduction_", "label_distributions_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    for have, want in zip(again.disambiguate(X, sets), model.disambiguate(X, sets), strict=True):
        np.testing.assert_array_equal(have, want)


def _assert_same(first: dict[str, Tensor], second: dict[str, Tensor]) -> None:
    assert first.keys() == second.keys(), f"{sorted(first)} is not {sorted(second)}"
    for name, tensor in first.items():
        assert torch.equal(tensor, second[name]), f"{name} differs"


_CHECKS: tuple[Callable[[Make], None], ...] = (
    check_leading_axis,
    check_permuted_classes,
    check_extreme_sets,
    check_class_numbers,
    check_learning,
    check_resume,
    check_save,
)
