"""Plans: experiments written in TOML, checked on reading, and the runs that they stand for. No code runs.

A plan names methods, data sets, trials, a grid, and the way candidate sets are made::

    title = "Real-world data sets"
    datasets = ["lost", "msrcv2"]
    trials = 5

    [split]                 # shares of the rows; sets with a test part of their own keep it
    validation = 0.1
    test = 0.1

    [settings]              # of all methods
    network = "linear"
    epochs = 500

    [grid]                  # every combination is tried
    lr = [0.001, 0.01]

    [methods.idgp]          # a label, and settings of its own
    [methods.idgp-ml]
    method = "idgp"
    objective = "ml"
    [methods.supervised]    # the same network on true labels

    [[override]]            # for some methods, some data sets, or both
    methods = ["idgp"]
    datasets = ["lost"]
    lr = 0.05               # takes the place of the grid's values
"""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from difflib import get_close_matches
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any

from oneof.bench.ledger import run_key
from oneof.data import annotator as annotators
from oneof.data import corrupt, generate
from oneof.data.annotator import Annotator
from oneof.data.catalogue import DATASETS
from oneof.estimator.classifier import PartialLabelClassifier
from oneof.estimator.fields import check
from oneof.methods import METHODS

PROTOCOL = 1  # goes into every key; raise it when the way runs are split, trained or judged changes
SUPERVISED = "supervised"  # the upper bound: cross-entropy on true labels
_NOT_SET = ("random_state", "device", "verbose", "checkpoint")  # fields that the runner sets
_RUNNER_DEFAULTS = {"threads": 1}


@dataclass(frozen=True)
class Split:
    """How the rows are parted; ``fixed`` gives all trials the split of the first."""

    validation: float = 0.1
    test: float = 0.1
    fixed: bool = False


@dataclass(frozen=True)
class Candidates:
    """How candidate sets are made; without a process the data set's own are taken."""

    process: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    annotator: Annotator = field(default_factory=Annotator)


@dataclass(frozen=True)
class Run:
    """One training: where it stands in the plan, and all that can change its result."""

    label: str
    dataset: str
    point: Mapping[str, Any]  # its place in the grid
    trial: int
    spec: Mapping[str, Any]

    @property
    def key(self) -> str:
        """The hash of the spec."""
        return run_key(dict(self.spec))


