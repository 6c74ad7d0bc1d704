"""Reads plans from TOML files: everything in a file is checked, and what is wrong is one sentence."""

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from math import prod
from pathlib import Path
from typing import Any

from oneof.bench.candidate_files import CandidateFile, describe_file
from oneof.bench.keys import baseline, plain
from oneof.bench.plan import BOUNDS, DEFAULTS, Candidates, Plan, Split, plan_fields
from oneof.bench.published import find_plan
from oneof.bench.toml_files import read_toml
from oneof.data import corrupt, generate
from oneof.data.annotator import Annotator
from oneof.data.catalogue import DATASETS
from oneof.data.own import OwnData, describe_own, reader_named
from oneof.errors import InputError
from oneof.estimator.fields import check
from oneof.io.words import close_names, shown
from oneof.methods import classifiers

__all__ = ["read_plan"]

_MOST_RUNS = 1_000_000
_NO_BASELINE: dict[str, Any] = {"split": {}, "candidates": {"annotator": {}}}


def read_plan(path: str | Path) -> Plan:
    """Read and check a plan: a file, or the name of a plan that comes with the library."""
    file = find_plan(path := Path(path))
    content = read_toml(file, "plan")
    try:
        plan = replace(_parse(file, content), by_name=file != path)
        _check_runs(plan)
    except (ValueError, TypeError) as error:
        raise InputError(f"the plan {str(path)!r}: {error}") from None
    return plan


def _parse(path: Path, content: dict[str, Any]) -> Plan:
    _known("the plan", content, [f.name for f in fields(Plan) if f.name not in ("path", "by_name")])
    for name in ("title", "datasets", "methods"):
        if name not in content:
            raise InputError(f"it has no {name!r}, but every plan names its title, datasets and methods")
    tables = {name: content.get(name, {}) for name in ("split", "candidates", "settings", "grid", "methods")}
    for name, value in tables.items():
        if not isinstance(value, dict):
            raise InputError(f"{name} is {shown(value)}, but must be a table: write [{name}]")
    datasets = _texts("datasets", content["datasets"])
    data = _own_data(path.parent, content.get("data", {}), datasets)
    for name in datasets:
        _one_of("datasets", name, {*DATASETS, *data})
    for name in ("title", "reference", "paper"):
        if not isinstance(content.get(name, ""), str):
            raise InputError(f"{name} is {shown(content[name])}, but must be a text")
    _one_of("defaults", defaults := content.get("defaults", "current"), DEFAULTS)
    base = baseline() if defaults == "baseline" else _NO_BASELINE
    trials = content.get("trials", 5)
    if not isinstance(trials, int) or isinstance(trials, bool) or trials < 1:
        raise InputError(f"trials is {shown(trials)}, but must be a whole number >= 1")
    return Plan(
        path=path,
        title=content["title"],
        datasets=datasets,
        methods=_methods(tables["methods"]),
        trials=trials,
        reference=content.get("reference", "idgp"),
        paper=content.get("paper"),
        heatmap=_heatmap(_texts("heatmap", content.get("heatmap", [])), list(tables["grid"])),
        curves=_flag("curves", content.get("curves", True)),
        shares=_texts("shares", content.get("shares", [])),
        defaults=defaults,
        split=_split(tables["split"], base["split"]),
        candidates=replace(
            _candidates(tables["candidates"], base["candidates"]["annotator"]),
            files=_files(
                path.parent, tables["candidates"].get("files", {}), [d for d in datasets if d not in data], trials
            ),
        ),
        settings=tables["settings"],
        grid=_grid(tables["grid"]),
        data=data,
        override=_overrides(content.get("override", []), list(tables["methods"]), datasets),
    )


def _check_runs(plan: Plan) -> None:
    """Refuse too many runs, a setting that no method has, and a value that its method does not accept."""
    most = plan.trials * len(plan.datasets) * len(plan.methods) * prod(map(len, plan.grid.values()))
    if most > _MOST_RUNS:
        raise InputError(f"it has up to {most} runs, but must have {_MOST_RUNS} at most; lower trials or the grid")
    everywhere = {name for label in plan.methods for name in plan_fields(plan.method_class(label))}
    for name in [*plan.settings, *plan.grid]:
        _one_of("settings and grid", name, everywhere)
    for label in plan.methods:
        for dataset in plan.datasets:
            for name in plan.own_settings(label, dataset):
                _one_of(f"methods.{label}", name, plan_fields(plan.method_class(label)))
            for point in plan.points(label, dataset):
                check(plan.estimator(label, dataset, point))


def _methods(tables: dict[str, Any]) -> dict[str, dict[str, Any]]:
    if not tables:
        raise InputError("methods is empty, but at least one is needed: write [methods.idgp]")
    methods = {}
    for label, table in tables.items():
        if not isinstance(table, dict):
            raise InputError(f"methods.{label} is {shown(table)}, but must be a table: write [methods.{label}]")
        method = table.get("method", label)
        _one_of(f"methods.{label}.method", method, [*classifiers(), *BOUNDS])
        methods[label] = {**table, "method": method}
    return methods


