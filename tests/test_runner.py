"""The runner: nothing is lost, nothing is done twice, and one bad run does not stop the others."""

import json
import multiprocessing
import os
import pickle
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import bench_data
import oneof
from oneof.bench.keys import run_key
from oneof.bench.ledger import Ledger, read
from oneof.bench.plan_file import read_plan
from oneof.bench.record import CRITERIA, check_record, damage_of
from oneof.bench.running import engines, estimate, execute
from oneof.bench.running.deadline import Deadline
from oneof.bench.running.engines import LocalEngine, Task, TaskResult, execute_task
from oneof.bench.running.order import execution_order, together
from oneof.bench.running.problem import make_problem
from oneof.bench.running.runner import Runner, progress_of
from oneof.cli import app
from oneof.data import load_dataset
from oneof.data.generate import checksum
from oneof.train.parallel import grouping as many


@pytest.fixture(scope="session")
def soccer(tmp_path_factory):
    return bench_data.write_soccer_player(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="session")
def undisturbed(soccer, tmp_path_factory):
    """The plan, and the records of a run that nothing disturbed."""
    folder = tmp_path_factory.mktemp("undisturbed")
    (folder / "plan.toml").write_text(bench_data.PLAN)
    plan = read_plan(folder / "plan.toml")
    progress = carry_out(plan, folder / "ledger.jsonl", soccer)
    assert (progress.done, progress.failed, progress.unavailable) == (6, {}, {})
    return plan, read([folder / "ledger.jsonl"]).records


def carry_out(plan, ledger, root, workers=1, **options):
    return Runner(plan, ledger, LocalEngine(workers), device="cpu", root=str(root), **options).run()


def in_a_process(plan, ledger, root, *more):
    command = [sys.executable, "-m", "oneof", "run", plan.path, "--ledger", ledger, "--data", root, "--workers", 1]
    return subprocess.Popen(
        list(map(str, [*command, "--device", "cpu", *more])), stderr=subprocess.PIPE, text=True
    )


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_a_record_says_everything(undisturbed, soccer):
    plan, records = undisturbed
    for run in plan.runs():
        record = records[run.key]
        assert check_record(record)["status"] == "done"
        assert record["spec"] == json.loads(json.dumps(run.spec))
        assert record["seconds"] > 0
        assert record["candidates"]["sha256"] == checksum(load_dataset("soccer-player", soccer).candidates)
        assert record["memory"]["process_mb"] > 50
        assert record["versions"].keys() >= {"oneof", "python", "torch", "numpy"}
        assert record["device"].endswith("CPU")
        curves, results = record["curves"], record["results"]
        assert results.keys() == {*CRITERIA, "last_epoch", "transductive"}
        for name, uses_truth in CRITERIA.items():
            best = int(np.argmax(curves[name]))
            assert curves[name][results[name]["epoch"]] == pytest.approx(max(curves[name]))
            assert results[name]["epoch"] == best
            assert results[name]["test_accuracy"] == pytest.approx(curves["test_accuracy"][best], abs=1e-4)
            assert results[name]["true_labels"] is uses_truth
        assert results["last_epoch"]["epoch"] == record["epochs"] - 1 == 3
        assert results["last_epoch"]["test_accuracy"] == pytest.approx(curves["test_accuracy"][-1], abs=1e-4)


def test_true_labels_train_only_the_upper_bound(undisturbed):
    _, records = undisturbed
    accuracy = {
        (r["spec"]["method"], r["spec"]["labels"]): r["results"]["validation_accuracy"]["test_accuracy"]
        for r in records.values()
    }
    transductive = {r["spec"]["labels"]: r["results"]["transductive"]["accuracy"] for r in records.values()}
    assert accuracy["CC", "true"] > accuracy["CC", "candidates"] > 0.5
    assert transductive["true"] == 1.0
    assert transductive["candidates"] < 1.0


def test_splits_are_disjoint_and_shared(soccer, undisturbed):
    plan, _ = undisturbed
    first, second = (make_problem(run.spec, soccer) for run in plan.runs()[:2])
    rows = [part.x for part in (first.train, first.validation, first.test)]
    assert [len(x) for x in rows] == [17472 - 2 * 1747, 1747, 1747]
    assert len(np.unique(np.concatenate(rows), axis=0)) == 17472
    assert (first.train.x == second.train.x).all()
    assert (first.train.candidates == second.train.candidates).all()
    other = make_problem(plan.runs()[-1].spec, soccer)
    assert (first.test.x != other.test.x).any()


