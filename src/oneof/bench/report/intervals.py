"""The picture that a report opens with: by how many points the reference is above its rivals, with intervals."""

import math

from oneof.bench.report.grids import Results
from oneof.pages.content import Figure
from oneof.pages.interval_charts import Span, interval_chart

__all__ = ["intervals"]


def intervals(results: Results) -> Figure | None:
    """Draw one panel for each data set on which something was compared; None where nothing was."""
    panels = []
    for name in results.columns:
        found = {label: results.rows[label].get(name) for label in results.rivals}
        known = [
            Span(label, c.difference, c.low, c.high)
            for label, result in found.items()
            if result is not None and (c := result.comparison) is not None and math.isfinite(c.low)
        ]
        if known:
            panels.append(interval_chart(name, f"{results.reference} minus each method, in points", known))
    title = f"{results.title}: to the right of zero {results.reference} is better; 95 % intervals"
    return Figure("differences", title, panels) if panels else None
