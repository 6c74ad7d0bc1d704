"""Candidate sets for a data set: train the annotator where the process needs one, draw, and describe the result.

Weights of annotators and finished matrices are kept in the cache folder, named by the hash of the settings that
can change them; a second call with the same settings reads them back.
"""

import inspect
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from oneof.data import annotator as annotators
from oneof.data import corrupt
from oneof.data.annotator import Annotator
from oneof.data.catalogue import CIFAR100_SUPERCLASSES
from oneof.data.container import PartialLabels
from oneof.errors import InputError
from oneof.estimator.classifier import PartialLabelClassifier
from oneof.io import tensors as tensor_file
from oneof.io.files import cache_folder
from oneof.io.words import shown
from oneof.methods import load_model
from oneof.train.checkpoint import fingerprint

VERSION = 1  # goes into every key; raise it when the same settings give other sets
WRONG_LABELS = 4.0  # rate * K of the instance-dependent process in the paper, for 10 classes and for 100


@dataclass(frozen=True)
class Generated:
    """Candidate sets, and the manifest: the settings they were made with and statistics of the result."""

    candidates: NDArray[np.bool_]
    manifest: dict[str, Any]


def generate(
    data: PartialLabels,
    process: str = "instance",
    *,
    seed: int = 0,
    parameters: Mapping[str, Any] | None = None,
    annotator: Annotator | None = None,
    rows: NDArray[Any] | None = None,
    test: PartialLabels | None = None,
    device: str = "auto",
    precision: str = "fp32",
    cache: bool = True,
    verbose: int = 0,
) -> Generated:
    """Make candidate sets for all rows of a data set from its true labels.

    Parameters
    ----------
    data : PartialLabels
        Rows with true labels.
    process : str, default="instance"
        A name of `oneof.data.corrupt.PROCESSES`.
    seed : int, default=0
        Seed of the draws; the annotator has its own.
    parameters : mapping, optional
        Arguments of the process, such as ``{"rate": 0.4}``; without it, the rate of "instance" is 4 / K.
    annotator : Annotator, optional
        How the clean classifier is trained, for processes that depend on the instance.
    rows : array of int, optional
        The rows on which the annotator is trained; by default all.
    test : PartialLabels, optional
        Rows on which the annotator's accuracy is measured as well.
    device, precision, verbose
        As for every classifier of oneof.
    cache : bool, default=True
        Keep and reuse the annotator's weights and the sets.

    Returns
    -------
    Generated
    """
    labels = _true_labels(data)
    arguments, rows, decided = _decided(data, process, parameters, annotator, rows)
    settings = {
        "version": VERSION,
        "data": data.name,
        "data_sha256": fingerprint(data.x, labels),
        "process": process,
        "parameters": {name: _plain(value) for name, value in arguments.items()},
        "seed": seed,
        **_annotator_settings(decided, rows, precision, test),
    }
    path = cache_folder() / "candidates" / f"{_key(settings)}.safetensors" if cache else None
    if path is not None and path.is_file():
        return _read(path)
    facts: dict[str, Any] = {}
    if decided is not None:
        model = _annotator_model(decided, data, rows, settings, device, precision, cache, verbose)
        arguments["scores"] = decided.scores(model, data.x)
        facts |= _annotator_accuracies(decided, model, arguments["scores"][rows], labels[rows], test)
    candidates = corrupt.PROCESSES[process](labels, **arguments, seed=seed)
    facts |= corrupt.summary(candidates)
    facts["certain_distractor"] = corrupt.certain_distractors(corrupt.CHANCES[process](labels, **arguments))
    manifest = {**settings, **facts, "sha256": checksum(candidates)}
    generated = Generated(candidates, manifest)
    if path is not None:
        _write(generated, path)
    return generated


def set_likelihoods(
    data: PartialLabels,
    process: str,
    *,
    parameters: Mapping[str, Any] | None = None,
    annotator: Annotator | None = None,
    rows: NDArray[Any] | None = None,
    device: str = "auto",
    precision: str = "fp32",
) -> NDArray[Any]:
    """Return P(S | x, y = j) (n, K), up to a factor for each row, of sets that `generate` made so.

    Nobody has this but who made the sets: it shows what could be learned from them if the annotator were known.
    """
    arguments, rows, decided = _decided(data, process, parameters, annotator, rows)
    if decided is not None:
        arguments["scores"] = annotator_scores(data, decided, rows, device, precision)
    return scaled_likelihoods(data.candidates, process, arguments)


def annotator_scores(
    data: PartialLabels, annotator: Annotator, rows: NDArray[Any], device: str = "auto", precision: str = "fp32"
) -> NDArray[Any]:
    """Return the log-probabilities (n, K) by which `generate` draws; the annotator is trained, or read back."""
    decided = annotator.resolve(data.x, len(data.classes))
    settings = {
        "data_sha256": fingerprint(data.x, _true_labels(data)),
        **_annotator_settings(decided, rows, precision, None),
    }
    model = _annotator_model(decided, data, rows, settings, device, precision, cache=True, verbose=0)
    return decided.scores(model, data.x)


def scaled_likelihoods(candidates: NDArray[np.bool_], process: str, arguments: Mapping[str, Any]) -> NDArray[Any]:
    """Return P(S | x, y = j) (n, K) divided by its largest value in each row, given all arguments of the process.

    A set that cannot be, as rounded scores may have it, says nothing: all its labels count alike.
    """
    found = corrupt.set_log_likelihoods(candidates, process, arguments)
    best = found.max(1, keepdims=True)
    likelihoods: NDArray[Any] = np.where(np.isneginf(best), candidates, np.exp(found - np.maximum(best, -1e300)))
    return likelihoods


