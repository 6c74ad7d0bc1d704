"""How good the ranking of a review is: whether rows with wrong answers stand at its top.

``python benchmarks/review.py`` draws candidate sets and votes, ranks the rows by held-out predictions, and writes
a line for each draw to benchmarks/results/review.jsonl; draws that are there are not repeated. ``--seed 3`` makes
those of one seed alone, ``--page`` writes the tables of docs/results/review.md again. cleanlab runs in an
environment of its own, see votes.py.

All rankings judge the same answers, by the same held-out probabilities of the same models. True labels tell which
answers are wrong, and answer in place of a person in the loop; nothing else sees them.
"""

import argparse
import json
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import numpy as np
import votes as vote_benchmark
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.metrics import roc_auc_score

import oneof
from oneof.estimator.resolve import calibrated_posterior
from oneof.review import apply_decisions, rank
from oneof.review.held_out import predict_held_out
from oneof.review.ranking import weights_beyond

LEDGER = Path(__file__).parent / "results" / "review.jsonl"
SEEDS, CLASSES = 5, 10
SHARES = (0.01, 0.05, 0.1)
STEPS = np.linspace(0, 0.3, 16)  # shares of decided rows of the curves
LOOP_ROWS, LOOP_STEP, LOOP_ROUNDS = 800, 40, 3
MODEL = {"epochs": 40, "device": "cpu"}
SETS = (
    "digits, uniform",
    "digits, 10 % outside",
    "digits, 10 % wrong labels",
    "fashion, look-alikes",
    "fashion, look-alikes, 5 % outside",
    "10H, 3 votes",
    "10H, 3 simulated annotators",
)


# --- problems ------------------------------------------------------------------------------------------------


def problem(name: str, seed: int) -> tuple[np.ndarray, np.ndarray, object, np.ndarray | None]:
    """Return features, true labels, candidate sets or votes, and the votes themselves."""
    rng = np.random.default_rng(seed)
    if name.startswith("10H"):
        data = oneof.load_dataset("cifar-10h")
        rows = rng.choice(len(data.x), 2000, replace=False)
        x, y = tenh_features()[rows], data.y[rows]
        source = "people" if "votes" in name else "simulated"
        cast = vote_benchmark.draw(source, 3, y, data.counts[rows], seed)
        if source == "people":
            return x, y, oneof.vote_counts(vote_benchmark.counted(cast)), cast
        return x, y, oneof.from_votes(np.where(cast < 0, None, cast).tolist(), classes=range(CLASSES)), cast
    if name.startswith("digits"):
        x, y = load_digits(return_X_y=True)
        sets = np.eye(CLASSES, dtype=bool)[y]
        if "wrong labels" not in name:
            sets |= rng.random(sets.shape) < 0.3
    else:
        data = oneof.load_dataset("fashion-mnist")[0]
        rows = rng.choice(len(data.x), 2000, replace=False)
        pixels, y = data.x[rows].reshape(2000, -1) / 255, data.y[rows]
        x = PCA(50, random_state=0).fit_transform(pixels)
        sets = look_alikes(x, y, rng)
    rate = 0.1 if "10 %" in name else 0.05 if "5 %" in name else 0.0
    return x.astype(np.float32), y, without_truth(sets, y, rate, rng), None


@cache
def tenh_features() -> np.ndarray:
    """Return the features of all images of CIFAR-10H."""
    return vote_benchmark.features(oneof.load_dataset("cifar-10h").x)


