"""How soon a review of many rows opens once its predictions are kept.

``python benchmarks/review_start.py`` makes a table of 100,000 rows and 32 features, a model and the predictions
that a first ``oneof review`` would keep beside it (random ones: how they came about does not matter here). Then it
times what a second one does after its imports: read the model and the table, find the predictions, rank, and
answer the first page of the queue and the first card.
"""

import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

import oneof
from oneof.cli.review_tables import material_of, open_session
from oneof.cli.votes import label_options
from oneof.review.cards import card
from oneof.review.held_out import Predictions, kept, key_of, save
from oneof.review.neighbours import AROUND

ROWS, FEATURES, CLASSES = 100_000, 32, 10
LABELS = label_options("candidates", None, "|", None, None, None, None, None)


def prepare(folder: Path, suffix: str) -> tuple[Path, Path]:
    """Write a table, a model and kept predictions."""
    rng = np.random.default_rng(0)
    y = rng.integers(CLASSES, size=ROWS)
    x = rng.normal(size=(ROWS, FEATURES)).astype(np.float32).round(4)
    names = np.array([f"class {k}" for k in range(CLASSES)])
    frame = pd.DataFrame(x, columns=[f"x{k}" for k in range(FEATURES)])
    frame["candidates"] = [f"{names[t]}|{names[(t + 1 + i % 3) % CLASSES]}" for i, t in enumerate(y)]
    table, path = folder / f"rows{suffix}", folder / "model.safetensors"
    frame.to_parquet(table) if suffix == ".parquet" else frame.to_csv(table, index=False)
    part = frame.iloc[:500]
    sets = [cell.split("|") for cell in part["candidates"]]
    oneof.CC(epochs=1, device="cpu", random_state=0).fit(part.drop(columns="candidates"), sets).save(path)
    _, material = material_of(path, table, LABELS, [], None, None)
    log_p = np.log(rng.dirichlet(np.full(CLASSES, 0.3), ROWS) + 1e-9).astype(np.float32)
    near = rng.integers(ROWS, size=(ROWS, AROUND)).astype(np.int32)
    found = Predictions(log_p, near, near, rng.random(ROWS).astype(np.float32))
    save(kept(path, key_of(path, material.X, material.y)), found)
    return path, table


def main() -> None:
    """Time the start for both forms of the table."""
    for suffix in (".parquet", ".csv"):
        with tempfile.TemporaryDirectory() as folder:
            path, table = prepare(Path(folder), suffix)
            begin = time.perf_counter()
            model, material = material_of(path, table, LABELS, [], None, None)
            read = time.perf_counter()
            with open_session(model, path, material, Path(folder) / "d.jsonl") as session:
                ranked = time.perf_counter()
                first = session.queue("open", "", "", 0, 100)["items"][0]["row"]
                card(material, session.ranking, first, model)
                end = time.perf_counter()
        parts = f"read {read - begin:.2f} s, ranked {ranked - read:.2f} s, first card {end - ranked:.2f} s"
        print(f"{ROWS} rows of {suffix}: {end - begin:.2f} s ({parts})", flush=True)


if __name__ == "__main__":
    main()
