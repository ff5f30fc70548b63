"""A booking that is asked for in one process and answered in another, for the module of each framework beside this.

`main("ask", folder)` of a module prints what a person is asked, and `main("answer", folder)` what the model was given
for the call.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from toolcrib.approvals import SqliteApprovalStore
from toolcrib.pipeline import Run
from toolcrib.tools import ez_tool


def booking(folder: Path) -> Any:
    """Return a tool that writes what it books into a file."""

    @ez_tool(requires_approval=True)
    async def book(city: str) -> str:
        """Book a room."""
        with (folder / "booked").open("a") as file:
            file.write(f"{city}\n")
        return f"booked {city}"

    return book


def run_in(folder: Path) -> Run:
    """Return the run of the calls, which other processes share by its store."""
    return Run(principal="ann", approvals=SqliteApprovalStore(folder / "approvals.db"))