def test_finished_runs_are_skipped(undisturbed, soccer, tmp_path):
    plan, records = undisturbed
    ledger = tmp_path / "ledger.jsonl"
    with Ledger(ledger) as writer:
        for record in list(records.values())[:4]:
            writer.append(record)
    before = ledger.read_bytes()
    assert carry_out(plan, ledger, soccer, workers=2).done == 6
    assert ledger.read_bytes().startswith(before)
    assert ledger.read_bytes().count(b'"key"') == 6
    assert bench_data.results(read([ledger]).records) == bench_data.results(records)
    assert not (tmp_path / "ledger.checkpoints").exists()


def test_damaged_records_are_made_again(undisturbed, soccer, tmp_path):
    """A record that has its key but not its results is not a run that is done."""
    plan, records = undisturbed
    ledger = tmp_path / "ledger.jsonl"
    damaged = [{name: value for name, value in r.items() if name != "results"} for r in records.values()]
    whole = list(records.values())
    ledger.write_text("".join(json.dumps(line) + "\n" for line in [*whole[:3], damaged[3], *whole[4:]]))
    before = ledger.read_bytes()
    with pytest.warns(UserWarning, match=r"1 line of .* \(line 4: it has no 'results'\)"):
        assert carry_out(plan, ledger, soccer).done == 6
    assert ledger.read_bytes().startswith(before)
    assert ledger.read_bytes().count(b'"key"') == 7
    with pytest.warns(UserWarning, match="1 line of"):
        assert bench_data.results(read([ledger], damage_of).records) == bench_data.results(records)


def test_a_failed_run_is_told_and_tried_again(undisturbed, soccer, tmp_path):
    _, records = undisturbed
    plan, ledger = tmp_path / "plan.toml", tmp_path / "ledger.jsonl"
    plan.write_text(bench_data.PLAN + '[[override]]\nmethods = ["cc"]\nnetwork = "lenet"\n')
    command = ["run", plan, "--ledger", ledger, "--data", soccer, "--workers", 1, "--device", "cpu"]
    result = invoke(*command)
    assert result.exit_code == 1
    assert "4 of 6 runs done, 2 failed" in result.stdout
    assert (
        "failed: cc on soccer-player, trial 0: oneof.errors.InputError: the network 'lenet' needs images"
        in result.stderr
    )
    failed = [r for r in read([ledger]).records.values() if r["status"] == "failed"]
    assert all("Traceback" in check_record(record)["error"] for record in failed)
    shown = invoke("status", plan, "--ledger", ledger)
    assert "4 of 6 runs done, 2 failed" in shown.stdout
    assert "the network 'lenet' needs images" in shown.stdout
    assert invoke(*command).exit_code == 1
    assert ledger.read_bytes().count(b'"status":"failed"') == 4
    # The same settings as before give the same numbers, whatever else the plan holds.
    done = {key: r for key, r in read([ledger]).records.items() if r["status"] == "done"}
    assert bench_data.results(done).items() <= bench_data.results(records).items()


def test_a_killed_worker_costs_one_run_and_the_rest_goes_on(undisturbed, soccer, tmp_path):
    """Runs that were trained together are tried one by one; one that is killed alone has failed."""
    plan, records = undisturbed
    ledger, engine = tmp_path / "ledger.jsonl", LocalEngine(1)
    killed = []

    def kill_twice(progress):
        if engine._busy and len(killed) < 2:
            killed.append(progress.running)
            os.kill(engine._busy[0].process.pid, signal.SIGKILL)
            engine._busy[0].process.join()

    progress = Runner(plan, ledger, engine, device="cpu", root=str(soccer), show=kill_twice).run()
    assert killed == [
        [f"{m} on soccer-player, trial {t}" for t in (0, 1) for m in ("cc", "supervised")],
        killed[0][:1],
    ]
    assert (progress.done, list(progress.failed)) == (5, killed[1])
    (failed,) = (r for r in read([ledger]).records.values() if r["status"] == "failed")
    assert "exit code -9; if it was killed, the machine was probably out of memory: use" in failed["error"]
    assert carry_out(plan, ledger, soccer).done == 6
    assert bench_data.results(read([ledger]).records) == bench_data.results(records)


