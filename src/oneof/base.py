"""Earlier path of `oneof.estimator`; works until 0.3."""

from oneof._moved import moved

__getattr__ = moved(__name__, "oneof.estimator", ["PartialLabelClassifier"])
