"""Cards: all that a person sees of one row, as plain data."""

from typing import Any

import numpy as np
import pandas as pd

from oneof.review.material import Material
from oneof.review.neighbours import nearest_to
from oneof.review.ranking import REASONS, Ranking
from oneof.review.words import sentences

NEIGHBOURS = 6
OTHERS = 3  # classes beyond the candidates that are offered by chance; all can be looked up
_FEATURES = 8  # of a row that are shown
_MOST_FEATURES = 400  # for which the effect of each is computed
_LONGEST = 5000  # characters of a text


def plain(label: Any) -> Any:
    """Return a class as JSON holds it."""
    return label.item() if hasattr(label, "item") else label


def item(material: Material, ranking: Ranking, row: int) -> dict[str, Any]:
    """Return a line of the queue."""
    return {
        "row": int(row),
        "name": material.name(row),
        "answer": plain(material.classes[ranking.answer[row]]),
        "wrong": round(float(ranking.wrong[row]), 4),
        "reason": str(ranking.reason_of(row)),
    }


def card(material: Material, ranking: Ranking, row: int, model: Any = None) -> dict[str, Any]:
    """Return the card of a row."""
    classes, chances, inside = material.classes, ranking.posterior[row], material.weights[row] > 0
    by_chance = sorted(np.flatnonzero(inside).tolist(), key=lambda k: -chances[k])
    others = sorted(np.flatnonzero(~inside).tolist(), key=lambda k: -chances[k])[:OTHERS]
    return {
        **item(material, ranking, row),
        "why": sentences(ranking, row, classes, inside, material.counts),
        "candidates": [_choice(classes, chances, k) for k in by_chance],
        "others": [_choice(classes, chances, k) for k in others],
        "prediction": plain(classes[ranking.prediction[row]]),
        "outside": round(float(ranking.outside[row]), 4),
        "image": material.has_images,
        "text": None if material.texts is None else str(material.texts[row])[:_LONGEST],
        "features": features(material, ranking, row, model),
        "neighbours": neighbours(material, ranking, row),
        "votes": votes(material, row),
    }


def _choice(classes: Any, chances: Any, k: int) -> dict[str, Any]:
    return {"label": plain(classes[k]), "chance": round(float(chances[k]), 4)}


def neighbours(material: Material, ranking: Ranking, row: int) -> list[dict[str, Any]]:
    """Return the nearest rows, their candidates and answers."""
    return [
        {
            "row": other,
            "name": material.name(other),
            "answer": plain(material.classes[ranking.answer[other]]),
            "candidates": material.candidates(other),
        }
        for other in nearest_to(material.space, row, NEIGHBOURS)
    ]


def votes(material: Material, row: int) -> list[dict[str, Any]]:
    """Return who said what, or how often each class was named where nobody knows by whom."""
    if material.ballots is not None:
        cells = material.ballots.iloc[row]
        return [{"who": str(who), "label": str(said)} for who, said in cells.items() if _is_vote(said)]
    if material.counts is None:
        return []
    named = np.flatnonzero(material.counts[row])
    order = sorted(named.tolist(), key=lambda k: -material.counts[row, k])  # type: ignore[index]
    return [{"who": f"{int(material.counts[row, k])} x", "label": str(material.classes[k])} for k in order]


def _is_vote(cell: Any) -> bool:
    return not (pd.api.types.is_scalar(cell) and (pd.isna(cell) or cell == ""))


def features(material: Material, ranking: Ranking, row: int, model: Any) -> list[dict[str, Any]]:
    """Return the features that matter most for the row's answer.

    The effect of a feature is by how much the log-probability of the answer falls when it is set to its mean; of a
    column that an encoder has turned into several numbers, when all of them are.
    """
    given = material.features(row)
    if given is None:
        return []
    values = given.to_numpy(dtype=np.float64)
    mean, spread = material.centre
    own = material.own
    parts = [np.array([k]) for k in range(len(values))] if own is None else list(own.parts.values())
    distance = np.nan_to_num(np.abs((values - mean) / spread))
    effect, told = np.array([distance[part].max() for part in parts]), None
    if model is not None and len(parts) <= _MOST_FEATURES:
        probes = np.tile(values, (len(parts) + 1, 1))
        for probe, part in zip(probes, parts, strict=False):
            probe[part] = mean[part]
        rows = pd.DataFrame(probes, columns=given.index) if isinstance(material.X, pd.DataFrame) else probes
        log_p = np.maximum(model.predict_log_proba(rows)[:, ranking.answer[row]], -60)
        told = log_p[-1] - log_p[:-1]
        effect = np.abs(told)
    best = np.argsort(-effect, kind="stable")[:_FEATURES]
    names = list(given.index) if own is None else list(own.parts)
    return [
        {
            "name": str(names[k]),
            "value": _number(values[k]) if own is None else own.cell(row, names[k]),
            "mean": _number(mean[parts[k][0]]) if own is None or own.kinds[names[k]] == "number" else "",
            "effect": None if told is None else round(float(told[k]), 3),
        }
        for k in best
    ]


def _number(value: float) -> str:
    return f"{value:.4g}"


def facts(material: Material) -> dict[str, Any]:
    """Return what the page must know before the first card."""
    return {
        "title": material.title,
        "rows": len(material),
        "classes": [plain(label) for label in material.classes.tolist()],
        "reasons": REASONS,
        "images": material.has_images,
    }
