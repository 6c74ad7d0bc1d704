"""Sections of a report: its words, tables and figures, in no format yet."""

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from statistics import fmean

from oneof.bench.plan import SUPERVISED
from oneof.bench.record import CRITERIA, WAYS
from oneof.bench.report.grids import Result, accuracies, accuracy, differences, plain_marks, signed
from oneof.bench.report.intervals import intervals
from oneof.bench.report.provenance import provenance, set_notes
from oneof.bench.report.results import Report, Surface
from oneof.bench.report.run_results import Curves, MethodResult, mean_curves
from oneof.bench.report.statistics import cell
from oneof.pages.charts import Series, learning_curves
from oneof.pages.content import MISSING, Entry, Figure, Grid, Section
from oneof.pages.frame import GREY, HUES
from oneof.pages.heat_maps import HeatMap, heat_map

__all__ = ["sections"]

_FACTS = {  # of candidate sets: what it is called, and the factor that makes it readable
    "mean_size": ("labels in a set", 1),
    "one_label": ("sets of one label, %", 100),
    "full": ("sets of all labels, %", 100),
    "certain_distractor": ("rows with a wrong label that is always drawn, %", 100),
    "annotator_train_accuracy": ("annotator on training rows, %", 100),
    "annotator_test_accuracy": ("annotator on test rows, %", 100),
}


def sections(report: Report) -> list[Section]:
    """Return the sections that have something to show."""
    makers = (
        _results,
        _paper,
        _gap,
        _settings,
        _curves,
        _sensitivity,
        _criteria,
        _candidates,
        _provenance,
    )
    return [section for make in makers if (section := make(report)) is not None]


def _results(report: Report) -> Section:
    results = report.results
    table, distances = accuracies(results), differences(results)
    compared = any(result.comparison for row in results.rows.values() for result in row.values())
    notes = [*(_test_notes(report) if compared else []), *set_notes(report)]
    text = (
        "Mean ± sample standard deviation over trials. Point of the grid and epoch are those with the highest "
        "accuracy on validation rows; of points, the mean over trials counts."
    )
    parts: list[Grid | Figure] = [replace(table, notes=[*table.notes, *notes])]
    if compared:
        parts.append(replace(distances, notes=[*distances.notes, *notes]))
    if (picture := intervals(results)) is not None:
        parts.insert(0, picture)
    return Section("results", "Results", text, parts)


def _test_notes(report: Report) -> list[str]:
    """Say which test was used where."""
    sizes = {name: report.resplits(name) for name in report.plan.datasets}
    splits = [f"{name} {size[1]}/{size[0]}" for name, size in sizes.items() if size is not None]
    same = [name for name, size in sizes.items() if size is None]
    notes = []
    if splits:
        notes.append(
            "Trials are random splits of the same rows, so not independent: tests and intervals use the "
            f"Nadeau-Bengio correction (test/training rows: {', '.join(splits)}). {plain_marks(report.results)}"
        )
    if same:
        notes.append(f"Plain paired t-tests and intervals, the test rows being the same: {', '.join(same)}.")
    return notes


def _paper(report: Report) -> Section | None:
    if report.paper is None:
        return None
    groups = []
    for name in report.plan.datasets:
        printed = report.paper.numbers.get(name, {})
        labels = [label for label in report.plan.methods if label in printed]
        labels += [label for label in printed if label not in labels]
        groups.append([_beside(report, label, name, *printed[label]) for label in labels])
    grid = Grid(
        "The paper's accuracies and ours (%)",
        ["data set", "method", "paper", "ours", "ours − paper"],
        [group for group in groups if group],
    )
    text = f"{report.paper.about or 'Accuracies'}, as printed in {report.paper.source or 'the paper'}."
    return Section("paper", "Beside the paper", text, [grid]) if grid.groups else None


def _beside(report: Report, label: str, name: str, mean: float, std: float) -> list[Entry]:
    ours = report.results.rows.get(label, {}).get(name)
    difference = MISSING if ours is None else signed(ours.cell.mean - mean)
    return [Entry(name), Entry(label), Entry(f"{mean:.2f} ± {std:.2f}"), _plain(ours), Entry(difference)]


