"""Views: several versions of each example, by name."""

from oneof.augment.views import PIPELINES, is_views, make_views

__all__ = ["PIPELINES", "is_views", "make_views"]
