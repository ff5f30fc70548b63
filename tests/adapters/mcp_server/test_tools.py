"""Tools served one by one: what is listed, what a call is answered, how it is stopped."""

import asyncio
import re
from typing import Annotated, Any

import pytest
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    Annotations,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    TextContent,
    TextResourceContents,
)
from pydantic import Field
from typing_extensions import TypedDict

from tests.adapters.mcp_server.clients import IN_MEMORY, OVER_STDIO, Way, every_generation, every_way, text_of
from toolcrib.adapters.mcp_client import connect
from toolcrib.adapters.mcp_server import ServerOptions, acting_as, build_server
from toolcrib.calls import Complete, Media
from toolcrib.errors import ModelRetry
from toolcrib.hooks import HookSet
from toolcrib.pipeline import CallLimits, Run
from toolcrib.results import MemoryResultStore
from toolcrib.schema import RunContext
from toolcrib.testing import RecordingSink
from toolcrib.tools import BaseTool, Instruction, ez_tool
from toolcrib.toolsets import Toolset


class Weather(TypedDict):
    city: str
    temp: float


@ez_tool(tags=["read_only"], idempotent=True)
async def get_weather(city: Annotated[str, Field(description="Where.")]) -> Weather:
    """Tell the weather.

    At length.
    """
    return {"city": city, "temp": 3.0}


@ez_tool
async def echo(text: str) -> str:
    return text


# --- tools/list ------------------------------------------------------------------------------------------------------


@every_generation
async def test_a_tool_is_listed_with_its_schemas_and_hints(way: Way) -> None:
    async with way(build_server([get_weather])) as client:
        [tool] = (await client.list_tools()).tools

    assert (tool.name, tool.title, tool.description) == ("get_weather", "Get weather", "Tell the weather.")
    assert tool.input_schema["properties"] == {"city": {"type": "string", "description": "Where."}}
    assert tool.output_schema is not None
    assert tool.output_schema["required"] == ["city", "temp"]
    assert tool.annotations is not None
    assert (tool.annotations.read_only_hint, tool.annotations.idempotent_hint) == (True, True)
    assert tool.annotations.destructive_hint is None


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_server_says_what_it_can_and_no_more(mode: str) -> None:
    class Diary(BaseTool):
        """Keep a diary."""

        def get_instruction(self, ctx: RunContext) -> Instruction:
            return Instruction("diary", "Write every day.")

        async def call(self, ctx: RunContext, text: str) -> None: ...

    async with Client(build_server([Diary, echo], ServerOptions(instructions="For trips.")), mode=mode) as client:
        told = client.server_capabilities

        assert client.instructions == "For trips.\n\nWrite every day."
    assert told.tools is not None
    assert not told.tools.list_changed
    assert told.logging is not None
    assert (told.resources, told.prompts, told.completions) == (None, None, None)


@every_generation
async def test_a_tool_that_is_off_or_not_available_is_not_listed(way: Way) -> None:
    class Shut(BaseTool):
        def is_available(self, ctx: RunContext) -> bool:
            return False

        async def call(self, ctx: RunContext) -> None: ...

    @ez_tool(default=False)
    async def hidden() -> None: ...

    async with way(build_server([echo, Shut, hidden])) as client:
        listed = [tool.name for tool in (await client.list_tools()).tools]

    assert listed == ["echo"]


@every_generation
async def test_another_page_is_refused(way: Way) -> None:
    async with way(build_server([echo])) as client:
        with pytest.raises(MCPError, match="this cursor is no longer valid"):
            await client.list_tools(cursor="2")


@every_generation
async def test_what_this_server_has_not_is_not_found(way: Way) -> None:
    async with way(build_server([echo])) as client:
        with pytest.raises(MCPError, match="Method not found"):
            await client.list_resources()


# --- results ---------------------------------------------------------------------------------------------------------


