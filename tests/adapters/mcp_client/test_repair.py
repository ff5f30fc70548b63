"""Results of a server with members that cannot be read: what can be read of them is delivered."""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import mcp_types as types
import pytest
from mcp_types.methods import SERVER_RESULTS, parse_server_result

from tests.adapters.mcp_server.faults import faults_of, faulty_servers
from toolcrib.adapters.mcp_client import connect
from toolcrib.adapters.mcp_client._checking import check_tools_one_by_one, unreadable_tools

VERSIONS = ("2025-11-25", "2026-07-28")
REQUIRED = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}  # of newer results
WRONG: tuple[Any, ...] = (None, True, 7, 1.5, "odd", [], [7], {"odd": 7})
TEXT = {"type": "text", "text": "words"}
IMAGE = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
HELD = {"uri": "odd://r", "text": "words"}
EMBEDDED = {"type": "resource", "resource": HELD}
LINK = {"type": "resource_link", "uri": "odd://r", "name": "r"}
ARGUMENT = {"name": "a"}
CAPABLE = {"capabilities": {"tools": {}}}
INTRODUCED = {"protocolVersion": "2025-11-25", **CAPABLE, "serverInfo": {"name": "odd", "version": "1"}}
DISCOVERED = {"supportedVersions": ["2026-07-28"], **CAPABLE}
PARTS: list[tuple[type[Any], str, tuple[Any, ...], dict[str, Any]]] = [  # a type, and its place in a right result
    (types.CallToolResult, "tools/call", (), {"content": [TEXT]}),
    (types.TextContent, "tools/call", ("content", 0), {"content": [TEXT]}),
    (types.ImageContent, "tools/call", ("content", 0), {"content": [IMAGE]}),
    (types.AudioContent, "tools/call", ("content", 0), {"content": [{**IMAGE, "type": "audio"}]}),
    (types.ResourceLink, "tools/call", ("content", 0), {"content": [LINK]}),
    (types.EmbeddedResource, "tools/call", ("content", 0), {"content": [EMBEDDED]}),
    (types.TextResourceContents, "tools/call", ("content", 0, "resource"), {"content": [EMBEDDED]}),
    (types.ReadResourceResult, "resources/read", (), {"contents": [HELD]}),
    (types.TextResourceContents, "resources/read", ("contents", 0), {"contents": [HELD]}),
    (types.BlobResourceContents, "resources/read", ("contents", 0), {"contents": [{"uri": "odd://r", "blob": "AAAA"}]}),
    (types.GetPromptResult, "prompts/get", (), {"messages": [{"role": "assistant", "content": TEXT}]}),
    (types.TextContent, "prompts/get", ("messages", 0, "content"), {"messages": [{"role": "user", "content": TEXT}]}),
    (types.ListToolsResult, "tools/list", (), {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}),
    (types.Tool, "tools/list", ("tools", 0), {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}),
    (types.ListResourcesResult, "resources/list", (), {"resources": [{"uri": "odd://r", "name": "r"}]}),
    (types.Resource, "resources/list", ("resources", 0), {"resources": [{"uri": "odd://r", "name": "r"}]}),
    (
        types.ResourceTemplate,
        "resources/templates/list",
        ("resourceTemplates", 0),
        {"resourceTemplates": [{"uriTemplate": "odd://{x}", "name": "t"}]},
    ),
    (types.Prompt, "prompts/list", ("prompts", 0), {"prompts": [{"name": "p"}]}),
    (
        types.PromptArgument,
        "prompts/list",
        ("prompts", 0, "arguments", 0),
        {"prompts": [{"name": "p", "arguments": [ARGUMENT]}]},
    ),
    (types.InitializeResult, "initialize", (), INTRODUCED),
    (types.ServerCapabilities, "initialize", ("capabilities",), INTRODUCED),
    (types.Implementation, "initialize", ("serverInfo",), INTRODUCED),
    (types.DiscoverResult, "server/discover", (), DISCOVERED),
    (types.ServerCapabilities, "server/discover", ("capabilities",), DISCOVERED),
    (types.Completion, "completion/complete", ("completion",), {"completion": {"values": ["a"]}}),
]


def part_of(result: Any, place: tuple[Any, ...]) -> Any:
    for key in place:
        result = result[key]
    return result


