"""What every approval store promises: in memory, in a file, on a Postgres server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator

from tests.approvals.expired import has_expired
from tests.postgres import Postgres
from toolcrib._run_sync import run_sync
from toolcrib.approvals import (
    ApprovalEntry,
    MemoryApprovalStore,
    PostgresApprovalStore,
    SqlApprovalStore,
    SqliteApprovalStore,
    WrappedApprovalStore,
)
from toolcrib.approvals._people import people_of
from toolcrib.calls import ApprovalRequest, Bound, Completed, Denial, Failed, Grant, GrantUse, Suspended, ToolCall, now
from toolcrib.errors import ApprovalError
from toolcrib.pipeline import Pipeline, Run
from toolcrib.testing import FakeClock
from toolcrib.tools import ez_tool

Store = MemoryApprovalStore | SqliteApprovalStore | PostgresApprovalStore
PAST, SOON = timedelta(seconds=-1), timedelta(hours=1)


@pytest.fixture(scope="module")
def on_server(request: pytest.FixtureRequest) -> Iterator[PostgresApprovalStore]:
    server: Postgres = request.getfixturevalue("postgres")
    store = PostgresApprovalStore(server.url("approvals"))
    yield store
    store.close()


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "memory":
        return MemoryApprovalStore()
    if request.param == "sqlite":
        return SqliteApprovalStore(tmp_path / "approvals.db")
    server: Postgres = request.getfixturevalue("postgres")
    store: PostgresApprovalStore = request.getfixturevalue("on_server")
    server.empty("approvals")
    return store


def asked(id: str = "ask_1", **fields: Any) -> ApprovalRequest:
    values: dict[str, Any] = {"call_id": "call_1", "tool": "refund", "arguments": {"cents": 5}, "digest": "d5"}
    return ApprovalRequest(id, **{**values, **fields})


async def test_a_grant_is_used_up_when_its_call_begins(store: Store) -> None:
    request = asked()
    await store.put(request)
    await store.answer(request.grant("ann", message="fine", override_args={"cents": 4}, user_input={"note": "x"}))

    taken = await store.take(request)

    assert isinstance(taken, Grant)
    assert (taken.by, taken.message, taken.override_args, taken.user_input) == (
        "ann",
        "fine",
        {"cents": 4},
        {"note": "x"},
    )
    assert await store.take(request) == taken
    assert await store.begin(request, taken) is None
    assert (await store.show(request.id)).state == "used"


async def test_one_call_begins_by_a_grant(store: Store) -> None:
    await store.put(asked())
    await store.answer(asked().grant("ann"))
    grant = await store.take(asked())
    assert isinstance(grant, Grant)

    began = [await store.begin(asked(), grant) for _ in range(2)]

    assert began[0] is None
    assert began[1] is not None
    assert began[1].execution_state == "running"
    assert await store.take(asked()) == began[1]


async def test_what_a_call_came_to_is_kept(store: Store) -> None:
    grant = asked().grant("ann")
    await store.use(asked(), grant)
    await store.begin(asked(), grant)

    await store.end(asked(), grant, {"value": [1, "a"]})

    entry = await store.take(asked())
    assert isinstance(entry, ApprovalEntry)
    assert entry.execution is not None
    assert (entry.execution_state, entry.execution.result) == ("ended", {"value": [1, "a"]})


async def test_a_call_that_was_broken_off_is_in_doubt_and_begins_again_where_that_is_allowed(store: Store) -> None:
    grant = asked().grant("ann")
    await store.use(asked(), grant)
    await store.begin(asked(), grant)
    await store.break_off(asked(), grant)

    refused = await store.begin(asked(), grant)
    again = await store.begin(asked(), grant, again=True)

    assert refused is not None
    assert refused.execution_state == "in doubt"
    assert again is None


async def test_a_call_is_known_by_each_of_its_requests(store: Store) -> None:
    await store.put(asked("ask_1"))
    await store.answer(asked("ask_1").grant("ann"))
    grant = await store.take(asked("ask_2"))
    assert isinstance(grant, Grant)
    await store.put(asked("ask_2"))

    await store.begin(asked("ask_2"), grant)

    entries = [await store.take(asked(id)) for id in ("ask_1", "ask_2")]
    assert [isinstance(entry, ApprovalEntry) for entry in entries] == [True, True]


async def test_an_answer_about_a_call_in_doubt_ends_its_execution(store: Store) -> None:
    grant = asked().grant("ann")
    await store.use(asked(), grant)
    await store.begin(asked(), grant)
    await store.break_off(asked(), grant)
    question = asked("ask_2", in_doubt=True, follows="ask_1")
    await store.put(question)

    await store.answer(question.deny(message="it must not be done"))
    await store.take(question)

    assert (await store.show("ask_1")).execution_state == "ended"
    assert await store.unended() == ()


async def test_the_execution_that_is_asked_about_ends_in_each_entry_that_has_it(store: Store) -> None:
    """A request without an answer of its own begins by the grant of an earlier one of its call: both have it then."""
    first, second = asked("ask_1"), asked("ask_2", in_doubt=True)
    third, grant = asked("ask_3", in_doubt=True, follows="ask_2"), first.grant("ann")
    for request in (first, second):
        await store.put(request)
    await store.answer(grant)
    await store.begin(second, grant)
    both = [(entry.request.id, entry.execution_state) for entry in await store.unended()]
    await store.break_off(second, grant)

    await store.put(third)
    await store.use(third, third.deny())

    assert both == [("ask_1", "running"), ("ask_2", "running")]
    assert await store.unended() == ()


@pytest.mark.parametrize("is_denied", [False, True])
async def test_an_answer_about_a_call_in_doubt_closes_the_earlier_ones_that_were_not_used(
    store: Store, *, is_denied: bool
) -> None:
    """A process that died between its own note of the beginning and the store's has left its answer behind."""
    first, second = asked("ask_1"), asked("ask_2", in_doubt=True, follows="ask_1")
    third, other = asked("ask_3", in_doubt=True, follows="ask_1"), asked("ask_4", call_id="call_4")
    later = asked("ask_5", in_doubt=True, follows="ask_1")  # of an execution that is not cut off
    for request in (first, second, third, other, later):
        await store.put(request)
        await store.answer(request.deny(by="ann") if is_denied and request is third else request.grant("ann"))

    if is_denied:
        assert isinstance(await store.take(third), Denial)
    else:
        assert await store.begin(third, third.grant("ann")) is None

    assert [entry.request.id for entry in await store.answered()] == ["ask_4", "ask_5"]
    with pytest.raises(ApprovalError):
        await store.begin(first, first.grant("ann"))


