"""Candidate generation: the distribution of whole sets against brute force, and the sizes that theory gives."""

import inspect
from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oneof.data import corrupt
from oneof.data.corrupt import CHANCES, LWS_CASES, PROCESSES, flip_chances, instance_dependent
from oneof.data.corrupt.chances import generation_logits

K = 10


def recipe(y, p, rate):
    """The released codes' steps, literally, in float64."""
    chances = []
    for label, row in zip(y, p, strict=True):
        row = row.copy()
        row[label] = 0
        row = row / row.max()
        row = row / row.mean() * rate
        chances.append(np.minimum(row, 1))
    return np.array(chances)


@pytest.fixture
def annotator():
    rng = np.random.default_rng(0)
    scores, y = 3 * rng.normal(size=(200, K)), rng.integers(K, size=200)
    p = np.exp(scores)
    return y, scores, p / p.sum(1, keepdims=True)


@pytest.mark.parametrize("rate", [0.1, 0.4, 1.0])
def test_chances_equal_the_recipe(annotator, rate):
    y, scores, p = annotator
    expected = recipe(y, p, rate)
    assert np.allclose(flip_chances(y, scores, rate), expected)
    assert np.allclose(flip_chances(y, np.log(p), rate), expected)
    hot = np.exp(scores / 2)
    assert np.allclose(flip_chances(y, scores, rate, temperature=2.0), recipe(y, hot, rate))


def test_scaling_by_the_maximum_always_adds_the_top_distractor(annotator):
    y, scores, _ = annotator
    wrong = scores.copy()
    wrong[np.arange(200), y] = -np.inf
    chances = flip_chances(y, scores, scaling="max")
    assert (chances[np.arange(200), wrong.argmax(1)] == 1).all()
    assert np.allclose(chances, np.exp(wrong - wrong.max(1, keepdims=True)))


# --- the distribution of whole sets ------------------------------------------------------------------------------

SMALL = 5
ROWS = np.array([0, 2, 4, 3])
SCORES = np.array(
    [[1.0, 0.5, -2.0, 0.3, 0.0], [0.2, 3.0, 0.1, 2.5, -1.0], [0.0, 0.0, 0.0, 0.0, 9.0], [6.0, 5.5, 5.0, -9.0, 4.5]]
)
TABLE = np.array(
    [[1, 0.3, 0, 1, 0.8], [0, 1, 0, 0, 0], [0.5, 0.5, 1, 0.5, 0.5], [0.2, 0, 0, 1, 0], [1, 1, 1, 1, 1]]
)
GROUPS = ["a", "b", "a", "b", "a"]


def independent(y, chances):
    """The probability of every set, a tuple of 0/1, whose wrong labels are drawn independently."""
    sets = {}
    for members in product((0, 1), repeat=SMALL):
        if members[y]:
            factors = [chances[j] if members[j] else 1 - chances[j] for j in range(SMALL) if j != y]
            sets[members] = np.prod(factors)
    return sets


def sigmoids(row, delta, temperature):
    return 1 / (1 + np.exp(-((row - row.mean()) / temperature + delta)))


def never_full(y, chances):
    """Full sets are drawn again up to 100 times; then the least likely wrong label goes."""
    first, full = independent(y, chances), (1,) * SMALL
    again = sum(first[full] ** t for t in range(101))
    sets = {members: p * again for members, p in first.items() if members != full}
    least = min((j for j in range(SMALL) if j != y), key=lambda j: chances[j])
    sets[tuple(int(j != least) for j in range(SMALL))] += first[full] ** 101
    return sets


def bisected(mean_size, temperature):
    low, high = -50.0, 50.0
    for _ in range(100):
        delta = (low + high) / 2
        sizes = [
            1 + np.delete(sigmoids(row, delta, temperature), y).sum() for y, row in zip(ROWS, SCORES, strict=True)
        ]
        low, high = (delta, high) if np.mean(sizes) < mean_size else (low, delta)
    return delta


