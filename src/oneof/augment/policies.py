"""Random policies of image operations, drawn for every image by itself: AutoAugment and RandAugment."""

from functools import cache

import torch
from torch import Tensor

from oneof.acceleration import faster
from oneof.augment import draws
from oneof.augment import operations as ops

# Every operation and the magnitude with which it does nothing. Inverting is solarizing from level 0 on.
OPERATIONS: dict[str, float] = {
    "identity": 0,
    "rotate": 0,
    "shear_x": 0,
    "shear_y": 0,
    "translate_x": 0,
    "translate_y": 0,
    "posterize": 8,
    "solarize": 256,
    "autocontrast": 0,
    "equalize": 0,
    "brightness": 1,
    "contrast": 1,
    "color": 1,
    "sharpness": 1,
}
NUMBER = {name: number for number, name in enumerate(OPERATIONS)}

# AutoAugment for CIFAR-10 (Cubuk et al., 2019): two (operation, probability, level 0..9) each.
SUB_POLICIES = (
    (("invert", 0.1, 7), ("contrast", 0.2, 6)),
    (("rotate", 0.7, 2), ("translate_x", 0.3, 9)),
    (("sharpness", 0.8, 1), ("sharpness", 0.9, 3)),
    (("shear_y", 0.5, 8), ("translate_y", 0.7, 9)),
    (("autocontrast", 0.5, 8), ("equalize", 0.9, 2)),
    (("shear_y", 0.2, 7), ("posterize", 0.3, 7)),
    (("color", 0.4, 3), ("brightness", 0.6, 7)),
    (("sharpness", 0.3, 9), ("brightness", 0.7, 9)),
    (("equalize", 0.6, 5), ("equalize", 0.5, 1)),
    (("contrast", 0.6, 7), ("sharpness", 0.6, 5)),
    (("color", 0.7, 7), ("translate_x", 0.5, 8)),
    (("equalize", 0.3, 7), ("autocontrast", 0.4, 8)),
    (("translate_y", 0.4, 3), ("sharpness", 0.2, 6)),
    (("brightness", 0.9, 6), ("color", 0.2, 8)),
    (("solarize", 0.5, 2), ("invert", 0.0, 3)),
    (("equalize", 0.2, 0), ("autocontrast", 0.6, 0)),
    (("equalize", 0.2, 8), ("equalize", 0.6, 4)),
    (("color", 0.9, 9), ("equalize", 0.6, 6)),
    (("autocontrast", 0.8, 4), ("solarize", 0.2, 8)),
    (("brightness", 0.1, 3), ("color", 0.7, 0)),
    (("solarize", 0.4, 5), ("autocontrast", 0.9, 3)),
    (("translate_y", 0.9, 9), ("translate_y", 0.7, 9)),
    (("autocontrast", 0.9, 2), ("solarize", 0.8, 3)),
    (("equalize", 0.8, 8), ("invert", 0.1, 3)),
    (("translate_y", 0.7, 9), ("autocontrast", 0.9, 1)),
)

# RandAugment as in the released code of PiCO: the range of each operation's magnitude.
RANGES: dict[str, tuple[float, float]] = {
    "autocontrast": (0, 0),
    "brightness": (0.05, 0.95),
    "color": (0.05, 0.95),
    "contrast": (0.05, 0.95),
    "equalize": (0, 0),
    "identity": (0, 0),
    "posterize": (4, 8),
    "rotate": (-30, 30),
    "sharpness": (0.05, 0.95),
    "shear_x": (-0.3, 0.3),
    "shear_y": (-0.3, 0.3),
    "solarize": (0, 256),
    "translate_x": (-0.3, 0.3),
    "translate_y": (-0.3, 0.3),
}


