"""Reports of made ledgers: every number is computed by hand beside it."""

import json
import math
import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from oneof.bench.ledger import Records, read
from oneof.bench.plan_file import read_plan
from oneof.bench.report.grids import markdown
from oneof.bench.report.results import collect, describe
from oneof.bench.report.run_results import mean_curves
from oneof.bench.report.sections import sections
from oneof.bench.report.writer import write_report

PLAN = """
title = "Made"
datasets = ["lost"]
trials = 3
paper = "table2"

[grid]
lr = [0.01, 0.1]

[methods.idgp]
[methods.cc]
[methods.supervised]
"""
PAPER = """
source = "A paper"
[about]
table2 = "A table"
[table2.lost]
idgp = [77.02, 0.82]
cc = [63.54, 0.25]
proden = [76.47, 0.25]
"""
# Validation and test accuracy of each trial. Rate 0.01 of idgp is better on test rows, but not chosen: its mean
# validation accuracy is (60 + 62 + 64) / 3 = 62 < 70.
SCORES = {
    "idgp": {"lr 0.01": [(60, 90), (62, 90), (64, 90)], "lr 0.1": [(70, 70), (70, 72), (70, 74)]},
    "cc": {"lr 0.01": [(65, 69), (66, 70), (67, 74)], "lr 0.1": [(50, 60), (50, 60), (50, 60)]},
    "supervised": {"lr 0.01": [(80, 80)] * 3, "lr 0.1": [(79, 99)] * 3},
}
WAYS = ("validation_accuracy", "approximated_accuracy", "covering_rate", "last_epoch")
SCRIPT = "<script>alert(1)</script>"


def write_plan(folder, text=PLAN, name="made.toml"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return read_plan(path)


def curves(epochs, validation, test):
    """Curves that a report shows, and others of the same length."""
    others = dict.fromkeys(("loss", *WAYS[1:3]), [0.5] * len(epochs))
    return {"epoch": epochs, "validation_accuracy": validation, "test_accuracy": test} | others


def record(run, validation, test, **more):
    """The record of a run whose criteria all choose the same epoch."""
    result = {
        "epoch": 1,
        "validation": dict.fromkeys(WAYS[:3], validation / 100),
        "test_accuracy": test / 100,
        "true_labels": False,
    }
    return {
        "key": run.key,
        "spec": run.spec,
        "status": "done",
        "device": "x86_64 CPU",
        "versions": {"oneof": "0.1.0", "torch": "2.13.0"},
        "commit": "0123456789ab",
        "seconds": 2.0,
        "memory": {"process_mb": 500.0},
        "epochs": 3,
        "candidates": {"mean_size": 2.25, "one_label": 0.125},
        "results": dict.fromkeys(WAYS, result) | {"transductive": {"accuracy": 0.9, "true_labels": True}},
        "curves": curves([0, 1, 2], [0.1, validation / 100, 0.5], [0.2, test / 100, 0.6]),
    } | more


def failed(run, error):
    kept = ("key", "spec", "device", "versions", "commit")
    return {name: value for name, value in record(run, 0, 0).items() if name in kept} | {
        "status": "failed",
        "error": error,
    }


def records_of(plan, scores=SCORES, make=record):
    """Records by key; a trial whose scores are None is not there."""
    found = {}
    for run in plan.runs():
        score = scores[run.label][describe(run.point)][run.trial]
        if score is not None:
            found[run.key] = make(run, *score)
    return found


def report_of(plan, found, skipped=0):
    return collect(plan, Records(found, skipped))


def tables_of(report):
    """All tables as Markdown, by the name of their section."""
    return {
        section.name: "\n".join(
            markdown(table) for part in section.parts for table in getattr(part, "tables", [part])
        )
        for section in sections(report)
    }


def write_ledger(path, found):
    path.write_text("".join(json.dumps(line) + "\n" for line in found), encoding="utf-8")
    return path


@pytest.fixture
def plan(tmp_path):
    return write_plan(tmp_path)


# --- results ---------------------------------------------------------------------------------------------------


def test_point_is_chosen_by_validation_and_never_by_test(plan):
    """idgp 70 72 74: mean 72, deviation sqrt((4 + 0 + 4) / 2) = 2; cc 69 70 74: 71 and sqrt((4 + 1 + 9) / 2)."""
    table = tables_of(report_of(plan, records_of(plan)))["results"]
    assert "| idgp | **72.00 ± 2.00** |  | 1.00 |" in table
    assert "| cc | 71.00 ± 2.65 ? | 0/0/0/1 | 2.00 |" in table
    assert "| supervised | 80.00 ± 0.00 |  |  |" in table


def test_random_splits_are_corrected(plan):
    """Differences 1 2 0: mean 1, s = 1. Of 1122 rows 112 are for validation, 112 for test and 898 for training:
    half-width 4.302653 sqrt(1/3 + 112/898) = 2.912."""
    report = report_of(plan, records_of(plan))
    assert report.resplits("lost") == (898, 112)
    table = tables_of(report)["results"]
    assert "| cc | +1.00 (−1.91 to +3.91) ? |" in table
    assert "Nadeau-Bengio correction (test/training rows: lost 112/898). The plain paired t-test, which" in table
    assert "Plain" not in table


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("lost", PLAN.replace("[grid]", "[split]\nfixed = true\n[grid]")),
        ("mnist", PLAN.replace("lost", "mnist")),
    ],
)
def test_trials_with_the_same_test_rows_are_not_corrected(tmp_path, name, text):
    """The same differences, half-width 4.302653 sqrt(1/3) = 2.484."""
    plan = write_plan(tmp_path, text)
    table = tables_of(report_of(plan, records_of(plan)))["results"]
    assert "| cc | +1.00 (−1.48 to +3.48) ? |" in table
    assert f"Plain paired t-tests and intervals, the test rows being the same: {name}." in table
    assert "Nadeau" not in table


