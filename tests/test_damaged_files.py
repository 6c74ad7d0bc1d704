"""Model files and checkpoints with edited insides: they are read as written, or refused in one sentence."""

import copy
import json
import math
import random
import warnings

import numpy as np
import pytest
import safetensors.torch
import torch

import oneof
from conftest import MEMBERS, fit_with
from oneof.train import Paused

SEEDS = 100  # of each kind of file, of which there are thirteen
EPOCHS = 6
# What a file may be refused with: the words that only this library's messages have.
WORDS = (
    "does not hold what its header promises", "is damaged", "was not written by oneof",
    "a fit with other parameters", "a fit on other data",
    "which is none of the methods", "newer than format", "but a checkpoint was expected",
    "but a model was expected", "the model has a network of your own", "gives NaN in",
)  # fmt: skip
STRANGE = [
    None, True, 0, 1, -1, 3, 10**6, 10**12, 10**30, 2.5, -0.1, math.nan, math.inf, "", "x", "mlp", "x" * 3000, [],
    [1], [None], ["a", "b", "c"], [1, 2, 3], {}, {"own": True}, {"a": 1}, [[1]], [0.5] * 3,
]  # fmt: skip


def unpack(path):
    with safetensors.safe_open(path, "pt") as file:
        facts = json.loads(file.metadata()["oneof"])
    return safetensors.torch.load_file(path), facts


def pack(path, tensors, facts):
    safetensors.torch.save_file(
        {n: t.contiguous() for n, t in tensors.items()}, path, {"oneof": json.dumps(facts)}
    )


def places(facts):
    """Every place in a header: the table or list it is in, and its name there."""
    for name in list(facts) if isinstance(facts, dict) else range(len(facts)):
        yield facts, name
        if isinstance(facts[name], dict | list):
            yield from places(facts[name])


def edit(rng, tensors, facts):
    """Change one or two things in a file."""
    for _ in range(rng.choice([1, 1, 2])):
        if rng.random() < 0.6:
            table, name = rng.choice(list(places(facts)))
            if isinstance(table, dict) and rng.random() < 0.25:
                del table[name]
            elif isinstance(table, dict) and rng.random() < 0.1:
                table[rng.choice(["more", "device", "checkpoint", "network_"])] = rng.choice(STRANGE)
            else:
                table[name] = copy.deepcopy(rng.choice(STRANGE))
        else:
            edit_tensor(rng, tensors)


def edit_tensor(rng, tensors):
    name = rng.choice(sorted(tensors))
    tensor = tensors[name]
    kind = rng.choice(["delete", "rename", "shape", "dtype", "nan", "inf", "huge", "empty", "bits"])
    if kind == "delete":
        del tensors[name]
    elif kind == "rename":
        tensors[rng.choice(["x", f"{name}.x", "learned.x", "optimizer.99.momentum_buffer"])] = tensors.pop(name)
    elif kind == "shape":
        tensors[name] = rng.choice([tensor.flatten()[:1], tensor.unsqueeze(0), tensor.flatten()])
    elif kind == "dtype":
        tensors[name] = tensor.to(rng.choice([torch.float16, torch.int64, torch.bool, torch.float64]))
    elif kind == "empty":
        tensors[name] = torch.zeros(0)
    elif kind == "bits" and tensor.dtype == torch.uint8:
        tensors[name] = torch.randint(0, 256, tensor.shape, dtype=torch.uint8)
    elif tensor.numel():
        values = {"nan": math.nan, "inf": math.inf, "huge": 1e30}
        changed = tensor.clone().flatten()
        changed[rng.randrange(len(changed))] = values.get(kind, -1) if tensor.is_floating_point() else -1 % 2
        tensors[name] = changed.view(tensor.shape)


