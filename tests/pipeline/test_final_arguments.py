"""From the gates to the function: arguments stay what was seen, and the function is called once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from toolcrib.approvals import approve_all
from toolcrib.calls import Completed, Failed, Outcome, Reject, RunNormally, ToolCall
from toolcrib.errors import ApprovalRequired, CallStateError
from toolcrib.hooks import HookSet
from toolcrib.pipeline import Call, Executor, Pipeline, Run, is_call
from toolcrib.schema import RunContext
from toolcrib.testing import RecordingSink
from toolcrib.tools import Tool, ez_tool
from toolcrib.toolsets import Toolset

CALL = ToolCall("read", {"path": "a", "tags": ["x"]})


class Reads:
    """A tool that notes what it was called with, in toolsets with a guard, an approval or neither."""

    def __init__(self, **options: Any) -> None:
        self.ran: list[Any] = []

        @ez_tool(**options)
        async def read(path: str, tags: list[str]) -> str:
            self.ran.append((path, tags))
            return path

        self.tool: Tool[..., Any] = read

    def tools(self, kind: type[Toolset] = Toolset, *, guarded: bool = False) -> Toolset:
        hooks = HookSet()

        @hooks.on("read")
        async def guard(call: Any, given: Any) -> Any:
            return Reject("no") if given.path.startswith("/") or "root" in given.tags else RunNormally(given)

        return kind([self.tool], hooks=hooks if guarded else None)


def runner(around: Callable[..., Any]) -> type[Toolset]:
    """A toolset whose execution is this function of the arguments and of what goes on with them."""

    class Around(Toolset):
        async def _call_tool_func(self, args: dict[str, Any], ctx: RunContext[Any], tool: Any) -> Any:
            return await around(args, lambda given: tool.call_func(given, ctx))

    return Around


class Around:
    """An executor that is this function of the call and of what executes it."""

    def __init__(self, around: Callable[..., Any]) -> None:
        self._around = around

    async def execute(self, call: Call, run: Callable[[], Any]) -> Any:
        return await self._around(call, run)


async def replaces(args: dict[str, Any], go_on: Any) -> Any:
    return await go_on({**args, "path": "/etc/shadow"})


async def edits(args: dict[str, Any], go_on: Any) -> Any:
    args["path"] = "/etc/shadow"
    return await go_on(args)


async def edits_inside(args: dict[str, Any], go_on: Any) -> Any:
    args["tags"].append("root")
    return await go_on(args)


# --- arguments


@pytest.mark.parametrize("around", [replaces, edits, edits_inside])
@pytest.mark.parametrize("gate", ["guard", "approval", "policy"])
async def test_what_stands_around_an_execution_edits_nothing_behind_a_gate(around: Any, gate: str) -> None:
    policy = {"approval": True, "policy": lambda args, ctx: "root" in args["tags"], "guard": False}[gate]
    reads = Reads(requires_approval=policy)

    tools = reads.tools(runner(around), guarded=gate == "guard")
    outcome = await Pipeline(tools).run(CALL, Run(approver=approve_all))

    assert isinstance(outcome, Failed)
    assert "changed after" in outcome.message
    assert reads.ran == []


@pytest.mark.parametrize("around", [replaces, edits, edits_inside])
async def test_an_edit_is_validated_and_recorded_where_there_is_no_gate(around: Any) -> None:
    reads, sink = Reads(), RecordingSink()

    outcome = await Pipeline(reads.tools(runner(around)), sinks=[sink]).run(CALL)

    assert isinstance(outcome, Completed)
    [(path, tags)] = reads.ran
    assert (path, tags) == (("a", ["x", "root"]) if around is edits_inside else ("/etc/shadow", ["x"]))
    assert sink.records[0].arguments == {"path": path, "tags": tags}


async def test_an_edit_that_does_not_fit_runs_nothing() -> None:
    async def breaks(args: dict[str, Any], go_on: Any) -> Any:
        return await go_on({**args, "path": 5, "evil": 1})

    reads = Reads()

    outcome = await Pipeline(reads.tools(runner(breaks))).run(CALL)

    assert isinstance(outcome, Failed)
    assert "path: must be a string; got 5; evil: unknown argument" in outcome.message
    assert reads.ran == []


async def test_arguments_of_a_call_cannot_be_set() -> None:
    call = await Pipeline([Reads().tool]).admit(CALL)

    assert is_call(call)
    with pytest.raises(TypeError):
        call.arguments["path"] = "/etc/shadow"  # type: ignore[index]


async def test_an_executor_is_shown_a_copy_of_the_arguments() -> None:
    async def around(call: Call, run: Any) -> Any:
        call.arguments["tags"].append("root")
        return await run()

    reads = Reads()

    await Pipeline([reads.tool], executor=Around(around)).run(CALL)

    assert reads.ran == [("a", ["x"])]


async def test_what_a_tool_does_to_its_arguments_is_not_there_when_it_is_called_again() -> None:
    ran: list[Any] = []

    @ez_tool(idempotent=True)
    async def read(tags: list[str]) -> None:
        tags.append("root")
        ran.append(tags)

    await Pipeline([read], executor=Around(lambda call, run: twice(run))).run(ToolCall("read", {"tags": ["x"]}))

    assert ran == [["x", "root"], ["x", "root"]]


async def test_an_object_of_the_host_that_changes_behind_a_guard_does_not_run() -> None:
    ran: list[Any] = []
    given, hooks = ["x"], HookSet()

    @ez_tool
    async def read(tags: Any) -> None:
        ran.append(tags)

    @hooks.on("read")
    async def look(call: Any, given: Any) -> RunNormally:
        return RunNormally(given)

    pipeline = Pipeline(Toolset([read], hooks=hooks))
    call = await pipeline.admit(ToolCall("read", {"tags": given}, origin="host"))
    given.append("root")
    assert is_call(call)
    await pipeline.execute(call)
    outcome = await pipeline.finish(call)

    assert isinstance(outcome, Failed)
    assert "tags: it was changed after hooks and policies saw it" in outcome.message
    assert ran == []


async def test_hooks_that_are_given_with_the_call_are_a_gate() -> None:
    reads, hooks = Reads(), HookSet()

    @hooks.on("read")
    async def look(call: Any, given: Any) -> RunNormally:
        return RunNormally(given)

    pipeline = Pipeline(reads.tools(runner(edits_inside)))
    call = await pipeline.admit(CALL, hooks=hooks)
    assert is_call(call)
    await pipeline.execute(call)

    assert reads.ran == []


@pytest.mark.parametrize("origin", ["model", "host"])
async def test_what_hooks_and_policies_keep_is_a_copy(origin: Any) -> None:
    kept: list[Any] = []

    def policy(args: dict[str, Any], ctx: Any) -> bool:
        kept.append(args["tags"])
        return True

    def pre(ctx: Any, args: dict[str, Any], metadata: Any) -> dict[str, Any]:
        kept.append(args["tags"])
        return args

    async def approve(request: Any) -> Any:
        for tags in kept:
            tags.append("root")
        return request.grant("ann")

    reads, hooks = Reads(requires_approval=policy), HookSet()

    @hooks.on("read")
    async def decide(call: Any, given: Any) -> RunNormally:
        kept.append(given.tags)
        return RunNormally(given)

    tools = Toolset([reads.tool], hooks=hooks, pre_hooks={"read": pre})
    outcome = await Pipeline(tools).run(ToolCall("read", dict(CALL.arguments), origin=origin), Run(approver=approve))

    assert isinstance(outcome, Completed)
    assert (len(kept), reads.ran) == (3, [("a", ["x"])])


# --- once


async def twice(run: Callable[[], Any]) -> Any:
    first = await run()
    return first, await run()


def counting(ran: list[int], **options: Any) -> Tool[..., Any]:
    @ez_tool(**options)
    async def count(path: str, tags: list[str]) -> int:
        ran.append(1)
        return len(ran)

    return count


async def counted(ran: list[int], way: str, **options: Any) -> Outcome:
    """Have a call executed twice, by an executor or by an overridden execution."""
    tools, executor = [counting(ran, **options)], None
    if way == "executor":
        executor: Executor | None = Around(lambda call, run: twice(run))
        return await Pipeline(tools, executor=executor).run(ToolCall("count", CALL.arguments))
    around = runner(lambda args, go_on: twice(lambda: go_on(args)))
    return await Pipeline(around(tools)).run(ToolCall("count", CALL.arguments))


@pytest.mark.parametrize("way", ["executor", "runner"])
async def test_a_function_is_called_once(way: str) -> None:
    ran: list[int] = []

    outcome = await counted(ran, way)

    assert isinstance(outcome, Failed)
    assert (outcome.code, ran) == ("call_state", [1])


@pytest.mark.parametrize("way", ["executor", "runner"])
async def test_one_that_is_idempotent_may_be_called_again(way: str) -> None:
    ran: list[int] = []

    outcome = await counted(ran, way, idempotent=True)

    assert isinstance(outcome, Completed)
    assert outcome.value == (1, 2)


async def test_one_that_has_yielded_a_value_is_not_called_again() -> None:
    ran: list[int] = []

    @ez_tool(idempotent=True)
    async def rows() -> AsyncIterator[int]:
        ran.append(1)
        yield 1
        raise OSError

    async def retry(call: Call, run: Any) -> Any:
        try:
            return await run()
        except OSError:
            return await run()

    outcome = await Pipeline([rows], executor=Around(retry)).run(ToolCall("rows"))

    assert isinstance(outcome, Failed)
    assert (outcome.code, ran) == ("call_state", [1])


async def test_no_function_is_called_when_its_call_is_over() -> None:
    ran: list[int] = []
    kept: list[Any] = []

    async def later(call: Call, run: Any) -> Any:
        kept.append(run)
        return "nothing"

    outcome = await Pipeline([counting(ran)], executor=Around(later)).run(ToolCall("count", CALL.arguments))
    with pytest.raises(CallStateError):
        await kept[0]()

    assert isinstance(outcome, Completed)
    assert ran == []


async def test_two_executions_at_a_time_call_it_once() -> None:
    ran: list[int] = []

    async def race(call: Call, run: Any) -> Any:
        made = await asyncio.gather(run(), run(), return_exceptions=True)
        return sorted(type(one).__name__ for one in made)

    outcome = await Pipeline([counting(ran)], executor=Around(race)).run(ToolCall("count", CALL.arguments))

    assert isinstance(outcome, Completed)
    assert (outcome.value, ran) == (["CallStateError", "int"], [1])


async def test_one_that_asks_first_is_called_again_when_it_was_approved() -> None:
    asked: list[bool] = []

    @ez_tool
    async def pay(ctx: RunContext[Any]) -> str:
        asked.append(ctx.approved)
        if not ctx.approved:
            raise ApprovalRequired
        return "paid"

    async def around(call: Call, run: Any) -> Any:
        return await run()

    outcome = await Pipeline([pay], executor=Around(around)).run(ToolCall("pay"), Run(approver=approve_all))

    assert isinstance(outcome, Completed)
    assert asked == [False, True]


# --- observers


async def test_observers_change_neither_arguments_nor_results() -> None:
    @ez_tool(requires_approval=True)
    async def read(path: str, tags: list[str]) -> dict[str, list[str]]:
        return {path: tags}

    @read.before_invoke
    async def before(path: str, tags: list[str]) -> None:
        tags.append("root")

    @read.after_invoke
    async def after(value: dict[str, list[str]]) -> None:
        value["a"].append("root")

    outcome = await Pipeline([read]).run(CALL, Run(approver=approve_all))

    assert isinstance(outcome, Completed)
    assert outcome.value == {"a": ["x"]}


async def test_observers_of_a_stream_change_no_value() -> None:
    @ez_tool
    async def rows(tags: list[str]) -> AsyncIterator[list[str]]:
        yield tags

    @rows.before_invoke
    async def before(tags: list[str]) -> None:
        tags.append("before")

    @rows.on_yield
    async def each(value: list[str]) -> None:
        value.append("yielded")

    outcome = await Pipeline([rows]).run(ToolCall("rows", {"tags": ["x"]}))

    assert isinstance(outcome, Completed)
    assert outcome.value == [["x"]]