@every_way
async def test_a_result_is_structured_and_text(way: Way) -> None:
    async with way(build_server([get_weather])) as client:
        result = await client.call_tool("get_weather", {"city": "Oslo"})

    assert result.structured_content == {"city": "Oslo", "temp": 3.0}
    assert text_of(result) == '{"city": "Oslo", "temp": 3.0}'
    assert not result.is_error


@every_generation
async def test_a_list_of_objects_is_structured_in_an_object(way: Way) -> None:
    @ez_tool
    async def forecast() -> list[Weather]:
        return [{"city": "Oslo", "temp": 3.0}]

    async with way(build_server([forecast])) as client:
        [tool] = (await client.list_tools()).tools
        result = await client.call_tool("forecast", {})

    assert tool.output_schema is not None
    assert tool.output_schema["properties"]["result"]["type"] == "array"
    assert result.structured_content == {"result": [{"city": "Oslo", "temp": 3.0}]}


@every_generation
async def test_a_result_that_breaks_its_promise_is_said_to(way: Way) -> None:
    hooks = HookSet()

    @hooks.on("get_weather")
    async def answer(call: Any, given: Any) -> Complete:
        return Complete("it rains")

    async with way(build_server(Toolset([get_weather], hooks=hooks))) as client:
        result = await client.call_tool("get_weather", {"city": "Oslo"})

    assert result.is_error
    assert text_of(result).startswith("it rains\n\nThis does not fit the output schema of `get_weather`")


async def test_an_output_schema_of_somebody_else_s_keeps_nobody_busy() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}

    @ez_tool(return_schema=schema)
    async def relay() -> dict[str, str]:
        return {"a": "a" * 40 + "!"}

    async with IN_MEMORY[1](build_server([relay])) as client:
        result = await client.call_tool("relay", {})

    assert result.is_error
    assert "This does not fit the output schema of `relay` (a: must match the pattern ^(a+)+$; got" in text_of(result)


@every_generation
async def test_a_long_result_is_cut_and_said_to_be(way: Way) -> None:
    @ez_tool(max_result_chars=30)
    async def read() -> Weather:
        return {"city": "O" * 100, "temp": 3.0}

    async with way(build_server([read])) as client:
        [tool] = (await client.list_tools()).tools
        result = await client.call_tool("read", {})

    assert (tool.output_schema, result.structured_content, result.is_error) == (None, None, False)
    assert "characters cut" in text_of(result)


@every_generation
@pytest.mark.parametrize(
    ("value", "kinds"),
    [
        (ImageContent(data="AAAA", mime_type="image/png"), ["image"]),
        (Media("image/png", b"png"), ["image"]),
        (["here", Media("audio/wav", b"wav")], ["text", "audio"]),
        ([{"page": 1}, Media("application/pdf", b"pdf")], ["text", "resource"]),
        (Media("image/png", url="https://example.org/map.png"), ["resource_link"]),
        ({"page": 1, "scan": Media("image/png", b"png")}, ["text", "image"]),
    ],
    ids=["block", "image", "sound", "file", "link", "inside"],
)
async def test_media_are_blocks(way: Way, value: Any, kinds: list[str]) -> None:
    @ez_tool
    async def draw() -> Any:
        return value

    async with way(build_server([draw])) as client:
        result = await client.call_tool("draw", {})

    assert [part.type for part in result.content] == kinds


@every_generation
@pytest.mark.parametrize(
    ("value", "kinds"),
    [
        (TextContent(text="x" * 5_000), ["text"]),
        (["x" * 5_000, ImageContent(data="AAAA", mime_type="image/png")], ["text", "image"]),
        ([TextContent(text="x" * 2_500), {"text": "x" * 2_500}], ["text"]),
        (EmbeddedResource(resource=TextResourceContents(uri="a:b", text="x" * 5_000)), ["text"]),
    ],
    ids=["alone", "beside an image", "beside a value", "embedded"],
)
async def test_the_text_of_blocks_is_cut_like_any_other(way: Way, value: Any, kinds: list[str]) -> None:
    @ez_tool(max_result_chars=200)
    async def draw() -> Any:
        return value

    async with way(build_server([draw])) as client:
        result = await client.call_tool("draw", {})

    assert ([part.type for part in result.content], result.structured_content) == (kinds, None)
    assert "characters cut" in result.content[0].text
    assert len(result.content[0].text) < 300


