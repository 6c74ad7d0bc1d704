"""Commands for experiments: ``oneof run``, ``sets``, ``status`` and ``report``."""

import json
import os
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oneof.cli import completion
from oneof.cli.app import DataFolder, app
from oneof.cli.output import fold, give, note, say, show_grid, wanted
from oneof.errors import InputError

if TYPE_CHECKING:
    from oneof.bench.plan import Plan
    from oneof.bench.running.engines import Engine
    from oneof.bench.running.runner import PlanProgress

PlanPath = Annotated[
    Path,
    typer.Argument(
        metavar="PLAN",
        help="A .toml file, or a plan that comes with oneof, such as table2-quick.",
        autocompletion=completion.plans,
    ),
]
LedgerPath = Annotated[
    Path | None,
    typer.Option(
        "--ledger", metavar="FILE", help="Where results are kept; results/PLAN.jsonl beside the file, or here."
    ),
]


class EngineName(StrEnum):
    """Where runs are executed."""

    LOCAL = "local"
    RAY = "ray"


@app.command()
def run(
    plan: PlanPath,
    ledger: LedgerPath = None,
    workers: Annotated[int | None, typer.Option(help="Processes; as many as cores allow, one on a GPU.")] = None,
    budget: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Pause after so long; the next call goes on.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1.")] = "auto",
    data: DataFolder = None,
    engine: Annotated[EngineName, typer.Option(help="Processes here, or a Ray cluster.")] = EngineName.LOCAL,
    address: Annotated[str | None, typer.Option(help="Of a Ray cluster; a new local one without it.")] = None,
    cpus_per_run: Annotated[float, typer.Option(help="Ray: cores that a run takes.")] = 1.0,
    gpus_per_run: Annotated[float, typer.Option(help="Ray: GPUs that a run takes; may be a fraction.")] = 0.0,
    dry: Annotated[bool, typer.Option("--dry", help="Print the number of runs and the hours, and stop.")] = False,
) -> None:
    """Carry out the runs of a plan that are not in its ledger yet."""
    from oneof.bench.plan_file import read_plan
    from oneof.bench.running.board import Board, details, headline
    from oneof.bench.running.runner import Runner
    from oneof.train.runtime import resolve_device

    on_gpu = resolve_device(device).type == "cuda"
    _check_engine(engine, address, cpus_per_run, gpus_per_run)
    content = read_plan(plan)
    path = ledger or content.ledgers()[0]
    count = worker_count(content, workers, on_gpu)
    root = None if data is None else str(data)
    if dry:
        _tell_estimate(content, path, count, device)
        return
    if budget is not None and not budget > 0:
        raise InputError(f"--budget is {budget}, but must be a number of seconds > 0")
    place = _engine(engine, count, address, cpus_per_run, gpus_per_run)
    if ledger is None:
        path.parent.mkdir(exist_ok=True)
    with Board(content.title, visible=not wanted.quiet) as board:
        progress = Runner(content, path, place, device=device, root=root, budget=budget, show=board.show).run()
    say(headline(progress))
    for kind, text in details(progress):
        if kind in ("failed", "unavailable"):
            note(kind, text)
    say(fold(f"results are in {path}"))
    give(_facts(progress, path))
    if progress.failed or progress.unavailable:
        raise typer.Exit(1)


def _tell_estimate(plan: "Plan", ledger: Path, workers: int, device: str) -> None:
    """Print how long a plan will take, each line when it is known."""
    from oneof.bench.running.estimate import as_facts, estimate

    parts = []
    for part in estimate(plan, ledger, workers, device):
        say(fold(str(part)))
        parts.append(part)
    give(as_facts(parts))


def _check_engine(engine: EngineName, address: str | None, cpus: float, gpus: float) -> None:
    """Refuse options that another engine has."""
    if engine is EngineName.LOCAL and (address is not None or cpus != 1.0 or gpus != 0.0):
        raise InputError(
            "--address, --cpus-per-run and --gpus-per-run are for --engine ray; add it or leave them out"
        )


