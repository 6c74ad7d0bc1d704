"""Many models at once: those that are alike in one stack, others on a GPU side by side."""

from collections.abc import Mapping, Sequence
from inspect import signature
from itertools import combinations
from typing import Any

from oneof.errors import InputError, KindError, TrainingDiverged
from oneof.estimator.classifier import PartialLabelClassifier
from oneof.io.words import join_first, listed, shown
from oneof.train.parallel.grouping import train_together


def fit_together(
    models: Sequence[PartialLabelClassifier], arguments: Sequence[Mapping[str, Any]]
) -> list[PartialLabelClassifier]:
    """Fit many models, those that are alike at once.

    Parameters
    ----------
    models : sequence of PartialLabelClassifier
        Any methods and settings. Those of one method with a linear or mlp network, on tables of one size, whose
        settings differ in nothing but learning rates, weight decays, patience and seeds, are trained as a stack,
        which costs a fraction of training them one after the other; all others go side by side on a GPU, and
        elsewhere one after the other.
    arguments : sequence of dict
        For each model what `fit` takes: X, y, and optionally sample_weight, X_val, y_val, separator, callbacks.

    Returns
    -------
    list of PartialLabelClassifier
        The models, each fitted as if alone.

    Raises
    ------
    oneof.train.TrainingDiverged
        When trainings diverged; it names these models, and all others are fitted.

    Examples
    --------
    >>> import numpy as np
    >>> from oneof import CC
    >>> models = [CC(lr=lr, epochs=5, device="cpu", random_state=0) for lr in (0.01, 0.1)]
    >>> first, second = fit_together(models, [{"X": np.eye(3), "y": [["a"], ["b"], ["a", "c"]]}] * 2)
    >>> second.predict(np.eye(3)).tolist()
    ['a', 'b', 'a']
    """
    _check_models(models, arguments)
    trials = [model.prepare(**given) for model, given in zip(models, arguments, strict=True)]
    train_together(trials)
    diverged: dict[int, TrainingDiverged] = {}
    for i, (model, trial) in enumerate(zip(models, trials, strict=True)):
        try:
            model.finish(trial)
        except TrainingDiverged as error:
            diverged[i] = error
    if diverged:
        names = join_first(f"models[{i}]" for i in diverged)
        raise TrainingDiverged(
            f"{len(diverged)} of {len(models)} models diverged ({names}) and the others are fitted; the first: "
            f"{next(iter(diverged.values()))}"
        )
    return list(models)


def _check_models(models: Sequence[PartialLabelClassifier], arguments: Sequence[Mapping[str, Any]]) -> None:
    """Refuse what is no list of models or arguments, and what would let one fit overwrite another."""
    _check_items("models", models, PartialLabelClassifier, "a method with its settings, such as oneof.IDGP()")
    _check_items("arguments", arguments, Mapping, "a dict of what fit takes, such as {'X': X, 'y': y}")
    if len(models) != len(arguments):
        raise InputError(
            f"there are {len(models)} models and {len(arguments)} sets of arguments, but each model needs one of "
            "its own; pass two lists of the same length"
        )
    for (i, first), (j, second) in combinations(enumerate(models), 2):
        if first is second:
            raise InputError(
                f"models[{i}] and models[{j}] are the same object, but each fit needs one of its own; pass "
                "copies: sklearn.base.clone(model)"
            )
        if first.checkpoint is not None and str(first.checkpoint) == str(second.checkpoint):
            raise InputError(
                f"models[{i}] and models[{j}] both have the checkpoint {str(first.checkpoint)!r}, but each fit "
                "needs a file of its own; name another"
            )
    takes = [name for name in signature(PartialLabelClassifier.prepare).parameters if name != "self"]
    for number, given in enumerate(arguments):
        if not {"X", "y"} <= given.keys() <= set(takes):
            raise InputError(
                f"arguments[{number}] has the keys {listed(given)}, but needs X and y, and may have "
                f"{listed(takes[2:])}; rename them"
            )


def _check_items(name: str, given: Any, kind: type, expected: str) -> None:
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise KindError(f"{name} is {shown(given)}, but must be a list with one item for each fit: {expected}")
    for number, item in enumerate(given):
        if not isinstance(item, kind):
            raise KindError(f"{name}[{number}] is {shown(item)}, but must be {expected}")
