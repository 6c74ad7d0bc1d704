"""The house keeps its plan: rooms, layers, sizes and names."""

import ast
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "oneof"
MODULES = sorted(PACKAGE.rglob("*.py"))
MOST_LINES, MOST_IN_A_FUNCTION = 320, 45
CORE = ["test_engine.py", "test_networks.py", "test_augment.py", "test_golden.py"]


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def functions_of(path):
    """Every function of a module with its number of lines; the docstring does not count."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0]
            documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
            skipped = first.end_lineno - first.lineno + 1 if documented else 0
            yield node.name, node.end_lineno - node.lineno + 1 - skipped


@pytest.mark.parametrize("path", [*MODULES, *sorted((ROOT / "benchmarks").glob("*.py"))], ids=name_of)
def test_modules_and_functions_are_short(path):
    assert len(path.read_text().splitlines()) <= MOST_LINES
    assert {name: lines for name, lines in functions_of(path) if lines > MOST_IN_A_FUNCTION} == {}


def test_no_class_name_is_taken_twice():
    classes = Counter(
        node.name
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
    )
    assert [name for name, count in classes.items() if count > 1] == []


def test_few_modules_lie_flat():
    assert len(list(PACKAGE.glob("*.py"))) < 13


def test_the_design_of_record_lists_every_room_and_module():
    """Tables of docs/architecture.md name `room/` and, below it, each module; nothing else and nothing less."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    told, room = set(), ""
    for line in text.splitlines():
        if found := re.match(r"\| `((?:\w+/)+)` \|", line):
            room = found.group(1)
        elif line.startswith("| `") and (names := re.match(r"\| (`[^|]+`) \|", line)):
            told |= {
                (room + name).removeprefix("oneof/") for name in re.findall(r"`([\w/]+\.py)`", names.group(1))
            }
        elif not line.startswith("|"):
            room = ""
    there = {path.relative_to(PACKAGE).as_posix() for path in MODULES if path.name != "__init__.py"}
    assert told == there


def lint(folder):
    command = [Path(sys.executable).with_name("lint-imports"), "--config", folder / "pyproject.toml", "--no-cache"]
    return subprocess.run(
        command, cwd=folder, env={"PYTHONPATH": str(folder / "src")}, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("module", "line", "complaint"),
    [
        (None, "", ""),
        ("metrics.py", "from oneof.train import loop", "rooms lie in layers"),
        ("pages/frame.py", "from oneof.io import files", "rooms lie in layers"),
        ("train/loop.py", "from oneof.kernels import sgd", "kernels can be deleted"),
        ("bench/report/writer.py", "from oneof.bench.running import execute", "reports are built without"),
        ("train/rows.py", "from oneof.train import loop", "no cycles"),
    ],
)
def test_a_broken_contract_fails_the_build(module, line, complaint, tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "src" / "oneof", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    if module is not None:
        path = tmp_path / "src" / "oneof" / module
        path.write_text(path.read_text() + f"\n{line}\n")
    result = lint(tmp_path)
    assert (result.returncode == 0) == (module is None), result.stdout + result.stderr
    assert f"{complaint}" in result.stdout
    if module is not None:
        assert re.search(rf"{complaint}.* BROKEN", result.stdout)


def test_everything_works_without_kernels(tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "oneof", ignore=shutil.ignore_patterns("__pycache__", "kernels"))
    files = [ROOT / "tests" / name for name in CORE]
    command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:cov"]
    options = ["--rootdir", ROOT, "-k", "not real_kills", "-o", "addopts=-q"]
    environment = {"PYTHONPATH": str(tmp_path), "PATH": "", "HOME": str(tmp_path)}
    result = subprocess.run(
        [*command, *options, *files], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    probe = "import oneof, torch, importlib.util as u; print(oneof.__file__, u.find_spec('oneof.kernels'))"
    said = subprocess.run(
        [sys.executable, "-c", probe], env=environment, capture_output=True, text=True, check=True
    )
    assert said.stdout.split() == [str(tmp_path / "oneof" / "__init__.py"), "None"]


def test_reports_are_built_where_there_is_no_resource_module():
    code = "import sys; sys.modules['resource'] = None; import oneof.bench.report.writer"
    subprocess.run([sys.executable, "-c", code], check=True)
