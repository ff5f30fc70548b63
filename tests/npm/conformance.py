"""The official conformance suite: what an implementation has to do for a revision of the protocol, run and read."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Mapping
from pathlib import Path

from tests.npm.programs import command

REVISIONS = ("2025-11-25", "2026-07-28")
SCENARIOS = {"server": {"2025-11-25": 33, "2026-07-28": 50}, "client": {"2025-11-25": 25, "2026-07-28": 39}}
"""How many scenarios the suite has for each revision, by what is tested, those of the extensions too."""
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
    assert len(rows) == SCENARIOS[leg][revision], said
    return {name for passed, name, _, _ in rows if passed == "✗"}


def check_manual(page: str, leg: str, not_passed: Mapping[str, Collection[str]]) -> None:
    """Check that a page of the manual lists the scenarios that are not passed, and says how many are."""
    whole = (Path(__file__).parents[2] / "docs" / page).read_text("utf-8")
    text = whole[whole.index("## Conformance") :]
    rows = _MANUAL_ROW.findall(text)
    listed = {revision: {name for name, revisions, _ in rows if revision in revisions} for revision in REVISIONS}
    in_all = SCENARIOS[leg]
    passed = {revision: in_all[revision] - len(not_passed[revision]) for revision in REVISIONS}
    older, newer = (f"{passed[revision]} of {in_all[revision]}" for revision in REVISIONS)

    assert listed == {revision: {*not_passed[revision]} for revision in REVISIONS}
    assert f"{older} scenarios of {REVISIONS[0]} and {newer} of {REVISIONS[1]}" in " ".join(text.split())
