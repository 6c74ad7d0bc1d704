"""Labels of a Label Studio project teach a model, whose predictions go back into the project."""

import json
from pathlib import Path

import numpy as np
from sklearn.datasets import load_iris

import oneof

X, y = load_iris(return_X_y=True)
names = np.array(["setosa", "versicolor", "virginica"])
rng = np.random.default_rng(0)
export = []  # as the project writes it: an annotator ticked one or two boxes in every other task
for row, flower in enumerate(X):
    ticked = sorted({*names[[y[row], rng.integers(3)]]})
    choice = {"from_name": "species", "to_name": "flower", "type": "choices", "value": {"choices": ticked}}
    answers = [{"completed_by": 1, "result": [choice]}] if row % 2 == 0 else []
    export.append({"id": 500 + row, "data": {"flower": f"{flower}.jpg"}, "annotations": answers})
Path("export.json").write_text(json.dumps(export))

project = oneof.read_annotations("export.json")
print(project)
labelled = project.votes_a_task > 0
model = oneof.IDGP(network="linear", random_state=0).fit(X[labelled], project.labelled().y)
chances = model.predict_proba(X)
project = project.suggest(model.classes_[chances.argmax(1)], chances.max(1))
oneof.write_annotations(project, "predictions.json", "label-studio")  # to import: every task is pre-annotated
print("right:", (project.suggestions["label"] == names[y]).mean().round(3))