@dataclass(frozen=True)
class Plan:
    """An experiment."""

    path: Path
    title: str
    datasets: list[str]
    methods: dict[str, dict[str, Any]]  # label -> "method" and settings of its own
    trials: int = 5
    reference: str = "idgp"
    paper: str | None = None  # a table of the paper's numbers
    heatmap: tuple[str, str] | None = None  # two axes of the grid to draw
    split: Split = Split()
    candidates: Candidates = Candidates()
    settings: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, list[Any]] = field(default_factory=dict)
    override: list[Mapping[str, Any]] = field(default_factory=list)

    def points(self, label: str, dataset: str) -> list[dict[str, Any]]:
        """Return the grid of a method on a data set; what is set for it alone takes the place of an axis."""
        own, allowed = self._own_settings(label, dataset), _field_names(self._class(label))
        axes = {name: values for name, values in self.grid.items() if name not in own and name in allowed}
        return [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]

    def runs(self) -> list[Run]:
        """Return every run, trial by trial: early results cover the whole plan."""
        return [
            Run(label, dataset, point, trial, self._spec(label, dataset, point, trial))
            for trial in range(self.trials)
            for dataset in self.datasets
            for label in self.methods
            for point in self.points(label, dataset)
        ]

    def _spec(self, label: str, dataset: str, point: Mapping[str, Any], trial: int) -> dict[str, Any]:
        estimator = self._estimator(label, dataset, point)
        supervised = self.methods[label]["method"] == SUPERVISED
        return {
            "protocol": PROTOCOL,
            "dataset": dataset,
            "data": data_checksum(dataset),
            "split": {**asdict(self.split), "seed": 0 if self.split.fixed else trial},
            "candidates": self._candidates(trial),
            "labels": "true" if supervised else "candidates",
            "method": type(estimator).__name__,
            "version": estimator.version,
            "settings": {f.name: getattr(estimator, f.name) for f in fields(estimator) if f.name not in _NOT_SET},
            "seed": trial,
        }

    def _estimator(self, label: str, dataset: str, point: Mapping[str, Any]) -> PartialLabelClassifier:
        """Make the estimator of a run; settings for all reach those methods that have them."""
        cls = self._class(label)
        shared = {name: value for name, value in self.settings.items() if name in _field_names(cls)}
        return cls(**{**_RUNNER_DEFAULTS, **shared, **self._own_settings(label, dataset), **point})

    def _candidates(self, trial: int) -> dict[str, Any] | None:
        if self.candidates.process is None:
            return None
        facts: dict[str, Any] = {
            "process": self.candidates.process,
            "parameters": dict(self.candidates.parameters),
            "seed": trial,
            "version": generate.VERSION,
        }
        if generate.asks_annotator(self.candidates.process):
            facts |= {"annotator": asdict(self.candidates.annotator), "annotator_version": annotators.VERSION}
        return facts

    def _class(self, label: str) -> type[PartialLabelClassifier]:
        method = self.methods[label]["method"]
        return METHODS["cc" if method == SUPERVISED else method]

    def _own_settings(self, label: str, dataset: str) -> dict[str, Any]:
        """Return what is set for this method or for this data set alone; the last word counts."""
        own = {name: value for name, value in self.methods[label].items() if name != "method"}
        for override in self.override:
            if label in override.get("methods", [label]) and dataset in override.get("datasets", [dataset]):
                own |= {name: value for name, value in override.items() if name not in ("methods", "datasets")}
        return own


def data_checksum(dataset: str) -> str:
    """Return what tells the files of a data set from others; loading checks that they are these."""
    sums = [file.sha256 or "unknown" for file in DATASETS[dataset].files]
    return sha256(" ".join(sums).encode()).hexdigest()[:16]


def read_plan(path: str | Path) -> Plan:
    """Read and check a plan."""
    path = Path(path)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no plan {str(path)!r}; check the path") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"the plan {str(path)!r} is not valid TOML ({error}); mend it there") from None
    try:
        plan = _parse(path, content)
        _check_runs(plan)
    except (ValueError, TypeError) as error:
        raise ValueError(f"the plan {str(path)!r}: {error}") from None
    return plan


def _parse(path: Path, content: dict[str, Any]) -> Plan:
    _known("the plan", content, [f.name for f in fields(Plan) if f.name != "path"])
    for name in ("title", "datasets", "methods"):
        if name not in content:
            raise ValueError(f"it has no {name!r}, but every plan names its title, datasets and methods")
    tables = {name: content.get(name, {}) for name in ("split", "candidates", "settings", "grid", "methods")}
    for name, value in tables.items():
        if not isinstance(value, dict):
            raise ValueError(f"{name} is {value!r}, but must be a table: write [{name}]")
    datasets = _texts("datasets", content["datasets"])
    for name in datasets:
        _one_of("datasets", name, DATASETS)
    heatmap = _texts("heatmap", content.get("heatmap", []))
    if heatmap and (len(heatmap) != 2 or not set(heatmap) <= set(tables["grid"])):
        raise ValueError(f"heatmap is {heatmap!r}, but must name two axes of the grid, {list(tables['grid'])}")
    for name in ("title", "reference", "paper"):
        if not isinstance(content.get(name, ""), str):
            raise ValueError(f"{name} is {content[name]!r}, but must be a text")
    trials = content.get("trials", 5)
    if not isinstance(trials, int) or isinstance(trials, bool) or trials < 1:
        raise ValueError(f"trials is {trials!r}, but must be a whole number >= 1")
    return Plan(
        path=path,
        title=content["title"],
        datasets=datasets,
        methods=_methods(tables["methods"]),
        trials=trials,
        reference=content.get("reference", "idgp"),
        paper=content.get("paper"),
        heatmap=(heatmap[0], heatmap[1]) if heatmap else None,
        split=_split(tables["split"]),
        candidates=_read_candidates(tables["candidates"]),
        settings=tables["settings"],
        grid=_grid(tables["grid"]),
        override=_overrides(content.get("override", []), list(tables["methods"]), datasets),
    )


