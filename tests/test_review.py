"""Review without a server: held-out predictions, the ranking, decisions and the way back into a fit."""

import json
import re
import subprocess
import sys
from unittest.mock import ANY

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax
from sklearn.metrics import roc_auc_score

import oneof
from oneof.cli.review_tables import material_of
from oneof.cli.votes import label_options
from oneof.review import REASONS, apply_decisions, rank
from oneof.review import ranking as ranking_module
from oneof.review.cards import card
from oneof.review.held_out import Predictions, held_out_for, kept, key_of, load, predict_held_out, predict_own
from oneof.review.journal import Journal, entries_of, in_force
from oneof.review.learning import learn
from oneof.review.neighbours import embed, fold_neighbours, nearest, nearest_to
from oneof.review.ranking import posterior_of
from oneof.review.words import sentences
from test_cli import fail, succeed

NAMES = np.array(["cat", "cow", "dog"])


def alone(n):
    """Neighbours that say nothing: every row has the same ones, one of each class."""
    return np.tile(np.arange(3, dtype=np.int32), (n, 1))


def found_of(p, distance=None):
    n = len(p)
    far = np.ones(n, np.float32) if distance is None else np.asarray(distance, np.float32)
    return Predictions(np.log(np.asarray(p, np.float32)), alone(n), alone(n), far)


# --- ranking ---------------------------------------------------------------------------------------------------


def brute_force(p, sets, powers, rates):
    """The posterior of `rank`, row by row and class by class."""
    result = np.zeros(p[0].shape)
    for i, row in enumerate(sets):
        size, k = int((row > 0).sum()), len(row)
        q = [np.prod([p[m][i, j] ** powers[m] for m in range(len(p))]) for j in range(k)]
        q = [each / sum(q) for each in q]
        rate = rates[int(size == 1)]
        for j in range(k):
            result[i, j] = q[j] * (row[j] * (1 - rate) if row[j] > 0 else rate * size / (k - size))
    return result


def test_the_posterior_is_the_formula_at_its_maximum():
    rng = np.random.default_rng(0)
    n, k = 60, 4
    p = np.exp(log_softmax(rng.normal(size=(2, n, k)), axis=2))
    sets = (rng.random((n, k)) < 0.4).astype(float) * rng.uniform(0.2, 1, (n, k))
    sets[np.arange(n), rng.integers(k, size=n)] = 1
    sets[0] = 1  # nothing is outside
    found = posterior_of(np.log(p), sets)
    with np.errstate(divide="ignore", invalid="ignore"):

        def loss(powers, rates):
            joint = brute_force(p, sets, powers, rates)
            prior = 19 * np.log1p(-rates).sum() - (np.log(powers) ** 2).sum() / 4
            return -np.log(joint.sum(1)).sum() - prior, joint / joint.sum(1, keepdims=True)

        def bounded(t):
            return np.exp(np.clip(t[:2], -4, 2)), 1 / (1 + np.exp(-np.clip(t[2:], -9, 0)))

        # The parameters behind the result, by a search that knows nothing of gradients.
        options = {"maxiter": 4000, "xatol": 1e-5, "fatol": 1e-8}
        best = minimize(lambda t: loss(*bounded(t))[0], [0, -2, -4, -4], method="Nelder-Mead", options=options).x
        _, expected = loss(*bounded(best))
    np.testing.assert_allclose(found, expected, atol=2e-3)
    np.testing.assert_allclose(found.sum(1), 1)
    assert found[0].sum() == pytest.approx(1)


