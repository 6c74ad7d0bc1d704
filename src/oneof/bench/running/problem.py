"""The problem of a run: the rows of one split and their candidate sets."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oneof.data import load_dataset
from oneof.data.annotator import Annotator
from oneof.data.container import PartialLabels
from oneof.data.generate import asks_annotator, generate
from oneof.metrics import approximated_accuracy
from oneof.train.runtime import seed_for

_SUMMARY = ("mean_size", "one_label", "full", "certain_distractor", "sha256")
_ANNOTATOR = ("annotator", "annotator_train_accuracy", "annotator_test_accuracy")


@dataclass(frozen=True)
class Problem:
    """Training, validation and test rows with true labels; candidate sets for the first two."""

    train: PartialLabels
    validation: PartialLabels
    test: PartialLabels
    facts: dict[str, Any]  # what the candidate sets are like

    def measure(self, probabilities: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """Measure models (...) by their probabilities (..., M, K) of validation rows and then of test rows."""
        validation, n, predicted = self.validation, len(self.validation), probabilities.argmax(-1)
        values = approximated_accuracy(probabilities[..., :n, :], validation.candidates)
        return {
            "validation_accuracy": (predicted[..., :n] == validation.y).mean(-1),
            "approximated_accuracy": values.mean(-1),
            "covering_rate": (values > 0).mean(-1),  # only a candidate is worth something
            "test_accuracy": (predicted[..., n:] == self.test.y).mean(-1),
        }


def needs_training(spec: Mapping[str, Any]) -> bool:
    """Tell whether an annotator must be trained before the problem is there."""
    return spec["candidates"] is not None and asks_annotator(spec["candidates"]["process"])


def make_problem(spec: Mapping[str, Any], root: str | Path | None = None, device: str = "auto") -> Problem:
    """Load the data set, split it and make its candidate sets."""
    loaded: Any = load_dataset(spec["dataset"], root)
    split = spec["split"]
    everything = loaded[0] if isinstance(loaded, tuple) else loaded
    order = np.random.default_rng(seed_for(split["seed"], "split")).permutation(len(everything))
    sizes = [
        round(split["validation"] * len(order)),
        0 if isinstance(loaded, tuple) else round(split["test"] * len(order)),
    ]
    validation, held_out, training = (np.sort(rows) for rows in np.split(order, np.cumsum(sizes)))
    test = loaded[1] if isinstance(loaded, tuple) else loaded.take(held_out)
    labelled, facts = _with_candidates(everything, training, test, spec["candidates"], device)
    return Problem(labelled.take(training), labelled.take(validation), test, facts)


def _with_candidates(
    pool: PartialLabels, training: NDArray[Any], test: PartialLabels, wanted: Mapping[str, Any] | None, device: str
) -> tuple[PartialLabels, dict[str, Any]]:
    if wanted is None:
        sizes = pool.candidates.sum(1)
        return pool, {"mean_size": float(sizes.mean()), "one_label": float((sizes == 1).mean())}
    generated = generate(
        pool,
        wanted["process"],
        seed=wanted["seed"],
        parameters=wanted["parameters"],
        annotator=Annotator(**wanted["annotator"]) if "annotator" in wanted else None,
        rows=training,
        test=test,
        device=device,
    )
    facts = {
        name: generated.manifest[name]
        for name in (*_SUMMARY, *_ANNOTATOR)
        if generated.manifest.get(name) is not None
    }
    return pool.with_candidates(generated.candidates), facts
