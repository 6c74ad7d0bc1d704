"""EMClassifiers on disk: every form predicts the same numbers again, and what is damaged is refused."""

import json
import pickle
from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
import safetensors
import safetensors.torch
import torch
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import oneof

EM = oneof.EMClassifier
SMALL = {"n_estimators": 7}
INSIDE = {
    "logistic": lambda: "logistic",
    "extra-trees": lambda: "extra-trees",
    "a linear model": lambda: LogisticRegression(C=0.3),
    "a scaled linear model": lambda: make_pipeline(StandardScaler(), LogisticRegression()),
    "a tree": lambda: DecisionTreeClassifier(max_depth=3),
    "a forest": lambda: RandomForestClassifier(6, criterion="entropy"),
    "extra trees": lambda: ExtraTreesClassifier(6, max_features=None, random_state=3),
    "lightgbm": lambda: pytest.importorskip("lightgbm") and "lightgbm",
    "LightGBM": lambda: pytest.importorskip("lightgbm").LGBMClassifier(n_estimators=4, verbose=-1, n_jobs=1),
    "xgboost": lambda: pytest.importorskip("xgboost") and "xgboost",
    "XGBoost": lambda: pytest.importorskip("xgboost").XGBClassifier(n_estimators=4, max_depth=2, n_jobs=1),
}


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("inside", INSIDE.values(), ids=INSIDE)
def test_round_trip(inside, classes, blobs, tmp_path):
    X, S, _ = blobs
    S = S[:, :classes] | ~S[:, :classes].any(1, keepdims=True)
    names = np.array(["cat", "cow", "dog"])[:classes]
    frame = pd.DataFrame(X, columns=["w", "x", "y", "z"])
    sets = [names[row].tolist() for row in S]
    model = EM(inside(), rounds=2, random_state=0).fit(frame, sets)
    path = tmp_path / "model.safetensors"
    model.save(path)
    again = oneof.load_model(path)
    assert type(again) is EM
    for x in (frame, frame.astype(np.float32), frame * 1e3):
        assert np.array_equal(again.predict_proba(x), model.predict_proba(x))
    assert np.array_equal(again.predict(frame), model.predict(frame))
    assert np.array_equal(again.transduction_, model.transduction_)
    assert np.array_equal(again.label_distributions_, model.label_distributions_)
    assert again.history_ == model.history_
    assert again.feature_names_in_.tolist() == list("wxyz")
    assert again.rounds == 2
    for have, want in zip(again.disambiguate(frame, sets), model.disambiguate(frame, sets), strict=True):
        assert np.array_equal(have, want)
    with pytest.raises(ValueError, match="feature names"):
        again.predict(frame[["x", "w", "y", "z"]])
    again.save(tmp_path / "second")
    assert (tmp_path / "second").read_bytes() == path.read_bytes()
    # What was loaded can be copied and be fitted anew.
    for copied in (deepcopy(again), pickle.loads(pickle.dumps(again))):
        assert np.array_equal(copied.predict_proba(frame), model.predict_proba(frame))
    assert again.set_params(random_state=0).fit(frame, sets).predict_proba(frame).shape == (40, classes)


def test_settings_of_a_classifier_survive(blobs, tmp_path):
    X, S, _ = blobs
    EM(make_pipeline(StandardScaler(), LogisticRegression(C=0.25, max_iter=77)), random_state=0).fit(X, S).save(
        tmp_path / "a"
    )
    pipeline = oneof.load_model(tmp_path / "a").estimator
    assert [type(step).__name__ for _, step in pipeline.steps] == ["StandardScaler", "LogisticRegression"]
    assert pipeline[-1].C == 0.25
    assert pipeline[-1].max_iter == 77
    EM("extra-trees", parameters={"n_estimators": np.int64(3)}, tol=0.5).fit(X, S).save(tmp_path / "b")
    again = oneof.load_model(tmp_path / "b")
    assert (again.estimator, again.parameters, again.tol) == ("extra-trees", {"n_estimators": 3}, 0.5)


