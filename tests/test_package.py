"""The package itself: its names come when they are asked for, and earlier import paths still work."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import oneof
from oneof import estimator, train

MOVED = {
    "oneof.base": (estimator, ["PartialLabelClassifier"]),
    "oneof.batch": (train, ["Batch", "Data"]),
    "oneof.hyperparameters": (estimator, ["check", "choice", "count", "hyperparameters", "number", "setting"]),
}


def fresh(program):
    """Run a program in a process of its own and return what it prints."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.split()


def test_importing_the_package_imports_no_heavy_one():
    assert fresh("import sys, oneof; oneof.__version__; dir(oneof); print('torch' in sys.modules)") == ["False"]


def test_every_name_is_there_when_asked_for():
    names = fresh("from oneof import *; print(*(name for name in dir() if not name.startswith('_')))")
    assert sorted(names) == sorted(oneof.__all__)
    for name in oneof.__all__:
        assert getattr(oneof, name) is not None
    assert oneof.IDGP is oneof.METHODS["idgp"]
    assert set(oneof.__all__) <= set(dir(oneof))


@pytest.mark.parametrize("name", ["methods", "functional", "data", "labels", "metrics", "theory", "nn"])
def test_modules_are_there_when_asked_for(name):
    assert fresh(f"import oneof; print(oneof.{name}.__name__)") == [f"oneof.{name}"]
    assert name in dir(oneof)


def test_type_checkers_and_python_know_the_same_names():
    """What type checkers read are the imports, what Python reads is the table of modules."""
    for_checkers = next(
        node for node in ast.parse(Path(oneof.__file__).read_text()).body if isinstance(node, ast.If)
    )
    imported = {name.name: node.module for node in for_checkers.body for name in node.names}
    assert sorted(imported) == sorted(oneof.__all__)
    for name, module in imported.items():
        assert getattr(importlib.import_module(module), name) is getattr(oneof, name)


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="module 'oneof' has no attribute 'IDPG'"):
        oneof.IDPG  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name"):
        from oneof import IDPG  # noqa: F401


@pytest.mark.parametrize("path", MOVED)
def test_earlier_import_paths_work_with_a_warning(path):
    home, names = MOVED[path]
    module = importlib.import_module(path)
    for name in names:
        text = rf"{path} will be removed in oneof 0\.3; write: from {home.__name__} import {name}"
        with pytest.warns(DeprecationWarning, match=text) as caught:
            assert getattr(module, name) is getattr(home, name)
        assert caught[0].filename == __file__
    with pytest.raises(AttributeError, match=f"module '{path}' has no attribute 'nothing'"):
        module.nothing  # noqa: B018


def test_nothing_of_the_library_uses_the_earlier_paths():
    loaded = fresh("import sys, oneof.bench.plan, oneof.cli.demo; from oneof import *; print(*sys.modules)")
    assert "oneof.methods.idgp" in loaded
    assert not MOVED.keys() & set(loaded)
