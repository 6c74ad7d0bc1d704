"""From what a user gives `fit` to a trial: rows are checked, split, scaled and put on the device."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight

from oneof import functional as F
from oneof.errors import InputError
from oneof.estimator.checks import (
    check_outside,
    check_parts,
    check_pixels,
    check_pretrained,
    check_takes,
    check_views,
    check_warm_up,
    check_weights,
)
from oneof.estimator.class_weights import class_weighted
from oneof.estimator.features import check_rows, image_shape
from oneof.estimator.fields import check
from oneof.estimator.method_base import MethodBase
from oneof.estimator.warm_start import EarlierFit, check_same_problem, earlier_fit, go_on
from oneof.io.arguments import as_floats
from oneof.io.tensors import is_finite
from oneof.labels import (
    SparseSets,
    check_learnable,
    check_same_rows,
    dense_form,
    encode_sets,
    encode_sets_for_model,
    warn_of_absent,
)
from oneof.labels.sparse_sets import AnySets
from oneof.nn.pretrained import is_pretrained
from oneof.train.batch import Data, state_bytes
from oneof.train.checkpoint import Checkpoint, fingerprint
from oneof.train.rows import Array, HostRows, Scaler, SparseRows, values_of
from oneof.train.runtime import float_type, is_too_large, resolve_device, seed_for, seeded, threads
from oneof.train.sets import DeviceSets
from oneof.train.trial import Trial
from oneof.train.trial_state import Setup


def prepare_trial(
    model: MethodBase,
    X: Any,
    y: Any,
    sample_weight: ArrayLike | None,
    X_val: Any,
    y_val: Any,
    X_watched: Any,
    hooks: Mapping[str, Any],
    separator: str | None = None,
    classes: Any = None,
) -> Trial:
    """Check everything, put the rows on the device and start the method."""
    check(model)
    check_warm_up(model)
    check_views(model)
    check_outside(model)
    earlier = earlier_fit(model)
    x, candidates = _training_rows(model, X, y, separator, classes, earlier)
    weight = _row_weights(model, sample_weight, x, candidates)
    x_val, sets_val = _validation_rows(model, X_val, y_val, separator)
    checkpoint = setup = None
    if model.checkpoint is not None:
        mark = fingerprint(x, candidates, weight, x_val, sets_val)
        checkpoint = Checkpoint(model.checkpoint, model.identity(), mark)
        setup = checkpoint.setup(
            len(x), held_out_rows(model.validation_fraction, len(x)), Scaler.shape_for(x.shape[1:])
        )
    setup = setup or _set_up(model, x, weight, earlier)
    model.scaler_ = setup.scaler
    held_out = setup.held_out.numpy()
    training = np.setdiff1d(np.arange(len(x)), held_out, assume_unique=True)
    warn_of_absent(candidates[training], model.classes_)
    watched = [] if x_val is None else [_all_rows(x_val)]
    if len(held_out):
        watched, sets_val = [(x, held_out)], candidates[held_out]
    watched += [] if X_watched is None else [_all_rows(check_rows(model, X_watched, fitting=False))]
    with threads(model.thread_count()):
        stays = _stays(model, X, x)
        data = _put_on_device(model, x, training, candidates, weight, stays)
        _start(model, data, setup.seed)
        go_on(model, earlier)
        stored = _watched_rows(model, watched, stays)
    return Trial(model, data, setup, (x, candidates), stored, sets_val, checkpoint=checkpoint, **hooks)


def _start(model: MethodBase, data: Data, seed: int) -> None:
    """Make networks and label tables."""
    model.set_training_rows(data)
    model.forget()
    with seeded(seed_for(seed, "weights"), data.weight.device):
        model.start(data)
    check_parts(model)


def candidate_sets(model: MethodBase, y: Any, rows: int, separator: str | None = None) -> AnySets:
    """Return candidate sets over the classes of a model: a boolean matrix, or one of weights, or sparse."""
    candidates = encode_sets_for_model(y, model.classes_, separator)
    check_takes(model, candidates)
    check_same_rows(rows, len(candidates))
    return candidates


def sample_weights(sample_weight: ArrayLike | None, x: Array, dtype: torch.dtype) -> Array:
    """Return the weight of every row; refuse weights that cannot be computed with in a floating type."""
    if sample_weight is not None:
        weights = as_floats(sample_weight, "sample_weight")
        sample_weight = weights if weights.ndim else float(weights)  # one number weighs all rows
    weight: Array = _check_sample_weight(sample_weight, x, dtype=np.float64, ensure_non_negative=True)
    check_weights(weight, dtype)
    return weight


def _row_weights(model: MethodBase, sample_weight: ArrayLike | None, x: Array, candidates: AnySets) -> Array:
    """Return the weight of every row, with those of the classes."""
    dtype = float_type(model.precision)
    weight = sample_weights(sample_weight, x, dtype)
    if model.class_weight is not None:
        weight = class_weighted(model.class_weight, weight, candidates, model.classes_)
        check_weights(weight, dtype)
    return weight


def held_out_rows(fraction: float, rows: int) -> int:
    """Return how many of all rows are held out for validation."""
    return max(1, round(fraction * rows)) if fraction > 0 else 0


def _training_rows(
    model: MethodBase, X: Any, y: Any, separator: str | None, classes: Any, earlier: EarlierFit | None
) -> tuple[Array, AnySets]:
    """Return checked rows and candidate sets, and set what they tell about the model's inputs and classes."""
    x = check_rows(model, X, fitting=True)
    check_pixels(model.views, x)
    check_pretrained(model.network, x)
    model.input_shape_ = image_shape(x)
    model.n_features_in_ = int(np.prod(x.shape[1:]))
    candidates, model.classes_ = encode_sets(y, classes, separator)
    if model.outside != 0:  # all labels have weights
        candidates = _dense(model, candidates)
    check_takes(model, candidates)
    check_same_rows(len(x), len(candidates))
    check_learnable(candidates)
    if earlier is not None:
        check_same_problem(model, earlier)
    return x, candidates


