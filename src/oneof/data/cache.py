"""The folder in which files are kept that can be made or downloaded again."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """Return ``$XDG_CACHE_HOME/oneof``, by default ``~/.cache/oneof``."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        return (base if base.is_absolute() else Path.home() / ".cache") / "oneof"
    except RuntimeError:
        raise FileNotFoundError("there is no home folder for the cache; set XDG_CACHE_HOME to a folder") from None
