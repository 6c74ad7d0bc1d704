"""JSON files of other tools: read with one sentence about what is wrong, written whole or not at all."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from oneof.errors import InputError
from oneof.io.files import replacing
from oneof.io.schema import has_half_characters, json_misfit
from oneof.io.words import reason, shown


def read_json(path: Path) -> Any:
    """Read a JSON file."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {shown(path)}; check the path")
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:  # RecursionError for thousands of brackets
        raise InputError(f"{shown(path)} is no JSON ({reason(error)}); export it again") from None
    if has_half_characters(content):
        raise InputError(f"{shown(path)} has half of a character, such as \\ud800; export it again")
    return content


def read_items(path: Path, kind: Any, tool: str, fix: str) -> list[Any]:
    """Read a list of items of a type."""
    content = read_json(path)
    misfit = json_misfit(content, list[kind])
    if misfit is None and not content:
        misfit = "it holds nothing"
    if misfit is not None:
        raise InputError(f"{shown(path)} is not what {tool} writes: {misfit}; {fix}")
    items: list[Any] = content
    return items


def write_json(content: Any, path: Path) -> None:
    """Write a JSON file; gaps among numbers are null."""
    text = json.dumps(plain(content), ensure_ascii=False, indent=1, allow_nan=False)
    with replacing(path) as part:
        part.write_text(text + "\n", encoding="utf-8")


def plain(value: Any) -> Any:
    """Turn what tables hold into what JSON holds."""
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return str(value)
