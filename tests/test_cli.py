"""The command line: real commands on real files, and one line for everything that can be wrong."""

import os
import shutil
import signal
import subprocess
import sys
from dataclasses import fields
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer
from sklearn.datasets import load_iris
from typer.testing import CliRunner

import oneof
from oneof.cli import app

RESULTS = ["label", "probability", "margin"]
REVIEW = ["prediction", "outside", "wrong", "reason", "rank", "decision"]


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def succeed(*arguments):
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result


def fail(*arguments):
    """Run a command that must fail, and return its one line."""
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1, result.stderr
    return result.stderr


def in_a_process(*arguments, **options):
    command = [sys.executable, "-m", "oneof", *map(str, arguments)]
    environment = {name: value for name, value in os.environ.items() if name != "FORCE_COLOR"}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, **options)


@pytest.fixture(scope="session")
def iris(tmp_path_factory):
    """Iris as CSV, TSV, Parquet with lists, and npz with a matrix: the same candidate sets in each."""
    folder = tmp_path_factory.mktemp("iris")
    x, y = load_iris(return_X_y=True)
    names = load_iris().target_names
    candidates = np.eye(3, dtype=bool)[y]
    candidates[::3, 1] = True
    sets = [names[row].tolist() for row in candidates]
    frame = pd.DataFrame(x, columns=["a", "b", "c", "d"])
    frame["tall"] = frame["a"] > 6
    frame.insert(0, "plant", [f"{i:03}" for i in range(len(x))])
    frame["truth"], frame["number"] = names[y], y
    frame.assign(candidates=["|".join(each) for each in sets]).to_csv(folder / "t.csv", index=False)
    frame.assign(candidates=["|".join(each) for each in sets]).to_csv(folder / "t.tsv", index=False, sep="\t")
    frame.assign(candidates=sets).to_parquet(folder / "t.parquet")
    np.savez(
        folder / "t.npz", x=x, candidates=candidates, classes=names, truth=names[y], plant=frame["plant"].tolist()
    )
    return folder


COLUMNS = ["--id", "plant", "--drop", "truth", "--drop", "number"]
TINY = ["--method", "idgp", "--set", "epochs=3", "--set", "warm_up=1", "--set", "network=linear", "--quiet"]


@pytest.fixture(scope="session")
def model(iris):
    path = iris / "model"
    succeed("fit", iris / "t.csv", "--separator", "|", *COLUMNS, *TINY, "--out", path)
    return path


@pytest.fixture
def work(iris, model, tmp_path):
    """A folder with a table and a model of its own."""
    for name in ("t.csv", "model"):
        shutil.copy(iris / name, tmp_path / name)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "options", "out"),
    [
        ("t.csv", [*COLUMNS, "--separator", "|"], "o.csv"),
        ("t.tsv", [*COLUMNS, "--separator", "|"], "o.tsv"),
        ("t.parquet", COLUMNS, "o.parquet"),
        ("t.npz", [], "o.csv.gz"),
    ],
)
def test_round_trip(iris, tmp_path, name, options, out):
    table, model, out = iris / name, tmp_path / "model", tmp_path / out
    separator = options[-2:] if "--separator" in options else []
    result = succeed("fit", table, "--candidates", "candidates", *options, *TINY, "--out", model)
    features = 4 if name == "t.npz" else 5
    assert f"150 rows, {features} features, 3 classes, 1.22 candidates in a set on average" in result.stdout
    assert str(model) in result.stdout
    assert result.stderr == ""
    fitted = oneof.load_model(model)
    assert fitted.epochs == 3
    assert fitted.classes_.tolist() == ["setosa", "versicolor", "virginica"]

    def read():
        if out.suffix == ".parquet":
            return pd.read_parquet(out)
        return pd.read_csv(out, sep="\t" if out.suffix == ".tsv" else ",", dtype={"plant": str})

    succeed("predict", model, table, "--id", "plant", "--out", out)
    predicted = read()
    assert list(predicted) == ["plant", "prediction", "probability"]
    assert predicted["plant"].tolist() == [f"{i:03}" for i in range(150)]
    assert set(predicted["prediction"]) <= set(fitted.classes_)
    assert predicted["probability"].between(1 / 3, 1).all()
    truth = load_iris().target_names[load_iris().target]
    accuracy = f"{(predicted['prediction'] == truth).mean():.4f}"

    result = succeed("score", model, table, "--labels", "truth")
    assert f"approximated accuracy  {accuracy}  (every row has one label: this is the accuracy)" in result.stdout
    assert f"covering rate          {accuracy}" in result.stdout
    result = succeed("score", model, table, "--labels", "candidates", *separator)
    assert "(on plain labels it is the accuracy)" in result.stdout

    succeed("disambiguate", model, table, *separator, "--out", out)
    plain = read()
    assert list(plain) == ["row", "candidates", *RESULTS, *REVIEW]
    assert plain["row"].tolist() == list(range(150))
    for given, label in zip(plain["candidates"], plain["label"], strict=True):
        assert label in (given.split("|") if isinstance(given, str) else given)
    succeed("disambiguate", model, table, *separator, "--out", out, "--id", "plant", "--sort", "margin")
    by_margin = read()
    assert list(by_margin) == ["plant", "candidates", *RESULTS, *REVIEW]
    assert by_margin["margin"].is_monotonic_increasing
    again = by_margin.sort_values("plant", ignore_index=True)
    pd.testing.assert_frame_equal(again[RESULTS], plain[RESULTS])
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["model", out.name])


