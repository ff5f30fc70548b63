"""A yes that was given before a call began, and is handed over again after its process was killed."""

from __future__ import annotations

import signal
from importlib import import_module
from pathlib import Path

import pytest

from tests.frameworks.adapters import ADAPTERS
from tests.frameworks.forked import output_of
from tests.frameworks.killed.desk import Desk, How, Resumed, take_step
from toolcrib.calls import ApprovalRequest

FRAMEWORKS: dict[str, tuple[How, ...]] = {
    name: ("named",) if name in ("claude_agent_sdk", "smolagents") else ("named", "plain")
    for name in (*ADAPTERS, "openai_agents_guarded")
}
"""The ways to say yes that each framework has: `plain` names no request."""


@pytest.mark.parametrize(("framework", "yes"), [(name, yes) for name, ways in FRAMEWORKS.items() for yes in ways])
def test_a_yes_from_before_is_no_answer_about_a_call_in_doubt(framework: str, yes: str, tmp_path: Path) -> None:
    output_of(take_step, framework, yes, tmp_path, folder=tmp_path, ended=-signal.SIGKILL)

    asked = output_of(take_step, framework, "resume", tmp_path, folder=tmp_path)
    settled = output_of(take_step, framework, "settle", tmp_path, folder=tmp_path)

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