def test_trials_that_are_missing_or_failed(plan):
    """cc has trial 0 alone, idgp all: the pair is 70 - 69. The bound has none of the chosen point complete."""
    scores = SCORES | {
        "cc": {"lr 0.01": [(65, 69), None, None], "lr 0.1": [None] * 3},
        "supervised": {"lr 0.01": [None] * 3, "lr 0.1": [None] * 3},
    }
    found = records_of(plan, scores)
    lost = {(run.label, describe(run.point), run.trial): run for run in plan.runs()}
    run = lost["cc", "lr 0.01", 1]
    found[run.key] = failed(run, "Traceback (most recent call last):\n  somewhere\nValueError: bad <value>\n")
    report = report_of(plan, found, skipped=2)
    assert (report.done, report.total, report.skipped, report.unrelated) == (7, 18, 2, 0)
    tables = tables_of(report)
    assert "| cc | 69.00 ? (1 of 3 trials) | 0/0/0/1 | 2.00 |" in tables["results"]
    assert "| cc | +1.00 ? |" in tables["results"]
    assert "| supervised | – |  |  |" in tables["results"]
    assert "| lost | cc | lr 0.01 | 65.00 | 2 | 1 of 6 | 1 of 3 | 2.0 |" in tables["settings"]
    assert "| lost | supervised | – | – | 2 | 0 of 6 | 0 of 3 | – |" in tables["settings"]
    assert "| idgp | – |" in tables["gap"]
    assert "| cc on lost, trial 1 (lr 0.01) | ValueError: bad \\<value\\> |" in tables["provenance"]


def test_nothing_done_yet(plan, tmp_path):
    unrelated = record(write_plan(tmp_path, PLAN.replace("0.1]", "0.2]"), "other.toml").runs()[1], 50, 50)
    report = report_of(plan, {unrelated["key"]: unrelated})
    assert (report.done, report.unrelated) == (0, 1)
    assert "| idgp | – |  |  |" in tables_of(report)["results"]
    ledger = write_ledger(tmp_path / "empty.jsonl", [unrelated])
    files = write_report(plan, [ledger], tmp_path / "out")
    assert [file.name for file in files] == ["report.html", "report.md", "report.tex"]
    assert "Records of other plans in the ledgers: 1." in files[1].read_text()


def test_record_that_is_not_whole(plan):
    found = records_of(plan)
    key = next(iter(found))
    del found[key]["results"]["last_epoch"]
    with pytest.raises(ValueError, match=f"the record '{key}' in the ledgers is not whole .*'last_epoch'"):
        report_of(plan, found)


