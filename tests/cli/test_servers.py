"""Files of MCP servers as targets, what `inspect` shows of them, and the settings of MCP clients."""

from __future__ import annotations

import asyncio
import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.adapters.mcp_client import small_server as module
from tests.cli.conftest import TOOLS, Command
from toolcrib.approvals import SqliteApprovalStore
from toolcrib.cli._install import CLIENTS
from toolcrib.record import ActivityFilter, sqlite_events
from toolcrib.serving import ServerStates

SMALL = {"command": sys.executable, "args": [str(module.__file__), "notes"]}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder of the test's own, where clients have their settings."""
    folder = tmp_path / "home"
    folder.mkdir()
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(folder))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / ".config"))
    monkeypatch.setenv("APPDATA", str(folder / "AppData"))
    return folder


def written(name: str = "mcp.json", **servers: Any) -> str:
    Path(name).write_text(json.dumps({"mcpServers": servers}), "utf-8")
    return name


# --- a file as the target


def test_a_file_of_servers_is_a_target_as_any_other(toolcrib: Command) -> None:
    target = written(small={**SMALL, "toolcrib": {"approval": ["add"]}})

    listed = toolcrib("list", target, "--json")
    called = toolcrib("call", target, "add", '{"a": 1, "b": 2}', "--approve", "add")

    assert {"name": "add", "marks": ["approval", "#idempotent", "#mcp", "#read_only"]}.items() <= _named(
        json.loads(listed.stdout), "add"
    ).items()
    assert json.loads(called.stdout) == {"result": 3}


def test_a_tool_of_a_server_that_is_denied_is_not_called(toolcrib: Command) -> None:
    called = toolcrib("call", written(small=SMALL), "add", '{"a": 1, "b": 2}', "--deny", "add")

    assert (called.exit_code, called.stdout) == (1, "")
    assert "`add` was denied with --deny add" in called.stderr


def test_a_wrong_file_is_an_error_that_names_server_and_field(toolcrib: Command) -> None:
    done = toolcrib("list", written(small={"comand": "x"}))

    assert done.exit_code == 2
    assert "cannot load tools from `mcp.json`: the server `small`: `command`: it is missing" in done.stderr


async def test_a_file_is_served_with_a_server_that_is_down(tmp_path: Path) -> None:
    target = written(small=SMALL, dead={"command": "/nonexistent"})
    words = ["-m", "toolcrib", "serve", str(tmp_path / target)]

    with (tmp_path / "log").open("w") as log:
        place = stdio_client(StdioServerParameters(command=sys.executable, args=words, cwd=tmp_path), errlog=log)
        async with Client(place) as client:
            names = {tool.name for tool in (await client.list_tools()).tools}
            added = await client.call_tool("small_add", {"a": 1, "b": 2})

    assert "small_facts" in names
    assert added.structured_content == {"result": 3}
    assert "the server `dead` did not start" in (tmp_path / "log").read_text()


@pytest.mark.parametrize("words", [["serve"], ["serve", "--transport", "http"], ["inspect"], ["list"]], ids=" ".join)
def test_a_server_that_has_to_be_there_and_is_not_is_one_message_and_status_1(words: list[str], tmp_path: Path) -> None:
    dead = {"command": sys.executable, "args": ["-c", "raise SystemExit('no licence')"]}
    target = written(small=SMALL, dead={**dead, "toolcrib": {"required": True}})
    command = [sys.executable, "-m", "toolcrib", words[0], target, *words[1:]]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}

    with subprocess.Popen(command, cwd=tmp_path, text=True, **pipes) as process:  # stdin stays open
        assert process.stderr is not None
        said = process.stderr.read()
        status = process.wait()

    message = "the server `dead` did not start: Connection closed. Its last words:\n  no licence\nIt has to be there."
    assert status == 1
    assert said.count("did not start") == said.count(message) == 1
    assert said.endswith("Correct its command or address; with `required` set to false the rest starts without it\n")
    assert "tried again" not in said


# --- inspect


