"""Wrong arguments of the public functions, and files that are not what they are taken for."""

import sys

import numpy as np
import pandas as pd
import scipy.sparse
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

import oneof
from misuse.rows import carry_out, parametrize, refused, works
from oneof import (
    CAVL,
    CandidateKFold,
    EMClassifier,
    PartialLabels,
    WeightedSets,
    disambiguate,
    encode,
    from_complementary,
    from_votes,
    resolve,
    theory,
    vote_counts,
)
from oneof.data import corrupt, decode_images, describe_datasets
from oneof.metrics import approximated_accuracy, covering_rate, set_log_likelihood
from oneof.testing import check_method

THREE = ["cat", "cow", "dog"]


LONG = ("task", "worker", "label")


def long_votes(**change):
    return pd.DataFrame({"task": [1, 1, 2], "worker": ["a", "b", "a"], "label": ["cat", "cow", "cow"]} | change)


def data_set(kit, **change):
    given = {"x": kit.X, "candidates": kit.S, "y": kit.y, "classes": THREE, "name": "pets"} | change
    return PartialLabels(**given)


def table(kit, text, name="labels.csv"):
    path = kit.folder / name
    path.write_text(text)
    return path


def opened(kit, text, *given, name="opened.csv", **options):
    return oneof.open_table(table(kit, text, name), *given, **({"cache": kit.folder / "kept"} | options))


def together(kit, *models, **given):
    return oneof.fit_together(list(models), [{"X": kit.X, "y": kit.S} | given] * len(models))


def probabilities(kit):
    return kit.fitted.predict_proba(kit.X)


def split(kit, y, **settings):
    return list(CandidateKFold(**settings).split(kit.X, y))


ANY_MODEL_ROWS = [
    # --- oneof.disambiguate
    refused(
        "scores instead of probabilities",
        ValueError,
        lambda k: disambiguate(k.X[:, :3], k.S),
        "rows 0",
        "sum 1",
        "softmax",
    ),
    refused("a column of probabilities", ValueError, lambda k: disambiguate(k.X[:, 0], k.S), "(40,)", "(n, K)"),
    refused(
        "logarithms of probabilities", ValueError, lambda k: disambiguate(np.log(probabilities(k)), k.S), ">= 0"
    ),
    refused(
        "probabilities of other rows",
        ValueError,
        lambda k: disambiguate(probabilities(k)[:30], k.S),
        "(30, 3)",
        "40 rows",
    ),
    refused(
        "probabilities of more classes than y names",
        ValueError,
        lambda k: disambiguate(probabilities(k), [["cat", "dog"]] * 40),
        "2 classes",
        "classes_",
    ),
    refused(
        "classes that are not those of y",
        ValueError,
        lambda k: disambiguate(probabilities(k), k.sets, ["a", "b", "c"]),
        "unknown labels ('cat'",
    ),
    refused("predictions as probabilities", ValueError, lambda k: disambiguate(k.names, k.S), "real numbers"),
    # --- CandidateKFold
    refused("one fold", ValueError, lambda k: CandidateKFold(1), "n_splits is 1", "2 or more"),
    refused("half a fold", TypeError, lambda k: CandidateKFold(2.5), "n_splits is 2.5", "whole number"),
    refused("a seed without shuffling", ValueError, lambda k: CandidateKFold(random_state=0), "shuffle=True"),
    refused("folds without labels", ValueError, lambda k: split(k, None), "y", "None"),
    refused("more folds than rows", ValueError, lambda k: split(k, k.S, n_splits=50), "n_splits is 50", "40 rows"),
    refused("folds of other rows", ValueError, lambda k: split(k, k.S[:30]), "X has 40 rows and y has 30"),
    # --- SCORERS
    refused(
        "accuracy of sets",
        ValueError,
        lambda k: oneof.SCORERS["accuracy"](k.fitted, k.X, k.S),
        "several labels",
        "approximated_accuracy",
    ),
    refused(
        "a score by labels that the model does not have",
        ValueError,
        lambda k: oneof.SCORERS["covering_rate"](k.fitted, k.X, k.names),
        "'cat'",
        "numbers",
    ),
    refused("likelihoods of labels", ValueError, lambda k: set_log_likelihood(probabilities(k), k.y), "(n, K)"),
    # --- EMClassifier
    refused(
        "a classifier without weights",
        ValueError,
        lambda k: EMClassifier(KNeighborsClassifier()).fit(k.X, k.S),
        "KNeighborsClassifier()",
        "sample_weight",
    ),
    refused(
        "a class in place of a classifier",
        ValueError,
        lambda k: EMClassifier(LogisticRegression).fit(k.X, k.S),
        "LogisticRegression",
        "a classifier with predict_proba",
    ),
    refused("a misspelt estimator", ValueError, lambda k: EMClassifier("lightgmb").fit(k.X, k.S), "'lightgbm'"),
    refused(
        "a parameter that the classifier does not have",
        ValueError,
        lambda k: EMClassifier("logistic", parameters={"depth": 3}).fit(k.X, k.S),
        "'depth'",
        "get_params",
    ),
    refused(
        "a parameter that the classifier does not accept",
        ValueError,
        lambda k: EMClassifier("extra-trees", parameters={"n_estimators": -1}).fit(k.X, k.S),
        "ExtraTreesClassifier",
        "n_estimators",
    ),
    refused(
        "one fold to predict from", ValueError, lambda k: EMClassifier(folds=1).fit(k.X, k.S), "folds", ">= 2"
    ),
    refused("images for trees", ValueError, lambda k: EMClassifier().fit(k.images, k.S), "reshape(len(X), -1)"),
    refused(
        "a classifier that a file cannot hold",
        ValueError,
        lambda k: EMClassifier(GaussianNB()).fit(k.X, k.S).save(k.folder / "m"),
        "GaussianNB",
        "fit one of these",
    ),
    refused(
        "save before fit",
        NotFittedError,
        lambda k: EMClassifier().save(k.folder / "m"),
        "not fitted",
        wording="scikit-learn's",
    ),
    refused(
        "a callback that is not in a list", TypeError, lambda k: k.model().fit(k.X, k.S, callbacks=print), "[call"
    ),
    refused("no rounds", ValueError, lambda k: EMClassifier(rounds=0).fit(k.X, k.S), "rounds", ">= 1"),
]