def test_runs_that_are_alike_are_trained_together(tmp_path):
    (tmp_path / "plan.toml").write_text(
        bench_data.PLAN.replace("lr = 0.5", "").replace(
            "[methods.cc]", "[grid]\nlr = [0.1, 0.2, 0.3]\n[methods.cc]"
        )
        + '[[override]]\nmethods = ["proden"]\nnetwork = "mlp5"\n'
    )
    runs = read_plan(tmp_path / "plan.toml").runs()
    groups = together(runs)
    # cc and supervised are the same method on the same rows, the labels they learn from may differ: 12 runs, of
    # which 7 would fit a stack on so large a table: two of six
    assert sorted(map(len, groups)) == [1] * 6 + [6, 6]
    assert sorted(run.key for group in groups for run in group) == sorted(run.key for run in runs)
    assert sorted(map(len, together(runs, on_gpu=True))) == [6, 6, 6]


@pytest.mark.parametrize("name", oneof.METHODS)
def test_trials_of_every_method_on_a_table_are_one_stack(name, tmp_path):
    (tmp_path / "plan.toml").write_text(f'title = "Made"\ndatasets = ["lost"]\ntrials = 3\n[methods.{name}]\n')
    (stack,) = together(read_plan(tmp_path / "plan.toml").runs())
    assert len(stack) == 3


METHOD_NAMES = ["idgp", "plcr", "pico", "cc", "proden", "competition", "supervised"]
IMAGES = """
title = "Made"
datasets = ["fashion-mnist"]
trials = 3

[settings]
network = "NETWORK"
epochs = 4

""" + "".join(f"[methods.{name}]\n" for name in METHOD_NAMES)


class Fake(LocalEngine):
    """Writes down what it is given, ends the runs of some tasks, and pauses the rest, which leave checkpoints."""

    def __init__(self, most):
        super().__init__(1)
        self.most, self.given = most, []

    def submit(self, task):
        self.given.append(task)

    def collect(self, timeout):
        task = self.given[-1]
        if len(self.given) <= self.most:
            return [TaskResult(task, [fake_record(spec) for spec in task.specs])]
        task.deadline._end = 0.0  # the budget is spent
        for path in task.checkpoints:
            path.touch()
        return [TaskResult(task, [None] * len(task.specs))]


def fake_record(spec):
    epoch = {"epoch": 0, "validation": dict.fromkeys(CRITERIA, 0.5), "test_accuracy": 0.5, "true_labels": True}
    results = dict.fromkeys((*CRITERIA, "last_epoch"), epoch) | {
        "transductive": {"accuracy": 1.0, "true_labels": True}
    }
    curves = {name: [0] if name == "epoch" else [0.5] for name in ("epoch", "loss", *CRITERIA, "test_accuracy")}
    where = {
        "device": "none",
        "versions": {},
        "commit": None,
        "seconds": 1.0,
        "memory": {},
        "candidates": {},
        "epochs": 1,
    }
    return {"key": run_key(spec), "status": "done", "spec": spec, **where, "results": results, "curves": curves}


@pytest.fixture
def on_gpu(monkeypatch):
    monkeypatch.setattr("oneof.bench.running.runner.resolve_device", lambda device: torch.device("cuda"))
    monkeypatch.setattr("oneof.bench.running.runner.make_problem", lambda *arguments: None)


@pytest.mark.parametrize(("network", "sizes"), [("resnet32", [5, 5, 5, 5, 1]), ("lenet", [11, 10])])
def test_a_budget_on_a_gpu_ends_with_a_trial_of_every_method(network, sizes, on_gpu, tmp_path):
    """Whenever it ends: no method has two trials more than another, and the next call goes on where it was."""
    (tmp_path / "plan.toml").write_text(IMAGES.replace("NETWORK", network))
    plan, ledger = read_plan(tmp_path / "plan.toml"), tmp_path / "ledger.jsonl"
    in_order = [(run.spec["method"], run.spec["labels"], run.trial) for run in plan.runs()]
    engine = Fake(most=1)
    progress = Runner(plan, ledger, engine, budget=1e6).run()
    assert [len(task.specs) for task in engine.given] == sizes[:2]
    assert progress.done == sizes[0]
    assert executed(engine) == in_order[: sum(sizes[:2])]
    engine = Fake(most=100)  # what was paused comes first
    assert Runner(plan, ledger, engine).run().done == len(in_order)
    assert executed(engine) == in_order[sizes[0] :]
    assert len(engine.given[0].specs) == sizes[1]


