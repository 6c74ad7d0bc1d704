"""Methods and their settings as they are named on the command line."""

from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from oneof.cli.app import named_values
from oneof.errors import InputError

if TYPE_CHECKING:
    from oneof.methods import Classifier


def method_named(name: str) -> "type[Classifier]":
    """Return the class of a method."""
    from oneof.methods import classifiers

    known = classifiers()
    if name.lower() not in known:
        raise InputError(f"{name!r} is no method; choose one of {', '.join(known)}")
    return known[name.lower()]


def shared_settings(texts: list[str]) -> dict[str, Any]:
    """Read NAME=VALUE texts into hyper-parameters that some method has."""
    from oneof.methods import classifiers

    return settings_of([*classifiers().values()], texts)


def settings_of(known: "Sequence[type[Classifier]]", texts: list[str]) -> dict[str, Any]:
    """Read NAME=VALUE texts into the hyper-parameters of methods."""
    from oneof.io.words import alternatives
    from oneof.nn.networks import NETWORKS
    from oneof.nn.pretrained import is_pretrained

    options = {each.name: each.metadata.get("option") for cls in known for each in fields(cls)}
    allowed = [name for name, option in options.items() if not option]
    settings = named_values(texts, "lr=0.05")
    for name in settings:
        if options.get(name):
            raise InputError(f"--set {name} has an option of its own; use {options[name]}")
        if name not in allowed:
            who = f"{known[0].__name__} has no" if len(known) == 1 else "no method has a"
            raise InputError(f"{who} setting {name!r}; {alternatives(name, allowed)}")
    network, networks = settings.get("network", "auto"), ["auto", *NETWORKS]
    if network not in networks and not is_pretrained(network):
        raise InputError(
            f"network is {network!r}, but must be one of {networks}, or a pretrained one such as timm:resnet18"
        )
    return settings
