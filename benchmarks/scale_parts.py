"""What steps whose rows pass a network in parts cost: cases of benchmarks/scale.py, on random images."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import oneof


def in_parts(case: Mapping[str, Any]) -> Callable[[], Any]:
    """Return the fit of a case, which only memory and time are of interest of."""
    rng, rows, classes = np.random.default_rng(0), case["rows"], case["classes"]
    X = rng.integers(0, 256, (rows, case["side"], case["side"], 3), dtype=np.uint8)
    sets = np.argsort(rng.random((rows, classes)))[:, : case["candidates"]]
    settings = case["settings"] | case.get("more", {})
    model = oneof.METHODS[case["method"]](
        network=case["network"], random_state=0, device="cpu", threads=1, **settings
    )
    warnings.simplefilter("ignore")
    return lambda: model.fit(X, sets.tolist())


def parts_table(cases: Sequence[Mapping[str, Any]]) -> str:
    """Return a row for each number of rows at once; the first case has all of a step."""
    lines = ["| network | rows of a step, with versions | at once | beyond the data | CPU s |"]
    lines += ["| --- | ---: | ---: | ---: | ---: |"]
    for case in cases:
        versions = 1 + case["settings"].get("views", "").count("+")
        whole = case["settings"]["batch_size"] * versions
        ratios = [case[name] / cases[0][name] for name in ("beyond", "cpu_seconds")]
        words = ["" if case is cases[0] else f" ({ratio:.2f} of whole steps)" for ratio in ratios]
        lines.append(
            f"| {case['network']} | {whole} | {case.get('more', {}).get('rows_at_once', whole)} "
            f"| {case['beyond'] / 1e9:.2f} GB{words[0]} | {case['cpu_seconds']:.0f}{words[1]} |"
        )
    return "\n".join(lines)
