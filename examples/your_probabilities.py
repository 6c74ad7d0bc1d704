"""You have a model already: choose among the candidates of every row by its probabilities."""

import numpy as np
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_predict

import oneof

wine = load_wine()
sure = np.arange(0, 178, 2)  # rows whose label is known
unsure = np.arange(1, 178, 2)  # rows for which two labels are left
model = RandomForestClassifier(random_state=0).fit(wine.data[sure], wine.target_names[wine.target[sure]])
sets = [[f"class_{t}", f"class_{(t + 1) % 3}"] for t in wine.target[unsure]]

found = oneof.disambiguate(model.predict_proba(wine.data[unsure]), sets, classes=model.classes_)
right = found.label == wine.target_names[wine.target[unsure]]
print(f"{right.mean():.3f} of the choices are right")
for row in found.margin.argsort()[:3]:  # these deserve a second look
    print(sets[row], found.label[row], found.probability[row].round(2), found.margin[row].round(2))

# Of rows that the model was fitted on, ask for probabilities out of fold.
p = cross_val_predict(model, wine.data[sure], wine.target[sure], cv=5, method="predict_proba")
print(oneof.disambiguate(p, wine.target[sure]).label[:10])