@pytest.mark.parametrize(("budget", "sizes"), [(60.0, [11, 10]), (4.9, [11, 4, 4, 2]), (0.9, [11, 10])])
def test_no_more_is_begun_side_by_side_than_ends_within_the_budget(budget, sizes, on_gpu, monkeypatch, tmp_path):
    """Runs of a second each: the whole group while nothing is known, or if not even one run would end."""
    monkeypatch.setattr(Deadline, "left", lambda self: budget)
    (tmp_path / "plan.toml").write_text(IMAGES.replace("NETWORK", "lenet"))
    plan, engine = read_plan(tmp_path / "plan.toml"), Fake(most=100)
    assert Runner(plan, tmp_path / "ledger.jsonl", engine, budget=budget).run().done == sum(sizes)
    assert [len(task.specs) for task in engine.given] == sizes
    assert executed(engine) == [(run.spec["method"], run.spec["labels"], run.trial) for run in plan.runs()]


def executed(engine):
    specs = [spec for task in engine.given for spec in task.specs]
    return [(spec["method"], spec["labels"], spec["seed"]) for spec in specs]


def test_what_was_begun_comes_first_and_what_failed_last(tmp_path):
    (tmp_path / "plan.toml").write_text(IMAGES.replace("NETWORK", "lenet"))
    runs = read_plan(tmp_path / "plan.toml").runs()
    keys = [run.key for run in runs]
    pending = set(keys[2:])
    order = execution_order(runs, pending, {keys[3]}, {keys[9], keys[4]}, on_gpu=False)
    assert order == [[runs[i]] for i in (4, 9, 2, *range(5, 9), *range(10, 21), 3)]
    begun, fresh, failed = execution_order(runs, set(keys[9:]), {keys[20]}, {keys[9], keys[12]}, on_gpu=True)
    assert (begun, failed) == ([runs[9], runs[12]], [runs[20]])
    assert fresh == [runs[i] for i in (10, 11, *range(13, 20))]


def test_stacks_are_the_plans_own_whatever_is_left(tmp_path):
    """Also with a checkpoint or a failure among them; a trial of every method comes before the next."""
    text = bench_data.PLAN.replace("lr = 0.5", "").replace("trials = 2", "trials = 10")
    (tmp_path / "plan.toml").write_text(text)
    runs = read_plan(tmp_path / "plan.toml").runs()
    whole = together(runs)
    assert [{run.spec["method"] for run in group} for group in whole[:2]] == [{"CC"}, {"PRODEN"}]
    trials = [[min(run.trial for run in group), max(run.trial for run in group)] for group in whole]
    assert trials == sorted(trials)
    cut = {run.key for run in runs} - {whole[0][0].key, whole[1][2].key}
    begun, failed = {whole[1][0].key}, {whole[0][1].key}
    assert execution_order(runs, cut, failed, begun, on_gpu=False) == whole
    only_failed = {whole[1][1].key, whole[1][3].key}
    assert execution_order(runs, only_failed, only_failed, begun, on_gpu=False) == [[whole[1][1]], [whole[1][3]]]


def too_large():
    """The error of torch when the host lacks memory."""
    try:
        torch.empty(2**62, dtype=torch.uint8)
    except RuntimeError as error:
        return error


