"""Labels of other tools: what their libraries wrote is read, and every format gives back what went into it."""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import oneof
from oneof.cli import app
from oneof.data.exchange import FORMATS, convert, read_annotations, write_annotations
from oneof.data.exchange.annotations import build

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "interop"))
from problem import ANNA, BEN, CARL, CLASSES, NUMBERS, PREDICTED, SCORES, SETS, TEXTS, VOTES  # noqa: E402

FIXTURES = HERE / "fixtures" / "formats"


def written(name, **options):
    return read_annotations(FIXTURES / name, **options)


def votes_of(found):
    return [{who: labels[0] for who, labels in votes.items()} for votes in found.votes]


def test_what_crowd_kit_holds():
    found = written("crowd-kit.csv")
    assert votes_of(found) == VOTES
    assert found.tasks.tolist() == [f"t{row}" for row in range(7)]
    assert isinstance(found.y, oneof.Votes)
    direct = oneof.from_votes([[vote.get(who) for who in NUMBERS] for vote in VOTES], CLASSES)
    np.testing.assert_allclose(found.y.weights, direct.weights)
    assert found.y.annotators.index.tolist() == [ANNA, BEN, CARL]


@pytest.mark.parametrize("file", ["cleanlab.csv", "cleanlab.npy"])
def test_what_cleanlab_holds(file):
    found = written(file, format="cleanlab", classes=CLASSES)
    people = [ANNA, BEN, CARL] if file.endswith("csv") else [0, 1, 2]
    assert votes_of(found) == [{people[[*NUMBERS].index(who)]: each for who, each in v.items()} for v in VOTES]
    assert written(file, format="cleanlab").classes.tolist() == [0, 1, 2]


def test_what_label_studio_writes():
    found = written("label-studio.json")
    assert votes_of(found) == [{NUMBERS[who]: label for who, label in vote.items()} for vote in VOTES]
    assert (found.field, found.about) == ("animal", "text")
    assert found.data["text"].tolist() == TEXTS
    assert found.tasks.tolist() == list(range(100, 107))


def test_what_argilla_writes():
    found = written("argilla.json")
    assert votes_of(found) == VOTES
    assert found.field == "animal"
    assert found.data["text"].tolist() == TEXTS


@pytest.mark.parametrize(("file", "split"), [("hugging-face.parquet", None), ("hugging-face-list", "train")])
def test_what_datasets_writes(file, split):
    found = written(file, split=split)
    assert found.sets == SETS
    assert found.workers == []
    assert found.data["text"].tolist() == TEXTS
    assert found.data["truth"].tolist() == PREDICTED, "a second column of labels is kept, by its names"
    assert found.y.to_numpy().tolist() == [[name in names for name in CLASSES] for names in SETS]


def random_annotations(seed, votes=True, single=False, unlabelled=True):
    rng = np.random.default_rng(seed)
    names = np.array(["Kätzchen", "cow, brown", "dog", '"', "0"])
    n = 30
    marks = []
    for row in range(n):
        empty = unlabelled and row % 7 == 0 and row
        for who in rng.permutation([ANNA, BEN, CARL])[: rng.integers(1, 4)].tolist() if votes else [None]:
            size = 1 if single else rng.integers(1, 4)
            marks += [] if empty else [(row, who, label) for label in rng.permutation(names)[:size].tolist()]
    data = pd.DataFrame({"text": [f"row {row}\n," for row in range(n)], "size": rng.normal(size=n).round(3)})
    return build([f"task {row}" for row in range(n)], marks, data, "random", sorted(names.tolist()))


def same_votes(a, b, named=True):
    """Compare votes as sets of labels; an .npy file has no names of annotators."""

    def told(found):
        who = {each: str(each) if named else number for number, each in enumerate(found.workers)} | {None: None}
        return [{who[w]: sorted(map(str, v)) for w, v in votes.items()} for votes in found.votes]

    return told(a) == told(b)


HOLDS = {  # what comes back: votes of several labels, sets of unknown annotators, data, unlabelled tasks
    "table": (True, True, True, True),
    "crowd-kit": (False, False, False, False),
    "cleanlab": (False, False, False, True),
    "label-studio": (True, True, True, True),
    "argilla": (True, True, True, True),
    "hugging-face": (True, True, True, True),
}