def refusal(function):
    """Return what a function returns, and the message of its refusal; any other error is one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(), None
        except (ValueError, FileNotFoundError) as error:
            text = str(error)
            assert any(word in text for word in WORDS), text
            assert len(text) < 1200, text
            assert "\n" not in text
            return None, text


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(7)
    y = np.arange(40) % 3
    candidates = rng.random((40, 3)) < 0.3
    candidates[np.arange(40), y] = True
    return rng.normal(size=(40, 4)) + 4 * np.eye(3, 4)[y], candidates


@pytest.fixture(scope="module", params=["idgp", "pico", "membership", "cc on images", "own"])
def saved(request, problem, tmp_path_factory):
    """A model file, the rows it predicts, and its network where that is one's own."""
    X, S = problem
    settings = {"epochs": 2, "random_state": 0, "device": "cpu", "validation_fraction": 0.2}
    network = None
    if request.param == "cc on images":
        X = np.random.default_rng(0).random((40, 8, 8))
        model = oneof.CC(**settings).fit(X, S)
    elif request.param == "own":
        network = torch.nn.Linear(4, 3)
        model = oneof.CC(network=network, **settings).fit(X, S)
    else:
        model = MEMBERS[request.param](**settings).fit(X, S)
    path = tmp_path_factory.mktemp("saved") / "model"
    model.save(path)
    return path, X, network


def test_an_edited_model_is_refused_in_one_sentence_or_predicts_numbers(saved, tmp_path):
    path, X, network = saved
    original, path = path, tmp_path / "model"
    refused = 0
    for seed in range(SEEDS):
        rng = random.Random(seed)
        torch.manual_seed(seed)
        tensors, facts = unpack(original)
        edit(rng, tensors, facts)
        pack(path, tensors, facts)
        model, message = refusal(lambda: oneof.load_model(path, network=network, device="cpu"))
        refused += message is not None
        predictions, _ = (None, None) if model is None else refusal(lambda model=model: model.predict_proba(X))
        assert predictions is None or np.isfinite(predictions).all(), seed
    assert refused > SEEDS / 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda t, f: t["learned.network_.head.weight"].fill_(math.nan),
            "'learned.network_.head.weight' holds NaN",
        ),
        (
            lambda t, f: t["learned.network_.head.bias"].fill_(math.inf),
            "'learned.network_.head.bias' holds NaN or inf",
        ),
        (lambda t, f: t["scaler.mean"].fill_(math.nan), "'scaler.mean' holds NaN or infinity"),
        (lambda t, f: t["scaler.std"].zero_(), "'scaler.std' holds numbers that are not above 0"),
        (lambda t, f: t["label_distributions"].fill_(math.nan), "holds rows that are no distributions"),
        (
            lambda t, f: t.update(label_distributions=torch.ones(7, 3) / 3),
            "training_rows is 32, but of the 7 rows",
        ),
        (
            lambda t, f: t.update(label_distributions=torch.ones(40, 4) / 4),
            r"shape \(40, 4\), but there are 3 classes",
        ),
        (lambda t, f: t.pop("label_distributions"), r"label_distributions has shape \(0,\)"),
        (
            lambda t, f: t.update({"learned.w_": t["learned.w_"][:1]}),
            r"float32 of shape \(1, 3\), but must be float32 of",
        ),
        (lambda t, f: t.update({"learned.w_": t["learned.w_"].double()}), "'learned.w_' is float64 of shape"),
        (
            lambda t, f: f["parameters"].update(threads=-1),
            "threads of PRODEN is -1, but must be a whole number in",
        ),
        (
            lambda t, f: f["parameters"].update(threads="two"),
            "threads of PRODEN is 'two', but must be a whole number",
        ),
        (lambda t, f: f["parameters"].update(threads=10**9), r"must be a whole number in \[1, 1024\]"),
        (
            lambda t, f: f["parameters"].update(lr=math.inf),
            "lr of PRODEN is inf, but must be finite: a number > 0",
        ),
        (lambda t, f: f["parameters"].update(checkpoint="/x"), "PRODEN has no setting 'checkpoint'"),
        (lambda t, f: f["parameters"].update(network="vgg"), "network is 'vgg' but must be one of"),
        (lambda t, f: f.update(n_features_in=10**15), r"no tensor 'scaler.mean' of float64 and shape \(10000000"),
        (lambda t, f: f.update(n_features_in=0), "n_features_in is 0, but must be >= 1"),
        (lambda t, f: f.update(training_rows=10**15), "training_rows is 1000000000000000, but of the 40 rows"),
        (lambda t, f: f.update(training_rows="32"), "training_rows is '32', but must be a whole number"),
        (
            lambda t, f: f.update(input_shape=[1, 2, 3]),
            "input_shape is .1, 2, 3., but must be the shape of 4 pixels",
        ),
        (lambda t, f: f.update(feature_names_in=["a"]), "feature_names_in has 1 names, but n_features_in is 4"),
        (lambda t, f: f.update(classes=[0, 1, 1]), r"classes are \[0, 1, 1\], but must be at least two different"),
        (lambda t, f: f.update(classes=["a", "b", "c"]), "classes are not of the type"),
        (lambda t, f: f.update(classes_type="O"), "classes are not of the type 'O' that classes_type says"),
        (lambda t, f: f.update(history={"loss": ["x"]}), r"history.loss\[0\] is 'x', but must be a number"),
        (lambda t, f: f.pop("history"), "it has no 'history'"),
    ],
)
def test_what_is_wrong_with_a_model_is_said(change, message, problem, tmp_path):
    path = tmp_path / "m"
    model = oneof.PRODEN(epochs=1, random_state=0, validation_fraction=0.2, device="cpu").fit(*problem)
    model.save(path)
    tensors, facts = unpack(path)
    change(tensors, facts)
    pack(path, tensors, facts)
    with pytest.raises(
        ValueError, match=f"does not hold what its header promises .*{message}.*use an undamaged copy"
    ):
        oneof.load_model(path, device="cpu")