def test_reasons_name_what_is_wrong():
    """Of 240 rows all is well; then come ten of each kind that is not."""
    k, names = 6, np.array(["cat", "cow", "dog", "fox", "hen", "pig"])
    sure = 0.9997 * np.eye(k) + 0.00005
    odd = np.array(
        [sure[2], sure[1], 0.48 * (sure[0] + sure[2]) + 0.04 / k, 0.48 * (sure[0] + sure[1]) + 0.04 / k]
    )
    p = np.concatenate([np.tile(sure, (40, 1)), np.tile(odd, (10, 1))])
    kinds = np.eye(k)[[0, 0, 0, 0]] + np.array([0, 1, 1, 1])[:, None] * np.eye(k)[[0, 2, 2, 1]]
    sets = np.concatenate([np.tile(np.eye(k) + np.roll(np.eye(k), 1, 1), (40, 1)), np.tile(kinds, (10, 1))])
    counts = sets + 5 * np.concatenate([np.tile(np.eye(k), (40, 1)), np.zeros((40, k))])
    counts[241::4, 0] = counts[242::4, 0] = 5
    around = np.tile(np.arange(k, dtype=np.int32), (280, 1))  # the same for all rows: they say nothing
    ranking = rank(
        Predictions(np.log(p).astype(np.float32), around, around, np.ones(280, np.float32)), sets, counts
    )
    assert ranking.reason[240:].tolist() == ["single", "outside", "doubtful", "votes"] * 10
    assert set(ranking.reason[:240]) == {""}
    assert set(ranking.order[:40]) == set(range(240, 280))
    assert ranking.rank[ranking.order].tolist() == list(range(1, 281))
    told = [sentences(ranking, row, names, sets[row] > 0, counts)[0] for row in (240, 241, 242, 243, 0)]
    words = [
        "only candidate is 'cat'",
        "probably outside",
        "is doubtful",
        "Annotators disagree: 1 x 'cat', 1 x 'cow'",
    ]
    for text, expected in zip(told, [*words, "Nothing speaks against it: 'cat'"], strict=True):
        assert expected in text


def test_singles_have_a_share_of_their_own_where_it_is_earned():
    """Half of the rows have one candidate; models are sure of another class for one of these, or for twenty."""
    k, sure = 4, 0.997 * np.eye(4) + 0.00075
    sets = np.tile(np.concatenate([np.eye(k), np.eye(k) + np.roll(np.eye(k), 1, 1)]), (50, 1))

    def rates(mistakes):
        p = np.tile(sure, (100, 1))
        p[: 8 * mistakes : 8] = sure[2]
        return ranking_module._fitted(np.log(p)[None], ranking_module._Sets(sets, None))[-2:]

    few, many = rates(1), rates(20)
    assert few[0] == few[1]
    assert many[1] > many[0] + 2


def test_near_duplicates_with_other_answers_are_found():
    p = np.tile(0.4 * np.eye(3) + 0.2, (20, 1))
    sets = np.tile([[1, 1, 0], [0, 1, 1], [1, 0, 1]], (20, 1))
    near = alone(60)
    near[:2, 0] = [1, 0]
    distance = np.ones(60, np.float32)
    distance[:2] = 0.01
    ranking = rank(Predictions(np.log(p).astype(np.float32), alone(60), near, distance), sets)
    assert ranking.twin[:2].tolist() == [1, 0]
    assert (ranking.twin[2:] == -1).all()
    assert set(ranking.order[:2]) == {0, 1}
    assert "Row 1 is nearly the same, but its answer is 'cow'" in " ".join(
        sentences(ranking, 0, NAMES, sets[0] > 0, None)
    )


def test_held_out_ranking_finds_truths_outside(digits):
    """Margins cannot see them; the ranking must, and its share outside must be near the true one."""
    X, S, y = (each[:600] for each in digits)
    rng = np.random.default_rng(0)
    S = S.copy()
    bad = rng.random(len(y)) < 0.1
    S[bad, y[bad]] = False
    S[bad, (y[bad] + 1) % 10] = True
    model = oneof.CC(epochs=30, random_state=0, device="cpu")
    told = []
    found = predict_held_out(model, X, pd.DataFrame(S), advance=told.append)
    assert sum(told) == pytest.approx(1)
    ranking = rank(found, S)
    assert 0.05 < ranking.outside.mean() < 0.2
    wrong = ranking.answer != y
    inside = np.where(S, ranking.posterior, 0)
    margin = np.diff(np.sort(inside / inside.sum(1, keepdims=True), 1)[:, -2:]).ravel()
    assert roc_auc_score(wrong, ranking.wrong) > max(0.9, roc_auc_score(wrong, -margin) + 0.05)


