"""One reader and its inputs, in a process that may crash: ``python -m fuzz.child READER SEED FIRST LAST FOLDER``.

Before each input its number is written to standard output, and afterwards what became of it, as JSON. Numbers
below zero are those of the kept inputs.
"""

import json
import os
import random
import resource
import signal
import sys
import traceback
import warnings
from base64 import b64encode
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

import oneof
from fuzz.readers import READERS, Reader
from oneof.train import TrainingDiverged

SECONDS = 5  # of the processor, for one input
_MEMORY = 2 * 2**30  # bytes beside those that the process has when it begins
_LONGEST = 1000  # characters of a sentence
_PACKAGE = str(Path(oneof.__file__).parent)
# Functions of scikit-learn whose words are let through on purpose: other tools look for them.
_DELEGATED = {"check_classification_targets", "validate_data", "column_or_1d"}
KEPT = Path(__file__).parent / "seeds"


class TooLong(BaseException):
    """An input takes too long; not an Exception, so that no reader takes it for an error of the file."""


def main() -> None:
    """Read input after input."""
    name, seed, first, last, folder = sys.argv[1], *map(int, sys.argv[2:5]), Path(sys.argv[5])
    reader = READERS[name]
    seeds, kept = reader.seeds(), kept_inputs(name)
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGPROF, _stop)
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + _MEMORY, now + _MEMORY))
    for number in range(max(first, -len(kept)), last):
        suffix, content = kept[number] if number < 0 else damaged(reader, seeds, seed, number)
        path = folder / f"input{suffix}"
        path.write_bytes(content)
        (folder / "current").write_text(path.name)
        _say({"begun": number})
        outcome = outcome_of(reader, path)
        if outcome["outcome"] not in ("read", "refused"):
            outcome |= {"suffix": suffix, "content": b64encode(content).decode()}
        _say({"number": number, **outcome})


def kept_inputs(name: str) -> list[tuple[str, bytes]]:
    """The inputs of a reader that failed once; a file is called HASH@SUFFIX."""
    paths = sorted((KEPT / name).glob("*")) if (KEPT / name).is_dir() else []
    return [(path.name[path.name.index("@") + 1 :], path.read_bytes()) for path in paths]


def damaged(reader: Reader, seeds: list[tuple[str, bytes]], seed: int, number: int) -> tuple[str, bytes]:
    """Make an input, always the same for the same numbers; the first ones are not damaged."""
    chance = random.Random(f"{seed}/{reader.name}/{number}")
    if number < len(seeds):
        return seeds[number]
    suffix, content = chance.choice(seeds)
    return suffix, reader.mutate(content, chance, [other for _, other in seeds])


def outcome_of(reader: Reader, path: Path) -> dict[str, Any]:
    """Read an input and say what became of it."""
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        numbers = reader.read(path)
    except TooLong as error:
        return _failure("hang", error, f"more than {SECONDS} s")
    except Exception as error:
        kind = kind_of(error)
        if kind == "refused":
            return {"outcome": kind}
        return _failure(kind, error, f"{type(error).__name__}: {error}")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    if isinstance(numbers, np.ndarray) and numbers.dtype.kind == "f" and not np.isfinite(numbers).all():
        return {"outcome": "silent_nan", "where": reader.name, "words": "the result is not finite"}
    return {"outcome": "read"}


def kind_of(error: Exception) -> str:
    """Tell a sentence that oneof raises itself ("refused" or, beyond a line, "too_long") from a "traceback"."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if frame.filename.startswith(_PACKAGE)]
    if not isinstance(error, ValueError | TypeError | OSError | TrainingDiverged) or not ours or not str(error):
        return "traceback"
    # Not an error of the interpreter in a line of ours, such as an index that is none.
    own = frames[-1] is ours[-1] and (frames[-1].line or "").startswith("raise ")
    delegated = any(frame.name in _DELEGATED for frame in frames)
    if not (own or delegated):
        return "traceback"
    fits = len(str(error)) <= _LONGEST and (delegated or "\n" not in str(error))
    return "refused" if fits else "too_long"


def _failure(kind: str, error: BaseException, words: str) -> dict[str, Any]:
    return {"outcome": kind, "where": place_of(error.__traceback__), "words": " ".join(words.split())[:200]}


def place_of(trace: TracebackType | None) -> str:
    """Return the last line of oneof in a traceback, as file:line."""
    ours = [frame for frame in traceback.extract_tb(trace) if frame.filename.startswith(_PACKAGE)]
    if not ours:
        return "outside of oneof"
    return f"{Path(ours[-1].filename).relative_to(_PACKAGE)}:{ours[-1].lineno}"


def _stop(*_: Any) -> None:
    raise TooLong


def _say(facts: dict[str, Any]) -> None:
    os.write(1, json.dumps(facts).encode() + b"\n")


if __name__ == "__main__":
    main()
