"""Votes judged by crowd-kit, which is imported when it is asked for."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from oneof.errors import InputError
from oneof.labels.annotators import Ballots, Floats, Judgement

_TINY = 1e-300


def _dawid_skene(package: Any, frame: Any) -> Any:
    model = package.DawidSkene(n_iter=100).fit(frame)
    # Without the shares of the classes, which a classifier learns from the rows.
    return _logs(model.probas_) - _logs(model.priors_)


def _glad(package: Any, frame: Any) -> Any:
    return _logs(package.GLAD(silent=True).fit(frame).probas_)  # its classes have equal shares


def _mmsr(package: Any, frame: Any) -> Any:
    """A vote of an annotator of accuracy p speaks for its label by log(p (K - 1) / (1 - p)), its skill."""
    skills = package.MMSR(random_state=0).fit(frame).skills_
    return frame.assign(skill=frame["worker"].map(skills)).pivot_table(
        index="task", columns="label", values="skill", aggfunc="sum", fill_value=0.0
    )


#: How crowd-kit can be asked; each gives log-likelihoods of the labels (columns) of the tasks.
AGGREGATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "dawid-skene": _dawid_skene,
    "glad": _glad,
    "mmsr": _mmsr,
}


def aggregated(found: Judgement, ballots: Ballots, name: str) -> Judgement:
    """Return a judgement in which rows and annotators are judged by an aggregation of crowd-kit."""
    try:
        from crowdkit import aggregation as package  # noqa: PLC0415 - crowd-kit is optional
    except ImportError:
        raise ImportError(
            f"aggregate={name!r} needs crowd-kit, which is missing; pip install oneof[votes], or leave it out"
        ) from None
    n, annotators, k = ballots.shape
    if annotators < 2 or ballots.denies.any() or len(ballots.vote) > len(ballots.row):
        raise InputError(
            f"aggregate={name!r} judges votes of known annotators for one label each; pass such votes, or leave "
            "aggregate out"
        )
    row, who, label = ballots.row[ballots.vote], ballots.annotator[ballots.vote], ballots.label
    frame = pd.DataFrame({"task": row, "worker": who, "label": label})
    logs = AGGREGATIONS[name](package, frame).reindex(index=range(n), columns=range(k))
    log_likelihood: Floats = logs.fillna(np.log(_TINY)).to_numpy(dtype=np.float64)
    weights = np.exp(log_likelihood - log_likelihood.max(1, keepdims=True)) * found.shares
    posterior = weights / weights.sum(1, keepdims=True)
    right = np.bincount(who, posterior[row, label], annotators) / np.bincount(who, minlength=annotators)
    return found._replace(log_likelihood=log_likelihood, posterior=posterior, accuracy=right)


def _logs(probabilities: Any) -> Any:
    return np.log(probabilities.clip(lower=_TINY))
