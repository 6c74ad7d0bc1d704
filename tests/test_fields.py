"""Every field of every method says what it is: its roles hold, and it is documented once, in its declaration."""

import json
import re
from dataclasses import fields

import numpy as np
import pandas as pd
import pytest
import safetensors
from sklearn.base import clone

import oneof
from conftest import every_method
from fields_walk import TINY, every_field, every_field_once, pair
from oneof import METHODS
from oneof.estimator import PartialLabelClassifier, Role, check, hyperparameters, names_with, number
from oneof.testing.small_problems import make_data
from oneof.train.parallel import grouping

STACK_KEY = "stack_key"  # of grouping: what trials of one stack have in common
# What no step on a small table of a CPU reads. torch.compile would take minutes; rows at once matter to networks
# that normalise them, and no stack has such: see test_parts.
NOT_SEEN_HERE = {"flips", "compile", "deterministic", "rows_at_once"}


def identity(model):
    model.input_shape_ = None  # rows of a table, by which an open optimiser is decided
    return model.identity()


def stack_key(trial):
    return getattr(grouping, STACK_KEY)(trial)


def prepared(model):
    return model.prepare(*problem())


def problem():
    data = make_data(rows=60, features=5, classes=4, seed=3)
    return data.x.numpy(), data.candidates.numpy()


def learned(model):
    """What a model says after it was fitted alone."""
    X, S = problem()
    return said(clone(model).fit(X, S))


def said(model):
    return np.concatenate([model.predict_proba(problem()[0]), model.label_distributions_])


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where checkpoints are written


# --- the walk itself --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "field"), every_field())
def test_a_pair_differs_in_one_valid_field(name, field):
    first, second = pair(name, field)
    check(first)
    check(second)
    changed = [each for each, value in second.get_params().items() if value != first.get_params()[each]]
    assert changed == [field]


@pytest.mark.parametrize(("name", "field"), every_field_once())
def test_a_field_changes_what_is_learned_or_is_declared_traceless(name, field):
    """This also makes the tests below able to fail: a field that did nothing could be given any role."""
    if field in NOT_SEEN_HERE:
        pytest.skip("a small table on a CPU does not show it")
    first, second = pair(name, field)
    same = np.allclose(learned(first), learned(second), rtol=0, atol=1e-8)
    assert same == (field in names_with(first, Role.TRACELESS))


# --- roles ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "field"), every_field())
def test_a_field_changes_the_identity_or_is_declared_traceless(name, field):
    first, second = pair(name, field)
    assert (identity(first) == identity(second)) == (field in names_with(first, Role.TRACELESS))


