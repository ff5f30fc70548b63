"""A toolset inside an agent of Pydantic AI: what the model is shown, and what it is told."""

import re
from collections.abc import AsyncIterator
from typing import Annotated, Any

import pydantic_ai
import pytest
from pydantic import BaseModel
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelResponse,
    TextContent,
    TextPart,
    ToolCallPart,
    ToolReturn,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from tests.adapters.pydantic_ai.scripted import agent, results, scripted
from toolcrib.adapters.pydantic_ai import ToolYielded, as_tools
from toolcrib.calls import Reject, ToolCall
from toolcrib.errors import ModelRetry
from toolcrib.hooks import HookSet
from toolcrib.pipeline import CallLimits, Pipeline, Run
from toolcrib.record import ListSink
from toolcrib.results import MemoryResultStore
from toolcrib.schema import Injected, Redacted, RunContext
from toolcrib.tools import BaseTool, Instruction, ez_tool
from toolcrib.toolsets import Toolset
from toolcrib.toolsets.search import searchable


@ez_tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def told(tools: Any, *calls: tuple[str, Any], **options: Any) -> list[tuple[str, Any]]:
    """Return what a model is told of calls that it makes one after the other."""
    steps = [[(name, arguments, f"c{n}")] for n, (name, arguments) in enumerate(calls)]
    run = await agent(scripted(*steps), as_tools(tools, **options)).run("go")
    return [(outcome, content) for _, outcome, content in results(run.all_messages())]


async def test_the_model_is_given_what_the_tool_returns() -> None:
    assert await told([add], ("add", '{"a": 1, "b": 2}'), ("add", {"a": 3, "b": 4})) == [("success", 3), ("success", 7)]


async def test_a_model_of_theirs_can_read_the_schema() -> None:
    run = await agent(TestModel(), as_tools([add])).run("go")

    assert run.output == '{"add":0}'


async def test_what_the_model_is_shown() -> None:
    seen: list[AgentInfo] = []
    hooks = HookSet()

    @hooks.on("add").description
    async def describe(definition: Any) -> str:
        return f"{definition.description} Quickly."

    await agent(scripted(seen=seen), as_tools(Toolset([add], hooks=hooks))).run("go")

    [shown] = seen[0].function_tools
    assert (shown.name, shown.description) == ("add", "Add two numbers. Quickly.")
    assert shown.parameters_json_schema == add.parameters


async def test_deps_are_theirs() -> None:
    class Whose(BaseTool):
        async def call(self, ctx: RunContext[str]) -> str:
            return ctx.deps

    run = await agent(scripted([("whose", "{}", "c1")]), as_tools([Whose]), deps_type=str).run("go", deps="ann's")

    assert results(run.all_messages()) == [("c1", "success", "ann's")]


async def test_a_tool_may_ask_for_their_context() -> None:
    @ez_tool
    async def step(run: Annotated[pydantic_ai.RunContext, Injected]) -> int:
        return run.run_step

    assert await told([step], ("step", "{}")) == [("success", 1)]


async def test_a_retry_after_bad_arguments() -> None:
    bad, good = await told([add], ("add", '{"a": 1}'), ("add", '{"a": 1, "b": 2}'))

    assert (bad[0], good) == ("retried", ("success", 3))
    assert "b: " in str(bad[1])


async def test_arguments_that_are_no_json_are_refused() -> None:
    [(outcome, content)] = await told([add], ("add", '{"a": 1, "b": 2'))

    assert outcome == "retried"
    assert "`add` cannot take these arguments" in str(content)


async def test_exhausted_retries_do_not_end_the_run() -> None:
    bad = ("add", "{}")

    outcomes = await told(Toolset([add], max_retries=1), bad, bad, bad, ("add", '{"a": 1, "b": 2}'))

    assert [outcome for outcome, _ in outcomes] == ["retried", "failed", "failed", "success"]
    assert "RetriesExhausted" in outcomes[1][1]


