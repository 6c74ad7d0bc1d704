"""What a method of your own must do, as one function: `check_method`."""

from oneof.testing.contract import check_method

__all__ = ["check_method"]
