"""Pipelines that end with a method: they disambiguate, and are saved whole without pickle."""

import datetime
import json

import numpy as np
import pandas as pd
import pytest
import sklearn.pipeline
import torch
from sklearn.base import clone
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import oneof
from oneof.io import tensors as tensor_file

rng = np.random.default_rng(0)
T = np.arange(60) % 3
NAMES = np.array(["cat", "cow", "dog"])
TEXTS = [" ".join(rng.choice([["purrs"], ["grazes"], ["barks"]][t] + ["old", "young", "quiet"], 5)) for t in T]
FRAME = pd.DataFrame(
    {"size": rng.normal(T, 0.3).round(2), "colour": rng.choice(["red", "blue"], 60), "note": TEXTS}
)
FRAME.loc[:5, "size"] = np.nan
SETS = [[*{NAMES[t], NAMES[rng.integers(3)]}] for t in T]


def cc(**settings):
    return oneof.CC(epochs=20, device="cpu", random_state=0, **settings)


MODELS = {"cc": cc(), "em": oneof.EMClassifier("logistic", rounds=2, random_state=0)}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_a_mixed_frame_is_learnt_from_saved_and_loaded(model, tmp_path):
    pipe = oneof.make_pipeline(oneof.TableEncoder({"colour": "category"}), clone(model)).fit(FRAME, SETS)
    assert pipe.score(FRAME, NAMES[T]) > 0.8
    encoded = oneof.TableEncoder({"colour": "category"}).fit_transform(FRAME)
    alone = clone(model).fit(encoded, SETS)
    np.testing.assert_array_equal(pipe.predict_proba(FRAME), alone.predict_proba(encoded))
    pipe.save(tmp_path / "m")
    again = oneof.load_model(tmp_path / "m")
    np.testing.assert_array_equal(again.predict_proba(FRAME), pipe.predict_proba(FRAME))
    assert again.disambiguate(FRAME, SETS).label.tolist() == alone.disambiguate(encoded, SETS).label.tolist()
    assert again.feature_names_in_.tolist() == [*FRAME]
    for name in ("transduction_", "label_distributions_", "classes_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(alone, name))
    assert again.history_ == alone.history_
    again.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "m").read_bytes()
    assert b"pickle" not in (tmp_path / "m").read_bytes()


STEPS = {
    "scaled": [StandardScaler()],
    "not centred": [StandardScaler(with_mean=False)],
    "components": [StandardScaler(), PCA(2, whiten=True)],
    "passed on": ["passthrough", StandardScaler(with_std=False)],
}


@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
def test_steps_of_scikit_learn_are_saved(steps, tmp_path):
    X = rng.normal(size=(60, 4)) + np.eye(3, 4)[T]
    if steps[-1].get_params().get("with_std") is False:
        with pytest.raises(ValueError, match="cannot hold the step 'standardscaler' without scale_"):
            oneof.make_pipeline(*map(clone_step, steps), cc()).fit(X, SETS).save(tmp_path / "m")
        return
    pipe = oneof.make_pipeline(*map(clone_step, steps), cc()).fit(X, SETS)
    pipe.save(tmp_path / "m")
    np.testing.assert_array_equal(oneof.load_model(tmp_path / "m").predict_proba(X), pipe.predict_proba(X))


def clone_step(step):
    return step if isinstance(step, str) else clone(step)


def test_texts_are_saved_with_their_words(tmp_path):
    words = TfidfVectorizer(ngram_range=(1, 2), stop_words=["old"], dtype=np.float32)
    pipe = oneof.make_pipeline(words, TruncatedSVD(5, random_state=0), cc()).fit(TEXTS, SETS)
    pipe.save(tmp_path / "m")
    again = oneof.load_model(tmp_path / "m")
    assert again[0].get_params()["ngram_range"] == (1, 2)
    np.testing.assert_array_equal(again.predict_proba(TEXTS), pipe.predict_proba(TEXTS))
    assert pipe.score(TEXTS, NAMES[T]) > 0.7


def test_the_pipeline_of_scikit_learn_becomes_ours():
    pipe = sklearn.pipeline.make_pipeline(oneof.TableEncoder(), cc()).fit(FRAME, SETS)
    ours = oneof.Pipeline(pipe.steps)
    assert ours.disambiguate(FRAME, SETS).label.tolist() == ours.transduction_.tolist()


