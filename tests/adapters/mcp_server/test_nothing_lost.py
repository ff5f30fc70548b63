"""What a client gets through a gateway, compared with what it gets from the server itself: each method, both ways."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, get_args

import mcp_types as types
import pytest
from mcp.client.client import Client
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types.methods import CLIENT_REQUESTS, SERVER_REQUESTS

from tests.adapters.mcp_client.servers import outcome_of
from tests.adapters.mcp_server.clients import IN_MEMORY, Way, send, text_of
from tests.adapters.mcp_server.faults import CORRECT, NEWER, Fault, faulty_servers
from tests.adapters.mcp_server.full_server import BLOCKS, PROMPTS, QUESTIONS, RESOURCES, TEMPLATES, TOOLS, full_server
from toolcrib.adapters.mcp_client import connect
from toolcrib.adapters.mcp_server import ServerOptions, build_server
from toolcrib.calls import Failed
from toolcrib.toolsets import Toolset

LOG_LEVEL = {types.LOG_LEVEL_META_KEY: "debug"}
PROMPT = {"type": "ref/prompt", "name": "p"}
TEMPLATE = {"type": "ref/resource", "uri": "test://t/{x}"}
REQUESTS: list[tuple[str, dict[str, Any]]] = [
    *((f"{kind}/list", {}) for kind in ("tools", "resources", "resources/templates", "prompts")),
    *(("tools/call", {"name": tool.name, "arguments": {}}) for tool in TOOLS if tool.name != "ask"),
    *(("resources/read", {"uri": one.uri}) for one in RESOURCES),
    ("resources/read", {"uri": "test://t/5"}),
    ("resources/read", {"uri": "test://t/gone"}),
    ("prompts/get", {"name": "p", "arguments": {"a": "x"}}),
    ("prompts/get", {"name": "bare"}),
    ("completion/complete", {"ref": PROMPT, "argument": {"name": "a", "value": "O"}}),
    ("completion/complete", {"ref": TEMPLATE, "argument": {"name": "x", "value": "O"}}),
]
ELSEWHERE = {
    "initialize": "what a server is: the gateway is another one",
    "server/discover": "likewise",
    "ping": "without content",
    "logging/setLevel": "without content; tests/adapters/mcp_client/test_features.py",
    "resources/subscribe": "without content; test_resources.py",
    "resources/unsubscribe": "likewise",
    "subscriptions/listen": "likewise",
    "tasks/get": "tasks are the gateway's own: test_tasks.py",
}


def gateway() -> Server[Any]:
    tools = connect(full_server(), name="full", ask_client=True, resource_tools=False)
    return build_server(Toolset([tools]), ServerOptions(tasks=None))


def without_its_own(value: Any) -> Any:
    """Return what is on the wire, but for what each server says of itself."""
    match value:
        case dict():
            items = {name: without_its_own(part) for name, part in value.items() if not name.endswith("/serverInfo")}
            return {name: part for name, part in items.items() if (name, part) != ("_meta", {})}
        case list():
            return [without_its_own(part) for part in value]
        case _:
            return value


async def answer(client: Client, method: str, params: Mapping[str, Any]) -> Any:
    """Return the answer to a request as it is on the wire."""
    try:
        return without_its_own(await send(client, method, **params))
    except MCPError as error:
        return without_its_own(error.error.model_dump(by_alias=True, mode="json"))


@pytest.mark.parametrize("way", IN_MEMORY, ids=lambda way: way.title)
@pytest.mark.parametrize(("method", "params"), REQUESTS, ids=lambda value: str(value)[:60])
async def test_an_answer_is_the_server_s_own(way: Way, method: str, params: dict[str, Any]) -> None:
    async with Client(full_server(), mode=way.generation) as client:
        direct = await answer(client, method, params)
    async with way(gateway()) as client:
        behind = await answer(client, method, params)

    assert behind == direct


def freely_structured(value: Any, is_error: bool, schema: Any = None) -> Server[Any]:
    tool = types.Tool(name="count", input_schema={"type": "object"}, output_schema=schema)

    async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[tool])

    async def call_tool(ctx: Any, params: Any) -> types.CallToolResult:
        content: list[Any] = [types.TextContent(text="as said")]
        return types.CallToolResult(content=content, structured_content=value, is_error=is_error)

    return Server("free", on_list_tools=list_tools, on_call_tool=call_tool)


@pytest.mark.parametrize("is_error", [False, True], ids=["done", "failed"])
@pytest.mark.parametrize("value", [[1, {"a": 2}], [], "three", 4, 0, False, {"a": 1}, {}])
async def test_structured_content_without_a_schema_is_the_server_s_own(value: Any, is_error: bool) -> None:
    older, newer = IN_MEMORY
    server = freely_structured(value, is_error)
    async with Client(server, mode=newer.generation) as client:
        direct = await answer(client, "tools/call", {"name": "count"})
    served = build_server(Toolset([connect(server, name="free")]), ServerOptions(tasks=None))
    async with newer(served) as client:
        behind = await answer(client, "tools/call", {"name": "count"})
    async with older(served) as client:
        as_object = await client.call_tool("count", {})

    assert (behind, direct["structuredContent"]) == (direct, value)
    assert as_object.structured_content == (value if isinstance(value, dict) else None)  # all that it may be there


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "array"}, [1, {"a": 2}]),
        ({"type": "integer"}, 3),
        ({"type": "string"}, "three"),
        ({}, [1]),
        ({"properties": {"a": {}}}, {"a": 1}),
        ({"anyOf": [{"type": "object"}, {"type": "array"}]}, {"a": 1}),
        ({"type": ["object", "null"]}, {"a": 1}),
    ],
)
async def test_a_schema_that_is_not_of_objects_is_the_server_s_own_for_newer_clients(schema: Any, value: Any) -> None:
    older, newer = IN_MEMORY
    server = freely_structured(value, is_error=False, schema=schema)
    served = build_server(Toolset([connect(server, name="free")]), ServerOptions(tasks=None))
    requests: list[tuple[str, dict[str, Any]]] = [("tools/list", {}), ("tools/call", {"name": "count"})]

    async with Client(server, mode=newer.generation) as client:
        direct = [await answer(client, method, params) for method, params in requests]
    async with newer(served) as client:
        behind = [await answer(client, method, params) for method, params in requests]
    async with older(served) as client:
        as_object = await client.call_tool("count", {})

    assert behind == direct
    assert as_object.structured_content == (None if schema == {"type": "string"} else {"result": value})


# --- members that the protocol does not know


def with_more(value: Any) -> Any:
    """Return a result with one more member in each of its objects."""
    match value:
        case dict():
            return {**{name: with_more(part) for name, part in value.items()}, "x-more": {}}
        case list():
            return [with_more(part) for part in value]
        case _:
            return value


ASKED: dict[str, Any] = {
    "tools/list": lambda client: client.list_tools(),
    "resources/list": lambda client: client.list_resources(),
    "resources/templates/list": lambda client: client.list_resource_templates(),
    "prompts/list": lambda client: client.list_prompts(),
    "tools/call": lambda client: client.call_tool("pay", {"cents": 1}),
    "resources/read": lambda client: client.read_resource("odd://r"),
    "prompts/get": lambda client: client.get_prompt("p", {"a": "x"}),
}


@pytest.mark.parametrize("way", IN_MEMORY, ids=lambda way: way.title)
@pytest.mark.parametrize("method", ASKED)
async def test_a_member_that_is_unknown_is_there_where_a_client_keeps_it(way: Way, method: str) -> None:
    result = with_more((NEWER if way.is_new else CORRECT)[method])

    def answered(number: Any) -> bytes:
        return json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode()

    async def shown(client: Client) -> Any:
        found = await ASKED[method](client)
        return without_its_own(found.model_dump(by_alias=True, mode="json", exclude_none=True))

    async with faulty_servers() as servers:
        url = servers.url_of(Fault(method, "more members", answered, newer=way.is_new))
        async with Client(url, mode=way.generation, cache=None) as client:
            direct = await shown(client)
        tools = connect(url, name="odd", mode="auto" if way.is_new else "legacy", resource_tools=False)
        async with way(build_server(Toolset([tools]), ServerOptions(tasks=None))) as client:
            behind = await shown(client)

    assert behind == direct
    assert ("x-more" in str(direct)) == method.startswith("tools/")  # in schemas, and in structured content


# --- what comes during a call


class Heard:
    """Answers what a client is asked, and notes all that it is sent during a call."""

    def __init__(self) -> None:
        self.said: list[Any] = []

    def _note(self, value: Any) -> None:
        shown = value.model_dump(by_alias=True, mode="json", exclude_none=True, exclude={"meta"})
        self.said.append({name: part for name, part in shown.items() if name not in PASSED_ON_WITH_ITS_SOURCE})

    async def elicit(self, context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        self._note(params)
        is_page = isinstance(params, types.ElicitRequestURLParams)
        return types.ElicitResult(action="accept", content=None if is_page else {"name": "Ann"})

    async def sample(self, context: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
        self._note(params)
        said = types.TextContent(text="4", annotations=types.Annotations(priority=1.0))
        return types.CreateMessageResult(role="assistant", content=said, model="m", stop_reason="endTurn")

    async def roots(self, context: Any) -> types.ListRootsResult:
        self.said.append("roots")
        return types.ListRootsResult.model_validate({"roots": [{"uri": "file:///srv/data", "name": "data"}]})

    async def log(self, params: types.LoggingMessageNotificationParams) -> None:
        self._note(params)

    async def progress(self, done: float, total: float | None, message: str | None) -> None:
        self.said.append((done, total, message))

    async def during(self, server: Server[Any], way: Way, name: str, arguments: dict[str, Any]) -> Any:
        """Return the result of a call, and what the client was sent meanwhile."""
        asked = {"elicitation_callback": self.elicit, "sampling_callback": self.sample}
        callbacks: Any = {**asked, "list_roots_callback": self.roots, "logging_callback": self.log}
        async with Client(server, mode=way.generation, cache=None, **callbacks) as client:
            meta: Any = LOG_LEVEL if way.is_new else None
            result = await client.call_tool(name, arguments, progress_callback=self.progress, meta=meta)
        return without_its_own(result.model_dump(by_alias=True, mode="json")), self.said


# A gateway says which server asks, in the message and in the name of the logger, and in the `_meta` of a request to a
# model; a page to visit gets an id of the gateway's own.
PASSED_ON_WITH_ITS_SOURCE = {"message", "logger", "elicitationId"}


@pytest.mark.parametrize("way", IN_MEMORY, ids=lambda way: way.title)
@pytest.mark.parametrize(
    ("name", "arguments"), [("steps", {}), ("log", {}), *(("ask", {"what": what}) for what in QUESTIONS)]
)
async def test_what_comes_during_a_call_is_the_server_s_own(way: Way, name: str, arguments: dict[str, Any]) -> None:
    direct = await Heard().during(full_server(), way, name, arguments)
    behind = await Heard().during(gateway(), way, name, arguments)

    assert behind == direct
    assert direct[1]


def test_every_method_of_the_protocol_is_compared() -> None:
    methods = {method for method, _ in CLIENT_REQUESTS} | {"tasks/get"}
    compared = {method for method, _ in REQUESTS}
    asked = {one.method for one in QUESTIONS.values()}
    blocks = {type(one) for one in BLOCKS.values()}

    assert (methods - compared, compared & set(ELSEWHERE)) == (set(ELSEWHERE), set())
    assert {method for method, _ in SERVER_REQUESTS} == asked | {"ping"}
    assert blocks == set(get_args(types.ContentBlock))


@pytest.mark.parametrize(
    ("model", "given"),
    [(types.Tool, TOOLS), (types.Resource, RESOURCES), (types.ResourceTemplate, TEMPLATES), (types.Prompt, PROMPTS)],
)
def test_every_field_of_what_is_listed_is_compared(model: type[Any], given: list[Any]) -> None:
    used = {name for one in given for name in one.model_fields_set}

    assert set(model.model_fields) - used <= {"execution"}  # of tasks


# --- tools for pages alone


@pytest.mark.parametrize("way", IN_MEMORY, ids=lambda way: way.title)
@pytest.mark.parametrize("options", [{}, {"search": 2}])
async def test_a_tool_for_pages_alone_is_listed_and_called_by_clients(way: Way, options: dict[str, Any]) -> None:
    tools = Toolset([connect(full_server(), name="full")])
    async with way(build_server(tools, ServerOptions(**options))) as client:
        listed = [tool.name for tool in (await client.list_tools()).tools]
        result = await client.call_tool("for_apps", {})

    assert "for_apps" in listed
    assert text_of(result) == "app"


async def test_a_tool_for_pages_alone_is_offered_to_no_model() -> None:
    async with connect(full_server(), name="full").open() as tools:
        offered, definitions = tools.offered(), {one.name for one in tools.definitions()}
        outcome = await outcome_of(tools, "for_apps")

    assert ("order" in offered, "for_apps" in offered, "for_apps" in definitions) == (True, False, False)
    assert isinstance(outcome, Failed)
