"""Labels, tables, models and tools of one's own: what careless people pass, in Python and on the command line."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import LinearSVC

import oneof
from misuse.rows import carry_out, parametrize, refused, warned, works
from misuse.test_commands import judge
from misuse.test_commands import refused as refused_command
from misuse.test_commands import works as works_command
from oneof import CandidateKFold, EMClassifier, TableEncoder, WeightedSets, disambiguate, from_votes, vote_counts
from oneof.callbacks import MLflow, OptunaPruning, TensorBoard, WandB

LONG = ("task", "worker", "label")
SCORER = oneof.SCORERS["covering_rate"]


def long_frame():
    return pd.DataFrame({"task": [1, 1, 2], "worker": ["a", "b", "a"], "label": ["cat", "cow", "cow"]})


def mixed(kit):
    return pd.DataFrame({"size": kit.X[:, 0], "fur": kit.names, "born": pd.date_range("2026", periods=40)})


def piped(kit):
    return oneof.make_pipeline(TableEncoder(), kit.model()).fit(mixed(kit), kit.S)


def written(kit):
    """A file of votes."""
    path = kit.folder / "votes.csv"
    long_frame().to_csv(path, index=False)
    return path


def read(kit, *given, **options):
    return oneof.read_annotations(written(kit), *given, **options)


VOTE_ROWS = [
    refused("no votes", ValueError, lambda k: from_votes([]), "0 rows", "at least one"),
    refused("votes by name in a dict", TypeError, lambda k: from_votes({"anna": ["cat"]}), "of type dict"),
    refused("a path of votes", TypeError, lambda k: from_votes("votes.csv"), "of type str"),
    refused("votes in three dimensions", ValueError, lambda k: from_votes(np.zeros((2, 2, 2), int)), "(2, 2, 2)"),
    refused(
        "probabilities as votes", ValueError, lambda k: from_votes(np.full((9, 3), 1 / 3)), "0.333", "class names"
    ),
    refused(
        "nothing but missing votes", ValueError, lambda k: from_votes([[None, np.nan]]), "row 0", "gather votes"
    ),
    refused(
        "an annotator a row", ValueError, lambda k: k.model().fit(k.X, from_votes(np.array(k.votes).T)), "y has 3"
    ),
    refused(
        "the smallest number as classes", TypeError, lambda k: from_votes(k.votes, 2), "classes is of type int"
    ),
    refused(
        "one-hot labels as votes",
        ValueError,
        lambda k: from_votes(one_hot(k)),
        "add up to 1",
        "the matrix itself as y",
    ),
    refused(
        "counts as votes",
        ValueError,
        lambda k: from_votes(pd.DataFrame(1 + 3 * one_hot(k), columns=["cat", "cow", "dog"])),
        "add up to 6",
        "pass vote_counts(votes)",
    ),
    refused(
        "lists of counts as votes", ValueError, lambda k: from_votes((4 * one_hot(k)).tolist()), "add up to 4"
    ),
    warned("a candidate matrix as votes", lambda k: from_votes(k.S.astype(int)), "the matrix itself as y"),
    warned(
        "counts of different sums as votes",
        lambda k: from_votes(5 * one_hot(k) + (np.arange(40) % 2)[:, None]),
        "pass vote_counts(votes)",
    ),
    works(
        "votes for numbers of classes",
        lambda k: from_votes(np.stack([k.y, k.y, np.roll(k.y, 1) % 2], axis=1)).classes.tolist(),
        lambda classes: classes == [0, 1, 2],
    ),
    refused(
        "votes by number scored by a model of names",
        ValueError,
        lambda k: k.by_name.score(k.frame, by_number(k)),
        "[0, 1, 2]",
        "'cat', 'cow', 'dog'",
        "to rename them",
    ),
    refused(
        "votes by number disambiguated by a model of names",
        ValueError,
        lambda k: k.by_name.disambiguate(k.frame, by_number(k)),
        "[0, 1, 2]",
        "to rename them",
    ),
    refused(
        "votes in another language scored",
        ValueError,
        lambda k: k.by_name.score(k.frame, from_votes([[["Katze", "Kuh", "Hund"][t]] * 2 for t in k.y])),
        "'Hund', 'Katze', 'Kuh'",
        "to rename them",
    ),
    works(
        "counts by number scored by a model of names",
        lambda k: k.by_name.score(k.frame, vote_counts(2 * one_hot(k))),
        lambda score: score > 0.5,
    ),
    warned(
        "votes for several labels without a separator",
        lambda k: from_votes([["cat|dog", "cow|dog"]] * 4).classes.tolist(),
        "'cat|dog'",
        "separator='|'",
    ),
    warned(
        "votes with another separator",
        lambda k: from_votes([["cat|dog", "cow|dog"]] * 4, separator=";").classes.tolist(),
        "separator='|'",
    ),
    warned(
        "sets with another separator",
        lambda k: oneof.encode(["cat|dog", "cow|dog"] * 4, separator=";")[1].tolist(),
        "separator='|'",
    ),
    warned(
        "denials without saying so",
        lambda k: from_votes([["not cat", "cat"], ["dog", "cat"]]).classes.tolist(),
        "'not cat'",
        "denial='not '",
    ),
    refused(
        "a denial that is a number", TypeError, lambda k: from_votes(k.votes, denial=3), "denial is 3", "'not '"
    ),
    refused(
        "a denial of a class that is none",
        ValueError,
        lambda k: from_votes([["not pig", "cat"]], ["cat", "dog"], denial="not "),
        "'pig'",
        "add them to classes",
    ),
    warned(
        "long with workers as tasks",
        lambda k: from_votes(long_frame(), long=("worker", "task", "label")),
        "'worker' for the task",
        "swap",
    ),
    warned(
        "long with workers as labels",
        lambda k: from_votes(long_frame(), long=("task", "label", "worker")),
        "'label' for the worker",
        "swap",
    ),
    refused("long as a set", TypeError, lambda k: from_votes(long_frame(), long=set(LONG)), "three columns"),
    refused(
        "long with one column twice", ValueError, lambda k: from_votes(long_frame(), long=("task",) * 3), "two pur"
    ),
    refused(
        "long with two columns of one name",
        ValueError,
        lambda k: from_votes(pd.concat([long_frame(), long_frame()[["label"]]], axis=1), long=LONG),
        "several columns of the name 'label'",
        "rename",
    ),
    refused(
        "tasks as text", ValueError, lambda k: from_votes(long_frame(), long=LONG, tasks=["1", "2"]), "tasks 1, 2"
    ),
    refused(
        "tasks as a table", TypeError, lambda k: from_votes(long_frame(), long=LONG, tasks=k.frame), "tasks is"
    ),
    refused(
        "a task twice", ValueError, lambda k: from_votes(long_frame(), long=LONG, tasks=[1, 1, 2]), "exactly once"
    ),
    refused(
        "long votes on fewer rows",
        ValueError,
        lambda k: k.model().fit(k.X, from_votes(long_frame(), long=LONG)),
        "X has 40 rows and y has 2",
    ),
    refused(
        "an aggregation by its class", ValueError, lambda k: from_votes(k.votes, aggregate="DawidSkene"), "'glad'"
    ),
    refused(
        "counts that are missing",
        ValueError,
        lambda k: vote_counts([[1, np.nan]]),
        "nan in row 0",
        "whole numbers",
    ),
    refused("counts without end", ValueError, lambda k: vote_counts([[np.inf, 1]]), "inf in row 0"),
    refused("no counts", ValueError, lambda k: vote_counts(None), "shape ()", "(n, K)"),
    refused("counts of one class", ValueError, lambda k: vote_counts([[1], [2]]), "found 1 class"),
    refused(
        "counts with names in another order",
        ValueError,
        lambda k: vote_counts(pd.DataFrame([[1, 2]], columns=["a", "b"]), ["b", "a"]),
        "the columns of counts are ['a', 'b']",
        "counts[classes] to reorder",
    ),
    refused(
        "counts with some names wrong",
        ValueError,
        lambda k: vote_counts(pd.DataFrame([[1, 2]], columns=["a", "b"]), ["a", "c"]),
        "reindex",
    ),
    works(
        "counts with all names new",
        lambda k: vote_counts(pd.DataFrame([[1, 2]], columns=["a", "b"]), ["x", "y"]).classes.tolist(),
        lambda classes: classes == ["x", "y"],
    ),
    warned(
        "counts beside numbers of tasks",
        lambda k: vote_counts(pd.DataFrame({"task": range(40), "cat": 1, "dog": 2})),
        "'task'",
        "as ids have",
    ),
    works(
        "weights in a frame keep their names",
        lambda k: WeightedSets(pd.DataFrame([[1, 0.5]], columns=["cat", "dog"])).classes.tolist(),
        lambda classes: classes == ["cat", "dog"],
    ),
    refused(
        "weights with names in another order",
        ValueError,
        lambda k: WeightedSets(pd.DataFrame([[1, 0.5]], columns=["cat", "dog"]), ["dog", "cat"]),
        "weights[classes] to reorder",
    ),
    refused(
        "weights of weights", TypeError, lambda k: WeightedSets(from_votes(k.votes)), "Votes", "weights.weights"
    ),
    refused("weights of NaN", ValueError, lambda k: WeightedSets([[1, np.nan]]), "nan in row 0"),
    refused("logarithms as weights", ValueError, lambda k: WeightedSets(np.log([[0.5, 0.5]])), "at least 0"),
    refused("weights of one row", ValueError, lambda k: WeightedSets([1, 2]), "(2,)", "(n, K)"),
    refused("weights that are labels", ValueError, lambda k: WeightedSets(k.names[:, None]), "real numbers"),
    refused(
        "votes that lack a class of the model",
        ValueError,
        lambda k: k.by_name.score(k.frame[:2], from_votes([["cat", "dog"], ["dog", None]])),
        "classes has 3 names",
        "from_votes(votes, model.classes_)",
    ),
    refused(
        "votes in place of rows", ValueError, lambda k: k.model().fit(from_votes(k.votes), k.X), "only 0 and 1"
    ),
    refused("a row of votes by name", ValueError, lambda k: from_votes(k.votes)["cat"], "'cat'", "from 0 to 39"),
    refused("a single row of votes", TypeError, lambda k: from_votes(k.votes)[0], "[0] names no rows"),
    refused(
        "IDGP as released with votes", ValueError, lambda k: released().fit(k.X, from_votes(k.votes)), "objective"
    ),
    refused("resolve with a class", TypeError, lambda k: oneof.resolve(oneof.CC, k.X, k.S), "oneof.IDGP()"),
    refused(
        "resolve with any classifier", TypeError, lambda k: oneof.resolve(EMClassifier(), k.X, k.S), "a method"
    ),
    refused("resolve without labels", ValueError, lambda k: oneof.resolve(k.model(), k.X, None), "y is None"),
    refused("resolve mixed columns", TypeError, lambda k: oneof.resolve(k.model(), mixed(k), k.S), "TableEncoder"),
]


def one_hot(kit):
    return np.eye(3, dtype=int)[kit.y]


def by_number(kit):
    return from_votes([[t, t] for t in kit.y.tolist()])


def released():
    return oneof.IDGP(objective="released", warm_up=0, epochs=1, device="cpu")


TABLE_ROWS = [
    refused("encode a path", TypeError, lambda k: TableEncoder().fit("a.csv"), "of type str", "DataFrame"),
    refused("encode no columns", ValueError, lambda k: TableEncoder().fit(pd.DataFrame()), "without columns"),
    refused("encode no rows", ValueError, lambda k: TableEncoder().fit(mixed(k)[:0]), "0 rows"),
    refused(
        "encode empty columns",
        ValueError,
        lambda k: TableEncoder().fit(pd.DataFrame({"a": [None]})),
        "'a'",
        "empty",
    ),
    refused(
        "encode sparse rows",
        TypeError,
        lambda k: TableEncoder().fit(scipy.sparse.eye_array(3)),
        "leave the encoder",
    ),
    refused(
        "encode columns of one name",
        ValueError,
        lambda k: TableEncoder().fit(k.frame.set_axis(list("aabc"), axis=1)),
        "'a'",
    ),
    refused(
        "encode infinity",
        ValueError,
        lambda k: TableEncoder().fit(pd.DataFrame({"a": [1, np.inf]})),
        "inf in row 1",
    ),
    refused(
        "encode lists", ValueError, lambda k: TableEncoder().fit(pd.DataFrame({"a": [[1], [2]]})), "of type list"
    ),
    refused(
        "kinds in a list", TypeError, lambda k: TableEncoder(kinds=["size"]).fit(mixed(k)), "kinds is", "dict"
    ),
    refused(
        "a kind of no column", ValueError, lambda k: TableEncoder(kinds={"sise": "number"}).fit(mixed(k)), "'sise'"
    ),
    refused(
        "kinds the wrong way round",
        ValueError,
        lambda k: TableEncoder({"number": "size"}).fit(mixed(k)),
        "'number'",
    ),
    refused(
        "a kind that is none",
        ValueError,
        lambda k: TableEncoder({"size": "words"}).fit(mixed(k)),
        "'words'",
        "'text'",
    ),
    refused(
        "words as numbers",
        ValueError,
        lambda k: TableEncoder({"fur": "number"}).fit(mixed(k)),
        "'fur' holds 'cat'",
    ),
    refused(
        "encode before fit", NotFittedError, lambda k: TableEncoder().transform(mixed(k)), "fit", wording="theirs"
    ),
    refused(
        "encode a table without a column",
        ValueError,
        lambda k: TableEncoder().fit(mixed(k)).transform(mixed(k).drop(columns="fur")),
        "lacks the columns 'fur'",
    ),
    refused("encode an array after a frame", TypeError, lambda k: piped(k).predict(k.X), "pass a frame"),
    refused(
        "encode a word among numbers",
        ValueError,
        lambda k: piped(k).predict(mixed(k).assign(size="heavy")),
        "'size' holds 'heavy' in row 0",
    ),
    refused(
        "encode with the true labels among the features",
        ValueError,
        lambda k: oneof.make_pipeline(TableEncoder(), k.model()).fit(mixed(k), k.sets),
        "'fur' holds labels (such as 'cat')",
        "kinds={'fur': 'category'}",
    ),
    works(
        "encode labels as features when asked to",
        lambda k: oneof.make_pipeline(TableEncoder({"fur": "category"}), k.model()).fit(mixed(k), k.sets),
        bool,
    ),
    works(
        "encode ISO texts after dates",
        lambda k: TableEncoder().fit(mixed(k)).transform(mixed(k).assign(born=mixed(k)["born"].astype(str))),
        lambda rows: len(rows) == 40,
    ),
    refused(
        "encode other texts after dates",
        ValueError,
        lambda k: TableEncoder().fit(mixed(k)).transform(mixed(k).assign(born="1/2/2026")),
        "'1/2/2026' in row 0",
        "2024-12-31",
    ),
    works(
        "encode columns in another order",
        lambda k: (piped(k).predict(mixed(k)) == piped(k).predict(mixed(k)[["born", "fur", "size"]])).all(),
        bool,
    ),
    # --- Pipeline
    refused(
        "disambiguate by a pipeline without a classifier",
        AttributeError,
        lambda k: oneof.make_pipeline(TableEncoder()).fit(mixed(k)).disambiguate(mixed(k), k.S),
        "TableEncoder",
        "classifier of oneof",
    ),
    refused(
        "save a pipeline of others",
        AttributeError,
        lambda k: oneof.make_pipeline(MinMaxScaler(), LogisticRegression()).fit(k.X, k.y).save(k.folder / "m"),
        "LogisticRegression, which has no save",
    ),
    refused(
        "save a step that no file holds",
        ValueError,
        lambda k: oneof.make_pipeline(MinMaxScaler(), k.model()).fit(k.X, k.S).save(k.folder / "m"),
        "MinMaxScaler",
        "StandardScaler",
    ),
    refused(
        "save a pipeline before fit", NotFittedError, lambda k: clone(piped(k)).save("m"), "fit", wording="theirs"
    ),
    refused(
        "a pipeline of classes",
        TypeError,
        lambda k: oneof.make_pipeline(TableEncoder, oneof.CC).fit(mixed(k), k.S),
        "instance",
        wording="scikit-learn's",
    ),
    refused(
        "a pipeline the wrong way round",
        TypeError,
        lambda k: oneof.make_pipeline(k.model(), TableEncoder()).fit(mixed(k), k.S),
        "transform",
        wording="scikit-learn's",
    ),
    refused(
        "a separator for a pipeline",
        ValueError,
        lambda k: oneof.make_pipeline(k.model()).fit(k.X, ["a|b"] * 40, separator="|"),
        "separator",
        "__",
        wording="scikit-learn's",
    ),
    refused(
        "disambiguate other rows by a pipeline",
        ValueError,
        lambda k: piped(k).disambiguate(mixed(k)[:3], k.S),
        "3 rows",
    ),
    refused(
        "the best none of a pipeline", ValueError, lambda k: piped(k).predict_top(mixed(k), 0), "k is 0", "1 to 3"
    ),
]

MODEL_ROWS = [
    # --- EMClassifier
    refused(
        "a regression by EM", ValueError, lambda k: EMClassifier(LinearRegression()).fit(k.X, k.S), "predict_proba"
    ),
    refused("EM without an estimator", ValueError, lambda k: EMClassifier(None).fit(k.X, k.S), "estimator of EM"),
    refused(
        "EM without probabilities", ValueError, lambda k: EMClassifier(LinearSVC()).fit(k.X, k.S), "predict_proba"
    ),
    refused("EM of half a round", ValueError, lambda k: EMClassifier(rounds=1.5).fit(k.X, k.S), "rounds", "whole"),
    refused(
        "EM of gaps",
        ValueError,
        lambda k: EMClassifier().fit(np.where(k.X > 3, np.nan, k.X), k.S),
        "fill the gaps",
    ),
    refused("EM of mixed columns", TypeError, lambda k: EMClassifier().fit(mixed(k), k.S), "TableEncoder"),
    refused(
        "EM of sparse rows", TypeError, lambda k: EMClassifier().fit(scipy.sparse.csr_array(k.X), k.S), "toarray"
    ),
    refused("EM without labels", ValueError, lambda k: EMClassifier().fit(k.X, None), "y is None"),
    refused("EM of one class", ValueError, lambda k: EMClassifier().fit(k.X, ["cat"] * 40), "found 1 class"),
    refused(
        "EM of sets that say nothing",
        ValueError,
        lambda k: EMClassifier().fit(k.X, k.S | True),
        "nothing to learn",
    ),
    refused(
        "EM with weights of classes that there are not",
        ValueError,
        lambda k: EMClassifier("logistic", parameters={"class_weight": {9: 1}}).fit(k.X, k.S),
        "LogisticRegression could not be fitted",
    ),
    # --- disambiguate
    refused(
        "probabilities with names in another order",
        ValueError,
        lambda k: disambiguate(proba(k, named=True), k.sets, ["dog", "cow", "cat"]),
        "the columns of probabilities are ['cat', 'cow', 'dog']",
        "reorder",
    ),
    works(
        "probabilities whose columns are numbered",
        lambda k: disambiguate(pd.DataFrame(proba(k)), k.sets).label[0],
        lambda label: label in ("cat", "cow", "dog"),
    ),
    refused("probabilities and sets swapped", ValueError, lambda k: disambiguate(k.S, proba(k)), "sum 1"),
    refused("percentages as probabilities", ValueError, lambda k: disambiguate(100 * proba(k), k.S), "sum 1"),
    refused("NaN as probabilities", ValueError, lambda k: disambiguate(proba(k) * np.nan, k.S), "nan", "sum 1"),
    refused("a model as probabilities", ValueError, lambda k: disambiguate(k.fitted, k.S), "real numbers"),
    refused("disambiguate nothing", ValueError, lambda k: disambiguate(proba(k), None), "y is None"),
    refused(
        "votes with classes in another order",
        ValueError,
        lambda k: disambiguate(proba(k), from_votes(k.votes), ["dog", "cow", "cat"]),
        "in this order",
    ),
    # --- CandidateKFold
    refused("folds in words", TypeError, lambda k: CandidateKFold("5"), "n_splits is '5'"),
    refused("a shuffle of 1", TypeError, lambda k: CandidateKFold(shuffle=1), "shuffle is 1"),
    refused(
        "a shuffle seeded by a word",
        ValueError,
        lambda k: splits(k, shuffle=True, random_state="x"),
        "'x'",
        wording="NumPy's",
    ),
    refused(
        "folds of rows and labels swapped", ValueError, lambda k: list(CandidateKFold(2).split(k.S, k.X)), "only 0"
    ),
    # --- SCORERS
    refused(
        "a scorer before fit",
        NotFittedError,
        lambda k: SCORER(k.model(), k.X, k.S),
        "fit",
        wording="scikit-learn's",
    ),
    refused(
        "a scorer of predictions", TypeError, lambda k: SCORER(proba(k), k.X, k.S), "estimator is", "classifier"
    ),
    refused("a scorer of a class", TypeError, lambda k: SCORER(oneof.CC, k.X, k.S), "estimator is", "fitted"),
    refused(
        "a scorer without probabilities",
        TypeError,
        lambda k: SCORER(LinearSVC().fit(k.X, k.y), k.X, k.S),
        "predict_proba",
    ),
    refused("a scorer of other rows", ValueError, lambda k: SCORER(k.fitted, k.X, k.S[:3]), "40 rows and y has 3"),
    refused(
        "accuracy by numbers of a model of names",
        ValueError,
        lambda k: oneof.SCORERS["accuracy"](k.by_name, k.frame, k.y),
        "labels such as 0",
        "never equal",
    ),
    refused(
        "accuracy by names of a model of numbers",
        ValueError,
        lambda k: oneof.SCORERS["accuracy"](k.fitted, k.X, k.names),
        "labels such as 'cat'",
    ),
    # --- callbacks
    refused("a callback by name", TypeError, lambda k: told(k, ["tensorboard"]), "callables"),
    refused("a class as callback", TypeError, lambda k: told(k, [TensorBoard]), "TensorBoard(...)"),
    refused("no callback in a list", TypeError, lambda k: told(k, [None]), "[None]"),
    refused("TensorBoard with a folder", TypeError, lambda k: TensorBoard("runs"), "'runs'", "SummaryWriter"),
    refused("MLflow without a run", TypeError, lambda k: MLflow(None), "mlflow is None", "log_metrics"),
    refused("Weights & Biases by project", TypeError, lambda k: WandB("project"), "wandb.init()"),
    refused("Optuna by study", TypeError, lambda k: OptunaPruning("study"), "trial is 'study'", "objective"),
    refused(
        "Optuna with a score that there is not",
        ValueError,
        lambda k: told(k, [OptunaPruning(SimpleNamespace(should_prune=bool), "val")]),
        "score is 'val'",
        "X_val",
    ),
    # --- warm_start and class_weight
    refused(
        "a warm start in words", ValueError, lambda k: k.model(warm_start="yes").fit(k.X, k.S), "True or False"
    ),
    refused(
        "weights of classes in a list",
        ValueError,
        lambda k: k.model(class_weight=[1, 2, 3]).fit(k.X, k.S),
        "a dict",
    ),
    refused(
        "misspelt balance of classes",
        ValueError,
        lambda k: k.model(class_weight="balance").fit(k.X, k.S),
        "'balanced'",
    ),
    refused(
        "negative weights of classes", ValueError, lambda k: k.model(class_weight={0: -1}).fit(k.X, k.S), ">= 0"
    ),
    refused(
        "weights of numbers for names",
        ValueError,
        lambda k: k.model(class_weight={0: 1}).fit(k.X, k.names),
        "'cat'",
    ),
    refused("no weights of classes", ValueError, lambda k: k.model(class_weight={}).fit(k.X, k.S), "class_weight"),
]


def proba(kit, named=False):
    p = kit.fitted.predict_proba(kit.X)
    return pd.DataFrame(p, columns=["cat", "cow", "dog"]) if named else p


def splits(kit, **settings):
    return list(CandidateKFold(2, **settings).split(kit.X, kit.S))


def told(kit, callbacks):
    return kit.model().fit(kit.X, kit.S, callbacks=callbacks)


FILE_ROWS = [
    # --- embed, networks and folders of images
    refused(
        "embed a folder in Python",
        TypeError,
        lambda k: oneof.embed("images", "timm:resnet18"),
        "items is 'images'",
    ),
    refused("embed an empty list", TypeError, lambda k: oneof.embed([], "timm:resnet18"), "items is []"),
    refused("embed by no library", ValueError, lambda k: oneof.embed(["a.png"], "resnet18"), "'timm:resnet18'"),
    refused("embed by no model", ValueError, lambda k: oneof.embed(["a.png"], "timm:"), "model is 'timm:'"),
    refused(
        "embed texts by a model of images",
        ValueError,
        lambda k: oneof.embed(["a"], "timm:x", text=True),
        "'hf:...'",
    ),
    refused(
        "embed texts with gaps", TypeError, lambda k: oneof.embed(["a", None], "hf:x", text=True), "holds None"
    ),
    refused("embed arrays", TypeError, lambda k: oneof.embed(k.images, "timm:resnet18"), "list of paths"),
    refused("embed a module", TypeError, lambda k: oneof.embed(["a.png"], len), "model is", "'timm:resnet18'"),
    refused(
        "embed in batches of none", ValueError, lambda k: oneof.embed(["a"], "hf:x", True, 0), "batch_size is 0"
    ),
    refused(
        "a misspelt library of networks",
        ValueError,
        lambda k: k.model(network="tim:x").fit(k.images, k.S),
        "'tim:x'",
    ),
    refused(
        "a pretrained network for a table", ValueError, lambda k: k.model(network="timm:x").fit(k.X, k.S), "images"
    ),
    refused(
        "a frozen network that is not pretrained",
        ValueError,
        lambda k: k.model(network="mlp+frozen").fit(k.X, k.S),
        "'mlp+frozen'",
    ),
    refused(
        "a folder as a table of images",
        ValueError,
        lambda k: oneof.load_images(k.folder),
        "is the folder",
        "oneof fit FOLDER",
    ),
    # --- exchange
    refused("read annotations from a frame", TypeError, lambda k: oneof.read_annotations(long_frame()), "path is"),
    refused("read a format that nobody knows", ValueError, lambda k: read(k, "crowdkit"), "'crowd-kit'"),
    refused("read with a misspelt option", TypeError, lambda k: read(k, colum="x"), "colum", "'long'"),
    refused(
        "read columns that are not there", ValueError, lambda k: read(k, "crowd-kit", long=("a", "b", "c")), "'a'"
    ),
    refused("read columns by number", ValueError, lambda k: read(k, long=3), "three different names"),
    refused(
        "read one class", ValueError, lambda k: read(k, "cleanlab", classes=["a"]), "at least two different names"
    ),
    refused("read votes as Label Studio's", ValueError, lambda k: read(k, "label-studio"), "is no JSON"),
    refused("read votes as a matrix", ValueError, lambda k: read(k, "cleanlab"), "holds text"),
    refused("read Label Studio's as Argilla's", ValueError, lambda k: studio_as(k, "argilla"), "Argilla"),
    refused("fit annotations", TypeError, lambda k: k.model().fit(k.X, read(k)), "of type Annotations"),
    refused("fit annotations of other rows", ValueError, lambda k: k.model().fit(k.X, read(k).y), "y has 2"),
    refused("suggest for some tasks", ValueError, lambda k: read(k).suggest(["cat"], [0.5]), "2 tasks"),
    refused(
        "suggest a class that is none", ValueError, lambda k: read(k).suggest(["cat", "pig"], [0.5, 1]), "'pig'"
    ),
    refused(
        "suggest with percentages", ValueError, lambda k: read(k).suggest(["cat", "cow"], [50, 2]), "from 0 to 1"
    ),
    refused(
        "suggest scores first", ValueError, lambda k: read(k).suggest([0.5, 1], ["cat", "cow"]), "real numbers"
    ),
    refused(
        "write no annotations", TypeError, lambda k: oneof.write_annotations(k.frame, "a.csv"), "read_annotations"
    ),
    refused(
        "write to several formats", ValueError, lambda k: oneof.write_annotations(read(k), "a.json"), "or format"
    ),
    refused("write to no format", ValueError, lambda k: oneof.write_annotations(read(k), "a.doc"), "extension"),
    refused(
        "write to a missing folder",
        FileNotFoundError,
        lambda k: oneof.write_annotations(read(k), k.folder / "no" / "a.csv"),
        "create",
    ),
    refused("convert onto itself", ValueError, lambda k: oneof.convert(written(k), written(k)), "is an input"),
    refused(
        "convert with formats swapped",
        ValueError,
        lambda k: oneof.convert(written(k), k.folder / "a.json", "label-studio", "crowd-kit"),
        ".csv",
    ),
    refused(
        "convert to a table with a name of labels",
        ValueError,
        lambda k: oneof.convert(written(k), k.folder / "a.csv", field="animal"),
        "field is 'animal'",
        "label-studio",
    ),
    refused(
        "convert to Argilla with what labels are about",
        ValueError,
        lambda k: oneof.convert(written(k), k.folder / "a.json", to_format="argilla", about="text"),
        "about is 'text'",
        "leave it out, or write label-studio",
    ),
    refused("read with a name of labels", TypeError, lambda k: read(k, field="animal"), "field is given"),
    refused("read with what labels are about", TypeError, lambda k: read(k, about="text"), "about is given"),
    refused(
        "convert labelled in words",
        TypeError,
        lambda k: oneof.convert(written(k), k.folder / "a.npz", labelled="yes"),
        "True or False",
    ),
]


def studio_as(kit, format):
    path = kit.folder / "studio.json"
    path.write_text(json.dumps([{"data": {"text": "moo"}, "id": 1, "annotations": []}]))
    return oneof.read_annotations(path, format)


@parametrize([*VOTE_ROWS, *TABLE_ROWS, *MODEL_ROWS, *FILE_ROWS])
def test_own_data(row, kit):
    carry_out(row, kit)


TINY = "--method cc --set epochs=2 --set network=linear --device cpu --quiet --out new"
ALL = "anna,ben,carl"
TASKS = f"fit items.csv --votes-file long.csv {TINY}"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Tables with votes in every form."""
    folder = tmp_path_factory.mktemp("votes")
    y, names = np.arange(12) % 3, np.array(["cat", "cow", "dog"])
    rows = pd.DataFrame(np.eye(3)[y] + np.arange(36).reshape(12, 3) / 99, columns=["legs", "length", "weight"])
    votes = pd.DataFrame({"anna": names[y], "ben": names[(y + (y == 1)) % 3], "carl": names[y]})
    pd.concat([rows, votes], axis=1).to_csv(folder / "wide.csv", index=False)
    rows.assign(**{name: 1 + 3 * (y == k) for k, name in enumerate(names)}).to_csv(
        folder / "counts.csv", index=False
    )
    rows.assign(**{name: 1 + (k + i) % 4 for i, (name, k) in enumerate([("a", y), ("b", y * 5)])}).assign(
        c=lambda t: 9 - t["a"] - t["b"]
    ).to_csv(folder / "fixed.csv", index=False)
    rows.assign(anna=y + 0.5, ben=y + 0.5).to_csv(folder / "halves.csv", index=False)
    long_votes = pd.DataFrame({"task": np.repeat(range(12), 2), "worker": ["u", "v"] * 12, "label": 0.5})
    long_votes.to_csv(folder / "half.csv", index=False)
    rows.assign(**{f"is_{name}": 1 * (y == k) for k, name in enumerate(names)}).to_csv(
        folder / "hot.csv", index=False
    )
    rows.assign(is_cat="yes", is_dog="no").to_csv(folder / "words.csv", index=False)
    rows.assign(is_cat=0, is_dog=0).to_csv(folder / "zeros.csv", index=False)
    rows.assign(candidates=[f"{names[k]}|{names[(k + 1) % 3]}" for k in y]).to_csv(
        folder / "sets.csv", index=False
    )
    rows.assign(task=range(12)).to_csv(folder / "items.csv", index=False)
    long = votes.rename_axis("task").reset_index().melt("task", var_name="worker", value_name="label")
    long.to_csv(folder / "long.csv", index=False)
    long[long["task"] != 5].to_csv(folder / "fewer.csv", index=False)
    pd.concat([long, long[:1].assign(task=99)]).to_csv(folder / "more.csv", index=False)
    (folder / "empty.jsonl").write_text("")
    (folder / "number.jsonl").write_text("3\n")
    return folder


