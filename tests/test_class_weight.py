"""class_weight and warm_start: what they mean for candidate sets, in stacks, checkpoints and files."""

import numpy as np
import pytest
import torch
from sklearn.utils.class_weight import compute_class_weight

import oneof
from conftest import MEMBERS
from oneof.estimator.class_weights import class_weighted

TINY = {"network": "linear", "epochs": 4, "batch_size": 20, "device": "cpu", "random_state": 0}
every = pytest.mark.parametrize("method", MEMBERS.values(), ids=MEMBERS)


def weighted_rows(class_weight, S, weight=None, names=("a", "b", "c")):
    weight = np.ones(len(S)) if weight is None else weight
    return class_weighted(class_weight, weight, np.asarray(S), np.array(names))


def test_a_row_counts_by_the_mean_weight_of_its_candidates(blobs):
    _, S, _ = blobs
    rng = np.random.default_rng(0)
    c, w, pi = {"a": 2.0, "c": 0.5}, rng.random(len(S)), S * rng.random(S.shape)
    for sets in (S, pi):
        want = []
        for i in range(len(S)):
            total = sum(float(sets[i, j]) for j in range(3))
            want.append(w[i] * sum(float(sets[i, j]) / total * c.get("abc"[j], 1.0) for j in range(3)))
        np.testing.assert_allclose(weighted_rows(c, sets, w), want, rtol=1e-12)


def test_balanced_is_that_of_scikit_learn_on_plain_labels_and_expected_frequencies_on_sets(blobs):
    _, S, _ = blobs
    y = np.array([0] * 6 + [1] * 3 + [2])
    c = compute_class_weight("balanced", classes=np.arange(3), y=y)
    np.testing.assert_allclose(weighted_rows("balanced", np.eye(3, dtype=bool)[y]), c[y], rtol=1e-12)
    frequency = [sum(S[i, j] / S[i].sum() for i in range(len(S))) for j in range(3)]
    c = [len(S) / (3 * n) for n in frequency]
    want = [np.mean([c[j] for j in range(3) if S[i, j]]) for i in range(len(S))]
    np.testing.assert_allclose(weighted_rows("balanced", S), want, rtol=1e-12)
    assert np.isfinite(weighted_rows("balanced", np.eye(3, dtype=bool)[[0, 1, 1]])).all(), "a class without rows"


@every
def test_class_weights_are_weights_of_rows(method, blobs):
    """Every method: the same bits as with the weights of rows that the formula gives."""
    X, S, _ = blobs
    given = {0: 3.0, 1: 0.5}
    by_class = method(class_weight=given, **TINY).fit(X, S)
    by_row = method(**TINY).fit(X, S, sample_weight=weighted_rows(given, S, names=(0, 1, 2)))
    plain = method(**TINY).fit(X, S)
    np.testing.assert_array_equal(by_class.predict_proba(X), by_row.predict_proba(X))
    assert not np.array_equal(by_class.predict_proba(X), plain.predict_proba(X))


def test_trials_of_a_stack_may_differ_in_class_weights(blobs):
    X, S, _ = blobs
    settings = TINY | {"batch_size": 16}
    weights = [None, "balanced", {0: 5.0}]
    alone = [oneof.IDGP(class_weight=c, warm_up=1, **settings).fit(X, S).predict_proba(X) for c in weights]
    models = [oneof.IDGP(class_weight=c, warm_up=1, **settings) for c in weights]
    oneof.fit_together(models, [{"X": X, "y": S}] * 3)
    for model, want in zip(models, alone, strict=True):
        np.testing.assert_allclose(model.predict_proba(X), want, rtol=1e-4, atol=1e-6)


def test_a_checkpoint_belongs_to_its_class_weights(blobs, tmp_path):
    X, S, _ = blobs
    path = tmp_path / "c"
    oneof.CC(class_weight={0: 2.0}, checkpoint=path, **TINY).fit(X, S)
    oneof.CC(class_weight={0: 2.0}, checkpoint=path, **TINY).fit(X, S)
    with pytest.raises(ValueError, match="class_weight was"):
        oneof.CC(class_weight={0: 3.0}, checkpoint=path, **TINY).fit(X, S)


