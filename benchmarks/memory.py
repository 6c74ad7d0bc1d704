"""How much memory a fit of VALEN takes beyond its data: 60,000 rows of 784 features, random.

Run ``python benchmarks/memory.py``; takes a few minutes on two cores.
"""

import resource
import time

import numpy as np

import oneof


def peak() -> float:
    """Return the largest resident memory so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Fit two epochs, one of warm-up and one with the graph, and print the peak."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60_000, 784), dtype=np.float32)
    candidates = rng.random((60_000, 10)) < 0.3
    candidates[np.arange(60_000), rng.integers(10, size=60_000)] = True
    before, begun = peak(), time.perf_counter()
    oneof.VALEN(epochs=2, warm_up=1, random_state=0, device="cpu").fit(X, candidates)
    seconds = time.perf_counter() - begun
    print(f"{peak() - before:.0f} MB beyond the {before:.0f} MB of the process with its data, {seconds:.0f} s")


if __name__ == "__main__":
    main()