COMMANDS = [
    refused_command("a misspelt annotator", f"fit wide.csv --votes anna,karl {TINY}", "'karl'", "'carl'"),
    refused_command(
        "an annotator left out", f"fit wide.csv --votes anna,ben {TINY}", "'carl' holds labels", "--drop carl"
    ),
    refused_command("an annotator twice", f"fit wide.csv --votes anna,anna {TINY}", "different columns"),
    refused_command(
        "measurements as votes", f"fit wide.csv --votes legs,length {TINY}", "'legs'", "labels of one annotator"
    ),
    refused_command(
        "votes of half a class", f"fit halves.csv --votes anna,ben {TINY}", "'anna'", "'0.5'", "names"
    ),
    refused_command(
        "long votes of half a class",
        f"{TASKS} --long task,worker,label".replace("long.csv", "half.csv"),
        "'label'",
        "'0.5'",
    ),
    refused_command(
        "an annotator to drop", f"fit wide.csv --votes {ALL} --drop carl {TINY}", "--drop names 'carl'", "--votes"
    ),
    refused_command("an annotator as id", f"fit wide.csv --votes {ALL} --id ben {TINY}", "--id names 'ben'"),
    refused_command(
        "the sets to drop", f"fit sets.csv --separator | --drop candidates {TINY}", "--drop names 'candidates'"
    ),
    refused_command(
        "a count to drop", "compare counts.csv --counts cat,cow,dog --drop dog", "--drop names 'dog'", "--counts"
    ),
    refused_command(
        "a long column to drop", "inspect long.csv --long task,worker,label --drop worker", "'worker'", "--long"
    ),
    refused_command(
        "a class of a prefix to drop",
        f"fit hot.csv --candidates-prefix is_ --drop is_dog {TINY}",
        "--drop names 'is_dog'",
        "--candidates-prefix",
    ),
    works_command(
        "the task of long votes as id", f"{TASKS} --long task,worker,label --id task", "CC model written"
    ),
    refused_command("a class without its counts", f"fit fixed.csv --counts a,b {TINY}", "'c'", "--counts a,b,c"),
    works_command(
        "a column beside counts that is dropped", f"fit fixed.csv --counts a,b --drop c {TINY}", "CC model written"
    ),
    refused_command("votes and sets", f"fit wide.csv --votes {ALL} --candidates anna {TINY}", "give one of them"),
    refused_command("votes and counts", f"fit wide.csv --votes {ALL} --counts anna {TINY}", "two forms of votes"),
    refused_command(
        "wide votes with a file", f"fit wide.csv --votes {ALL} --votes-file long.csv {TINY}", "--long"
    ),
    refused_command(
        "a file of votes alone", f"fit items.csv --votes-file long.csv {TINY}", "pass --votes or --long"
    ),
    refused_command("a denial without votes", f"fit sets.csv --denial not {TINY}", "there are no votes"),
    refused_command(
        "votes for a method without weights", f"fit wide.csv --votes {ALL} {TINY}".replace(" cc", " cavl"), "CAVL"
    ),
    refused_command("a misspelt count", f"fit counts.csv --counts cat,cow,pig {TINY}", "'pig'"),
    refused_command("measurements as counts", f"fit counts.csv --counts legs,cat {TINY}", "whole numbers"),
    refused_command("votes as counts", f"fit wide.csv --counts {ALL} {TINY}", "'cat' in row 0", "whole numbers"),
    refused_command(
        "counts with a separator", f"fit counts.csv --counts cat,cow --separator | {TINY}", "leave out"
    ),
    refused_command("two long columns", f"{TASKS} --long task,worker", "--long task,worker,label"),
    refused_command("a long file without its columns", f"{TASKS} --long task,rater,label", "'rater'"),
    refused_command("long votes without their file", f"fit items.csv --long task,worker,label {TINY}", "'worker'"),
    refused_command(
        "a missing file of votes", f"{TASKS} --long task,worker,label".replace("long.csv", "no.csv"), "'no.csv'"
    ),
    refused_command(
        "a task that nobody judged", f"{TASKS} --long task,worker,label".replace("long.csv", "fewer.csv"), "row 5"
    ),
    refused_command(
        "votes on tasks that are not there",
        f"{TASKS} --long task,worker,label".replace("long.csv", "more.csv"),
        "'99'",
    ),
    works_command(
        "long votes with columns swapped",
        f"{TASKS} --long task,label,worker",
        "CC model written",
        notes=("swap them",),
    ),
    works_command(
        "sets with another separator", f"fit sets.csv --separator ; {TINY}", "12 rows", notes=("--separator '|'",)
    ),
    refused_command(
        "an empty prefix", f"fit hot.csv --candidates-prefix  {TINY}", "--candidates-prefix is ''", "'is_'"
    ),
    refused_command(
        "a prefix with a separator", f"fit hot.csv --candidates-prefix is_ --separator | {TINY}", "leave it out"
    ),
    refused_command(
        "a prefix of one column", f"fit hot.csv --candidates-prefix is_cat {TINY}", "'is_cat'", "0 columns"
    ),
    refused_command("a prefix of words", f"fit words.csv --candidates-prefix is_ {TINY}", "'yes'", "only 0 and 1"),
    refused_command("a prefix of zeros", f"fit zeros.csv --candidates-prefix is_ {TINY}", "empty in rows 0"),
    refused_command(
        "an empty JSON-lines file", f"fit empty.jsonl {TINY}", "'empty.jsonl' has no column", "there is none"
    ),
    refused_command("a number a line", f"fit number.jsonl {TINY}", "line 1 is 3", "object"),
    refused_command("inspect two forms of votes", f"inspect wide.csv --votes {ALL} --counts {ALL}", "two forms"),
    refused_command("convert from standard input", "convert - new.csv", "'-'"),
    refused_command("convert to standard output", "convert long.csv -", "name a file"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=[command.what for command in COMMANDS])
def test_commands_on_own_data(command, files):
    judge(command, files)
