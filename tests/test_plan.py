"""Plans: what they stand for, and one sentence for everything that can be wrong with them."""

from pathlib import Path

import pytest

from oneof import METHODS
from oneof.bench.plan import data_checksum
from oneof.bench.plan_file import read_plan
from oneof.bench.published import published_plans

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
PLAN = """
title = "Small"
datasets = ["lost", "msrcv2"]
trials = 3

[settings]
network = "linear"
epochs = 4
a = 5

[grid]
lr = [0.01, 0.1]
weight_decay = [0, 0.001]

[methods.idgp]

[methods.ml]
method = "idgp"
objective = "ml"

[methods.supervised]
lr = 0.5

[[override]]
methods = ["ml"]
datasets = ["lost"]
weight_decay = 0.01
"""


@pytest.fixture
def write(tmp_path):
    def write(text):
        path = tmp_path / "plan.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_a_plan_stands_for_every_combination(write):
    plan = read_plan(write(PLAN))
    runs = plan.runs()
    # per trial: idgp 4 + 4 points, ml 2 on lost (weight_decay is set) + 4, supervised 2 + 2 (lr is set)
    assert len(runs) == 3 * (8 + 6 + 4)
    assert len({run.key for run in runs}) == len(runs)
    assert [run.trial for run in runs] == sorted(run.trial for run in runs)
    assert plan.points("ml", "lost") == [{"lr": 0.01}, {"lr": 0.1}]
    settings = {(run.label, run.dataset): run.spec["settings"] for run in runs}
    assert settings["ml", "lost"]["weight_decay"] == 0.01
    assert settings["ml", "lost"]["objective"] == "ml"
    assert settings["idgp", "lost"]["objective"] == "map"
    assert {s["lr"] for (label, _), s in settings.items() if label == "supervised"} == {0.5}
    assert all(s["epochs"] == 4 and s["threads"] == 1 for s in settings.values())
    assert settings["idgp", "msrcv2"]["a"] == 5  # a setting for all reaches those who have it
    assert "a" not in settings["supervised", "msrcv2"]
    assert {run.spec["labels"] for run in runs if run.label == "supervised"} == {"true"}
    assert {run.spec["labels"] for run in runs if run.label != "supervised"} == {"candidates"}


def test_methods_of_one_trial_share_split_and_sets(write):
    plan = read_plan(
        write(
            PLAN.replace(
                "[settings]", '[candidates]\nprocess = "uniform"\nparameters = { rate = 0.2 }\n\n[settings]'
            )
        )
    )
    for trial in range(3):
        specs = [run.spec for run in plan.runs() if run.trial == trial and run.dataset == "lost"]
        assert len({str((spec["split"], spec["candidates"], spec["seed"])) for spec in specs}) == 1
    splits = {run.spec["split"]["seed"] for run in plan.runs()}
    assert splits == {0, 1, 2}
    fixed = read_plan(write(PLAN.replace("[settings]", "[split]\nfixed = true\n\n[settings]")))
    assert {run.spec["split"]["seed"] for run in fixed.runs()} == {0}


@pytest.mark.parametrize(
    "change",
    [
        ("epochs = 4", "epochs = 5"),
        ("trials = 3", "trials = 3\n[split]\ntest = 0.2"),
        ("trials = 3", 'trials = 3\n[candidates]\nprocess = "uniform-sets"'),
        ("a = 5", "a = 6"),
    ],
    ids=["settings", "split", "candidates", "own field"],
)
def test_the_key_follows_everything_that_can_change_a_result(write, change):
    before = {run.key for run in read_plan(write(PLAN)).runs() if run.label == "idgp"}
    after = {run.key for run in read_plan(write(PLAN.replace(*change))).runs() if run.label == "idgp"}
    assert not before & after


def test_the_key_follows_the_method_version_and_not_its_label(write, monkeypatch):
    before = {run.key for run in read_plan(write(PLAN)).runs() if run.label == "idgp"}
    renamed = PLAN.replace("[methods.idgp]", '[methods.ours]\nmethod = "idgp"')
    assert before == {run.key for run in read_plan(write(renamed)).runs() if run.label == "ours"}
    monkeypatch.setattr(METHODS["idgp"], "version", 99)
    assert not before & {run.key for run in read_plan(write(PLAN)).runs()}


