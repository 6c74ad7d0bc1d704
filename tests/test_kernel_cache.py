"""Compiled kernels are kept: one file for each source, kind of GPU and compiler; what is damaged is made anew."""

import pytest
import torch

from oneof.data.cache import cache_usage
from oneof.kernels import binaries
from oneof.kernels.binaries import Binary, key
from oneof.kernels.launch import source

SOURCE, NAME, GPU = source("common"), "add_up_parts", (9, 0)


class Compiler:
    """Makes a binary of its own for each call, and loads what is whole."""

    def __init__(self):
        self.made, self.loaded = 0, []

    def compile_kernel(self, text, name):
        self.made += 1
        return Binary(bytes(range(256)) * 40 + text.encode() + b"\0", f"_Z{name}{self.made}")

    def load(self, binary):
        self.loaded.append(binary)
        return binary.symbol

    def kernel(self, text=SOURCE, name=NAME, gpu=GPU):
        return binaries.kernel(text, name, gpu, self.compile_kernel, self.load)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "oneof" / "kernels"


@pytest.fixture
def compiler(folder):
    return Compiler()


def test_a_kernel_is_compiled_once(compiler, folder):
    assert [compiler.kernel() for _ in range(3)] == [f"_Z{NAME}1"] * 3
    assert compiler.made == 1
    assert compiler.loaded[0] == compiler.loaded[2]  # the code too, zeros at its end among it
    assert Compiler().kernel() == f"_Z{NAME}1"  # as another process
    (usage,) = (usage for usage in cache_usage() if usage.kind == "kernels")
    assert (usage.files, usage.folder) == (1, folder)
    assert [path.suffix for path in folder.iterdir()] == [".safetensors"]


CHANGES = {
    "source": lambda patch: {"text": SOURCE + "\n"},
    "name": lambda patch: {"name": "add_up_parts<2>"},
    "GPU": lambda patch: {"gpu": (8, 0)},
    "torch": lambda patch: patch.setattr(torch, "__version__", type(torch.__version__)("2.99.0")),
    "CUDA": lambda patch: patch.setattr(torch.version, "cuda", "99.9"),
    "options": lambda patch: patch.setattr(binaries, "_OPTIONS", ["--std=c++20"]),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_everything_that_can_change_a_binary_is_in_its_key(compiler, folder, monkeypatch, change):
    compiler.kernel()
    given = change(monkeypatch) or {}
    compiler.kernel(**given)
    compiler.kernel(**given)
    assert (compiler.made, len(list(folder.iterdir()))) == (2, 2)


DAMAGES = {
    "empty": lambda whole: b"",
    "cut": lambda whole: whole[:-100],
    "a bit": lambda whole: whole[:-50] + bytes([whole[-50] ^ 1]) + whole[-49:],
    "another symbol": lambda whole: whole.replace(b"_Zadd_up_parts1", b"_Zadd_up_parts2"),
    "no safetensors": lambda whole: b"x" * len(whole),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_is_ignored_and_made_anew(compiler, folder, damage):
    compiler.kernel()
    (path,) = folder.iterdir()
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    assert path.read_bytes() != whole
    assert compiler.kernel() == f"_Z{NAME}2"
    assert compiler.kernel() == f"_Z{NAME}2"
    assert compiler.made == 2


def test_what_the_driver_refuses_is_compiled_anew(compiler):
    compiler.kernel()

    def load(binary):
        if binary.symbol.endswith("1"):
            raise RuntimeError("CUDA error: device kernel image is invalid")
        return binary.symbol

    compiler.load = load
    assert [compiler.kernel() for _ in range(2)] == [f"_Z{NAME}2"] * 2


def test_a_compiler_that_fails_leaves_nothing(compiler, folder):
    def fail(text, name):
        raise RuntimeError("no compiler")

    with pytest.raises(RuntimeError, match="no compiler"):
        binaries.kernel(SOURCE, NAME, GPU, fail, compiler.load)
    assert not folder.exists()


def test_without_a_place_for_a_cache_kernels_are_compiled(compiler, folder, monkeypatch, tmp_path):
    folder.parent.write_text("in the way")
    assert [compiler.kernel() for _ in range(2)] == [f"_Z{NAME}1", f"_Z{NAME}2"]
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr("pathlib.Path.home", lambda: (_ for _ in ()).throw(RuntimeError))
    assert compiler.kernel() == f"_Z{NAME}3"


def test_keys_are_names_of_files():
    assert key(SOURCE, NAME, GPU) == key(SOURCE, NAME, GPU)
    assert len(key(SOURCE, NAME, GPU)) == 32


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_real_binary_is_read_back_and_computes_the_same(folder):
    parts, results = torch.rand(3, 4, device="cuda"), []
    for _ in range(2):
        out = torch.zeros(4, device="cuda")
        binaries.kernel(SOURCE, NAME, torch.cuda.get_device_capability())(
            (1, 1, 1), (512, 1, 1), [parts, out, 3, 4]
        )
        results.append(out)
    assert len(list(folder.iterdir())) == 1
    assert torch.equal(*results)