def test_scikit_learn_splits_frames_for_it():
    matrix, _ = oneof.encode(SETS)
    scores = cross_val_score(oneof.make_pipeline(oneof.TableEncoder(), cc()), FRAME, matrix, cv=3)
    assert scores.mean() > 0.45  # of 1 / 3 by chance


@pytest.mark.parametrize(
    ("steps", "act", "error", "message"),
    [
        (
            [MinMaxScaler(), cc()],
            "save",
            ValueError,
            "cannot hold the step 'minmaxscaler', a MinMaxScaler; it holds",
        ),
        (
            [StandardScaler(), LogisticRegression()],
            "save",
            AttributeError,
            "LogisticRegression, which has no save",
        ),
        (
            [StandardScaler(), LogisticRegression()],
            "disambiguate",
            AttributeError,
            "LogisticRegression, which has no disambiguate; end the pipeline with a classifier of oneof",
        ),
    ],
)
def test_what_cannot_be_kept_is_refused(steps, act, error, message, tmp_path):
    X = rng.normal(size=(60, 4))
    pipe = oneof.make_pipeline(*steps).fit(X, NAMES[T])
    with pytest.raises(error, match=message):
        pipe.save(tmp_path / "m") if act == "save" else pipe.disambiguate(X, NAMES[T])
    assert not list(tmp_path.iterdir())


def test_a_callable_is_no_parameter_that_a_file_holds(tmp_path):
    pipe = oneof.make_pipeline(TfidfVectorizer(tokenizer=str.split, token_pattern=None), TruncatedSVD(2), cc())
    with pytest.raises(ValueError, match="cannot hold tokenizer of the step 'tfidfvectorizer'"):
        pipe.fit(TEXTS, SETS).save(tmp_path / "m")


@pytest.mark.parametrize(
    "damage",
    [
        lambda facts, tensors: facts.pop("steps"),
        lambda facts, tensors: facts["steps"][0].update(kind="Unpickler"),
        lambda facts, tensors: facts["steps"][0].update(name="cc"),
        lambda facts, tensors: facts["steps"][0].update(name="a__b"),
        lambda facts, tensors: facts["steps"][0]["facts"].update(columns=["a"]),
        lambda facts, tensors: facts["steps"][1]["facts"].update(parameters={"no": 1}),
        lambda facts, tensors: facts["model"].pop("classes"),
        lambda facts, tensors: tensors.pop("step1.scale_"),
        lambda facts, tensors: tensors.update({"step1.scale_": -tensors["step1.scale_"]}),
        lambda facts, tensors: tensors.update({"step1.mean_": tensors["step1.mean_"][:1]}),
        lambda facts, tensors: tensors.update({"step7.more": torch.zeros(2)}),
        lambda facts, tensors: tensors.update({"step0.0.median": torch.zeros(9, dtype=torch.float64)}),
    ],
)
def test_damaged_files_are_one_sentence(damage, tmp_path):
    pipe = oneof.make_pipeline(oneof.TableEncoder(), StandardScaler(), cc()).fit(FRAME, SETS)
    pipe.save(tmp_path / "m")
    tensors, facts = tensor_file.read(tmp_path / "m", "model")
    facts = json.loads(json.dumps({key: value for key, value in facts.items() if key not in ("kind", "version")}))
    damage(facts, tensors)
    tensor_file.write(tmp_path / "m", "model", tensors, facts)
    with pytest.raises(ValueError, match="does not hold what its header promises") as caught:
        oneof.load_model(tmp_path / "m")
    assert "\n" not in str(caught.value)


def test_cells_at_the_edges_of_numbers_and_dates():
    late, early = datetime.date(2263, 1, 1), datetime.date(2000, 1, 1)
    encoder = oneof.TableEncoder().fit(pd.DataFrame({"day": [late, early] * 2}))
    days = encoder.transform(pd.DataFrame({"day": [late, early]}))[:, 0]
    assert days[0] - days[1] == (late - early).days
    with pytest.raises(ValueError, match="holds an integer of 1329 bits in row 0"):
        oneof.TableEncoder().fit(pd.DataFrame({"size": [10**400, 2]}))
