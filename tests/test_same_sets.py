"""Runs on different candidate sets under one key: never compared, and the report says so."""

import pytest

from oneof.bench.report.same_sets import against, differing, usual
from test_report import PLAN, SCORES, record, records_of, report_of, tables_of, write_plan


@pytest.fixture
def plan(tmp_path):
    return write_plan(tmp_path)


def with_sets(sets):
    """Make records whose candidate sets have the checksum that ``sets`` tells of a run; None: an old record."""

    def make(run, validation, test):
        made, checksum = record(run, validation, test), sets(run)
        made["candidates"] = {"mean_size": 2.0} | ({} if checksum is None else {"sha256": checksum})
        return made

    return make


def tables(plan, sets, scores=SCORES):
    return tables_of(report_of(plan, records_of(plan, scores, make=with_sets(sets))))


@pytest.mark.parametrize("sets", [lambda _: None, lambda run: f"of trial {run.trial}"], ids=["unknown", "same"])
def test_the_same_sets_change_nothing(plan, sets):
    assert tables(plan, sets) == tables_of(report_of(plan, records_of(plan))) | {
        "candidates": tables(plan, sets)["candidates"]
    }


def test_unknown_sets_are_compared_with_any(plan):
    found = tables(plan, lambda run: None if run.label == "cc" else "a")
    assert found["results"] == tables(plan, lambda _: "a")["results"]


def test_a_trial_on_other_sets_is_left_out(plan):
    """Trial 2 of cc saw other sets. Left are 70 - 69 and 72 - 70: mean 1.5, s^2 = 0.5, and the half-width is
    12.7062 sqrt(0.5 (1/2 + 112/898)) = 7.1. Below the bound: 80 - (69 + 70) / 2 = 10.5, and 1.5 / 10.5 = 14 %."""
    found = tables(plan, lambda run: "b" if (run.label, run.trial) == ("cc", 2) else "a")
    note = "Not compared, since their candidate sets differ: on lost, idgp, supervised against cc (1 of 3 trials)."
    assert "| cc | +1.50 (−5.60 to +8.60) ? |" in found["results"]
    assert found["results"].count(note) == 2
    assert "| cc | 71.00 ± 2.65 ? | 0/0/0/1 |  |" in found["results"]
    assert "| idgp | +8.00 |\n| cc | +10.50 |" in found["gap"]
    assert "| lost | cc | +1.50 | +10.50 | 14 % |" in found["gap"]


def test_means_over_different_sets_have_no_best_and_no_ranks(tmp_path):
    """On lost the sets differ in one trial, on msrcv2 in none: ranks are those on msrcv2."""
    plan = write_plan(tmp_path, PLAN.replace('["lost"]', '["lost", "msrcv2"]'))
    odd = ("cc", "lost", 2)
    found = tables(plan, lambda run: "b" if (run.label, run.dataset, run.trial) == odd else "a")["results"]
    assert "| idgp | 72.00 ± 2.00 | **72.00 ± 2.00** |  | 1.00 |" in found
    assert (
        "Mean ranks over 1 of 2 data sets, those with results of all methods on the same candidate sets." in found
    )
    found = tables(plan, lambda run: "b" if run.label == "cc" else "a")["results"]
    assert "**72" not in found
    assert "No mean ranks: there is no data set with results of all methods on the same candidate sets." in found


def test_methods_on_other_sets_in_all_trials_have_no_verdict(plan):
    found = tables(plan, lambda run: "b" if run.label == "cc" else "a")
    assert "| cc | 71.00 ± 2.65 | 0/0/0/0 |  |" in found["results"]
    assert "minus each method" not in found["results"]
    assert "| idgp | +8.00 |\n| cc | – |" in found["gap"]
    assert "best baseline" not in found["gap"]
    assert "idgp, supervised against cc (3 of 3 trials)." in found["results"]


def test_the_best_baseline_is_one_on_the_same_sets(tmp_path):
    """proden is better than cc, but on other sets."""
    plan = write_plan(tmp_path, PLAN.replace("[methods.cc]", "[methods.cc]\n[methods.proden]"))
    better = {"proden": {"lr 0.01": [(70, 79)] * 3, "lr 0.1": [(50, 60)] * 3}}
    assert "| lost | proden | −7.00 |" in tables(plan, lambda _: "a", SCORES | better)["gap"]
    found = tables(plan, lambda run: "b" if run.label == "proden" else "a", SCORES | better)
    assert "| lost | cc | +1.00 | +9.00 | 11 % |" in found["gap"]


def test_points_of_a_grid_are_chosen_among_runs_on_the_same_sets(tmp_path):
    """Of three rates, one saw other sets in trial 1: that run is set aside, and its point is incomplete."""
    plan = write_plan(tmp_path, PLAN.replace("[0.01, 0.1]", "[0.01, 0.1, 0.2]"))
    scores = {label: points | {"lr 0.2": [(99, 99)] * 3} for label, points in SCORES.items()}
    found = tables(plan, lambda _: "a", scores)
    assert "| lost | idgp | lr 0.2 | 99.00 | 3 | 9 | 3 |" in found["settings"]
    odd = ("idgp", "lr 0.2", 1)
    found = tables(
        plan, lambda run: "b" if (run.label, f"lr {run.point['lr']}", run.trial) == odd else "a", scores
    )
    assert "| lost | idgp | lr 0.1 | 70.00 | 3 | 8 of 9 | 3 |" in found["settings"]
    assert (
        "Runs left out, since most points of the grid saw other candidate sets in their trial: 1 of idgp on"
        in (found["results"])
    )


def test_of_two_points_the_one_counts_that_saw_what_the_others_saw(plan):
    odd = ("idgp", 0.01, 1)
    found = tables(plan, lambda run: "b" if (run.label, run.point["lr"], run.trial) == odd else "a")
    assert "| lost | idgp | lr 0.1 | 70.00 | 2 | 5 of 6 | 3 |" in found["settings"]
    assert "Not compared" not in found["results"]


def test_checksums():
    assert differing({0: "a", 1: "a", 2: "a"}, {0: "a", 1: "b", 2: None, 3: "c"}) == {1}
    assert differing({0: "a", 1: None}, {0: None, 1: None}, {0: "b", 1: "c"}) == {0}
    methods = {"x": {0: "a", 1: "a"}, "y": {0: "b", 1: "b"}, "z": {0: "a", 1: "c"}, "old": {0: None}}
    assert against(methods) == {"x, z against y": 1, "x against y against z": 1}
    assert usual(["a", "b", "b", None], []) == "b"
    assert usual(["a", "b"], ["b"]) == "b"
    assert usual(["a", "b"], []) == "a"
    assert usual([None, None], ["a"]) is None