async def test_equal_calls_that_are_executed_or_in_doubt_are_found(store: Store) -> None:
    for number, fields in enumerate(({}, {}, {"digest": "d6"}, {"principal": "bob"}, {"tool": "pay"})):
        request = asked(f"ask_{number}", call_id=f"call_{number}", **fields)
        await store.begin(request, None)
    await store.break_off(asked("ask_1", call_id="call_1"), None)

    found = await store.like(asked("ask_9", call_id="call_9"))

    assert [(entry.request.id, entry.execution_state) for entry in found] == [
        ("ask_0", "running"),
        ("ask_1", "in doubt"),
    ]


async def test_a_call_that_asked_before_it_did_anything_has_not_begun(store: Store) -> None:
    await store.begin(asked(), None)

    await store.undo(asked())

    assert await store.take(asked()) is None


async def test_what_is_executed_or_in_doubt_is_not_pruned(store: Store) -> None:
    if not isinstance(store, SqlApprovalStore):
        pytest.skip("nothing is pruned in memory")
    await store.begin(asked("ask_1"), None)
    await store.begin(asked("ask_2"), None)
    await store.end(asked("ask_2"), None)

    removed = await store.prune(datetime.now(UTC) + timedelta(days=1))

    assert removed == 1
    assert [entry.request.id for entry in await store.list()] == ["ask_1"]


async def test_a_time_of_another_zone_is_the_same_time(store: Store) -> None:
    if not isinstance(store, SqlApprovalStore):
        pytest.skip("nothing is pruned in memory")
    await store.begin(asked("ask_1"), None)
    await store.end(asked("ask_1"), None)
    a_day_east = timezone(timedelta(hours=23))

    before = (datetime.now(UTC) - timedelta(hours=1)).astimezone(a_day_east)

    assert await store.prune(before, dry_run=True) == 0
    assert await store.prune(before + timedelta(hours=2), dry_run=True) == 1


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (
            lambda store: store.answer_each("ask_1", str),
            r"answer_each\(\): request_ids is 'ask_1'; write request_ids=\[",
        ),
        (lambda store: store.answer_each(["ask_1"], "yes"), r"answer_each\(\): make is 'yes'; give a function"),
        (lambda store: store.used("ask_1"), r"used\(\): request_ids is 'ask_1'; write request_ids=\['ask_1'\]"),
        (lambda store: store.grant_uses("ask_1"), r"grant_uses\(\): grants is 'ask_1'; give a list of them"),
        (lambda store: store.revoke("pay"), r"revoke\(\): grant is 'pay'; give a grant, as the `standing\(\)`"),
    ],
)
async def test_what_a_store_is_asked_wrongly_is_told_by_its_name(
    store: Store, ask: Callable[[Any], Awaitable[object]], said: str
) -> None:
    with pytest.raises(TypeError, match=said):
        await ask(store)


@pytest.mark.parametrize("wrong", ["2026-01-01", timedelta(days=1), 5])
async def test_what_is_pruned_is_before_a_time(store: Store, wrong: Any) -> None:
    if not isinstance(store, SqlApprovalStore):
        pytest.skip("nothing is pruned in memory")

    with pytest.raises(TypeError, match=r"prune\(\): before is .*; give a datetime, as in datetime.now\(UTC\)"):
        await store.prune(wrong)
    with pytest.raises(TypeError, match=r"prune_sessions\(\): before is .*; give a datetime"):
        await store.prune_sessions(wrong)


async def test_a_denial_is_the_answer_to_its_request_alone(store: Store) -> None:
    request = asked()
    await store.put(request)
    denial = request.deny(message="too much", by="ann")
    await store.answer(denial)

    taken = await store.take(request)

    assert [taken, await store.take(request)] == [denial, denial]
    assert await store.take(asked("ask_2")) is None
    with pytest.raises(ApprovalError, match="it was denied before"):
        await store.begin(request, request.grant())


async def test_nobody_answered_yet(store: Store) -> None:
    request = asked()

    before = await store.take(request)
    await store.put(request)

    assert before is None
    assert await store.take(request) is None
    assert [entry.request for entry in await store.list(pending=True)] == [request]


async def test_putting_a_request_again_changes_nothing(store: Store) -> None:
    request = asked()
    await store.put(request)
    await store.answer(request.grant())
    await store.put(request)

    assert (await store.show(request.id)).state == "answered"
    assert len(await store.list()) == 1


