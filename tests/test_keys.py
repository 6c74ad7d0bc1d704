"""Keys of runs: they follow every value, and a library that grows leaves old ones alone."""

import json
import math
from dataclasses import dataclass, fields
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from oneof import METHODS
from oneof.bench import keys
from oneof.bench.keys import baseline, difference, run_key
from oneof.bench.plan import Split, plan_fields
from oneof.bench.plan_file import read_plan
from oneof.data.annotator import Annotator
from oneof.estimator.fields import hyperparameters, number
from oneof.methods import classifiers

FILE = Path(keys.__file__).with_name("baseline.json")
LEDGERS = sorted((Path(__file__).parents[1] / "benchmarks" / "results").glob("*.jsonl"))
ADD = "add it to src/oneof/bench/baseline.json with the value that leaves old results as they were"
PLAN = """
title = "Small"
datasets = ["lost"]
trials = 1
[candidates]
process = "instance"
[methods.idgp]
[methods.cc]
[methods.supervised]
"""


@pytest.fixture
def read(tmp_path):
    def read(text=PLAN):
        path = tmp_path / "plan.toml"
        path.write_text(text, encoding="utf-8")
        return read_plan(path)

    return read


def keys_of(plan):
    return [run.key for run in plan.runs()]


def other(value):
    """A value that is not this one."""
    return 7 if value is None else not value if isinstance(value, bool) else value * 2 + type(value)(1)


def same_settings(**named):
    """A spec of which everything that is not named has its value in the baseline."""
    settings = baseline("IDGP")["settings"] | named
    return {"method": "IDGP", "version": 1, "settings": settings}


# --- values --------------------------------------------------------------------------------------------------


def test_key_depends_on_values_alone():
    key = run_key({"method": "idgp", "lr": 0.01, "trials": [1, 2], "seed": 3})
    assert key == run_key({"seed": 3.0, "trials": (1.0, 2), "lr": 1e-2, "method": "idgp"})
    # The frozen value: keys of ledgers that exist must not change.
    assert key == "841cd5d9bf9c90e58fa9"
    assert run_key({"x": -0.0}) == run_key({"x": 0})