def test_inspect_shows_servers_tools_hints_and_gates(toolcrib: Command) -> None:
    section = {"approval": ["add"], "resources": False, "limits": {"timeout": 5}}
    target = written(small={**SMALL, "toolcrib": {"prefix": "s_", **section}}, dead={"command": "/nonexistent"})

    shown = toolcrib("inspect", target)
    data = json.loads(toolcrib("inspect", target, "--json").stdout)

    assert shown.exit_code == 1
    assert "server small (timeout of a call 5 s): up\nserver dead (timeout of a call 300 s): down: did" in shown.stdout
    assert [server["timeout"] for server in data["servers"]] == [5.0, 300.0]
    assert "s_add(a: int, b: int)" in shown.stdout
    assert "hints: readOnlyHint=true, idempotentHint=true" in shown.stdout
    assert "gates: approval: always, max_retries: 3" in shown.stdout
    add = _named(data["tools"], "s_add")
    assert add["origin"] == "the tool `add` of the MCP server `small`"
    assert add["parameters"]["required"] == ["a", "b"]
    assert "approval" not in _named(data["tools"], "s_facts")["gates"]


def test_inspect_shows_tools_of_python_with_their_schemas(toolcrib: Command, tools: str) -> None:
    shown = toolcrib("inspect", tools, "--schemas")

    assert shown.exit_code == 0
    assert "gates: approval: always" in shown.stdout
    assert 'parameters: {"' in shown.stdout


def test_inspect_shows_what_stands_between_a_call_and_its_tool(toolcrib: Command, tmp_path: Path) -> None:
    (tmp_path / "closing.py").write_text(CLOSING, "utf-8")

    shown = toolcrib("inspect", f"{tmp_path / 'closing.py'}:tools")
    [tool] = json.loads(toolcrib("inspect", f"{tmp_path / 'closing.py'}:tools", "--json").stdout)["tools"]

    assert "    steps:\n         1 validate  the arguments are read\n         2 authorize OfficeHours" in shown.stdout
    assert tool["steps"] == [
        {"stage": "validate", "name": "the arguments are read"},
        {"stage": "authorize", "name": "OfficeHours"},
        {"stage": "approve", "name": "always (approval policy)"},
        {"stage": "execute", "name": "`close` runs"},
        {"stage": "deliver", "name": "mask"},
    ]


CLOSING = """
from toolcrib import Toolset, tool

class OfficeHours:
    stage = "authorize"

    def check(self, call): ...

def mask(call, value):
    return value

@tool(requires_approval=True, register=False)
async def close() -> str:
    return "closed"

tools = Toolset([close]).with_gates(OfficeHours()).with_deliveries(mask)
"""


def _named(tools: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(tool for tool in tools if tool["name"] == name)


# --- settings of clients


@pytest.mark.parametrize("client", sorted(CLIENTS))
def test_a_target_is_installed_in_a_client_and_its_file_is_copied_before(client: str, toolcrib: Command) -> None:
    place, key = CLIENTS[client].user(), CLIENTS[client].key
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(before := json.dumps({"theme": "dark", key: {"other": {"command": "x"}}}), "utf-8")
    target = written("trips.json", small=SMALL)

    tried = toolcrib("install", client, target, "--dry-run")
    untouched = place.read_text("utf-8")
    done = toolcrib("install", client, target)
    again = toolcrib("install", client, target)

    [copy] = place.parent.glob("*.bak")
    settings = json.loads(place.read_text("utf-8"))
    entry = settings[key]["trips"]
    assert (tried.exit_code, done.exit_code, again.exit_code) == (0, 0, 0)
    assert '+    "trips": {' in tried.stdout
    assert untouched == before == copy.read_text("utf-8")
    assert (settings["theme"], settings[key]["other"]) == ("dark", {"command": "x"})
    assert entry["args"][-2:] == ["serve", str(Path(target).resolve())]
    assert Path(entry["command"]).is_absolute()
    assert str(copy) in done.stderr
    assert "has it already" in again.stderr


def test_a_server_of_the_same_name_is_replaced_only_when_asked(toolcrib: Command) -> None:
    target = written("trips.json", small=SMALL)
    Path(".cursor").mkdir()
    place = Path(".cursor/mcp.json")
    place.write_text('{"mcpServers": {"trips": {"command": "x"}}}', "utf-8")

    refused = toolcrib("install", "cursor", target, "--project")
    replaced = toolcrib("install", "cursor", target, "--project", "--replace")

    assert refused.exit_code == 2
    assert "it has another server `trips`; take another name with --name" in refused.stderr
    assert replaced.exit_code == 0
    assert json.loads(place.read_text("utf-8"))["mcpServers"]["trips"]["command"] != "x"


def test_a_file_with_comments_is_left_as_it_is(toolcrib: Command) -> None:
    target = written("trips.json", small=SMALL)
    place = CLIENTS["vscode"].user()
    place.parent.mkdir(parents=True)
    place.write_text(before := '{"servers": {} // mine\n}', "utf-8")

    done = toolcrib("install", "vscode", target)

    assert done.exit_code == 2
    assert "it has comments, which would be lost" in done.stderr
    assert place.read_text("utf-8") == before


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["install", "emacs", "trips.json"], "there is no client 'emacs'. There are"),
        (
            ["install", "claude-desktop", "trips.json", "--project"],
            "claude-desktop has no file for a project; leave it out",
        ),
        (["install", "cursor", "gone.json"], "cannot load tools from `gone.json`: it cannot be read"),
        (["import", "cursor"], "it has no servers to import"),
    ],
)
def test_what_cannot_be_done_is_an_error(words: list[str], problem: str, toolcrib: Command) -> None:
    written("trips.json", small=SMALL)

    done = toolcrib(*words)

    assert done.exit_code == 2
    assert problem in " ".join(done.stderr.replace("│", " ").split())


