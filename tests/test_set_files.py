"""``oneof sets``: a plan's own sets in small files, and what the oracle needs; no annotator is trained again."""

import json
import shutil

import numpy as np
import pytest
from scipy.special import log_softmax
from typer.testing import CliRunner

import bench_data
from oneof.bench.candidate_files import CandidateSets, read_likelihoods, read_sets, write_scores
from oneof.bench.ledger import read
from oneof.bench.plan_file import read_plan
from oneof.bench.record import damage_of
from oneof.bench.running.problem import make_problem
from oneof.bench.running.runner import Runner
from oneof.cli import app
from oneof.data.corrupt import instance_dependent
from oneof.data.generate import scaled_likelihoods

ROWS = bench_data.DIGITS
PLAN = """
title = "Made"
datasets = ["mnist"]
trials = 2

[split]
validation = 0.1
fixed = true

[candidates]
process = "instance"
annotator = { network = "mlp", epochs = 3 }
FILES

[settings]
network = "mlp"
epochs = 2
batch_size = 64

[methods.cc]
[methods.oracle]
"""


@pytest.fixture(scope="module", autouse=True)
def root(tmp_path_factory):
    with bench_data.small_mnist(tmp_path_factory.mktemp("data")) as root:
        yield root


@pytest.fixture(scope="module")
def written(root, tmp_path_factory):
    """A plan that draws sets, and the answer of the command that wrote them."""
    folder = tmp_path_factory.mktemp("written")
    (folder / "plan.toml").write_text(PLAN.replace("FILES", ""))
    result = invoke("sets", folder / "plan.toml", "--data", root, "--device", "cpu")
    assert result.exit_code == 0, result.output
    return folder, result.stdout


@pytest.fixture
def work(written, tmp_path):
    """Another machine: the plan names the files, and there is no annotator in the cache."""
    folder, shown = written
    shutil.copytree(folder / "sets", tmp_path / "sets")
    (line,) = (line for line in shown.splitlines() if line.startswith("files = "))
    (tmp_path / "plan.toml").write_text(PLAN.replace("FILES", line))
    return tmp_path


@pytest.fixture
def no_annotator(monkeypatch, tmp_path):
    def train(*arguments, **settings):
        raise AssertionError("an annotator was trained")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "empty"))
    monkeypatch.setattr("oneof.data.annotator.Annotator.train", train)


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def problems(plan, root):
    runs = {(run.label, run.trial): run for run in read_plan(plan).runs()}
    return {place: make_problem(run.spec, root, "cpu", run.sets) for place, run in runs.items()}


def test_files_have_the_sets_that_the_plan_would_draw(written, work, root, no_annotator, monkeypatch):
    named = problems(work / "plan.toml", root)  # without an annotator
    monkeypatch.undo()
    drawn = problems(written[0] / "plan.toml", root)
    assert not np.array_equal(named["cc", 0].train.candidates, named["cc", 1].train.candidates)
    for place, problem in drawn.items():
        other = named[place]
        assert problem.facts == other.facts
        assert problem.facts.keys() >= {"annotator", "annotator_test_accuracy", "certain_distractor", "sha256"}
        for part in ("train", "validation"):
            assert np.array_equal(getattr(problem, part).candidates, getattr(other, part).candidates)
        assert (problem.likelihoods is None) is (other.likelihoods is None) is (place[0] == "cc")


def test_the_oracle_knows_the_annotator_from_the_files(written, work, root):
    drawn = problems(written[0] / "plan.toml", root)["oracle", 1]
    named = problems(work / "plan.toml", root)["oracle", 1]
    assert (drawn.likelihoods[~drawn.train.candidates] == 0).all()
    assert np.ptp(drawn.likelihoods[drawn.train.candidates]) > 0.5
    assert np.allclose(drawn.likelihoods, named.likelihoods, rtol=0.01, atol=1e-12)
    assert not np.array_equal(drawn.likelihoods, named.likelihoods)  # the scores are rounded


def test_files_are_small_and_one_annotator_is_kept_once(written):
    files = {path.name: path.stat().st_size for path in (written[0] / "sets" / "plan").iterdir()}
    (scores,) = (name for name in files if name.startswith("scores-"))
    assert files.keys() == {"mnist-0.npz", "mnist-1.npz", scores}
    assert files["mnist-0.npz"] < ROWS * 10 / 8 + 3000  # bits, classes and a manifest
    assert files[scores] < ROWS * 10 * 2 + 1000


@pytest.mark.parametrize("certainty", [1.0, 5.0, 20.0])
def test_rounded_scores_give_nearly_the_same_chances(certainty, tmp_path):
    """Of annotators that are unsure, sure, and certain beyond what the file can tell."""
    rng = np.random.default_rng(1)
    scores = log_softmax(certainty * rng.normal(size=(2000, 10)), axis=1).astype(np.float32)
    assert (scores.min() < -64) == (certainty == 20)
    y = np.where(rng.random(2000) < 0.9, scores.argmax(1), rng.integers(10, size=2000))
    arguments = {"rate": 0.4, "scaling": "mean", "temperature": 1.0}
    sets = instance_dependent(y, scores, **arguments, seed=0)
    sha256 = write_scores(tmp_path / "mnist-0.npz", scores)
    manifest = {"process": "instance", "parameters": arguments, "scores_sha256": sha256}
    found = read_likelihoods(tmp_path / "mnist-0.npz", CandidateSets(sets, manifest))
    exact = scaled_likelihoods(sets, "instance", {**arguments, "scores": scores})
    off = np.abs(found / found.sum(1, keepdims=True) - exact / exact.sum(1, keepdims=True)).max(1)
    assert (off > 1e-6).mean() > 0.1  # they are rounded
    assert (off.mean() < 2e-4, off.max() < 0.02) == (True, True)


