"""The learning curve of docs/theory.md: what the committed ledger says, and how the ledger comes about."""

import json
from math import log, sqrt
from pathlib import Path
from statistics import fmean
from xml.etree import ElementTree

import numpy as np
import pytest
from sklearn.datasets import load_digits

from markup import told
from oneof.bench.keys import run_key
from oneof.bench.ledger import read
from oneof.bench.running.problem import Problem
from oneof.data import PartialLabels
from oneof.theory import largest_loss

ROOT = Path(__file__).parents[1]
RECORDS = list(read([ROOT / "benchmarks" / "results" / "learning-curve.jsonl"]).records.values())
AGAIN = "write it again with python benchmarks/learning_curve.py --draw"


@pytest.fixture
def results(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import learning_curve_results

    return learning_curve_results


@pytest.fixture
def experiment(results, monkeypatch, tmp_path):
    """The experiment in small: parts of scikit-learn's digits, two epochs."""
    import learning_curve

    digits = load_digits()
    candidates = np.random.default_rng(0).random((500, 10)) < 0.2
    candidates[np.arange(500), digits.target[:500]] = True
    images = (digits.images[:500] * 15).astype(np.uint8)
    rows = PartialLabels(images, candidates, digits.target[:500], list(range(10)), "digits")
    parts = [rows.take(slice(*ends)) for ends in ((0, 64), (64, 200), (200, 500))]
    problem = Problem(*parts, {"sha256": "of the sets"})
    monkeypatch.setattr(learning_curve, "make_problem", lambda *_: problem)
    monkeypatch.setattr(learning_curve, "LEDGER", tmp_path / "ledger.jsonl")
    monkeypatch.setattr(learning_curve, "SIZES", (32, 64))
    monkeypatch.setattr(learning_curve, "SEEDS", (0, 1))
    monkeypatch.setattr(learning_curve, "SHARED", {"epochs": 2})
    return learning_curve


def risks(network, labels, rows):
    wanted = (network, labels, rows)
    return [
        r["test_risk"] for r in RECORDS if (r["spec"]["network"], r["spec"]["labels"], r["spec"]["rows"]) == wanted
    ]


def cells(table):
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]


