"""Time to accuracy: what is trained and chosen, and that page and figure are those of the committed ledger."""

import json
from pathlib import Path

import pytest

from oneof.bench.keys import run_key
from oneof.bench.ledger import read
from oneof.pages.charts import standalone

ROOT = Path(__file__).parents[1]


@pytest.fixture
def experiment(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import time_to_accuracy

    return time_to_accuracy


@pytest.fixture
def results(experiment):
    import time_to_accuracy_results

    return time_to_accuracy_results


@pytest.fixture
def in_this_process(experiment, monkeypatch):
    """Do here what the processes do, all but the reference; note what the budget was."""
    import time_to_accuracy_run

    monkeypatch.setenv("ONEOF_BEGUN", "0")
    monkeypatch.setattr(experiment, "prepare", lambda specs, device: None)
    budgets = []

    def carry_out(specs, device, budget):
        budgets.append(budget)
        task = {"specs": specs, "device": device, "budget": float("inf"), "files": {}}
        if specs[0]["part"] == "reference":
            found = {"status": "done", "seconds_per_epoch": 2.0, "device": ""}
            return [{"key": run_key(spec), "spec": spec, **found} for spec in specs]
        return json.loads(json.dumps(list(time_to_accuracy_run.carry_out(task))))

    monkeypatch.setattr(experiment, "in_a_process", carry_out)
    return budgets


def given(experiment, monkeypatch, out, *words):
    command = ["time_to_accuracy.py", "--dry", "--device", "cpu", "--out", str(out), *words]
    monkeypatch.setattr("sys.argv", command)
    experiment.main()


def test_a_search_sees_no_test_row_and_what_it_chose_is_measured_once(
    experiment, in_this_process, monkeypatch, tmp_path, capsys
):
    out = tmp_path / "ledger.jsonl"
    given(experiment, monkeypatch, out, "--search")
    found = list(read([out]).records.values())
    assert {record["spec"]["part"] for record in found} == {"search"}
    assert len(found) == sum(len(experiment.SEARCH["digits", method]) for method in ("idgp", "cc"))
    assert all("test" not in json.dumps({**record, "spec": None}) for record in found)
    given(experiment, monkeypatch, out)
    records = read([out]).records
    runs = [record for record in records.values() if record["spec"]["part"] == "run"]
    assert sorted((r["spec"]["method"], r["spec"]["seed"]) for r in runs) == [
        (method, seed) for method in ("CC", "IDGP") for seed in experiment.SEEDS
    ]
    for record in runs:
        method = record["spec"]["method"].lower()
        assert record["spec"]["recipe"] == experiment.chosen("digits", method, records)
        curve = record["curve"]
        assert len(curve["seconds"]) == len(curve["test_accuracy"]) == record["epochs"] == 2
        assert sorted(curve["seconds"]) == curve["seconds"]
        assert record["test_accuracy"] == curve["test_accuracy"][-1] > 0.5
        assert curve["seconds"][-1] <= record["seconds"]
    done, size = len(in_this_process), len(out.read_text())
    given(experiment, monkeypatch, out)
    assert (len(in_this_process), len(out.read_text())) == (done, size)
    del capsys


def test_a_training_that_diverges_ends_no_search(experiment, in_this_process, monkeypatch, tmp_path):
    recipes = [{"lr": 1e30, "epochs": 2}, {"lr": 0.1, "epochs": 2}]
    monkeypatch.setitem(experiment.SEARCH, ("digits", "cc"), recipes)
    given(experiment, monkeypatch, tmp_path / "ledger.jsonl", "--search", "--methods", "cc")
    records = read([tmp_path / "ledger.jsonl"]).records
    assert [record["validation_accuracy"] > 0.5 for record in records.values()] == [False, True]
    assert experiment.chosen("digits", "cc", records) == recipes[1]


def test_nothing_is_begun_after_the_budget(experiment, in_this_process, monkeypatch, tmp_path, capsys):
    given(experiment, monkeypatch, tmp_path / "ledger.jsonl", "--budget", "0")
    assert in_this_process == []
    assert "0 seconds are over" in capsys.readouterr().out


def test_the_quickest_near_the_best_is_chosen(experiment):
    accuracies = {0: 0.850, 1: 0.8512, 2: 0.8505, 3: 0.8480}  # the recipe's place: validation accuracy
    seconds = {0: 10.0, 1: 30.0, 2: 11.0, 3: 1.0}
    records = {}
    for i, spec in enumerate(experiment.searched("cifar-10", "idgp")[:4]):
        records[run_key(spec)] = {"spec": spec, "validation_accuracy": accuracies[i], "seconds": seconds[i]}
    assert experiment.chosen("cifar-10", "idgp", records) == experiment.SEARCH["cifar-10", "idgp"][2]
    assert experiment.chosen("cifar-10", "idgp", {}) == experiment.SEARCH["cifar-10", "idgp"][0]


@pytest.mark.parametrize("dataset", ["cifar-10", "fashion-mnist"])
@pytest.mark.parametrize("method", ["idgp", "cc"])
def test_recipes_differ_and_have_the_plans_problem(experiment, dataset, method):
    specs = [*experiment.searched(dataset, method), *experiment.measured(dataset, method, {})]
    assert len({run_key(spec) for spec in specs}) == len(specs)
    settings = specs[-1]["settings"]
    assert (settings["schedule"], settings["batch_size"], settings["precision"]) == ("triangular", 256, "bf16")
    assert settings.get("warm_up", 5) == 5
    first = next(r for r in experiment._plan(dataset).runs() if (r.label, r.trial) == (method, 0))
    of_seed = next(spec for spec in specs if spec["part"] == "run" and spec["seed"] == 0)
    assert {name: of_seed[name] for name in ("data", "split", "candidates")} == {
        name: first.spec[name] for name in ("data", "split", "candidates")
    }
    sets = [json.dumps(spec["candidates"]) for spec in specs]
    assert set(sets[:-3]).isdisjoint(sets[-3:])  # the search has those of another trial


def test_tables_tell_when_a_level_is_reached(experiment, results):
    spec = experiment.spec_of("run", "fashion-mnist", "idgp", {"lr": 0.2}, 0)
    curves = ([0.89, 0.904, 0.906], [0.88, 0.89, 0.902], [0.90, 0.905, 0.906])
    record = {"device": "GPU", "commit": "abc", "seconds": 5.0, "start": 4.0}
    records = [
        {**record, "spec": {**spec, "seed": seed}, "test_accuracy": curve[-1],
         "curve": {"seconds": [1.0, 2.0, 4.0], "test_accuracy": curve}}
        for seed, curve in enumerate(curves)
    ]  # fmt: skip
    reference = {**experiment.reference_spec("fashion-mnist", "idgp")}
    records += [{**record, "spec": reference, "seconds_per_epoch": 5.0}]
    text = results.tables(records)
    row = next(line for line in text.splitlines() if line.startswith("| idgp"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[3:7] == ["90.47 ± 0.23", "91.48", "5.0 ± 0.0", "4.0 ± 0.0"]
    assert cells[7] == "1.0; 5.0"  # 87.3 %
    assert cells[10] == "2.0; 6.0 (2 of 3)"
    assert cells[11:] == ["10 ± 0", "5.0"]
    assert "1.9 hours" in text
    assert "abc" in text


def test_page_and_figure_are_those_of_the_ledger(results):
    records = list(read([results.LEDGER], missing_ok=True).records.values())
    page = results.PAGE.read_text()
    again = "write them again with python benchmarks/time_to_accuracy.py --draw"
    assert results.between(page, results.BEGIN, results.END, results.tables(records)) == page, again
    assert standalone(results.figure(records)) == results.FIGURE.read_text(), again
