"""Tools of a toolset in sessions of Claude Code, as an MCP server in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, cast

import mcp_types as types
from claude_agent_sdk import ClaudeAgentOptions, McpSdkServerConfig
from mcp.server import Server

from toolcrib.adapters.claude_agent_sdk._calls import ENTRY, Gates, decision
from toolcrib.adapters.claude_agent_sdk._options import GatedOptions, gated, hooked
from toolcrib.approvals import SuspendedCallStore
from toolcrib.calls import Media, Suspended, ToolCall, new_call_id, render
from toolcrib.errors import explain_options
from toolcrib.pipeline import Run
from toolcrib.record import Sink
from toolcrib.serving.frameworks import FrameworkRuns, FrameworkTools, MediaForms
from toolcrib.toolsets import Toolset, ToolsetLike

_CALL_ID = "claudecode/toolUseId"
"""The key in a request of MCP of the id of the model's call, as Claude Code sends it."""


@explain_options()
def as_tools(
    tools: ToolsetLike,
    options: ClaudeAgentOptions | None = None,
    *,
    name: str = "toolcrib",
    run: Run | Callable[[Mapping[str, Any]], Run] | None = None,
    sinks: Iterable[Sink] = (),
    suspended: SuspendedCallStore | None = None,
) -> GatedOptions:
    """Return options whose sessions have the tools, as `mcp__NAME__TOOL`; every call goes over the pipeline.

    A call that needs approval is deferred, as Claude Code has it: the session ends with `tool_deferred`.
    `approval_requests` says what a person is asked, and `answers` makes the options that it goes on with.

    Args:
        tools: The tools; members that list themselves have to be known: `async with toolset.open() as opened`.
        options: Options of the SDK, or what this or `guard` made of them; those of the SDK's defaults when None.
        name: The name of the MCP server.
        run: The run of the calls, or a function that opens one for each prompt, given what Claude Code gives its hooks
            (`session_id`, `prompt_id`, `cwd`); without it, the run of the tool that the agent runs in, or a new one,
            named like the prompt. The session is the conversation.
        sinks: Where the events of calls go.
        suspended: Where suspended calls are kept; when None, beside the approval store of the run, or in memory.

    Raises:
        ValueError: The MCP servers of the options are in a file, or one has this name.
    """
    options = options or ClaudeAgentOptions()
    servers = options.mcp_servers
    if isinstance(servers, str | Path):
        raise ValueError(
            f"mcp_servers is the file {servers}: give its servers as a dict, so that `{name}` can join them"
        )
    if name in servers:
        raise ValueError(f"there is an MCP server `{name}` already: choose another one, as in name='more_{name}'")
    gates = ToolGates(name, FrameworkTools(tools, FrameworkRuns(ENTRY, run, suspended), sinks), options.resume)
    config = McpSdkServerConfig(type="sdk", name=name, instance=gates.server())
    return gated(
        options,
        gates,
        mcp_servers={**servers, name: config},
        allowed_tools=[*options.allowed_tools, f"mcp__{name}"],
        hooks=hooked(options, PreToolUse=gates.pre_tool_use),
    )


class ToolGates(Gates):
    """The gates of our own tools."""

    def __init__(self, name: str, tools: FrameworkTools, resumed: str | None) -> None:
        super().__init__(tools.runs, tools.pipeline.sinks, resumed)
        self.name, self._prefix, self._tools = name, f"mcp__{name}__", tools

    @property
    def toolset(self) -> Toolset:
        """The tools, with their gates."""
        return self._tools.pipeline.toolset

    def tools_of(self, name: str) -> FrameworkTools | None:
        return self._tools if name.startswith(self._prefix) else None

    def known(self, name: str) -> FrameworkTools | None:
        return self._tools if name in self._tools.entries else None

    def our_name(self, name: str) -> str:
        return name.removeprefix(self._prefix)

    async def passed(self, tools: FrameworkTools, call: ToolCall, run: Run) -> dict[str, Any]:
        return decision("allow")

    def server(self) -> Server[Any]:
        return Server(self.name, on_list_tools=self._list, on_call_tool=self._call)

    async def _list(self, context: Any, params: Any) -> types.ListToolsResult:
        toolset = self._tools.pipeline.toolset
        entries = [toolset.entries[name] for name in toolset.offered()]
        return types.ListToolsResult(
            tools=[
                types.Tool(name=entry.name, description=entry.description, input_schema=entry.parameters)
                for entry in entries
            ]
        )

    async def _call(self, context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        meta = cast("Mapping[str, Any]", params.meta or {})
        call = ToolCall(params.name, params.arguments or {}, str(meta.get(_CALL_ID) or new_call_id()))
        run = self.run_of_call(call.id)
        told = await self.denial_of(self._tools, call, run)
        if told is not None:
            return types.CallToolResult(content=[types.TextContent(text=told)], is_error=True)
        outcome = await self._tools.call(call, run, answer=self.runs.answer_to)
        if isinstance(outcome, Suspended):
            self.note(run.channel.conversation_id or "", outcome.request)
        shown = render(outcome)
        return types.CallToolResult(content=_BLOCKS.contents(shown), is_error=shown.is_error)


def _link(media: Media) -> types.ResourceLink:
    return types.ResourceLink(uri=media.url or "", name=media.name or media.url or "", mime_type=media.mime_type)


def _resource(media: Media) -> types.EmbeddedResource:
    uri = f"toolcrib://result/{media.name}"
    resource = types.BlobResourceContents(uri=uri, mime_type=media.mime_type, blob=media.base64)
    return types.EmbeddedResource(resource=resource)


_BLOCKS = MediaForms(
    text=lambda text: types.TextContent(text=text),
    kinds={
        "image": lambda media: types.ImageContent(data=media.base64, mime_type=media.mime_type),
        "audio": lambda media: types.AudioContent(data=media.base64, mime_type=media.mime_type),
        "": _resource,
    },
    links={"": _link},
)