def write(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


# --- What is published ------------------------------------------------------------------------------------


def test_figure_and_table_are_rebuilt_from_the_ledger(results):
    curves = results.read_curves()
    assert told(results.standalone(results.figure(curves))) == told(results.FIGURE.read_text(encoding="utf-8")), (
        AGAIN
    )
    page = results.PAGE.read_bytes()
    assert results.with_table(page.decode(), curves).encode() == page, AGAIN


def test_the_table_holds_means_and_excess(results):
    lines = cells(results.table(results.read_curves()))
    reference = fmean(risks("linear", "true", 54000))
    for rows, line in zip(results.SIZES, lines[2:], strict=False):
        risk = fmean(risks("linear", "candidates", rows))
        assert line[0] == f"{rows:,}"
        assert line[1].split(" ± ")[0] == f"{100 * (1 - risk):.2f}"
        assert line[2].split(" ± ")[0] == f"{risk - reference:.4f}"
    assert lines[-2][1].split(" ± ")[0] == f"{100 * (1 - reference):.2f}"


def test_records_are_whole(results):
    linear = {(r["spec"]["labels"], r["spec"]["rows"], r["spec"]["seed"]) for r in RECORDS if "bound" in r}
    assert linear == {("candidates", rows, seed) for rows in results.SIZES for seed in results.SEEDS}
    for record in RECORDS:
        assert record["key"] == run_key(record["spec"])
        assert record["status"] == "done"
        assert record["commit"], "a published number has its commit; set ONEOF_COMMIT outside git"
        assert record["test_risk"] == pytest.approx(1 - record["test_accuracy"])
        assert (record["candidate_risk"] is None) == (record["spec"]["labels"] == "true")


def test_the_bound_is_theorem_1_and_speaks_of_these_models():
    """Standardised images of 784 pixels and a one have squares that sum to 785 n."""
    M = largest_loss(30, 10, rho=2, a=10, b=1, gamma=0.7)
    assert f"M = {M:.0f}" in (ROOT / "docs" / "theory.md").read_text(encoding="utf-8")
    for record in RECORDS:
        if "bound" in record:
            n = record["spec"]["rows"]
            complexity = 4 * sqrt(2) * 2 * 10 * sqrt(2) / 0.7 * 10 * 2 * sqrt(785 / n)
            assert record["bound"] == pytest.approx(complexity + 2 * M * sqrt(log(40) / (2 * n)), rel=1e-4)
            assert record["largest_weights"] <= 2
            assert record["largest_output"] <= 30


def test_what_the_page_says_of_the_linear_network(results):
    (curve,) = (curve for curve in results.read_curves() if curve.network == "linear")
    excess, bound = curve.means("excess"), curve.means("bound")
    assert sorted(excess.values(), reverse=True) == [excess[rows] for rows in results.SIZES]
    assert min(excess.values()) > 0
    assert -0.3 < results.slope(excess) < -0.2
    assert min(bound[rows] / excess[rows] for rows in results.SIZES) > 10_000


# --- Drawing ----------------------------------------------------------------------------------------------


def test_slope_of_a_power_law(results):
    values = {rows: 3 * rows**-0.37 for rows in results.SIZES}
    assert results.slope(values) == pytest.approx(-0.37)
    assert results.slope({**values, 540: -0.01}) == pytest.approx(-0.37)
    assert results.slope({540: 0.1}) is None


@pytest.fixture
def two_networks():
    """Records of both networks, the second made from the first."""
    linear = [record for record in RECORDS if record["spec"]["network"] == "linear"]
    others = [{**r, "key": f"lenet {r['key']}", "spec": {**r["spec"], "network": "lenet"}} for r in linear]
    return [*linear, *others]


def drawn(results, path):
    curves = results.read_curves(path)
    picture = ElementTree.fromstring(results.standalone(results.figure(curves)))
    return cells(results.table(curves)), {text.text for text in picture.iter("{http://www.w3.org/2000/svg}text")}


def test_both_networks_are_drawn(results, two_networks, tmp_path):
    table, words = drawn(results, write(tmp_path / "both.jsonl", two_networks))
    assert len({len(line) for line in table}) == 1
    assert [line[1:4] for line in table[2:]] == [line[5:] for line in table[2:]]
    assert {"linear", "linear, true", "lenet", "lenet, true", "bound", "like 1/√n"} <= words


def test_seeds_and_sizes_that_are_missing_are_marked(results, two_networks, tmp_path):
    kept = [r for r in two_networks if r["spec"]["rows"] < 27000 or r["spec"]["labels"] == "true"]
    kept = [r for r in kept if (r["spec"]["rows"], r["spec"]["seed"]) != (540, 2)]
    table, _ = drawn(results, write(tmp_path / "part.jsonl", kept))
    assert table[2][1].endswith("*")
    assert not table[3][1].endswith("*")
    assert table[7][1:] == ["–"] * 7


@pytest.mark.parametrize("network", ["linear", "lenet"])
def test_without_reference_there_is_no_excess(results, network, two_networks, tmp_path):
    kept = [r for r in two_networks if r["spec"]["network"] == network and r["spec"]["labels"] == "candidates"]
    table, words = drawn(results, write(tmp_path / "alone.jsonl", kept))
    assert {line[2] for line in table[2:9]} == {"–"}
    assert ("bound" in words) == (network == "linear")


# --- Carrying out -----------------------------------------------------------------------------------------


def test_what_was_finished_is_kept_and_not_repeated(experiment, monkeypatch):
    fit, groups = experiment.fit_together, []

    def dies_at_the_third(models, arguments):
        groups.append(len(models))
        if len(groups) == 3:
            raise KeyboardInterrupt
        return fit(models, arguments)

    monkeypatch.setattr(experiment, "fit_together", dies_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        experiment.carry_out(["linear"], "cpu", None, 100)
    assert len(read([experiment.LEDGER]).records) == 4
    experiment.carry_out(["linear"], "cpu", None, 100)
    experiment.carry_out(["linear"], "cpu", None, 100)
    assert groups == [2, 2, 2, 2]
    records = list(read([experiment.LEDGER]).records.values())
    assert [(r["spec"]["labels"], r["spec"]["rows"], r["spec"]["seed"]) for r in records] == [
        *(("true", 64, seed) for seed in (0, 1)),
        *(("candidates", rows, seed) for rows in (32, 64) for seed in (0, 1)),
    ]


def test_nothing_begins_after_the_budget(experiment, capsys):
    experiment.carry_out(["linear"], "cpu", None, -1)
    assert not read([experiment.LEDGER]).records
    assert "seconds are over" in capsys.readouterr().out


def test_a_record_says_what_the_model_does(experiment):
    """On a CPU the same seed gives the same model."""
    run = experiment.Run("linear", "candidates", 32, 0)
    problem = experiment.make_problem()
    (record,) = experiment.carry_out_group([run], {0: problem}, "cpu")
    model = experiment.estimator(run, "cpu").fit(*experiment.rows_of(run, problem))
    assert record["test_accuracy"] == pytest.approx(np.mean(model.predict(problem.test.x) == problem.test.y))
    x, S = problem.validation.x, problem.validation.candidates
    pixels = x.reshape(len(x), -1) / 255
    seen = experiment.rows_of(run, problem)[0] / 255
    rows = (pixels - seen.mean()) / seen.std()
    u, v = (
        rows @ network.head.weight.detach().double().numpy().T + network.head.bias.detach().double().numpy()
        for network in (model.network_, model.distractor_network_)
    )
    theta = 10 * np.exp(u / 0.7) + 1 + S
    theta /= theta.sum(1, keepdims=True)
    alpha, beta = (10 * np.exp(part / 0.7) + 1 for part in np.split(v, 2, axis=1))
    z = (alpha + S) / (alpha + beta + S)
    chances = [
        sum(
            theta[i, j] * np.prod(np.where(S[i] & (np.arange(10) != j), z[i], 1 - z[i]))
            for j in np.flatnonzero(S[i])
        )
        for i in range(len(x))
    ]
    assert record["candidate_risk"] == pytest.approx(-np.log(chances).mean(), rel=1e-4)
    assert record["largest_output"] == pytest.approx(np.abs(u).max(), rel=1e-4)


def test_each_part_lies_within_the_next(experiment):
    problem = experiment.make_problem()
    small, large = (
        {
            image.tobytes()
            for image in experiment.rows_of(experiment.Run("linear", "candidates", rows, 1), problem)[0]
        }
        for rows in (32, 64)
    )
    assert len(small) == 32
    assert small < large


def test_true_labels_are_for_the_reference_alone(experiment):
    problem = experiment.make_problem()
    _, truth = experiment.rows_of(experiment.Run("linear", "true", 64, 0), problem)
    _, sets = experiment.rows_of(experiment.Run("linear", "candidates", 64, 0), problem)
    assert (truth.argmax(1) == problem.train.y).all()
    assert (truth.sum(1) == 1).all()
    assert (sets == problem.train.candidates).all()
