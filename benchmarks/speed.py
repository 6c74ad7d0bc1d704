"""How fast training is: ``python benchmarks/speed.py --device cuda --out speed-h200.json``.

Random rows of real shapes, fixed seeds. First epochs warm up, the mean of the next ones counts; validation and
test rows are judged after each. Sections are ``images`` (beside the conventional way and the authors' code),
``reference`` (that conventional way), ``tables`` (many small trials at once) and ``growth`` (of rows, classes and
trials). Prints Markdown tables and writes a JSON file after every case, so that a killed run keeps what it has;
``--show FILES`` prints the tables of such files as if they were one: the first that has measured a case counts.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import torch
from speed_cases import SECTIONS, Case, all_cases
from speed_tables import derive, markdown

from oneof import METHODS
from oneof.bench.running.execute import circumstances
from oneof.io.files import replacing


def main() -> None:
    """Measure case by case, print the tables, write the file."""
    options = _options()
    if options.show is not None:
        print("\n\n".join(markdown([json.loads(path.read_text()) for path in options.show])))
        return
    record = _circumstances(options)
    begun = time.perf_counter()
    cases = [case for case in all_cases(options.device, options.share) if _is_wanted(case, options)]
    for case in cases:
        if time.perf_counter() - begun > options.budget:
            record["not_begun"] += 1
            continue
        facts = {name: value for name, value in case._asdict().items() if name != "run"}
        record["rows"].append(facts | _guarded(case.run))
        print(f"{time.perf_counter() - begun:5.0f} s  {_line(record['rows'][-1])}", file=sys.stderr, flush=True)
        record["seconds_in_all"] = round(time.perf_counter() - begun)
        derive(record)
        _write(record, options.out)
    print("\n\n".join(markdown([record])))
    _write(record, options.out)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--sections", default=",".join(SECTIONS), help="some of %(default)s")
    parser.add_argument("--methods", type=lambda words: words.split(","), help="some of them, as: idgp,cc (all)")
    parser.add_argument("--budget", type=float, default=float("inf"), help="seconds after which no case is begun")
    parser.add_argument("--share", type=float, default=1.0, help="of all rows, to try the command out (1)")
    parser.add_argument("--show", type=Path, nargs="+", help="JSON files to print, without measuring")
    options = parser.parse_args()
    options.sections = options.sections.split(",")
    if unknown := set(options.sections) - set(SECTIONS):
        parser.error(f"--sections has {sorted(unknown)}, but must be some of {','.join(SECTIONS)}")
    if unknown := set(options.methods or ()) - set(METHODS):
        parser.error(f"--methods has {sorted(unknown)}, but must be some of {','.join(METHODS)}")
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("--device is cuda, but torch sees no GPU here; use --device cpu")
    return options


def _is_wanted(case: Case, options: argparse.Namespace) -> bool:
    return case.section in options.sections and (options.methods is None or case.method in options.methods)


def _circumstances(options: argparse.Namespace) -> dict[str, Any]:
    """Say what was measured, where and with what."""
    words = [f"--device {options.device}", f"--sections {','.join(options.sections)}"]
    words += [] if options.methods is None else [f"--methods {','.join(options.methods)}"]
    words += [f"--budget {options.budget:g}"] * (options.budget < float("inf"))
    words += [f"--share {options.share}"] * (options.share != 1)
    where = circumstances(options.device)
    return {
        "command": f"python benchmarks/speed.py {' '.join(words)}",
        "commit": where["commit"],
        "device": where["device"],
        "cores": os.cpu_count(),
        "torch": torch.__version__,
        "not_begun": 0,
        "rows": [],
    }


def _guarded(run: Any) -> dict[str, Any]:
    """Measure; what goes wrong is a line in the table, and the next case begins."""
    try:
        figures = run()
    except Exception as error:
        lines = str(error).strip().splitlines() or [""]
        figures = {"error": f"{type(error).__name__}: {lines[0]}"[:200]}
    return {name: float(f"{v:.4g}") if isinstance(v, float) else v for name, v in figures.items()}


def _line(row: dict[str, Any]) -> str:
    result = row.get("error") or f"{row['seconds']:.4g} s"
    return f"{row['section']}: {row['problem']}, {row['method']}, {row['form']}, {row['trials']}: {result}"


def _write(record: dict[str, Any], path: Path | None) -> None:
    if path is not None:
        with replacing(path) as part:
            part.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