@every_generation
@pytest.mark.parametrize(
    ("value", "kinds"),
    [
        ("x" * 5_000, ["text"]),
        ({"text": "x" * 5_000}, ["text"]),
        (["x" * 5_000, ImageContent(data="AAAA", mime_type="image/png")], ["text", "image"]),
        (["x" * 5_000, Media("image/png", b"png")], ["text", "image"]),
        (ImageContent(data="A" * 40_000, mime_type="image/png"), ["image"]),
    ],
    ids=["text", "value", "beside a block", "beside media", "large block"],
)
async def test_long_text_is_kept_for_the_principal_who_asked(way: Way, value: Any, kinds: list[str]) -> None:
    @ez_tool(max_result_chars=200)
    async def draw() -> Any:
        return value

    server = build_server(Toolset([draw], results=MemoryResultStore()))

    async def ask(name: str, tool: str, **arguments: Any) -> Any:
        with acting_as(name):
            async with way(server) as client:
                return await client.call_tool(tool, arguments)

    result = await ask("ann", "draw")
    assert ([part.type for part in result.content], result.structured_content) == (kinds, None)
    if kinds == ["image"]:
        return
    [handle] = re.findall(r'handle="(.*?)"', text_of(result))
    own, others = [await ask(name, "read_result", handle=handle, limit=9_999) for name in ("ann", "bob")]

    assert "x" * 5_000 in text_of(own)
    assert others.is_error
    assert "x" * 10 not in text_of(others)


@every_generation
async def test_blocks_that_are_short_stay_as_they_are(way: Way) -> None:
    text = TextContent(text="a cat", annotations=Annotations(priority=0.5))

    @ez_tool(max_result_chars=200)
    async def draw() -> list[Any]:
        return [text, ImageContent(data="AAAA", mime_type="image/png")]

    async with way(build_server([draw])) as client:
        result = await client.call_tool("draw", {})

    assert result.content[0] == text
    assert result.content[1].type == "image"


@every_way
async def test_half_a_surrogate_pair_does_not_break_the_stream(way: Way) -> None:
    @ez_tool
    async def odd(fails: bool) -> str:
        if fails:
            raise ValueError("b\ud800")
        return "a\udfff"

    async with way(build_server([odd, echo])) as client:
        said = [text_of(await client.call_tool("odd", {"fails": fails})) for fails in (False, True)]
        after = await client.call_tool("echo", {"text": "still here"})

    assert said == ["a\ufffd", "ValueError: b?"]
    assert text_of(after) == "still here"


@every_generation
async def test_what_has_no_json_form_is_an_error(way: Way) -> None:
    @ez_tool
    async def odd() -> Any:
        return object()

    async with way(build_server([odd])) as client:
        result = await client.call_tool("odd", {})

    assert result.is_error
    assert text_of(result).startswith("ResultNotSerializable: ")


# --- failures --------------------------------------------------------------------------------------------------------


@every_generation
async def test_an_unknown_tool_is_an_error_of_the_request(way: Way) -> None:
    async with way(build_server([echo])) as client:
        with pytest.raises(MCPError, match="there is no tool `ecko`") as caught:
            await client.call_tool("ecko", {})

    assert caught.value.error.code == INVALID_PARAMS


@every_generation
async def test_a_success_gives_a_model_its_retries_back(way: Way) -> None:
    @ez_tool(max_retries=1)
    async def find(name: str) -> str:
        if "." in name:
            raise ModelRetry("write the full name")
        return name

    async with way(build_server([find])) as client:
        told = [text_of(await client.call_tool("find", {"name": n})) for n in ("A.", "A.", "Ann", "A.")]

    assert told[0] == told[3] == "ModelRetry: write the full name"
    assert told[1].startswith("RetriesExhausted: ")


