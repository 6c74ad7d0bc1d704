"""An inspection in words: sentences, lines for a terminal, and a page."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from oneof.data.inspection import ENOUGH, Companions, Inspection
from oneof.data.vote_summary import annotator_bars, pair_bars, vote_findings, vote_numbers
from oneof.io.files import replacing
from oneof.pages.frame import percent, shorten
from oneof.pages.heat_maps import ShareMap
from oneof.pages.inspection_page import InspectionContent, render

__all__ = ["findings", "head_numbers", "lines", "quoted", "render_page", "size_bins", "write_page"]

_LISTED = 5  # sentences of one kind, and names in a sentence
_LONGEST = 40  # letters of a name, and of a bar
_LONGEST_ON_PAGE = 60
_LINES = 20  # sizes or labels in a list


def quoted(name: str) -> str:
    """Write a name in a sentence."""
    return f"'{shorten(name, _LONGEST)}'"


def size_bins(inspection: Inspection, most: int = _LINES) -> list[tuple[str, int]]:
    """Return set sizes and how many sets have them, neighbours joined where there are more than ``most``."""
    largest = int(inspection.sizes.nonzero()[0][-1])
    width = -(-largest // most)
    ends = [(low, min(low + width - 1, largest)) for low in range(1, largest + 1, width)]
    return [
        (str(low) if low == high else f"{low}-{high}", int(inspection.sizes[low : high + 1].sum()))
        for low, high in ends
    ]


def head_numbers(inspection: Inspection) -> dict[str, str]:
    """Return the numbers that say most, by what they count."""
    numbers = {
        "rows": str(inspection.rows),
        "classes": str(len(inspection.names)),
        "labels a set, on average": f"{inspection.mean_size:.2f}",
        "of sets have one label": percent(inspection.one_label),
        "of sets have all labels": percent(inspection.full),
    }
    if inspection.votes is not None:
        numbers |= vote_numbers(inspection.votes)
    for companions, words in (
        (inspection.by_set, "of a label's sets share one other label, at most"),
        (inspection.by_truth, "of a class's rows share one wrong label, at most"),
    ):
        if companions is not None and companions.ambiguity is not None:
            numbers[words] = percent(companions.ambiguity)
    return numbers


def findings(inspection: Inspection, quote: Callable[[str], str] = quoted) -> list[str]:
    """Say in sentences what stands out, the most serious first; ``quote`` writes the name of a class."""
    classes = len(inspection.names)
    if inspection.full == 1:
        return [f"Every set holds all {classes} labels: there is nothing to learn."]
    names, said = [quote(name) for name in inspection.names], []
    if inspection.one_label == 1:
        said.append("Every set holds one label: these are plain labels.")
    if inspection.outside:
        share = percent(inspection.outside / inspection.rows)
        said.append(
            f"The truth is no candidate in {_rows(inspection.outside)} ({share}), which no method expects."
        )
    if inspection.by_truth:
        said += _about_truths(inspection.by_truth, names)
    if inspection.votes is not None:
        said += vote_findings(inspection.votes, quote)
    said += _about_sets(inspection, names)
    if inspection.full:
        full = _rows(int(inspection.sizes[-1]))
        said.append(
            f"All {classes} labels are candidates in {full} ({percent(inspection.full)})"
            + (", which say nothing." if inspection.votes is None else ".")
        )
    if inspection.never:
        said.append(f"In no set, so that they cannot be learnt: {_some(names, inspection.never)}.")
    if inspection.seldom:
        seldom = _some(names, inspection.seldom)
        said.append(f"In fewer than {ENOUGH} sets, too few to say what always accompanies them: {seldom}.")
    return said


def _about_truths(companions: Companions, names: list[str]) -> list[str]:
    """Name the wrong labels that are candidates in every row of a class."""
    pairs = companions.always
    if not pairs:
        return []
    rows = int(companions.rows[sorted({j for j, _ in pairs})].sum())
    share = percent(rows / int(companions.rows.sum()))
    certain = [
        f"{names[k]} is a candidate in all {companions.rows[j]} rows whose truth is {names[j]}." for j, k in pairs
    ]
    return [
        *_first(certain),
        f"A model that is sure of such a companion in these {rows} rows ({share} of all) is wrong in each, and "
        "yet its covering rate and approximated accuracy on them are 100%.",
    ]


def _about_sets(inspection: Inspection, names: list[str]) -> list[str]:
    """Name the labels that are in every set, and those that always accompany another label."""
    companions, everywhere, said = inspection.by_set, inspection.everywhere, []
    if everywhere:
        said.append(
            f"In every set: {_some(names, everywhere)}. A model that is always sure of one such label has a "
            "covering rate and an approximated accuracy of 100%."
        )
    pairs = [(j, k) for j, k in companions.always if k not in everywhere]
    if pairs:
        said += _first(_never_apart(pairs, companions, names))
        said.append(
            "A model that answers such a companion in place of the label scores as high or higher on covering "
            "rate and approximated accuracy: only true labels can choose between the two."
        )
    elif not everywhere and companions.ambiguity:
        (j, k), share = np.argwhere(companions.others == companions.ambiguity)[0], percent(companions.ambiguity)
        closest = f"{names[k]} comes closest, in {share} of the sets that hold {names[j]}"
        said.append(f"No label always accompanies another; {closest}.")
    return said


def _never_apart(pairs: list[tuple[int, int]], companions: Companions, names: list[str]) -> list[str]:
    """Write one sentence for labels that always come together, and one for every other pair."""
    known, done, together, one_way = set(pairs), set[int](), [], []
    for j, k in pairs:
        rows = f"{companions.rows[j]} rows"
        if (k, j) not in known:
            one_way.append(
                f"{names[k]} is in every set that holds {names[j]} ({rows}): no set speaks for {names[j]} against "
                f"{names[k]}."
            )
        elif j not in done:
            group = sorted({j, *(k for i, k in pairs if i == j and (k, i) in known)})
            done.update(group)
            together.append(
                f"{_some(names, group)} always come together ({rows}): exchanging them changes no set, so the "
                "sets cannot tell which of them is true."
            )
    return together + one_way


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"


def _first(sentences: list[str]) -> list[str]:
    """Keep a few sentences, and say how many more there are."""
    more = len(sentences) - _LISTED
    return sentences[:_LISTED] + [f"And {more} more like that."] * (more > 0)


def _some(names: list[str], chosen: list[int]) -> str:
    """List names, a few and how many more."""
    more = len(chosen) - _LISTED
    shown = [names[k] for k in chosen[:_LISTED]] + [f"{more} more"] * (more > 0)
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def lines(inspection: Inspection) -> list[str]:
    """Return what was found as plain text, one string a line."""
    names = [quoted(name) for name in inspection.names]
    shown = np.argsort(-inspection.by_set.rows, kind="stable")[:_LINES].tolist()
    more = len(names) - len(shown)
    return [
        *(f"{number:>10} {name}" for name, number in head_numbers(inspection).items()),
        "",
        *(f"- {sentence}" for sentence in findings(inspection)),
        "",
        "labels in a set",
        *_bars([(size, count / inspection.rows) for size, count in size_bins(inspection)]),
        "",
        "share of sets that hold a label",
        *_bars([(names[k], inspection.frequency[k]) for k in shown]),
        *([f"and {more} more"] if more else []),
        *_about_annotators(inspection),
    ]


def as_facts(inspection: Inspection) -> dict[str, Any]:
    """Return what was found as plain numbers, by the names of classes."""
    names = inspection.names
    voted = inspection.votes is not None
    return {
        "rows": inspection.rows,
        "mean_size": inspection.mean_size,
        "one_label": inspection.one_label,
        "full": inspection.full,
        "sizes": {size: int(count) for size, count in enumerate(inspection.sizes) if count},
        "frequency": dict(zip(names, inspection.frequency.tolist(), strict=True)),
        "always": [{"label": names[j], "with": names[k]} for j, k in inspection.by_set.always],
        "ambiguity": inspection.by_set.ambiguity,
        "ambiguity_by_truth": inspection.by_truth.ambiguity if inspection.by_truth else None,
        "truth_outside": inspection.outside,
        "annotators": dict(annotator_bars(inspection.votes)) if voted and inspection.votes else {},
        "findings": findings(inspection),
    }


def _about_annotators(inspection: Inspection) -> list[str]:
    """Draw how often annotators are right, and which two disagree most."""
    parts: list[str] = []
    for title, bars in (
        ("votes that are right, by estimate", annotator_bars(inspection.votes) if inspection.votes else []),
        ("rows on which two annotators disagree", pair_bars(inspection.votes) if inspection.votes else []),
    ):
        if bars:
            more = [f"and {len(bars) - _LINES} more"] if len(bars) > _LINES else []
            parts += ["", title, *_bars(bars[:_LINES]), *more]
    return parts


def _bars(shares: list[tuple[str, float]]) -> list[str]:
    width = max(len(name) for name, _ in shares)
    return [
        f"{name:>{width}} {percent(share):>10} {'#' * round(_LONGEST * share)}".rstrip() for name, share in shares
    ]


# --- the page --------------------------------------------------------------------------------------------


def write_page(inspection: Inspection, path: str | os.PathLike[str], title: str) -> None:
    """Write the page of an inspection, under a title such as the name of its file."""
    with replacing(path) as part:
        part.write_text(render_page(inspection, title), encoding="utf-8")


def render_page(inspection: Inspection, title: str) -> str:
    """Return the page as HTML."""
    order = np.argsort(-inspection.by_set.rows, kind="stable").tolist()
    maps = [_share_map(inspection.by_set, inspection.names, "sets that hold")]
    if inspection.by_truth is not None:
        maps.append(_share_map(inspection.by_truth, inspection.names, "rows whose truth is"))
    content = InspectionContent(
        title=title,
        numbers=head_numbers(inspection),
        findings=findings(inspection, _quoted_on_page),
        sizes=[(size, count / inspection.rows) for size, count in size_bins(inspection)],
        labels=[(inspection.names[k], float(inspection.frequency[k])) for k in order],
        maps=maps,
        rows=[(str(each.number), each.why, each.labels) for each in inspection.found],
        annotators=annotator_bars(inspection.votes) if inspection.votes else [],
        pairs=pair_bars(inspection.votes) if inspection.votes else [],
    )
    return render(content)


def _quoted_on_page(name: str) -> str:
    """Write a name in a sentence, isolated: one that is written from right to left turns nothing around it."""
    return f"“\N{FIRST STRONG ISOLATE}{shorten(name, _LONGEST_ON_PAGE)}\N{POP DIRECTIONAL ISOLATE}”"


def _share_map(companions: Companions, names: tuple[str, ...], among: str) -> ShareMap:
    return ShareMap(names, companions.rows.tolist(), companions.others, among, ENOUGH)
