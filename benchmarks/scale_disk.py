"""What learning from a table on disk costs: cases of benchmarks/scale.py whose CSV is larger than their memory.

Each step runs in a process of its own, started here with its name: ``read`` by `oneof.open_table`, ``pandas``
(the same file, in pieces of as many rows, to float32), ``fit`` and ``predict`` by the commands, the fit on what
was read before. The first two take turns, so that whatever else a machine does slows both; the middle one of
their times counts, and of their ratios.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow
from pyarrow import csv

import oneof
from oneof.cli import model_tables  # what is imported is no part of any step
from oneof.cli.app import app
from oneof.data.on_disk.source import ROWS

STEPS, TIMES = ("read", "pandas", "fit", "predict"), ("seconds", "cpu_seconds")
LABEL, SEPARATOR = "candidates", "|"


def measured_on_disk(case: Mapping[str, Any]) -> dict[str, Any]:
    """Write the table of a case, carry out all steps and return what each took; the table is deleted."""
    folder = Path(tempfile.mkdtemp(prefix="oneof-scale-"))
    try:
        table = folder / "table.csv"
        write_table(case, table)
        found: dict[str, Any] = {"bytes": table.stat().st_size}

        def run(name: str) -> dict[str, Any]:
            call = [sys.executable, __file__, name, str(table), json.dumps(case)]
            environment = os.environ | {"XDG_CACHE_HOME": str(folder / "cache")}
            done = subprocess.run(call, stdout=subprocess.PIPE, text=True, check=True, env=environment)
            told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
            return told

        pairs = []
        for _ in range(case["turns"]):
            shutil.rmtree(folder / "cache", ignore_errors=True)
            pairs.append({name: run(name) for name in STEPS[:2]})
        return found | compared(pairs) | {name: run(name) for name in STEPS[2:]}
    finally:
        shutil.rmtree(folder)


def compared(pairs: Sequence[Mapping[str, Mapping[str, float]]]) -> dict[str, Any]:
    """Return the largest memory and the middle time of both readers, and all ratios of their times."""
    found: dict[str, Any] = {}
    for name in STEPS[:2]:
        found[name] = {key: float(np.median([pair[name][key] for pair in pairs])) for key in TIMES}
        found[name]["peak_anonymous"] = max(pair[name]["peak_anonymous"] for pair in pairs)
    found["ratios"] = {key: [round(pair["read"][key] / pair["pandas"][key], 3) for pair in pairs] for key in TIMES}
    return found


def write_table(case: Mapping[str, Any], table: Path) -> None:
    """Write random rows whose class shows in them, piece by piece."""
    rng, classes, size = np.random.default_rng(0), case["classes"], case["candidates"]
    names = np.array([f"k{number}" for number in range(classes)])
    centres = rng.standard_normal((classes, case["features"]), dtype=np.float32)
    fields = [(f"x{number}", pyarrow.float32()) for number in range(case["features"])]
    schema = pyarrow.schema([*fields, (LABEL, pyarrow.string())])
    with csv.CSVWriter(table, schema) as writer:
        for begin in range(0, case["rows"], 100_000):
            rows = min(100_000, case["rows"] - begin)
            truth = rng.integers(classes, size=rows)
            steps = rng.integers(1, classes // size, size=(rows, size - 1)).cumsum(1)
            sets = (truth[:, None] + np.concatenate([np.zeros((rows, 1), dtype=np.int64), steps], 1)) % classes
            x = rng.standard_normal((rows, case["features"]), dtype=np.float32) + centres[truth]
            labels = [SEPARATOR.join(each) for each in names[sets].tolist()]
            writer.write(pyarrow.table([*x.T.copy(), labels], schema=schema))


def step(name: str, table: Path, case: Mapping[str, Any]) -> dict[str, Any]:
    """Carry out a step in this process; return its peak of anonymous memory and its seconds."""
    model, out = table.with_name("model"), table.with_name("out.csv")
    settings = {"network": "linear", "threads": 1, **case["settings"]}
    words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    fit = ["fit", str(table), "--separator", SEPARATOR, "--out", str(model), "--method", case["method"], *words]
    works = {
        "read": lambda: oneof.open_table(table, LABEL, SEPARATOR),
        "pandas": lambda: _read_with_pandas(table),
        "fit": lambda: _command([*fit, "--device", "cpu"]),
        "predict": lambda: _command(["predict", str(model), str(table), "--out", str(out)]),
    }
    with peak_anonymous() as peak:
        begun, cpu = time.perf_counter(), time.process_time()
        works[name]()
        seconds = {"seconds": time.perf_counter() - begun, "cpu_seconds": time.process_time() - cpu}
    return {"peak_anonymous": peak[0], **{key: round(value, 2) for key, value in seconds.items()}}


def _read_with_pandas(table: Path) -> None:
    with pd.read_csv(table, chunksize=ROWS) as pieces:
        for piece in pieces:
            np.ascontiguousarray(piece.drop(columns=LABEL).to_numpy(), dtype=np.float32)


def _command(words: list[str]) -> None:
    assert model_tables
    try:
        app([*words, "--on-disk", "--quiet"])
    except SystemExit as end:
        if end.code:
            raise


@contextlib.contextmanager
def peak_anonymous() -> Iterator[list[int]]:
    """Give a list with the largest RssAnon (bytes) of this process in the block, looked at 50 times a second."""
    peak, done = [0], threading.Event()

    def watch() -> None:
        while not done.wait(0.02):
            lines = Path("/proc/self/status").read_text().splitlines()
            peak[0] = max(
                peak[0], 1024 * int(next(each for each in lines if each.startswith("RssAnon")).split()[1])
            )

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield peak
    finally:
        done.set()
        watcher.join()


def disk_table(figures: Mapping[str, Any], names: list[str]) -> str:
    """Return a row for each step of each case."""
    lines = [
        "| table | method | step | peak RssAnon | seconds | CPU s |",
        "| --- | --- | --- | ---: | ---: | ---: |",
    ]
    for case in (figures[name] for name in names):
        shape = f"{case['rows']:,} rows, {case['features']} features, {case['bytes'] / 1e9:.1f} GB"
        for name in STEPS:
            found = case[name]
            ratios = [float(np.median(case["ratios"][key])) for key in TIMES]
            of_time = f" ({ratios[0]:.2f} of pandas)" if name == "read" else ""
            of_cpu = f" ({ratios[1]:.2f})" if name == "read" else ""
            lines.append(
                f"| {shape} | {case['method'].upper()} | {WORDS[name]} | {found['peak_anonymous'] / 1e9:.2f} GB "
                f"| {found['seconds']:.0f}{of_time} | {found['cpu_seconds']:.0f}{of_cpu} |"
            )
    return "\n".join(lines)


WORDS = {
    "read": "`oneof.open_table`",
    "pandas": "pandas in pieces, which keeps nothing",
    "fit": "`oneof fit`, of what was read",
    "predict": "`oneof predict`",
}

if __name__ == "__main__":
    print(json.dumps(step(sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3]))))