def _true_labels(data: PartialLabels) -> NDArray[Any]:
    if data.y is None:
        raise InputError(f"data set {shown(data.name)} has no true labels, but sets are made of them")
    return data.y


def _decided(
    data: PartialLabels,
    process: str,
    parameters: Mapping[str, Any] | None,
    annotator: Annotator | None,
    rows: NDArray[Any] | None,
) -> tuple[dict[str, Any], NDArray[Any], Annotator | None]:
    """Return the arguments of the process, the annotator's rows, and the annotator where it is asked."""
    asks, arguments = asks_annotator(process), _arguments(data, process, parameters or {})
    rows = np.arange(len(data)) if rows is None else np.sort(np.asarray(rows))
    return arguments, rows, (annotator or Annotator()).resolve(data.x, len(data.classes)) if asks else None


def checksum(candidates: NDArray[np.bool_]) -> str:
    """Return what tells candidate sets (n, K) from others."""
    return sha256(np.packbits(candidates).tobytes()).hexdigest()


def asks_annotator(process: str) -> bool:
    """Return whether a process depends on the instance, by the scores of an annotator."""
    if not isinstance(process, str) or process not in corrupt.PROCESSES:
        raise InputError(f"process is {shown(process)}, but must be one of {', '.join(corrupt.PROCESSES)}")
    return "scores" in inspect.signature(corrupt.PROCESSES[process]).parameters


def parameters_of(process: str) -> list[str]:
    """Return the names of the parameters that a user may choose; the other arguments come from the data set."""
    known = inspect.signature(corrupt.PROCESSES[process]).parameters
    return [name for name in known if name not in ("y", "n_classes", "scores", "groups", "seed")]


def _arguments(data: PartialLabels, process: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Complete the arguments of a process from the data set and refuse those that it does not know."""
    known, allowed = inspect.signature(corrupt.PROCESSES[process]).parameters, parameters_of(process)
    foreign = [name for name in parameters if name not in allowed]
    if foreign:
        takes = f"takes {', '.join(allowed)}" if allowed else "takes no parameters"
        raise InputError(f"the process {shown(process)} has no parameter {shown(foreign[0])}; it {takes}")
    arguments = {
        name: known[name].default for name in allowed if known[name].default is not inspect.Parameter.empty
    }
    if process == "instance":
        arguments["rate"] = WRONG_LABELS / len(data.classes)
    if "n_classes" in known:
        arguments["n_classes"] = len(data.classes)
    if "groups" in known:
        if len(data.classes) != len(CIFAR100_SUPERCLASSES) or data.name != "cifar-100":
            raise InputError(
                f"the process {shown(process)} needs groups of classes, but {shown(data.name)} has none; use it "
                "with cifar-100, or call oneof.data.corrupt.hierarchical with groups of your own"
            )
        arguments["groups"] = np.asarray(CIFAR100_SUPERCLASSES)
    arguments |= parameters
    missing = [name for name in allowed if name not in arguments]
    if missing:
        raise InputError(f"the process {shown(process)} needs a value for {missing[0]!r}")
    return arguments


def _annotator_settings(
    decided: Annotator | None, rows: NDArray[Any], precision: str, test: PartialLabels | None
) -> dict[str, Any]:
    """Return the settings that can change what the annotator says; None for each where there is no annotator."""
    return {
        "annotator": asdict(decided) if decided else None,
        "annotator_version": annotators.VERSION if decided else None,
        "annotator_rows_sha256": fingerprint(rows) if decided else None,
        "precision": precision if decided else None,
        "test_sha256": fingerprint(test.x, test.y) if decided and test is not None else None,
    }


def _annotator_model(
    decided: Annotator,
    data: PartialLabels,
    rows: NDArray[Any],
    settings: dict[str, Any],
    device: str,
    precision: str,
    cache: bool,
    verbose: int,
) -> PartialLabelClassifier:
    """Train the annotator, or read its weights back."""
    assert data.y is not None
    # The mode changes how the weights are used, not the weights.
    training = {
        name: settings[name] for name in ("data_sha256", "annotator_rows_sha256", "annotator_version", "precision")
    }
    training["annotator"] = asdict(replace(decided, mode="eval"))
    path = cache_folder() / "annotators" / f"{_key(training)}.safetensors"
    if cache and path.is_file():
        return load_model(path, device=device)
    model = decided.train(data.x[rows], data.y[rows], len(data.classes), device, precision, verbose)
    if cache:
        path.parent.mkdir(parents=True, exist_ok=True)
        model.save(path)
    return model


def _annotator_accuracies(
    decided: Annotator,
    model: PartialLabelClassifier,
    scores: NDArray[Any],
    y: NDArray[Any],
    test: PartialLabels | None,
) -> dict[str, float | None]:
    """Return the share of right predictions on the training rows, and on the test rows where these have labels."""
    test_accuracy = None
    if test is not None and test.y is not None:
        test_accuracy = _accuracy(decided.scores(model, test.x), test.y)
    return {"annotator_train_accuracy": _accuracy(scores, y), "annotator_test_accuracy": test_accuracy}


def _write(generated: Generated, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    tensors = {"candidates": torch.as_tensor(generated.candidates)}
    tensor_file.write(path, "candidates", tensors, {"manifest": generated.manifest})


def _read(path: Path) -> Generated:
    tensors, facts = tensor_file.read(path, "candidates")
    try:
        return Generated(tensors["candidates"].numpy(), facts["manifest"])
    except KeyError:
        raise InputError(
            f"{shown(path)} lacks candidate sets or a manifest; oneof cache --clear --kind candidates removes it"
        ) from None


def _accuracy(scores: NDArray[Any], y: NDArray[Any]) -> float:
    return float((scores.argmax(1) == y).mean())


def _key(settings: Mapping[str, Any]) -> str:
    return sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:32]


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value
