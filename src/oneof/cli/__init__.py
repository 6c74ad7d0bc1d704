"""The command line: one module for each group of commands."""

from oneof.cli import bench, cache, compare, convert, data, doctor, embed, export, fit, models, review
from oneof.cli.app import app

__all__ = [
    "app",
    "bench",
    "cache",
    "compare",
    "convert",
    "data",
    "doctor",
    "embed",
    "export",
    "fit",
    "main",
    "models",
    "review",
]


def main() -> None:
    """Run the command line."""
    app(prog_name="oneof")
