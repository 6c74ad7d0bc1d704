"""Checkpoints: everything a training needs to go on after a kill as if nothing had happened."""

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from oneof.errors import InputError
from oneof.io import tensors as tensor_file
from oneof.io.files import in_use
from oneof.io.schema import misfits
from oneof.io.words import shown
from oneof.train.checkpoint_schema import (
    CheckpointFacts,
    buffers,
    completed,
    generator_misfits,
    negative_buffers,
    setup_misfits,
    state_misfits,
    tensor_places,
)
from oneof.train.course import start_average
from oneof.train.method import Method
from oneof.train.rows import Scaler
from oneof.train.trial_state import Setup, State

SECONDS_BETWEEN_SAVES = 30.0
_FORMAT_WITH_BEST_TABLES = 2
_HASHED_AT_ONCE = 4096  # rows
_MOST_CHANGES = 5  # that a message lists
_KNOWN_ELSEWHERE = ("held_out", "scaler.mean", "scaler.std", "random.cuda")  # not what `restore` looks at


class Checkpoint:
    """One file, continued when it fits the data and the parameters and refused when it does not."""

    def __init__(self, path: str | PathLike[str], parameters: dict[str, Any], data: str) -> None:
        self.path, self.parameters, self.data = Path(path), parameters, data
        self._tensors: dict[str, Tensor] = {}
        self._facts: CheckpointFacts | None = None
        self._saved_at = time.monotonic()
        self._read_version = _version(self.path)
        if self._read_version is not None:
            self._tensors, facts = tensor_file.read(self.path, "checkpoint")
            self._refuse(misfits(facts, CheckpointFacts))
            self._facts = cast(CheckpointFacts, facts)
            self._check(self._facts)

    def _check(self, facts: CheckpointFacts) -> None:
        """Refuse to continue a fit that was not this one."""
        before, now = facts["parameters"], self.parameters
        changes = [
            f"{shown(key)[1:-1]} was {shown(before.get(key))} and is {shown(now.get(key))}"
            for key in sorted(before.keys() | now.keys())
            if before.get(key) != now.get(key)
        ]
        if changes:
            raise InputError(
                f"the checkpoint {str(self.path)!r} belongs to a fit with other parameters "
                f"({'; '.join(changes[:_MOST_CHANGES])}); set them back, or name another checkpoint file"
            )
        if facts["data"] != self.data:
            raise InputError(
                f"the checkpoint {str(self.path)!r} belongs to a fit on other data; pass the same X, y, weights "
                "and validation rows, or name another checkpoint file"
            )

    def _refuse(self, wrong: Iterable[str]) -> None:
        """Raise the first thing that is wrong with the file, if there is any."""
        for what in wrong:
            raise InputError(
                f"the checkpoint {str(self.path)!r} is damaged ({what}); delete it to begin anew, or name another "
                "checkpoint file"
            )

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Keep other fits from using the file inside the block."""
        refusal = (
            f"the checkpoint {str(self.path)!r} is in use by another fit; wait for its end, or name another "
            "checkpoint file"
        )
        with in_use(self.path, refusal):
            if _version(self.path) != self._read_version:
                raise InputError(
                    f"the checkpoint {str(self.path)!r} was written since this fit was prepared; prepare it again"
                )
            yield

    @property
    def begun(self) -> bool:
        """Whether there is a file to go on from."""
        return self._facts is not None

    def setup(self, rows: int, held_out: int, shape: tuple[int, ...]) -> Setup | None:
        """Return the seed, the held-out rows and the scaler that the fit was begun with; None without a file.

        There are so many rows, and so many of them are held out; ``shape`` is that of the scaler's tensors.
        """
        if self._facts is None:
            return None
        places = {name: torch.empty(shape, dtype=torch.float64) for name in ("scaler.mean", "scaler.std")}
        places["held_out"] = torch.empty(held_out, dtype=torch.int64)
        found = {name: self._tensors[name] for name in places if name in self._tensors}
        self._refuse(tensor_file.tensor_misfits(found, places, finite=places))
        setup = Setup(self._facts["seed"], found["held_out"], Scaler(found["scaler.mean"], found["scaler.std"]))
        self._refuse(setup_misfits(setup, rows))
        return setup

    def restore(self, method: Method, optimizer: Any, order: torch.Generator) -> State | None:
        """Put the saved training back in its place; None when there is none."""
        if self._facts is None:
            return None
        progress, saved = self._facts["state"], self._tensors
        self._refuse(state_misfits(progress, method.epochs))
        average = start_average(method)  # its place
        places = tensor_places(method, optimizer, with_best=progress["best_epoch"] >= 0)
        places |= {f"average.{name}": tensor for name, tensor in average.items()}
        if self._facts["version"] < _FORMAT_WITH_BEST_TABLES:
            saved = completed(saved, places, method.tables())
        places |= {"random.order": order.get_state(), "random.cpu": torch.get_rng_state()}
        found = {name: tensor for name, tensor in saved.items() if name not in _KNOWN_ELSEWHERE}
        tables = {f"{part}.{name}" for part in ("learned", "best") for name in method.tables()}
        self._refuse(tensor_file.tensor_misfits(found, places, places.keys() - tables))
        self._refuse(negative_buffers(found))
        self._refuse(generator_misfits({name: saved[name] for name in ("random.order", "random.cpu")}))

        for name, tensor in method.learned().items():
            tensor.copy_(saved[f"learned.{name}"])
        for place, parameter, name, _ in buffers(method, optimizer):
            optimizer.state[parameter][name] = saved[place].to(parameter.device)
        order.set_state(saved["random.order"])
        torch.set_rng_state(saved["random.cpu"])
        self._restore_cuda()
        best = {
            name: saved[f"best.{name}"].to(tensor.device)
            for name, tensor in method.predictor().items()
            if f"best.{name}" in saved
        }
        return State(
            epoch=progress["epoch"],
            history=progress["history"],
            best_epoch=progress["best_epoch"],
            best_score=progress["best_score"],
            best_weights=best,
            seconds=progress["seconds"],
            average={name: tensor.copy_(saved[f"average.{name}"]) for name, tensor in average.items()},
        )

    def _restore_cuda(self) -> None:
        state = self._tensors.get("random.cuda")
        if state is None or not torch.cuda.is_available():
            return
        try:
            torch.cuda.set_rng_state(state)
        except (RuntimeError, TypeError):
            self._refuse(["the tensor 'random.cuda' is no state of a random generator"])

    def due(self) -> bool:
        """Tell whether it is time to write again: at most every 30 seconds."""
        return time.monotonic() - self._saved_at >= SECONDS_BETWEEN_SAVES

    def save(
        self,
        method: Method,
        optimizer: Any,
        order: torch.Generator,
        setup: Setup,
        state: State,
        learned: Mapping[str, Tensor] | None = None,
    ) -> None:
        """Write everything; ``learned`` stands in for what the method has, where that is a part of it."""
        everything = method.learned() if learned is None else learned
        tensors = {f"learned.{name}": tensor for name, tensor in everything.items()}
        tensors |= {f"best.{name}": tensor for name, tensor in state.best_weights.items()}
        tensors |= {f"average.{name}": tensor for name, tensor in state.average.items()}
        for place, parameter, name, like in buffers(method, optimizer):
            # No momentum yet, in a network that no loss has reached, is the same as a momentum of 0.
            buffer = optimizer.state[parameter].get(name)
            tensors[place] = torch.zeros_like(like) if buffer is None else buffer
        tensors |= {"random.order": order.get_state(), "random.cpu": torch.get_rng_state()}
        if torch.cuda.is_available():
            tensors["random.cuda"] = torch.cuda.get_rng_state()
        tensors |= {
            "held_out": setup.held_out,
            "scaler.mean": setup.scaler.mean,
            "scaler.std": setup.scaler.std,
        }
        progress = {key: value for key, value in vars(state).items() if key not in ("best_weights", "average")}
        facts = {"parameters": self.parameters, "data": self.data, "seed": setup.seed, "state": progress}
        tensor_file.write(self.path, "checkpoint", tensors, facts)
        self._saved_at = time.monotonic()


def _version(path: Path) -> tuple[int, ...] | None:
    """Tell versions of a file apart, None where there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def fingerprint(*arrays: Any) -> str:
    """Tell data sets apart: the hash of the shapes, types and bytes of their arrays, or of their parts."""
    digest = sha256()
    for array in [part for each in arrays for part in (each.parts() if hasattr(each, "parts") else [each])]:
        if array is None:
            digest.update(b"none")
            continue
        digest.update(f"{array.shape} {array.dtype}".encode())
        for begin in range(0, len(array), _HASHED_AT_ONCE):  # an array on disk is never whole in memory
            digest.update(np.ascontiguousarray(array[begin : begin + _HASHED_AT_ONCE]).data)
    return digest.hexdigest()
