"""What the file of a checkpoint must hold, part by part: what does not fit is told, never taken over."""

import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any, TypedDict

import torch
from torch import Tensor

from oneof.io.schema import is_number
from oneof.io.words import shown
from oneof.train.method import Method
from oneof.train.trial_state import Setup

_SEEDS = 2**31


class StateFacts(TypedDict):
    """Where a training stands, as `oneof.train.trial_state.State` without its tensors."""

    epoch: int
    history: dict[str, list[float]]
    best_epoch: int
    best_score: float
    seconds: float


class CheckpointFacts(TypedDict):
    """What the header holds, beside its kind."""

    version: int
    parameters: dict[str, Any]
    data: str  # the fingerprint
    seed: int
    state: StateFacts


def setup_misfits(setup: Setup, rows: int) -> Iterator[str]:
    """Say what cannot be true of a setup for so many rows."""
    if not 0 <= setup.seed < _SEEDS:
        yield f"seed is {setup.seed}, but must be in [0, {_SEEDS})"
    held_out = setup.held_out
    if len(held_out) and (held_out[0] < 0 or held_out[-1] >= rows or (held_out.diff() <= 0).any()):
        yield f"the tensor 'held_out' does not hold numbers of the {rows} rows in rising order"
    if not (setup.scaler.std > 0).all():
        yield "the tensor 'scaler.std' holds numbers that are not above 0"


def state_misfits(state: StateFacts, epochs: int) -> Iterator[str]:
    """Say what cannot be true of a training of so many epochs."""
    epoch, history, best = state["epoch"], state["history"], state["best_epoch"]
    if not 1 <= epoch <= epochs:
        yield f"state.epoch is {epoch}, but must be in [1, {epochs}]"
    for name, values in history.items():
        if len(values) != epoch:
            yield f"state.history.{name[:40]} has {len(values)} numbers, but {epoch} epochs are done"
            return
    if not all(map(is_number, history.get("loss", [math.nan]))):
        yield "state.history.loss holds numbers that are not finite, or is missing"
    if not (is_number(state["seconds"]) and state["seconds"] >= 0):
        yield f"state.seconds is {shown(state['seconds'])}, but must be >= 0"
    scores = history.get("validation_score", [])
    if not -1 <= best < max(len(scores), 0) or (best < 0) != (not scores):
        yield f"state.best_epoch is {best}, but there are {len(scores)} validation scores"
    elif state["best_score"] != (scores[best] if scores else -math.inf):
        yield f"state.best_score is {shown(state['best_score'])}, which is not the score of epoch {best}"


def tensor_places(method: Method, optimizer: Any, with_best: bool) -> dict[str, Tensor]:
    """Return the tensors of a training that a checkpoint holds, by the names in the file."""
    places = {f"learned.{name}": tensor for name, tensor in method.learned().items()}
    if with_best:
        places |= {f"best.{name}": tensor for name, tensor in method.predictor().items()}
    return places | {name: like for name, _, _, like in buffers(method, optimizer)}


def completed(
    saved: dict[str, Tensor], places: Mapping[str, Tensor], tables: Collection[str]
) -> dict[str, Tensor]:
    """Return the tensors of a checkpoint of format 1 with what that format left out.

    It had no momentum of weights that no loss had reached, where 0 is the same, and no tables of the best epoch,
    in whose place those of the last epoch were taken.
    """
    momenta = {
        name: torch.zeros(place.shape, dtype=place.dtype)
        for name, place in places.items()
        if name.startswith("optimizer.")
    }
    stand_ins = {
        f"best.{name}": saved[f"learned.{name}"]
        for name in tables
        if f"best.{name}" in places and f"learned.{name}" in saved
    }
    return momenta | stand_ins | saved


def kept_buffers(method: Method) -> tuple[str, ...]:
    """Return what an optimiser keeps of every parameter, by name."""
    if method.optimizer_ == "adamw":
        return "momentum_buffer", "square_buffer", "steps"
    return ("momentum_buffer",) if method.momentum else ()


def buffers(method: Method, optimizer: Any) -> Iterator[tuple[str, Tensor, str, Tensor]]:
    """Yield the name in a file of everything that is kept, its parameter, its own name, and a tensor like it."""
    for i, parameter in enumerate(parameters(optimizer)):
        for name in kept_buffers(method):
            like = parameter if name != "steps" else parameter.new_empty(())
            yield f"optimizer.{i}.{name}", parameter, name, like


def negative_buffers(found: Mapping[str, Tensor]) -> Iterator[str]:
    """Say which squares and counts of steps are below 0."""
    for name, tensor in found.items():
        if name.endswith((".square_buffer", ".steps")) and bool((tensor < 0).any()):
            yield f"the tensor {name!r} holds numbers below 0"


def parameters(optimizer: Any) -> Iterator[Tensor]:
    """Yield the parameters of an optimiser, group by group."""
    for group in optimizer.param_groups:
        yield from group["params"]


def generator_misfits(states: dict[str, Tensor]) -> Iterator[str]:
    """Say which tensors are no states of the CPU's random generator."""
    for name, state in states.items():
        try:
            torch.Generator().set_state(state)
        except (RuntimeError, TypeError):
            yield f"the tensor {name!r} is no state of a random generator"