# --- beside the paper, below the bound -------------------------------------------------------------------------


def test_numbers_of_the_paper_stand_beside_ours(plan, tmp_path):
    """72 - 77.02 = -5.02 and 71 - 63.54 = 7.46; the plan has no proden. Without a file there is no section."""
    ledger = write_ledger(tmp_path / "made.jsonl", records_of(plan).values())
    write_report(plan, [ledger], tmp_path / "without")
    assert "paper" not in (tmp_path / "without" / "report.md").read_text()
    (tmp_path / "paper.toml").write_text(PAPER)
    write_report(plan, [ledger], tmp_path / "beside")
    text = (tmp_path / "beside" / "report.md").read_text()
    assert "A table, as printed in A paper." in text
    assert "| lost | idgp | 77.02 ± 0.82 | 72.00 ± 2.00 | −5.02 |" in text
    assert "| lost | cc | 63.54 ± 0.25 | 71.00 ± 2.65 | +7.46 |" in text
    assert "| lost | proden | 76.47 ± 0.25 | – | – |" in text
    (tmp_path / "other.toml").write_text(PAPER.replace("77.02", "70"))
    write_report(plan, [ledger], tmp_path / "given", paper=tmp_path / "other.toml")
    assert "| lost | idgp | 70.00 ± 0.82 | 72.00 ± 2.00 | +2.00 |" in (tmp_path / "given/report.md").read_text()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (PAPER.replace("table2", "table9"), "paper is 'table2', but .* has the tables table9"),
        (PAPER.replace("[77.02, 0.82]", "[77.02]"), r"table2.lost.idgp is \[77.02\], but must be a mean and a"),
        (
            PAPER.replace("[77.02, 0.82]", "1"),
            "table2.lost.idgp is 1, but must be a mean and a standard deviation",
        ),
        ("x", "not valid TOML"),
        (None, "there is no file of printed numbers"),
    ],
    ids=["table", "pair", "number", "toml", "missing"],
)
def test_printed_numbers_that_cannot_be_used(plan, tmp_path, text, message):
    if text is not None:
        (tmp_path / "printed.toml").write_text(text)
    ledger = write_ledger(tmp_path / "made.jsonl", [])
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        write_report(plan, [ledger], tmp_path / "out", paper=tmp_path / "printed.toml")


def test_gap_to_the_upper_bound(plan):
    """80 - 72 = 8 and 80 - 71 = 9; idgp takes (72 - 71) / (80 - 71) = 11 % of the room above cc."""
    table = tables_of(report_of(plan, records_of(plan)))["gap"]
    assert "| idgp | +8.00 |\n| cc | +9.00 |" in table
    assert "| lost | cc | +1.00 | +9.00 | 11 % |" in table


def test_gap_is_over_the_trials_that_all_have(plan):
    """The bound lacks trial 2: 80 - (70 + 72) / 2 = 9, 80 - (69 + 70) / 2 = 10.5, and 1.5 / 10.5 = 14 %."""
    scores = SCORES | {"supervised": {"lr 0.01": [(80, 80), (80, 80), None], "lr 0.1": [None] * 3}}
    table = tables_of(report_of(plan, records_of(plan, scores)))["gap"]
    assert "| idgp | +9.00 |\n| cc | +10.50 |" in table
    assert "| lost | cc | +1.50 | +10.50 | 14 % |" in table


def test_no_share_of_a_gap_that_is_none(plan):
    scores = SCORES | {"supervised": {"lr 0.01": [(80, 60)] * 3, "lr 0.1": [(0, 0)] * 3}}
    assert "| lost | cc | +1.00 | −11.00 | – |" in tables_of(report_of(plan, records_of(plan, scores)))["gap"]


def test_plan_without_bound_paper_rivals_or_grid(tmp_path):
    """idgp 70 72 74 alone."""
    plan = write_plan(tmp_path, 'title = "Made"\ndatasets = ["lost"]\ntrials = 3\n[methods.idgp]\n')
    tables = tables_of(report_of(plan, records_of(plan, {"idgp": {"": SCORES["idgp"]["lr 0.1"]}})))
    assert list(tables) == ["results", "settings", "curves", "criteria", "candidates", "provenance"]
    assert "minus each method" not in tables["results"]
    assert "| lost | idgp | no grid | 70.00 | 1 | 3 | 3 | 2.0 |" in tables["settings"]


