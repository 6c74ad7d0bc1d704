"""Arguments of any type, for every public function and method: the library itself refuses what does not work.

No error from inside torch, NumPy or pandas reaches a user. scikit-learn's own checks of rows and labels may speak,
since its contract wants their words (tests/test_sklearn.py).
"""

import datetime
import inspect
import traceback
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from PIL import Image

import oneof
from misuse.rows import LONGEST, is_ours

LETTERS = st.text("ab1|. \0é", max_size=4)  # no slash: some of these texts become files
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([2**70, 10**400, -0.0, 0.5, 1e300, float("inf"), float("nan"), 1j, pd.NA, pd.NaT]),
    LETTERS,
    st.binary(max_size=3),
    st.dates(),
    st.builds(Path, st.sampled_from(["a", "no/a", "."])),
)
DTYPES = ["?", "u1", "i4", "i8", "f2", "f4", "f8", "c8", "U2", "S2", "M8[ns]", "m8[s]", "O"]
ARRAYS = st.sampled_from(DTYPES).flatmap(
    lambda dtype: arrays(
        dtype,
        array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4),
        elements=LETTERS if dtype == "O" else None,
    )
)
NUMBERS = arrays("f8", st.sampled_from([(4, 3), (4,), (4, 2, 2), (3, 4), (1, 3)]), elements=st.floats(0, 1))
MATRICES = arrays("i8", st.sampled_from([(4, 3), (4, 2), (3, 3)]), elements=st.integers(0, 1))
TENSORS = [
    lambda array: torch.tensor(array).to(torch.bfloat16),
    lambda array: torch.tensor(array, requires_grad=True),
    lambda array: torch.tensor(array).to_sparse(),
    lambda array: torch.tensor(array, device="meta"),
    lambda array: torch.tensor(array).half(),
    lambda array: torch.tensor(array) > 0.5,
]
OTHERS = [
    object(),
    oneof.CC(),
    oneof.CC,
    len,
    np,
    range(4),
    memoryview(b"abcd"),
    np.ma.masked_array(np.eye(4, 3), mask=np.eye(4, 3)),
    np.zeros(4, dtype=[("a", int)]),
    scipy.sparse.eye_array(4, 3),
    scipy.sparse.coo_array(np.arange(4)),
    pd.DataFrame(np.eye(4, 3), columns=list("aab")),
    pd.DataFrame({"a": ["x"] * 4, "b": 1}),
    pd.DataFrame({"a": pd.Categorical(list("xyxy")), "b": pd.array([1, None, 2, 3], dtype="Int64")}),
    pd.DataFrame({"a": pd.date_range("2026", periods=4)}),
    pd.DataFrame(np.eye(4, 2), columns=pd.MultiIndex.from_tuples([("a", 1), ("b", 2)])),
    pd.DataFrame({"a": [1.0] * 4, 7: [2.0] * 4}),
    pd.DataFrame(),
    pd.Series(pd.interval_range(0, 4)),
    pd.Series(pd.period_range("2026", periods=4)),
    pd.Series([[1], [2, 3], [1], []]),
    pd.Index(list("abcd")),
    datetime.timedelta(1),
    [np.zeros(2), np.zeros(3)],
    [["a", ["b"]], ["c"]],
    [{"a": 1}] * 4,
    [10**400] * 4,
]
ANYTHING = st.one_of(
    SCALARS,
    st.lists(SCALARS, max_size=4),
    st.lists(st.lists(SCALARS, max_size=3), max_size=4),
    st.dictionaries(st.sampled_from(["X", "y", "a"]), SCALARS, max_size=2),
    st.frozensets(st.integers(0, 3) | LETTERS, max_size=3),
    st.lists(st.integers(0, 3), max_size=3).map(iter),
    ARRAYS,
    NUMBERS,
    MATRICES,
    NUMBERS.map(lambda array: pd.DataFrame(array.reshape(-1, 1))),
    st.builds(lambda make, array: make(array), st.sampled_from(TENSORS), NUMBERS),
    st.sampled_from(OTHERS),
)

rng = np.random.default_rng(0)
S = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0]], dtype=bool)
X = S + 0.1 * rng.normal(size=S.shape)


def model(method=oneof.CC, **settings):
    return method(network="linear", epochs=1, device="cpu", random_state=0, **settings)


def em(**settings):
    return oneof.EMClassifier("logistic", folds=2, random_state=0, **settings)


FITTED, EM = model().fit(X, S), em().fit(X, S)
IDGP, MEMBERSHIP = (model(method, warm_up=0).fit(X, S) for method in (oneof.IDGP, oneof.Membership))
MIXED = pd.DataFrame({"a": [1, None, 2, 3], "b": list("xyxy"), "c": pd.date_range("2026", periods=4)})
PIPE = oneof.make_pipeline(oneof.TableEncoder(), model()).fit(MIXED, S)
GIVEN = {"X": X, "y": S}
DATA = {"x": X, "candidates": S, "y": np.array([0, 1, 2, 0]), "classes": ["a", "b", "c"], "name": "made"}


