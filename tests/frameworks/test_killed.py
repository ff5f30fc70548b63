"""A yes that was given before a call began, and is handed over again after its process was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tests.docs.pages import ROOT
from tests.frameworks.adapters import ADAPTERS
from tests.frameworks.killed.desk import Desk, How, Resumed
from toolcrib.calls import ApprovalRequest

FRAMEWORKS: dict[str, tuple[How, ...]] = {
    name: ("named",) if name in ("claude_agent_sdk", "smolagents") else ("named", "plain")
    for name in (*ADAPTERS, "openai_agents_guarded")
}
"""The ways to say yes that each framework has: `plain` names no request."""


@pytest.mark.timeout(1200)  # three processes load a framework each
@pytest.mark.parametrize(("framework", "yes"), [(name, yes) for name, ways in FRAMEWORKS.items() for yes in ways])
def test_a_yes_from_before_is_no_answer_about_a_call_in_doubt(framework: str, yes: str, tmp_path: Path) -> None:
    taken(framework, yes, tmp_path, ended=-signal.SIGKILL)

    asked = taken(framework, "resume", tmp_path)
    settled = taken(framework, "settle", tmp_path)

    assert asked.startswith("['ask_")
    assert settled.startswith(asked)
    assert "booked by hand" in settled
    assert (tmp_path / "booked").read_text() == "Oslo\n"


@pytest.mark.parametrize(
    ("framework", "how"), [(name, how) for name, ways in FRAMEWORKS.items() for how in (*ways, "stored")]
)
async def test_an_answer_in_the_store_counts(framework: str, how: How, tmp_path: Path) -> None:
    resumed: list[Resumed] = []
    for answer in (ApprovalRequest.grant, ApprovalRequest.deny):
        folder = tmp_path / answer.__name__
        folder.mkdir()
        desk = agent_of(framework, folder)
        await desk.ask()
        [entry] = await desk.store.list(pending=True)
        yes, no = entry.request.grant("bob"), entry.request.deny(by="bob", message="not there")
        await desk.store.answer(yes if answer is ApprovalRequest.grant else no)
        await desk.approve(how)
        resumed.append(await agent_of(framework, folder).resume())

    granted, denied = resumed
    assert "booked Oslo" in str(granted.outputs)
    assert "not there" in str(denied.outputs)
    assert (granted.asked, denied.asked) == ([], [])
    assert (tmp_path / "grant" / "booked").read_text() == "Oslo\n"
    assert not (tmp_path / "deny" / "booked").exists()


@pytest.mark.parametrize("framework", [name for name in FRAMEWORKS if name != "smolagents"])
async def test_a_request_that_has_no_answer_is_asked_again(framework: str, tmp_path: Path) -> None:
    desk = agent_of(framework, tmp_path)
    await desk.ask()
    await desk.approve("stored")

    resumed = await agent_of(framework, tmp_path).resume()

    [entry] = await desk.store.list(pending=True)
    assert [request.id for request in resumed.asked] == [entry.request.id]
    assert not (tmp_path / "booked").exists()


def agent_of(framework: str, folder: Path) -> Desk:
    """Return the agent, as a process of its own has it."""
    desk: Desk = import_module(f"tests.frameworks.killed.{framework}").Agent(folder, "in the test")
    return desk


def taken(framework: str, step: str, folder: Path, *, ended: int = 0) -> str:
    """Return what a process prints that takes a step."""
    command = [sys.executable, "-m", "tests.frameworks.killed", framework, step, str(folder)]
    environment = {**os.environ, "OPENAI_AGENTS_DISABLE_TRACING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == ended, done.stderr
    return done.stdout
