"""The cache folder: it says what it holds, keeps within its limit, and is emptied on request."""

import os
import time
import warnings

import numpy as np
import pytest
from PIL import Image

from oneof.data import decode_images
from oneof.data.cache import cache_usage, clear_cache, image_limit, make_room, size_text
from test_cli import fail, succeed

ONE = 10_000  # bytes of an array of 100 x 100


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("ONEOF_IMAGE_CACHE_GB", raising=False)
    return tmp_path / "cache" / "oneof"


def image(folder, number):
    path = folder / f"{number}.png"
    Image.fromarray(np.full((100, 100), number, np.uint8)).save(path)
    return path


def limit_to(monkeypatch, images):
    monkeypatch.setenv("ONEOF_IMAGE_CACHE_GB", str((images + 0.5) * ONE / 1e9))


def filled(cache):
    for kind, name, size in [
        ("images", "a.npy", 3000),
        ("images", "b.npy", 500),
        ("images", "notes.txt", 7),
        ("annotators", "c.safetensors", 2_000_000),
    ]:
        (cache / kind).mkdir(parents=True, exist_ok=True)
        (cache / kind / name).write_bytes(bytes(size))
    (cache / "mnist").mkdir()
    (cache / "mnist" / "train.gz").write_bytes(b"x")


def test_what_the_cache_holds(cache):
    assert [(each.kind, each.files, each.size) for each in cache_usage()] == [
        ("images", 0, 0),
        ("large-images", 0, 0),
        ("annotators", 0, 0),
        ("candidates", 0, 0),
        ("kernels", 0, 0),
        ("tables", 0, 0),
    ]
    filled(cache)
    assert [(each.kind, each.files, each.size) for each in cache_usage()] == [
        ("images", 2, 3500),
        ("large-images", 0, 0),
        ("annotators", 1, 2_000_000),
        ("candidates", 0, 0),
        ("kernels", 0, 0),
        ("tables", 0, 0),
    ]


def test_clearing_removes_what_was_asked_and_nothing_else(cache):
    filled(cache)
    (removed,) = clear_cache(["images"])
    assert (removed.files, removed.size, removed.folder) == (2, 3500, cache / "images")
    assert [each.files for each in cache_usage()] == [0, 0, 1, 0, 0, 0]
    assert [each.files for each in clear_cache()] == [0, 0, 1, 0, 0, 0]
    left = sorted(path.name for path in cache.rglob("*") if path.is_file())
    assert left == ["notes.txt", "train.gz"]


def test_what_was_never_written_to_the_end_is_cleared_after_a_day(cache):
    filled(cache)
    fresh, old = cache / "images" / "d.npy.part", cache / "images" / "e.npy.part"
    for path in (fresh, old):
        path.write_bytes(b"half")
    os.utime(old, (time.time() - 90_000,) * 2)
    clear_cache()
    assert fresh.exists()
    assert not old.exists()


def test_the_oldest_files_go_first(cache):
    filled(cache)
    os.utime(cache / "images" / "b.npy", ns=(1, 1))
    assert make_room(cache / "images", 10_000) == []
    assert make_room(cache / "images", 3400) == [500]
    assert make_room(cache / "images", 0) == [3000]
    assert make_room(cache / "nowhere", 0) == []


@pytest.mark.filterwarnings("ignore:the cache of decoded images")
def test_images_are_kept_within_the_limit_by_last_use(tmp_path, cache, monkeypatch):
    limit_to(monkeypatch, images=3)
    paths = [image(tmp_path, number) for number in range(5)]
    stores = {}
    for number in (0, 1, 2):
        before = set((cache / "images").glob("*")) if number else set()
        decode_images([paths[number]])
        (stores[number],) = set((cache / "images").iterdir()) - before
    for number, store in stores.items():
        os.utime(store, ns=(number + 1, number + 1))
    decode_images([paths[0]])  # used again: now 1 is the oldest
    decode_images([paths[3]])
    assert [number for number, store in stores.items() if store.exists()] == [0, 2]
    assert cache_usage(["images"])[0].size < 3.5 * ONE


def test_the_cache_says_where_it_is_and_how_large(tmp_path, cache, monkeypatch, capsys):
    limit_to(monkeypatch, images=6)
    paths = [image(tmp_path, number) for number in range(8)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        decode_images([paths[0]])
        assert capsys.readouterr().err == ""
        decode_images([paths[1]], progress=True)
        assert (
            f"decoded images in '{cache / 'images'}' holds 20.3 kB of 65.0 kB; oneof cache"
            in capsys.readouterr().err
        )
        decode_images([paths[2]])
    with pytest.warns(UserWarning, match=r"holds 40\.5 kB of 65\.0 kB; oneof cache --clear empties it"):
        decode_images([paths[3]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for path in paths[:6]:
            decode_images([path])
    with pytest.warns(
        UserWarning, match="the removal of 1 of the files used longest ago; set ONEOF_IMAGE_CACHE_GB"
    ):
        decode_images([paths[6]])


def test_images_larger_than_the_limit_are_not_kept(tmp_path, cache, monkeypatch):
    limit_to(monkeypatch, images=1)
    paths = [image(tmp_path, number) for number in range(2)]
    with pytest.warns(
        UserWarning, match=r"20\.0 kB are not kept, since the cache holds at most 15\.0 kB.*set ONEOF"
    ):
        decode_images(paths)
    assert not (cache / "images").exists()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        decode_images(paths, cache=tmp_path / "own")  # a folder of one's own has no limit
        monkeypatch.setenv("ONEOF_IMAGE_CACHE_GB", "")
        decode_images(paths)
    assert image_limit() == 2_000_000_000


@pytest.mark.parametrize("text", ["much", "-1", "nan", "inf", "2 GB"])
def test_a_limit_is_a_number_of_gigabytes(tmp_path, monkeypatch, text):
    monkeypatch.setenv("ONEOF_IMAGE_CACHE_GB", text)
    with pytest.raises(ValueError, match=f"ONEOF_IMAGE_CACHE_GB is '{text}', but must be a number of gigabytes"):
        decode_images([image(tmp_path, 0)])


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 bytes"), (999, "999 bytes"), (1500, "1.5 kB"), (3.14e6, "3.1 MB"), (2e9, "2.0 GB")]
)
def test_sizes_in_words(size, text):
    assert size_text(int(size)) == text


def test_the_command_lists_and_clears(cache):
    filled(cache)
    lines = succeed("cache").stdout.splitlines()
    assert lines[0].split() == ["kind", "files", "size", "meaning", "folder"]
    assert lines[1].split()[:4] == ["images", "2", "3.5", "kB"]
    assert str(cache / "annotators") in lines[3]
    assert len(succeed("cache", "--kind", "images", "--kind", "candidates").stdout.splitlines()) == 3
    said = succeed("cache", "--clear", "--kind", "annotators").stdout
    assert said == f"annotators: removed 2.0 MB in 1 file, from {cache / 'annotators'}\n"
    assert len(succeed("cache", "--clear").stdout.splitlines()) == 6
    assert [each.files for each in cache_usage()] == [0, 0, 0, 0, 0, 0]
    assert "'films' is not one of" in fail("cache", "--kind", "films")
