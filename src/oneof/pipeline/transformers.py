"""Fitted transformers as JSON facts and arrays: TableEncoder, and those of scikit-learn that are listed here."""

from collections.abc import Mapping
from typing import Any, NamedTuple, TypedDict, cast

import numpy as np
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import StandardScaler

from oneof.errors import InputError
from oneof.estimator.model_header import MisfitError
from oneof.io.schema import json_misfit, misfits
from oneof.io.words import reason, shown
from oneof.pipeline.column_kinds import Array
from oneof.pipeline.table_encoder import TableEncoder

PASSTHROUGH = "passthrough"


class StepFacts(TypedDict):
    """What the header of a file holds of a step before the model."""

    name: str
    kind: str  # the name of a class, or "passthrough"
    facts: dict[str, Any]


class _Form(NamedTuple):
    """How a transformer of scikit-learn is made again: by parameters, and by attributes that are arrays."""

    cls: Any
    arrays: tuple[str, ...]  # the first has a row or an item for each output or input
    optional: tuple[str, ...] = ()


_FORMS = {
    form.cls.__name__: form
    for form in (
        _Form(StandardScaler, ("scale_",), ("mean_",)),
        _Form(PCA, ("components_", "mean_", "explained_variance_")),
        _Form(TruncatedSVD, ("components_",)),
        _Form(TfidfVectorizer, ("idf_",)),
    )
}
STORED = ("TableEncoder", *_FORMS)


def pack(name: str, step: Any) -> tuple[StepFacts, dict[str, Array]]:
    """Return the facts and the arrays of a fitted step; raise ValueError for one that has no form."""
    if step is None or step == PASSTHROUGH:
        return {"name": name, "kind": PASSTHROUGH, "facts": {}}, {}
    kind = type(step).__name__
    if isinstance(step, TableEncoder):
        return {"name": name, "kind": kind, "facts": cast(dict[str, Any], step.facts())}, step.arrays()
    form = _FORMS.get(kind)
    if form is None or type(step) is not form.cls:
        raise InputError(
            f"a model file cannot hold the step {shown(name)}, a {kind}; it holds {', '.join(STORED)}: use one of "
            "these, or save the model alone by pipe[-1].save"
        )
    facts: dict[str, Any] = {"parameters": _parameters(name, step)}
    if isinstance(step, TfidfVectorizer):
        if not step.use_idf:
            raise InputError(
                f"a model file cannot hold the step {shown(name)} with use_idf=False; fit it with idf"
            )
        facts["vocabulary"] = step.get_feature_names_out().tolist()
    arrays = {each: getattr(step, each, None) for each in (*form.arrays, *form.optional)}
    for each in form.arrays:
        if arrays[each] is None:
            raise InputError(
                f"a model file cannot hold the step {shown(name)} without {each}; fit it with defaults"
            )
    return {"name": name, "kind": kind, "facts": facts}, {
        each: np.ascontiguousarray(array) for each, array in arrays.items() if array is not None
    }


def unpack(step: StepFacts, arrays: Mapping[str, Array]) -> Any:
    """Return the fitted transformer that a file holds; raise MisfitError for what is none."""
    for wrong in misfits(step, StepFacts):
        raise MisfitError(wrong)
    kind, facts = step["kind"], step["facts"]
    if kind == PASSTHROUGH:
        return PASSTHROUGH
    if kind == TableEncoder.__name__:
        return TableEncoder.restore(facts, arrays)
    if kind not in _FORMS:
        raise MisfitError(f"a step is {shown(kind)}, but must be one of {[*STORED]}")
    form = _FORMS[kind]
    _check_arrays(form, arrays)
    try:
        given = facts.get("parameters", {})
        ranges = {key: tuple(value) for key, value in given.items() if key.endswith("_range")}  # lists in JSON
        made = form.cls().set_params(**given | ranges)
        if form.cls is TfidfVectorizer:
            made.set_params(vocabulary=facts.get("vocabulary"))
        for name, array in arrays.items():
            setattr(made, name, array)
        if form.cls is not TfidfVectorizer:
            made.n_features_in_ = arrays[form.arrays[0]].shape[-1]
    except (TypeError, ValueError, AttributeError) as error:
        raise MisfitError(f"{kind} cannot be made again: {reason(error, 120)}") from None
    return made


def _check_arrays(form: _Form, arrays: Mapping[str, Array]) -> None:
    kind = form.cls.__name__
    if not {*form.arrays} <= arrays.keys() <= {*form.arrays, *form.optional}:
        raise MisfitError(f"{kind} has the arrays {shown([*arrays])}, but must have {[*form.arrays]}")
    first = arrays[form.arrays[0]]
    inputs, outputs = first.shape[-1:], first.shape[:1]
    places = {"components_": (*outputs, *inputs), "explained_variance_": outputs}
    for name, array in arrays.items():
        if array.shape != places.get(name, inputs) or array.dtype.kind != "f" or not np.isfinite(array).all():
            raise MisfitError(f"the array {name!r} of {kind} has the wrong shape, or is not finite")
        if name in ("scale_", "idf_", "explained_variance_") and not (array >= 0).all():
            raise MisfitError(f"the array {name!r} of {kind} holds numbers below 0")


def _parameters(name: str, step: Any) -> dict[str, Any]:
    """Return the parameters of a step that are not the defaults, as JSON has them."""
    defaults = type(step)().get_params()
    given = {key: value for key, value in step.get_params().items() if not _same(value, defaults[key])}
    given.pop("vocabulary", None)
    given.pop("random_state", None)
    for key, value in given.items():
        plain = list(value) if isinstance(value, tuple | set | frozenset) else value
        if isinstance(plain, type):  # such as dtype=numpy.float32
            plain = np.dtype(plain).name
        if isinstance(plain, np.generic):
            plain = plain.item()
        if json_misfit(plain, str | int | float | bool | list | None) is not None:
            raise InputError(
                f"a model file cannot hold {key} of the step {shown(name)}, which is {shown(value, 60)}; it holds "
                "numbers and texts: use such a value"
            )
        given[key] = plain
    return given


def _same(value: Any, default: Any) -> bool:
    return type(value) is type(default) and bool(value == default)
