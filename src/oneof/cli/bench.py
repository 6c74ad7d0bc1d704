"""Commands for experiments: ``oneof run``, ``sets``, ``status`` and ``report``."""

import json
import os
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from oneof.cli.app import DataFolder, app, fold, note, show_grid

if TYPE_CHECKING:
    from oneof.bench.plan import Plan
    from oneof.bench.running.engines import Engine

PlanPath = Annotated[Path, typer.Argument(metavar="PLAN", help="A .toml file; see benchmarks/.")]
LedgerPath = Annotated[
    Path | None,
    typer.Option("--ledger", metavar="FILE", help="Where results are kept; results/PLAN.jsonl beside the plan."),
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
    from oneof.bench.running.estimate import estimate
    from oneof.bench.running.runner import Runner
    from oneof.train.runtime import resolve_device

    on_gpu = resolve_device(device).type == "cuda"
    _check_engine(engine, address, cpus_per_run, gpus_per_run)
    content, path = read_plan(plan), _ledger(plan, ledger)
    count = worker_count(content, workers, on_gpu)
    root = None if data is None else str(data)
    if dry:
        for line in estimate(content, path, count, device):
            typer.echo(fold(line))
        return
    if budget is not None and not budget > 0:
        raise ValueError(f"--budget is {budget}, but must be a number of seconds > 0")
    place = _engine(engine, count, address, cpus_per_run, gpus_per_run)
    if ledger is None:
        path.parent.mkdir(exist_ok=True)
    with Board(content.title) as board:
        progress = Runner(content, path, place, device=device, root=root, budget=budget, show=board.show).run()
    typer.echo(headline(progress))
    for kind, text in details(progress):
        if kind in ("failed", "unavailable"):
            note(kind, text)
    typer.echo(fold(f"results are in {path}"))
    if progress.failed or progress.unavailable:
        raise typer.Exit(1)


def _check_engine(engine: EngineName, address: str | None, cpus: float, gpus: float) -> None:
    """Refuse options that another engine has."""
    if engine is EngineName.LOCAL and (address is not None or cpus != 1.0 or gpus != 0.0):
        raise ValueError(
            "--address, --cpus-per-run and --gpus-per-run are for --engine ray; add it or leave them out"
        )


@app.command()
def sets(
    plan: PlanPath,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where to write; sets/PLAN beside the plan.")
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
        raise ValueError(f"the plan {str(plan)!r} draws no candidate sets; name a process under [candidates]")
    drawn = replace(content, candidates=replace(content.candidates, files={}))
    folder = plan.parent / "sets" / plan.stem if out is None else out
    targets = {folder / f"{run.dataset}-{run.trial}.npz": run for run in drawn.runs()}
    for path in targets:
        if path.exists():
            raise ValueError(f"{str(path)!r} is there already; other sets would make other runs: delete it first")
    folder.mkdir(parents=True, exist_ok=True)
    for path, run in targets.items():
        write_problem_sets(run.spec, path, data, device)
        note("sets", f"{path}, {path.stat().st_size // 1000} kB")
    named = {
        dataset: [
            Path(os.path.relpath(path, plan.parent)).as_posix()
            for path in targets
            if targets[path].dataset == dataset
        ]
        for dataset in content.datasets
    }
    typer.echo("name them under [candidates]:")
    typer.echo(
        "files = { " + ", ".join(f"{dataset} = {json.dumps(paths)}" for dataset, paths in named.items()) + " }"
    )


@app.command()
def status(plan: PlanPath, ledger: LedgerPath = None) -> None:
    """Show where a plan stands, also while it runs elsewhere."""
    from oneof.bench.plan_file import read_plan
    from oneof.bench.running.board import details, headline
    from oneof.bench.running.runner import progress_of

    path = _ledger(plan, ledger)
    progress = progress_of(read_plan(plan), path)
    if not path.exists():
        note("note", f"there is no ledger {str(path)!r} yet")
    typer.echo(headline(progress))
    if details(progress):
        show_grid(["", ""], [list(line) for line in details(progress)])


@app.command()
def report(
    plan: Annotated[Path, typer.Option(metavar="PLAN", help="The plan whose runs are told.")],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where to write.")],
    ledgers: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[LEDGER]...", help="By default results/PLAN.jsonl beside the plan, and those it shares."
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
    for path in write_report(content, ledgers or content.ledgers(), out, paper):
        typer.echo(fold(str(path)))


def _engine(name: EngineName, workers: int, address: str | None, cpus: float, gpus: float) -> "Engine":
    if name is EngineName.RAY:
        from oneof.bench.running.cluster import RayEngine

        return RayEngine(address, cpus, gpus)
    from oneof.bench.running.engines import LocalEngine

    return LocalEngine(workers)


def _ledger(plan: Path, ledger: Path | None) -> Path:
    return plan.parent / "results" / f"{plan.stem}.jsonl" if ledger is None else ledger


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
        raise ValueError(
            f"--workers is {workers}, but must be from 1 to {most}: there are {cores} cores, and a run takes "
            f"{threads}"
        )
    return workers
