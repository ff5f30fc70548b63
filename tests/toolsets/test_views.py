"""No composition of views, nesting and renaming loses a gate: stated once, over random compositions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.calls import Completed, Failed, Reject, Rejected, RunNormally, Suspended, ToolCall
from toolcrib.errors import UnknownTool
from toolcrib.hooks import GlobalHooks, HookSet
from toolcrib.pipeline import Pipeline, Run
from toolcrib.schema import RunContext
from toolcrib.tools import BaseTool, Tool, ez_tool
from toolcrib.toolsets import ToolAvailability, ToolEntry, Toolset, nested, use

Ran = list[str]


def guarded(ran: Ran, seen: list[str]) -> Toolset:
    """Three tools, each behind one gate: approval, a decision, an availability; and middleware on all of them."""

    @ez_tool(thread=False, requires_approval=True)
    def asks(text: str = "") -> str:
        ran.append("asks")
        return text

    @ez_tool(thread=False)
    def decided(text: str = "") -> str:
        ran.append("decided")
        return text

    @ez_tool(thread=False)
    def absent(text: str = "") -> str:
        ran.append("absent")
        return text

    @ez_tool(thread=False)
    def free(text: str = "") -> str:
        ran.append("free")
        return text

    hooks = HookSet(["asks", "decided", "absent", "free"])

    @hooks.on("decided")
    async def refuse(call: object, input: object) -> Reject:
        return Reject("no")

    def watch(ctx: object, tool_name: str, args: dict[str, Any], metadata: object) -> dict[str, Any]:
        seen.append(tool_name)
        return args

    tools = Toolset([asks, decided, absent, free], hooks=hooks, global_hooks=GlobalHooks(pre=watch))
    return tools.filtered(lambda ctx, entry: entry.tool is not absent)


def nest(tools: Toolset) -> Toolset:
    class Outer(Toolset):
        inner = nested(tools)

    return Outer()


def allow_all(tools: Toolset) -> Toolset:
    hooks = HookSet()

    @hooks.register
    async def let_pass(call: object, input: object) -> RunNormally:
        return RunNormally(input)

    return tools.with_hooks(hooks)


def yes(ctx: RunContext[Any], entry: ToolEntry) -> bool:
    return True


VIEWS = {
    "prefixed": lambda tools: tools.prefixed("p_"),
    "renamed": lambda tools: tools.renamed({name: f"{name}_r" for name in tools.names()}),
    "subset": lambda tools: tools.subset(tools.names()),
    "without middleware": lambda tools: tools.subset(tools.names(), inherit_hooks=False),
    "filtered": lambda tools: tools.filtered(yes),
    "with_hooks": allow_all,
    "with_approval": lambda tools: tools.with_approval(lambda args, ctx: False),
    "combined": lambda tools: Toolset.combined(tools, Toolset()),
    "in a list": lambda tools: Toolset([tools]),
    "nested": nest,
}


@given(st.lists(st.sampled_from(sorted(VIEWS)), max_size=6))
async def test_no_composition_of_views_loses_a_gate(views: list[str]) -> None:
    ran: Ran = []
    seen: list[str] = []
    tools = guarded(ran, seen)
    for view in views:
        tools = VIEWS[view](tools)
    asks, decided, absent, free = tools.names()
    pipeline = Pipeline(tools)

    outcomes = [await pipeline.run(ToolCall(name), Run()) for name in (asks, decided, absent, free)]

    assert [type(outcome) for outcome in outcomes] == [Suspended, Rejected, Failed, Completed]
    assert ran == ["free"]
    assert seen == ([] if "without middleware" in views else ["asks", "free"])


def test_prefixed_and_renamed_change_names_alone() -> None:
    tools = Toolset([ez_tool(name="a")(lambda: 1), ez_tool(name="b")(lambda: 2)])

    assert tools.prefixed("x_").names() == ["x_a", "x_b"]
    assert tools.renamed({"a": "c"}).names() == ["c", "b"]
    assert tools.names() == ["a", "b"]


def test_renaming_a_stranger_is_an_error() -> None:
    with pytest.raises(UnknownTool, match="nobody"):
        Toolset().renamed({"nobody": "x"})


def test_view_that_makes_a_clash_is_refused() -> None:
    tools = Toolset([ez_tool(name="a")(lambda: 1), ez_tool(name="b")(lambda: 2)])

    with pytest.raises(ValueError, match="two tools are named `b`"):
        tools.renamed({"a": "b"})


async def test_filtered_is_asked_when_the_call_arrives() -> None:
    tools = Toolset([ez_tool(name="a", thread=False)(lambda: 1)]).filtered(lambda ctx, entry: ctx.deps == "day")
    pipeline = Pipeline(tools)

    by_day = await pipeline.run(ToolCall("a"), Run(deps="day"))
    by_night = await pipeline.run(ToolCall("a"), Run(deps="night"))

    assert isinstance(by_day, Completed)
    assert isinstance(by_night, Failed)
    assert by_night.code == "not_available"


async def test_filtered_is_for_the_tools_that_are_named_alone() -> None:
    tools = Toolset([ez_tool(name=name, thread=False)(lambda: 1) for name in ("pay", "pay_all", "read")])
    view = tools.filtered(lambda ctx, entry: ctx.deps == "boss", ["pay*"])

    async def kinds(deps: str) -> list[str]:
        outcomes = [await Pipeline(view).run(ToolCall(name), Run(deps=deps)) for name in tools.names()]
        return [outcome.kind for outcome in outcomes]

    assert await kinds("boss") == ["completed", "completed", "completed"]
    assert await kinds("clerk") == ["failed", "failed", "completed"]
    with pytest.raises(UnknownTool, match="refund"):
        tools.filtered(lambda ctx, entry: True, ["refund*"])


async def test_open_leaves_unavailable_tools_out() -> None:
    tools = Toolset([ez_tool(name="a")(lambda: 1), ez_tool(name="b")(lambda: 2)])
    view = tools.filtered(lambda ctx, entry: entry.name == "b")

    async with view.open() as bound:
        names = bound.names()

    assert names == ["b"]


async def test_with_approval_asks_for_the_named_tools_only() -> None:
    tools = Toolset([ez_tool(name="a", thread=False)(lambda: 1), ez_tool(name="b", thread=False)(lambda: 2)])
    pipeline = Pipeline(tools.with_approval(names=["a"]))

    outcomes = [await pipeline.run(ToolCall(name), Run()) for name in "ab"]

    assert [type(outcome) for outcome in outcomes] == [Suspended, Completed]


async def test_overridden_execution_wraps_the_tool_and_keeps_the_gates() -> None:
    seen: list[str] = []

    class Loud(Toolset):
        async def _call_tool_func(self, args: dict[str, Any], ctx: RunContext[Any], tool: Any) -> Any:
            seen.append(tool.name)
            return await tool.call_func({**args, "text": args["text"].upper()}, ctx)

    echo: Tool[..., Any] = ez_tool(name="echo", thread=False)(lambda text: text)
    inner = Loud([echo])

    outcome = await Pipeline(Toolset([inner]).prefixed("x_")).run(ToolCall("x_echo", {"text": "hi"}), Run())

    assert isinstance(outcome, Completed)
    assert (outcome.value, seen) == ("HI", ["x_echo"])


def test_subset_takes_tools_that_are_inherited_by_themselves() -> None:

    class Always(BaseTool):
        auto_inherit = True

        async def call(self, ctx: object) -> str:
            return "here"

    class Tools(Toolset):
        always = use(Always)
        other = use(ez_tool(name="other")(lambda: 1))
        third = use(ez_tool(name="third")(lambda: 1))

    assert Tools().subset(["other"], include_auto_inherit=True).names() == ["always", "other"]


def test_availability_of_a_view_uses_its_own_names() -> None:
    tools = Toolset([ez_tool(name="a", default=False)(lambda: 1)]).prefixed("p_")

    assert tools.offered() == frozenset()
    assert tools.offered(ToolAvailability.only("p_a")) == {"p_a"}
