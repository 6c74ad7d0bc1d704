"""Review: which answers are probably wrong, what people decide about them, and the way back into a fit."""

from oneof.review.decisions import Decided, apply_decisions, read_decisions
from oneof.review.ranking import REASONS, Ranking, rank

__all__ = ["REASONS", "Decided", "Ranking", "apply_decisions", "rank", "read_decisions"]