@pytest.mark.parametrize("method", oneof.METHODS)
def test_every_method_fits_a_csv(iris, tmp_path, method):
    views = ["--set", "views=plain+jitter+jitter"] if oneof.METHODS[method].needs_views else []
    options = [
        "--separator",
        "|",
        *COLUMNS,
        "--method",
        method,
        "--set",
        "epochs=12",
        *views,
        "--out",
        tmp_path / "m",
    ]
    succeed("fit", iris / "t.csv", *options)
    line = succeed("score", tmp_path / "m", iris / "t.csv", "--labels", "truth").stdout.splitlines()[0]
    assert float(line.split()[2]) > 0.5
    if views:
        plain = ["--separator", "|", *COLUMNS, "--method", method, "--out", tmp_path / "n"]
        assert "or use a method that needs one view, such as IDGP" in fail("fit", iris / "t.csv", *plain)


def test_images_in_an_npz(tmp_path):
    x = np.random.default_rng(0).integers(0, 255, (20, 8, 8), dtype=np.uint8)
    np.savez(tmp_path / "t.npz", x=x, candidates=np.eye(3)[np.arange(20) % 3])
    succeed("fit", tmp_path / "t.npz", "--set", "epochs=1", "--method", "cc", "--out", tmp_path / "m", "--quiet")
    succeed("predict", tmp_path / "m", tmp_path / "t.npz", "--out", tmp_path / "p.csv")
    predicted = pd.read_csv(tmp_path / "p.csv")
    assert list(predicted) == ["prediction", "probability"]
    assert set(predicted["prediction"]) <= {0, 1, 2}


def test_numbers_are_class_names_of_either_kind(iris, tmp_path):
    frame = pd.read_csv(iris / "t.csv")[["a", "b", "c", "d", "number"]]
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    for kind, classes in {"csv": ["0", "1", "2"], "parquet": [0, 1, 2]}.items():
        model = tmp_path / f"{kind}.model"
        succeed("fit", tmp_path / f"t.{kind}", "--candidates", "number", *TINY, "--out", model)
        assert oneof.load_model(model).classes_.tolist() == classes
        scores = {
            succeed("score", model, tmp_path / name, "--labels", "number").stdout
            for name in ("t.csv", "t.parquet")
        }
        assert len(scores) == 1


