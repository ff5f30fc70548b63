"""MCP client: the tools, resources and prompts of any MCP server as a toolset. The extra `mcp`.

The code here translates a server's listing to tools, calls to its requests, and its questions to those for a person. It
has no gate and no retry, and nothing that a server says changes one.
"""

from __future__ import annotations

from toolcrib._extras import Extra

with Extra("the Model Context Protocol", "mcp", ("mcp", "mcp_types")):
    from toolcrib.adapters.mcp_client._connect import (
        ServerToolset,
        connect,
        pin_stores,
        pinned_changes,
        server_of,
        server_statuses,
    )
    from toolcrib.adapters.mcp_client._options import (
        DEFAULT_KINDS,
        DEFAULT_TIMEOUT,
        MODES,
        Approval,
        ConnectOptions,
        Elicit,
        Options,
        Source,
        ToolLabels,
    )
    from toolcrib.adapters.mcp_client._pins import Change
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
    "DEFAULT_KINDS",
    "DEFAULT_TIMEOUT",
    "MODES",
    "Approval",
    "AskKind",
    "Change",
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
    "ToolLabels",
    "connect",
    "pin_stores",
    "pinned_changes",
    "server_of",
    "server_statuses",
]
