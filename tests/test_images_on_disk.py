"""Images that stay on disk: decoded once into a file, whole or not at all; models are those in memory."""

import errno
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from PIL import Image

import oneof
from oneof.data import decode_images, decoding, folder, load_images
from test_cli import succeed

CLASSES = np.array(["blue", "green", "red"])


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(folder, "free_memory", lambda: 4000)  # of which a quarter is taken
    return tmp_path / "cache" / "oneof" / "large-images"


def images(base, count=60, side=12, gray=False):
    """Write pictures of three colours as PNG and JPEG, and a table of them; return their paths."""
    rng = np.random.default_rng(0)
    names = [f"{row:03}.{'jpg' if row % 2 else 'png'}" for row in range(count)]
    lines = ["file,candidates"]
    for row, name in enumerate(names):
        pixels = rng.integers(0, 60, (side, side, 3), dtype=np.uint8)
        pixels[..., 2 - row % 3] += 120
        picture = Image.fromarray(pixels)
        (picture.convert("L") if gray else picture).save(base / name)
        lines.append(f"{name},{CLASSES[row % 3]}|{CLASSES[rng.integers(3)]}")
    (base / "images.csv").write_text("\n".join(lines))
    return [base / name for name in names]


def in_memory(monkeypatch):
    monkeypatch.setattr(folder, "free_memory", lambda: 10**9)


@pytest.mark.parametrize("gray", [False, True])
@pytest.mark.filterwarnings("ignore:decoded images of .* stay on disk")
def test_the_file_holds_what_would_be_in_memory(tmp_path, cache, monkeypatch, gray):
    paths = images(tmp_path, gray=gray)
    mapped = decode_images(paths, workers=3)
    assert isinstance(mapped, np.memmap)
    assert not mapped.flags.writeable
    expected = decode_images(paths, cache=False)
    assert type(expected) is np.ndarray
    assert np.array_equal(mapped, expected)
    (store,) = cache.iterdir()
    assert np.array_equal(np.load(store), expected)
    monkeypatch.setattr(folder, "decode_to", None)  # from here on, decoding fails
    assert isinstance(decode_images(paths), np.memmap)
    in_memory(monkeypatch)
    again = decode_images(paths)
    assert type(again) is np.ndarray
    assert np.array_equal(again, expected)


def test_only_large_images_stay_on_disk_and_say_so(tmp_path, cache, monkeypatch, capsys):
    paths = images(tmp_path)
    assert not isinstance(decode_images(paths[:2]), np.memmap)
    assert not isinstance(decode_images(paths[:2]), np.memmap)  # from the cache
    assert not cache.exists()
    with pytest.warns(
        UserWarning, match=r"decoded images of 1\.3 kB stay on disk in '.*large-images'; oneof cache"
    ):
        decode_images(paths[:3])
    decode_images(paths, progress=True)
    assert "decoding images: 100 %" in (said := capsys.readouterr().err)
    assert "decoded images of 25.9 kB stay on disk in" in said
    decode_images(paths, cache=tmp_path / "own", progress=True)
    assert len(list((tmp_path / "own").iterdir())) == 1
    monkeypatch.setattr(folder, "free_memory", lambda: None)
    assert not isinstance(decode_images(paths), np.memmap)
    assert succeed("cache", "--kind", "large-images").stdout.splitlines()[1].split()[:3] == [
        "large-images",
        "2",
        "27.5",
    ]
    assert "large-images: removed" in succeed("cache", "--clear", "--kind", "large-images").stdout
    assert list(cache.iterdir()) == []


@pytest.mark.filterwarnings("ignore:decoded images of .* stay on disk", "ignore:warm_up is 10")
@pytest.mark.parametrize(
    "settings", [{"network": "lenet"}, {"network": "lenet", "views": "weak"}, {"network": "linear"}]
)
@pytest.mark.parametrize("method", [oneof.PRODEN, oneof.IDGP])
def test_the_model_is_that_of_the_images_in_memory(tmp_path, monkeypatch, method, settings):
    images(tmp_path, side=28)
    fits, scores = [], []
    for place in ("disk", "memory"):
        data = load_images(tmp_path / "images.csv", cache=None if place == "disk" else False)
        assert isinstance(data.x, np.memmap) == (place == "disk")
        model = method(**settings, epochs=2, batch_size=16, validation_fraction=0.2, random_state=0, device="cpu")
        fits.append(model.fit(data.x, data.candidates))
        scores.append(
            [
                model.history_["validation_score"],
                model.predict_proba(data.x),
                model.predict(data.x),
                model.disambiguate(data.x, data.candidates),
                model.score(data.x, data.candidates.argmax(1)),
            ]
        )
    disk, memory = (fit.network_.state_dict() for fit in fits)
    assert all(np.array_equal(disk[name], memory[name]) for name in memory)
    assert np.array_equal(fits[0].label_distributions_, fits[1].label_distributions_)
    assert all(np.array_equal(*each) for each in zip(*scores, strict=True))


