"""Command that says what is installed and found here: ``oneof doctor``."""

import os
import platform
import re
import warnings
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

import typer

from oneof import __version__
from oneof.cli.app import DataFolder, app
from oneof.cli.output import fold, give, note, say

_EXTRA = re.compile(r";.*extra\s*==\s*['\"]([a-z]+)['\"]")
_TOOLS = "dev"  # the extra of development tools, which users do not miss


@app.command()
def doctor(data: DataFolder = None) -> None:
    """Say what is installed and found here: versions, GPUs, kernels, the cache folder and data sets.

    The exit code is 1 where something is wrong that oneof cannot do without.
    """
    packages = _packages()
    wrong = [f"{name} is not installed" for name, found in packages["needed"].items() if found is None]
    facts: dict[str, Any] = {"oneof": __version__, "python": platform.python_version()}
    facts |= {"platform": platform.platform(), "cores": os.cpu_count(), "packages": packages}
    if not wrong:
        facts |= {"compute": _compute()} | _folders(data, wrong)
    give({**facts, "wrong": wrong})
    for line in _lines(facts):
        say(fold(line))
    for text in wrong:
        note("failed", text)
    if wrong:
        raise typer.Exit(1)


def _packages() -> dict[str, dict[str, str | None]]:
    """Return the versions of what oneof needs, and of what its extras add; None where it is not installed."""
    found: dict[str, dict[str, str | None]] = {"needed": {}, "optional": {}}
    try:
        stated = requires("oneof") or []
    except PackageNotFoundError:
        stated = []  # its folder is on the path, but was not installed
    for text in stated:
        name = re.split(r"[^\w.-]", text, maxsplit=1)[0]
        extra = _EXTRA.search(text)
        if name != "oneof" and (extra is None or extra[1] != _TOOLS):
            found["needed" if extra is None else "optional"][name] = _version(name)
    return found


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _compute() -> dict[str, Any]:
    """Return which GPUs torch sees, and whether kernels of our own can be compiled for each."""
    import torch

    from oneof.acceleration import faster

    gpus = []
    for number in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
        properties = torch.cuda.get_device_properties(number)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            works = faster("any kernel", torch.zeros(1, device=f"cuda:{number}")) is not None
        why = "; ".join(str(each.message) for each in caught)
        gpus.append({"name": properties.name, "memory": properties.total_memory, "kernels": works, "why": why})
    return {"cuda": torch.version.cuda, "threads": torch.get_num_threads(), "gpus": gpus}


def _folders(data: Path | None, wrong: list[str]) -> dict[str, Any]:
    """Return what is in the folders of the cache and of data sets; a cache that cannot be written is wrong."""
    from oneof.data import describe_datasets
    from oneof.data.cache import cache_usage
    from oneof.data.loading import data_folder
    from oneof.io.files import cache_folder, replacing

    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with replacing(folder / "doctor") as part:
            part.touch()
        (folder / "doctor").unlink()
    except OSError as error:
        wrong.append(f"the cache folder {str(folder)!r} cannot be written ({error.strerror or error})")
    known = describe_datasets(data)
    return {
        "cache": {"folder": folder, "size": sum(each.size for each in cache_usage())},
        "data": {
            "folder": data_folder(data),
            "present": [each.name for each in known if each.present],
            "missing": [each.name for each in known if not each.present],
        },
    }


def _lines(facts: dict[str, Any]) -> list[str]:
    """Write what was found, one line for each thing."""
    packages = facts["packages"]
    here = {name: found for name, found in packages["optional"].items() if found}
    absent = [name for name, found in packages["optional"].items() if not found]
    lines = [
        f"oneof {facts['oneof']}, Python {facts['python']}, {facts['platform']}, {facts['cores']} cores",
        f"needed: {_named(packages['needed'])}",
        f"optional: {_named(here) or 'none'}",
        *([f"not installed: {', '.join(absent)}"] if absent else []),
    ]
    if "compute" in facts:
        lines += [*_gpu_lines(facts["compute"]), *_folder_lines(facts)]
    return lines


def _named(versions: dict[str, str | None]) -> str:
    return ", ".join(f"{name} {found or '(missing)'}" for name, found in versions.items())


def _gpu_lines(compute: dict[str, Any]) -> list[str]:
    if not compute["gpus"]:
        built = f"for CUDA {compute['cuda']}" if compute["cuda"] else "for the CPU alone"
        return [f"GPU: none found; torch is built {built}, with {compute['threads']} threads"]
    return [
        f"GPU: {gpu['name']}, {gpu['memory'] / 1e9:.0f} GB, kernels of our own: "
        + ("yes" if gpu["kernels"] else f"no{gpu['why'] and ': '}{gpu['why']}")
        for gpu in compute["gpus"]
    ]


def _folder_lines(facts: dict[str, Any]) -> list[str]:
    from oneof.data.cache import size_text

    cache, data = facts["cache"], facts["data"]
    return [
        f"cache: {cache['folder']}, {size_text(cache['size'])}",
        f"data: {data['folder']}: {', '.join(data['present']) or 'no data set yet; they are downloaded'}",
    ]