# --- criteria, candidates, provenance --------------------------------------------------------------------------


def test_every_criterion_chooses_point_and_epoch(plan):
    """The rate 0.01 wins by approximated accuracy, 0.1 by the others; each epoch has its own test accuracy.

    At the last epoch the point is chosen by approximated accuracy there, which prefers 0.01 as well.
    """

    def make(run, validation, test):
        made = record(run, validation, test)
        slow = run.point["lr"] == 0.01
        approximated = 0.9 if slow else 0.8
        for shift, way in enumerate(WAYS):
            scores = {"validation_accuracy": validation / 100, "covering_rate": validation / 100}
            made["results"][way] = {
                "epoch": shift,
                "validation": scores | {"approximated_accuracy": approximated},
                "test_accuracy": (test - shift) / 100,
                "true_labels": way == "validation_accuracy",
            }
        made["results"]["transductive"]["accuracy"] = 0.5 if slow else (91 + run.trial) / 100
        return made

    table = tables_of(report_of(plan, records_of(plan, make=make)))["criteria"]
    header = next(line for line in table.splitlines() if line.startswith("| data set"))
    assert header == (
        "| data set | method | validation accuracy (uses true labels) | approximated accuracy (no true labels) | "
        "covering rate (no true labels) | last epoch (no true labels) | transductive accuracy (uses true labels) |"
    )
    assert "| lost | idgp | 72.00 ± 2.00 | 89.00 ± 0.00 | 70.00 ± 2.00 | 87.00 ± 0.00 | 92.00 ± 1.00 |" in table
    assert "stopped" not in table


def test_early_stopping_is_said_to_use_true_labels(tmp_path):
    plan = write_plan(tmp_path, PLAN.replace("[grid]", "[settings]\npatience = 9\n[grid]"))
    assert "was stopped by validation accuracy" in tables_of(report_of(plan, records_of(plan)))["criteria"]


def test_run_that_diverged_has_the_lowest_score(plan):
    """Its approximated accuracy is no number, which JSON writes as null."""

    def make(run, validation, test):
        made = record(run, validation, test)
        if run.point["lr"] == 0.01:
            for result in list(made["results"].values())[:4]:
                result["validation"]["approximated_accuracy"] = None
        return json.loads(json.dumps(made))

    outcome = report_of(plan, records_of(plan, make=make)).outcomes["cc"]["lost"]
    assert outcome.choose("approximated_accuracy").point == "lr 0.1"
    assert outcome.choose().point == "lr 0.01"


def test_candidate_sets_are_averaged_over_trials(plan):
    """Mean sizes 2, 3 and 4, each seen by all methods; the annotator is known in two trials: (80 + 90) / 2."""

    def make(run, validation, test):
        facts = {"mean_size": 2.0 + run.trial, "one_label": 0.1, "sha256": "0", "annotator": {"epochs": 1}}
        if run.trial > 0:
            facts["annotator_test_accuracy"] = 0.7 + 0.1 * run.trial
        return record(run, validation, test, candidates=facts)

    table = tables_of(report_of(plan, records_of(plan, make=make)))["candidates"]
    assert "| data set | labels in a set | sets of one label, % | annotator on test rows, % |" in table
    assert "| lost | 3.00 | 10.00 | 85.00 |" in table


def test_every_number_has_its_run(plan):
    """Trial 0 ran elsewhere: two environments, in the order of their commits."""

    def make(run, validation, test):
        more = {"commit": "fedcba987654+", "device": "H200"} if run.trial == 0 else {}
        return record(run, validation, test, **more)

    table = tables_of(report_of(plan, records_of(plan, make=make)))["provenance"]
    assert "| 1 | 0123456789ab | x86\\_64 CPU | oneof 0.1.0, torch 2.13.0 | 12 |" in table
    assert "| 2 | fedcba987654+ | H200 | oneof 0.1.0, torch 2.13.0 | 6 |" in table
    keys = {(run.label, describe(run.point), run.trial): run.key for run in plan.runs()}
    assert f"| lost | idgp | 0 | 70.00 | 2 | {keys['idgp', 'lr 0.1', 0]} | 2 |" in table
    assert f"| lost | idgp | 2 | 74.00 | 2 | {keys['idgp', 'lr 0.1', 2]} | 1 |" in table
    assert keys["idgp", "lr 0.01", 2] not in table
    assert table.count("\n| lost |") == 9