@parametrize(ANY_MODEL_ROWS)
def test_any_model(row, kit):
    carry_out(row, kit)


LABEL_ROWS = [
    refused("classes lack a label", ValueError, lambda k: encode(k.sets, ["cat", "dog"]), "'cow'", "add them"),
    refused("classes are a set", TypeError, lambda k: encode(k.sets, set(THREE)), "order of classes", "list"),
    refused("classes are a text", TypeError, lambda k: encode(k.sets, "cat"), "str", "list"),
    refused("classes are a number", TypeError, lambda k: encode(k.S, 3), "int", "list"),
    refused(
        "sparse_output is a text", TypeError, lambda k: encode(k.S, sparse_output="yes"), "'yes'", "True or False"
    ),
    refused(
        "classes name one twice", ValueError, lambda k: encode(k.sets, [*THREE, "cat"]), "'cat'", "more than once"
    ),
    refused(
        "too few classes for a matrix", ValueError, lambda k: encode(k.S, ["cat", "dog"]), "2 names", "3 columns"
    ),
    refused(
        "classes in another order than the columns",
        ValueError,
        lambda k: encode(pd.DataFrame(k.S, columns=THREE), THREE[::-1]),
        "order",
        "reorder",
    ),
    refused("the separator is a number", TypeError, lambda k: encode(["a|b"], separator=3), "separator is 3"),
    refused("the separator is empty", ValueError, lambda k: encode(["a|b"], separator=""), "separator is ''"),
    refused("a separator for a matrix", TypeError, lambda k: encode(k.S, separator="|"), "y is a matrix"),
    refused("a separator for lists", TypeError, lambda k: encode(k.sets, separator="|"), "row 0", "list"),
    refused("a matrix of text", ValueError, lambda k: encode(np.array([["0", "1"]])), "'0'", "only 0 and 1"),
    refused("a matrix of NaN", ValueError, lambda k: encode(np.full((2, 2), np.nan)), "nan", "only 0 and 1"),
    refused(
        "one class in two columns", ValueError, lambda k: encode(pd.DataFrame(k.S, columns=list("aab"))), "'a'"
    ),
    works(
        "labels with blanks around the separator",
        lambda k: encode(["cat | dog", "dog "], separator="|")[1].tolist(),
        lambda classes: classes == ["cat", "dog"],
    ),
    works("sets of numbers", lambda k: encode([{0, 2}, {1}])[0].tolist(), lambda S: S == [[1, 0, 1], [0, 1, 0]]),
    works(
        "masked cells of a matrix are missing",
        lambda k: encode(np.ma.masked_array(np.eye(2), mask=False))[0].tolist(),
        lambda S: S == [[1, 0], [0, 1]],
    ),
    refused(
        "all classes are wrong", ValueError, lambda k: from_complementary([THREE, ["cat"]]), "every class", "row 0"
    ),
    refused(
        "wrong labels that classes lack",
        ValueError,
        lambda k: from_complementary(["cow"], ["cat", "dog"]),
        "'cow'",
    ),
    refused(
        "one wrong label alone", ValueError, lambda k: from_complementary(["cat", "cat"]), "excluded", "classes"
    ),
    refused("wrong labels are None", ValueError, lambda k: from_complementary(None), "y is None"),
    refused("votes are plain labels", TypeError, lambda k: from_votes(k.names), "row 0", "annotators"),
    refused(
        "votes with a row for each vote",
        ValueError,
        lambda k: from_votes(pd.DataFrame({"task": [1, 1, 2], "worker": ["a", "b", "a"], "label": ["cat"] * 3})),
        "row for each vote",
        "long=('task', 'worker', 'label')",
    ),
    refused(
        "the matrix is an array of records",
        TypeError,
        lambda k: encode(np.zeros((3, 2), dtype=[("a", int)])),
        "convert the records",
    ),
    refused(
        "a vote is a table",
        TypeError,
        lambda k: from_votes([["cat", k.frame], ["dog", "cat"]]),
        "a label of type DataFrame in row 0",
    ),
    refused(
        "a cell of the votes is a table",
        TypeError,
        lambda k: from_votes(pd.DataFrame({"ann": ["cat", k.frame], "bob": ["dog", None]})),
        "a label of type DataFrame in row 1",
    ),
    refused(
        "a cell of the matrix is a table",
        ValueError,
        lambda k: encode(pd.DataFrame({"cat": [1, 0], "dog": [0, k.frame]})),
        "<DataFrame of shape (40, 4)> in row 1",
        "only 0 and 1",
    ),
    refused("votes are None", ValueError, lambda k: from_votes(None), "votes is None"),
    refused("votes are sparse", TypeError, lambda k: from_votes(scipy.sparse.eye_array(3)), "sparse", "dense"),
    refused(
        "min_votes is 0", ValueError, lambda k: from_votes(k.votes, min_votes=0), "min_votes is 0", "at least 1"
    ),
    refused("min_votes is a share", TypeError, lambda k: from_votes(k.votes, min_votes=0.5), "min_votes is 0.5"),
    refused(
        "min_votes is beyond all", ValueError, lambda k: from_votes(k.votes, min_votes=9), "min_votes=9", "lower"
    ),
    refused(
        "a row without votes", ValueError, lambda k: from_votes([["cat", "dog"], [None, ""]]), "row 1", "drop"
    ),
    refused(
        "votes that classes lack", ValueError, lambda k: from_votes(k.votes, ["cat", "dog"]), "'cow'", "classes"
    ),
    refused(
        "long names a column that votes lack",
        ValueError,
        lambda k: from_votes(long_votes(), long=("task", "annotator", "label")),
        "'annotator'",
        "it has 'task'",
    ),
    refused("long is one name", TypeError, lambda k: from_votes(long_votes(), long="label"), "three columns"),
    refused("long for lists", TypeError, lambda k: from_votes(k.votes, long=LONG), "type list", "DataFrame"),
    refused(
        "a long vote of nobody",
        ValueError,
        lambda k: from_votes(long_votes(worker=["a", None, "b"]), long=LONG),
        "'worker' is empty in row 1",
    ),
    refused(
        "a long vote on nothing",
        ValueError,
        lambda k: from_votes(long_votes(task=[1, None, 2]), long=LONG),
        "'task' is empty in row 1",
    ),
    refused(
        "tasks lack one with votes",
        ValueError,
        lambda k: from_votes(long_votes(), long=LONG, tasks=[1]),
        "the tasks 2",
        "not in tasks",
    ),
    refused(
        "a task without votes",
        ValueError,
        lambda k: from_votes(long_votes(), long=LONG, tasks=[1, 2, 3]),
        "row 2",
        "drop",
    ),
    refused("tasks of wide votes", ValueError, lambda k: from_votes(k.votes, tasks=[1]), "pass long"),
    refused("the denial is empty", ValueError, lambda k: from_votes(k.votes, denial=""), "denial is ''"),
    refused(
        "the aggregation is unknown",
        ValueError,
        lambda k: from_votes(k.votes, aggregate="wawa"),
        "'wawa'",
        "'dawid-skene'",
    ),
    refused("counts are shares", ValueError, lambda k: vote_counts([[0.5, 0.5]]), "0.5", "WeightedSets"),
    refused("counts are negative", ValueError, lambda k: vote_counts([[1, -2]]), "-2", "at least 0"),
    refused("counts are labels", ValueError, lambda k: vote_counts(k.votes), "real numbers"),
    refused("counts have one dimension", ValueError, lambda k: vote_counts([1, 2]), "(2,)", "(n, K)"),
    refused("counts of nothing", ValueError, lambda k: vote_counts([[1, 1], [0, 0]]), "row 1", "drop"),
    refused(
        "too few names for counts", ValueError, lambda k: vote_counts([[1, 1]], ["a"]), "1 names", "2 columns"
    ),
    refused(
        "weights for a method without a place for them",
        ValueError,
        lambda k: CAVL(epochs=1).fit(k.X, WeightedSets(k.S * 1.0)),
        "CAVL has no place for them",
        "y.candidates",
    ),
    refused("resolve without a model", TypeError, lambda k: resolve("idgp", k.X, k.S), "'idgp'", "oneof.IDGP()"),
    refused("resolve with one fold", ValueError, lambda k: resolve(k.model(), k.X, k.S, folds=1), "folds is 1"),
    refused("resolve with too many folds", ValueError, lambda k: resolve(k.model(), k.X, k.S, 30), "from 2 to 20"),
    refused("resolve with fewer sets", ValueError, lambda k: resolve(k.model(), k.X, k.S[1:]), "40 rows", "39"),
    refused(
        "weights with classes in another order",
        ValueError,
        lambda k: encode(WeightedSets([[1, 2, 0]], ["c", "b", "a"]), ["a", "b", "c"]),
        "['c', 'b', 'a']",
        "pandas.DataFrame(y.weights, columns=y.classes).reindex(columns=classes, fill_value=0)",
        "WeightedSets(frame, classes)",
    ),
    refused("weights are negative", ValueError, lambda k: WeightedSets([[1, -1]]), "-1", "at least 0"),
    refused("weights are all zero", ValueError, lambda k: WeightedSets([[1, 1], [0, 0]]), "row 1", "drop"),
    works(
        "votes of one annotator",
        lambda k: from_votes([["cat"], ["dog"]]).weights.tolist(),
        lambda weights: weights == [[1, 0], [0, 1]],
    ),
    works(
        "votes with gaps of NaN",
        lambda k: from_votes(np.array([[1, np.nan], [2, 1]])).classes.tolist(),
        lambda classes: classes == [1, 2],
    ),
]

