"""A made data set of the form and size of Soccer Player, whose published file has no checksum, and plans on it."""

import numpy as np
import scipy.io
import scipy.sparse

ROWS, FEATURES, CLASSES = 17472, 279, 171

PLAN = """
title = "Made"
datasets = ["soccer-player"]
trials = 2

[settings]
network = "linear"
epochs = 4
batch_size = 4096
lr = 0.5

[methods.cc]
[methods.proden]
[methods.supervised]
"""


def write_soccer_player(root):
    """Write rows whose class shows in a few features, with one or two wrong candidates."""
    rng = np.random.default_rng(0)
    y = rng.integers(CLASSES, size=ROWS)
    x = rng.integers(0, 3, size=(ROWS, FEATURES), dtype=np.uint8)
    x[np.arange(ROWS), y] += 8
    candidates = np.zeros((ROWS, CLASSES), dtype=np.uint8)
    for labels in (y, rng.integers(CLASSES, size=ROWS), rng.integers(CLASSES, size=ROWS)):
        candidates[np.arange(ROWS), labels] = 1
    truth = np.eye(CLASSES, dtype=np.uint8)[y]
    folder = root / "realworld"
    folder.mkdir(parents=True)
    sparse = {"partial_target": candidates.T, "target": truth.T}
    content = {"data": x, **{name: scipy.sparse.csc_matrix(m, dtype=float) for name, m in sparse.items()}}
    scipy.io.savemat(folder / "Soccer Player.mat", content)
    return root


def results(records):
    """What must not depend on how runs were interrupted or where they ran."""
    return {key: (r["status"], r["results"], r["curves"], r["candidates"]) for key, r in records.items()}
