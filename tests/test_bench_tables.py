"""Tables of results: exact text on small made results, hostile names, and LaTeX that compiles."""

import math
import re
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from oneof.bench.report.grids import Result, Results, accuracies, differences, latex, markdown, plain_marks
from oneof.bench.report.statistics import Cell, Comparison, cell, compare
from oneof.pages.content import Entry, Grid

HOSTILE = r"\a_b & 50% $x^2$ #1 {y} ~z~ <w> |v| [u] *t* `s`"


def result(mean, std, trials=5, comparison=None):
    return Result(Cell(mean, std, trials, 5), comparison)


def versus(difference, half, verdict):
    return Comparison(difference, difference - half, difference + half, 0.5, verdict)


@pytest.fixture
def results():
    rows = {
        "cc": {
            "lost": result(63.544, 0.25, comparison=versus(13.476, 0.5, "win")),
            "yahoo_news": result(66.60, 0.31, trials=3, comparison=versus(0.02, 1.5, "undecided")),
        },
        "IDGP": {"lost": result(77.02, 0.82), "yahoo_news": result(66.62, 0.19)},
        "rc": {
            "lost": result(77.021, 0.46, comparison=versus(-0.001, 0.4, "tie")),
            "yahoo_news": result(67.1, math.nan, trials=1, comparison=versus(-0.48, math.nan, "undecided")),
        },
        "valen": {"lost": result(78.0, 0.1, comparison=versus(-0.98, 0.2, "loss"))},
        "supervised": {"lost": result(90, 1), "yahoo_news": result(math.nan, math.nan, trials=0)},
    }
    return Results("Accuracy (%)", ["lost", "yahoo_news"], rows, reference="IDGP", apart=["supervised"])


def test_the_plain_test_is_named_beside_the_corrected_one():
    """By scipy's own paired test: a difference that shared rows explain is a win, one that is none stays none."""
    rng, n = np.random.default_rng(0), 20
    reference = dict(enumerate(rng.normal(70, 3, n)))
    shifts = {"near": (1.5, 2.5), "far": (3.0, 1.2), "ahead": (-1.5, 2.5), "level": (0.0, 0.2)}
    rows, expected = {"idgp": {"lost": Result(cell(reference, n))}}, {}
    for label, (shift, spread) in shifts.items():
        theirs = {i: score - shift + rng.normal(0, spread) for i, score in reference.items()}
        both = compare(reference, theirs, (898, 112)), compare(reference, theirs)
        rows[label] = {"lost": Result(cell(theirs, n), *both)}
        expected[label] = stats.ttest_rel(list(reference.values()), list(theirs.values())).pvalue < 0.05
        assert (both[1].verdict in ("win", "loss")) is bool(expected[label])
    assert [rows[label]["lost"].comparison.verdict for label in shifts] == ["undecided", "win", "undecided", "tie"]
    found = Results("Accuracy (%)", ["lost"], rows, reference="idgp")
    assert plain_marks(found) == (
        "The plain paired t-test, which takes them for independent, gives idgp win/tie/loss/?: 2/1/1/0; "
        "it adds • on lost (near), ◦ on lost (ahead)."
    )
    assert plain_marks(replace(found, rows={"idgp": rows["idgp"], "far": rows["far"]})).endswith("?: 1/0/0/0.")


MARKS = (
    "• / ◦: IDGP wins / loses by a paired two-sided t-test over trials at 0.05. ?: undecided, not significant and "
    "not known to 1 point (95 % interval) either. IDGP in all, win/tie/loss/?: 1/1/1/2."
)
LATEX_MARKS = MARKS.replace("•", r"$\bullet$").replace("◦", r"$\circ$").replace("%", r"\%")