def _check_runs(plan: Plan) -> None:
    """Refuse a setting that no method has, and a value that its method does not accept."""
    everywhere = {name for label in plan.methods for name in _field_names(plan._class(label))}
    for name in [*plan.settings, *plan.grid]:
        _one_of("settings and grid", name, everywhere)
    for label in plan.methods:
        for dataset in plan.datasets:
            for name in plan._own_settings(label, dataset):
                _one_of(f"methods.{label}", name, _field_names(plan._class(label)))
            for point in plan.points(label, dataset):
                check(plan._estimator(label, dataset, point))


def _methods(tables: dict[str, Any]) -> dict[str, dict[str, Any]]:
    if not tables:
        raise ValueError("methods is empty, but at least one is needed: write [methods.idgp]")
    methods = {}
    for label, table in tables.items():
        if not isinstance(table, dict):
            raise ValueError(f"methods.{label} is {table!r}, but must be a table: write [methods.{label}]")
        method = table.get("method", label)
        _one_of(f"methods.{label}.method", method, [*METHODS, SUPERVISED])
        methods[label] = {**table, "method": method}
    return methods


def _split(table: dict[str, Any]) -> Split:
    _known("split", table, [f.name for f in fields(Split)])
    split = Split(**table)
    for name in ("validation", "test"):
        share = getattr(split, name)
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share < 0.5:
            raise ValueError(f"split.{name} is {share!r}, but must be a share between 0 and 0.5")
    if not isinstance(split.fixed, bool):
        raise ValueError(f"split.fixed is {split.fixed!r}, but must be true or false")
    return split


def _read_candidates(table: dict[str, Any]) -> Candidates:
    _known("candidates", table, [f.name for f in fields(Candidates)])
    if "process" in table:
        _one_of("candidates.process", table["process"], corrupt.PROCESSES)
        _known("candidates.parameters", table.get("parameters", {}), generate.parameters_of(table["process"]))
    elif table:
        raise ValueError(f"candidates has no process; add one of {', '.join(corrupt.PROCESSES)}")
    annotator = table.get("annotator", {})
    _known("candidates.annotator", annotator, [f.name for f in fields(Annotator)])
    return Candidates(table.get("process"), table.get("parameters", {}), Annotator(**annotator))


def _grid(table: dict[str, Any]) -> dict[str, list[Any]]:
    for name, values in table.items():
        if not isinstance(values, list) or not values:
            raise ValueError(f"grid.{name} is {values!r}, but must be a list of values")
    return table


def _overrides(tables: Any, labels: list[str], datasets: list[str]) -> list[Mapping[str, Any]]:
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise ValueError("override must be a list of tables: write [[override]]")
    for table in tables:
        for name, known in (("methods", labels), ("datasets", datasets)):
            for value in _texts(f"override.{name}", table.get(name, [])):
                _one_of(f"override.{name}", value, known)
    return tables


def _field_names(cls: type[PartialLabelClassifier]) -> list[str]:
    return [f.name for f in fields(cls) if f.name not in _NOT_SET]


def _texts(name: str, value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise ValueError(f"{name} is {value!r}, but must be a list of names")
    return value


def _known(where: str, table: Any, allowed: Iterable[str]) -> None:
    if not isinstance(table, dict):
        raise ValueError(f"{where} is {table!r}, but must be a table")
    for name in table:
        _one_of(where, name, allowed)


def _one_of(where: str, value: Any, allowed: Iterable[str]) -> None:
    """Refuse a name that is not among those allowed."""
    names = sorted(allowed)
    if value not in names:
        close = get_close_matches(str(value), names, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise ValueError(f"{where} names {value!r}, but {hint}it must be one of {', '.join(names)}")
