"""Checkpoints: everything a training needs to go on after a kill as if nothing had happened."""

import time
from collections.abc import Iterator
from dataclasses import asdict
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from oneof.io import tensors as tensor_file
from oneof.train.method import Method
from oneof.train.rows import Scaler
from oneof.train.trial_state import Setup, State

SECONDS_BETWEEN_SAVES = 30.0
_HASHED_AT_ONCE = 4096  # rows


class Checkpoint:
    """One file, continued when it fits the data and the parameters and refused when it does not."""

    def __init__(self, path: str | PathLike[str], parameters: dict[str, Any], data: str) -> None:
        self.path, self.parameters, self.data = Path(path), parameters, data
        self._tensors: dict[str, Tensor] = {}
        self._facts: dict[str, Any] = {}
        self._saved_at = time.monotonic()
        if self.path.exists():
            self._tensors, self._facts = tensor_file.read(self.path, "checkpoint")
            self._check()

    def _check(self) -> None:
        """Refuse to continue a fit that was not this one."""
        before, now = self._facts["parameters"], self.parameters
        changes = [
            f"{key} was {before.get(key)!r} and is {now.get(key)!r}"
            for key in sorted(before.keys() | now.keys())
            if before.get(key) != now.get(key)
        ]
        if changes:
            raise ValueError(
                f"the checkpoint {str(self.path)!r} belongs to a fit with other parameters "
                f"({'; '.join(changes)}); set them back, or name another checkpoint file"
            )
        if self._facts["data"] != self.data:
            raise ValueError(
                f"the checkpoint {str(self.path)!r} belongs to a fit on other data; pass the same X, y, weights "
                "and validation rows, or name another checkpoint file"
            )

    @property
    def setup(self) -> Setup | None:
        """The seed, the held-out rows and the scaler that the fit was begun with."""
        if not self._facts:
            return None
        scaler = Scaler(self._tensors["scaler.mean"], self._tensors["scaler.std"])
        return Setup(self._facts["seed"], self._tensors["held_out"], scaler)

    def restore(self, method: Method, optimizer: torch.optim.Optimizer, order: torch.Generator) -> State | None:
        """Put the saved training back in its place; None when there is none."""
        if not self._facts:
            return None
        for name, tensor in method.learned().items():
            tensor.copy_(self._tensors[f"learned.{name}"])
        for i, parameter in enumerate(_parameters(optimizer)):
            prefix = f"optimizer.{i}."
            optimizer.state[parameter] = {
                name.removeprefix(prefix): tensor.to(parameter.device)
                for name, tensor in self._tensors.items()
                if name.startswith(prefix)
            }
        order.set_state(self._tensors["random.order"])
        torch.set_rng_state(self._tensors["random.cpu"])
        if "random.cuda" in self._tensors and torch.cuda.is_available():
            torch.cuda.set_rng_state(self._tensors["random.cuda"])
        best = {
            name: self._tensors[f"best.{name}"].to(tensor.device)
            for name, tensor in method.weights().items()
            if f"best.{name}" in self._tensors
        }
        return State(**self._facts["state"], best_weights=best)

    def due(self) -> bool:
        """Tell whether it is time to write again: at most every 30 seconds."""
        return time.monotonic() - self._saved_at >= SECONDS_BETWEEN_SAVES

    def save(
        self,
        method: Method,
        optimizer: torch.optim.Optimizer,
        order: torch.Generator,
        setup: Setup,
        state: State,
    ) -> None:
        """Write everything."""
        tensors = {f"learned.{name}": tensor for name, tensor in method.learned().items()}
        tensors |= {f"best.{name}": tensor for name, tensor in state.best_weights.items()}
        for i, parameter in enumerate(_parameters(optimizer)):
            for name, value in optimizer.state[parameter].items():
                if isinstance(value, Tensor):
                    tensors[f"optimizer.{i}.{name}"] = value
        tensors |= {"random.order": order.get_state(), "random.cpu": torch.get_rng_state()}
        if torch.cuda.is_available():
            tensors["random.cuda"] = torch.cuda.get_rng_state()
        tensors |= {
            "held_out": setup.held_out,
            "scaler.mean": setup.scaler.mean,
            "scaler.std": setup.scaler.std,
        }
        progress = {key: value for key, value in asdict(state).items() if key != "best_weights"}
        facts = {"parameters": self.parameters, "data": self.data, "seed": setup.seed, "state": progress}
        tensor_file.write(self.path, "checkpoint", tensors, facts)
        self._saved_at = time.monotonic()


def fingerprint(*arrays: NDArray[Any] | None) -> str:
    """Tell data sets apart: the hash of the shapes, types and bytes of their arrays."""
    digest = sha256()
    for array in arrays:
        if array is None:
            digest.update(b"none")
            continue
        digest.update(f"{array.shape} {array.dtype}".encode())
        for begin in range(0, len(array), _HASHED_AT_ONCE):  # an array on disk is never whole in memory
            digest.update(np.ascontiguousarray(array[begin : begin + _HASHED_AT_ONCE]).data)
    return digest.hexdigest()


def _parameters(optimizer: torch.optim.Optimizer) -> Iterator[Tensor]:
    for group in optimizer.param_groups:
        yield from group["params"]
