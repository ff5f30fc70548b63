"""A session in a store goes on in any process, one at a time, from the last step that was saved whole."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.postgres import Postgres
from tests.rounds.replies import adding
from toolcrib.approvals import (
    KeepsSessions,
    MemoryApprovalStore,
    PostgresApprovalStore,
    SavedSession,
    SqlApprovalStore,
    SqliteApprovalStore,
)
from toolcrib.calls import ToolCall, now
from toolcrib.errors import RoundError
from toolcrib.pipeline import Channel, Run
from toolcrib.rounds import ChatRequest, Finished, NeedsTools, Session, ToolRoundPlan
from toolcrib.testing import ScriptedModel, Step


@pytest.fixture(scope="module")
def on_server(request: pytest.FixtureRequest) -> Iterator[PostgresApprovalStore]:
    server: Postgres = request.getfixturevalue("postgres")
    store = PostgresApprovalStore(server.url("sessions"))
    yield store
    store.close()


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> KeepsSessions:
    if request.param == "memory":
        return MemoryApprovalStore()
    if request.param == "sqlite":
        return SqliteApprovalStore(tmp_path / "app.db")
    server: Postgres = request.getfixturevalue("postgres")
    store: PostgresApprovalStore = request.getfixturevalue("on_server")
    server.empty("sessions")
    return store


def reply(request: ChatRequest) -> Step:
    """Return a call of `add` until the transcript has a result."""
    roles = [message["role"] for message in request.messages]
    return "It is 2." if roles[-1] == "tool" else ToolCall("add", {"a": 1})


def come(store: Any, ran: list[Any], *, steps: Any = (reply,), asks: bool = True, **options: Any) -> Session:
    """Return the session as a process makes it that starts."""
    tools = [adding(ran, requires_approval=asks)]
    return Session(ScriptedModel(*[*steps] * 3), tools=tools, store=store, id="ann 1", **options)


async def answer(store: Any) -> None:
    (entry,) = await store.list(pending=True)
    await store.answer(entry.request.grant("ada"))


@pytest.mark.parametrize(
    ("run", "conversation"), [(None, "ann 1"), (Run(channel=Channel(conversation_id="trip")), "trip")]
)
async def test_a_session_in_a_store_is_a_conversation(store: Any, run: Run | None, conversation: str) -> None:
    await come(store, [], run=run).say("Add.").run()

    (entry,) = await store.list(pending=True)
    assert entry.request.conversation_id == conversation


async def test_a_session_that_is_not_in_its_store_says_where_it_was_looked_for(store: Any) -> None:
    place = store.place if isinstance(store, SqlApprovalStore) else "<MemoryApprovalStore"

    with pytest.raises(RoundError, match=f"; no session is kept as 'ann 1' in {re.escape(place)}"):
        await come(store, []).run()


async def test_the_same_lines_go_on_once_a_person_has_answered(store: Any) -> None:
    ran: list[Any] = []
    first = await come(store, ran).say("Add.").run()
    still = await come(store, ran).say("Add.").run()
    await answer(store)

    last = await come(store, ran).say("Add.").run()

    assert isinstance(first, ToolRoundPlan)
    assert isinstance(still, ToolRoundPlan)
    assert still.suspended[0].request == first.suspended[0].request
    assert isinstance(last, Finished)
    assert (last.result, ran) == ("It is 2.", [(1, 1)])


async def test_a_run_with_nothing_said_goes_on_too(store: Any) -> None:
    ran: list[Any] = []
    await come(store, ran).say("Add.").run()
    await answer(store)

    result = await come(store, ran).run()

    assert isinstance(result, Finished)
    assert ran == [(1, 1)]


async def test_what_is_said_after_an_answer_is_a_new_question(store: Any) -> None:
    await come(store, [], steps=["Hello."]).say("Hi.").run()

    session = await come(store, [], steps=["Hello again."]).load()
    await session.say("Hi.").run()

    assert [message["content"] for message in session.transcript] == ["Hi.", "Hello.", "Hi.", "Hello again."]


async def test_what_is_said_again_after_the_session_was_loaded_is_heard_once(store: Any) -> None:
    await come(store, []).say("Add.").say("Please.").run()
    session = await come(store, []).load()

    await session.say("Add.").say("Please.").run()

    assert [message["content"] for message in session.transcript] == ["Add.", "Please."]
    with pytest.raises(RoundError, match="a person has to answer first: add needs approval"):
        session.say("Add.")


async def test_odd_text_comes_back_as_it_was_said(store: Any) -> None:
    await come(store, [], steps=["Né\0."]).say("Hi \udfff\0.").run()

    session = await come(store, []).load()

    assert [message["content"] for message in session.transcript] == ["Hi \udfff\0.", "Né\0."]


async def test_other_words_are_refused_while_a_call_waits(store: Any) -> None:
    await come(store, []).say("Add.").run()

    with pytest.raises(RoundError, match="a person has to answer first: add needs approval"):
        await come(store, []).say("And something else.").run()

    assert (await come(store, []).load()).open_round is not None


async def test_a_session_is_worked_on_by_one_at_a_time(store: Any) -> None:
    refused: list[str] = []

    async def meanwhile(request: ChatRequest) -> str:
        with pytest.raises(RoundError) as caught:
            await come(store, [], steps=["No."]).say("Hi.").run()
        refused.append(str(caught.value))
        return "Hello."

    class Model:
        async def reply(self, request: ChatRequest) -> Any:
            await meanwhile(request)
            return await ScriptedModel("Hello.").reply(request)

    session = Session(Model(), store=store, id="ann 1")

    await session.say("Hi.").run()

    assert "is worked on since" in refused[0]
    assert [message["content"] for message in session.transcript] == ["Hi.", "Hello."]


async def test_a_copy_that_another_process_went_past_is_refused(store: Any) -> None:
    outdated = await come(store, []).say("Add.").load()
    await outdated.save()
    await come(store, [], steps=["Two."]).run()

    with pytest.raises(RoundError, match="went on with the session"):
        await outdated.run()
    with pytest.raises(RoundError, match="went on with the session"):
        await outdated.say("More.").save()


async def test_a_call_whose_end_was_not_saved_has_its_result_from_the_store(store: Any) -> None:
    ran: list[Any] = []
    await come(store, ran).say("Add.").run()
    await answer(store)
    session = await come(store, ran).load()
    assert session.open_round is not None
    await session.open_round.run(session)  # this process ends before its host saves

    result = await come(store, ran).run()

    assert isinstance(result, Finished)
    assert (result.result, ran) == ("It is 2.", [(1, 1)])


async def test_a_loop_of_the_hosts_own_saves_what_it_commits(store: Any) -> None:
    session = await come(store, [], asks=False).say("Add.").load()
    step = await session.step()
    assert isinstance(step, NeedsTools)
    await step.round.run(session)
    await session.save()

    other = await come(store, [], asks=False).load()

    assert (other.open_round, other.transcript[-1]["content"]) == (None, "2")


async def test_a_deleted_session_begins_anew_and_does_not_come_back(store: Any) -> None:
    session = come(store, [], steps=["Hello."])
    await session.say("Hi.").run()
    outdated = await come(store, []).load()

    assert await session.delete()

    assert len((await come(store, []).load()).transcript) == 0
    with pytest.raises(RoundError, match="deleted it"):
        await outdated.run()


async def test_a_session_without_its_tools_stays_in_the_store(store: Any) -> None:
    await come(store, []).say("Add.").run()
    bare = Session(ScriptedModel("Hello."), store=store, id="ann 1")

    for _ in range(2):
        with pytest.raises(ValueError, match="give `tools=`"):
            await bare.run()
    await bare.save()  # it has nothing of what is there

    assert (await come(store, []).load()).open_round is not None


async def test_of_two_that_save_the_same_number_one_does(store: Any) -> None:
    saved = [await store.save_session(SavedSession("s", 1, state)) for state in ("one", "two")]

    found = await store.load_session("s")

    assert (saved, found.state, found.number) == ([True, False], "one", 1)
    assert not await store.save_session(SavedSession("s", 3, "three"))
    assert not await store.save_session(SavedSession("other", 2, "two"))


async def test_old_sessions_are_pruned_but_for_those_that_wait(store: Any) -> None:
    if not isinstance(store, SqlApprovalStore):
        pytest.skip("one in memory ends with its process")
    old = now() - timedelta(days=40)
    await store.save_session(SavedSession("ended", 1, "{}", saved_at=old))
    await store.save_session(SavedSession("waits", 1, "{}", is_open=True, saved_at=old))
    await store.save_session(SavedSession("new", 1, "{}"))
    limit = now() - timedelta(days=30)

    counted = [await store.prune_sessions(limit, dry_run=True), await store.prune_sessions(limit)]

    assert counted == [1, 1]
    assert [id for id in ("ended", "waits", "new") if await store.load_session(id)] == ["waits", "new"]


async def test_a_path_is_a_sqlite_store_of_all_that_is_kept(tmp_path: Path) -> None:
    path, ran = tmp_path / "app.db", list[Any]()
    await come(str(path), ran, run=Run(principal="ann")).say("Add.").run()
    await answer(SqliteApprovalStore(path))

    result = await come(path, ran, run=Run(principal="ann")).run()

    assert isinstance(result, Finished)
    assert ran == [(1, 1)]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"store": MemoryApprovalStore()}, "an `id=` that no other session has"),
        ({"id": "ann 1"}, "an `id=` that no other session has"),
        ({"id": "ann\0", "store": MemoryApprovalStore()}, "is printable text"),
        ({"id": "\ud800", "store": MemoryApprovalStore()}, "is printable text"),
        ({"id": "ann 1", "store": "postgresql://host/db"}, r"store=PostgresApprovalStore\(url\)"),
        ({"id": "1", "store": MemoryApprovalStore(), "run": Run(approvals=MemoryApprovalStore())}, "store of its own"),
    ],
)
def test_a_place_that_cannot_be_is_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Session(ScriptedModel(), **options)


def test_a_store_that_keeps_no_sessions_is_refused() -> None:
    with pytest.raises(TypeError, match="object keeps no sessions"):
        Session(ScriptedModel(), store=object(), id="ann 1")  # pyright: ignore[reportArgumentType] -- it is none