def _gap(report: Report) -> Section | None:
    if not report.bounds or report.plan.methods[report.bounds[0]]["method"] != SUPERVISED:
        return None
    bound, reference, names = report.bounds[0], report.plan.reference, report.plan.datasets
    contest = sorted(report.results.contest, key=lambda label: label != reference)
    gaps = [[Entry(label), *(_points(report.gap(label, name)) for name in names)] for label in contest]
    parts = [Grid(f"{bound} minus each method, in points", ["method", *names], [gaps])]
    closed = {name: report.closed(name) for name in names}
    rows = [
        [Entry(name), Entry(c.baseline), _points(c.gain), _points(c.room), _number(100 * c.share, "{:.0f} %")]
        for name, c in closed.items()
        if c is not None
    ]
    if rows:
        header = ["data set", "best baseline", f"{reference} minus it", f"{bound} minus it", "share closed"]
        parts.append(Grid(f"How much of the gap above the best baseline {reference} closes", header, [rows]))
    text = (
        f"{bound} learns the same network, with the same search, from true labels. Differences are over trials "
        "that all have."
    )
    text = " ".join([text, *set_notes(report)])
    return Section("gap", "Distance to the upper bound", text, parts)


def _settings(report: Report) -> Section:
    rows = [
        [[Entry(name), Entry(label), *_effort(report.outcomes[label][name])] for label in report.plan.methods]
        for name in report.plan.datasets
    ]
    header = ["data set", "method", "chosen", "validation accuracy", "points", "runs", "trials", "seconds a run"]
    text = "Runs counts those that are done, over all points of the grid and all trials: the effort of the search."
    return Section("settings", "Chosen settings", text, [Grid("Chosen settings and search", header, rows)])


def _effort(outcome: MethodResult) -> list[Entry]:
    choice, done, points = outcome.choose(), outcome.done, len(outcome.search)
    return [
        Entry(MISSING if choice is None else choice.point or "no grid"),
        _number(math.nan if choice is None else choice.validation, "{:.2f}"),
        Entry(str(points)),
        _share(len(done), points * outcome.planned),
        _share(0 if choice is None else len(choice.trials), outcome.planned),
        _number(fmean(trial.seconds for trial in done) if done else math.nan, "{:.1f}"),
    ]


def _curves(report: Report) -> Section | None:
    if not report.plan.curves:
        return None
    figures = []
    for name in report.plan.datasets:
        chosen = {label: row[name].choose() for label, row in report.outcomes.items()}
        lines = {
            label: mean_curves(list(choice.trials.values()))
            for label, choice in chosen.items()
            if choice is not None
        }
        if lines:
            figures.append(_curve_figure(report, name, lines))
    text = (
        "Accuracy after each epoch at the chosen point of the grid: the mean over trials, up to the last epoch of "
        "the shortest. Validation accuracy chooses an epoch; test accuracy is only watched. A steep rise in the "
        "first fifth may be cut off."
    )
    return Section("curves", "Learning curves", text, figures) if figures else None


def _curve_figure(report: Report, name: str, lines: Mapping[str, Curves]) -> Figure:
    """Draw the reference bold, and what learns from true labels grey and dashed."""
    others = itertools.cycle(HUES[1:])
    special = {**dict.fromkeys(report.bounds, GREY), report.plan.reference: HUES[0]}
    hues = {label: special.get(label) or next(others) for label in lines}

    def series(part: str) -> list[Series]:
        return [
            Series(
                label,
                hues[label],
                list(zip(curves.epochs, getattr(curves, part), strict=True)),
                bold=label == report.plan.reference,
                dashed=label in report.bounds,
            )
            for label, curves in lines.items()
        ]

    panels = {"validation accuracy, %": series("validation"), "test accuracy, %": series("test")}
    return learning_curves(f"curves-{name}", name, panels)


def _sensitivity(report: Report) -> Section | None:
    axes = report.plan.heatmap
    if axes is None:
        return None
    figures = []
    for name in report.plan.datasets:
        found = {label: report.surface(label, name) for label in report.plan.methods}
        surfaces = {label: surface for label, surface in found.items() if surface is not None}
        if surfaces:
            tables = [_surface_table(f"{label} on {name}", s, axes) for label, s in surfaces.items()]
            panels = [heat_map(_heat_map(label, s, axes)) for label, s in surfaces.items()]
            figures.append(Figure(f"heatmap-{name}", name, panels, tables))
    text = (
        f"Mean test accuracy in percent over {axes[0]} and {axes[1]}. The framed field, bold in tables, is the "
        "one that validation accuracy chooses; * marks fewer trials than planned."
    )
    return Section("sensitivity", "Sensitivity", text, figures) if figures else None