DATA_ROWS = [
    refused("x of a data set is a vector", ValueError, lambda k: data_set(k, x=k.y), "x of 'pets'", "(40,)"),
    refused("x of a data set holds integers", ValueError, lambda k: data_set(k, x=k.images.astype(int)), "int64"),
    refused("x of a data set is words", ValueError, lambda k: data_set(k, x=k.names), "x of 'pets'", "<U3"),
    refused(
        "x of a data set is ragged", ValueError, lambda k: data_set(k, x=[[1], [1, 2]]), "x is", "equal length"
    ),
    refused(
        "candidates of a data set are lists", ValueError, lambda k: data_set(k, candidates=k.sets), "candidates is"
    ),
    refused(
        "candidates for other rows", ValueError, lambda k: data_set(k, candidates=k.S[:7]), "(7, 3)", "40 rows"
    ),
    refused(
        "candidates for other classes", ValueError, lambda k: data_set(k, classes=["a", "b"]), "(40, 3)", "2 names"
    ),
    refused("candidates with other numbers", ValueError, lambda k: data_set(k, candidates=2 * k.S), "2", "encode"),
    refused(
        "a data set with an empty set", ValueError, lambda k: data_set(k, candidates=0 * k.S), "empty in rows 0"
    ),
    refused("true labels are names", ValueError, lambda k: data_set(k, y=k.names), "y of 'pets'", "40 integers"),
    refused("true labels begin at 1", ValueError, lambda k: data_set(k, y=k.y + 1), "holds 3", "0 to 2"),
    refused("the name of a data set is a number", TypeError, lambda k: data_set(k, name=3), "name is of type int"),
    refused("a class occurs twice", ValueError, lambda k: data_set(k, classes=["cat", "cat", "dog"]), "'cat'"),
    refused("rows that are not there", ValueError, lambda k: data_set(k).take([99]), "99", "0 to 39"),
    refused("a mask that is too short", ValueError, lambda k: data_set(k).take([True]), "mask of 40"),
    refused("no rows at all", ValueError, lambda k: data_set(k).take([]), "pass"),
    refused("rows by name", ValueError, lambda k: data_set(k).take(["a"]), "mask of 40"),
    refused("a misspelt data set", ValueError, lambda k: oneof.load_dataset("fashion-mnst"), "'fashion-mnist'"),
    refused("a data set that nobody knows", ValueError, lambda k: oneof.load_dataset("imagenet"), "'mnist'"),
    refused("a data set by number", ValueError, lambda k: oneof.load_dataset(3), "no data set 3"),
    refused("a data set as an array", ValueError, lambda k: oneof.load_dataset(k.X), "no data set", "(40, 4)"),
    refused(
        "a data folder that is no path", TypeError, lambda k: oneof.load_dataset("lost", 3), "root is 3", "path"
    ),
    works(
        "a data folder that is missing",
        lambda k: {each.present for each in describe_datasets(k.folder / "no")},
        lambda present: present == {False},
    ),
    refused(
        "images of a missing table", FileNotFoundError, lambda k: oneof.load_images(k.folder / "no.csv"), "no file"
    ),
    refused("images of no path", TypeError, lambda k: oneof.load_images(None), "table is None", "path"),
    refused(
        "images of a text file", ValueError, lambda k: oneof.load_images(k.files / "text"), "must end in .csv"
    ),
    refused(
        "images of a table without the column",
        ValueError,
        lambda k: oneof.load_images(table(k, "picture,candidates\na.png,cat\n")),
        "no column 'file'",
    ),
    refused(
        "images that are not there",
        FileNotFoundError,
        lambda k: oneof.load_images(table(k, "file,candidates\na.png,cat\nb.png,dog\n")),
        "a.png'",
        "check the names",
    ),
    refused(
        "images without labels",
        ValueError,
        lambda k: oneof.load_images(table(k, "file,candidates\na.png,\nb.png,dog\n")),
        "empty for 'a.png'",
    ),
    refused("no images", ValueError, lambda k: decode_images([]), "no images"),
    refused("images of no size", ValueError, lambda k: decode_images(["a.png"], size=0), "size is (0, 0)"),
    refused("images of two channels", ValueError, lambda k: decode_images(["a.png"], channels=2), "channels is 2"),
    refused(
        "an image that is text", ValueError, lambda k: decode_images([table(k, "no image", "a.png")]), "a.png"
    ),
]