CASES = [
    (name, kind, votes)
    for name, each in FORMATS.items()
    for kind in each.extensions
    for votes in ("votes", "sets")
    if kind not in (".csv.gz", ".tsv") and (votes == "votes" or HOLDS[name][1])
]


@pytest.mark.filterwarnings("ignore:cleanlab numbers classes")
@pytest.mark.parametrize(("name", "kind", "votes"), CASES)
def test_every_format_gives_back_what_went_in(name, kind, votes, tmp_path):
    several, _, data, unlabelled = HOLDS[name]
    for seed in range(3):
        given = random_annotations(seed, votes == "votes", single=not several, unlabelled=unlabelled)
        path = tmp_path / f"out{seed}{kind}"
        write_annotations(given, path, name)
        options = {"id": "id", "votes": given.workers or None} if name == "table" else {}
        if name == "cleanlab" and kind != ".npz":
            options = {"classes": given.classes.tolist()}
        back = read_annotations(path, name, **options)
        assert same_votes(back, given, named=kind != ".npy")
        if unlabelled and name != "cleanlab":
            assert back.tasks.tolist() == given.tasks.tolist()
        if data:
            assert back.data["text"].tolist() == given.data["text"].tolist()
            assert back.data["size"].astype(float).tolist() == given.data["size"].tolist()
        if name not in ("table", "crowd-kit"):  # which need not name all classes
            assert back.classes.tolist() == given.classes.tolist() or name in ("label-studio", "argilla")


@pytest.mark.parametrize("name", ["table", "label-studio", "argilla", "hugging-face"])
def test_suggestions_come_back(name, tmp_path):
    given = written("argilla.json")
    path = tmp_path / f"out{FORMATS[name].extensions[-1]}"
    write_annotations(given.suggest(PREDICTED, SCORES), path, name)
    back = read_annotations(path, name, **({"id": "id", "candidates": None} if name == "table" else {}))
    assert back.suggestions["label"].tolist() == PREDICTED
    assert back.suggestions["score"].tolist() == SCORES


def test_labels_with_a_bar_are_json_lists_in_a_table(tmp_path):
    given = build([1, 2], [(0, None, "a|b"), (0, None, "c"), (1, None, "c")], pd.DataFrame(index=range(2)), "x")
    write_annotations(given, tmp_path / "out.csv")
    assert pd.read_csv(tmp_path / "out.csv")["candidates"].tolist() == ['["a|b", "c"]', '["c"]']
    assert read_annotations(tmp_path / "out.csv").sets == given.sets


def server_export(path, **first):
    """Tasks as the server exports them, with what the SDK's objects lack."""
    tasks = json.loads((FIXTURES / "label-studio.json").read_text())
    for task in tasks:
        task |= {"meta": {}, "drafts": [], "created_at": "2026-01-01T00:00:00Z", "predictions": []}
        for answer in task["annotations"]:
            answer["completed_by"] = {"id": answer["completed_by"], "email": f"{answer['completed_by']}@x.org"}
    tasks[0]["annotations"][0] |= first
    path.write_text(json.dumps(tasks))
    return path


def test_people_of_label_studio_by_their_addresses_and_skipped_tasks(tmp_path):
    found = read_annotations(server_export(tmp_path / "a.json"))
    assert found.workers == ["1@x.org", "2@x.org", "3@x.org"]
    with pytest.warns(UserWarning, match="1 annotations of .* were skipped"):
        found = read_annotations(server_export(tmp_path / "b.json", was_cancelled=True))
    assert list(found.votes[0]) == ["2@x.org", "3@x.org"]


def test_what_a_label_studio_server_exports():
    """Version 1.23.2, into which our file of sets with predictions went; it exports only their numbers."""
    found = written("label-studio-server.json")
    assert [sorted(labels) for labels in found.sets] == SETS
    assert found.workers == [1], "who imported them"
    assert found.suggestions is None
    assert found.data["text"].tolist() == TEXTS


