"""Things of one server that come to one name: none of them stops the rest of the server, or another one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp.server import Server

from tests.adapters.mcp_client.servers import Told, called, outcome_of
from tests.adapters.mcp_client.test_hostile import EVEN, listing
from toolcrib.adapters.mcp_client import connect, pinned_changes
from toolcrib.approvals import MemoryApprovalStore
from toolcrib.calls import Suspended
from toolcrib.gateway import toolset_of_file
from toolcrib.pipeline import Run
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Toolset

Pairs = Sequence[tuple[str, str]]


def having(
    tools: Sequence[str] = ("a",),
    resources: Pairs = (),
    templates: Pairs = (),
    prompts: Sequence[str] = (),
    cursors: Sequence[str | None] = (None,),
) -> Server[Any]:
    """Return a server with these names and URIs; each page of its tools is the same, up to the last cursor."""
    left = [*cursors]

    async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
        listed = [types.Tool(name=name, input_schema={"type": "object"}) for name in tools]
        return types.ListToolsResult(tools=listed, next_cursor=left.pop(0) if len(left) > 1 else left[0])

    async def list_resources(ctx: Any, params: Any) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=[types.Resource(name=name, uri=uri) for name, uri in resources])

    async def list_templates(ctx: Any, params: Any) -> types.ListResourceTemplatesResult:
        listed = [types.ResourceTemplate(name=name, uri_template=uri) for name, uri in templates]
        return types.ListResourceTemplatesResult(resource_templates=listed)

    async def list_prompts(ctx: Any, params: Any) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=[types.Prompt(name=name) for name in prompts])

    async def call_tool(ctx: Any, params: Any) -> types.CallToolResult:
        return types.CallToolResult(content=[types.TextContent(text=params.name)])

    async def read_resource(ctx: Any, params: Any) -> types.ReadResourceResult:
        return types.ReadResourceResult(contents=[types.TextResourceContents(uri=params.uri, text=params.uri)])

    return Server(
        "s",
        on_list_tools=list_tools,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_list_prompts=list_prompts,
        on_call_tool=call_tool,
        on_read_resource=read_resource,
    )


@pytest.mark.parametrize(
    ("server", "names", "line"),
    [
        (having(resources=[("f", "r://1"), ("f", "r://2")]), ["a", "read_f", "read_f_2"], "`read_f_2`"),
        (having(templates=[("f", "r://{a}"), ("f", "q://{a}")]), ["a", "query_f", "query_f_2"], "`query_f_2`"),
        (having(resources=[("f", "r://1"), ("f", "r://1")]), ["a", "read_f"], "resources more than once: `r://1`"),
        (having(prompts=["p", "p"]), ["a", "prompt_s_p"], "prompts more than once: `p`"),
        (having(prompts=["a.b", "a_b"]), ["a", "prompt_s_a_b", "prompt_s_a_b_2"], "`prompt_s_a_b_2`"),
        (having(["a", "a"]), ["a"], "tools more than once: `a`"),
        (having(["get.user", "get_user"]), ["get_user_2", "get_user"], "the tool `get.user`, as the tool `get_user`"),
        (having(["a.b", "a/b", "a_b_2"]), ["a_b", "a_b_3", "a_b_2"], "is `a_b_3`"),
        (having(["\u540d", "\u524d"]), ["_", "__2"], "is `__2`"),
        (having(["read_f"], resources=[("f", "r://1")]), ["read_f", "read_f_2"], "the resource r://1"),
        (having(cursors=["same"]), ["a"], "tools more than once: `a`"),
        (having(cursors=["", None]), ["a"], "tools more than once: `a`"),
        (having(cursors=["1", "2", "3", "3"]), ["a"], "tools more than once: `a`"),
    ],
)
async def test_doubles_of_one_server_are_left_out_or_numbered(
    server: Server[Any], names: list[str], line: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with Toolset([connect(server, name="s"), connect(having(["z"]), name="other")]).open() as tools:
        found = tools.names()

    assert found == [*names, "z"]
    assert line in caplog.text


async def test_a_name_with_a_number_leads_to_what_it_is_of() -> None:
    server = having(["get.user", "get_user"], resources=[("f", "r://1"), ("f", "r://2")])
    async with connect(server).open() as tools:
        told = [await called(tools, name) for name in ("get_user", "get_user_2", "read_f", "read_f_2")]

    assert told == ["get_user", "get.user", "r://1", "r://2"]


async def test_thousands_of_doubles_are_one_line(caplog: pytest.LogCaptureFixture) -> None:
    async with connect(having([chr(0x4E00 + n) for n in range(2_000)]), name="s").open() as tools:
        last = tools.names()[-1]

    assert last == "__2000"
    assert [message.endswith("; and 1994 more.") for message in caplog.messages if "get a number" in message] == [True]


@pytest.mark.parametrize(("chosen", "name"), [("a/b", "a_b_2"), ("a_b_2", "a_b_2"), ("a.b", "a_b"), ("a_b", "a_b")])
async def test_an_option_chooses_one_of_two_by_either_of_its_names(chosen: str, name: str) -> None:
    async with connect(having(["a.b", "a/b"]), tool_names=[chosen]).open() as tools:
        assert (tools.names(), await called(tools, name)) == ([name], "a.b" if name == "a_b" else "a/b")


async def test_an_option_for_a_name_does_not_reach_another_thing_that_comes_to_it() -> None:
    options: Any = {
        "labels": {"get_user": {"source": "trusted"}},
        "descriptions": {"get_user": "Return a user.", "get_user_2": "Another."},
        "return_schemas": {"get_user": {"type": "object"}},
    }
    async with connect(having(["get.user", "get_user"]), **options).open() as tools:
        named, other = tools["get_user"], tools["get_user_2"]

    assert (named.description, other.description) == ("Return a user.", "Another.")
    assert (named.tool.return_schema, other.tool.return_schema) == ({"type": "object"}, None)
    assert named.tool.options.source != other.tool.options.source


async def test_approval_of_a_name_is_for_all_that_come_to_it() -> None:
    async with connect(having(["a.b", "a/b"]), approval=["a_b"]).open() as tools:
        outcomes = [await outcome_of(tools, name) for name in ("a_b", "a_b_2")]

    assert [isinstance(outcome, Suspended) for outcome in outcomes] == [True, True]


async def test_a_standing_grant_for_a_name_with_a_number_holds_for_what_it_was_given_for() -> None:
    store = MemoryApprovalStore()
    uris = [("f", "r://1"), ("f", "r://2")]
    async with connect(having(resources=uris), name="s", approval=True).open() as tools:
        asked = await outcome_of(tools, "read_f_2", run=Run(approvals=store))
        assert isinstance(asked, Suspended)
        await store.answer(asked.request.always("ann"))
    uris[1] = ("f", "r://3")

    async with connect(having(resources=uris), name="s", approval=True).open() as tools:
        other = await outcome_of(tools, "read_f_2", run=Run(approvals=store))

    assert isinstance(other, Suspended)


async def test_a_double_is_no_change_for_pins(tmp_path: Path) -> None:
    double = {**EVEN, "description": "Another."}
    tools = connect(listing(tmp_path, EVEN, double), mode="legacy", pins=tmp_path / "pins.db")

    async with tools.open():
        assert pinned_changes(tools) == []


async def test_doubles_of_a_later_list_do_not_stop_it() -> None:
    listed = ["a"]
    server = having(listed, resources=[("f", "r://1")])

    async def call_tool(ctx: Any, params: Any) -> types.CallToolResult:
        listed.extend(["a", "read_f", "x.y", "x_y"])
        await ctx.session.send_tool_list_changed()
        return types.CallToolResult(content=[])

    server.add_request_handler("tools/call", types.CallToolRequestParams, call_tool)
    told = Told()
    async with connect(server, mode="legacy").open() as tools:
        tools.listen_for_renewal(told)
        await called(tools, "a")
        await told.wait()
        await asyncio.sleep(0)

        assert tools.names() == ["a", "read_f", "x_y_2", "x_y", "read_f_2"]


# --- names of several servers


def clashing(*servers: tuple[Server[Any], str]) -> Toolset:
    """Return the tools of several servers, each with its prefix, as a file of servers has them."""
    made = [
        connect(server, name=f"{at}", prefix=prefix, mode="legacy", name_clash="leave_out")
        for at, (server, prefix) in enumerate(servers, 1)
    ]
    return Toolset(made)


@pytest.mark.parametrize(
    ("prefixes", "owner"),
    [(("git_", "git_hub_"), "2"), (("git_hub_", "git_"), "1"), (("", "git_hub_"), "2"), (("", ""), "1")],
)
async def test_a_name_is_that_of_the_server_whose_prefix_it_has_else_of_the_first(
    prefixes: tuple[str, str], owner: str, caplog: pytest.LogCaptureFixture
) -> None:
    full = "git_hub_x" if "git_hub_" in prefixes else "x"
    servers = [(having([full.removeprefix(prefix), f"of_{at}"]), prefix) for at, prefix in enumerate(prefixes, 1)]

    async with clashing(*servers).open() as tools:
        entry = tools[full]

    assert entry.origin.endswith(f"of the MCP server `{owner}`")
    assert {f"{prefix}of_{at}" for at, prefix in enumerate(prefixes, 1)} < {*tools.names()}
    assert caplog.text.count(" is left out: ") == 1


async def test_a_server_that_takes_the_name_of_another_one_later_gets_none_and_its_other_tools_are_there() -> None:
    listed, own = ["a"], ["x"]
    bad, good = having(listed), having(own)

    async def call_tool(ctx: Any, params: Any) -> types.CallToolResult:
        listed.extend(["hub_x", "b"])
        await ctx.session.send_tool_list_changed()
        return types.CallToolResult(content=[])

    bad.add_request_handler("tools/call", types.CallToolRequestParams, call_tool)
    told = Told()
    async with clashing((bad, "git_"), (good, "git_hub_")).open() as tools:
        tools.listen_for_renewal(told)
        await called(tools, "git_a")
        await told.wait()

        assert tools.names() == ["git_a", "git_b", "git_hub_x"]
        assert await called(tools, "git_hub_x") == "x"


async def test_a_tool_of_the_host_keeps_its_name() -> None:
    @ez_tool
    def own_x() -> str:
        """Do it."""
        return "the host's"

    servers = clashing((having(["x", "y"]), "own_"))
    async with Toolset([servers, own_x]).open() as tools:
        assert (await called(tools, "own_x"), sorted(tools.names())) == ("the host's", ["own_x", "own_y"])


async def test_a_file_whose_servers_have_one_name_opens(tmp_path: Path) -> None:
    servers = {
        name: {"command": words[0], "args": words[1:], "toolcrib": {"prefix": "", "pins": False}}
        for name, words in (("a", listing(tmp_path, EVEN)), ("b", listing(tmp_path, EVEN)))
    }
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))

    async with toolset_of_file(tmp_path / "mcp.json").open() as tools:
        assert await called(tools, "even") == "called even"
