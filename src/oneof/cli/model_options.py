"""Options of the commands for models: methods and settings, checked before a table is read."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import typer

from oneof.cli.app import named_values

if TYPE_CHECKING:
    from oneof.methods import Classifier


def find_method(name: str) -> "type[Classifier]":
    """Return the class of a method."""
    from oneof.methods import classifiers

    known = classifiers()
    if name.lower() not in known:
        raise ValueError(f"{name!r} is no method; choose one of {', '.join(known)}")
    return known[name.lower()]


def maker(
    method: str, estimator: str | None, settings: list[str], seed: int, device: str, quiet: bool
) -> "Callable[[Any, Any], Classifier]":
    """Check the options of a model; return what makes it, given rows and candidate sets."""
    from oneof.estimator.fields import check

    if method.lower() == "auto":
        if estimator is not None:
            raise ValueError(f"--estimator is {estimator!r}, but --method is auto; pass --method em with it")
        given = shared_settings(settings)
        return lambda rows, sets: _recommended(rows, sets, given, seed, device, quiet)
    cls = find_method(method)
    model = cls(**_settings([cls], settings), **_options(cls, estimator, seed, device, quiet))
    check(model)
    return lambda rows, sets: model


def _recommended(
    rows: Any, sets: Any, settings: dict[str, Any], seed: int, device: str, quiet: bool
) -> "Classifier":
    """Compare the methods, say which one is taken and why, and return it with the settings that it has."""
    from oneof.comparison import compare

    found = compare(rows, sets, settings=settings | {"device": device}, random_state=seed, verbose=int(not quiet))
    typer.echo(found.advice)
    cls = find_method(found.best)
    own = {each.name for each in fields(cls)}
    kept = {name: value for name, value in settings.items() if name in own}
    return cls(**kept, **_options(cls, None, seed, device if "device" in own else "auto", quiet))


def _options(
    cls: "type[Classifier]", estimator: str | None, seed: int, device: str, quiet: bool
) -> dict[str, Any]:
    """Return the settings that have options of their own, as far as the method has them."""
    names = {each.name for each in fields(cls)}
    if "estimator" not in names and estimator is not None:
        raise ValueError(
            f"--estimator is {estimator!r}, but {cls.__name__} trains a network; pass --method em with it"
        )
    if "device" not in names and device not in ("auto", "cpu"):
        raise ValueError(f"--device is {device!r}, but {cls.__name__} computes on the CPU; leave it out")
    given = {"estimator": estimator, "random_state": seed, "device": device, "verbose": 0 if quiet else 1}
    return {name: value for name, value in given.items() if name in names and value is not None}


def shared_settings(texts: list[str]) -> dict[str, Any]:
    """Read NAME=VALUE texts into hyper-parameters that some method has."""
    from oneof.methods import classifiers

    return _settings([*classifiers().values()], texts)


def _settings(known: "Sequence[type[Classifier]]", texts: list[str]) -> dict[str, Any]:
    """Read NAME=VALUE texts into the hyper-parameters of methods."""
    from oneof.io.words import alternatives
    from oneof.nn.networks import NETWORKS

    options = {each.name: each.metadata.get("option") for cls in known for each in fields(cls)}
    allowed = [name for name, option in options.items() if not option]
    settings = named_values(texts, "lr=0.05")
    for name in settings:
        if options.get(name):
            raise ValueError(f"--set {name} has an option of its own; use {options[name]}")
        if name not in allowed:
            who = f"{known[0].__name__} has no" if len(known) == 1 else "no method has a"
            raise ValueError(f"{who} setting {name!r}; {alternatives(name, allowed)}")
    networks = ["auto", *NETWORKS]
    if settings.get("network", "auto") not in networks:
        raise ValueError(f"network is {settings['network']!r}, but must be one of {networks}")
    return settings


def check_size(size: int | None, images: str | None) -> None:
    """Refuse a size without images."""
    if size is not None and images is None:
        raise ValueError(f"--size is {size}, but only images are scaled; pass --images COLUMN or leave it out")