DISK_ROWS = [
    # --- oneof.open_table
    refused("open no path", TypeError, lambda k: oneof.open_table(None), "table is None", "path"),
    refused("open a frame", TypeError, lambda k: oneof.open_table(k.frame), "but must be a path"),
    refused(
        "open a missing table",
        FileNotFoundError,
        lambda k: oneof.open_table(k.folder / "no.csv"),
        "check the path",
    ),
    refused("open a text file", ValueError, lambda k: oneof.open_table(k.files / "text"), "must end in .csv"),
    refused(
        "open a folder without Parquet files",
        FileNotFoundError,
        lambda k: oneof.open_table(k.folder),
        "no .parquet",
    ),
    refused(
        "open an empty table",
        ValueError,
        lambda k: opened(k, "", "x", name="empty.csv"),
        "empty.csv",
        "cannot be read",
    ),
    refused("open a table without rows", ValueError, lambda k: opened(k, "a,x\n", "x"), "has no rows"),
    refused("open with a misspelt column", ValueError, lambda k: opened(k, "a,x\n1,k\n", "y"), "no column 'y'"),
    refused("open with no column of labels", TypeError, lambda k: opened(k, "a,x\n1,k\n", 1), "candidates is 1"),
    refused(
        "open with an empty separator", ValueError, lambda k: opened(k, "a,x\n1,k\n", "x", ""), "separator is ''"
    ),
    refused(
        "open with one name of ids",
        TypeError,
        lambda k: opened(k, "a,x\n1,k\n", "x", ids="x"),
        "ids is 'x'",
        "['id']",
    ),
    refused(
        "open with nothing but labels", ValueError, lambda k: opened(k, "x\nk\n", "x"), "no column of features"
    ),
    refused(
        "open text as features",
        ValueError,
        lambda k: opened(k, "a,b,x\n1,red,k\n", "x"),
        "'b'",
        "such as 'red'",
        "drop or ids",
    ),
    refused("open numbered rows", ValueError, lambda k: opened(k, ",a,x\n0,1,k\n", "x"), "without a name"),
    refused("open with a gap", ValueError, lambda k: opened(k, "a,x\n1,k\n,k\n", "x"), "line 3", "nothing", "'a'"),
    refused("open with no set", ValueError, lambda k: opened(k, "a,x\n1,k\n2,\n", "x"), "empty in row 1", "'x'"),
    refused("open into no folder", TypeError, lambda k: opened(k, "a,x\n1,k\n", "x", cache=3), "cache is 3"),
    refused("open with a loud progress", TypeError, lambda k: opened(k, "a,x\n", "x", progress="yes"), "progress"),
    refused(
        "fit one class from disk",
        ValueError,
        lambda k: CAVL().fit((t := opened(k, "a,x\n1,k\n2,k\n", "x")).X, t.y),
        "at least two classes",
    ),
]

