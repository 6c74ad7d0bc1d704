"""Command for the cache folder: ``oneof cache``."""

from enum import StrEnum
from typing import Annotated

import typer

from oneof.cli.app import app
from oneof.cli.output import fold, give, say, show_grid


class CacheKind(StrEnum):
    """Kinds of files in the cache folder."""

    IMAGES = "images"
    LARGE_IMAGES = "large-images"
    ANNOTATORS = "annotators"
    CANDIDATES = "candidates"
    KERNELS = "kernels"
    TABLES = "tables"


@app.command()
def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Remove the files.")] = False,
    kind: Annotated[list[CacheKind] | None, typer.Option(help="Only files of this kind; may be repeated.")] = None,
) -> None:
    """List what is kept on disk to be used again, or remove it.

    Downloaded data sets are no part of it.
    """
    from oneof.data.cache import KINDS, cache_usage, clear_cache, size_text

    kinds = list(dict.fromkeys(each.value for each in kind)) if kind else list(KINDS)
    if clear:
        removed = clear_cache(kinds)
        give({"removed": [each._asdict() for each in removed]})
        for each in removed:
            files = "1 file" if each.files == 1 else f"{each.files} files"
            say(fold(f"{each.kind}: removed {size_text(each.size)} in {files}, from {each.folder}"))
        return
    kept = cache_usage(kinds)
    give({"kept": [each._asdict() for each in kept]})
    rows = [[each.kind, str(each.files), size_text(each.size), each.meaning, str(each.folder)] for each in kept]
    show_grid(["kind", "files", "size", "meaning", "folder"], rows)
