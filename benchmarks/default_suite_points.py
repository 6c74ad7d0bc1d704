"""Points of the default suite: what a search tries at random, the defaults of today, and rules for defaults."""

from collections.abc import Sequence
from itertools import product
from typing import Any
from zlib import crc32

import numpy as np
from default_suite_problems import PROBLEMS

from oneof.bench.keys import baseline
from oneof.methods import METHODS

SEARCHED = ("idgp", "plcr", "pico", "valen", "cavl", "lws", "rc", "cc", "proden", "membership", "competition")
POINTS, ADAMW_POINTS = 12, 6
NOW = "now"
RATES, DECAYS = (0.01, 0.03, 0.1, 0.3), (1e-4, 1e-3, 5e-3)  # of the rules
ADAMW_RATES, ADAMW_DECAYS = (0.003, 0.01, 0.03), (0.1, 0.3, 1.0, 3.0)  # of those with AdamW
_OF_SGD = ("lr", "weight_decay", "schedule", "epochs", "batch_size")
_MANY_ROWS = 8000  # from here on the search has larger batches and fewer epochs

Settings = dict[str, Any]


def random_points(problem: str) -> dict[str, Settings]:
    """Draw the settings that a search tries on a problem, the same for all methods: first SGD's, then AdamW's."""
    sgd = _drawn(problem, "random", POINTS, (0.003, 0.5), (-5, -2))
    adamw = _drawn(f"adamw {problem}", "adamw", ADAMW_POINTS, (0.0005, 0.05), (-2, 0.7))
    return sgd | {name: {"optimizer": "adamw", **point} for name, point in adamw.items()}


def _drawn(
    seed: str, name: str, number: int, ends: tuple[float, float], decays: tuple[float, float]
) -> dict[str, Settings]:
    """Draw points; learning rates between ``ends`` in strata, decays as powers of ten."""
    rng = np.random.default_rng(crc32(seed.encode()))
    many = PROBLEMS[seed.removeprefix("adamw ")].train >= _MANY_ROWS
    least, most = ends
    rates = least * (most / least) ** ((rng.permutation(number) + rng.random(number)) / number)
    points = {}
    for i, rate in enumerate(rates):
        epochs = int(rng.choice([12, 25, 50, 100] if many else [25, 50, 100, 200]))
        points[f"{name} {i}"] = {
            "lr": float(f"{rate:.3g}"),
            "weight_decay": float(f"{10 ** rng.uniform(*decays):.3g}"),
            "schedule": str(rng.choice(["constant", "cosine"])),
            "epochs": epochs,
            "batch_size": int(rng.choice([64, 128, 256, 512] if many else [32, 64, 128, 256])),
            "warm_up": min(int(rng.choice([0, 5, 10, 20])), epochs // 2),
            "mixup": float(rng.choice([0.0, 1.0])),
        }
    return points


def batch_by_rows(rows: int) -> int:
    """Return the power of two that is nearest to a twentieth of the rows, from 32 to 256."""
    return int(np.clip(2 ** round(np.log2(rows / 20)), 32, 256))


def rules(rows: int) -> dict[str, dict[str, Settings]]:
    """Return candidates for defaults on so many rows: stacks of rules by name. Before is what the baseline has."""
    by_rows = batch_by_rows(rows)
    return {
        "before": {"before": {}},
        "batch 100": _rules("cosine", RATES, DECAYS, "batch 100", 100),
        "batch by n": _rules("cosine", RATES, DECAYS, "batch by n", by_rows),
        "adamw": _rules("adamw, cosine", ADAMW_RATES, ADAMW_DECAYS, "batch by n", by_rows, optimizer="adamw"),
    }


def _rules(
    begin: str, rates: Sequence[float], decays: Sequence[float], end: str, size: int, **others: Any
) -> dict[str, Settings]:
    """Return a rule for each rate and decay, all with a cosine."""
    return {
        f"{begin}, lr {rate:g}, decay {decay:g}, {end}": {
            **{"lr": rate, "weight_decay": decay, "schedule": "cosine", "batch_size": size},
            **others,
        }
        for rate, decay in product(rates, decays)
    }


def current(method: str, problem: str) -> Settings:
    """Return the defaults of today: what a fit on a problem has, so that records tell one rule from another."""
    model: Any = METHODS[method](network=PROBLEMS[problem].network)
    model.input_shape_, model.n_features_in_ = None, PROBLEMS[problem].inputs
    model.training_rows_ = PROBLEMS[problem].train
    open_ = {name: getattr(model, f"{name}_") for name in ("optimizer", "lr", "weight_decay", "batch_size")}
    known = baseline(type(model).__name__)["settings"].get("mixup", 0.0)
    mixing = not model.needs_views and getattr(model, "mixing_weight", 0.0)
    mixed = {"mixup": mixing} if mixing or known is None else {}
    return with_sgd(method) | open_ | mixed


def with_sgd(method: str) -> Settings:
    """Return the defaults of today with SGD, which the baseline has, and no mixup; None depends on the rows."""
    model: Any = METHODS[method]()
    return {name: getattr(model, name) for name in _OF_SGD}