def _heat_map(title: str, surface: Surface, axes: tuple[str, str]) -> HeatMap:
    return HeatMap(
        title,
        axes,
        list(map(str, surface.x)),
        list(map(str, surface.y)),
        {place: found.mean for place, found in surface.cells.items()},
        {place for place, found in surface.cells.items() if found.trials < found.planned},
        surface.chosen,
    )


def _surface_table(title: str, surface: Surface, axes: tuple[str, str]) -> Grid:
    def field(i: int, j: int) -> Entry:
        found = surface.cells.get((i, j))
        entry = _plain(Result(found) if found is not None and found.trials else None)
        return replace(entry, bold=(i, j) == surface.chosen)

    rows = [
        [Entry(str(value)), *(field(i, j) for i in range(len(surface.x)))] for j, value in enumerate(surface.y)
    ]
    return Grid(f"{title}: test accuracy (%)", [f"{axes[1]} / {axes[0]}", *map(str, surface.x)], [rows])


def _criteria(report: Report) -> Section:
    groups = [
        [[Entry(name), Entry(label), *_by_way(report.outcomes[label][name])] for label in report.plan.methods]
        for name in report.plan.datasets
    ]
    used = {way: "uses true labels" if CRITERIA.get(way) else "no true labels" for way in WAYS}
    ways = [f"{way.replace('_', ' ')} ({marked})" for way, marked in used.items()]
    header = ["data set", "method", *ways, "transductive accuracy (uses true labels)"]
    text = (
        "Test accuracy where each criterion, measured on validation rows, chooses both the point of the grid and "
        "the epoch; with the last epoch, approximated accuracy chooses the point. Transductive accuracy is the "
        "share of training rows whose most likely candidate is the true label, at the point that validation "
        "accuracy chooses."
    )
    early = any(t.patience for row in report.outcomes.values() for outcome in row.values() for t in outcome.done)
    note = "Training itself was stopped by validation accuracy: to that extent every column uses true labels."
    grid = Grid("Test accuracy (%) by selection criterion", header, groups, [note] * early)
    return Section("criteria", "The selection criterion", text, [grid])


def _by_way(outcome: MethodResult) -> Iterator[Entry]:
    choice = outcome.choose()
    trials = {} if choice is None else choice.trials
    for scores in (*map(outcome.scores, WAYS), {i: trial.transductive for i, trial in trials.items()}):
        yield _plain(Result(cell(scores, outcome.planned)) if scores else None)


def _candidates(report: Report) -> Section | None:
    """Average over trials; all methods of a trial see the same sets."""
    facts = {}
    for name in report.plan.datasets:
        trials = {
            i: t for row in report.outcomes.values() for p in row[name].search.values() for i, t in p.items()
        }
        known = [trials[i].candidates for i in sorted(trials)]
        facts[name] = {f: fmean(c[f] for c in known if f in c) for f in _FACTS if any(f in c for c in known)}
    shown = [fact for fact in _FACTS if any(fact in row for row in facts.values())]
    rows = [
        [Entry(name), *(_number(_FACTS[f][1] * row.get(f, math.nan), "{:.2f}") for f in shown)]
        for name, row in facts.items()
    ]
    made = report.plan.candidates
    text = (
        "The data sets' own candidate sets."
        if made.process is None
        else f"Candidate sets of the process {made.process}."
    )
    if made.files:
        text += f" Those of files: {', '.join(made.files)}."
    grid = Grid("Candidate sets, mean over trials", ["data set", *(_FACTS[fact][0] for fact in shown)], [rows])
    return Section("candidates", "Candidate sets", text, [grid]) if shown else None


def _provenance(report: Report) -> Section:
    text = "The key of a run is a hash of all that can change its result; its line in the ledger holds everything."
    return Section("provenance", "Provenance", text, provenance(report), printed=False)


def _plain(result: Result | None) -> Entry:
    """Write mean ± deviation without a verdict."""
    return accuracy(None if result is None else Result(result.cell))


def _points(value: float) -> Entry:
    return Entry(MISSING if math.isnan(value) else signed(value))


def _share(number: int, planned: int) -> Entry:
    return Entry(str(number) if number == planned else f"{number} of {planned}")


def _number(value: float, form: str) -> Entry:
    return Entry(MISSING if math.isnan(value) else form.format(value).replace("-", "−"))
