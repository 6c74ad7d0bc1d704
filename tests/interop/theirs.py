"""What the other libraries do, in an environment of theirs without oneof: they write, and read what we wrote."""

import json
import sys
from pathlib import Path
from uuid import UUID

import numpy as np
import pandas as pd
from problem import CLASSES, CONFIG, NUMBERS, PREDICTED, SCORES, SETS, TEXTS, VOTES

ROWS = range(len(TEXTS))


def matrix():
    cells = [[CLASSES.index(vote[who]) if who in vote else np.nan for who in NUMBERS] for vote in VOTES]
    return pd.DataFrame(cells, columns=list(NUMBERS))


class CrowdKit:
    files = ("crowd-kit.csv",)

    @staticmethod
    def write(folder):
        votes = [(f"t{row}", who, label) for row in ROWS for who, label in VOTES[row].items()]
        frame = pd.DataFrame(votes, columns=["task", "worker", "label"])
        CrowdKit.judged(frame)
        frame.to_csv(folder / "crowd-kit.csv", index=False)

    @staticmethod
    def judged(frame):
        from crowdkit.aggregation import DawidSkene, MajorityVote

        MajorityVote().fit_predict(frame)
        return DawidSkene(n_iter=20).fit_predict(frame)

    @staticmethod
    def check(folder):
        frame = pd.read_csv(folder / "crowd-kit.csv")
        votes = {(task, who): label for task, who, label in frame.itertuples(index=False, name=None)}
        names = dict.fromkeys(frame["task"])
        assert len(names) == len(VOTES)
        for name, vote in zip(names, VOTES, strict=True):
            assert {who: label for (task, who), label in votes.items() if task == name} == vote
        assert CrowdKit.judged(frame).tolist()[1:4] == ["cow", "dog", "cat"]


class Cleanlab:
    files = ("cleanlab.csv", "cleanlab.npy")

    @staticmethod
    def write(folder):
        Cleanlab.judged(matrix())
        matrix().astype("Int64").to_csv(folder / "cleanlab.csv", index=False)
        np.save(folder / "cleanlab.npy", matrix().to_numpy())

    @staticmethod
    def judged(votes):
        from cleanlab.multiannotator import get_label_quality_multiannotator

        chances = np.full((len(votes), 3), 0.1)
        chances[ROWS, [CLASSES.index(name) for name in PREDICTED]] = 0.8
        found = get_label_quality_multiannotator(votes, chances, verbose=False)
        return found["label_quality"]["consensus_label"].tolist()

    @staticmethod
    def check(folder):
        for votes in (
            pd.read_csv(folder / "cleanlab.csv"),
            np.load(folder / "cleanlab.npy"),
            np.load(folder / "cleanlab.npz")["labels_multiannotator"],
        ):
            np.testing.assert_array_equal(np.asarray(votes, dtype=float), matrix().to_numpy())
            assert Cleanlab.judged(votes)[:4] == [0, 1, 2, 0]


