"""The command line with missing, misspelt and repeated options, wrong files and wrong columns.

A command that fails says so in one line on standard error, besides hints and warnings. Its exit code is 2, and it
leaves nothing behind.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from misuse.rows import check_message
from oneof.cli import app

TINY = "--method cc --set epochs=2 --set network=linear --device cpu --quiet"
FIT = f"fit pets.csv --separator | --drop truth --drop id {TINY}"
AUTO = "fit pets.csv --separator | --drop truth --drop id --method auto"
COMPARE = "compare pets.csv --separator | --drop truth --drop id"
APPLY = "apply pets.csv --separator |"
REVIEW = "--separator | --no-browser"
VALEN = FIT.replace("method cc", "method valen")
WHOLE = FIT.replace(" --separator |", "")
EM = "fit pets.csv --separator | --drop truth --drop id --method em"


@dataclass(frozen=True)
class Command:
    """What a person types and what must happen; `words` are in the error, `notes` in hints and warnings."""

    what: str
    typed: str
    words: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    printed: tuple[str, ...] = ()  # of a command that works


def refused(what, typed, *words, notes=()):
    return Command(what, typed, words, notes)


def works(what, typed, *printed, notes=()):
    return Command(what, typed, printed=printed, notes=notes)


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """A table of pets, a model, and files that are neither."""
    folder = tmp_path_factory.mktemp("commands")
    rng = np.random.default_rng(0)
    y = np.arange(30) % 3
    names = np.array(["cat", "cow", "dog"])
    pets = pd.DataFrame(rng.normal(size=(30, 3)) + 4 * np.eye(3)[y], columns=["legs", "length", "weight"])
    pets["truth"], pets["id"] = names[y], [f"pet{i}" for i in range(30)]
    pets["candidates"] = [f"{names[t]}|{names[(t + 1) % 3]}" if i % 4 == 0 else names[t] for i, t in enumerate(y)]
    pets.to_csv(folder / "pets.csv", index=False)
    pets.drop(columns=["truth", "candidates"]).to_csv(folder / "unlabelled.csv", index=False)
    pets.drop(columns="weight").to_csv(folder / "narrow.csv", index=False)
    pets.assign(weight="heavy").to_csv(folder / "words.csv", index=False)
    pets.assign(weight=[np.nan, *pets["weight"][1:]]).to_csv(folder / "gap.csv", index=False)
    pets.assign(candidates=["", *pets["candidates"][1:]]).to_csv(folder / "unset.csv", index=False)
    pets[:1].to_csv(folder / "one.csv", index=False)
    pets[:0].to_csv(folder / "header.csv", index=False)
    pets.to_csv(folder / "numbered.csv")
    np.savez(folder / "pets.npz", x=pets[["legs", "length", "weight"]], candidates=np.eye(3)[y], short=y[:3])
    np.savez(folder / "flat.npz", x=y, candidates=np.eye(3)[y])
    (folder / "empty.csv").write_text("")
    (folder / "ragged.csv").write_text("a,b,candidates\n1,2,cat\n1,2,dog,3\n")
    (folder / "binary.csv").write_bytes(bytes(range(128, 256)) * 4)
    (folder / "text.txt").write_text("a,b\n1,2\n")
    (folder / "text.npz").write_text("no archive")
    (folder / "bad.toml").write_text("title = \n")
    (folder / "empty.toml").write_text("")
    (folder / "broken.jsonl").write_text('{"a": 1}\n{"a": \n')
    (folder / "list.jsonl").write_text('{"a": 1}\n[1]\n')
    (folder / "nested.jsonl").write_text('{"a": {"b": 1}, "s": "cat"}\n{"a": {"b": 2}, "s": "dog"}\n')
    (folder / "text.xlsx").write_text("no workbook")
    pets.assign(kind=["tame", "farm"] * 15).to_csv(folder / "kinds.csv", index=False)
    pets.assign(kind="tame", weight="heavy").to_csv(folder / "heavy.csv", index=False)
    pets.assign(kind="wild").to_csv(folder / "foreign.csv", index=False)
    (folder / "real.toml").write_text('title = "Real"\ndatasets = ["lost"]\n[methods.cc]\n')
    (folder / "votes.csv").write_text("task,worker,label\n1,anna,cat\n1,ben,dog\n2,anna,dog\n2,ben,dog\n")
    (folder / "codes.csv").write_text("anna,ben\n0,1\n2,\n")
    (folder / "sizes.csv").write_text("anna,ben\n0.5,1\n2,\n")
    (folder / "min.json").write_text('[{"text": "moos", "id": 1, "animal": "cow", "annotator": 1}]')
    (folder / "cut.json").write_text('[{"data": ')
    (folder / "folder").mkdir()
    (folder / "wrong.jsonl").write_text('{"row": 1, "action": "maybe"}\n')
    (folder / "far.jsonl").write_text('{"row": 99, "action": "none"}\n')
    (folder / "other.jsonl").write_text('{"row": 0, "action": "none", "candidates": ["dog"]}\n')
    (folder / "zebra.csv").write_text("row,decision\n1,zebra\n")
    (folder / "twice.csv").write_text("row,decision\n1,cat\n1,dog\n")
    (folder / "lost.csv").write_text("id,decision\npet99,cat\n")
    (folder / "half.csv").write_text("row,decision\n1.5,cat\n")
    (folder / "none.csv").write_text("row,decision\n0,none of these\n")
    result = invoke(folder, f"{FIT} --out model")
    assert result.exit_code == 0, result.output
    (folder / "truncated").write_bytes((folder / "model").read_bytes()[:300])
    result = invoke(folder, f"{FIT} --out mixed".replace("pets", "kinds"))
    assert result.exit_code == 0, result.output
    return folder


def invoke(folder, typed):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return CliRunner().invoke(app, typed.split(" "))


COMMANDS = [
    refused("a misspelt command", "fitt pets.csv", "'fitt'", "'fit'"),
    refused("a misspelt option of all commands", "--verson", "--verson", "--version"),
    # --- fit
    refused("export to what is no ONNX file", "export model new.pt", "'new.pt'", "model.onnx"),
    refused("export of a table", "export pets.csv new.onnx", "is a table"),
    refused("export over the model itself", "export model model", "model.onnx"),
    refused("fit by no workers", f"{FIT} --workers 0 --out new", "--workers", "fit --help"),
    refused("fit on a cluster without workers", f"{FIT} --cluster auto --out new", "--cluster", "--workers N"),
    refused("fit a classifier of others by workers", f"{EM} --workers 2 --out new", "EMClassifier", "PRODEN()"),
    refused("fit VALEN by workers", f"{VALEN} --workers 2 --out new", "VALEN", "several workers"),
    refused("fit without a table", "fit --out new", "TABLE", "fit --help"),
    refused("fit without --out", FIT, "--out", "fit --help"),
    refused("fit with a misspelt option", f"{FIT} --outt new", "--outt", "--out"),
    refused("fit with one table too many", f"{FIT} --out new pets.csv", "extra", "pets.csv"),
    refused("fit a table that is missing", f"fit no.csv {TINY} --out new", "'no.csv'", "check the path"),
    refused("fit a folder", f"fit folder {TINY} --out new", "'folder'", "one sub-folder for each class"),
    refused("fit a text file", f"fit text.txt {TINY} --out new", "'text.txt'", ".csv"),
    refused("fit an empty file", f"fit empty.csv {TINY} --out new", "'empty.csv'", "cannot be read"),
    refused("fit a binary file", f"fit binary.csv {TINY} --out new", "'binary.csv'", "cannot be read"),
    refused(
        "fit a table with rows of unequal length", f"fit ragged.csv {TINY} --out new", "'ragged.csv'", "cannot"
    ),
    refused("fit a table without rows", f"fit header.csv {TINY} --out new", "'header.csv'", "no rows"),
    refused("fit a text file as npz", f"fit text.npz {TINY} --out new", "'text.npz'", "zip"),
    refused("fit an npz with a vector x", f"fit flat.npz {TINY} --out new", "(30,)", "reshape"),
    refused(
        "fit an npz with too few labels", f"fit pets.npz --candidates short {TINY} --out new", "(3,)", "30 rows"
    ),
    refused(
        "fit with a misspelt column", f"{FIT} --candidates candidate --out new".replace("|", ";"), "'candidates'?"
    ),
    refused(
        "fit without dropping the truth",
        f"fit pets.csv --separator | {TINY} --out new",
        "'truth' holds labels",
        "--drop truth",
        notes=("'id' is doubtful", "as identifiers have"),
    ),
    works(
        "fit a column of one word",
        f"{FIT} --out new".replace("pets", "words"),
        "column weight: left out: every row has 'heavy'",
    ),
    works(
        "fit a table with a gap", f"{FIT} --out new".replace("pets", "gap"), "column weight: number, 1 gap filled"
    ),
    refused("fit a table with an empty set", f"{FIT} --out new".replace("pets", "unset"), "row 0"),
    refused("fit a single row", f"{FIT} --out new".replace("pets", "one"), "1"),
    refused(
        "fit row numbers without a name",
        f"{FIT} --out new".replace("pets", "numbered"),
        "without a name",
        "--drop",
    ),
    refused("fit with all columns dropped", f"{FIT} --drop legs --drop length --drop weight --out new", "columns"),
    refused("fit with a column dropped that is not there", f"{FIT} --drop wieght --out new", "'weight'"),
    refused("fit with an id that is not there", f"{FIT} --id ids --out new", "'id'"),
    refused("fit with a method that nobody knows", "fit pets.csv --method idpg --out new", "'idpg'", "idgp"),
    refused("fit with a misspelt setting", f"{FIT} --set lrr=1 --out new", "'lrr'", "'lr'"),
    refused("fit with a setting without a value", f"{FIT} --set lr --out new", "'lr'", "NAME=VALUE"),
    refused("fit with a setting of a wrong type", f"{FIT} --set lr=fast --out new", "'fast'", "a number > 0"),
    refused("fit with a setting out of range", f"{FIT} --set momentum=1 --out new", "momentum", "[0, 1)"),
    refused("fit with a setting that is an option", f"{FIT} --set random_state=1 --out new", "--seed"),
    refused("fit with a misspelt network", "fit pets.csv --set network=mpl --out new", "'mpl'", "'mlp'"),
    refused("fit with a seed in words", f"{FIT} --seed one --out new", "--seed", "integer"),
    refused("fit with a negative seed", f"{FIT} --seed -1 --out new", "--seed", "0"),
    refused("fit on a device that nobody knows", "fit pets.csv --device tpu --out new", "'tpu'", "'cpu'"),
    refused("fit on a device that is not there", "fit pets.csv --device cuda:99 --out new", "'cuda:99'", "GPUs"),
    refused("fit auto with an estimator", f"{AUTO} --estimator lightgbm --out new", "auto", "--method em"),
    refused("fit auto with a misspelt setting", f"{AUTO} --set epoch=2 --out new", "no method has", "'epochs'?"),
    refused("fit auto with the seed as a setting", f"{AUTO} --set random_state=2 --out new", "--seed"),
    # --- compare
    refused("compare without a table", "compare", "TABLE", "compare --help"),
    refused("compare a method that nobody knows", f"{COMPARE} --methods cc,idpg", "'idpg'", "idgp"),
    refused("compare a method twice", f"{COMPARE} --methods cc,cc", "'cc' twice"),
    refused("compare in one fold", f"{COMPARE} --cv 1", "2 or more"),
    refused("compare with a misspelt setting", f"{COMPARE} --set epoch=2", "no method has", "'epochs'?"),
    refused("compare with a setting of others", f"{COMPARE} --methods cc --set kappa=2", "'cc'", "'kappa'"),
    refused("compare and overwrite the table", f"{COMPARE} --html pets.csv", "is an input"),
    refused("compare into a folder that is missing", f"{COMPARE} --json no/c.json", "does not exist"),
    refused("compare with page and numbers in one file", f"{COMPARE} --html c --json c", "name two files"),
    refused("compare with a size without images", f"{COMPARE} --size 8", "--images"),
    works("compare two methods", f"{COMPARE} --methods cc,proden --set epochs=2 --cv 2 --quiet", "Take "),
    refused("fit a network with an estimator", f"{FIT} --estimator lightgbm --out new", "--method em"),
    refused("fit a misspelt estimator", f"{EM} --estimator lightgmb --out new", "'lightgmb'", "'lightgbm'"),
    refused("fit an estimator as a setting", f"{EM} --set estimator=logistic --out new", "--estimator"),
    refused("fit trees with epochs", f"{EM} --set epochs=3 --out new", "'epochs'", "rounds"),
    refused("fit trees on a GPU", f"{EM} --device cuda:99 --out new", "'cuda:99'"),
    refused("fit trees with a wrong parameter", f"{EM} --set parameters={{'depth':3}} --out new", "'depth'"),
    works(
        "fit trees",
        f"{EM} --set parameters={{'n_estimators':3}} --out new",
        "30 rows, 3 features, 3 classes",
        "EMClassifier model written to new",
    ),
    refused("fit with an empty separator", "fit pets.csv --separator  --out new", "--separator", "'|'"),
    refused("fit to a folder", f"{FIT} --out folder", "'folder' is a folder"),
    refused("fit to a missing folder", f"{FIT} --out no/new", "'no'", "create it first"),
    refused("fit to the table itself", f"{FIT} --out pets.csv", "'pets.csv'", "overwritten"),
    refused("fit images that are not there", f"{FIT} --images id --out new", "pet0'", "check the names"),
    refused("fit a folder with a column", "fit folder --images id --out new", "is a folder", "leave --images out"),
    refused("fit a folder with other labels", "fit folder --candidates labels --out new", "'labels'", "'file'"),
    refused(
        "fit a table with a network for images",
        "fit pets.csv --separator | --drop truth,id --set network=timm:resnet18 --out new --quiet",
        "images",
    ),
    refused("predict a folder by a model of a table", "predict model folder --out new.csv", "is a folder"),
    refused("fit with views for images", f"{FIT} --set views=weak --out new", "images", "'jitter'"),
    refused("fit with misspelt views", f"{FIT} --set views=jiter --out new", "'jiter'", "'jitter'"),
    works(
        "fit with labels of several columns", f"{FIT} --id id --id id --out new", "30 rows, 3 features, 3 classes"
    ),
    # --- predict
    works("fit a table on disk", f"{FIT} --on-disk --out new", "30 rows, 3 features, 3 classes"),
    works("fit a gap on disk", f"{FIT} --on-disk --out new".replace("pets", "gap"), "median"),
    works("fit kinds on disk", f"{FIT} --on-disk --kind legs=category --out new", "column legs: category"),
    refused(
        "fit a kind that there is not on disk", f"{FIT} --on-disk --kind legs=colour --out new", "'legs=colour'"
    ),
    refused("fit a kind of no column on disk", f"{FIT} --on-disk --kind wings=number --out new", "'wings'"),
    refused(
        "fit votes on disk", f"fit pets.csv --votes truth,id {TINY} --on-disk --out new", "votes", "--on-disk"
    ),
    refused("fit an npz on disk", f"fit pets.npz {TINY} --on-disk --out new", "'pets.npz'", ".parquet"),
    refused("fit by comparison on disk", f"{AUTO} --on-disk --out new", "--method auto", "--on-disk"),
    works("predict on disk", "predict model pets.csv --on-disk --quiet --out new.csv", "30 rows written"),
    refused(
        "predict to standard output on disk", "predict model pets.csv --on-disk --out -", "standard", "--on-disk"
    ),
    refused(
        "predict a workbook on disk", "predict model pets.csv --on-disk --out new.xlsx", "workbook", "--on-disk"
    ),
    refused(
        "predict a narrow table on disk", "predict model narrow.csv --on-disk --out new.csv", "no column 'weight'"
    ),
    refused(
        "predict an id that is a feature on disk",
        "predict model pets.csv --on-disk --id legs --out new.csv",
        "'legs'",
    ),
    refused("predict text on disk", "predict model words.csv --on-disk --out new.csv", "'weight'", "heavy"),
    works("predict mixed columns on disk", "predict mixed kinds.csv --on-disk --quiet --out new.csv", "30 rows"),
    refused(
        "predict mixed columns without one on disk",
        "predict mixed narrow.csv --on-disk --out new.csv",
        "no column 'weight'",
    ),
    refused(
        "predict a word among encoded numbers on disk",
        "predict mixed heavy.csv --on-disk --quiet --out new.csv",
        "'weight' holds 'heavy' in row 0",
    ),
    refused("predict without a model", "predict", "MODEL", "predict --help"),
    refused("predict without a table", "predict model", "TABLE", "predict --help"),
    refused("predict without --out", "predict model pets.csv", "--out", "predict --help"),
    refused("predict with a model that is missing", "predict no pets.csv --out new.csv", "'no'"),
    refused("predict with a text file as model", "predict text.txt pets.csv --out new.csv", "'text.txt'"),
    refused(
        "predict with a truncated model", "predict truncated pets.csv --out new.csv", "'truncated'", "damaged"
    ),
    refused("predict with a folder as model", "predict folder pets.csv --out new.csv", "'folder'"),
    refused("predict a table that is missing", "predict model no.csv --out new.csv", "'no.csv'"),
    refused("predict a table without a feature", "predict model narrow.csv --out new.csv", "'weight'", "add them"),
    refused("predict a column of words", "predict model words.csv --out new.csv", "'weight'", "'heavy'"),
    refused("predict a table with a gap", "predict model gap.csv --out new.csv", "NaN", "row 0"),
    refused("predict to an unknown format", "predict model pets.csv --out new.xls", "'new.xls'", ".parquet"),
    refused("predict to a missing folder", "predict model pets.csv --out no/new.csv", "'no'", "create it first"),
    refused("predict to the table itself", "predict model pets.csv --out pets.csv", "overwritten"),
    refused("predict with an id that is not there", "predict model pets.csv --id ids --out new.csv", "'id'"),
    works(
        "predict a table with columns that were dropped", "predict model pets.csv --out new.csv", "30 rows written"
    ),
    works(
        "predict a table without labels", "predict model unlabelled.csv --id id --out new.csv", "30 rows written"
    ),
    # --- score
    refused("score without --labels", "score model pets.csv", "--labels", "--votes"),
    refused("score with a misspelt column", "score model pets.csv --labels thruth", "'truth'"),
    refused("score with a column of other words", "score model pets.csv --labels id", "'pet0'"),
    refused("score with a column of numbers", "score model pets.csv --labels weight", "row"),
    refused("score a table without labels", "score model unlabelled.csv --labels truth", "no column 'truth'"),
    refused("score sets without a separator", "score model pets.csv --labels candidates", "'cat|cow'"),
    works("score with true labels", "score model pets.csv --labels truth", "every row has one label"),
    works("score with sets", "score model pets.csv --labels candidates --separator |", "on plain labels"),
    # --- disambiguate
    refused("disambiguate without --out", "disambiguate model pets.csv --separator |", "--out"),
    refused("disambiguate without a separator", "disambiguate model pets.csv --out new.csv", "'cat|cow'"),
    refused(
        "disambiguate in an unknown order",
        "disambiguate model pets.csv --separator | --sort size --out new.csv",
        "'size'",
        "'margin'",
    ),
    refused(
        "disambiguate with a misspelt column",
        "disambiguate model pets.csv --candidates candidate --out new.csv",
        "'candidates'?",
    ),
    refused("disambiguate an empty set", "disambiguate model unset.csv --separator | --out new.csv", "row 0"),
    works(
        "disambiguate plain labels",
        "disambiguate model pets.csv --candidates truth --id id --out new.csv",
        "30 rows written",
    ),
    # --- tables as people have them
    refused("fit with a kind that nobody knows", f"{FIT} --kind legs=words --out new", "'legs=words'", "category"),
    refused("fit with a kind without a column", f"{FIT} --kind category --out new", "COLUMN=KIND"),
    refused("fit with two kinds", f"{FIT} --kind legs=text --kind legs=date --out new", "'legs' two kinds"),
    refused("fit with the kind of no column", f"{FIT} --kind legz=text --out new", "'legz'", "'legs'"),
    refused("fit numbers as dates", f"{FIT} --kind legs=date --out new", "'legs'", "no date"),
    refused("fit words as numbers", f"{FIT} --kind weight=number --out new".replace("pets", "words"), "'heavy'"),
    refused(
        "fit with the kind of a pixel",
        f"fit pets.npz --kind legs=text {TINY} --out new",
        "no table of columns",
        "leave it out",
    ),
    refused("fit nothing but identifiers", f"{FIT} --drop legs,length,weight --out new", "without columns"),
    refused("fit with a comma too many", f"{FIT} --drop legs,,weight --out new", "a column without a name"),
    refused("fit with a format for a file", f"{FIT} --format tsv --out new", "--format is 'tsv'", "leave it out"),
    refused("fit nothing from standard input", f"fit - {TINY} --out new", "'standard input'", "No columns"),
    refused("fit an unknown format", f"fit - --format xml {TINY} --out new", "'xml'", "jsonl"),
    refused("fit to standard output", f"{FIT} --out -", "only tables go to standard output"),
    refused(
        "fit with a prefix that no column has", f"{WHOLE} --candidates-prefix is_ --out new", "'is_'", "0 columns"
    ),
    refused(
        "fit with a prefix of columns of numbers",
        f"{WHOLE} --candidates-prefix l --drop candidates --out new",
        "may hold only 0 and 1",
    ),
    refused(
        "fit with a prefix and a column",
        f"{FIT} --candidates truth --candidates-prefix l --out new",
        "one of them",
    ),
    refused("fit with a prefix beside sets", f"{WHOLE} --candidates-prefix l --out new", "--drop candidates"),
    refused("fit with a prefix and votes", f"{FIT} --votes legs --candidates-prefix l --out new", "one of them"),
    refused("fit lines that are no JSON", f"fit broken.jsonl {TINY} --out new", "'broken.jsonl' cannot be read"),
    refused("fit lines that are no objects", f"fit list.jsonl {TINY} --out new", "line 2 is [1]", "object"),
    refused(
        "fit a cell that is an object", f"fit nested.jsonl --candidates s {TINY} --out new", "'a'", "of type dict"
    ),
    refused("fit a text that is no workbook", f"fit text.xlsx {TINY} --out new", "'text.xlsx' cannot be read"),
    refused(
        "score by a prefix and a column",
        "score model pets.csv --labels truth --candidates-prefix l",
        "one of them",
    ),
    refused("predict an npz by a model of words", "predict mixed pets.npz --out new.csv", "holds an array"),
    refused("predict without a column", "predict mixed narrow.csv --out new.csv", "lacks the columns 'weight'"),
    refused(
        "predict a word among numbers", "predict mixed heavy.csv --out new.csv", "'weight' holds 'heavy' in row 0"
    ),
    works(
        "predict a category that is new",
        "predict mixed foreign.csv --out new.csv",
        "30 rows written",
        notes=("'kind' holds 'wild'",),
    ),
    # --- embed
    refused("embed without a model", "embed pets.csv --images id --out new.npz", "--model"),
    refused("embed nothing", "embed pets.csv --model timm:resnet18 --out new.npz", "--images COLUMN or --text"),
    refused("embed with a model of nobody", "embed pets.csv --text id --model resnet --out new.npz", "'resnet'"),
    refused("embed with a misspelt column", "embed pets.csv --text ids --model hf:x --out new.npz", "'id'?"),
    refused("embed an empty folder", "embed folder --model timm:resnet18 --out new.npz", "one sub-folder"),
    refused("embed into the table", "embed pets.csv --text id --model hf:x --out pets.csv", "is an input"),
    # --- convert
    refused("convert without OUT", "convert pets.csv", "OUT", "convert --help"),
    refused("convert a file that is missing", "convert no.json new.csv", "'no.json'", "check the path"),
    refused("convert a file of no format", "convert text.txt new.csv", "cannot be told", "--from"),
    refused(
        "convert to a file of several formats", "convert pets.csv new.json", "label-studio or argilla", "--to"
    ),
    refused("convert to a file of no format", "convert pets.csv new.doc", "'new.doc'", "--to"),
    refused("convert from a misspelt format", "convert pets.csv new.csv --from crowdkit", "'crowd-kit'"),
    refused("convert to the wrong extension", "convert pets.csv new.csv --to argilla", ".json", "rename"),
    refused("convert into itself", "convert pets.csv pets.csv", "is an input"),
    refused("convert to a missing folder", "convert pets.csv no/new.csv", "create it first"),
    refused("convert sets to votes", "convert pets.csv new.csv --to crowd-kit", "nobody knows who", "give votes"),
    refused("convert votes of strangers to Argilla", "convert votes.csv new.json --to argilla", "'anna'", "UUIDs"),
    refused("convert with a misspelt column", "convert pets.csv new.csv --candidates candidate", "'candidates'?"),
    refused("convert with a misspelt id", "convert pets.csv new.csv --id ids", "'id'"),
    refused("convert with an id that is not unique", "convert pets.csv new.csv --id truth", "'cat' twice"),
    refused("convert with a vote column too few", "convert pets.csv new.csv --votes truth", "different names"),
    refused("convert with two long columns", "convert votes.csv new.csv --long task,worker", "--long"),
    refused("convert a table with a split", "convert pets.csv new.csv --split train", "split", "read as table"),
    refused("convert Label Studio's short form", "convert min.json new.csv --from label-studio", "JSON-MIN"),
    refused("convert JSON of no tool", "convert min.json new.csv", "cannot be told"),
    refused("convert JSON that is cut off", "convert cut.json new.csv", "is no JSON"),
    refused(
        "convert a plain table as a dataset", "convert pets.csv new.csv --from hugging-face", "cannot be read"
    ),
    refused("convert a folder that is no dataset", "convert folder new.csv", "save_to_disk"),
    refused("convert words as a matrix", "convert pets.csv new.csv --from cleanlab", "holds text"),
    refused("convert a matrix of measurements", "convert sizes.csv new.csv --from cleanlab", "from 0"),
    refused("convert a matrix with too few names", "convert codes.csv new.csv --from cleanlab --classes a,b", "2"),
    refused("convert predictions for other tasks", "convert pets.csv new.csv --id id --tasks votes.csv", "'pet0'"),
    works("convert sets", "convert pets.csv new.json --to label-studio --id id", "30 tasks, 3 classes"),
    works("convert votes", "convert votes.csv new.npz --to cleanlab", "4 votes of 2 annotators"),
    # --- methods, data sets, corrupt
    refused("a method that nobody knows", "methods idpg", "'idpg'", "idgp"),
    refused("two methods", "methods idgp cc", "cc"),
    works("a method in capitals", "methods IDGP", "warm_up"),
    refused("data sets with an argument", "datasets lost", "lost"),
    works("data sets in a folder that is missing", "datasets --data no", "fashion-mnist"),
    refused("corrupt without a data set", "corrupt --out new.npz", "NAME"),
    refused("corrupt without --out", "corrupt mnist", "--out"),
    refused("corrupt a misspelt data set", "corrupt minst --out new.npz", "'mnist'"),
    refused("corrupt to a table", "corrupt mnist --out new.csv", "'new.csv'", ".npz"),
    refused("corrupt to a missing folder", "corrupt mnist --out no/new.npz", "'no'", "create it first"),
    refused("corrupt with a rate in words", "corrupt mnist --rate high --out new.npz", "--rate", "number"),
    refused("corrupt with a setting without a value", "corrupt mnist --set rate --out new.npz", "NAME=VALUE"),
    refused("corrupt with no epochs", "corrupt mnist --epochs 0 --out new.npz", "epochs", "0"),
    refused("corrupt with a misspelt network", "corrupt mnist --network lent --out new.npz", "'lent'", "'lenet'"),
    refused(
        "corrupt with the rate twice",
        "corrupt mnist --rate 0.1 --set rate=0.2 --out new.npz",
        "--rate is 0.1",
        "one of",
    ),
    refused(
        "corrupt with an annotator that is not asked",
        "corrupt mnist --process uniform --epochs 3 --out new.npz",
        "asks no annotator",
    ),
    # --- inspect
    refused("inspect without a table", "inspect", "TABLE"),
    refused("inspect a table that is missing", "inspect no.csv", "'no.csv'"),
    refused("inspect a misspelt column", "inspect pets.csv --candidates candidate", "'candidates'?"),
    refused("inspect without rows", "inspect header.csv", "no rows"),
    refused("inspect to a folder", "inspect pets.csv --separator | --html folder", "'folder' is a folder"),
    refused("inspect to the table itself", "inspect pets.csv --separator | --html pets.csv", "overwritten"),
    refused("inspect a table with an empty set", "inspect unset.csv --separator |", "row 0"),
    works("inspect without a separator", "inspect pets.csv", "'cat|cow'", notes=("--separator '|'",)),
    # --- experiments
    refused("run without a plan", "run", "PLAN"),
    refused(
        "run a misspelt plan of the library",
        "run tabel2-quick",
        "no plan 'tabel2-quick'",
        "did you mean 'table2-quick'",
    ),
    refused(
        "status of a plan that nobody knows",
        "status zebra",
        "no plan 'zebra'",
        "comes with oneof: competition-hard",
    ),
    refused(
        "run a plan of a folder that is not there", "run none/table2", "no plan 'none/table2'", "check the path"
    ),
    refused("run a plan that is missing", "run no.toml", "'no.toml'", "check the path"),
    refused("run a table", "run pets.csv", "'pets.csv'", "not valid TOML"),
    refused("run a folder", "run folder", "'folder'", "check the path"),
    refused("run a plan that is cut off", "run bad.toml", "'bad.toml'", "not valid TOML"),
    refused("run an empty plan", "run empty.toml", "'empty.toml'"),
    refused("run on an unknown engine", "run empty.toml --engine cloud", "'cloud'", "'ray'"),
    refused("run on an unknown device", "run empty.toml --device tpu", "'tpu'"),
    refused("sets of no plan", "sets no.toml", "'no.toml'", "check the path"),
    refused(
        "sets of a plan that draws none", "sets real.toml", "'real.toml'", "draws no candidate sets", "process"
    ),
    refused("sets on an unknown device", "sets real.toml --device tpu", "'tpu'"),
    refused("run with workers in words", "run empty.toml --workers many", "--workers", "integer"),
    refused("status of a plan that is missing", "status no.toml", "'no.toml'"),
    refused("status of a table", "status pets.csv", "not valid TOML"),
    refused("report without a plan", "report --out new", "--plan"),
    refused("report without --out", "report --plan empty.toml", "--out"),
    refused("report of a plan that is missing", "report --plan no.toml --out new", "'no.toml'"),
    refused("report of an empty plan", "report --plan empty.toml --out new", "'empty.toml'"),
    # --- review
    refused("decisions that are missing", f"{FIT} --decisions no.jsonl --out new", "'no.jsonl'", "check the path"),
    refused("a decision of no known kind", f"{FIT} --decisions wrong.jsonl --out new", "line 1", "'maybe'"),
    refused("a decision beyond the table", f"{FIT} --decisions far.jsonl --out new", "99", "30 rows"),
    refused("decisions of another table", f"{FIT} --decisions other.jsonl --out new", "row 0", "'dog'", "'cat'"),
    refused("decisions for an unknown class", f"{FIT} --decisions zebra.csv --out new", "'zebra'", "'cat'"),
    refused(
        "two decisions about one row", f"{FIT} --decisions twice.csv --out new", "row 1 twice", "keep one line"
    ),
    refused("a decision about half a row", f"{FIT} --decisions half.csv --out new", "'1.5'", "numbered from 0"),
    refused("a table without decisions", f"{FIT} --decisions pets.csv --out new", "no column"),
    refused("apply to a row that is missing", f"{APPLY} lost.csv --id id --out new.csv", "pet99", "does not have"),
    refused("apply to the table itself", f"{APPLY} zebra.csv --out pets.csv", "'pets.csv' is an input"),
    refused("apply to an npz", "apply pets.npz none.csv --out new.csv", "--decisions"),
    refused(
        "apply a set to a column of single labels",
        "apply pets.csv none.csv --candidates truth --out new.csv",
        "--separator '|'",
        "--none drop",
    ),
    refused("review a table as a model", f"review pets.csv model {REVIEW}", "a model comes first"),
    refused("review a missing table", f"review model no.csv {REVIEW}", "'no.csv'", "check the path"),
    refused("review too few rows", f"review model one.csv {REVIEW} --static new.html", "1 rows", "at least 20"),
    refused(
        "review with a missing column of texts", f"review model pets.csv {REVIEW} --text txt", "no column 'txt'"
    ),
    refused("review to a page that is no page", f"review model pets.csv {REVIEW} --static new.csv", "'new.html'"),
    refused(
        "review with a journal of another table",
        f"review model pets.csv {REVIEW} --decisions other.jsonl",
        "row 0",
    ),
    refused(
        "review with decisions in a folder", f"review model pets.csv {REVIEW} --decisions folder", "is a folder"
    ),
    refused("demo to a folder", "demo --out folder", "'folder' is a folder"),
    refused("demo to a missing folder", "demo --out no/demo.html", "'no'", "create it first"),
    refused("demo with numbers to a folder", "demo --out new --json folder", "'folder' is a folder"),
    refused("demo with an unknown option", "demo --epochs 1", "--epochs"),
]


def judge(command, folder):
    before = sorted(path.name for path in folder.iterdir())
    result = invoke(folder, command.typed)
    *notes, error = [*result.stderr.splitlines(), ""] if command.printed else result.stderr.splitlines()
    assert all(line.startswith(("hint: ", "warning: ")) for line in notes), notes
    assert all(any(word in line for line in notes) for word in command.notes), notes
    if command.printed:
        assert result.exit_code == 0, result.output
        assert all(word in result.stdout for word in command.printed), result.stdout
        return
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit)
    assert result.stdout == ""
    assert error.startswith("error: ")
    check_message(error, command.words)
    assert sorted(path.name for path in folder.iterdir()) == before


@pytest.mark.parametrize("command", COMMANDS, ids=[command.what for command in COMMANDS])
def test_commands(command, files):
    judge(command, files)