@pytest.mark.parametrize(
    "error", [MemoryError("host"), torch.OutOfMemoryError("device"), too_large()], ids=["host", "device", "torch"]
)
def test_out_of_memory_is_a_failed_run_with_advice(error, undisturbed, soccer, monkeypatch):
    """In the middle of several runs: those that can still be trained alone are."""
    plan, records = undisturbed
    runs = plan.runs()[:2]

    def train_some(trials):
        if len(trials) > 1 or isinstance(trials[0].method, oneof.CC):
            raise error
        many.train_together(trials)

    monkeypatch.setattr(execute, "train_together", train_some)
    specs = tuple(run.spec for run in runs)
    assert [spec["method"] for spec in specs] == ["CC", "PRODEN"]
    failed, done = execute_task(Task(specs, "cpu", str(soccer), (None, None), deadline=None))
    assert (failed["status"], done["status"]) == ("failed", "done")
    assert failed["error"].startswith("out of memory: use fewer workers, a smaller batch_size")
    assert str(error) in failed["error"]
    assert bench_data.results({runs[1].key: done}) == bench_data.results({runs[1].key: records[runs[1].key]})


def test_a_budget_pauses_and_the_next_call_goes_on(undisturbed, soccer, tmp_path):
    plan, records = undisturbed
    ledger = tmp_path / "ledger.jsonl"
    progress = carry_out(plan, ledger, soccer, budget=0.1)
    assert (progress.done < 6, progress.failed, progress.unavailable) == (True, {}, {})
    assert progress_of(plan, ledger).done == progress.done
    assert carry_out(plan, ledger, soccer).done == 6
    assert bench_data.results(read([ledger]).records) == bench_data.results(records)
    assert not (tmp_path / "ledger.checkpoints").exists()


def test_a_spent_budget_leaves_a_trial_of_every_method(tmp_path):
    """Networks on images, which are not stacked."""
    text = bench_data.PLAN.replace("soccer-player", "mnist").replace('"linear"', '"mlp"')
    (tmp_path / "plan.toml").write_text(text + '[candidates]\nprocess = "pair"\nparameters = {rate = 0.5}\n')
    plan, ledger = read_plan(tmp_path / "plan.toml"), tmp_path / "ledger.jsonl"
    with bench_data.small_mnist(tmp_path / "data") as root:
        keys = [run.key for run in plan.runs()]
        options = {"device": "cpu", "root": str(root), "budget": 1e6}
        assert Runner(plan, ledger, bench_data.Here(last=5), **options).run().done == 4
        assert list(read([ledger]).records) == keys[:4]
        assert [path.stem for path in (tmp_path / "ledger.checkpoints").iterdir()] == [keys[4]]
        assert Runner(plan, ledger, bench_data.Here(), **options).run().done == 6
        assert list(read([ledger]).records) == keys


@pytest.mark.parametrize("by", [-86400.0, 0.0])
def test_a_deadline_passes_in_every_process_though_the_clock_is_set_back(monkeypatch, by):
    clocks = {"time": 1e9, "monotonic": 50.0}
    for name in clocks:
        monkeypatch.setattr(time, name, lambda name=name: clocks[name])
    deadline = Deadline(10)
    clocks["time"] += by + 6
    clocks["monotonic"] += 6
    elsewhere = pickle.dumps(deadline)
    clocks["monotonic"] = 3000.0  # another machine
    sent = pickle.loads(elsewhere)
    assert not sent.has_passed()
    clocks["monotonic"] += 3.9
    assert not sent.has_passed()
    clocks["monotonic"] += 0.2
    assert sent.has_passed()
    again = pickle.loads(elsewhere)  # as Ray does when a node is lost: it has no other 4 seconds
    clocks["time"] += 4.1
    assert again.has_passed() == (by == 0)


def test_a_problem_that_cannot_be_made_is_a_failed_run(undisturbed, soccer, tmp_path):
    """The runner made it before; since then its files are gone."""
    run = undisturbed[0].runs()[0]
    (failed,) = execute_task(Task((run.spec,), "cpu", str(tmp_path), (None,), None))
    assert failed["key"] == run.key
    assert failed["error"].splitlines()[-1].startswith("FileNotFoundError: there is no file")


class PanicError(BaseException):
    """What libraries in Rust raise when they lack memory is no Exception."""


