"""The package itself: its names come when they are asked for, and earlier import paths still work."""

import ast
import importlib
import importlib.util
import inspect
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import oneof
from oneof import estimator, train

ROOT = Path(__file__).parent.parent
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


@pytest.mark.parametrize("name", sorted({*oneof.__all__} - {"METHODS", "SCORERS"}))
def test_every_name_has_an_example_and_a_word_on_each_parameter(name):
    """The least of what numpydoc asks for when the site is built, without its packages."""
    value = getattr(oneof, name)
    summary, *rest = re.split(r"^(\w+)\n-{3,}\n", inspect.getdoc(value), flags=re.MULTILINE)
    sections = dict(zip(rest[::2], rest[1::2], strict=True))
    assert len(summary.strip()) > 10
    assert ">>> " in sections["Examples"]
    if not inspect.isclass(value):
        signature = inspect.signature(value)
        assert ("Returns" in sections) == (signature.return_annotation is not None)
        entries = re.findall(r"^\S.*", sections["Parameters"], re.MULTILINE)
        assert [entry for entry in entries if " : " not in entry and not entry.startswith("**")] == []
        told = [each.strip("*") for entry in entries for each in entry.split(" : ")[0].split(", ")]
        assert told == list(signature.parameters)


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


def test_every_place_names_the_same_version():
    text = (ROOT / "CITATION.cff").read_text()
    assert f"version: {oneof.__version__}\n" in text
    (date,) = re.findall(r"date-released: (\S+)", text)
    assert f"\n## [{oneof.__version__}] - {date}\n" in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.parametrize("home", ["", "https://git.example/us/oneof"])
def test_the_readme_of_a_package_has_no_link_that_leads_nowhere(home, monkeypatch):
    interface = SimpleNamespace(MetadataHookInterface=object)  # of hatchling, which builds alone have
    monkeypatch.setitem(sys.modules, "hatchling.metadata.plugin.interface", interface)
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    text = build.readme((ROOT / "README.md").read_text(), home, "1.2.3")
    targets = re.findall(r"\]\(([^)]*)\)", text)
    assert all(re.match("https?://", target) for target in targets)
    assert ("https://git.example/us/oneof/blob/v1.2.3/docs/votes.md" in targets) == bool(home)
    assert ("https://git.example/us/oneof/raw/v1.2.3/docs/images/demo.png" in targets) == bool(home)


def test_nothing_needs_what_windows_lacks():
    """Every module is imported as there: without fcntl, resource and the like, and with msvcrt."""
    program = """
import re, sys, types, torch, sklearn.ensemble, scipy.sparse, pandas, rich.live, typer, uvicorn  # as they are here
from pathlib import Path
for name in ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty"):
    sys.modules[name] = None
sys.modules["msvcrt"] = types.ModuleType("msvcrt")
sys.platform = "win32"
import oneof
root = Path(oneof.__file__).parent
names = [".".join(("oneof", *path.relative_to(root).with_suffix("").parts)) for path in root.rglob("*.py")]
for name in sorted(names):
    if not name.endswith("__main__") and not re.search("kernels|running.cluster|ray_train", name):
        __import__(name.removesuffix(".__init__"))
print(len(names))
"""
    assert int(fresh(program)[0]) > 200