def test_several_controls_and_answers_about_regions(tmp_path):
    tasks = json.loads((FIXTURES / "label-studio.json").read_text())
    region = tasks[0]["annotations"][0]["result"][0]
    tasks[0]["annotations"][0]["result"] += [region | {"from_name": "mood", "value": {"choices": ["calm"]}}]
    path = tmp_path / "two.json"
    path.write_text(json.dumps(tasks))
    with pytest.raises(ValueError, match="'animal', 'mood'"):
        read_annotations(path)
    assert read_annotations(path, candidates="animal").sets[0] == ["cat", "dog"]
    with pytest.raises(ValueError, match="did you mean 'animal'"):
        read_annotations(path, candidates="anmal")
    tasks[0]["annotations"][0]["result"] = [region, region]
    path.write_text(json.dumps(tasks))
    with pytest.raises(ValueError, match="answers 2 times"):
        read_annotations(path)


def test_predictions_go_back_to_the_project_by_id_by_number_and_by_order(tmp_path):
    """What `oneof predict` and `disambiguate` write is matched with the tasks of the export."""
    source, out = FIXTURES / "label-studio.json", tmp_path / "out.json"
    results = pd.DataFrame({"label": PREDICTED, "probability": SCORES, "margin": 0.1})
    shuffled = [3, 1, 0, 2, 6, 5, 4]
    for frame, options in (
        (results.assign(id=range(100, 107)).iloc[shuffled], {"id": "id"}),
        (results.rename(columns={"label": "prediction"}), {}),
    ):
        frame.to_csv(tmp_path / "results.csv", index=False)
        convert(tmp_path / "results.csv", out, to_format="label-studio", tasks=source, **options)
        tasks = json.loads(out.read_text())
        assert [task["predictions"][0]["result"][0]["value"]["choices"] for task in tasks] == [
            [p] for p in PREDICTED
        ]
        assert [task["predictions"][0]["score"] for task in tasks] == SCORES
        assert [task["data"]["text"] for task in tasks] == TEXTS
        assert len(tasks[0]["annotations"]) == 3, "the labels of the project stay"
        assert tasks[0]["predictions"][0]["result"][0]["from_name"] == "animal"
    results[:3].assign(id=[100, 101, 102]).to_csv(tmp_path / "some.csv", index=False)
    convert(tmp_path / "some.csv", out, to_format="label-studio", tasks=source, id="id")
    assert ["predictions" in task for task in json.loads(out.read_text())] == [True] * 3 + [False] * 4


def test_the_rows_that_disambiguate_numbers_are_matched_by_number(tmp_path):
    order = [6, 5, 4, 3, 2, 1, 0]  # as --sort margin leaves them
    frame = pd.DataFrame({"row": range(7), "candidates": [["cat"]] * 7, "label": PREDICTED, "probability": SCORES})
    frame.iloc[order].to_parquet(tmp_path / "r.parquet")
    options = {"tasks": FIXTURES / "argilla.json", "to_format": "argilla"}
    with pytest.raises(ValueError, match="row"):
        convert(tmp_path / "r.parquet", tmp_path / "o.json", id="label", **options)
    found = convert(tmp_path / "r.parquet", tmp_path / "o.json", **options)
    assert found.suggestions["label"].tolist() == PREDICTED


def test_new_tasks_without_any_label_get_predictions(tmp_path):
    (tmp_path / "new.json").write_text(json.dumps([{"data": {"text": text}} for text in TEXTS]))
    pd.DataFrame({"prediction": PREDICTED, "probability": SCORES}).to_csv(tmp_path / "guess.csv", index=False)
    new = tmp_path / "new.json"
    with pytest.raises(ValueError, match="has no choices"):
        read_annotations(new)
    found = convert(
        tmp_path / "guess.csv", tmp_path / "o.json", to_format="label-studio", tasks=new, field="pet", about="text"
    )
    assert found.suggestions["label"].tolist() == PREDICTED
    result = json.loads((tmp_path / "o.json").read_text())[0]["predictions"][0]["result"]
    assert result == [{"from_name": "pet", "to_name": "text", "type": "choices", "value": {"choices": ["cat"]}}]


def command(folder, *arguments):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return CliRunner().invoke(app, list(map(str, arguments)))


