"""Charts: round ticks, places of values, names that do not overlap, and one palette for all pages."""

import re
from itertools import pairwise
from math import log
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from markup import parse, told
from oneof import pages
from oneof.pages.charts import Axis, Plot, Series, axes, chart, drawing, inline, learning_curves, standalone, ticks
from oneof.pages.content import Figure, Panel
from oneof.pages.frame import GREY, HUES, PALETTE
from oneof.pages.heat_maps import HeatMap, heat_map

TEN = Axis(0, 10, [0, 5, 10])


@pytest.mark.parametrize(
    ("low", "high", "marks"), [(43, 100, [40, 60, 80, 100]), (90, 100, [90, 92, 94, 96, 98, 100])]
)
def test_ticks_may_begin_below(low, high, marks):
    assert ticks(low, high, smallest=1, below=True) == marks


@pytest.mark.parametrize(
    ("low", "high", "smallest", "marks"),
    [
        (43, 100, 0.1, [50, 60, 70, 80, 90, 100]),
        (0, 3, 1, [0, 1, 2, 3]),
        (71.3, 72.1, 0.1, [71.4, 71.6, 71.8, 72.0]),
        (-3, 3, 0.1, [-2, 0, 2]),
    ],
)
def test_ticks_are_round(low, high, smallest, marks):
    assert ticks(low, high, smallest=smallest) == marks


@given(st.floats(-1e4, 1e4), st.floats(0.01, 1e4), st.integers(2, 9), st.booleans())
def test_ticks_are_few_and_evenly_spaced(low, width, most, below):
    found = ticks(low, low + width, most, below=below)
    assert len(found) <= most
    steps = {round(b - a, 4) for a, b in pairwise(found)}
    assert len(steps) <= 1
    assert all(tick <= low + width + 1e-6 for tick in found)
    assert all(tick >= low - 1e-6 for tick in found[below:])
    assert not below or found[0] <= low + 1e-6


def test_values_lie_between_the_ends_of_their_axes():
    plot = Plot(Axis(1, 100, [], scale=log), TEN, width=200, height=80, left=30, top=20)
    assert [plot.x(value) for value in (1, 10, 100)] == pytest.approx([30, 130, 230])
    assert [plot.y(value) for value in (0, 2.5, 10)] == pytest.approx([100, 80, 20])


def test_axes_have_numbers_and_a_title():
    plot = Plot(Axis(0, 4, [0, 4], "epochs <e>"), TEN, width=200, height=80)
    texts = [element.text for element in parse(axes(plot)).all("text")]
    assert texts == ["0", "5", "10", "0", "4", "epochs <e>"]
    assert [element.text for element in parse(axes(plot, numbers=False)).all("text")] == ["0", "4", "epochs <e>"]


@given(st.lists(st.integers(0, 100).map(lambda tenths: tenths / 10), min_size=1, max_size=12))
def test_names_do_not_overlap_and_stay_beside_the_plot(values):
    plot = Plot(TEN, TEN, width=200, height=190)
    series = [Series(f"n{i}", HUES[0], [(0, 5), (10, value)]) for i, value in enumerate(values)]
    names = list(parse(drawing(plot, series)).all("text", "name"))
    heights = [float(name.attributes["y"]) - 4 for name in names]
    assert len(names) == len(values)
    assert all(below - above >= 13.8 for above, below in pairwise(heights))
    assert plot.top - 0.1 <= heights[0]
    assert heights[-1] <= plot.bottom + 0.1
    order = [int(name.text[1:]) for name in names]
    assert [values[i] for i in order] == sorted(values, reverse=True)


def test_a_name_without_neighbours_stands_at_the_end_of_its_line():
    plot = Plot(TEN, TEN, width=200, height=190)
    (name,) = parse(drawing(plot, [Series("a", GREY, [(10, 3)])])).all("text", "name")
    assert float(name.attributes["y"]) - 4 == pytest.approx(plot.y(3), abs=0.1)


