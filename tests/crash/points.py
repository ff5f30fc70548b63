"""Points around a call at which the process of a trial is killed, and what the trial keeps in its folder.

`kill_at` is called by the tool, its hooks, a sink and the host's program. A process that is armed with a point ends
there by SIGKILL. `store N` is the moment after the N-th change of the database was committed, whatever made it:
SQLite's own module counts them.
"""

from __future__ import annotations

import json
import os
import re
import signal
import time
from functools import partial
from pathlib import Path
from typing import Any

from toolcrib.database._sqlite import sqlite3

POINT = "TOOLCRIB_CRASH_POINT"  # the environment variable that names the point at which this process is killed
FOLDER = "TOOLCRIB_CRASH_FOLDER"  # the one that names the folder of the trial
HOLD = "hold"  # in place of a point: the tool waits, before its effect, until the trial lets it go on
DATABASE = "crib.db"
CENTS = 5
PAID = f"paid {CENTS}"  # the effect, and the result

_CHANGE = re.compile(r"\s*(INSERT(?: OR \w+)? INTO|UPDATE|DELETE FROM)\s+(\w+)")
_RECORD = ("toolcrib_events", "toolcrib_activities", "toolcrib_words", "toolcrib_versions", "toolcrib_server_")
_POLL = 0.01  # seconds between two looks at a file


def folder() -> Path:
    """Return the folder of the trial that this process belongs to."""
    return Path(os.environ[FOLDER])


def database() -> Path:
    """Return the path of the database: approvals, and whatever else is stored."""
    return folder() / DATABASE


def kill_at(point: str, process: int | None = None) -> None:
    """Kill this process, or another one, if this one is armed with the point."""
    if os.environ.get(POINT) == point:
        _kill(process or os.getpid(), point)


def _kill(process: int, point: str) -> None:
    (folder() / "killed").write_text(point)
    os.kill(process, signal.SIGKILL)


def arm_store() -> None:
    """Kill this process after its N-th change of what is stored, if it is armed with `store N`."""
    kind, _, number = os.environ.get(POINT, "").partition(" ")
    if kind == "store":
        _Connection.left = int(number)
        sqlite3.connect = partial(sqlite3.connect, factory=_Connection)


class _Connection(sqlite3.Connection):
    """A connection whose commits are counted, but for those of the record, which a thread writes when it likes."""

    left = 0
    _change = ""  # the first one of the open transaction

    def execute(self, sql: str, *values: Any) -> Any:
        done = super().execute(sql, *values)
        change = _CHANGE.match(sql)
        if change is not None and not change[2].startswith(_RECORD):
            self._change = self._change or f"{change[1].split()[0].lower()} {change[2]}"
        if self._change and not self.in_transaction:
            _Connection.left -= 1
            if _Connection.left == 0:
                _kill(os.getpid(), f"{os.environ[POINT]}, {self._change}")
            self._change = ""
        return done


def wait_for_release() -> None:
    """Wait until the trial lets the tool go on, if this process is to hold it."""
    if os.environ.get(POINT) == HOLD:
        (folder() / "held").touch()
        while not (folder() / "released").exists():
            time.sleep(_POLL)


def effect() -> str:
    """Pay: one line in a file outside of what is tested, which the kernel keeps when the process is killed."""
    line = os.open(folder() / "effects", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(line, f"{PAID}\n".encode())
    os.close(line)
    return PAID


def effects(where: Path) -> int:
    """Return how often the tool of a trial paid."""
    file = where / "effects"
    return len(file.read_text().splitlines()) if file.exists() else 0


# --- what a model or a client is told, and does


def note_text(text: str) -> None:
    """Keep a text that a model or a client was given for its call, beside the number of effects there were by then."""
    with (folder() / "heard").open("a") as file:
        file.write(json.dumps([text, effects(folder())]) + "\n")


def stored_texts(where: Path) -> list[tuple[str, int]]:
    """Return the texts of a trial, each with the number of effects that there were."""
    file = where / "heard"
    return [tuple(json.loads(line)) for line in file.read_text().splitlines()] if file.exists() else []


def calls_again(texts: list[str]) -> bool:
    """Return whether an obedient model, which was given these texts for its calls so far, calls the tool (again).

    Where a text names a doubt, it asks its user, who looks at the effects.
    """
    if not texts or PAID in texts[-1] or len(texts) > 3:
        return not texts
    return effects(folder()) == 0 if doubts(texts[-1]) else "again" in texts[-1]


def next_call(texts: list[str]) -> str | None:
    """Return the id of the next call of an obedient model, which was given these texts; None where it has ended."""
    for text in texts[-1:]:
        note_text(text)
    return f"call_{len(texts)}" if calls_again(texts) else None


def doubts(text: str) -> bool:
    """Return whether a text says that the call, or an equal one, may have been done."""
    return any(
        words in text for words in ("may have", "took effect is unknown", "is executed now", "was executed already")
    )


def write(path: Path, text: str) -> None:
    """Replace a file at once, so that a killed process leaves the old one or the new one."""
    partial = path.with_suffix(f".{os.getpid()}")
    partial.write_text(text)
    partial.replace(path)
