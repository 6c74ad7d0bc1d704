"""Inspection of candidate sets: counts against brute force, claims against the metrics they speak of, the page."""

import os
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from markup import parse
from oneof.data.corrupt import hierarchical, uniform
from oneof.data.inspection import ENOUGH, inspect
from oneof.data.inspection_summary import findings, head_numbers, lines, render_page, size_bins, write_page
from oneof.metrics import approximated_accuracy, covering_rate
from oneof.pages.frame import one_line, percent, shorten

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    "\"'&amp;",
    "</title></svg><b>",
    "שלום עולם",
    "x" * 500,
    "two\nlines\x1b[31m\u202eturned",
    " ",
]


def random_sets(rows, classes, rate, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=rows)
    sets = rng.random((rows, classes)) < rate
    sets[np.arange(rows), rng.integers(classes, size=rows) if seed % 2 else y] = True
    return sets, y


problems = given(
    rows=st.integers(1, 60), classes=st.integers(2, 6), rate=st.floats(0, 1), seed=st.integers(0, 10_000)
)


@problems
def test_counts_agree_with_brute_force(rows, classes, rate, seed):
    sets, y = random_sets(rows, classes, rate, seed)
    found = inspect(sets, y=y)
    members = [set(np.flatnonzero(row).tolist()) for row in sets]
    assert found.rows == rows
    assert found.sizes.tolist() == [sum(len(s) == size for s in members) for size in range(classes + 1)]
    assert found.mean_size == pytest.approx(np.mean([len(s) for s in members]))
    assert found.one_label == pytest.approx(np.mean([len(s) == 1 for s in members]))
    assert found.full == pytest.approx(np.mean([len(s) == classes for s in members]))
    assert found.outside == sum(truth not in s for truth, s in zip(y, members, strict=True))
    assert found.everywhere == [k for k in range(classes) if all(k in s for s in members)]
    assert found.never == [k for k in range(classes) if not any(k in s for s in members)]
    assert found.seldom == [k for k in range(classes) if 0 < sum(k in s for s in members) < ENOUGH]
    for companions, of in (
        (found.by_set, [[s for s in members if j in s] for j in range(classes)]),
        (found.by_truth, [[s for s, truth in zip(members, y, strict=True) if truth == j] for j in range(classes)]),
    ):
        shares = [
            [np.mean([k in s for s in of[j]]) if of[j] else 0 for k in range(classes)] for j in range(classes)
        ]
        assert companions.rows.tolist() == [len(sets) for sets in of]
        assert companions.share == pytest.approx(np.array(shares))
        judged = [(j, k) for j in range(classes) for k in range(classes) if j != k and len(of[j]) >= ENOUGH]
        assert sorted(companions.always) == [(j, k) for j, k in judged if all(k in s for s in of[j])]
        assert companions.ambiguity == (max(shares[j][k] for j, k in judged) if judged else None)
    assert found.frequency == pytest.approx(sets.mean(0))


def test_blocks_of_rows_add_up(monkeypatch):
    sets, _ = random_sets(100, 5, 0.4, 0)
    whole = inspect(sets)
    monkeypatch.setattr("oneof.data.inspection._BLOCK", 7)
    assert np.array_equal(inspect(sets).by_set.share, whole.by_set.share)


# --- what the sentences claim, held against the metrics ----------------------------------------------------------


@given(seed=st.integers(0, 10_000))
def test_answering_the_companion_never_scores_lower(seed):
    rng = np.random.default_rng(seed)
    sets, _ = random_sets(80, 5, 0.3, seed)
    sets[sets[:, 0], 1] = True
    assert (0, 1) in inspect(sets).by_set.always
    p = rng.dirichlet(np.ones(5), size=80)
    exchanged = p.copy()
    rows = p.argmax(1) == 0
    exchanged[rows, 0], exchanged[rows, 1] = p[rows, 1], p[rows, 0]
    assert (covering_rate(exchanged, sets) >= covering_rate(p, sets)).all()
    assert (approximated_accuracy(exchanged, sets) >= approximated_accuracy(p, sets) - 1e-12).all()


def test_companion_of_a_true_class_scores_perfectly_and_is_wrong():
    y = np.arange(60) % 3
    sets = np.eye(3, dtype=bool)[y]
    sets[y == 0, 2] = True
    found = inspect(sets, ["cat", "cow", "dog"], y)
    assert found.by_truth.always == [(0, 2)]
    sure = np.tile([0.0, 0.0, 1.0], (20, 1))
    assert covering_rate(sure, sets[y == 0]).mean() == approximated_accuracy(sure, sets[y == 0]).mean() == 1
    assert findings(found)[:2] == [
        "'dog' is a candidate in all 20 rows whose truth is 'cat'.",
        "A model that is sure of such a companion in these 20 rows (33.3% of all) is wrong in each, and yet its "
        "covering rate and approximated accuracy on them are 100%.",
    ]


