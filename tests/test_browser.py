"""The pages in a real browser: nothing runs, nothing is fetched, nothing overflows on a phone."""

import numpy as np
import pytest

from conftest import DESKTOP, PHONE
from oneof.cli import demo
from oneof.cli.demo_report import content
from oneof.data.corrupt import hierarchical, uniform
from oneof.data.inspection import inspect
from oneof.data.inspection_summary import render_page as render_inspection
from oneof.pages.demo_page import render as render_demo
from test_inspection import HOSTILE

pytestmark = pytest.mark.browser


def inspection_page(classes):
    y = np.arange(20 * classes) % classes
    return render_inspection(inspect(hierarchical(y, np.arange(classes) // 5, 0.5, seed=0), y=y), "sets.csv")


def hostile_page():
    y = np.arange(160) % 8
    return render_inspection(inspect(uniform(y, 8, 0.3, seed=0), HOSTILE, y), HOSTILE[0])


@pytest.fixture(scope="module")
def pages(browser):
    report = demo.experiment([0], 1, 1, lambda text: None)
    return {
        "inspection of 10": inspection_page(10),
        "inspection of 200": inspection_page(200),
        "inspection, hostile": hostile_page(),
        "demo": render_demo(content(report)),
    }


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
@pytest.mark.parametrize("name", ["inspection of 10", "inspection of 200", "inspection, hostile", "demo"])
def test_pages_are_quiet_and_fit(open_page, pages, name, width):
    opened = open_page(pages[name], width)
    assert opened.page.locator("h1").is_visible()
    assert opened.troubles == []
    assert opened.overflow() == 0


@pytest.mark.parametrize("name", ["inspection of 10", "demo"])
def test_pages_have_a_dark_form(open_page, pages, name):
    def brightness(scheme):
        colour = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"
        return sum(open_page(pages[name], scheme=scheme).page.evaluate(colour))

    assert brightness("dark") < 200 < 600 < brightness("light")


def test_troubles_are_noticed(open_page):
    """The page that fails everything, so that the tests above can fail."""
    opened = open_page("<h1>x</h1><script>alert(1); console.log(2)</script><img src=x><p style='width: 2000px'>x")
    assert {trouble.partition(":")[0] for trouble in opened.troubles} == {"dialog", "console", "request"}
    assert opened.overflow() > 0


def test_heat_map_is_drawn_cell_by_cell(open_page, pages):
    opened = open_page(pages["inspection of 10"])
    cells = opened.page.locator(".map").first.locator("rect:not(.ground)")
    assert cells.count() == 100
    left, right = cells.nth(0).bounding_box(), cells.nth(1).bounding_box()
    assert right["x"] == pytest.approx(left["x"] + left["width"])
    assert right["y"] == pytest.approx(left["y"])
    assert 20 < left["width"] == pytest.approx(left["height"])


def test_wide_heat_map_scrolls_by_itself(open_page, pages):
    frame = open_page(pages["inspection of 200"], PHONE).page.locator(".scroll").first
    assert frame.evaluate("frame => frame.scrollWidth > frame.clientWidth")
    frame.focus()
    assert frame.evaluate("frame => document.activeElement === frame")


def test_hostile_names_are_shown_and_do_not_run(open_page, pages):
    opened = open_page(pages["inspection, hostile"])
    assert opened.count("script") == opened.count("img") == opened.count("b") == 0
    shown = opened.page.locator("th").all_inner_texts()
    assert {"<script>alert(1)</script>", "<img src=x onerror=alert(2)>", "\"'&amp;", "שלום עולם"} <= set(shown)
    assert opened.page.locator("h1").inner_text() == "<script>alert(1)</script>"
