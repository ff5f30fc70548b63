"""A question of another process, of which nothing is known here as no approval store is shared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.frameworks.killed.desk import How
from tests.frameworks.test_killed import agent_of
from toolcrib.errors import ApprovalError
from toolcrib.pipeline import Run


@pytest.fixture(autouse=True)
def no_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no run an approval store."""
    monkeypatch.setattr("tests.frameworks.killed.desk.Desk.run", lambda self, *about: Run(principal="ann"))


@pytest.mark.parametrize("how", ["named", "plain"])
@pytest.mark.parametrize("framework", ["langchain", "google_adk", "agent_framework", "pydantic_ai"])
async def test_an_answer_counts_where_the_framework_makes_the_call_again(
    framework: str, how: How, tmp_path: Path
) -> None:
    desk = agent_of(framework, tmp_path)
    await desk.ask()
    await desk.approve(how)

    resumed = await agent_of(framework, tmp_path).resume()

    if resumed.asked and resumed.answer:  # an approval of its own counts for nothing that it has not shown here
        assert (framework, how) == ("agent_framework", "plain")
        resumed = await resumed.answer(resumed.asked[0].grant("ann"))
    assert "booked Oslo" in str(resumed.outputs)


@pytest.mark.parametrize("framework", ["openai_agents", "claude_agent_sdk", "smolagents"])
async def test_an_answer_that_cannot_be_used_is_an_error_that_names_the_store(framework: str, tmp_path: Path) -> None:
    desk: Any = agent_of(framework, tmp_path)
    await desk.ask()

    with pytest.raises(ApprovalError, match=r"no call that waits is known here.*Run\(approvals=SqliteApprovalStore"):
        await gone_on(framework, tmp_path)

    assert not (tmp_path / "booked").exists()


async def gone_on(framework: str, folder: Path) -> None:
    """Answer and go on, as another process does."""
    await agent_of(framework, folder).approve("named")
    await agent_of(framework, folder).resume()
