"""Downloads from a local server that also lies, stalls and breaks off: a file is whole and right, or not there."""

import hashlib
import io
import stat
import subprocess
import sys
import tarfile
import threading
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from oneof.data import download, load_dataset
from oneof.data.catalogue import DATASETS
from oneof.io.files import replacing
from published import (
    archived,
    cifar_bytes,
    idx_gz,
    mat_bytes,
    member,
    published,
    put,
    small_images,
    small_table,
    tar_gz,
)

IMAGES, DIGITS = small_images(5, (28, 28)), np.arange(5, dtype=np.uint8)
FILES = [idx_gz(part) for part in (IMAGES, DIGITS, IMAGES[:2], DIGITS[:2])]
NAMES = [Path(file.path).name for file in DATASETS["mnist"].files]
ROWS = [cifar_bytes(small_images(1, (32, 32, 3), seed=i), [i]) for i in range(6)]


class Server(ThreadingHTTPServer):
    """Serves ``contents`` by their last name, in the manner of the first: /good/name, /stall/name, ..."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.contents, self.asked = {}, []
        self.closing = threading.Event()
        self.both = threading.Barrier(2, timeout=60)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        _, manner, name = self.path.split("/")
        self.server.asked.append(self.path)
        getattr(self, manner)(self.server.contents[name])

    def answer(self, content, length=None, status=200, **headers):
        self.send_response(status)
        self.send_header("Content-Length", str(len(content) if length is None else length))
        for header, value in headers.items():
            self.send_header(header.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(content)

    def good(self, content):
        self.answer(content)

    def together(self, content):
        """Answer only when two ask at the same time."""
        self.server.both.wait()
        self.answer(content)

    def encoded(self, content):
        self.answer(content, Content_Encoding="gzip")

    def moved(self, content):
        self.answer(b"", status=302, Location=self.path.replace("moved", "good"))

    def lie(self, content):
        self.answer(content[:-1] + bytes([content[-1] ^ 1]))

    def html(self, content):
        self.answer(b"<html>Please log in to the network.</html>", Content_Type="text/html")

    def absent(self, content):
        self.send_error(404)

    def broken(self, content):
        self.send_error(500)

    def cut(self, content):
        self.answer(content[: len(content) // 2], len(content))

    def empty(self, content):
        self.answer(b"")

    def stall(self, content):
        self.answer(content[:5], len(content))
        self.server.closing.wait(60)

    def silent(self, content):
        self.server.closing.wait(60)

    def endless(self, content):
        self.answer(content, 10**12)
        while not self.server.closing.is_set():
            self.wfile.write(bytes(2**16))


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with Server() as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield made
        made.closing.set()
        made.shutdown()
        thread.join()


@pytest.fixture
def mnist(server, monkeypatch):
    """Give a function that lets a small MNIST be served in these manners, one address after the other."""

    def serve(*manners, contents=FILES):
        server.contents = dict(zip(NAMES, contents, strict=True))
        dataset = published("mnist", contents)
        urls = [tuple(f"{server.url}/{manner}/{name}" for manner in manners) for name in NAMES]
        files = tuple(replace(file, urls=url) for file, url in zip(dataset.files, urls, strict=True))
        monkeypatch.setitem(DATASETS, "mnist", replace(dataset, files=files))
        return DATASETS["mnist"]

    return serve


def leaves(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@contextmanager
def one_sentence(error, match):
    with pytest.raises(error, match=match) as caught:
        yield
    assert "\n" not in str(caught.value)


def test_missing_files_are_downloaded_once(mnist, server, tmp_path):
    mnist("good")
    root = tmp_path / "new" / "folder"
    for _ in range(2):
        train, test = load_dataset("mnist", root)
        assert np.array_equal(train.x, IMAGES)
        assert test.y.tolist() == [0, 1]
    assert server.asked == [f"/good/{name}" for name in NAMES]
    assert leaves(root) == sorted(f"mnist/{name}" for name in NAMES)
    plain = tmp_path / "plain"
    plain.touch()
    assert {stat.S_IMODE((root / leaf).stat().st_mode) for leaf in leaves(root)} == {
        stat.S_IMODE(plain.stat().st_mode)
    }


def test_only_what_is_missing_is_downloaded(mnist, server, tmp_path):
    first, *_ = put(tmp_path, mnist("good"), FILES)
    first.unlink()
    load_dataset("mnist", tmp_path)
    assert server.asked == [f"/good/{NAMES[0]}"]


@pytest.mark.parametrize("manner", ["encoded", "moved"])
def test_servers_that_pack_or_redirect(mnist, tmp_path, manner):
    mnist(manner)
    assert load_dataset("mnist", tmp_path)[1].y.tolist() == [0, 1]


BAD = {
    "lie": r"it sends a file with the sha256 checksum \w{64}, not \w{64}",
    "html": r"it sends a file with the sha256 checksum \w{64}, not \w{64}",
    "empty": r"it sends a file with the sha256 checksum \w{64}, not \w{64}",
    "absent": "404 Not Found",
    "broken": "500 Internal Server Error",
    "cut": "the connection broke",
    "stall": "no answer in 1 s",
    "silent": "no answer in 1 s",
    "endless": r"it sends more than \d+ bytes",
}


@pytest.mark.parametrize("manner", BAD)
def test_a_bad_server_leaves_no_file_and_the_next_one_is_tried(mnist, server, tmp_path, monkeypatch, manner):
    if manner in ("stall", "silent"):
        monkeypatch.setattr(download, "TIMEOUT", 1.0)
    missing, *_ = put(tmp_path, mnist(manner), FILES)
    missing.unlink()
    address = f"{server.url}/{manner}/{NAMES[0]}"
    message = rf"no file '{missing}', and its download failed \({address}: {BAD[manner]}\); try again"
    with one_sentence(OSError, match=message):
        load_dataset("mnist", tmp_path)
    assert len(leaves(tmp_path)) == 3
    mnist(manner, "good")
    assert load_dataset("mnist", tmp_path)[0].y.tolist() == DIGITS.tolist()
    assert missing.read_bytes() == FILES[0]
    assert len(leaves(tmp_path)) == 4


def test_a_failed_download_leaves_good_files_alone(mnist, tmp_path):
    paths = put(tmp_path, mnist("absent"), FILES)
    paths[3].unlink()
    with one_sentence(OSError, match="t10k-labels-idx1-ubyte.gz', and its download failed .* 404 Not Found"):
        load_dataset("mnist", tmp_path)
    assert [path.read_bytes() for path in paths[:3]] == FILES[:3]
    assert len(leaves(tmp_path)) == 3


def test_a_failed_download_leaves_no_folder(mnist, cifar, tmp_path):
    mnist("absent")
    cifar(b"no archive")
    for name in ("mnist", "cifar-10"):
        with one_sentence(OSError, match="its download failed"):
            load_dataset(name, tmp_path / "new" / "folder")
        assert list(tmp_path.iterdir()) == []
    (tmp_path / "old").mkdir()
    with one_sentence(OSError, match="its download failed"):
        load_dataset("mnist", tmp_path / "old")
    assert list(tmp_path.rglob("*")) == [tmp_path / "old"]
    (tmp_path / "old" / "mnist").mkdir()  # was there before, and stays
    with one_sentence(OSError, match="its download failed"):
        load_dataset("mnist", tmp_path / "old")
    assert list((tmp_path / "old").iterdir()) == [tmp_path / "old" / "mnist"]


def test_offline(server, monkeypatch, tmp_path):
    server.server_close()
    monkeypatch.setitem(DATASETS, "mnist", published("mnist", FILES, f"{server.url}/good"))
    message = rf"no file '{tmp_path}/mnist/train-images.*\({server.url}.*: no connection\); try again, or get it"
    with one_sentence(OSError, match=message):
        load_dataset("mnist", tmp_path)


def test_without_pooch(mnist, server, tmp_path, monkeypatch):
    dataset = mnist("good")
    monkeypatch.setitem(sys.modules, "pooch", None)
    message = (
        rf"pooch, which downloads it, is missing; pip install oneof\[data\], or get .* from {server.url}/good"
    )
    with one_sentence(OSError, match=message):
        load_dataset("mnist", tmp_path)
    put(tmp_path, dataset, FILES)
    assert load_dataset("mnist", tmp_path)[1].y.tolist() == [0, 1]


def test_a_file_without_a_checksum_is_never_downloaded(server, tmp_path, monkeypatch):
    (content,) = contents = [mat_bytes(*small_table())]
    server.contents = {"Soccer Player.mat": content}
    dataset = published("soccer-player", contents, f"{server.url}/good")
    unknown = replace(dataset, files=(replace(dataset.files[0], sha256=""),))
    monkeypatch.setitem(DATASETS, "soccer-player", unknown)
    message = (
        r"no file '.*realworld/Soccer Player.mat', and it is not downloaded .* get it from https://palm.seu.edu.cn"
    )
    with one_sentence(OSError, match=message):
        load_dataset("soccer-player", tmp_path)
    assert server.asked == []


def test_a_folder_that_cannot_be_made(mnist, tmp_path):
    mnist("good")
    (tmp_path / "file").touch()
    with one_sentence(
        OSError, match=r"the folder '.*file/mnist' for downloads cannot be made \(Not a directory\); pass"
    ):
        load_dataset("mnist", tmp_path / "file")


def test_progress_in_plain_lines(mnist, tmp_path, capsys):
    mnist("good")
    load_dataset("mnist", tmp_path)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        f"{name} from {DATASETS['mnist'].files[0].urls[0].split('/')[2]}: 100 %" for name in NAMES
    ]


def test_progress_on_a_terminal(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    with download.Meter("[bold]file.gz", 50) as meter:
        meter.show(25)
        meter.show(50)
    assert "[bold]file.gz" in sys.stderr.getvalue()
    assert "100%" in sys.stderr.getvalue()


def test_two_processes_download_at_once(mnist, server, tmp_path):
    """Each address answers only when both processes ask for the file at the same time."""
    dataset = mnist("together")
    script = f"""
