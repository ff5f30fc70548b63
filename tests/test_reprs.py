"""What a prompt shows of the objects that a user holds: which one it is, in a line or two, and no secret."""

from __future__ import annotations

from base64 import b64encode
from inspect import isclass
from pathlib import Path
from typing import Annotated, Any

import pytest

import toolcrib
from toolcrib import (
    Agent,
    ApprovalRequired,
    Ask,
    CallLimits,
    Complete,
    Durability,
    HookSet,
    InvalidArguments,
    ListSink,
    Media,
    ModelRetry,
    Pipeline,
    Redacted,
    Reject,
    Rejected,
    Run,
    RunNormally,
    Session,
    SqliteApprovalStore,
    SqliteSink,
    Suspended,
    ToolCall,
    ToolcribError,
    Toolkit,
    Toolset,
    Turn,
    tool,
)
from toolcrib.approvals import MemoryApprovalStore
from toolcrib.budgets import Budgets, Limit, SqliteUsageStore
from toolcrib.code import SqliteProgramStore
from toolcrib.credentials import SqliteCredentialStore
from toolcrib.provenance import Provenance
from toolcrib.results import SqliteResultStore
from toolcrib.sandbox import UnsafeInlineSandbox
from toolcrib.serving import GuardPolicy
from toolcrib.testing import ScriptedModel

SECRET = "hunter2"
CHARS = 220  # three lines of a terminal
WRITTEN = {"BaseTool", "Call", "Delivery", "Gate", "Injected", "Redacted", "ToolHook"}
"""Classes that a user writes or annotates with: protocols, a base, markers."""


@tool(requires_approval=True, register=False)
async def transfer(euros: int, to: str, pin: Annotated[str, Redacted()]) -> str:
    """Send money.

    Args:
        euros: The amount.
        to: The name of the person who is given it.
        pin: The number of the card.
    """
    return f"sent {euros} euros to {to}, after which the account has the rest of what it had " * 20


STORES: list[Any] = [
    SqliteApprovalStore,
    SqliteSink,
    SqliteUsageStore,
    SqliteResultStore,
    SqliteProgramStore,
    SqliteCredentialStore,
]


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a key for the store of credentials."""
    monkeypatch.setenv("TOOLCRIB_CREDENTIALS_KEY", b64encode(bytes(range(32))).decode())


async def held(folder: Path) -> list[Any]:
    """Return what a user holds after a call that was asked about, one that failed, and a program."""
    sink, store = ListSink(), SqliteApprovalStore(folder / "a.db")
    run, pipeline = Run(principal="ann", approvals=store, sinks=[sink]), Pipeline([transfer])
    call = ToolCall("transfer", {"euros": 3, "to": "ben", "pin": SECRET})
    suspended = await pipeline.run(call, run)
    assert isinstance(suspended, Suspended)
    grant = suspended.request.grant("ann")
    completed = await pipeline.run(suspended, run, grant=grant)
    failed = await pipeline.run(ToolCall("transfer", {"euros": "three", "pin": SECRET}), run)
    toolkit = Toolkit([transfer], sandbox=UnsafeInlineSandbox())
    program = await toolkit.execute_async(f"print('hello' * 200)\ntransfer(euros=1, to='ben', pin={SECRET!r})")
    outcomes = [suspended, completed, failed, program, suspended.request, grant, suspended.request.deny()]
    objects = [call, run, run.context(), run.channel, pipeline, toolkit, sink, store, sink.events[0], *sink.records]
    return [*outcomes, *objects, *await store.list(), *(kind(folder / f"{kind.__name__}.db") for kind in STORES)]


def made() -> list[Any]:
    """Return what a user makes."""
    durability = Durability(store=MemoryApprovalStore())
    values = [
        Ask("why"),
        Complete(3),
        Reject("no"),
        RunNormally({}),
        Rejected("transfer", "c", "no"),
        CallLimits(total=3),
    ]
    words = [ApprovalRequired(), ToolcribError("no"), ModelRetry("no"), InvalidArguments("transfer", ())]
    model = ScriptedModel("Done.")
    agent = Agent("desk", "A desk.", [transfer], register=False)
    objects = [agent, Turn(transfer), Session(model), transfer, Toolset([transfer]), HookSet(), MemoryApprovalStore()]
    gates = [Budgets([Limit(calls=3, per="minute")]), GuardPolicy(approve=["transfer"]), Provenance(), durability]
    return [*values, *words, *objects, *gates, Media("image/png", b"x" * 1000)]


async def test_each_object_that_a_user_holds_shows_which_one_it_is_and_no_secret(tmp_path: Path) -> None:
    values = [*await held(tmp_path), *made()]

    texts: dict[type[Any], str] = {type(value): repr(value) for value in values}
    long = {kind: text for kind, text in texts.items() if len(text) > CHARS or " object at 0x" in text}
    public = {kind for name in toolcrib.__all__ if isclass(kind := getattr(toolcrib, name)) and name not in WRITTEN}

    assert long == {}
    assert [text for text in texts.values() if SECRET in text] == []
    assert {kind.__name__ for kind in public if not any(kind in found.__mro__ for found in texts)} == set()


async def test_a_short_repr_says_the_path_the_count_the_tool_and_the_id(tmp_path: Path) -> None:
    [suspended, *_, deny] = (await held(tmp_path))[:7]
    sink, store = ListSink(), SqliteApprovalStore(tmp_path / "a.db")

    assert repr(sink) == "<ListSink of 0 events>"
    assert repr(store) == f"<SqliteApprovalStore {str(tmp_path / 'a.db')!r}>"
    for value in (suspended, suspended.request, deny):
        assert "tool='transfer'" in repr(value)
        assert suspended.request.id in repr(value)
