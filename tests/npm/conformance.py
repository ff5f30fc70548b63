"""The official conformance suite: what an implementation has to do for a revision of the protocol, run and read."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from tests.npm.programs import command

REVISIONS = ("2025-11-25", "2026-07-28")
LIMIT = 600  # seconds for all scenarios of a revision, which a test is ended after

_MANUAL_ROW = re.compile(r"^\| `([\w/-]+)` \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
_SUMMARY_ROW = re.compile(r"^([✓✗]) ([\w/-]+): (\d+) passed, (\d+) failed", re.MULTILINE)


async def not_passed(leg: str, revision: str, results: Path, *arguments: str) -> set[str]:
    """Run the scenarios of a revision, those of the extensions too; return which did not pass.

    Args:
        leg: What is tested: `server` or `client`.
        results: A folder for the suite's records.
    """
    limit = ("--timeout", str(LIMIT * 1000))  # 30 s, its own limit, are few for scenarios that all run at once
    suite = command("@modelcontextprotocol/conformance", leg, *arguments, *limit, "--requirements", revision)
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *suite, "-o", str(results), stdout=pipe, stderr=asyncio.subprocess.STDOUT
    )
    said = (await process.communicate())[0].decode()
    rows = _SUMMARY_ROW.findall(said)
    assert rows, said
    return {name for passed, name, _, _ in rows if passed == "✗"}


def rows_of_manual(page: str) -> dict[str, set[str]]:
    """Return the scenarios that a page of the manual lists as not passed, by revision."""
    text = (Path(__file__).parents[2] / "docs" / page).read_text("utf-8")
    rows = _MANUAL_ROW.findall(text[text.index("## Conformance") :])
    return {revision: {name for name, revisions, _ in rows if revision in revisions} for revision in REVISIONS}
