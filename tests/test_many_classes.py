"""Very many classes: sets and label tables that are kept sparse give the numbers of dense ones."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from numpy.testing import assert_allclose
from sklearn.base import clone
from typer.testing import CliRunner

import oneof
from conftest import every_method
from oneof.cli import app
from oneof.estimator.model_file import model_parts
from oneof.io import memory
from oneof.io import tensors as tensor_file
from oneof.labels import sparse_sets
from oneof.train import Paused, train
from oneof.train.sets import DeviceSets

rng = np.random.default_rng(0)
N, K = 90, 7
T = np.arange(N) % K
X = np.eye(K, 5)[T] + rng.normal(0, 0.5, (N, 5))
SETS = np.eye(K, dtype=bool)[T] | (rng.random((N, K)) < 0.25)
SETS[3] = True  # one set that holds every class
SETS[4:9] = np.eye(K, dtype=bool)[T[4:9]]
WEIGHTS = np.where(SETS, rng.random((N, K)) + 0.1, 0)
SETTINGS = {"epochs": 4, "device": "cpu", "random_state": 0, "precision": "fp64", "batch_size": 16}


@pytest.fixture
def sparse(monkeypatch):
    """Keep all sets sparse, whatever their size."""

    def switch(on=True):
        monkeypatch.setattr(sparse_sets, "takes_less", lambda *sizes: on)
        monkeypatch.setattr("oneof.labels.encoding.takes_less", lambda *sizes: on)

    return switch


def made(method, **more):
    settings = SETTINGS | ({"warm_up": 2} if hasattr(method, "warm_up") else {}) | more
    return method(**settings)


def dense(matrix):
    return matrix.toarray() if scipy.sparse.issparse(matrix) else matrix


def assert_same(one, other):
    """Both models hold the same numbers, tables of one value a candidate included."""
    assert_allclose(dense(one.label_distributions_), dense(other.label_distributions_), atol=1e-10)
    assert_allclose(one.predict_proba(X), other.predict_proba(X), atol=1e-10)
    assert (one.transduction_ == other.transduction_).all()
    for name, values in other.history_.items():
        assert_allclose(one.history_[name], values, atol=1e-10)
    for name, tensor in other.weights().items():
        if name != "judge_.bias":  # which cancels, so that rounding alone moves it
            assert_allclose(one.weights()[name], tensor, atol=1e-10)


@every_method
def test_every_method_learns_the_same(method, sparse):
    model = made(method).fit(X, SETS)
    judged, score = model.disambiguate(X, SETS), model.score(X, SETS)
    sparse()
    again = made(method).fit(X, SETS)
    assert_same(again, model)
    assert scipy.sparse.issparse(again.label_distributions_)
    for one, other in zip(again.disambiguate(X, SETS)[1:], judged[1:], strict=True):
        assert_allclose(one, other, atol=1e-10)
    assert (again.disambiguate(X, SETS).label == judged.label).all()
    assert again.score(X, SETS) == pytest.approx(score, abs=1e-10)


@every_method
def test_weights_of_candidates_validation_and_class_weights_too(method, sparse):
    more = {"validation_fraction": 0.2, "class_weight": "balanced", "patience": 3}
    y = oneof.WeightedSets(WEIGHTS) if method().takes_weights else SETS
    model = made(method, **more).fit(X, y)
    sparse()
    again = made(method, **more).fit(X, y)
    assert_same(again, model)
    assert "validation_score" in again.history_


@every_method
def test_a_training_goes_on_from_its_checkpoint_and_a_model_is_saved(method, sparse, tmp_path):
    sparse()
    whole = made(method).fit(X, SETS)
    part = made(method, checkpoint=tmp_path / "c")
    with pytest.raises(Paused):
        train(part.prepare(X, SETS, pause=lambda: True))
    resumed = made(method, checkpoint=tmp_path / "c").fit(X, SETS)
    for name, tensor in whole.learned().items():
        assert torch.equal(resumed.learned()[name], tensor), name
    whole.save(tmp_path / "m")
    loaded = oneof.load_model(tmp_path / "m", device="cpu")
    assert_same(loaded, whole)
    for name, tensor in whole.learned().items():
        assert torch.equal(loaded.learned()[name], tensor), name


SPARSE_TABLES = [oneof.CC, oneof.PRODEN, oneof.RC, oneof.CAVL, oneof.IDGP, oneof.Competition, oneof.Membership]
SPARSE_TABLES += [oneof.PLCR, oneof.PiCO]


@pytest.mark.parametrize("method", SPARSE_TABLES)
def test_tables_hold_one_value_a_candidate(method, sparse):
    sparse()
    views = {"views": "plain+jitter"} if method.needs_views else {}
    model = made(method, d=0.0, **views) if method is oneof.IDGP else made(method, **views)
    model.fit(X, SETS)
    tables = [table for name, table in model.tables().items() if name not in model.predictor()]
    assert max([table.numel() for table in tables], default=0) <= SETS.sum()


def test_a_class_made_of_such_a_method_keeps_dense_tables_until_it_says_so(sparse):
    class Mine(oneof.PRODEN):
        pass

    sparse()
    assert made(Mine).fit(X, SETS).w_.shape == (N, K)


@pytest.mark.parametrize(
    "settings",
    [
        {"objective": "released"},
        {"objective": "ml"},
        {"m": 0.5},
        {"eps": 0.1},
        {"distractors": "rows"},
        {"likelihood_weight": None},
        {"alternate": "sequential"},
    ],
)
def test_idgp_in_all_its_forms(settings, sparse):
    model = made(oneof.IDGP, **settings).fit(X, SETS)
    sparse()
    assert_same(made(oneof.IDGP, **settings).fit(X, SETS), model)


def test_labels_outside_the_sets_need_dense_rows(sparse):
    model = made(oneof.PRODEN, outside=0.1).fit(X, SETS)
    sparse()
    again = made(oneof.PRODEN, outside=0.1).fit(X, SETS)
    assert_same(again, model)
    assert isinstance(again.label_distributions_, np.ndarray)


def test_many_at_once_are_trained_one_by_one(sparse):
    alone = [made(oneof.PRODEN, lr=lr).fit(X, SETS) for lr in (0.1, 0.05)]
    sparse()
    models = [made(oneof.PRODEN, lr=lr) for lr in (0.1, 0.05)]
    oneof.fit_together(models, [{"X": X, "y": SETS}] * 2)
    for one, other in zip(models, alone, strict=True):
        assert_same(one, other)


def test_rows_of_flat_tables():
    sets = DeviceSets.put(sparse_sets.SparseSets(WEIGHTS), torch.device("cpu"), torch.float64)
    index = torch.tensor([3, 0, 88, 4])
    assert_allclose(sets[index], WEIGHTS[index])
    assert_allclose(sets.select(index)[torch.arange(4)], WEIGHTS[index])
    table, values = sets.uniform(torch.float64), torch.rand(4, K, dtype=torch.float64)
    assert_allclose(sets.take(table, index), (WEIGHTS / WEIGHTS.sum(1, keepdims=True))[index])
    before = sets.take(table, torch.arange(N))
    sets.put_rows(table, index, values)
    expected = before.clone()
    expected[index] = torch.where(torch.as_tensor(SETS)[index], values, 0.0)
    assert torch.equal(sets.take(table, torch.arange(N)), expected)


def test_sets_are_read_sparse_whatever_form_they_have(sparse):
    lists = [np.flatnonzero(row).tolist() for row in SETS]
    sparse()
    for y in (SETS, lists, scipy.sparse.csc_array(SETS.astype(int)), oneof.WeightedSets(SETS)):
        found, names = oneof.labels.encode_sets(y)
        assert isinstance(found, oneof.labels.SparseSets)
        assert (found.dense() > 0).tolist() == SETS.tolist()
        assert names.tolist() == list(range(K))
        assert isinstance(oneof.encode(y)[0], np.ndarray)
    matrix, _ = oneof.encode(lists, sparse_output=True)
    assert scipy.sparse.issparse(matrix)
    assert matrix.toarray().tolist() == SETS.tolist()
    with pytest.raises(ValueError, match="the candidate set is empty in row 1, "):
        oneof.labels.encode_sets([["a", "b"], []], classes=["a", "b"])


def test_small_ones_stay_dense_and_large_ones_do_not():
    assert isinstance(oneof.labels.encode_sets(SETS)[0], np.ndarray)
    assert not sparse_sets.takes_less(60_000, 10, 180_000)
    assert not sparse_sets.takes_less(10_000_000, 10, 30_000_000)
    assert sparse_sets.takes_less(1_000_000, 10_000, 5_000_000)
    assert sparse_sets.takes_less(100_000, 1_000, 300_000)
    assert not sparse_sets.takes_less(100_000, 1_000, 50_000_000)


def test_a_score_warns_of_labels_that_no_row_had(sparse):
    sparse()
    known = SETS[:, 6] & ~SETS[:, :6].any(1)
    model = made(oneof.CC).fit(X[~SETS[:, 6]], SETS[~SETS[:, 6]], classes=range(K))
    assert known.any()
    with pytest.warns(UserWarning, match="y has no label but 6"):
        model.score(X[known], SETS[known])


def test_the_most_likely_classes():
    model = made(oneof.CC).fit(X, SETS)
    p = model.predict_proba(X)
    top = model.predict_top(X, 3)
    order = np.argsort(-p, axis=1, kind="stable")[:, :3]
    assert (top.label == order).all()
    assert (top.probability == np.take_along_axis(p, order, 1)).all()
    assert (model.predict_top(X, 1).label[:, 0] == model.predict(X)).all()
    with torch.no_grad():
        for parameter in model.network_.parameters():
            parameter.zero_()
    assert model.predict_top(X, 3).label.tolist() == [[0, 1, 2]] * N  # of ties the first


def test_blocks_do_not_matter(monkeypatch):
    model = made(oneof.IDGP).fit(X, SETS)
    p, found, score, top = (
        model.predict_proba(X),
        model.disambiguate(X, SETS),
        model.score(X, SETS),
        model.predict_top(X, 2),
    )
    monkeypatch.setattr("oneof.train.evaluation._FEWEST_ROWS", 7)
    monkeypatch.setattr("oneof.train.evaluation._CELLS_AT_ONCE", 7 * K)
    assert_allclose(model.predict_proba(X), p, rtol=1e-12)
    assert (model.predict(X) == p.argmax(1)).all()
    assert_allclose(model.disambiguate(X, SETS).margin, found.margin, rtol=1e-9)
    assert model.score(X, SETS) == pytest.approx(score, rel=1e-12)
    assert (model.predict_top(X, 2).label == top.label).all()


def test_what_does_not_fit_is_refused(monkeypatch, sparse):
    model = made(oneof.CC).fit(X, SETS)
    monkeypatch.setattr(memory, "free_memory", lambda: 100)
    with pytest.raises(
        ValueError, match=r"an array of shape \(90, 7\) takes 5.04e-06 GB, but 1e-07 GB of memory are"
    ):
        model.predict_proba(X)
    assert len(model.predict(X)) == N
    sparse()
    for method, name in (
        (oneof.LWS, "LWS keeps tables of 90 rows and 7 classes"),
        (oneof.IDGP, "the table v_ of IDGP"),
    ):
        with pytest.raises(ValueError, match=name):
            made(method).fit(X, SETS)
    made(oneof.IDGP, d=0.0).fit(X, SETS)


def test_what_is_large_is_said_before_the_fit(monkeypatch, sparse):
    monkeypatch.setattr(memory, "_LARGE", 1000)
    sparse()
    with pytest.warns(UserWarning, match="POP keeps tables of 90 rows and 7 classes, one of which takes .* GB"):
        made(oneof.POP).fit(X, SETS)
    assert memory.free_memory() > 2**20


# --- what is said of rows: nothing of n x K -------------------------------------------------------------------


WIDE, MANY = 1_500, 20_000  # rows and classes: 30 million cells


@pytest.fixture(scope="module")
def wide():
    """A model of very many classes, its rows and their sparse sets with weights."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(WIDE, 4)).astype(np.float32)
    columns = (rng.integers(MANY, size=(WIDE, 1)) + np.array([0, 7])) % MANY
    weights = scipy.sparse.csr_array(
        (rng.random(2 * WIDE) + 0.5, columns.ravel(), np.arange(0, 2 * WIDE + 1, 2)), (WIDE, MANY)
    )
    settings = {"network": "linear", "epochs": 1, "batch_size": 1000, "device": "cpu", "random_state": 0}
    model = oneof.CC(**settings)
    return model.fit(x, weights > 0), x, weights