def test_command_names_no_folder_of_this_machine(plan, tmp_path, monkeypatch):
    ledger = write_ledger(tmp_path / "made.jsonl", records_of(plan).values())
    write_report(plan, [ledger], tmp_path / "out")
    assert "\n    oneof run made.toml\n" in (tmp_path / "out" / "report.md").read_text()
    monkeypatch.chdir(tmp_path)
    Path("my plans").mkdir()
    write_report(write_plan(Path("my plans")), [ledger], tmp_path / "out")
    assert "\n    oneof run 'my plans/made.toml'\n" in (tmp_path / "out" / "report.md").read_text()
    write_report(read_plan("table2-quick"), [ledger], tmp_path / "out")
    assert "\n    oneof run table2-quick\n" in (tmp_path / "out" / "report.md").read_text()


# --- curves and heat maps --------------------------------------------------------------------------------------


def test_curves_are_averaged_up_to_the_shortest_trial(plan):
    """Test accuracy 10 20 30 40 after epochs 1 to 4, and 20 60 after epochs 1 and 3: 40 after epoch 2."""
    of_trial = [curves([0, 1, 2, 3], [0.5] * 4, [0.1, 0.2, 0.3, 0.4]), curves([0, 2], [0.5] * 2, [0.2, 0.6])]
    nothing = {"lr 0.01": [None] * 3, "lr 0.1": [None] * 3}
    scores = {"idgp": nothing | {"lr 0.1": [(70, 70), (70, 70), None]}, "cc": nothing, "supervised": nothing}

    def make(run, validation, test):
        return record(run, validation, test, curves=of_trial[run.trial])

    choice = report_of(plan, records_of(plan, scores, make)).outcomes["idgp"]["lost"].choose()
    mean = mean_curves(list(choice.trials.values()))
    assert mean.epochs == [1, 2, 3]
    assert mean.test == pytest.approx([15, 30, 45])
    assert mean.validation == pytest.approx([50, 50, 50])


def test_figures_are_files_that_the_markdown_shows(plan, tmp_path):
    ledger = write_ledger(tmp_path / "made.jsonl", records_of(plan).values())
    files = write_report(plan, [ledger], tmp_path / "out")
    names = ["report.html", "report.md", "report.tex", "differences.svg", "curves-lost.svg"]
    assert [file.name for file in files] == names
    assert re.findall(r"\]\((.*?\.svg)\)", files[1].read_text()) == names[3:]
    picture = ElementTree.fromstring(files[4].read_text())
    lines = [path.get("d") for path in picture.iter("{http://www.w3.org/2000/svg}path")]
    assert len(lines) == 2 * 3
    assert all(line.count(",") == 3 for line in lines)


def test_one_epoch_is_drawn(plan, tmp_path):
    found = records_of(plan, make=lambda *scores: record(*scores, curves=curves([0], [0.5], [0.5])))
    ledger = write_ledger(tmp_path / "made.jsonl", found.values())
    picture = ElementTree.fromstring(write_report(plan, [ledger], tmp_path / "out")[4].read_text())
    assert len(list(picture.iter("{http://www.w3.org/2000/svg}circle"))) == 2 * 3