def test_extra_columns_are_ignored_and_order_does_not_matter(work):
    frame = pd.read_csv(work / "t.csv")
    shuffled = frame[["d", "c", "tall", "b", "a"]].assign(more=1.0, note="text")
    shuffled.to_csv(work / "u.csv", index=False)
    for name in "t", "u":
        result = succeed("predict", work / "model", work / f"{name}.csv", "--out", work / f"{name}.out.csv")
        assert result.stderr == ""
    assert (work / "t.out.csv").read_bytes() == (work / "u.out.csv").read_bytes()


def test_same_seed_same_model(work):
    options = ["--separator", "|", *COLUMNS, *TINY]
    for name, seed in (("1", 0), ("2", 0), ("3", 7)):
        succeed("fit", work / "t.csv", *options, "--seed", seed, "--out", work / name)
    assert (work / "1").read_bytes() == (work / "2").read_bytes() == (work / "model").read_bytes()
    assert (work / "3").read_bytes() != (work / "1").read_bytes()


def test_settings_are_literals_or_plain_strings(work):
    texts = [
        "lr=1e-2",
        "patience=None",
        "views=plain+jitter+jitter",
        "objective=ml",
        "network='mlp'",
        "epochs= 2",
        "batch_size=50",
    ]
    settings = [part for text in texts for part in ("--set", text)]
    settings += ["--method", "idgp", "--quiet"]
    succeed("fit", work / "t.csv", "--separator", "|", *COLUMNS, *settings, "--out", work / "m")
    model = oneof.load_model(work / "m")
    assert (model.lr, model.patience, model.views, model.objective) == (0.01, None, "plain+jitter+jitter", "ml")
    assert (model.network, model.epochs, model.batch_size) == ("mlp", 2, 50)


def test_progress_goes_to_standard_error_unless_quiet(work):
    short = ["--method", "idgp", "--set", "epochs=2", "--set", "warm_up=1"]
    options = ["fit", work / "t.csv", "--separator", "|", *COLUMNS, "--out", work / "m", *short]
    loud, quiet = succeed(*options), succeed(*options, "--quiet")
    assert "IDGP  epoch 2/2  loss" in loud.stderr
    assert "epoch" not in loud.stdout
    assert quiet.stderr == ""
    assert quiet.stdout == loud.stdout


def test_hint_when_cells_look_like_sets(work):
    result = succeed("fit", work / "t.csv", *COLUMNS, *TINY, "--out", work / "m")
    assert result.stderr == (
        "hint: cells of 'candidates' such as 'setosa|versicolor' count as one label each; "
        "pass --separator '|' to split them\n"
    )
    (work / "u.csv").write_text("a,y\n" + "1,x;y\n2,z\n3,x;y\n" * 5)
    result = succeed("fit", work / "u.csv", "--candidates", "y", *TINY, "--out", work / "m")
    assert "pass --separator ';' to split them" in result.stderr
    # Now 'x;y' is a class of the model, so nothing looks odd.
    assert succeed("score", work / "m", work / "u.csv", "--labels", "y").stderr == ""


def test_warnings_are_one_line(work, iris):
    np.savez(work / "t.npz", x=np.zeros((2, 5)))
    result = succeed("predict", work / "model", work / "t.npz", "--out", work / "o.csv")
    assert result.stderr.startswith("warning: X does not have valid feature names")
    assert result.stderr.count("\n") == 1


