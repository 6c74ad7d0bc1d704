"""Files that are whole or not there: written beside their final name, then renamed. Nothing is unpickled."""

import json
import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
from torch import Tensor

if sys.platform != "win32":
    import fcntl

FORMAT_VERSION = 1


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a path to write to; when the block ends well its file takes the place of ``path``."""
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"the folder {str(path.parent)!r} does not exist; create it first")
    with _held(path.with_name(path.name + ".part")) as part:
        try:
            yield part
            with part.open("rb+") as file:
                os.fsync(file.fileno())
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise


@contextmanager
def _held(part: Path) -> Iterator[Path]:
    """Give a path that nobody else writes to: ``part``, or where another process has that, a name of chance.

    The lock ends with the process that holds it, so that what a killed one has left is taken over by the next.
    """
    with part.open("ab") as file:
        try:
            if sys.platform != "win32":
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_free = os.path.samestat(os.fstat(file.fileno()), part.stat())
        except (BlockingIOError, FileNotFoundError):  # still or just now in another's hands
            is_free = False
        except OSError:  # a file system without locks
            is_free = True
        yield part if is_free else part.with_name(f"{part.stem}.{secrets.token_hex(8)}.part")


def write(path: str | os.PathLike[str], kind: str, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
    """Write tensors and JSON facts into one safetensors file."""
    header = {"oneof": json.dumps({"kind": kind, "version": FORMAT_VERSION, **facts})}
    # clone: safetensors refuses tensors that share memory, as tied weights do
    plain = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    with replacing(path) as part:
        part.write_bytes(safetensors.torch.save(plain, header))


def read(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read back what `write` wrote; whatever is wrong with the file is said in one sentence."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {str(path)!r}")
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (safetensors.SafetensorError, OSError) as error:
        raise ValueError(
            f"{str(path)!r} is damaged or is no safetensors file ({error}); use a file that oneof wrote"
        ) from None
    try:
        facts = json.loads(header["oneof"])
        found, version = facts["kind"], facts["version"]
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"{str(path)!r} was not written by oneof; a {kind} of oneof was expected") from None
    if found != kind:
        raise ValueError(f"{str(path)!r} holds a {found}, but a {kind} was expected")
    if version > FORMAT_VERSION:
        raise ValueError(
            f"{str(path)!r} has format {version}, newer than format {FORMAT_VERSION} that this oneof reads; "
            "upgrade oneof"
        )
    return tensors, facts