async def test_an_exhausted_budget_is_told() -> None:
    one = ("add", '{"a": 1, "b": 2}')

    first, second = await told([add], one, one, run=lambda ctx: Run(limits=CallLimits(total=1)))

    assert first == ("success", 3)
    assert second[0] == "denied"
    assert "1 call (in total)" in second[1]


async def test_each_run_has_a_budget_of_its_own() -> None:
    toolset = as_tools([add], run=lambda ctx: Run(limits=CallLimits(total=1)))
    one = agent(scripted([("add", {"a": 1, "b": 2}, "c1")]), toolset)

    outcomes = [results((await one.run("go")).all_messages())[0][1] for _ in range(2)]

    assert outcomes == ["success", "success"]


@pytest.mark.parametrize("error", [ModelRetry("the full name"), pydantic_ai.ModelRetry("the full name")])
async def test_a_tool_may_have_the_model_try_again(error: Exception) -> None:
    @ez_tool
    async def find(name: str) -> str:
        raise error

    [(outcome, content)] = await told([find], ("find", '{"name": "A."}'))

    assert outcome == "retried"
    assert "the full name" in str(content)


async def test_what_a_tool_raises_is_told() -> None:
    @ez_tool
    async def read(path: str) -> str:
        raise FileNotFoundError(f"no file {path}")

    assert await told([read], ("read", '{"path": "a"}')) == [("failed", "FileNotFoundError: no file a")]


async def test_a_result_without_a_json_form_is_told() -> None:
    @ez_tool
    async def odd() -> Any:
        return object()

    [(outcome, content)] = await told([odd], ("odd", "{}"))

    assert outcome == "failed"
    assert "ResultNotSerializable" in content


async def test_a_hook_may_reject() -> None:
    hooks = HookSet()

    @hooks.on("add")
    async def never(call: Any, given: Any) -> Reject:
        return Reject("not on Sundays")

    assert await told(Toolset([add], hooks=hooks), ("add", {"a": 1, "b": 2})) == [("denied", "not on Sundays")]


async def test_long_results_are_cut_and_images_are_not() -> None:
    image = BinaryContent(b"\x89PNG", media_type="image/png")

    @ez_tool(max_result_chars=20)
    async def long() -> str:
        return "x" * 1000

    @ez_tool(max_result_chars=20)
    async def rich() -> ToolReturn:
        return ToolReturn("x" * 1000, metadata={"kept": True})

    @ez_tool
    async def look() -> list[Any]:
        return ["a cat", image]

    texts = await told([long, rich, look], ("long", "{}"), ("rich", "{}"), ("look", "{}"))

    assert [len(content) < 200 for _, content in texts[:2]] == [True, True]
    assert image in texts[2][1]


@pytest.mark.parametrize("of_run", [False, True])
async def test_all_that_a_tool_tells_the_model_passes_deliveries(of_run: bool) -> None:
    @ez_tool
    async def find() -> ToolReturn:
        return ToolReturn("mail ann@example.org", content="beside ann@example.org")

    def mask(call: Any, value: Any) -> Any:
        return value.replace("ann@example.org", "<masked>") if isinstance(value, str) else value

    tools = Toolset([find]) if of_run else Toolset([find]).with_deliveries(mask)
    run = Run(deliveries=[mask] if of_run else ())
    done = await agent(scripted([("find", "{}", "c1")]), as_tools(tools, run=run)).run("go")

    given = repr([part for message in done.all_messages() for part in message.parts])
    assert given.count("<masked>") == 2
    assert "ann@example.org" not in given


