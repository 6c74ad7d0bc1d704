"""How much memory a fit on sparse rows takes: one line. The peak is that of the process, so run it by itself."""

import resource
import time

import numpy as np
import scipy.sparse

from oneof import CC

ROWS, WORDS, OF_EACH = 20_000, 50_000, 60


def peak() -> float:
    """Return the largest memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


rng = np.random.default_rng(0)
cells = rng.random(ROWS * OF_EACH), rng.integers(WORDS, size=ROWS * OF_EACH)
X = scipy.sparse.csr_array((*cells, np.arange(0, ROWS * OF_EACH + 1, OF_EACH)), shape=(ROWS, WORDS))
sets = np.eye(5, dtype=bool)[np.arange(ROWS) % 5] | (rng.random((ROWS, 5)) < 0.2)
before, begun = peak(), time.perf_counter()
CC(epochs=1, network="linear", random_state=0, device="cpu").fit(X, sets)
print(f"before {before:.0f} MB, peak {peak():.0f} MB, one epoch and labels {time.perf_counter() - begun:.0f} s")