def test_a_header_that_asks_for_more_memory_than_there_is_is_refused(problem, tmp_path):
    model = oneof.PiCO(views="plain+jitter", epochs=1, queue_size=40, device="cpu").fit(*problem)
    model.save(tmp_path / "m")
    tensors, facts = unpack(tmp_path / "m")
    for change in ({"queue_size": 10**13}, {"embedding_size": 10**13}):
        pack(tmp_path / "m", tensors, facts | {"parameters": facts["parameters"] | change})
        with pytest.raises(ValueError, match=r"promises .the tensor 'learned.* but must be"):
            oneof.load_model(tmp_path / "m", device="cpu")


def test_a_setting_that_a_file_does_not_say_is_told(problem, tmp_path):
    oneof.CC(epochs=1, device="cpu").fit(*problem).save(tmp_path / "m")
    tensors, facts = unpack(tmp_path / "m")
    del facts["parameters"]["momentum"]
    pack(tmp_path / "m", tensors, facts)
    with pytest.warns(UserWarning, match="the file does not say momentum of CC; the defaults are taken"):
        oneof.load_model(tmp_path / "m", device="cpu")


def test_settings_of_numpy_are_saved_and_told_apart(problem, tmp_path):
    settings = {"lr": np.float32(0.25), "epochs": np.int64(3), "patience": np.int32(2), "validation_fraction": 0.2}
    model = oneof.CC(**settings, random_state=0, checkpoint=tmp_path / "c", device="cpu").fit(*problem)
    model.save(tmp_path / "m")
    again = oneof.load_model(tmp_path / "m", device="cpu")
    assert (again.lr, again.epochs, again.patience) == (0.25, 3, 2)
    with pytest.raises(ValueError, match=r"lr was 0\.25 and is 0\.5"):
        oneof.CC(**settings | {"lr": np.float32(0.5)}, random_state=0, checkpoint=tmp_path / "c").fit(*problem)


