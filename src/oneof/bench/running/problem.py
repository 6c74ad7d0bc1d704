"""The problem of a run: the rows of one split and their candidate sets."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from oneof.bench.candidate_files import CandidateSets, read_likelihoods, read_sets, write_scores, write_sets
from oneof.bench.record import CandidateFacts
from oneof.data import corrupt, load_dataset
from oneof.data.annotator import Annotator
from oneof.data.container import PartialLabels
from oneof.data.generate import annotator_scores, asks_annotator, checksum, generate, set_likelihoods
from oneof.data.own import OwnData, load_own
from oneof.errors import InputError
from oneof.io.schema import json_misfit
from oneof.metrics import approximated_accuracy
from oneof.train.checkpoint import fingerprint
from oneof.train.runtime import seed_for

_SUMMARY = ("mean_size", "one_label", "full", "certain_distractor")
_ANNOTATOR = ("annotator", "annotator_train_accuracy", "annotator_test_accuracy")


@dataclass(frozen=True)
class Problem:
    """Training, validation and test rows with true labels; candidate sets for the first two."""

    train: PartialLabels
    validation: PartialLabels
    test: PartialLabels
    facts: CandidateFacts  # what the candidate sets are like
    likelihoods: NDArray[Any] | None = None  # P(S | x, y = j) of the training rows, where a run may know it

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


def needs_preparing(spec: Mapping[str, Any]) -> bool:
    """Tell whether an annotator must be trained, or a file be checked, before the problem is there."""
    wanted = spec["candidates"]
    return wanted is not None and ("process" not in wanted or asks_annotator(wanted["process"]))


def make_problem(
    spec: Mapping[str, Any],
    root: str | Path | None = None,
    device: str = "auto",
    sets: Path | OwnData | None = None,
) -> Problem:
    """Load the data set, split it and make its candidate sets, or read them from the file ``sets``.

    A data set of one's own comes as ``sets``, too.
    """
    rows = _split_rows(spec, root, sets)
    everything, wanted, oracle = rows.pool, spec["candidates"], spec.get("labels") == "likelihoods"
    likelihoods = None
    if wanted is None:
        sizes = everything.candidates.sum(1)
        facts: dict[str, Any] = {"mean_size": float(sizes.mean()), "one_label": float((sizes == 1).mean())}
        if oracle:
            raise InputError(
                f"the oracle learns from the likelihoods of candidate sets, but those of {everything.name!r} were "
                "not drawn by this plan; name a process under [candidates], or leave the oracle out"
            )
    elif "process" in wanted:
        made = generate(
            everything, seed=wanted["seed"], test=rows.test, device=device, **_how(wanted, rows.training)
        )
        everything, facts = everything.with_candidates(made.candidates), _facts(made.manifest)
        if oracle:
            likelihoods = set_likelihoods(everything, device=device, **_how(wanted, rows.training))
    else:
        found = _sets_of(sets, everything, wanted)
        everything, facts = everything.with_candidates(found.candidates), _facts(found.manifest)
        facts |= corrupt.summary(found.candidates)
        if oracle:
            assert isinstance(sets, Path)
            likelihoods = read_likelihoods(sets, found)
    known = cast(CandidateFacts, {**facts, "sha256": checksum(everything.candidates)})
    parts = everything.take(rows.training), everything.take(rows.validation), rows.test
    return Problem(*parts, known, None if likelihoods is None else likelihoods[rows.training])


def write_problem_sets(
    spec: Mapping[str, Any], path: Path, root: str | Path | None, device: str, own: OwnData | None = None
) -> None:
    """Draw the candidate sets of a run and write them into a file, the scores of their annotator beside it."""
    rows, wanted = _split_rows(spec, root, own), spec["candidates"]
    how = _how(wanted, rows.training)
    made = generate(rows.pool, seed=wanted["seed"], test=rows.test, device=device, **how)
    scores = None
    if how["annotator"] is not None:
        scores = write_scores(path, annotator_scores(rows.pool, how["annotator"], rows.training, device))
    write_sets(path, rows.pool.classes, made, scores)


class _Rows(NamedTuple):
    """All rows of a data set that get candidate sets, which of them are for what, and the test rows."""

    pool: PartialLabels
    training: NDArray[Any]
    validation: NDArray[Any]
    test: PartialLabels


def _split_rows(spec: Mapping[str, Any], root: str | Path | None, source: Path | OwnData | None = None) -> _Rows:
    loaded: Any = load_own(source) if isinstance(source, OwnData) else load_dataset(spec["dataset"], root)
    split = spec["split"]
    pool = loaded[0] if isinstance(loaded, tuple) else loaded
    order = np.random.default_rng(seed_for(split["seed"], "split")).permutation(len(pool))
    sizes = [
        round(split["validation"] * len(order)),
        0 if isinstance(loaded, tuple) else round(split["test"] * len(order)),
    ]
    validation, held_out, training = (np.sort(rows) for rows in np.split(order, np.cumsum(sizes)))
    return _Rows(pool, training, validation, loaded[1] if isinstance(loaded, tuple) else loaded.take(held_out))


def _sets_of(file: Path | OwnData | None, pool: PartialLabels, wanted: Mapping[str, Any]) -> CandidateSets:
    """Return the sets of a file, which must still be those that the plan was read with."""
    if not isinstance(file, Path):
        raise InputError(f"the candidate sets of {pool.name!r} are those of a file, but its path is not given")
    found = read_sets(file, pool.name)
    if checksum(found.candidates) != wanted["sha256"] or wanted.get("scores_sha256") not in (
        None,
        found.scores_sha256,
    ):
        raise InputError(f"the candidate sets in {str(file)!r} have changed since the plan was read; run it again")
    if found.data_sha256 not in (None, fingerprint(pool.x, pool.y)):
        raise InputError(
            f"the candidate sets in {str(file)!r} were made for other rows of {pool.name!r}, or in another order; "
            "make them again from the same files"
        )
    return found


def _facts(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a manifest says about sets and their annotator; one that was tampered with says nothing."""
    facts = {name: manifest[name] for name in (*_SUMMARY, *_ANNOTATOR) if manifest.get(name) is not None}
    return facts if json_misfit(facts, CandidateFacts) is None else {}


def _how(wanted: Mapping[str, Any], training: NDArray[Any]) -> dict[str, Any]:
    """Return how sets are drawn, as arguments of `generate` and `set_likelihoods`."""
    annotator = Annotator(**wanted["annotator"]) if "annotator" in wanted else None
    return {
        "process": wanted["process"],
        "parameters": wanted["parameters"],
        "annotator": annotator,
        "rows": training,
    }
