"""The comparison: contenders are fitted fold by fold, and predict the rows that they have not seen."""

from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state

from oneof.comparison.contenders import choose_contenders
from oneof.comparison.result import SHARPENINGS, HeldOut, MethodComparison, judge, judge_rows
from oneof.em import EMClassifier
from oneof.errors import InputError, KindError, TrainingDiverged
from oneof.estimator.common_settings import accepts_random_state
from oneof.estimator.features import check_rows
from oneof.estimator.fields import check
from oneof.estimator.preparation import sample_weights
from oneof.estimator.together import fit_together
from oneof.io.progress import StageProgress
from oneof.io.words import reason, shown, warn
from oneof.labels import (
    CandidateKFold,
    SparseSets,
    WeightedSets,
    check_learnable,
    check_same_rows,
    dense_form,
    encode_sets,
)
from oneof.labels.sparse_sets import AnySets, row_blocks, set_sizes
from oneof.methods import CC, Classifier
from oneof.train.rows import SparseRows

_ANY_METHOD: Any = CC  # rows are the same for all

Rows = NDArray[np.intp]
Folds = list[tuple[Rows, Rows]]  # training and held-out rows of each


def compare(
    X: Any,
    y: Any,
    methods: Any = None,
    cv: Any = 5,
    settings: Any = None,
    sample_weight: ArrayLike | None = None,
    separator: str | None = None,
    random_state: Any = None,
    verbose: int = 0,
) -> MethodComparison:
    """Compare methods on held-out rows, by candidate sets alone, and say which one to take.

    Every method is fitted once for each fold, without its rows, and judged by the mean over all rows of
    ``log sum_{j in S} p_j``, the logarithm of the probability that it gives to the candidate set. No true labels
    are needed.

    Parameters
    ----------
    X : array, tensor or frame of shape (n, features); images (n, height, width[, channels])
        Rows.
    y : candidate sets
        All that `fit` takes. Of weights pi of candidates, the sum is of ``pi_j p_j``.
    methods : list of str, or dict of models, optional
        Names of methods, or models by any name, such as ``{"slow": oneof.IDGP(lr=0.01)}``. By default cc, proden,
        membership, idgp and competition; plcr and pico, too, where ``settings`` name several views.
    cv : int or splitter, default=5
        Number of folds, which `CandidateKFold` deals out, or a splitter that holds out each row once.
    settings : dict, optional
        Settings for all methods that have them, such as ``{"network": "lenet", "epochs": 20}``.
    sample_weight : array of shape (n,), optional
        Weight of each row, in training and in all means.
    separator : str, optional
        Splits the strings of ``y``, such as ``"cat|dog"``; without it, a string is one label.
    random_state : int, RandomState or None, default=None
        Seed of the folds, of each model and of the resampling.
    verbose : int, default=0
        Whether to show progress: 0 does not, 1 does.

    Returns
    -------
    MethodComparison
        Its ``best`` is the method to take, ``sure`` how sure that is, ``scores`` has all numbers; printed, it is a
        table.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(60, 2)) + 3 * np.eye(3)[np.arange(60) % 3][:, :2]
    >>> sets = [{i % 3, (i // 3) % 3} for i in range(60)]
    >>> found = compare(X, sets, ["cc", "proden"], settings={"epochs": 5}, random_state=0)
    >>> sorted(found.scores), found.rows, 0 <= found.sure <= 1
    (['cc', 'proden'], 60, True)
    """
    _check_verbose(verbose)
    x = check_rows(_ANY_METHOD(), X, fitting=True)
    candidates, classes = encode_sets(y, separator=separator)
    check_same_rows(len(x), len(candidates))
    check_learnable(candidates)
    weight = sample_weights(sample_weight, x, torch.float64)
    weighted = candidates.dtype != bool
    contenders, left_out = choose_contenders(methods, settings, x.ndim == 2, weighted)
    seed = seed_of(random_state)
    folds = _folds(cv, candidates.matrix > 0 if isinstance(candidates, SparseSets) else candidates > 0, seed)
    for model in contenders.values():
        if model.random_state is None:
            model.random_state = seed
        check(model)
    rows = _as_given(X, x)
    named = _named(candidates, classes)
    found: dict[str, HeldOut] = {}
    with StageProgress("comparison", list(contenders), verbose > 0) as progress:
        for name, model in contenders.items():
            try:
                judged = _held_out(model, folds, rows, named, candidates, weight, progress.advance)
            except TrainingDiverged as error:
                left_out[name] = "diverged in training"
                warn(f"{name} is left out of the comparison: {reason(error, 300)}")
            else:
                found[name] = judged
            progress.finish(name)
    if not found:
        raise TrainingDiverged(
            "every method diverged in training; pass a lower rate, such as settings={'lr': 0.01}"
        )
    return judge(found, weight, seed, len(folds), left_out)


