"""Files of servers that clients share, with a section of the gateway's own."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.mcp_client import small_server as module
from tests.adapters.mcp_client.servers import called, failed, outcome_of, serving
from tests.adapters.mcp_client.small_server import small_server
from tests.networks import free_port
from toolcrib.adapters.mcp_client import server_statuses
from toolcrib.approvals import ToolPins
from toolcrib.calls import Suspended
from toolcrib.errors import TargetError, ToolConstraintError
from toolcrib.gateway import GatewayOptions, read_gateway, toolset_of_file
from toolcrib.toolsets import Toolset

ENVIRONMENT = {"PYTHON": sys.executable, "NOTES": os.devnull, "HOME_SERVER": str(module.__file__)}

NEAR_SECTIONS = ("Toolcrib", "TOOLCRIB", "toolcrb", "toolcribs", "tool_crib", "tool-crib", "toolkrib")
OPTIONS = sorted({*GatewayOptions.model_fields} - {"name"})


def small(**more: Any) -> dict[str, Any]:
    """Return the entry of the small server."""
    return {"command": "${PYTHON}", "args": ["${env:HOME_SERVER}", "${NOTES:-none}"], **more}


def written(tmp_path: Path, servers: dict[str, Any], name: str = "mcp.json", key: str = "mcpServers") -> Path:
    path = tmp_path / name
    path.write_text(json.dumps({key: servers}), "utf-8")
    return path


def read(tmp_path: Path, servers: dict[str, Any], **environment: str) -> Toolset:
    return toolset_of_file(written(tmp_path, servers), {**ENVIRONMENT, **environment})


async def test_a_file_of_several_servers_is_one_toolset_with_the_gates_of_each(tmp_path: Path) -> None:
    section = {
        "prefix": "n_",
        "tools": ["add", "facts", "fail", "wait"],
        "resources": False,
        "approval": "unless_read_only",
        "descriptions": {"add": "Sum."},
        "limits": {"timeout": 30.0, "max_result_chars": 5},
    }
    servers = {
        "north": small(toolcrib=section),
        "south-1": small(),
        "off": {"command": "nothing", "disabled": True},
        "dead": {"command": "/nonexistent"},
    }
    tools = read(tmp_path, servers)

    async with tools.open() as opened:
        names = opened.names()
        added = await called(opened, "n_add", a=1, b=2)
        held = await outcome_of(opened, "n_facts")
        also = await called(opened, "south-1_add", a=3, b=4)
        states = [(status.server, status.state) for status in server_statuses(tools)]
        entry = opened["n_add"]

    assert names[:4] == ["n_add", "n_fail", "n_facts", "n_wait"]
    assert "south-1_read_today" in names
    assert (added, also) == ({"result": 3}, {"result": 7})
    assert isinstance(held, Suspended)
    assert states == [("north", "up"), ("south-1", "up"), ("dead", "down")]
    assert (entry.description, entry.max_result_chars) == ("Sum.", 5)


async def test_a_call_of_a_tool_that_is_not_there_is_told_which_servers_are_down(tmp_path: Path) -> None:
    servers = {"calc": {"command": "/nonexistent"}, "notes": {"command": "${PYTHON}", "cwd": "gone"}, "small": small()}

    async with read(tmp_path, servers).open() as opened:
        outcome = await outcome_of(opened, "calc_add", a=1)
    async with read(tmp_path, {"small": small()}).open() as opened:
        other = await outcome_of(opened, "calc_add", a=1)

    assert outcome.message.startswith("there is no tool `calc_add`. ")
    assert outcome.message.endswith(" Without their tools, as they are down: `calc`, `notes`.")
    assert "down" not in other.message


async def test_a_server_whose_folder_is_not_there_is_told_by_its_path(tmp_path: Path) -> None:
    tools = read(tmp_path, {"notes": {"command": "${PYTHON}", "cwd": "gone"}})

    async with tools.open():
        [status] = server_statuses(tools)

    assert "PosixPath" not in str(status)
    assert str(tmp_path / "gone") in str(status)


async def test_pins_of_a_server_are_kept_beside_the_file(tmp_path: Path) -> None:
    async with read(tmp_path, {"small": small(toolcrib={"pins": "pins.db", "trusted": True})}).open() as opened:
        effect = opened["add"].tool.options.effect

    assert await ToolPins(tmp_path / "pins.db").servers() == ("small",)
    assert effect == "none"


async def test_pins_are_kept_unless_the_file_says_no(tmp_path: Path) -> None:
    for said in ({}, {"pins": False}):
        folder = tmp_path / str(len(said))
        folder.mkdir()
        async with read(folder, {"small": small(toolcrib=said)}).open():
            pass

    assert await ToolPins(tmp_path / "0" / "mcp.pins.db").servers() == ("small",)
    assert not [*(tmp_path / "1").glob("*.db")]


async def test_two_files_of_one_folder_keep_pins_of_their_own(tmp_path: Path) -> None:
    lines = (f"{name} = {json.dumps(value)}" for name, value in small().items())
    toml = tmp_path / "mcp.toml"
    toml.write_text("\n".join(["[mcpServers.two]", *lines]), "utf-8")

    for path in (written(tmp_path, {"one": small()}), toml):
        async with toolset_of_file(path, ENVIRONMENT).open():
            pass

    assert await ToolPins(tmp_path / "mcp.pins.db").servers() == ("one",)
    assert await ToolPins(tmp_path / "mcp.toml.pins.db").servers() == ("two",)


async def test_one_server_alone_keeps_the_names_of_its_tools(tmp_path: Path) -> None:
    async with read(tmp_path, {"small": small()}).open() as opened:
        assert "add" in opened.names()


async def test_an_address_gets_its_headers_and_the_token_of_a_variable(tmp_path: Path) -> None:
    seen: list[dict[str, str]] = []
    server, port = small_server(), free_port()

    app = server.streamable_http_app()

    async def noting(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            seen.append({name.decode(): value.decode() for name, value in scope["headers"]})
        await app(scope, receive, send)

    entry = {
        "type": "http",
        "url": "http://127.0.0.1:${PORT}/mcp",
        "headers": {"X-Team": "${TEAM:-red}"},
        "toolcrib": {"bearer_env": "TOKEN", "required": True},
    }
    async with serving(noting, port), read(tmp_path, {"web": entry}, PORT=str(port), TOKEN="s3cret").open() as opened:
        added = await called(opened, "add", a=1, b=2)

    assert added == {"result": 3}
    assert {(one["x-team"], one["authorization"]) for one in seen} == {("red", "Bearer s3cret")}


@pytest.mark.parametrize("key", ["mcpServers", "servers", "mcp_servers", "context_servers"])
def test_files_of_other_clients_are_read_by_their_key(tmp_path: Path, key: str) -> None:
    path = written(tmp_path, {"one": {"type": "stdio", "command": "x"}}, key=key)

    assert len(server_statuses(toolset_of_file(path))) == 1


def test_a_file_may_have_comments_and_last_commas_as_those_of_vs_code(tmp_path: Path) -> None:
    path = tmp_path / ".vscode" / "mcp.json"
    path.parent.mkdir()
    path.write_text(
        '{ // mine\n "servers": {"a": {"command": "${workspaceFolder}/a, }//b", /* two */ "args": ["x",],},},\n}',
        "utf-8",
    )

    [status] = server_statuses(toolset_of_file(path))

    assert status.server == "a"


@pytest.mark.parametrize("field", ["type", "transport"])
async def test_a_server_with_the_old_transport_is_left_out_beside_others(
    field: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    unset = {"url": "http://${GONE}/sse", "headers": {"X": "${GONE}"}, "toolcrib": {"bearer_env": "GONE"}}
    tools = read(tmp_path, {"old": {**unset, field: "sse"}, "small": small()})

    async with tools.open() as opened:
        value = await called(opened, "small_add", a=1, b=2)

    assert value == {"result": 3}
    assert "the server `old`: `type`: `sse` is the old transport over HTTP" in caplog.text


def test_a_server_with_the_old_transport_that_has_to_be_there_is_an_error(tmp_path: Path) -> None:
    old = {"url": "http://${GONE}/sse", "type": "sse", "toolcrib": {"required": True}}

    with pytest.raises(TargetError, match="`sse` is the old transport"):
        read(tmp_path, {"old": old, "small": small()})


def test_a_file_may_be_toml(tmp_path: Path) -> None:
    path = tmp_path / "mcp.toml"
    path.write_text('[mcpServers.a]\ncommand = "x"\n[mcpServers.a.toolcrib]\napproval = ["pay"]\n', "utf-8")

    assert [status.server for status in server_statuses(toolset_of_file(path))] == ["a"]


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({}, "`command`: it is missing; give it, or a `url`"),
        ({"command": "x", "url": "http://x"}, "`command`: there are a command and an address; leave one out"),
        ({"command": 3}, "`command`: input should be a valid string; got 3"),
        ({"command": "x", "args": ["a", 1]}, "`args.1`: input should be a valid string; got 1"),
        ({"command": "x", "type": "sse"}, "`type`: `sse` is the old transport over HTTP"),
        ({"command": "x", "type": "ftp"}, "`type`: 'ftp' is not a transport; write `stdio` or `http`"),
        ({"url": "ws://x"}, "`url`: it must begin with http:// or https://"),
        (
            {"command": "${GONE}"},
            "`command`: the environment variable GONE is not set; set it, or write ${GONE:-DEFAULT}",
        ),
        (
            {"command": "x", "env": {"A": "${input:api-key}"}},
            "`env.A`: ${input:api-key} is a question that the client asks",
        ),
        ({"command": "x", "envFile": "no.env"}, "`envFile`: no.env cannot be read"),
        (
            {"command": "x", "toolcrib": {"prefx": "a"}},
            "`toolcrib.prefx`: there is no such option. Did you mean `prefix`?",
        ),
        (
            {"command": "x", "toolcrib": {"limits": {"timeot": 1}}},
            "`toolcrib.limits.timeot`: there is no such option. Did you",
        ),
        *(
            ({"command": "x", "toolcrib": {"limits": {name: 0}}}, f"`toolcrib.limits.{name}`: input should be greater")
            for name in ("timeout", "connect_timeout", "max_message", "max_result_chars")
        ),
        (
            {"command": "x", "toolcrib": {"approval": "always"}},
            "`toolcrib.approval`: input should be a valid boolean or a valid list or 'unless_read_only'; got 'always'; "
            "write true",
        ),
        *(
            ({"command": "x", "toolcrib": {"approval": given}}, f"got {given!r}; write {meant}")
            for given, meant in (
                ("never", "false"),
                ("refund", '["refund"]'),
                ("unless_readonly", '"unless_read_only"'),
                ("writes", '"unless_read_only"'),
            )
        ),
        (
            {"command": "x", "toolcrib": {"ask_client": {"forms": True}}},
            "`toolcrib.ask_client`: input should be a valid boolean or a valid list; got {'forms': True}; write [",
        ),
        (
            {"command": "x", "toolcrib": {"ask_client": ["forms", "form"]}},
            "`toolcrib.ask_client.1`: input should be 'forms', 'urls', 'sampling', 'roots' or 'logs'; got 'form'",
        ),
        (
            {"command": "x", "toolcrib": {"approvers": "a.toml"}},
            '`toolcrib.approvers`: it has no effect here; write "toolcrib": {"approvers": "a.toml"} beside the servers',
        ),
        (
            {"command": "x", "tool_names": ["a"]},
            '`tool_names`: it has no effect here; write "toolcrib": {"tools": ["a"]}',
        ),
        ({"command": "x", "toolcrib": {"bearer_env": "NOTES"}}, "`toolcrib.bearer_env`: it is for an address"),
        (
            {"url": "http://x", "toolcrib": {"bearer_env": "T"}},
            "`toolcrib.bearer_env`: the environment variable T is not",
        ),
        ("x", "the server `git hub`: it must be an object of options, and is 'x'. There are"),
        ({"command": "x", "toolcrib": {"prefix": "a b"}}, "`toolcrib.prefix`: it is 'a b'; give 1 to 128 characters"),
        (
            {"url": "http://x", "toolcrib": {"pins": "false"}},
            "`toolcrib.pins`: a file is named here, and 'false' is not the name of one; write true or false without",
        ),
        ({"command": "x", "toolcrib": [1]}, "`toolcrib`: it must be an object of options, and is [1]. There are 23"),
        (
            {"command": "x", "toolcrib": {"deny": ["a"]}},
            "`toolcrib.deny`: there is no such option. Did you mean `tools`?",
        ),
        ({"command": "x", "toolcrib": {"needsApproval": 1}}, "there is no such option. Did you mean `approval`?"),
        (
            {"command": "x", "toolcrib": {"limits": {"timeout": "30s"}}},
            "`toolcrib.limits.timeout`: input should be a valid number; got '30s'; write 30, in seconds",
        ),
        (
            {"command": "x", "toolcrib": {"credentials": {"oauth": {"scops": []}}}},
            "`toolcrib.credentials.oauth.scops`: there is no such option. Did you mean `scopes`?",
        ),
    ],
)
def test_an_error_names_the_file_the_server_the_field_and_the_mend(tmp_path: Path, entry: Any, problem: str) -> None:
    with pytest.raises(TargetError) as caught:
        read(tmp_path, {"git hub": entry})

    assert str(tmp_path / "mcp.json") in str(caught.value)
    assert "the server `git hub`: " in str(caught.value)
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "it is not JSON: "),
        ('{"mcpServers": {"a": {}, "a": {}}}', "a: sent more than once; send it once"),
        ("[]", "it is not an object; begin with"),
        ("{}", "it has no servers: give them by name under `mcpServers`"),
        ('{"mcpServers": {}}', "it has no server that is switched on"),
        (None, "it cannot be read: No such file"),
    ],
)
def test_so_does_an_error_of_the_file(tmp_path: Path, text: str | None, problem: str) -> None:
    path = tmp_path / "mcp.json"
    if text is not None:
        path.write_text(text, "utf-8")

    with pytest.raises(TargetError, match=r"mcp\.json") as caught:
        toolset_of_file(path)

    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"requires_approval": ["delete"]}, '`requires_approval`: .* write "toolcrib": {"approval": \\["delete"\\]}'),
        ({"requireApproval": True}, '`requireApproval`: .* write "toolcrib": {"approval": true}'),
        ({"disabledTools": ["a"]}, '`disabledTools`: .* write "toolcrib": {"tools": ...} with the tools to take'),
        ({"tools": {"a": {"enabled": False}}}, '`tools`: .* write "toolcrib": {"tools": ...} with the tools to take'),
        ({"require_approval": "always"}, '`require_approval`: .* write "toolcrib": {"approval": true}'),
        *(
            ({name: ["delete"]}, f'`{name}`: .* write "toolcrib": {{"approval": \\["delete"\\]}}')
            for name in ("ask", "confirmTools", "guard")
        ),
        ({"confirm": ["delete"]}, '`confirm`: .* write "toolcrib": {"approval": \\["delete"\\]}'),
        ({"tools": ["search"]}, '`tools`: .* write "toolcrib": {"tools": \\["search"\\]}'),
        ({"only": ["search"]}, '`only`: .* write "toolcrib": {"tools": \\["search"\\]}'),
        ({"deny": ["delete"]}, '`deny`: .* write "toolcrib": {"tools": ...} with the tools to take'),
        ({"limits": {"timeout": 3}}, '`limits`: .* write "toolcrib": {"limits": {"timeout": 3}}'),
        ({"pins": "a.db"}, '`pins`: .* write "toolcrib": {"pins": "a.db"}'),
        ({"bearer_env": "t0ken"}, '`bearer_env`: .* write "toolcrib": {"bearer_env": \\.\\.\\.}'),
        ({"budgets": {}}, '`budgets`: .* write "toolcrib": {"budgets": {}} beside the servers, for all of them'),
        *(({name: {"approval": True}}, f"`{name}`: it is not read; write `toolcrib`") for name in NEAR_SECTIONS),
        *(
            ({name: {"delete": how, "read": other}}, f'`{name}`: .* write "toolcrib": {{"approval": \\["delete"\\]}}')
            for name in ("permissions", "policy", "approval", "requiresApproval")
            for how, other in (("ask", "allow"), (True, False))
        ),
        *(
            ({"tools": {"delete": how, "read": {}}}, '`tools`: .* write "toolcrib": {"approval": \\["delete"\\]}')
            for how in ({"approval": True}, {"requiresApproval": "always"}, {"enabled": True, "confirm": True})
        ),
        ({"approval": 1}, '`approval`: .* write "toolcrib": {"approval": \\.\\.\\.}'),
        ({"gateway": {"approval": True}}, "`gateway`: it is not read, and has `approval`; write that in"),
    ],
)
def test_an_option_beside_its_section_is_an_error(tmp_path: Path, fields: dict[str, Any], said: str) -> None:
    path = written(tmp_path, {"a": {"command": "x", **fields}})

    for read_file in (toolset_of_file, read_gateway):
        with pytest.raises(TargetError, match=said):
            read_file(path, ENVIRONMENT)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("budgets", 'write "toolcrib": {"budgets": \\["all"\\]}'),
        ("approval", 'write in the section "toolcrib" of the server `a`, which .*: {"approval": \\["all"\\]}'),
    ],
)
def test_an_option_beside_the_section_of_the_file_is_an_error(tmp_path: Path, name: str, said: str) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"a": {"command": "x"}}, name: ["all"]}), "utf-8")

    with pytest.raises(TargetError, match=f"`{name}`: .* {said}"):
        toolset_of_file(path)


BY_SOMEONE: list[Any] = [{"by": "user"}, {"refund": "ask", "by": "user"}, [{"tools": ["refund"], "by": "user"}]]


@pytest.mark.parametrize("value", BY_SOMEONE, ids=str)
@pytest.mark.parametrize("place", ["server", "section", "beside"])
def test_who_approves_is_said_in_the_rules_and_no_part_of_it_is_lost(tmp_path: Path, place: str, value: Any) -> None:
    entry, permissions = {"command": "x"}, {"permissions": value}
    parts = {
        "server": {"mcpServers": {"files": entry | permissions}},
        "section": {"mcpServers": {"files": entry}, "toolcrib": permissions},
        "beside": {"mcpServers": {"files": entry}, **permissions},
    }
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps(parts[place]), "utf-8")

    with pytest.raises(
        TargetError, match=r'\{"approval": \.\.\.\}.* Who may approve is declared .*\{"approvers": "'
    ) as told:
        read_gateway(path, ENVIRONMENT)

    assert "`by`" not in str(told.value)


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        *((name, {"defaults": {"approval": True}}, "it is not read; write `toolcrib`") for name in NEAR_SECTIONS),
        *((name, True, f'it has no effect here; write "toolcrib": {{"{name}": ') for name in OPTIONS),
        *((name, {"x": 1}, "it has no effect here; write") for name in ("budget", "approver", "limit", "tokensEnv")),
        ("trusted", False, 'it has no effect here; write "toolcrib": {"defaults": {"trusted": false}}'),
        ("tools", {"files_delete": {"approval": True}}, 'of the server `files`, .*: {"approval": \\["delete"\\]}'),
        ("approval", ["files_delete"], 'of the server `files`, .*: {"approval": \\["delete"\\]}'),
        ("approval", {"files_delete": "ask"}, 'of the server `files`, .*: {"approval": \\["delete"\\]}'),
        ("needsApproval", True, 'write "toolcrib": {"defaults": {"approval": true}}'),
        ("deny", ["files_delete"], 'of the server `files`, .*|{"tools": \\.\\.\\.}'),
        ("settings", {"approval": True}, "it is not read, and has `approval`; write that in the section `toolcrib`"),
        ("options", {"budgets": {}}, "it is not read, and has `budgets`; write that in the section `toolcrib`"),
        ("openApi", {}, "it is not read; write `openapi`"),
    ],
)
def test_what_would_guard_all_servers_is_an_error_beside_them(
    tmp_path: Path, name: str, value: Any, said: str, inside: bool
) -> None:
    path = tmp_path / "mcp.json"
    part = {"servers": {"files": {"command": "x"}}, name: value}
    path.write_text(json.dumps({"mcp": part} if inside else part), "utf-8")

    for read_file in (toolset_of_file, read_gateway):
        with pytest.raises(TargetError, match=f"`{name}`: .*{said}"):
            read_file(path, ENVIRONMENT)


def test_a_section_beside_the_servers_in_the_settings_of_a_client_is_an_error(tmp_path: Path) -> None:
    path = written(tmp_path, {"servers": {"a": {"command": "x"}}, "toolcrib": {"record": True}}, key="mcp")

    with pytest.raises(TargetError, match=r"`mcp\.toolcrib`: it has no effect here; write it beside `mcp`"):
        toolset_of_file(path)


@pytest.mark.parametrize(
    "settings",
    [
        {"$schema": "https://x", "inputs": [{"id": "key", "type": "promptString"}], "sandbox": {"enabled": True}},
        {"globalShortcut": "", "theme": "dark", "scale": 0, "locale": "de", "preferences": {"menuBarEnabled": False}},
        {"numStartups": 3, "projects": {"/x": {"allowedTools": [], "mcpServers": {}}}, "oauthAccount": {"x": "y"}},
        {"telemetry": {"enabled": True}, "tools": {"exclude": ["x"]}, "security": {"auth": {"selectedType": "x"}}},
        {"telemetry": {"metrics": False}, "search": {"regex": True}, "agent": {"default_model": {}}, "vim_mode": True},
        {"approval_policy": "on-request", "sandbox_mode": "read-only", "tools": {"web_search": True}, "model": "gpt-5"},
        {"name": "books", "version": "1.0", "description": "Mine."},
        {"servers": {}, "mcp": {"inputs": []}},
    ],
)
def test_other_settings_of_clients_are_allowed_beside_the_servers(
    tmp_path: Path, settings: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({**settings, "mcpServers": {"a": {"command": "x"}}}), "utf-8")

    assert len(server_statuses(toolset_of_file(path))) == 1
    assert caplog.text == ""


@pytest.mark.parametrize("other", ["servers", "mcp_servers", "context_servers", "mcp"])
def test_servers_under_two_names_are_an_error(tmp_path: Path, other: str) -> None:
    two: Any = {"two": {"command": "x"}}
    path = tmp_path / "mcp.json"
    document = {"mcpServers": {"one": {"command": "x"}}, other: {"servers": two} if other == "mcp" else two}
    path.write_text(json.dumps(document), "utf-8")

    with pytest.raises(TargetError, match=f"it has servers under `mcpServers` and `{other}.*`: put all of them under"):
        toolset_of_file(path)


@pytest.mark.parametrize(
    "fields",
    [{"tools": ["*"]}, {"tools": {"search": {"approval_mode": "prompt"}}}, {"disabledTools": []}, {"trust": True}],
)
def test_fields_of_clients_are_allowed(tmp_path: Path, fields: dict[str, Any]) -> None:
    read(tmp_path, {"a": {"command": "x", "autoApprove": ["all"], "alwaysAllow": ["all"], "timeout": 3, **fields}})


def test_a_field_that_is_not_known_is_named_in_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    read(tmp_path, {"a": {"command": "x", "arg": [], "autoApprove": ["all"]}})

    [record] = caplog.records
    assert "the server `a`: `arg` is not read. Did you mean `args`?" in record.message


async def test_a_file_of_variables_and_those_that_are_passed_on(tmp_path: Path) -> None:
    (tmp_path / "my.env").write_text("# mine\nexport ONE='1'\nTWO=2\n", "utf-8")
    words = ["-c", "import os; raise SystemExit(os.environ['ONE'] + os.environ['TWO'] + os.environ['TOKEN'])"]
    entry = {"command": "${PYTHON}", "args": words, "envFile": "my.env", "toolcrib": {"pass_env": ["TOKEN"]}}
    tools = read(tmp_path, {"a": entry}, TOKEN="s3cret")

    async with tools.open():
        [status] = server_statuses(tools)

    assert status.reason.endswith("12s3cret")


@pytest.mark.parametrize(
    ("place", "entry", "folder"),
    [
        ("mcp.json", {}, "."),
        ("mcp.json", {"cwd": "tools"}, "tools"),
        ("mcp.json", {"cwd": "${workspaceFolder}/tools"}, "tools"),
        (".vscode/mcp.json", {}, "."),
        (".cursor/mcp.json", {"cwd": "tools"}, "tools"),
    ],
)
@pytest.mark.parametrize("command", [["${PYTHON}", "server.py"], ["./server.py"]])
async def test_a_server_is_started_in_the_folder_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, entry: dict[str, Any], folder: str, command: list[str]
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "desk" / "tools").mkdir(parents=True)
    (tmp_path / "desk" / place).parent.mkdir(exist_ok=True)
    program = tmp_path / "desk" / folder / "server.py"
    program.write_text(f"#!{sys.executable}\nimport os\nraise SystemExit('started in ' + os.getcwd())\n", "utf-8")
    program.chmod(0o755)
    entry = {"command": command[0], "args": command[1:], **entry}
    written(tmp_path / "desk", {"a": entry}, place)
    monkeypatch.chdir(tmp_path / "elsewhere")

    tools = toolset_of_file(Path("../desk") / place, ENVIRONMENT)
    async with tools.open():
        [status] = server_statuses(tools)

    assert status.reason.endswith(f"started in {program.parent}")


def test_a_path_of_a_file_that_is_named_by_a_relative_path_is_the_same_in_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, {"small": small()})
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")

    options = read_gateway(Path("../mcp.json"), ENVIRONMENT).options

    assert options.approvals.database == str(tmp_path / "toolcrib.db")


async def test_a_call_that_takes_longer_than_the_limit_ends(tmp_path: Path) -> None:
    tools = read(tmp_path, {"a": small(toolcrib={"limits": {"timeout": 0.2}})})

    async with tools.open() as opened:
        outcome = await failed(opened, "wait")

    assert outcome.code == "server_error"
    assert "the server `a` did not answer within 0.2 s while `wait` ran. Whether it took effect" in outcome.text()


@pytest.mark.parametrize(
    "section",
    [
        {"limits": {"per_tool": {"add": 1}}},
        {"budgets": {"limits": [{"calls": 1, "tools": ["add"]}]}},
        {"budgets": {"limits": [{"calls": 1}], "costs": {"add": {"amount": 1, "currency": "EUR"}}}},
        {"approvers": {"rules": [{"name": "sums", "tools": ["add"]}]}},
        {"scopes": {"add": "sums"}},
    ],
    ids=["per_tool", "limit", "cost", "rule", "scope"],
)
async def test_an_option_of_the_gateway_names_a_tool_with_its_prefix(tmp_path: Path, section: dict[str, Any]) -> None:
    path = written(tmp_path, {"north": small(), "south": small()})
    text = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps({**text, "toolcrib": section}), "utf-8")
    fitting = path.read_text("utf-8").replace('"add"', '"north_add"')

    with pytest.raises(ToolConstraintError, match=r"`add`: .* Did you mean `north_add` or `south_add`"):
        async with toolset_of_file(path, ENVIRONMENT).open():
            pass
    path.write_text(fitting, "utf-8")
    async with toolset_of_file(path, ENVIRONMENT).open() as opened:
        assert "north_add" in opened.names()


async def test_a_pattern_of_the_gateway_that_fits_no_tool_is_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = written(tmp_path, {"north": small()})
    text = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps({**text, "toolcrib": {"scopes": {"south_*": "sums"}}}), "utf-8")

    async with toolset_of_file(path, ENVIRONMENT).open():
        pass

    assert "the gate `scopes` is about `south_*`, which fits no tool here" in caplog.text
