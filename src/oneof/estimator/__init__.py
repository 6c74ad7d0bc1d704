"""What every method shares: the base class, its fields, features, state, model files and checks."""

from oneof.estimator.classifier import PartialLabelClassifier
from oneof.estimator.fields import Role, check, choice, count, flag, hyperparameters, names_with, number, setting

__all__ = [
    "PartialLabelClassifier",
    "Role",
    "check",
    "choice",
    "count",
    "flag",
    "hyperparameters",
    "names_with",
    "number",
    "setting",
]
