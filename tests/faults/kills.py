"""kill -9 at random moments: of fits, plans, reports, predictions and downloads."""

import hashlib
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np

from faults import lab
from faults.harness import Attempt, Case, LostError, check_leaves, leaves
from oneof.data.catalogue import DATASETS
from published import cifar_bytes, idx_gz, member, small_images, tar_gz

_KILLS = 3  # of one piece of work, before it may come to its end


def disturb(
    attempt: Attempt, words: Sequence[Any], folder: Path, seconds: float, events: int, **faults: Any
) -> bool:
    """Start a command and kill it: at a random moment, or at (or just after) a random change of a file.

    Returns whether it was killed before its end.
    """
    if attempt.chance.random() < 0.5:
        kill = {"folder": str(folder), "event": attempt.chance.randint(1, events)}
        delay = attempt.chance.choice([0.0, attempt.chance.uniform(0, 0.003)])
        command = attempt.start(*words, **faults, kill={**kill, "delay": delay})
    else:
        moment = time.monotonic() + attempt.chance.uniform(0.4, 1.0) * seconds
        command = attempt.start(*words, **faults)
        if command.wait_until(lambda: time.monotonic() > moment):
            command.kill()
    killed = command.wait().code == -signal.SIGKILL
    attempt.kills += killed
    return killed


def fit_with_checkpoint(attempt: Attempt, method: str) -> None:
    """The model of a fit that was killed and resumed has the bytes of an undisturbed one."""
    expected, place = lab.model(attempt, method), attempt.folder / "fit"
    place.mkdir()
    words = [*lab.fit_words(attempt, method, place / "model"), "--set", f"checkpoint={place / 'fit.ckpt'}"]
    for _ in range(_KILLS):
        if not disturb(attempt, words, place, expected.seconds, 4 * lab.EPOCHS, **lab.EVERY_EPOCH):
            break
    attempt.must_succeed(*words, **lab.EVERY_EPOCH)
    if (place / "model").read_bytes() != expected.content:
        raise LostError("the model differs from the undisturbed one")
    check_leaves(place, ["fit.ckpt", "model"])


def fit_over_a_model(attempt: Attempt) -> None:
    """The model file is the old one or the new one, also in the moment of the kill."""
    old, new = lab.model(attempt, "pico", 2, 1), lab.model(attempt, "pico", 2, 0)
    place = attempt.folder / "fit"
    place.mkdir()
    path, had = place / "model", attempt.chance.random() < 0.5
    if had:
        path.write_bytes(old.content)
    words = lab.fit_words(attempt, "pico", path, 2, 0)
    disturb(attempt, words, place, new.seconds, 6)
    if path.exists() and path.read_bytes() not in (old.content, new.content):
        raise LostError("the model file is neither the old nor the new one")
    if had and not path.exists():
        raise LostError("the old model file is gone")
    attempt.must_succeed(*words)
    if path.read_bytes() != new.content:
        raise LostError("the model differs from the undisturbed one")
    check_leaves(place, ["model"])


def prediction(attempt: Attempt) -> None:
    """The file of predictions is whole or not there."""
    model, expected = lab.predictions(attempt)
    place = attempt.folder / "out"
    place.mkdir()
    words = ["predict", model, lab.table(attempt), "--out", place / "out.csv"]
    disturb(attempt, words, place, expected.seconds, 5)
    if (place / "out.csv").exists() and (place / "out.csv").read_bytes() != expected.content:
        raise LostError("the file of predictions is neither whole nor absent")
    attempt.must_succeed(*words)
    check_leaves(place, ["out.csv"])


def plan(attempt: Attempt) -> None:
    """The ledger of a plan that was killed and continued says what an undisturbed one says."""
    usual = lab.ledger(attempt)
    path, ledger = lab.write_plan(attempt.folder), attempt.folder / "results" / "ledger.jsonl"
    ledger.parent.mkdir()
    faults = lab.problem(attempt).faults
    words = lab.run_words(attempt, path, ledger, workers=attempt.chance.choice([1, 2]))
    finished: set[str] = set()
    for _ in range(_KILLS):
        killed = disturb(attempt, words, ledger.parent, usual.seconds, 60, **faults)
        keys = set(lab.done_keys(ledger))
        if finished - keys:
            raise LostError(f"{len(finished - keys)} finished records are gone after a kill")
        finished |= keys
        if not killed:
            break
    lab.finish_plan(attempt, path, ledger)