def test_from_a_project_to_a_model_and_back_on_the_command_line(tmp_path):
    rng = np.random.default_rng(0)
    truth = np.arange(60) % 3
    tasks = []
    for row, t in enumerate(truth):
        options = {CLASSES[t], CLASSES[rng.integers(3)]} if row < 50 else set()
        result = [
            {"from_name": "animal", "to_name": "a", "type": "choices", "value": {"choices": sorted(options)}}
        ]
        answers = [{"result": result, "completed_by": 1}] if options else []
        a, b = (rng.normal(size=2) + 4 * np.eye(3, 2)[t]).tolist()
        tasks.append({"id": row + 7, "data": {"a": a, "b": b}, "annotations": answers})
    (tmp_path / "export.json").write_text(json.dumps(tasks))
    done = command(tmp_path, "convert", "export.json", "all.csv")
    assert done.exit_code == 0, done.output
    assert "10 of 60 tasks have no label" in done.output
    done = command(tmp_path, "convert", "export.json", "rows.csv", "--labelled")
    assert "50 tasks, 3 classes" in done.output
    assert "oneof fit rows.csv --candidates candidates" in done.output
    fit = "fit rows.csv --candidates candidates --separator | --id id --method cc --set network=linear --quiet"
    done = command(tmp_path, *fit.split(" "), "--set", "epochs=60", "--out", "model")
    assert done.exit_code == 0, done.output
    done = command(tmp_path, "predict", "model", "all.csv", "--id", "id", "--out", "guess.csv")
    assert done.exit_code == 0, done.output
    done = command(
        tmp_path,
        "convert",
        "guess.csv",
        "back.json",
        "--to",
        "label-studio",
        "--tasks",
        "export.json",
        "--id",
        "id",
    )
    assert done.exit_code == 0, done.output
    back = read_annotations(tmp_path / "back.json")
    assert (np.array(CLASSES)[truth] == back.suggestions["label"]).mean() > 0.9
    assert back.sets == read_annotations(tmp_path / "export.json").sets


def test_votes_become_columns_that_fit_takes(tmp_path):
    done = command(tmp_path, "convert", FIXTURES / "label-studio.json", "votes.csv")
    assert "oneof fit votes.csv --votes 1,2,3" in done.output, done.output
    frame = pd.read_csv(tmp_path / "votes.csv", keep_default_na=False)
    assert frame.columns.tolist() == ["id", "text", "1", "2", "3"]
    assert frame["3"].tolist() == [vote.get(CARL, "") for vote in VOTES]
    done = command(tmp_path, "convert", "votes.csv", "long.csv", "--votes", "1,2,3", "--to", "crowd-kit")
    assert done.exit_code == 0, done.output
    assert votes_of(read_annotations(tmp_path / "long.csv")) == [
        {str(NUMBERS[who]): label for who, label in vote.items()} for vote in VOTES
    ]


def test_nothing_of_the_other_tools_is_imported():
    tools = {"crowdkit", "cleanlab", "label_studio_sdk", "argilla", "datasets"}
    assert not tools & set(sys.modules)


def test_a_dataset_with_a_forged_file_name_reads_nothing_outside(tmp_path):
    import shutil

    folder = tmp_path / "set"
    shutil.copytree(FIXTURES / "hugging-face-list" / "train", folder)
    (tmp_path / "secret.arrow").write_bytes((folder / "data-00000-of-00001.arrow").read_bytes())
    state = json.loads((folder / "state.json").read_text())
    state["_data_files"] = [{"filename": "../secret.arrow"}]
    (folder / "state.json").write_text(json.dumps(state))
    with pytest.raises(ValueError, match="outside of the folder"):
        read_annotations(folder)


def test_label_studio_gaps_in_data_are_null(tmp_path):
    frame = pd.DataFrame({"text": ["a", None], "size": [np.nan, 1.5], "candidates": ["cat|dog", "dog"]})
    frame.to_csv(tmp_path / "in.csv", index=False)
    convert(tmp_path / "in.csv", tmp_path / "out.json", to_format="label-studio", field="animal")
    tasks = json.loads((tmp_path / "out.json").read_text())
    assert tasks[0]["data"] == {"text": "a", "size": None}
    assert tasks[1]["data"] == {"text": None, "size": 1.5}
    assert tasks[0]["annotations"][0]["result"][0]["value"] == {"choices": ["cat", "dog"]}
    assert "completed_by" not in tasks[0]["annotations"][0]
