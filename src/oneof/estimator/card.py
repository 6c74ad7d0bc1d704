"""Model cards: what a model was learned from, by which method and settings, and how good it is, as Markdown."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from oneof.errors import InputError, KindError
from oneof.estimator.fields import Role, names_with
from oneof.io.arguments import target_path
from oneof.io.files import replacing
from oneof.io.words import shortened, shown

_MOST = 20  # classes and columns that are listed
_SURE = 0.9
_CHOSEN = {  # settings that may be left open, and what a fit then took
    "optimizer": "optimizer_",
    "lr": "lr_",
    "weight_decay": "weight_decay_",
    "batch_size": "batch_size_",
    "outside": "outside_rate_",
    "likelihood_weight": "likelihood_weight_",
}


def card_of(model: Any, steps: Sequence[Any] = (), chosen: str | None = None) -> str:
    """Return the card of a fitted model behind ``steps``; ``chosen`` says how it was chosen among others."""
    if not isinstance(chosen, str | None):
        raise KindError(f"chosen is {shown(chosen)}, but must be words on how the model was chosen, or None")
    parts = [
        "---\nlibrary_name: oneof\ntags: [partial-label-learning, candidate-labels]\n---",
        f"# {type(model).__name__}, {len(model.classes_)} classes",
        _summary(type(model)),
        "## Data",
        *_data(model, steps),
        "## Scores",
        _scores(model.history_),
        "## How it was chosen",
        *_choices(model, chosen),
        "## Settings",
        _table(("setting", "value", "default, where it is another"), _settings(model)),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def save_with_card(
    model: Any, save: Callable[[Any, Path], None], path: str | PathLike[str], card: bool | str
) -> None:
    """Save a model and, if asked for, its card beside it, under the same name with the ending .md."""
    target = target_path(path)
    if not isinstance(card, bool | str):
        raise KindError(f"card is {shown(card)}, but must be True, False, or words on how the model was chosen")
    if card is False:
        save(model, target)
        return
    beside = target_path(target.with_suffix(".md"))
    if beside == target:
        raise InputError(
            f"{shown(target)} is the name of the card; name the model otherwise, such as 'model.safetensors'"
        )
    text = model.card(card if isinstance(card, str) else None)
    save(model, target)
    with replacing(beside) as part:
        part.write_text(text, encoding="utf-8")


def _summary(cls: type) -> str:
    """Return the first sentences of a docstring."""
    return " ".join((cls.__doc__ or "").partition("\n\n")[0].split())


def _data(model: Any, steps: Sequence[Any]) -> list[str]:
    r, shape = model.label_distributions_, model.input_shape_
    possible, held_out = (r > 0).sum(1), r.shape[0] - getattr(model, "training_rows_", r.shape[0])
    best = np.asarray(r.max(1).todense() if sparse.issparse(r) else r.max(1)).reshape(-1)
    row = f"{' x '.join(map(str, shape))} pixels" if shape else f"{model.n_features_in_} features"
    facts = [
        ("rows", f"{r.shape[0]}"),
        ("held out for validation", f"{held_out}" if held_out else ""),
        ("a row", row),
        ("steps before the method", ", ".join(type(step).__name__ for step in steps)),
        ("columns", _listed(getattr(model, "feature_names_in_", ()))),
        ("labels that remain possible, a row", f"{np.mean(possible):.2f} on average"),
        (f"rows whose label is told with {_SURE:.0%} or more", f"{np.mean(best >= _SURE):.1%}"),
    ]
    names, counts = np.unique(model.transduction_, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:_MOST]
    shares = [(_code(names[i]), f"{counts[i]}") for i in order]
    title = "class" if len(shares) == len(names) else f"class, the first {_MOST} of {len(names)}"
    return [
        _table(("", ""), [fact for fact in facts if fact[1]]),
        _table((title, "rows of which it is the most likely candidate"), shares),
    ]


def _scores(history: dict[str, list[float]]) -> str:
    rows = [
        (name.replace("_", " "), f"{len(values)}", f"{values[0]:.4g}", f"{values[-1]:.4g}", f"{pick(values):.4g}")
        for name, values in history.items()
        if values
        for pick in (min if name in ("loss", "change") else max,)
    ]
    if "validation_score" in history:
        note = "A validation score is the mean approximated accuracy on held-out sets: no true label is needed."
    elif "change" in history:
        note = "The loss is that of rows by fits that have not seen them."
    else:
        note = "No rows were held out, so that no score says how good the model is on new rows."
    return f"{_table(('', 'epochs', 'first', 'last', 'best'), rows)}\n\n{note}"


def _choices(model: Any, chosen: str | None) -> list[str]:
    scores = model.history_.get("validation_score")
    lines = [chosen] if chosen else []
    if scores:
        lines.append(f"The weights are those of epoch {int(np.argmax(scores)) + 1}, the best on held-out rows.")
    taken = [
        f"`{name}` {_taken(getattr(model, attribute))}"
        for name, attribute in _CHOSEN.items()
        if getattr(model, name, 0) in (None, "auto") and hasattr(model, attribute)
    ]
    if taken:
        lines.append(f"Settings that were left open: {', '.join(taken)}.")
    return lines or ["Everything was set by hand, and what the last epoch has learned is kept."]


def _settings(model: Any) -> list[tuple[str, ...]]:
    """Return the settings that a file keeps, those that are not defaults first."""
    unkept = names_with(model, Role.NOT_SAVED)
    own = [each for each in fields(model) if each.name not in unkept]
    rows = [(f"`{each.name}`", _code(getattr(model, each.name)), _code(each.default)) for each in own]
    rows = [(name, value, "" if value == default else default) for name, value, default in rows]
    return sorted(rows, key=lambda row: not row[2])


def _taken(value: Any) -> str:
    if isinstance(value, str):
        return value
    return f"{float(value.reshape(-1)[0] if hasattr(value, 'reshape') else value):.4g}"


def _listed(names: Any) -> str:
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return ", ".join(map(_code, names[:_MOST])) + more


def _code(value: Any) -> str:
    """Quote a value as code within a table: no name may end the cell or the code."""
    text = shortened(str(value), 80) if isinstance(value, str) else shown(value, 80)
    return f"`{text.replace('`', chr(39)).replace('|', chr(92) + '|')}`"


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