def test_accuracies_in_markdown(results):
    """Ranks on Lost alone, since Yahoo has no VALEN: VALEN 1, RC 2, IDGP 3, CC 4; the bound is no part of it."""
    assert markdown(accuracies(results)) == (
        "**Accuracy (%)**\n"
        "\n"
        "| method | lost | yahoo\\_news | IDGP win/tie/loss/? | mean rank |\n"
        "| --- | --- | --- | --- | --- |\n"
        "| IDGP | 77.02 ± 0.82 | 66.62 ± 0.19 |  | 3.00 |\n"
        "| cc | 63.54 ± 0.25 • | 66.60 ± 0.31 ? (3 of 5 trials) | 1/0/0/1 | 4.00 |\n"
        "| rc | 77.02 ± 0.46 | **67.10** ? (1 of 5 trials) | 0/1/0/1 | 2.00 |\n"
        "| valen | **78.00 ± 0.10** ◦ | – | 0/0/1/0 | 1.00 |\n"
        "| supervised | 90.00 ± 1.00 | – (0 of 5 trials) |  |  |\n"
        "\n"
        f"{MARKS}\n"
        "\n"
        "Mean ranks over 1 of 2 data sets, those with results of all methods.\n"
    )


def test_accuracies_in_latex(results):
    assert latex(accuracies(results)) == "\n".join(
        [
            r"% needs \usepackage{booktabs}",
            r"\begin{table}[t]",
            r"\centering",
            r"\small",
            r"\caption{Accuracy (\%)}",
            r"\begin{tabular}{lcccc}",
            r"\toprule",
            r"method & lost & yahoo\_news & IDGP win/tie/loss/? & mean rank \\",
            r"\midrule",
            r"IDGP & 77.02 $\pm$ 0.82 & 66.62 $\pm$ 0.19 &  & 3.00 \\",
            r"\midrule",
            r"cc & 63.54 $\pm$ 0.25 $\bullet$ & 66.60 $\pm$ 0.31 ? (3 of 5 trials) & 1/0/0/1 & 4.00 \\",
            r"rc & 77.02 $\pm$ 0.46 & \textbf{67.10} ? (1 of 5 trials) & 0/1/0/1 & 2.00 \\",
            r"valen & \textbf{78.00 $\pm$ 0.10} $\circ$ & -- & 0/0/1/0 & 1.00 \\",
            r"\midrule",
            r"supervised & 90.00 $\pm$ 1.00 & -- (0 of 5 trials) &  &  \\",
            r"\bottomrule",
            r"\end{tabular}",
            rf"\par\smallskip\footnotesize {LATEX_MARKS}",
            r"\par\smallskip\footnotesize Mean ranks over 1 of 2 data sets, those with results of all methods.",
            r"\end{table}",
            "",
        ]
    )


def test_differences_in_markdown(results):
    assert markdown(differences(results)) == (
        "**Accuracy (%): IDGP minus each method, in points, with 95 % intervals**\n"
        "\n"
        "| method | lost | yahoo\\_news |\n"
        "| --- | --- | --- |\n"
        "| cc | +13.48 (+12.98 to +13.98) • | +0.02 (−1.48 to +1.52) ? |\n"
        "| rc | +0.00 (−0.40 to +0.40) | −0.48 ? |\n"
        "| valen | −0.98 (−1.18 to −0.78) ◦ | – |\n"
        "\n"
        f"{MARKS}\n"
    )


def test_differences_in_latex(results):
    lines = latex(differences(results)).splitlines()
    assert r"cc & +13.48 (+12.98 to +13.98) $\bullet$ & +0.02 ($-$1.48 to +1.52) ? \\" in lines
    assert r"valen & $-$0.98 ($-$1.18 to $-$0.78) $\circ$ & -- \\" in lines
    assert lines.count(r"\midrule") == 1


def test_means_that_are_printed_alike_are_all_the_best():
    """77.021 and 77.02 cannot be told apart on paper; the ranks still tell them apart."""
    rows = {"a": {"x": result(77.021, 0.1)}, "b": {"x": result(77.02, 0.1)}, "c": {"x": result(77.01, 0.1)}}
    table = markdown(accuracies(Results("t", ["x"], rows, reference="a")))
    assert "| a | **77.02 ± 0.10** |  | 1.00 |" in table
    assert "| b | **77.02 ± 0.10** | 0/0/0/0 | 2.00 |" in table
    assert "| c | 77.01 ± 0.10 | 0/0/0/0 | 3.00 |" in table
    assert "•" not in table


