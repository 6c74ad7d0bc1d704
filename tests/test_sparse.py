"""Sparse tables are learnt from without becoming dense as a whole: as if rows were not centred."""

import numpy as np
import pytest
import scipy.sparse
import torch
from sklearn.feature_extraction.text import TfidfVectorizer

import oneof
from conftest import every_method
from oneof.train.checkpoint import fingerprint
from oneof.train.rows import Scaler, SparseRows

rng = np.random.default_rng(0)
T = np.arange(90) % 3
DENSE = np.where(rng.random((90, 12)) < 0.3, rng.random((90, 12)), 0) + np.eye(3, 12)[T]
DENSE[:, 11] = 0
SPARSE = scipy.sparse.csr_array(DENSE)
SETS = np.eye(3, dtype=bool)[T] | (rng.random((90, 3)) < 0.3)
SETTINGS = {"epochs": 5, "device": "cpu", "random_state": 0, "precision": "fp64"}


@pytest.fixture
def uncentred(monkeypatch):
    fit = Scaler.fit.__func__
    monkeypatch.setattr(
        Scaler, "fit", classmethod(lambda cls, *args: cls(torch.zeros(12).double(), fit(cls, *args).std))
    )


def test_it_is_the_model_of_dense_rows_that_are_not_centred(uncentred):
    dense = oneof.IDGP(warm_up=2, **SETTINGS).fit(DENSE, SETS)
    sparse = oneof.IDGP(warm_up=2, **SETTINGS).fit(SPARSE, SETS)
    np.testing.assert_allclose(sparse.predict_proba(SPARSE), dense.predict_proba(DENSE), rtol=1e-9)


def test_the_scale_is_the_weighted_deviation():
    weight = rng.random(90)
    rows = np.arange(0, 90, 2)
    scaler = Scaler.fit(SparseRows(SPARSE), rows, weight[rows])
    mean = np.average(DENSE[rows], axis=0, weights=weight[rows])
    std = np.sqrt(np.average((DENSE[rows] - mean) ** 2, axis=0, weights=weight[rows]))
    assert (scaler.mean == 0).all()
    np.testing.assert_allclose(scaler.std, np.where(std > 0, std, 1))
    assert scaler.std[11] == 1


@every_method
def test_every_method_learns_and_is_saved(method, tmp_path):
    if isinstance(method(), oneof.VALEN):
        with pytest.raises(TypeError, match="VALEN needs dense rows"):
            method().fit(SPARSE, SETS)
        return
    settings = {"epochs": 4, "device": "cpu", "random_state": 0} | (
        {"warm_up": 1} if hasattr(method, "warm_up") else {}
    )
    model = method(**settings).fit(SPARSE, SETS)
    p = model.predict_proba(SPARSE)
    np.testing.assert_allclose(p, model.predict_proba(DENSE), rtol=1e-5)
    model.save(tmp_path / "m")
    again = oneof.load_model(tmp_path / "m")
    np.testing.assert_array_equal(again.predict_proba(SPARSE), p)
    assert again.disambiguate(SPARSE, SETS).label.tolist() == model.disambiguate(SPARSE, SETS).label.tolist()
    assert again.score(SPARSE, T) == model.score(SPARSE, T)


def test_a_checkpoint_knows_sparse_rows(tmp_path):
    model = oneof.CC(**SETTINGS, checkpoint=tmp_path / "c").fit(SPARSE, SETS)
    again = oneof.CC(**SETTINGS, checkpoint=tmp_path / "c").fit(SPARSE, SETS)
    np.testing.assert_array_equal(again.predict_proba(SPARSE), model.predict_proba(SPARSE))
    marks = {fingerprint(SparseRows(each)) for each in (SPARSE, 2 * SPARSE, SPARSE[::-1], SPARSE[:, ::-1])}
    assert len(marks) == 4


@pytest.mark.parametrize("extra", [{"validation_fraction": 0.2}, {"X_val": SPARSE[:20], "y_val": SETS[:20]}])
def test_validation_rows(extra):
    given = {name: extra.pop(name) for name in ("X_val", "y_val") if name in extra}
    model = oneof.CC(**SETTINGS, **extra).fit(SPARSE, SETS, **given)
    assert len(model.history_["validation_score"]) == 5


def test_tools_take_sparse_rows():
    settings = {"epochs": 2, "network": "linear"}
    found = oneof.compare(SPARSE, SETS, ["cc", "proden"], cv=3, settings=settings, random_state=0)
    assert found.rows == 90
    resolved = oneof.resolve(oneof.CC(**settings, random_state=0), SPARSE, SETS, folds=3, random_state=0)
    assert len(resolved.label) == 90
    models = oneof.fit_together([oneof.CC(**SETTINGS) for _ in range(2)], [{"X": SPARSE, "y": SETS}] * 2)
    np.testing.assert_array_equal(models[0].predict_proba(SPARSE), models[1].predict_proba(SPARSE))


def test_tf_idf_never_becomes_dense_as_a_whole(monkeypatch):
    """No call makes more than a batch, or 64 MB, of rows dense."""
    words = np.array([f"w{i}" for i in range(3000)])
    texts = [" ".join([f"k{t}", *rng.choice(words, 20)]) for t in np.arange(600) % 3]
    X = TfidfVectorizer().fit_transform(texts)
    made, take = [], SparseRows.__getitem__
    monkeypatch.setattr("oneof.train.rows._CELLS", 100 * X.shape[1])
    monkeypatch.setattr(
        SparseRows,
        "__getitem__",
        lambda self, rows: (lambda part: made.append(len(part)) or part)(take(self, rows)),
    )
    sets = np.eye(3, dtype=bool)[np.arange(600) % 3] | (rng.random((600, 3)) < 0.2)
    model = oneof.CC(lr=0.1, epochs=6, batch_size=64, device="cpu", random_state=0).fit(X, sets)
    assert model.score(X, np.arange(600) % 3) > 0.9
    assert max(made) == 100
