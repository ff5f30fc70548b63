"""The crash table: each way of calling a tool, killed at each point around the call, and two processes at once.

A row says how often the tool paid, and how the person was asked. One with a problem is a FAIL, and its folder stays.

    python -m tests.crash --way session --point "answered: after the effect"
    python -m tests.crash --frameworks            # the ways of frameworks, in the environment that has them
    python -m tests.crash --way durable --runs 100 --database postgres
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path

from tests.crash.trial import AT_ONCE, Point, Row, Trial, Way, server

TOOL = ("event started", "before the effect", "after the effect", "post hook", "event ended")
ASKED = ("pre hook", "event received", "event suspended", "unsaved", "saved")
ANSWERED = ("loaded", *TOOL, "unsaved", "saved")
ASKED_STORED = ("loaded", "pre hook", "event received", "event suspended", "saved")
SERVED = ("before the effect", "after the effect", "post hook")
BEHIND = tuple(f"{who}: {when} the effect" for who in ("gateway", "server") for when in ("before", "after"))
UNASKED = ("pre hook", "event received", *TOOL, "unsaved", "saved")
JOBS, SERVERS, PAGES = "tests.crash.jobs", "tests.crash.servers", "tests.crash.pages"
FRAMEWORKS = tuple(
    Way(name, f"tests.frameworks.crash.{name.replace(' ', '_')}", "run", ASKED, ANSWERED, name != "smolagents")
    for name in ("openai agents", "langchain", "google adk", "agent framework", "smolagents", "claude agent sdk")
)
WAYS = {
    way.name: way
    for way in (
        Way("session", JOBS, "session", ASKED, ANSWERED),
        Way("round", JOBS, "plan", ASKED, ANSWERED),
        Way("program", JOBS, "program", ASKED, ANSWERED, has_call_ids=False),
        Way("session unasked", JOBS, "session_unasked", UNASKED, ()),
        Way("stored session", JOBS, "session_in_store", ASKED_STORED, ("loaded", *TOOL, "saved")),
        Way("stored unasked", JOBS, "session_in_store_unasked", (*ASKED_STORED[:3], *TOOL, "saved"), ()),
        Way("mcp stdio", SERVERS, "over_stdio", ("pre hook",), SERVED, has_call_ids=False),
        Way("mcp unasked", SERVERS, "over_stdio_unasked", SERVED, ()),
        Way("mcp http", SERVERS, "over_http", ("pre hook",), SERVED, has_call_ids=False),
        Way("gateway", SERVERS, "through_gateway", (), BEHIND, has_call_ids=False),
        Way("ag-ui", PAGES, "ag_ui", ("pre hook", "unsaved"), SERVED),
        Way("vercel", PAGES, "vercel", ("pre hook", "unsaved"), SERVED),
        Way("pydantic ai", "tests.crash.pydantic_agent", "run", ASKED, ANSWERED),
        *FRAMEWORKS,
    )
}


async def table(way: Way, folder: Path) -> AsyncIterator[Row]:
    """Yield a row for each point of a way; those in the store are tried until one is not reached."""
    for is_answered, names in ((False, way.asked), (True, way.answered)):
        for name in names:
            yield await trial(way, Point(name, is_answered), folder)
        for number in count(1):
            row = await trial(way, Point(f"store {number}", is_answered), folder)
            if not row.was_killed:
                break
            yield row
    yield await trial(way, None, folder)


async def trial(way: Way, point: Point | None, folder: Path) -> Row:
    """Run one trial in a new folder, which stays where something was wrong."""
    name = AT_ONCE if point is None else str(point)
    place = folder / f"{way.name} {name}".replace(": ", "-").replace(" ", "-")
    place.mkdir(parents=True)
    row = await Trial(way, name, place).run(point)
    if row.is_good:
        shutil.rmtree(place)
    return row


async def run(ways: list[Way], point: str | None, folder: Path) -> int:
    """Print the rows of ways, and return how many have problems."""
    failed = rows = 0
    for way in ways:
        async for row in table(way, folder) if point is None else _one(way, Point.of(point), folder):
            print(row, flush=True)
            rows += 1
            failed += not row.is_good
    print(f"{rows} trials, {failed} with problems{f', whose folders are in {folder}' if failed else ''}")
    return failed


async def _one(way: Way, point: Point | None, folder: Path) -> AsyncIterator[Row]:
    yield await trial(way, point, folder)


def main() -> int:
    lines = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(description=lines[0], epilog="Other arguments are for durable work.")
    parser.add_argument("--way", nargs="+", choices=[*WAYS, "durable"], help="all when left out")
    parser.add_argument("--point", help="one point alone, as a row has it, such as 'answered: after the effect'")
    parser.add_argument("--frameworks", action="store_true", help="the ways of frameworks alone, and else all others")
    given, others = parser.parse_known_args()
    here = [way for way in WAYS.values() if (way in FRAMEWORKS) == given.frameworks]
    ways = [way for way in here if given.way is None or way.name in given.way]
    server.set_forkserver_preload([*{way.module for way in ways}])
    failed = 0
    if ways and not others:
        failed = asyncio.run(run(ways, given.point, Path(tempfile.mkdtemp(prefix="toolcrib-crash-"))))
    if not given.frameworks and not given.point and ("durable" in given.way if given.way else True):
        failed += subprocess.call([sys.executable, "-m", "tests.durable.crash", *others])
    return bool(failed)


if __name__ == "__main__":
    raise SystemExit(main())