@pytest.mark.parametrize(
    ("change", "is_closed"),
    [
        ({"definition": "v2"}, True),
        ({}, False),
        ({"definition": "v2", "digest": "d6", "arguments": {"cents": 5, "currency": "EUR"}}, True),
        ({"definition": "v2", "digest": "d6", "arguments": {"cents": 6}, "replaces": "ask_1"}, True),
        ({"definition": "v2", "digest": "d6", "arguments": {"cents": 6, "currency": "EUR"}}, False),
        ({"digest": "d6", "replaces": "ask_1"}, False),
        ({"definition": "v2", "tool": "pay", "replaces": "ask_1"}, False),
        ({"definition": "v2", "principal": "bob", "replaces": "ask_1"}, False),
        ({"definition": "v2", "call_id": "call_2"}, False),
        ({"definition": "v2", "digest": "d6"}, False),
        ({"definition": "v2", "principal": "bob"}, False),
        ({"definition": "v2", "tool": "pay"}, False),
    ],
)
async def test_a_request_is_closed_when_its_call_is_asked_about_anew_because_the_tool_has_changed(
    store: Store, change: dict[str, Any], is_closed: bool
) -> None:
    older = asked(definition="v1", principal="ann")
    await store.put(older)

    await store.put(asked("ask_2", **{"definition": "v1", "principal": "ann", **change}))
    await store.put(older)  # as a worker of the version before may

    pending = {entry.request.id for entry in await store.list(pending=True)}
    assert pending == ({"ask_2"} if is_closed else {"ask_1", "ask_2"})
    if is_closed:
        with pytest.raises(ApprovalError, match="`refund` cannot be used: the request ask_1 was answered before"):
            await store.answer(older.grant("ann"))


async def test_an_answer_that_no_call_can_use_any_more_because_the_tool_has_changed_is_closed(store: Store) -> None:
    older = asked(definition="v1")
    await store.put(older)
    await store.answer(older.grant("ann"))

    await store.put(asked("ask_2", definition="v2"))

    entry = await store.show(older.id)
    assert (await store.answered(), entry.state) == ((), "used")
    assert isinstance(entry.answer, Grant)


async def test_an_answer_serves_the_same_call_when_it_is_asked_again(store: Store) -> None:
    await store.put(asked("ask_1"))
    await store.put(asked("ask_2"))
    grant = asked("ask_1").grant()
    await store.answer(grant)

    taken = await store.take(asked("ask_2"))

    assert taken == grant
    assert await store.begin(asked("ask_2"), grant) is None
    assert {entry.state for entry in await store.list()} == {"used"}


async def test_an_answer_serves_a_call_in_the_same_conversation(store: Store) -> None:
    await store.put(asked(run_id="run_1", conversation_id="monday"))
    await store.answer(asked().grant())

    found = [
        await store.take(asked("ask_2", run_id="run_2", conversation_id=name)) for name in ("monday", "friday", None)
    ]

    assert [one is not None for one in found] == [True, False, False]


@pytest.mark.parametrize(
    "other",
    [{"call_id": "call_2"}, {"tool": "pay"}, {"digest": "d6"}, {"principal": "bob"}, {"run_id": "run_2"}],
    ids=lambda fields: next(iter(fields)),
)
async def test_an_answer_serves_no_other_call(store: Store, other: dict[str, Any]) -> None:
    await store.put(asked())
    await store.answer(asked().grant())

    taken = await store.take(asked("ask_2", **other))

    assert taken is None


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (lambda: asked("ask_9").grant(), "there is no request ask_9"),
        (lambda: asked("ask_9").deny(), "there is no request ask_9"),
        (lambda: Grant("refund"), "it names no request"),
        (lambda: asked().grant(digest="old"), r"the arguments changed after it was given; they are now cents=5\. Ask"),
        (lambda: asked().grant(expires_at=datetime.now(UTC) + PAST), "it expired at .*; ask again"),
        (lambda: asked(tool="pay").grant(), "it was given for `pay`"),
        (lambda: asked(call_id="call_2").grant(), "it was given for the call call_2, and this is the call call_1"),
        (lambda: asked().grant(principal="bob"), "on behalf of bob, and this call is on behalf of no principal"),
    ],
)
async def test_an_answer_that_does_not_fit_is_an_error(store: Store, answer: Callable[[], Any], problem: str) -> None:
    await store.put(asked())

    with pytest.raises(ApprovalError, match=problem):
        await store.answer(answer())

    assert (await store.show("ask_1")).state == "pending"


async def test_an_edit_that_does_not_fit_the_tool_is_refused_and_nobodys_yes_is_used(store: Store) -> None:
    ran: list[int] = []

    @ez_tool(requires_approval=True)
    async def refund(cents: int) -> None:
        ran.append(cents)

    pipeline, run = Pipeline([refund]), Run(approvals=store)
    waiting = await pipeline.run(ToolCall("refund", {"cents": 5}), run)
    assert isinstance(waiting, Suspended)

    for wrong in ({"cents": "many"}, {}, {"cents": 1, "cent": 2}):
        grant = waiting.request.grant("ann", override_args=wrong)
        with pytest.raises(ApprovalError, match="the edit does not fit the tool: "):
            await store.answer(grant)
        [refused] = (await store.answer_each([waiting.request.id], lambda entry, g=grant: g)).values()
        assert isinstance(refused, ApprovalError)
    await store.answer(waiting.request.grant("ann", override_args={"cents": 4}))
    await pipeline.run(waiting, run)

    assert ran == [4]


