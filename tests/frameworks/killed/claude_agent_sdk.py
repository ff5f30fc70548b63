"""The booking in a session of the Claude Agent SDK, which keeps what it deferred in a file."""

from __future__ import annotations

import json
from typing import Any

from claude_agent_sdk import ResultMessage, query

from tests.frameworks.killed.desk import Desk, How, Resumed
from tests.ways_in.claude_agent_sdk import ScriptedCli
from toolcrib.adapters.claude_agent_sdk import GatedOptions, answers, approval_requests, as_tools
from toolcrib.calls import ApprovalRequest, Denial, Grant
from toolcrib.serving.frameworks import Given, answer_of, answer_payload


class Agent(Desk):
    """The session; the host keeps the answer that it gives."""

    async def ask(self) -> None:
        options = as_tools([self.book], run=self.run)
        cli = ScriptedCli(options, [[("b", "mcp__toolcrib__book", {"city": "Oslo"})]])
        messages = [message async for message in query(prompt="go", options=options, transport=cli)]
        [session] = [message.session_id for message in messages if isinstance(message, ResultMessage)]
        [request] = approval_requests(options, session)
        self.write("session", json.dumps([session, cli.sessions, request.to_dict()]))

    async def approve(self, how: How) -> None:
        request = ApprovalRequest.from_dict(json.loads(self.read("session"))[2])
        self.write("yes", json.dumps(answer_payload(self.yes(request, how))))

    async def resume(self) -> Resumed:
        session, deferred, asked = json.loads(self.read("session"))
        request = ApprovalRequest.from_dict(asked)
        yes = answer_of(request, json.loads(self.read("yes"))) or request
        return await self._resumed(as_tools([self.book], run=self.run), session, deferred, yes)

    async def _resumed(self, options: GatedOptions, session: str, deferred: Any, given: Given) -> Resumed:
        options = await answers(options, session, given)
        cli = ScriptedCli(options, sessions=deferred)
        async for _ in query(prompt="go on", options=options, transport=cli):
            pass

        async def answer(given: Grant | Denial) -> Resumed:
            return await self._resumed(options, session, cli.sessions, given)

        return Resumed([*cli.results.values()], approval_requests(options, session), answer)
