"""What a person sees of a running plan: a live display on a terminal, plain lines elsewhere."""

import sys
import time
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from oneof.bench.running.runner import PlanProgress
from oneof.pages.frame import one_line

_SHOWN = 8  # running runs and failures
_LAST = 5  # results
_QUIET = 30.0  # seconds between plain lines about the whole


def duration(seconds: float | None) -> str:
    """Write a time for people: "42 s", "7 min", "3.5 h"."""
    if seconds is None:
        return "unknown"
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 100 * 60 else f"{seconds / 3600:.1f} h"


def headline(progress: PlanProgress) -> str:
    """Say in one line where a plan stands; what it says may come out of a file."""
    parts = [f"{progress.done} of {progress.total} runs done"]
    if progress.running:
        parts.append(f"{len(progress.running)} running")
    if progress.failed:
        parts.append(f"{len(progress.failed)} failed")
    if progress.doing:
        parts.append(progress.doing)
    elif progress.left and progress.seconds_left is not None:
        parts.append(f"{duration(progress.seconds_left)} left")
    return one_line(", ".join(parts))


def details(progress: PlanProgress) -> list[tuple[str, str]]:
    """List what is missing, what failed, what runs, and the last results, each with its kind."""
    lines = [("unavailable", f"{name}: {why}") for name, why in progress.unavailable.items()]
    lines += [("failed", f"{name}: {why}") for name, why in list(progress.failed.items())[-_SHOWN:]]
    lines += [("running", name) for name in progress.running[:_SHOWN]]
    lines += [("result", text) for text in progress.last[-_LAST:]]
    return [(kind, one_line(text)) for kind, text in lines]


class Board:
    """Shows progress on standard error; nothing when not ``visible``."""

    def __init__(self, title: str, visible: bool = True) -> None:
        self.title, self._visible = title, visible
        self._console = Console(file=sys.stderr)
        self._live = Live(console=self._console, transient=True) if visible and sys.stderr.isatty() else None
        self._doing, self._when = "", float("-inf")
        self._results: list[str] = []

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, progress: PlanProgress) -> None:
        """Draw the progress again, or add a line when there is news."""
        if self._live is not None:
            self._live.update(self._picture(progress))
        if self._live is not None or not self._visible:
            return
        for text in [text for text in progress.last if text not in self._results]:
            print(one_line(text), file=sys.stderr)
        self._results = list(progress.last)
        now = time.monotonic()
        if progress.doing != self._doing or now - self._when > _QUIET:
            print(headline(progress), file=sys.stderr, flush=True)
            self._doing, self._when = progress.doing, now

    def _picture(self, progress: PlanProgress) -> Group:
        grid = Table.grid(padding=(0, 2))
        for kind, text in details(progress):
            grid.add_row(Text(kind, style="red" if kind in ("failed", "unavailable") else "dim"), Text(text))
        top = Table.grid(padding=(0, 1))
        bar = ProgressBar(total=progress.total, completed=progress.done + len(progress.failed), width=30)
        top.add_row(bar, Text(headline(progress)))
        return Group(Text(one_line(self.title), style="bold"), top, grid)
