"""Candidate sets made from true labels, for experiments: the true label is always inside.

A process is a pair of functions of the true labels and its own arguments. The one in `PROCESSES` also takes a seed
and draws the sets, a boolean array (n, K); the one in `CHANCES`, under the same name, gives the chance (n, K) that
each wrong label joins its set, 0 for the true label. Processes with an argument ``scores``, the log-probabilities
or logits of a classifier, depend on the instance; the others depend on the true class alone.

Everywhere ``y`` holds the true labels, n numbers from 0 to K - 1; ``n_classes`` is K; ``seed`` is the seed of the
draws.
"""

from oneof.data.corrupt.arguments import true_labels
from oneof.data.corrupt.chances import (
    CHANCES,
    LWS_CASES,
    certain_distractors,
    class_chances,
    decomposition_chances,
    flip_chances,
    hierarchical_chances,
    pair_chances,
    set_log_likelihoods,
    uniform_chances,
    uniform_sets_chances,
)
from oneof.data.corrupt.processes import (
    PROCESSES,
    class_dependent,
    decomposition,
    hierarchical,
    instance_dependent,
    pair,
    summary,
    uniform,
    uniform_sets,
)

__all__ = [
    "CHANCES",
    "LWS_CASES",
    "PROCESSES",
    "certain_distractors",
    "class_chances",
    "class_dependent",
    "decomposition",
    "decomposition_chances",
    "flip_chances",
    "hierarchical",
    "hierarchical_chances",
    "instance_dependent",
    "pair",
    "pair_chances",
    "set_log_likelihoods",
    "summary",
    "true_labels",
    "uniform",
    "uniform_chances",
    "uniform_sets",
    "uniform_sets_chances",
]
