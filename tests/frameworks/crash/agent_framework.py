"""An agent of Microsoft Agent Framework, whose session is in a file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agent_framework import Agent, AgentSession, Content, Message

from tests.crash.pay import open_run, stored_answers, tools
from tests.crash.points import CENTS, folder, kill_at, next_call, write
from tests.frameworks.scripted_agent_framework import ScriptedClient
from toolcrib.adapters.agent_framework import answers, approval_requests, as_tools


class _Client(ScriptedClient):
    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **kwargs: Any
    ) -> Any:
        contents = [part for message in messages for part in message.contents if part.type == "function_result"]
        texts = ["\n".join(item.text or "" for item in part.items or ()) or str(part.result) for part in contents]
        call = next_call(texts)
        said = Content.from_text("the end")
        self.steps = [[said if call is None else Content.from_function_call(call, "pay", arguments={"cents": CENTS})]]
        return super()._inner_get_response(messages=messages, stream=stream, options=options, **kwargs)


async def run() -> str | None:
    """Run the agent."""
    file, provider = folder() / "session.json", as_tools(tools, run=open_run)
    agent = Agent(_Client(), context_providers=[provider])
    if file.exists():
        stored, contents = json.loads(file.read_text())
        session, asked = AgentSession.from_dict(stored), [Content.from_dict(content) for content in contents]
        given = await stored_answers(approval_requests(asked))
        if given is None:
            return None
        kill_at("loaded")
        said: Any = await answers(asked, *given, agent=agent, session=session)
    else:
        session, said = agent.create_session(), "Pay 5."
    response = await agent.run(said, session=session)
    kill_at("unsaved")
    asked = response.user_input_requests
    if not asked:
        return response.text
    write(file, json.dumps([session.to_dict(), [content.to_dict() for content in asked]]))
    kill_at("saved")
    return None