def seed_of(random_state: Any) -> int:
    """Return the seed that a random state stands for: a number itself, or one that is drawn."""
    if not accepts_random_state(random_state):
        raise InputError(
            f"random_state is {shown(random_state)}, but must be a whole number from 0 to 2**32 - 1, a "
            "RandomState or None"
        )
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def _check_verbose(verbose: Any) -> None:
    if not isinstance(verbose, Integral) or verbose < 0:
        raise InputError(f"verbose is {shown(verbose)}, but must be a whole number >= 0; pass 0 or 1")


def _folds(cv: Any, candidates: Any, seed: int) -> Folds:
    """Return training and held-out rows of each fold; every row is held out once."""
    if isinstance(cv, Integral) and not isinstance(cv, bool):
        cv = CandidateKFold(int(cv), shuffle=True, random_state=seed)
    if not (hasattr(cv, "split") and hasattr(cv, "get_n_splits")):  # text, too, can be split
        raise KindError(f"cv is {shown(cv)}, but must be a number of folds or a splitter; pass 5")
    folds = [(np.asarray(train), np.asarray(test)) for train, test in cv.split(candidates, candidates)]
    held_out = np.sort(np.concatenate([test for _, test in folds]))
    if not np.array_equal(held_out, np.arange(candidates.shape[0])):
        raise InputError(
            f"cv is {shown(cv)}, which does not hold out every row exactly once; pass a number of folds, or a "
            "splitter such as oneof.CandidateKFold(5)"
        )
    return folds


def _named(candidates: AnySets, classes: NDArray[Any]) -> Any:
    """Return candidate sets, or their weights, as models take them."""
    matrix = candidates.matrix if isinstance(candidates, SparseSets) else candidates
    if candidates.dtype != bool:
        return WeightedSets(matrix, classes)
    return matrix if isinstance(candidates, SparseSets) else pd.DataFrame(matrix, columns=classes)


def _held_out(
    model: Classifier,
    folds: Folds,
    rows: Any,
    named: Any,
    candidates: AnySets,
    weight: NDArray[Any],
    advance: Callable[[float], None],
) -> HeldOut:
    """Judge the probabilities of all rows, each by a fit that has not seen it."""
    models = [clone(model) for _ in folds]
    arguments = [
        {"X": _take(rows, train), "y": _take(named, train), "sample_weight": weight[train]} for train, _ in folds
    ]
    if isinstance(model, EMClassifier):
        for each, given in zip(models, arguments, strict=True):
            each.fit(**given)
            advance(1 / len(folds))
    else:
        step = 1 / (len(folds) * model.epochs)
        told = {"callbacks": [lambda report: advance(step)]}
        fit_together(models, [given | told for given in arguments])
    values = np.empty((len(SHARPENINGS) + 2, len(candidates)))
    for each, (_, test) in zip(models, folds, strict=True):
        for block in row_blocks(candidates[test]):
            part = test[block]
            probabilities = np.asarray(each.predict_proba(_take(rows, part)), dtype=np.float64)
            values[:, part] = judge_rows(probabilities, dense_form(candidates[part]))
    plain = bool((set_sizes(candidates) == 1).all())
    return HeldOut.of(values, weight, plain)


def _as_given(X: Any, x: Any) -> Any:
    """Return rows as users have them: frames with the names of their columns, images with channels last."""
    if isinstance(X, pd.DataFrame):
        return X
    if isinstance(x, SparseRows):
        return x.matrix
    return x if x.ndim == 2 else np.moveaxis(x, 1, -1)


def _take(table: Any, rows: Rows) -> Any:
    return table.iloc[rows] if isinstance(table, pd.DataFrame) else table[rows]
