"""Warm starts: a fit that goes on from the weights of the fit before."""

from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from oneof.errors import InputError
from oneof.estimator.method_base import MethodBase
from oneof.io.words import listed
from oneof.train.rows import Scaler


class EarlierFit(NamedTuple):
    """What a fit before has left: the attributes of the model, and copies of the tensors by which it predicts."""

    attributes: dict[str, Any]
    tensors: dict[str, Tensor]

    @property
    def scaler(self) -> Scaler:
        """How rows are standardised: what was learned has its meaning only for rows that are scaled so."""
        scaler: Scaler = self.attributes["scaler_"]
        return scaler


def earlier_fit(model: MethodBase) -> EarlierFit | None:
    """Return the fit to go on from; None where there is none, or where ``warm_start`` is False."""
    if not model.warm_start:
        return None
    if model.checkpoint is not None:
        raise InputError(
            "warm_start is True and checkpoint is set, but a checkpoint holds a training from its beginning; set "
            "one of them"
        )
    if not (hasattr(model, "classes_") and model.learned_attributes()):
        return None
    return EarlierFit(dict(vars(model)), {name: tensor.clone() for name, tensor in model.predictor().items()})


def check_same_problem(model: MethodBase, earlier: EarlierFit) -> None:
    """Refuse rows or classes of another kind than before; the model then stays as it was."""
    before = earlier.attributes
    names = [list(each) for each in (before["classes_"], model.classes_)]
    shapes = [(each["input_shape_"], each["n_features_in_"]) for each in (before, vars(model))]
    columns = [each.get("feature_names_in_", np.zeros(0)).tolist() for each in (before, vars(model))]
    wrong = ""
    if names[0] != names[1]:
        wrong = f"y has the classes {listed(names[1])} and had {listed(names[0])}; pass a frame with all columns"
    elif shapes[0] != shapes[1]:
        old, new = (shape or (features,) for shape, features in shapes)
        wrong = f"X has rows of shape {new} and had {old}; pass rows of the same shape"
    elif columns[0] != columns[1]:
        wrong = f"X has the columns {listed(columns[1], 5)} and had {listed(columns[0], 5)}; pass the same columns"
    if wrong:
        _restore(model, earlier)
        raise InputError(f"warm_start is True, but {wrong}, or set warm_start=False to begin anew")


def go_on(model: MethodBase, earlier: EarlierFit | None) -> None:
    """Give a model that was started anew the weights that it had learned, and tables that have no rows."""
    if earlier is None:
        return
    new, old = model.weights(), earlier.tensors
    changed = [name for name, tensor in new.items() if name not in old or old[name].shape != tensor.shape]
    if changed:
        _restore(model, earlier)
        raise InputError(
            f"warm_start is True, but the networks are others than before ({listed(changed, 3)}); set network "
            "back, or warm_start=False to begin anew"
        )
    for name, tensor in model.predictor().items():
        if name in old and old[name].shape == tensor.shape:
            tensor.data.copy_(old[name])


def _restore(model: MethodBase, earlier: EarlierFit) -> None:
    vars(model).clear()
    vars(model).update(earlier.attributes)
