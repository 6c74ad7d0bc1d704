"""The suites of faults and of damaged inputs count rightly, and their page shows their figures."""

import json
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import oneof
from faults import hooks
from faults.harness import Case, Ended, Group, LostError, SkippedError, Suite, TracebackError, check_sentence
from fuzz.child import KEPT, damaged, kept_inputs, kind_of
from fuzz.mutate import mutate_bytes, mutate_text, mutate_tree
from fuzz.readers import READERS
from oneof.labels import rows_text

ROOT = Path(__file__).parents[1]


@pytest.fixture
def reliability(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import reliability

    return reliability


def test_the_page_shows_the_figures(reliability):
    text, figures = reliability.PAGE.read_text(), json.loads(reliability.FIGURES.read_text())
    assert reliability.page(text, figures) == text, "write it again with python benchmarks/reliability.py"
    assert "| in all | " in text
    figures["fuzz"]["rows"][0]["crash"] += 1
    assert reliability.page(text, figures) != text


def test_figures_say_where_they_come_from_and_add_up(reliability):
    figures = json.loads(reliability.FIGURES.read_text())
    for part in ("faults", "fuzz"):
        assert figures[part].keys() >= {"command", "seed", "commit", "device", "cores", "versions"}
    for row in figures["faults"]["rows"]:
        assert row["tried"] == row["survived"] + row["lost"] + row["traceback"]
        assert row["tried"] or row["skipped"]
    for row in figures["fuzz"]["rows"]:
        assert row["inputs"] == sum(row[name] for name in reliability.OUTCOMES)
    assert [row["reader"] for row in figures["fuzz"]["rows"]] == list(READERS)


def test_a_suite_counts_what_became_of_attempts():
    outcomes = {
        "fine": None,
        "lost": LostError("a record is gone"),
        "shown": TracebackError("Traceback"),
        "not-here": SkippedError("no root"),
        "bug": KeyError("in the case itself"),
    }

    def case(name):
        def attempt(_):
            if outcomes[name] is not None:
                raise outcomes[name]

        return Case(name, name, 2, attempt, alone=name == "fine")

    rows = {row.case: row for row in Suite([case(name) for name in outcomes], 0, 1.0, 2, 60.0).run()}
    counts = {name: (row.tried, row.survived, row.lost, row.traceback) for name, row in rows.items()}
    assert counts == {
        "fine": (2, 2, 0, 0),
        "lost": (2, 0, 2, 0),
        "shown": (2, 0, 0, 2),
        "not-here": (0, 0, 0, 0),
        "bug": (2, 0, 2, 0),
    }
    assert rows["not-here"].skipped == "no root"


def test_a_budget_that_is_spent_begins_nothing():
    suite = Suite([Case("case", "case", 3, lambda _: None)], 0, 1.0, 2, -1.0)
    assert suite.run()[0].tried == 0
    assert suite.not_begun == 3


@pytest.mark.parametrize(
    ("ended", "error"),
    [
        (Ended(2, "", "error: there is no file 'x'; check the path\n", 0.0), None),
        (Ended(2, "", "Traceback (most recent call last):\n  ...\nKeyError: 1\n", 0.0), TracebackError),
        (Ended(1, "3 of 4 runs done", "", 0.0), LostError),
        (Ended(0, "", "error: but a code of success\n", 0.0), LostError),
        (Ended(-11, "", "error: then a crash\n", 0.0), LostError),
        (Ended(2, "", f"error: {'x' * 2000}\n", 0.0), LostError),
    ],
)
def test_a_failure_must_be_a_sentence(ended, error):
    if error is None:
        check_sentence(ended)
    else:
        with pytest.raises(error):
            check_sentence(ended)


def test_a_group_is_reaped_only_when_it_is_killed():
    group = Group([sys.executable, "-c", "raise SystemExit(3)"])
    assert not group.wait_until(lambda: False, 60)
    assert group.code == 3
    assert Path(f"/proc/{group.pid}").exists()  # its number still belongs to it
    group.close()
    assert not Path(f"/proc/{group.pid}").exists()
    assert group.code == 3
    killed = Group([sys.executable, "-c", "import time; time.sleep(60)"])
    assert killed.code is None
    killed.kill()
    killed.wait_until(lambda: False, 60)
    assert killed.code == -signal.SIGKILL
    killed.close()


def test_hooks_kill_at_a_change_of_a_file_and_move_the_clock(tmp_path):
    """The second file that is opened for writing is never written to; the clock jumps when a file appears."""
    (tmp_path / "sitecustomize.py").write_text(hooks.SITECUSTOMIZE)
    (tmp_path / "files").mkdir()
    code = f"""
import time
from pathlib import Path
before, folder = time.time(), Path({str(tmp_path / "files")!r})
(folder / "first").write_text("whole")
Path({str(tmp_path / "jump")!r}).touch()
print(round((time.time() - before) / 3600), flush=True)
(folder / "first").read_text()
(folder / "second").write_text("never")
"""
    faults = {
        "kill": {"folder": str(tmp_path / "files"), "event": 2, "delay": 0.0},
        "clock": {"when": str(tmp_path / "jump"), "by": -7200.0},
    }
    environment = {"PYTHONPATH": f"{tmp_path}:{ROOT / 'tests'}", hooks.VARIABLE: json.dumps(faults)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "-2\n"), done.stderr
    assert (tmp_path / "files" / "first").read_text() == "whole"
    assert not (tmp_path / "files" / "second").exists()


def test_the_hooks_still_find_what_they_change():
    from oneof.bench.running import engines
    from oneof.data import catalogue
    from oneof.train import checkpoint

    assert checkpoint.SECONDS_BETWEEN_SAVES > 0
    assert callable(engines.execute_task)
    assert "lost" in catalogue.DATASETS


@pytest.mark.parametrize("mutate", [mutate_bytes, mutate_text])
def test_damage_is_repeated_by_its_seed_and_never_fails(mutate):
    content = b"id,a,candidates\n1,2.5,k1|k2\n2,3,k1\n"
    for seed in range(300):
        damaged_once, again = (mutate(content, random.Random(seed), [content]) for _ in range(2))
        assert damaged_once == again
    assert len({mutate(content, random.Random(seed), [content]) for seed in range(300)}) > 200


def test_damage_to_a_tree_leaves_the_original():
    tree = {"a": [1, {"b": "text"}], "c": None}
    before = json.dumps(tree)
    assert len({repr(mutate_tree(tree, random.Random(seed))) for seed in range(200)}) > 50
    assert json.dumps(tree) == before


@pytest.mark.parametrize("name", ["encode", "csv", "npz", "idx", "matlab", "image", "plan", "paper"])
def test_readers_read_their_seeds_and_inputs_repeat(name, tmp_path):
    reader = READERS[name]
    seeds = reader.seeds()
    for suffix, content in seeds:
        (tmp_path / f"input{suffix}").write_bytes(content)
        reader.read(tmp_path / f"input{suffix}")
    later = [damaged(reader, seeds, 0, number) for number in range(len(seeds), len(seeds) + 20)]
    assert later == [damaged(reader, seeds, 0, number) for number in range(len(seeds), len(seeds) + 20)]
    assert any(each not in seeds for each in later)


def error_of(function, *arguments):
    try:
        function(*arguments)
    except Exception as error:
        return error
    raise AssertionError("no error")


def test_sentences_are_told_from_tracebacks():
    assert kind_of(error_of(oneof.encode, [["cat"], []])) == "refused"
    assert kind_of(error_of(oneof.encode, [0.5, 0.7])) == "refused"  # in the words of scikit-learn, on purpose
    assert kind_of(error_of(int, "x")) == "traceback"
    assert kind_of(error_of(json.loads, "{")) == "traceback"
    assert kind_of(error_of({}.__getitem__, 1)) == "traceback"
    assert kind_of(error_of(rows_text, [[1], [2, 3]])) == "traceback"  # the interpreter's words in a line of ours
    assert kind_of(error_of(oneof.encode, ["x" * 3000, 1])) in ("refused", "too_long")


def test_kept_inputs_have_a_reader():
    assert {path.name for path in KEPT.iterdir() if path.is_dir()} <= READERS.keys()
    for name in READERS:
        assert all(suffix.startswith((".", "-")) for suffix, _ in kept_inputs(name))


def test_a_reader_that_crashes_is_started_again(reliability, monkeypatch, tmp_path):
    """In place of the real process one that dies at its third input."""
    from fuzz import __main__ as drive

    stub = tmp_path / "stub.py"
    stub.write_text("""
import json, os, sys
first, last, folder = int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
open(folder + "/current", "w").write("input.csv")
open(folder + "/input.csv", "w").write("a,b")
for number in range(max(first, 0), last):
    print(json.dumps({"begun": number}), flush=True)
    if number == 2:
        os.abort()
    print(json.dumps({"number": number, "outcome": "read"}), flush=True)
""")
    popen = subprocess.Popen

    def start(command, **options):
        return popen([sys.executable, str(stub), *command[3:]], **options)

    monkeypatch.setattr(drive.subprocess, "Popen", start)
    row = drive.Drive("csv", 0, 5, keep=False).run()
    assert (row.inputs, row.read, row.crash) == (5, 4, 1)
    assert row.failures == {"crash csv": "exit code -6"}


def test_some_rows_are_replaced_and_say_where_they_come_from(reliability, tmp_path):
    def figures(commit, **tried):
        rows = [
            {"about": about, "tried": times, "survived": times, "lost": 0, "traceback": 0, "skipped": ""}
            for about, times in tried.items()
        ]
        where = {"cores": 2, "device": "CPU", "versions": {"torch": "2"}, "seconds_in_all": 1}
        return {"command": f"faults {commit}", "commit": commit, "rows": rows, **where}

    path = tmp_path / "figures.json"
    reliability.write(path, "faults", figures("first", one=1, two=2))
    reliability.write(path, "faults", figures("second", two=5, three=3), some=True)
    found = json.loads(path.read_text())["faults"]
    assert {row["about"]: row["tried"] for row in found["rows"]} == {"one": 1, "two": 5, "three": 3}
    assert found["commit"] == "first"
    assert [row.get("origin", {}).get("commit") for row in found["rows"]] == [None, "second", "second"]
    page = reliability.page(
        reliability.PAGE.read_text(), {"faults": found, "fuzz": figures("third") | {"rows": []}}
    )
    assert page.count("Later: ") == page.count("\nLater: `faults second`, commit second, 2 cores") == 1