CORRUPT_ROWS = [
    refused("a rate above 1", ValueError, lambda k: corrupt.uniform(k.y, 3, 1.5), "rate is 1.5", "[0, 1]"),
    refused("a rate in words", ValueError, lambda k: corrupt.uniform(k.y, 3, "high"), "rate is 'high'"),
    refused("a single class", ValueError, lambda k: corrupt.uniform([0, 0], 1, 0.3), "n_classes is 1"),
    refused("classes as names", ValueError, lambda k: corrupt.uniform(k.y, THREE, 0.3), "n_classes is ['cat'"),
    refused("names as true labels", ValueError, lambda k: corrupt.uniform(k.names, 3, 0.3), "0 to 2", "<U3"),
    refused("true labels beyond the classes", ValueError, lambda k: corrupt.uniform(k.y + 1, 3, 0.3), "y holds 3"),
    refused("a matrix as true labels", ValueError, lambda k: corrupt.uniform(k.S, 3, 0.3), "y has shape (40, 3)"),
    refused("no true labels", ValueError, lambda k: corrupt.uniform([], 3, 0.3), "y has shape (0,)"),
    refused("a negative seed", ValueError, lambda k: corrupt.uniform(k.y, 3, 0.3, seed=-1), "seed is -1"),
    refused("a seed in words", ValueError, lambda k: corrupt.uniform(k.y, 3, 0.3, seed="x"), "seed is 'x'"),
    refused(
        "scores of other rows", ValueError, lambda k: corrupt.instance_dependent(k.y, k.X[:3]), "3 rows", "40"
    ),
    refused(
        "scores in words", ValueError, lambda k: corrupt.instance_dependent(k.y, k.names), "scores is", "real"
    ),
    refused("a vector as scores", ValueError, lambda k: corrupt.instance_dependent(k.y, k.y), "(40,)", "(n, K)"),
    refused(
        "scores with NaN", ValueError, lambda k: corrupt.instance_dependent(k.y, np.full((40, 3), np.nan)), "row 0"
    ),
    refused(
        "a misspelt scaling",
        ValueError,
        lambda k: corrupt.instance_dependent(k.y, k.X, scaling="avg"),
        "'mean' or 'max'",
    ),
    refused(
        "a scaling that is an array",
        ValueError,
        lambda k: corrupt.instance_dependent(k.y, k.X, scaling=k.X),
        "scaling is",
    ),
    refused(
        "a temperature of 0", ValueError, lambda k: corrupt.instance_dependent(k.y, k.X, temperature=0), "is 0"
    ),
    refused(
        "sets larger than all classes",
        ValueError,
        lambda k: corrupt.decomposition(k.y, k.X, 9.0),
        "between 1 and 4",
    ),
    refused("chances above 1", ValueError, lambda k: corrupt.class_dependent(k.y, 2 * np.eye(3)), "holds 2.0"),
    refused(
        "chances that are no square", ValueError, lambda k: corrupt.class_dependent(k.y, k.X), "(40, 4)", "(K, K)"
    ),
    refused(
        "chances without the truth",
        ValueError,
        lambda k: corrupt.class_dependent(k.y, np.zeros((3, 3))),
        "diagonal",
    ),
    refused("a case that nobody knows", ValueError, lambda k: corrupt.class_dependent(k.y, "07"), "'07'"),
    refused("groups of other classes", ValueError, lambda k: corrupt.hierarchical(k.y, [0, 0], 0.5), "y holds 2"),
    refused("groups as a matrix", ValueError, lambda k: corrupt.hierarchical(k.y, k.S, 0.5), "groups has shape"),
]

