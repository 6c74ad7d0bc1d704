"""MethodBase: the settings that all methods share, and what a method may define. It knows nothing of fitting."""

from collections.abc import Iterable
from dataclasses import fields
from os import PathLike
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from oneof import functional as F
from oneof.augment import PIPELINES, is_views
from oneof.estimator.fields import Role, choice, count, hyperparameters, names_with, number, setting
from oneof.estimator.state import Learned
from oneof.nn import networks
from oneof.train.batch import Batch, Data
from oneof.train.loop import SCHEDULES


def _accepts_views(value: Any) -> bool:
    return value is None or is_views(value)


@hyperparameters
class MethodBase(Learned):
    """Settings, networks and steps of a method.


    Parameters
    ----------
    network : str or callable, default="auto"
        Architecture: a name of `oneof.nn.networks.NETWORKS`, or auto, which is a LeNet for images and a network with
        one hidden layer for tables. A callable ``(input_shape, outputs) -> torch.nn.Module`` makes your own.
    epochs, batch_size, lr, momentum, weight_decay
        Stochastic gradient descent. The rest of rows that fills no batch is left out, another rest each epoch.
    schedule : {"constant", "cosine"}, default="constant"
        Learning rate over the epochs: lr throughout, or falling to 0 along half a cosine.
    validation_fraction : float, default=0
        Share of the training rows held out and judged by their own candidate sets.
    patience : int or None, default=None
        Stop when the validation score has not risen for so many epochs.
    views : str or None, default=None
        Make versions of each example, such as "weak+strong+strong" (images) or "plain+jitter+jitter" (tables):
        names of `oneof.augment.views.PIPELINES` joined by "+". A method with one view trains on the first.
    flips : bool, default=True
        Whether views may mirror images; False for digits and letters.
    random_state : int, RandomState or None, default=None
        Same seed, same machine, same number of threads: the same weights to the last bit on CPU.
    device : str, default="auto"
        "auto" (a GPU when there is one), "cpu", "cuda", "cuda:1".
    precision : {"fp32", "bf16", "fp64"}, default="fp32"
        Arithmetic inside the networks; label mathematics is never below float32.
    compile : bool, default=False
        Whether networks go through torch.compile: minutes once, faster steps of deep networks on a GPU. LeNet and
        ResNet-32 in bfloat16 have faster kernels, which are used instead.
    deterministic : bool, default=False
        Whether convolutions on a GPU give the same bits every time, which is slower; on a CPU they always do.
    threads : int or None, default=None
        CPU threads; None is 1 for the linear and mlp networks (faster for these) and torch's own number else.
    checkpoint : path or None, default=None
        File from which a killed fit goes on; written at most every 30 seconds.
    verbose : int, default=0
        1 shows progress.
    """

    network: str | networks.Factory = "auto"
    epochs: int = count(100)
    batch_size: int = count(100)
    lr: float = number(0.1, "> 0")
    momentum: float = number(0.9, "in [0, 1)")
    weight_decay: float = number(1e-3, ">= 0")
    schedule: str = choice(*SCHEDULES)
    validation_fraction: float = number(0.0, "in [0, 1)")
    patience: int | None = count(None)
    views: str | None = setting(None, f"None or names of {[*PIPELINES]} joined by '+'", _accepts_views)
    flips: bool = setting(True, "True or False", lambda value: isinstance(value, bool))
    random_state: int | np.random.RandomState | None = None
    device: str = "auto"
    precision: str = choice("fp32", "bf16", "fp64")
    compile: bool = setting(False, "True or False", lambda value: isinstance(value, bool))
    deterministic: bool = setting(False, "True or False", lambda value: isinstance(value, bool))
    threads: int | None = count(None)
    checkpoint: str | PathLike[str] | None = None
    verbose: int = count(0, ">= 0")

    version: ClassVar[int] = 1  # raised when the same settings give other numbers
    needs_views: ClassVar[bool] = False  # whether the method compares several views of each example

    # --- what a method may redefine -----------------------------------------------------------------------

    def start(self, data: Data) -> None:
        """Make the networks and label tables: every tensor and module set here is saved and restored."""
        self.network_ = self.new_network(data, data.n_classes)

    def start_epoch(self, epoch: int, data: Data) -> None:
        """Do what must be done between epochs, where a method has phases."""

    def step(self, batch: Batch) -> Tensor | Iterable[Tensor]:
        """Return the losses (..., B) of a batch and refresh its label tables.

        Written with ``yield`` the method goes on after the weights have been updated by the loss it yielded.
        """
        raise NotImplementedError("a method defines step(batch)")

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Return the optimiser's parameter groups."""
        return [{"params": list(self.network_.parameters()), "weight_decay": self.weight_decay}]

    def class_scores(self, x: Tensor) -> Tensor:
        """Return scores (..., B, K) whose softmax is the predicted distribution."""
        scores: Tensor = self.network_(x)
        return scores

    def label_posterior(self, x: Tensor, candidates: Tensor) -> Tensor:
        """Return the distribution of the correct label over the candidates (..., B, K)."""
        return F.posterior(self.class_scores(x), candidates)

    # --- what training asks --------------------------------------------------------------------------------

    def new_network(self, data: Data, outputs: int) -> networks.Network:
        """Make a network of the chosen architecture with so many outputs, on the device of the data."""
        network = networks.build(self.network, data.shape, outputs, self.precision == "bf16", self.compile)
        network = network.to(data.weight.device, data.dtype)
        # Channels beside each other in memory make convolutions on a GPU several times faster.
        if data.weight.device.type == "cuda" and len(data.shape) == 3:
            network = network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
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
        return {"method": type(self).__name__} | {
            name: value if isinstance(value, str | int | float | None) else _describe(value)
            for name, value in settings.items()
            if name not in traceless
        }

    def stack_settings(self) -> dict[str, Any]:
        """Return the settings in which all trials of a stack agree."""
        own = names_with(self, Role.VARIES_IN_STACK)
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name not in own}

    def step_attributes(self) -> dict[str, Any]:
        """Return the attributes that steps may depend on: not what `fit` itself sets, nor what no step reads."""
        unread = {*names_with(self, Role.VARIES_IN_STACK), *Learned.__annotations__} - {
            *names_with(self, Role.VECTOR_IN_STACK)
        }
        return {name: value for name, value in vars(self).items() if name not in unread}


def _describe(value: Any) -> str:
    """Name a network factory or a random state."""
    return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', type(value).__name__)}"