@pytest.mark.parametrize(
    ("error", "quiet"), [(MemoryError(), True), (PanicError(), True), (KeyError("bug"), False)], ids=repr
)
def test_a_worker_without_memory_for_a_record_ends_quietly(error, quiet, monkeypatch):
    """Its runner tells the reason; a traceback is for bugs."""

    class EndedError(Exception):
        pass

    def end(code):
        assert code == 1
        raise EndedError

    def fail(task):
        try:
            raise error
        finally:
            raise KeyError("while it was recorded") if isinstance(error, MemoryError) else error

    monkeypatch.setattr(engines.os, "_exit", end)
    monkeypatch.setattr(engines, "execute_task", fail)
    ours, theirs = multiprocessing.Pipe()
    ours.send("task")
    with pytest.raises(EndedError if quiet else KeyError):
        engines._work(theirs, os.getppid())


class Recorded(LocalEngine):
    """Gives records that were made before, and leaves the checkpoints of their runs."""

    def __init__(self, records):
        super().__init__(1)
        self.records = records

    def submit(self, task):
        self.task = task
        for path in task.checkpoints:
            path.touch()

    def collect(self, timeout):
        return [TaskResult(self.task, [self.records[run_key(spec)] for spec in self.task.specs])]


def test_runs_that_are_carried_out_again_with_their_group_leave_no_checkpoints(undisturbed, soccer, tmp_path):
    plan, records = undisturbed
    path = tmp_path / "ledger.jsonl"
    first = max(together(plan.runs()), key=len)[0]
    with Ledger(path) as ledger:
        ledger.append(records[first.key])
    progress = Runner(plan, path, Recorded(records), device="cpu", root=str(soccer)).run()
    assert (progress.done, progress.failed) == (6, {})
    assert list(tmp_path.iterdir()) == [path]


class SlowToEnd(Recorded):
    """Somebody deletes the ledger while the processes of this engine end."""

    path = None

    def __exit__(self, *what):
        super().__exit__(*what)
        self.path.unlink()


@pytest.mark.parametrize("moment", ["last record", "end of the engine"])
def test_a_ledger_that_is_deleted_after_the_last_record_is_no_success(moment, undisturbed, soccer, tmp_path):
    plan, records = undisturbed
    path = tmp_path / "ledger.jsonl"
    engine = (Recorded if moment == "last record" else SlowToEnd)(records)
    engine.path = path

    def disturb(progress):
        if progress.done == 6 and moment == "last record":
            path.unlink()

    runner = Runner(plan, path, engine, device="cpu", root=str(soccer), show=disturb)
    with pytest.raises(OSError, match=r"the ledger '.*' was deleted or replaced by another program .* call again"):
        runner.run()
    assert not list(tmp_path.iterdir())  # what was shown of the progress went too


def test_a_pause_in_the_middle_of_a_run_changes_nothing(undisturbed, soccer, tmp_path):
    """The deadline has passed when the run begins: it stops after each epoch, with a checkpoint."""
    plan, records = undisturbed
    run = plan.runs()[1]
    task = Task((run.spec,), "cpu", str(soccer), (tmp_path / "run.safetensors",), deadline=Deadline(0))
    outcomes = [execute_task(task) for _ in range(4)]
    assert outcomes[:3] == [[None]] * 3
    assert bench_data.results({run.key: outcomes[3][0]}) == bench_data.results({run.key: records[run.key]})


def test_killed_at_random_moments_nothing_is_lost(undisturbed, soccer, tmp_path):
    plan, records = undisturbed
    ledger, chance = tmp_path / "ledger.jsonl", random.Random(0)
    for _ in range(3):
        process = in_a_process(plan, ledger, soccer)
        try:
            process.communicate(timeout=chance.uniform(3, 7))
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
    assert in_a_process(plan, ledger, soccer).wait(timeout=120) == 0
    kept = read([ledger])
    assert bench_data.results(kept.records) == bench_data.results(records)


def test_only_one_runner_writes_a_ledger(undisturbed, soccer, tmp_path):
    plan, _ = undisturbed
    with Ledger(tmp_path / "ledger.jsonl"):
        result = invoke("run", plan.path, "--ledger", tmp_path / "ledger.jsonl", "--data", soccer, "--workers", 1)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert "ledger.jsonl" in result.stderr