def forced(y, rate):
    sets = independent(y, np.full(SMALL, rate))
    alone = sets.pop(tuple(int(j == y) for j in range(SMALL)))
    for other in set(range(SMALL)) - {y}:
        sets[tuple(int(j in (y, other)) for j in range(SMALL))] += alone / (SMALL - 1)
    return sets


def sized(y, chance_of_size):
    sets = [members for members in product((0, 1), repeat=SMALL) if members[y] and sum(members) < SMALL]
    return {members: chance_of_size(sum(members)) / comb(SMALL - 1, sum(members) - 1) for members in sets}


def model(i, y, delta, temperature=1.0):
    return never_full(y, sigmoids(SCORES[i], delta, temperature))


# What the process is given, and the probability of every set of row i with truth y.
EXACT = {
    "instance": (
        {"scores": SCORES, "rate": 0.3},
        lambda i, y: independent(y, recipe(ROWS, np.exp(SCORES), 0.3)[i]),
    ),
    "decomposition": ({"scores": SCORES, "mean_size": None}, lambda i, y: model(i, y, 0)),
    "decomposition of size 3.5": (
        {"scores": SCORES, "mean_size": 3.5, "temperature": 2.0},
        lambda i, y: model(i, y, bisected(3.5, 2.0), 2.0),
    ),
    "decomposition of size 4.99": (
        {"scores": SCORES, "mean_size": 4.99},
        lambda i, y: model(i, y, bisected(4.99, 1.0)),
    ),
    "uniform": ({"n_classes": SMALL, "rate": 0.2}, lambda i, y: forced(y, 0.2)),
    "uniform not forced": (
        {"n_classes": SMALL, "rate": 0.2, "forced": False},
        lambda i, y: independent(y, np.full(SMALL, 0.2)),
    ),
    "uniform-sets": ({"n_classes": SMALL}, lambda i, y: sized(y, lambda s: comb(4, s - 1) / 15)),
    "uniform-sets code": (
        {"n_classes": SMALL, "version": "code"},
        lambda i, y: sized(y, lambda s: comb(5, s) / 30),
    ),
    "class": ({"matrix": TABLE}, lambda i, y: independent(y, TABLE[y])),
    "pair": (
        {"n_classes": SMALL, "rate": 0.7},
        lambda i, y: independent(y, 0.7 * (np.arange(SMALL) == (y + 1) % SMALL)),
    ),
    "hierarchical": (
        {"groups": GROUPS, "rate": 0.4},
        lambda i, y: independent(y, [0.4 * (group == GROUPS[y]) for group in GROUPS]),
    ),
}


@pytest.mark.parametrize("case", EXACT)
def test_sets_have_the_exact_distribution(case):
    arguments, distribution = EXACT[case]
    name, repeats = case.split()[0], 20_000
    chances = CHANCES[name](ROWS, **arguments)
    if "scores" in arguments:
        arguments = arguments | {"scores": np.repeat(SCORES, repeats, axis=0)}
    drawn = PROCESSES[name](np.repeat(ROWS, repeats), **arguments, seed=5).reshape(len(ROWS), repeats, SMALL)
    for i, y in enumerate(ROWS):
        exact = distribution(i, y)
        assert sum(exact.values()) == pytest.approx(1)
        marginal = sum(p * np.array(members) for members, p in exact.items())
        marginal[y] = 0
        assert chances[i] == pytest.approx(marginal, abs=1e-12)
        sets, counts = np.unique(drawn[i].astype(int), axis=0, return_counts=True)
        found = dict(zip(map(tuple, sets.tolist()), counts / repeats, strict=True))
        assert set(found) <= {members for members, p in exact.items() if p > 0}
        for members, p in exact.items():
            assert abs(found.get(members, 0) - p) <= 5 * np.sqrt(p * (1 - p) / repeats) + 3 / repeats


# --- sizes -------------------------------------------------------------------------------------------------------


def expected_size(name, y, **arguments):
    return 1 + CHANCES[name](y, **arguments).sum(1).mean()