def test_results_from_scores():
    """Differences 1 2 3 2 2: mean 2, half-width 2.776445 sqrt(0.5 / 5) = 0.88."""
    ours, theirs = dict(enumerate([91, 92, 93, 92, 92])), dict.fromkeys(range(5), 90.0)
    rows = {
        "IDGP": {"x": Result(cell(ours, 5))},
        "cc": {"x": Result(cell(theirs, 5), compare(ours, theirs))},
    }
    made = Results("t", ["x"], rows, reference="IDGP")
    assert "| cc | 90.00 ± 0.00 • | 1/0/0/0 | 2.00 |" in markdown(accuracies(made))
    assert "| IDGP | **92.00 ± 0.71** |  | 1.00 |" in markdown(accuracies(made))
    assert "| cc | +2.00 (+1.12 to +2.88) • |" in markdown(differences(made))


def test_table_without_results():
    """A report of a ledger that is still empty, and one in which the reference has not run."""
    empty = Results("t", ["x"], {"IDGP": {}, "cc": {}}, reference="IDGP")
    note = "No mean ranks: there is no data set with results of all methods.\n"
    assert markdown(accuracies(empty)).endswith(f"| cc | – | 0/0/0/0 |  |\n\n{note}")
    assert markdown(differences(empty)).endswith("| cc | – |\n")
    alone = Results("t", ["x"], {"cc": {"x": result(90, 1)}}, reference="IDGP")
    assert "| cc | **90.00 ± 1.00** | 0/0/0/0 | 1.00 |" in markdown(accuracies(alone))
    nobody = Results("t", [], {}, reference="IDGP")
    assert latex(differences(nobody)).count("\\midrule") == 0


def test_names_are_escaped():
    grid = Grid("t", [HOSTILE, "a\nb"], [[[Entry(HOSTILE), Entry("[x]", bold=True, remark="<b>")]]])
    escaped = r"\\a\_b \& 50% \$x^2\$ \#1 {y} \~z\~ \<w\> \|v\| \[u\] \*t\* \`s\`"
    assert f"| {escaped} | a b |" in markdown(grid)
    assert f"| {escaped} | **\\[x\\]** \\<b\\> |" in markdown(grid)
    escaped = (
        r"\textbackslash{}a\_b \& 50\% \$x\textasciicircum{}2\$ \#1 \{y\} \textasciitilde{}z\textasciitilde{} "
        r"\textless{}w\textgreater{} \textbar{}v\textbar{} {[}u] {*}t{*} `s`"
    )
    assert f"{escaped} & a b \\\\" in latex(grid)
    assert f"{escaped} & \\textbf{{{{[}}x]}} \\textless{{}}b\\textgreater{{}} \\\\" in latex(grid)


@given(st.lists(st.text(r"ab\`*_[]<>|&~$#%{}^" + "\n\r\t ±•◦−–", max_size=12), min_size=3, max_size=3))
def test_whatever_names_are_a_row_keeps_its_fields(names):
    grid = Grid("t", names, [[[Entry(name) for name in names]]])
    rows = [line for line in markdown(grid).splitlines() if line.startswith("|")]
    assert [len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) for row in rows] == [4, 4, 4]
    rows = [line for line in latex(grid).splitlines() if line.endswith(r" \\")]
    assert [len(re.findall(r"(?<!\\)&", row)) for row in rows] == [2, 2]
    for row in rows:
        bare = re.sub(r"\\[&%$#_{}]|\\\\", "", row)
        assert bare.count("{") == bare.count("}")
        assert bare.count("$") % 2 == 0
        assert not re.search(r"[#_%~^<>|]", bare)
        assert not row.startswith(("[", "*"))


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_latex_compiles(results, tmp_path):
    hostile = Grid(
        HOSTILE, ["[a]", HOSTILE], [[[Entry("[a]"), Entry(HOSTILE, bold=True)], [Entry("*"), Entry("−")]]]
    )
    tables = [latex(grid) for grid in (accuracies(results), differences(results), hostile)]
    document = [
        r"\documentclass{article}",
        r"\usepackage{booktabs}",
        r"\begin{document}",
        *tables,
        r"\end{document}",
    ]
    (tmp_path / "tables.tex").write_text("\n".join(document), encoding="utf-8")
    command = ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "tables.tex"]
    made = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace")
    assert made.returncode == 0, made.stdout[-2000:]
    assert (tmp_path / "tables.pdf").stat().st_size > 0
