"""IDGP: what its settings cannot mean, or not what they say."""

from typing import Any

from oneof.io.words import warn


def warn_of_settings(method: Any) -> None:
    """Warn of settings that have no part in the objective, and of a prior that is not what Eq. 6 says."""
    if method.distractors == "rows" and method.objective != "map":
        warn(f"distractors is 'rows', which has no part in objective={method.objective!r}; use objective='map'")
    if method.objective == "released" and method.mixup:
        warn(f"mixup is {method.mixup}, which has no part in objective='released'; use objective='map'")
    if method.objective in ("map", "uniform"):
        _warn_of_the_prior(method)


def _warn_of_the_prior(method: Any) -> None:
    if method.b < 1:
        warn(f"b is {method.b}: below 1 the prior weights lambda - 1 can be negative and are cut at 0; use b=1")
    for name, epoch, share in (("r", method.r, method.m), ("q", method.q, method.d)):
        if share > 0 and epoch is not None and epoch < method.warm_up:
            warn(
                f"{name} is {epoch}, but warm_up is {method.warm_up} and has no prior: the snapshot is of epoch "
                f"{method.warm_up}; raise {name}, lower warm_up, or leave {name}=None, which means the same"
            )
