"""Every reader: small inputs that it reads, how they are damaged, and the call that reads them."""

import gzip
import io
import json
import random
import tempfile
import tomllib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image

import oneof
from fuzz import objects
from fuzz.formats import (
    mutate_gzip,
    mutate_image,
    mutate_json,
    mutate_matlab,
    mutate_npz,
    mutate_safetensors,
    toml_file,
)
from fuzz.mutate import mutate_bytes, mutate_text, mutate_tree
from oneof.bench.ledger import read as read_ledger
from oneof.bench.plan_file import read_plan
from oneof.bench.report.paper import read_paper
from oneof.bench.report.results import collect
from oneof.bench.report.sections import sections
from oneof.bench.running.runner import progress_of
from oneof.data import PartialLabels
from oneof.data.folder import decode_images
from oneof.data.formats import read_cifar, read_idx, read_mat
from oneof.data.label_cells import label_sets
from oneof.data.tables import numeric_features, read_table
from oneof.estimator.features import check_rows
from published import cifar_bytes, idx_bytes, idx_gz, mat_bytes, small_images, small_table

ROOT = Path(__file__).parents[2]
Seed = tuple[str, bytes]  # the end of a file name, and a content
Mutate = Callable[[bytes, random.Random, Sequence[bytes]], bytes]


@dataclass(frozen=True)
class Reader:
    """What is read, and how."""

    name: str
    seeds: Callable[[], list[Seed]]
    mutate: Mutate
    read: Callable[[Path], Any]  # returns numbers that must not be NaN, or None


# --- labels -------------------------------------------------------------------------------------------------


