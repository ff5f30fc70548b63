"""A booking in an agent of Microsoft Agent Framework, whose session is in a file."""

from __future__ import annotations

import json
from pathlib import Path

from agent_framework import Agent, AgentSession, Content

from tests.frameworks.resumed.booking import booking, run_in
from tests.frameworks.scripted_agent_framework import ScriptedClient, calling, outputs
from toolcrib.adapters.agent_framework import answers, approval_requests, as_tools


async def main(step: str, folder: Path) -> None:
    """Ask or answer."""
    file, provider = folder / "state.json", as_tools([booking(folder)], run=run_in(folder))
    script = [calling(("book", {"city": "Oslo"}))] if step == "ask" else []
    agent = Agent(ScriptedClient(*script), context_providers=[provider])
    if step == "ask":
        session = agent.create_session()
        asked = (await agent.run("go", session=session)).user_input_requests
        file.write_text(json.dumps([session.to_dict(), [content.to_dict() for content in asked]]))
        print([request.arguments for request in approval_requests(asked)])
        return
    kept, contents = json.loads(file.read_text())
    session, asked = AgentSession.from_dict(kept), [Content.from_dict(each) for each in contents]
    [request] = approval_requests(asked)
    message = await answers(asked, request.grant("ann"), agent=agent, session=session)
    print(outputs(await agent.run(message, session=session)))
