"""Pages of AG-UI and the Vercel AI SDK: a browser's memory is a file, and its requests reach an application here."""

from __future__ import annotations

import json
from typing import Any

from starlette.testclient import TestClient
from starlette.types import ASGIApp

from tests.crash.jobs import obey
from tests.crash.pay import stored_answers, tools
from tests.crash.points import database, folder, kill_at, note_text, write
from toolcrib.adapters.ag_ui import ag_ui_app
from toolcrib.adapters.vercel_ai import vercel_ai_app
from toolcrib.approvals import SqliteApprovalStore
from toolcrib.calls import Grant
from toolcrib.rounds import Session
from toolcrib.testing import ScriptedModel


def open_session(principal: str) -> Session:
    """Open a session, as the host of a front end does."""
    return Session(ScriptedModel(*[obey] * 10), tools=tools)


async def ag_ui() -> str | None:
    """Send the person's message, or their answers to what the page shows."""
    file = folder() / "page.json"
    interrupts = json.loads(file.read_text()) if file.exists() else []
    body: dict[str, Any] = {
        "threadId": "t",
        "runId": "r",
        "messages": [{"id": _message(), "role": "user", "content": "Pay 5."}],
    }
    answers = await _answers([interrupt["id"] for interrupt in interrupts])
    if answers is None:
        return None
    if answers:
        body["resume"] = [
            {"interruptId": id, "status": "resolved", "payload": {"approved": approved}}
            for id, approved in answers.items()
        ]
    app = ag_ui_app(open_session, principal=lambda request: "ann", approvals=SqliteApprovalStore(database()))
    events = _send(app, body)
    kill_at("unsaved")
    if not events:
        return None
    found = events[-1].get("outcome", {}).get("interrupts", [])
    write(file, json.dumps(found))
    said = "".join(event["delta"] for event in events if event["type"] == "TEXT_MESSAGE_CONTENT")
    return None if found else said


async def vercel() -> str | None:
    """Send the person's message, or with the model's message their answers to what the page shows."""
    file = folder() / "page.json"
    asked = json.loads(file.read_text()) if file.exists() else {}
    messages: list[Any] = [{"id": _message(), "role": "user", "parts": [{"type": "text", "text": "Pay 5."}]}]
    answers = await _answers(asked)
    if answers is None:
        return None
    if answers:
        parts = [
            {"type": "tool-pay", "toolCallId": asked[id], "state": "approval-responded", "input": {}}
            | {"approval": {"id": id, "approved": approved}}
            for id, approved in answers.items()
        ]
        messages.append({"id": "a1", "role": "assistant", "parts": parts})
    app = vercel_ai_app(open_session, principal=lambda request: "ann", approvals=SqliteApprovalStore(database()))
    chunks = _send(app, {"id": "c", "messages": messages})
    kill_at("unsaved")
    if not chunks:
        return None
    found = {chunk["approvalId"]: chunk["toolCallId"] for chunk in chunks if chunk["type"] == "tool-approval-request"}
    write(file, json.dumps(found))
    said = "".join(chunk["delta"] for chunk in chunks if chunk["type"] == "text-delta")
    return None if found else said


def _message() -> str:
    """Return the id of the person's last message."""
    return "m2" if (folder() / "new message").exists() else "m1"


async def _answers(asked: Any) -> dict[str, bool] | None:
    """Return what the person says to each question; None while they have not decided."""
    store = SqliteApprovalStore(database())
    requests = [(await store.show(id)).request for id in asked]
    given = await stored_answers(requests)
    return None if given is None else {id: isinstance(answer, Grant) for id, answer in zip(asked, given, strict=True)}


def _send(app: ASGIApp, body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what an application answers; a refusal is empty, and the page does what it says."""
    reply = TestClient(app).post("/", json=body)
    if reply.status_code != 200:
        note_text(reply.text)
        if "write a new message" in reply.text:
            write(folder() / "page.json", "[]")
            (folder() / "new message").touch()
        return []
    return [json.loads(line[6:]) for line in reply.text.splitlines() if line.startswith("data: {")]
