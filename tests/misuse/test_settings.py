"""Settings of wrong types and values: every field of every method, and those that do not go together."""

import math
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import oneof
from conftest import NEEDS
from fields_walk import every_field_once
from misuse.conftest import TINY
from misuse.rows import carry_out, check_message, is_ours, parametrize, refused, warned, works
from oneof import METHODS

# Values of all kinds, most of which a setting does not accept.
WRONG = [
    None, True, -1, 0, 1.5, -0.5, math.nan, math.inf, 2**63, "", "text", b"text", [], [1], {}, {"a": 1}, {1}, 1j,
    object(), np.arange(3), np.eye(2), np.array("text"), Path("text"),
]  # fmt: skip
# A network may be any callable, and is judged when it is built: see SETTING_ROWS.
FIELDS = [each for each in every_field_once() if each.values[1] != "network"]
SLOW = {"compile", "threads"}  # what these accept is not tried


def accepted(method, name):
    """The values of WRONG that a setting accepts."""
    (field,) = (each for each in fields(method) if each.name == name)
    accepts = field.metadata.get("accepts")
    return [value for value in WRONG if accepts is not None and accepts(value)]


@pytest.mark.parametrize(("name", "setting"), FIELDS)
def test_a_setting_says_what_it_must_be(name, setting, kit):
    """Every value that a setting does not accept is refused before training, and named with what it must be."""
    method, tried = METHODS[name], 0
    (field,) = (each for each in fields(method) if each.name == setting)
    for value in WRONG:
        if any(value is other for other in accepted(method, setting)):
            continue
        model = method(**TINY | NEEDS.get(name, {}) | {setting: value})
        with pytest.raises(ValueError) as found:  # noqa: PT011  the words are checked below
            model.fit(kit.X, kit.S)
        words = (setting,) if setting == "device" else (setting, method.__name__, field.metadata["expected"])
        check_message(str(found.value), words)
        assert is_ours(found.value)
        tried += 1
    assert tried > len(WRONG) / 2


@pytest.mark.parametrize(("name", "setting"), FIELDS)
def test_what_a_setting_accepts_trains(name, setting, kit, tmp_path, monkeypatch):
    """No value is accepted and then fails inside: the weights are finite."""
    monkeypatch.chdir(tmp_path)  # "text" is a checkpoint
    beside = {"patience": {"validation_fraction": 0.2}}.get(setting, {})
    for value in accepted(METHODS[name], setting):
        if setting not in SLOW and not isinstance(value, dict):  # weights of classes that there are not
            model = METHODS[name](**TINY | NEEDS.get(name, {}) | beside | {setting: value})
            assert np.isfinite(model.fit(kit.X, kit.S).predict_proba(kit.X)).all(), value


