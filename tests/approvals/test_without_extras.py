"""Approval over stores where no extra is installed: answers are kept, and a wrong edit uses no yes up."""

import subprocess
import sys
from pathlib import Path

import pytest

ANSWERED = """
import asyncio, sys
sys.modules["jsonschema"] = None  # as if it were not installed
from toolcrib import Toolset, tool
from toolcrib.approvals import MemoryApprovalStore, SqliteApprovalStore
from toolcrib.calls import ToolCall
from toolcrib.pipeline import Pipeline, Run

@tool(requires_approval=True)
async def pay(order: int) -> int:
    return order

async def main():
    store = MemoryApprovalStore() if sys.argv[1] == "memory" else SqliteApprovalStore(sys.argv[1])
    pipeline, run = Pipeline(Toolset([pay])), Run(approvals=store)
    for edits in ([None], [{"order": 8}], [{"order": "x"}, {"order": 9}]):
        outcome = await pipeline.run(ToolCall("pay", {"order": 7}), run)
        for edit in edits:
            await store.answer(outcome.request.grant("ann", override_args=edit))
            outcome = await pipeline.run(outcome, run)
            print(outcome.kind, outcome.value if outcome.kind == "completed" else outcome.request.reason)

asyncio.run(main())
"""


@pytest.mark.processes
@pytest.mark.parametrize("database", ["memory", "approvals.db"])
def test_answers_are_kept_and_edits_checked_without_the_checker_of_schemas(database: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", ANSWERED, database]

    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)

    plain, edited, wrong, last = done.stdout.splitlines() or [done.stderr] * 4
    assert (plain, edited, last) == ("completed 7", "completed 8", "completed 9")
    assert wrong.startswith("suspended ")
    assert "the edit of ann does not fit the tool" in wrong