THEORY_ROWS = [
    refused(
        "an infinite clamp", ValueError, lambda k: theory.parameter_bounds(np.inf, 3), "A is inf", "300 gamma"
    ),
    refused("a negative clamp", ValueError, lambda k: theory.parameter_bounds(-1, 3), "A is -1"),
    refused("one class in a bound", ValueError, lambda k: theory.parameter_bounds(1, 1), "c is 1", "at least 2"),
    refused("half a class", ValueError, lambda k: theory.parameter_bounds(1, 2.5), "c is 2.5", "whole"),
    refused(
        "a temperature of zero in a bound",
        ValueError,
        lambda k: theory.parameter_bounds(1, 3, gamma=0),
        "gamma is 0",
    ),
    refused("a bound for words", ValueError, lambda k: theory.parameter_bounds("A", 3), "A is 'A'"),
    refused(
        "a bound for a tensor", ValueError, lambda k: theory.parameter_bounds(torch.ones(3), 3), "A is <Tensor"
    ),
    refused("a weight of NaN", ValueError, lambda k: theory.largest_loss(1, 3, rho=np.nan), "rho is nan"),
    refused(
        "a complexity of words", ValueError, lambda k: theory.linear_complexity(k.names, 1), "X is", "real numbers"
    ),
    refused(
        "a complexity of a vector", ValueError, lambda k: theory.linear_complexity(k.y, 1), "(40,)", "rows and col"
    ),
    refused("a norm of zero", ValueError, lambda k: theory.linear_complexity(k.X, 0), "W is 0", "positive"),
    refused("no draws", ValueError, lambda k: theory.simulated_complexity(k.X, 1, draws=0), "draws is 0"),
    refused("half a draw", ValueError, lambda k: theory.simulated_complexity(k.X, 1, draws=1.5), "draws is 1.5"),
    refused(
        "a seed that is no number", ValueError, lambda k: theory.simulated_complexity(k.X, 1, seed="x"), "seed is"
    ),
    refused(
        "a chance of 1 that the bound fails",
        ValueError,
        lambda k: theory.estimation_error_bound(k.X, 3, W=1, A=1, rho=1, xi=1),
        "xi is 1",
    ),
    refused(
        "no weight in a bound",
        ValueError,
        lambda k: theory.estimation_error_bound(k.X, 3, W=1, A=1, rho=None),
        "rho is None",
    ),
    refused(
        "labels instead of candidates in a metric",
        ValueError,
        lambda k: approximated_accuracy(np.eye(3), [0, 1, 2]),
        "(3,)",
        "oneof.encode",
    ),
    refused(
        "predictions instead of probabilities", ValueError, lambda k: covering_rate(k.y, k.S), "(40,)", "(n, K)"
    ),
]