SETTINGS = {"method": "cc", "lr": 0.01, "flag": True, "nested": {"a": 1}, "list": [1, 2], "none": None}
CHANGES = {
    "text": {"method": "rc"},
    "float": {"lr": math.nextafter(0.01, 1)},
    "bool is no int": {"flag": 1},
    "text is no number": {"nested": {"a": "1"}},
    "order of a list": {"list": [2, 1]},
    "none is no text": {"none": "None"},
    "one more": {"more": None},
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_key_changes_with_every_value(change):
    assert run_key({**SETTINGS, **change}) != run_key(SETTINGS)


def test_key_refuses_what_has_no_canonical_form():
    with pytest.raises(TypeError, match=r"spec\.path is .* of type \w*Path, but must be"):
        run_key({"path": Path("x")})
    with pytest.raises(TypeError, match=r"spec\.seeds\[0\] is .* of type int64, but must be"):
        run_key({"seeds": [np.int64(3)]})
    with pytest.raises(TypeError, match=r"spec\.views has the name 1, but names must be texts"):
        run_key({"views": {1: "jitter"}})
    with pytest.raises(ValueError, match=r"spec\.lr is nan, but must be finite"):
        run_key({"lr": math.nan})


# --- the baseline --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", classifiers().values(), ids=classifiers())
def test_every_field_of_a_method_is_in_the_baseline(method):
    missing = set(plan_fields(method)) - set(baseline(method.__name__)["settings"])
    assert not missing, f"{method.__name__} has the field {missing}: {ADD}"


def test_every_method_is_in_the_baseline():
    content = json.loads(FILE.read_text(encoding="utf-8"))
    assert content["methods"].keys() == {method.__name__ for method in classifiers().values()}, (
        f"a new method: {ADD}"
    )


def test_every_field_of_annotator_and_split_is_in_the_baseline():
    for part, known in ((Annotator, baseline()["candidates"]["annotator"]), (Split, baseline()["split"])):
        missing = {f.name for f in fields(part)} - set(known)
        assert not missing, f"{part.__name__} has the field {missing}: {ADD}"


def test_no_value_of_the_baseline_changes():
    content = FILE.read_text(encoding="utf-8")
    canonical = json.dumps(json.loads(content), sort_keys=True)
    assert sha256(canonical.encode()).hexdigest()[:16] == "e7952e364206330e", (
        "the baseline is not what it was. A value that was in it must stay, because keys of ledgers depend on it. "
        "If a field was only added, put the new hash here."
    )


WITHOUT_KEYS = (
    "review",
    "compare",
    "idgp-defaults",
    "idgp-likelihood",
    "idgp-literal",
    "outside",
    "votes",
)  # ledgers of benchmarks that are no plans


@pytest.mark.parametrize("path", [path for path in LEDGERS if path.stem not in WITHOUT_KEYS], ids=lambda p: p.stem)
def test_committed_records_have_the_keys_of_their_specs(path):
    """Read as JSON: the ledger would compute them."""
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    assert records
    assert [record["key"] for record in records] == [run_key(record["spec"]) for record in records]


def test_fields_that_leave_no_trace_are_nowhere(read):
    unset = {"random_state", "device", "verbose", "checkpoint"}
    for method in classifiers().values():
        assert not unset & set(baseline(method.__name__)["settings"])
        assert not unset & set(plan_fields(method))
    assert not any(unset & run.spec["settings"].keys() for run in read().runs())


# --- differences ---------------------------------------------------------------------------------------------


def test_values_of_the_baseline_are_left_out():
    assert difference(same_settings()) == {"method": "IDGP", "version": 1}
    assert difference(same_settings(a=10, lr=0.3)) == {"method": "IDGP", "version": 1, "settings": {"lr": 0.3}}
    # lr of VALEN has a baseline of its own
    assert difference({"method": "VALEN", "settings": {"lr": 0.03}}) == {"method": "VALEN"}
    assert difference({"method": "CC", "settings": {"lr": 0.03}})["settings"] == {"lr": 0.03}


def test_names_that_the_baseline_does_not_have_are_kept():
    own = {"method": "Mine", "settings": {"lr": 0.1, "lr_g": None}, "rows": 5, "network": "auto"}
    assert difference(own) == own | {"settings": {"lr_g": None}}


def test_a_part_that_is_none_is_not_the_baseline():
    specs = [{"candidates": {"annotator": baseline()["candidates"]["annotator"]}}, {"candidates": None}]
    assert run_key(specs[0]) == run_key({}) != run_key(specs[1])


def test_a_truth_value_is_not_its_number():
    assert run_key({"settings": {"flips": 1}}) != run_key({"settings": {"flips": True}}) == run_key({})


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_every_setting_that_differs_gives_another_key(method):
    known = baseline(method.__name__)["settings"]
    specs = [{"method": method.__name__, "settings": known | {n: other(v)}} for n, v in known.items()]
    specs.append({"method": method.__name__, "settings": known})
    assert len({run_key(spec) for spec in specs}) == len(known) + 1


def test_every_field_of_annotator_and_split_that_differs_gives_another_key(read):
    (spec,) = (run.spec for run in read().runs() if run.label == "idgp")
    annotator, split = spec["candidates"]["annotator"], spec["split"]
    assert set(annotator) == set(baseline()["candidates"]["annotator"])
    specs = [{**spec, "split": split | {name: other(value)}} for name, value in split.items()]
    for name, value in annotator.items():
        candidates = spec["candidates"] | {"annotator": annotator | {name: other(value)}}
        specs.append({**spec, "candidates": candidates})
    assert len({run_key(spec)} | {run_key(changed) for changed in specs}) == 1 + 4 + 7


# --- growth --------------------------------------------------------------------------------------------------


def with_default(monkeypatch, cls, name, value):
    """Let a field of a class have another default."""
    init = cls.__init__

    def changed(self, **named):
        init(self, **{name: value, **named})

    monkeypatch.setattr(cls, "__init__", changed)


@pytest.mark.parametrize(
    ("cls", "name", "value", "labels"),
    [
        (METHODS["idgp"], "likelihood_weight", 0.5, ["idgp"]),
        (METHODS["cc"], "momentum", 0.5, ["cc", "supervised"]),
        (Annotator, "lr", 0.5, ["idgp", "cc", "supervised"]),
        (Split, "test", 0.2, ["idgp", "cc", "supervised"]),
    ],
    ids=["own field", "shared field", "annotator", "split"],
)
def test_a_changed_default_changes_keys_unless_a_plan_holds_to_the_baseline(
    cls, name, value, labels, read, monkeypatch
):
    holding = 'defaults = "baseline"' + PLAN
    before, held = read(PLAN).runs(), read(holding).runs()
    frozen = [baseline(run.spec["method"])["settings"] for run in held]
    assert [run.spec["settings"]["schedule"] for run in held] == [each["schedule"] for each in frozen]
    with_default(monkeypatch, cls, name, value)
    after = read(PLAN).runs()
    changed = [run.label for run, old in zip(after, before, strict=True) if run.key != old.key]
    assert changed == labels
    assert [(run.key, run.spec) for run in read(holding).runs()] == [(run.key, run.spec) for run in held]


def test_a_named_setting_is_the_same_whatever_the_default(read, monkeypatch):
    text = PLAN + "[settings]\nmomentum = 0.9\n"
    before = keys_of(read(text))
    with_default(monkeypatch, METHODS["cc"], "momentum", 0.5)
    assert keys_of(read(text)) == before


@pytest.fixture
def grow(monkeypatch, tmp_path):
    """Give IDGP and the annotator one more field, and the baseline its value."""

    def grow(value):
        @hyperparameters
        class IDGP(METHODS["idgp"]):
            sharpness: float = number(1.0, "> 0")

        @dataclass(frozen=True, kw_only=True)
        class Larger(Annotator):
            sharpness: float = number(1.0, "> 0")

        content = json.loads(FILE.read_text(encoding="utf-8"))
        content["methods"]["IDGP"]["sharpness"] = value
        content["spec"]["candidates"]["annotator"]["sharpness"] = value
        (tmp_path / "baseline.json").write_text(json.dumps(content), encoding="utf-8")
        monkeypatch.setattr(keys, "files", lambda _: tmp_path)
        monkeypatch.setitem(METHODS, "idgp", IDGP)
        monkeypatch.setattr("oneof.bench.plan_file.Annotator", Larger)
        forget()

    def forget():
        keys.baseline.cache_clear()
        keys._canonical_baseline.cache_clear()

    yield grow
    monkeypatch.undo()
    forget()


@pytest.mark.parametrize("text", [PLAN, 'defaults = "baseline"' + PLAN], ids=["current", "baseline"])
def test_a_new_field_changes_no_key(text, read, grow):
    before = keys_of(read(text))
    grow(1.0)
    runs = read(text).runs()
    assert runs[0].spec["settings"]["sharpness"] == runs[0].spec["candidates"]["annotator"]["sharpness"] == 1.0
    assert [run.key for run in runs] == before


def test_a_new_field_whose_default_is_not_the_old_behaviour_changes_keys(read, grow):
    held = 'defaults = "baseline"' + PLAN
    before, kept = keys_of(read()), keys_of(read(held))
    grow(2.0)
    assert not set(keys_of(read())) & set(before)
    assert keys_of(read(held)) == kept
