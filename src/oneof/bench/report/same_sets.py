"""Which runs saw the same candidate sets; those that saw different ones are not compared.

The device is no part of a key, and annotators that were trained on different devices can give different sets for
the same settings. Sets are known by their checksum; it is None in old records of data sets with sets of their own,
and such sets count as the same.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

__all__ = ["Checksums", "against", "differing", "usual"]

Checksums = Mapping[int, str | None]  # by trial


def differing(*sums: Checksums) -> set[int]:
    """Return the trials that all have and in which they saw different sets."""
    common = set(sums[0]).intersection(*sums[1:])
    return {trial for trial in common if len({each[trial] for each in sums} - {None}) > 1}


def against(methods: Mapping[str, Checksums]) -> dict[str, int]:
    """Say which methods saw different sets, such as "idgp, cc against proden", and in how many trials."""
    found: Counter[str] = Counter()
    for trial in sorted({trial for sums in methods.values() for trial in sums}):
        groups: dict[str, list[str]] = {}
        for label, sums in methods.items():
            if (known := sums.get(trial)) is not None:
                groups.setdefault(known, []).append(label)
        if len(groups) > 1:
            found[" against ".join(", ".join(group) for group in groups.values())] += 1
    return dict(found)


def usual(own: Iterable[str | None], everywhere: Iterable[str | None]) -> str | None:
    """Return the checksum that most runs of a method have; where these are equally many, most runs of all."""
    known, all_known = Counter(own), Counter(everywhere)
    del known[None]
    return max(known, key=lambda value: (known[value], all_known[value]), default=None)
