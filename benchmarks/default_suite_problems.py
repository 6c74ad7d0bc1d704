"""The problems of the default suite: tables and images, few and many classes, every way candidate sets arise.

A problem and a seed make training rows with candidate sets, and validation and test rows with true labels. Tables
are drawn from mixtures of Gaussians or labelled by random networks; the real ones are split. ``make`` is a pure
function of the seed and of the published files.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from votes import draw, features

from oneof import CC
from oneof.data import load_dataset
from oneof.data.corrupt import PROCESSES
from oneof.data.generate import asks_annotator

Array = NDArray[Any]
JUDGED = 3000  # rows for validation, and as many for the test, of problems that can have as many as they like


class Rows(NamedTuple):
    """What a method learns from and is judged by."""

    x: Array
    candidates: Array
    x_validation: Array
    y_validation: Array
    x_test: Array
    y_test: Array


@dataclass(frozen=True)
class Problem:
    """How rows are made from a seed."""

    rows: Callable[[np.random.Generator], tuple[Array, Array, Array | None]]  # x, y, and sets if it has its own
    train: int  # rows; the rest is for validation and test, half and half
    process: str | None = None  # None: the rows come with their own candidate sets
    parameters: Mapping[str, Any] = field(default_factory=dict)
    network: str = "auto"
    views: str = "plain+jitter+jitter"  # of methods that compare views
    seeds: int = 2
    fast_on_gpu: bool = False  # many times faster there
    needs_gpu: bool = False  # too long for a CPU

    def make(self, seed: int) -> Rows:
        """Draw rows, split them, and hide the training labels."""
        rng = np.random.default_rng(seed)
        x, y, candidates = self.rows(rng)
        order = rng.permutation(len(y))
        train, rest = order[: self.train], order[self.train : self.train + 2 * JUDGED]
        validation, test = rest[: len(rest) // 2], rest[len(rest) // 2 :]
        sets = self._hidden(x[train], y[train], seed) if candidates is None else candidates[train]
        return Rows(x[train], sets, x[validation], y[validation], x[test], y[test])

    def _hidden(self, x: Array, y: Array, seed: int) -> Array:
        assert self.process is not None
        given = dict(self.parameters)
        if asks_annotator(self.process):
            given["scores"] = annotator_scores(x, y, seed)
        if "n_classes" in signature(PROCESSES[self.process]).parameters:
            given["n_classes"] = int(y.max()) + 1
        return PROCESSES[self.process](y, seed=seed, **given)


def annotator_scores(x: Array, y: Array, seed: int) -> Array:
    """Return the log-probabilities of a small network that was trained on the true labels, as in the demo."""
    # Spelled out, so that the problems stay the same when defaults change.
    settings: dict[str, Any] = {"epochs": 30, "batch_size": 100, "lr": 0.05, "weight_decay": 1e-4, "momentum": 0.9}
    model = CC(network="mlp", schedule="constant", random_state=1000 + seed, device="cpu", threads=1, **settings)
    return model.fit(x, np.eye(int(y.max()) + 1, dtype=bool)[y]).predict_log_proba(x)


# --- rows ---------------------------------------------------------------------------------------------------


def mixture(rng: np.random.Generator, n: int, features: int, classes: int, clusters: int, spread: float) -> Any:
    """Draw from ``clusters`` Gaussians for each class, whose centres lie ``spread`` apart from the origin."""
    centres = rng.normal(size=(classes, clusters, features))
    centres *= spread / np.linalg.norm(centres, axis=-1, keepdims=True)
    y = np.r_[np.arange(classes), rng.integers(classes, size=n - classes)]  # every class is there
    x = centres[y, rng.integers(clusters, size=n)] + rng.normal(size=(n, features))
    return x.astype(np.float32), y, None


def teacher(rng: np.random.Generator, n: int, features: int, classes: int, hidden: int, noise: float) -> Any:
    """Label rows, whose features have few factors, by a random network with noise on its outputs."""
    factors = min(features, max(8, features // 10))
    z = rng.normal(size=(n, factors))
    x = z @ rng.normal(size=(factors, features)) / np.sqrt(factors) + 0.3 * rng.normal(size=(n, features))
    h = np.tanh(z @ rng.normal(size=(factors, hidden)) * 1.5 / np.sqrt(factors))
    u = h @ rng.normal(size=(hidden, classes)) / np.sqrt(hidden)
    y = (u / u.std() + noise * rng.gumbel(size=u.shape)).argmax(1)
    y[:classes] = np.arange(classes)  # every class is there
    return x.astype(np.float32), y, None


def real(rng: np.random.Generator, name: str) -> Any:
    """Return a real table with its own candidate sets."""
    data = load_dataset(name)
    return data.x.astype(np.float32), data.y, data.candidates


def digits(rng: np.random.Generator) -> Any:
    """Return scikit-learn's digits."""
    data = load_digits()
    return data.data.astype(np.float32), data.target, None


