"""What a person sees while something runs: a bar on a terminal, a few plain lines elsewhere."""

import sys
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, ProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

_PLAIN_LINES = 10


class Display:
    """A bar on standard error if that is a terminal, else lines; nothing when not ``visible``."""

    def __init__(self, name: str, total: int, visible: bool, *columns: ProgressColumn, **fields: Any) -> None:
        self._visible = visible
        self._bar: Bar | None = None
        # Not rich's own guess: it takes a pipe for a terminal when FORCE_COLOR is set.
        if visible and sys.stderr.isatty():
            self._bar = Bar(*columns, console=Console(file=sys.stderr))
            self._task = self._bar.add_task(escape(name), total=total, **fields)

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def _say(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)


class EpochProgress(Display):
    """Epoch, loss, validation score and time left, on standard error; nothing when not ``visible``."""

    def __init__(self, name: str, epochs: int, visible: bool) -> None:
        self.name, self.epochs = name, epochs
        self._begun = time.monotonic()
        what, details = TextColumn("{task.description}"), TextColumn("{task.fields[text]}")
        super().__init__(name, epochs, visible, what, BarColumn(), details, TimeRemainingColumn(), text="")

    def update(self, epoch: int, history: Mapping[str, Sequence[float]], finished: bool) -> None:
        """Show that an epoch is done."""
        if not self._visible:
            return
        text = f"epoch {epoch}/{self.epochs}" + "".join(
            f"  {name.replace('_', ' ')} {values[-1]:.4f}" for name, values in history.items()
        )
        if self._bar is not None:
            self._bar.update(self._task, completed=epoch, text=text)
        elif finished or epoch % max(1, self.epochs // _PLAIN_LINES) == 0:
            spent = time.monotonic() - self._begun
            self._say(f"{self.name}  {text}  {spent:.0f} s")


class StageProgress(Display):
    """Stages that are done one after the other, and how far the present one is; nothing when not ``visible``."""

    def __init__(self, name: str, stages: Sequence[str], visible: bool) -> None:
        self.name, self.stages = name, list(stages)
        self._begun, self._done = time.monotonic(), 0
        what, details = TextColumn("{task.description}"), TextColumn("{task.fields[text]}")
        first = self.stages[0] if self.stages else ""
        super().__init__(
            name, len(self.stages), visible, what, BarColumn(), details, TimeRemainingColumn(), text=first
        )

    def advance(self, share: float) -> None:
        """Show that so much of the present stage is done."""
        if self._bar is not None:
            self._bar.advance(self._task, share)

    def finish(self, stage: str) -> None:
        """Show that a stage is done."""
        self._done += 1
        if self._bar is not None:
            following = "".join(self.stages[self._done : self._done + 1])
            self._bar.update(self._task, completed=self._done, text=following)
        elif self._visible:
            spent = time.monotonic() - self._begun
            self._say(f"{self.name}  {stage} done, {self._done} of {len(self.stages)}  {spent:.0f} s")
