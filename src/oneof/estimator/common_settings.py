"""The settings that all methods have."""

from numbers import Integral, Real
from os import PathLike
from typing import Any

import numpy as np
from torch import nn

from oneof.augment.views import PIPELINES, is_views
from oneof.estimator.class_weights import accepts_class_weight
from oneof.estimator.fields import Role, choice, count, flag, hyperparameters, number, setting
from oneof.nn.networks import NETWORKS, Factory
from oneof.train.course import SCHEDULES
from oneof.train.rows import SCALINGS


def _accepts_views(value: Any) -> bool:
    return value is None or is_views(value)


def accepts_random_state(value: Any) -> bool:
    """Tell whether a value can seed what is drawn."""
    if isinstance(value, Integral):
        return not isinstance(value, bool) and 0 <= int(value) < 2**32
    return value is None or isinstance(value, np.random.RandomState)


def accepts_outside(value: Any) -> bool:
    """Tell whether a value can be the rate of rows without their true label."""
    if isinstance(value, str):
        return value == "auto"
    return isinstance(value, Real) and not isinstance(value, bool) and 0 <= float(value) < 1


def _accepts_path(value: Any) -> bool:
    return value is None or (isinstance(value, str | PathLike) and str(value) != "" and "\0" not in str(value))


@hyperparameters
class CommonSettings:
    """What every method can be told about its networks, its training and where to compute."""

    network: str | nn.Module | Factory = setting(
        "auto",
        f"one of {['auto', *NETWORKS]}, a pretrained one such as timm:resnet18, a torch.nn.Module or a callable",
        doc="Architecture; auto is lenet for images and mlp, one hidden layer, for tables. timm:NAME, "
        "torchvision:NAME and hf:NAME are pretrained networks for images, which are fine-tuned; with +frozen "
        "behind the name only a linear layer on their features is trained. Of a module of your own a copy is "
        "trained. A callable ``(input_shape, outputs) -> torch.nn.Module`` makes networks of any number of "
        "outputs, which some methods need.",
    )
    epochs: int = count(100, doc="Passes over the training rows.")
    batch_size: int | None = count(
        None,
        doc="Rows in each step. Rows that do not fill a batch are left out, different ones in each epoch. None is "
        "100, but for the linear and mlp networks a twentieth of the rows, from 32 to 100.",
    )
    rows_at_once: int | None = count(
        None,
        doc="Most rows of a step that pass a network together in training, every version of a row counting; None "
        "is all. Fewer take less memory and up to a third more time: parts are computed twice, and gradients "
        "added up. What is learned is the same but for rounding, unless layers normalise or draw: batch "
        "normalisation sees one part at a time.",
        roles=Role.LATER,
    )
    lr: float | None = number(
        None,
        "> 0",
        doc="Learning rate. With adamw None is 0.01 for the mlp network, 0.1 for the linear one and with "
        "+frozen, else 0.001, and 0.0001 for pretrained ones (LWS: 0.3 of these). With sgd it is 0.1 "
        "(VALEN: 0.03), but for the linear and mlp networks on more than 100 features so much less, "
        "10 / features: steps grow with the number of inputs. Pretrained networks have a tenth; with +frozen "
        "their features count as those of a linear network.",
        roles=Role.VECTOR_IN_STACK,
    )
    optimizer: str | None = choice(
        None,
        "sgd",
        "adamw",
        doc="Stochastic gradient descent with momentum, or AdamW, whose steps of a weight do not grow with its "
        "gradients. None is adamw for the linear and mlp networks and with +frozen, where it learns more from "
        "real tables (docs/results/defaults.md), unless lr or weight_decay is given: these are then sgd's, "
        "and a grid of rates with None among them mixes adamw and sgd. "
        "For other networks None is sgd, and for the linear one of LWS.",
        roles=Role.LATER,
    )
    momentum: float = number(
        0.9, "in [0, 1)", doc="Momentum; of adamw the share of the past in its mean gradient."
    )
    weight_decay: float | None = number(
        None,
        ">= 0",
        doc="Weight decay. That of adamw stands beside its gradients and is multiplied by the learning rate "
        "alone: None is 1 for the mlp network, 0.3 for the linear one and with +frozen, but 1 on more than 100 "
        "features, else 0.05. With sgd None is 0.005 (LWS: 0.001) for these networks, else 0.001.",
        roles=Role.VECTOR_IN_STACK,
    )
    schedule: str = choice(
        "cosine",
        *SCHEDULES,
        doc="Learning rate over the epochs: from lr down to 0 along half a cosine, or lr throughout (constant). "
        "triangular, for short trainings, rises from 0 to lr in the first fifth of all steps, and falls to 0.",
    )
    average: float = number(
        0.0,
        ">= 0",
        doc="Epochs over which weights are averaged: the moving average is what is judged and predicts. 0 takes "
        "the weights as they are.",
        roles=Role.LATER,
    )
    validation_fraction: float = number(
        0.0, "in [0, 1)", doc="Share of the training rows held out and judged by their own candidate sets."
    )
    patience: int | None = count(
        None,
        doc="Stop when the validation score has not risen for so many epochs; None never stops.",
        roles=Role.VARIES_IN_STACK,
    )
    outside: float | str = setting(
        0.0,
        "a number in [0, 1) or 'auto'",
        accepts_outside,
        doc="Share of rows whose true label is missing from their set; auto estimates it by further fits. 0 "
        "trusts every set.",
        roles=Role.LATER,
    )
    outside_rule: str = choice(
        "share",
        "alim",
        doc="How much labels off the sets weigh, where outside is not 0: so much that they have that share of all "
        "probability, or, by ALIM's rule, that one of them is the likeliest in that share of the rows.",
        roles=Role.LATER,
    )
    scaling: str | None = choice(
        None,
        *SCALINGS,
        doc="What the columns of a table are divided by, once each is centred by its mean: each by its own "
        "standard deviation (columns), or all by one number, the root of their mean variance (whole). Where "
        "variances say how much columns matter, as those of principal components and of embeddings do, whole "
        "keeps that. None is columns, but `oneof.resolve` then compares both. Images have one scale a channel.",
        roles=Role.VARIES_IN_STACK | Role.LATER,
    )
    views: str | None = setting(
        None,
        f"None or names of {[*PIPELINES]} joined by '+'",
        _accepts_views,
        doc="Versions made of each example, such as weak+strong+strong for images or plain+jitter+jitter for "
        "tables; None is the example itself.",
    )
    flips: bool = flag(True, doc="Whether views may mirror images; False for digits and letters.")
    class_weight: dict[Any, float] | str | None = setting(
        None,
        "None, 'balanced' or a dict of a number >= 0 for some of the classes",
        accepts_class_weight,
        doc="Weights c of the classes, 1 where a dict names none: a row counts by the mean weight of its "
        "candidates. 'balanced' takes c_j = n / (K n_j) with n_j the expected number of rows of class j, when "
        "each row is shared out evenly among its candidates.",
        roles=Role.VARIES_IN_STACK | Role.NOT_SAVED,
    )
    warm_start: bool = flag(
        False,
        doc="Whether another fit goes on from the weights and the scaling of the one before; phases such as "
        "warm_up and the label tables of rows begin anew. Classes, columns and networks must be the same.",
        roles=Role.TRACELESS | Role.VARIES_IN_STACK | Role.NOT_SAVED | Role.NOT_IN_PLANS,
    )
    random_state: int | np.random.RandomState | None = setting(
        None,
        "a whole number from 0 to 2**32 - 1, a RandomState or None",
        accepts_random_state,
        doc="Same seed, same machine, same number of threads: the same weights to the last bit on a CPU.",
        roles=Role.VARIES_IN_STACK | Role.NOT_SAVED | Role.NOT_IN_PLANS,
        option="--seed",
    )
    device: str = setting(
        "auto",
        "'auto', 'cpu', 'cuda' or a GPU such as 'cuda:1'",
        doc="Where to compute; auto is a GPU when there is one.",
        roles=Role.TRACELESS | Role.NOT_SAVED | Role.NOT_IN_PLANS,
        option="--device",
    )
    precision: str = choice(
        "fp32", "bf16", "fp64", doc="Arithmetic inside the networks; label mathematics is never below float32."
    )
    compile: bool = flag(
        False,
        doc="Whether networks go through torch.compile: minutes once, faster steps of deep networks on a GPU. "
        "LeNet and ResNet-32 in bfloat16 have faster kernels, which are used instead.",
    )
    deterministic: bool = flag(
        False,
        doc="Whether convolutions on a GPU give the same bits every time, which is slower; on a CPU they do.",
    )
    threads: int | None = count(
        None,
        "in [1, 1024]",
        doc="CPU threads, at most one for each core; None is 1 for the linear and mlp networks, which are faster "
        "so, else torch's number.",
        roles=Role.TRACELESS,
    )
    checkpoint: str | PathLike[str] | None = setting(
        None,
        "a path or None",
        _accepts_path,
        doc="File from which a killed fit goes on; it is written at most every 30 seconds.",
        roles=Role.TRACELESS | Role.VARIES_IN_STACK | Role.NOT_SAVED | Role.NOT_IN_PLANS,
    )
    verbose: int = count(
        0,
        ">= 0",
        doc="Whether to show progress: 0 does not, 1 does.",
        roles=Role.TRACELESS | Role.VARIES_IN_STACK | Role.NOT_SAVED | Role.NOT_IN_PLANS,
        option="--quiet",
    )
