"""MCP client: the tools, resources and prompts of any MCP server as a toolset. The extra `mcp`.

The code here translates a server's listing to tools, calls to its requests, and its questions to those for a person. It
has no gate and no retry, and nothing that a server says changes one.
"""

from __future__ import annotations

from toolcrib.errors import MissingExtraError

try:
    import mcp as _mcp
except ModuleNotFoundError as error:
    if error.name != "mcp":
        raise
    raise MissingExtraError("the MCP client", "mcp") from error

from toolcrib.adapters.mcp_client._connect import ServerToolset, connect, server_statuses
from toolcrib.adapters.mcp_client._options import Approval, ConnectOptions, Elicit, Options, Source
from toolcrib.adapters.mcp_client._server_file import read_document, toolset_of_file
from toolcrib.adapters.mcp_client._values import Elicitation, Progress, Prompt, PromptMessage, RemoteTool, ServerStatus

__all__ = [
    "Approval",
    "ConnectOptions",
    "Elicit",
    "Elicitation",
    "Options",
    "Progress",
    "Prompt",
    "PromptMessage",
    "RemoteTool",
    "ServerStatus",
    "ServerToolset",
    "Source",
    "connect",
    "read_document",
    "server_statuses",
    "toolset_of_file",
]

del _mcp