@every_generation
async def test_an_observer_that_fails_fails_the_call_and_not_the_server(way: Way) -> None:
    @ez_tool
    async def touched() -> str:
        return "x"

    @touched.before_invoke
    async def broken() -> None:
        raise OSError("disk full")

    async with way(build_server([touched, echo])) as client:
        failed = await client.call_tool("touched", {})
        after = await client.call_tool("echo", {"text": "x"})

    assert text_of(failed).startswith("HookError: ")
    assert text_of(after) == "x"


@every_generation
async def test_whoever_follows_runs_is_told_of_the_request_and_what_it_made(way: Way) -> None:
    watch = RecordingSink()

    async with way(build_server([echo], ServerOptions(sinks=(watch,), principal="ann"))) as client:
        await client.call_tool("echo", {"text": "x"})
        await client.call_tool("echo", {"word": "x"})
        with pytest.raises(MCPError):
            await client.call_tool("ecko", {})

    opened, closed = watch.runs[0], watch.runs[1]
    assert (opened.activity, opened.kind, opened.data["tool"], opened.data["principal"]) == (
        "request",
        "opened",
        "echo",
        "ann",
    )
    assert watch.events[0].parent_id == opened.activity_id
    assert [run.data["outcome"] for run in watch.runs if run.kind == "closed"] == ["completed", "error", "error"]
    assert closed.activity_id == opened.activity_id


# --- progress and cancellation ---------------------------------------------------------------------------------------


@every_way
async def test_the_values_of_a_stream_are_progress(way: Way) -> None:
    @ez_tool
    async def count(to: int) -> Any:
        for number in range(to):
            yield {"n": number}

    told: list[tuple[float, str | None]] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        told.append((done, message))

    async with way(build_server([count])) as client:
        result = await client.call_tool("count", {"to": 2}, progress_callback=progress)
        quiet = await client.call_tool("count", {"to": 2})

    assert told == [(1, '{"n": 0}'), (2, '{"n": 1}')]
    assert text_of(result) == text_of(quiet) == '[{"n": 0}, {"n": 1}]'


@every_way
async def test_what_a_tool_says_of_its_progress_reaches_the_client(way: Way) -> None:
    @ez_tool
    def load(rows: int, ctx: RunContext) -> int:  # in a thread
        ctx.progress(1, rows, "reading")
        ctx.progress(rows, rows)
        return rows

    told: list[tuple[float, float | None, str | None]] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        told.append((done, total, message))

    async with way(build_server([load])) as client:
        result = await client.call_tool("load", {"rows": 3}, progress_callback=progress)

    assert told == [(1, 3, "reading"), (3, 3, None)]
    assert text_of(result) == "3"


def hanging() -> tuple[Any, asyncio.Event, asyncio.Event]:
    """Return a tool that never ends by itself, and when it began and was stopped."""
    begun, stopped = asyncio.Event(), asyncio.Event()

    @ez_tool
    async def hang() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    return hang, begun, stopped


@every_way
async def test_a_client_that_cancels_stops_the_tool(way: Way) -> None:
    hang, begun, stopped = hanging()
    watch = RecordingSink()

    async with way(build_server([hang, echo], ServerOptions(sinks=(watch,)))) as client:
        call = asyncio.create_task(client.call_tool("hang", {}))
        await begun.wait()
        call.cancel()
        await asyncio.wait_for(stopped.wait(), 60)
        after = await client.call_tool("echo", {"text": "still here"})

    assert text_of(after) == "still here"
    assert watch.records[0].outcome["kind"] == "cancelled"


