"""Builds wheel and sdist into dist/, and tries the wheel in a clean environment without extras: ``make wheel``."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DIST = ROOT / "dist"
WINDOWS = sys.platform == "win32"


def do(*command, cwd=ROOT, **more):
    """Run a command that must work, without the paths of a checkout; return what it prints."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    print("$", *(Path(part).name if Path(part).is_absolute() else part for part in map(str, command)), flush=True)
    done = subprocess.run(command, cwd=cwd, env=env, stdout=subprocess.PIPE, text=True, check=False, **more)
    if done.returncode != 0:
        sys.exit(f"{done.stdout}\nexit code {done.returncode}")
    return done.stdout


def build(python):
    """Build an sdist and, out of it, a wheel; return both."""
    shutil.rmtree(DIST, ignore_errors=True)
    do(python, "-m", "build", "--outdir", DIST, ROOT)
    (wheel,), (sdist,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    return wheel, sdist


def check_files(wheel, sdist):
    """An sdist has what git has; a wheel has every file of the package, and the plans with what they name."""
    with tarfile.open(sdist) as archive:
        packed = {name.split("/", 1)[1] for name in archive.getnames()}
    if (ROOT / ".git").exists():
        ours = set(do("git", "ls-files").splitlines())
        assert packed - {"PKG-INFO"} == ours, sorted((packed - {"PKG-INFO"}) ^ ours)
    with zipfile.ZipFile(wheel) as archive:
        there = {name for name in archive.namelist() if ".dist-info/" not in name}
    package = {name.removeprefix("src/") for name in packed if name.startswith("src/oneof/")}
    plans = {
        f"oneof/bench/plans/{name.removeprefix('benchmarks/')}"
        for name in packed
        if re.fullmatch(r"benchmarks/([^/]+\.toml|sets/.+)", name) and name != "benchmarks/settings.toml"
    }
    assert there == package | plans, sorted(there ^ (package | plans))
    assert {"oneof/py.typed", "oneof/bench/plans/table2-quick.toml"} <= there


def install(wheel, folder):
    """Install the wheel into a new environment; return the folder of its commands."""
    venv.create(folder, with_pip=True)
    commands = folder / ("Scripts" if WINDOWS else "bin")
    constraints = ROOT / "constraints.txt"
    do(commands / "python", "-m", "pip", "install", "--quiet", "--constraint", constraints, wheel)
    return commands


def use(commands, folder):
    """Do what a new user does, in an empty folder."""
    python, oneof = commands / "python", commands / "oneof"
    assert do(oneof, "--version", cwd=folder).split()[1] in next(DIST.glob("*.whl")).name
    do(oneof, "doctor", cwd=folder)
    (snippet,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    (folder / "readme.py").write_text(snippet, encoding="utf-8")
    assert "worth a second look" in do(python, "readme.py", cwd=folder)
    assert "144 runs, 144 left" in do(oneof, "run", "table2-quick", "--dry", cwd=folder)
    do(oneof, "status", "table1-cifar10", cwd=folder)  # which names files of candidate sets
    assert "IDGP" in do(oneof, "demo", cwd=folder)
    assert (folder / "demo.html").is_file()


def main():
    wheel, sdist = build(sys.executable)
    check_files(wheel, sdist)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        commands = install(wheel, folder / "environment")
        (folder / "work").mkdir()
        shutil.copy(ROOT / "tests" / "wheel" / "user.py", folder / "work")
        checker = [sys.executable, "-m", "mypy", "--strict", "--python-executable", commands / "python"]
        print(do(*checker, "--cache-dir", folder / "mypy", "user.py", cwd=folder / "work"), end="")
        use(commands, folder / "work")
    for path in (wheel, sdist):
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1e6:.1f} MB, works")


main()
