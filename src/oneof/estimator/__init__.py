"""What every method shares: the base class, its fields, features, state, model files and checks."""

from oneof.estimator.classifier import Disambiguation, PartialLabelClassifier
from oneof.estimator.fields import choice, count, hyperparameters, number, setting
from oneof.estimator.together import fit_together

__all__ = [
    "Disambiguation",
    "PartialLabelClassifier",
    "choice",
    "count",
    "fit_together",
    "hyperparameters",
    "number",
    "setting",
]
