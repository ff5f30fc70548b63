"""`create_agent` and what its tools may be: classes with instructions, hooks around them, execution of one's own."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pydantic_ai
import pytest
from pydantic_ai.models.function import AgentInfo
from pydantic_ai.tools import DeferredToolRequests

from tests.adapters.pydantic_ai.scripted import agent, results, scripted
from toolcrib.adapters.pydantic_ai import answers, approval_requests, as_tools, create_agent, stream_agent
from toolcrib.approvals import AgentContext
from toolcrib.hooks import GlobalHooks
from toolcrib.schema import RunContext
from toolcrib.tools import BaseTool, Instruction
from toolcrib.toolsets import Toolset


@dataclass(slots=True)
class Desk(AgentContext):
    folder: Path = Path()
    trail: list[str] = field(default_factory=list[str])


class View(BaseTool):
    name = "view"
    description = "Show a file"

    async def call(self, ctx: RunContext[Desk], path: str) -> str:
        return (ctx.deps.folder / path).read_text()

    def get_instruction(self, ctx: RunContext[Desk]) -> Instruction:
        return Instruction(group="files", content="Paths are relative.")


class Edit(BaseTool):
    name = "edit"
    description = "Write a file"

    async def call(self, ctx: pydantic_ai.RunContext[Desk], path: str, text: str) -> int:
        return (ctx.deps.folder / path).write_text(text)

    def get_instruction(self, ctx: Any) -> Instruction:
        return Instruction(group="files", content="Paths are relative, too.")

    def get_approval_metadata(self) -> dict[str, Any]:
        return {"writes": True}


VIEW = ("view", {"path": "a.txt"}, "c1")


@pytest.fixture
def deps(tmp_path: Path) -> Desk:
    (tmp_path / "a.txt").write_text("hello")
    return Desk(folder=tmp_path)


async def test_hooks_run_in_order_and_share_metadata(deps: Desk) -> None:
    async def first(ctx: Any, name: str, args: dict[str, Any], metadata: dict[str, Any]) -> dict[str, Any]:
        ctx.deps.trail.append(f"global pre {name}")
        metadata["seen"] = 1
        return args

    async def pre(ctx: Any, args: dict[str, Any], metadata: dict[str, Any]) -> dict[str, Any]:
        ctx.deps.trail.append(f"pre {metadata['seen']}")
        return {"path": args["path"].replace("b", "a")}

    async def post(ctx: Any, result: Any, metadata: dict[str, Any]) -> Any:
        ctx.deps.trail.append(f"post {result}")
        return result.upper()

    async def last(ctx: Any, name: str, result: Any, metadata: dict[str, Any]) -> Any:
        ctx.deps.trail.append(f"global post {result}")
        return result

    runtime = create_agent(
        scripted([("view", {"path": "b.txt"}, "c1")]),
        tools=[View, Edit],
        pre_hooks={"view": pre},
        post_hooks={"view": post},
        global_hooks=GlobalHooks(pre=first, post=last),
        deps_type=Desk,
    )

    run = await runtime.run("show it", deps=deps)

    assert deps.trail == ["global pre view", "pre 1", "post hello", "global post HELLO"]
    assert results(run.all_messages()) == [("c1", "success", "HELLO")]


async def test_a_post_hook_may_recover_from_an_exception(deps: Desk) -> None:
    async def recover(ctx: Any, result: Any, metadata: dict[str, Any]) -> Any:
        return "an empty file" if isinstance(result, FileNotFoundError) else result

    missing = ("view", {"path": "none.txt"}, "c1")
    runtime = create_agent(scripted([missing]), tools=[View], post_hooks={"view": recover}, deps_type=Desk)

    run = await runtime.run("show it", deps=deps)

    assert results(run.all_messages()) == [("c1", "success", "an empty file")]


async def test_instructions_of_a_group_are_given_once(deps: Desk) -> None:
    seen: list[AgentInfo] = []

    await create_agent(scripted(seen=seen), tools=[View, Edit], deps_type=Desk).run("go", deps=deps)

    assert seen[0].instructions == "Paths are relative."


async def test_a_run_stops_for_the_tools_that_deps_name(deps: Desk) -> None:
    deps.need_user_approve_tools = ["shell", "edit", "replace"]
    edit = ("edit", {"path": "a.txt", "text": "bye"}, "c2")
    runtime = create_agent(scripted([VIEW, edit]), tools=[View, Edit], deps_type=Desk)

    run = await runtime.run("go", deps=deps)

    assert isinstance(run.output, DeferredToolRequests)
    assert [(r.tool, dict(r.metadata)) for r in approval_requests(run.output)] == [("edit", {"writes": True})]
    assert (deps.folder / "a.txt").read_text() == "hello"


async def test_events_of_a_run(deps: Desk) -> None:
    runtime = create_agent(scripted([VIEW]), tools=[View], deps_type=Desk)

    async with stream_agent(runtime, "show it", deps=deps) as stream:
        kinds = [event.event_kind async for event in stream]

    assert "function_tool_call" in kinds
    assert "function_tool_result" in kinds
    assert kinds[-1] == "agent_run_result"


async def test_an_execution_of_ones_own_may_stop_a_tool() -> None:
    reached: list[str] = []

    class Hurried(Toolset):
        async def _call_tool_func(self, args: Any, ctx: Any, tool: Any) -> Any:
            reached.append(tool.name)
            return await asyncio.wait_for(tool.call_func(args, ctx), timeout=0.02)

    class Sleep(BaseTool):
        async def call(self, ctx: RunContext) -> None:
            await asyncio.Event().wait()

    run = await agent(scripted([("sleep", "{}", "c1")]), as_tools(Hurried([Sleep]))).run("go")

    assert [(outcome, content) for _, outcome, content in results(run.all_messages())] == [("failed", "TimeoutError")]
    assert reached == ["sleep"]


async def test_a_denial_is_recorded_at_the_agent_that_was_made_in_one_call(deps: Desk) -> None:
    deps.need_user_approve_tools = ["edit"]
    runtime = create_agent(scripted([("edit", {"path": "a.txt", "text": "x"}, "c1")]), tools=[Edit])
    run = await runtime.run("Edit a.", deps=deps)
    [request] = approval_requests(run.output)

    no = await answers(run.output, request.deny(message="not that one", by="ann"), toolset=runtime)
    done = await runtime.run(message_history=run.all_messages(), deferred_tool_results=no, deps=deps)

    assert results(done.all_messages()) == [("c1", "denied", "not that one")]
    with pytest.raises(ValueError, match="toolset="):
        await answers(run.output, request.deny(), toolset=agent(scripted()))