def test_servers_are_imported_but_for_those_that_were_installed(toolcrib: Command) -> None:
    place = CLIENTS["claude-code"].user()
    theirs = {"small": {**SMALL, "env": {"TOKEN": "s3cret"}}}
    place.write_text(json.dumps({"mcpServers": theirs}), "utf-8")
    toolcrib("install", "claude-code", written("trips.json", small=SMALL))

    tried = toolcrib("import", "claude-code", "--dry-run")
    is_there = Path("mcp.json").exists()
    done = toolcrib("import", "claude-code")
    listed = toolcrib("list", "mcp.json", "--json")

    assert (tried.exit_code, done.exit_code, is_there) == (0, 0, False)
    assert '"small"' in tried.stdout
    assert json.loads(Path("mcp.json").read_text("utf-8")) == {"mcpServers": theirs}
    assert sys.platform == "win32" or stat.S_IMODE(Path("mcp.json").stat().st_mode) == 0o600
    assert _named(json.loads(listed.stdout), "add")


def test_what_was_imported_is_added_to_a_file_that_is_there(toolcrib: Command) -> None:
    place = CLIENTS["vscode"].user()
    place.parent.mkdir(parents=True)
    place.write_text(json.dumps({"servers": {"two": {"type": "stdio", "command": "y"}}}), "utf-8")
    written(one={"command": "x"})

    done = toolcrib("import", "vscode")

    assert done.exit_code == 0
    assert set(json.loads(Path("mcp.json").read_text("utf-8"))["mcpServers"]) == {"one", "two"}
    assert len(list(Path().glob("mcp.json.*.bak"))) == 1


# --- the gateway's own section


@asynccontextmanager
async def client_of(place: Path) -> AsyncIterator[Client]:
    """A client of `toolcrib serve`, with this process's environment."""
    words = ["-m", "toolcrib", "serve", str(place)]
    with (place.parent / "log").open("w") as log:
        started = StdioServerParameters(command=sys.executable, args=words, cwd=place.parents[1], env={**os.environ})
        async with Client(stdio_client(started, errlog=log)) as client:
            yield client


async def test_what_the_file_says_of_the_whole_holds_where_the_command_line_says_nothing(tmp_path: Path) -> None:
    gateway = {
        "name": "desk",
        "instructions": "Ask first.",
        "approvals": {"database": "desk.db", "place": "the console of the desk"},
        "record": True,
        "limits": {"per_tool": 1},
    }
    servers = {
        "loud": {**SMALL, "toolcrib": {"approval": ["facts"]}},
        "quiet": {**SMALL, "toolcrib": {"record": False}},
    }
    place = tmp_path / "elsewhere" / "mcp.json"
    place.parent.mkdir()
    place.write_text(json.dumps({"mcpServers": servers, "toolcrib": gateway}), "utf-8")

    async with client_of(place) as client:
        about = client.server_info.name, client.instructions
        held = await client.call_tool("loud_facts", {})
        added = [await client.call_tool(name, {"a": 1, "b": 2}) for name in ("loud_add", "quiet_add")]
        over = await client.call_tool("loud_add", {"a": 1, "b": 2})

    found = sqlite_events(place.parent / "desk.db").activities(ActivityFilter(sources=("call",)))
    assert about == ("desk", "Ask first.")
    assert "A person answers it in the console of the desk" in str(held.content)
    assert [result.structured_content for result in added] == [{"result": 3}] * 2
    assert over.is_error
    assert {one.name for one in found} == {"loud_facts", "loud_add"}
    assert not (tmp_path / "toolcrib.db").exists()