def test_a_set_that_cannot_be_says_nothing():
    """Rounded scores may make a chance certain that was nearly so."""
    scores = np.array([[0.0, 5.0, -5.0], [0.0, 5.0, -5.0]])
    sets = np.array([[True, False, True], [True, True, False]])  # the first lacks a label of chance 1
    found = scaled_likelihoods(sets, "instance", {"rate": 1.0, "scores": scores})
    assert np.array_equal(found[0], sets[0])
    assert found[1].max() == 1


def test_keys_follow_the_sets_and_the_oracles_the_scores_too(work):
    specs = {run.label: run.spec["candidates"] for run in read_plan(work / "plan.toml").runs()}
    assert specs["cc"].keys() == {"sha256"}
    assert specs["oracle"] == specs["cc"] | {"scores_sha256": read_sets(files_of(work)[1], "mnist").scores_sha256}


def test_a_plan_is_continued_with_the_same_sets_and_the_same_oracle(work, root, no_annotator):
    plan, ledger = read_plan(work / "plan.toml"), work / "ledger.jsonl"
    progress = Runner(plan, ledger, bench_data.Here(), device="cpu", root=str(root)).run()
    assert (progress.done, progress.failed, progress.unavailable) == (4, {}, {})
    records = read([ledger], damage_of).records
    sums = {record["spec"]["seed"]: set() for record in records.values()}
    for record in records.values():
        sums[record["spec"]["seed"]].add(record["candidates"]["sha256"])
    assert [len(found) for found in sums.values()] == [1, 1]
    assert invoke("report", "--plan", plan.path, "--out", work / "out", ledger).exit_code == 0
    assert "annotator on test rows" in (work / "out" / "report.md").read_text()


def test_files_that_are_there_are_not_overwritten(written, root):
    folder = written[0] / "sets" / "plan"
    before = {path: path.read_bytes() for path in folder.iterdir()}
    result = invoke("sets", written[0] / "plan.toml", "--data", root)
    assert result.exit_code == 2
    assert "mnist-0.npz' is there already; other sets would make other runs: delete it first" in result.stderr
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def files_of(work):
    return sorted((work / "sets" / "plan").glob("mnist-*.npz"))


def change(path, **arrays):
    with np.load(path) as file:
        kept = dict(file)
    np.savez(path, **kept | arrays)


def change_manifest(work, **facts):
    for path in files_of(work):
        manifest = json.loads(str(np.load(path)["manifest"])) | facts
        change(path, manifest=np.array(json.dumps(manifest)))


WRONG = {
    "scores are gone": (
        lambda work, scores: scores.unlink(),
        "the oracle needs the annotator's scores in '.*scores-.*', which is missing; copy it from",
    ),
    "scores are cut": (
        lambda work, scores: scores.write_bytes(scores.read_bytes()[:500]),
        r"scores-.*npz' cannot be read",
    ),
    "other scores": (
        lambda work, scores: change(scores, scores=np.load(scores)["scores"] + 1),
        r"scores-.*npz' is damaged, or has other scores; copy it again",
    ),
    "scores of other rows": (
        lambda work, scores: change(scores, scores=np.load(scores)["scores"][:5]),
        r"scores-.*npz' is damaged, or has other scores; copy it again",
    ),
    "sets of oneof corrupt": (
        lambda work, scores: change_manifest(work, scores_sha256=None),
        "the oracle must know the annotator, but '.*mnist-0.npz' has no scores of it; write the sets with",
    ),
    "no manifest": (
        lambda work, scores: [change(path, manifest=np.array("?")) for path in files_of(work)],
        "does not say that a process drew them one by one",
    ),
    "another process": (
        lambda work, scores: change_manifest(work, process="uniform"),
        "does not say that a process drew them one by one",
    ),
    "parameters": (
        lambda work, scores: change_manifest(work, parameters={"rate": "much"}),
        "the manifest of '.*mnist-0.npz' cannot be used",
    ),
    "no parameter": (
        lambda work, scores: change_manifest(work, parameters={"speed": 3}),
        "the manifest of '.*mnist-0.npz' cannot be used",
    ),
}


@pytest.mark.parametrize(("damage", "words"), WRONG.values(), ids=WRONG)
def test_what_the_oracle_cannot_use_is_one_sentence(work, root, damage, words):
    (scores,) = (work / "sets" / "plan").glob("scores-*")
    damage(work, scores)
    runs = {run.label: run for run in reversed(read_plan(work / "plan.toml").runs())}
    assert make_problem(runs["cc"].spec, root, "cpu", runs["cc"].sets)  # it needs no scores
    with pytest.raises((ValueError, FileNotFoundError), match=words):
        make_problem(runs["oracle"].spec, root, "cpu", runs["oracle"].sets)


def test_a_manifest_of_nonsense_says_nothing(work, root):
    change_manifest(work, annotator_test_accuracy="high", annotator=3)
    run = read_plan(work / "plan.toml").runs()[0]
    assert make_problem(run.spec, root, "cpu", run.sets).facts.keys() == {
        "mean_size",
        "one_label",
        "full",
        "sha256",
    }


def test_a_plan_that_draws_nothing_is_refused(tmp_path):
    (tmp_path / "plan.toml").write_text('title = "Real"\ndatasets = ["lost"]\n[methods.cc]\n')
    result = invoke("sets", tmp_path / "plan.toml")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "draws no candidate sets; name a process under [candidates]" in result.stderr