def test_methods_version_and_help():
    result = succeed("methods")
    for name, method in oneof.METHODS.items():
        assert f"{name} " in result.stdout
        assert method.__doc__.splitlines()[0] in result.stdout
    lines = succeed("methods", "IDGP").stdout.splitlines()
    assert max(map(len, lines)) <= 200
    shown = {line.split()[0]: " ".join(line.split()[1:]) for line in lines}  # first lines of what is wrapped too
    assert shown["lr"].startswith("None a number > 0 or None Learning rate.")
    assert shown["alternate"].startswith("'simultaneous' one of ['simultaneous', 'sequential'] One backward pass")
    assert shown["network"].startswith("'auto' one of ['auto', ")
    assert shown["random_state"].startswith("None see --seed of oneof fit Same seed,")
    assert {field.name for field in fields(oneof.IDGP)} <= shown.keys()
    assert succeed("--version").stdout == f"oneof {oneof.__version__}\n"
    assert "disambiguate" in succeed().stdout
    for command in ("fit", "predict", "score", "disambiguate", "methods", "demo"):
        assert "Usage" in succeed(command, "--help").stdout
    assert "--json" in succeed("demo", "--help").stdout


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["fit", "--help"], ["run", "--help"]])
def test_help_waits_for_no_heavy_package(arguments):
    """A help page that takes seconds is not read."""
    program = (
        "import sys, atexit\n"
        "atexit.register(lambda: print('loaded', *sorted({'torch', 'pandas', 'sklearn'} & sys.modules.keys())))\n"
        f"sys.argv = ['oneof', *{arguments!r}]\n"
        "from oneof.cli import main\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.startswith(("oneof ", "Usage: "))
    assert done.stdout.splitlines()[-1] == "loaded"


FIT = ["fit", "t.csv", "--separator", "|", *COLUMNS, *TINY, "--out", "out"]
PREDICT = ["predict", "model", "t.csv", "--out", "out.csv"]
SCORE = ["score", "model", "t.csv", "--labels", "truth"]
DISAMBIGUATE = ["disambiguate", "model", "t.csv", "--separator", "|", "--out", "out.csv"]


def swap(command, **places):
    """Replace arguments by what stands for them: ``t_csv="no.csv"``."""
    return [places.get(argument.replace(".", "_"), argument) for argument in command]


WRONG = {
    "missing table": (swap(FIT, t_csv="no.csv"), "there is no file 'no.csv'; check the path of the table"),
    "missing model": (swap(PREDICT, model="no"), "there is no file 'no'"),
    "damaged model": (swap(PREDICT, model="out"), "'out' is damaged or is no safetensors file"),
    "table as model": (
        swap(PREDICT, model="t.csv", t_csv="model"),
        "'t.csv' is a table, but a model comes first: write MODEL TABLE in this order",
    ),
    "cut model": (swap(PREDICT, model="cut"), "'cut' is damaged or is no safetensors file"),
    "model as table": (swap(PREDICT, t_csv="model"), "'model' is a model, but a table is needed here"),
    "model to inspect": (["inspect", "model"], "'model' is a model, but a table is needed here"),
    "no table": (swap(PREDICT, t_csv="out"), "'out' must end in .csv"),
    "model named as a table": (
        swap(FIT, out="new.csv"),
        "--out is 'new.csv', but a model is no table; name it 'new.safetensors'",
    ),
    "one row": (swap(FIT, t_csv="one.csv"), "'one.csv' has 1 row, but a model is fitted on at least 2; add rows"),
    "other number of features": (
        swap(PREDICT, t_csv="wide.npz"),
        "'wide.npz' has 7 features, but the model was fitted on 5; give those that it was fitted on",
    ),
    "size without images": ([*FIT, "--size", "8"], "--size is 8, but only images are scaled; pass --images"),
    "images in an npz": (
        ["fit", "wide.npz", "--images", "candidates", "--out", "out"],
        "--images is 'candidates', but 'wide.npz', as every .npz file, holds its images in x; leave --images out",
    ),
    "images for a model of a table": (
        [*SCORE, "--images", "plant"],
        "--images is 'plant', but the model was fitted on a table of 5 features, not on images; leave --images",
    ),
    "image files as features": (
        swap(FIT, t_csv="files.csv"),
        "the column 'photo' names image files (such as 'a/1.PNG'); pass --images photo to learn from them, or",
    ),
    "several true labels": (
        ["inspect", "wide.npz", "--truth", "candidates"],
        "the column 'candidates' has several labels in rows 0, 1 (2 in all), but --truth is the column of true",
    ),
    "truth with a separator in it": (
        ["inspect", "t.csv", "--separator", "|", "--truth", "candidates"],
        "but the classes are 'setosa', 'versicolor', 'virginica'; mend the cells or name another column",
    ),
    "unreadable table": (swap(FIT, t_csv="bad.csv"), "'bad.csv' cannot be read ("),
    "binary table": (swap(SCORE, t_csv="bad.parquet"), "'bad.parquet' cannot be read ("),
    "empty file": (swap(FIT, t_csv="void.csv"), "'void.csv' cannot be read (No columns to parse"),
    "empty table": (swap(FIT, t_csv="empty.csv"), "'empty.csv' has no rows"),
    "no folder": (swap(FIT, out="no/out"), "the folder 'no' does not exist; create it first"),
    "no folder to predict": (swap(PREDICT, out_csv="no/o.csv"), "the folder 'no' does not exist"),
    "folder as target": (swap(FIT, out="."), "'.' is a folder"),
    "unknown format": (swap(PREDICT, out_csv="o.xls"), "'o.xls' must end in .csv, .csv.gz, .tsv"),
    "target is the table": (swap(FIT, out="./t.csv"), "'t.csv' is an input and would be overwritten"),
    "target is the input": (swap(DISAMBIGUATE, out_csv="t.csv"), "'t.csv' is an input"),
    "missing candidates": (
        [*FIT, "--candidates", "candidate"],
        "'t.csv' has no column 'candidate'; did you mean 'candidates'?",
    ),
    "missing labels": (swap(SCORE, truth="zzz"), "has no column 'zzz'; there are 'plant', 'a', 'b'"),
    "missing id": ([*PREDICT, "--id", "plants"], "has no column 'plants'; did you mean 'plant'?"),
    "missing drop": ([*FIT, "--drop", "numbr"], "has no column 'numbr'; did you mean 'number'?"),
    "id hides a result": ([*DISAMBIGUATE, "--id", "candidates"], "'candidates' has the name of a result"),
    "missing features": (swap(PREDICT, t_csv="few.csv"), "lacks the columns 'b', 'c' that the model"),
    "text as feature": (
        swap(FIT, truth="number"),
        "the column 'truth' holds labels (such as 'setosa'), which are candidates of their rows; drop it (on the "
        "command line --drop truth), or say that it is a category to learn from it (kinds={'truth': 'category'}, "
        "--kind truth=category)",
    ),
    "infinity": (swap(FIT, t_csv="infinite.csv"), "NaN or infinity in rows 3, 7 (2 in all)"),
    "gaps to predict": (swap(PREDICT, t_csv="gaps.csv"), "NaN or infinity in rows 3, 7 (2 in all)"),
    "empty set": (swap(FIT, t_csv="unlabelled.csv"), "the candidate set is empty in row 5"),
    "strangers": (
        swap(SCORE, truth="plant"),
        "the column 'plant' has labels such as '000', '001', '002', '003', '004', ... (150 in all) in rows 0, 1, "
        "2, 3, 4, 5, 6, 7, 8, 9, ... (150 in all), but the classes are 'setosa', 'versicolor', 'virginica'; mend "
        "the cells or name another column",
    ),
    "forgotten separator": (
        [*DISAMBIGUATE[:3], "--out", "out.csv"],
        "has labels such as 'setosa|versicolor', 'versicolor|virginica' in rows 0, 3, 6, 9, 12, 15, 18, 21, 24, "
        "27, ... (33 in all), but the classes are 'setosa', 'versicolor', 'virginica'; pass --separator '|' to",
    ),
    "setting twice": (
        [*FIT, "--set", "lr=1", "--set", " lr = 2"],
        "--set lr is given 2 times, as '1' and '2'; give it once",
    ),
    "setting without name": ([*FIT, "--set", "=3"], "--set '=3' has no name; write it as NAME=VALUE"),
    "method twice": (
        [*FIT, "--method=cc"],
        "--method is given 2 times, as 'idgp' and 'cc'; give it once (see root fit --help)",
    ),
    "out three times": (
        [*PREDICT, "--out", "b.csv", "--out", "c.csv"],
        "--out is given 3 times, as 'out.csv', 'b.csv' and 'c.csv'; give it once",
    ),
    "no separator": (
        ["" if each == "|" else each for each in FIT],
        "--separator is '', but must have a character",
    ),
    "unknown method": (
        ["idpg" if each == "idgp" else each for each in FIT],
        f"'idpg' is no method; choose one of {', '.join(oneof.METHODS)}, em",
    ),
    "methods of unknown": (["methods", "zzz"], f"'zzz' is no method; choose one of {', '.join(oneof.METHODS)}"),
    "close setting": ([*FIT, "--set", "warmup=3"], "IDGP has no setting 'warmup'; did you mean 'warm_up'"),
    "unknown setting": ([*FIT, "--set", "zzz=3"], "IDGP has no setting 'zzz'; there are 'network', 'epochs'"),
    "setting without value": ([*FIT, "--set", "lr"], "--set 'lr' has no value; write it as NAME=VALUE"),
    "setting of an option": ([*FIT, "--set", "device=cpu"], "has an option of its own; use --device"),
    "wrong setting": ([*FIT, "--set", "lr=fast"], "lr of IDGP is 'fast', but must be a number > 0"),
    "odd setting": ([*FIT, "--set", "lr={[]: 1}"], "lr of IDGP is '{[]: 1}', but must be"),
    "network by name only": (
        ["network=5" if each == "network=linear" else each for each in FIT],
        "network is 5, but must be one of ['auto', 'linear'",
    ),
    "wrong device": ([*FIT, "--device", "abacus"], "device is 'abacus', but must be 'auto', 'cpu'"),
    "wrong seed": ([*FIT, "--seed", "-1"], "Invalid value for '--seed'"),
    "seed in words": ([*FIT, "--seed", "many"], "Invalid value for '--seed'"),
    "wrong order": ([*DISAMBIGUATE, "--sort", "size"], "'size' is not one of 'margin'"),
    "no target": (FIT[:-2], "Missing option '--out'. (see root fit --help)"),
    "no command": (["fot"], "No such command 'fot'"),
    "no such option": (["--colour"], "No such option"),
}


def make_wrong_files(folder: Path) -> None:
    frame = pd.read_csv(folder / "t.csv", dtype={"plant": str})
    (folder / "bad.csv").write_text("a,b\n1,2\n1,2,3\n")
    (folder / "bad.parquet").write_bytes(b"PAR1\x1b[31mnonsense\r\n")
    (folder / "void.csv").write_text("")
    frame.iloc[:1].to_csv(folder / "one.csv", index=False)
    frame.assign(photo=[f"a/{i}.PNG" for i in range(1, 151)]).to_csv(folder / "files.csv", index=False)
    np.savez(folder / "wide.npz", x=np.zeros((3, 7)), candidates=[[1, 1, 0], [0, 1, 1], [0, 1, 0]])
    (folder / "cut").write_bytes((folder / "model").read_bytes()[:500])
    frame.iloc[:0].to_csv(folder / "empty.csv", index=False)
    frame.drop(columns=["b", "c"]).to_csv(folder / "few.csv", index=False)
    frame.assign(b=frame["b"].where(~frame.index.isin([3, 7]))).to_csv(folder / "gaps.csv", index=False)
    infinite = frame.assign(b=frame["b"].where(~frame.index.isin([3, 7]), np.inf))
    infinite.to_csv(folder / "infinite.csv", index=False)
    unlabelled = frame.assign(candidates=frame["candidates"].where(frame.index != 5, " | "))
    unlabelled.to_csv(folder / "unlabelled.csv", index=False)


COMMANDS = typer.main.get_command(app).commands
ONCE = [
    (name, option)
    for name, command in COMMANDS.items()
    for option in command.params
    if option.param_type_name == "option" and not option.is_flag and not option.multiple
]


@pytest.mark.parametrize(("name", "option"), ONCE, ids=[f"{name} {option.name}" for name, option in ONCE])
def test_every_option_of_one_value_is_given_once(name, option):
    """Whatever the command: a value that the parser would drop is never dropped in silence."""
    flag = option.opts[0]
    line = fail(name, flag, "first", f"{flag}=second")
    assert (
        line == f"error: {flag} is given 2 times, as 'first' and 'second'; give it once (see root {name} --help)\n"
    )


def test_lists_and_flags_may_be_repeated(work):
    succeed(
        "fit", work / "t.csv", "--separator", "|", *COLUMNS, "--id", "plant", *TINY, "--quiet", "--out", work / "m"
    )


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("command", "message"), WRONG.values(), ids=WRONG.keys())
def test_wrong_input_is_one_line_and_touches_no_file(work, monkeypatch, command, message):
    make_wrong_files(work)
    (work / "out").write_text("precious")
    (work / "out.csv").write_text("precious")
    monkeypatch.chdir(work)
    before = contents(work)
    assert message in fail(*command)
    assert contents(work) == before