def test_a_setting_that_no_file_can_hold_is_said_when_saving(problem, tmp_path):
    @oneof.estimator.hyperparameters
    class Weighted(oneof.CC):
        prior: object = None

    model = Weighted(prior=torch.ones(3), epochs=1, device="cpu").fit(*problem)
    with pytest.raises(ValueError, match="prior of Weighted is of type Tensor, which a model file cannot hold"):
        model.save(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_loading_leaves_torchs_random_state_alone(problem, tmp_path):
    oneof.CC(epochs=1, device="cpu").fit(*problem).save(tmp_path / "m")
    state = torch.get_rng_state()
    oneof.load_model(tmp_path / "m", device="cpu")
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("device", ["mps", "xpu", "vulkan", "meta", "cpu:3", "cuda:-1", "abacus", 5, None])
def test_devices_that_are_not_supported_are_refused(device, problem, tmp_path):
    oneof.CC(epochs=1, device="cpu").fit(*problem).save(tmp_path / "m")
    message = r"device is .*, but must be ('auto', 'cpu', 'cuda' or a GPU such as 'cuda:1': only|a name such as)"
    with pytest.raises(ValueError, match=message):
        oneof.CC(epochs=1, device=device).fit(*problem)
    with pytest.raises(ValueError, match=message):
        oneof.load_model(tmp_path / "m", device=device)


# --- checkpoints ------------------------------------------------------------------------------------------

FITS = {
    "idgp": {"validation_fraction": 0.2, "m": 0.5},
    "pico": {"validation_fraction": 0.2},
    "valen": {"warm_up": 3},  # two networks that no loss has reached
    "cc": {"momentum": 0.0},
    "rc": {"optimizer": "adamw"},
}


@pytest.fixture(scope="module", params=FITS)
def paused(request, problem, tmp_path_factory):
    """A checkpoint, and a function that makes its model."""
    path = tmp_path_factory.mktemp("paused") / "fit"

    def made(path):
        settings = {"epochs": EPOCHS, "batch_size": 10, "random_state": 0, "device": "cpu", "network": "linear"}
        return MEMBERS[request.param](**settings | FITS[request.param], checkpoint=path)

    stops = iter([False, True])
    with pytest.raises(Paused):
        fit_with(made(path), *problem, pause=lambda: next(stops))
    return path, made


@pytest.mark.parametrize("together", [False, True])
def test_an_edited_checkpoint_is_refused_in_one_sentence_or_trains_to_numbers(paused, together, problem, tmp_path):
    original, made = paused
    X, S = problem
    path, refused = tmp_path / "fit", 0
    for seed in range(SEEDS):
        rng = random.Random(seed)
        torch.manual_seed(seed)
        tensors, facts = unpack(original)
        edit(rng, tensors, facts)
        pack(path, tensors, facts)

        def go_on():
            model = made(path)
            try:
                return oneof.fit_together([model], [{"X": X, "y": S}])[0] if together else model.fit(X, S)
            except oneof.train.TrainingDiverged:  # a number that is finite and far too large
                return None

        model, message = refusal(go_on)
        refused += message is not None
        if model is not None:
            assert np.isfinite(model.predict_proba(X)).all(), seed
        assert [each.name for each in tmp_path.iterdir()] == ["fit"]
        assert message is None or unpack(path)[1].keys() == facts.keys()  # what was refused is left as it was
    assert refused > SEEDS / 2


def test_a_checkpoint_of_format_1_goes_on(paused, problem, tmp_path):
    """It has neither tables of the best epoch nor momentum of networks that no loss has reached."""
    original, made = paused
    whole = made(None).fit(*problem)
    tensors, facts = unpack(original)
    absent = {name for name in tensors if name.startswith("best.")} - {f"best.{name}" for name in whole.weights()}
    absent |= {name for name, tensor in tensors.items() if "momentum_buffer" in name and not tensor.any()}
    assert absent or whole.momentum == 0 or whole.optimizer == "adamw"  # which format 1 never had
    path = tmp_path / "fit"
    pack(path, {name: tensor for name, tensor in tensors.items() if name not in absent}, facts | {"version": 1})
    resumed = made(path).fit(*problem)
    for name, tensor in whole.learned().items():
        assert torch.equal(tensor, resumed.learned()[name]), name


def test_an_untouched_checkpoint_goes_on(paused, problem, tmp_path):
    original, made = paused
    path = tmp_path / "fit"
    pack(path, *unpack(original))
    resumed, whole = made(path).fit(*problem), made(None).fit(*problem)
    for name, tensor in whole.learned().items():
        assert torch.equal(tensor, resumed.learned()[name]), name


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda t, f: t["learned.network_.head.weight"].fill_(math.nan),
            "'learned.network_.head.weight' holds NaN",
        ),
        (
            lambda t, f: t["best.network_.head.weight"].fill_(math.inf),
            "'best.network_.head.weight' holds NaN or inf",
        ),
        (lambda t, f: t["optimizer.0.momentum_buffer"].fill_(math.nan), "'optimizer.0.momentum_buffer' holds NaN"),
        (lambda t, f: t.pop("optimizer.1.momentum_buffer"), "there is no tensor 'optimizer.1.momentum_buffer'"),
        (
            lambda t, f: t.update({"optimizer.9.momentum_buffer": torch.ones(1)}),
            "'optimizer.9.momentum_buffer' has no p",
        ),
        (lambda t, f: t.pop("learned.w_"), "there is no tensor 'learned.w_'"),
        (lambda t, f: t.pop("random.order"), "there is no tensor 'random.order'"),
        (lambda t, f: t["random.cpu"].fill_(255), "'random.cpu' is no state of a random generator"),
        (lambda t, f: t["held_out"].fill_(3), "'held_out' does not hold numbers of the 40 rows in rising order"),
        (lambda t, f: t["held_out"].add_(40), "'held_out' does not hold numbers of the 40 rows in rising order"),
        (
            lambda t, f: t.update(held_out=t["held_out"][1:]),
            r"'held_out' is int64 of shape \(7,\), but must be int64",
        ),
        (lambda t, f: t["scaler.std"].neg_(), "'scaler.std' holds numbers that are not above 0"),
        (lambda t, f: f["state"].update(epoch=7), r"state.epoch is 7, but must be in \[1, 6\]"),
        (lambda t, f: f["state"].update(epoch=3), "state.history.loss has 2 numbers, but 3 epochs are done"),
        (lambda t, f: f["state"].update(best_epoch=2), "state.best_epoch is 2, but there are 2 validation scores"),
        (
            lambda t, f: f["state"].update(best_epoch=-1),
            "state.best_epoch is -1, but there are 2 validation scores",
        ),
        (
            lambda t, f: f["state"].update(best_score=0.1),
            "state.best_score is 0.1, which is not the score of epoch",
        ),
        (lambda t, f: f["state"].update(seconds=-1.0), "state.seconds is -1.0, but must be >= 0"),
        (lambda t, f: f["state"].update(seconds=10**400), "state.seconds is .*, but must be >= 0"),
        (
            lambda t, f: f["state"]["history"].update(loss=[1.0, 10**400]),
            "state.history.loss holds numbers that are n",
        ),
        (
            lambda t, f: f["state"]["history"].update(loss=[1.0, math.nan]),
            "state.history.loss holds numbers that are n",
        ),
        (lambda t, f: f["state"].pop("seconds"), "state has no 'seconds'"),
        (lambda t, f: f.update(seed=-5), r"seed is -5, but must be in \[0, 2147483648\)"),
        (lambda t, f: f.update(parameters=[]), r"parameters is \[\], but must be a table"),
    ],
)
def test_what_is_wrong_with_a_checkpoint_is_said(change, message, problem, tmp_path):
    path = tmp_path / "c"
    settings = {
        "epochs": EPOCHS,
        "random_state": 0,
        "validation_fraction": 0.2,
        "checkpoint": path,
        "device": "cpu",
    }
    stops = iter([False, True])
    with pytest.raises(Paused):
        fit_with(oneof.PRODEN(**settings), *problem, pause=lambda: next(stops))
    tensors, facts = unpack(path)
    change(tensors, facts)
    pack(path, tensors, facts)
    with pytest.raises(
        ValueError, match=rf"the checkpoint .*c' is damaged \(.*{message}.*\); delete it to begin anew"
    ):
        oneof.PRODEN(**settings).fit(*problem)


def test_squares_and_steps_below_0_are_refused(problem, tmp_path):
    def made():
        settings = {"epochs": 4, "batch_size": 10, "random_state": 0, "device": "cpu", "network": "linear"}
        return oneof.CC(**settings, optimizer="adamw", checkpoint=tmp_path / "fit")

    stops = iter([False, True])
    with pytest.raises(Paused):
        fit_with(made(), *problem, pause=lambda: next(stops))
    tensors, facts = unpack(tmp_path / "fit")
    for name in ("optimizer.0.square_buffer", "optimizer.1.steps"):
        pack(tmp_path / "fit", tensors | {name: tensors[name] - 100}, facts)
        with pytest.raises(ValueError, match=rf"'{name}' holds numbers below 0"):
            made().fit(*problem)