@app.command()
def sets(
    plan: PlanPath,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where to write; sets/PLAN beside the file, or here.")
    ] = None,
    device: Annotated[str, typer.Option(help="Of the annotator: auto, cpu, cuda or cuda:1.")] = "auto",
    data: DataFolder = None,
) -> None:
    """Write the candidate sets that a plan draws into small files, which the plan can name from then on."""
    from oneof.bench.plan_file import read_plan
    from oneof.bench.running.problem import write_problem_sets
    from oneof.train.runtime import resolve_device

    resolve_device(device)
    content = read_plan(plan)
    if content.candidates.process is None:
        raise InputError(f"the plan {str(plan)!r} draws no candidate sets; name a process under [candidates]")
    drawn = replace(content, candidates=replace(content.candidates, files={}))
    folder = content.folder / "sets" / content.path.stem if out is None else out
    targets = {folder / f"{run.dataset}-{run.trial}.npz": run for run in drawn.runs()}
    for path in targets:
        if path.exists():
            raise InputError(f"{str(path)!r} is there already; other sets would make other runs: delete it first")
    folder.mkdir(parents=True, exist_ok=True)
    for path, run in targets.items():
        write_problem_sets(run.spec, path, data, device, content.data.get(run.dataset))
        note("sets", f"{path}, {path.stat().st_size // 1000} kB")
    named = {
        dataset: [
            Path(os.path.relpath(path, content.folder)).as_posix()
            for path in targets
            if targets[path].dataset == dataset
        ]
        for dataset in content.datasets
    }
    give({"files": named})
    say("name them under [candidates]:")
    say("files = { " + ", ".join(f"{dataset} = {json.dumps(paths)}" for dataset, paths in named.items()) + " }")


@app.command()
def status(plan: PlanPath, ledger: LedgerPath = None) -> None:
    """Show where a plan stands, also while it runs elsewhere."""
    from oneof.bench.plan_file import read_plan
    from oneof.bench.running.board import details, headline
    from oneof.bench.running.runner import progress_of

    content = read_plan(plan)
    path = ledger or content.ledgers()[0]
    progress = progress_of(content, path)
    if not path.exists():
        note("note", f"there is no ledger {str(path)!r} yet")
    give(_facts(progress, path))
    say(headline(progress))
    if details(progress):
        show_grid(["", ""], [list(line) for line in details(progress)])


@app.command()
def report(
    plan: Annotated[
        Path,
        typer.Option(
            metavar="PLAN",
            help="The plan whose runs are told: a file, or a name.",
            autocompletion=completion.plans,
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where to write.")],
    ledgers: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[LEDGER]...",
            help="By default results/PLAN.jsonl beside the file, or here, and those it shares.",
        ),
    ] = None,
    paper: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The paper's numbers; paper.toml beside the plan.")
    ] = None,
) -> None:
    """Write tables, curves and where every number comes from, as Markdown, LaTeX and one HTML page."""
    from oneof.bench.plan_file import read_plan
    from oneof.bench.report.writer import write_report

    content = read_plan(plan)
    written = write_report(content, ledgers or content.ledgers(), out, paper)
    give({"files": written})
    for path in written:
        say(fold(str(path)))


def _facts(progress: "PlanProgress", ledger: Path) -> dict[str, Any]:
    """Return where a plan stands, for JSON."""
    names = ("total", "done", "failed", "unavailable", "running", "last", "seconds_left")
    return {name: getattr(progress, name) for name in names} | {"ledger": ledger}


def _engine(name: EngineName, workers: int, address: str | None, cpus: float, gpus: float) -> "Engine":
    if name is EngineName.RAY:
        from oneof.bench.running.cluster import RayEngine

        return RayEngine(address, cpus, gpus)
    from oneof.bench.running.engines import LocalEngine

    return LocalEngine(workers)


def worker_count(plan: "Plan", workers: int | None, on_gpu: bool = False) -> int:
    """Return how many processes to use: together they never take more threads than there are cores.

    On a GPU it is one by default, which trains runs side by side; several processes would take turns.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads = max(run.spec["settings"].get("threads", 1) or cores for run in plan.runs())
    most = max(1, cores // threads)
    if workers is None:
        return 1 if on_gpu else most
    if not 1 <= workers <= most:
        raise InputError(
            f"--workers is {workers}, but must be from 1 to {most}: there are {cores} cores, and a run takes "
            f"{threads}"
        )
    return workers
