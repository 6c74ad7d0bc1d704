"""oneof: learn classifiers from candidate label sets. The truth is one of these labels.

What stands here is imported when it is first asked for, so that ``oneof --help`` need not wait for torch.
"""

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oneof.comparison import compare
    from oneof.data import PartialLabels, load_dataset, load_images
    from oneof.em import EMClassifier
    from oneof.estimator.resolve import resolve
    from oneof.estimator.together import fit_together
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
        IDGP,
        LWS,
        METHODS,
        PLCR,
        PRODEN,
        RC,
        VALEN,
        Competition,
        Membership,
        PiCO,
        load_model,
    )
    from oneof.review import apply_decisions
    from oneof.scoring import SCORERS

__version__ = "0.1.0"
__all__ = [
    "CAVL",
    "CC",
    "IDGP",
    "LWS",
    "METHODS",
    "PLCR",
    "PRODEN",
    "RC",
    "SCORERS",
    "VALEN",
    "CandidateKFold",
    "Competition",
    "EMClassifier",
    "Membership",
    "PartialLabels",
    "PiCO",
    "Votes",
    "WeightedSets",
    "apply_decisions",
    "compare",
    "disambiguate",
    "encode",
    "fit_together",
    "from_complementary",
    "from_votes",
    "load_dataset",
    "load_images",
    "load_model",
    "resolve",
    "vote_counts",
]

_HOME = {  # all others are at home in oneof.methods
    "CandidateKFold": "oneof.labels",
    "EMClassifier": "oneof.em",
    "PartialLabels": "oneof.data",
    "Votes": "oneof.labels",
    "WeightedSets": "oneof.labels",
    "SCORERS": "oneof.scoring",
    "apply_decisions": "oneof.review",
    "compare": "oneof.comparison",
    "disambiguate": "oneof.labels",
    "encode": "oneof.labels",
    "fit_together": "oneof.estimator.together",
    "from_complementary": "oneof.labels",
    "from_votes": "oneof.labels",
    "load_dataset": "oneof.data",
    "load_images": "oneof.data",
    "resolve": "oneof.estimator.resolve",
    "vote_counts": "oneof.labels",
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
