"""A booking in a session of the Claude Agent SDK, whose program keeps what it deferred in a file."""

from __future__ import annotations

import json
from pathlib import Path

from claude_agent_sdk import ResultMessage, query

from tests.frameworks.resumed.booking import booking, run_in
from tests.ways_in.claude_agent_sdk import ScriptedCli
from toolcrib.adapters.claude_agent_sdk import answers, approval_requests, as_tools
from toolcrib.calls import ApprovalRequest


async def main(step: str, folder: Path) -> None:
    """Ask or answer."""
    file = folder / "state.json"
    options = as_tools([booking(folder)], run=run_in(folder))
    if step == "ask":
        cli = ScriptedCli(options, [[("b", "mcp__toolcrib__book", {"city": "Oslo"})]])
        messages = [message async for message in query(prompt="go", options=options, transport=cli)]
        [session] = [message.session_id for message in messages if isinstance(message, ResultMessage)]
        asked = approval_requests(options, session)
        file.write_text(json.dumps([session, cli.sessions, [request.to_dict() for request in asked]]))
        print([request.arguments for request in asked])
        return
    session, deferred, [kept] = json.loads(file.read_text())
    options = await answers(options, session, ApprovalRequest.from_dict(kept).grant("ann"))
    cli = ScriptedCli(options, sessions=deferred)
    async for _ in query(prompt="go on", options=options, transport=cli):
        pass
    print(cli.results)
