"""Prints the lowest version of everything that pyproject.toml names, as requirements: ``make lowest``."""

import tomllib
from pathlib import Path

LEFT_OUT = (
    "oneof",
    "ruff",
    "mypy",
    "import-linter",
    "playwright",
    "axe",
    "ray",
    "crowd-kit",
    "timm",
    "transformers",
)

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]
named = [
    *project["dependencies"],
    *(each for extra in project["optional-dependencies"].values() for each in extra),
]
print("\n".join(sorted({each.replace(">=", "==") for each in named if not each.startswith(LEFT_OUT)})))
