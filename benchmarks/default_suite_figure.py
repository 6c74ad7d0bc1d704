"""The figure of default_suite_results.py: the regret of every method on every problem, before and now."""

from collections.abc import Mapping, Sequence

from oneof.pages.content import Figure, Panel
from oneof.pages.frame import GREY, HUES, safe

_LEFT, _WIDTH, _ROW, _TOP, _LOW, _HIGH = 110, 560, 26, 40, -4.0, 20.0


def regrets(dots: Mapping[str, tuple[Sequence[float], Sequence[float]]]) -> Figure:
    """Draw the regrets of each method, before and now, as dots: a line for each method, now below before."""
    parts, names = [], list(dots)
    for tick in range(int(_LOW), int(_HIGH) + 1, 2):
        x = _place(tick)
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{_TOP + _ROW * len(names)}"/>')
        parts.append(f'<text x="{x:.1f}" y="{_TOP + _ROW * len(names) + 16}" text-anchor="middle">{tick}</text>')
    for number, name in enumerate(names):
        middle = _TOP + _ROW * (number + 0.5)
        parts.append(f'<text x="{_LEFT - 8}" y="{middle + 4:.1f}" text-anchor="end">{safe(name)}</text>')
        for values, hue, shift in zip(dots[name], (GREY, HUES[0]), (-5, 5), strict=True):
            for regret in values:
                dot = f'<circle class="dot" cx="{_place(regret):.1f}" cy="{middle + shift:.1f}" r="3.2"/>'
                parts.append(f'<g class="{hue}">{dot}</g>')
    legend = ((GREY, "before", _LEFT), (HUES[0], "now", _LEFT + 70))
    parts += [f'<g class="{hue}"><text class="name" x="{x}" y="22">{word}</text></g>' for hue, word, x in legend]
    about = "Regret of every method on every problem, before and now"
    panel = Panel(_LEFT + _WIDTH + 20, _TOP + _ROW * len(names) + 24, "".join(parts), about)
    title = f"Points behind a random search, a dot for each problem; beyond {_LOW:g} and {_HIGH:g} at the edges"
    return Figure("defaults", title, [panel])


def _place(regret: float) -> float:
    share = (min(max(regret, _LOW), _HIGH) - _LOW) / (_HIGH - _LOW)
    return _LEFT + _WIDTH * share