def test_no_row_is_judged_by_a_model_that_saw_it():
    """Labels that say nothing cannot be guessed: a model that had seen them would know them by heart."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 5)), rng.integers(2, size=200)
    model = oneof.EMClassifier("extra-trees", random_state=0)
    found = predict_held_out(model, X, pd.DataFrame(np.eye(2, dtype=bool)[y]))
    assert 0.35 < (found.log_p.argmax(1) == y).mean() < 0.65
    assert (model.fit(X, y).predict(X) == y).mean() > 0.95


def test_neighbours(digits):
    space = embed(digits[0][:300])
    near, distance = nearest(space, 3)
    exact = ((space[:, None] - space[None]) ** 2).sum(2)
    np.fill_diagonal(exact, np.inf)
    np.testing.assert_array_equal(near, np.argsort(exact, 1)[:, :3])
    np.testing.assert_allclose(distance**2, np.sort(exact, 1)[:, :3], rtol=1e-3)
    assert nearest_to(space, 7, 3) == near[7].tolist()
    folds = [np.arange(0, 300, 2), np.arange(1, 300, 2)]
    fellows = fold_neighbours(space, folds)
    assert (fellows % 2 == np.arange(300)[:, None] % 2).all()
    assert (fellows != np.arange(300)[:, None]).all()
    images = embed(np.zeros((4, 2, 2), np.uint8))
    assert images.shape == (4, 4)


def test_predictions_are_kept_beside_the_model_and_known_by_content(blobs, tmp_path):
    X, S, _ = blobs
    model = oneof.CC(epochs=2, network="linear", random_state=0, device="cpu").fit(X, S)
    path = tmp_path / "m.safetensors"
    model.save(path)
    y = pd.DataFrame(S)
    first = held_out_for(path, model, X, y)
    place = kept(path, key_of(path, X, y))
    assert [each.name for each in tmp_path.iterdir() if each.is_dir()] == ["m.safetensors.review"]
    refuse = lambda share: pytest.fail("fitted again")  # noqa: E731
    again = held_out_for(path, model, X, y, refuse)
    np.testing.assert_array_equal(first.log_p, again.log_p)
    other = S.copy()
    other[0] = True
    assert key_of(path, X + 1, y) != key_of(path, X, y) != key_of(path, X, pd.DataFrame(other))
    for damage in (place.read_bytes()[:200], b"", b"x" * 300):
        place.write_bytes(damage)
        assert load(place, 40, 3) is None
    np.testing.assert_array_equal(held_out_for(path, model, X, y).log_p, first.log_p)
    assert load(place, 41, 3) is None


# --- the journal -----------------------------------------------------------------------------------------------


def test_undo_and_skip_are_lines_and_the_last_decision_counts(tmp_path):
    path = tmp_path / "d.jsonl"
    with Journal(path) as journal:
        for row, action in [(0, "label"), (1, "none"), (0, "undo"), (2, "skip"), (1, "label")]:
            journal.append({"row": row, "action": action} | ({"label": "cat"} if action == "label" else {}))
    assert len(path.read_text().splitlines()) == 5
    counts = in_force(entries_of(path))
    assert {row: entry["action"] for row, entry in counts.items()} == {1: "label"}


def test_a_second_writer_is_refused(tmp_path):
    with Journal(tmp_path / "d.jsonl"), pytest.raises(BlockingIOError, match="another review"):
        Journal(tmp_path / "d.jsonl")


def test_a_torn_line_costs_itself_alone(tmp_path):
    path = tmp_path / "d.jsonl"
    path.write_text('{"row":0,"action":"none"}\n{"row":1,"acti')
    with Journal(path) as journal:
        assert len(journal.entries) == 1
        journal.append({"row": 2, "action": "none"})
    assert [entry["row"] for entry in entries_of(path)] == [0, 2]


def test_a_killed_writer_loses_nothing_that_it_reported(tmp_path):
    code = (
        "import sys; from pathlib import Path; from oneof.review.journal import Journal\n"
        "journal = Journal(Path(sys.argv[1]))\n"
        "for row in range(10**6):\n"
        "    journal.append({'row': row, 'action': 'none'}); print(row, flush=True)\n"
    )
    path = tmp_path / "d.jsonl"
    process = subprocess.Popen([sys.executable, "-c", code, path], stdout=subprocess.PIPE, text=True)
    said = [process.stdout.readline() for _ in range(50)]
    process.kill()
    said += process.stdout.read().splitlines()
    process.wait()
    rows = [entry["row"] for entry in entries_of(path)]
    whole = [int(line) for line in said if line.strip()]
    assert len(whole) >= 50
    assert rows[: len(whole)] == whole == list(range(len(whole)))
    Journal(path).close()  # the lock went with the process


# --- decisions -------------------------------------------------------------------------------------------------


def test_decisions_make_sets_of_one_and_none_removes_candidates_or_the_row():
    y = [["cat", "dog"], ["cat", "cow", "dog"], ["cow"], ["dog"]]
    new = apply_decisions(y, {0: "dog", 1: None, 2: None})
    assert new.rows.tolist() == [0, 2, 3]
    assert [new.y.columns[row].tolist() for row in new.y.to_numpy()] == [["dog"], ["cat", "dog"], ["dog"]]
    assert apply_decisions(y, {2: None}, none="drop").rows.tolist() == [0, 1, 3]
    assert y[0] == ["cat", "dog"]
    weighted = oneof.from_votes([["cat", "dog"], ["dog", "dog"], ["cow", "cat"]])
    new = apply_decisions(weighted, {0: "cow", 2: None})
    assert isinstance(new.y, oneof.WeightedSets)
    assert new.y.weights.tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 1]]


def test_a_table_filled_in_by_hand_means_the_same_as_a_journal(tmp_path):
    y = [[1, 2], [2, 3], [1, 3]]
    (tmp_path / "d.csv").write_text("row,label,decision\n2,1,3\n0,2,None of these\n1,2,\n")
    lines = [
        {"row": 2, "action": "label", "label": 3, "candidates": [1, 3]},
        {"row": 0, "action": "none", "candidates": [1, 2]},
    ]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    by_hand, by_journal = (apply_decisions(y, tmp_path / name) for name in ("d.csv", "d.jsonl"))
    pd.testing.assert_frame_equal(by_hand.y, by_journal.y)
    assert by_hand.y.to_numpy().astype(int).tolist() == [[0, 0, 1], [0, 1, 1], [0, 0, 1]]
    apply_decisions(y, [tmp_path / "d.csv", tmp_path / "d.jsonl"])  # they agree
    (tmp_path / "e.csv").write_text("row,decision\n2,1\n")
    with pytest.raises(ValueError, match=r"row 2 is decided as 3 in .* but decided as 1 in .*; settle it"):
        apply_decisions(y, [tmp_path / "d.csv", tmp_path / "e.csv"])


def test_a_class_may_be_called_none(tmp_path):
    (tmp_path / "d.csv").write_text("row,decision\n0,none\n1,none of these\n")
    new = apply_decisions([["none", "some"], ["none"]], tmp_path / "d.csv").y
    assert new.to_numpy().tolist() == [[True, False], [False, True]]


@pytest.fixture
def pets(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    frame = pd.DataFrame(rng.normal(size=(60, 3)) + 4 * np.eye(3)[y], columns=["a", "b", "c"]).round(3)
    frame["name"] = [f"{i:03}" for i in range(60)]
    frame["candidates"] = [f"{NAMES[t]}|{NAMES[(t + 1) % 3]}" for t in y]
    frame.to_csv(tmp_path / "pets.csv", index=False)
    tiny = [
        "--separator",
        "|",
        "--id",
        "name",
        "--method",
        "cc",
        "--set",
        "epochs=5",
        "--quiet",
        "--device",
        "cpu",
    ]
    succeed("fit", tmp_path / "pets.csv", *tiny, "--out", tmp_path / "m")
    return tmp_path, tiny


def test_the_whole_way_round_by_commands(pets):
    folder, tiny = pets
    table, listed = folder / "pets.csv", folder / "list.csv"
    before = table.read_bytes()
    common = ["--separator", "|", "--id", "name"]
    succeed("disambiguate", folder / "m", table, *common, "--held-out", "--sort", "rank", "--out", listed)
    frame = pd.read_csv(listed, dtype=str, keep_default_na=False)
    assert frame["rank"].astype(int).tolist() == list(range(1, 61))
    assert set(frame["reason"]) <= {*REASONS.values(), "nothing speaks against it"}
    assert (folder / "m.review").is_dir()
    frame.loc[frame["name"] == "004", "decision"] = "dog"
    frame.loc[frame["name"] == "007", "decision"] = "none of these"
    frame.to_csv(listed, index=False)
    succeed("apply", table, listed, *common, "--out", folder / "new.csv")
    new = pd.read_csv(folder / "new.csv", dtype=str)
    old = pd.read_csv(table, dtype=str)
    assert new["candidates"][4] == "dog"
    assert new["candidates"][7] == "cat"
    rest = ~new["name"].isin(["004", "007"])
    pd.testing.assert_frame_equal(new[rest], old[rest])
    succeed("fit", table, *tiny, "--decisions", listed, "--out", folder / "again")
    succeed("fit", folder / "new.csv", *tiny, "--out", folder / "same")
    again, same = oneof.load_model(folder / "again"), oneof.load_model(folder / "same")
    x = old[["a", "b", "c"]].astype(float)
    np.testing.assert_array_equal(again.predict_proba(x), same.predict_proba(x))
    succeed("apply", table, listed, *common, "--none", "drop", "--out", folder / "fewer.csv")
    assert "007" not in pd.read_csv(folder / "fewer.csv", dtype=str)["name"].tolist()
    assert table.read_bytes() == before


def test_the_list_has_a_form_as_a_page(pets):
    folder, _ = pets
    common = ["--separator", "|", "--id", "name"]
    said = succeed(
        "disambiguate", folder / "m", folder / "pets.csv", *common, "--out", folder / "list.html"
    ).stdout
    assert "the first 60 rows of the queue" in said
    text = (folder / "list.html").read_text()
    kept_json = re.search(r'id="kept">(.*?)</script>', text, re.DOTALL).group(1)
    cards = json.loads(kept_json)["cards"]
    assert sorted(card["name"] for card in cards) == [f"{i:03}" for i in range(60)]
    wrong = [card["wrong"] for card in cards]
    assert wrong == sorted(wrong, reverse=True)
    assert not (folder / "m.review").exists()  # nothing was fitted


def test_mixed_tables_are_reviewed_by_their_own_columns(pets):
    folder, _ = pets
    rng = np.random.default_rng(0)
    frame = pd.read_csv(folder / "pets.csv", dtype={"name": str})
    kinds = np.arange(60) % 3
    frame["fur"] = np.where(rng.random(60) < 0.2, None, np.array(["long", "none", "short"])[kinds])
    frame["note"] = [f"{['purrs', 'moos', 'barks'][k]} at {i} o'clock " + "z" * 300 for i, k in enumerate(kinds)]
    frame["a"] = frame["a"].where(np.arange(60) != 7)
    frame[["name", "a", "fur", "note", "candidates"]].to_csv(folder / "mixed.csv", index=False)
    tiny = ["--separator", "|", "--id", "name", "--method", "cc", "--set", "epochs=5", "--quiet"]
    succeed("fit", folder / "mixed.csv", *tiny, "--out", folder / "whole")
    labels = label_options("candidates", None, "|", None, None, None, None, None)
    model, material = material_of(folder / "whole", folder / "mixed.csv", labels, ["name"], None, None)
    ranking = rank(predict_own(model, material.X), material.weights)
    shown = {each["name"]: each for each in card(material, ranking, 7, model)["features"]}
    assert set(shown) == {"a", "fur", "note"}
    assert shown["a"]["value"] == "missing"
    assert shown["a"]["mean"] == f"{frame['a'].fillna(frame['a'].median()).mean():.4g}"
    assert shown["fur"] == {"name": "fur", "value": str(frame["fur"][7] or "missing"), "mean": "", "effect": ANY}
    assert shown["note"]["value"].startswith("moos at 7 o'clock zzz")
    assert len(shown["note"]["value"]) < 250
    # An effect is that of all numbers which were made of the column.
    probe = np.array(material.X[[7, 7]])
    fur = [name.startswith("fur") for name in oneof.load_model(folder / "whole")[0].get_feature_names_out()]
    probe[1, fur] = material.X[:, fur].mean(0)
    log_p = model.predict_log_proba(probe)[:, ranking.answer[7]]
    assert shown["fur"]["effect"] == pytest.approx(log_p[0] - log_p[1], abs=1e-3)
    # What is learned again reads the table, too.
    learn(model, folder / "whole", material, ranking, {})
    told = folder / "told.csv"
    succeed("predict", folder / "whole.reviewed.safetensors", folder / "mixed.csv", "--id", "name", "--out", told)
    assert len(pd.read_csv(told)) == 60


def test_decisions_of_another_table_are_refused(pets):
    folder, tiny = pets
    decided = folder / "d.jsonl"
    decided.write_text(json.dumps({"row": 3, "action": "none", "candidates": ["cat", "dog"]}) + "\n")
    said = fail("fit", folder / "pets.csv", *tiny, "--decisions", decided, "--out", folder / "x")
    assert "row 3 was decided when its candidates were 'cat', 'dog', but now they are 'cat', 'cow'" in said
