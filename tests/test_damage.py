"""Damaged files of experiments: each gets one sentence or a counted line, and nothing counts that is not whole."""

import copy
import json
import random
import warnings

import pytest
from typer.testing import CliRunner

from oneof.bench.ledger import read
from oneof.bench.plan_file import read_plan
from oneof.bench.record import check_record, damage_of
from oneof.bench.report.paper import read_paper
from oneof.bench.report.results import collect
from oneof.bench.report.sections import sections
from oneof.bench.report.writer import write_report
from oneof.bench.running.board import Board
from oneof.bench.running.estimate import estimate
from oneof.bench.running.runner import PlanProgress, Runner, progress_of
from oneof.cli import app
from test_record import DONE, changed
from test_report import record, write_plan

PLAN = 'title = "Made"\ndatasets = ["lost"]\ntrials = 3\n[methods.idgp]\n[methods.cc]\n'
# An escape code, a bell, a line end, a character that turns the direction of text, half of a pair.
CONTROL = "\x1b[31mred\x1b[0m\a\r\n\u202e\x9b1m\ud800"
DEEP = 100_000


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def plan(tmp_path):
    return write_plan(tmp_path, PLAN)


def whole(plan):
    """A record for each run of the plan, one of them failed."""
    made = [json.loads(json.dumps(record(run, 60, 70))) for run in plan.runs()]
    kept = {name: made[-1][name] for name in ("key", "spec", "device", "versions", "commit")}
    return [*made[:-1], kept | {"status": "failed", "error": "Traceback\nValueError: bad"}]


def write_lines(path, lines):
    path.write_text("".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines))
    return path


class Idle:
    """An engine that is never asked, since the time is over when the runner begins."""

    capacity = 1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def start(plan, ledger):
    return Runner(plan, ledger, Idle(), device="cpu", budget=1e-9).run()


# --- ledgers -------------------------------------------------------------------------------------------------


def test_damaged_runs_are_not_done(plan, tmp_path):
    """One lacks its seconds, one its curves, one is torn: three runs are left, and everybody says so."""
    lines = whole(plan)[:5]
    del lines[0]["seconds"], lines[2]["curves"]
    ledger = write_lines(tmp_path / "ledger.jsonl", [*lines[:4], json.dumps(lines[4])[:70] + "\n"])
    words = (
        f"3 lines of the ledger {str(ledger)!r} cannot be read; their runs do not count (line 1: it has no "
        "'seconds'; line 3: it has no 'curves'; line 5: it is no JSON, or torn)"
    )
    with pytest.warns(UserWarning, match="cannot be read") as caught:
        assert read([ledger], damage_of).skipped == 3
    assert [str(each.message) for each in caught] == [words]
    with pytest.warns(UserWarning, match="3 lines of the ledger"):
        assert start(plan, ledger).done == 2
    with pytest.warns(UserWarning, match="3 lines of the ledger"):
        assert str(next(estimate(plan, ledger, 1, "cpu"))) == "6 runs, 4 left"
    shown = invoke("status", plan.path, "--ledger", ledger)
    assert shown.stdout.startswith("2 of 6 runs done")
    assert shown.stderr == f"warning: {words}\n"
    told = invoke("report", "--plan", plan.path, "--out", tmp_path / "out", ledger)
    assert told.stderr == f"warning: {words}\n"
    page = (tmp_path / "out" / "report.md").read_text()
    assert "2 of 6 runs are done. Lines of the ledgers that could not be read: 3." in page


def test_a_whole_record_of_the_same_run_counts(plan, tmp_path):
    good = whole(plan)[0]
    thin = {"key": good["key"], "status": "done", "spec": good["spec"]}
    ledger = write_lines(tmp_path / "ledger.jsonl", [good, thin])
    with pytest.warns(UserWarning, match=r"1 line of .* its run does not count \(line 2: it has no 'device'\)"):
        assert progress_of(plan, ledger).done == 1


