"""A table that need not fit into memory: read once, in pieces; fit reads the rows of each batch from the disk."""

import numpy as np
import pandas as pd

import oneof

rng = np.random.default_rng(0)
kinds = np.array(["cat", "cow", "dog"])
true = rng.integers(3, size=20_000)
rows = pd.DataFrame(rng.normal(size=(20_000, 4)) + 2 * np.eye(3, 4)[true], columns=["legs", "tail", "ears", "fur"])
rows["chip"] = [f"C-{number:05d}" for number in range(20_000)]
rows["label"] = ["|".join(sorted({kinds[k], rng.choice(kinds)})) for k in true]
rows.to_csv("animals.csv", index=False)  # as if it had ten million rows

table = oneof.open_table("animals.csv", candidates="label", separator="|", ids=["chip"], cache="kept")
print(table)
print("means", table.mean.round(2), "and ids such as", table.ids["chip"][:2])

model = oneof.PRODEN(network="linear", epochs=5, validation_fraction=0.1, random_state=0)
model.fit(table.X, table.y)  # table.X is a mapped array, table.y the candidate sets with their names
print("true labels found", np.mean(model.predict(table.X) == kinds[true]).round(3))

again = oneof.open_table("animals.csv", candidates="label", separator="|", ids=["chip"], cache="kept")
print("found in the cache:", again.path == table.path)  # a changed file is read anew