@pytest.mark.parametrize("fails", ["mail", "beside"])
async def test_a_delivery_that_fails_for_a_part_of_a_result_gives_the_model_none_of_it(fails: str) -> None:
    @ez_tool
    async def find() -> ToolReturn:
        return ToolReturn("mail ann@example.org", content="beside ann@example.org")

    def broken(call: Any, value: Any) -> Any:
        if isinstance(value, str) and fails in value:
            raise RuntimeError("no list")
        return value

    tools = as_tools(Toolset([find]).with_deliveries(broken))
    done = await agent(scripted([("find", "{}", "c1")]), tools).run("go")

    assert "ann@example.org" not in repr([part for message in done.all_messages() for part in message.parts])


IMAGE = BinaryContent(b"\x89PNG", media_type="image/png")


async def given_to_the_model(value: Any) -> list[Any]:
    """Return all that the model is given of a tool that returns or raises a value, and may show 200 characters."""

    @ez_tool(max_result_chars=200)
    async def look() -> Any:
        if isinstance(value, Exception):
            raise value
        return value

    messages = (await agent(scripted([("look", "{}", "c1")]), as_tools([look])).run("go")).all_messages()
    parts = [part for message in messages[2:-1] for part in message.parts]
    several = [part.content if isinstance(part.content, list) else [part.content] for part in parts]
    return [content for some in several for content in some]


@pytest.mark.parametrize(
    ("value", "images"),
    [
        (["x" * 5_000, IMAGE], 1),
        ([{"text": "x" * 5_000}, IMAGE], 1),
        (ToolReturn("ok", content="x" * 5_000), 0),
        (ToolReturn("x" * 5_000, content="x" * 5_000), 0),
        (ToolReturn("ok", content=["x" * 2_500, TextContent("x" * 2_500), IMAGE]), 1),
        (ToolReturn(["x" * 5_000, IMAGE], content=[IMAGE]), 2),
        (pydantic_ai.ModelRetry("x" * 5_000), 0),
        (ToolFailed("x" * 5_000), 0),
    ],
    ids=["text", "value", "content", "both", "parts", "images", "retry", "failure"],
)
async def test_text_beside_their_own_content_is_cut_like_any_other(value: Any, images: int) -> None:
    given = await given_to_the_model(value)

    texts = [content for content in given if isinstance(content, str)]
    assert sum(text.count("x") for text in texts) <= 202  # the notice has one, too
    assert any("characters cut" in text for text in texts)
    assert len(given) - len(texts) == given.count(IMAGE) == images


@pytest.mark.parametrize(
    ("value", "images"),
    [
        ("x" * 5_000, 0),
        (["x" * 5_000, IMAGE], 1),
        (ToolReturn("x" * 5_000, metadata={"pin": "hunter2"}), 0),
        (ToolReturn(["x" * 5_000, IMAGE], content=["beside", IMAGE], metadata={"pin": "hunter2"}), 2),
        ([BinaryContent(b"x" * 50_000, media_type="image/png")], 1),
    ],
    ids=["text", "text and image", "own result", "own result and image", "large image"],
)
async def test_long_text_is_kept_beside_their_own_content(value: Any, images: int) -> None:
    @ez_tool(max_result_chars=200)
    async def look() -> Any:
        return value

    tools = Toolset([look], results=MemoryResultStore())
    asking = agent(scripted([("look", "{}", "c1")]), as_tools(tools, run=Run(principal="ann")))
    messages = (await asking.run("go")).all_messages()
    parts = [part for message in messages[2:-1] for part in message.parts]
    given = [
        content for part in parts for content in (part.content if isinstance(part.content, list) else [part.content])
    ]

    texts = "".join(content for content in given if isinstance(content, str))
    handle = re.search(r"res_[\w-]+", texts)
    assert sum(isinstance(content, BinaryContent) for content in given) == images
    assert "characters cut" not in texts
    if handle is None:
        assert "x" * 100 not in texts
        return
    call = ToolCall("read_result", {"handle": handle.group(), "limit": 10_000})
    page = await Pipeline(tools).run(call, Run(principal="ann"))
    assert page.text() == f"[characters 0:5000 of 5000]\n{'x' * 5_000}"


class Login(BaseModel):
    key: Annotated[str, Redacted]


