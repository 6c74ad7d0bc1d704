"""Learning again with decisions: a new model, a new ranking, and what has changed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone

from oneof.labels import WeightedSets
from oneof.review.cards import plain
from oneof.review.decisions import apply_decisions
from oneof.review.held_out import Predictions, kept, key_of, load, predict_held_out, save
from oneof.review.journal import Decision, in_force
from oneof.review.material import Material
from oneof.review.ranking import Ranking, rank

_FLIPS = 50  # changed answers that are listed
_FOLDS_SHARE = 0.8  # of the work; the rest is the fit on all rows


@dataclass(frozen=True, eq=False)
class Relearned:
    """What came of learning again."""

    model: Any
    ranking: Ranking
    changes: dict[str, Any]
    key: str


def learn(
    model: Any,
    path: Path,
    material: Material,
    before: Ranking,
    decisions: Mapping[int, Decision],
    advance: Callable[[float], None] = lambda share: None,
) -> Relearned:
    """Fit on the rows with decisions, rank all rows anew, and save the model beside the old one."""
    y, rows = apply_decisions(material.y, {row: _meant(entry) for row, entry in decisions.items()})
    X = _take(material.X, rows)
    found = predict_held_out(model, X, y, advance=lambda share: advance(_FOLDS_SHARE * share))
    ranking = rank_again(material, before, found, y, rows)
    fitted = clone(model)
    own = fitted.get_params(deep=False)
    fitted.set_params(**{name: value for name, value in {"verbose": 0, "checkpoint": None}.items() if name in own})
    fitted.fit(X, y)
    out = reviewed_path(path)
    material.whole(fitted).save(out)
    key = key_of(path, X, y)
    save(kept(path, key), found)
    advance(1 - _FOLDS_SHARE)
    changes = {**changed(material, before, ranking, decisions), "model": out.name}
    return Relearned(fitted, ranking, changes, key)


def recall(
    path: Path, material: Material, before: Ranking, entries: list[Decision], learned: Mapping[str, Any]
) -> Ranking | None:
    """Return the ranking of an earlier learning, as the journal tells of it; None where it was not kept."""
    count, key = learned.get("entries"), learned.get("learned")
    if not isinstance(count, int) or not isinstance(key, str):
        return None
    decided = {row: _meant(entry) for row, entry in in_force(entries[:count]).items()}
    y, rows = apply_decisions(material.y, decided)
    if key_of(path, _take(material.X, rows), y) != key:
        return None
    found = load(kept(path, key), *y.shape)
    return None if found is None else rank_again(material, before, found, y, rows)


def rank_again(material: Material, before: Ranking, found: Predictions, y: Any, rows: NDArray[np.intp]) -> Ranking:
    """Rank all rows by predictions for those that are left; the others keep what was said of them."""
    n, weights = len(material), material.weights.copy()
    weights[rows] = y.weights if isinstance(y, WeightedSets) else np.asarray(y)
    beyond = None if material.beyond is None else material.beyond.copy()
    if beyond is not None:
        beyond[(weights != material.weights).any(1)] = 0  # what was decided leaves no doubt
    log_p = np.log(np.maximum(before.posterior, 1e-26)).astype(np.float32)
    log_p[rows] = found.log_p
    fellows = np.tile(np.arange(n, dtype=np.int32)[:, None], (1, found.fellows.shape[1]))
    near = np.tile(np.arange(n, dtype=np.int32)[:, None], (1, found.near.shape[1]))
    distance = np.full(n, np.inf, np.float32)
    fellows[rows], near[rows], distance[rows] = rows[found.fellows], rows[found.near], found.distance
    return rank(Predictions(log_p, fellows, near, distance), weights, material.counts, beyond)


def changed(
    material: Material, before: Ranking, after: Ranking, decisions: Mapping[int, Decision]
) -> dict[str, Any]:
    """Say which answers flipped, and how often the model was right about decided rows, before and after."""
    open_rows = np.setdiff1d(np.arange(len(material)), list(decisions))
    flipped = open_rows[before.answer[open_rows] != after.answer[open_rows]]
    names = [str(name) for name in material.classes.tolist()]
    labelled = {row: str(entry["label"]) for row, entry in decisions.items() if entry["action"] == "label"}

    def share(ranking: Ranking) -> float | None:
        right = [names[ranking.prediction[row]] == label for row, label in labelled.items()]
        return float(np.mean(right)) if right else None

    return {
        "decisions": len(decisions),
        "flipped": len(flipped),
        "flips": [
            {
                "row": int(row),
                "name": material.name(row),
                "before": plain(material.classes[before.answer[row]]),
                "after": plain(material.classes[after.answer[row]]),
            }
            for row in flipped[:_FLIPS]
        ],
        "accuracy": {"rows": len(labelled), "before": share(before), "after": share(after)},
    }


def reviewed_path(path: Path) -> Path:
    """Return where the model that learned from decisions is saved: beside the one that was reviewed."""
    return path.with_name(f"{path.stem}.reviewed{path.suffix or '.safetensors'}")


def _meant(entry: Decision) -> Any:
    return entry["label"] if entry["action"] == "label" else None


def _take(X: Any, rows: NDArray[np.intp]) -> Any:
    return X.iloc[rows].reset_index(drop=True) if isinstance(X, pd.DataFrame) else X[rows]
