"""Records of runs: what fits the schema, and one sentence for what does not."""

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from oneof.bench.record import CRITERIA, WAYS, Criterion, ResultsByWay, Way, check_record, reason_of

LEDGER = Path(__file__).parents[1] / "benchmarks" / "results" / "table5-8.jsonl"
DONE = json.loads(LEDGER.read_text(encoding="utf-8").splitlines()[0])
FAILED = {name: DONE[name] for name in ("key", "spec", "device", "versions", "commit")} | {
    "status": "failed",
    "error": "Traceback\n  somewhere\nValueError: bad\n",
}
MISSING = object()


def changed(record, path, value):
    """A copy in which one place has another value, or none."""
    record = copy.deepcopy(record)
    *parents, last = path.split(".")
    place = record
    for name in parents:
        place = place[name]
    if value is MISSING:
        del place[last]
    else:
        place[last] = value
    return record


def test_whole_records_fit():
    for record in (DONE, FAILED, FAILED | {"seconds": 1}, changed(DONE, "commit", None)):
        assert check_record(record) is record


def test_scores_of_a_model_that_diverged_fit():
    for way in WAYS:
        check_record(changed(DONE, f"results.{way}.validation.approximated_accuracy", None))
    check_record(changed(DONE, "curves.loss", [None] * 8))


def test_what_is_added_later_fits():
    check_record(changed(DONE, "results.another", {"epoch": 1}) | {"more": 1})


@pytest.mark.parametrize(
    ("record", "path", "value", "words"),
    [
        (DONE, "results", MISSING, "it has no 'results'"),
        (DONE, "results.last_epoch", MISSING, "results has no 'last_epoch'"),
        (DONE, "results.last_epoch.epoch", 1.5, "results.last_epoch.epoch is 1.5, but must be a whole number"),
        (DONE, "results.last_epoch.epoch", True, "results.last_epoch.epoch is True, but must be a whole number"),
        (
            DONE,
            "results.covering_rate.validation.covering_rate",
            "x",
            "validation.covering_rate is 'x', but must be a number or null",
        ),
        (DONE, "results.transductive", 0.5, "results.transductive is 0.5, but must be a table"),
        (DONE, "results.transductive.true_labels", 1, "true_labels is 1, but must be true or false"),
        (DONE, "curves.test_accuracy", [0.5, None], r"curves.test_accuracy\[1\] is None, but must be a number"),
        (DONE, "curves.epoch", 3, "curves.epoch is 3, but must be a list"),
        (DONE, "seconds", "3", "seconds is '3', but must be a number"),
        (DONE, "versions.torch", 2, "versions.torch is 2, but must be a text"),
        (DONE, "commit", 3, "commit is 3, but must be a text or null"),
        (DONE, "spec.labels", "wrong", "spec.labels is 'wrong', but must be 'candidates' or 'true'"),
        (DONE, "spec.candidates", [], r"spec.candidates is \[\], but must be a table or null"),
        (FAILED, "error", MISSING, "it has no 'error'"),
        (FAILED, "error", None, "error is None, but must be a text"),
    ],
)
def test_what_does_not_fit_is_one_sentence(record, path, value, words):
    with pytest.raises(ValueError, match=words) as caught:
        check_record(changed(record, path, value))
    text = str(caught.value)
    assert text.startswith(f"the record '{DONE['key']}' in the ledgers is not whole (")
    assert text.endswith("; delete its line and run the plan again")
    assert "\n" not in text


def test_the_reason_is_the_last_line():
    assert reason_of(FAILED) == "ValueError: bad"
    assert reason_of({"error": "\n"}) == "unknown"


def test_names_of_criteria_are_the_same_everywhere():
    assert set(CRITERIA) == set(get_args(Criterion)) == set(WAYS.values())
    assert set(WAYS) == set(get_args(Way)) == ResultsByWay.__required_keys__ - {"transductive"}


def test_reports_need_nothing_of_what_runs_plans():
    """They are built on Windows too, where the module resource is missing."""
    code = """
import sys
sys.modules["resource"] = None
import oneof.bench.report.writer
assert not [name for name in sys.modules if name.startswith("oneof.bench.running")]
"""
    subprocess.run([sys.executable, "-c", code], check=True)
