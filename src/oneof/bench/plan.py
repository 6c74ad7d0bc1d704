"""Plans: experiments, and the runs that they stand for. They are written in TOML; no code runs when one is read.

A plan names methods, data sets, trials, a grid, and the way candidate sets are made::

    title = "Real-world data sets"
    datasets = ["lost", "msrcv2"]
    trials = 5
    curves = true           # false: no learning curves, as of methods without epochs
    shares = ["table2"]     # plans in whose ledgers some of the runs are already
    defaults = "baseline"   # what is not named below: "current" values of the library, or those of the baseline

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
    [methods.oracle]        # the same network, knowing P(S | x, y) of the process that made the sets

    [candidates]            # instead of the data sets' own
    process = "instance"    # see `oneof.data.corrupt`
    parameters = {rate = 0.4}
    files = {lost = "sets.npz"}   # of oneof corrupt or oneof sets: for all trials, or a list with one for each

    [data.animals]          # a data set of one's own, which datasets may then name
    path = "animals.csv"    # beside the plan
    sha256 = "..."          # of the file: another one is refused
    reader = "table"        # or "npz", or one of an installed package; what follows are its options
    truth = "species"

    [[override]]            # for some methods, some data sets, or both
    methods = ["idgp"]
    datasets = ["lost"]
    lr = 0.05               # takes the place of the grid's values

With ``defaults = "current"``, which is the default, a setting that the plan does not name has the default of its
class. With ``defaults = "baseline"`` it has its value in the frozen baseline of `oneof.bench.keys`: the plan means
the same runs when a class gets another default. Published plans have this line.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any

from oneof.bench.candidate_files import CandidateFile
from oneof.bench.keys import baseline, run_key
from oneof.bench.record import Labels, Spec
from oneof.data import annotator as annotators
from oneof.data import generate
from oneof.data.annotator import Annotator
from oneof.data.catalogue import DATASETS, Dataset
from oneof.data.own import OwnData, describe_own
from oneof.estimator import Role, names_with
from oneof.methods import Classifier, classifiers

__all__ = [
    "BOUNDS",
    "DEFAULTS",
    "ORACLE",
    "SUPERVISED",
    "Candidates",
    "Plan",
    "Run",
    "Split",
    "data_checksum",
    "plan_fields",
    "run_class",
]

PROTOCOL = 1  # goes into every key; raise it when the way runs are split, trained or judged changes
SUPERVISED = "supervised"  # the upper bound: cross-entropy on true labels
ORACLE = "oracle"  # the upper bound of what sets can teach: CC that knows their likelihoods given each label
BOUNDS: dict[str, Labels] = {SUPERVISED: "true", ORACLE: "likelihoods"}  # what they learn from
DEFAULTS = ("current", "baseline")  # where settings come from that a plan does not name
_RUNNER_DEFAULTS = {"threads": 1}


@dataclass(frozen=True)
class Split:
    """How the rows are parted; ``fixed`` gives all trials the split of the first."""

    validation: float = 0.1
    test: float = 0.1
    fixed: bool = False


@dataclass(frozen=True)
class Candidates:
    """How candidate sets are made; without a process the data set's own are taken.

    Data sets that have ``files``, one for each trial, take their sets from these instead.
    """

    process: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    annotator: Annotator = field(default_factory=Annotator)
    files: Mapping[str, list[CandidateFile]] = field(default_factory=dict)  # by data set


@dataclass(frozen=True)
class Run:
    """One training: where it is in the plan, and all that can change its result."""

    label: str
    dataset: str
    point: Mapping[str, Any]  # its place in the grid
    trial: int
    spec: Spec
    sets: Path | OwnData | None = None  # the file of its candidate sets, or of its rows, if they are in one

    @property
    def key(self) -> str:
        """The hash of the spec."""
        return run_key(self.spec)

    @property
    def facts(self) -> Dataset:
        """What is known of its data set."""
        return describe_own(self.sets) if isinstance(self.sets, OwnData) else DATASETS[self.dataset]

    @property
    def name(self) -> str:
        """The run in words."""
        point = ", ".join(f"{name} {value}" for name, value in self.point.items())
        return f"{self.label} on {self.dataset}, trial {self.trial}" + (f" ({point})" if point else "")


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
    curves: bool = True  # whether reports draw learning curves; published ledgers keep their ends alone otherwise
    shares: list[str] = field(default_factory=list)  # plans beside it, in whose ledgers some of its runs are
    defaults: str = "current"  # one of DEFAULTS
    split: Split = Split()
    candidates: Candidates = Candidates()
    settings: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, list[Any]] = field(default_factory=dict)
    override: list[Mapping[str, Any]] = field(default_factory=list)
    data: Mapping[str, OwnData] = field(default_factory=dict)  # data sets of one's own, by name
    by_name: bool = False  # whether it was asked for by its name, as one of those that come with the library

    @property
    def folder(self) -> Path:
        """Where what it makes is kept: beside the plan, and in the current folder if it was asked for by name."""
        return Path() if self.by_name else self.path.parent

    def ledgers(self) -> list[Path]:
        """Return the ledgers in which its runs are by default: its own, and those that it shares."""
        return [self.folder / "results" / f"{name}.jsonl" for name in (self.path.stem, *self.shares)]

    def facts(self, dataset: str) -> Dataset:
        """Return what is known of a data set."""
        return describe_own(self.data[dataset]) if dataset in self.data else DATASETS[dataset]

    def points(self, label: str, dataset: str) -> list[dict[str, Any]]:
        """Return the grid of a method on a data set; what is set for it alone takes the place of an axis."""
        own, allowed = self.own_settings(label, dataset), plan_fields(self.method_class(label))
        axes = {name: values for name, values in self.grid.items() if name not in own and name in allowed}
        return [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]

    def runs(self) -> list[Run]:
        """Return every run, trial by trial: early results cover the whole plan."""
        return [
            Run(label, dataset, point, trial, self._spec(label, dataset, point, trial), self._sets(dataset, trial))
            for trial in range(self.trials)
            for dataset in self.datasets
            for label in self.methods
            for point in self.points(label, dataset)
        ]

    def _spec(self, label: str, dataset: str, point: Mapping[str, Any], trial: int) -> Spec:
        estimator = self.estimator(label, dataset, point)
        labels = BOUNDS.get(self.methods[label]["method"], "candidates")
        return {
            "protocol": PROTOCOL,
            "dataset": dataset,
            "data": self.data[dataset].checksum if dataset in self.data else data_checksum(dataset),
            "split": {**asdict(self.split), "seed": 0 if self.split.fixed else trial},
            "candidates": self._candidates(dataset, trial, labels),
            "labels": labels,
            "method": type(estimator).__name__,
            "version": estimator.version,
            "settings": {name: getattr(estimator, name) for name in plan_fields(type(estimator))},
            "seed": trial,
        }

    def estimator(self, label: str, dataset: str, point: Mapping[str, Any]) -> Classifier:
        """Make the estimator of a run; settings for all methods reach those that have them."""
        cls = self.method_class(label)
        unnamed = baseline(cls.__name__)["settings"] if self.defaults == "baseline" else {}
        everywhere = {**unnamed, **_RUNNER_DEFAULTS, **self.settings}
        shared = {name: everywhere[name] for name in plan_fields(cls) if name in everywhere}
        return cls(**{**shared, **self.own_settings(label, dataset), **point})

    def _sets(self, dataset: str, trial: int) -> Path | OwnData | None:
        if dataset in self.data:
            return self.data[dataset]
        files = self.candidates.files.get(dataset)
        return None if files is None else files[trial].path

    def _candidates(self, dataset: str, trial: int, labels: Labels) -> dict[str, Any] | None:
        if dataset in self.candidates.files:
            file = self.candidates.files[dataset][trial]
            known = {} if labels != "likelihoods" else {"scores_sha256": file.scores_sha256}
            return {"sha256": file.sha256, **known}
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

    def method_class(self, label: str) -> type[Classifier]:
        """Return the class of a method."""
        method = self.methods[label]["method"]
        return classifiers()["cc" if method in BOUNDS else method]

    def own_settings(self, label: str, dataset: str) -> dict[str, Any]:
        """Return what is set for this method or for this data set alone; of two values the last one counts."""
        own = {name: value for name, value in self.methods[label].items() if name != "method"}
        for override in self.override:
            if label in override.get("methods", [label]) and dataset in override.get("datasets", [dataset]):
                own |= {name: value for name, value in override.items() if name not in ("methods", "datasets")}
        return own


def data_checksum(dataset: str) -> str:
    """Return what tells the files of a data set from others; loading checks that they are these."""
    sums = [file.sha256 or "unknown" for file in DATASETS[dataset].files]
    return sha256(" ".join(sums).encode()).hexdigest()[:16]


def plan_fields(cls: type[Classifier]) -> list[str]:
    """Return the settings of a method that a plan may name: all fields but those that the runner sets."""
    left_out = names_with(cls, Role.NOT_IN_PLANS)
    return [f.name for f in fields(cls) if f.name not in left_out]


def run_class(spec: Mapping[str, Any]) -> type[Classifier]:
    """Return the class that a spec names."""
    return {cls.__name__: cls for cls in classifiers().values()}[spec["method"]]
