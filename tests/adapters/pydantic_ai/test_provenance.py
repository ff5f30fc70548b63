"""Provenance in an agent of Pydantic AI: the run knows its message history, and the results of others' tools."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.tools import DeferredToolRequests
from pydantic_ai.toolsets import FunctionToolset

from tests.adapters.pydantic_ai.scripted import agent, scripted
from toolcrib.adapters.pydantic_ai import approval_requests, as_tools
from toolcrib.code import Toolkit
from toolcrib.pipeline import Run
from toolcrib.provenance import Provenance
from toolcrib.tools import Tool, ez_tool

IBAN = "GB29NWBK60161331926819"
BILL = f"Car rental\n\nPlease pay to {IBAN}"


def bank() -> list[Tool[..., Any]]:
    @ez_tool(effect="none")
    async def read_file(path: str) -> str:
        """Read a file."""
        return BILL

    @ez_tool(effect="send", source="trusted")
    async def pay(recipient: str) -> str:
        """Pay."""
        return "paid"

    return [read_file, pay]


PAYS = [("pay", {"recipient": IBAN}, "c9")]


async def reason(*toolsets: Any, prompt: Any, history: list[ModelMessage] | None = None, steps: Any = (PAYS,)) -> str:
    """Return what a person is asked about the payment; nothing where it goes through."""
    said = sum(isinstance(one, ModelResponse) for one in history or ())
    tools = as_tools(bank(), run=Run(features=[Provenance()]))
    none: list[Any] = []
    model = scripted(*[none] * said, *steps)
    made = await agent(model, tools, *toolsets).run(prompt, message_history=history)
    if not isinstance(made.output, DeferredToolRequests):
        return ""
    [request] = approval_requests(made.output)
    assert request.text().startswith(f"pay needs approval: {request.reason}")
    return request.reason


def history(text: str) -> list[ModelMessage]:
    return [
        ModelRequest([UserPromptPart("read bill.txt")]),
        ModelResponse([ToolCallPart("read_file", {"path": "bill.txt"}, "c1")]),
        ModelRequest([ToolReturnPart("read_file", text, "c1")]),
        ModelResponse([TextPart("It is a bill.")]),
    ]


async def test_results_in_the_message_history_are_a_strangers() -> None:
    asked = await reason(prompt="pay the bill", history=history(BILL))
    assert asked.startswith(f"recipient `{IBAN}` comes from `read_file` (bill.txt, line 3), untrusted")
    assert asked.endswith("you wrote: pay the bill")


async def test_what_the_user_wrote_in_the_history_is_the_users() -> None:
    before = history("Nothing new")
    before[0] = ModelRequest([UserPromptPart([f"pay to {IBAN} when", "the file says so"])])
    assert await reason(prompt="go on", history=before) == ""


async def test_what_the_model_wrote_in_the_history_is_nothing() -> None:
    before = [*history("Nothing new")[:3], ModelResponse([TextPart(f"I shall pay to {IBAN}")])]
    assert "is in nothing that the user wrote" in await reason(prompt="go on", history=before)


async def test_results_of_tools_of_others_are_untrusted() -> None:
    others: FunctionToolset[Any] = FunctionToolset()

    @others.tool_plain
    def browse(url: str) -> str:
        """Read a page."""
        return BILL

    steps = ([("browse", {"url": "x.com"}, "c1")], PAYS)
    asked = await reason(others, prompt="pay the bill at x.com", steps=steps)
    assert "comes from `browse` (x.com, line 3), untrusted" in asked


async def test_what_is_attached_to_the_prompt_is_not_the_users() -> None:
    prompt = ["pay this", BinaryContent(BILL.encode(), media_type="application/pdf")]
    assert "is in nothing that the user wrote" in await reason(prompt=prompt)


@pytest.mark.skipif(sys.platform != "linux", reason="programs run in the sandbox of Linux")
async def test_a_program_that_was_written_late_is_deferred() -> None:
    run = Run(features=[Provenance(frozen=True)])
    tools = as_tools([*bank(), Toolkit(bank()).as_tool()], run=run)
    steps: Any = [[("read_file", {"path": "a"}, "c1")], [("run_python", {"code": "1 + 1"}, "c2")]]
    made = await agent(scripted(*steps), tools).run("what does it say?")
    assert isinstance(made.output, DeferredToolRequests)
    assert [call.tool_name for call in made.output.approvals] == ["run_python"]
