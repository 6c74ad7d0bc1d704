"""A small problem, models fitted on it and files of all kinds."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from oneof import CC

NAMES = np.array(["cat", "cow", "dog"])
TINY = {"network": "linear", "epochs": 2, "batch_size": 20, "random_state": 0, "device": "cpu"}


def model(**settings):
    return CC(**TINY | settings)


@pytest.fixture(scope="session")
def problem(tmp_path_factory):
    """Arrays that rows share; none may be changed."""
    rng = np.random.default_rng(0)
    y = np.arange(40) % 3
    X = rng.normal(size=(40, 4)) + 4 * np.eye(3, 4)[y]
    S = rng.random((40, 3)) < 0.3
    S[np.arange(40), y] = True
    images = rng.integers(0, 256, size=(40, 6, 6), dtype=np.uint8)
    for array in (X, S, y, images):
        array.flags.writeable = False
    frame = pd.DataFrame(X, columns=list("abcd"))
    folder = tmp_path_factory.mktemp("misuse")
    fitted = model().fit(X, S)
    fitted.save(folder / "model")
    model(checkpoint=folder / "checkpoint").fit(X, S)
    (folder / "text").write_text("no model\n")
    (folder / "truncated").write_bytes((folder / "model").read_bytes()[:300])
    (folder / "empty").write_bytes(b"")
    return {
        "X": X,
        "S": S,
        "y": y,
        "images": images,
        "frame": frame,
        "names": NAMES[y],
        "sets": [NAMES[row].tolist() for row in S],
        "votes": [[NAMES[t], NAMES[(t + i) % 3], NAMES[t]] for i, t in enumerate(y)],
        "fitted": fitted,
        "by_name": model().fit(frame, NAMES[y]),
        "of_images": model().fit(images, S),
        "files": folder,
        "model": model,
    }


@pytest.fixture
def kit(problem, tmp_path):
    """The problem and a folder that is empty."""
    return SimpleNamespace(**problem, folder=tmp_path)