async def test_an_edit_that_only_the_tool_knows_not_to_fit_has_the_person_asked_again(store: Store) -> None:
    ran: list[int] = []

    def even(cents: int) -> int:
        if cents % 2:
            raise ValueError("only even sums")
        return cents

    @ez_tool(requires_approval=True)
    async def refund(cents: Annotated[int, AfterValidator(even)]) -> None:
        ran.append(cents)

    pipeline, run = Pipeline([refund]), Run(approvals=store)
    waiting = await pipeline.run(ToolCall("refund", {"cents": 6}), run)
    assert isinstance(waiting, Suspended)

    await store.answer(waiting.request.grant("ann", override_args={"cents": 5}))
    again = await pipeline.run(waiting, run)
    entry = await store.show(waiting.request.id)

    assert isinstance(again, Suspended)
    assert "the edit of ann does not fit the tool" in again.request.reason
    assert (entry.state, entry.request.reason) == ("pending", again.request.reason)
    await store.answer(waiting.request.grant("ben", override_args={"cents": 4}))
    assert isinstance(await pipeline.run(waiting, run), Completed)
    assert ran == [4]


async def test_a_request_is_answered_once(store: Store) -> None:
    await store.put(asked())
    await store.answer(asked().deny(by="ann"))

    with pytest.raises(ApprovalError, match="the request ask_1 was answered before by ann"):
        await store.answer(asked().grant("ben"))


async def test_a_grant_that_expires_unused_leaves_the_request_to_be_asked_again(store: Store) -> None:
    request = asked()
    await store.put(request)
    await has_expired(lambda until: store.answer(request.grant(expires_at=until)))

    taken = await store.take(request)
    await store.put(request)
    await store.answer(request.grant("ben"))

    assert taken is None
    assert await store.take(request) is not None


async def test_a_grant_for_the_tool_stands(store: Store) -> None:
    await store.put(asked())
    grant = asked().always("ann", expires=SOON)
    await store.answer(grant)

    found = [await store.take(asked(f"ask_{n}", call_id=f"call_{n}", digest=f"d{n}")) for n in (1, 2, 3)]

    assert found == [grant, grant, grant]
    assert await store.take(asked("ask_4", tool="pay")) is None
    assert await store.standing() == (grant,)


async def test_a_grant_for_the_arguments_stands_for_these_arguments(store: Store) -> None:
    grant = asked().always(scope="arguments")
    await store.answer(Grant.from_dict({**grant.to_dict(), "request_id": None}))

    same = await store.take(asked("ask_2", call_id="call_2"))
    other = await store.take(asked("ask_3", call_id="call_3", digest="d6"))

    assert same is not None
    assert other is None


@pytest.mark.parametrize(
    ("given_to", "used_by", "serves"),
    [
        ("bob", "bob", True),
        ("bob", "eve", False),
        ("bob", None, False),
        (None, "eve", False),
        (None, None, True),
        ("*", "eve", True),
        ("*", None, True),
    ],
)
async def test_a_standing_grant_serves_its_principal(
    store: Store, given_to: str | None, used_by: str | None, serves: bool
) -> None:
    await store.answer(Grant("refund", scope="tool", principal=given_to))

    taken = await store.take(asked(principal=used_by))

    assert (taken is not None) == serves


async def test_an_expired_or_revoked_standing_grant_serves_nobody(store: Store) -> None:
    await store.answer(Grant("refund", scope="tool", expires_at=datetime.now(UTC) + PAST))
    lasting = Grant("refund", scope="tool")
    await store.answer(lasting)

    revoked = await store.revoke(lasting)

    assert revoked
    assert not await store.revoke(lasting)
    assert await store.take(asked()) is None


async def test_an_unknown_request_is_told_with_the_store_and_that_it_is_empty(store: Store) -> None:
    place = str(getattr(store, "place", "this process"))

    with pytest.raises(ApprovalError) as empty:
        await store.answer(asked("ask_9").grant("ann"))
    await store.put(asked())
    with pytest.raises(ApprovalError) as used:
        await store.show("ask_9")

    mistaken = "which has none: the call keeps its own in another store"
    assert empty.value.problem == f"there is no request ask_9 in {place}, {mistaken}"
    assert used.value.problem == f"there is no request ask_9 in {place}"


def test_a_new_file_is_told_in_the_log_once_with_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    caplog.set_level("INFO", "toolcrib.database")

    stores = [SqliteApprovalStore("aprovals.db"), SqliteApprovalStore("aprovals.db")]

    assert [store.place for store in stores] == [str(tmp_path / "aprovals.db")] * 2
    assert caplog.messages == [f"made the new database {tmp_path / 'aprovals.db'}"]


async def test_of_several_requests_each_is_answered_or_says_why_it_is_not(store: Store) -> None:
    ids = ["ask_1", "ask_2", "ask_3", "ask_9", "ask_1"]
    for number in (1, 2, 3):
        await store.put(asked(f"ask_{number}", call_id=f"call_{number}", approvals_needed=1 + (number == 3)))
    await store.answer((await store.show("ask_2")).request.deny(by="ben"))

    found = await store.answer_each(ids, lambda entry: entry.request.grant("ann"))

    states = {id: one.state for id, one in found.items() if isinstance(one, ApprovalEntry)}
    problems = {id: one.problem for id, one in found.items() if isinstance(one, ApprovalError)}
    assert states == {"ask_1": "answered", "ask_3": "pending"}
    assert problems["ask_2"] == "the request ask_2 was answered before by ben"
    assert problems["ask_9"].startswith("there is no request ask_9 in ")
    assert [entry.request.id for entry in await store.list(pending=True)] == ["ask_3"]
    assert (await store.show("ask_3")).request.approved_by == ("ann",)


async def test_where_an_answer_cannot_be_made_no_request_is_answered(store: Store) -> None:
    await store.put(asked())
    await store.put(asked("ask_2", call_id="call_2"))

    def make(entry: ApprovalEntry) -> Grant:
        if entry.request.id == "ask_2":
            raise LookupError("no name")
        return entry.request.grant("ann")

    with pytest.raises(LookupError):
        await store.answer_each(["ask_1", "ask_2"], make)

    assert len(await store.list(pending=True)) == 2