def _mutate_object(content: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    """Damage the tree of an object, so that there is still such an object."""
    tree = json.loads(content)
    for _ in range(20):
        damaged = mutate_tree(tree, chance)
        if chance.random() < 0.3:
            name = next(iter(tree))
            damaged = {**tree, name: {"kind": chance.choice(list(objects.KINDS)), "data": tree[name]}}
        try:
            text = json.dumps(damaged).encode()
            objects.build(json.loads(text))
        except Exception:  # no object of this type holds such data
            continue
        if isinstance(damaged, dict) and damaged.keys() <= {"y", "votes", "classes", "separator", "min_votes"}:
            return text
    return content


def _read_labels(function: Callable[..., Any], path: Path) -> None:
    given = objects.build(json.loads(path.read_bytes()))
    first = given.pop("votes" if "votes" in given else "y", None)
    function(first, **{name: value for name, value in given.items() if name in _PARAMETERS[function]})


_PARAMETERS: dict[Any, tuple[str, ...]] = {
    oneof.encode: ("classes", "separator"),
    oneof.from_complementary: ("classes", "separator"),
    oneof.from_votes: ("classes", "min_votes"),
}


def _object_seeds(trees: list[dict[str, Any]]) -> list[Seed]:
    return [(".json", json.dumps(tree).encode()) for tree in trees]


# --- tables -------------------------------------------------------------------------------------------------


def _frame() -> Any:
    x, candidates, _ = small_table(8, 3, 3)
    frame = pd.DataFrame(x.round(3), columns=["a", "b", "c"])
    frame["candidates"] = ["|".join(f"k{k}" for k in np.flatnonzero(row)) for row in candidates]
    return frame


def _csv_seeds() -> list[Seed]:
    text = _frame().to_csv(index=False).encode()
    quoted = b'id,a,candidates\n1,2.5,"k1|k2"\n2,"3",k1\n"3",-1e3,"k2"\n'
    tabs = _frame().to_csv(index=False, sep="\t").encode()
    return [(".csv", text), (".csv", quoted), (".tsv", tabs), (".csv.gz", gzip.compress(text, mtime=0))]


def _mutate_csv(content: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    if content[:2] == b"\x1f\x8b":
        return mutate_gzip(content, chance, others)
    return mutate_text(content, chance, others)


def _npz_seeds() -> list[Seed]:
    x, candidates, y = small_table(8, 3, 3)
    images = small_images(8, (4, 4, 3))
    names = np.array(["a", "b", "c"])
    given: list[dict[str, Any]] = [
        {"x": x, "candidates": candidates, "classes": names},
        {"x": x.astype(np.float32), "candidates": candidates.astype(np.int64)},
        {"x": images, "candidates": names[y]},
    ]
    contents = []
    for arrays in given:
        file = io.BytesIO()
        np.savez(file, **arrays)
        contents.append((".npz", file.getvalue()))
    return contents


def _parquet_seeds() -> list[Seed]:
    frame = _frame()
    lists = frame.assign(candidates=[text.split("|") for text in frame["candidates"]])
    named = frame.set_index(pd.Index(range(8), name="row"))
    return [(".parquet", each.to_parquet(compression=None)) for each in (frame, lists, named)]


def _mutate_parquet(content: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    """Damage the bytes, or write a column of another type."""
    if chance.random() < 0.7:
        return mutate_bytes(content, chance, others)
    frame = _frame()
    columns: list[Any] = [
        pd.Series([None] * 8),
        pd.Series(pd.date_range("2000-01-01", periods=8)),
        pd.Series([[1.0, 2.0]] * 8),
        pd.Series([{"k": 1}] * 8),
        pd.Series([b"\xff"] * 8),
        pd.Series([[["k1"]]] * 8),
        pd.Series([["k1", None]] * 8),
        pd.Series([float("inf")] * 8),
        pd.Series(["k1", None] * 4),
        pd.Series(pd.Categorical(["k1", "k2"] * 4)),
        pd.Series([True, None] * 4, dtype="boolean"),
        pd.Series([2**62] * 8),
        pd.Series([[]] * 8),
    ]
    frame[chance.choice([*frame.columns, "candidates", "candidates"])] = chance.choice(columns)
    made: bytes = frame.iloc[: chance.choice((0, 1, 8))].to_parquet(compression=None)
    return made


def _read_table(path: Path, separator: str | None = "|") -> Any:
    """Read a table as ``oneof fit`` does."""
    table = read_table(path, ["candidates"])
    oneof.encode(label_sets(table.columns["candidates"], separator))
    return check_rows(oneof.CC(), numeric_features(table, ["candidates"]), fitting=True)


def _jsonl_seeds() -> list[Seed]:
    frame = _frame()
    lists = frame.assign(candidates=[text.split("|") for text in frame["candidates"]])
    return [(".jsonl", each.to_json(orient="records", lines=True).encode()) for each in (frame, lists)]


def _excel_seeds() -> list[Seed]:
    file = io.BytesIO()
    _frame().to_excel(file, index=False)
    return [(".xlsx", file.getvalue())]


def _annotation_seeds() -> list[Seed]:
    """What other tools wrote, each on one line, so that trees are damaged."""
    folder = ROOT / "tests" / "fixtures" / "formats"
    names = ("argilla.json", "label-studio.json", "label-studio-server.json")
    return [(f"-{name}", json.dumps(json.loads((folder / name).read_text())).encode()) for name in names]


def _read_annotations(path: Path) -> None:
    kind = "argilla" if path.name.endswith("-argilla.json") else "label-studio"
    oneof.encode(oneof.read_annotations(path, kind).y)


def _decision_seeds() -> list[Seed]:
    journal = [
        {
            "row": 0,
            "action": "label",
            "label": "a",
            "candidates": ["a", "b"],
            "at": "2026-01-01T00:00:00+00:00",
            "by": "x",
        },
        {"row": 1, "action": "none", "candidates": ["b"], "at": "2026-01-01T00:00:01+00:00", "by": "x"},
        {"row": 0, "action": "undo", "candidates": ["a", "b"], "at": "2026-01-01T00:00:02+00:00", "by": "x"},
    ]
    table = [{"row": 0, "decision": "a"}, {"row": 1, "decision": "none of these"}]
    return [(".jsonl", "".join(json.dumps(line) + "\n" for line in lines).encode()) for lines in (journal, table)]


def _read_decisions(path: Path) -> None:
    oneof.apply_decisions([["a", "b"], ["b"], ["c"]], path)


# --- models -------------------------------------------------------------------------------------------------

_X, _SETS, _ = small_table(10, 3, 3)


def _fitted(method: Any, **settings: Any) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        method(epochs=1, batch_size=5, network="linear", device="cpu", random_state=0, **settings).fit(
            _X, _SETS
        ).save(path)
        return path.read_bytes()


def _fitted_by_em(estimator: str) -> bytes:
    parameters = None if estimator == "logistic" else {"n_estimators": 2}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        oneof.EMClassifier(estimator, parameters=parameters, folds=2, random_state=0).fit(_X, _SETS).save(path)
        return path.read_bytes()


def _model_seeds() -> list[Seed]:
    return [
        (".model", _fitted(oneof.CC)),
        (".model", _fitted(oneof.PRODEN)),
        (".model", _fitted(oneof.IDGP, warm_up=0)),
        *((".model", _fitted_by_em(name)) for name in ("logistic", "extra-trees", "lightgbm")),
    ]


_MIXED = pd.DataFrame(
    {"n": [1.0, None, 3.0] * 4, "c": ["u", "v", None] * 4, "d": ["2024-01-02", "2024-02-03", None] * 4}
)


def _pipeline_seeds() -> list[Seed]:
    model = oneof.CC(epochs=1, batch_size=5, network="linear", device="cpu", random_state=0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        oneof.make_pipeline(oneof.TableEncoder(), model).fit(_MIXED, [["a", "b"], ["b"], ["a"]] * 4).save(path)
        return [(".model", path.read_bytes())]


def _read_pipeline(path: Path) -> Any:
    model = oneof.load_model(path, device="cpu")
    return model.predict_proba(_MIXED if isinstance(model, oneof.Pipeline) else _X)


def _read_model(path: Path) -> Any:
    return oneof.load_model(path, device="cpu").predict_proba(_X)


def _with_checkpoint(path: Path, **hooks: Any) -> Any:
    model = oneof.PRODEN(
        epochs=2, batch_size=5, network="linear", device="cpu", threads=1, random_state=0, checkpoint=path
    )
    return model, model.prepare(_X, _SETS, **hooks)


def _checkpoint_seeds() -> list[Seed]:
    contents = []
    with tempfile.TemporaryDirectory() as folder:
        for last in (True, False):
            path = Path(folder) / f"{last}.ckpt"
            _, trial = _with_checkpoint(path, pause=lambda last=last: not last)
            with suppress(oneof.train.Paused):
                oneof.train.train(trial)
            contents.append((".ckpt", path.read_bytes()))
    return contents


def _read_checkpoint(path: Path) -> Any:
    model, trial = _with_checkpoint(path)
    model.finish(oneof.train.train(trial))
    return model.predict_proba(_X)


# --- published formats --------------------------------------------------------------------------------------


def _matlab_seeds() -> list[Seed]:
    table = small_table(6, 3, 3)
    forms: list[dict[str, Any]] = [
        {},
        {"compressed": False},
        {"as_sparse": True},
        {"transposed": False, "dtype": np.uint8},
    ]
    return [(".mat", mat_bytes(*table, **form)) for form in forms]


def _read_matlab(path: Path) -> Any:
    x, candidates, y = read_mat(path)
    data = PartialLabels(x, candidates, y, np.arange(candidates.shape[1]), "table")
    return check_rows(oneof.CC(), data.x, fitting=True)


def _idx_seeds() -> list[Seed]:
    images = small_images(3, (4, 4))
    return [("-idx", idx_gz(images)), ("-idx", idx_bytes(images))]


def _cifar_seeds() -> list[Seed]:
    return [(".bin", cifar_bytes(small_images(1, (32, 32, 3)), [3]))]


def _image_seeds() -> list[Seed]:
    colour, contents = Image.fromarray(small_images(1, (6, 5, 3))[0]), []
    forms = [(kind, colour) for kind in ("PNG", "JPEG", "BMP", "GIF", "PPM", "TIFF", "WEBP")]
    forms += [("PNG", colour.convert("P")), ("PNG", colour.convert("LA")), ("JPEG", colour.convert("L"))]
    forms += [("PNG", Image.fromarray(np.arange(30, dtype=np.uint16).reshape(6, 5)))]
    for kind, image in forms:
        file = io.BytesIO()
        image.save(file, kind)
        contents.append((".img", file.getvalue()))
    return contents


# --- plans, printed numbers, ledgers ------------------------------------------------------------------------

PLAN = b"""
title = "Small"
datasets = ["lost"]
trials = 2
reference = "cc"
paper = "table2"
heatmap = ["lr", "batch_size"]

[split]
validation = 0.1
test = 0.1

[candidates]
process = "uniform"
parameters = { rate = 0.3 }

[settings]
network = "linear"
epochs = 3

[grid]
lr = [0.1, 0.5]
batch_size = [10, 20]

[methods.cc]
[methods.supervised]
[methods.other]
method = "proden"

[[override]]
methods = ["cc"]
datasets = ["lost"]
lr = 0.2
"""
PAPER = b"""source = "a paper"

[about]
table2 = "accuracies"

[table2.lost]
idgp = [77.02, 0.82]
cc = [62.0, 1.0]
"""


def _mutate_toml(content: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    """Damage the text of a TOML file, or what it holds."""
    if chance.random() < 0.4:
        return mutate_text(content, chance, others)
    for _ in range(20):
        tree = mutate_tree(tomllib.loads(content.decode()), chance)
        try:
            if isinstance(tree, dict):
                return toml_file(tree)
        except UnicodeEncodeError:
            continue
    return content


def _read_plan(path: Path) -> None:
    read_plan(path).runs()


def _small_plan(folder: Path) -> Any:
    path = folder / "small.toml"
    path.write_text('title = "S"\ndatasets = ["lost"]\ntrials = 2\n[methods.cc]\n[methods.proden]\n')
    return read_plan(path)


def _ledger_seeds() -> list[Seed]:
    """Records of a plan, which are made of one that is published."""
    published = next(iter(read_ledger([ROOT / "benchmarks" / "results" / "table2.jsonl"]).records.values()))
    with tempfile.TemporaryDirectory() as folder:
        runs = _small_plan(Path(folder)).runs()
    done = [{**published, "key": run.key, "spec": run.spec, "status": "done"} for run in runs]
    failed = {name: done[0][name] for name in ("key", "spec", "device", "versions", "commit")}
    failed |= {"status": "failed", "error": "out of memory"}
    lines = [json.dumps(record).encode() + b"\n" for record in [*done, failed]]
    return [(".jsonl", b"".join(lines[:4])), (".jsonl", b"".join(lines[1:]))]


def _read_ledger(path: Path) -> None:
    """Read a ledger, and put what it holds into the sections of a report."""
    sections(collect(_plan_of(path.parent), read_ledger([path]), None))


_plans: dict[Path, Any] = {}


def _plan_of(folder: Path) -> Any:
    if folder not in _plans:
        _plans[folder] = _small_plan(folder)
    return _plans[folder]


def _read_progress(path: Path) -> None:
    """Read the progress of a plan as ``oneof status`` does."""
    folder = path.parent / "ledger.checkpoints"
    folder.mkdir(exist_ok=True)
    (folder / "progress.json").write_bytes(path.read_bytes())
    progress_of(_plan_of(path.parent), path.parent / "ledger.jsonl")


_PROGRESS = {
    "total": 4,
    "done": 1,
    "running": ["cc on lost, trial 0"],
    "failed": {},
    "unavailable": {},
    "last": ["cc on lost, trial 1: 70.00 %"],
    "seconds_left": 3.5,
    "doing": "",
}

READERS = {
    reader.name: reader
    for reader in (
        Reader(
            "encode", lambda: _object_seeds(objects.SEEDS), _mutate_object, partial(_read_labels, oneof.encode)
        ),
        Reader(
            "from_complementary",
            lambda: _object_seeds(objects.SEEDS),
            _mutate_object,
            partial(_read_labels, oneof.from_complementary),
        ),
        Reader(
            "from_votes",
            lambda: _object_seeds(objects.VOTES),
            _mutate_object,
            partial(_read_labels, oneof.from_votes),
        ),
        Reader("csv", _csv_seeds, _mutate_csv, _read_table),
        Reader("npz", _npz_seeds, mutate_npz, partial(_read_table, separator=None)),
        Reader("parquet", _parquet_seeds, _mutate_parquet, _read_table),
        Reader("jsonl", _jsonl_seeds, mutate_json, _read_table),
        Reader("excel", _excel_seeds, mutate_bytes, _read_table),
        Reader("annotations", _annotation_seeds, mutate_json, _read_annotations),
        Reader("decisions", _decision_seeds, mutate_json, _read_decisions),
        Reader("model", _model_seeds, mutate_safetensors, _read_model),
        Reader("pipeline", _pipeline_seeds, mutate_safetensors, _read_pipeline),
        Reader("checkpoint", _checkpoint_seeds, mutate_safetensors, _read_checkpoint),
        Reader("matlab", _matlab_seeds, mutate_matlab, _read_matlab),
        Reader("idx", _idx_seeds, mutate_gzip, lambda path: read_idx(path, 3)),
        Reader("cifar", _cifar_seeds, mutate_bytes, lambda path: read_cifar(path, 1)[0]),
        Reader("image", _image_seeds, mutate_image, lambda path: decode_images([path], cache=False, workers=1)),
        Reader("plan", lambda: [(".toml", PLAN)], _mutate_toml, _read_plan),
        Reader("paper", lambda: [(".toml", PAPER)], _mutate_toml, lambda path: read_paper(path, "table2")),
        Reader("ledger", _ledger_seeds, mutate_json, _read_ledger),
        Reader("progress", lambda: [(".json", json.dumps(_PROGRESS).encode())], mutate_json, _read_progress),
    )
}
