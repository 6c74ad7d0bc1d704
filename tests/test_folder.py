"""Images of one's own: decoded as Pillow does, upright, cached, and what is wrong with them is one sentence."""

import io
import os
import sys
import threading
import warnings
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image

from oneof.data import decode_images, folder, load_images

FORMATS = {
    "png": "RGB",
    "bmp": "RGB",
    "ppm": "RGB",
    "tiff": "RGB",
    "gif": "P",
    "jpg": "RGB",
    "webp": "RGB",
    "jp2": "RGB",
}
ORIENTATION = 0x0112


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """Keep the user's cache out of the tests."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "oneof" / "images"


def pixels(seed=0, height=6, width=4, channels=3):
    shape = (height, width, channels) if channels > 1 else (height, width)
    return np.random.default_rng(seed).integers(256, size=shape, dtype=np.uint8)


def saved(path, values, mode=None, **options):
    image = Image.fromarray(values)
    (image.convert(mode) if mode else image).save(path, **options)
    return path


def table(folder, *rows, name="labels.csv", header="file,candidates"):
    path = folder / name
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def test_a_table_of_images(tmp_path):
    images = [pixels(seed) for seed in range(3)]
    for number, values in enumerate(images):
        saved(tmp_path / f"{number}.png", values)
    data = load_images(table(tmp_path, "0.png,cat|dog", "2.png,dog", "1.png, cow | cat ", "0.png,NA"))
    assert np.array_equal(data.x, np.stack([images[i] for i in (0, 2, 1, 0)]))
    assert data.classes.tolist() == ["NA", "cat", "cow", "dog"]
    assert data.candidates.astype(int).tolist() == [[0, 1, 0, 1], [0, 0, 0, 1], [0, 1, 1, 0], [1, 0, 0, 0]]
    assert data.y is None
    assert repr(data) == "PartialLabels 'labels': 4 rows, 6 x 4 x 3 pixels, 4 classes, 1.50 candidates a row"


def test_other_columns_folders_and_separators(tmp_path):
    elsewhere = tmp_path / "images"
    elsewhere.mkdir()
    for name in ("007", "008"):
        saved(elsewhere / name, pixels(), format="PNG")
    saved(tmp_path / "up.png", pixels(1))
    rows = "1,007,3;1", "2,008,1", "3,../up.png,3", f"4,{tmp_path / 'up.png'},1"
    path = table(tmp_path, *rows, header="id,path,sets")
    data = load_images(path, elsewhere, candidates="sets", file="path", separator=";")
    assert data.classes.tolist() == ["1", "3"]
    assert np.array_equal(data.x[0], pixels())
    assert np.array_equal(data.x[3], pixels(1))
    single = load_images(table(tmp_path, "up.png,a|b", "up.png,c"), separator=None)
    assert single.classes.tolist() == ["a|b", "c"]


@pytest.mark.parametrize("name", FORMATS)
def test_formats(tmp_path, name):
    path = saved(tmp_path / f"image.{name}", pixels(), FORMATS[name])
    with Image.open(path) as image:
        expected = np.asarray(image.convert("RGB"))
    (found,) = decode_images([path])
    assert np.array_equal(found, expected)
    if name in ("png", "bmp", "ppm", "tiff"):
        assert np.array_equal(found, pixels())


def test_gray_only_where_all_are(tmp_path):
    gray, colour = pixels(channels=1), pixels()
    paths = [saved(tmp_path / "gray.png", gray), saved(tmp_path / "alpha.png", gray, "LA")]
    assert np.array_equal(decode_images(paths), [gray, gray])
    as_colour = np.repeat(gray[..., None], 3, axis=2)
    assert np.array_equal(decode_images(paths, channels=3), [as_colour, as_colour])
    paths.append(saved(tmp_path / "colour.png", colour))
    assert np.array_equal(decode_images(paths), [as_colour, as_colour, colour])
    luma = np.asarray(Image.fromarray(colour).convert("L"))
    assert np.array_equal(decode_images(paths, channels=1), [gray, gray, luma])


def test_unusual_modes(tmp_path):
    deep = np.arange(24, dtype=np.uint16).reshape(6, 4) * 2700
    assert np.array_equal(decode_images([saved(tmp_path / "deep.png", deep)]), [deep // 256])
    bits = pixels(channels=1) > 127
    assert np.array_equal(decode_images([saved(tmp_path / "bits.png", bits)]), [bits * 255])
    clear = np.concatenate([pixels(), pixels(1)[..., :1]], axis=2)
    assert np.array_equal(decode_images([saved(tmp_path / "clear.png", clear)]), [pixels()])
    palette = Image.fromarray(pixels()).convert("P")
    palette.save(tmp_path / "palette.png", transparency=bytes(range(100)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(decode_images([tmp_path / "palette.png"]), [np.asarray(palette.convert("RGB"))])
    for values in (deep.astype(np.int32), deep.astype(np.float32)):
        with pytest.raises(
            ValueError, match=r"deep.tiff' \(its values are of type [IF], but must have 8 or 16 bits\)"
        ):
            decode_images([saved(tmp_path / "deep.tiff", values)])


@pytest.mark.parametrize("name", ["jpg", "png", "tiff", "webp"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_images_are_turned_upright(tmp_path, name, orientation):
    """Quadrants of four colours, 8 x 16: where each ends up tells the turn."""
    corners = np.array([[[255, 0, 0], [0, 255, 0]], [[0, 0, 255], [255, 255, 0]]], np.uint8)
    values = np.kron(corners, np.ones((4, 8, 1), np.uint8)).astype(np.uint8)
    turns = {
        1: lambda v: v,
        2: lambda v: v[:, ::-1],
        3: lambda v: v[::-1, ::-1],
        4: lambda v: v[::-1],
        5: lambda v: v.transpose(1, 0, 2),
        6: lambda v: v[::-1].transpose(1, 0, 2),
        7: lambda v: v[::-1, ::-1].transpose(1, 0, 2),
        8: lambda v: v[:, ::-1].transpose(1, 0, 2),
    }
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    options = {"jpg": {"quality": 95, "subsampling": 0}, "webp": {"lossless": True}}.get(name, {})
    path = saved(tmp_path / f"turned.{name}", values, exif=exif, **options)
    (found,) = decode_images([path])
    expected = turns[orientation](values)
    assert found.shape == expected.shape
    assert np.abs(found.astype(int) - expected).mean() < 8
    (small,) = decode_images([path], size=(6, 2))
    assert small.shape == (6, 2, 3)


def test_sizes(tmp_path):
    paths = [saved(tmp_path / "a.png", pixels()), saved(tmp_path / "b.png", pixels(1, height=9))]
    with pytest.raises(
        ValueError, match=r"'.*a.png' has height and width \(6, 4\), and '.*b.png' has \(9, 4\), but all"
    ):
        decode_images(paths)
    found = decode_images(paths, size=(3, 5))
    expected = [np.asarray(Image.open(path).resize((5, 3))) for path in paths]
    assert np.array_equal(found, expected)
    assert decode_images(paths, size=np.int64(7)).shape == (2, 7, 7, 3)


def test_large_jpegs_shrink_to_nearly_the_same(tmp_path):
    """They are decoded at a part of their size, which must not show."""
    smooth = np.asarray(Image.fromarray(pixels(height=5, width=7)).resize((700, 500), Image.Resampling.BICUBIC))
    path = saved(tmp_path / "large.jpg", smooth, quality=95)
    (found,) = decode_images([path], size=(32, 48))
    expected = np.asarray(Image.open(path).resize((48, 32)))
    assert np.abs(found.astype(int) - expected).mean() < 2


@pytest.mark.parametrize("workers", [1, 3])
def test_many_images_keep_their_order(tmp_path, workers):
    paths = [saved(tmp_path / f"{i}.png", np.full((2, 3), i, np.uint8)) for i in range(100)]
    assert decode_images(paths, workers=workers, cache=False)[:, 0, 0].tolist() == list(range(100))


@pytest.mark.parametrize("bad", [0, -1, (3,), (3, 0), (3, 4, 5), "32", 2.5, True, (True, 1)], ids=repr)
def test_wrong_sizes(tmp_path, bad):
    path = saved(tmp_path / "a.png", pixels())
    with pytest.raises(
        ValueError, match=r"size is .*, but must be a number of pixels or \(height, width\); pass 32"
    ):
        decode_images([path], size=bad)


def test_wrong_settings(tmp_path):
    path = saved(tmp_path / "a.png", pixels())
    with pytest.raises(ValueError, match="channels is 4, but must be 1 for gray or 3 for colour"):
        decode_images([path], channels=4)
    with pytest.raises(ValueError, match="workers is 0, but must be a number of threads; pass 1 or more"):
        decode_images([path], workers=0)
    with pytest.raises(ValueError, match="there are no images to decode; pass at least one path"):
        decode_images([])
    with pytest.raises(
        ValueError, match=r"1 images of height and width .* do not fit into memory.*; pass a smaller size"
    ):
        decode_images([path], size=10**7)


@pytest.mark.parametrize("size", [10**12, 2**62, 10**30, 10**5000, (10**7, 10**8)], ids=range(5))
def test_impossible_sizes(tmp_path, size):
    path = saved(tmp_path / "a.png", pixels())
    with pytest.raises(ValueError, match=r"do not fit into memory.*; pass a smaller size") as caught:
        decode_images([path], size=size)
    assert len(str(caught.value)) < 500


def png_claiming(width, height):
    """Return a PNG file that claims a size and holds nothing."""
    header = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes([8, 0, 0, 0, 0])
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(b"")), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")
        for kind, data in chunks
    )


def file_bytes(kind, **options):
    file = io.BytesIO()
    Image.fromarray(pixels(height=40, width=40)).save(file, kind, **options)
    return file.getvalue()


EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 4 6\n%%EndComments\nshowpage\n"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it is none of BMP, GIF, JPEG"),
        (b"<html>not an image</html>", "it is none of BMP, GIF, JPEG"),
        (EPS, "it is none of BMP, GIF, JPEG"),
        (file_bytes("PNG")[:-60], "."),
        (file_bytes("JPEG")[:-60], "truncated"),
        (file_bytes("GIF")[:-60], "."),
        (file_bytes("PNG")[:100] + bytes(20) + file_bytes("PNG")[120:], "."),
        (png_claiming(50000, 50000), "decompression bomb"),
        (png_claiming(10000, 10000), "more than 89478485 pixels, as a decompression bomb"),
        (b"P6 0 5 255\n", "."),
        (b"GIF89a" + bytes(20) + b";", "."),
    ],
    ids=range(11),
)
def test_broken_images(tmp_path, content, reason):
    path = tmp_path / "broken.png"
    path.write_bytes(content)
    good = saved(tmp_path / "good.png", pixels(height=40, width=40))
    with pytest.raises(
        ValueError, match=rf"no image can be read from '.*broken.png' \(.*{reason}.*\); mend"
    ) as caught:
        decode_images([good, path])
    assert "\n" not in str(caught.value)
    assert "good.png" not in str(caught.value)


def test_the_first_few_broken_and_missing_files_are_named(tmp_path):
    for i in range(5):
        (tmp_path / f"{i}.jpg").write_bytes(b"broken")
    rows = [f"{i}.jpg,a" for i in range(5)]
    with pytest.raises(ValueError, match=r"'.*0.jpg' \(.*'.*1.jpg' \(.*'.*2.jpg' \(.*, ... \(5 in all\); mend"):
        load_images(table(tmp_path, *rows, "0.jpg,b"))
    with pytest.raises(
        FileNotFoundError, match=r"no file '.*x.jpg', '.*y.jpg', '.*', ... \(4 in all\); check the names"
    ):
        load_images(table(tmp_path, "x.jpg,a", "y.jpg,b", ".,a", "a\0b,b", *rows))


def test_wrong_tables(tmp_path):
    saved(tmp_path / "a.png", pixels())
    with pytest.raises(ValueError, match=r"names no file in rows 1, 2 \(2 in all\); fill in the column 'file'"):
        load_images(table(tmp_path, "a.png,x", ",y", '"",z'))
    with pytest.raises(
        ValueError, match=r"the candidate set is empty for 'a.png', 'b.png', but every image .*labels.csv'"
    ):
        load_images(table(tmp_path, "a.png,", "c.png,x", "b.png, | "))
    with pytest.raises(ValueError, match=r"has no column 'image'; there are 'file', 'candidates'"):
        load_images(table(tmp_path, "a.png,x"), file="image")
    with pytest.raises(ValueError, match="at least two classes are needed"):
        load_images(table(tmp_path, "a.png,x"))
    with pytest.raises(FileNotFoundError, match=r"there is no file '.*absent.csv'; check the path of the table"):
        load_images(tmp_path / "absent.csv")


def test_decoded_images_are_cached(tmp_path, cache, monkeypatch):
    path = saved(tmp_path / "a.png", pixels())
    first = decode_images([path])
    assert len(list(cache.iterdir())) == 1
    monkeypatch.setattr(folder, "decode", None)  # from here on, decoding fails
    again = decode_images([path])
    assert np.array_equal(first, again)
    with pytest.raises(ValueError, match="read-only"):
        again[0, 0, 0] = 1
    for change in ({"size": 3}, {"channels": 1}, {"cache": False}, {"cache": tmp_path / "other"}):
        with pytest.raises(TypeError, match="not callable"):
            decode_images([path], **change)
    with pytest.raises(TypeError, match="not callable"):
        decode_images([path, path])
    os.utime(path, ns=(1, 1))
    with pytest.raises(TypeError, match="not callable"):
        decode_images([path])


def test_another_folder_for_the_cache_or_none(tmp_path, cache):
    path = saved(tmp_path / "a.png", pixels())
    decode_images([path], cache=False)
    assert not cache.exists()
    decode_images([path], cache=tmp_path / "other" / "place")
    assert not cache.exists()
    assert len(list((tmp_path / "other" / "place").iterdir())) == 1


@pytest.mark.parametrize(
    "damage", ["cut", "empty", "words", "objects", "rows", "floats", "flat", "no channels", "seven", "zip"]
)
def test_a_damaged_cache_is_made_anew(tmp_path, cache, damage):
    path = saved(tmp_path / "a.png", pixels())
    expected = decode_images([path])
    (store,) = cache.iterdir()
    whole = store.read_bytes()
    if damage in ("objects", "rows", "floats", "flat", "no channels", "seven"):
        wrong = {
            "flat": np.zeros((1, 0, 4, 3), np.uint8),
            "no channels": np.zeros((1, 6, 4, 0), np.uint8),
            "seven": np.zeros((1, 6, 4, 7), np.uint8),
            "objects": np.array([{}, []], object),
            "rows": np.zeros((2, 6, 4, 3), np.uint8),
            "floats": np.zeros((1, 6, 4)),
        }
        np.save(store, wrong[damage])
    elif damage == "zip":
        with store.open("wb") as file:
            np.savez(file, a=expected)
    else:
        store.write_bytes({"cut": whole[:-5], "empty": b"", "words": b"no array"}[damage])
    assert np.array_equal(decode_images([path]), expected)
    assert store.read_bytes() == whole
    assert len(list(cache.iterdir())) == 1


def test_a_cache_that_cannot_be_written_to_is_a_warning(tmp_path):
    path = saved(tmp_path / "a.png", pixels())
    (tmp_path / "file").touch()
    with pytest.warns(
        UserWarning, match=r"decoded images cannot be kept in '.*file' \(.*\); pass another folder as cache"
    ):
        assert np.array_equal(decode_images([path], cache=tmp_path / "file"), [pixels()])


def test_two_writers_fill_the_cache_at_once(tmp_path, cache, monkeypatch):
    paths = [saved(tmp_path / f"{i}.png", pixels(i)) for i in range(40)]
    both, keep = threading.Barrier(2, timeout=60), folder._save_cached

    def keep_together(*given):
        both.wait()
        keep(*given)

    monkeypatch.setattr(folder, "_save_cached", keep_together)
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(decode_images, [paths, paths]))
    assert np.array_equal(*found)
    assert len(list(cache.iterdir())) == 1
    assert np.array_equal(decode_images(paths), found[0])


def test_without_pillow(tmp_path, monkeypatch):
    path = saved(tmp_path / "a.png", pixels())
    for name in [name for name in sys.modules if name.split(".")[0] == "PIL"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ValueError, match=r"images need Pillow, which is missing; pip install oneof\[data\]"):
        decode_images([path])


def test_progress(tmp_path, capsys):
    paths = [saved(tmp_path / f"{i}.png", pixels(i)) for i in range(70)]
    decode_images(paths, cache=False)
    assert capsys.readouterr() == ("", "")
    decode_images(paths, cache=False, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [f"decoding images: {percent} %" for percent in (40, 90, 100)]
