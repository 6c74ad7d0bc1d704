"""Made data sets: one of the form and size of Soccer Player, whose file has no checksum, and a small MNIST."""

from contextlib import contextmanager

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from oneof.bench.running.engines import LocalEngine, TaskResult, execute_task
from oneof.data.catalogue import DATASETS
from published import idx_gz, published, put

ROWS, FEATURES, CLASSES = 17472, 279, 171
DIGITS, TEST_DIGITS = 400, 100

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


@contextmanager
def small_mnist(root):
    """Write noise with a bright line that shows its class in the files of MNIST, for this process alone."""
    rng, contents = np.random.default_rng(0), []
    for rows in (DIGITS, TEST_DIGITS):
        y = rng.integers(10, size=rows).astype(np.uint8)
        x = rng.integers(150, size=(rows, 28, 28), dtype=np.uint8)
        x[np.arange(rows), 2 * y] += 60
        contents += [idx_gz(x), idx_gz(y)]
    dataset = published("mnist", contents, rows=(DIGITS, TEST_DIGITS))
    put(root, dataset, contents)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(DATASETS, "mnist", dataset)
        yield root


class Here(LocalEngine):
    """Executes tasks in this process; the budget is spent in the middle of one of them."""

    def __init__(self, last=None):
        super().__init__(1)
        self.last, self.begun = last, 0

    def submit(self, task):
        self.task, self.begun = task, self.begun + 1
        if self.begun == self.last:
            task.deadline._end = 0.0

    def collect(self, timeout):
        return [TaskResult(self.task, execute_task(self.task))]


def results(records):
    """What must not depend on how runs were interrupted or where they ran."""
    return {key: (r["status"], r["results"], r["curves"], r["candidates"]) for key, r in records.items()}
