"""Any scikit-learn classifier learns from candidate sets, by expectation-maximisation over copies of rows."""

from oneof.em.classifier import EMClassifier
from oneof.em.estimators import ESTIMATORS

__all__ = ["ESTIMATORS", "EMClassifier"]
