"""Resources and prompts over MCP: listed, read by a call with every gate, completed, and announced when they change."""

from __future__ import annotations

import asyncio
import base64
from typing import Any, Literal

import mcp_types as types
import pytest
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ResourceUpdated
from pydantic import BaseModel

from tests.adapters.mcp_server.clients import APPROVE, IN_MEMORY, OLD, Way, answering, every_generation, every_way
from tests.adapters.mcp_server.http import served
from toolcrib.adapters.mcp_server import ServerOptions, build_server
from toolcrib.approvals import MemoryApprovalStore
from toolcrib.calls import Media
from toolcrib.pipeline import CallLimits, Run
from toolcrib.schema import RunContext
from toolcrib.testing import RecordingSink
from toolcrib.tools import (
    Offering,
    PromptOffer,
    PromptText,
    ResourceOffer,
    Tool,
    ez_tool,
    prompt,
    resource,
    resource_changed,
)
from toolcrib.toolsets import Toolset

_NEW = IN_MEMORY[1]
_PNG = b"\x89PNG"


class Report(BaseModel):
    city: str
    day: int


@resource("trips://today", mime_type="text/markdown", listing={"title": "Today", "size": 7})
async def today() -> str:
    """What is on today."""
    return "# Today"


@resource("trips://{city}/{day}", complete={"city": ["Oslo", "Orleans", "Rome"]})
async def report(city: str, day: int) -> Report:
    """The report of a day in a city."""
    return Report(city=city, day=day)


@resource("trips://map.png", meta={"ui": {"prefersBorder": True}})
def map_image() -> Media:
    """A map."""
    return Media("image/png", _PNG)


@prompt(complete={"city": lambda typed, given: [f"{typed}o", *given.values()]})
def plan(city: str, days: int = 1, style: Literal["brief", "long"] = "brief") -> list[Any]:
    """Plan a trip.

    Args:
        city: Where to.
    """
    return [PromptText("You plan.", "assistant"), f"{days + 1} days in {city}", Media("image/png", _PNG)]


TRIPS = [today, report, map_image, plan]


# --- lists


@every_way
async def test_resources_and_prompts_are_listed_and_are_no_tools(way: Way) -> None:
    async with way(build_server(TRIPS)) as client:
        resources, templates = await client.list_resources(), await client.list_resource_templates()
        [listed] = (await client.list_prompts()).prompts
        tools = await client.list_tools()

    assert tools.tools == []
    assert [(one.uri, one.name, one.title, one.mime_type) for one in resources.resources] == [
        ("trips://today", "today", "Today", "text/markdown"),
        ("trips://map.png", "map_image", None, None),
    ]
    assert [one.uri_template for one in templates.resource_templates] == ["trips://{city}/{day}"]
    assert (listed.name, listed.description) == ("plan", "Plan a trip.")
    assert [(one.name, one.required, one.description) for one in listed.arguments or []] == [
        ("city", True, "Where to."),
        ("days", False, None),
        ("style", False, None),
    ]


async def test_lists_are_paged_and_a_cursor_that_is_gone_is_refused() -> None:
    def numbered(number: int) -> Tool[..., Any]:
        return resource(f"n://{number}", name=f"n{number}")(lambda: "")

    server = build_server([numbered(number) for number in range(5)], ServerOptions(page=2))

    async with Client(server) as client:
        first = await client.list_resources()
        second = await client.list_resources(cursor=first.next_cursor)
        third = await client.list_resources(cursor=second.next_cursor)
        with pytest.raises(MCPError, match="this cursor is no longer valid"):
            await client.list_resources(cursor="n://9")

    assert [one.uri for page in (first, second, third) for one in page.resources] == [f"n://{n}" for n in range(5)]
    assert third.next_cursor is None


@pytest.mark.parametrize("mode", [OLD, "auto"])
async def test_a_server_without_them_does_not_say_that_it_has_them(mode: str) -> None:
    async with Client(build_server([today]), mode=mode) as client:
        told = client.server_capabilities

    assert told.resources is not None
    assert told.resources.subscribe
    assert told.prompts is None
    assert told.completions is not None


# --- reading


@every_way
async def test_content_is_text_json_or_bytes(way: Way) -> None:
    async with way(build_server(TRIPS)) as client:
        [text] = (await client.read_resource("trips://today")).contents
        [made] = (await client.read_resource("trips://Oslo/3")).contents
        [image] = (await client.read_resource("trips://map.png")).contents

    assert isinstance(text, types.TextResourceContents)
    assert (text.text, text.mime_type, text.uri) == ("# Today", "text/markdown", "trips://today")
    assert isinstance(made, types.TextResourceContents)
    assert (made.text, made.mime_type) == ('{"city": "Oslo", "day": 3}', "application/json")
    assert isinstance(image, types.BlobResourceContents)
    assert (base64.b64decode(image.blob), image.mime_type) == (_PNG, "image/png")
    assert image.meta == {"ui": {"prefersBorder": True}}