def _split(table: dict[str, Any], base: Mapping[str, Any]) -> Split:
    names = [f.name for f in fields(Split)]
    _known("split", table, names)
    split = Split(**{name: value for name, value in base.items() if name in names} | table)
    for name in ("validation", "test"):
        share = getattr(split, name)
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share < 0.5:
            raise InputError(f"split.{name} is {shown(share)}, but must be a share between 0 and 0.5")
    _flag("split.fixed", split.fixed)
    return split


def _candidates(table: dict[str, Any], base: Mapping[str, Any]) -> Candidates:
    _known("candidates", table, [f.name for f in fields(Candidates)])
    if "process" in table:
        _one_of("candidates.process", table["process"], corrupt.PROCESSES)
        parameters = table.get("parameters", {})
        _known("candidates.parameters", parameters, generate.parameters_of(table["process"]))
        plain(parameters, "candidates.parameters", lambda value, _: value)  # refuses dates and the like
    elif table.keys() - {"files"}:
        raise InputError(f"candidates has no process; add one of {', '.join(corrupt.PROCESSES)}")
    annotator, names = table.get("annotator", {}), [f.name for f in fields(Annotator)]
    _known("candidates.annotator", annotator, names)
    decided = Annotator(**{name: value for name, value in base.items() if name in names} | annotator)
    return Candidates(table.get("process"), table.get("parameters", {}), decided)


def _files(folder: Path, table: Any, datasets: list[str], trials: int) -> dict[str, list[CandidateFile]]:
    """Return the files of candidate sets of each data set, one for each trial."""
    _known("candidates.files", table, datasets)
    found = {}
    for dataset, value in table.items():
        place, paths = f"candidates.files.{dataset}", [value] if isinstance(value, str) else value
        if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
            raise InputError(f"{place} is {shown(value)}, but must be a path, or a list with one for each trial")
        if isinstance(value, list) and len(value) != trials:
            raise InputError(f"{place} has {len(value)} files, but there are {trials} trials; name one for each")
        files = [describe_file(folder / path, dataset) for path in paths]
        found[dataset] = files * trials if isinstance(value, str) else files
    return found


def _own_data(folder: Path, tables: Any, datasets: list[str]) -> dict[str, OwnData]:
    """Return the data sets that the plan brings, whose files are read and checked."""
    _known("data", tables, datasets)
    found = {}
    for name, table in tables.items():
        place = f"data.{name}"
        if name in DATASETS:
            raise InputError(f"{place} has the name of a known data set; choose another name")
        if not isinstance(table, dict):
            raise InputError(f"{place} is {shown(table)}, but must be a table: write [{place}]")
        about = {"reader": "table", **table}
        for key in ("path", "sha256", "reader"):
            if not isinstance(about.get(key), str):
                raise InputError(f"{place}.{key} is {shown(about.get(key))}, but must be a text; add it")
        options = {key: value for key, value in table.items() if key not in ("path", "sha256", "reader")}
        plain(options, place, lambda value, _: value)  # refuses dates and the like
        if not all(isinstance(value, str | int | float) for value in options.values()):
            raise InputError(f"{place} has an option that is no text, number or truth value; write it as one")
        reader_named(about["reader"], options)
        file = folder / about["path"]
        found[name] = OwnData(name, file, about["sha256"].lower(), about["reader"], tuple(sorted(options.items())))
        describe_own(found[name])
    return found


def _grid(table: dict[str, Any]) -> dict[str, list[Any]]:
    for name, values in table.items():
        if not isinstance(values, list) or not values:
            raise InputError(f"grid.{name} is {shown(values)}, but must be a list of values")
    return table


def _heatmap(axes: list[str], grid: list[str]) -> tuple[str, str] | None:
    if axes and (len(axes) != 2 or not set(axes) <= set(grid)):
        raise InputError(f"heatmap is {shown(axes)}, but must name two axes of the grid, {grid}")
    return (axes[0], axes[1]) if axes else None


def _overrides(tables: Any, labels: list[str], datasets: list[str]) -> list[Mapping[str, Any]]:
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise InputError("override must be a list of tables: write [[override]]")
    for table in tables:
        for name, known in (("methods", labels), ("datasets", datasets)):
            for value in _texts(f"override.{name}", table.get(name, [])):
                _one_of(f"override.{name}", value, known)
    return tables


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InputError(f"{name} is {shown(value)}, but must be true or false")
    return value


def _texts(name: str, value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise InputError(f"{name} is {shown(value)}, but must be a list of names")
    for text in value:
        if value.count(text) > 1:
            raise InputError(f"{name} names {shown(text)} more than once; name it once")
    return value


def _known(where: str, table: Any, allowed: Iterable[str]) -> None:
    if not isinstance(table, dict):
        raise InputError(f"{where} is {shown(table)}, but must be a table")
    for name in table:
        _one_of(where, name, allowed)


def _one_of(where: str, value: Any, allowed: Iterable[str]) -> None:
    """Refuse a name that is not among those allowed."""
    names = sorted(allowed)
    if value not in names:
        close = close_names(value, names, most=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise InputError(f"{where} names {shown(value)}, but {hint}it must be one of {', '.join(names)}")
