"""``make fuzz``: feeds damaged inputs to every reader, prints one table and writes its figures."""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from base64 import b64decode, b64encode
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import reliability

from fuzz.child import KEPT, SECONDS
from fuzz.readers import READERS

_STILL = SECONDS + 15.0  # seconds without a word after which a process hangs inside a library
_START = 120.0  # seconds in which a process makes its seeds
_LARGEST = 16384  # bytes of an input that is kept
_MOST_KEPT = 20  # a reader


@dataclass
class Row:
    """What became of the inputs of a reader."""

    reader: str
    inputs: int = 0
    read: int = 0
    refused: int = 0
    too_long: int = 0
    traceback: int = 0
    crash: int = 0
    hang: int = 0
    silent_nan: int = 0
    seconds: float = 0.0
    failures: dict[str, str] = field(default_factory=dict)  # outcome and place -> words of the first

    @property
    def bad(self) -> int:
        return self.too_long + self.traceback + self.crash + self.hang + self.silent_nan


class Drive:
    """Runs one reader in processes, a new one after each crash or hang."""

    def __init__(self, reader: str, seed: int, inputs: int, keep: bool) -> None:
        self.row, self.seed, self.inputs, self.keep = Row(reader), seed, inputs, keep

    def run(self) -> Row:
        """Feed all inputs."""
        first = -_MOST_KEPT  # as many kept ones as there are
        begun = time.perf_counter()
        with tempfile.TemporaryDirectory(prefix="oneof-fuzz-") as folder:
            while first < self.inputs:
                first = self._process(first, Path(folder))
        self.row.seconds = round(time.perf_counter() - begun, 1)
        return self.row

    def _process(self, first: int, folder: Path) -> int:
        """Run a process until it ends; return the number of the next input."""
        words = [self.row.reader, self.seed, first, self.inputs, folder]
        child = subprocess.Popen(
            [sys.executable, "-m", "fuzz.child", *map(str, words)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "OMP_NUM_THREADS": "1", "XDG_CACHE_HOME": str(folder)},
            start_new_session=True,
        )
        state: dict[str, Any] = {"begun": None, "said": time.monotonic() + _START - _STILL}
        watch = threading.Thread(target=self._watch, args=(child, state), daemon=True)
        watch.start()
        for line in child.stdout:
            state["said"] = time.monotonic()
            facts = json.loads(line)
            if "begun" in facts:
                state["begun"] = facts["begun"]
            else:
                state["begun"] = None
                self._note(facts, folder)
                first = facts["number"] + 1
        child.wait()
        if state["begun"] is not None:
            outcome = "hang" if state.get("hung") else "crash"
            why = "no word for too long" if state.get("hung") else f"exit code {child.returncode}"
            path = folder / (folder / "current").read_text()
            kept = {"suffix": path.name.removeprefix("input"), "content": b64encode(path.read_bytes())}
            self._note({"outcome": outcome, "where": self.row.reader, "words": why, **kept}, folder)
            return state["begun"] + 1
        if child.returncode:
            raise RuntimeError(f"the process of the reader {self.row.reader!r} ended with {child.returncode}")
        return max(first, self.inputs)

    def _watch(self, child: subprocess.Popen, state: dict[str, Any]) -> None:
        """Kill a process that hangs inside a library, where no alarm reaches it."""
        while child.poll() is None:
            if time.monotonic() - state["said"] > _STILL:
                state["hung"] = True
                child.kill()
            time.sleep(0.2)

    def _note(self, facts: dict[str, Any], folder: Path) -> None:
        row, outcome = self.row, facts["outcome"]
        row.inputs += 1
        setattr(row, outcome, getattr(row, outcome) + 1)
        if outcome in ("read", "refused"):
            return
        mark = f"{outcome} {facts['where']}"
        if mark not in row.failures:
            row.failures[mark] = facts["words"].replace(str(folder), "FOLDER")
            print(f"{row.reader}: {mark}: {row.failures[mark]}", file=sys.stderr, flush=True)
            if self.keep:
                self._keep(facts["suffix"], b64decode(facts["content"]))

    def _keep(self, suffix: str, content: bytes) -> None:
        """Keep an input that failed, to be tried first from now on."""
        place = KEPT / self.row.reader
        place.mkdir(exist_ok=True)
        if len(content) <= _LARGEST and len(list(place.iterdir())) < _MOST_KEPT:
            (place / f"{hashlib.sha256(content).hexdigest()[:12]}@{suffix}").write_bytes(content)


def main() -> int:
    """Feed all readers, two at once; the exit code is 1 if one failed."""
    options = _options()
    names = [name for name in READERS if options.readers is None or name in options.readers]
    print(f"seed {options.seed}; give it again with --seed to repeat the same inputs", file=sys.stderr)
    begun = time.perf_counter()
    with ThreadPoolExecutor(options.workers) as pool:
        drives = [Drive(name, options.seed, options.inputs, options.keep) for name in names]
        rows = list(pool.map(Drive.run, drives))
    words = [f"--inputs {options.inputs}", f"--seed {options.seed}", f"--workers {options.workers}"]
    words += [] if options.readers is None else [f"--readers {','.join(options.readers)}"]
    figures = reliability.circumstances(f"python -m fuzz {' '.join(words)}", options.seed)
    figures |= {"seconds_in_all": round(time.perf_counter() - begun), "rows": [vars(row) for row in rows]}
    print(reliability.fuzz_table(figures))
    if options.out is not None:
        reliability.write(options.out, "fuzz", figures)
    return int(any(row.bad for row in rows))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=10_000, help="for each reader (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of all inputs (%(default)s)")
    parser.add_argument(
        "--readers", type=lambda words: words.split(","), help=f"some of {','.join(READERS)} (all)"
    )
    parser.add_argument("--workers", type=int, default=2, help="readers at the same time (%(default)s)")
    parser.add_argument("--keep", action="store_true", help="keep inputs that fail in tests/fuzz/seeds")
    parser.add_argument("--out", type=Path, help="JSON file whose part 'fuzz' is replaced")
    options = parser.parse_args()
    if unknown := set(options.readers or ()) - set(READERS):
        parser.error(f"--readers has {sorted(unknown)}, but must be some of {','.join(READERS)}")
    return options


if __name__ == "__main__":
    sys.exit(main())
