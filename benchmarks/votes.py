"""Rows resolved from votes: majority, Dawid-Skene, cleanlab's consensus and the default method with votes.

``python benchmarks/votes.py`` draws votes for images of CIFAR-10H, from the people's own votes and from simulated
annotators with known confusion matrices, and writes a line for each draw to benchmarks/results/votes.jsonl. A line
says with which settings our models were made; draws that are there with the settings of today are not repeated.
``--page`` writes the tables of docs/results/votes.md again. cleanlab runs in an
environment of its own, which the benchmark makes in the cache folder.

Truth is the label of CIFAR-10; `resolved` compares with it and nothing else sees it. One recipe of features for
all: histograms of gradients and colours of cells, by principal components.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict

import oneof
from oneof.bench.keys import difference
from oneof.bench.plan import plan_fields
from oneof.bench.running.execute import circumstances
from oneof.estimator.resolve import calibrated_posterior
from oneof.io.files import cache_folder

LEDGER = Path(__file__).parent / "results" / "votes.jsonl"
PER_ROW = (2, 3, 5, 10)
SOURCES = ("people", "simulated")
DRAWS, ROWS, CLASSES, ANNOTATORS = 10, 500, 10, 30
SHAPES, COLOURS = 150, 50  # components
CLEANLAB = "2.9.0"
_CELL, _BINS = 4, 9


# --- features ------------------------------------------------------------------------------------------------


def features(images: np.ndarray) -> np.ndarray:
    """Return 150 components of histograms of gradients and 50 of the colours of 8 x 8 cells (n, 200)."""
    pixels = images.astype(np.float32) / 255
    shapes, colours = _gradients(pixels @ np.array([0.299, 0.587, 0.114], np.float32)), _colours(pixels)
    parts = [
        PCA(size, svd_solver="randomized", random_state=0).fit_transform(part)
        for part, size in ((shapes, SHAPES), (colours, COLOURS))
    ]
    return np.concatenate([part / part.std() for part in parts], 1).astype(np.float32)


def _colours(pixels: np.ndarray) -> np.ndarray:
    cells = 32 // _CELL
    return pixels.reshape(-1, cells, _CELL, cells, _CELL, 3).mean((2, 4)).reshape(len(pixels), -1)


def _gradients(grey: np.ndarray) -> np.ndarray:
    """Histograms of the directions of gradients in cells, normalised in blocks of 2 x 2 cells."""
    across, down = np.zeros_like(grey), np.zeros_like(grey)
    across[:, :, 1:-1] = grey[:, :, 2:] - grey[:, :, :-2]
    down[:, 1:-1] = grey[:, 2:] - grey[:, :-2]
    size, angle = np.hypot(across, down), np.mod(np.arctan2(down, across), np.pi) / np.pi * _BINS
    low, share = np.floor(angle).astype(int) % _BINS, angle - np.floor(angle)
    n, cells = len(grey), 32 // _CELL
    histogram = np.zeros((n, cells, cells, _BINS), np.float32)
    for k in range(_BINS):
        part = size * (np.where(low == k, 1 - share, 0) + np.where((low + 1) % _BINS == k, share, 0))
        histogram[..., k] = part.reshape(n, cells, _CELL, cells, _CELL).sum((2, 4))
    blocks = [
        histogram[:, i : i + 2, j : j + 2].reshape(n, -1) for i in range(cells - 1) for j in range(cells - 1)
    ]
    return np.concatenate(
        [np.minimum(block / (np.linalg.norm(block, axis=1, keepdims=True) + 1e-3), 0.2) for block in blocks], 1
    )


# --- votes ---------------------------------------------------------------------------------------------------


def draw(source: str, per_row: int, y: np.ndarray, counts: np.ndarray, seed: int) -> np.ndarray:
    """Return votes (n, annotators), -1 where one did not vote.

    Of people, who have no numbers, each column holds any one of their votes, without replacement. Simulated
    annotators have accuracies from 0.45 to 0.95 and mistakes that prefer some classes; each row has ``per_row``.
    """
    rng = np.random.default_rng(seed)
    if source == "people":
        urns = [rng.permutation(np.repeat(np.arange(CLASSES), row))[:per_row] for row in counts]
        return np.stack(urns)
    chances = [confusion(rng) for _ in range(ANNOTATORS)]
    votes = np.full((len(y), ANNOTATORS), -1)
    for i, truth in enumerate(y):
        for a in rng.choice(ANNOTATORS, per_row, replace=False):
            votes[i, a] = rng.choice(CLASSES, p=chances[a][truth])
    return votes


def confusion(rng: np.random.Generator) -> np.ndarray:
    """Draw the confusion matrix of an annotator."""
    matrix = rng.dirichlet(np.full(CLASSES, 0.5), CLASSES)
    np.fill_diagonal(matrix, 0)
    right = rng.uniform(0.45, 0.95)
    return matrix / matrix.sum(1, keepdims=True) * (1 - right) + right * np.eye(CLASSES)


def counted(votes: np.ndarray) -> np.ndarray:
    """How often each class was named (n, K)."""
    return np.stack([(votes == k).sum(1) for k in range(CLASSES)], 1)


# --- what is compared ----------------------------------------------------------------------------------------


def resolved(
    x: np.ndarray, y: np.ndarray, votes: np.ndarray, source: str, seed: int
) -> tuple[dict[str, float], str | None]:
    """Return the percentage of rows that each way resolves right, and the scaling that `resolve` has chosen."""
    counts = counted(votes)
    if source == "people":
        weighed = oneof.vote_counts(counts)
    else:
        weighed = oneof.from_votes(np.where(votes < 0, None, votes).tolist(), classes=range(CLASSES))
    model = oneof.IDGP(random_state=seed, device="cpu")
    top = counts == counts.max(1, keepdims=True)
    labels = np.where(top, np.random.default_rng(seed).random(top.shape), -1).argmax(1)
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    regression = regression_out_of_fold(x, labels, folds)
    by_regression, by_network = cleanlab_consensus(
        votes, [regression, network_out_of_fold(x, labels, folds, seed)]
    )
    by_resolve = oneof.resolve(model, x, weighed, random_state=seed)
    right = {
        "majority": top[np.arange(len(y)), y] / top.sum(1),  # of ties the mean over all ways to break them
        "dawid-skene": weighed.consensus == y,
        "cleanlab": by_regression == y,
        "cleanlab, same network": by_network == y,
        "regression, our votes": calibrated_posterior(np.log(regression), weighed.weights).argmax(1) == y,
        "idgp": model.fit(x, weighed).transduction_ == y,
        "idgp, resolve": by_resolve.label == y,
    }
    percent = {name: round(100 * float(values.mean()), 4) for name, values in right.items()}
    return percent, by_resolve.scaling


def regression_out_of_fold(x: np.ndarray, labels: np.ndarray, folds: StratifiedKFold) -> np.ndarray:
    """Return what cleanlab asks for: out-of-fold probabilities of a classifier of majority labels."""
    choice = {"C": [0.001, 0.003, 0.01, 0.03]}
    search = GridSearchCV(LogisticRegression(max_iter=500), choice, scoring="neg_log_loss", cv=folds)
    return cross_val_predict(search.fit(x, labels).best_estimator_, x, labels, cv=folds, method="predict_proba")


def network_out_of_fold(x: np.ndarray, labels: np.ndarray, folds: StratifiedKFold, seed: int) -> np.ndarray:
    """Return the same of the network that IDGP trains, with cross-entropy."""
    split, one_hot = list(folds.split(x, labels)), np.eye(CLASSES, dtype=bool)[labels]
    models = [oneof.CC(random_state=seed, device="cpu") for _ in split]
    oneof.fit_together(models, [{"X": x[train], "y": one_hot[train]} for train, _ in split])
    probabilities = np.zeros((len(x), CLASSES))
    for (_, rest), model in zip(split, models, strict=True):
        probabilities[rest] = model.predict_proba(x[rest])
    return probabilities


def cleanlab_consensus(votes: np.ndarray, probabilities: list[np.ndarray]) -> np.ndarray:
    """Ask cleanlab (CROWDLAB, its default) in its own environment, once for each classifier."""
    program = (
        "import sys, numpy as np\n"
        "from cleanlab.multiannotator import get_label_quality_multiannotator as judge\n"
        "given = np.load(sys.argv[1])\n"
        "votes = np.where(given['votes'] < 0, np.nan, given['votes'])\n"
        "found = [judge(votes, p, verbose=False)['label_quality'] for p in given['probabilities']]\n"
        "np.save(sys.argv[2], np.stack([each['consensus_label'].to_numpy() for each in found]))\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder) / "given.npz", Path(folder) / "found.npy"
        np.savez(given, votes=votes, probabilities=np.stack(probabilities))
        subprocess.run([python_with_cleanlab(), "-c", program, given, found], check=True, capture_output=True)
        return np.load(found)


def python_with_cleanlab() -> Path:
    """Return the Python of an environment with cleanlab, which is made where it is missing."""
    folder = cache_folder() / "benchmarks" / f"cleanlab-{CLEANLAB}"
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", f"cleanlab=={CLEANLAB}"], check=True)
    return python


# --- the ledger ----------------------------------------------------------------------------------------------


def main() -> None:
    """Make the draws that the ledger lacks, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--page", action="store_true", help="write the page alone")
    if not parser.parse_args().page:
        run()
    from votes_page import write  # noqa: PLC0415 - beside this file

    write()


