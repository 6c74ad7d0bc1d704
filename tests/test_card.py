"""Cards of models: what they say is so, and a loaded model says the same."""

import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import oneof
from oneof import cli

NAMES = np.array(["a|b", "c`d", "e\nf"])  # none of which may end a cell
rng = np.random.default_rng(0)
T = np.arange(60) % 3
X = pd.DataFrame(np.eye(3)[T] + 0.1 * rng.normal(size=(60, 3)), columns=["w", "x|y", "z"])
SETS = [[*{NAMES[t], NAMES[rng.integers(3)]}] for t in T]
MODELS = {
    "method": oneof.CC(epochs=5, lr=0.07, validation_fraction=0.2, device="cpu", random_state=0),
    "sparse": oneof.Competition(epochs=3, outside="auto", device="cpu", random_state=0),
    "trees": oneof.EMClassifier("logistic", rounds=2, folds=2, random_state=0),
    "pipeline": oneof.make_pipeline(
        oneof.TableEncoder(), oneof.IDGP(epochs=3, warm_up=1, device="cpu", random_state=0)
    ),
}


def cells(card):
    """Every row of every table of a card, by its first cell."""
    rows = [re.split(r" (?<!\\)\| ", line[2:-2]) for line in card.splitlines() if line.startswith("| ")]
    return {row[0].strip("`"): [cell.strip("`") for cell in row[1:]] for row in rows}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_a_loaded_model_has_the_same_card(model, tmp_path):
    model.fit(X, SETS).save(tmp_path / "model.safetensors", card="By **hand**.")
    card = (tmp_path / "model.md").read_text(encoding="utf-8")
    assert (
        card == model.card("By **hand**.") == oneof.load_model(tmp_path / "model.safetensors").card("By **hand**.")
    )
    tables = [line.count(" | ") for line in re.sub(r"\\\|", "", card).splitlines() if line.startswith("|")]
    assert set(tables) <= {1, 2, 4}
    found = cells(card)
    assert found["rows"] == ["60"]
    assert sorted(int(found[name][0]) for name in ("a\\|b", "c'd", "e f")) == [20, 20, 20]
    possible = np.mean((np.asarray(model.label_distributions_) > 0).sum(1))
    assert found["labels that remain possible, a row"] == [f"{possible:.2f} on average"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.md", "model.safetensors"]


def test_what_a_card_says_of_scores_and_settings():
    model = MODELS["method"].fit(X, SETS)
    card = model.card()
    found, scores = cells(card), model.history_["validation_score"]
    assert found["validation score"] == ["5", f"{scores[0]:.4g}", f"{scores[-1]:.4g}", f"{max(scores):.4g}"]
    assert found["held out for validation"] == ["12"]
    assert found["columns"] == ["w`, `x\\|y`, `z"]
    assert f"epoch {int(np.argmax(scores)) + 1}, the best" in card
    assert found["lr"] == ["0.07", "None"]
    assert found["momentum"] == ["0.9", ""]
    assert f"`weight_decay` {model.weight_decay_:.4g}, `batch_size` {model.batch_size_}" in card
    assert "checkpoint" not in found  # which no file keeps either


def test_the_command_writes_a_card_with_the_advice(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X.rename(columns={"x|y": "y"}).assign(candidates=["|".join("xyz"[t] for t in {t, 0}) for t in T]).to_csv(
        "t.csv", index=False
    )
    common = ["fit", "t.csv", "--separator", "|", "--out", "m.safetensors", "--set", "epochs=2", "--quiet"]
    compared = SimpleNamespace(best="cc", advice="cc is the best, probably.")
    monkeypatch.setattr("oneof.comparison.compare", lambda *_, **__: compared)
    assert CliRunner().invoke(cli.app, [*common, "--method", "auto", "--card"]).exit_code == 0
    card = (tmp_path / "m.md").read_text()
    assert "# CC, 3 classes" in card
    assert compared.advice in card
