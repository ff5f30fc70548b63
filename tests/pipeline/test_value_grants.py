"""Standing grants for values: they hold for the same values from the same place, in any run of the principal."""

from pathlib import Path
from typing import Annotated, Any

import pytest

from toolcrib.approvals import ApprovalStore, MemoryApprovalStore, SqliteApprovalStore
from toolcrib.calls import ApprovalRequest, Completed, Grant, Suspended, ToolCall
from toolcrib.errors import ApprovalError
from toolcrib.pipeline import Pipeline, Run
from toolcrib.provenance import Content, Provenance
from toolcrib.tools import Tool, ez_tool

IBAN, OTHER = "GB29NWBK60161331926819", "DE89370400440532013000"
FILES = {"bill.txt": f"Pay to {IBAN}", "page.html": f"Pay to {IBAN}", "both.txt": f"Pay to {IBAN} or {OTHER}"}


def bank() -> list[Tool[..., Any]]:
    @ez_tool(effect="none")
    async def read_file(path: str) -> str:
        """Read a file."""
        return FILES[path]

    @ez_tool(effect="spend", source="trusted")
    async def pay(recipient: str, subject: Annotated[str, Content] = "") -> str:
        """Pay."""
        return "paid"

    @ez_tool(effect="spend", source="trusted")
    async def order(recipient: str) -> str:
        """Order."""
        return "ordered"

    @ez_tool(effect="spend", source="trusted", requires_approval=lambda args, ctx: "large" in args["note"])
    async def refund(recipient: str, note: Annotated[str, Content] = "") -> str:
        """Give back."""
        return "given back"

    return [read_file, pay, order, refund]


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ApprovalStore:
    return MemoryApprovalStore() if request.param == "memory" else SqliteApprovalStore(tmp_path / "approvals.db")


async def calling(
    store: ApprovalStore, tool: str = "pay", file: str = "bill.txt", principal: str | None = "ann", **arguments: Any
) -> Any:
    """Read a file in a run of its own, and then call a tool with a value of it; return the outcome, and the run."""
    pipeline, run = Pipeline(bank()), Run(features=[Provenance()], approvals=store, principal=principal)
    run.add_user_message(f"do what {file} says")
    await pipeline.run(ToolCall("read_file", {"path": file}), run)
    return await pipeline.run(ToolCall(tool, {"recipient": IBAN, **arguments}), run)


async def always(store: ApprovalStore, **call: Any) -> None:
    asked = await calling(store, **call)
    assert isinstance(asked, Suspended)
    await store.answer(asked.request.always("ann"))


async def test_the_same_value_from_the_same_place_is_not_asked_about_in_another_run(store: ApprovalStore) -> None:
    await always(store)
    assert isinstance(await calling(store), Completed)
    assert isinstance(await calling(store, subject="May"), Completed)


@pytest.mark.parametrize(
    "call",
    [
        {"recipient": OTHER, "file": "both.txt"},
        {"recipient": OTHER},
        {"recipient": IBAN.lower()},
        {"file": "page.html"},
        {"tool": "order"},
        {"principal": "ben"},
        {"principal": None},
        {"subject": "see www.evil.com"},
    ],
    ids=str,
)
async def test_nothing_else_is_let_through(
    store: ApprovalStore, call: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    await always(store)
    monkeypatch.setitem(FILES, "bill.txt", f"Pay to {IBAN}, see www.evil.com")
    assert isinstance(await calling(store, **call), Suspended)


async def test_an_approval_for_once_is_for_its_run_alone(store: ApprovalStore) -> None:
    asked = await calling(store)
    await store.answer(asked.request.grant("ann"))
    assert isinstance(await calling(store), Suspended)


async def test_a_call_that_needs_approval_for_more_is_asked_about(store: ApprovalStore) -> None:
    await always(store, tool="refund")
    assert isinstance(await calling(store, tool="refund"), Completed)
    assert isinstance(await calling(store, tool="refund", note="large"), Suspended)


async def test_a_grant_that_is_taken_back_or_has_ended_is_none(store: Any) -> None:
    await always(store)
    [kept] = await store.standing()
    assert (kept.scope, kept.principal) == ("values", "ann")
    await store.revoke(kept)
    assert isinstance(await calling(store), Suspended)


async def test_a_standing_grant_that_serves_a_run_is_asked_for_again_there() -> None:
    store = MemoryApprovalStore()
    await always(store)
    pipeline, run = Pipeline(bank()), Run(features=[Provenance()], approvals=store, principal="ann")
    run.add_user_message("do what bill.txt says")
    await pipeline.run(ToolCall("read_file", {"path": "bill.txt"}), run)
    assert isinstance(await pipeline.run(ToolCall("pay", {"recipient": IBAN}), run), Completed)
    await store.revoke((await store.standing())[0])
    assert isinstance(await pipeline.run(ToolCall("pay", {"recipient": IBAN}), run), Suspended)


async def test_without_a_store_it_holds_in_the_run() -> None:
    async def approver(request: ApprovalRequest) -> Grant:
        return request.always("ann")

    pipeline, run = Pipeline(bank()), Run(features=[Provenance()], approver=approver)
    run.add_user_message("do what bill.txt says")
    await pipeline.run(ToolCall("read_file", {"path": "bill.txt"}), run)
    assert isinstance(await pipeline.run(ToolCall("pay", {"recipient": IBAN}), run), Completed)
    alone = run.view(approver=None)
    assert isinstance(await pipeline.run(ToolCall("pay", {"recipient": IBAN, "subject": "May"}), alone), Completed)
    assert isinstance(await pipeline.run(ToolCall("pay", {"recipient": OTHER}), alone), Suspended)


async def test_a_grant_for_values_comes_back_from_json_and_has_some() -> None:
    asked = await calling(MemoryApprovalStore())
    given = asked.request.always("ann")
    assert Grant.from_dict(given.to_dict()) == given
    assert ApprovalRequest.from_dict(asked.request.to_dict()) == asked.request
    with pytest.raises(ValueError, match="a grant for values has none"):
        Grant("pay", scope="values")


async def test_what_cannot_be_looked_up_is_approved_with_its_arguments_alone() -> None:
    @ez_tool(effect="send")
    async def send(to: list[str]) -> str:
        """Send."""
        return "sent"

    pipeline, run = Pipeline([send, *bank()]), Run(features=[Provenance()])
    await pipeline.run(ToolCall("read_file", {"path": "bill.txt"}), run)
    asked = await pipeline.run(ToolCall("send", {"to": ["a"] * 2_001}), run)
    assert isinstance(asked, Suspended)
    assert asked.request.always().scope == "arguments"
    with pytest.raises(ValueError, match="a grant for values has none"):
        asked.request.always(scope="values")


async def test_a_grant_for_the_tool_is_refused_where_it_answers_another_request() -> None:
    asked = await calling(MemoryApprovalStore())
    pipeline = Pipeline(bank())
    other = Grant("pay", scope="tool", principal="ann")
    outcome = await pipeline.run(asked, Run(features=[Provenance()], principal="ann"), grant=other)
    assert isinstance(getattr(outcome, "exception", None), ApprovalError)
