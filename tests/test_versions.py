"""A method's numbers change only together with its version, so that ledgers never mix old and new ones."""

import json
from pathlib import Path

import numpy as np
import pytest

from conftest import MEMBERS, every_method
from oneof import METHODS
from oneof.bench.keys import baseline
from oneof.bench.plan import plan_fields
from oneof.testing.small_problems import make_data

FILE = Path(__file__).parent / "versions.json"


def fit(method):
    """Train on a tiny problem in float64, the same to many digits on every machine; with views too."""
    data = make_data(rows=60, features=5, classes=4, seed=3)
    settings = {"network": "linear", "epochs": 12, "batch_size": 20, "precision": "fp64", "device": "cpu"}
    frozen = baseline(method.func.__name__)["settings"]  # another default is not another method
    shared = baseline()["settings"].keys() - {"lr", "schedule", "weight_decay"}
    own = set(plan_fields(method.func)) - shared - method.keywords.keys()
    settings |= {name: value for name, value in frozen.items() if name in own}
    if method.keywords.get("warm_up") and method.func.warm_up < settings["epochs"]:
        settings["warm_up"] = method.func.warm_up  # the default
    x = data.x.numpy()
    models = [method(**settings, random_state=0)]
    if models[0].views is None:
        models.append(method(**settings, views="plain+jitter+jitter", random_state=0))
    return np.concatenate([model.fit(x, data.candidates.numpy()).predict_proba(x[:3]) for model in models])


@every_method
def test_numbers_change_only_with_the_version(method):
    kept = json.loads(FILE.read_text())[method.func.__name__]
    found = fit(method)
    same = np.allclose(found, kept["probabilities"], atol=1e-7)
    assert method.func.version == kept["version"], "a new version needs new numbers: python tests/test_versions.py"
    assert same, (
        f"{method.func.__name__} gives other numbers than before: raise its `version`, then run "
        "python tests/test_versions.py"
    )


def test_every_method_is_kept():
    assert json.loads(FILE.read_text()).keys() == {method.__name__ for method in METHODS.values()}


def test_the_problem_tells_methods_apart():
    kept = json.loads(FILE.read_text())
    answers = [tuple(np.ravel(entry["probabilities"]).round(6)) for entry in kept.values()]
    assert len(set(answers)) == len(answers)
    assert pytest.approx(1) == np.sum(kept["IDGP"]["probabilities"][0])


if __name__ == "__main__":
    FILE.write_text(
        json.dumps(
            {
                method.func.__name__: {"version": method.func.version, "probabilities": fit(method).tolist()}
                for method in MEMBERS.values()
            },
            indent=1,
        )
        + "\n"
    )
