"""``make faults``: disturbs real processes, prints one table and writes its figures."""

import argparse
import sys
import time
from pathlib import Path

import reliability

from faults import clusters, disks, kills, plans
from faults.harness import Suite


def main() -> int:
    """Carry out the cases; the exit code is 1 if something was lost."""
    everything = [*kills.cases(), *disks.cases(), *plans.cases(), *clusters.cases()]
    options = _options([case.name for case in everything])
    cases = [case for case in everything if options.cases is None or case.name in options.cases]
    print(f"seed {options.seed}; give it again with --seed to repeat the same attempts", file=sys.stderr)
    begun = time.perf_counter()
    suite = Suite(cases, options.seed, options.times, options.workers, options.budget)
    rows = suite.run()
    for row in rows:
        if not row.tried and not row.skipped:
            row.skipped = "not begun: --budget was spent"
    words = [f"--seed {options.seed}", f"--times {options.times:g}", f"--workers {options.workers}"]
    words += [] if options.cases is None else [f"--cases {','.join(options.cases)}"]
    figures = reliability.circumstances(f"python -m faults {' '.join(words)}", options.seed)
    figures |= {
        "seconds_in_all": round(time.perf_counter() - begun),
        "not_begun": suite.not_begun,
        "rows": [vars(row) for row in rows],
    }
    print(reliability.faults_table(figures))
    if suite.not_begun:
        print(f"{suite.not_begun} attempts were not begun: --budget was spent", file=sys.stderr)
    if options.out is not None:
        reliability.write(options.out, "faults", figures, some=options.cases is not None)
    return int(any(row.lost or row.traceback for row in rows))


def _options(names: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m faults", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="of all random moments (%(default)s)")
    parser.add_argument("--times", type=float, default=1.0, help="how often, as a multiple of the usual (1)")
    parser.add_argument("--cases", type=lambda words: words.split(","), help=f"some of {','.join(names)} (all)")
    parser.add_argument("--workers", type=int, default=2, help="attempts at the same time (%(default)s)")
    parser.add_argument("--budget", type=float, default=1080, help="seconds after which none begins (%(default)s)")
    parser.add_argument(
        "--out", type=Path, help="JSON file whose part 'faults' is replaced, or with --cases these rows of it"
    )
    options = parser.parse_args()
    if unknown := set(options.cases or ()) - set(names):
        parser.error(f"--cases has {sorted(unknown)}, but must be some of {','.join(names)}")
    return options


if __name__ == "__main__":
    sys.exit(main())
