"""A table with gaps, categories, dates, booleans and text: an encoder before any method, one file for both."""

import warnings

import numpy as np
import pandas as pd

import oneof

rng = np.random.default_rng(0)
kinds = np.array(["cat", "cow", "dog"])
true = rng.integers(3, size=300)
words = [["purrs", "climbs"], ["grazes", "milk"], ["barks", "fetches"]]
born = pd.Timestamp("2015-01-01") + pd.to_timedelta(rng.integers(0, 3000, 300), "D")
pets = pd.DataFrame({"chip": [f"C-{i:04d}" for i in range(300)], "born": born.strftime("%d.%m.%Y")})
pets["weight"] = (np.array([4, 600, 20])[true] * np.exp(rng.normal(0, 0.5, 300))).round(1)
pets["colour"] = rng.choice(["black", "brown", "white", "spotted"], 300)
pets["indoors"] = (rng.random(300) < np.array([0.8, 0, 0.5])[true]).astype(object)
pets["notes"] = [" ".join(rng.choice([*words[k], "quiet", "young", "old"], 4)) for k in true]
pets = pets.mask(rng.random(pets.shape) < [0, 0.03, 0.15, 0.05, 0.05, 0.1])  # gaps
sets = ["|".join(sorted({kinds[k], rng.choice(kinds)})) for k in true]
pets.assign(label=sets).to_csv("pets.csv", index=False)  # for the command line

warnings.filterwarnings("ignore", message=".*'chip' is doubtful")
pipe = oneof.make_pipeline(oneof.TableEncoder(), oneof.IDGP(epochs=50, random_state=0))
pipe.fit(pets[:200], [each.split("|") for each in sets[:200]])
print(*(f"{name:8} {said}" for name, said in pipe[0].said_.items()), sep="\n")
print("new rows right  ", pipe.score(pets[200:], kinds[true[200:]]))
pipe.save("pets.safetensors")  # arrays and JSON, no pickle
print("the same, loaded", oneof.load_model("pets.safetensors").score(pets[200:], kinds[true[200:]]))