def write_files():
    """Write what the calls below read."""
    Path("table.csv").write_text("file,candidates\na.png,a|b\nb.png,b\n")
    for name in ("a.png", "b.png"):
        Image.new("L", (4, 4)).save(name)
    FITTED.save("model")
    LONG.to_csv("long.csv", index=False)


LONG = pd.DataFrame({"task": [1, 1, 2], "worker": ["a", "b", "a"], "label": ["x", "y", "y"]})

# What is called, and with which good arguments beside the one that is tried.
CALLS = {
    "fit": (
        lambda **given: model().fit(**given),
        GIVEN | {"sample_weight": None, "X_val": X, "y_val": S, "callbacks": (), "classes": [0, 1, 2]},
    ),
    "predict": (FITTED.predict, {"X": X}),
    "predict_top": (FITTED.predict_top, {"X": X, "k": 2}),
    "predict_proba": (FITTED.predict_proba, {"X": X}),
    "predict_log_proba": (FITTED.predict_log_proba, {"X": X}),
    "score": (FITTED.score, GIVEN | {"sample_weight": np.ones(4)}),
    "disambiguate": (FITTED.disambiguate, GIVEN),
    "distractor_proba": (IDGP.distractor_proba, {"X": X}),
    "membership_proba": (MEMBERSHIP.membership_proba, {"X": X}),
    "save": (FITTED.save, {"path": "model", "card": True}),
    "card": (FITTED.card, {"chosen": "By hand."}),
    "to_onnx": (FITTED.to_onnx, {"path": "model.onnx"}),
    "EMClassifier.fit": (
        lambda **given: em().fit(**given),
        GIVEN | {"sample_weight": None, "separator": None, "classes": None},
    ),
    "EMClassifier.predict_proba": (EM.predict_proba, {"X": X}),
    "EMClassifier.score": (EM.score, GIVEN | {"sample_weight": np.ones(4)}),
    "EMClassifier.disambiguate": (EM.disambiguate, GIVEN),
    "TableEncoder.fit": (lambda **given: oneof.TableEncoder(**given).fit(X), {"kinds": {}}),
    "TableEncoder.fit_transform": (lambda **given: oneof.TableEncoder().fit_transform(**given), {"X": X}),
    "TableEncoder.transform": (oneof.TableEncoder().fit(MIXED).transform, {"X": MIXED}),
    "make_pipeline": (lambda **given: oneof.make_pipeline(oneof.TableEncoder(), model()).fit(**given), GIVEN),
    "Pipeline.disambiguate": (PIPE.disambiguate, {"X": MIXED, "y": S}),
    "Pipeline.save": (PIPE.save, {"path": "model", "card": "By hand."}),
    "CandidateKFold": (oneof.CandidateKFold, {"n_splits": 3, "shuffle": True, "random_state": 0}),
    "CandidateKFold.split": (lambda **given: list(oneof.CandidateKFold(2).split(**given)), GIVEN),
    "apply_decisions": (
        oneof.apply_decisions,
        {"y": ["a", "b", "a"], "decisions": {0: "b"}, "classes": ["a", "b"], "none": "drop", "ids": None},
    ),
    "disambiguate probabilities": (
        oneof.disambiguate,
        {"probabilities": [[0.2, 0.8], [0.5, 0.5]], "y": ["a", "a|b"], "classes": ["a", "b"], "separator": "|"},
    ),
    "SCORERS": (lambda **given: oneof.SCORERS["covering_rate"](FITTED, **given), GIVEN),
    "SCORERS accuracy": (lambda **given: oneof.SCORERS["accuracy"](FITTED, **given), {"X": X, "y": [0, 1, 2, 0]}),
    "embed": (
        oneof.embed,
        {"items": ["a.png"], "model": "hf:none", "text": False, "batch_size": 1, "device": "cpu"},
    ),
    "encode": (oneof.encode, {"y": ["a", "b", "a"], "classes": ["a", "b"], "separator": "|"}),
    "encode a matrix": (oneof.encode, {"y": S, "classes": ["a", "b", "c"], "sparse_output": True}),
    "from_complementary": (oneof.from_complementary, {"y": ["a", "b"], "classes": ["a", "b", "c"]}),
    "from_votes": (
        oneof.from_votes,
        {"votes": [["a", "b"]], "classes": ["a", "b"], "min_votes": 1, "separator": "|", "denial": "not "},
    ),
    "from_votes long": (
        oneof.from_votes,
        {"votes": LONG, "long": ("task", "worker", "label"), "tasks": [1, 2], "aggregate": None},
    ),
    "vote_counts": (oneof.vote_counts, {"counts": [[1, 2], [0, 3]], "classes": ["a", "b"], "min_votes": 1}),
    "convert": (
        oneof.convert,
        {"source": "long.csv", "target": "made.npz", "from_format": "crowd-kit", "to_format": "cleanlab"}
        | {
            "tasks": None,
            "labelled": False,
            "field": "label",
            "about": "text",
            "long": ("task", "worker", "label"),
        },
    ),
    "read_annotations": (
        oneof.read_annotations,
        {"path": "table.csv", "format": "table", "candidates": "candidates", "separator": "|", "id": "file"},
    ),
    "read_annotations votes": (
        lambda votes: oneof.read_annotations("long.csv", "table", votes=votes),
        {"votes": ["task", "worker"]},
    ),
    "write_annotations": (
        lambda **given: oneof.write_annotations(**given),
        {"annotations": None, "path": "made.csv", "format": "table"},
    ),
    "Annotations.suggest": (
        lambda **given: oneof.read_annotations("table.csv").suggest(**given),
        {"labels": ["a", "b"], "scores": [0.5, 1]},
    ),
    "WeightedSets": (oneof.WeightedSets, {"weights": [[1, 0.5], [0, 3]], "classes": ["a", "b"]}),
    "WeightedSets rows": (oneof.WeightedSets([[1, 0.5], [0, 3]]).__getitem__, {"rows": [0]}),
    "PartialLabels": (oneof.PartialLabels, DATA),
    "PartialLabels.take": (oneof.PartialLabels(**DATA).take, {"rows": [0]}),
    "PartialLabels.with_candidates": (oneof.PartialLabels(**DATA).with_candidates, {"candidates": S}),
    "fit_together": (oneof.fit_together, {"models": [model()], "arguments": [GIVEN]}),
    "fit_together one": (lambda given: oneof.fit_together([model()], [given]), {"given": GIVEN}),
    "fit_together model": (lambda one: oneof.fit_together([one], [GIVEN]), {"one": model()}),
    "fit_with_workers": (
        lambda **given: oneof.fit_with_workers(given.pop("model"), **given),
        {"model": oneof.VALEN(), "X": GIVEN["X"], "y": GIVEN["y"], "workers": 2, "cluster": None, "gpus": False},
    ),
    "outside_rate": (
        lambda **given: oneof.outside_rate(given.pop("model"), **given),
        GIVEN | {"model": model(), "folds": 2, "random_state": 0, "separator": None},
    ),
    "resolve": (
        lambda **given: oneof.resolve(given.pop("model"), **given),
        GIVEN | {"model": model(), "folds": 2, "random_state": 0, "separator": None},
    ),
    "compare": (
        lambda **given: oneof.compare(**given),
        GIVEN
        | {"methods": ["cc"], "cv": 2, "settings": {"epochs": 1, "network": "linear"}, "sample_weight": None}
        | {"random_state": 0, "verbose": 0},
    ),
    "load_dataset": (lambda name: oneof.load_dataset(name, "no"), {"name": "nothing"}),
    "load_images": (
        oneof.load_images,
        {
            "table": "table.csv",
            "folder": ".",
            "candidates": "candidates",
            "file": "file",
            "separator": "|",
            "size": 4,
            "cache": False,
            "workers": 1,
        },
    ),
    "open_table": (
        oneof.open_table,
        {
            "table": "table.csv",
            "candidates": "candidates",
            "separator": "|",
            "ids": ["id"],
            "drop": ["day"],
            "cache": ".",
            "progress": False,
            "encoder": oneof.TableEncoder(),
        },
    ),
    "load_model": (oneof.load_model, {"path": "model", "device": "cpu", "methods": {}}),
}
ARGUMENTS = [pytest.param(call, name, id=f"{call}-{name}") for call, (_, good) in CALLS.items() for name in good]


