"""The page of a report in a real browser: it is quiet, it fits, and its tables can be sorted."""

import pytest

from conftest import DESKTOP, PHONE
from oneof.bench.report.writer import write_report
from test_report import HEATMAP, SCORES, hostile_report, record, records_of, write_ledger, write_plan

pytestmark = pytest.mark.browser

METHODS = """
title = "Made, with many methods and data sets"
datasets = ["lost", "birdsong", "msrcv2", "fg-net"]
trials = 3

[grid]
lr = [0.01, 0.1]

[methods.idgp]
[methods.cc]
[methods.lws]
[methods.proden]
[methods.valen]
[methods.supervised]
"""
# Means: idgp 72, cc none, lws 82, proden 9.5 of trial 0 alone, valen 75, and 80 of the bound.
NOTHING = {"lr 0.01": [None] * 3, "lr 0.1": [None] * 3}
OF_ALL = SCORES | {
    "cc": NOTHING,
    "lws": NOTHING | {"lr 0.1": [(50, 80), (50, 82), (50, 84)]},
    "proden": NOTHING | {"lr 0.1": [(50, 9.5), None, None]},
    "valen": NOTHING | {"lr 0.1": [(50, 73), (50, 75), (50, 77)]},
}


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The texts of a page with everything, one with heat maps, and a hostile one."""
    folder = tmp_path_factory.mktemp("pages")
    plan = write_plan(folder, METHODS)
    found = records_of(plan, OF_ALL)
    heat = write_plan(folder, HEATMAP, "heat.toml")
    of_heat = {run.key: record(run, 10 * run.point["gamma"], 50 + run.trial) for run in heat.runs()}
    made = {
        "made": write_report(plan, [write_ledger(folder / "made.jsonl", found.values())], folder / "made"),
        "heat": write_report(heat, [write_ledger(folder / "heat.jsonl", of_heat.values())], folder / "heat"),
    }
    (folder / "hostile").mkdir()
    made["hostile"] = hostile_report(folder / "hostile")
    return {name: files[0].read_text() for name, files in made.items()}


def column(opened, header, table=0):
    """The texts of a column, down the rows."""
    found = opened.page.locator("table").nth(table)
    at = found.locator("thead th").all_inner_texts().index(header)
    return [row.locator("th, td").nth(at).inner_text().split("\n")[0] for row in found.locator("tbody tr").all()]


def header(opened, name, table=0):
    return opened.page.locator("table").nth(table).locator("thead th").get_by_text(name, exact=True)


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
@pytest.mark.parametrize("name", ["made", "heat", "hostile"])
def test_page_is_quiet_and_fits(open_page, pages, name, width):
    opened = open_page(pages[name], width)
    assert opened.page.locator("h1").is_visible()
    assert opened.count("table") >= 4
    header(opened, "method").click()
    assert opened.troubles == []
    assert opened.overflow() == 0


def test_only_frames_scroll(open_page, pages):
    """On a phone, whatever reaches beyond the edge lies in a frame that scrolls and can be reached by keys."""
    opened = open_page(pages["made"], PHONE)
    outside = """() => [...document.querySelectorAll("main *")].filter(e =>
        e.getBoundingClientRect().right > innerWidth && !e.closest(".scroll")).length"""
    assert opened.page.evaluate(outside) == 0
    frame = opened.page.locator(".scroll").first
    assert frame.evaluate("frame => frame.scrollWidth > frame.clientWidth")
    frame.focus()
    assert frame.evaluate("frame => document.activeElement === frame")


def test_page_has_a_dark_form(open_page, pages):
    def brightness(scheme):
        colour = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"
        return sum(open_page(pages["made"], scheme=scheme).page.evaluate(colour))

    assert brightness("dark") < 200 < 600 < brightness("light")


def test_numbers_sort_as_numbers(open_page, pages):
    """9.50 is less than 72.00; what is missing comes last both ways; a second click reverses."""
    opened = open_page(pages["made"])
    assert column(opened, "method") == ["idgp", "cc", "lws", "proden", "valen", "supervised"]
    header(opened, "lost").click()
    assert column(opened, "method") == ["proden", "idgp", "valen", "supervised", "lws", "cc"]
    assert column(opened, "lost")[:2] == ["9.50?", "72.00 ± 2.00"]
    assert column(opened, "lost")[-1] == "–"
    header(opened, "lost").click()
    assert column(opened, "method") == ["lws", "supervised", "valen", "idgp", "proden", "cc"]


def test_differences_sort_by_their_sign(open_page, pages):
    """idgp minus lws is 72 - 82 = -10, minus valen -3, and minus proden 70 - 9.5 = 60.5, since it has trial 0."""
    opened = open_page(pages["made"])
    header(opened, "birdsong", table=1).click()
    found = [text.split()[0].strip("?◦") for text in column(opened, "birdsong", table=1)]
    assert found == ["−10.00", "−3.00", "+60.50", "–"]


def test_texts_sort_as_texts(open_page, pages):
    opened = open_page(pages["made"])
    head = header(opened, "method")
    head.click()
    assert column(opened, "method") == ["cc", "idgp", "lws", "proden", "supervised", "valen"]
    head.click()
    assert column(opened, "method") == ["valen", "supervised", "proden", "lws", "idgp", "cc"]


def test_keys_sort_and_the_state_is_announced(open_page, pages):
    opened = open_page(pages["made"])
    sorted_by = "() => [...document.querySelectorAll('th[aria-sort]')].map(e => [e.innerText, e.ariaSort])"
    opened.page.locator("table button").nth(1).focus()
    for key, state in (("Enter", "ascending"), ("Space", "descending")):
        opened.page.keyboard.press(key)
        ((text, found),) = opened.page.evaluate(sorted_by)
        assert (text.split()[0], found) == ("lost", state)
    opened.page.keyboard.press("Tab")
    opened.page.keyboard.press("Enter")
    ((text, found),) = opened.page.evaluate(sorted_by)
    assert (text.split()[0], found) == ("birdsong", "ascending")


def test_figures_are_drawn(open_page, pages):
    opened = open_page(pages["heat"])
    maps = opened.page.locator("#sensitivity svg")
    assert maps.count() == 1
    fields = maps.locator("rect:not(.chosen)")
    assert fields.count() == 4
    assert maps.locator("text", has_text="50.5").count() == 4
    assert opened.count("#curves svg[role=img]") == 2


def test_hostile_names_are_shown_and_do_not_run(open_page, pages):
    opened = open_page(pages["hostile"])
    assert opened.troubles == []
    assert opened.count("script") == 1
    assert opened.page.locator("h1").inner_text() == "<script>alert(1)</script> & more"
    assert "<script>alert(1)</script>|$%&_{}\\" in column(opened, "method")


def test_script_that_is_not_ours_is_refused(open_page, pages):
    """Should an escape ever be missing, the page's policy still holds."""
    opened = open_page(pages["made"].replace("</main>", "<script>alert(1)</script></main>"))
    assert [trouble.partition(":")[0] for trouble in opened.troubles] == ["console"]
    assert "Content Security Policy" in opened.troubles[0]