@pytest.mark.parametrize(("name", "field"), every_field_once())
def test_trials_of_one_stack_differ_only_where_they_may_and_end_as_if_alone(name, field):
    models = pair(name, field)
    keys = [stack_key(prepared(clone(model))) for model in models]
    assert keys[0] is not None
    together = keys[0] == keys[1]
    assert together == (field in names_with(models[0], Role.VARIES_IN_STACK))
    if together:
        X, S = problem()
        alone = [learned(model.set_params(checkpoint=None)) for model in map(clone, models)]
        stacked = oneof.fit_together([clone(model) for model in models], [{"X": X, "y": S}] * 2)
        for model, expected in zip(stacked, alone, strict=True):
            np.testing.assert_allclose(said(model), expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("field", ["momentum", "schedule", "gamma", "warm_up"])
def test_a_stack_of_trials_that_must_not_share_one_would_be_found_out(field, monkeypatch):
    """What the test above would see if a role were given wrongly: the second trial ends as the first."""
    X, S = problem()
    models = pair("idgp", field)
    alone = [learned(model) for model in models]
    monkeypatch.setattr(grouping, STACK_KEY, lambda trial: ("one for all",))
    stacked = oneof.fit_together([clone(model) for model in models], [{"X": X, "y": S}] * 2)
    np.testing.assert_allclose(said(stacked[0]), alone[0], rtol=0, atol=1e-8)
    assert not np.allclose(said(stacked[1]), alone[1], rtol=0, atol=1e-8)


@every_method
def test_vectors_of_a_stack_are_rates_and_decays_of_parameter_groups(method):
    model = method()
    vectors = names_with(model, Role.VECTOR_IN_STACK)
    assert set(vectors) <= set(names_with(model, Role.VARIES_IN_STACK))
    assert {"lr", "weight_decay"} <= set(vectors) <= {"lr", "weight_decay", "lr_g", "weight_decay_g"}


@every_method
def test_model_files_hold_all_fields_but_those_not_saved(method, tmp_path):
    model = method(**TINY | {"epochs": 2}).fit(*problem())
    model.save(tmp_path / "model")
    with safetensors.safe_open(tmp_path / "model", "pt") as file:
        parameters = json.loads(file.metadata()["oneof"])["parameters"]
    assert {f.name for f in fields(model)} - parameters.keys() == set(names_with(model, Role.NOT_SAVED))
    of_fits = {"checkpoint", "random_state", "device", "verbose", "class_weight", "warm_start"}
    assert set(names_with(type(model), Role.NOT_SAVED)) == of_fits


def test_a_field_declared_again_keeps_what_is_not_said_anew():
    assert "lr" in names_with(oneof.VALEN, Role.VECTOR_IN_STACK)
    default = oneof.CC().lr

    @hyperparameters
    class Slow(oneof.CC):
        lr: float = 0.01
        momentum: float = number(0.5, "in [0, 1]")

    assert (Slow().lr, Slow().momentum) == (0.01, 0.5)
    assert "lr" in names_with(Slow, Role.VECTOR_IN_STACK)
    assert "lr : float, default=0.01\n    Learning rate" in Slow.__doc__
    told = " ".join(Slow.__doc__.split())
    assert "the share of the past in its mean gradient. Must be a number in [0, 1]." in told
    with pytest.raises(ValueError, match="lr of Slow is -1, but must be a number > 0"):
        check(Slow(lr=-1))
    assert oneof.CC().lr == default != 0.01


# --- documentation ----------------------------------------------------------------------------------------


def words(text):
    return " ".join(text.split())


def sections(cls):
    """The sections of a class docstring by their titles, in their order."""
    parts = re.split(r"^(\w[\w ]*)\n-{3,}\n", cls.__doc__, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def entries(section):
    """The entries of a section by their names; ``u_, v_ : ...`` is an entry of both."""
    found = re.findall(r"^(\S.*?) : (.*(?:\n    .*)*)", section, re.MULTILINE)
    return {name: words(text) for names, text in found for name in names.split(", ")}


@pytest.mark.parametrize(("name", "field"), every_field())
def test_every_field_is_documented_in_its_class(name, field):
    cls = METHODS[name]
    (declared,) = (each for each in fields(cls) if each.name == field)
    assert len(declared.metadata["doc"]) > 10
    assert declared.metadata["doc"].endswith(".")
    entry = entries(sections(cls)["Parameters"])[field]
    assert f"default={declared.default!r} {declared.metadata['doc']}" in entry
    assert entry.endswith(f"Must be {declared.metadata['expected']}.")


@every_method
def test_the_docstring_names_all_that_fit_sets(method):
    X, S = problem()
    cls = method.func
    documented = entries(sections(cls)["Attributes"]).keys()
    variants = [{"likelihood_weight": None}, {"objective": "released"}] if cls is oneof.IDGP else [{}]
    variants += [{"outside": 0.1}] if cls.takes_outside else []
    found = set() if cls.takes_outside else {"outside_rate_", "outside_scale_"}
    for variant in variants:
        model = method(**TINY | variant).fit(pd.DataFrame(X, columns=list("abcde")), S)
        found |= {name for name in vars(model) if name.endswith("_")}
    assert found == documented


@every_method
def test_sections_stand_in_the_order_of_numpydoc(method):
    cls = method.func
    assert list(sections(cls)) == ["Parameters", "Attributes", "Examples"]
    assert list(entries(sections(cls)["Parameters"])) != []
    assert not re.match(r"\w*\(", cls.__doc__)  # not the signature
    assert max(map(len, cls.__doc__.splitlines())) <= 115


def test_own_fields_come_first():
    assert next(iter(entries(sections(oneof.IDGP)["Parameters"]))) == "objective"
    assert next(iter(entries(sections(oneof.CC)["Parameters"]))) == "network"


def test_a_method_from_outside_needs_no_words():
    @hyperparameters
    class Plain(oneof.CC):
        power: float = number(2.0, "> 0")
        label: str = "x"

    assert Plain.__doc__.startswith("Plain.\n\nParameters\n----------\n")
    found = entries(sections(Plain)["Parameters"])
    assert found["power"] == "float, default=2.0 Must be a number > 0."
    assert found["label"] == "str, default='x'"
    assert len(found) == len(fields(oneof.CC)) + 2
    assert names_with(Plain, Role.TRACELESS) == names_with(oneof.CC, Role.TRACELESS)
    X, S = problem()
    assert Plain(**TINY).fit(X, S).predict(X).shape == (60,)


def test_other_sections_follow_and_parameters_written_by_hand_stay():
    @hyperparameters
    class WithNotes(oneof.CC):
        """One line.

        Notes
        -----
        Something.

        Attributes
        ----------
        network_ : torch.nn.Module
            Another.
        """

    assert list(sections(WithNotes)) == ["Parameters", "Attributes", "Notes"]
    assert entries(sections(WithNotes)["Attributes"])["network_"] == "torch.nn.Module Another."
    assert "classes_" in entries(sections(WithNotes)["Attributes"])

    @hyperparameters
    class ByHand(oneof.CC):
        """One line.

        Parameters
        ----------
        lr : float
            Mine.
        """

    assert list(entries(sections(ByHand)["Parameters"])) == ["lr"]


def test_types_are_written_as_numpydoc_writes_them():
    found = entries(sections(PartialLabelClassifier)["Parameters"])
    for name, text in {
        "network": "str, Module or callable, ",
        "patience": "int or None, ",
        "random_state": "int, RandomState or None, ",
        "checkpoint": "str, PathLike or None, ",
    }.items():
        assert found[name].startswith(text)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (float("inf"), "is inf, but must be finite: a number >= 0"),
        (float("nan"), "is nan, but must be finite: a number >= 0"),
        (np.float32("inf"), ".*, but must be finite: a number >= 0"),
        (10**400, r"is an integer of 1329 bits, but must be below 2\*\*63: a number >= 0"),
        pytest.param(
            10**5000, r"is an integer of 16610 bits, but must be below 2\*\*63: a number >= 0", id="digits"
        ),
        ("x" * 5000, r"is 'x+\.\.\.x+', but must be a number >= 0"),
        (np.zeros((90, 9)), r"is <ndarray of shape \(90, 9\)>, but must be a number >= 0"),
    ],
)
def test_numbers_are_finite_and_messages_short(value, words):
    with pytest.raises(ValueError, match=f"beta of LWS {words}") as caught:
        check(oneof.LWS(beta=value))
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("value", [0, -1, 1025, 2.0, True])
def test_threads_are_a_number_that_a_machine_can_have(value):
    with pytest.raises(
        ValueError, match=r"threads of CC is .*, but must be a whole number in \[1, 1024\] or None"
    ):
        check(oneof.CC(threads=value))


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (
            1e300,
            r"sample_weight sums to 6e\+301, but must sum to at most 3e\+30 in float32; divide the weights by",
        ),
        (1e308, "sample_weight sums to inf, but must sum to at most"),
        (
            1e-20,
            "the largest sample_weight is 1e-20, but must be at least 1e-09; divide the weights by their mean",
        ),
        (float("nan"), "sample_weight contains NaN"),
        (float("inf"), "sample_weight contains infinity"),
        (-1.0, "Negative values"),
    ],
)
def test_weights_that_training_cannot_hold_are_refused(weight, message):
    X, S = problem()
    model = oneof.CC(epochs=1, device="cpu")
    with pytest.raises(ValueError, match=message):
        model.fit(X, S, sample_weight=np.full(60, weight))
    assert not hasattr(model, "network_")
    model.fit(X, S)
    if not 0 < weight < 1e308:
        with pytest.raises(ValueError, match=message):
            model.score(X, S, sample_weight=np.full(60, weight))


def test_weights_may_have_any_scale_that_training_can_hold():
    X, S = problem()
    weight = np.random.default_rng(0).integers(1, 9, size=60).astype(float)
    settings = {"epochs": 3, "random_state": 0, "device": "cpu"}
    plain, large, small = (
        oneof.PRODEN(**settings).fit(X, S, sample_weight=scale * weight).predict_proba(X)
        for scale in (1.0, 2.0**80, 2.0**-25)
    )
    np.testing.assert_allclose(large, plain, atol=1e-6)
    np.testing.assert_allclose(small, plain, atol=1e-6)
    double = oneof.PRODEN(**settings, precision="fp64").fit(X, S, sample_weight=1e250 * weight)
    assert np.isfinite(double.predict_proba(X)).all()


def test_values_whose_spread_is_not_finite_are_refused():
    X, S = problem()
    with pytest.raises(
        ValueError, match=r"X holds values as large as .*e\+200, whose standard deviation is not fini"
    ):
        oneof.CC(epochs=1).fit(X * 1e200, S)