def test_a_series_is_a_line_with_what_surrounds_it():
    seeds = [[(0, 1), (10, 2)], [(0, 2), (10, 4)]]
    series = Series("a", HUES[1], [(0, 1.5), (10, 3)], faint=seeds, dots=[(10, 2)], bold=True, dashed=True)
    panel = chart("title", Plot(TEN, TEN, width=200, height=100), [series])
    drawn = parse(inline(panel))
    (line,) = drawn.all("path", "line")
    assert line.attributes["d"] == "M34.0,111.0 234.0,96.0"
    assert len(list(drawn.all("path", "faint"))) == 2
    assert len(list(drawn.all("circle", "dot"))) == 1
    assert len(list(drawn.all("g", "bold"))) == len(list(drawn.all("g", "dashed"))) == 1
    assert panel.words == "title; at the end: a 3.0"


def test_bold_lines_are_drawn_above_the_others():
    series = [Series("a", HUES[0], [(0, 1)], bold=True), Series("b", HUES[1], [(0, 1)])]
    (plot,) = parse(drawing(Plot(TEN, TEN, 200, 100), series)).all("svg")
    assert [group.attributes["class"] for group in plot.all("g")] == [HUES[1], f"{HUES[0]} bold"]


def test_panels_of_learning_curves_share_a_scale_that_may_cut_the_first_rise():
    rising = Series("a", HUES[0], [(1, 3), (5, 80), (10, 90)])
    figure = learning_curves("curves-x", "x", {"validation": [rising], "test": [Series("a", HUES[0], [(10, 70)])]})
    numbers = [[text.text for text in parse(panel.body).all("text")] for panel in figure.panels]
    assert numbers[0][1:6] == numbers[1][1:6] == ["70", "75", "80", "85", "90"]


def test_heat_map_counts_upwards_and_marks_places():
    values = {(0, 0): 50.0, (1, 0): 60.0, (0, 1): float("nan"), (1, 1): 70.0}
    data = HeatMap("idgp", ("a", "b"), ["1", "10"], ["0.1", "a long value"], values, {(1, 0)}, (1, 1))
    panel = heat_map(data)
    drawn = parse(inline(panel))
    places = {text.text: text.attributes for text in drawn.all("text")}
    assert {"50.0", "60.0*", "70.0", "–", "a long…"} <= set(places)
    assert float(places["70.0"]["y"]) < float(places["60.0*"]["y"]) == float(places["50.0"]["y"])
    (chosen,) = drawn.all("rect", "chosen")
    assert float(chosen.attributes["x"]) < float(places["70.0"]["x"]) < float(chosen.attributes["x"]) + 48
    assert panel.words == "idgp: mean test accuracy from 50.0 to 70.0 percent"
    assert heat_map(HeatMap("t", ("a", "b"), ["1"], ["1"], {(0, 0): float("nan")})).words.endswith("done yet")


def test_a_figure_is_a_file_with_all_panels_in_rows_of_two():
    panels = [Panel(100, 50, f"<text>{i}</text>", f"panel {i}") for i in range(3)]
    text = standalone(Figure("name", "A <title>", panels))
    inner = [svg.attributes for svg in parse(text).all("svg")][1:]
    assert [(panel["x"], panel["y"]) for panel in inner] == [("18", "34"), ("136", "34"), ("18", "102")]
    words = ["0", "1", "2", "A <title>", "panel 0", "panel 1", "panel 2"]
    assert told(text) == [("texts", words), ("marks", {"path": 0, "circle": 0, "rect": 1})]


def test_every_colour_is_of_the_palette():
    """Light and dark forms are complete, and no page defines colours of its own."""
    light, dark = PALETTE.split("@media")
    assert set(re.findall(r"(--\w[\w-]*|\.\w+) ?[:{]", light)) == set(
        re.findall(r"(--\w[\w-]*|\.\w+) ?[:{]", dark)
    )
    for module in Path(pages.__file__).parent.glob("*.py"):
        text = module.read_text(encoding="utf-8")
        if module.name != "frame.py":
            assert not re.search(r"#[0-9a-fA-F]{3,8}\b|rgba?\(", text), module.name
        names = set(re.findall(r"var\(--([\w-]+)\)", text)) - {"hue", "letters"}
        assert all(f"--{name}:" in PALETTE for name in names), module.name