def fashion(rng: np.random.Generator, flat: bool) -> Any:
    """Return some images of Fashion-MNIST."""
    data, _ = load_dataset("fashion-mnist")
    some = rng.permutation(len(data))[: 3 * JUDGED]
    x = data.x[some]
    return (x.reshape(len(x), -1).astype(np.float32) if flat else x), data.y[some], None


def voted(rng: np.random.Generator) -> Any:
    """Return a table whose candidates are the labels that three of thirty annotators named."""
    x, y, _ = mixture(rng, 2000 + 2 * JUDGED, 40, 10, 3, 3.0)
    votes = draw("simulated", 3, y, np.zeros(0), int(rng.integers(2**31)))
    return x, y, np.stack([(votes == k).any(1) for k in range(10)], 1)


def people(rng: np.random.Generator) -> Any:
    """Return features of CIFAR-10's test images with the labels that three people named."""
    data: Any = load_dataset("cifar-10h")
    some = np.sort(rng.permutation(len(data))[:6000])
    votes = draw("people", 3, data.y[some], data.counts[some], int(rng.integers(2**31)))
    return features(data.x[some]), data.y[some], np.stack([(votes == k).any(1) for k in range(10)], 1)


def _pool(train: int) -> int:
    return train + 2 * JUDGED


PROBLEMS: dict[str, Problem] = {
    "lost": Problem(partial(real, name="lost"), 674, seeds=6),
    "msrcv2": Problem(partial(real, name="msrcv2"), 1054, seeds=4),
    "birdsong": Problem(partial(real, name="birdsong"), 3000),
    "lost, linear": Problem(partial(real, name="lost"), 674, network="linear", seeds=6),
    "digits": Problem(digits, 1078, "instance", {"rate": 0.4}, seeds=4),
    "few rows": Problem(partial(mixture, n=_pool(400), features=20, classes=4, clusters=3, spread=3.0), 400,
                        "uniform", {"rate": 0.4}, seeds=4),
    "pairs": Problem(partial(teacher, n=_pool(2000), features=50, classes=5, hidden=20, noise=0.1), 2000,
                     "pair", {"rate": 0.7}),
    "classes": Problem(partial(mixture, n=_pool(2000), features=30, classes=10, clusters=2, spread=3.5), 2000,
                       "class", {"matrix": "04"}),
    "any set": Problem(partial(teacher, n=_pool(4000), features=100, classes=10, hidden=30, noise=0.1), 4000,
                       "uniform-sets"),
    "groups": Problem(partial(mixture, n=_pool(3000), features=60, classes=30, clusters=1, spread=4.0), 3000,
                      "hierarchical", {"groups": list(np.arange(30) // 5), "rate": 0.5}),
    "decomposition": Problem(partial(teacher, n=_pool(3000), features=40, classes=20, hidden=40, noise=0.05), 3000,
                             "decomposition", {"mean_size": 4.0}),
    "votes": Problem(voted, 2000),
    "cifar-10h": Problem(people, 2000),
    "fashion, mlp": Problem(partial(fashion, flat=True), 3000, "instance", {"rate": 0.3}, "mlp"),
    "fashion, lenet": Problem(partial(fashion, flat=False), 2000, "instance", {"rate": 0.3}, "lenet",
                              "weak+strong+strong", needs_gpu=True),
    "90 classes, part": Problem(partial(teacher, n=_pool(4000), features=500, classes=90, hidden=100, noise=0.05),
                                4000, "instance", {"rate": 0.02}, fast_on_gpu=True),
    "90 classes": Problem(partial(teacher, n=_pool(20000), features=500, classes=90, hidden=100, noise=0.05),
                          20000, "instance", {"rate": 0.02}, needs_gpu=True),
}  # fmt: skip
