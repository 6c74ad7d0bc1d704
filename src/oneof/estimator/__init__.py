"""What every method shares: the base class, its fields, features, state, model files and checks."""

from oneof.estimator.classifier import PartialLabelClassifier
from oneof.estimator.fields import Role, check, choice, count, flag, hyperparameters, names_with, number, setting
from oneof.estimator.together import fit_together
from oneof.labels import Disambiguation

__all__ = [
    "Disambiguation",
    "PartialLabelClassifier",
    "Role",
    "check",
    "choice",
    "count",
    "fit_together",
    "flag",
    "hyperparameters",
    "names_with",
    "number",
    "setting",
]