@every_way
async def test_a_prompt_has_its_messages_with_arguments_of_their_types(way: Way) -> None:
    async with way(build_server(TRIPS)) as client:
        result = await client.get_prompt("plan", {"city": "Oslo", "days": "2"})

    assert result.description == "Plan a trip."
    assert [(one.role, one.content.type) for one in result.messages] == [
        ("assistant", "text"),
        ("user", "text"),
        ("user", "image"),
    ]
    assert isinstance(result.messages[1].content, types.TextContent)
    assert result.messages[1].content.text == "3 days in Oslo"


async def test_what_is_not_there_is_the_error_of_its_generation() -> None:
    server = build_server(TRIPS)

    for mode, code in ((OLD, -32002), (_NEW.generation, types.INVALID_PARAMS)):
        async with Client(server, mode=mode) as client:
            with pytest.raises(MCPError, match="Resource not found") as refused:
                await client.read_resource("trips://nowhere")
            with pytest.raises(MCPError, match="there is no prompt `fly`"):
                await client.get_prompt("fly")
        assert (refused.value.error.code, refused.value.error.data) == (code, {"uri": "trips://nowhere"})


@every_generation
async def test_arguments_that_do_not_fit_are_named(way: Way) -> None:
    async with way(build_server(TRIPS)) as client:
        with pytest.raises(MCPError, match="day"):
            await client.read_resource("trips://Oslo/tomorrow")
        with pytest.raises(MCPError, match="style"):
            await client.get_prompt("plan", {"city": "Oslo", "style": "rude"})


@every_generation
async def test_a_tool_of_that_name_cannot_be_called(way: Way) -> None:
    async with way(build_server([*TRIPS, ez_tool(name="other")(lambda: "")])) as client:
        with pytest.raises(MCPError, match="today"):
            await client.call_tool("today", {})


# --- every gate


@every_generation
async def test_a_read_is_a_call_in_the_record_of_its_principal(way: Way) -> None:
    watch = RecordingSink()
    server = build_server(TRIPS, ServerOptions(sinks=(watch,), principal="ann"))

    async with way(server) as client:
        await client.read_resource("trips://Oslo/3")
        await client.get_prompt("plan", {"city": "Oslo"})

    assert [(record.tool, record.principal, record.entry) for record in watch.records] == [
        ("report", "ann", "mcp"),
        ("plan", "ann", "mcp"),
    ]
    assert watch.records[0].arguments == {"city": "Oslo", "day": 3}


@every_generation
async def test_hooks_and_limits_hold(way: Way) -> None:
    async def shout(ctx: Any, result: Any, metadata: Any) -> Any:
        return str(result).upper()

    tools = Toolset(TRIPS, post_hooks={"today": shout})
    server = build_server(tools, ServerOptions(limits=CallLimits(per_tool={"today": 1})))

    async with way(server) as client:
        [read] = (await client.read_resource("trips://today")).contents
        with pytest.raises(MCPError, match="this run may make 1 call "):
            await client.read_resource("trips://today")

    assert isinstance(read, types.TextResourceContents)
    assert read.text == "# TODAY"


@every_generation
async def test_one_that_needs_approval_is_suspended_and_read_after_it(way: Way) -> None:
    store, ran = MemoryApprovalStore(), list[str]()

    @resource("secret://plan", requires_approval=True)
    async def secret() -> str:
        """A secret."""
        ran.append("read")
        return "the plan"

    async with way(build_server([secret], ServerOptions(approvals=store))) as client:
        with pytest.raises(MCPError, match="suspended until a person answers") as waits:
            await client.read_resource("secret://plan")
        assert ran == []
        data: Any = waits.value.error.data
        [entry] = await store.list(pending=True)
        assert data["requests"][0]["id"] == entry.request.id
        await store.answer(entry.request.grant("ann"))
        [read] = (await client.read_resource("secret://plan")).contents

    assert isinstance(read, types.TextResourceContents)
    assert (read.text, ran) == ("the plan", ["read"])


@every_generation
async def test_the_client_may_approve_it(way: Way) -> None:
    @prompt(requires_approval=True)
    async def secret() -> str:
        """A secret."""
        return "the plan"

    server = build_server([secret], ServerOptions(approve_by="elicit"))
    async with way(server, elicitation_callback=answering(APPROVE)) as client:
        result = await client.get_prompt("secret")

    assert isinstance(result.messages[0].content, types.TextContent)
    assert result.messages[0].content.text == "the plan"


