"""The principal's consent: asked before approval, and no answer of an approver takes its place."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from toolcrib.approvals import ApprovalStore, MemoryApprovalStore, SqliteApprovalStore, approve_all
from toolcrib.calls import Completed, Consent, Failed, Rejected, Suspended, ToolCall, outcome_from_dict
from toolcrib.errors import ApprovalError
from toolcrib.pipeline import Pipeline, Run
from toolcrib.record import ListSink
from toolcrib.tools import BaseTool
from toolcrib.toolsets import Toolset

LINK = "https://gateway.example/consent/ticket-of-ann"


class Mailbox(BaseTool):
    """Read the mailbox of whoever the call is for."""

    def __init__(self) -> None:
        self.consented = False
        self.read: list[str] = []

    def get_consent(self, ctx: Any) -> Consent | None:
        return None if self.consented else Consent("ann has not given access to mail", LINK, "ann", "mail")

    async def call(self, ctx: Any, folder: str = "in") -> str:
        self.read.append(folder)
        return f"mail in {folder}"


class GuardedMailbox(Mailbox):
    """Read the mailbox, if a person approves."""

    requires_approval = True


async def suspended(tools: Toolset, run: Run) -> Suspended:
    outcome = await Pipeline(tools).run(ToolCall(next(iter(tools.names())), {"folder": "in"}), run)
    assert isinstance(outcome, Suspended), outcome
    return outcome


@pytest.mark.parametrize("stored", [True, False])
async def test_call_goes_on_after_consent_and_never_twice(stored: bool) -> None:
    mailbox = Mailbox()
    tools, run = Toolset([mailbox]), Run(principal="ann", approvals=MemoryApprovalStore() if stored else None)
    first = await suspended(tools, run)
    before = await Pipeline(tools).run(first, run)
    mailbox.consented = True

    outcomes = await asyncio.gather(*(Pipeline(tools).run(first, run) for _ in range(20)))

    assert isinstance(before, Suspended)
    assert sorted(type(one).__name__ for one in outcomes) == ["Completed"] + ["Failed"] * 19
    assert mailbox.read == ["in"]


async def test_other_process_goes_on_once(tmp_path: Path) -> None:
    mailbox, store = Mailbox(), SqliteApprovalStore(tmp_path / "a.db")
    tools, run = Toolset([mailbox]), Run(principal="ann", approvals=store)
    text = json.dumps((await suspended(tools, run)).to_dict())
    mailbox.consented = True

    async def again() -> Any:
        other = Run(principal="ann", approvals=SqliteApprovalStore(tmp_path / "a.db"))
        return await Pipeline(tools).run(outcome_from_dict(json.loads(text)), other)

    outcomes = await asyncio.gather(*(again() for _ in range(5)))

    assert [type(one) for one in outcomes].count(Completed) == 1
    assert mailbox.read == ["in"]


async def test_answer_about_another_call_says_nothing_of_consent() -> None:
    mailbox = Mailbox()
    tools, run = Toolset([mailbox]), Run(principal="ann")
    first, other = await suspended(tools, run), await suspended(tools, run)

    outcome = await Pipeline(tools).run(first, run, grant=other.request.deny(by="eve", message="no"))

    assert isinstance(outcome, Failed)
    assert f"it answers the call {other.call_id}, and this is {first.call_id}" in outcome.message


async def test_yes_of_an_approver_is_no_consent() -> None:
    mailbox, store = Mailbox(), MemoryApprovalStore()
    tools, run = Toolset([mailbox]), Run(principal="ann", approvals=store)
    first = await suspended(tools, run)
    await store.answer(first.request.grant("eve"))

    after = await Pipeline(tools).run(first, run)
    given = await Pipeline(tools).run(after, run, grant=after.request.grant("eve"))  # type: ignore[union-attr,arg-type]

    assert isinstance(after, Suspended)
    assert after.request.id != first.request.id
    assert isinstance(given, Suspended)
    assert mailbox.read == []


async def test_approver_that_says_yes_to_all_is_no_consent() -> None:
    mailbox = Mailbox()

    outcome = await Pipeline(Toolset([mailbox])).run(ToolCall("mailbox", {}), Run(approver=approve_all))

    assert isinstance(outcome, Suspended)
    assert mailbox.read == []


async def test_standing_grant_and_other_arguments_are_no_answer() -> None:
    mailbox, store = Mailbox(), MemoryApprovalStore()
    first = await suspended(Toolset([mailbox]), Run(principal="ann", approvals=store))

    with pytest.raises(ApprovalError, match="consent"):
        await store.answer(first.request.always("eve"))
    with pytest.raises(ApprovalError, match="consent"):
        await store.answer(first.request.grant("eve", override_args={"folder": "out"}))


@pytest.mark.parametrize("stored", [True, False])
async def test_consent_is_no_approval(stored: bool) -> None:
    mailbox = GuardedMailbox()
    store = MemoryApprovalStore() if stored else None
    tools, run = Toolset([mailbox]), Run(principal="ann", approvals=store)
    first = await suspended(tools, run)
    mailbox.consented = True
    if store is not None:
        await store.answer(first.request.grant("the consent of ann"))

    second = await Pipeline(tools).run(first, run)

    assert isinstance(second, Suspended)
    assert second.request.consent is None
    assert mailbox.read == []

    wrong = await Pipeline(tools).run(second, run, grant=first.request.grant("eve"))
    assert isinstance(wrong, Failed)
    assert mailbox.read == []

    third = await Pipeline(tools).run(second, run, grant=second.request.grant("eve"))
    assert isinstance(third, Completed)
    assert mailbox.read == ["in"]


async def test_consent_that_is_taken_back_is_asked_for_again() -> None:
    mailbox, store = GuardedMailbox(), MemoryApprovalStore()
    mailbox.consented = True
    tools, run = Toolset([mailbox]), Run(principal="ann", approvals=store)
    first = await suspended(tools, run)
    mailbox.consented = False
    await store.answer(first.request.grant("eve"))

    second = await Pipeline(tools).run(first, run)

    assert isinstance(second, Suspended)
    assert second.request.consent is not None
    assert mailbox.read == []


async def test_denial_refuses_the_call() -> None:
    mailbox, store = Mailbox(), MemoryApprovalStore()
    tools, run = Toolset([mailbox]), Run(principal="ann", approvals=store)
    first = await suspended(tools, run)
    await store.answer(first.request.deny(message="not that one", by="eve"))
    mailbox.consented = True

    outcome = await Pipeline(tools).run(first, run)

    assert isinstance(outcome, Rejected)
    assert "not that one" in outcome.text()
    assert mailbox.read == []


async def test_question_that_fails_shuts_the_gate() -> None:
    class Broken(Mailbox):
        """Read mail."""

        def get_consent(self, ctx: Any) -> Consent | None:
            raise OSError("no disk")

    broken = Broken()

    outcome = await Pipeline(Toolset([broken])).run(ToolCall("broken", {}), Run())

    assert isinstance(outcome, Failed)
    assert broken.read == []


async def test_consent_that_comes_while_the_request_is_put_down_is_seen() -> None:
    class Store(MemoryApprovalStore):
        async def put(self, request: Any) -> None:
            await super().put(request)
            mailbox.consented = True

    mailbox, store = Mailbox(), Store()

    outcome = await Pipeline(Toolset([mailbox])).run(ToolCall("mailbox", {}), Run(approvals=store))

    assert isinstance(outcome, Completed)
    assert await store.list(pending=True) == ()


async def test_link_is_shown_to_the_model_and_not_to_records() -> None:
    sink, store = ListSink(), MemoryApprovalStore()
    pipeline = Pipeline(Toolset([Mailbox()]), sinks=(sink,))

    outcome = await pipeline.run(ToolCall("mailbox", {}), Run(approvals=store))

    assert isinstance(outcome, Suspended)
    assert LINK in outcome.text()
    recorded = repr([event.to_dict() for event in sink.events])
    assert outcome.request.id in recorded
    assert "ticket-of-ann" not in recorded + repr(sink.events) + repr(outcome)


async def test_requests_of_older_versions_are_read() -> None:
    first: ApprovalStore = MemoryApprovalStore()
    outcome = await suspended(Toolset([Mailbox()]), Run(approvals=first))
    data = outcome.request.to_dict()

    again = type(outcome.request).from_dict(data)
    del data["consent"]

    assert again == outcome.request
    assert type(outcome.request).from_dict(data).consent is None
