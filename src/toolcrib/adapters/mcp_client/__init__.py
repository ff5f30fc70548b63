"""MCP client: the tools, resources and prompts of any MCP server as a toolset. The extra `mcp`.

This package translates the lists of a server to tools, calls to requests, and the questions of a server to questions
for a person. It has no gates and no retries, and no text of a server changes a gate.
"""

from __future__ import annotations

from toolcrib._extras import Extra

with Extra("the Model Context Protocol", "mcp", ("anyio", "httpx2", "jsonschema", "mcp", "mcp_types", "referencing")):
    from toolcrib.adapters.mcp_client._connect import (
        ServerToolset,
        connect,
        pin_stores,
        pinned_changes,
        server_of,
        server_statuses,
    )
    from toolcrib.adapters.mcp_client._listing import Change
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