BLIND = (
    "A model that answers such a companion in place of the label scores as high or higher on covering rate and "
    "approximated accuracy: only true labels can choose between the two."
)


def test_one_way_companions():
    sets = [["cat", "dog"]] * 12 + [["dog", "cow"]] * 12 + [["cow"]] * 12 + [["dog"]]
    assert findings(inspect(sets)) == [
        "'dog' is in every set that holds 'cat' (12 rows): no set speaks for 'cat' against 'dog'.",
        BLIND,
    ]


def test_labels_that_are_never_apart():
    sets = [["a", "b", "c"]] * 11 + [["d"]] * 11 + [["d", "e"]] * 11 + [["e"]] * 11
    assert findings(inspect(sets)) == [
        "'a', 'b' and 'c' always come together (11 rows): exchanging them changes no set, so the sets cannot tell "
        "which of them is true.",
        BLIND,
    ]


def test_a_label_in_every_set():
    sets = [["a", "x"]] * 10 + [["b", "x"]] * 10 + [["x"]]
    assert findings(inspect(sets)) == [
        "In every set: 'x'. A model that is always sure of one such label has a covering rate and an approximated "
        "accuracy of 100%."
    ]


def test_few_sets_accuse_nobody():
    sets = [["cat", "dog"]] * (ENOUGH - 1) + [["dog"], ["cow"]] * ENOUGH
    assert findings(inspect(sets, classes=["cat", "cow", "dog", "pig"])) == [
        "No label always accompanies another; 'cat' comes closest, in 47.4% of the sets that hold 'dog'.",
        "In no set, so that they cannot be learnt: 'pig'.",
        "In fewer than 10 sets, too few to say what always accompanies them: 'cat'.",
    ]
    assert "'dog' is in every set that holds 'cat' (10 rows)" in findings(inspect([*sets, ["cat", "dog"]]))[0]


def test_sets_that_say_nothing_or_everything():
    assert findings(inspect(np.ones((20, 4)))) == ["Every set holds all 4 labels: there is nothing to learn."]
    assert findings(inspect(["a", "b"] * 10)) == ["Every set holds one label: these are plain labels."]
    some = inspect([["a", "b"]] * 2 + [["a"]] * 10 + [["b"]] * 10, y=[0] * 12 + [0] * 10)
    assert findings(some) == [
        "The truth is no candidate in 10 rows (45.5%), which no method expects.",
        "No label always accompanies another; 'b' comes closest, in 16.7% of the sets that hold 'a'.",
        "All 2 labels are candidates in 2 rows (9.1%), which say nothing.",
    ]


def test_long_lists_are_cut():
    sets = [[f"a{k}", f"b{k}"] for k in range(8)] * ENOUGH + [[f"b{k}"] for k in range(8)]
    said = findings(inspect(sets, classes=[f"{c}{k}" for c in "abc" for k in range(8)]))
    assert len(said) == 5 + 1 + 1 + 1
    assert said[5] == "And 3 more like that."
    assert said[7] == "In no set, so that they cannot be learnt: 'c0', 'c1', 'c2', 'c3', 'c4' and 3 more."


def test_head_numbers():
    assert head_numbers(inspect([["a", "b"]] * 10 + [["b"]] * 10, y=[0] * 15 + [1] * 5)) == {
        "rows": "20",
        "classes": "2",
        "labels a set, on average": "1.50",
        "of sets have one label": "50.0%",
        "of sets have all labels": "50.0%",
        "of a label's sets share one other label, at most": "100.0%",
        "of a class's rows share one wrong label, at most": "100.0%",
    }
    assert len(head_numbers(inspect([["a", "b"]], y=[0]))) == 5  # too few rows to speak of companions


# --- words -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("share", "text"),
    [(0, "0.0%"), (1e-9, "under 0.1%"), (0.5, "50.0%"), (0.99999, "over 99.9%"), (1, "100.0%")],
)
def test_percent_claims_neither_never_nor_always(share, text):
    assert percent(share) == text


def test_names_are_shortened_in_the_middle():
    assert shorten("species number 177", 16) == "species nu…r 177"
    assert shorten("short", 16) == "short"
    assert max(len(shorten("x" * n, 40)) for n in range(100)) == 40


