"""The command `inspect`: the tools and states of a target's servers, and the gates of each tool."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from typing import Annotated, Any, cast

import typer

from toolcrib._run_sync import run_sync
from toolcrib.cli._find_toolset import open_toolset, tools_of
from toolcrib.cli._formatting import JsonOption, print_json, write
from toolcrib.cli._status import exit_on_error
from toolcrib.pipeline import Pipeline
from toolcrib.toolsets import ToolEntry, Toolset, sources_of

_TARGET = "The tools, as for `list`: of Python, an OpenAPI document, a file of MCP servers (mcp.json), or an address."


def inspect(
    target: Annotated[str, typer.Argument(metavar="TARGET", help=_TARGET, show_default=False)],
    schemas: Annotated[bool, typer.Option("--schemas", help="Show the schemas of input and output, too.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show the servers of TARGET, and each tool with its hints and gates; exit status 1 where a server is down."""
    with exit_on_error():
        data = run_sync(_inspected(tools_of(target)))
    if as_json:
        print_json(data)
    else:
        write("\n".join(_lines(data, schemas)) + "\n")
    if any(server["state"] == "down" for server in data["servers"]):
        raise typer.Exit(1)


async def _inspected(toolset: Toolset) -> dict[str, Any]:
    async with open_toolset(toolset) as bound:
        pipeline = Pipeline(bound)
        tools = [_tool(entry, pipeline) for entry in bound]
        return {"servers": _servers(toolset), "tools": tools}


def _servers(toolset: Toolset) -> list[dict[str, Any]]:
    if not sources_of(toolset):
        return []
    module: Any = importlib.import_module("toolcrib.adapters.mcp_client")  # of an extra, which its error names
    return [
        {"server": status.server, "state": status.state, "reason": status.reason, "timeout": status.timeout}
        for status in module.server_statuses(toolset)
    ]


def _tool(entry: ToolEntry, pipeline: Pipeline) -> dict[str, Any]:
    source = entry.tool.source
    listing = (None if source is None else source.get_listing()) or {}
    policies = ["always" if policy is True else "when its policy says so" for policy in entry.approvals]
    gates = {
        "approval": policies[0] if policies else None,
        "decision_hooks": len(entry.hook_sets),
        "pre_hooks": [step.name for step in entry.pre],
        "post_hooks": [step.name for step in entry.post],
        "timeout": entry.timeout,
        "max_result_chars": entry.max_result_chars,
        "max_retries": entry.max_retries,
        "locked": entry.tool.options.lock is not False,
        "off": entry.off,
    }
    return {
        "name": entry.name,
        "title": listing.get("title"),
        "description": entry.description,
        "origin": entry.origin,
        "hints": listing.get("annotations") or {},
        "tags": sorted(entry.tool.tags),
        "signature": entry.name + entry.tool.signature.removeprefix(entry.tool.name),
        "parameters": listing.get("inputSchema", entry.parameters),
        "returns": listing.get("outputSchema", entry.return_schema),
        "gates": {name: value for name, value in gates.items() if value not in (None, 0, [], False)},
        "steps": [{"stage": stage, "name": name} for stage, name in pipeline.explained_steps(entry.name)],
    }


def _lines(data: dict[str, Any], schemas: bool) -> Iterator[str]:
    for server in data["servers"]:
        reason = f": {server['reason']}" if server["reason"] else ""
        limit = "no timeout" if server["timeout"] is None else f"timeout of a call {server['timeout']:g} s"
        yield f"server {server['server']} ({limit}): {server['state']}{reason}"
    for tool in data["tools"]:
        yield from ("", tool["signature"])
        if tool["description"]:
            yield "    " + tool["description"].strip().replace("\n", "\n    ")
        yield f"    from:  {tool['origin']}"
        hints = [f"{name}={json.dumps(value)}" for name, value in tool["hints"].items()] or tool["tags"]
        if hints:
            yield f"    hints: {', '.join(hints)}"
        yield f"    gates: {', '.join(f'{name}: {_brief(value)}' for name, value in tool['gates'].items())}"
        yield "    steps:"
        for number, step in enumerate(tool["steps"], 1):
            yield f"        {number:>2} {step['stage']:<9} {step['name']}"
        for name in ("parameters", "returns") if schemas else ():
            yield f"    {name}: {json.dumps(tool[name], ensure_ascii=False)}"


def _brief(value: Any) -> str:
    return " ".join(cast("list[str]", value)) if isinstance(value, list) else "yes" if value is True else str(value)