def run() -> None:
    """Make the draws that the ledger lacks."""
    warnings.simplefilter("ignore")
    lines = LEDGER.read_text().splitlines() if LEDGER.exists() else []
    done, models = {key(record) for record in map(json.loads, lines)}, settings()
    data = oneof.load_dataset("cifar-10h")
    x = features(data.x)
    for number, source, per_row in product(range(DRAWS), SOURCES, PER_ROW):
        seed = 1000 * number + 10 * per_row + SOURCES.index(source)
        record = {"source": source, "votes": per_row, "draw": number, "seed": seed, "rows": ROWS, "models": models}
        if key(record) in done:
            continue
        begin = time.monotonic()
        rows = np.random.default_rng(number).choice(len(x), ROWS, replace=False)
        votes = draw(source, per_row, data.y[rows], data.counts[rows], seed)
        record["right"], record["scaling"] = resolved(x[rows], data.y[rows], votes, source, seed)
        record |= {"cleanlab": CLEANLAB, "seconds": round(time.monotonic() - begin, 1), **circumstances("cpu")}
        with LEDGER.open("a") as file:
            file.write(json.dumps(record) + "\n")
        print(source, per_row, number, record["right"], record["seconds"], flush=True)


def key(record: dict[str, Any]) -> tuple[Any, ...]:
    """Return what tells a record from others."""
    return record["source"], record["votes"], record["draw"], json.dumps(record["models"], sort_keys=True)


def settings() -> list[dict[str, Any]]:
    """Return the settings that our models have today in a fit on a draw, but for those that the baseline has."""
    return [settings_of(cls) for cls in (oneof.IDGP, oneof.CC)]


def settings_of(cls: Any) -> dict[str, Any]:
    """Return the settings of a method with all that is left open filled in."""
    model = cls()
    model.input_shape_, model.n_features_in_, model.training_rows_ = None, SHAPES + COLOURS, ROWS
    taken = {name: getattr(model, f"{name}_") for name in ("optimizer", "lr", "weight_decay", "batch_size")}
    given = {name: getattr(model, name) for name in plan_fields(cls)} | taken
    return difference({"method": cls.__name__, "version": cls.version, "settings": given})


if __name__ == "__main__":
    main()