def _validation_rows(
    model: MethodBase, X_val: Any, y_val: Any, separator: str | None
) -> tuple[Array | None, AnySets | None]:
    if (X_val is None) != (y_val is None):
        raise InputError("X_val and y_val belong together; pass both or neither")
    if X_val is None:
        if model.patience is not None and not model.validation_fraction:
            raise InputError(
                f"patience is {model.patience}, but there are no validation rows; pass X_val and y_val, or set "
                "validation_fraction"
            )
        return None, None
    if model.validation_fraction:
        raise InputError("pass X_val and y_val or set validation_fraction, not both")
    x_val = check_rows(model, X_val, fitting=False)
    return x_val, candidate_sets(model, y_val, len(x_val), separator)


def _set_up(model: MethodBase, x: Array, weight: Array, earlier: EarlierFit | None) -> Setup:
    """Draw the seed and the held-out rows, and learn the scaler from the others, or take that of before."""
    seed = int(check_random_state(model.random_state).randint(np.iinfo(np.int32).max))
    held_out = np.zeros(0, dtype=np.int64)
    size = held_out_rows(model.validation_fraction, len(x))
    if size > len(x) - 2:
        raise InputError(
            f"validation_fraction is {model.validation_fraction}, which leaves {len(x) - size} of {len(x)} "
            "rows for training, but at least 2 are needed; lower it"
        )
    if size:
        held_out = np.sort(np.random.default_rng(seed_for(seed, "split")).permutation(len(x))[:size])
    training = np.delete(np.arange(len(x)), held_out)
    if not weight[training].sum() > 0:
        raise InputError("the weights of the training rows sum to 0; give some row a positive sample_weight")
    if earlier is not None:
        return Setup(seed, torch.as_tensor(held_out), earlier.scaler)
    if is_pretrained(model.network):  # which normalises pixels from 0 to 1 as it was trained
        return Setup(seed, torch.as_tensor(held_out), Scaler.of_pixels(x))
    with np.errstate(over="ignore", invalid="ignore"):
        scaler = Scaler.fit(x, training, weight[training], model.scaling)
    if not (is_finite(scaler.mean) and is_finite(scaler.std)):
        raise InputError(
            f"X holds values as large as {np.abs(values_of(x)).max():g}, whose standard deviation is not finite; "
            "divide its features by their largest values"
        )
    return Setup(seed, torch.as_tensor(held_out), scaler)


def _put_on_device(
    model: MethodBase, x: Array, rows: Array, candidates: AnySets, weight: Array, stays: bool
) -> Data:
    """Put rows on the device, once; x may stay where it is: on disk, sparse, or since it is too large."""
    device, dtype = resolve_device(model.device), float_type(model.precision)
    candidates, weight = candidates[rows], weight[rows]
    return Data(
        _rows_in_host(model, x, rows) if stays else _store(model, x, rows),
        _sets_on_device(model, candidates, device, dtype),
        torch.as_tensor(weight, device=device, dtype=dtype),
        model.scaler_.to(device, dtype),
    )


def _sets_on_device(
    model: MethodBase, candidates: AnySets, device: torch.device, dtype: torch.dtype
) -> torch.Tensor | DeviceSets:
    """Put sets on the device; those that are sparse stay so for methods whose tables are 0 off the sets."""
    if isinstance(candidates, SparseSets) and model.keeps_sets_sparse():
        return DeviceSets.put(candidates, device, dtype)
    candidates = _dense(model, candidates)
    sets = torch.as_tensor(candidates, device=device, dtype=None if candidates.dtype == bool else dtype)
    return sets if model.outside == 0 else F.outside_weights(sets, dtype, model.outside_rule)


def _dense(model: MethodBase, sets: AnySets) -> Array:
    """Return sets as an array; say what this takes, where they were sparse."""
    if isinstance(sets, SparseSets):
        rows, classes = sets.shape
        size = rows * classes * (1 + float_type(model.precision).itemsize)
        kind = f"{type(model).__name__} with outside" if model.outside != 0 else type(model).__name__
        state_bytes(f"{kind} keeps tables of {rows} rows and {classes} classes, one of which", size)
    return dense_form(sets)


def _stays(model: MethodBase, X: Any, x: Array) -> bool:
    """Tell whether rows stay where they are: on disk, sparse, or too large for the device."""
    return isinstance(X, np.memmap) or isinstance(x, SparseRows) or is_too_large(x, resolve_device(model.device))


def _all_rows(x: Array) -> tuple[Array, Array]:
    return x, np.arange(len(x))


def _rows_in_host(model: MethodBase, x: Array, rows: Array) -> HostRows:
    return HostRows(x, rows, model.scaler_, float_type(model.precision), resolve_device(model.device))


def _watched_rows(
    model: MethodBase, watched: list[tuple[Array, Array]], stays: bool
) -> torch.Tensor | HostRows | None:
    """Return what is evaluated after every epoch: where training rows stay, those of one table stay as well."""
    if stays and len(watched) == 1:
        return _rows_in_host(model, *watched[0])
    return _store(model, np.concatenate([x[rows] for x, rows in watched])) if watched else None


def _store(model: MethodBase, x: Array, rows: Array | None = None) -> torch.Tensor:
    return model.scaler_.store(x, float_type(model.precision), rows).to(resolve_device(model.device))
