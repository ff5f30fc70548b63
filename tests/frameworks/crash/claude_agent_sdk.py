"""A session of the Claude Agent SDK, whose program keeps what it deferred in a file."""

from __future__ import annotations

import json
from typing import Any

from claude_agent_sdk import ResultMessage, query

from tests.crash.pay import open_run, stored_answers, tools
from tests.crash.points import CENTS, PAID, calls_again, folder, kill_at, note_text, write
from tests.ways_in.claude_agent_sdk import ScriptedCli
from toolcrib.adapters.claude_agent_sdk import answers, approval_requests, as_tools
from toolcrib.calls import ApprovalRequest


async def run() -> str | None:
    """Run the session."""
    file = folder() / "session.json"
    options = as_tools(tools, run=open_run)
    number, texts, deferred = 0, list[str](), dict[str, Any]()
    if file.exists():
        session, deferred, asked, number, texts = json.loads(file.read_text())
        given = await stored_answers(map(ApprovalRequest.from_dict, asked))
        if given is None:
            return None
        kill_at("loaded")
        for each in given:
            options = await answers(options, session, each)
    cli = ScriptedCli(options, sessions=deferred)
    if not file.exists() or (texts and calls_again(texts)):
        cli.steps = [[(f"call_{number}", "mcp__toolcrib__pay", {"cents": CENTS})]]
    session = ""
    async for message in query(prompt="Pay 5.", options=options, transport=cli):
        if isinstance(message, ResultMessage):
            session = message.session_id
    for result in cli.results.values():
        texts.append(str(result))
        note_text(texts[-1])
    kill_at("unsaved")
    asked = [request.to_dict() for request in approval_requests(options, session)]
    write(file, json.dumps([session, cli.sessions, asked, number + 1, texts]))
    kill_at("saved")
    return texts[-1] if texts and not calls_again(texts) else None if not texts or PAID not in texts[-1] else texts[-1]
