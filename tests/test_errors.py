"""Errors have a type: one base class, and the built-in error that was there before."""

import ast
import pickle
from pathlib import Path

import numpy as np
import pytest

import oneof
from oneof import errors, train

ROWS = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 3
PACKAGE = Path(oneof.__file__).parent


def raised(path):
    """Every name that a module raises, with its line."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and isinstance(node.exc.func, ast.Name):
            yield node.exc.func.id, node.lineno


def test_nothing_that_is_refused_has_a_built_in_type_alone():
    bare = {"ValueError", "TypeError", "ArithmeticError", "RuntimeError", "Exception"}
    assert [
        (path.name, line) for path in PACKAGE.rglob("*.py") for name, line in raised(path) if name in bare
    ] == []


@pytest.mark.parametrize(
    ("function", "kind", "built_in"),
    [
        (lambda: oneof.encode([[]]), errors.InputError, ValueError),
        (lambda: oneof.encode([["a"]], classes=["b"]), errors.InputError, ValueError),  # a kind of its own
        (lambda: oneof.IDGP(epochs=-1).fit(np.eye(3), np.eye(3)), errors.InputError, ValueError),
        (lambda: oneof.CC().fit(np.array([["a"], ["b"]]), [1, 2]), errors.InputError, ValueError),
        (lambda: oneof.encode(["a"], separator=1), errors.KindError, TypeError),
        (
            lambda: oneof.CC(lr=1e30, epochs=9, network="mlp").fit(*ROWS),
            errors.TrainingDiverged,
            ArithmeticError,
        ),
    ],
)
def test_what_is_refused_is_caught_by_both_names(function, kind, built_in):
    with pytest.raises(kind) as caught:
        function()
    assert isinstance(caught.value, errors.OneofError)
    assert isinstance(caught.value, built_in)


def test_every_public_error_is_of_the_base_class_and_crosses_processes():
    kinds = [getattr(errors, name) for name in errors.__all__]
    assert all(issubclass(kind, errors.OneofError) for kind in kinds)
    assert (train.TrainingDiverged, train.Paused) == (errors.TrainingDiverged, errors.Paused)
    for kind in kinds:
        again = pickle.loads(pickle.dumps(kind("why")))
        assert (type(again), str(again)) == (kind, "why")


def test_files_that_are_missing_are_of_the_operating_system():
    with pytest.raises(FileNotFoundError):
        oneof.load_model("nothing.safetensors")