def test_a_model_that_cannot_be_saved_is_one_line(work, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left\non device")

    monkeypatch.setattr("safetensors.torch.save", full)
    monkeypatch.chdir(work)
    (work / "out").write_text("precious")
    before = contents(work)
    assert fail(*FIT) == "error: [Errno 28] No space left on device\n"
    assert contents(work) == before


def test_targets_are_checked_before_the_table_is_read(work, monkeypatch):
    monkeypatch.setattr("oneof.data.tables.read_table", lambda *_: pytest.fail("the table was read"))
    monkeypatch.chdir(work)
    for command in ([*FIT, "--set", "lr=0"], swap(FIT, out="no/out"), swap(PREDICT, out_csv="no/o.csv")):
        fail(*command)


def test_a_pipe_gets_plain_text(work):
    result = in_a_process(*FIT[:-3], "--out", "new", cwd=work)
    assert result.returncode == 0, result.stderr
    assert "epoch 3/3" in result.stderr
    assert "model written to new" in result.stdout
    for character in "\x1b\r\x08":
        assert character not in result.stdout + result.stderr


def test_an_error_in_a_process_is_one_line(work):
    make_wrong_files(work)
    result = in_a_process(*swap(PREDICT, t_csv="bad.parquet"), cwd=work)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("error: 'bad.parquet' cannot be read")
    assert result.stderr.count("\n") == 1
    assert "\x1b" not in result.stderr
    assert not list(work.glob("out.csv*"))


@pytest.mark.skipif(os.name == "nt", reason="signals differ")
def test_ctrl_c_is_no_traceback(work):
    options = ["epochs=2000" if each == "epochs=3" else each for each in FIT[:-3]]
    command = [sys.executable, "-m", "oneof", *options, "--out", "new"]
    with subprocess.Popen(
        command,
        cwd=work,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        # Whoever runs the tests in the background ignores Ctrl-C, and children inherit that.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    ) as process:
        try:
            assert "epoch 200/2000" in process.stderr.readline()
            process.send_signal(signal.SIGINT)
            stdout, stderr = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130
    assert stdout == ""
    assert "Traceback" not in stderr
    assert not list(work.glob("new*"))


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Thirty small gray files in a folder, bright or dark, and a CSV that names them with candidate sets."""
    from PIL import Image

    folder = tmp_path_factory.mktemp("pictures")
    (folder / "img").mkdir()
    rng = np.random.default_rng(0)
    rows = []
    for i in range(60):
        bright = i % 2
        Image.fromarray((rng.integers(0, 60, size=(12, 10)) + 150 * bright).astype(np.uint8)).save(
            folder / "img" / f"{i}.png"
        )
        label = "day" if bright else "night"
        rows.append({"file": f"img/{i}.png", "candidates": label if i % 3 else "day|night", "truth": label})
    pd.DataFrame(rows).to_csv(folder / "labels.csv", index=False)
    return folder


def test_images_of_ones_own_from_fit_to_disambiguate(pictures, tmp_path):
    table, model = pictures / "labels.csv", tmp_path / "model"
    options = ["--images", "file", "--separator", "|", "--drop", "truth", "--method", "cc", "--quiet"]
    settings = ["--set", "epochs=15", "--set", "batch_size=20", "--set", "lr=0.02"]
    said = succeed("fit", table, *options, *settings, "--size", 8, "--out", model).stdout
    assert "60 rows, 64 features, 2 classes" in said
    assert oneof.load_model(model).input_shape_ == (1, 8, 8)
    said = succeed("score", model, table, "--labels", "truth", "--images", "file").stdout
    assert float(said.split()[2]) > 0.9
    for command in (["score", "--labels", "truth"], ["predict", "--out", tmp_path / "no.csv"]):
        assert fail(command[0], model, table, *command[1:]) == (
            f"error: the model was fitted on images, but the rows of {str(table)!r} are no images; pass "
            "--images COLUMN, the column of image files\n"
        )
    succeed("predict", model, table, "--images", "file", "--id", "file", "--out", tmp_path / "p.csv")
    assert pd.read_csv(tmp_path / "p.csv").columns.tolist() == ["file", "prediction", "probability"]
    chosen = ["--images", "file", "--separator", "|", "--id", "file", "--sort", "margin"]
    succeed("disambiguate", model, table, *chosen, "--out", tmp_path / "d.csv")
    assert len(pd.read_csv(tmp_path / "d.csv")) == 60


def test_images_of_ones_own_that_are_missing_or_no_images(pictures, tmp_path):
    (pictures / "bad.csv").write_text("file,candidates\nimg/0.png,a\nimg/none.png,b\n")
    line = fail("fit", pictures / "bad.csv", "--images", "file", "--quiet", "--out", tmp_path / "model")
    assert "none.png" in line
    (pictures / "bad.csv").write_text("file,candidates\nimg/0.png,a\nlabels.csv,b\n")
    assert "labels.csv" in fail(
        "fit", pictures / "bad.csv", "--images", "file", "--quiet", "--out", tmp_path / "model"
    )
    assert "no column 'picture'" in fail(
        "fit", pictures / "labels.csv", "--images", "picture", "--out", tmp_path / "m"
    )
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("estimator", ["extra-trees", "random-forest", "logistic", "lightgbm", "xgboost"])
def test_any_classifier_on_the_command_line(estimator, iris, tmp_path):
    if estimator in ("lightgbm", "xgboost"):
        pytest.importorskip(estimator)
    parameters = [] if estimator == "logistic" else ["--set", "parameters={'n_estimators': 5}"]
    command = ["fit", iris / "t.csv", "--separator", "|", *COLUMNS, "--method", "em", "--estimator", estimator]
    succeed(*command, *parameters, "--set", "rounds=2", "--out", tmp_path / "model")
    succeed(*command, *parameters, "--set", "rounds=2", "--out", tmp_path / "again")
    assert (tmp_path / "model").read_bytes() == (tmp_path / "again").read_bytes()  # the same seed
    fitted = oneof.load_model(tmp_path / "model")
    assert (type(fitted), fitted.estimator, fitted.rounds) == (oneof.EMClassifier, estimator, 2)
    frame = pd.read_csv(iris / "t.csv", dtype={"plant": str})
    succeed("predict", tmp_path / "model", iris / "t.csv", "--id", "plant", "--out", tmp_path / "o.csv")
    predicted = pd.read_csv(tmp_path / "o.csv", dtype={"plant": str})
    accuracy = (predicted["prediction"] == frame["truth"]).mean()
    assert accuracy > 0.9
    result = succeed("score", tmp_path / "model", iris / "t.csv", "--labels", "truth")
    assert f"approximated accuracy  {accuracy:.4f}" in result.stdout
    command = ["disambiguate", tmp_path / "model", iris / "t.csv", "--separator", "|", "--out", tmp_path / "d.csv"]
    succeed(*command)
    found = pd.read_csv(tmp_path / "d.csv")
    assert list(found) == ["row", "candidates", *RESULTS, *REVIEW]
    assert all(label in cell.split("|") for label, cell in zip(found["label"], found["candidates"], strict=True))