def test_a_spec_may_lack_what_the_baseline_has(plan, tmp_path):
    """As in ledgers from before a setting was added; the key is the same."""
    lines = whole(plan)[:5]
    for line in lines:
        del line["spec"]["settings"]["patience"]
    ledger = write_lines(tmp_path / "ledger.jsonl", lines)
    report = collect(plan, read([ledger], damage_of))
    assert report.done == 5
    assert [trial.patience for trial in report.outcomes["idgp"]["lost"].done] == [None] * 3


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("seconds", 10**400, "seconds is an integer of 1329 bits, but must be a number$"),
        ("seconds", float("1e999"), "seconds is inf, but must be a number$"),
        ("seconds", -1, "seconds is -1, but must be 0 or more$"),
        ("epochs", 2**60, "epochs is 1152921504606846976, but must be a whole number$"),
        ("epochs", 0, "epochs is 0, but must be 1 or more$"),
        ("results.last_epoch.epoch", -1, "results.last_epoch.epoch is -1, but must be 0 or more$"),
        ("results.last_epoch.test_accuracy", 95.3, "test_accuracy is 95.3, but must be from 0 to 1$"),
        (
            "results.covering_rate.validation.covering_rate",
            -0.1,
            "covering_rate is -0.1, but must be from 0 to 1$",
        ),
        ("results.transductive.accuracy", 2, "results.transductive.accuracy is 2, but must be from 0 to 1$"),
        ("curves.epoch", [], r"curves.epoch is \[\], but must be rising numbers of epochs$"),
        ("curves.epoch", [0, 0, 1], r"curves.epoch is \[0, 0, 1\], but must be rising numbers of epochs$"),
        ("curves.loss", [1.0], "curves.loss has another number of points than curves.epoch$"),
        ("candidates.sha256", 3, "candidates.sha256 is 3, but must be a text$"),
        ("candidates.mean_size", "x", "candidates.mean_size is 'x', but must be a number$"),
        ("versions", {CONTROL * 99: 3}, "is 3, but must be a text$"),
        ("memory", {"x": [[[[[[[[[1]]]]]]]]]}, r"memory.x is \[\[\[\[\.\.\.\]\]\]\], but must be a number$"),
    ],
)
def test_what_cannot_be_is_said(path, value, words):
    wrong = damage_of(changed(DONE, path, value))
    assert len(wrong) < 400
    with pytest.raises(AssertionError, match=words):
        raise AssertionError(wrong)
    with pytest.raises(ValueError, match="is not whole"):
        check_record(changed(DONE, path, value))


NO_LEDGERS = {"csv": b"a,b\n1,2\n", "list": b"[1]\n", "model": b"\x08\x00{}", "deep": b"[" * DEEP}


@pytest.mark.parametrize("content", NO_LEDGERS.values(), ids=NO_LEDGERS)
def test_a_file_that_is_no_ledger_is_never_written_to(plan, tmp_path, content):
    path = tmp_path / "other"
    path.write_bytes(content)
    for command in (["run", plan.path, "--device", "cpu"], ["run", plan.path, "--dry"], ["status", plan.path]):
        result = invoke(*command, "--ledger", path)
        assert result.exit_code == 2
        assert result.stderr == (
            f"error: {str(path)!r} is no ledger: line 1 is no record of a run; name another file\n"
        )
    assert path.read_bytes() == content


def test_ledgers_that_are_folders_or_not_there(plan, tmp_path):
    result = invoke("status", plan.path, "--ledger", tmp_path)
    assert result.stderr == f"error: {str(tmp_path)!r} is a folder, but a ledger is a file; add a file name\n"
    result = invoke("status", plan.path, "--ledger", tmp_path / "none")
    assert (result.exit_code, result.stdout) == (0, "0 of 6 runs done\n")
    assert result.stderr == f"note: there is no ledger {str(tmp_path / 'none')!r} yet\n"
    result = invoke("report", "--plan", plan.path, "--out", tmp_path / "out", tmp_path / "none")
    assert result.stderr == (
        f"error: there is no ledger {str(tmp_path / 'none')!r}; check the path, or oneof run the plan first\n"
    )
    result = invoke("run", plan.path, "--ledger", tmp_path / "no" / "ledger.jsonl")
    assert f"the folder {str(tmp_path / 'no')!r} does not exist; create it first" in result.stderr
    result = invoke("report", "--plan", plan.path, "--out", plan.path)
    assert f"{str(plan.path)!r} is a file, but a report is a folder of files; name a folder" in result.stderr


# --- random damage -------------------------------------------------------------------------------------------

VALUES = [None, True, -1, 0, 3, 10**400, 2.5, 1e300, "", "x", CONTROL, [], [1], {}, {"a": 1}, [[[[]]]]]


