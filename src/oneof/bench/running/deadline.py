"""The end of a budget of seconds, in every process and on every machine that works for it."""

import time
from collections.abc import Callable


class Deadline:
    """Passes after so many seconds, whatever is done to the clock of the day.

    The clock that nobody can set is each machine's own, so that a deadline goes to another process as the seconds
    that are left. The clock of the day, which machines share, counts as well: a task that was sent once and begins
    again hours later, because a machine was lost, gets no time anew.

    Parameters
    ----------
    seconds : float
        From now on.
    time_of_day : float, optional
        When it passes by the clock of the day; by default so many seconds from now.
    """

    def __init__(self, seconds: float, time_of_day: float | None = None) -> None:
        self._end = time.monotonic() + seconds
        self._time_of_day = time.time() + seconds if time_of_day is None else time_of_day

    def has_passed(self) -> bool:
        """Tell whether the budget is spent."""
        return self.left() <= 0

    def left(self) -> float:
        """Return the seconds that are left of the budget."""
        return min(self._end - time.monotonic(), self._time_of_day - time.time())

    def __reduce__(self) -> tuple[Callable[..., "Deadline"], tuple[float, float]]:
        return Deadline, (self._end - time.monotonic(), self._time_of_day)