async def test_a_call_that_waits_with_a_revoked_grant_is_asked_about_again(store: Store) -> None:
    grant = asked().always("ann")
    await store.put(asked())
    await store.answer(grant)

    await store.revoke(grant)

    assert await store.take(asked()) is None
    assert (await store.show("ask_1")).state == "pending"
    await store.answer(asked().deny(by="ann"))


async def test_a_grant_that_is_revoked_after_a_call_has_found_it_lets_it_not_begin(store: Store) -> None:
    grant = asked().always("ann")
    await store.put(asked())
    await store.answer(grant)
    later = asked("ask_2", call_id="call_2")
    assert await store.take(later) == grant

    await store.revoke(grant)

    with pytest.raises(ApprovalError, match="it was taken back; ask again"):
        await store.begin(later, grant)


async def test_one_request_sends_one_call_on_whatever_grant_stands(store: Store) -> None:
    await store.put(asked())
    await store.answer(Grant("refund", scope="tool"))

    first = await store.take(asked())
    assert isinstance(first, Grant)
    await store.begin(asked(), first)

    assert isinstance(await store.take(asked()), ApprovalEntry)


async def test_an_answer_that_came_with_the_call_is_kept_and_used_up(store: Store) -> None:
    grant = asked().grant("ann")

    await store.use(asked(), grant)
    await store.begin(asked(), grant)

    assert (await store.show("ask_1")).answer == grant
    for again in (asked(), asked("ask_2")):
        assert isinstance(await store.use(again, grant), ApprovalEntry)


async def test_a_grant_without_a_request_is_used_once_too(store: Store) -> None:
    grant = Grant("refund", call_id="call_1", digest="d5")
    await store.use(asked("ask_1"), grant)
    await store.begin(asked("ask_1"), grant)

    assert isinstance(await store.use(asked("ask_2"), grant), ApprovalEntry)


async def test_what_was_answered_and_comes_with_the_call_is_one_answer(store: Store) -> None:
    await store.put(asked())
    grant = asked().grant("ann", override_args={"cents": 4, "to": ["a", "b"]})
    await store.answer(grant)

    await store.use(asked(), grant)

    assert (await store.show("ask_1")).state == "answered"
    assert await store.begin(asked(), grant) is None


async def test_another_answer_than_the_one_kept_is_an_error(store: Store) -> None:
    await store.put(asked())
    await store.answer(asked().deny(by="ann"))

    with pytest.raises(ApprovalError, match="answered before by ann"):
        await store.use(asked(), asked().grant("ben"))


async def test_a_standing_grant_that_came_with_a_call_stands_once(store: Store) -> None:
    grant = asked().always("ann")

    await store.use(asked(), grant)
    await store.use(asked("ask_2", call_id="call_2"), grant)

    assert await store.standing() == (grant,)
    assert await store.take(asked("ask_3", call_id="call_3")) == grant


async def test_of_many_calls_one_begins(store: Store) -> None:
    request = asked()
    await store.put(request)
    await store.answer(request.grant())

    began = await asyncio.gather(*(store.begin(request, request.grant()) for _ in range(12)))

    assert began.count(None) == 1
    assert {entry.execution_state for entry in began if entry is not None} == {"running"}


async def test_waiting_for_an_answer(store: Store) -> None:
    request = asked()
    await store.put(request)
    waiter = asyncio.create_task(store.wait(request.id, timeout=60))
    await asyncio.sleep(0.01)
    await store.answer(request.grant("ann"))

    answer = await waiter

    assert isinstance(answer, Grant)
    assert (await store.show(request.id)).state == "answered"


async def test_what_waits_in_memory_is_woken_by_an_answer_from_another_thread() -> None:
    store, request = MemoryApprovalStore(), asked()  # looks for nothing by itself
    await store.put(request)
    waiter = asyncio.create_task(store.wait(request.id))
    await asyncio.sleep(0.01)
    await asyncio.to_thread(run_sync, store.answer(request.grant("ann")))

    assert await waiter == (await store.show(request.id)).answer


async def test_who_waits_for_the_end_of_a_call_in_memory_is_woken_by_it() -> None:
    store, request = MemoryApprovalStore(), asked()
    await store.put(request)
    await store.answer(request.grant("ann"))
    await store.begin(request, grant := request.grant("ann"))
    waiter = asyncio.create_task(store.wait(request.id))
    await asyncio.sleep(0.01)
    is_done = waiter.done()
    await store.break_off(request, grant)

    assert not is_done
    assert isinstance(await waiter, Grant)


@pytest.fixture
def elsewhere(postgres: Postgres, on_server: PostgresApprovalStore) -> PostgresApprovalStore:
    """A store on a server, by which another process may answer."""
    postgres.empty("approvals")
    return on_server


@pytest.fixture
def here(elsewhere: PostgresApprovalStore) -> Iterator[tuple[PostgresApprovalStore, FakeClock]]:
    """Another store of the same database, and its clock, by which no time passes: it does not look by itself."""
    clock = FakeClock()
    store = PostgresApprovalStore(elsewhere.database, clock=clock)
    yield store, clock
    store.close()


async def waits_for_notifications(clock: FakeClock) -> None:
    while clock.waiting != [2.0]:  # noqa: ASYNC110 -- a clock has no event for it
        await asyncio.sleep(0.001)