FILE_ROWS = [
    refused(
        "save to a missing folder", FileNotFoundError, lambda k: k.fitted.save(k.folder / "no" / "m"), "create it"
    ),
    refused("save to no path", TypeError, lambda k: k.fitted.save(None), "path is None", "string"),
    refused("save to an open file", TypeError, lambda k: k.fitted.save(sys.stdout), "path is", "pathlib.Path"),
    refused("save to a path without a name", ValueError, lambda k: k.fitted.save(""), "path is ''"),
    refused("save to a name with a null byte", ValueError, lambda k: k.fitted.save("a\0b"), "names no file"),
    refused(
        "load a file that is missing", FileNotFoundError, lambda k: oneof.load_model(k.folder / "no"), "no file"
    ),
    refused("load no path", TypeError, lambda k: oneof.load_model(None), "path is None", "path"),
    refused("load a fitted model", TypeError, lambda k: oneof.load_model(k.fitted), "path is CC(", "path"),
    refused("load a folder", FileNotFoundError, lambda k: oneof.load_model(k.folder), "no file"),
    refused("load a text file", ValueError, lambda k: oneof.load_model(k.files / "text"), "no safetensors file"),
    refused("load an empty file", ValueError, lambda k: oneof.load_model(k.files / "empty"), "damaged"),
    refused("load a truncated file", ValueError, lambda k: oneof.load_model(k.files / "truncated"), "damaged"),
    refused(
        "load a checkpoint",
        ValueError,
        lambda k: oneof.load_model(k.files / "checkpoint"),
        "holds a checkpoint",
        "model was expected",
    ),
    refused(
        "load onto a device that is not there",
        ValueError,
        lambda k: oneof.load_model(k.files / "model", device="cuda:99"),
        "'cuda:99'",
    ),
    refused(
        "load onto a device by number",
        ValueError,
        lambda k: oneof.load_model(k.files / "model", device=0),
        "device is of type int",
    ),
    refused(
        "load with a list of methods",
        TypeError,
        lambda k: oneof.load_model(k.files / "model", methods=[oneof.CC]),
        "methods is",
        "dict",
    ),
    refused(
        "load with an instance as method",
        TypeError,
        lambda k: oneof.load_model(k.files / "model", methods={"cc": oneof.CC()}),
        "classes of methods",
    ),
    works(
        "save over a model",
        lambda k: [k.fitted.save(k.folder / "m") or oneof.load_model(k.folder / "m") for _ in range(2)],
        lambda models: len(models) == 2,
    ),
]

COMPARE_ROWS = [
    refused("compare a method that nobody knows", ValueError, lambda k: compared(k, ["idpg"]), "'idpg'", "idgp"),
    refused("compare a method twice", ValueError, lambda k: compared(k, ["cc", "CC"]), "'CC' twice"),
    refused("compare no methods", TypeError, lambda k: compared(k, []), "methods is []", "list of names"),
    refused("compare methods in one text", TypeError, lambda k: compared(k, "cc,idgp"), "list of names"),
    refused("compare classes", TypeError, lambda k: compared(k, {"cc": CAVL}), "'cc'", "models by name"),
    refused("compare an empty dict", ValueError, lambda k: compared(k, {}), "methods is empty"),
    refused(
        "compare with a misspelt setting",
        ValueError,
        lambda k: compared(k, settings={"epoch": 1}),
        "'epoch'",
        "cc",
    ),
    refused("compare with settings as text", TypeError, lambda k: compared(k, settings="epochs=1"), "dict"),
    refused(
        "compare with the seed among the settings",
        ValueError,
        lambda k: compared(k, settings={"random_state": 1}),
        "'random_state'",
        "leave it out",
    ),
    refused(
        "compare with one checkpoint for all",
        ValueError,
        lambda k: compared(k, settings={"checkpoint": "c"}),
        "'checkpoint'",
        "one fit",
    ),
    refused(
        "compare with a setting out of range", ValueError, lambda k: compared(k, settings={"epochs": 0}), "epochs"
    ),
    refused("compare in one fold", ValueError, lambda k: compared(k, cv=1), "2 or more"),
    refused("compare in more folds than rows", ValueError, lambda k: compared(k, cv=50), "40 rows"),
    refused("compare with folds as text", TypeError, lambda k: compared(k, cv="5"), "cv is '5'", "pass 5"),
    refused(
        "compare with a seed below 0", ValueError, lambda k: compared(k, random_state=-1), "random_state is -1"
    ),
    refused(
        "compare only methods that take no weights",
        ValueError,
        lambda k: oneof.compare(k.X, WeightedSets(k.S * 0.5), ["cavl"]),
        "cavl takes no weights",
    ),
    refused(
        "compare methods that need views without any", ValueError, lambda k: compared(k, ["pico"]), "several views"
    ),
    refused("compare trees on images", ValueError, lambda k: oneof.compare(k.images, k.S, ["em"]), "tables"),
    refused(
        "compare rows of which no set says anything", ValueError, lambda k: compared(k, y=k.S | True), "learn"
    ),
    refused("compare rows with other labels", ValueError, lambda k: compared(k, y=k.S[:30]), "X has 40 rows"),
]


def compared(kit, methods=("cc",), cv=2, y=None, **given):
    return oneof.compare(kit.X, kit.S if y is None else y, methods, cv, **given)


@parametrize(COMPARE_ROWS)
def test_comparisons(row, kit):
    carry_out(row, kit)


