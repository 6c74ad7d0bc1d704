"""How hard candidate sets are, by the annotator's epochs and by temperature and rate of the draws.

Fashion-MNIST with learners of benchmarks/table1-mlp.toml, two trials of each setting.

``python benchmarks/annotators.py --data FOLDER`` carries out what benchmarks/results/annotators.jsonl does not
hold yet and then draws; ``--draw`` only draws docs/results/annotators.svg and the table in docs/candidates.md.
What is finished is on the disk: the command may be killed at any time and given again.
"""

import argparse
import sys
import time
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from annotators_figure import figure
from annotators_results import FIGURE, LEDGER, PAGE, Chart, chart, read_chart, with_table

from oneof.bench.ledger import Ledger
from oneof.bench.running.board import Board, details, headline
from oneof.bench.running.engines import LocalEngine, problem_text
from oneof.bench.running.estimate import estimate
from oneof.bench.running.problem import make_problem
from oneof.bench.running.runner import PlanProgress, Runner, progress_of
from oneof.cli.bench import worker_count
from oneof.cli.output import fold
from oneof.io.files import replacing
from oneof.pages.charts import standalone
from oneof.train.runtime import resolve_device


def parts(whole: Chart) -> list[Chart]:
    """Part the chart by annotators, those first that are trained first."""
    return [
        replace(
            whole,
            title=f"{whole.title}: {epochs} epochs",
            sets=[setting for setting in whole.sets if setting.epochs == epochs],
        )
        for epochs in sorted({setting.epochs for setting in whole.sets})
    ]


def carry_out(
    whole: Chart, ledger: Path, workers: int, device: str, root: str | None, budget: float
) -> PlanProgress:
    """Carry out the runs that are missing, annotator by annotator.

    The runner would train one annotator after the other before any run begins. Here all are trained at once, and
    the runs of the young ones do not wait for the old ones. One that is being trained when the budget is spent is
    finished first.
    """
    deadline = time.time() + budget
    with Ledger(ledger) as before:
        done = {key for key, record in before.records.items() if record["status"] == "done"}
    unavailable: dict[str, str] = {}
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        waiting = [
            (part, pool.submit(make_sets, problems, root, device, deadline))
            for part in parts(whole)
            if (problems := problems_left(part, done))
        ]
        for part, sets in waiting:
            sets.exception()  # only waits: the runner meets what went wrong again, and tells it
            with Board(part.title) as board:
                engine, left, show = LocalEngine(workers), deadline - time.time(), board.show
                runner = Runner(part, ledger, engine, device=device, root=root, budget=left, show=show)
                unavailable |= runner.run().unavailable
    return replace(progress_of(whole, ledger), unavailable=unavailable)


def problems_left(part: Chart, done: Collection[str]) -> list[Mapping[str, Any]]:
    """Return a spec for each problem that runs still need."""
    left = [run.spec for run in part.runs() if run.key not in done]
    return list({problem_text(spec): spec for spec in left}.values())


def make_sets(specs: Iterable[Mapping[str, Any]], root: str | None, device: str, deadline: float) -> None:
    """Train an annotator and draw its sets, which the cache keeps for the runner."""
    for spec in specs:
        if time.time() < deadline:
            make_problem(spec, root, device)


def draw(ledger: Path) -> None:
    """Write figure and table."""
    report = read_chart(ledger)
    for path, text in (
        (FIGURE, standalone(figure(report))),
        (PAGE, with_table(PAGE.read_text(encoding="utf-8"), report)),
    ):
        with replacing(path) as part:
            part.write_text(text, encoding="utf-8")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draw", action="store_true", help="only draw what the ledger holds")
    parser.add_argument("--dry", action="store_true", help="print the number of runs and the hours, and stop")
    parser.add_argument("--data", help="folder of the data sets; by default $ONEOF_DATA or the cache")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    parser.add_argument("--workers", type=int, help="processes for runs; as many as cores without it")
    parser.add_argument(
        "--budget", type=float, default=float("inf"), help="pause after so many seconds; the next call goes on"
    )
    parser.add_argument(
        "--ledger", type=Path, default=LEDGER, help="where results are kept; another one is drawn by --draw alone"
    )
    given = parser.parse_args()
    try:
        sys.exit(follow(given))
    except (OSError, ValueError) as error:
        parser.exit(2, f"error: {fold(str(error))}\n")


def follow(given: argparse.Namespace) -> int:
    """Do what the command line says; return the exit status."""
    whole = chart()
    if given.draw:
        draw(given.ledger)
        return 0
    resolve_device(given.device)
    workers = worker_count(whole, given.workers)
    if given.dry:
        print(*estimate(whole, given.ledger, workers, given.device), sep="\n")
        return 0
    if not given.budget > 0:
        raise ValueError(f"--budget is {given.budget}, but must be a number of seconds > 0")
    progress = carry_out(whole, given.ledger, workers, given.device, given.data, given.budget)
    print(headline(progress))
    for kind, text in details(progress):
        if kind in ("failed", "unavailable"):
            print(fold(f"{kind}: {text}"), file=sys.stderr)
    if given.ledger.resolve() == LEDGER.resolve() and progress.done:
        draw(given.ledger)
    return 1 if progress.failed or progress.unavailable else 0


if __name__ == "__main__":
    main()