def test_commands_take_them_too(tmp_path, cache, monkeypatch):
    images(tmp_path, side=28)
    table, made = tmp_path / "images.csv", []
    for place in ("disk", "memory"):
        if place == "memory":
            in_memory(monkeypatch)
            succeed("cache", "--clear")
        model, out, marked = (tmp_path / f"{place}.{end}" for end in ("safetensors", "csv", "jsonl"))
        sets = ["--candidates", "candidates", "--separator", "|"]
        settings = ["--method", "cc", "--set", "network=lenet", "--set", "epochs=2", "--seed", "0"]
        succeed("fit", table, "--images", "file", *sets, *settings, "--out", model)
        succeed("predict", model, table, "--images", "file", "--out", out)
        succeed("disambiguate", model, table, "--images", "file", *sets, "--out", marked)
        assert bool(list(cache.iterdir())) == (place == "disk")
        made.append([each.read_bytes() for each in (model, out, marked)])
    assert made[0] == made[1]


GROWTH = """
import sys, threading, time
from pathlib import Path
import numpy as np
import oneof
from oneof.data import decode_images, folder
from oneof.train import rows
folder.free_memory, rows._CELLS, peak = lambda: 10**6, 2**20, 0

def watch():
    global peak
    while True:
        lines = Path("/proc/self/status").read_text().splitlines()
        peak = max(peak, *(int(line.split()[1]) for line in lines if line.startswith("RssAnon")))
        time.sleep(0.002)

threading.Thread(target=watch, daemon=True).start()
for count in (300, 1800):
    files = [Path(sys.argv[1]) / f"{row % 50}.png" for row in range(count)]
    images = decode_images(files, size=112, progress=True)
    model = oneof.CC(network="linear", epochs=1, batch_size=50, validation_fraction=0.1, device="cpu")
    model.fit(images, np.arange(count) % 4).predict(images)
    print(1024 * peak)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="/proc says what is in memory")
def test_memory_does_not_grow_with_the_images(tmp_path):
    images(tmp_path, count=100)
    for row in range(50):
        (tmp_path / f"{2 * row:03}.png").rename(tmp_path / f"{row}.png")
    out = subprocess.run(
        [sys.executable, "-c", GROWTH, tmp_path], capture_output=True, text=True, check=True
    ).stdout
    few, many = map(int, out.split())
    assert many - few < 1500 * 112 * 112 * 3 * 2 / 3  # allocators keep some of what is given back


def test_decoding_holds_no_more_than_what_is_being_decoded(tmp_path):
    paths = images(tmp_path, count=40, side=16)
    tracemalloc.start()
    mapped = decode_images(paths, size=400, progress=True, workers=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < mapped.nbytes / 4


def test_a_killed_decode_leaves_nothing_that_is_taken_for_whole(tmp_path, cache):
    paths = images(tmp_path)
    slow = (
        "import sys, time\nfrom oneof.data import decoding, folder\nfolder.free_memory = lambda: 4000\n"
        "decoding._BLOCK, read = 10, decoding._read_pixels\n"
        "def slowly(path, *given):\n"
        "    if path.name.startswith('045'): print('half', flush=True); time.sleep(60)\n"
        "    return read(path, *given)\n"
        "decoding._read_pixels = slowly\nfolder.decode_images(sys.argv[1:], workers=1)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", slow, *paths], stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"half\n"
    child.kill()
    child.wait()
    child.stdout.close()
    (part,) = cache.iterdir()
    assert part.suffix == ".part"
    assert part.stat().st_size > 1000
    assert np.array_equal(decode_images(paths, progress=True), decode_images(paths, cache=False))
    assert not part.exists()
    assert [each.suffix for each in cache.iterdir()] == [".npy"]


def test_damaged_images_are_named_and_leave_nothing(tmp_path, cache):
    paths = images(tmp_path)
    whole = paths[10].read_bytes()
    paths[10].write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"no image can be read from '.*010\.png' \(.*; mend the files or drop"):
        decode_images(paths)
    assert list(cache.iterdir()) == []
    paths[10].write_bytes(whole)
    (cache / "kept").touch()
    decode_images(paths, progress=True)
    (store,) = cache.glob("*.npy")
    store.write_bytes(store.read_bytes()[:-5])  # a damaged file is made anew
    assert np.array_equal(decode_images(paths, progress=True), decode_images(paths, cache=False))


@pytest.mark.parametrize("when", ["before", "while"])
def test_a_full_disk_is_one_sentence(tmp_path, cache, monkeypatch, when):
    paths = images(tmp_path)
    if when == "before":
        monkeypatch.setattr(folder.shutil, "disk_usage", lambda path: type("Room", (), {"free": 7000}))
        words = "7.0 kB are free there"
    else:
        monkeypatch.setattr(folder, "decode_to", fails := Full(decoding.decode_to))
        words = "No space left on device"
    with pytest.raises(ValueError, match=rf"60 images .* do not fit into memory.* 25\.9 kB.*\({words}\); pass a"):
        decode_images(paths)
    assert list(cache.iterdir()) == []
    if when == "while":
        assert 0 < fails.written < 60


class Full:
    """Decodes to a file on a disk that has room for 20 images."""

    def __init__(self, decode_to):
        self.decode_to, self.written = decode_to, 0

    def __call__(self, file, *given):
        self.file = file
        self.decode_to(self, *given)

    def tell(self):
        return self.file.tell()

    def seek(self, place):
        self.file.seek(place)

    def write(self, content):
        if self.written == 20:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.written += 1
        self.file.write(content)
