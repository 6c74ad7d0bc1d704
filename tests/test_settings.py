"""The published settings are settings of this library, and every method has its page."""

import json
import re
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from oneof import METHODS
from oneof.estimator.classifier import PartialLabelClassifier
from oneof.estimator.fields import check
from oneof.nn.networks import NETWORKS

ROOT = Path(__file__).parent.parent
PAGES = ROOT / "docs" / "methods"
DATA_SETS = {
    "mnist", "fashion-mnist", "kuzushiji-mnist", "cifar-10", "cifar-100", "lost", "birdsong", "msrcv2",
    "soccer-player", "yahoo-news",
}  # fmt: skip


def entries(table, path=()):
    """Every table with a source, under its path: (method, data set) or (method, data set, variant)."""
    if "source" in table:
        return {path: table}
    return {key: entry for name in table for key, entry in entries(table[name], (*path, name)).items()}


TEXT = (ROOT / "benchmarks" / "settings.toml").read_text()
SETTINGS = entries(tomllib.loads(TEXT))


def own_fields(method):
    shared = {field.name for field in fields(PartialLabelClassifier)}
    return [field.name for field in fields(method) if field.name not in shared]


def row_of(name):
    """The cells of a method's row in the overview."""
    rows = [line for line in (PAGES / "index.md").read_text().splitlines() if f"]({name}.md)" in line]
    assert len(rows) == 1
    return [cell.strip() for cell in rows[0].strip("|").split("|")]


@pytest.mark.parametrize("path", SETTINGS, ids=".".join)
def test_published_settings_are_accepted(path):
    entry = dict(SETTINGS[path])
    assert path[0] in METHODS
    assert path[1] in DATA_SETS
    assert len(path) in (2, 3)
    assert "/" in entry.pop("source")
    assert isinstance(entry.pop("note", ""), str)
    unknown = set(entry) - {field.name for field in fields(METHODS[path[0]])}
    assert not unknown
    check(METHODS[path[0]](**entry))


@pytest.mark.parametrize("path", [path for path in SETTINGS if path[0] != "proden"], ids=".".join)
def test_published_settings_say_all_that_their_source_says(path):
    """A field of the method that an entry leaves out would follow this library's default instead of the source."""
    needed = set(own_fields(METHODS[path[0]])) - {"mixup"}  # which no source has
    if path[0] == "idgp":
        needed = {name for name in needed if name.startswith(("weight_", "temperature_"))} | {"warm_up", "lr_g"}
    assert needed | {"lr", "weight_decay", "batch_size", "epochs"} <= set(SETTINGS[path])


def test_networks_are_there_or_named_as_missing():
    (missing,) = re.findall(r"Not in NETWORKS(.*)", TEXT)
    used = {entry["network"] for entry in SETTINGS.values()}
    assert used - NETWORKS.keys() == set(re.findall(r"`([^`]+)`", missing))


def test_the_methods_with_published_settings_are_there():
    assert {path[0] for path in SETTINGS} == {"idgp", "valen", "proden", "lws", "pico", "plcr"}
    assert {path[1] for path in SETTINGS} == DATA_SETS


@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_a_page_and_a_row(name):
    page = (PAGES / f"{name}.md").read_text()
    assert page.startswith(f"# {METHODS[name].__name__}")
    assert f"src/oneof/methods/{name}.py" in page
    assert (ROOT / "src" / "oneof" / "methods" / f"{name}.py").exists()
    needs_views = row_of(name)[3]
    assert needs_views == ("yes" if METHODS[name].needs_views else "no")


@pytest.mark.parametrize("name", METHODS)
def test_every_field_of_a_method_is_named_on_its_page(name):
    page = (PAGES / f"{name}.md").read_text()
    missing = [field for field in own_fields(METHODS[name]) if not re.search(rf"\b{field}\b", page)]
    assert not missing


@pytest.mark.parametrize("name", METHODS)
def test_the_costs_in_the_overview_are_those_of_the_file(name):
    """A method that the file does not have yet has no number here."""
    results = json.loads((ROOT / "benchmarks" / "results" / "cost.json").read_text())["results"]
    measured = [rows[name]["ratio"] for rows in results.values() if name in rows]
    shown = [float(number) for number in re.findall(r"[\d.]+", row_of(name)[6])]
    assert shown == pytest.approx(measured, abs=0.051, rel=0.01)


def test_links_of_the_pages_lead_somewhere():
    for page in PAGES.glob("*.md"):
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
