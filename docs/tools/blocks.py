"""Runs the code of a page: every block of Python and of a shell, in their order, in one folder and one session.

``python docs/tools/blocks.py docs/votes.md`` prints, as JSON, what each block said. A block that shall not be run
stands below ``<!-- not run: reason -->``; one below ``<!-- needs: lost -->`` and all after it are left out where
that data set cannot be loaded.
"""

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import oneof

BLOCK = re.compile(
    r"^(?:<!-- (?P<mark>not run|needs): (?P<why>[^\n]+?) -->\n+)?```(?P<language>python|sh)\n(?P<code>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
LIMIT = 300  # seconds for one command: far more than any of them takes


class Block(NamedTuple):
    """A block of code: its language and text, and a mark that stands above it with the words of that mark."""

    language: str
    code: str
    mark: str
    why: str


def blocks_of(text: str) -> list[Block]:
    """Return the blocks of a page that people would run."""
    return [
        Block(found["language"], found["code"], found["mark"] or "", found["why"] or "")
        for found in BLOCK.finditer(text)
    ]


def _python(block: Block, number: int, names: dict[str, Any]) -> str:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(block.code, f"block {number}", "exec"), names)
    return said.getvalue()


def _shell(block: Block) -> str:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block.code],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"exit code {done.returncode}: {done.stdout}")
    return done.stdout


def _missing(dataset: str) -> bool:
    try:
        oneof.load_dataset(dataset)
    except (OSError, ValueError, ImportError):
        return True
    return False


def run(text: str) -> list[str | None]:
    """Return what each block of a page said, in its folder; None for those that were not run."""
    names = vars(sys.modules["__main__"])
    said: list[str | None] = []
    lacking = False
    for number, block in enumerate(blocks_of(text), 1):
        lacking = lacking or (block.mark == "needs" and _missing(block.why))
        if lacking or block.mark == "not run":
            said.append(None)
            continue
        try:
            said.append(_python(block, number, names) if block.language == "python" else _shell(block))
        except Exception as error:
            raise SystemExit(f"block {number} does not run:\n{block.code}\n{traceback.format_exc()}") from error
    return said


def main(page: Path) -> None:
    """Run the blocks of a page in a new folder and print what they said."""
    text = page.read_text(encoding="utf-8")
    os.environ |= {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb", "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        sys.path.insert(0, folder)  # as for a script of the reader's in that folder
        sys.modules["__main__"] = ModuleType("__main__")  # where pickle looks for a class of the page
        said = run(text)
        pictures = {path.name: path.read_bytes().hex() for path in Path().glob("*.png")}
    print(json.dumps({"said": said, "pictures": pictures}))


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
