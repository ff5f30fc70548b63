"""What ends a process, raised by code that a call runs: the call fails, and its host goes on."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, NoReturn

import pytest
from pydantic import AfterValidator

from tests.pipeline.calling import raising
from toolcrib.approvals import MemoryApprovalStore
from toolcrib.calls import CallEvent, Consent, Failed, ToolCall
from toolcrib.errors import ExitError, exception_of, register_signal
from toolcrib.hooks import GlobalHooks, HookSet
from toolcrib.pipeline import Channel, Pipeline, Run
from toolcrib.schema import RunContext
from toolcrib.tools import BaseTool, Tool, ez_tool
from toolcrib.toolsets import Toolset


async def leave(*args: Any) -> NoReturn:
    sys.exit(2)


@ez_tool
async def greet(name: str = "ann") -> str:
    return f"hello {name}"


@ez_tool(requires_approval=True)
async def pay(cents: int = 5) -> str:
    return f"paid {cents}"


class Locked(BaseTool):
    """A tool with conditions of its own."""

    name = "greet"

    async def call(self, ctx: RunContext[Any]) -> str:
        return "hello"


class Unknown(Locked):
    def is_available(self, ctx: RunContext[Any]) -> NoReturn:
        sys.exit(2)


class Unconsented(Locked):
    def get_consent(self, ctx: RunContext[Any]) -> Consent | None:
        sys.exit(2)


class NoStore(MemoryApprovalStore):
    async def put(self, request: Any) -> None:
        sys.exit(2)


class NoSink:
    def emit(self, event: CallEvent) -> None:
        sys.exit(2)


class NoExecutor:
    async def execute(self, call: Any, run: Callable[[], Awaitable[Any]]) -> Any:
        sys.exit(2)


class TaskExecutor:
    async def execute(self, call: Any, run: Callable[[], Awaitable[Any]]) -> Any:
        return await asyncio.ensure_future(run())


class Around(Toolset):
    async def _call_tool_func(self, arguments: Mapping[str, Any], ctx: RunContext[Any], tool: Any) -> Any:
        sys.exit(2)


def decided() -> HookSet:
    hooks = HookSet()
    hooks.on("greet")(leave)
    return hooks


def observed() -> Tool[..., Any]:
    watched = ez_tool(greet.fn)  # type: ignore[arg-type] -- it has a function
    watched.before_invoke(raising(SystemExit(2)))
    return watched


@pytest.mark.parametrize(
    ("tools", "run"),
    [
        (Toolset([greet], hooks=decided()), Run()),
        (Toolset([greet], global_hooks=GlobalHooks(pre=leave)), Run()),
        (Toolset([greet], global_hooks=GlobalHooks(post=leave)), Run()),
        (Toolset([ez_tool(requires_approval=leave)(greet.fn)]), Run()),  # type: ignore[arg-type] -- as above
        (Toolset([observed()]), Run(channel=Channel(hook_errors="fail"))),
        (Toolset([Unknown]), Run()),
        (Toolset([Unconsented]), Run()),
        (Toolset([pay]), Run(approver=leave)),
        (Toolset([pay]), Run(approvals=NoStore())),
    ],
    ids=["decision", "pre", "post", "policy", "observer", "condition", "consent", "approver", "store"],
)
async def test_a_gate_that_exits_fails_its_call(tools: Toolset, run: Run) -> None:
    [name] = tools.names()

    outcome = await Pipeline(tools).run(ToolCall(name, {}), run)

    assert isinstance(outcome, Failed)
    assert (outcome.code, "ExitError: it raised SystemExit(2)" in str(outcome.exception)) == ("hook_error", True)


@pytest.mark.parametrize(
    ("pipeline", "error_type"),
    [
        (Pipeline([greet], executor=NoExecutor()), "ExitError"),
        (Pipeline(Around([greet])), "HookError"),
        (Pipeline([ez_tool(name="greet")(raising(SystemExit(2)))], executor=TaskExecutor()), "ExitError"),
    ],
    ids=["executor", "runner", "task"],
)
async def test_what_stands_around_a_tool_and_exits_fails_its_call(pipeline: Pipeline, error_type: str) -> None:
    outcome = await pipeline.run(ToolCall("greet", {}), Run())

    assert isinstance(outcome, Failed)
    assert outcome.error_type == error_type
    assert "it raised SystemExit(2)" in str(outcome.exception)


async def test_a_validator_that_exits_raises_an_error_to_the_host() -> None:
    @ez_tool
    async def read(path: Annotated[str, AfterValidator(lambda path: sys.exit(2))]) -> str:
        return path

    with pytest.raises(ExitError, match="SystemExit"):
        await Pipeline([read]).run(ToolCall("read", {"path": "a"}))


async def test_an_observer_that_exits_raises_an_error_to_the_host() -> None:
    with pytest.raises(ExitError, match="SystemExit"):
        await Pipeline([observed()]).run(ToolCall("greet", {}))


async def test_a_sink_that_exits_changes_nothing() -> None:
    outcome = await Pipeline([greet], sinks=[NoSink()]).run(ToolCall("greet", {}))

    assert outcome.kind == "completed"


async def test_observers_of_errors_are_given_an_exit() -> None:
    seen: list[Exception] = []
    quits = ez_tool(name="quits")(raising(SystemExit(2)))

    @quits.on_error
    async def note(exc: Exception) -> None:
        seen.append(exc)

    await Pipeline([quits]).run(ToolCall("quits", {}))

    assert [type(error) for error in seen] == [ExitError]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), BaseExceptionGroup("", [SystemExit(), KeyboardInterrupt()])])
async def test_ctrl_c_in_a_tool_is_not_its_failure(error: BaseException) -> None:
    with pytest.raises(type(error)):
        await Pipeline([ez_tool(name="stop")(raising(error))]).run(ToolCall("stop", {}))


async def test_a_direct_call_of_a_tool_exits() -> None:
    with pytest.raises(SystemExit):
        await ez_tool(name="quits")(raising(SystemExit(2)))()


async def test_a_signal_of_an_engine_passes_a_call() -> None:
    class Moved(BaseException): ...

    register_signal(Moved)

    with pytest.raises(Moved):
        await Pipeline([ez_tool(name="stop")(raising(Moved()))]).run(ToolCall("stop", {}))


def test_a_group_of_exits_is_an_exception() -> None:
    assert isinstance(exception_of(BaseExceptionGroup("all", [SystemExit(2)])), ExitError)
