"""Which method to take: contenders are trained on folds and judged by the candidate sets of held-out rows."""

from oneof.comparison.result import MethodComparison, MethodScore
from oneof.comparison.run import compare

__all__ = ["MethodComparison", "MethodScore", "compare"]