class LabelStudio:
    files = ("label-studio.json",)

    @staticmethod
    def write(folder):
        from label_studio_sdk.label_interface import LabelInterface
        from label_studio_sdk.label_interface.objects import AnnotationValue, TaskValue

        interface = LabelInterface(CONFIG)
        tasks = []
        for row in ROWS:
            answers = [
                AnnotationValue(completed_by=NUMBERS[who], result=interface.create_regions({"animal": [label]}))
                for who, label in VOTES[row].items()
            ]
            task = TaskValue(data={"text": TEXTS[row]}, annotations=answers).model_dump()
            for number, answer in enumerate(task["annotations"]):
                answer["result"][0]["id"] = f"r{row}{number}"  # theirs is drawn at random
            assert all(interface.validate_annotation(each) for each in task["annotations"])
            tasks.append({"id": 100 + row} | task)
        (folder / "label-studio.json").write_text(json.dumps(tasks, indent=1) + "\n")

    @staticmethod
    def check(folder):
        from label_studio_sdk.label_interface import LabelInterface
        from label_studio_sdk.label_interface.objects import TaskValue

        interface = LabelInterface(CONFIG)
        tasks = json.loads((folder / "label-studio.json").read_text())
        for row, task in enumerate(tasks):
            TaskValue.model_validate(task)
            assert interface.validate_task({"data": task["data"]})
            assert all(interface.validate_annotation(each) for each in task["annotations"])
            assert not interface.validate_prediction(task["predictions"][0], return_errors=True)
            (prediction,) = task["predictions"]
            assert prediction["result"][0]["value"]["choices"] == [PREDICTED[row]]
            assert prediction["score"] == SCORES[row]
            assert task["data"] == {"text": TEXTS[row]}
            given = {each["completed_by"]: each["result"][0]["value"]["choices"] for each in task["annotations"]}
            assert given == {NUMBERS[who]: [label] for who, label in VOTES[row].items()}


class Argilla:
    files = ("argilla.json",)

    @staticmethod
    def write(folder):
        import argilla as rg
        from argilla.records._io import JsonIO

        records = [
            rg.Record(
                id=f"r{row}",
                fields={"text": TEXTS[row]},
                responses=[rg.Response("animal", label, user_id=UUID(who)) for who, label in VOTES[row].items()],
            )
            for row in ROWS
        ]
        JsonIO.to_json(records, folder / "argilla.json")

    @staticmethod
    def check(folder):
        from argilla.records._io import JsonIO

        for row, record in enumerate(JsonIO._records_from_json(folder / "argilla.json")):
            told = record.to_dict()
            assert told["fields"] == {"text": TEXTS[row]}
            assert {each["user_id"]: each["value"] for each in told["responses"]["animal"]} == VOTES[row]
            suggestion = told["suggestions"]["animal"]
            assert (suggestion["value"], suggestion["score"]) == (PREDICTED[row], SCORES[row])


class HuggingFace:
    files = ("hugging-face.parquet", "hugging-face-list")

    @staticmethod
    def write(folder):
        from datasets import ClassLabel, Dataset, DatasetDict, Features, List, Value

        label = ClassLabel(names=CLASSES)
        features = Features({"text": Value("string"), "candidates": List(label), "truth": label})
        columns = {
            "text": TEXTS,
            "candidates": [[CLASSES.index(name) for name in names] for names in SETS],
            "truth": [CLASSES.index(name) for name in PREDICTED],
        }
        dataset = Dataset.from_dict(columns, features=features)
        dataset.to_parquet(folder / "hugging-face.parquet")
        DatasetDict({"train": dataset}).save_to_disk(folder / "hugging-face-list")

    @staticmethod
    def check(folder):
        from datasets import ClassLabel, Dataset, List, Value

        dataset = Dataset.from_parquet(str(folder / "hugging-face.parquet"))
        label = ClassLabel(names=CLASSES)
        assert dataset.features["candidates"] == List(label)
        assert dataset.features["votes"] == List({"worker": Value("string"), "labels": List(label)})
        assert dataset.features["text"] == Value("string")
        told = [[CLASSES[number] for number in row] for row in dataset["candidates"]]
        assert [sorted(row) for row in told] == SETS
        votes = [{vote["worker"]: CLASSES[vote["labels"][0]] for vote in row} for row in dataset["votes"]]
        assert votes == VOTES
        assert [CLASSES[number] for number in dataset["prediction"]] == PREDICTED
        assert list(dataset["probability"]) == SCORES


LIBRARIES = {
    "crowd-kit": CrowdKit,
    "cleanlab": Cleanlab,
    "label-studio": LabelStudio,
    "argilla": Argilla,
    "hugging-face": HuggingFace,
}

if __name__ == "__main__":
    _, what, name, folder = sys.argv
    getattr(LIBRARIES[name], what)(Path(folder))