def test_workers_of_a_killed_runner_end(soccer, tmp_path):
    long = tmp_path / "plan.toml"
    long.write_text(bench_data.PLAN.replace("epochs = 4", "epochs = 100000"))
    process = in_a_process(read_plan(long), tmp_path / "ledger.jsonl", soccer)
    deadline = time.monotonic() + 60
    while not (children := _children(process.pid)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert children
    process.kill()
    process.communicate()
    while any(_alive(pid) for pid in children) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(_alive(pid) for pid in children)


def _children(pid):
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        pytest.skip("needs /proc with children")


def _alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_data_that_cannot_be_had_leave_the_rest_alone(soccer, tmp_path):
    plan, ledger = tmp_path / "plan.toml", tmp_path / "ledger.jsonl"
    plan.write_text(
        bench_data.PLAN.replace('["soccer-player"]', '["yahoo-news", "soccer-player"]').replace(
            "trials = 2", "trials = 1"
        )
    )
    result = invoke("run", plan, "--ledger", ledger, "--data", soccer, "--workers", 1, "--device", "cpu")
    assert result.exit_code == 1
    assert "3 of 6 runs done" in result.stdout
    assert "unavailable: yahoo-news: " in result.stderr
    assert "Yahoo" in result.stderr


def test_dry_tells_runs_and_hours(undisturbed, soccer, tmp_path):
    plan, records = undisturbed
    with Ledger(tmp_path / "ledger.jsonl") as writer:
        writer.append(next(r for r in records.values() if r["spec"]["method"] == "PRODEN"))
    result = invoke("run", plan.path, "--ledger", tmp_path / "ledger.jsonl", "--dry", "--workers", 1)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "6 runs, 5 left"
    assert "cc on soccer-player: 2 runs of" in lines[1]
    assert "(3 timed steps, evaluation not included)" in lines[1]
    assert "(mean of 1 done)" in result.stdout
    assert "hours with 1 at a time" in lines[-1]


WARM = """
title = "Made"
datasets = ["lost"]
trials = 2
[settings]
network = "linear"
epochs = EPOCHS
warm_up = 10
[methods.idgp]
[methods.idgp-ml]
method = "idgp"
objective = "ml"
[methods.valen]
[methods.cc]
"""


@pytest.mark.parametrize(("epochs", "warned"), [(50, []), (10, ["IDGP", "VALEN"])])
def test_dry_warns_of_the_plan_and_never_of_its_own_timing(tmp_path, epochs, warned):
    """Timing takes two epochs, fewer than the warm-up of the plan: no business of whoever made the plan."""
    plan = tmp_path / "plan.toml"
    plan.write_text(WARM.replace("EPOCHS", str(epochs)))
    result = invoke("run", plan, "--dry", "--workers", 1, "--device", "cpu")
    assert result.exit_code == 0, result.output
    assert result.stderr.splitlines() == [
        f"warning: warm_up is 10 and epochs is {epochs}, so that {name} never gets beyond its warm-up; lower "
        "warm_up or raise epochs"
        for name in warned
    ]


def test_what_is_timed_comes_after_the_warm_up(tmp_path, monkeypatch):
    """With all of it in the warm-up, the time of the real objective would not be known."""
    timed = []
    train = estimate.train
    monkeypatch.setattr(estimate, "train", lambda trial: timed.append(trial.method) or train(trial))
    (tmp_path / "plan.toml").write_text(WARM.replace("EPOCHS", "50"))
    for run in read_plan(tmp_path / "plan.toml").runs()[:3]:
        estimate.time_run(run, "cpu")
    assert [(method.epochs, method.warm_up) for method in timed] == [(2, 1)] * 3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--workers", 0], "--workers is 0, but must be from 1 to"),
        (["--workers", 10**6], "--workers is 1000000, but must be from 1 to"),
        (["--budget", -1], "--budget is -1.0, but must be a number of seconds > 0"),
        (["--budget", "nan"], "--budget is nan, but must be a number of seconds > 0"),
        (["--gpus-per-run", 0.5], "--address, --cpus-per-run and --gpus-per-run are for --engine ray; add it or"),
        (["--address", "auto"], "--address, --cpus-per-run and --gpus-per-run are for --engine ray; add it or"),
        (["--device", "tpu"], "device is 'tpu'"),
    ],
)
def test_wrong_options_are_one_line(undisturbed, tmp_path, options, words):
    plan, _ = undisturbed
    result = invoke("run", plan.path, "--ledger", tmp_path / "ledger.jsonl", *options)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert words in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "ledger.jsonl").exists()
