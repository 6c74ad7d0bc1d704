"""What a fit refuses or warns of before it begins: settings that do not fit the method, each other or the rows."""

import warnings
from typing import Any

import numpy as np
import torch
from torch.nn.modules.batchnorm import _BatchNorm

from oneof.errors import InputError, KindError
from oneof.estimator.method_base import MethodBase
from oneof.io.words import shown
from oneof.labels import rows_text
from oneof.labels.sparse_sets import AnySets
from oneof.nn.pretrained import is_pretrained
from oneof.train.rows import Array

_ROOM = 1e-8  # weights are multiplied by losses, and these products are summed
_FEWEST_NORMALISED = 3  # rows, cut into even parts of at most so many: none has a single one
_LEAST_WEIGHT = 1e-9  # a step divides by the sum of its weights, but by 1e-12 at least


def check_warm_up(method: MethodBase) -> None:
    """Warn of a training that ends before the method's own objective begins."""
    warm_up = getattr(method, "warm_up", 0)
    if warm_up >= method.epochs:
        warnings.warn(
            f"warm_up is {warm_up} and epochs is {method.epochs}, so that {type(method).__name__} never gets "
            "beyond its warm-up; lower warm_up or raise epochs",
            stacklevel=5,  # where fit is called
        )


def check_weights(weight: Array, dtype: torch.dtype) -> None:
    """Refuse weights whose sum overflows in training, or which are so small that a step takes them for 0."""
    largest = torch.finfo(dtype).max * _ROOM
    with np.errstate(over="ignore"):
        total = weight.sum()
    if not total <= largest:
        raise InputError(
            f"sample_weight sums to {total:g}, but must sum to at most {largest:.1g} in "
            f"{str(dtype).removeprefix('torch.')}; divide the weights by their mean, which changes nothing else"
        )
    if 0 < weight.max() < _LEAST_WEIGHT:
        raise InputError(
            f"the largest sample_weight is {weight.max():g}, but must be at least {_LEAST_WEIGHT:g}; divide the "
            "weights by their mean, which changes nothing else"
        )


def check_takes(method: MethodBase, candidates: AnySets) -> None:
    """Refuse weights of candidates where a method has no probabilities for them to multiply."""
    if candidates.dtype != bool and not method.takes_weights:
        raise InputError(
            f"y has weights of its candidates, but {type(method).__name__} has no place for them; use a method "
            "that has, such as IDGP or PRODEN, or pass y.candidates, by which all candidates are alike"
        )


def check_outside(method: MethodBase) -> None:
    """Refuse a rate where a method cannot weigh labels off the sets, and a rule where nothing is to be weighed."""
    name, rule = type(method).__name__, method.outside_rule
    if method.outside != 0 and not method.takes_outside:
        raise InputError(
            f"outside is {method.outside!r}, but {name} has no probabilities of labels outside the sets; leave it "
            "at 0, or use a method that has, such as Competition or PRODEN"
        )
    if rule != "share" and not (method.takes_outside and method.takes_alim):
        raise InputError(
            f"outside_rule is {rule!r}, but {name} has no target of labels outside the sets, which ALIM would "
            "weigh; leave it out, or use PRODEN or RC"
        )
    if rule != "share" and method.outside == 0:
        raise InputError(
            f"outside_rule is {rule!r}, but outside is 0: labels outside the sets have no weight; set outside to "
            "the share of rows without their true label, or to 'auto'"
        )


def check_views(method: MethodBase) -> None:
    """Refuse fewer than two views where a method compares them."""
    if method.needs_views and (method.views is None or "+" not in method.views):
        raise InputError(
            f"views is {method.views!r}, but {type(method).__name__} compares several views of each example; set "
            "views='plain+jitter+jitter' for tables or 'weak+strong+strong' for images, or use a method that "
            "needs one view, such as IDGP"
        )


def check_parts(method: MethodBase) -> None:
    """Refuse so few rows at once that batch normalisation may see a single one, which has no variance."""
    size = method.rows_at_once
    if size is None or size >= _FEWEST_NORMALISED:
        return
    for layer in (layer for module in method.modules() for layer in module.modules()):
        if isinstance(layer, _BatchNorm):
            raise InputError(
                f"rows_at_once is {size}, but the layer {type(layer).__name__} needs several rows to normalise; "
                f"take {_FEWEST_NORMALISED} or more, or a network without it"
            )


def check_callbacks(callbacks: Any) -> None:
    """Refuse what is no list of callables."""
    usable = isinstance(callbacks, list | tuple) and all(map(callable, callbacks))
    if usable and (classes := [each for each in callbacks if isinstance(each, type)]):
        raise KindError(
            f"callbacks holds the class {classes[0].__name__}, but must hold callables that take the report of an "
            f"epoch; make an object of it, {classes[0].__name__}(...)"
        )
    if not usable:
        raise KindError(
            f"callbacks is {shown(callbacks)}, but must be a list of callables that take the report of an epoch; "
            "pass [callback]"
        )


def check_results(method: MethodBase, bad: Array) -> None:
    """Refuse rows, by their numbers, whose results are not numbers: NaN would be the first class."""
    if bad.size:
        raise InputError(
            f"{type(method).__name__} gives NaN in {rows_text(bad)}: their values or its weights "
            "are too large; compare X with the rows that it was fitted on, or fit again with a lower lr"
        )


def check_pretrained(network: Any, x: Array) -> None:
    """Refuse rows that are no pictures where the network has been trained on such."""
    if not is_pretrained(network):
        return
    if x.ndim != 4 or x.shape[1] not in (1, 3):
        raise InputError(
            f"network is {shown(network)}, which takes images in gray or colour, but X has rows of shape "
            f"{tuple(x.shape[1:])}; pass X as (n, height, width) or (n, height, width, 3), or choose "
            "network='mlp'; of texts make features with oneof.embed"
        )
    if x.dtype.kind == "f" and not (x.min() >= 0 and x.max() <= 1):
        raise InputError(
            f"X holds pixels from {x.min():g} to {x.max():g}, but {shown(network)} needs bytes (uint8) or floats "
            "from 0 to 1; convert the images"
        )


def check_pixels(views: str | None, x: Array) -> None:
    """Refuse floats outside [0, 1] where views change colours."""
    changes = set((views or "plain").split("+")) - {"plain", "jitter", "weak"}
    if changes and x.ndim == 4 and x.dtype.kind == "f" and not (x.min() >= 0 and x.max() <= 1):
        raise InputError(
            f"X holds pixels from {x.min():g} to {x.max():g}, but the views {sorted(changes)} need bytes (uint8) "
            "or floats from 0 to 1; convert the images, or use the view 'weak'"
        )
