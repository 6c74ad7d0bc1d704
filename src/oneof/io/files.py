"""Files that are whole or not there: written beside their final name, then renamed."""

import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from oneof.io.locks import lock


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
            if sys.platform != "win32":  # where an open file cannot be renamed either
                lock(file)
            is_free = os.path.samestat(os.fstat(file.fileno()), part.stat())
        except (BlockingIOError, FileNotFoundError):  # still or just now in another's hands
            is_free = False
        except OSError:  # a file system without locks
            is_free = True
        yield part if is_free else part.with_name(f"{part.stem}.{secrets.token_hex(8)}.part")
