"""Locks on files, which the operating system drops when their process ends, however it ends."""

import sys
from io import FileIO
from typing import Any

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


def lock(file: FileIO | Any) -> None:
    """Take the lock of an open file; raise BlockingIOError while another process or file object has it.

    On a file system without locks other kinds of OSError are raised.
    """
    if sys.platform == "win32":
        file.seek(2**31 - 2)  # Windows keeps readers off locked bytes: one that no file of ours reaches
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except PermissionError as error:
            raise BlockingIOError(*error.args) from None
    else:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
