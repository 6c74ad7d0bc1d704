"""Faults inside a process of oneof, installed by a ``sitecustomize`` before anything else runs.

The environment variable ``ONEOF_FAULTS`` names them as JSON: ``saves`` (seconds between checkpoints), ``datasets``
(entries of the catalogue), ``clock`` (a jump of the wall clock), ``kill`` (at a change of a file), ``memory`` (a
limit for workers) and ``file_size`` (a limit for every file).
"""

import importlib.abc
import importlib.util
import json
import os
import resource
import signal
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

VARIABLE = "ONEOF_FAULTS"
SITECUSTOMIZE = "from faults import hooks\n\nhooks.install()\n"


def install() -> None:
    """Install what the environment asks for."""
    wanted = json.loads(os.environ.get(VARIABLE, "{}"))
    after_import = {}
    if "saves" in wanted:
        after_import["oneof.train.checkpoint"] = lambda module: _set_saves(module, wanted["saves"])
    if "datasets" in wanted:
        after_import["oneof.data.catalogue"] = lambda module: _set_datasets(module, wanted["datasets"])
    if "memory" in wanted and is_worker():
        after_import["oneof.bench.running.engines"] = lambda module: _limit_tasks(module, wanted["memory"])
    if after_import:
        sys.meta_path.insert(0, _AfterImport(after_import))
    if "clock" in wanted:
        _jump(**wanted["clock"])
    if "kill" in wanted and not is_worker():
        _kill_at(**wanted["kill"])
    if "file_size" in wanted:
        resource.setrlimit(resource.RLIMIT_FSIZE, (wanted["file_size"], wanted["file_size"]))


def is_worker() -> bool:
    """Tell whether this process was started by another one to execute runs."""
    return "--multiprocessing-fork" in sys.orig_argv


class _AfterImport(importlib.abc.MetaPathFinder):
    """Calls a function with a module as soon as it was imported: importing it here would cost every process."""

    def __init__(self, functions) -> None:
        self.functions = functions

    def find_spec(self, name, path=None, target=None):
        function = self.functions.pop(name, None)
        if function is None:
            return None
        spec = importlib.util.find_spec(name)
        execute = spec.loader.exec_module

        def execute_and_call(module):
            execute(module)
            function(module)

        spec.loader.exec_module = execute_and_call
        return spec


def _set_saves(module, seconds: float) -> None:
    assert hasattr(module, "SECONDS_BETWEEN_SAVES"), "the name has changed: change it here too"
    module.SECONDS_BETWEEN_SAVES = seconds


def _set_datasets(module, entries) -> None:
    """Let entries of the catalogue describe small files: {name: {rows, shape, classes, files, archive}}."""
    for name, entry in entries.items():
        dataset = module.DATASETS[name]
        files = tuple(
            replace(file, **{key: tuple(v) if isinstance(v, list) else v for key, v in changes.items()})
            for file, changes in zip(dataset.files, entry["files"], strict=True)
        )
        archive = entry.get("archive")
        more = {key: tuple(entry[key]) for key in ("rows", "shape", "classes") if key in entry}
        if archive is not None:
            more["archive"] = module.Archive(tuple(archive["urls"]), archive["size"], archive["md5"])
        module.DATASETS[name] = replace(dataset, files=files, **more)


def _limit_tasks(module, more: int) -> None:
    """Let a worker have so many bytes beside those that it has when its first task begins."""
    execute = module.execute_task

    def limited(*arguments):
        module.execute_task = execute
        limit_memory(more)
        return execute(*arguments)

    assert callable(execute), "the name has changed: change it here too"
    module.execute_task = limited


def limit_memory(more: int) -> None:
    """Allow so many bytes beside those that the process has now."""
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + more, now + more))


def _jump(when: str, by: float) -> None:
    """From the moment in which a file appears on, the wall clock is ``by`` seconds off."""
    clock = time.time
    time.time = lambda: clock() + (by if os.path.exists(when) else 0.0)  # noqa: PTH110 - it is called often


def _kill_at(folder: str, event: int, delay: float) -> None:
    """Kill this process at its n-th change of a file in a folder, or some milliseconds later."""
    left = [event]

    def watch(name, arguments):
        if name not in ("open", "os.rename", "os.remove", "os.mkdir", "os.truncate") or not left[0]:
            return
        if name == "open" and not (isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)):
            return
        path = arguments[0]
        if not isinstance(path, str | bytes | os.PathLike) or not os.fsdecode(path).startswith(folder):
            return
        left[0] -= 1
        if not left[0]:
            if delay:
                threading.Timer(delay, os.kill, (os.getpid(), signal.SIGKILL)).start()
            else:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)
