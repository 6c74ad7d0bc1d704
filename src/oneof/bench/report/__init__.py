"""From results to reports."""