import sys
from oneof.data.catalogue import *
DATASETS["mnist"] = {dataset!r}
from oneof.data import load_dataset
train, test = load_dataset("mnist", {str(tmp_path)!r})
print(train.y.tolist(), int(test.x.sum()))
"""
    processes = [
        subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for process in processes:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        assert out.split("\n")[0] == f"[0, 1, 2, 3, 4] {int(IMAGES[:2].astype(int).sum())}"
    assert len(server.asked) == 8
    assert leaves(tmp_path) == sorted(f"mnist/{name}" for name in NAMES)


@pytest.fixture
def cifar(server, monkeypatch):
    """Give a function that lets a small CIFAR-10 be served as this archive."""

    def serve(archive):
        server.contents = {"archive.tar.gz": archive}
        dataset = archived(published("cifar-10", ROWS), archive, f"{server.url}/good/archive.tar.gz")
        monkeypatch.setitem(DATASETS, "cifar-10", dataset)
        return dataset

    return serve


PATHS = [file.path for file in DATASETS["cifar-10"].files]
MEMBERS = [member(path, row) for path, row in zip(PATHS, ROWS, strict=True)]
FOLDER = member("cifar-10-batches-bin", type=tarfile.DIRTYPE)


def test_an_archive_gives_its_files_and_nothing_else(cifar, server, tmp_path):
    cifar(tar_gz(FOLDER, member("cifar-10-batches-bin/readme.html", b"words"), *MEMBERS[::-1]))
    for _ in range(2):
        train, test = load_dataset("cifar-10", tmp_path)
        assert [*train.y, *test.y] == [0, 1, 2, 3, 4, 5]
    assert len(server.asked) == 1
    assert leaves(tmp_path) == sorted(PATHS)
    assert [path.name for path in tmp_path.iterdir()] == ["cifar-10-batches-bin"]


def test_an_archive_does_not_replace_files_that_are_there(cifar, tmp_path):
    dataset = cifar(tar_gz(*MEMBERS))
    paths = put(tmp_path, dataset, ROWS)
    paths[2].unlink()
    before = [path.stat().st_ino for path in paths if path.exists()]
    load_dataset("cifar-10", tmp_path)
    assert [path.stat().st_ino for path in paths if path != paths[2]] == before


EVIL = "../../evil", "/tmp/oneof-evil", "cifar-10-batches-bin/../../evil"


@pytest.mark.parametrize("name", EVIL, ids=["up", "absolute", "through"])
def test_members_that_lead_outside_are_not_unpacked(cifar, tmp_path, name):
    root = tmp_path / "a" / "b"
    cifar(tar_gz(member(name, b"evil"), *MEMBERS))
    load_dataset("cifar-10", root)
    assert leaves(tmp_path) == sorted(f"a/b/{path}" for path in PATHS)
    assert not Path("/tmp/oneof-evil").exists()


@pytest.mark.parametrize(
    ("archive", "message"),
    [
        (tar_gz(*MEMBERS[1:]), "'cifar-10-batches-bin/data_batch_1.bin' is not in the archive"),
        (
            tar_gz(member(PATHS[0], type=tarfile.SYMTYPE, linkname="/etc/passwd"), *MEMBERS[1:]),
            "data_batch_1.bin' in the archive is no regular file",
        ),
        (
            tar_gz(MEMBERS[1], member(PATHS[0], type=tarfile.LNKTYPE, linkname=PATHS[1])),
            "data_batch_1.bin' in the archive is no regular file",
        ),
        (tar_gz(member(PATHS[0], type=tarfile.DIRTYPE)), "is no regular file"),
        (tar_gz(member(PATHS[0], type=tarfile.FIFOTYPE)), "is no regular file"),
        (tar_gz(member(PATHS[0], bytes(3074))), "data_batch_1.bin' in the archive has 3074 bytes, more than 3073"),
        (
            tar_gz(member("other", bytes(10**7)), *MEMBERS),
            "'other' in the archive has 10000000 bytes, more than 3073",
        ),
        (tar_gz(member(PATHS[0], bytes(3073))), "data_batch_1.bin' in the archive has the sha256 checksum"),
        (tar_gz(*MEMBERS)[:2000], "ended before the end-of-stream|unexpected end of data"),
        (b"no archive", "not a gzip file"),
        (idx_gz(IMAGES), "data_batch_1.bin' is not in the archive|invalid header|truncated header"),
    ],
    ids=range(11),
)
def test_hostile_archives(cifar, tmp_path, archive, message):
    cifar(archive)
    with one_sentence(OSError, match=rf"data_batch_1.bin', and its download failed \(.*({message})"):
        load_dataset("cifar-10", tmp_path)
    assert not (tmp_path / PATHS[0]).exists()
    for leaf in leaves(tmp_path):  # those that came before were whole
        assert (tmp_path / leaf).read_bytes() == ROWS[PATHS.index(leaf)]


def test_an_archive_with_a_wrong_checksum_is_not_opened(cifar, tmp_path, monkeypatch):
    dataset = cifar(tar_gz(*MEMBERS))
    wrong = replace(dataset, archive=replace(dataset.archive, md5=hashlib.md5(b"other").hexdigest()))
    monkeypatch.setitem(DATASETS, "cifar-10", wrong)
    with one_sentence(OSError, match="it sends a file with the md5 checksum"):
        load_dataset("cifar-10", tmp_path)
    assert leaves(tmp_path) == []


@pytest.mark.parametrize("moment", ["_download", "_unpack"])
def test_what_a_killed_download_left_is_gone_after_the_next_call(cifar, tmp_path, moment):
    """Killed when the archive has arrived, and when all files have been taken out of it."""
    dataset = cifar(tar_gz(*MEMBERS))
    script = f"""