async def test_what_waits_on_a_server_is_woken_by_the_answer_of_another_process(
    here: tuple[PostgresApprovalStore, FakeClock], elsewhere: PostgresApprovalStore
) -> None:
    store, clock = here
    for request in (asked(), asked("ask_2", call_id="call_2")):
        await elsewhere.put(request)
    waiter = asyncio.create_task(store.wait("ask_1"))
    await waits_for_notifications(clock)

    await elsewhere.answer(asked("ask_2", call_id="call_2").grant("ben"))
    await elsewhere.answer(asked().grant("ann"))

    assert await waiter == (await elsewhere.show("ask_1")).answer


async def test_what_waits_on_a_server_is_woken_by_the_end_of_a_call_in_another_process(
    here: tuple[PostgresApprovalStore, FakeClock], elsewhere: PostgresApprovalStore
) -> None:
    store, clock = here
    await elsewhere.use(asked(), grant := asked().grant("ann"))
    await elsewhere.begin(asked(), grant)
    waiter = asyncio.create_task(store.wait("ask_1"))
    await waits_for_notifications(clock)

    await elsewhere.end(asked(), grant, {"value": 1})

    assert await waiter == grant


async def test_an_answer_is_announced_when_it_is_written_for_good(
    postgres: Postgres, elsewhere: PostgresApprovalStore
) -> None:
    await elsewhere.put(asked())
    await elsewhere.put(asked("ask_2", call_id="call_2"))

    with postgres.connect("approvals") as hearer:
        hearer.execute("LISTEN toolcrib_answers")
        with pytest.raises(ApprovalError):
            await elsewhere.answer(asked("ask_9").grant("ann"))
        await elsewhere.use(asked("ask_2", call_id="call_2"), grant := asked("ask_2", call_id="call_2").grant("ann"))
        await elsewhere.begin(asked("ask_2", call_id="call_2"), grant)
        await elsewhere.answer(asked().deny())
        heard = [found.payload for found in hearer.notifies(timeout=60, stop_after=2)]

    assert heard == ["ask_2", "ask_1"]


async def test_what_waits_is_woken_by_an_answer_through_a_view_of_its_store(tmp_path: Path) -> None:
    clock = FakeClock()
    store = SqliteApprovalStore(tmp_path / "approvals.db", clock=clock)
    view = store.over(lambda tables: tables)
    await store.put(asked())
    waiter = asyncio.create_task(store.wait("ask_1"))
    while not clock.waiting:  # noqa: ASYNC110 -- a clock has no event for it
        await asyncio.sleep(0.001)

    await view.answer(asked().grant("ann"))

    assert await waiter is not None


async def test_waiting_ends_without_an_answer(store: Store) -> None:
    await store.put(asked())

    assert await store.wait("ask_1", timeout=0.01) is None
    for unknown in (store.wait("ask_9"), store.show("ask_9")):
        with pytest.raises(ApprovalError, match="the approval cannot be used: there is no request ask_9"):
            await unknown


async def test_history_is_kept_in_order(store: Store) -> None:
    for n in (1, 2, 3):
        await store.put(asked(f"ask_{n}", call_id=f"call_{n}", metadata={"why": [n]}, principal="bob"))
    await store.answer(asked("ask_2", call_id="call_2", principal="bob").deny(message="no"))

    everything, pending = await store.list(), await store.list(pending=True)

    assert [(e.request.id, e.state) for e in everything] == [
        ("ask_1", "pending"),
        ("ask_2", "answered"),
        ("ask_3", "pending"),
    ]
    assert [e.request.id for e in pending] == ["ask_1", "ask_3"]
    assert [e.request.id for e in await store.answered()] == ["ask_2"]
    assert everything[2].request.metadata == {"why": [3]}


# --- several approvers


async def test_a_request_that_needs_two_waits_for_the_second(store: Store) -> None:
    request = asked(approvals_needed=2)
    await store.put(request)

    await store.answer(request.grant("Ann (console)"))

    first = await store.show("ask_1")
    assert (first.state, first.request.approved_by) == ("pending", ("Ann (console)",))
    await store.put(request)  # the call asks again meanwhile
    assert [entry.request.id for entry in await store.list(pending=True)] == ["ask_1"]
    assert await store.take(request) is None
    await store.answer(request.grant("ben"))
    taken = await store.take(request)
    assert isinstance(taken, Grant)
    assert (taken.by, taken.also) == ("ben", ("Ann (console)",))


ALIKE = {
    "same": "ann",
    "case": "Ann",
    "way in": "ann (terminal)",
    "full width": "\uff41nn",
    "mathematical": "\U0001d41a\U0001d427\U0001d427",
    "zero width": "a\u200bnn",
    "soft hyphen": "an\u00adn",
    "direction": "\u202eann\u202c",
    "joiner": "a\u034fnn",
    "variation": "ann\ufe0f",
    "tag": "ann\U000e0061",
    "filler": "\u3164ann\u2800",
    "control": "ann\x07",
    "spaces": "\u2003ann\u00a0",
    "Cyrillic": "\u0430nn",
    "Greek": "\u0391nn",
    "Armenian": "an\u0578",
    "way in, full width": "ann\u3000\uff08token\uff09",
}


@pytest.mark.parametrize("again", ALIKE.values(), ids=ALIKE.keys())
async def test_one_person_is_no_two_approvers(store: Store, again: str) -> None:
    request = asked(approvals_needed=2)
    await store.put(request)
    await store.answer(request.grant("ann"))

    with pytest.raises(ApprovalError, match="approved it before; it needs another approver"):
        await store.answer(request.grant(again))

    assert (await store.show("ask_1")).state == "pending"