def auto_augment(x: Tensor) -> Tensor:
    """Apply one of the 25 sub-policies to each image: two operations with their probabilities and random signs."""
    entry = _sub_policy_table(x.device)[draws.randint(x, 0, len(SUB_POLICIES))]  # (B, 2, 4)
    operation, probability, centre, spread = entry.unbind(-1)  # (B, 2)
    applied = draws.rand(x, 2) < probability
    sign = 2 * draws.randint(x, 0, 2, 2) - 1
    operation = torch.where(applied, operation, NUMBER["identity"])
    return operate(x, operation, centre + sign * spread, fill=128)


def rand_augment(x: Tensor, steps: int) -> Tensor:
    """Apply ``steps`` of the 14 operations in `RANGES`, with replacement, each with a uniform magnitude."""
    entry = _range_table(x.device)[draws.randint(x, 0, len(RANGES), steps)]  # (B, steps, 3)
    operation, low, high = entry.unbind(-1)  # (B, steps)
    return operate(x, operation, low + draws.rand(x, steps) * (high - low), fill=0)


def operate(x: Tensor, operations: Tensor, magnitudes: Tensor, fill: int) -> Tensor:
    """Apply to each image its operations (B, steps), by number, with their magnitudes, one after the other.

    ``fill`` is what transforms leave bare.
    """
    if (kernel := faster("operate", x)) is not None:
        changed: Tensor = kernel(x, operations, magnitudes, fill)
        return changed
    for operation, magnitude in zip(operations.unbind(1), magnitudes.unbind(1), strict=True):
        x = _operate_once(x, operation, magnitude, fill)
    return x


def _operate_once(x: Tensor, operation: Tensor, magnitude: Tensor, fill: int) -> Tensor:
    neutral = _neutral(x.device)
    chosen = operation[:, None] == torch.arange(len(neutral), device=x.device)  # (B, operations)
    value = dict(zip(OPERATIONS, torch.where(chosen, magnitude[:, None], neutral).unbind(1), strict=True))
    x = ops.affine(
        x, value["rotate"], value["shear_x"], value["shear_y"], value["translate_x"], value["translate_y"], fill
    )
    equal, auto = chosen[:, NUMBER["equalize"]], chosen[:, NUMBER["autocontrast"]]
    x = ops.lookup(x, value["posterize"], value["solarize"], auto, equal)
    return ops.enhance(x, value["brightness"], value["contrast"], value["color"], value["sharpness"])


def setting(name: str, level: int) -> tuple[str, float, float]:
    """Translate a level 0..9 of an operation: (operation, centre, spread) is a magnitude of centre ± spread."""
    share = level / 9
    match name:
        case "rotate":
            return name, 0, 30 * share
        case "shear_x" | "shear_y":
            return name, 0, 0.3 * share
        case "translate_x" | "translate_y":
            return name, 0, 150 / 331 * share
        case "posterize":
            return name, round(8 - 4 * share), 0
        case "solarize":
            return name, 256 - 256 * share, 0
        case "invert":
            return "solarize", 0, 0
        case "autocontrast" | "equalize":
            return name, 0, 0
        case _:
            return name, 1, 0.9 * share


# Kept for each device: a copy from the host would stop the device, and cannot be captured in a CUDA graph.
@cache
def _neutral(device: torch.device) -> Tensor:
    """Neutral magnitudes (operations,)."""
    return torch.tensor([*OPERATIONS.values()], dtype=torch.float32, device=device)


@cache
def _sub_policy_table(device: torch.device) -> Tensor:
    """Operation, probability, centre and spread (25, 2, 4) of all sub-policies."""
    rows = [
        [
            (NUMBER[operation], probability, centre, spread)
            for name, probability, level in sub_policy
            for operation, centre, spread in [setting(name, level)]
        ]
        for sub_policy in SUB_POLICIES
    ]
    return torch.tensor(rows, dtype=torch.float32, device=device)


@cache
def _range_table(device: torch.device) -> Tensor:
    """Operation, lowest and highest magnitude (14, 3)."""
    rows = [(NUMBER[name], low, high) for name, (low, high) in RANGES.items()]
    return torch.tensor(rows, dtype=torch.float32, device=device)
