"""Rows that stay on disk: never whole in memory, and the same model to the last bit."""

import tracemalloc

import numpy as np
import pytest
import torch

import oneof
from conftest import MEMBERS, every_method, fit_with
from oneof.train import Paused
from oneof.train.rows import HostRows, Scaler


@pytest.fixture(scope="module")
def on_disk(tmp_path_factory):
    """Write an array to a file and map it."""
    folder = tmp_path_factory.mktemp("disk")

    def write(name, array):
        np.save(folder / name, array)
        return np.load(folder / f"{name}.npy", mmap_mode="r")

    return write


def problem(kind):
    rng = np.random.default_rng(0)
    y = np.arange(300) % 5
    shape = {"table": (12,), "gray": (8, 8), "colour": (8, 8, 3)}[kind]
    x = rng.integers(0, 200, size=(300, *shape), dtype=np.uint8)
    x.reshape(300, -1)[np.arange(300), y] = 255
    candidates = rng.random((300, 5)) < 0.3
    candidates[np.arange(300), y] = True
    return (x.astype(np.float64) if kind == "table" else x), candidates


@every_method
@pytest.mark.parametrize("kind", ["table", "gray", "colour"])
def test_rows_on_disk_give_the_same_model(method, kind, on_disk):
    x, candidates = problem(kind)
    mapped = on_disk(kind, x)
    assert isinstance(mapped, np.memmap)
    views = {"views": "plain+weak+weak"} if kind != "table" and method.func.needs_views else {}
    network = "mlp" if kind == "table" else "lenet"
    settings = {"network": network, "epochs": 3, "batch_size": 64, "validation_fraction": 0.2, "device": "cpu"}
    models = [method(**settings, **views, random_state=0).fit(rows, candidates) for rows in (x, mapped)]
    assert np.array_equal(models[0].label_distributions_, models[1].label_distributions_)
    assert models[0].history_ == models[1].history_
    assert np.array_equal(models[0].predict_proba(mapped), models[1].predict_proba(x))


def test_rows_on_disk_are_never_whole_in_memory(on_disk):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, size=(40_000, 28, 28), dtype=np.uint8)  # 31 MB
    candidates = rng.random((40_000, 4)) < 0.5
    candidates[:, 0] = True
    mapped = on_disk("large", x)
    size = x.nbytes
    del x
    peaks = {}
    for name, rows in (("disk", mapped), ("memory", np.array(mapped))):
        tracemalloc.start()
        oneof.CC(network="linear", epochs=1, batch_size=1000, device="cpu").fit(rows, candidates)
        peaks[name] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    # The float64 copies of blocks are the largest: 4096 rows in evaluation.
    assert peaks["disk"] < 0.9 * size < peaks["memory"]


def test_a_paused_fit_on_disk_goes_on_with_rows_in_memory(on_disk, tmp_path):
    """The file is a matter of where rows lie, not of what they are."""
    x, candidates = problem("colour")
    settings = {"network": "lenet", "epochs": 3, "batch_size": 64, "device": "cpu", "random_state": 0}
    whole = oneof.PRODEN(**settings).fit(x, candidates)
    path = tmp_path / "fit.ckpt"
    with pytest.raises(Paused):
        fit_with(oneof.PRODEN(**settings, checkpoint=path), on_disk("paused", x), candidates, pause=lambda: True)
    resumed = oneof.PRODEN(**settings, checkpoint=path).fit(x, candidates)
    assert np.array_equal(whole.predict_proba(x), resumed.predict_proba(x))


def test_host_rows_come_in_the_order_asked_for():
    x = np.arange(40.0).reshape(10, 4)
    scaler = Scaler(torch.zeros(4, dtype=torch.float64), torch.ones(4, dtype=torch.float64))
    rows = HostRows(x, np.array([9, 3, 5, 7]), scaler, torch.float64, torch.device("cpu"))
    assert rows.shape == (4, 4)
    assert rows[torch.tensor([2, 0, 0, 3])].numpy().tolist() == x[[5, 9, 9, 7]].tolist()


def test_trials_on_disk_are_trained_one_after_the_other(on_disk):
    x, candidates = problem("table")
    mapped = on_disk("trials", x)
    made = [MEMBERS["cc"](network="linear", epochs=3, device="cpu", random_state=seed) for seed in (0, 1, 0, 1)]
    arguments = [{"X": rows, "y": candidates} for rows in (mapped, mapped, x, x)]
    a, b, c, d = oneof.fit_together(made, arguments)
    assert np.allclose(a.predict_proba(x), c.predict_proba(x), atol=1e-6)
    assert np.allclose(b.predict_proba(x), d.predict_proba(x), atol=1e-6)


@pytest.mark.parametrize("shape", [(50, 3), (50, 2, 4, 4)])
def test_the_scaler_takes_weighted_moments_block_by_block(shape, monkeypatch):
    rng = np.random.default_rng(0)
    x, rows, weight = rng.normal(3, 2, size=shape), np.arange(5, 45), rng.random(40)
    axes = (0,) if len(shape) == 2 else (0, 2, 3)
    full = np.broadcast_to(weight.reshape(-1, *[1] * (len(shape) - 1)), x[rows].shape)
    mean = np.average(x[rows], axis=axes, weights=full)
    centred = x[rows] - mean.reshape(1, -1, *[1] * (len(shape) - 2))
    std = np.sqrt(np.average(centred**2, axis=axes, weights=full))
    for block in (7, 1000):
        monkeypatch.setattr("oneof.train.rows._TABLE_BLOCK", block)
        monkeypatch.setattr("oneof.train.rows._IMAGE_BLOCK", block)
        scaler = Scaler.fit(x, rows, weight)
        assert np.allclose(scaler.mean.numpy().ravel(), mean, rtol=1e-12)
        assert np.allclose(scaler.std.numpy().ravel(), std, rtol=1e-12)