TOGETHER_ROWS = [
    refused(
        "a model instead of a list", TypeError, lambda k: oneof.fit_together(k.model(), [{}]), "models is CC("
    ),
    refused(
        "a class instead of a model", TypeError, lambda k: together(k, oneof.CC), "models[0] is", "oneof.IDGP()"
    ),
    refused("a name instead of a model", TypeError, lambda k: together(k, "cc"), "models[0] is 'cc'"),
    refused(
        "arguments that are no dict",
        TypeError,
        lambda k: oneof.fit_together([k.model()], [(k.X, k.S)]),
        "arguments[0] is",
        "dict",
    ),
    refused(
        "one dict instead of a list",
        TypeError,
        lambda k: oneof.fit_together([k.model()], {"X": k.X, "y": k.S}),
        "arguments is",
        "list",
    ),
    refused("arguments with a small x", ValueError, lambda k: together(k, k.model(), x=k.X), "'x'", "rename"),
    refused(
        "arguments without y",
        ValueError,
        lambda k: oneof.fit_together([k.model()], [{"X": k.X}]),
        "needs X and y",
    ),
    refused(
        "fewer arguments than models",
        ValueError,
        lambda k: oneof.fit_together([k.model(), k.model()], [{"X": k.X, "y": k.S}]),
        "2 models and 1",
    ),
    refused(
        "a model twice",
        ValueError,
        lambda k: (lambda model: together(k, model, model))(k.model()),
        "same object",
        "clone",
    ),
    refused(
        "two models with one checkpoint",
        ValueError,
        lambda k: together(k, k.model(checkpoint=k.folder / "c"), k.model(checkpoint=k.folder / "c")),
        "both have the checkpoint",
    ),
    refused("wrong rows in one of many", ValueError, lambda k: together(k, k.model(), X=k.X[:7]), "X has 7 rows"),
    refused(
        "an estimator for workers",
        TypeError,
        lambda k: oneof.fit_with_workers(GaussianNB(), k.X, k.S),
        "model is GaussianNB()",
        "oneof.PRODEN()",
    ),
    refused(
        "no workers", ValueError, lambda k: oneof.fit_with_workers(k.model(), k.X, k.S, workers=0), "workers is 0"
    ),
    refused(
        "a cluster without a name",
        ValueError,
        lambda k: oneof.fit_with_workers(k.model(), k.X, k.S, cluster=""),
        "cluster is ''",
        "'auto'",
    ),
    refused(
        "a number of GPUs",
        ValueError,
        lambda k: oneof.fit_with_workers(k.model(), k.X, k.S, gpus=2),
        "gpus is 2",
        "True or False",
    ),
    refused(
        "a method that workers cannot train",
        ValueError,
        lambda k: oneof.fit_with_workers(oneof.VALEN(), k.X, k.S),
        "VALEN cannot be trained by several workers",
    ),
    works("no models", lambda k: oneof.fit_together([], []), lambda models: models == []),
    works(
        "copies of a model", lambda k: together(k, *map(clone, [k.fitted] * 2)), lambda models: len(models) == 2
    ),
]


SETS = [["cat", "dog"], ["cow"], ["dog"]]
DECISION_ROWS = [
    refused("decisions in a number", TypeError, lambda kit: oneof.apply_decisions(SETS, 3), "3", "a dict"),
    refused(
        "a decision about a name",
        TypeError,
        lambda kit: oneof.apply_decisions(SETS, {"a": "cat"}),
        "'a'",
        "from 0",
    ),
    refused("a decision too far", ValueError, lambda kit: oneof.apply_decisions(SETS, {9: "cat"}), "9", "3 rows"),
    refused(
        "a decision for no class",
        ValueError,
        lambda kit: oneof.apply_decisions(SETS, {0: "pig"}),
        "'pig'",
        "'cat'",
    ),
    refused(
        "none of no kind", ValueError, lambda kit: oneof.apply_decisions(SETS, {}, none="keep"), "'keep'", "'drop'"
    ),
    refused(
        "decisions that leave nothing",
        ValueError,
        lambda kit: oneof.apply_decisions(SETS, dict.fromkeys(range(3)), none="drop"),
        "no row",
    ),
]

METHOD_ROWS = [
    refused(
        "check a model in place of its class",
        TypeError,
        lambda kit: check_method(oneof.CC()),
        "CC()",
        "the class itself",
    ),
    refused("check a method by name", TypeError, lambda kit: check_method("idgp"), "'idgp'", "must be a class"),
    refused(
        "check with settings in a list", TypeError, lambda kit: check_method(oneof.CC, ["lr"]), "['lr']", "dict"
    ),
    refused(
        "check with a misspelt setting",
        ValueError,
        lambda kit: check_method(oneof.CC, {"epoch": 3}),
        "'epoch'",
        "no such setting",
    ),
    refused(
        "expected failures without reasons",
        TypeError,
        lambda kit: check_method(oneof.CC, expected_failed_checks={"check_save"}),
        "expected_failed_checks is {'check_save'}",
        "dict",
    ),
]


@parametrize(
    [
        *DECISION_ROWS,
        *METHOD_ROWS,
        *LABEL_ROWS,
        *DATA_ROWS,
        *DISK_ROWS,
        *CORRUPT_ROWS,
        *THEORY_ROWS,
        *FILE_ROWS,
        *TOGETHER_ROWS,
    ]
)
def test_functions(row, kit):
    carry_out(row, kit)
