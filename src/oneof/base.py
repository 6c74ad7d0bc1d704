"""Earlier path of `oneof.estimator`; works until 0.3."""

from oneof.deprecated import moved

__getattr__ = moved(__name__, "oneof.estimator", ["PartialLabelClassifier"])
