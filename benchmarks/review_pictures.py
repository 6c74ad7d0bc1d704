"""The pictures of docs/review.md: Fashion-MNIST with three simulated annotators, reviewed in headless Chromium.

``python benchmarks/review_pictures.py FOLDER`` writes images and a table of votes to a folder, fits a model,
starts ``oneof review`` and photographs it at 1400 and 400 pixels, light and dark. Needs playwright and Chromium.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image
from playwright.sync_api import sync_playwright

import oneof

PICTURES = Path(__file__).parents[1] / "docs" / "images"
NAMES = np.array(
    ["T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot"]
)
ALIKE = ((6, 3), (3,), (4, 6), (0, 4), (2, 6), (7,), (0, 2, 4), (9, 5), (0,), (7,))  # what each is taken for
SKILLS = {"anna": 0.92, "ben": 0.8, "carl": 0.65}
OPTIONS = ["--images", "file", "--votes", ",".join(SKILLS)]
FIT = ["--method", "cc", "--set", "network=mlp", "--set", "epochs=15", "--set", "lr=0.01", "--quiet"]


def write_table(folder: Path, rows: int = 400) -> None:
    """Write images and their votes; everybody misses a tenth of them."""
    (folder / "images").mkdir(parents=True, exist_ok=True)
    data, rng = oneof.load_dataset("fashion-mnist")[0], np.random.default_rng(0)
    lines = []
    for i, number in enumerate(rng.choice(len(data.x), rows, replace=False)):
        Image.fromarray(np.asarray(data.x[number]).squeeze()).save(folder / "images" / f"{i:03}.png")
        truth = data.y[number]
        votes = {
            who: NAMES[truth if rng.random() < skill else rng.choice(ALIKE[truth])] if rng.random() < 0.9 else ""
            for who, skill in SKILLS.items()
        }
        lines.append({"file": f"images/{i:03}.png", **(votes if any(votes.values()) else {"anna": NAMES[truth]})})
    pd.DataFrame(lines).to_csv(folder / "clothes.csv", index=False)


def photograph(address: str) -> None:
    """Write four pictures of a review, in few colours."""
    PICTURES.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for width, height in ((1400, 900), (400, 800)):
            for scheme in ("light", "dark"):
                view = {"width": width, "height": height}
                page = browser.new_context(viewport=view, color_scheme=scheme).new_page()
                page.goto(address)
                page.wait_for_selector("article.card")
                page.wait_for_load_state("networkidle")
                path = PICTURES / f"review-{width}-{scheme}.png"
                page.screenshot(path=path)
                Image.open(path).convert("RGB").quantize(64).save(path, optimize=True)
        browser.close()


def main() -> None:
    """Make everything."""
    folder = Path(sys.argv[1])
    write_table(folder)
    program = [sys.executable, "-m", "oneof"]
    subprocess.run([*program, "fit", "clothes.csv", *OPTIONS, *FIT, "--out", "m"], cwd=folder, check=True)
    command = [*program, "review", "m", "clothes.csv", *OPTIONS, "--no-browser"]
    server = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
    try:
        photograph(re.findall(r"http://\S+", server.stdout.readline())[0])
    finally:
        server.kill()


if __name__ == "__main__":
    main()