def test_a_rare_class_is_found_more_often_when_balanced():
    rng = np.random.default_rng(0)
    y = np.array([0] * 270 + [1] * 30)
    X = rng.normal(size=(300, 2)) + 1.2 * y[:, None]
    S = np.eye(3, dtype=bool)[y] | (rng.random((300, 3)) < 0.2)
    recall = [
        (oneof.CC(class_weight=c, **TINY | {"epochs": 30}).fit(X, S).predict(X)[y == 1] == 1).mean()
        for c in (None, "balanced")
    ]
    assert recall[1] > recall[0] + 0.1


# --- warm_start -----------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:warm_up is 1")
@every
def test_a_second_fit_goes_on_from_the_weights_of_the_first(method, blobs):
    """With a learning rate that changes nothing, the second fit ends where the first did; cold, it does not."""
    X, S, _ = blobs
    model = method(warm_start=True, **TINY | {"epochs": 15}).fit(X, S)
    before = {name: tensor.clone() for name, tensor in model.weights().items()}
    model.set_params(lr=1e-12, weight_decay=0.0, epochs=1).fit(X[:40], S[:40])
    for name, tensor in model.weights().items():
        if name.startswith("network_.") and tensor.is_floating_point():
            torch.testing.assert_close(tensor, before[name], rtol=1e-4, atol=1e-6)
    cold = method(**TINY | {"lr": 1e-12, "epochs": 1}).fit(X[:40], S[:40])
    assert not np.allclose(cold.predict_proba(X), model.predict_proba(X), atol=1e-2)


def test_the_scaling_stays_that_of_the_first_fit(blobs):
    X, S, _ = blobs
    model = oneof.CC(warm_start=True, **TINY).fit(X, S)
    mean = model.scaler_.mean.clone()
    model.fit(X + 100, S)
    torch.testing.assert_close(model.scaler_.mean, mean)


def test_a_first_fit_is_the_same_with_and_without(blobs):
    X, S, _ = blobs
    warm, cold = (oneof.IDGP(warm_start=each, warm_up=1, **TINY).fit(X, S) for each in (True, False))
    np.testing.assert_array_equal(warm.predict_proba(X), cold.predict_proba(X))


def test_fits_that_went_on_together_are_those_that_went_on_alone(blobs):
    X, S, _ = blobs
    models = [
        [oneof.CC(warm_start=True, **TINY | {"random_state": i}).fit(X, S) for i in range(2)] for _ in range(2)
    ]
    for model in models[0]:
        model.fit(X, S)
    oneof.fit_together(models[1], [{"X": X, "y": S}] * 2)
    for alone, together in zip(*models, strict=True):
        np.testing.assert_allclose(alone.predict_proba(X), together.predict_proba(X), rtol=1e-4, atol=1e-6)


def test_a_loaded_model_goes_on(blobs, tmp_path):
    X, S, _ = blobs
    model = oneof.CC(warm_start=True, **TINY).fit(X, S)
    model.save(tmp_path / "m")
    loaded = oneof.load_model(tmp_path / "m").set_params(warm_start=True, random_state=0, device="cpu")
    np.testing.assert_array_equal(loaded.fit(X, S).predict_proba(X), model.fit(X, S).predict_proba(X))


def test_what_cannot_be_meant_is_refused_and_the_model_stays(blobs):
    X, S, _ = blobs
    model = oneof.CC(warm_start=True, **TINY).fit(X, S)
    before = model.predict_proba(X)
    for error, rows, sets, settings in (
        ("y has the classes 'a', 'b', 'c' and had 0, 1, 2", X, np.array(list("abc"))[S.argmax(1)], {}),
        (r"X has rows of shape \(1,\) and had", X[:, :1], S, {}),
        ("networks are others", X, S, {"network": "mlp"}),
        ("a checkpoint holds a training from its beginning", X, S, {"checkpoint": "no"}),
    ):
        with pytest.raises(ValueError, match=error):
            model.set_params(**settings).fit(rows, sets)
        model.set_params(network="linear", checkpoint=None)
        np.testing.assert_array_equal(model.predict_proba(X), before)
