"""The chart of annotators in docs/candidates.md: its runs, how they are carried out, and what is drawn of them."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import fmean, stdev
from xml.etree import ElementTree

import numpy as np
import pytest

from markup import told
from oneof.bench.keys import run_key
from oneof.bench.ledger import read
from oneof.bench.plan_file import read_plan
from oneof.bench.running.engines import TaskResult
from oneof.data import PartialLabels
from oneof.data.generate import _arguments
from oneof.pages.charts import standalone

ROOT = Path(__file__).parents[1]
LEDGER = ROOT / "benchmarks" / "results" / "annotators.jsonl"
AGAIN = "write it again with python benchmarks/annotators.py --draw"
published = pytest.mark.skipif(not LEDGER.is_file(), reason="benchmarks/results/annotators.jsonl is not there yet")
EPOCHS = (2, 5, 10, 20, 50, 100)


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))


@pytest.fixture
def results():
    import annotators_results

    return annotators_results


@pytest.fixture
def command():
    import annotators

    return annotators


def sets_of(spec):
    """What decides the sets: epochs, temperature, rate."""
    parameters = {"temperature": 1.0, "rate": 0.4} | spec["candidates"]["parameters"]
    return spec["candidates"]["annotator"]["epochs"], parameters["temperature"], parameters["rate"]


def made(spec):
    """A record with numbers that tell method, setting and trial apart."""
    epochs, temperature, rate = sets_of(spec)
    method = {"PRODEN": 0.70, "CC": 0.72, "IDGP": 0.74, "Membership": 0.76}[spec["method"]]
    accuracy = 0.89 if spec["labels"] == "true" else method + 0.001 * epochs + 0.01 * temperature - 0.05 * rate
    accuracy += 0.002 * spec["seed"]
    names = ("validation_accuracy", "approximated_accuracy", "covering_rate")
    result = {"epoch": 3, "validation": dict.fromkeys(names, 0.8), "test_accuracy": accuracy, "true_labels": True}
    return {
        "key": run_key(dict(spec)),
        "status": "done",
        "spec": spec,
        "device": "made",
        "versions": {"torch": "0"},
        "commit": "0",
        "seconds": 1.0,
        "memory": {"process_mb": 500.0},
        "epochs": 20,
        "candidates": {
            "mean_size": 3 + 0.01 * epochs + 0.1 * spec["seed"],
            "certain_distractor": 1 - 0.002 * epochs,
            "annotator_train_accuracy": 0.99,
            "annotator_test_accuracy": 0.9 - 0.1 / epochs,
        },
        "results": {
            **dict.fromkeys((*names, "last_epoch"), result),
            "transductive": {"accuracy": 0.8, "true_labels": True},
        },
        "curves": {"epoch": [0], **{name: [0.8] for name in (*names, "loss", "test_accuracy")}},
    }


def write(path, runs):
    path.write_text("".join(json.dumps(made(run.spec)) + "\n" for run in runs), encoding="utf-8")
    return path


def cells(table):
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]


# --- The runs ---------------------------------------------------------------------------------------------


def test_twelve_settings_on_three_lines_that_cross(results):
    assert len(results.SETTINGS) == 12
    assert set(results.SETTINGS) == {
        *((epochs, 1, 0.4) for epochs in EPOCHS),
        *((20, temperature, 0.4) for temperature in (0.5, 2, 4)),
        *((20, 1, rate) for rate in (0.2, 0.6, 0.8)),
    }
    assert set.intersection(*map(set, results.LINES.values())) == {(20, 1, 0.4)}


def test_what_is_not_said_is_temperature_1_and_rate_0_4():
    data = PartialLabels(np.zeros((10, 1)), np.eye(10, dtype=bool), np.arange(10), list(range(10)), "ten classes")
    arguments = _arguments(data, "instance", {})
    assert (arguments["temperature"], arguments["rate"]) == (1, 0.4)


def test_every_setting_has_all_methods_and_true_labels_are_learnt_once(results):
    runs = results.chart().runs()
    assert len({run.key for run in runs}) == len(runs) == 12 * 4 * 2 + 2
    found = [(sets_of(run.spec), run.label, run.trial) for run in runs if run.label != "supervised"]
    assert set(found) == {
        (tuple(setting), label, trial)
        for setting in results.SETTINGS
        for label in ("proden", "cc", "idgp", "membership")
        for trial in (0, 1)
    }
    assert [run.trial for run in runs if run.spec["labels"] == "true"] == [0, 1]
    assert {run.dataset for run in runs} == {"fashion-mnist"}


def test_an_annotator_of_5_epochs_gives_the_runs_of_table_1(results):
    table = {
        (run.label, run.trial): run.key
        for run in read_plan(ROOT / "benchmarks" / "table1-mlp.toml").runs()
        if run.dataset == "fashion-mnist"
    }
    mine = {(run.label, run.trial): run.key for run in results.chart().runs() if run.point["epochs"] == 5}
    assert len(mine) == 10
    assert mine.items() <= table.items()


# --- Carrying out -----------------------------------------------------------------------------------------


class Engine:
    """Gives a made record for every run at once."""

    def __init__(self, workers):
        self.capacity, self.tasks = workers, []

    def submit(self, task):
        self.tasks.append(task)

    def collect(self, timeout):
        ended, self.tasks = self.tasks, []
        return [TaskResult(task, [made(spec) for spec in task.specs]) for task in ended]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


@pytest.fixture
def problems(command, monkeypatch):
    """The specs of which an annotator was asked, where nothing is trained."""
    asked = []
    monkeypatch.setattr(command, "make_problem", lambda spec, *_: asked.append(spec))
    monkeypatch.setattr("oneof.bench.running.runner.make_problem", lambda *_: None)
    monkeypatch.setattr(command, "ProcessPoolExecutor", lambda workers, _: ThreadPoolExecutor(1))
    monkeypatch.setattr(command, "LocalEngine", Engine)
    return asked


def carry_out(command, ledger, budget=float("inf")):
    return command.carry_out(command.chart(), ledger, 3, "cpu", None, budget)


def test_young_annotators_come_first_and_nothing_is_done_twice(command, problems, tmp_path):
    ledger = tmp_path / "ledger.jsonl"
    progress = carry_out(command, ledger)
    assert (progress.done, progress.total, progress.failed) == (98, 98, {})
    written = [record["spec"]["candidates"]["annotator"]["epochs"] for record in read([ledger]).records.values()]
    assert written == sorted(written)
    asked = [(sets_of(spec), spec["candidates"]["seed"]) for spec in problems]
    assert len(asked) == len(set(asked)) == 24
    before = ledger.read_bytes()
    assert carry_out(command, ledger).done == 98
    assert len(problems) == 24
    assert ledger.read_bytes() == before


def test_what_a_ledger_lacks_is_added(command, problems, tmp_path):
    runs = command.chart().runs()
    lacking = {run.key for run in runs if run.point["rate"] == 0.8 and run.label == "cc"}
    ledger = write(tmp_path / "ledger.jsonl", [run for run in runs if run.key not in lacking])
    before = ledger.read_bytes()
    assert carry_out(command, ledger).done == 98
    assert {sets_of(spec) for spec in problems} == {(20, 1, 0.8)}
    added = ledger.read_bytes().removeprefix(before).splitlines()
    assert {json.loads(line)["key"] for line in added} == lacking


def test_nothing_begins_after_the_budget(command, problems, tmp_path):
    assert carry_out(command, tmp_path / "ledger.jsonl", budget=-1).done == 0
    assert not problems


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--draw", "--ledger", "none.jsonl"], "error: there is no ledger 'none.jsonl' yet; run python"),
        (["--budget", "0"], "error: --budget is 0.0, but must be a number of seconds > 0"),
        (["--workers", "0"], "error: --workers is 0, but must be from 1 to"),
        (["--ledger", "none/ledger.jsonl"], "error: the folder 'none' does not exist"),
    ],
    ids=["no ledger", "no time", "no workers", "no folder"],
)
def test_complaints_are_one_line(command, arguments, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["annotators.py", "--device", "cpu", *arguments])
    with pytest.raises(SystemExit) as end:
        command.main()
    assert end.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(words)


# --- Drawing ----------------------------------------------------------------------------------------------


def drawn(command, results, path):
    """Draw, and return table and SVG; whatever is drawn lies within the figure."""
    report = results.read_chart(path)
    picture = standalone(command.figure(report))
    assert picture == standalone(command.figure(results.read_chart(path)))
    (panel,) = ElementTree.fromstring(picture).findall("{http://www.w3.org/2000/svg}svg")
    width, height = float(panel.get("width")), float(panel.get("height"))
    for element in panel.iter():
        points = [(element.get("cx", element.get("x", 0)), element.get("cy", element.get("y", 0)))]
        points += re.findall(r"([^M ,]+),([^ ]+)", element.get("d", ""))
        assert all(0 <= float(x) <= width and 0 <= float(y) <= height for x, y in points)
    return cells(results.table(report)), panel


def test_the_table_holds_means_and_facts(command, results, tmp_path):
    runs = results.chart().runs()
    table, _ = drawn(command, results, write(tmp_path / "all.jsonl", runs))
    assert table[0][-4:] == ["PRODEN", "CC", "IDGP", "Membership"]
    assert {len(line) for line in table} == {10}
    for setting, line in zip(results.SETTINGS, table[2:], strict=True):
        assert [float(value) for value in line[:3]] == list(setting)
        assert line[3:6] == [
            f"99.0, {90 - 10 / setting.epochs:.1f}",
            f"{3.05 + 0.01 * setting.epochs:.2f}",
            f"{100 - 0.2 * setting.epochs:.0f} %",
        ]
        for label, cell in zip(("proden", "cc", "idgp", "membership"), line[6:], strict=True):
            found = [
                100 * made(run.spec)["results"]["validation_accuracy"]["test_accuracy"]
                for run in runs
                if run.label == label and sets_of(run.spec) == setting
            ]
            assert cell == f"{fmean(found):.2f} ± {stdev(found):.2f}"


def test_heights_in_the_figure_are_the_means(command, results, tmp_path):
    """The line of PRODEN is linear in epochs, so are its heights; that of true labels is level."""
    _, panel = drawn(command, results, write(tmp_path / "all.jsonl", results.chart().runs()))
    svg = "{http://www.w3.org/2000/svg}"
    assert len(panel.findall(f"{svg}g")) == 5  # the legend
    first_plot = {
        group.get("class"): [tuple(map(float, point.split(","))) for point in path.get("d")[1:].split()]
        for group in panel.find(f"{svg}svg")
        for path in group.findall(f"{svg}path")
    }
    assert len(first_plot) == 5
    proden, truth = first_plot["hue1"], first_plot["grey dashed"]
    assert len({y for _, y in truth}) == 1
    xs, ys = np.array(proden).T
    assert np.corrcoef(np.log(EPOCHS), xs)[0, 1] == pytest.approx(1, abs=1e-4)
    assert np.corrcoef(EPOCHS, ys)[0, 1] == pytest.approx(-1, abs=1e-4)
    assert max(y for _, y in truth) < ys.min()


PARTS = {
    "one run": lambda run: run.label == "cc" and run.trial == 0 and run.point["epochs"] == 2,
    "true labels": lambda run: run.label == "supervised",
    "no true labels": lambda run: run.label != "supervised",
    "5 epochs": lambda run: run.point["epochs"] == 5,
    "rates": lambda run: run.point["rate"] != 0.4,
    "one trial": lambda run: run.trial == 1,
}


@pytest.mark.parametrize("name", PARTS)
def test_parts_of_the_chart_are_drawn(name, command, results, tmp_path):
    kept = [run for run in results.chart().runs() if PARTS[name](run)]
    assert kept
    ledger = write(tmp_path / "part.jsonl", kept)
    table, _ = drawn(command, results, ledger)
    done = {(sets_of(run.spec), run.label, run.trial) for run in kept}
    for setting, line in zip(results.SETTINGS, table[2:], strict=True):
        for label, cell in zip(results.NAMES, line[6:], strict=True):
            trials = sum((setting, label, trial) in done for trial in (0, 1))
            assert (cell == "–", cell.endswith("*"), " ± " in cell) == (trials == 0, trials == 1, trials == 2)
    page = f"before\n{results.BEGIN}\nold\n{results.END}\nafter\n"
    written = results.with_table(page, results.read_chart(ledger))
    assert written.startswith(f"before\n{results.BEGIN}\n\n| annotator epochs |")
    assert written.endswith(f"\n\n{results.END}\nafter\n")
    assert "old" not in written
    truth = {"one run": "–", "rates": "–", "no true labels": "–", "one trial": "89.20*"}
    assert f"true labels has {truth.get(name, '89.10 ± 0.14')}." in " ".join(written.split())
    assert results.with_table(written, results.read_chart(ledger)) == written


def test_a_ledger_of_other_runs_is_told(results, tmp_path):
    (tmp_path / "other.jsonl").write_text('{"key": "another", "status": "done"}\n')
    with pytest.raises(ValueError, match="has no run of this chart; run python"):
        results.read_chart(tmp_path / "other.jsonl")


def test_drawing_writes_figure_and_page(command, results, tmp_path, monkeypatch):
    page, picture = tmp_path / "page.md", tmp_path / "figure.svg"
    page.write_text(results.PAGE.read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr(command, "PAGE", page)
    monkeypatch.setattr(command, "FIGURE", picture)
    command.draw(write(tmp_path / "all.jsonl", results.chart().runs()))
    text = page.read_text(encoding="utf-8")
    assert "\n## The annotator\n" in text
    assert "(results/annotators.svg)" in text
    assert picture.read_text(encoding="utf-8").startswith("<svg ")


# --- What is published ------------------------------------------------------------------------------------


@published
def test_figure_and_table_are_rebuilt_from_the_ledger(command, results):
    report = results.read_chart()
    assert told(standalone(command.figure(report))) == told(results.FIGURE.read_text(encoding="utf-8")), AGAIN
    page = results.PAGE.read_bytes()
    assert results.with_table(page.decode(), report).encode() == page, AGAIN


@published
def test_records_are_whole(results):
    ledger = read([LEDGER])
    assert ledger.skipped == 0
    assert ledger.records.keys() <= {run.key for run in results.chart().runs()}
    for record in ledger.records.values():
        assert record["status"] == "done"
        assert record["commit"], "a published number has its commit; set ONEOF_COMMIT outside git"


@published
def test_from_5_epochs_on_sets_are_larger_and_easier(results):
    report = results.read_chart()
    found = {setting: results.accuracies(report, "proden", setting) for setting in results.LINES["epochs"][1:]}
    sizes = [results.fact(report, setting, "mean_size") for setting in found if found[setting]]
    accuracies = [fmean(trials.values()) for trials in found.values() if trials]
    assert len(sizes) > 1
    assert sizes == sorted(sizes)
    assert accuracies == sorted(accuracies)
