"""A comparison as a page, and what to do without one: the advice that every place of the project gives."""

from oneof.comparison.result import MethodComparison
from oneof.pages.comparison_page import ComparedMethod, ComparisonContent, render

__all__ = ["ADVICE", "render_page"]

# The README, docs/methods/index.md and docs/results/index.md say the same; a test compares them.
ADVICE = (
    "Which method? Run oneof compare on your table: it needs no true labels. If you want one default without "
    "comparing, take competition."
)


def render_page(comparison: MethodComparison, title: str) -> str:
    """Return a comparison as HTML, under a title such as the name of its table."""
    methods = [
        ComparedMethod(name, score.mean, score.low, score.high, name == comparison.best)
        for name, score in ((name, each.log_likelihood) for name, each in comparison.scores.items())
    ]
    return render(ComparisonContent(title, comparison.advice, methods, comparison.table(), comparison.notes()))
