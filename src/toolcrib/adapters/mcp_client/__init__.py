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
    raise MissingExtraError("the Model Context Protocol", "mcp") from error

from toolcrib.adapters.mcp_client._connect import (
    ServerToolset,
    connect,
    pin_stores,
    pinned_changes,
    server_of,
    server_statuses,
)
from toolcrib.adapters.mcp_client._credentials_section import CredentialsOptions
from toolcrib.adapters.mcp_client._gateway_section import GatewayOptions
from toolcrib.adapters.mcp_client._network_section import NetworkOptions
from toolcrib.adapters.mcp_client._options import Approval, ConnectOptions, Elicit, Options, Source, ToolLabels
from toolcrib.adapters.mcp_client._pins import Change
from toolcrib.adapters.mcp_client._server_file import gateway_options, read_document, toolset_of_file
from toolcrib.adapters.mcp_client._values import (
    AskKind,
    Elicitation,
    Prompt,
    PromptMessage,
    RemoteTool,
    ServerStatus,
)
from toolcrib.schema import Progress

__all__ = [
    "Approval",
    "AskKind",
    "Change",
    "ConnectOptions",
    "CredentialsOptions",
    "Elicit",
    "Elicitation",
    "GatewayOptions",
    "NetworkOptions",
    "Options",
    "Progress",
    "Prompt",
    "PromptMessage",
    "RemoteTool",
    "ServerStatus",
    "ServerToolset",
    "Source",
    "ToolLabels",
    "connect",
    "gateway_options",
    "pin_stores",
    "pinned_changes",
    "read_document",
    "server_of",
    "server_statuses",
    "toolset_of_file",
]

del _mcp
