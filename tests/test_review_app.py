"""The review in a real browser, with a real server: decided by keys and mouse, killed, and gone on with."""

import json
import re
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import numpy as np
import pandas as pd
import pytest
from axe_playwright_python.sync_playwright import Axe
from PIL import Image

from oneof import CC
from test_cli import succeed

HOSTILE = "<img src=x onerror=alert(1)>"
CLASSES = np.array(["cat", HOSTILE, "dog"])


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A model and a table of 90 rows whose classes, file names and texts are hostile; some truths are outside."""
    folder = tmp_path_factory.mktemp("review")
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    frame = pd.DataFrame(rng.normal(size=(90, 3)) + 4 * np.eye(3)[y], columns=["a", "b", "<b>c</b>"])
    sets = np.eye(3, dtype=bool)[y] | np.roll(np.eye(3, dtype=bool)[y], 1, 1)
    sets[:5] = np.eye(3, dtype=bool)[(y[:5] + 1) % 3]  # single candidates that are wrong
    CC(epochs=20, random_state=0, device="cpu").fit(frame, pd.DataFrame(sets, columns=CLASSES)).save(folder / "m")
    (folder / "images").mkdir()
    names = [f"images/{i} <script>alert(2)<|script>.png".replace("|", "_") for i in range(90)]
    for i, name in enumerate(names):
        Image.new("L", (8, 8), 2 * i).save(folder / name)
    outside = folder.parent / "secret.png"
    Image.new("L", (8, 8)).save(outside)
    (folder / "link.png").symlink_to(outside)
    (folder / "page.png").write_text("<script>alert(3)</script>")
    names[87:] = ["../secret.png", "link.png", "page.png"]
    frame["text"] = f"<script>alert(4)</script> & {HOSTILE}"
    frame["file"] = names
    frame["candidates"] = [json.dumps(CLASSES[row].tolist()) for row in sets]
    frame.to_csv(folder / "t.csv", index=False)
    return folder


class Served:
    """`oneof review` in a process of its own."""

    def __init__(self, folder, *options):
        command = [sys.executable, "-m", "oneof", "review", "m", "t.csv", "--images", "file", "--text", "text"]
        self.process = subprocess.Popen(
            [*command, "--no-browser", *options],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        line = self.process.stdout.readline()
        found = re.search(r"http://\S+", line)
        assert found, line + self.process.stderr.read()
        self.address = found.group()

    def kill(self):
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def served(project):
    running = []

    def start(*options):
        running.append(Served(project, *options))
        return running[-1]

    yield start
    for each in running:
        each.kill()


@pytest.fixture(scope="module")
def shared(project):
    """The address of one server for the tests that decide little; its journal is s.jsonl."""
    server = Served(project, "--decisions", "s.jsonl")
    yield server.address
    server.kill()


@pytest.fixture
def opened(browser):
    """A function that opens an address and notes whatever a quiet page does not do."""
    contexts = []

    def visit(address, width=1200, **options):
        context = browser.new_context(viewport={"width": width, "height": 800}, **options)
        contexts.append(context)
        page = context.new_page()
        page.troubles = []
        note = page.troubles.append
        page.on("pageerror", lambda error: note(f"error: {error}"))
        page.on("dialog", lambda dialog: (note(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on(
            "request",
            lambda sent: sent.url.startswith((address, "data:", "blob:")) or note(f"request: {sent.url}"),
        )
        page.goto(address)
        page.wait_for_selector("article.card")
        return page

    yield visit
    for context in contexts:
        context.close()


def told(page, words):
    page.wait_for_function("words => document.querySelector('.message').textContent.includes(words)", arg=words)


def press(page, key):
    """Press a key when the card is there; earlier ones are ignored."""
    settled(page)
    page.keyboard.press(key)


def settled(page):
    page.wait_for_function("() => document.querySelector('main').getAttribute('aria-busy') !== 'true'")


def decided(page, words):
    page.wait_for_function("words => document.querySelector('.counts').textContent.includes(words)", arg=words)


def serious(page):
    """What axe-core finds serious."""
    found = Axe().run(page).response["violations"]
    return [(each["id"], each["nodes"][0]["html"]) for each in found if each["impact"] in ("serious", "critical")]


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.browser
def test_a_whole_round(project, served, opened):
    journal = project / "t.csv.decisions.jsonl"
    server = served()
    page = opened(server.address)
    first = page.locator("#card-name").inner_text()
    assert page.locator(".why").inner_text()
    press(page, "1")
    decided(page, "1 of 90 decided")
    assert lines(journal)[0]["action"] == "label"
    settled(page)
    assert page.locator("#card-name").inner_text() != first
    page.locator("button.choice").first.click()
    decided(page, "2 of 90 decided")
    press(page, "n")
    decided(page, "3 of 90 decided")
    press(page, "s")
    told(page, "Skipped")
    press(page, "u")
    told(page, "Taken back")
    press(page, "u")
    decided(page, "2 of 90 decided")
    assert [line["action"] for line in lines(journal)] == ["label", "label", "none", "skip", "undo", "undo"]
    press(page, "?")
    assert page.locator("dialog").is_visible()
    press(page, "Escape")

    page.select_option("[data-filter=reason]", "single")
    page.wait_for_function("() => document.querySelectorAll('.line').length < 6")
    page.select_option("[data-filter=reason]", "")
    page.select_option("[data-filter=rows]", "decided")
    page.wait_for_function("() => document.querySelectorAll('.line').length === 2")
    page.select_option("[data-filter=rows]", "open")
    page.wait_for_function("() => document.querySelectorAll('.line').length > 6")

    other = opened(server.address)  # two browsers: what one has decided, the other does not overwrite
    same = page.locator("#card-name").inner_text()
    assert other.locator("#card-name").inner_text() == same
    press(page, "1")
    decided(page, "3 of 90 decided")
    press(other, "n")
    told(other, "Another browser has decided this row meanwhile")
    assert len(lines(journal)) == 7

    server.kill()  # -9
    press(page, "1")
    told(page, "Not saved")
    server = served()
    page = opened(server.address)
    decided(page, "3 of 90 decided")
    page.get_by_role("button", name="Learn again").click()
    page.wait_for_selector(".changes", timeout=60000)
    assert "Learned from 3 decisions" in page.locator(".changes summary").inner_text()
    assert (project / "m.reviewed.safetensors").is_file()
    told(page, "ranked anew")
    page.select_option("[data-filter=class]", "dog")
    page.wait_for_selector("article.card")
    assert page.troubles == other.troubles == []
    server.kill()
    options = ["--drop", "file", "--drop", "text", "--method", "cc", "--set", "epochs=2", "--quiet"]
    succeed("fit", project / "t.csv", *options, "--decisions", journal, "--out", project / "again")


@pytest.mark.browser
def test_names_and_texts_are_never_html(shared, opened):
    page = opened(shared)
    assert page.locator("p.text").inner_text().startswith("<script>alert(4)</script>")
    for _ in range(3):
        press(page, "j")
        page.wait_for_timeout(100)
    assert page.locator(".card script, .card b, .line img").count() == 0
    assert HOSTILE in page.locator("[data-filter=class]").inner_text()
    assert page.troubles == []


@pytest.mark.browser
@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (400, "dark")])
def test_it_fits_and_is_accessible(shared, opened, width, scheme):
    page = opened(shared, width, color_scheme=scheme, bypass_csp=True)
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
    assert (sum(ground) < 200) == (scheme == "dark")
    assert serious(page) == []
    press(page, "?")
    assert page.locator("dialog").is_visible()
    assert serious(page) == []


def ask(address, **headers):
    data = headers.pop("data", None)
    request = urllib.request.Request(address, data, headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read(), answer.headers
    except urllib.error.HTTPError as error:
        return error.code, error.read(), error.headers


def test_only_our_own_page_may_ask(project, shared):
    address = shared
    base = address.rsplit("/", 2)[0]
    decision = json.dumps({"row": 0, "action": "none", "seen": 0, "by": "x"}).encode()
    assert ask(base + "/")[0] == ask(base + "/wrong/")[0] == 403
    status, _, headers = ask(address)
    assert status == 200
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert ask(address + "api/status", Host="evil.example")[0] == 403
    assert ask(address + "api/decide", data=decision)[0] == 403
    assert ask(address + "api/decide", data=decision, Origin="http://evil.example")[0] == 403
    assert not (project / "s.jsonl").read_bytes()
    own = {"Origin": base}
    for wrong in (b"{", b"[]", b'{"row": 1}', b'{"row":999,"action":"none","seen":0,"by":"x"}', b"x" * 20000,
                  b'{"row":1,"action":"label","label":"zebra","seen":0,"by":"x"}'):  # fmt: skip
        assert ask(address + "api/decide", data=wrong, **own)[0] == 400
    assert ask(address + "api/decide", data=decision, **own)[0] == 200
    assert ask(address + "api/decide", data=decision, **own)[0] == 409
    assert len(lines(project / "s.jsonl")) == 1
    assert ask(address + "api/card/999")[0] == 404
    assert ask(address + "web/../server.py")[0] in (403, 404)
    assert ask(address + "web/static.js")[0] == 404


def test_no_answered_decision_is_lost_by_kills_at_random_moments(project, served):
    """Two who decide at once, row by row; what the server has said yes to is in the journal after each kill."""
    rng, journal, answered = np.random.default_rng(0), project / "k.jsonl", []
    for _ in range(3):
        server = served("--decisions", "k.jsonl")
        before = {line["row"] for line in lines(journal)} if journal.exists() else set()
        assert set(answered) <= before
        left = sorted(set(range(90)) - before)

        def decide(by, address=server.address, rows=left):
            origin = address.rsplit("/", 2)[0]
            for row in rows:
                body = json.dumps({"row": row, "action": "none", "seen": 0, "by": by}).encode()
                try:
                    status, *_ = ask(address + "api/decide", data=body, Origin=origin)
                except OSError:  # killed
                    return
                if status == 200:
                    answered.append(row)

        people = [threading.Thread(target=decide, args=(by,)) for by in ("anna", "ben")]
        for each in people:
            each.start()
        time.sleep(rng.uniform(0.02, 0.12))
        server.kill()
        for each in people:
            each.join()
        whole = journal.read_bytes().rpartition(b"\n")[0].splitlines()  # the last line may be torn
        found = [json.loads(line)["row"] for line in whole]
        assert set(answered) <= set(found)
        assert len(found) == len(set(found))  # nobody overwrote anybody
    assert answered
    assert len(answered) == len(set(answered))


def test_images_stay_in_the_folder_and_are_images(shared):
    status, content, headers = ask(shared + "image/3")
    assert (status, headers["Content-Type"], content[:4]) == (200, "image/png", b"\x89PNG")
    for row in (87, 88, 89, 90):
        assert ask(f"{shared}image/{row}")[0] == 404


@pytest.mark.browser
def test_the_page_without_a_server(project, opened, tmp_path):
    columns = ["--images", "file", "--text", "text"]
    succeed("review", project / "m", project / "t.csv", *columns, "--static", tmp_path / "p.html")
    page = opened((tmp_path / "p.html").as_uri())
    row = int(page.locator(".line button").first.get_attribute("data-row"))
    press(page, "n")
    decided(page, "1 of 90 decided")
    press(page, "1")
    decided(page, "2 of 90 decided")
    press(page, "u")
    decided(page, "1 of 90 decided")
    with page.expect_download() as loading:
        page.get_by_role("button", name="Download decisions").click()
    loading.value.save_as(tmp_path / "d.jsonl")
    found = lines(tmp_path / "d.jsonl")
    assert [line["action"] for line in found] == ["none", "label", "undo"]
    assert found[0]["row"] == row
    assert page.troubles == []
    succeed("apply", project / "t.csv", tmp_path / "d.jsonl", "--out", tmp_path / "new.csv")
    before, after = (pd.read_csv(path)["candidates"] for path in (project / "t.csv", tmp_path / "new.csv"))
    assert np.flatnonzero(before != after).tolist() == [row]