SETTING_ROWS = [
    refused(
        "weights of classes that there are not",
        ValueError,
        lambda k: k.model(class_weight={"cat": 2, 1: 3}).fit(k.X, k.S),
        "class_weight names 'cat'",
        "0, 1, 2",
    ),
    refused(
        "weights of classes that are all 0",
        ValueError,
        lambda k: k.model(class_weight={0: 0, 1: 0, 2: 0}).fit(k.X, k.S),
        "sum to 0",
    ),
    refused(
        "weights of classes beyond all bounds",
        ValueError,
        lambda k: k.model(class_weight={0: 1e300}).fit(k.X, k.S),
        "sums to",
    ),
    refused(
        "a warm start with other classes",
        ValueError,
        lambda k: k.model(warm_start=True).fit(k.X, k.S).fit(k.X, k.names),
        "'cat', 'cow', 'dog' and had 0, 1, 2",
        "warm_start=False",
    ),
    refused(
        "a warm start with fewer columns",
        ValueError,
        lambda k: k.model(warm_start=True).fit(k.X, k.S).fit(k.X[:, :2], k.S),
        "(2,) and had (4,)",
    ),
    refused(
        "a warm start with columns in another order",
        ValueError,
        lambda k: k.model(warm_start=True).fit(k.frame, k.S).fit(k.frame[list("bacd")], k.S),
        "'b', 'a', 'c', 'd'",
        "the same columns",
    ),
    refused(
        "a warm start with another network",
        ValueError,
        lambda k: k.model(warm_start=True).fit(k.X, k.S).set_params(network="mlp").fit(k.X, k.S),
        "networks are others",
    ),
    refused(
        "a warm start with a checkpoint",
        ValueError,
        lambda k: k.model(warm_start=True, checkpoint=k.folder / "c").fit(k.X, k.S),
        "set one of them",
    ),
    refused(
        "a rate in percent",
        ValueError,
        lambda k: k.model(outside=10).fit(k.X, k.S),
        "outside of CC is 10",
        "[0, 1)",
    ),
    refused("a misspelt rate", ValueError, lambda k: k.model(outside="atuo").fit(k.X, k.S), "'atuo'", "'auto'"),
    refused(
        "a rate for a method without probabilities",
        ValueError,
        lambda k: oneof.LWS(outside=0.1, **TINY).fit(k.X, k.S),
        "LWS has no probabilities of labels outside the sets",
        "Competition",
    ),
    refused(
        "ALIM's rule for a method whose labels leave their sets for good",
        ValueError,
        lambda k: oneof.POP(outside_rule="alim", **TINY).fit(k.X, k.S),
        "POP has no target of labels outside the sets",
        "PRODEN",
    ),
    refused(
        "ALIM's rule for a method without targets",
        ValueError,
        lambda k: oneof.CC(outside=0.1, outside_rule="alim", **TINY).fit(k.X, k.S),
        "CC has no target of labels outside the sets",
        "PRODEN",
    ),
    refused(
        "ALIM's rule without a rate",
        ValueError,
        lambda k: oneof.PRODEN(outside_rule="alim", **TINY).fit(k.X, k.S),
        "outside is 0",
        "'auto'",
    ),
    refused(
        "a rule that is none",
        ValueError,
        lambda k: k.model(outside=0.1, outside_rule="alin").fit(k.X, k.S),
        "outside_rule of CC is 'alin'",
        "'alim'",
    ),
    refused(
        "a short training of no number of epochs",
        ValueError,
        lambda k: oneof.IDGP.fast(epochs="20").fit(k.X, k.S),
        "epochs of IDGP is '20'",
        "a whole number >= 1",
    ),
    refused(
        "a rate of no method",
        TypeError,
        lambda k: oneof.outside_rate("idgp", k.X, k.S),
        "model is 'idgp'",
        "oneof.",
    ),
    refused(
        "a rate by one fold", ValueError, lambda k: oneof.outside_rate(k.model(), k.X, k.S, folds=1), "folds is 1"
    ),
    refused(
        "negative mixing", ValueError, lambda k: oneof.PRODEN(mixup=-1).fit(k.X, k.S), "mixup of PRODEN is -1"
    ),
    refused("a misspelt network", ValueError, lambda k: k.model(network="mpl").fit(k.X, k.S), "'mpl'", "'mlp'"),
    refused("a network that is a number", ValueError, lambda k: k.model(network=5).fit(k.X, k.S), "network is 5"),
    refused(
        "misspelt views",
        ValueError,
        lambda k: k.model(views="plain+jiter").fit(k.X, k.S),
        "'plain+jiter'",
        "'jitter'",
    ),
    refused("views as a list", ValueError, lambda k: k.model(views=["plain"]).fit(k.X, k.S), "joined by '+'"),
    refused("views without a name", ValueError, lambda k: k.model(views="+").fit(k.X, k.S), "views of CC is '+'"),
    refused(
        "a device that is not there",
        ValueError,
        lambda k: k.model(device="cuda:99").fit(k.X, k.S),
        "'cuda:99'",
        "GPUs",
    ),
    refused(
        "a device that nobody knows", ValueError, lambda k: k.model(device="tpu").fit(k.X, k.S), "'tpu'", "'cpu'"
    ),
    refused(
        "a device as a number", ValueError, lambda k: k.model(device=0.5).fit(k.X, k.S), "device is of type float"
    ),
    refused(
        "a scaling of another library", ValueError, lambda k: k.model(scaling="standard").fit(k.X, k.S), "'whole'"
    ),
    refused(
        "precision of another library",
        ValueError,
        lambda k: k.model(precision="fp16").fit(k.X, k.S),
        "'fp16'",
        "'bf16'",
    ),
    refused(
        "a generator as random_state",
        ValueError,
        lambda k: k.model(random_state=np.random.default_rng(0)).fit(k.X, k.S),
        "random_state",
        "a RandomState or None",
    ),
    refused(
        "a checkpoint in a folder that is missing",
        FileNotFoundError,
        lambda k: k.model(checkpoint=k.folder / "no" / "file").fit(k.X, k.S),
        "does not exist",
        "create it first",
    ),
    refused(
        "a checkpoint of other data",
        ValueError,
        lambda k: (
            k.model(checkpoint=k.folder / "c").fit(k.X, k.S),
            k.model(checkpoint=k.folder / "c").fit(k.X[::-1], k.S),
        ),
        "data",
    ),
    refused(
        "a checkpoint of other settings",
        ValueError,
        lambda k: (
            k.model(checkpoint=k.folder / "c").fit(k.X, k.S),
            k.model(checkpoint=k.folder / "c", lr=0.01).fit(k.X, k.S),
        ),
        "lr",
    ),
    refused(
        "a model file as checkpoint",
        ValueError,
        lambda k: (k.fitted.save(k.folder / "m"), k.model(checkpoint=k.folder / "m").fit(k.X, k.S)),
        "holds a model",
        "checkpoint was expected",
    ),
    refused(
        "a text file as checkpoint",
        ValueError,
        lambda k: ((k.folder / "c").write_text("no"), k.model(checkpoint=k.folder / "c").fit(k.X, k.S)),
        "no safetensors file",
    ),
    warned(
        "a warm-up as long as the training",
        lambda k: oneof.IDGP(**TINY | {"warm_up": 2}).fit(k.X, k.S),
        "warm_up is 2",
        "epochs is 2",
    ),
    warned(
        "a snapshot of IDGP within its warm-up",
        lambda k: oneof.IDGP(**TINY | {"epochs": 3, "warm_up": 2, "q": 1}).fit(k.X, k.S),
        "q is 1",
        "warm_up is 2",
        "the snapshot is of epoch 2",
    ),
    warned(
        "distractors of rows where z is constant",
        lambda k: oneof.IDGP(**TINY | {"objective": "uniform", "distractors": "rows"}).fit(k.X, k.S),
        "distractors is 'rows'",
        "objective='map'",
    ),
    works(
        "a batch larger than the table",
        lambda k: k.model(batch_size=1000, epochs=20).fit(k.X, k.S).score(k.X, k.y),
        lambda score: score > 0.5,
    ),
    works(
        "NumPy's numbers as settings",
        lambda k: k.model(lr=np.float32(0.1), epochs=np.int64(2), random_state=np.int32(0)).fit(k.X, k.S),
        lambda fitted: len(fitted.history_["loss"]) == 2,
    ),
    refused(
        "a misspelt setting",
        TypeError,
        lambda k: oneof.IDGP(learning_rate=0.1),
        "learning_rate",
        wording="Python's",
    ),
    refused("a setting by position", TypeError, lambda k: oneof.IDGP("mlp"), "positional", wording="Python's"),
    refused(
        "set_params with a misspelt name",
        ValueError,
        lambda k: k.model().set_params(epoch=3),
        "'epoch'",
        "CC",
        wording="scikit-learn's",
    ),
]


@parametrize(SETTING_ROWS)
def test_settings(row, kit):
    carry_out(row, kit)
