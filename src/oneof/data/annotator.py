"""The annotator: a classifier trained on true labels, whose probabilities of wrong labels make the candidate sets.

The number of epochs decides how hard the sets are: after few epochs, the likely wrong labels are classes that look
alike; after too many, they are nearly random.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from oneof.estimator.classifier import PartialLabelClassifier
from oneof.estimator.features import check_rows
from oneof.estimator.fields import check, choice, count, number
from oneof.methods.cc import CC
from oneof.nn.networks import NETWORKS
from oneof.train.runtime import resolve_device

VERSION = 1  # goes into the key of every cached result of an annotator; raise it when its numbers change
_BATCH = 1024  # rows that share their statistics when mode is "batch"
_MANY_CLASSES = 100


@dataclass(frozen=True, kw_only=True)
class Annotator:
    """A classifier trained on true labels with cross-entropy, SGD and a cosine schedule.

    Parameters
    ----------
    network : str, default="auto"
        auto is the paper's choice: mlp5 for tables and gray images, resnet32 for colour images, resnext29 for
        colour images of 100 classes or more.
    epochs : int or None, default=None
        None is 20 for tables and gray images and 50 for colour images.
    lr, weight_decay, batch_size
        Stochastic gradient descent with momentum 0.9; the learning rate falls to 0 along a cosine.
    mode : {"eval", "batch"}, default="eval"
        Whether batch normalisation uses its running statistics, or those of 1024 rows at a time, as in the
        published code.
    seed : int, default=0
        Seed of the initial weights and of the order of the rows.
    """

    network: str = choice("auto", *NETWORKS)
    epochs: int | None = count(None)
    lr: float = number(0.05, "> 0")
    weight_decay: float = number(5e-4, ">= 0")
    batch_size: int = count(256)
    mode: str = choice("eval", "batch")
    seed: int = count(0, ">= 0")

    def __post_init__(self) -> None:
        check(self)

    def resolve(self, x: NDArray[Any], n_classes: int) -> "Annotator":
        """Return the annotator with network and epochs decided by the data."""
        colour = x.ndim == 4 and x.shape[3] > 1
        network, epochs = self.network, self.epochs
        if network == "auto":
            deep = "resnext29" if n_classes >= _MANY_CLASSES else "resnet32"
            network = deep if colour else "mlp5"
        if epochs is None:
            epochs = 50 if colour else 20
        return Annotator(**{**vars(self), "network": network, "epochs": epochs})

    def train(
        self,
        x: NDArray[Any],
        y: NDArray[Any],
        n_classes: int,
        device: str = "auto",
        precision: str = "fp32",
        verbose: int = 0,
    ) -> PartialLabelClassifier:
        """Fit on true labels: for sets of one label, the loss of CC is the cross-entropy."""
        decided = self.resolve(x, n_classes)
        settings: dict[str, Any] = {
            "network": decided.network,
            "epochs": decided.epochs,
            "batch_size": decided.batch_size,
            "lr": decided.lr,
            "weight_decay": decided.weight_decay,
            "schedule": "cosine",
            "random_state": decided.seed,
            "device": device,
            "precision": precision,
            "verbose": verbose,
        }
        return CC(**settings).fit(x, np.eye(n_classes, dtype=bool)[y])

    def scores(self, model: PartialLabelClassifier, x: NDArray[Any]) -> NDArray[Any]:
        """Return the log-probabilities (n, K) of all rows."""
        if self.mode == "eval":
            return model.predict_log_proba(x)
        rows = check_rows(model, x, fitting=False)
        device = resolve_device(model.device)
        network = model.network_.train()
        parts = []
        for part in np.array_split(rows, -(-len(rows) // _BATCH)):
            stored = model.scaler_.store(part, torch.float32).to(device)
            parts.append(
                network.forward_frozen_stats(model.scaler_.load(stored, torch.float32))
                .log_softmax(-1)
                .cpu()
                .numpy()
            )
        return np.concatenate(parts)
