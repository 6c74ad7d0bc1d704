"""A review in progress: the queue, the decisions, and what was learned from them. Several threads may use it."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oneof.errors import InputError, OneofError
from oneof.review.cards import item, plain
from oneof.review.journal import ACTIONS, Decision, Journal, in_force
from oneof.review.learning import Relearned, learn, recall
from oneof.review.material import Material
from oneof.review.ranking import REASONS, Ranking

STATES = ("open", "decided", "skipped", "all")


class DecidedMeanwhileError(OneofError):
    """Somebody else has decided the row since this browser saw it."""


@dataclass
class Progress:
    """How far learning again is."""

    running: bool = False
    share: float = 0.0
    begun: float = 0.0
    error: str = ""

    def told(self) -> dict[str, Any]:
        """Return it with the seconds that are left, as far as can be told."""
        spent = time.monotonic() - self.begun
        left = spent / self.share - spent if self.running and self.share > 0.02 else None
        return {"running": self.running, "share": round(self.share, 3), "left": left, "error": self.error}


class Session:
    """The state of a review."""

    def __init__(self, model: Any, path: Path, material: Material, ranking: Ranking, journal: Journal) -> None:
        self.model, self.path, self.material, self.journal = model, path, material, journal
        self.ranking = ranking
        self.changes: dict[str, Any] | None = None
        self.progress = Progress()
        self._mutex = threading.RLock()
        self._version = np.zeros(len(material), np.int64)  # how many lines of the journal each row has
        check_journal(journal, material)
        self._replay()
        again = (
            None if journal.learned is None else recall(path, material, ranking, journal.entries, journal.learned)
        )
        if again is not None:
            self.ranking = again

    def _replay(self) -> None:
        self.decisions: dict[int, Decision] = in_force(self.journal.entries)
        self.skipped: set[int] = set()
        for entry in self.journal.entries:
            self._version[entry["row"]] += 1
            self._note(entry)

    def _note(self, entry: Mapping[str, Any]) -> None:
        skip = entry["action"] == "skip"
        (self.skipped.add if skip else self.skipped.discard)(entry["row"])

    # --- what is shown --------------------------------------------------------------------------------------

    def queue(self, state: str, reason: str, label: str, start: int, count: int) -> dict[str, Any]:
        """Return a part of the queue, and how long the whole is."""
        with self._mutex:
            rows = self._chosen(state, reason, label)
            return {
                "total": len(rows),
                "start": start,
                "items": [self._item(row) for row in rows[start : start + count]],
            }

    def _chosen(self, state: str, reason: str, label: str) -> NDArray[np.intp]:
        ranking, n = self.ranking, len(self.material)
        mask = np.ones(n, bool)
        decided, skipped = np.zeros(n, bool), np.zeros(n, bool)
        decided[list(self.decisions)] = True
        skipped[list(self.skipped)] = True
        if state == "open":
            mask &= ~decided & ~skipped
        elif state in ("decided", "skipped"):
            mask &= decided if state == "decided" else skipped
        if reason in REASONS:
            mask &= ranking.reason == reason
        if label:
            wanted = np.array([str(name) for name in self.material.classes]) == label
            mask &= wanted[ranking.answer] | wanted[ranking.prediction]
        return ranking.order[mask[ranking.order]]

    def _item(self, row: int) -> dict[str, Any]:
        return {**item(self.material, self.ranking, row), **self.state_of(int(row))}

    def state_of(self, row: int) -> dict[str, Any]:
        """Return what was decided about a row, and how often it was decided or taken back."""
        found = self.decisions.get(row)
        state = "decided" if found else "skipped" if row in self.skipped else "open"
        return {
            "state": state,
            "decision": None if found is None else {"action": found["action"], "label": found.get("label")},
            "version": int(self._version[row]),
        }

    def status(self) -> dict[str, Any]:
        """Return progress, agreement with the model, and what learning again changed."""
        with self._mutex:
            labelled = {row: entry["label"] for row, entry in self.decisions.items() if entry["action"] == "label"}
            agreed = sum(
                str(plain(self.material.classes[self.ranking.answer[row]])) == str(label)
                for row, label in labelled.items()
            )
            return {
                "rows": len(self.material),
                "decided": len(self.decisions),
                "skipped": len(self.skipped),
                "labelled": len(labelled),
                "agreed": agreed,
                "entries": len(self.journal.entries),
                "learning": self.progress.told(),
                "changes": self.changes,
            }

    # --- what is decided ------------------------------------------------------------------------------------

    def decide(self, row: int, action: str, label: Any, seen: int, by: str) -> dict[str, Any]:
        """Write a decision; it is on the disk when this returns."""
        with self._mutex:
            self._check_decision(row, action, label, seen)
            entry: dict[str, Any] = {"row": row, "action": action}
            if action == "label":
                entry["label"] = label
            entry |= {"candidates": self.material.candidates(row), "at": _now(), "by": by}
            self._write(entry)
            return {**self.state_of(row), "status": self.status()}

    def _check_decision(self, row: int, action: str, label: Any, seen: int) -> None:
        if not 0 <= row < len(self.material):
            raise InputError(f"there is no row {row}")
        if action not in ACTIONS or action == "undo":
            raise InputError("the action must be label, none or skip")
        if action == "label" and (isinstance(label, bool) or label not in self.material.classes.tolist()):
            raise InputError("the label is no class")
        if seen != self._version[row]:
            raise DecidedMeanwhileError

    def undo(self, by: str, row: int | None = None) -> dict[str, Any] | None:
        """Take back the decision about a row, or else the last one of a browser; None where there is none.

        Rows that another has decided since are not among those of a browser.
        """
        with self._mutex:
            if row is None:
                row = self._last_of(by)
            elif row not in self.decisions:
                row = None
            if row is None:
                return None
            self._write({"row": row, "action": "undo", "at": _now(), "by": by})
            return {"row": row, **self.state_of(row), "status": self.status()}

    def _last_of(self, by: str) -> int | None:
        mine: dict[int, None] = {}  # in the order of the last decisions
        for entry in self.journal.entries:
            mine.pop(entry["row"], None)
            if entry["action"] != "undo" and entry.get("by") == by:
                mine[entry["row"]] = None
        return next(reversed(mine), None)

    def _write(self, entry: dict[str, Any]) -> None:
        self.journal.append(entry)  # first the disk, then what everybody sees
        row = entry["row"]
        self._version[row] += 1
        self._note(entry)
        if entry["action"] == "undo":
            self.decisions.pop(row, None)
        elif entry["action"] != "skip":
            self.decisions[row] = entry  # type: ignore[assignment]

    # --- learning again -------------------------------------------------------------------------------------

    def start_learning(self, done: Callable[[], None] = lambda: None) -> bool:
        """Learn again in the background; False while that is under way already."""
        with self._mutex:
            if self.progress.running:
                return False
            self.progress = Progress(running=True, begun=time.monotonic())
            decisions, entries = dict(self.decisions), len(self.journal.entries)
        threading.Thread(target=self._learn, args=(decisions, entries, done), daemon=True).start()
        return True

    def _learn(self, decisions: dict[int, Decision], entries: int, done: Callable[[], None]) -> None:
        try:
            learned = learn(self.model, self.path, self.material, self.ranking, decisions, self._advance)
            with self._mutex:
                self.journal.append({"learned": learned.key, "entries": entries, "at": _now()})
                self._take(learned)
                self.progress = Progress()
        except Exception as error:  # a training may fail in any way; the review goes on
            with self._mutex:
                self.progress = Progress(error=f"{type(error).__name__}: {error}"[:300])
        done()

    def _advance(self, share: float) -> None:
        self.progress.share = min(self.progress.share + share, 1.0)

    def _take(self, learned: Relearned) -> None:
        self.model, self.ranking, self.changes = learned.model, learned.ranking, learned.changes


def check_journal(journal: Journal, material: Material) -> None:
    """Refuse a journal of another table."""
    for entry in journal.entries:
        row, had = entry["row"], entry.get("candidates")
        now = material.candidates(row) if row < len(material) else None
        if now is None or (had is not None and {*map(str, had)} != {*map(str, now)}):
            raise InputError(
                f"{str(journal.path)!r} decides row {row} of another table, or the table has changed since; pass "
                "--decisions with another file"
            )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