@every_generation
async def test_a_principal_sees_and_reads_what_its_run_has(way: Way) -> None:
    server = build_server(TRIPS, ServerOptions(run=lambda name: Run(available=frozenset({"today"}))))

    async with way(server) as client:
        listed = await client.list_resources()
        prompts = await client.list_prompts()
        await client.read_resource("trips://today")
        with pytest.raises(MCPError, match="not found"):
            await client.read_resource("trips://map.png")
        with pytest.raises(MCPError, match="no prompt"):
            await client.get_prompt("plan", {"city": "x"})

    assert [one.uri for one in listed.resources] == ["trips://today"]
    assert prompts.prompts == []


@every_generation
async def test_a_resource_and_a_prompt_ask_the_client(way: Way) -> None:
    @resource("ask://me")
    async def me(ctx: RunContext[Any]) -> str:
        """Who is there."""
        return str((await ctx.elicit("Who?", str)).data)

    @prompt
    async def greet(ctx: RunContext[Any]) -> str:
        """Greet."""
        return f"Greet {(await ctx.elicit('Whom?', str)).data}."

    named = types.ElicitResult(action="accept", content={"value": "bo"})
    async with way(build_server([me, greet]), elicitation_callback=answering(named, named)) as client:
        [read] = (await client.read_resource("ask://me")).contents
        result = await client.get_prompt("greet")

    assert isinstance(read, types.TextResourceContents)
    assert read.text == "bo"
    assert isinstance(result.messages[0].content, types.TextContent)
    assert result.messages[0].content.text == "Greet bo."


@every_generation
async def test_an_error_is_masked_as_that_of_a_tool(way: Way) -> None:
    @resource("bad://one")
    async def bad() -> str:
        """Fail."""
        raise RuntimeError("the password is 1234")

    async with way(build_server([bad], ServerOptions(errors="masked"))) as client:
        with pytest.raises(MCPError) as failed:
            await client.read_resource("bad://one")

    assert "1234" not in failed.value.error.message


@pytest.mark.parametrize("options", [{"code_mode": True, "sandbox": "unsafe_inline"}, {"search": 1}])
async def test_they_are_served_beside_programs_and_search(options: Any) -> None:
    @ez_tool
    def one() -> str:
        """One."""
        return ""

    @ez_tool
    def two() -> str:
        """Two."""
        return ""

    async with Client(build_server([*TRIPS, one, two], ServerOptions(**options))) as client:
        [read] = (await client.read_resource("trips://today")).contents
        tools = {tool.name for tool in (await client.list_tools()).tools}

    assert isinstance(read, types.TextResourceContents)
    assert "today" not in tools


# --- completion


@every_generation
async def test_arguments_and_variables_are_completed(way: Way) -> None:
    async with way(build_server(TRIPS)) as client:
        of_template = await client.complete(
            types.ResourceTemplateReference(uri="trips://{city}/{day}"), {"name": "city", "value": "o"}
        )
        of_prompt = await client.complete(
            types.PromptReference(name="plan"), {"name": "city", "value": "Osl"}, {"style": "long"}
        )
        of_choice = await client.complete(types.PromptReference(name="plan"), {"name": "style", "value": "b"})
        of_none = await client.complete(types.PromptReference(name="plan"), {"name": "days", "value": ""})
        with pytest.raises(MCPError, match="nothing to complete"):
            await client.complete(types.PromptReference(name="fly"), {"name": "x", "value": ""})

    assert of_template.completion.values == ["Oslo", "Orleans"]
    assert of_prompt.completion.values == ["Oslo", "long"]
    assert of_choice.completion.values == ["brief"]
    assert of_none.completion.values == []


async def test_a_completion_is_bounded_and_a_failing_one_says_no_more_than_that() -> None:
    @prompt(complete={"word": lambda typed, given: ["x" * 10_000] * 5_000, "bad": lambda typed, given: 1 / 0})
    def speak(word: str, bad: str) -> str:
        """Speak."""
        return word

    async with Client(build_server([speak])) as client:
        many = (await client.complete(types.PromptReference(name="speak"), {"name": "word", "value": ""})).completion
        with pytest.raises(MCPError, match="the completion failed"):
            await client.complete(types.PromptReference(name="speak"), {"name": "bad", "value": ""})

    assert (len(many.values), len(many.values[0]), many.total, many.has_more) == (100, 1_000, 5_000, True)


# --- changes


def watched() -> Tool[..., Any]:
    @resource("watch://{name}")
    async def watch(name: str) -> str:
        """Something that changes."""
        return name

    return watch