@pytest.mark.parametrize(
    ("classes", "sizes"),
    [(10, [2.16, 2.46, 3.09, 3.95, 4.70, 4.97]), (100, [3.36, 4.38, 4.95, 5.00, 5.00, 5.00])],
    ids=["10", "100"],
)
def test_sizes_of_the_instance_dependent_process(classes, sizes):
    """Where the annotator's confusion is Dirichlet(kappa), and never beyond 1 + rate K = 5."""
    rng, n = np.random.default_rng(0), 6000
    y = rng.integers(classes, size=n)
    for kappa, size in zip([0.01, 0.03, 0.1, 0.3, 1, 3], sizes, strict=True):
        # The logarithm of a Gamma(kappa) variable, most of which underflow for small kappa.
        log_p = np.log(rng.gamma(kappa + 1, size=(n, classes))) + np.log(rng.random((n, classes))) / kappa
        assert expected_size("instance", y, scores=log_p, rate=4 / classes) == pytest.approx(size, abs=0.05)
    flat = np.zeros((n, classes))
    assert expected_size("instance", y, scores=flat, rate=4 / classes) == pytest.approx(5)


def test_sizes_of_the_other_processes():
    y = np.arange(10)
    for rate, size in {0.1: 2.29, 0.3: 3.74, 0.4: 4.61, 0.5: 5.50, 0.7: 7.30}.items():
        assert expected_size("uniform", y, n_classes=10, rate=rate) == pytest.approx(size, abs=0.006)
    assert expected_size("uniform", y, n_classes=100, rate=0.05, forced=False) == pytest.approx(5.95)
    assert expected_size("uniform-sets", y, n_classes=10) == pytest.approx(5.49, abs=0.005)
    assert expected_size("uniform-sets", y, n_classes=10, version="code") == pytest.approx(5)
    assert expected_size("pair", y, n_classes=10, rate=0.3) == pytest.approx(1.3)
    assert expected_size("hierarchical", y, groups=np.arange(10) // 5, rate=0.5) == pytest.approx(3)
    for case, size in {"01": 1.5, "02": 1.6, "03": 5.0, "04": 2.8}.items():
        assert expected_size("class", y, matrix=case) == pytest.approx(size)


def test_cases_of_lws_count_from_the_true_class():
    chances = CHANCES["class"](np.array([8]), "03")
    assert chances[0].tolist() == [0.8, 0.8, 0.8, 0.4, 0.4, 0.2, 0.2, 0.2, 0, 0.2]
    assert all(len(offsets) == 9 for offsets in LWS_CASES.values())


@pytest.mark.parametrize("version", ["theory", "code"])
@pytest.mark.parametrize("classes", [100, 1000])
def test_uniform_sets_of_many_classes(classes, version):
    y = np.arange(600) % classes
    S = corrupt.uniform_sets(y, classes, version, seed=1)
    mean = classes / 2 + (version == "theory") / 2
    assert S[np.arange(600), y].all()
    assert S.sum(1).mean() == pytest.approx(mean, abs=5 * np.sqrt(classes / 4 / 600))
    assert expected_size("uniform-sets", y, n_classes=classes, version=version) == pytest.approx(mean)


@pytest.mark.parametrize("size", [1.001, 5, 9.99])
@pytest.mark.parametrize("certainty", [1, 1e4])
def test_decomposition_solves_for_the_mean_size(certainty, size):
    """Full sets are left aside by drawing them again, so that the sets can only be smaller than asked for."""
    rng = np.random.default_rng(1)
    y, scores = rng.integers(K, size=2000), certainty * rng.normal(size=(2000, K))
    s = generation_logits(y, scores, size, 1.0)
    assert (1 / (1 + np.exp(-np.clip(s, -700, 700)))).sum(1).mean() == pytest.approx(size, abs=1e-9)
    S = corrupt.decomposition(y, scores, size, seed=3)
    assert not S.all(1).any()
    assert S.sum(1).mean() <= size + 5 * np.sqrt(K / 4 / 2000)


def test_summary_and_certain_distractors():
    S = np.array([[1, 0, 0], [1, 1, 0], [1, 1, 1], [0, 1, 1]], dtype=bool)
    assert corrupt.summary(S) == {"mean_size": 2.0, "one_label": 0.25, "full": 0.25}
    assert corrupt.certain_distractors(CHANCES["class"]([0, 1, 0, 2], [[1, 1, 0.5], [0, 1, 0], [0, 0, 1]])) == 0.5
    # Two classes and a forced distractor: there is no choice.
    assert corrupt.certain_distractors(CHANCES["uniform"]([0, 1], 2, 0.1)) == 1


# --- every process -----------------------------------------------------------------------------------------------


def arguments_of(name, classes, n, rate, certainty, seed):
    """Arguments for any process, by the names of its parameters."""
    rng, size = np.random.default_rng(seed), 1 + rate * (classes - 1)
    known = {
        "scores": certainty * rng.normal(size=(n, classes)),
        "rate": rate,
        "mean_size": size if 1 < size < classes else None,
        "n_classes": classes,
        "groups": rng.integers(3, size=classes),
        "matrix": np.maximum(np.eye(classes), rate * rng.integers(2, size=(classes, classes))),
    }
    names = set(inspect.signature(PROCESSES[name]).parameters) & set(known)
    return rng.integers(classes, size=n), {name: known[name] for name in names}


@pytest.mark.parametrize("name", PROCESSES)
@given(
    classes=st.integers(2, 12),
    n=st.integers(1, 20),
    rate=st.floats(0, 1),
    certainty=st.sampled_from([0, 1, 30, 1e4, 1e8]),
    seed=st.integers(0, 1000),
)
def test_truth_is_inside_and_chances_hold(name, classes, n, rate, certainty, seed):
    rate = max(rate, 1e-6) if name == "instance" else rate
    y, arguments = arguments_of(name, classes, n, rate, certainty, seed)
    S, chances = PROCESSES[name](y, **arguments, seed=seed), CHANCES[name](y, **arguments)
    assert (S.shape, S.dtype) == ((n, classes), bool)
    assert S[np.arange(n), y].all()
    assert (chances[np.arange(n), y] == 0).all()
    assert ((chances >= 0) & (chances <= 1)).all()
    wrong = S & (np.arange(classes) != y[:, None])
    assert (wrong >= (chances == 1)).all()
    assert not wrong[chances == 0].any()
    if name in ("decomposition", "uniform-sets"):
        assert not S.all(1).any()
    if name == "uniform":
        assert (S.sum(1) > 1).all()


@pytest.mark.parametrize("name", PROCESSES)
def test_a_process_is_a_function_of_its_seed(name):
    y, arguments = arguments_of(name, K, 200, 0.4, 1, seed=0)
    first, same, other = (PROCESSES[name](y, **arguments, seed=seed) for seed in (4, 4, 5))
    assert np.array_equal(first, same)
    assert not np.array_equal(first, other)


def test_both_registries_hold_the_same_processes():
    assert list(PROCESSES) == list(CHANCES)
    for name, process in PROCESSES.items():
        parameters = dict(inspect.signature(process).parameters)
        assert parameters.pop("seed").default == 0
        assert parameters == dict(inspect.signature(CHANCES[name]).parameters)


@pytest.mark.parametrize("certainty", [1, 50, 1e4])
def test_sizes_lie_where_they_must_however_sure_the_annotator_is(certainty):
    rng = np.random.default_rng(1)
    y = rng.integers(K, size=5000)
    scores = rng.normal(size=(5000, K))
    scores[np.arange(5000), y] += 5
    S = instance_dependent(y, certainty * scores, rate=0.4, seed=2)
    assert 1.95 <= S.sum(1).mean() <= 5.05


# --- what is refused ---------------------------------------------------------------------------------------------

LABELS = {
    "negative": [0, -1],
    "too large": [0, 3],
    "float": [0.0, 1.0],
    "bool": [True, False],
    "text": ["0", "1"],
    "two axes": [[0], [1]],
    "one number": 1,
    "empty": np.zeros(0, dtype=int),
}


@pytest.mark.parametrize("name", PROCESSES)
@pytest.mark.parametrize("labels", LABELS)
def test_labels_are_refused(name, labels):
    _, arguments = arguments_of(name, 3, 2, 0.5, 1, seed=0)
    with pytest.raises(ValueError, match=r"^y (has|holds) .*, but must hold the numbers 0 to 2 of the classes"):
        PROCESSES[name](LABELS[labels], **arguments)


@pytest.mark.parametrize("name", PROCESSES)
@pytest.mark.parametrize("seed", [-1, 0.5, None, True])
def test_seeds_are_refused(name, seed):
    y, arguments = arguments_of(name, 3, 2, 0.5, 1, seed=0)
    with pytest.raises(ValueError, match=f"^seed is {seed}, but must be a whole number >= 0$"):
        PROCESSES[name](y, **arguments, seed=seed)


FLAT = np.zeros((2, 3))


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("instance", {"scores": FLAT, "scaling": "sum"}, "scaling is 'sum', but must be 'mean' or 'max'"),
        ("instance", {"scores": FLAT, "rate": 0}, "rate is 0, but must be a number > 0"),
        ("instance", {"scores": FLAT, "temperature": -1}, "temperature is -1, but must be a number > 0"),
        ("instance", {"scores": FLAT[:1]}, "scores has 1 rows, but must have one for each of the 2 labels"),
        ("instance", {"scores": FLAT[0]}, r"scores has shape \(3,\), but must be \(n, K\)"),
        ("instance", {"scores": FLAT[:, :1]}, r"scores has shape \(2, 1\), but must be \(n, K\)"),
        ("instance", {"scores": [[0, 0, 0], [0, 0, -np.inf]]}, "scores / temperature is -inf in row 1, but"),
        ("decomposition", {"scores": FLAT + np.nan}, "scores / temperature is nan in row 0, but"),
        (
            "decomposition",
            {"scores": FLAT + 1, "temperature": 1e-310},
            "scores / temperature is inf in row 0, but",
        ),
        (
            "decomposition",
            {"scores": FLAT},
            "mean_size is 5.0, but must be a number between 1 and 3, the number of",
        ),
        (
            "decomposition",
            {"scores": FLAT, "mean_size": 1},
            "mean_size is 1, but must be a number between 1 and 3",
        ),
        ("decomposition", {"scores": FLAT, "mean_size": np.nan}, "mean_size is nan, but must be a number between"),
        ("uniform", {"n_classes": 3, "rate": 1.1}, r"rate is 1.1, but must be a number in \[0, 1\]"),
        ("uniform", {"n_classes": 1, "rate": 0.1}, "n_classes is 1, but must be a whole number >= 2"),
        ("uniform", {"n_classes": 2.0, "rate": 0.1}, "n_classes is 2.0, but must be a whole number >= 2"),
        (
            "uniform-sets",
            {"n_classes": 3, "version": "paper"},
            "version is 'paper', but must be 'theory' or 'code'",
        ),
        ("class", {"matrix": "05"}, "matrix is '05', but must hold chances or be one of 01, 02, 03, 04"),
        ("class", {"matrix": FLAT}, r"matrix has shape \(2, 3\), but must be \(K, K\)"),
        ("class", {"matrix": np.eye(3) / 2}, "matrix has 0.5 on its diagonal, but must have ones"),
        ("class", {"matrix": 2 * np.eye(3)}, r"matrix holds 2.0, but must hold chances in \[0, 1\]"),
        ("class", {"matrix": np.eye(3) * np.nan}, r"matrix holds nan, but must hold chances in \[0, 1\]"),
        ("pair", {"n_classes": 3, "rate": "0.1"}, r"rate is '0.1', but must be a number in \[0, 1\]"),
        ("hierarchical", {"groups": 3, "rate": 0.1}, r"groups has shape \(\), but must be \(K,\)"),
        ("hierarchical", {"groups": [0, 0, 1], "rate": -0.1}, r"rate is -0.1, but must be a number in \[0, 1\]"),
    ],
)
def test_arguments_are_refused(name, arguments, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        PROCESSES[name]([0, 1], **arguments)
