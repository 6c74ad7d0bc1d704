"""Views: several versions of each example."""
