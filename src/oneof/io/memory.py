"""How much memory there is, and what is said of a table before it is made that may not fit into it."""

import os
from pathlib import Path

from oneof.errors import InputError

_LARGE = 2**30  # bytes that are worth a word
_LIMITS = (("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"))


def free_memory() -> int | None:
    """Return how many bytes this process may still take; None where the system does not say."""
    found = [room for room in (_of_system(), *map(_of_group, _LIMITS)) if room is not None]
    return min(found, default=None)


def _of_system() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")  # all of it, as macOS says
    except (OSError, ValueError, AttributeError):
        return None


def _of_group(files: tuple[str, str]) -> int | None:
    """Return the room that a container leaves."""
    try:
        limit, used = (int((Path("/sys/fs/cgroup") / name).read_text()) for name in files)
    except (OSError, ValueError):  # no container, or no limit
        return None
    return max(0, limit - used)


def is_large(size: int) -> bool:
    """Tell whether so many bytes are worth a word before they are taken."""
    return size >= _LARGE


def gigabytes(size: int) -> str:
    """Write a number of bytes for a message."""
    return f"{size / 1e9:.3g} GB"


def check_room(what: str, size: int, fix: str, free: int | None = None) -> None:
    """Refuse what takes more bytes than there are: `free`, or what the system says."""
    free = free_memory() if free is None else free
    if free is not None and size > free:
        raise InputError(f"{what} takes {gigabytes(size)}, but {gigabytes(free)} of memory are free; {fix}")