def places(value, path=()):
    """All places of a record, as tuples of names and numbers."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in items:
        yield from places(item, (*path, name))


def damage(record, rng):
    """Drop, retype, nest or rename something; return the line."""
    record = copy.deepcopy(record)
    for _ in range(rng.randrange(1, 4)):
        *parents, last = rng.choice([place for place in places(record) if place])
        place = record
        for name in parents:
            place = place[name]
        match rng.randrange(5):
            case 0:
                del place[last]
            case 1:
                place[last] = rng.choice(VALUES)
            case 2:
                place[last] = [place[last]] if rng.random() < 0.5 else {"deeper": place[last]}
            case 3 if isinstance(place[last], str):
                place[last] += CONTROL
            case _ if isinstance(place, dict):
                place[CONTROL] = place[last]
        if not record:
            break
    line = json.dumps(record)
    match rng.randrange(8):
        case 0:
            return line[: rng.randrange(len(line))] + "\n"
        case 1:
            return line.replace("1", "9" * rng.choice([5, 30, 400, 5000]), 1) + "\n"
        case 2:
            return line.replace("0.", rng.choice(["1e999", "NaN", "-0.", "[" * DEEP]), 1) + "\n"
    return line + "\n"


def test_random_damage_is_a_counted_line_or_one_sentence(tmp_path):
    """Several hundred ledgers; what is read of them is whole, and no page or line holds a control character."""
    plan = write_plan(tmp_path, PLAN)
    lines, ledger, kept = whole(plan), tmp_path / "ledger.jsonl", 0
    for seed in range(300):
        rng = random.Random(seed)
        damaged = [damage(line, rng) if rng.random() < 0.7 else line for line in lines]
        write_lines(ledger, [lines[0], *damaged])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = read([ledger], damage_of)
            for each in found.records.values():
                check_record(each)
            assert progress_of(plan, ledger).done == start(plan, ledger).done >= 1
            sections(collect(plan, found))
            if seed % 16 == 0:
                assert not write_report_is_refused(plan, ledger, tmp_path / "out")
        assert all("\n" not in str(each.message) and len(str(each.message)) < 2000 for each in caught)
        assert bool(caught) is bool(found.skipped)
        assert sum(record["status"] == "done" for record in found.records.values()) >= 1
        kept += found.skipped
    assert kept > 300  # the damage is real


def write_report_is_refused(plan, ledger, folder):
    try:
        files = write_report(plan, [ledger], folder)
    except (ValueError, OSError) as error:
        assert "\n" not in str(error)  # noqa: PT017
        return True
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert all(character.isprintable() or character == "\n" for character in text), file
    return False


# --- the terminal --------------------------------------------------------------------------------------------


def is_clean(text):
    return all(character.isprintable() or character == "\n" for character in text)


def test_nothing_in_a_ledger_controls_the_terminal(plan, tmp_path):
    failed = whole(plan)[-1] | {"error": f"ValueError: {CONTROL}" + "x" * 10_000}
    ledger = write_lines(tmp_path / "ledger.jsonl", [failed])
    folder = tmp_path / "ledger.checkpoints"
    folder.mkdir()
    live = {"running": [CONTROL], "unavailable": {CONTROL: CONTROL}, "last": [CONTROL], "doing": CONTROL}
    (folder / "progress.json").write_text(json.dumps(live | {"seconds_left": 3.0}))
    shown = invoke("status", plan.path, "--ledger", ledger)
    assert "[31mred" in shown.stdout
    assert is_clean(shown.output)
    assert len(shown.stdout) < 2000


def test_the_board_is_clean(capsys):
    with Board(CONTROL) as board:
        board.show(PlanProgress(total=3, last=[CONTROL], doing=CONTROL, failed={CONTROL: CONTROL}))
    said = capsys.readouterr().err
    assert "[31mred" in said
    assert is_clean(said)
    picture = board._picture(PlanProgress(total=3, running=[CONTROL], doing=CONTROL))
    with board._console.capture() as caught:
        board._console.print(picture)
    assert is_clean(caught.get())


# --- progress.json -------------------------------------------------------------------------------------------

LIVE = {"running": ["a"], "unavailable": {}, "last": ["b"], "seconds_left": None, "doing": "c"}
WRONG_PROGRESS = {
    "empty": ("", "it is no JSON"),
    "torn": ('{"running":', "it is no JSON"),
    "deep": ("[" * DEEP, "it is no JSON"),
    "list": ("[]", r"it is \[\], but must be a table"),
    "missing": (json.dumps({"running": []}), "it has no 'unavailable'"),
    "type": (json.dumps(LIVE | {"running": "a"}), "running is 'a', but must be a list"),
    "nan": (
        json.dumps(LIVE | {"seconds_left": float("nan")}),
        "seconds_left is nan, but must be a number or null",
    ),
    "huge": (
        json.dumps(LIVE | {"seconds_left": 10**400}),
        "seconds_left is an integer of 1329 bits, but must be a number or null",
    ),
}


@pytest.mark.parametrize(("text", "words"), WRONG_PROGRESS.values(), ids=WRONG_PROGRESS)
def test_damaged_progress_is_ignored_with_a_word(plan, tmp_path, text, words):
    ledger = write_lines(tmp_path / "ledger.jsonl", whole(plan))
    (tmp_path / "ledger.checkpoints").mkdir()
    (tmp_path / "ledger.checkpoints" / "progress.json").write_text(text)
    with pytest.warns(UserWarning, match=rf"progress\.json' is damaged \({words}\) and is ignored; delete it"):
        progress = progress_of(plan, ledger)
    assert (progress.done, len(progress.failed), progress.running) == (5, 1, [])
    assert invoke("status", plan.path, "--ledger", ledger).exit_code == 0


def test_progress_is_what_the_runner_wrote(plan, tmp_path):
    (tmp_path / "ledger.checkpoints").mkdir()
    (tmp_path / "ledger.checkpoints" / "progress.json").write_text(json.dumps(LIVE | {"total": "x"}))
    progress = progress_of(plan, tmp_path / "ledger.jsonl")
    assert (progress.total, progress.running, progress.last, progress.doing) == (6, ["a"], ["b"], "c")


# --- plans and printed numbers -------------------------------------------------------------------------------

WRONG_PLANS = {
    "deep list": (f"x = {'[' * DEEP}", "is nested too deeply; mend it there"),
    "deep list that is read": (f"title = {'[' * 90}{']' * 90}\n{PLAN[15:]}", "title is .*, but must be a text"),
    "deep table": (f"{PLAN}[settings.{'.'.join('a' * 900)}]\nx = 1\n", "is nested too deeply|settings and grid"),
    "digits": (PLAN.replace("3", "1" * 5000), "is not valid TOML .*digits"),
    "bits": (PLAN.replace("3", "1" * 300), "trials is a whole number of more than 64 bits; write a smaller one"),
    "too many": (PLAN.replace("3", "9" * 10), "it has up to 19999999998 runs, but must have 1000000 at most"),
    "infinity": (f"{PLAN}[settings]\nlr = inf\n", "settings.lr is inf, but must be a finite number"),
    "minus infinity": (f"{PLAN}[[override]]\nlr = -inf\n", r"override\[0\].lr is -inf, but must be a finite"),
    "nan in a grid": (f"{PLAN}[grid]\nlr = [0.1, nan]\n", r"grid.lr\[1\] is nan, but must be a finite number"),
    "data set twice": (PLAN.replace('"lost"', '"lost", "lost"'), "datasets names 'lost' more than once"),
    "date": (
        f'{PLAN}[candidates]\nprocess = "pair"\nparameters = {{rate = 2020-01-01}}\n',
        "candidates.parameters.rate is .* of type date, but must be a text, number",
    ),
    "long name": (PLAN.replace("lost", "x" * 100_000), "datasets names 'xxx.*, but it must be one of"),
}


@pytest.mark.parametrize(("text", "words"), WRONG_PLANS.values(), ids=WRONG_PLANS)
def test_plans_that_cannot_be_used(tmp_path, text, words):
    path = tmp_path / "plan.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=words) as caught:
        read_plan(path)
    assert str(path) in str(caught.value)
    assert len(str(caught.value)) < 600 + len(str(path))
    result = invoke("status", path)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)


PAPER = "[table2.lost]\nidgp = [77.02, 0.82]\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (PAPER.replace("[77.02, 0.82]", '"12"'), "table2.lost.idgp is '12', but must be a mean and a standard"),
        (PAPER.replace("77.02", "true"), r"table2.lost.idgp is \[True, 0.82\], but must be a mean"),
        (PAPER.replace("77.02", "inf"), r"table2.lost.idgp\[0\] is inf, but must be a finite number"),
        (
            "table2.lost = 3\n",
            r"the printed numbers table2.lost are 3, but must be a table: write \[table2.lost\]",
        ),
        (f"table2 = {'[' * DEEP}", "is nested too deeply"),
        (PAPER.replace("77", "7" * 5000), "is not valid TOML|must be a finite"),
    ],
)
def test_printed_numbers_that_cannot_be_used(tmp_path, text, words):
    (tmp_path / "paper.toml").write_text(text)
    with pytest.raises(ValueError, match=words):
        read_paper(tmp_path / "paper.toml", "table2")
