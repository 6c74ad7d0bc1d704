"""Plans that name files of candidate sets: the sets decide the keys, and every run sees them."""

import json
import shutil

import numpy as np
import pytest
from typer.testing import CliRunner

import bench_data
from oneof.bench.candidate_files import read_sets
from oneof.bench.ledger import read
from oneof.bench.plan_file import read_plan
from oneof.bench.record import damage_of
from oneof.bench.running.problem import make_problem
from oneof.cli import app
from oneof.data import load_dataset
from oneof.data.generate import checksum

ROWS, CLASSES = bench_data.ROWS, bench_data.CLASSES


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return bench_data.write_soccer_player(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def made(root, tmp_path_factory):
    """Two files of oneof corrupt with different sets."""
    folder = tmp_path_factory.mktemp("sets")
    for seed in (0, 1):
        options = ["--process", "pair", "--rate", "0.5", "--seed", seed, "--data", root]
        result = invoke("corrupt", "soccer-player", *options, "--out", folder / f"{seed}.npz")
        assert result.exit_code == 0, result.output
    return folder


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def write_plan(folder, files, text=bench_data.PLAN):
    path = folder / "plan.toml"
    path.write_text(f"{text}\n[candidates]\nfiles = {{{files}}}\n")
    return path


@pytest.fixture
def work(made, tmp_path):
    for file in made.iterdir():
        shutil.copy(file, tmp_path)
    return tmp_path


def sets_in(path):
    with np.load(path) as file:
        return file["candidates"]


def test_keys_follow_the_sets_and_not_the_path(work):
    own = read_plan(write_plan(work, "")).runs()
    runs = read_plan(write_plan(work, 'soccer-player = "0.npz"')).runs()
    assert runs[0].spec["candidates"] == {"sha256": checksum(sets_in(work / "0.npz"))}
    assert {run.sets for run in runs} == {work / "0.npz"}
    keys = [run.key for run in runs]
    assert not set(keys) & {run.key for run in own}
    (work / "elsewhere").mkdir()
    shutil.move(work / "0.npz", work / "elsewhere" / "moved.npz")
    moved = read_plan(write_plan(work, 'soccer-player = "elsewhere/moved.npz"')).runs()
    assert [run.key for run in moved] == keys
    each = read_plan(write_plan(work, 'soccer-player = ["elsewhere/moved.npz", "1.npz"]')).runs()
    assert [run.key for run in each][:3] == keys[:3]
    assert not {run.key for run in each[3:]} & set(keys)


def test_data_sets_without_a_file_are_as_before(work):
    text = bench_data.PLAN.replace('["soccer-player"]', '["soccer-player", "lost"]')
    before = {run.key for run in read_plan(write_plan(work, "", text)).runs() if run.dataset == "lost"}
    after = read_plan(write_plan(work, 'soccer-player = "0.npz"', text)).runs()
    assert {run.key for run in after if run.dataset == "lost"} == before


def test_every_run_sees_the_sets_of_the_file(work, root):
    plan = read_plan(write_plan(work, 'soccer-player = ["0.npz", "1.npz"]'))
    for run in plan.runs()[::3]:
        problem = make_problem(run.spec, root, "cpu", run.sets)
        sets = sets_in(work / f"{run.trial}.npz")
        assert problem.facts["sha256"] == checksum(sets) == run.spec["candidates"]["sha256"]
        assert problem.facts["mean_size"] == pytest.approx(sets.sum(1).mean())
        own = make_problem({**run.spec, "candidates": None}, root)
        assert (problem.train.x == own.train.x).all()
        rows = np.concatenate([problem.train.candidates, problem.validation.candidates])
        assert rows.sum() < sets.sum() < len(sets) * 2  # the test rows keep theirs
        assert own.facts["sha256"] == checksum(load_dataset("soccer-player", root).candidates)


def test_a_plan_runs_and_is_reported_on_the_sets_of_a_file(work, root):
    plan = write_plan(work, 'soccer-player = "0.npz"', bench_data.PLAN.replace("trials = 2", "trials = 1"))
    ledger = work / "ledger.jsonl"
    result = invoke("run", plan, "--ledger", ledger, "--data", root, "--workers", 1, "--device", "cpu")
    assert result.exit_code == 0, result.output
    records = read([ledger], damage_of).records.values()
    assert {record["candidates"]["sha256"] for record in records} == {checksum(sets_in(work / "0.npz"))}
    assert invoke("report", "--plan", plan, "--out", work / "out", ledger).exit_code == 0
    assert "Those of files: soccer-player." in (work / "out" / "report.md").read_text()


def change(path, **arrays):
    with np.load(path) as file:
        kept = dict(file)
    np.savez(path, **{name: value for name, value in (kept | arrays).items() if value is not None})


def test_a_file_that_changes_under_way_is_refused(work, root):
    (run, *_) = read_plan(write_plan(work, 'soccer-player = "0.npz"')).runs()
    shutil.copy(work / "1.npz", work / "0.npz")
    with pytest.raises(ValueError, match=r"the candidate sets in .*0\.npz' have changed since the plan was read"):
        make_problem(run.spec, root, "cpu", run.sets)
    with pytest.raises(ValueError, match="are those of a file, but its path is not given"):
        make_problem(run.spec, root, "cpu")


def test_sets_of_other_rows_are_refused(work, root):
    manifest = json.loads(str(np.load(work / "0.npz")["manifest"])) | {"data_sha256": "0" * 64}
    change(work / "0.npz", manifest=np.array(json.dumps(manifest)))
    (run, *_) = read_plan(write_plan(work, 'soccer-player = "0.npz"')).runs()
    with pytest.raises(ValueError, match="were made for other rows of 'soccer-player', or in another order"):
        make_problem(run.spec, root, "cpu", run.sets)


def test_a_file_without_manifest_will_do(work):
    change(work / "0.npz", manifest=None, classes=None, x=None, y=None)
    assert read_sets(work / "0.npz", "soccer-player").data_sha256 is None
    change(work / "1.npz", manifest=np.array("[" * 100_000))
    assert read_sets(work / "1.npz", "soccer-player").data_sha256 is None


WRONG_FILES = {
    "missing": ('soccer-player = "none.npz"', "there is no file '.*none.npz' of candidate sets; check the path"),
    "no archive": (
        'soccer-player = "plan.toml"',
        r"plan.toml' cannot be read \(it is no zip archive\); name a file",
    ),
    "cut": ('soccer-player = "cut.npz"', "cut.npz' cannot be read"),
    "pickle": ('soccer-player = "pickle.npz"', "pickle.npz' cannot be read .*allow_pickle"),
    "no sets": (
        'soccer-player = "empty.npz"',
        "empty.npz' has no array 'candidates'; name a file that oneof corrupt",
    ),
    "rows": (
        'soccer-player = "short.npz"',
        r"candidates of '.*short.npz' have shape \(5, 171\), but soccer-player has 17472 rows and 171 classes",
    ),
    "values": ('soccer-player = "values.npz"', "must be a matrix of 0 and 1 without empty rows"),
    "empty row": ('soccer-player = "hole.npz"', "must be a matrix of 0 and 1 without empty rows"),
    "classes": (
        'soccer-player = "names.npz"',
        r"the classes of '.*names.npz' are \[1, 2, 3, .*, but those of socc",
    ),
    "other data": (
        'soccer-player = "other.npz"',
        "has candidate sets of 'yahoo-news', but soccer-player was expec",
    ),
    "unknown data set": ('lost = "0.npz"', "candidates.files names 'lost', but it must be one of soccer-player"),
    "number": ("soccer-player = 3", "candidates.files.soccer-player is 3, but must be a path, or a list with one"),
    "too few": ('soccer-player = ["0.npz"]', "candidates.files.soccer-player has 1 files, but there are 2 trials"),
}


@pytest.mark.parametrize(("files", "words"), WRONG_FILES.values(), ids=WRONG_FILES)
def test_files_that_cannot_be_used(work, files, words):
    sets = sets_in(work / "0.npz")
    whole = (work / "0.npz").read_bytes()
    (work / "cut.npz").write_bytes(whole[: len(whole) // 2])
    np.savez(work / "pickle.npz", candidates=np.array([{}], dtype=object))
    np.savez(work / "empty.npz", x=np.zeros(3))
    np.savez(work / "short.npz", candidates=sets[:5])
    np.savez(work / "values.npz", candidates=sets * 2)
    np.savez(work / "hole.npz", candidates=sets & (np.arange(ROWS) > 0)[:, None])
    np.savez(work / "names.npz", candidates=sets, classes=np.arange(CLASSES) + 1)
    np.savez(work / "other.npz", candidates=sets, manifest=np.array(json.dumps({"data": "yahoo-news"})))
    with pytest.raises((ValueError, FileNotFoundError), match=words):
        read_plan(write_plan(work, files))
    result = invoke("status", work / "plan.toml")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert len(result.stderr) < 700
