"""What a shell completes beside commands and options: names. Each function imports what it needs, and no more."""

from collections.abc import Iterable


def methods() -> Iterable[str]:
    """Return the methods, those of installed packages too."""
    from oneof.methods import classifiers

    return classifiers()


def learners() -> Iterable[str]:
    """Return the methods, and the word that has one chosen."""
    return ["auto", *methods()]


def plans() -> Iterable[str]:
    """Return the plans that come with the library; where none begins so, shells go on to files."""
    from oneof.bench.published import published_plans

    return published_plans()


def datasets() -> Iterable[str]:
    """Return the known data sets."""
    from oneof.data.catalogue import DATASETS

    return DATASETS


def processes() -> Iterable[str]:
    """Return the ways to make candidate sets."""
    from oneof.data.corrupt import PROCESSES

    return PROCESSES


def formats() -> Iterable[str]:
    """Return the formats of other tools."""
    from oneof.data.exchange import FORMATS

    return FORMATS
