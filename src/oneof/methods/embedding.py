"""Embeddings of unit length, moving averages of what makes them, and queues of recent ones: PiCO, DIRK, PaPi."""

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from oneof.nn.networks import Network
from oneof.train.batch import Data
from oneof.train.runtime import evaluating


def new_projection(network: Network, data: Data, size: int) -> nn.Module:
    """Make a head with one hidden layer of the size of the features, and so many outputs."""
    with evaluating([network]):
        features = network.features(data.weight.new_zeros(1, *data.shape)).shape[-1]
    head = nn.Sequential(nn.Linear(features, features), nn.ReLU(), nn.Linear(features, size))
    return head.to(data.weight)


def embed(network: Network, projection: nn.Module, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return outputs (..., B, K) and embeddings of unit length (..., B, E)."""
    features = network.features(x)
    outputs: Tensor = network.head(features)
    return outputs, normalize(projection(features), dim=-1)


@torch.no_grad()
def follow(average: nn.Module, module: nn.Module, momentum: float) -> None:
    """Let a moving average follow: parameters alone, running averages evolve by themselves."""
    for old, new in zip(average.parameters(), module.parameters(), strict=True):
        old.lerp_(new, 1 - momentum)


def next_places(pointer: Tensor, like: Tensor, length: int) -> Tensor:
    """Return the places (..., B) in a queue that a batch of embeddings (..., B, E) overwrites, going round."""
    steps = torch.ones_like(like[..., 0], dtype=torch.int64).cumsum(-1) - 1
    return (pointer.unsqueeze(-1) + steps) % length
