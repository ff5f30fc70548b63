"""How many batches of events a Postgres server takes a second from one to eight processes that write them.

python -m tests.durable.batches --seconds 10
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from tests.postgres import Postgres, running
from toolcrib.calls import ActivityEvent, CallEvent, EventKind
from toolcrib.record import PostgresSink

_ROOT = Path(__file__).parents[2]
_SAFE = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}  # as a server has them that keeps work


def write(url: str, seconds: float) -> None:
    """Write the events of turns of one call, in two batches each, and print how many batches there were."""
    with PostgresSink(url) as sink:
        print("ready", flush=True)
        sys.stdin.readline()
        count, end = 0, time.monotonic() + seconds
        while time.monotonic() < end:
            turn, call = str(uuid4()), str(uuid4())
            sink.emit_activity(ActivityEvent("opened", "turn", turn, None, "work", datetime.now(UTC), {"tool": "work"}))
            for kind in ("received", "started"):
                sink.emit(_event(kind, turn, call, {"arguments": {"n": count, "wait": 0.0}}))
            sink.flush()
            sink.emit(_event("ended", turn, call, {"outcome": {"kind": "completed", "value": count}}))
            closed = {"outcome": "completed", "duration_ms": 1.0}
            sink.emit_activity(ActivityEvent("closed", "turn", turn, None, "work", datetime.now(UTC), closed))
            sink.flush()
            count += 2
    print(count, flush=True)


def _event(kind: EventKind, turn: str, call: str, data: dict[str, object]) -> CallEvent:
    return CallEvent(kind, call, "work", f"run_{turn}", "turn", datetime.now(UTC), data, None, turn)


def measure(server: Postgres, writers: int, seconds: float) -> float:
    """Return how many batches a second so many processes wrote."""
    url = server.url(f"batches_{uuid4().hex[:8]}")
    PostgresSink(url).close()
    command = [sys.executable, "-m", "tests.durable.batches", "--writes", url, "--seconds", str(seconds)]
    started = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=_ROOT)
        for _ in range(writers)
    ]
    for process in started:
        if process.stdout is None or process.stdout.readline() != "ready\n":
            raise RuntimeError("a writer did not start")
    for process in started:
        if process.stdin is not None:
            process.stdin.write("go\n")
            process.stdin.flush()
    return sum(int(process.communicate()[0]) for process in started) / seconds


def compare(seconds: float) -> None:
    with running(**_SAFE) as server:
        for writers in (1, 2, 4, 8):
            rate = measure(server, writers, seconds)
            print(f"{writers} writer{' ' if writers == 1 else 's'} {rate:6.0f} batches a second", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=10.0, help="of each round")
    parser.add_argument("--writes", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.writes:
        write(given.writes, given.seconds)
    else:
        compare(given.seconds)


if __name__ == "__main__":
    main()