@pytest.mark.parametrize(
    ("name", "alike"),
    [
        *[("Bob", "\u0412ob"), ("Bob", "\u0392ob"), ("Tom", "\u0422om"), ("Kim", "\u041aim"), ("Hans", "\u041dans")],
        *[
            ("Max", "\u041c\u0430x"),
            ("Nina", "\u039dina"),
            ("Hans", "\u0397ans"),
            ("Yan", "\u03a5an"),
            ("Zoe", "\u0396oe"),
        ],
        *[
            ("O'Neil", "O\u2019Neil"),
            ("Ann-Lee", "Ann\u2010Lee"),
            ("\u03bd\u03b9\u03ba\u03bf\u03c2", "\u039d\u0399\u039a\u039f\u03a3"),
            ("jose\u0301", "Jos\xe9"),
        ],
        *[("ann", ""), ("ann", "\u200b"), ("ann", " ")],
    ],
)
def test_names_that_look_alike_and_names_that_do_not_show_are_no_second_person(name: str, alike: str) -> None:
    assert len(people_of(name, alike)) == 1


@pytest.mark.parametrize(("name", "other"), [("ann", "ben"), ("Ian", "Lan"), ("ann", "anne"), ("Max", "May")])
def test_other_names_are_other_people(name: str, other: str) -> None:
    assert len(people_of(name, other)) == 2


@pytest.mark.parametrize(
    "options", [{"override_args": {"cents": 4}}, {"user_input": 1}, {"scope": "tool"}, {"digest": "d6"}]
)
async def test_what_needs_two_is_approved_as_it_is(store: Store, options: Any) -> None:
    request = asked(approvals_needed=2)
    await store.put(request)

    with pytest.raises(ApprovalError, match=r"as it is|the arguments changed"):
        await store.answer(request.grant("ann", **options))

    assert (await store.show("ask_1")).request.approved_by == ()


async def test_one_no_is_enough(store: Store) -> None:
    request = asked(approvals_needed=2)
    await store.put(request)
    await store.answer(request.grant("ann"))

    await store.answer(request.deny(message="too much", by="ben"))

    answer = await store.take(request)
    assert isinstance(answer, Denial)


async def test_a_call_is_not_executed_with_too_few_approvers() -> None:
    ran: list[int] = []

    @ez_tool(requires_approval=True, approvals_needed=2)
    def refund(cents: int) -> int:
        ran.append(cents)
        return cents

    pipeline, store = Pipeline([refund]), MemoryApprovalStore()
    run = Run(approvals=store)
    suspended = await pipeline.run(ToolCall("refund", {"cents": 5}, "c1"), run)
    assert isinstance(suspended, Suspended)
    assert "it needs 2 approvers" in suspended.request.text()
    alone = await pipeline.run(suspended, run, grant=suspended.request.grant("ann"))
    standing = Grant("refund", "ann", scope="tool")
    by_rule = await pipeline.run(ToolCall("refund", {"cents": 6}, "c2"), Run(approvals=MemoryApprovalStore([standing])))

    assert isinstance(alone, Failed)
    assert "it needs 2 approvers" in alone.message
    assert isinstance(by_rule, Suspended)
    assert ran == []

    again = await pipeline.run(ToolCall("refund", {"cents": 7}, "c3"), run)
    assert isinstance(again, Suspended)
    for name in ("ann", "ben"):
        await store.answer(again.request.grant(name))
    outcome = await pipeline.run(again, run)
    assert (outcome.kind, ran) == ("completed", [7])


def test_a_tool_needs_at_least_one_approver() -> None:
    with pytest.raises(ValueError, match="approvals_needed must be at least 1"):
        ez_tool(approvals_needed=0)(print)


async def test_pending_requests_are_counted(store: Store) -> None:
    for number in range(5):
        await store.put(asked(f"ask_{number}", call_id=f"call_{number}", in_doubt=number % 2 == 1))
    await store.put(
        asked("ask_5", call_id="call_5", arguments={"in_doubt": True, "note": "\0 \ud83d", "x": float("nan")})
    )
    await store.answer(asked("ask_0", call_id="call_0").grant())
    await store.answer(asked("ask_1", call_id="call_1", in_doubt=True).deny())
    denied = asked("ask_2", call_id="call_2")
    await store.answer(denied.deny())
    await store.take(denied)

    counted = await store.count_pending()

    assert counted == (3, 1)
    assert [entry.request.id for entry in await store.list(pending=True)] == ["ask_3", "ask_4", "ask_5"]
    assert [entry.request.id for entry in await store.answered()] == ["ask_0", "ask_1"]


async def test_a_request_whose_grant_expired_is_counted_as_pending(store: Store) -> None:
    request = asked(in_doubt=True)
    await store.put(request)
    await has_expired(lambda until: store.answer(request.grant(expires_at=until)))

    assert await store.count_pending() == (1, 1)


# --- what an attacker tried


async def test_a_call_of_another_run_with_the_same_id_does_not_get_the_result(store: Store) -> None:
    request, other = asked(run_id="run_1"), asked("ask_2", run_id="run_2")
    grant = request.grant("ann")
    await store.use(request, grant)
    await store.begin(request, grant)
    await store.end(request, grant, {"value": "secret"})

    with pytest.raises(ApprovalError, match="ask_1"):
        await store.use(other, grant)
    with pytest.raises(ApprovalError, match="ask_1"):
        await store.begin(other, grant)


async def test_a_grant_that_expires_before_its_call_begins_is_not_used(store: Store) -> None:
    await store.put(asked())
    await store.answer(asked().grant("ann", expires_at=datetime.now(UTC) + SOON))
    grant = await store.take(asked())
    assert isinstance(grant, Grant)

    with pytest.raises(ApprovalError, match="expired"):
        await store.begin(asked(), replace(grant, expires_at=datetime.now(UTC) + PAST))

    assert (await store.show("ask_1")).execution is None


