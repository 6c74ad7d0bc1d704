"""Errors of this library: one base class; its kinds are also the built-in errors that scikit-learn expects.

``except oneof.errors.OneofError`` catches whatever the library refuses or gives up. Errors that others raise stay
as they are: those of the operating system (``OSError``, such as a file that is not there), ``ImportError``, and
those of scikit-learn (``NotFittedError``, and what its checks of X say).
"""

__all__ = ["InputError", "KindError", "OneofError", "Paused", "TrainingDiverged", "WorkersLost"]


class OneofError(Exception):
    """Base class of all errors of this library."""


class InputError(OneofError, ValueError):
    """A value, a file or a setting that cannot be used; the message says what it is, must be, and the fix."""


class KindError(OneofError, TypeError):
    """An argument of the wrong type; the message says what it is, must be, and the fix."""


class TrainingDiverged(OneofError, ArithmeticError):  # noqa: N818
    """A training has ended early, since its loss or its weights are no longer finite numbers."""


class Paused(OneofError):  # noqa: N818
    """A training has written its checkpoint and stopped before its last epoch."""


class WorkersLost(OneofError, RuntimeError):  # noqa: N818
    """A training by several workers was given up, since some of them ended again and again."""