async def test_a_secret_beside_an_image_is_hidden() -> None:
    given = await given_to_the_model([Login(key="hunter2"), IMAGE])

    assert "hunter2" not in str(given[0])
    assert given[1] == IMAGE


async def test_what_is_short_enough_stays_beside_a_result() -> None:
    text = TextContent("a cat", metadata={"page": 1})

    assert await given_to_the_model(ToolReturn({"a": 1}, content=["x", text, IMAGE])) == [{"a": 1}, "x", text, IMAGE]


async def test_streamed_values_are_collected_and_told_as_they_come() -> None:
    @ez_tool
    async def count(to: int) -> AsyncIterator[int]:
        for number in range(to):
            yield number

    counting = agent(scripted([("count", '{"to": 3}', "c1")]), as_tools([count]))

    async with counting.run_stream_events("go") as events:
        told_of = [event async for event in events]

    assert [(e.value, e.tool_call_id) for e in told_of if isinstance(e, ToolYielded)] == [(n, "c1") for n in range(3)]
    assert told_of[-1].result.output == "done"
    assert results(told_of[-1].result.all_messages()) == [("c1", "success", [0, 1, 2])]


async def test_what_is_available_is_asked_at_each_step() -> None:
    seen: list[AgentInfo] = []

    class Open(BaseTool):
        async def call(self, ctx: RunContext[list[str]]) -> None:
            ctx.deps.append("open")

    class Take(BaseTool):
        def is_available(self, ctx: RunContext[list[str]]) -> bool:
            return bool(ctx.deps)

        async def call(self, ctx: RunContext[list[str]]) -> str:
            return "a tool"

    model = scripted([("open", "{}", "c1")], [("take", "{}", "c2")], seen=seen)
    run = await agent(model, as_tools([Open, Take]), deps_type=list).run("go", deps=[])

    assert [[tool.name for tool in info.function_tools] for info in seen] == [["open"], *[["open", "take"]] * 2]
    assert results(run.all_messages())[-1] == ("c2", "success", "a tool")


async def test_what_is_off_is_neither_shown_nor_called() -> None:
    ran: list[str] = []

    @ez_tool(default=False)
    async def hidden() -> None:
        ran.append("hidden")

    [(outcome, content)] = await told([add, hidden], ("hidden", "{}"))

    assert (outcome, ran) == ("retried", [])
    assert "Unknown tool" in str(content)


async def test_what_a_search_finds_is_shown_from_the_next_step_on() -> None:
    seen: list[AgentInfo] = []
    search = ("search_tools", {"query": "add numbers"}, "c1")
    model = scripted([search], [("add", {"a": 1, "b": 2}, "c2")], seen=seen)

    run = await agent(model, as_tools(searchable([add]))).run("go")

    assert [[tool.name for tool in info.function_tools] for info in seen[:2]] == [
        ["search_tools"],
        ["search_tools", "add"],
    ]
    assert results(run.all_messages())[-1] == ("c2", "success", 3)


async def test_instructions_are_given_once_for_a_group_and_only_of_what_is_offered() -> None:
    seen: list[AgentInfo] = []

    class First(BaseTool):
        def get_instruction(self, ctx: RunContext) -> Instruction:
            return Instruction("files", f"Paths are relative to {ctx.deps}.")

        async def call(self, ctx: RunContext) -> None: ...

    class Second(First):
        def get_instruction(self, ctx: RunContext) -> Instruction:
            return Instruction("files", "not this")

    class Third(First):
        default = False

        def get_instruction(self, ctx: RunContext) -> Any:
            return "nor this"

    await agent(scripted(seen=seen), as_tools([First, Second, Third]), deps_type=str).run("go", deps="/srv")

    assert seen[0].instructions == "Paths are relative to /srv."


