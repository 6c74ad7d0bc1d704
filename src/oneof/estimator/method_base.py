"""MethodBase: the settings that all methods share, and what a method may define. It knows nothing of fitting."""

from collections.abc import Iterable
from dataclasses import fields, replace
from math import prod
from typing import Any, ClassVar, Self, cast

import numpy as np
import torch
from torch import Tensor, nn

from oneof import functional as F
from oneof.estimator.common_settings import CommonSettings
from oneof.estimator.fast import fast_settings
from oneof.estimator.fields import Role, first_values, hyperparameters, names_with
from oneof.estimator.own_network import check_own_network
from oneof.estimator.state import Learned
from oneof.nn import networks
from oneof.nn.own import describe_module
from oneof.nn.pretrained import is_frozen, is_pretrained
from oneof.train.batch import Batch, Data
from oneof.train.runtime import eager, evaluating
from oneof.train.sets import DeviceSets

_PLAIN_SHARE = 10  # one epoch in so many comes before labels outside the sets count
_ROWS_WEIGHED = 2048

_BATCH, _FEWEST, _STEPS = 100, 32, 20  # rows in a step, at least, and steps of an epoch until these are 100 rows
_INPUTS = 100  # from which on steps must be smaller, or weights
_DECAY = 1e-3
FIRST_OPTIMIZER = "sgd"  # of files that name none
_OF_ADAMW = {"linear": (0.1, 0.3), "mlp": (0.01, 1.0), "deep": (0.001, 0.05)}  # rate and decay
_MANY_INPUTS_DECAY = 1.0  # of AdamW and a linear network: many small weights add up
_TUNING = 0.1  # of the usual learning rate, where a network is pretrained: its weights are to change little