import os
from oneof.data import download, load_dataset
from oneof.data.catalogue import *
DATASETS["cifar-10"] = {dataset!r}
function = download.{moment}
download.{moment} = lambda *args, **more: (function(*args, **more), os.kill(os.getpid(), 9))
load_dataset("cifar-10", {str(tmp_path)!r})
"""
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, check=False).returncode == -9
    assert len(leaves(tmp_path)) == (1 if moment == "_download" else 1 + len(PATHS))
    load_dataset("cifar-10", tmp_path)
    assert leaves(tmp_path) == sorted(PATHS)
    assert [path.name for path in tmp_path.iterdir()] == ["cifar-10-batches-bin"]


def test_two_writers_of_one_file_do_not_meet(tmp_path):
    path = tmp_path / "file"
    with replacing(path) as first, replacing(path) as second:
        first.write_text("first")
        second.write_text("second")
    assert path.read_text() == "first"  # the last to finish
    assert leaves(tmp_path) == ["file"]


def test_what_a_killed_writer_left_is_taken_over(tmp_path):
    path = tmp_path / "file"
    with replacing(path) as part:
        left = part
        part.write_text("x" * 100)
    left.write_text("y" * 200)
    with replacing(path) as part:
        part.write_text("whole")
    assert path.read_text() == "whole"
    assert leaves(tmp_path) == ["file"]


def test_a_writer_that_fails_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")

    def write_half():
        with replacing(path) as part:
            part.write_text("half")
            raise KeyError

    with pytest.raises(KeyError):
        write_half()
    assert path.read_text() == "old"
    assert leaves(tmp_path) == ["file"]
