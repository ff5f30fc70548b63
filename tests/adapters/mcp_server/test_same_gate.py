"""One tool, one denial, three ways in: a program, a round, and MCP."""

import json
from typing import Any

from mcp.client.client import Client

from tests.adapters.mcp_server.clients import text_of
from toolcrib.adapters.mcp_server import ServerOptions, build_server
from toolcrib.approvals import Approver
from toolcrib.calls import ApprovalRequest, Denial, ToolCall
from toolcrib.code import Toolkit
from toolcrib.formats import PROVIDERS
from toolcrib.pipeline import Channel, Pipeline, Run
from toolcrib.rounds import Transcript, decode
from toolcrib.testing import RecordingSink, wire_reply
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Toolset


async def test_a_tool_is_denied_alike_in_a_program_a_round_and_over_mcp() -> None:
    deleted: list[str] = []
    watch = RecordingSink()

    @ez_tool(requires_approval=True)
    async def delete_file(path: str) -> str:
        deleted.append(path)
        return "deleted"

    async def no(request: ApprovalRequest) -> Denial:
        return request.deny(message=f"{request.arguments['path']} is needed", by="ann")

    crib = Toolset([delete_file])
    said = [await ask(crib, no, watch) for ask in (in_a_program, in_a_round, over_mcp)]

    assert all("a.txt is needed" in text for text in said)
    assert deleted == []
    records = [(r.outcome["kind"], r.outcome["reason"], r.approval and r.approval["approver"]) for r in watch.records]
    assert records == [("rejected", "a.txt is needed", "ann")] * 3
    assert [record.entry for record in watch.records] == ["code", "round", "mcp"]


async def in_a_program(crib: Toolset, no: Approver, watch: RecordingSink) -> str:
    result = await Toolkit(crib, approver=no, sinks=[watch]).execute_async("delete_file('a.txt')")
    return result.text()


async def in_a_round(crib: Toolset, no: Approver, watch: RecordingSink) -> str:
    reply = wire_reply("openai", [ToolCall("delete_file", {"path": "a.txt"})])
    scope = Run(approver=no, sinks=(watch,), channel=Channel(entry="round"))
    plan = await decode(Pipeline(crib), reply, format="openai", run=scope).apply_hooks()
    transcript = Transcript(PROVIDERS["openai"].user("go"), "openai")
    await plan.commit(transcript, await plan.run_pending())
    return json.dumps(list(transcript))


async def over_mcp(crib: Toolset, no: Approver, watch: RecordingSink) -> str:
    options = ServerOptions(run=lambda name: Run(approver=no), sinks=(watch,))
    async with Client(build_server(crib, options), cache=None) as client:
        result: Any = await client.call_tool("delete_file", {"path": "a.txt"})
    return text_of(result)