async def test_a_policy_of_the_file_asks_about_values_of_others(tmp_path: Path) -> None:
    labels = {"facts": {"effect": "none"}, "add": {"effect": "spend"}}
    place = tmp_path / "desk" / "mcp.json"
    place.parent.mkdir()
    servers = {"small": {**SMALL, "toolcrib": {"labels": labels}}}
    place.write_text(json.dumps({"mcpServers": servers, "toolcrib": {"provenance": True}}), "utf-8")

    async with client_of(place) as client:
        read = await client.call_tool("facts", {})
        held = await client.call_tool("add", {"a": 12345, "b": 67890})

    assert not read.is_error
    [asked] = await SqliteApprovalStore(place.parent / "toolcrib.db").list(pending=True)
    assert "`add` is suspended until a person answers" in str(held.content)
    assert "is in nothing that the user wrote" in str(asked.request.reason)


@pytest.mark.parametrize(
    ("words", "target"),
    [
        (["shop.py"], "shop.py"),
        (["shop:buy"], "shop.py:buy"),
        (["../tmp/shop.py:buy", "--wait", "2", "--store"], "shop.py:buy"),
        (["mcp.json", "--approve-by", "store", "--record", "calls.jsonl"], "mcp.json"),
        (["mcp.json#/desk"], "mcp.json#/desk"),
        (["shop.py", "--database", "sqlite:///desk.db"], "shop.py"),
    ],
)
def test_the_lines_of_serve_work_in_any_folder(tmp_path: Path, words: list[str], target: str) -> None:
    folder, elsewhere = tmp_path / "tmp", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    (folder / "shop.py").write_text(TOOLS, "utf-8")
    section = {"endpoints": {"/desk": {"servers": ["small"]}}} if "#" in words[0] else {}
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"small": SMALL}, "toolcrib": section}), "utf-8")

    said = _said_by([sys.executable, "-m", "toolcrib", "serve", *words], folder)
    [lines] = re.findall(r"^\{.*\}$", said, re.MULTILINE)
    [entry] = json.loads(lines)["mcpServers"].values()
    again = _said_by([entry["command"], *entry["args"]], elsewhere)

    database = folder / ("desk.db" if "desk.db" in words[-1] else "toolcrib.db")
    assert again.partition("\n")[2] == said.partition("\n")[2]  # all but the target as it was typed
    assert str(folder / target) in entry["args"]
    assert re.search(rf"answered with: toolcrib approvals list --database (sqlite:///)?{database}\n", said)
    assert list(elsewhere.iterdir()) == []


def _said_by(command: list[str], folder: Path) -> str:
    """Return what a server says on stderr that has no client."""
    done = subprocess.run(command, cwd=folder, text=True, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    return done.stderr


def test_install_leaves_the_approvals_where_the_file_has_them(toolcrib: Command) -> None:
    place = {"approvals": {"database": "desk.db"}}
    Path("desk.json").write_text(json.dumps({"mcpServers": {"small": SMALL}, "toolcrib": place}), "utf-8")

    toolcrib("install", "cursor", "desk.json")
    imported = toolcrib("import", "cursor")

    entry = json.loads(CLIENTS["cursor"].user().read_text("utf-8"))["mcpServers"]["desk"]
    assert entry["args"][-2:] == ["serve", str(Path("desk.json").resolve())]
    assert "it has no servers to import" in imported.stderr  # it knows its own


async def test_the_console_is_told_how_the_servers_are_while_the_gateway_runs(tmp_path: Path) -> None:
    place = tmp_path / "desk" / "mcp.json"
    place.parent.mkdir()
    servers = {"small": {**SMALL, "toolcrib": {"pins": "pins.db"}}, "dead": {"command": "/nonexistent"}}
    gateway = {"name": "desk", "approvals": {"database": "desk.db"}}
    place.write_text(json.dumps({"mcpServers": servers, "toolcrib": gateway}), "utf-8")
    states = ServerStates(place.parent / "desk.db")

    def are_known() -> bool:
        servers = [one for gateway in states.read() for one in gateway["servers"]]
        return [one["state"] for one in servers] == ["up", "down"] and bool(servers[1]["next_try"])

    async with client_of(place):
        async with asyncio.timeout(60):
            while not are_known():  # noqa: ASYNC110 -- another process writes them
                await asyncio.sleep(0.05)
        found = states.read()
    after = states.read()

    small, dead = found[0]["servers"]
    assert found[0]["gateway"].startswith("desk (process ")
    assert (small["state"], dead["state"], small["changed"]) == ("up", "down", [])
    assert small["tools"] > 3
    assert "No such file" in dead["reason"]
    assert after == []
