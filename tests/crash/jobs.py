"""Ways in whose host is a program of the user's: started again after a crash, it goes on with the files that it has.

A job returns what its agent said at last, or None while a call waits for a person.
"""

from __future__ import annotations

import json
from typing import Any

from tests.crash.pay import open_run, open_run_unasked, tools, unasked
from tests.crash.points import CENTS, PAID, calls_again, database, folder, kill_at, next_call, note_text, write
from toolcrib.approvals import SqliteApprovalStore
from toolcrib.calls import ToolCall
from toolcrib.code import PausedProgram, Toolkit
from toolcrib.pipeline import Run
from toolcrib.rounds import ChatRequest, Finished, Session, ToolRoundPlan, decode
from toolcrib.testing import ScriptedModel, Step, wire_reply
from toolcrib.toolsets import Toolset

KEY = b"a key of thirty-two bytes, or so"


def obey(request: ChatRequest) -> Step:
    """Return what an obedient model says to a transcript."""
    texts = [str(message["content"]) for message in request.messages if message["role"] == "tool"]
    call = next_call(texts)
    return "the end" if call is None else ToolCall("pay", {"cents": CENTS}, call)


async def session() -> str | None:
    """Run a session whose call needs approval."""
    return await _run_session(tools, open_run())


async def session_unasked() -> str | None:
    """Run a session whose call needs none, and is noted in the store."""
    return await _run_session(unasked, open_run_unasked())


async def _run_session(tools: Toolset, run: Run) -> str | None:
    """Run a session that is stored as JSON."""
    file, model = folder() / "session.json", ScriptedModel(*[obey] * 10)
    if file.exists():
        session = await Session.from_json(model, file.read_text(), tools=tools, run=run)
    else:
        session = Session(model, tools=tools, run=run).say("Pay 5.")
    kill_at("loaded")
    result = await session.run()
    kill_at("unsaved")
    write(file, session.to_json())
    kill_at("saved")
    return str(result.result) if isinstance(result, Finished) else None


async def session_in_store() -> str | None:
    """Run a session that is kept in the store of its calls: the same lines each time."""
    return await _run_stored_session(tools)


async def session_in_store_unasked() -> str | None:
    """Run a session in a store whose call needs no approval."""
    return await _run_stored_session(unasked)


async def _run_stored_session(tools: Toolset) -> str | None:
    store, run = SqliteApprovalStore(database()), Run(principal="ann", sinks=open_run().sinks)
    session = Session(ScriptedModel(*[obey] * 10), tools=tools, run=run, store=store, id="ann 1")
    await session.load()
    kill_at("loaded")
    result = await session.say("Pay 5.").run()
    kill_at("saved")
    return str(result.result) if isinstance(result, Finished) else None


async def plan() -> str | None:
    """Ask a model in a loop of the user's own, which stores the messages and the plan of the open round."""
    file = folder() / "round.json"
    stored = json.loads(file.read_text()) if file.exists() else {"messages": [{"role": "user", "content": "Pay 5."}]}
    messages: list[Any] = stored["messages"]
    while True:
        if stored.get("plan") is None:
            texts = [message["content"] for message in messages if message["role"] == "tool"]
            call = next_call(texts)
            if call is None:
                return "the end"
            reply = wire_reply("openai", [ToolCall("pay", {"cents": CENTS}, call)])
            plan = await decode(tools, reply, run=open_run()).apply_hooks()
        else:
            plan = await ToolRoundPlan.from_json(tools, stored["plan"], run=open_run())
            kill_at("loaded")
            await plan.resolve()
        results = await plan.run_pending()
        kill_at("unsaved")
        if plan.suspended:
            write(file, json.dumps({"messages": messages, "plan": plan.to_json()}))
            kill_at("saved")
            return None
        await plan.commit(messages, results)
        stored = {"messages": messages}
        write(file, json.dumps(stored))
        kill_at("saved")


async def program() -> str | None:
    """Run a program of a model, which is stored where it is paused."""
    file, toolkit = folder() / "program", Toolkit(tools)
    code = f"print(pay({CENTS}))"
    texts: list[str] = []
    while calls_again(texts):
        if file.exists():
            paused = PausedProgram.from_bytes(file.read_bytes(), KEY)
            kill_at("loaded")
            result = await toolkit.resume_async(paused, open_run())
        else:
            result = await toolkit.execute_async(code, open_run())
        kill_at("unsaved")
        if result.paused is not None:
            file.write_bytes(result.paused.to_bytes(KEY))
            kill_at("saved")
            return None
        texts.append(result.text())
        note_text(texts[-1])
        if PAID not in texts[-1]:
            file.unlink(missing_ok=True)  # the model writes its program anew
    return "the end"