def test_a_forest_is_that_of_scikit_learn_on_real_digits(digits, tmp_path):
    X, S, _ = digits
    model = EM("random-forest", parameters={"n_estimators": 25}, rounds=1, random_state=0).fit(X[:600], S[:600])
    model.save(tmp_path / "m")
    assert np.array_equal(oneof.load_model(tmp_path / "m").predict_proba(X), model.predict_proba(X))


def test_a_model_of_one_class_is_kept(tmp_path):
    X, frame = np.arange(4.0)[:, None], pd.DataFrame({"a": [1, 1, 1, 1], "b": [0, 0, 0, 0]})
    with pytest.warns(UserWarning, match="of no training row"):
        model = EM("logistic").fit(X, frame)
    model.save(tmp_path / "m")
    assert oneof.load_model(tmp_path / "m").predict_proba(X).tolist() == [[1.0, 0.0]] * 4


@pytest.mark.parametrize(
    "inside",
    [HistGradientBoostingClassifier(max_iter=2), make_pipeline(MinMaxScaler(), LogisticRegression())],
    ids=["boosting", "another scaler"],
)
def test_other_classifiers_are_refused(inside, blobs, tmp_path):
    X, S, _ = blobs
    with pytest.raises(
        ValueError, match=r"cannot hold a fitted \w+; it holds LogisticRegression.*fit one of these"
    ):
        EM(inside, rounds=1).fit(X, S).save(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_a_subclass_is_not_taken_for_its_base(blobs, tmp_path):
    class Sharp(LogisticRegression):
        def predict_proba(self, x):
            return np.eye(3)[super().predict_proba(x).argmax(1)]

    X, S, _ = blobs
    with pytest.raises(ValueError, match="cannot hold a fitted Sharp"):
        EM(Sharp(), rounds=1).fit(X, S).save(tmp_path / "m")


def test_a_device_has_no_effect(blobs, tmp_path):
    X, S, _ = blobs
    EM("logistic").fit(X, S).save(tmp_path / "m")
    with pytest.warns(UserWarning, match="no network and no device"):
        oneof.load_model(tmp_path / "m", network=torch.nn.Linear(1, 1))


# --- damage ------------------------------------------------------------------------------------------------------


def rewrite(path, facts=None, arrays=None, forge=False):
    """Change a file: its header, or arrays of the form; with ``forge`` the checksum is made anew."""
    from oneof.em.model_file import _checksum

    with safetensors.safe_open(path, framework="pt") as file:
        header = json.loads(file.metadata()["oneof"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    tensors |= {name: torch.as_tensor(array) for name, array in (arrays or {}).items()}
    header |= facts or {}
    if forge:
        header["sha256"] = _checksum(
            {
                name.removeprefix("form."): each.numpy()
                for name, each in tensors.items()
                if name.startswith("form.")
            }
        )
    path.write_bytes(safetensors.torch.save(tensors, {"oneof": json.dumps(header)}))


def nodes(change):
    """Change the arrays of a forest by a function."""

    def rewritten(tensors):
        arrays = {name: tensor.numpy().copy() for name, tensor in tensors.items()}
        change(arrays)
        return arrays

    return rewritten


DAMAGE = {
    "a class that is not known": ({"estimator": {"name": "SVC", "scaled": False, "parameters": {}}}, {}, "SVC"),
    "a name that is not known": ({"estimator": "os.system"}, {}, "estimator of EMClassifier is 'os.system'"),
    "a parameter that is not known": (
        {"estimator": {"name": "LogisticRegression", "scaled": False, "parameters": {"evil": 1}}},
        {},
        "does not take its parameters",
    ),
    "a form that is not known": ({"form": "pickle"}, {}, "form is 'pickle'"),
    "another form": ({"form": "linear"}, {}, "form.coef"),
    "no columns": ({"columns": []}, {}, "columns"),
    "columns beyond the classes": ({"columns": [0, 1, 7]}, {}, "rising numbers of the 3 classes"),
    "a column of a huge number": ({"columns": [0, 1, 10**30]}, {}, "rising numbers of the 3 classes"),
    "columns that are text": ({"columns": ["0"]}, {}, "columns[0]"),
    "fewer classes": ({"classes": [0, 1]}, {}, "label_distributions"),
    "no features": ({"n_features_in": 0}, {}, "n_features_in is 0"),
    "fewer features": ({"n_features_in": 1}, {}, "features that there are not"),
    "images": ({"input_shape": [1, 2, 2]}, {}, "input_shape"),
    "a setting that is not known": ({"parameters": {"evil": 1}}, {}, "setting 'evil'"),
    "rounds that cannot be": (
        {"parameters": {"parameters": None, "rounds": 0, "folds": 5, "tol": 0.1}}, {}, "rounds"
    ),
    "a loop": ({}, {"form.left": lambda left: np.where(left >= 0, 0, left)}, "nodes or features"),
    "children beyond the end": ({}, {"form.right": lambda right: np.where(right >= 0, 10**6, right)}, "nodes"),
    "features beyond the row": ({}, {"form.feature": lambda feature: feature + 10**6}, "features"),
    "roots beyond the end": ({}, {"form.roots": lambda roots: roots + 10**6}, "roots"),
    "no trees": ({}, {"form.roots": lambda roots: roots[:0]}, "roots"),
    "leaves of NaN": ({}, {"form.value": lambda value: value * np.nan}, "form.value"),
    "leaves that sum to 2": ({}, {"form.value": lambda value: value * 2}, "no distributions"),
    "thresholds of another kind": ({}, {"form.threshold": lambda t: t.astype(np.int64)}, "form.threshold"),
    "fewer thresholds": ({}, {"form.threshold": lambda t: t[:-1]}, "form.threshold"),
    "an array more": ({}, {"form.feature": lambda f: f, "form.more": None}, "form.more"),
}  # fmt: skip


@pytest.mark.parametrize(("facts", "arrays", "words"), DAMAGE.values(), ids=DAMAGE)
def test_what_is_tampered_with_is_refused(facts, arrays, words, blobs, tmp_path):
    X, S, _ = blobs
    EM("extra-trees", parameters={"n_estimators": 3}, random_state=0).fit(X, S).save(tmp_path / "m")
    with safetensors.safe_open(tmp_path / "m", framework="pt") as file:
        changed = {
            name: np.zeros(1) if change is None else change(file.get_tensor(name).numpy())
            for name, change in arrays.items()
        }
    rewrite(tmp_path / "m", facts, changed, forge=True)
    with pytest.raises(ValueError, match="does not hold what its header promises") as found:
        oneof.load_model(tmp_path / "m")
    assert words in str(found.value)
    assert len(str(found.value)) < 400
    assert "\n" not in str(found.value)


@pytest.mark.parametrize("name", ["extra-trees", "lightgbm", "xgboost"])
def test_a_changed_byte_is_seen(name, blobs, tmp_path):
    if name != "extra-trees":
        pytest.importorskip(name)
    X, S, _ = blobs
    EM(name, parameters={"n_estimators": 3}, random_state=0).fit(X, S).save(tmp_path / "m")
    with safetensors.safe_open(tmp_path / "m", framework="pt") as file:
        array = next(key for key in ("form.text", "form.value") if key in file.keys())  # noqa: SIM118
        changed = file.get_tensor(array).numpy().copy()
    changed.flat[len(changed) // 2] += 1
    rewrite(tmp_path / "m", arrays={array: changed})
    with pytest.raises(ValueError, match="are not those that were saved"):
        oneof.load_model(tmp_path / "m")


@pytest.mark.parametrize("name", ["lightgbm", "xgboost"])
def test_text_that_a_library_cannot_read_is_refused(name, blobs, tmp_path):
    pytest.importorskip(name)
    X, S, _ = blobs
    EM(name, parameters={"n_estimators": 3}, random_state=0).fit(X, S).save(tmp_path / "m")
    rewrite(tmp_path / "m", arrays={"form.text": np.frombuffer(b"no trees", np.uint8).copy()}, forge=True)
    with pytest.raises(ValueError, match=f"{name} cannot read its trees"):
        oneof.load_model(tmp_path / "m")
