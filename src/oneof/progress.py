"""What a person sees while a fit runs: a bar on a terminal, a few plain lines elsewhere."""

import sys
import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from oneof.engine import State

_PLAIN_LINES = 10


class Progress:
    """Epoch, loss, validation score and time left, on standard error; nothing when not ``shown``."""

    def __init__(self, name: str, epochs: int, shown: bool) -> None:
        self.name, self.epochs = name, epochs
        self._begun = time.monotonic()
        self._shown = shown
        self._bar: Bar | None = None
        # Not rich's own guess: it takes a pipe for a terminal when FORCE_COLOR is set.
        if shown and sys.stderr.isatty():
            columns = "{task.description}", BarColumn(), "{task.fields[text]}", TimeRemainingColumn()
            self._bar = Bar(
                *(TextColumn(c) if isinstance(c, str) else c for c in columns), console=Console(file=sys.stderr)
            )
            self._task = self._bar.add_task(name, total=epochs, text="")

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, state: State, finished: bool) -> None:
        """Show that an epoch is done."""
        if not self._shown:
            return
        text = f"epoch {state.epoch}/{self.epochs}" + "".join(
            f"  {name.replace('_', ' ')} {values[-1]:.4f}" for name, values in state.history.items()
        )
        if self._bar is not None:
            self._bar.update(self._task, completed=state.epoch, text=text)
        elif finished or state.epoch % max(1, self.epochs // _PLAIN_LINES) == 0:
            spent = time.monotonic() - self._begun
            print(f"{self.name}  {text}  {spent:.0f} s", file=sys.stderr, flush=True)