@problems
def test_bins_hold_every_set(rows, classes, rate, seed):
    found = inspect(random_sets(rows, classes, rate, seed)[0])
    for most in (1, 2, 20):
        bins = size_bins(found, most)
        assert sum(count for _, count in bins) == rows
        assert len(bins) <= most


def test_bins_of_many_sizes():
    labels = [label for label, _ in size_bins(inspect(np.tri(100, dtype=bool)))]
    assert labels == [f"{low}-{low + 4}" for low in range(1, 100, 5)]


def test_lines_are_plain():
    y = np.arange(160) % 8
    text = lines(inspect(uniform(y, 8, 0.3, seed=0), HOSTILE, y))
    assert all(line.isprintable() for line in text)
    assert text[0] == "       160 rows"
    assert any("'(blank)'" in line for line in text)
    many = lines(inspect(uniform(np.arange(400) % 40, 40, 0.1, seed=0)))
    assert many[-1] == "and 20 more"
    assert all(line.isascii() for line in many)


def test_names_are_one_line():
    assert [one_line(name) for name in ("a\nb", "\u202e \u202e", "\ud800x")] == ["a b", "", "x"]
    assert inspect([["a\nb", "\u202e"]], classes=["a\nb", "\u202e"]).names == ("a b", "(blank)")
    assert inspect([[7, 8]]).names == ("7", "8")


def test_wrong_input():
    with pytest.raises(ValueError, match="y has 1 labels, but must have one for each of the 2 sets"):
        inspect(["a", "b"], y=[0])
    with pytest.raises(ValueError, match="y holds 2, but must hold the numbers 0 to 1"):
        inspect(["a", "b"], y=[0, 2])
    with pytest.raises(ValueError, match="the candidate set is empty in row 1"):
        inspect([["a", "b"], []])


# --- the page ----------------------------------------------------------------------------------------------------


def maps(page):
    return list(parse(page).all("svg", "map"))