def odd_results(model: type[Any], place: tuple[Any, ...], result: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield results that have one optional member of a wrong type, with what is odd about each."""
    names = [field.alias or name for name, field in model.model_fields.items()]
    for name in names:
        for value in WRONG:
            odd = json.loads(json.dumps({**REQUIRED, **result}))
            if name in part_of(result, place) or (name, value) == ("resultType", "odd"):  # a result of another kind
                continue
            part_of(odd, place)[name] = value
            yield f"{name} = {json.dumps(value)}", odd


class Answering:
    """The dispatcher of a session whose server has one answer."""

    def __init__(self, raw: dict[str, Any]) -> None:
        self._raw = raw

    async def send_raw_request(self, method: str, *rest: Any) -> dict[str, Any]:
        return self._raw


async def read(version: str, method: str, raw: dict[str, Any]) -> dict[str, Any]:
    """Return the result that a session reads, as it is on the wire."""
    session: Any = SimpleNamespace(_dispatcher=Answering(raw), protocol_version=version)
    check_tools_one_by_one(session)
    token = unreadable_tools.set({})
    try:
        sent = await session._dispatcher.send_raw_request(method, {}, {})
    finally:
        unreadable_tools.reset(token)
    result = parse_server_result(method, version, sent)
    return result.model_dump(by_alias=True, mode="json", exclude_none=True)


def has(whole: Any, part: Any) -> bool:
    """Return whether a value has all that another one has."""
    match part:
        case dict():
            return isinstance(whole, dict) and all(
                name in whole and has(whole[name], one) for name, one in part.items()
            )
        case list():
            return isinstance(whole, list) and len(whole) >= len(part) and all(map(has, whole, part))
        case _:
            return whole == part


@pytest.mark.parametrize(
    ("version", "model", "method", "place", "result"),
    [(version, *part) for version in VERSIONS for part in PARTS if (part[1], version) in SERVER_RESULTS],
)
async def test_a_member_of_a_wrong_type_loses_nothing_else(
    version: str, model: type[Any], method: str, place: tuple[Any, ...], result: dict[str, Any]
) -> None:
    odd = [*odd_results(model, place, result)]
    lost = [title for title, sent in odd if not has(await read(version, method, sent), result)]

    assert len(odd) > len(WRONG)
    assert lost == []


@pytest.mark.parametrize("version", VERSIONS)
async def test_what_stands_beside_a_wrong_member_is_kept(version: str) -> None:
    block = {**IMAGE, "_meta": {"a": 1}, "annotations": 7}
    odd = {**REQUIRED, "content": [block, 7], "_meta": [], "structuredContent": {"b": 2}}

    found = await read(version, "tools/call", odd)

    unreadable = {"type": "text", "text": "7"}
    assert found["content"] == [{**IMAGE, "_meta": {"a": 1}}, unreadable]
    assert (found["structuredContent"], "_meta" in found) == ({"b": 2}, False)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("given", "text"), [("words", "words"), ({"paid": True}, '{"paid": true}'), (0, "0")])
async def test_the_old_form_of_a_result_is_its_text(version: str, given: Any, text: str) -> None:
    found = await read(version, "tools/call", {"toolResult": given})

    assert [block["text"] for block in found["content"]] == [text, "[this is the `toolResult` of an old protocol]"]


@pytest.mark.parametrize(
    ("method", "odd", "kept"),
    [
        ("resources/list", {"resources": [7, {"uri": "odd://r", "name": "r"}]}, {"resources": [{"uri": "odd://r"}]}),
        ("prompts/list", {"prompts": [{"name": 7}, {"name": "p"}]}, {"prompts": [{"name": "p"}]}),
        ("resources/read", {"contents": [7, HELD]}, {"contents": [{"uri": "", "text": "7"}, HELD]}),
        ("prompts/get", {"messages": [{"role": 7, "content": "hi"}]}, {"messages": [{"content": {"text": "hi"}}]}),
        ("completion/complete", {"completion": {"values": ["a", 7]}}, {"completion": {"values": ["a"]}}),
    ],
)
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_part_that_cannot_be_read_loses_no_other_one(
    version: str, method: str, odd: dict[str, Any], kept: dict[str, Any]
) -> None:
    assert has(await read(version, method, {**REQUIRED, **odd}), kept)


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_result_that_may_be_an_error_is_one(version: str) -> None:
    found = await read(version, "tools/call", {**REQUIRED, "content": [TEXT], "isError": "maybe"})

    assert (found["isError"], found["content"][0]["text"]) == (True, "words")
    assert "whether the call took effect is unknown" in found["content"][1]["text"]


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_result_without_parts_is_read_as_it_comes(version: str) -> None:
    with pytest.raises(ValueError, match="contents"):
        await read(version, "resources/read", {**REQUIRED, "_meta": []})


@pytest.mark.parametrize("tools", [7, True, [7], {"listChanged": 7}])
async def test_a_capability_that_cannot_be_read_is_one_without_members(tools: Any) -> None:
    found = await read("2025-11-25", "initialize", {**INTRODUCED, "capabilities": {"tools": tools, "prompts": False}})

    assert found["capabilities"] == {"tools": {}}


@pytest.mark.parametrize("given", [{}, {"serverInfo": 7}, {"serverInfo": {"name": 7}}, {"capabilities": 7}])
async def test_a_server_that_does_not_introduce_itself_is_read(given: dict[str, Any]) -> None:
    found = await read("2025-11-25", "initialize", {"protocolVersion": "2025-11-25", **given})

    assert (found["serverInfo"], found["capabilities"]) == ({"name": "", "version": ""}, {})


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_instructions_that_are_no_text_lose_nothing_of_a_server(mode: str) -> None:
    method = "initialize" if mode == "legacy" else "server/discover"
    [fault] = [one for one in faults_of(method, newer=mode == "auto") if one.name == "instructions = 7"]

    async with faulty_servers() as servers, connect(servers.url_of(fault), name="odd", mode=mode).open() as tools:
        assert "pay" in tools.names()