@pytest.mark.parametrize("way", OVER_STDIO, ids=lambda way: way.title)
async def test_a_client_that_goes_stops_its_tools(way: Way) -> None:
    hang, begun, stopped = hanging()

    async with way(build_server([hang])) as client:
        call = asyncio.create_task(client.call_tool("hang", {}))
        await begun.wait()
    await asyncio.wait_for(stopped.wait(), 60)

    [ended] = await asyncio.gather(call, return_exceptions=True)
    assert isinstance(ended, MCPError)


# --- principals ------------------------------------------------------------------------------------------------------


@every_generation
async def test_budgets_and_deps_are_of_a_principal_in_all_sessions(way: Way) -> None:
    @ez_tool
    async def whose(ctx: RunContext) -> str:
        return str(ctx.deps)

    def opened(name: str) -> Run:
        return Run(deps=f"{name}'s", limits=CallLimits(total=2))

    server = build_server([whose], ServerOptions(run=opened))

    async def told(name: str) -> str:
        with acting_as(name):
            async with way(server) as client:
                return text_of(await client.call_tool("whose", {}))

    said = [await told(name) for name in ("ann", "ann", "bob", "ann")]

    assert said[:3] == ["ann's", "ann's", "bob's"]
    assert said[3].startswith("Rejected: ")


async def test_availability_is_asked_for_each_principal() -> None:
    class Admin(BaseTool):
        def is_available(self, ctx: RunContext) -> bool:
            return ctx.deps == "root"

        async def call(self, ctx: RunContext) -> str:
            return "done"

    server = build_server([Admin], ServerOptions(run=lambda name: Run(deps=name)))
    listed: dict[str, list[str]] = {}
    for name in ("root", "eve"):
        with acting_as(name):
            async with IN_MEMORY[1](server) as client:
                listed[name] = [tool.name for tool in (await client.list_tools()).tools]
                said = await client.call_tool("admin", {})

    assert listed == {"root": ["admin"], "eve": []}
    assert said.is_error


async def test_a_member_that_lists_itself_is_opened_for_the_servers_life() -> None:
    inner = build_server([echo, get_weather])

    async with Client(inner, cache=None) as session:
        outer = build_server(Toolset([connect(session)]))
        async with IN_MEMORY[1](outer) as client:
            listed = {tool.name: tool for tool in (await client.list_tools()).tools}
            said = await client.call_tool("echo", {"text": "through two servers"})
            weather = await client.call_tool("get_weather", {"city": "Oslo"})

    assert text_of(said) == "through two servers"
    assert weather.structured_content == {"city": "Oslo", "temp": 3.0}
    assert listed["get_weather"].annotations is not None
    assert listed["get_weather"].annotations.read_only_hint


@every_generation
@pytest.mark.parametrize("annotation", [list[Any], list, tuple[Any, ...], Any])
async def test_blocks_are_structured_where_the_tool_says_that_its_results_are(way: Way, annotation: Any) -> None:
    async def draw() -> Any:
        """Draw."""
        return ["a cat", ImageContent(data="AAAA", mime_type="image/png"), TextContent(text="b")]

    draw.__annotations__["return"] = annotation
    async with way(build_server([ez_tool(draw)])) as client:
        [tool] = (await client.list_tools()).tools
        result = await client.call_tool("draw", {})

    image = {"kind": "media", "mime_type": "image/png", "size": 3}
    shown = ["a cat", image, {"type": "text", "text": "b"}]
    assert [part.type for part in result.content] == ["text", "image", "text"]
    assert result.structured_content == (None if tool.output_schema is None else {"result": shown})


@every_generation
async def test_a_result_of_the_protocol_is_the_result(way: Way) -> None:
    given = CallToolResult(content=[TextContent(text="sold out")], structured_content={"left": 0}, is_error=True)

    @ez_tool
    async def buy() -> CallToolResult:
        return given

    async with way(build_server([buy])) as client:
        result = await client.call_tool("buy", {})

    assert (result.content, result.structured_content, result.is_error) == (given.content, {"left": 0}, True)