def grouped(classes, rows=None):
    y = np.arange(rows or 20 * classes) % classes
    return inspect(hierarchical(y, np.arange(classes) // 5, 0.5, seed=0), y=y)


def test_page_is_self_contained_and_well_formed():
    page = render_page(grouped(10), "sets.csv")
    assert not re.search(r"https?:|<script|<link|@import|url\(|\bsrc=|\bhref=", page)
    (document,) = parse(page).all("html")
    assert [h.text for h in document.all("h1")] == ["sets.csv"]
    assert all(list(figure.all("figcaption")) for figure in document.all("figure"))
    assert all(
        "aria-label" in svg.attributes for svg in document.all("svg") if svg.attributes.get("role") == "img"
    )


def test_page_shows_the_findings_and_numbers():
    found = inspect([["cat", "dog"]] * 12 + [["dog"]] * 3, y=[0] * 15)
    page = parse(render_page(found, "sets"))
    sentences = [item.text for item in page.all("li")]
    assert sentences == findings(found, quote=lambda name: f"“\u2068{name}\u2069”")
    numbers = {div.children[0].text: div.children[1].text for dl in page.all("dl") for div in dl.all("div")}
    assert numbers == head_numbers(found)
    shares = [[cell.text for cell in row.children if cell.text] for row in page.all("tr")]
    assert shares[:4] == [["1", "20.0%"], ["2", "80.0%"], ["dog", "100.0%"], ["cat", "80.0%"]]


def test_page_lists_rows_without_their_truth_and_those_with_the_most_candidates():
    sets = [["cow"], ["cat", "dog"], ["cat"], ["cat", "cow", "dog"], ["dog"]]
    page = parse(render_page(inspect(sets, y=[0, 0, 0, 1, 2]), "sets"))
    (table,) = (each for each in page.all("table") if each.attributes.get("class") == "rows")
    listed = [[re.sub(r"\s+", " ", cell.text) for cell in row.children if cell.text] for row in table.all("tr")]
    assert [row[:2] for row in listed[1:]] == [
        ["0", "its truth is no candidate"],
        ["3", "3 candidates"],
        ["1", "2 candidates"],
    ]
    assert re.sub(r"[\u2068\u2069]", "", listed[2][2]).replace(" ", "") == "cat,cow,dog"


def test_heat_maps_of_few_labels_are_large_enough_to_read():
    for classes, least in ((2, 160), (3, 240), (10, 400)):
        side = min(int(m.attributes["width"]) for m in maps(render_page(grouped(classes), "x")))
        assert least <= side <= 620


@pytest.mark.parametrize("classes", [2, 20, 50])
def test_small_heat_maps_have_a_cell_for_every_pair(classes):
    found = grouped(classes)
    drawn = maps(render_page(found, "x"))
    assert len(drawn) == 2
    for heat, companions in zip(drawn, (found.by_set, found.by_truth), strict=True):
        cells = [rect for rect in heat.all("rect") if rect.attributes["class"] != "ground"]
        assert len(cells) == classes**2
        assert [cell.attributes["class"] for cell in cells].count("self") == classes
        assert [cell.attributes["class"] for cell in cells].count("always") == len(companions.always)
        shown = [float(share) for share in re.findall(r"in ([\d.]+)% of", " ".join(cell.text for cell in cells))]
        off_diagonal = ~np.eye(classes, dtype=bool)
        assert shown == pytest.approx(100 * companions.share[off_diagonal], abs=0.051)


@pytest.mark.parametrize("classes", [51, 100, 200])
def test_large_heat_maps_have_every_pair_and_no_numbers(classes):
    found = grouped(classes)
    heat = maps(render_page(found, "x"))[0]
    paths = list(heat.all("path"))
    squares = "".join(path.attributes["d"] for path in paths)
    at = {(int(y), int(x)) for x, y in re.findall(r"M(\d+) (\d+)h1v1h-1z", squares)}
    assert at == {(int(j), int(k)) for j, k in np.argwhere(found.by_set.share > 0)}
    assert len(list(heat.all("rect"))) == 1
    assert len(list(heat.all("text"))) == 2 * classes
    assert heat.text.count("sets that hold") == classes


def test_very_many_labels_are_cut_to_the_closest():
    sets = np.eye(300, dtype=bool)[np.arange(6000) % 300]
    sets[sets[:, 7], 250] = True
    page = render_page(inspect(sets), "x")
    (heat,) = maps(page)
    assert "Of 300 labels, the 50 with the closest companions are drawn." in page
    titles = [title.text for text in heat.all("text") for title in text.all("title")]
    assert len(titles) == 100
    assert {"“7”", "“250”"} <= set(titles)


def test_rows_of_few_sets_are_left_empty():
    found = inspect([["a", "b"]] * (ENOUGH - 1) + [["b"]] * ENOUGH)
    (heat,) = maps(render_page(found, "x"))
    classes = [rect.attributes["class"] for rect in heat.all("rect")]
    assert classes == ["ground", "self", "cell", "cell", "self"]
    assert [rect.text for rect in heat.all("rect")][1:3] == ["9 sets that hold “a”"] * 2
    assert [text.text for text in heat.all("text", "number")] == ["47"]
    assert "Where there are fewer than 10, the row is left empty." in render_page(found, "x")


def test_hostile_names_are_text():
    y = np.arange(160) % 8
    page = render_page(inspect(uniform(y, 8, 0.3, seed=0), HOSTILE, y), HOSTILE[3])
    assert not {"script", "img", "b"} & set(re.findall(r"<(\w+)", page))
    names = [head.text for head in parse(page).all("th")]
    assert {"<script>alert(1)</script>", "<img src=x onerror=alert(2)>", "\"'&amp;", "שלום עולם"} <= set(names)
    assert not re.search("[\x1b\u202e]", page)


def test_page_takes_the_place_of_the_old_one(tmp_path):
    out = tmp_path / "page.html"
    out.write_text("old", encoding="utf-8")
    write_page(grouped(5), out, "new")
    assert out.read_text(encoding="utf-8") == render_page(grouped(5), "new")
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]
    with pytest.raises(FileNotFoundError, match="does not exist"):
        write_page(grouped(5), tmp_path / "nowhere" / "page.html", "x")


@pytest.mark.real_data
@pytest.mark.skipif(not os.environ.get("ONEOF_DATA"), reason="ONEOF_DATA names no folder of data sets")
def test_real_candidate_sets():
    """In MSRCv2 several labels never come without another one, which only the true labels show to be wrong."""
    from oneof.data import load_dataset

    data = load_dataset("msrcv2")
    found = inspect(data.candidates, data.classes, data.y)
    assert (found.rows, len(found.names), found.outside) == (1758, 23, 0)
    assert found.mean_size == pytest.approx(3.156, abs=5e-4)
    assert found.by_set.always == [(10, 21), (8, 6), (3, 1), (5, 1), (4, 1)]
    assert found.by_truth.always == [(10, 21), (3, 1), (5, 1), (8, 6)]