async def test_few_executions_of_equal_calls_are_read_and_each_in_doubt_is_among_them(store: Store) -> None:
    doubtful = asked("ask_doubt", call_id="call_doubt", run_id="run_0")
    await store.begin(doubtful, None)
    await store.break_off(doubtful, None)
    for number in range(25):
        request = asked(f"ask_{number}", call_id=f"call_{number}", run_id=f"run_{number}")
        await store.begin(request, None)
        await store.end(request, None, {"value": number})

    found = await store.like(asked("ask_new", call_id="call_new", run_id="run_new"))

    assert [entry.request.id for entry in found] == ["ask_doubt", *(f"ask_{number}" for number in range(5, 25))]


async def test_what_is_asked_about_a_call_that_did_not_begin_after_all_is_kept(store: Store) -> None:
    await store.begin(asked(), None)
    await store.undo(asked())

    await store.put(asked(reason="the tool asks", metadata={"total": 5}))

    [entry] = await store.list(pending=True)
    assert (entry.request.reason, entry.request.metadata) == ("the tool asks", {"total": 5})


async def test_each_entry_of_a_call_is_renewed(tmp_path: Path) -> None:
    store = SqliteApprovalStore(tmp_path / "approvals.db")
    await store.put(asked("ask_1"))
    await store.answer(asked("ask_1").grant("ann"))
    grant = await store.take(asked("ask_2"))
    assert isinstance(grant, Grant)
    await store.begin(asked("ask_2"), grant)
    before = [entry.execution.seen_at for entry in await store.unended() if entry.execution is not None]

    store._renew(["ask_2"])  # what the heartbeat does every ten seconds

    after = [entry.execution.seen_at for entry in await store.unended() if entry.execution is not None]
    assert len(after) == 2
    assert all(later > earlier for earlier, later in zip(before, after, strict=True))


async def test_a_wrapped_store_claims_work_by_the_store_that_it_wraps(store: Store) -> None:
    one, other = WrappedApprovalStore(store), WrappedApprovalStore(store)

    assert await one.claim("program:1") is None
    assert await other.claim("program:1") is not None
    await one.release("program:1", ended=False)
    assert await other.claim("program:1") is None
    await other.release("program:1", ended=False)


async def test_a_call_that_asks_the_same_again_waits_by_the_request_that_is_there(store: Store) -> None:
    before = asked(conversation_id="c1", run_id="run_1")
    await store.put(before)

    found = await store.take(asked("ask_2", conversation_id="c1", run_id="run_2"))

    assert isinstance(found, ApprovalEntry)
    assert (found.request.id, found.execution) == ("ask_1", None)


@pytest.mark.parametrize(
    "other",
    [
        {"conversation_id": "c2"},
        {"call_id": "call_2"},
        {"digest": "d6"},
        {"definition": "another tool"},
        {"approvals_needed": 2},
        {"in_doubt": True},
    ],
    ids=str,
)
async def test_a_call_that_asks_something_else_has_a_request_of_its_own(store: Store, other: dict[str, Any]) -> None:
    await store.put(asked(conversation_id="c1", run_id="run_1"))

    found = await store.take(asked("ask_2", **{"conversation_id": "c1", "run_id": "run_2", **other}))

    assert found is None


async def test_a_grant_that_counts_its_calls_covers_no_more_of_them(store: Store) -> None:
    first = asked()
    grant = first.always("ann", within={"cents": Bound.between(high=9)}, uses=4, total=("cents", 20))
    await store.put(first)
    await store.answer(grant)
    later = [asked(f"ask_{n}", call_id=f"call_{n}", digest=f"d{n}", arguments={"cents": n}) for n in (8, 7, 6, 2)]

    begun = list[int]()
    for request in (first, *later):
        if await store.take(request) == grant:
            await store.begin(request, grant)
            begun.append(request.arguments["cents"])

    assert begun == [5, 8, 7]  # 6 and 2 would be more than 20 in all
    used = await store.grant_use(grant)
    assert (used.calls, used.spent) == (3, 20)
    with pytest.raises(ApprovalError, match="would come to 22 in all"):
        await store.begin(later[-1], grant)
    assert await store.revoke(grant)


@pytest.mark.parametrize("request_id", ["ask_1", None])
async def test_each_use_of_a_standing_grant_is_counted(store: Store, request_id: str | None) -> None:
    first = asked()
    grant = replace(first.always("ann"), request_id=request_id)
    await store.put(first)
    await store.answer(grant)
    before = await store.grant_use(grant)
    earliest = now()

    for request in (first, asked("ask_2", call_id="call_2")):
        assert await store.take(request) == grant
        await store.begin(request, grant)

    used = await store.grant_use(grant)
    assert (before, used.calls) == (GrantUse(), 2)
    assert used.last_at is not None
    assert earliest <= used.last_at <= now()


async def test_of_calls_that_begin_at_once_a_grant_covers_as_many_as_it_says(store: Store) -> None:
    first = asked()
    grant = first.always("ann", within={"cents": Bound.any()}, uses=3)
    await store.put(first)
    await store.answer(grant)
    requests = [first, *(asked(f"ask_{n}", call_id=f"call_{n}", digest=f"d{n}") for n in range(2, 9))]

    ended = await asyncio.gather(*(store.begin(request, grant) for request in requests), return_exceptions=True)

    assert sum(outcome is None for outcome in ended) == 3
    assert sum(isinstance(outcome, ApprovalError) for outcome in ended) == 5