def look_alikes(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Add wrong labels, those of near class means the most often."""
    means = np.stack([x[y == k].mean(0) for k in range(CLASSES)])
    distance = ((x[:, None] - means) ** 2).sum(2)
    near = np.exp(-(distance - distance.min(1, keepdims=True)) / 8)
    near[np.arange(len(y)), y] = 0
    sets = rng.random(near.shape) < 0.5 * near / near.max(1, keepdims=True)
    sets[np.arange(len(y)), y] = True
    return sets


def without_truth(sets: np.ndarray, y: np.ndarray, rate: float, rng: np.random.Generator) -> np.ndarray:
    """Take the true label out of some sets; an empty one gets a wrong label."""
    sets = sets.copy()
    for row in np.flatnonzero(rng.random(len(y)) < rate):
        sets[row, y[row]] = False
        if not sets[row].any():
            sets[row, (y[row] + rng.integers(1, CLASSES)) % CLASSES] = True
    return sets


# --- rankings ------------------------------------------------------------------------------------------------


def judged(x: np.ndarray, y: object, seed: int) -> tuple[object, np.ndarray]:
    """Return our ranking and the held-out probabilities behind it."""
    found = predict_held_out(oneof.Membership(random_state=seed, **MODEL), x, y, seed)
    votes = isinstance(y, oneof.Votes)
    weights = y.weights if isinstance(y, oneof.WeightedSets) else np.asarray(y).astype(float)
    ranking = rank(found, weights, y.counts if votes else None, weights_beyond(y) if votes else None)
    p = np.exp(found.log_p.astype(np.float64))
    return ranking, p / p.sum(1, keepdims=True)


def margin_score(p: np.ndarray, weights: np.ndarray, answer: np.ndarray) -> np.ndarray:
    """Return minus the margin of the answer over the next candidate, as `oneof.resolve` has it."""
    posterior = calibrated_posterior(np.log(p), weights)
    each = np.arange(len(p))
    others = posterior.copy()
    others[each, answer] = 0
    return others.max(1) - posterior[each, answer]


def cleanlab_scores(p: np.ndarray, answer: np.ndarray, cast: np.ndarray | None) -> dict[str, np.ndarray]:
    """Ask cleanlab how good the answers are; where there are votes, CROWDLAB, too.

    CROWDLAB rates every annotator's label by its posterior, which is the same for all who named that label; so the
    answer, which somebody has always named, has the rating of those who named it.
    """
    program = (
        "import sys, numpy as np\n"
        "from cleanlab.rank import get_label_quality_scores as score\n"
        "from cleanlab.multiannotator import get_label_quality_multiannotator as judge\n"
        "given = np.load(sys.argv[1])\n"
        "p, answer = given['p'], given['answer']\n"
        "found = {way: score(answer, p, method=way) for way in ('self_confidence', 'normalized_margin')}\n"
        "if 'cast' in given:\n"
        "    votes = np.where(given['cast'] < 0, np.nan, given['cast'])\n"
        "    named = votes == answer[:, None]\n"
        "    for way, calibrate in (('crowdlab', False), ('crowdlab_calibrated', True)):\n"
        "        each = judge(votes, p, verbose=False, calibrate_probs=calibrate)['detailed_label_quality']\n"
        "        found[way] = np.where(named, each.to_numpy(), -1).max(1)\n"
        "np.savez(sys.argv[2], **found)\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder) / "given.npz", Path(folder) / "found.npz"
        np.savez(given, p=p, answer=answer, **({} if cast is None else {"cast": cast}))
        python = vote_benchmark.python_with_cleanlab()
        subprocess.run([python, "-c", program, given, found], check=True, capture_output=True)
        return {f"cleanlab, {way.replace('_', ' ')}": -scores for way, scores in np.load(found).items()}


def quality(score: np.ndarray, wrong: np.ndarray) -> dict[str, object]:
    """Return the area under the ROC, precisions, the share of errors in the first tenth, and the curve."""
    order, n = np.argsort(-score, kind="stable"), len(score)
    first = wrong[order]
    left = [float(1 - first[round(share * n) :].sum() / n) for share in STEPS]
    return {
        "auc": float(roc_auc_score(wrong, score)),
        "precision": [float(first[: max(1, round(share * n))].mean()) for share in SHARES],
        "found": float(first[: round(0.1 * n)].sum() / wrong.sum()),
        "accuracy": [round(value, 5) for value in left],
    }


def measure(name: str, seed: int) -> dict[str, object]:
    """Rank the rows of one draw in every way."""
    x, y, sets, cast = problem(name, seed)
    ranking, p = judged(x, sets, seed)
    weights = sets.weights if isinstance(sets, oneof.WeightedSets) else sets.astype(float)
    wrong = ranking.answer != y
    scores = {
        "oneof review": ranking.wrong,
        "margin": margin_score(p, weights, ranking.answer),
        **cleanlab_scores(p, ranking.answer, cast),
        "random": np.random.default_rng(seed + 1000).random(len(y)),
    }
    outside = float((weights[np.arange(len(y)), y] == 0).mean())
    told = {"rows": len(y), "errors": float(wrong.mean()), "outside": outside}
    return {
        **told,
        "estimated": float(ranking.outside.mean()),
        "ways": {k: quality(v, wrong) for k, v in scores.items()},
    }


# --- the loop ------------------------------------------------------------------------------------------------


def loop(way: str, seed: int) -> list[float]:
    """Return the accuracy of all answers after each round of decisions and learning; an oracle decides."""
    x, y, sets, _ = problem("digits, 10 % outside", seed)
    rows = np.random.default_rng(seed).choice(len(y), LOOP_ROWS, replace=False)
    x, y, sets = x[rows], y[rows], sets[rows]
    draw = np.random.default_rng(seed + 2000)
    decided: dict[int, int] = {}
    reached = []
    for _ in range(LOOP_ROUNDS + 1):
        merged = apply_decisions(sets, decided).y.to_numpy()
        ranking, p = judged(x, merged, seed)
        answer = ranking.answer.copy()
        answer[list(decided)] = [decided[row] for row in decided]
        reached.append(float((answer == y).mean()))
        score = {"oneof review": ranking.wrong, "random": draw.random(len(y))}.get(way)
        if score is None:
            score = margin_score(p, merged.astype(float), ranking.answer)
        queue = [int(row) for row in np.argsort(-score, kind="stable") if int(row) not in decided]
        decided |= {row: int(y[row]) for row in queue[:LOOP_STEP]}
    return reached


# --- the ledger ----------------------------------------------------------------------------------------------


def main() -> None:
    """Make the draws that the ledger lacks, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--page", action="store_true", help="write the page alone")
    parser.add_argument("--seed", type=int, action="append", help="make draws of this seed alone; may be repeated")
    given = parser.parse_args()
    if not given.page:
        run(given.seed or range(SEEDS))
    from review_page import write  # noqa: PLC0415 - beside this file

    write()


def run(seeds: Iterable[int]) -> None:
    """Make the draws that the ledger lacks."""
    warnings.simplefilter("ignore")
    lines = LEDGER.read_text().splitlines() if LEDGER.exists() else []
    done = {(each["set"], each["seed"]) for each in map(json.loads, lines)}
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    for name, seed in [(name, seed) for name in (*SETS, "loop") for seed in seeds]:
        if (name, seed) in done:
            continue
        begin = time.monotonic()
        ways = ("oneof review", "margin", "random")
        found = {"loop": {way: loop(way, seed) for way in ways}} if name == "loop" else measure(name, seed)
        about = {"model": {"method": "membership", **MODEL}, "cleanlab": vote_benchmark.CLEANLAB, "commit": commit}
        record = {"set": name, "seed": seed, **found, **about, "seconds": round(time.monotonic() - begin, 1)}
        with LEDGER.open("a") as file:
            file.write(json.dumps(record) + "\n")
        print(name, seed, record["seconds"], flush=True)


if __name__ == "__main__":
    main()
