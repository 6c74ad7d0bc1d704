"""oneof: learn classifiers from candidate label sets. The truth is one of these labels.

What stands here is imported when it is first asked for, so that ``oneof --help`` need not wait for torch.
"""

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oneof.comparison import compare
    from oneof.data import PartialLabels, load_dataset, load_images
    from oneof.data.embedding import embed
    from oneof.data.exchange import Annotations, convert, read_annotations, write_annotations
    from oneof.data.on_disk.table import open_table
    from oneof.em import EMClassifier
    from oneof.estimator.outside import outside_rate
    from oneof.estimator.resolve import resolve
    from oneof.estimator.together import fit_together
    from oneof.estimator.with_workers import fit_with_workers
    from oneof.labels import (
        CandidateKFold,
        Votes,
        WeightedSets,
        disambiguate,
        encode,
        from_complementary,
        from_votes,
        vote_counts,
    )
    from oneof.methods import (
        CAVL,
        CC,
        DIRK,
        IDGP,
        LWS,
        METHODS,
        PLCR,
        POP,
        PRODEN,
        RC,
        VALEN,
        Competition,
        CroSel,
        Membership,
        PaPi,
        PiCO,
        load_model,
    )
    from oneof.pipeline import Pipeline, TableEncoder, make_pipeline
    from oneof.review import apply_decisions
    from oneof.scoring import SCORERS

__version__ = "0.2.0"
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
    "SCORERS",
    "VALEN",
    "Annotations",
    "CandidateKFold",
    "Competition",
    "CroSel",
    "EMClassifier",
    "Membership",
    "PaPi",
    "PartialLabels",
    "PiCO",
    "Pipeline",
    "TableEncoder",
    "Votes",
    "WeightedSets",
    "apply_decisions",
    "compare",
    "convert",
    "disambiguate",
    "embed",
    "encode",
    "fit_together",
    "fit_with_workers",
    "from_complementary",
    "from_votes",
    "load_dataset",
    "load_images",
    "load_model",
    "make_pipeline",
    "open_table",
    "outside_rate",
    "read_annotations",
    "resolve",
    "vote_counts",
    "write_annotations",
]

_HOME = {  # all others are at home in oneof.methods
    "Annotations": "oneof.data.exchange",
    "CandidateKFold": "oneof.labels",
    "EMClassifier": "oneof.em",
    "PartialLabels": "oneof.data",
    "Pipeline": "oneof.pipeline",
    "TableEncoder": "oneof.pipeline",
    "Votes": "oneof.labels",
    "WeightedSets": "oneof.labels",
    "SCORERS": "oneof.scoring",
    "apply_decisions": "oneof.review",
    "compare": "oneof.comparison",
    "convert": "oneof.data.exchange",
    "disambiguate": "oneof.labels",
    "embed": "oneof.data.embedding",
    "encode": "oneof.labels",
    "fit_together": "oneof.estimator.together",
    "fit_with_workers": "oneof.estimator.with_workers",
    "from_complementary": "oneof.labels",
    "from_votes": "oneof.labels",
    "load_dataset": "oneof.data",
    "load_images": "oneof.data",
    "make_pipeline": "oneof.pipeline",
    "open_table": "oneof.data.on_disk.table",
    "outside_rate": "oneof.estimator.outside",
    "read_annotations": "oneof.data.exchange",
    "resolve": "oneof.estimator.resolve",
    "vote_counts": "oneof.labels",
    "write_annotations": "oneof.data.exchange",
}
_MODULES = frozenset(module.name for module in iter_modules(__path__) if not module.name.startswith("_"))

if not TYPE_CHECKING:  # type checkers read the imports above, and find misspelt names

    def __getattr__(name: str) -> Any:
        if name in __all__:
            value = globals()[name] = getattr(import_module(_HOME.get(name, "oneof.methods")), name)
            return value
        if name in _MODULES:
            return import_module(f"oneof.{name}")
        raise AttributeError(f"module 'oneof' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