def peak_of(work):
    """Return the most bytes that NumPy and Python held beyond what was there before."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        work()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


WORK = {
    "weights": lambda model, x, weights: oneof.WeightedSets(weights, model.classes_)[:9],
    "fit by weights": lambda model, x, weights: clone(model).fit(x, oneof.WeightedSets(weights)),
    "scorer": lambda model, x, weights: oneof.SCORERS["set_log_likelihood"](model, x, weights > 0),
    "accuracy": lambda model, x, weights: oneof.SCORERS["accuracy"](model, x, weights.indices[::2]),
    "folds": lambda model, x, weights: list(oneof.CandidateKFold(3).split(x, weights > 0)),
    "compare": lambda model, x, weights: oneof.compare(x, weights > 0, {"cc": clone(model)}, cv=2, random_state=0),
    "resolve": lambda model, x, weights: oneof.resolve(clone(model), x[:300], weights[:300] > 0, folds=2),
}


@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
@pytest.mark.filterwarnings("ignore:.*of no training row")
@pytest.mark.filterwarnings("ignore:y has no label but")
def test_no_table_of_all_rows_and_classes_is_made(work, wide, sparse):
    sparse()  # those of single folds, too
    assert peak_of(lambda: work(*wide)) < 900 * MANY  # bytes: such a table of booleans, which is the smallest


def test_sparse_weights_are_dense_ones(sparse):
    given = scipy.sparse.csr_array(WEIGHTS)
    one, other = oneof.WeightedSets(given, list("abcdefg")), oneof.WeightedSets(WEIGHTS, list("abcdefg"))
    assert (one.weights.toarray() == other.weights).all()
    assert (np.asarray(one) == np.asarray(other)).all()
    assert repr(one) == repr(other)
    assert len(one[3:5]) == 2
    assert_allclose(oneof.labels.encode_weights(one)[0], other.weights)
    model = made(oneof.PRODEN).fit(X, other)
    sparse()
    assert_same(made(oneof.PRODEN).fit(X, one), model)
    with pytest.raises(ValueError, match="weights holds -1 in row 0, but weights are finite and at least 0"):
        oneof.WeightedSets(scipy.sparse.csr_array([[-1.0, 1.0]]))
    with pytest.raises(ValueError, match="the weights are all 0 in row 1"):
        oneof.WeightedSets(scipy.sparse.csr_array([[1.0, 1.0], [0, 0]]))


def test_scorers_folds_comparison_and_resolution_say_the_same(sparse, monkeypatch):
    def everything(y, labels):
        model = made(oneof.CC).fit(X, y)
        scores = [scorer(model, X, y) for name, scorer in oneof.SCORERS.items() if name != "accuracy"]
        folds = list(oneof.CandidateKFold(4, shuffle=True, random_state=3).split(X, y))
        compared = oneof.compare(X, y, {"a": made(oneof.CC), "b": made(oneof.RC)}, cv=3, random_state=0)
        found = [compared.scores[name].log_likelihoods for name in "ab"]
        judged = oneof.resolve(made(oneof.CC), X, y, folds=3)
        accuracy = oneof.SCORERS["accuracy"](model, X, labels)
        return [scores, [test for _, test in folds], found, *judged, accuracy]

    for y in (SETS, oneof.WeightedSets(WEIGHTS)):
        dense_ones = everything(y, T)
        sparse()
        monkeypatch.setattr(sparse_sets, "_BLOCK", 20 * K)
        for one, other in zip(everything(y, T), dense_ones, strict=True):
            for a, b in zip(one, other, strict=True) if isinstance(one, list) else [(one, other)]:
                assert_allclose(a, b, atol=1e-7)  # resolve minimises to about that
        sparse(False)


def test_metrics_are_refused_probabilities_that_do_not_fit(sparse, monkeypatch):
    sparse()
    trial = made(oneof.CC, validation_fraction=0.2).prepare(X, SETS, metrics=lambda p: {"rows": len(p)})
    monkeypatch.setattr(memory, "free_memory", lambda: 100)
    with pytest.raises(ValueError, match=r"what metrics are given, probabilities of shape \(18, 7\), takes"):
        train(trial)


def test_commands_for_very_many_classes(sparse, tmp_path):
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame["candidates"] = ["|".join(f"c{k}" for k in np.flatnonzero(row)) for row in SETS]
    frame.to_csv(tmp_path / "t.csv", index=False)

    def run(form, *arguments):
        result = CliRunner().invoke(app, [str(part) for part in arguments])
        assert result.exit_code == 0, result.output
        return result.output.replace(form, "")

    def everything(form):
        model, out, sets = tmp_path / f"{form}.safetensors", tmp_path / f"{form}.csv", ["--separator", "|"]
        said = run(form, "fit", tmp_path / "t.csv", *sets, "--method", "cc", "--out", model, "--quiet")
        said += run(form, "score", model, tmp_path / "t.csv", "--labels", "candidates", *sets)
        run(form, "predict", model, tmp_path / "t.csv", "--out", out)
        run(form, "disambiguate", model, tmp_path / "t.csv", *sets, "--out", tmp_path / "d.csv")
        return said, pd.read_csv(out)

    said, predicted = everything("dense")
    sparse()
    again, also = everything("sparse")
    assert said == again
    pd.testing.assert_frame_equal(predicted, also, atol=1e-5)


PARTS = {
    "a part is missing": (lambda t: t.pop("label_distributions.columns"), "lacks one of its parts"),
    "two axes": (lambda t: t.update({V: t[V][None]}), "lacks one of its parts"),
    "other types": (lambda t: t.update({C: t[C].long()}), "parts that do not fit each other"),
    "starts not at 0": (lambda t: t[B].__setitem__(0, 1), "parts that do not fit each other"),
    "beyond the end": (lambda t: t[B].__setitem__(-1, 10**9), "parts that do not fit each other"),
    "an empty row": (lambda t: t[B].__setitem__(1, 0), "parts that do not fit each other"),
    "backwards": (lambda t: t[B].__setitem__(2, -5), "parts that do not fit each other"),
    "values too few": (lambda t: t.update({V: t[V][:-1]}), "parts that do not fit each other"),
    "no class": (lambda t: t[C].__setitem__(0, K), "columns that are no classes"),
    "below 0": (lambda t: t[C].__setitem__(0, -1), "columns that are no classes"),
    "not rising": (lambda t: t[C].copy_(t[C].flip(0)), "columns that are no classes"),
    "no distribution": (lambda t: t[V].mul_(2), "rows that are no distributions"),
    "NaN": (lambda t: t[V].fill_(float("nan")), "rows that are no distributions"),
    "other candidates": (lambda t: t.update({"learned.w_": t["learned.w_"][:-1]}), "w_"),
}
B, C, V = (f"label_distributions.{name}" for name in ("starts", "columns", "values"))


@pytest.mark.parametrize(("damage", "words"), PARTS.values(), ids=PARTS)
def test_damaged_parts_of_a_sparse_model_file(damage, words, sparse, tmp_path):
    sparse()
    tensors, facts = model_parts(made(oneof.PRODEN, epochs=1).fit(X, SETS))
    tensors = {name: tensor.clone() for name, tensor in tensors.items()}
    damage(tensors)
    tensor_file.write(tmp_path / "m.safetensors", "model", tensors, facts)
    with pytest.raises(ValueError, match=words):
        oneof.load_model(tmp_path / "m.safetensors")


@pytest.mark.parametrize("candidates", [-1, 0, 10**12, 1.5, "many"])
def test_a_model_file_that_lies_about_its_candidates(candidates, sparse, tmp_path):
    sparse()
    tensors, facts = model_parts(made(oneof.PRODEN, epochs=1).fit(X, SETS))
    facts = facts | {"training_candidates": candidates}
    tensor_file.write(tmp_path / "m.safetensors", "model", tensors, facts)
    with pytest.raises(ValueError, match=r"m\.safetensors"):
        oneof.load_model(tmp_path / "m.safetensors")
