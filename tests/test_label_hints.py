"""Cells that hold several labels: the command line reads JSON lists, and says how other cells are split."""

import pytest

from test_cli import TINY, succeed


def written(folder, cells):
    path = folder / "t.csv"
    rows = [f'{i},"{cell}"' for i, cell in enumerate(cells * 10)]
    path.write_text("\n".join(["a,y", *rows]) + "\n")
    return path


def said_by_fit(path, folder, *options):
    result = succeed("fit", path, "--candidates", "y", *options, *TINY, "--out", folder / "m")
    return result.stdout, result.stderr


def test_json_lists_are_read_as_lists(tmp_path):
    path = written(tmp_path, ['[""cat"", ""dog""]', '[""dog""]', '[""cow, brown""]'])
    out, err = said_by_fit(path, tmp_path)
    assert "3 classes, 1.33 candidates" in out
    assert err == "hint: the cells of 'y' are JSON lists and are read as lists of labels\n"
    scored = succeed("score", tmp_path / "m", path, "--labels", "y")
    assert "approximated accuracy" in scored.stdout
    assert "JSON lists" in succeed("inspect", path, "--candidates", "y").stderr


@pytest.mark.parametrize(
    ("cells", "hint"),
    [
        (["['cat', 'dog']", "['dog']"], 'write them as JSON lists, such as ["cat", "dog"]'),
        (["cat|dog", "dog"], "pass --separator '|' to split them"),
        (["cat;dog", "dog"], "pass --separator ';' to split them"),
        (["cat,dog", "dog"], "pass --separator ',' to split them"),
    ],
)
def test_cells_that_look_like_sets_get_one_hint(cells, hint, tmp_path):
    out, err = said_by_fit(written(tmp_path, cells), tmp_path)
    assert "2 classes, 1.00 candidates" in out
    assert err.startswith("hint: cells of 'y' such as ")
    assert hint in err
    assert err.count("\n") == 1


def test_long_cells_make_no_long_hint(tmp_path):
    _, err = said_by_fit(written(tmp_path, ["x|" * 5000, "y|" * 5000]), tmp_path)
    assert "pass --separator '|'" in err
    assert len(err) < 400