def test_checksums_tell_data_sets_apart():
    names = ["lost", "birdsong", "mnist", "fashion-mnist", "cifar-10", "cifar-100"]
    assert len({data_checksum(name) for name in names}) == len(names)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('title = "Small"', "", "has no 'title'"),
        ("trials = 3", "trails = 3", r"names 'trails', but did you mean 'trials'\?"),
        ("trials = 3", "trials = 0", "trials is 0, but must be a whole number >= 1"),
        ("trials = 3", "trials = true", "trials is True"),
        ("trials = 3", 'trials = 3\ndefaults = "base"', r"defaults names 'base', but did you mean 'baseline'\?"),
        ("trials = 3", "trials = 3\ndefaults = 1", "defaults names 1, but it must be one of baseline, current"),
        ('"msrcv2"', '"msrc"', r"datasets names 'msrc', but did you mean 'msrcv2'\?"),
        ('datasets = ["lost", "msrcv2"]', 'datasets = "lost"', "must be a list of names"),
        ("epochs = 4", "epoch = 4", r"names 'epoch', but did you mean 'epochs'\?"),
        ("epochs = 4", "epochs = -1", "epochs of IDGP is -1, but must be a whole number >= 1"),
        ('network = "linear"', 'checkpoint = "x"', "names 'checkpoint'"),
        ("lr = [0.01, 0.1]", "lr = 0.01", "grid.lr is 0.01, but must be a list"),
        ("lr = [0.01, 0.1]", 'lr = [0.01, "a"]', "lr of IDGP is 'a'"),
        ('method = "idgp"', 'method = "idpg"', r"methods.ml.method names 'idpg', but did you mean 'idgp'\?"),
        ('objective = "ml"', 'objectiv = "ml"', r"methods.ml names 'objectiv', but did you mean 'objective'\?"),
        ('objective = "ml"', 'objective = "lm"', "objective of IDGP is 'lm'"),
        ('methods = ["ml"]', 'methods = ["mm"]', "override.methods names 'mm'"),
        ("[settings]", "[split]\ntest = 0.7\n[settings]", "split.test is 0.7"),
        ("[settings]", "[split]\nfixed = 1\n[settings]", "split.fixed is 1"),
        ("[settings]", '[candidates]\nprocess = "uniforn"\n[settings]', r"did you mean 'uniform'\?"),
        ("[settings]", "[candidates]\nparameters = {}\n[settings]", "candidates has no process"),
        ("[settings]", '[candidates]\nprocess = "pair"\nparameters = { rat = 1 }\n[settings]', "names 'rat'"),
        (
            "[settings]",
            '[candidates]\nprocess = "instance"\nannotator = { epoch = 1 }\n[settings]',
            "names 'epoch'",
        ),
        (
            "[settings]",
            '[candidates]\nprocess = "instance"\nannotator = { epochs = 0 }\n[settings]',
            "epochs of Annotator is 0",
        ),
        ("trials = 3", 'trials = 3\nheatmap = ["lr"]', "heatmap is"),
        ("trials = 3", "trials = 3\npaper = 2", "paper is 2, but must be a text"),
        ("[methods.ml]", "[methods", "is not valid TOML"),
        ("[methods.idgp]\n", "[methods]\nidgp = 3\n", "methods.idgp is 3, but must be a table"),
    ],
)
def test_a_wrong_plan_is_named_in_one_sentence(write, old, new, words):
    assert old in PLAN
    with pytest.raises(ValueError, match=words) as caught:
        read_plan(write(PLAN.replace(old, new)))
    assert str(caught.value).startswith("the plan ")
    assert "\n" not in str(caught.value)


def test_a_missing_plan_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no plan"):
        read_plan(tmp_path / "none.toml")


def test_plans_that_come_with_the_library_are_known_by_name(tmp_path, monkeypatch):
    """What they read is beside their file, what they make is in the current folder; a file goes before a name."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "table2").mkdir()  # such as a report
    plan = read_plan("table2")
    assert plan.path == BENCHMARKS / "table2.toml"
    assert plan.ledgers()[0] == Path("results/table2.jsonl")
    assert all(run.sets.is_file() for run in read_plan("table1-cifar10").runs())
    (tmp_path / "table3").write_text(PLAN, encoding="utf-8")
    assert read_plan("table3").title == "Small"
    assert read_plan("table3").ledgers()[0] == Path("results/table3.jsonl")
    assert not {"paper", "settings"} & published_plans().keys()


@pytest.mark.parametrize("name", published_plans())
def test_plans_of_the_project(name):
    plan = read_plan(BENCHMARKS / f"{name}.toml")
    assert plan.runs()
    assert plan.defaults == "baseline", (
        'a published plan must not follow later defaults: add defaults = "baseline"'
    )


@pytest.mark.parametrize("name", ["table1", "table2", "table3", "table4", "table5", "figure1", "figure2"])
def test_every_experiment_of_the_paper_has_a_plan_and_a_quick_one(name):
    plan, quick = (read_plan(BENCHMARKS / f"{name}{ending}.toml") for ending in ("", "-quick"))
    assert len(quick.runs()) < len(plan.runs()) / 10