def report(attempt: Attempt) -> None:
    """Each file of a report is whole: the old one, the new one or not there."""
    new, old, half, seconds = lab.reports(attempt)
    made, folder = lab.ledger(attempt), attempt.folder / "report"
    had, faults = attempt.chance.random() < 0.5, lab.problem(attempt).faults
    if had:
        attempt.must_succeed("report", "--plan", made.plan, "--out", folder, half, **faults)
    words = ["report", "--plan", made.plan, "--out", folder, made.path]
    disturb(attempt, words, folder, seconds, 4 * len(new), **faults)
    for name in new:
        path = folder / name
        if path.exists() and path.read_bytes() not in (new[name], old[name]):
            raise LostError(f"{name} is neither whole nor the old one")
        if had and not path.exists():
            raise LostError(f"the old {name} is gone")
    attempt.must_succeed(*words, **faults)
    check_leaves(folder, new)
    if any((folder / name).read_bytes() != content for name, content in new.items()):
        raise LostError("the report differs from the undisturbed one")


class _Slow(BaseHTTPRequestHandler):
    """Sends contents in small pieces."""

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        server: Any = self.server
        content = server.contents[self.path.rpartition("/")[2]]
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        step = max(1, len(content) // 10)
        try:
            for start in range(0, len(content), step):
                self.wfile.write(content[start : start + step])
                self.wfile.flush()
                time.sleep(server.pause)
        except OSError:  # the other side was killed
            pass


@contextmanager
def _served(contents: dict[str, bytes], pause: float) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Slow) as server:
        server.daemon_threads = True
        server.contents, server.pause = contents, pause
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def download(attempt: Attempt, name: str) -> None:
    """Every file of a data set is whole or not there; the next call gets the rest and leaves nothing behind."""
    images, digits = small_images(40, (28, 28)), np.arange(40, dtype=np.uint8) % 10
    if name == "mnist":
        contents = [idx_gz(part) for part in (images, digits, images[:4], digits[:4])]
    else:
        contents = [cifar_bytes(small_images(2, (32, 32, 3), seed=i), [i, i]) for i in range(6)]
    paths = [file.path for file in DATASETS[name].files]
    archive = tar_gz(*[member(path, content) for path, content in zip(paths, contents, strict=True)])
    served = {Path(path).name: content for path, content in zip(paths, contents, strict=True)}
    with _served(served | {"archive.tar.gz": archive}, pause=0.04) as url:
        faults = {"datasets": {name: _entry(paths, contents, archive if name != "mnist" else None, url)}}
        root = attempt.folder / "data"
        words = ["corrupt", name, "--process", "uniform", "--rate", 0.1, "--data", root, "--quiet"]
        words += ["--out", attempt.folder / "sets.npz"]
        if attempt.chance.random() < 0.5:
            disturb(attempt, words, root, 5.0, 12, **faults)
        else:  # while bytes arrive
            command = attempt.start(*words, **faults)
            command.wait_until(lambda: root.exists() and bool(leaves(root)))
            time.sleep(attempt.chance.uniform(0, 1.2))
            command.kill()
            attempt.kills += command.wait().code != 0
        _check_files(root, paths, contents)
        attempt.must_succeed(*words, **faults)
        _check_files(root, paths, contents)
        check_leaves(root, paths)
        if litter := [path.name for path in root.iterdir() if path.name.startswith(".")]:
            raise LostError(f"folders of the killed download stay: {litter}")


def _entry(paths: list[str], contents: list[bytes], archive: bytes | None, url: str) -> dict[str, Any]:
    """The entry of the catalogue for files of this content at this address."""
    files = [
        {
            "size": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
            "urls": [f"{url}/{Path(path).name}"],
        }
        for path, content in zip(paths, contents, strict=True)
    ]
    if archive is None:
        return {"files": files}
    md5 = hashlib.md5(archive, usedforsecurity=False).hexdigest()
    return {"files": files, "archive": {"urls": [f"{url}/archive.tar.gz"], "size": len(archive), "md5": md5}}


def _check_files(root: Path, paths: list[str], contents: list[bytes]) -> None:
    for path, content in zip(paths, contents, strict=True):
        if (root / path).exists() and (root / path).read_bytes() != content:
            raise LostError(f"{path} is not whole")


def cases() -> list[Case]:
    """All cases of this module."""
    fits = [
        Case(
            f"kill-fit-{method}",
            f"kill -9 of `oneof fit` with checkpoints, up to {_KILLS} times, {method}: the same bytes",
            3,
            partial(fit_with_checkpoint, method=method),
        )
        for method in lab.SETTINGS
    ]
    return [
        *fits,
        Case("kill-fit-out", "kill -9 of `oneof fit` as it replaces a model: old or new", 6, fit_over_a_model),
        Case("kill-predict", "kill -9 of `oneof predict`: the table is whole or not there", 4, prediction),
        Case("kill-run", f"kill -9 of `oneof run`, up to {_KILLS} times: the same ledger", 6, plan),
        Case("kill-report", "kill -9 of `oneof report`: files are whole, old or not there", 6, report),
        Case(
            "kill-download",
            "kill -9 of a download of files: whole or not there",
            5,
            partial(download, name="mnist"),
        ),
        Case(
            "kill-archive",
            "kill -9 of a download of an archive: whole or not there",
            3,
            partial(download, name="cifar-10"),
        ),
    ]