def test_a_report_opens_with_the_intervals_that_its_table_has(plan, tmp_path):
    """Each line ends where the table says; its colour says on which side of zero it lies."""
    ledger = write_ledger(tmp_path / "made.jsonl", records_of(plan).values())
    page, _, _, picture, _ = write_report(plan, [ledger], tmp_path / "out")
    first = page.read_text().index("<svg")
    assert first < page.read_text().index("<table")
    report = collect(plan, read([ledger]))
    known = {m: r.comparison for m in report.results.rivals if (r := report.results.rows[m]["lost"]).comparison}
    assert known
    drawn = ElementTree.fromstring(picture.read_text())
    (panel,) = (each for each in drawn if each.tag.endswith("svg"))
    for method, found in known.items():
        numbers = (f"{value:+.2f}".replace("-", "−") for value in (found.difference, found.low, found.high))
        assert "{} {} [{}, {}]".format(method, *numbers) in panel.get("aria-label")
    marks = [group for group in panel if group.tag.endswith("}g")]
    ticks = {float(t.text): float(t.get("x")) for t in panel if t.get("text-anchor") == "middle"}
    left, right = min(ticks), max(ticks)
    scale = (ticks[right] - ticks[left]) / (right - left)
    for group, found in zip(marks, known.values(), strict=True):
        ends = [float(group[0].get(name)) for name in ("x1", "x2")]
        places = [ticks[left] + scale * (value - left) for value in (found.low, found.high)]
        assert ends == pytest.approx(places, abs=0.3)
        side = "above" if found.low > 0 else "below" if found.high < 0 else "open"
        assert group.get("class") == side


HEATMAP = """
title = "Made"
datasets = ["lost"]
trials = 2
heatmap = ["a", "gamma"]

[grid]
a = [1, 10]
gamma = [0.5, 2]
lr = [0.01, 0.1]

[methods.idgp]
[methods.narrow]
method = "idgp"
a = 1
"""


@pytest.fixture
def surface(tmp_path):
    """Rate 0.1 has the better validation and the worse test accuracy. At a 10, gamma 2 one trial is missing."""
    plan = write_plan(tmp_path, HEATMAP)

    def make(run):
        slow = run.point["lr"] == 0.01
        place = {(1, 0.5): 10, (10, 0.5): 20, (1, 2): 30, (10, 2): 40}[run.point.get("a", 1), run.point["gamma"]]
        return record(run, place if slow else place + 1, 90 if slow else place + run.trial)

    wanted = [
        run for run in plan.runs() if not (run.point.get("a") == 10 and run.point["gamma"] == 2 and run.trial)
    ]
    return plan, {run.key: make(run) for run in wanted}


def test_heat_map_searches_the_rest_of_the_grid(surface):
    """Trials 10 and 11: mean 10.5, deviation sqrt(0.5) = 0.71. Only the complete points compete for the frame:
    a 1, gamma 2 is chosen, since a 10, gamma 2 lacks a trial."""
    report = report_of(*surface)
    table = tables_of(report)["sensitivity"]
    assert "**idgp on lost: test accuracy (%)**\n\n| gamma / a | 1 | 10 |\n" in table
    assert "| 0.5 | 10.50 ± 0.71 | 20.50 ± 0.71 |\n" in table
    assert "| 2 | **30.50 ± 0.71** | 40.00 (1 of 2 trials) |\n" in table
    assert "narrow" not in table  # its a is fixed


def test_heat_map_is_drawn_upwards(surface, tmp_path):
    plan, found = surface
    ledger = write_ledger(tmp_path / "made.jsonl", found.values())
    files = write_report(plan, [ledger], tmp_path / "out")
    picture = ElementTree.fromstring((tmp_path / "out" / "heatmap-lost.svg").read_text())
    texts = {
        t.text: (float(t.get("x")), float(t.get("y"))) for t in picture.iter("{http://www.w3.org/2000/svg}text")
    }
    assert files[-1].name == "heatmap-lost.svg"
    assert texts["10.5"][0] == texts["30.5"][0] < texts["20.5"][0] == texts["40.0*"][0]
    assert texts["10.5"][1] == texts["20.5"][1] > texts["30.5"][1] == texts["40.0*"][1]


def test_place_without_trials_is_empty(surface, tmp_path):
    plan, found = surface
    gone = {run.key for run in plan.runs() if run.point.get("a") == 10 and run.point["gamma"] == 2}
    found = {key: value for key, value in found.items() if key not in gone}
    assert "| 2 | **30.50 ± 0.71** | – |\n" in tables_of(report_of(plan, found))["sensitivity"]
    write_report(plan, [write_ledger(tmp_path / "made.jsonl", found.values())], tmp_path / "out")
    assert 'class="empty"' in (tmp_path / "out" / "heatmap-lost.svg").read_text()


# --- files -----------------------------------------------------------------------------------------------------


