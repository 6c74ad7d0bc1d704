"""The formula sheet: losses and label updates as pure functions of tensors.

Every function reduces over the last axis (the K classes), accepts any axes before it, returns one value for
each example and works in log space: nothing is exponentiated on its own, no probability is multiplied or
divided. Letters are those of the IDGP paper: S the candidate set (here ``candidates``, a boolean mask, or weights
pi: see `oneof.functional.common`), o_j = 1 when j is in S, theta the Categorical and z the
Bernoulli parameters, l the class scores with theta = softmax(l), s the distractor logits with z = sigmoid(s), r
the responsibilities.
"""

from oneof.functional.common import indicator, members, possible, posterior_and_entropy
from oneof.functional.competition import guess_log_likelihood
from oneof.functional.contrast import instance_contrast, label_contrast, moved_prototypes, target_contrast
from oneof.functional.frequency import midpoints
from oneof.functional.generation import (
    beta_weights,
    dirichlet_weights,
    distractor_logits,
    generation_nll,
    label_scores,
    log_excess,
    log_less,
    log_mix,
    log_prior_weight,
    map_nll,
    prior_nll,
    responsibilities,
)
from oneof.functional.graph import adjacency, nearest_neighbours
from oneof.functional.losses import (
    bernoulli_nll,
    candidate_nll,
    complementary_nll,
    dirichlet_kl,
    leveraged_sigmoid,
    mean,
    soft_cross_entropy,
)
from oneof.functional.outside import alim_scale, outside_scale, outside_weights, scale_outside
from oneof.functional.targets import class_activation, posterior, rectified, uniform

__all__ = [
    "adjacency",
    "alim_scale",
    "bernoulli_nll",
    "beta_weights",
    "candidate_nll",
    "class_activation",
    "complementary_nll",
    "dirichlet_kl",
    "dirichlet_weights",
    "distractor_logits",
    "generation_nll",
    "guess_log_likelihood",
    "indicator",
    "instance_contrast",
    "label_contrast",
    "label_scores",
    "leveraged_sigmoid",
    "log_excess",
    "log_less",
    "log_mix",
    "log_prior_weight",
    "map_nll",
    "mean",
    "members",
    "midpoints",
    "moved_prototypes",
    "nearest_neighbours",
    "outside_scale",
    "outside_weights",
    "possible",
    "posterior",
    "posterior_and_entropy",
    "prior_nll",
    "rectified",
    "responsibilities",
    "scale_outside",
    "soft_cross_entropy",
    "target_contrast",
    "uniform",
]