@hyperparameters
class MethodBase(CommonSettings, Learned):
    """Settings, networks and steps of a method."""

    version: ClassVar[int] = 1  # raised when the same settings give other numbers
    needs_views: ClassVar[bool] = False  # whether the method compares several views of each example
    takes_weights: ClassVar[bool] = False  # whether it multiplies probabilities of labels by weights of candidates
    takes_outside: ClassVar[bool] = False  # whether it does so with labels that are no candidates
    takes_alim: ClassVar[bool] = (
        False  # whether these may be weighed by ALIM's rule: it has a target for every row
    )
    # Whether every label table is 0 off the candidate sets, or never read there: those made by `data.uniform` and
    # `data.indicator` then hold one value a candidate where classes are very many. Each class says so for itself.
    zero_off_sets: ClassVar[bool] = False
    # Whether its steps are right for a part of a batch: rows share nothing but what goes through `batch.whole`,
    # `batch.total` and `data.total`. Several workers can then train it. Each class says so for itself.
    trains_in_parts: ClassVar[bool] = False
    largest_lr: ClassVar[float] = 0.1  # of lr = None
    decay_of_tables: ClassVar[float] = 5e-3  # of weight_decay = None, for the linear and mlp networks and SGD
    by_adamw: ClassVar[tuple[str, ...]] = ("linear", "mlp")  # of optimizer = None: the networks that have AdamW
    adamw_share: ClassVar[float] = 1.0  # of AdamW's usual learning rate, where lr = None

    @classmethod
    def fast(cls, **settings: Any) -> Self:
        """Return the method with settings for a short training.

        Where ``settings`` do not name them: 20 epochs, ``schedule="triangular"``, ``average=1``, and ``warm_up``
        and ``ramp`` of at most a quarter of the epochs. All else has its default; printing the model shows it.
        """
        return cls(**fast_settings(cls, settings))

    # --- what a method may redefine -----------------------------------------------------------------------

    def start(self, data: Data) -> None:
        """Make the networks and label tables: every tensor and module set here is saved and restored."""
        self.network_ = self.new_network(data, data.n_classes)
        if self.outside != 0:
            rate = 0.0 if isinstance(self.outside, str) else self.outside
            self.outside_rate_ = data.weight.new_full((*data.weight.shape[:-1], 1, 1), rate)
            self.outside_scale_ = torch.zeros_like(self.outside_rate_)

    def start_epoch(self, epoch: int, data: Data) -> None:
        """Do what must be done between epochs, where a method has phases."""

    def step(self, batch: Batch) -> Tensor | Iterable[Tensor]:
        """Return the losses (..., B) of a batch and refresh its label tables.

        Written with ``yield`` the method goes on after the weights have been updated by the loss it yielded.
        """
        raise NotImplementedError("a method defines step(batch)")

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Return the optimiser's parameter groups."""
        return [{"params": list(self.network_.parameters()), "weight_decay": self.weight_decay_}]

    def class_scores(self, x: Tensor) -> Tensor:
        """Return scores (..., B, K) whose softmax is the predicted distribution."""
        scores: Tensor = self.network_(x)
        return scores

    def label_posterior(self, x: Tensor, candidates: Tensor) -> Tensor:
        """Return the distribution of the correct label over the candidates (..., B, K), a mask or weights."""
        return F.posterior(self.class_scores(x), candidates)

    # --- defaults that depend on the network and the rows (docs/results/defaults.md) -------------------------

    @property
    def optimizer_(self) -> str:
        """The optimiser that the fit has."""
        return self._named_optimizer() or ("adamw" if self._depth() in self.by_adamw else "sgd")

    def _named_optimizer(self) -> str | None:
        """The optimiser by the settings alone: a rate or decay that is given by itself is one of SGD."""
        given = self.lr is not None or self.weight_decay is not None
        return "sgd" if self.optimizer is None and given else self.optimizer

    @property
    def lr_(self) -> float:
        """The learning rate that the fit has: ``lr``, or where that is None what its documentation says."""
        return self.rate_by(self.optimizer_)

    @property
    def weight_decay_(self) -> float:
        """The weight decay that the fit has."""
        return self.decay_by(self.optimizer_)

    def rate_by(self, optimizer: str) -> float:
        """Return the learning rate of a network that this optimiser trains, which need not be the fit's own."""
        if self.lr is not None and optimizer == self.optimizer_:
            return self.lr
        tuned = _TUNING if self._is_tuned() else 1.0
        if optimizer == "adamw":
            return _OF_ADAMW[self._depth()][0] * self.adamw_share * tuned
        if self._depth() == "deep":
            return self.largest_lr * tuned
        return self.largest_lr * min(1.0, _INPUTS / self._inputs())  # the curvature of a first layer grows with it

    def decay_by(self, optimizer: str) -> float:
        """Return the weight decay of a network that this optimiser trains."""
        if self.weight_decay is not None and optimizer == self.optimizer_:
            return self.weight_decay
        if optimizer == "adamw":
            many = self._depth() == "linear" and self._inputs() > _INPUTS
            return _MANY_INPUTS_DECAY if many else _OF_ADAMW[self._depth()][1]
        return _DECAY if self._depth() == "deep" else self.decay_of_tables

    @property
    def batch_size_(self) -> int:
        """The number of rows in a step of the fit."""
        return self.batch_of(self.training_rows_)

    def batch_of(self, rows: int) -> int:
        """Return the number of rows in a step of a fit on so many rows."""
        size = self.batch_size
        if size is None:
            size = _BATCH if self._depth() == "deep" else max(_FEWEST, min(_BATCH, rows // _STEPS))
        return min(size, rows)

    def _inputs(self) -> int:
        """Return how many numbers the first layer sees of a row."""
        if is_frozen(self.network):
            return cast(nn.Linear, self.network_.head).in_features
        return prod(self.input_shape_ or (self.n_features_in_,))

    def _is_tuned(self) -> bool:
        return is_pretrained(self.network) and not is_frozen(self.network)

    def _depth(self) -> str:
        """Tell the linear and the mlp network, for which defaults were chosen, from deep ones."""
        if is_frozen(self.network):  # a linear layer on standardised features
            return "linear"
        if self.network == "auto" and self.input_shape_ is None:
            return "mlp"
        return str(self.network) if self.network in ("linear", "mlp") else "deep"

    # --- what training asks --------------------------------------------------------------------------------

    def keeps_sets_sparse(self) -> bool:
        """Tell whether sparse sets may stay so; a class made of another one need not be as that one is."""
        return bool(vars(type(self)).get("zero_off_sets", False)) and self.outside == 0

    def set_training_rows(self, data: Data) -> None:
        """Note the sizes by which label tables are known: of rows, and of candidates where these are sparse."""
        self.training_rows_ = len(data)
        sets = data.sets
        self.training_candidates_ = len(sets.columns) if isinstance(sets, DeviceSets) else None

    def weigh_outside(self, epoch: int, data: Data) -> None:
        """From a tenth of the epochs on, weigh labels outside the sets so that they are true as often as said."""
        if self.outside == 0 or epoch < max(1, self.epochs // _PLAIN_SHARE):
            return
        with evaluating(self.modules()), eager(self.compile):
            r, candidates = data.of_sample(_ROWS_WEIGHED, self.label_posterior)
        scale = F.alim_scale if self.outside_rule == "alim" else F.outside_scale
        self.outside_scale_.copy_(scale(r, candidates, self.outside_rate_))

    def seen(self, batch: Batch) -> Batch:
        """Return a batch whose labels outside the sets have their present weights."""
        if self.outside == 0:
            return batch
        return replace(batch, candidates=F.scale_outside(batch.candidates, self.outside_scale_))

    def row_posterior(self, x: Tensor, candidates: Tensor) -> Tensor:
        """`label_posterior` with the labels outside the sets, where ``outside`` says that they may be true."""
        if self.outside != 0:
            candidates = F.outside_weights(candidates, x.dtype, self.outside_rule)
            candidates = F.scale_outside(candidates, self.outside_scale_.to(x))
        return self.label_posterior(x, candidates)

    def new_network(self, data: Data, outputs: int) -> networks.Network:
        """Make a network of the chosen architecture with so many outputs, on the device of the data.

        Where ``network`` is a module, this is a copy of it, and as soon as there is a ``network_`` a copy with
        other weights: the module that was given is the one that predicts.
        """
        redraw = hasattr(self, "network_")
        bf16 = self.precision == "bf16"
        known = getattr(self, "architecture_", None)  # while a model file is read
        network = networks.build(self.network, data.shape, outputs, bf16, self.compile, redraw, known)
        network = network.to(data.weight.device, data.dtype)
        network.rows_at_once = self.rows_at_once
        # Channels beside each other in memory make convolutions on a GPU several times faster.
        if data.weight.device.type == "cuda" and len(data.shape) == 3:
            network = network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        if not isinstance(self.network, str):
            check_own_network(network, self.network, data, outputs, type(self).__name__, self.modules())
        return network

    def thread_count(self) -> int | None:
        """Return the number of CPU threads to compute with; None leaves it as it is."""
        if self.threads is None and networks.is_small(self.network, self.input_shape_ or ()):
            return 1
        return self.threads

    def identity(self) -> dict[str, Any]:
        """Return every parameter that can change what is learned, in a form that JSON can hold."""
        traceless = names_with(self, Role.TRACELESS)
        settings = {field.name: getattr(self, field.name) for field in fields(self)}
        for name, value in first_values(self).items():  # files from before this field stay files of this method
            if settings[name] == value:
                del settings[name]
        settings["optimizer"] = self.optimizer_
        if self.optimizer_ == FIRST_OPTIMIZER:
            del settings["optimizer"]
        return {"method": type(self).__name__} | {
            name: _describe(value) for name, value in settings.items() if name not in traceless
        }

    def open_number(self) -> tuple[str, tuple[float, ...]] | None:
        """Return the attribute of a number that held-out rows are to choose, and its values; None: there is none.

        The attribute is a tensor that `start` has made.
        """
        return None

    def stack_settings(self) -> dict[str, Any]:
        """Return the settings in which all trials of a stack agree."""
        own = names_with(self, Role.VARIES_IN_STACK)
        settings = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in own}
        return settings | {"optimizer": self._named_optimizer()}

    def step_attributes(self) -> dict[str, Any]:
        """Return the attributes that steps may depend on: not what `fit` itself sets, nor what no step reads."""
        unread = {*names_with(self, Role.VARIES_IN_STACK), *Learned.__annotations__} - {
            *names_with(self, Role.VECTOR_IN_STACK)
        }
        return {name: value for name, value in vars(self).items() if name not in unread}


def _describe(value: Any) -> Any:
    """Return a setting in a form that JSON can hold; a module, a factory or a random state by a name."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str | int | float | None):
        return value
    if isinstance(value, dict):
        return {str(name): _describe(item) for name, item in value.items()}
    if isinstance(value, nn.Module):
        return describe_module(value)
    return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', type(value).__name__)}"