async def subscribe(client: Client, uri: str) -> None:
    asked = types.SubscribeRequest(params=types.SubscribeRequestParams(uri=uri))
    await client.session.send_request(asked, types.EmptyResult)


async def unsubscribe(client: Client, uri: str) -> None:
    asked = types.UnsubscribeRequest(params=types.UnsubscribeRequestParams(uri=uri))
    await client.session.send_request(asked, types.EmptyResult)


async def test_an_older_client_hears_of_what_it_subscribes_to() -> None:
    watch, heard, news = watched(), list[str](), asyncio.Event()

    async def hear(message: Any) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            heard.append(message.params.uri)
            news.set()

    async with Client(build_server([watch]), mode=OLD, message_handler=hear) as client:
        await subscribe(client, "watch://a")
        await subscribe(client, "watch://b")
        await unsubscribe(client, "watch://a")
        resource_changed(watch, name="a")
        resource_changed(watch, name="b")
        await news.wait()
        with pytest.raises(MCPError, match="not found"):
            await subscribe(client, "other://a")

    assert heard == ["watch://b"]


async def test_a_newer_client_hears_of_what_it_listens_for() -> None:
    watch = watched()

    async with (
        _NEW(build_server([watch])) as client,
        client.listen(resource_subscriptions=["watch://a", "other://b"]) as events,
    ):
        await asyncio.to_thread(resource_changed, watch, name="c")
        await asyncio.to_thread(resource_changed, watch, name="a")
        event = await anext(aiter(events))

    assert event == ResourceUpdated("watch://a")


async def test_a_source_is_told_of_the_first_and_the_last_subscription() -> None:
    told = list[tuple[str, str]]()

    class Upstream(Offering):
        """Something elsewhere."""

        def get_offer(self) -> ResourceOffer:
            return ResourceOffer("up://one")

        async def call(self, ctx: RunContext[Any]) -> str:
            return "one"

        async def subscribe(self, uri: str) -> None:
            told.append(("subscribe", uri))

        async def unsubscribe(self, uri: str) -> None:
            told.append(("unsubscribe", uri))

    async with served([Upstream()]) as url, Client(url, mode=OLD) as first, Client(url, mode=OLD) as second:
        for client in (first, second, second):
            await subscribe(client, "up://one")
        await unsubscribe(first, "up://one")
        assert told == [("subscribe", "up://one")]

    assert told == [("subscribe", "up://one"), ("unsubscribe", "up://one")]


async def test_a_client_that_subscribes_to_thousands_is_stopped() -> None:
    server = build_server([watched()])

    async with Client(server, mode=OLD) as client:
        for number in range(1_000):
            await subscribe(client, f"watch://{number}")
        with pytest.raises(MCPError, match="1000 resources at most"):
            await subscribe(client, "watch://more")
        await unsubscribe(client, "watch://1")
        await subscribe(client, "watch://more")
    async with _NEW(server) as client:
        with pytest.raises(MCPError, match="1000 resources at most"):
            async with client.listen(resource_subscriptions=[f"watch://{number}" for number in range(5_000)]):
                pass


# --- apps, and what a third party offers


async def test_a_tool_names_its_page_and_the_server_says_that_it_has_some() -> None:
    @ez_tool(listing={"_meta": {"ui": {"resourceUri": "ui://clock/app.html"}}, "title": "The clock"})
    async def clock() -> str:
        """Say the time."""
        return "noon"

    @resource("ui://clock/app.html", mime_type="text/html;profile=mcp-app", meta={"ui": {"csp": {}}})
    async def page() -> str:
        """The page of the clock."""
        return "<html></html>"

    async with Client(build_server([clock, page])) as client:
        [listed] = (await client.list_tools()).tools
        [read] = (await client.read_resource("ui://clock/app.html")).contents
        told = client.server_capabilities

    assert listed.meta == {"ui": {"resourceUri": "ui://clock/app.html"}}
    assert listed.title == "The clock"
    assert (read.mime_type, read.meta) == ("text/html;profile=mcp-app", {"ui": {"csp": {}}})
    assert "io.modelcontextprotocol/ui" in (told.extensions or {})


async def test_an_offering_says_its_own_arguments() -> None:
    class Upstream(Offering):
        """A prompt elsewhere."""

        name = "elsewhere"

        def get_offer(self) -> PromptOffer:
            return PromptOffer({"title": "Elsewhere", "arguments": [{"name": "x", "required": True}]})

        async def call(self, ctx: RunContext[Any], x: str = "") -> str:
            return x

    async with Client(build_server([Upstream()])) as client:
        [listed] = (await client.list_prompts()).prompts

    assert (listed.title, listed.arguments) == ("Elsewhere", [types.PromptArgument(name="x", required=True)])
