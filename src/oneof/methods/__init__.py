"""The methods: one file each, all listed here. What is listed is tested by the contract suite."""

from collections.abc import Mapping
from os import PathLike
from typing import Any

from torch import Tensor, nn

from oneof.em import EMClassifier
from oneof.em.model_file import read_em_model
from oneof.errors import InputError, KindError
from oneof.estimator.classifier import PartialLabelClassifier
from oneof.estimator.model_file import read_model
from oneof.estimator.model_header import MisfitError
from oneof.io import tensors as tensor_file
from oneof.io.arguments import as_path
from oneof.io.words import shown, warn
from oneof.methods.cavl import CAVL
from oneof.methods.cc import CC
from oneof.methods.competition import Competition
from oneof.methods.crosel import CroSel
from oneof.methods.dirk import DIRK
from oneof.methods.idgp import IDGP
from oneof.methods.installed import installed
from oneof.methods.lws import LWS
from oneof.methods.membership import Membership
from oneof.methods.papi import PaPi
from oneof.methods.pico import PiCO
from oneof.methods.plcr import PLCR
from oneof.methods.pop import POP
from oneof.methods.proden import PRODEN
from oneof.methods.rc import RC
from oneof.methods.valen import VALEN
from oneof.nn.networks import Factory
from oneof.pipeline import Pipeline
from oneof.pipeline.pipeline_file import METHOD as PIPELINE
from oneof.pipeline.pipeline_file import read_pipeline
from oneof.train.runtime import resolve_device

__all__ = [
    "CAVL",
    "CC",
    "DIRK",
    "IDGP",
    "LWS",
    "METHODS",
    "PLCR",
    "POP",
    "PRODEN",
    "RC",
    "VALEN",
    "Classifier",
    "Competition",
    "CroSel",
    "Membership",
    "Model",
    "PaPi",
    "PiCO",
    "classifiers",
    "load_model",
]

METHODS: dict[str, type[PartialLabelClassifier]] = {
    "idgp": IDGP,
    "plcr": PLCR,
    "pico": PiCO,
    "valen": VALEN,
    "cavl": CAVL,
    "lws": LWS,
    "rc": RC,
    "cc": CC,
    "proden": PRODEN,
    "pop": POP,
    "dirk": DIRK,
    "papi": PaPi,
    "crosel": CroSel,
    "membership": Membership,
    "competition": Competition,
}
Classifier = PartialLabelClassifier | EMClassifier
Model = Classifier | Pipeline


def classifiers() -> dict[str, type[Classifier]]:
    """Return what commands and plans know by name: the methods, EMClassifier, and methods of other packages."""
    return {**METHODS, "em": EMClassifier, **_of_others()}


def _of_others() -> dict[str, type[PartialLabelClassifier]]:
    taken = {PIPELINE, EMClassifier.__name__, *(method.__name__ for method in METHODS.values())}
    return installed(frozenset({*METHODS, "em", "auto", "supervised", "oracle"}), frozenset(taken))


def load_model(
    path: str | PathLike[str],
    network: nn.Module | Factory | None = None,
    device: str = "auto",
    methods: Mapping[str, type[PartialLabelClassifier]] | None = None,
) -> Model:
    """Read a fitted model, or a pipeline that ends with one, that ``model.save(path)`` wrote.

    Parameters
    ----------
    path : path
        The model file.
    network : module or callable, optional
        Your own network or its factory, when the model was fitted with one: a file holds no code.
    device : str, default="auto"
        Where the model shall predict.
    methods : dict, optional
        Classes of your own methods by any name, when the model may be of one: ``{"mine": Mine}``. Those of
        installed packages, by entry points of the group ``oneof.methods``, are known without.

    Returns
    -------
    fitted model
        Of the class that was saved: a method, an `EMClassifier` or a `Pipeline`.

    Examples
    --------
    >>> import tempfile
    >>> model = CC(epochs=5, device="cpu", random_state=0).fit([[0.0], [1.0], [2.0]], [["a"], ["a", "b"], ["b"]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model.safetensors", card=True)
    ...     loaded = load_model(f"{folder}/model.safetensors")
    >>> bool(loaded.predict([[0.0]]) == model.predict([[0.0]]))
    True
    """
    if not isinstance(methods, Mapping | None):
        raise KindError(f"methods is {shown(methods)}, but must be a dict of classes; pass {{'mine': Mine}}")
    for method in (methods or {}).values():
        if not (isinstance(method, type) and issubclass(method, PartialLabelClassifier)):
            raise KindError(
                f"methods holds {shown(method)}, but must hold classes of methods; pass the class itself"
            )
    resolve_device(device)
    known = {method.__name__: method for method in (*METHODS.values(), *(methods or {}).values())}
    path = as_path(path, "path")
    tensors, facts = tensor_file.read(path, "model")

    def read(tensors: dict[str, Tensor], facts: dict[str, Any]) -> Classifier:
        if facts.get("method") != EMClassifier.__name__:
            if str(facts.get("method")) not in known:
                known.update({method.__name__: method for method in _of_others().values()})
            return read_model(tensors, facts, known, network, device)
        if network is not None or device not in ("auto", "cpu"):
            warn(
                "the file holds an EMClassifier, which has no network and no device, so that these have no effect"
            )
        return read_em_model(EMClassifier, tensors, facts)

    try:
        if facts.get("method") != PIPELINE:
            return read(tensors, facts)
        steps, model = read_pipeline(tensors, facts, read)
        return Pipeline([*steps, model])
    except MisfitError as error:
        raise InputError(
            f"{str(path)!r} does not hold what its header promises ({error}); use an undamaged copy, or fit and "
            "save the model again"
        ) from None
