"""Round trips through the real libraries: `make interop`.

Each library writes a file, in an environment of its own without oneof. We read it, without the library, and write
it again, with a model's predictions where the format has a place for them; the library reads that and finds what
it wrote. With --keep what the libraries wrote becomes the fixtures that `make test` reads.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import warnings
from importlib.metadata import distributions
from pathlib import Path

HERE = Path(__file__).parent
FIXTURES = HERE.parent / "fixtures" / "formats"
sys.path.insert(0, str(HERE))

from problem import CLASSES, NUMBERS, PREDICTED, SCORES, SETS, VOTES  # noqa: E402

from oneof.data.exchange import convert, read_annotations, write_annotations  # noqa: E402

PACKAGES = {
    "crowd-kit": "crowd-kit",
    "cleanlab": "cleanlab",
    "label-studio": "label-studio-sdk",
    "argilla": "argilla",
    "hugging-face": "datasets",
}
FILES = {
    "crowd-kit": ["crowd-kit.csv"],
    "cleanlab": ["cleanlab.csv", "cleanlab.npy"],
    "label-studio": ["label-studio.json"],
    "argilla": ["argilla.json"],
    "hugging-face": ["hugging-face.parquet", "hugging-face-list"],
}
ALL_NAMES = {str(number): who for who, number in NUMBERS.items()} | {who: who for who in NUMBERS}


def read(folder, name, file):
    """Read what a library wrote, and compare it with the problem."""
    options = {"cleanlab": {"classes": CLASSES}}.get(name, {})
    if file == "hugging-face-list":
        options = {"split": "train"}
    found = read_annotations(folder / file, name, **options)
    assert found.classes.tolist() == CLASSES
    assert [sorted(labels) for labels in found.sets] == SETS
    if file == "cleanlab.npy":
        return found  # which has no names of annotators
    if name != "hugging-face":
        named = [{ALL_NAMES[str(who)]: vote for who, [vote] in votes.items()} for votes in found.votes]
        assert named == VOTES, named
    return found


def ours(theirs, mine, name):
    """Read the files of a library and write them in its format, as far as it goes with votes and predictions."""
    found, *_ = [read(theirs, name, file) for file in FILES[name]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # what a matrix has no place for
        if name in ("label-studio", "argilla"):
            found = found.suggest(PREDICTED, SCORES)
        if name == "hugging-face":  # votes come from another tool
            convert(theirs / "argilla.json", mine / "votes.parquet", to_format="hugging-face")
            found = read_annotations(mine / "votes.parquet").suggest(PREDICTED, SCORES)
        for kind in {Path(file).suffix for file in FILES[name]} | ({".npz"} if name == "cleanlab" else set()):
            if kind:
                write_annotations(found, mine / f"{name}{kind}", name)


def main():
    options = argparse.ArgumentParser(prog="make interop", description=__doc__)
    options.add_argument("--python", required=True, help="of the environment that has the libraries")
    options.add_argument("--keep", action="store_true", help="make what the libraries wrote the fixtures")
    given = options.parse_args()
    listing = subprocess.run(
        [given.python, "-m", "pip", "list", "--format", "json"], capture_output=True, check=True
    )
    versions = {each["name"].lower(): each["version"] for each in json.loads(listing.stdout)}
    installed = {each.metadata["Name"].lower() for each in distributions()}
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        theirs, mine = Path(folder, "theirs"), Path(folder, "ours")
        theirs.mkdir(), mine.mkdir()
        for name, package in sorted(PACKAGES.items()):
            if package not in versions:
                print(f"{name:14}{package} is not installed: not tried")
                failed = True
                continue
            run = [given.python, HERE / "theirs.py"]
            try:
                subprocess.run([*run, "write", name, theirs], check=True)
                ours(theirs, mine, name)
                done = subprocess.run([*run, "check", name, mine], capture_output=True, text=True, check=False)
                outcome = "round trip holds" if done.returncode == 0 else done.stderr.strip().splitlines()[-1]
            except (AssertionError, ValueError, subprocess.CalledProcessError) as error:
                outcome = f"{type(error).__name__}: {error}"
            failed |= outcome != "round trip holds"
            aside = "" if package in installed else ", not installed beside oneof"
            print(f"{name:14}{package} {versions[package]}: {outcome}{aside}")
        if given.keep and not failed:
            for each in theirs.iterdir():
                target = FIXTURES / each.name
                copy = shutil.copytree if each.is_dir() else shutil.copyfile
                shutil.rmtree(target, ignore_errors=True)
                copy(each, target)
            print(f"fixtures written to {FIXTURES.relative_to(HERE.parents[1])}")
    sys.exit(failed)


main()