def test_every_public_name_is_called():
    classes = {name for name in oneof.__all__ if inspect.isclass(getattr(oneof, name)) and name != "PartialLabels"}
    assert {name.split()[0].split(".")[0] for name in CALLS} >= {*oneof.__all__} - classes - {"METHODS"}
    public = {name for name in vars(oneof.estimator.classifier.PartialLabelClassifier) if not name.startswith("_")}
    # `fit` passes all to `prepare`; the other methods take no data.
    engine = {"prepare", "finish", "evaluate", "set_fit_request", "set_score_request"}
    assert {name for name in public if callable(getattr(FITTED, name, None))} - engine <= CALLS.keys()


@pytest.mark.parametrize(("call", "argument"), ARGUMENTS)
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(value=ANYTHING)
def test_any_argument(call, argument, value, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_files()
    function, good = CALLS[call]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            function(**good | {argument: value})
    except (ValueError, TypeError, OSError) as error:
        check_error(error)


def check_error(error):
    where = traceback.format_exception(error)
    assert 0 < len(str(error)) <= LONGEST, where
    assert (is_ours(error) and "\n" not in str(error)) or is_of_scikit_learn(error), where


def is_of_scikit_learn(error):
    innermost = Path(traceback.extract_tb(error.__traceback__)[-1].filename)
    return innermost.parts[-3:-1] == ("sklearn", "utils") and innermost.name in ("validation.py", "multiclass.py")