def test_same_input_gives_the_same_bytes(surface, tmp_path):
    """Neither the order of lines, nor how they are spread over ledgers, nor what was there before matters."""
    plan, found = surface
    lines = list(found.values())
    one = [write_ledger(tmp_path / "one.jsonl", lines)]
    two = [write_ledger(tmp_path / f"{i}.jsonl", lines[::-1][i::2]) for i in range(2)]
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "report.md").write_text("old")
    files = [write_report(plan, ledgers, tmp_path / name) for ledgers, name in ((one, "a"), (two, "b"))]
    assert [file.name for file in files[0]] == [file.name for file in files[1]]
    assert [file.read_bytes() for file in files[0]] == [file.read_bytes() for file in files[1]]
    assert {file.name for file in (tmp_path / "b").iterdir()} == {file.name for file in files[1]}


def hostile_report(folder):
    """A report whose every name is an attack."""
    label = json.dumps(SCRIPT + "\u202e|$%&_{}\\")
    text = PLAN.replace('"Made"', json.dumps(f"{SCRIPT} & more")).replace(
        "[methods.cc]", f"[methods.{label}]\nmethod = 'cc'"
    )
    plan = write_plan(folder, text)
    scores = {**SCORES, json.loads(label): SCORES["cc"]}
    found = records_of(plan, scores, lambda *s: record(*s, device=SCRIPT, commit="`x`", versions={SCRIPT: "1|2"}))
    run = plan.runs()[-1]
    found[run.key] = failed(run, SCRIPT)
    ledger = write_ledger(folder / "hostile.jsonl", found.values())
    (folder / "paper.toml").write_text(PAPER.replace('"A paper"', json.dumps(SCRIPT)))
    return write_report(plan, [ledger], folder / "out")


def test_hostile_names_are_escaped(tmp_path):
    page, text, tex, *pictures = hostile_report(tmp_path)
    assert page.read_text().count("<script") == 1  # our own
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; more" in page.read_text()
    assert not re.search(r"(?<!\\)<", text.read_text())
    assert "# \\<script\\>alert(1)\\</script\\> \\& more\n" in text.read_text()
    assert not any("\u202e" in file.read_text() for file in (page, text, tex, *pictures))
    for picture in pictures:
        assert "<script" not in picture.read_text()
        ElementTree.fromstring(picture.read_text())
    assert "$\\%\\&\\_\\{\\}\\textbackslash{}" in tex.read_text()


def test_latex_is_of_tables_alone(plan, tmp_path):
    ledger = write_ledger(tmp_path / "made.jsonl", records_of(plan).values())
    (tmp_path / "paper.toml").write_text(PAPER)
    text = write_report(plan, [ledger], tmp_path / "out")[2].read_text()
    assert text.count(r"\begin{table}") == text.count(r"\toprule") == 8
    assert r"cc & 71.00 $\pm$ 2.65 ? & 0/0/0/1 & 2.00 \\" in text
    assert plan.runs()[0].key not in text


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_latex_compiles(surface, tmp_path):
    plan, found = surface
    ledger = write_ledger(tmp_path / "made.jsonl", found.values())
    tables = write_report(plan, [ledger], tmp_path / "heat")[2].read_text()
    (tmp_path / "hostile").mkdir()
    tables += hostile_report(tmp_path / "hostile")[2].read_text()
    head = "\\documentclass{article}\n\\usepackage{booktabs}\n\\begin{document}\n"
    (tmp_path / "tables.tex").write_text(head + tables + "\\end{document}\n", encoding="utf-8")
    command = ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "tables.tex"]
    made = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace")
    assert made.returncode == 0, made.stdout[-2000:]


def test_ledger_that_is_not_there(plan, tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no ledger"):
        write_report(plan, [tmp_path / "none.jsonl"], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_ledgers_of_a_real_runner_are_read(plan, tmp_path):
    """A torn line is counted, and a later success makes up for a failure."""
    runs = plan.runs()
    found = list(records_of(plan).values())
    ledger = write_ledger(tmp_path / "made.jsonl", [failed(runs[0], "x"), *found])
    ledger.write_text(ledger.read_text() + '{"key": "to')
    report = collect(plan, read([ledger]))
    assert (report.done, report.failures, report.skipped) == (18, {}, 1)
    assert not math.isnan(report.results.rows["idgp"]["lost"].cell.mean)