async def test_their_views_keep_our_gates() -> None:
    sink = ListSink()
    prefixed = as_tools([add], sinks=[sink]).prefixed("math")

    run = await agent(scripted([("math_add", "{}", "c1")], [("math_add", {"a": 1, "b": 2}, "c2")]), prefixed).run("go")

    assert [outcome for _, outcome, _ in results(run.all_messages())] == ["retried", "success"]
    assert [(record.tool, record.entry, record.run_id) for record in sink.records] == [
        ("add", "pydantic_ai", run.run_id)
    ] * 2


async def test_a_call_outside_a_run_is_refused() -> None:
    toolset: Any = as_tools([add])
    ctx = pydantic_ai.RunContext(deps=None, model=TestModel(), usage=pydantic_ai.RunUsage())
    [tool] = (await toolset.get_tools(ctx)).values()

    with pytest.raises(RuntimeError, match="for_run"):
        await toolset.call_tool("add", {"a": 1, "b": 2}, ctx, tool)


async def test_an_agent_inside_a_tool_belongs_to_the_run_of_that_tool() -> None:
    @ez_tool
    async def inner(ctx: RunContext[Any]) -> str:
        return str(ctx.run.principal)

    @ez_tool
    async def outer() -> str:
        return (await pydantic_ai.Agent(TestModel(), toolsets=[as_tools([inner])]).run("x")).output

    sink = ListSink()
    run = Run(principal="ann", sinks=(sink,), limits=CallLimits(total=9))

    outcome = await Pipeline([outer]).run(ToolCall("outer"), run)

    assert "ann" in outcome.text()
    assert [record.tool for record in sink.records] == ["inner", "outer"]
    assert run.calls == {"outer": 1, "inner": 1}


async def test_a_run_may_be_given_as_it_is() -> None:
    run = Run(limits=CallLimits(total=9))

    await told([add], ("add", {"a": 1, "b": 2}), run=run)

    assert run.calls == {"add": 1}


CUT: list[dict[str, Any]] = [
    {"finish_reason": "length"},
    {"finish_reason": "content_filter"},
    {"finish_reason": "error"},
    {"finish_reason": "stop", "state": "interrupted"},
    {"state": "incomplete"},
    {"provider_details": {"finish_reason": "guardrail_intervened"}, "provider_name": "openai"},
    {"provider_details": {"finish_reason": "a_new_word"}, "provider_name": "openai"},
]
WHOLE: list[dict[str, Any]] = [
    {},
    {"finish_reason": "stop"},
    {"finish_reason": "tool_call", "provider_name": "openai"},
    {"provider_details": {"finish_reason": "eos"}, "provider_name": "openai"},
    {"provider_name": "openai"},
]


async def of_response(ended: dict[str, Any], arguments: Any) -> tuple[list[str], str]:
    """Return what ran of a response that ended so, and what the model was told of its call."""
    ran: list[str] = []

    @ez_tool
    def purge(pattern: str = "*") -> str:
        """Delete files."""
        ran.append(pattern)
        return "deleted"

    def answered(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if len(messages) > 1:
            return ModelResponse([TextPart("done")])
        return ModelResponse([ToolCallPart("purge", arguments, "c1")], **ended)

    run = await agent(FunctionModel(answered), as_tools([purge])).run("go")
    return ran, str(run.all_messages()[2].parts[0].content)  # type: ignore[union-attr]


@pytest.mark.parametrize("arguments", ['{"pattern": "a"}', {"pattern": "a"}, "{}", {}, "", None])
@pytest.mark.parametrize("ended", CUT)
async def test_a_call_of_a_response_that_was_cut_does_not_run(ended: dict[str, Any], arguments: Any) -> None:
    ran, said = await of_response(ended, arguments)

    assert ran == []
    assert "Nothing ran" in said


@pytest.mark.parametrize("ended", WHOLE)
async def test_a_call_of_a_response_that_is_whole_runs(ended: dict[str, Any]) -> None:
    assert await of_response(ended, '{"pattern": "a"}') == (["a"], "deleted")
