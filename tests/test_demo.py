import json
import re
from dataclasses import dataclass

import numpy as np
import pytest

from markup import parse
from oneof.cli import demo
from oneof.cli.demo_report import Measure, choose

SEEDS, EPOCHS = range(2), 3


@dataclass
class Ran:
    page: str
    numbers: dict
    said: list

    @property
    def tree(self):
        return parse(self.page)


def run(folder, processes):
    said = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "_processes", lambda: processes)
        demo.run_demo(folder / "demo.html", folder / "demo.json", said.append, SEEDS, EPOCHS)
    assert sorted(file.name for file in folder.iterdir()) == ["demo.html", "demo.json"]
    numbers = json.loads((folder / "demo.json").read_text(encoding="utf-8"))
    return Ran((folder / "demo.html").read_text(encoding="utf-8"), numbers, said)


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    return run(tmp_path_factory.mktemp("demo"), processes=1)


def in_percent(measure):
    return "given" if measure is None else f"{100 * measure['mean']:.1f} ± {100 * measure['std']:.1f}"


def test_numbers_are_those_of_the_seeds(ran):
    assert ran.numbers["seeds"] == list(SEEDS)
    assert list(ran.numbers["methods"]) == [contender.key for contender in demo.CONTENDERS]
    assert set(ran.numbers["versions"]) == {"oneof", "torch", "numpy", "scikit-learn", "python"}
    assert all(ran.numbers[name] for name in ("command", "platform", "processor", "processes", "seconds"))
    assert 2 < ran.numbers["candidate_set_size"]["mean"] < 4
    for key, method in ran.numbers["methods"].items():
        assert (method["disambiguation"] is None) == (key == "true_labels")
        for measure in filter(None, (method["test_accuracy"], method["disambiguation"])):
            assert measure["mean"] == pytest.approx(np.mean(measure["per_seed"]))
            assert measure["std"] == pytest.approx(np.std(measure["per_seed"], ddof=1))
        assert method["curve"]["epochs"] == [1, 2, 3]
        last = [curve[-1] for curve in method["curve"]["test_accuracy_per_seed"]]
        assert last == method["test_accuracy"]["per_seed"]


def test_page_and_text_show_the_numbers_of_the_json(ran):
    rows = {row.attributes["data-method"]: row for body in ran.tree.all("tbody") for row in body.all("tr")}
    assert list(rows) == list(ran.numbers["methods"])
    for key, method in ran.numbers["methods"].items():
        accuracy, resolved = in_percent(method["test_accuracy"]), in_percent(method["disambiguation"])
        assert [cell.text for cell in rows[key].all("td", "accuracy")] == [accuracy]
        assert [cell.text for cell in rows[key].all("td", "resolved")] == [resolved]
        assert len(list(rows[key].all("circle", "dot"))) == len(SEEDS)
        (line,) = re.findall(rf"^{re.escape(method['name'])}  .*$", "\n".join(ran.said), flags=re.M)
        assert line.endswith(resolved)
        assert accuracy in line


def test_page_is_self_contained(ran):
    assert not re.search(r"https?:|<script|<link|@import|url\(|\bsrc=|\bhref=", ran.page)
    (document,) = ran.tree.all("html")
    assert document.attributes["lang"] == "en"
    assert len(list(document.all("title"))) == len(list(document.all("h1"))) == 1
    assert all(list(figure.all("figcaption")) for figure in document.all("figure"))
    assert all(
        "aria-label" in svg.attributes for svg in document.all("svg") if svg.attributes.get("role") == "img"
    )


def test_charts_draw_every_method_and_seed(ran):
    assert demo.IDGP.warm_up == demo.Membership.warm_up  # one dashed line stands for both
    charts = list(ran.tree.all("svg", "chart"))
    assert len(charts) == 2  # one for wide screens and one for phones
    for chart in charts:
        assert len(list(chart.all("path", "line"))) == len(demo.CONTENDERS)
        assert len(list(chart.all("path", "faint"))) == len(demo.CONTENDERS) * len(SEEDS)
        assert len(list(chart.all("text", "name"))) == len(demo.CONTENDERS)


def test_gallery_marks_what_is_wrong_and_says_how_much_is(ran):
    caption = next(c.text for c in ran.tree.all("figcaption") if "Of all" in c.text)
    rows, wrong = map(int, re.search(r"Of all (\d+) training rows, (\d+) are wrong", caption).groups())
    idgp = ran.numbers["methods"]["idgp"]["disambiguation"]["per_seed"][0]
    assert rows == ran.numbers["rows"]["train"]
    assert wrong == round(rows * (1 - idgp))
    truths = demo.make_problem(SEEDS[0]).y_train
    cards = list(ran.tree.all("li", "card"))
    assert 16 <= len(cards) == len({card.attributes["data-row"] for card in cards}) <= 24
    for card in cards:
        truth = str(truths[int(card.attributes["data-row"])])
        (answer,) = (b.text for b in card.all("b"))
        (mark,) = (span.text for span in card.all("span", "mark"))
        right = "right" in card.attributes["class"]
        assert right == (answer == truth)
        assert mark == ("✓ right" if right else f"✗ wrong, it’s {truth}")
        assert [chip.text for chip in card.all("span", "said")] == [answer]
        assert [chip.text for chip in card.all("span", "true")] == [truth]


def test_text_is_plain_and_names_the_files(ran):
    text = "\n".join(ran.said)
    assert not [letter for letter in text if not letter.isprintable() and letter != "\n"]
    assert "14 of 14 trainings done" in text
    assert re.search(r"^page: .*demo\.html$", text, flags=re.M)
    assert re.search(r"^numbers: .*demo\.json$", text, flags=re.M)


def test_numbers_do_not_depend_on_the_number_of_processes(ran, tmp_path):
    parallel = run(tmp_path, processes=2)
    for name in ("rows", "candidate_set_size", "methods"):
        assert parallel.numbers[name] == ran.numbers[name]


def test_work_goes_on_without_a_process_pool(monkeypatch):
    def broken_after_two(tasks):
        yield from ["0", "1"]
        raise OSError("no semaphores on this machine")

    monkeypatch.setattr(demo, "Parallel", lambda **settings: broken_after_two)
    assert list(demo.in_order(str, [(k,) for k in range(4)], processes=2)) == ["0", "1", "2", "3"]


def test_a_missing_folder_is_told_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "experiment", lambda *arguments: pytest.fail("the work began"))
    with pytest.raises(FileNotFoundError, match="does not exist"):
        demo.run_demo(tmp_path / "nowhere" / "demo.html", None, print)


def test_a_single_seed_has_no_deviation():
    assert Measure([0.5]).std is None
    assert str(Measure([0.5])) == "50.0"


def test_examples_are_of_three_kinds_and_none_twice():
    rng = np.random.default_rng(3)
    posterior = rng.dirichlet(np.ones(4), size=200)
    truth = rng.integers(4, size=200)
    kinds = choose(posterior, truth)
    chosen = [row for rows in kinds.values() for row in rows]
    assert len(chosen) == len(set(chosen)) == 24
    assert all(posterior[row].argmax() != truth[row] for row in kinds["Surest mistakes"])
    assert choose(posterior, posterior.argmax(1))["Surest mistakes"] == []
