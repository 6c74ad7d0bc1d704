"""PiCO, DIRK and PaPi: contrast between embeddings of unit length, and the prototypes of the classes."""

from math import inf

import torch
from torch import Tensor
from torch.nn.functional import normalize, one_hot


def instance_contrast(q: Tensor, k: Tensor, queue: Tensor, temperature: float) -> Tensor:
    """InfoNCE: the positive of each q (..., B, E) is its own k, the negatives are the queue (..., Q, E)."""
    logits = torch.cat([(q * k).sum(-1, keepdim=True), q @ queue.mT], -1) / temperature
    return -logits.log_softmax(-1)[..., 0]


def label_contrast(
    q: Tensor, k: Tensor, queue: Tensor, labels: Tensor, queue_labels: Tensor, temperature: float
) -> Tensor:
    """Supervised contrast: minus the mean log-probability of the other embeddings with the label of q_i."""
    everything = torch.cat([q, k, queue], -2)
    every_label = torch.cat([labels, labels, queue_labels], -1)
    itself = torch.eye(q.shape[-2], everything.shape[-2], dtype=torch.bool, device=q.device)
    logits = (q @ everything.mT / temperature).masked_fill(itself, -inf)
    positive = (labels.unsqueeze(-1) == every_label.unsqueeze(-2)) & ~itself
    log_p = logits.log_softmax(-1).masked_fill(~positive, 0.0)
    return -log_p.sum(-1) / positive.sum(-1)


def target_contrast(
    q: Tensor,
    k: Tensor,
    queue: Tensor,
    targets: Tensor,
    queue_targets: Tensor,
    temperature: float,
    target_temperature: float,
) -> Tensor:
    """Contrast to the other embeddings whose target has the same mode, weighted by likeness of targets.

    Weights are the softmax, over these, of the cosine between targets (..., K), divided by ``target_temperature``.
    Targets that are zero belong to nothing.
    """
    everything = torch.cat([q, k, queue], -2)
    unit = normalize(torch.cat([targets, targets, queue_targets], -2), dim=-1)
    labels = torch.where(unit.sum(-1) > 0, unit.argmax(-1), -1)
    size = q.shape[-2]
    itself = torch.eye(size, everything.shape[-2], dtype=torch.bool, device=q.device)
    positive = (labels[..., :size].unsqueeze(-1) == labels.unsqueeze(-2)) & ~itself
    likeness = unit[..., :size, :] @ unit.mT / target_temperature
    weight = likeness.masked_fill(~positive, -inf).softmax(-1)
    log_p = (q @ everything.mT / temperature).masked_fill(itself, -inf).log_softmax(-1)
    return -(weight * log_p.masked_fill(~positive, 0.0)).sum(-1)


def moved_prototypes(prototypes: Tensor, q: Tensor, labels: Tensor, momentum: float | Tensor) -> Tensor:
    """Prototypes (..., K, E) after each sample in turn has moved the prototype of its class, in closed form.

    With m samples q_1..q_m of a class in order: ``P <- p^m P + (1 - p) sum_i p^(m - i) q_i``, then unit length.
    """
    member = one_hot(labels, prototypes.shape[-2]).to(q.dtype)  # (..., B, K)
    later = (member.flip(-2).cumsum(-2).flip(-2) - member) * member  # how many samples of its class follow
    weight = (1 - momentum) * momentum**later * member
    # In float64, and rounded: so few numbers fill no vectors of a processor, whose powers have other last bits.
    kept = (momentum ** member.sum(-2).double()).to(q.dtype).unsqueeze(-1)  # (..., K, 1)
    return normalize(kept * prototypes + weight.mT @ q, dim=-1)
