"""Tasks: calls that go on after their requests were answered, for clients of both generations."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client
from mcp.client.extension import ClientExtension, NotificationBinding, advertise
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitResult, TaskStatusNotificationParams
from pydantic import BaseModel

from tests.adapters.mcp_server.clients import (
    ALLOW,
    ANY_PLACE,
    APPROVE,
    IN_MEMORY,
    Way,
    answering,
    booking,
    every_generation,
    send,
)
from tests.virtual_time import in_virtual_time
from toolcrib import RunContext
from toolcrib.adapters.mcp_server import McpServer, ServerOptions, TaskOptions, acting_as, build_server
from toolcrib.approvals import MemoryApprovalStore, SqliteApprovalStore
from toolcrib.calls import Denial, Grant
from toolcrib.tools import Tool, ez_tool

_OLD, _NEW = IN_MEMORY
_EXTENSION = "io.modelcontextprotocol/tasks"


def of_tasks(way: Way, server: McpServer, **options: Any) -> Any:
    """Return a client that can have tasks."""
    return way(server, extensions=[advertise(_EXTENSION)], **options)


async def begin(client: Client, way: Way, name: str, arguments: dict[str, Any] | None = None, **task: Any) -> Any:
    """Begin a task."""
    call = {"name": name, "arguments": arguments or {}}
    if way.is_new:
        return await send(client, "tools/call", **call)
    return (await send(client, "tools/call", **call, task=task))["task"]


async def status(client: Client, task: Any) -> Any:
    return await send(client, "tasks/get", taskId=task["taskId"])


async def after_work(client: Client, task: Any) -> Any:
    """Ask for a task until it works no more."""
    while (now := await status(client, task))["status"] == "working":  # noqa: ASYNC110 -- as clients do
        await asyncio.sleep(0.01)
    return now


async def result(client: Client, way: Way, task: Any) -> str:
    """Wait for the result of a task, as each generation does, and return its text."""
    if not way.is_new:
        return (await send(client, "tasks/result", taskId=task["taskId"]))["content"][0]["text"]
    return (await after_work(client, task))["result"]["content"][0]["text"]


class Job:
    """A tool that goes on until it is let."""

    def __init__(self, *tags: str) -> None:
        self.go, self.begun, self.stopped = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.ended = list[str]()
        self.parts: asyncio.Queue[str] = asyncio.Queue()

        @ez_tool(tags=tags or ("task",))
        async def work(part: str = "all") -> str:
            """Work."""
            self.begun.set()
            self.parts.put_nowait(part)
            try:
                await self.go.wait()
            except asyncio.CancelledError:
                self.ended.append("cancelled")
                self.stopped.set()
                raise
            self.ended.append(part)
            return f"did {part}"

        self.tool: Tool[..., Any] = work


async def waiting(client: Client, way: Way) -> Any:
    """Begin a booking, and return how its task stands when it waits for a person."""
    task = await begin(client, way, "book", {"place": "Oslo"})
    while "a person" not in (now := await status(client, task)).get("statusMessage", ""):  # noqa: ASYNC110 -- as clients do
        await asyncio.sleep(0.01)
    return now


async def approve(store: Any) -> None:
    [entry] = await store.list(pending=True)
    await store.answer(entry.request.grant("boss"))


@every_generation
async def test_a_long_call_is_a_task_that_gives_its_result_later(way: Way) -> None:
    job = Job()
    async with of_tasks(way, build_server([job.tool])) as client:
        task = await begin(client, way, "work", {"part": "roof"})
        while_it_works = await status(client, task)
        job.go.set()
        text = await result(client, way, task)
        afterwards = await status(client, task)

    assert (task["status"], while_it_works["status"], afterwards["status"]) == ("working", "working", "completed")
    assert (text, job.ended) == ("did roof", ["roof"])
    assert while_it_works.get("ttlMs", while_it_works.get("ttl")) == 24 * 3600 * 1000


async def test_a_call_of_a_newer_client_is_a_task_when_it_takes_long_only() -> None:
    job = Job("plain")
    server = build_server([job.tool], ServerOptions(tasks=TaskOptions(after=0.05)))
    async with of_tasks(_NEW, server) as client:
        late = await begin(client, _NEW, "work")
        job.go.set()
        at_once = await begin(client, _NEW, "work", {"part": "door"})

    assert (late["resultType"], at_once["resultType"]) == ("task", "complete")
    assert at_once["content"][0]["text"] == "did door"


@every_generation
async def test_a_call_that_waits_for_a_person_is_a_task_that_names_the_place(way: Way) -> None:
    booked, store = list[str](), MemoryApprovalStore()
    options = ServerOptions(approvals=store, answered_in="the console at https://desk")
    async with of_tasks(way, build_server([booking(booked)], options)) as client:
        task = await waiting(client, way)
        asked = booked.copy()
        await approve(store)
        text = await result(client, way, task)

    assert (task["status"], asked) == ("working", [])
    assert "a person has to answer it, in the console at https://desk" in task["statusMessage"]
    assert (text, booked) == ("booked Oslo", ["Oslo"])
    assert task.get("ttlMs", task.get("ttl")) == 7 * 24 * 3600 * 1000  # as long as its call is kept


class WaitedFor(MemoryApprovalStore):
    """A store that says when it is asked to wait for an answer."""

    def __init__(self) -> None:
        super().__init__()
        self.waited = asyncio.Event()

    async def wait(self, request_id: str, timeout: float | None = None) -> Grant | Denial | None:
        self.waited.set()
        return await super().wait(request_id, timeout)


async def test_an_older_client_that_waits_for_a_result_has_the_store_wait_for_the_answer() -> None:
    booked, store, way = list[str](), WaitedFor(), _OLD
    async with of_tasks(way, build_server([booking(booked)], ServerOptions(approvals=store))) as client:
        task = await waiting(client, way)
        waiter = asyncio.create_task(result(client, way, task))
        await store.waited.wait()

        await approve(store)

        assert await waiter == "booked Oslo"


@every_generation
async def test_a_task_that_waits_for_a_person_survives_restarts_and_runs_once(way: Way, tmp_path: Path) -> None:
    booked, store = list[str](), SqliteApprovalStore(tmp_path / "t.db")

    def server() -> McpServer:
        return build_server([booking(booked)], ServerOptions(approvals=store))

    async with of_tasks(way, server()) as client:
        task = await waiting(client, way)
    async with of_tasks(way, server()) as client:
        again = await status(client, task)
        await approve(store)
        first = await result(client, way, task)
    async with of_tasks(way, server()) as client:
        last = await result(client, way, task)

    assert "a person has to answer it" in again["statusMessage"]
    assert (first, last, booked) == ("booked Oslo", "booked Oslo", ["Oslo"])


@every_generation
async def test_a_denied_task_ends_with_what_the_person_said(way: Way) -> None:
    booked, store = list[str](), MemoryApprovalStore()
    async with of_tasks(way, build_server([booking(booked)], ServerOptions(approvals=store))) as client:
        task = await waiting(client, way)
        [entry] = await store.list()
        await store.answer(entry.request.deny(message="not this week", by="boss"))
        text = await result(client, way, task)

    assert "not this week" in text
    assert booked == []


@every_generation
async def test_tasks_of_equal_calls_wait_for_one_answer_and_share_the_result(way: Way) -> None:
    booked, store = list[str](), MemoryApprovalStore()
    async with of_tasks(way, build_server([booking(booked)], ServerOptions(approvals=store))) as client:
        tasks = [await waiting(client, way) for _ in range(5)]
        await approve(store)
        texts = await asyncio.gather(*(result(client, way, task) for task in tasks))

    assert (set(texts), booked) == ({"booked Oslo"}, ["Oslo"])


@every_generation
async def test_the_cancel_of_one_of_two_equal_tasks_leaves_the_other(way: Way) -> None:
    booked, store = list[str](), MemoryApprovalStore()
    async with of_tasks(way, build_server([booking(booked)], ServerOptions(approvals=store))) as client:
        first, second = [await waiting(client, way) for _ in range(2)]
        await send(client, "tasks/cancel", taskId=first["taskId"])
        await approve(store)
        text = await result(client, way, second)

    assert (text, booked) == ("booked Oslo", ["Oslo"])


# --- whose it is


@pytest.mark.parametrize(
    ("way", "method"),
    [(way, f"tasks/{name}") for way in IN_MEMORY for name in ("get", "cancel", "update" if way.is_new else "result")],
)
async def test_the_task_of_another_principal_is_not_found(way: Way, method: str, tmp_path: Path) -> None:
    store = SqliteApprovalStore(tmp_path / "t.db")
    server = build_server([booking([])], ServerOptions(approvals=store))
    with acting_as("ann"):
        async with of_tasks(way, server) as client:
            task = await waiting(client, way)
            with acting_as("eve"):
                async with of_tasks(way, server) as other:
                    with pytest.raises(MCPError, match="no such task") as there:
                        await send(other, method, taskId=task["taskId"], inputResponses={})
    after_restart = build_server([booking([])], ServerOptions(approvals=store))
    with acting_as("eve"):
        async with of_tasks(way, after_restart) as other:
            with pytest.raises(MCPError, match="no such task") as kept:
                await send(other, method, taskId=task["taskId"], inputResponses={})
            with pytest.raises(MCPError) as made_up:
                await send(other, method, taskId="task_0", inputResponses={})
            with pytest.raises(MCPError, match="no such task"):
                await send(other, method, taskId="task_\ud83d", inputResponses={})
    with acting_as("ann"):
        async with of_tasks(way, after_restart) as client:
            still = await status(client, task)

    assert str(there.value) == str(kept.value) == str(made_up.value)  # it does not even say that there is one
    assert still["status"] == "working"


async def test_a_client_lists_the_tasks_of_its_principal_page_by_page() -> None:
    job = Job()
    server = build_server([job.tool])
    with acting_as("eve"):
        async with of_tasks(_OLD, server) as other:
            await begin(other, _OLD, "work")
            with acting_as("ann"):
                async with of_tasks(_OLD, server) as client:
                    made = [(await begin(client, _OLD, "work", {"part": str(n)}))["taskId"] for n in range(101)]
                    first = await send(client, "tasks/list")
                    second = await send(client, "tasks/list", cursor=first["nextCursor"])
                    with pytest.raises(MCPError, match="this cursor is no longer valid"):
                        await send(client, "tasks/list", cursor="task_0")

    assert [task["taskId"] for page in (first, second) for task in page["tasks"]] == made
    assert (len(first["tasks"]), "nextCursor" in second) == (100, False)


# --- the end


@every_generation
async def test_a_cancelled_task_stops_its_call(way: Way) -> None:
    job = Job()
    async with of_tasks(way, build_server([job.tool])) as client:
        task = await begin(client, way, "work")
        await job.begun.wait()
        acknowledged = await send(client, "tasks/cancel", taskId=task["taskId"])
        now, ended = await status(client, task), job.ended.copy()

    assert (now["status"], ended) == ("cancelled", ["cancelled"])
    assert "status" not in acknowledged if way.is_new else acknowledged["status"] == "cancelled"


@every_generation
async def test_a_task_that_is_cancelled_asks_its_approver_no_more(way: Way) -> None:
    booked, store = list[str](), MemoryApprovalStore()
    async with of_tasks(way, build_server([booking(booked)], ServerOptions(approvals=store))) as client:
        task = await waiting(client, way)
        await send(client, "tasks/cancel", taskId=task["taskId"])
        pending, [closed] = await store.list(pending=True), await store.list()
        again = await waiting(client, way)
        await approve(store)
        text = await result(client, way, again)

    assert pending == ()
    assert closed.answer is not None
    assert closed.answer.message == "its client has cancelled the call"
    assert (text, booked) == ("booked Oslo", ["Oslo"])


@every_generation
async def test_an_answer_to_a_cancelled_task_runs_nothing(way: Way, tmp_path: Path) -> None:
    booked, store = list[str](), SqliteApprovalStore(tmp_path / "t.db")
    server = build_server([booking(booked)], ServerOptions(approvals=store))
    async with of_tasks(way, server) as client:
        task = await waiting(client, way)
        await approve(store)
        await send(client, "tasks/cancel", taskId=task["taskId"])
        now = await status(client, task)
    async with of_tasks(way, build_server([booking(booked)], ServerOptions(approvals=store))) as client:
        later = await status(client, task)

    assert (now["status"], later["status"], booked) == ("cancelled", "cancelled", [])


@every_generation
async def test_cancels_at_the_end_of_a_call_agree_with_its_result(way: Way) -> None:
    jobs = [Job() for _ in range(20)]
    seen = list[tuple[str, list[str]]]()
    for job in jobs:
        async with of_tasks(way, build_server([job.tool])) as client:
            task = await begin(client, way, "work")
            await job.begun.wait()
            job.go.set()
            await asyncio.gather(
                *(send(client, "tasks/cancel", taskId=task["taskId"]) for _ in range(3)), return_exceptions=True
            )
            seen.append(((await status(client, task))["status"], job.ended))

    assert {name for name, _ in seen} <= {"completed", "cancelled"}
    assert all(ended == (["all"] if name == "completed" else ["cancelled"]) for name, ended in seen)


async def test_a_cancel_of_a_task_that_has_ended() -> None:
    job = Job()
    job.go.set()
    async with of_tasks(_OLD, build_server([job.tool])) as client:
        task = await begin(client, _OLD, "work")
        await result(client, _OLD, task)
        with pytest.raises(MCPError, match="the task has ended: it is completed"):
            await send(client, "tasks/cancel", taskId=task["taskId"])
    async with of_tasks(_NEW, build_server([job.tool])) as client:
        task = await begin(client, _NEW, "work")
        await result(client, _NEW, task)
        await send(client, "tasks/cancel", taskId=task["taskId"])
        now = await status(client, task)

    assert now["status"] == "completed"


async def test_a_request_that_is_cancelled_before_it_is_a_task_stops_its_call() -> None:
    job = Job("plain")
    server = build_server([job.tool], ServerOptions(tasks=TaskOptions(after=60)))
    async with of_tasks(_NEW, server) as client:
        calling = asyncio.create_task(begin(client, _NEW, "work"))
        await job.begun.wait()
        calling.cancel()
        await asyncio.wait([calling])
        await job.stopped.wait()
        assert server.tasks is not None
        left = len(server.calls)

    assert (job.ended, left) == (["cancelled"], 0)


@every_generation
async def test_a_server_that_stops_cancels_its_calls(way: Way) -> None:
    job = Job()
    async with of_tasks(way, build_server([job.tool])) as client:
        await begin(client, way, "work")
        await job.begun.wait()

    assert job.ended == ["cancelled"]


@every_generation
@in_virtual_time
async def test_a_task_whose_time_is_over_is_forgotten_and_its_call_cancelled(way: Way) -> None:
    job = Job()
    short = TaskOptions(ttl=timedelta(milliseconds=50))
    async with of_tasks(way, build_server([job.tool], ServerOptions(tasks=short))) as client:
        task = await begin(client, way, "work")
        await job.stopped.wait()
        with pytest.raises(MCPError, match="no such task"):
            await status(client, task)

    assert job.ended == ["cancelled"]


@pytest.mark.parametrize(
    ("wanted", "given"), [(10 * 365 * 86_400_000, 604_800_000), (90_000, 90_000), (10**30, 604_800_000), (0, 1)]
)
async def test_the_time_that_a_client_wants_is_kept_to_and_capped(wanted: int, given: int) -> None:
    async with of_tasks(_OLD, build_server([Job().tool])) as client:
        task = await begin(client, _OLD, "work", ttl=wanted)

    assert task["ttl"] == given


@pytest.mark.parametrize("task", [{"ttl": "soon"}, {"ttl": 1.5}, "now", 3])
async def test_a_wish_for_a_task_that_is_not_one_is_refused(task: Any) -> None:
    async with of_tasks(_OLD, build_server([Job().tool])) as client:
        with pytest.raises(MCPError, match="Invalid request parameters"):
            await send(client, "tools/call", name="work", arguments={}, task=task)


# --- how many


@every_generation
async def test_a_principal_has_so_many_tasks_and_others_have_theirs(way: Way) -> None:
    job = Job("task_required")
    server = build_server([job.tool], ServerOptions(tasks=TaskOptions(most=2)))
    with acting_as("ann"):
        async with of_tasks(way, server) as client:
            tasks = [await begin(client, way, "work") for _ in range(2)]
            with pytest.raises(MCPError, match="at most 2 tasks can be kept at a time; cancel some"):
                await begin(client, way, "work")
            with acting_as("eve"):
                async with of_tasks(way, server) as other:
                    theirs = await begin(other, way, "work")
            states = [(await status(client, task))["status"] for task in tasks]

    assert (states, theirs["status"]) == (["working", "working"], "working")


async def test_a_call_that_finds_no_room_as_a_task_is_answered_when_it_ends() -> None:
    job = Job()
    server = build_server([job.tool], ServerOptions(tasks=TaskOptions(most=1)))
    async with of_tasks(_NEW, server) as client:
        await begin(client, _NEW, "work")
        calling = asyncio.create_task(begin(client, _NEW, "work", {"part": "door"}))
        while await job.parts.get() != "door":
            pass
        job.go.set()
        answered = await calling

    assert answered["content"][0]["text"] == "did door"


async def test_a_hundred_thousand_tasks_are_refused_but_for_the_thousand_that_may_be() -> None:
    job = Job()
    server = build_server([job.tool])
    async with of_tasks(_OLD, server) as client:
        call = {"name": "work", "arguments": {}, "task": {}}
        refused = 0
        for _ in range(1_000):
            await send(client, "tools/call", **call)
        assert server.tasks is not None
        context: Any = None
        for _ in range(99_000):
            try:
                await server.tasks.begin(context, context, server.principals.current())
            except MCPError:
                refused += 1
        kept = len(server.calls)

    assert (kept, refused) == (1_000, 99_000)


# --- questions


class Size(BaseModel):
    size: int


@ez_tool(tags=("task",))
async def measure(ctx: RunContext[Any]) -> str:
    """Ask for two sizes at once."""
    answers = await asyncio.gather(*(ctx.elicit(question, Size) for question in ("How tall?", "How wide?")))
    return " x ".join(str(answer.data.size) if answer.data else answer.action for answer in answers)


async def test_a_newer_client_answers_the_questions_of_a_task_one_by_one() -> None:
    async with of_tasks(_NEW, build_server([measure]), elicitation_callback=answering()) as client:
        task = await begin(client, _NEW, "measure")
        asked = (await status(client, task))["inputRequests"]
        tall, wide = asked
        await send(client, "tasks/update", taskId=task["taskId"], inputResponses={tall: _form(3), "ask_0": _form(9)})
        left = await status(client, task)
        with pytest.raises(MCPError, match="is not a result of elicitation/create"):
            await send(client, "tasks/update", taskId=task["taskId"], inputResponses={wide: {"action": "perhaps"}})
        await send(client, "tasks/update", taskId=task["taskId"], inputResponses={wide: {"action": "decline"}})
        text = await result(client, _NEW, task)

    assert [request["params"]["message"] for request in asked.values()] == ["How tall?", "How wide?"]
    assert (left["status"], [*left["inputRequests"]]) == ("input_required", [wide])
    assert (left["statusMessage"], text) == ("it asks you 1 question", "3 x decline")


async def test_a_task_asks_its_client_for_nothing_that_the_host_does_not_let_through() -> None:
    server = build_server([measure], ServerOptions(ask_client=("roots",)))
    async with of_tasks(_NEW, server, elicitation_callback=answering()) as client:
        task = await begin(client, _NEW, "measure")
        text = await result(client, _NEW, task)

    assert "the host does not let them through" in text


def _form(size: int) -> dict[str, Any]:
    return {"action": "accept", "content": {"size": size}}


async def test_an_older_client_is_asked_the_questions_of_a_task_while_it_waits_for_the_result() -> None:
    asked = list[str]()
    answers = [ElicitResult(action="accept", content={"size": size}) for size in (3, 4)]
    callback = answering(*answers, asked=asked)
    async with of_tasks(_OLD, build_server([measure]), elicitation_callback=callback) as client:
        task = await begin(client, _OLD, "measure")
        now = await after_work(client, task)
        before = asked.copy()
        text = await result(client, _OLD, task)

    assert (now["status"], before) == ("input_required", [])
    assert (asked, text) == (["How tall?", "How wide?"], "3 x 4")


@every_generation
async def test_a_task_asks_its_client_for_approval_by_a_form(way: Way) -> None:
    booked = list[str]()
    server = build_server([booking(booked)], ServerOptions(approve_by="elicit"))
    async with of_tasks(way, server, elicitation_callback=answering(APPROVE)) as client:
        task = await begin(client, way, "book", {"place": "Oslo"})
        now = await after_work(client, task)
        asked = booked.copy()
        if way.is_new:
            [key] = now["inputRequests"]
            answer = {key: {"action": "accept", "content": {"decision": "approve"}}}
            await send(client, "tasks/update", taskId=task["taskId"], inputResponses=answer)
        text = await result(client, way, task)

    assert (now["status"], asked) == ("input_required", [])
    assert (text, booked) == ("booked Oslo", ["Oslo"])


@every_generation
async def test_a_task_shows_its_client_the_words_of_a_yes_for_further_calls(way: Way) -> None:
    booked, shown = list[str](), list[str]()
    options = ServerOptions(approve_by="elicit", elicit_always=timedelta(hours=1))
    callback = answering(ANY_PLACE, ALLOW, asked=shown)
    async with of_tasks(way, build_server([booking(booked)], options), elicitation_callback=callback) as client:
        task = await begin(client, way, "book", {"place": "Oslo"})
        for answer in (ANY_PLACE, ALLOW) if way.is_new else ():
            [(key, form)] = (await after_work(client, task))["inputRequests"].items()
            shown.append(form["params"]["message"])
            given = {key: answer.model_dump(by_alias=True, mode="json", exclude_none=True)}
            await send(client, "tasks/update", taskId=task["taskId"], inputResponses=given)
        text = await result(client, way, task)

    assert (text, booked) == ("booked Oslo", ["Oslo"])
    assert [one.partition(";")[0] for one in shown] == ['book needs approval\n  place = "Oslo"', "book: place any"]


async def test_a_call_that_is_no_task_yet_logs_to_its_client() -> None:
    heard = list[Any]()

    async def hear(params: Any) -> None:
        heard.append(params.data)

    @ez_tool
    async def work(ctx: RunContext[Any]) -> str:
        """Work."""
        await ctx.log("error", "out of paper")
        return "done"

    async with of_tasks(_NEW, build_server([work]), logging_callback=hear) as client:
        await client.call_tool("work", {}, meta={"io.modelcontextprotocol/logLevel": "error"})

    assert heard == ["out of paper"]


async def test_a_task_asks_for_no_more_than_its_client_declares_and_says_what_that_would_be() -> None:
    async with of_tasks(_NEW, build_server([measure])) as client:
        task = await begin(client, _NEW, "measure")
        now = await after_work(client, task)

    assert now["status"] == "failed"
    assert now["error"]["data"] == {"requiredCapabilities": {"elicitation": {"form": {}}}}


# --- which calls


async def test_a_client_is_told_which_tools_are_called_as_tasks() -> None:
    @ez_tool(tags=("task_forbidden",))
    async def quick() -> str:
        return "done"

    async with _OLD(build_server([Job().tool, quick])) as client:
        listed = {tool.name: tool.execution for tool in (await client.list_tools()).tools}
        told = client.server_capabilities

    assert {name: execution and execution.task_support for name, execution in listed.items()} == {
        "work": "optional",
        "quick": "forbidden",
    }
    assert told.tasks is not None
    assert told.tasks.requests is not None


async def test_calls_that_do_not_fit_a_tool_are_refused() -> None:
    @ez_tool(tags=("task_forbidden",))
    async def quick() -> str:
        return "done"

    server = build_server([Job("task_required").tool, quick])
    async with of_tasks(_OLD, server) as client:
        with pytest.raises(MCPError, match="`work` is called as a task: give the call `task`"):
            await client.call_tool("work", {})
        with pytest.raises(MCPError, match="`quick` is not called as a task: leave `task` out"):
            await begin(client, _OLD, "quick")
        unknown = await begin(client, _OLD, "nothing")
        with pytest.raises(MCPError, match="nothing"):
            await result(client, _OLD, unknown)
    async with _NEW(server) as client:
        with pytest.raises(MCPError, match="needs a client that declares the extension") as refused:
            await client.call_tool("work", {})
    async with of_tasks(_NEW, server) as client:
        at_once = await begin(client, _NEW, "quick")

    assert refused.value.data == {"requiredCapabilities": {"extensions": {_EXTENSION: {}}}}
    assert at_once["content"][0]["text"] == "done"


async def test_a_newer_client_that_declares_no_tasks_has_none() -> None:
    job = Job()
    job.go.set()
    async with _NEW(build_server([job.tool])) as client:
        plain = await client.call_tool("work", {})
        with pytest.raises(MCPError, match="declares the extension"):
            await send(client, "tasks/get", taskId="task_0")

    assert plain.content[0].text == "did all"  # type: ignore[union-attr]


@every_generation
async def test_a_server_without_tasks_has_no_trace_of_them(way: Way) -> None:
    job = Job()
    job.go.set()
    async with of_tasks(way, build_server([job.tool], ServerOptions(tasks=None))) as client:
        plain = await send(client, "tools/call", name="work", arguments={}, task={})
        with pytest.raises(MCPError, match="Method not found"):
            await send(client, "tasks/get", taskId="task_0")
        told = client.server_capabilities

    assert plain["content"][0]["text"] == "did all"
    assert (told.tasks, told.extensions or {}) == (None, {})


async def test_an_error_of_the_tool_is_a_result_for_newer_clients_and_a_failure_for_older_ones() -> None:
    @ez_tool(tags=("task",))
    async def fail() -> str:
        raise ValueError("out of paper")

    async with of_tasks(_OLD, build_server([fail])) as client:
        task = await begin(client, _OLD, "fail")
        old_text = await result(client, _OLD, task)
        old = await status(client, task)
    async with of_tasks(_NEW, build_server([fail])) as client:
        task = await begin(client, _NEW, "fail")
        new_text = await result(client, _NEW, task)
        new = await status(client, task)

    assert (old["status"], new["status"]) == ("failed", "completed")
    assert "out of paper" in old_text
    assert new_text == old_text


async def test_an_older_client_is_notified_of_the_status_of_its_task() -> None:
    job, told, arrived = Job(), list[Any](), asyncio.Event()

    async def note(params: TaskStatusNotificationParams) -> None:
        told.append(params)
        arrived.set()

    class Watching(ClientExtension):
        identifier = "example.org/watching"

        def notifications(self) -> Any:
            kind = TaskStatusNotificationParams
            return [NotificationBinding(method="notifications/tasks/status", params_type=kind, handler=note)]

    async with _OLD(build_server([job.tool]), extensions=[Watching()]) as client:
        task = await begin(client, _OLD, "work")
        job.go.set()
        await arrived.wait()

    assert [(params.task_id, params.status) for params in told] == [(task["taskId"], "completed")]
