"""Training: determinism, validation, early stopping, checkpoints that survive real kills."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from functools import partial

import numpy as np
import pytest
import torch

import oneof
from conftest import MEMBERS, every_method, fit_with
from oneof.io import tensors as tensor_file
from oneof.testing.contract import check_resume
from oneof.train import Paused, checkpoint
from oneof.train.runtime import seed_for
from oneof.train.sgd import SGD


def weights(model):
    return {name: tensor.clone() for name, tensor in model.learned().items()}


def assert_same(first, second):
    assert first.keys() == second.keys()
    for name, tensor in first.items():
        assert torch.equal(tensor, second[name]), name


@every_method
@pytest.mark.parametrize("network", ["linear", "mlp"])
def test_same_seed_same_bits(method, network, digits):
    X, S, _ = digits
    torch.manual_seed(1)
    settings = {"network": network, "epochs": 3, "validation_fraction": 0.2, "views": "plain+jitter+jitter"}
    first = method(random_state=5, **settings).fit(X[:300], S[:300])
    torch.manual_seed(2)  # torch's own random state has no part in it
    torch.rand(7)
    state = torch.get_rng_state()
    second = method(random_state=5, **settings).fit(X[:300], S[:300])
    assert torch.equal(torch.get_rng_state(), state)  # and is left as it was
    assert_same(weights(first), weights(second))
    other = method(random_state=6, **settings).fit(X[:300], S[:300])
    assert not torch.equal(weights(first)["network_.head.weight"], weights(other)["network_.head.weight"])


def test_random_state_none_differs_between_fits(blobs):
    X, S, _ = blobs
    first, second = (oneof.CC(epochs=1).fit(X, S).predict_proba(X) for _ in range(2))
    assert not np.array_equal(first, second)


def test_seeds_are_split_by_purpose():
    seeds = {seed_for(seed, purpose) for seed in range(20) for purpose in ("weights", "order", "noise", "split")}
    assert len(seeds) == 80


@pytest.mark.parametrize(
    ("network", "threads", "inside"), [("mlp", None, 1), ("linear", None, 1), ("mlp", 2, 2), ("mlp", 1024, 4)]
)
def test_threads_are_set_inside_and_restored(network, threads, inside, blobs, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    X, S, _ = blobs
    seen, before = [], torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        model = oneof.CC(network=network, threads=threads, epochs=1)
        fit_with(model, X, S, on_epoch=lambda _: seen.append(torch.get_num_threads()))
        assert (seen, torch.get_num_threads()) == ([inside], 3)
        with pytest.raises(ValueError, match="inside"):
            fit_with(model, X, S, on_epoch=lambda _: (_ for _ in ()).throw(ValueError("inside")))
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def test_own_networks_and_lenet_keep_torchs_threads(digits):
    X, S, _ = digits
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        seen = []
        images = X[:40].reshape(-1, 8, 8)
        fit_with(oneof.CC(epochs=1), images, S[:40], on_epoch=lambda _: seen.append(torch.get_num_threads()))
        assert seen == [3]
    finally:
        torch.set_num_threads(before)


@every_method
def test_validation_keeps_the_best_epoch_and_patience_stops(method, digits):
    X, S, y = digits
    scores = []
    model = method(epochs=60, patience=4, random_state=0)
    X_val, y_val = X[300:500], y[300:500]
    fit_with(
        model, X[:300], S[:300], None, X_val, y_val, on_epoch=lambda _: scores.append(model.score(X_val, y_val))
    )
    curve = model.history_["validation_score"]
    assert curve == pytest.approx(scores)
    assert len(curve) < 60
    assert len(curve) - 1 - int(np.argmax(curve)) == 4
    assert model.score(X_val, y_val) == pytest.approx(max(curve))


@every_method
def test_validation_fraction_holds_rows_out(method, digits):
    X, S, _ = digits
    model = method(epochs=2, validation_fraction=0.25, random_state=0).fit(X[:200], S[:200])
    assert model.training_rows_ == 150
    assert len(model.history_["validation_score"]) == 2
    assert model.label_distributions_.shape == (200, 10)  # held-out rows are disambiguated too
    assert not np.isclose(model.scaler_.mean.numpy(), X[:200].mean(0)).all()  # but teach nothing


def test_validation_by_candidate_sets_equals_approximated_accuracy(digits):
    X, S, _ = digits
    model = oneof.CC(epochs=3, random_state=0).fit(X[:300], S[:300], X_val=X[300:400], y_val=S[300:400])
    p = model.predict_proba(X[300:400]).astype(float)
    expected = [p[i].max() / p[i][S[300 + i]].sum() if S[300 + i][p[i].argmax()] else 0.0 for i in range(100)]
    assert max(model.history_["validation_score"]) == pytest.approx(np.mean(expected))
    assert model.score(X[300:400], S[300:400]) == pytest.approx(np.mean(expected))


def test_constant_and_huge_features_are_safe(blobs):
    X, S, y = blobs
    X = np.column_stack([X * 1e6 + 1e9, np.full(40, 0.1), np.zeros(40), np.full(40, 1e12)])
    model = oneof.CC(epochs=30, random_state=0).fit(X, S)
    assert model.score(X, y) > 0.9
    shifted = X.copy()
    shifted[:, -1] += 1.0  # a constant feature that moves a little must not swamp the others
    assert model.score(shifted, y) > 0.9


@pytest.mark.parametrize("precision", ["bf16", "fp64"])
def test_precision(precision, digits):
    X, S, y = digits
    model = oneof.IDGP(precision=precision, epochs=15, random_state=0).fit(X[:1000], S[:1000])
    assert model.score(X[1000:], y[1000:]) > 0.85
    kind = torch.float64 if precision == "fp64" else torch.float32
    assert model.w_.dtype == kind  # label mathematics is never below float32
    plain = oneof.IDGP(epochs=15, random_state=0).fit(X[:1000], S[:1000])
    assert not np.array_equal(plain.predict_proba(X), model.predict_proba(X))


# --- checkpoints ------------------------------------------------------------------------------------------

FITS = {
    **{name: (method, {}) for name, method in MEMBERS.items()},
    "idgp with views": (oneof.IDGP, {"views": "plain+jitter+jitter", "warm_up": 2}),
    "idgp released": (oneof.IDGP, {"objective": "released", "warm_up": 2}),
    "idgp sequential": (oneof.IDGP, {"alternate": "sequential", "m": 0.5, "warm_up": 2}),
    "valen after its warm-up": (oneof.VALEN, {"warm_up": 2}),
    "membership after its warm-up": (oneof.Membership, {"warm_up": 2}),
    "triangular": (oneof.IDGP, {"schedule": "triangular", "average": 2.0, "warm_up": 2}),
    "adamw": (oneof.IDGP, {"optimizer": "adamw", "warm_up": 2}),
    "lenet": (oneof.RC, {"network": "lenet"}),
    "lenet and a graph": (oneof.VALEN, {"network": "lenet", "warm_up": 2}),
    "lenet and a queue": (oneof.PiCO, {"network": "lenet", "views": "plain+jitter+jitter", "queue_size": 250}),
}


class KilledError(Exception):
    """Stands for a kill."""


@pytest.mark.parametrize("name", FITS)
def test_an_interrupted_fit_goes_on_bit_for_bit(name, digits):
    method, settings = FITS[name]
    X, S, _ = digits
    X = X[:230].reshape(-1, 8, 8) if settings.get("network") == "lenet" else X[:230]
    check_resume(partial(method, **settings), X, S[:230], stops=(0, 1, 4))


def test_a_fit_without_seed_resumes_its_own(digits, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "SECONDS_BETWEEN_SAVES", 0.0)
    X, S, _ = digits
    path = tmp_path / "fit.ckpt"
    settings = {"epochs": 4, "validation_fraction": 0.3, "checkpoint": path}
    with pytest.raises(KilledError):
        fit_with(oneof.PRODEN(**settings), X[:200], S[:200], on_epoch=_kill_at(2))
    _, facts = tensor_file.read(path, "checkpoint")
    model = oneof.PRODEN(**settings).fit(X[:200], S[:200])
    _, later = tensor_file.read(path, "checkpoint")
    assert facts["seed"] == later["seed"]
    assert model.history_["loss"][:2] == facts["state"]["history"]["loss"]


def _kill_at(stop):
    def on_epoch(epoch):
        if epoch == stop:
            raise KilledError

    return on_epoch


def test_saves_are_at_most_every_thirty_seconds(digits, tmp_path, monkeypatch):
    X, S, _ = digits
    written = []
    monkeypatch.setattr(
        tensor_file, "write", lambda path, kind, tensors, facts: written.append(facts["state"]["epoch"])
    )
    clock = iter(range(0, 10_000, 11))
    monkeypatch.setattr(checkpoint.time, "monotonic", lambda: next(clock))
    oneof.CC(epochs=10, checkpoint=tmp_path / "c", random_state=0).fit(X[:100], S[:100])
    assert written[-1] == 10
    assert 2 <= len(written) <= 5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lr": 0.01}, r"lr was None and is 0\.01"),
        ({"epochs": 9}, "epochs was 4 and is 9"),
        ({"network": "linear"}, "network was 'mlp' and is 'linear'"),
        ({"random_state": 9}, "random_state was 0 and is 9"),
        ({"method": oneof.PRODEN}, "method was 'CC' and is 'PRODEN'"),
        ({"X": 1.0}, "other data"),
        ({"S": True}, "other data"),
        ({"sample_weight": np.full(100, 2.0)}, "other data"),
        ({"rows": 99}, "other data"),
    ],
)
def test_a_checkpoint_of_another_fit_is_refused(change, message, digits, tmp_path):
    X, S, _ = digits
    X, S, path = X[:100].copy(), S[:100].copy(), tmp_path / "fit.ckpt"
    settings = {"epochs": 4, "network": "mlp", "random_state": 0, "checkpoint": path}
    oneof.CC(**settings).fit(X, S)
    before, change = path.read_bytes(), dict(change)
    X[0, 0] += change.pop("X", 0)
    S[0] |= change.pop("S", False)
    rows, method = change.pop("rows", 100), change.pop("method", oneof.CC)
    weight = change.pop("sample_weight", None)
    with pytest.raises(ValueError, match=message):
        method(**settings | change).fit(X[:rows], S[:rows], sample_weight=weight)
    assert path.read_bytes() == before


def test_a_checkpoint_goes_on_with_other_traceless_settings(digits, tmp_path):
    X, S, path = digits[0][:100], digits[1][:100], tmp_path / "fit.ckpt"
    settings = {"epochs": 4, "network": "mlp", "random_state": 0, "checkpoint": path}
    with pytest.raises(Paused):
        fit_with(oneof.CC(**settings), X, S, pause=lambda: True)
    epochs = []
    others = {"verbose": 1, "threads": 2, "device": "cpu"}
    resumed = fit_with(oneof.CC(**settings | others), X, S, on_epoch=epochs.append)
    assert epochs == [1, 2, 3]
    whole = oneof.CC(**settings | {"checkpoint": None}).fit(X, S)
    np.testing.assert_allclose(resumed.predict_proba(X), whole.predict_proba(X), atol=1e-5)


def test_damaged_and_foreign_checkpoints_are_refused(digits, tmp_path):
    X, S, _ = digits
    path = tmp_path / "fit.ckpt"
    oneof.CC(epochs=1, random_state=0).fit(X[:50], S[:50]).save(path)
    with pytest.raises(ValueError, match="holds a model, but a checkpoint was expected"):
        oneof.CC(checkpoint=path).fit(X[:50], S[:50])
    path.write_bytes(b"not a checkpoint")
    with pytest.raises(ValueError, match="damaged or is no safetensors file"):
        oneof.CC(checkpoint=path).fit(X[:50], S[:50])
    with pytest.raises(FileNotFoundError, match=r"folder .* does not exist"):
        oneof.CC(checkpoint=tmp_path / "no" / "c", epochs=1).fit(X[:50], S[:50])


CHILD = """
    import sys, json
    import numpy as np
    import oneof
    from oneof.train import checkpoint, train
    from oneof.io import tensors as tensor_file
    from sklearn.datasets import load_digits

    checkpoint.SECONDS_BETWEEN_SAVES = 0.0
    path, crash = sys.argv[1], sys.argv[2]
    X, y = load_digits(return_X_y=True)
    S = np.random.default_rng(0).random((300, 10)) < 0.3
    S[np.arange(300), y[:300]] = True
    if crash == "mid-write":  # half of the bytes of the fifth save, then the machine goes away
        from pathlib import Path
        import os, signal
        plain, saves = Path.write_bytes, []
        def write_half(self, data):
            saves.append(self)
            if len(saves) < 5:
                return plain(self, data)
            plain(self, data[: len(data) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        Path.write_bytes = write_half
    def on_epoch(epoch):
        print(epoch, flush=True)
        if crash.isdigit() and epoch == int(crash):
            import time
            time.sleep(60)
    model = oneof.IDGP(epochs=12, warm_up=3, m=0.5, batch_size=50, validation_fraction=0.2, random_state=1,
                       checkpoint=path)
    model.finish(train(model.prepare(X[:300], S, on_epoch=on_epoch)))
    model.save(path + ".model")
"""


def run_child(path, crash):
    """Run a fit in a process of its own; kill it for real when it reaches epoch ``crash``."""
    command = [sys.executable, "-c", textwrap.dedent(CHILD), str(path), str(crash)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    epochs = []
    for line in child.stdout:
        epochs.append(int(line))
        if str(crash) == line.strip():
            os.kill(child.pid, signal.SIGKILL)
    return epochs, child.wait()


def test_real_kills_in_warm_up_after_the_snapshot_and_in_mid_write(tmp_path):
    undisturbed, disturbed = tmp_path / "whole", tmp_path / "killed"
    assert run_child(undisturbed, "never") == (list(range(12)), 0)
    assert run_child(disturbed, 1) == ([0, 1], -signal.SIGKILL)  # in the warm-up
    assert run_child(disturbed, 6) == ([1, 2, 3, 4, 5, 6], -signal.SIGKILL)  # the snapshot was taken at 3
    epochs, code = run_child(disturbed, "mid-write")
    assert (epochs, code) == ([6, 7, 8, 9, 10], -signal.SIGKILL)
    assert run_child(disturbed, "never") == ([10, 11], 0)  # the save of epoch 10 was the torn one
    models = [oneof.load_model(f"{path}.model") for path in (undisturbed, disturbed)]
    assert_same(weights(models[0]), weights(models[1]))
    assert models[0].history_ == models[1].history_
    assert sorted(p.name for p in tmp_path.iterdir()) == ["killed", "killed.model", "whole", "whole.model"]


# --- progress ---------------------------------------------------------------------------------------------


def test_silent_by_default_and_plain_lines_in_a_pipe(blobs, capfd):
    X, S, y = blobs
    oneof.CC(epochs=5).fit(X, S)
    assert capfd.readouterr() == ("", "")
    oneof.CC(epochs=25, verbose=1).fit(X, S, X_val=X, y_val=y)
    out, err = capfd.readouterr()
    assert out == ""
    assert "\x1b" not in err
    assert "\r" not in err
    lines = err.splitlines()
    assert 8 <= len(lines) <= 14
    assert lines[-1].startswith("CC  epoch 25/25  loss ")
    assert "validation score" in lines[-1]


def test_a_bar_on_a_terminal(tmp_path):
    """A real pseudo-terminal: the bar is drawn, with epoch, loss and time left."""
    import pty

    code = (
        "import numpy as np, oneof\n"
        "rng = np.random.default_rng(0)\n"
        "oneof.CC(epochs=30, verbose=1).fit(rng.normal(size=(200, 5)), rng.integers(3, size=200))\n"
    )
    parent, child = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    process = subprocess.Popen([sys.executable, "-c", code], stderr=child, stdout=child, env=environment)
    os.close(child)
    shown = b""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            piece = os.read(parent, 4096)
        except OSError:  # Linux says so when the other end is closed
            break
        if not piece:
            break
        shown += piece
    os.close(parent)
    assert process.wait() == 0
    assert b"epoch 30/30" in shown
    assert b"loss" in shown
    assert b"\x1b[" in shown


def test_history_is_plain_numbers(blobs):
    X, S, y = blobs
    model = oneof.CC(epochs=3).fit(X, S, X_val=X, y_val=y)
    assert set(model.history_) == {"loss", "validation_score"}
    assert json.loads(json.dumps(model.history_)) == model.history_


def test_a_cosine_schedule_scales_every_group_by_epoch(digits):
    """With one batch an epoch and momentum 0 the steps of a linear network are the gradients times the rates."""
    X, S, _ = digits
    rates = []

    original = SGD.step

    def step(optimizer, *args, **kwargs):
        rates.append([group["lr"] for group in optimizer.param_groups])
        return original(optimizer, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SGD, "step", step)
        settings = {"network": "linear", "epochs": 4, "batch_size": 400, "lr": 0.2, "lr_g": 0.1, "random_state": 0}
        oneof.IDGP(schedule="cosine", **settings).fit(X[:400], S[:400])
    expected = [0.5 + 0.5 * np.cos(np.pi * epoch / 4) for epoch in range(4)]
    assert np.allclose(rates, [[0.2 * share, 0.1 * share] for share in expected])


def test_a_resumed_fit_keeps_to_its_schedule(digits, tmp_path):
    X, S, _ = digits
    settings = {"network": "linear", "epochs": 5, "schedule": "cosine", "random_state": 0, "device": "cpu"}
    whole = oneof.PRODEN(**settings).fit(X[:300], S[:300])
    path = tmp_path / "fit.ckpt"
    stop = iter([False, False, True])
    with pytest.raises(Paused):
        fit_with(oneof.PRODEN(checkpoint=path, **settings), X[:300], S[:300], pause=lambda: next(stop))
    resumed = oneof.PRODEN(checkpoint=path, **settings).fit(X[:300], S[:300])
    assert np.array_equal(whole.predict_proba(X), resumed.predict_proba(X))
    assert whole.history_ == resumed.history_


def test_what_a_judge_says_is_kept_and_survives_a_pause(digits, tmp_path):
    X, S, y = digits
    settings = {"network": "linear", "epochs": 4, "random_state": 0, "checkpoint": tmp_path / "fit.ckpt"}
    watching = {"X_val": X[:100], "y_val": y[:100], "X_watched": X[100:300]}
    seen = []

    def metrics(probabilities):
        seen.append(probabilities)
        return {"right": float((probabilities.argmax(1) == y[:300]).mean())}

    with pytest.raises(Paused):
        fit_with(oneof.CC(**settings), X, S, **watching, metrics=metrics, pause=lambda: True)
    model = fit_with(oneof.CC(**settings), X, S, **watching, metrics=metrics)
    assert model.history_["right"] == [(p.argmax(1) == y[:300]).mean() for p in seen]
    assert model.history_["validation_score"][-1] == (seen[-1][:100].argmax(1) == y[:100]).mean()
    best = int(np.argmax(model.history_["validation_score"]))
    assert np.allclose(model.predict_proba(X[:300]), seen[best], atol=1e-6)
    assert len(seen) == 4


def test_views_that_change_colours_need_pixels(digits):
    X, S, _ = digits
    images = X.reshape(-1, 8, 8)  # from 0 to 16
    with pytest.raises(ValueError, match=r"X holds pixels from 0 to 16, but the views \['strong'\] need bytes"):
        oneof.CC(views="strong", epochs=1).fit(images, S)
    oneof.CC(views="strong", epochs=1).fit(images / 16, S)
    oneof.CC(views="weak", epochs=1).fit(images, S)
    with pytest.raises(ValueError, match="is for images"):
        oneof.CC(views="weak", epochs=1).fit(X, S)
