"""Sampling: a server's request to the model of the client that made the call, with its source."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any, Final, cast

import mcp_types as types

from toolcrib.adapters.mcp_client._questions import granted
from toolcrib.calls import ApprovalRequest, cut
from toolcrib.schema import RunContext, Sampled, SampleRequest

SOURCE: Final = "toolcrib/source"
"""The entry in the `_meta` of a request to a model that names the server that made it, and the tool that was called."""

_MOST_TOKENS: Final = 100_000
_SHOWN_CHARS: Final = 2_000  # of a message, to an approver


def sample_request(params: types.CreateMessageRequestParams, server: str, tool: str) -> SampleRequest:
    """Return a request for the client's model, which says where it comes from.

    It asks for no context: to the client that is all of its servers', and this server is to see its own alone.
    """
    shapes = params.model_dump(by_alias=True, mode="json", exclude_none=True)
    shapes.pop("includeContext", None)
    shapes.pop("task", None)
    shapes["maxTokens"] = min(params.max_tokens, _MOST_TOKENS)
    shapes["_meta"] = {SOURCE: {"server": server, "tool": tool}}
    return SampleRequest(shapes)


def sample_result(
    sampled: Sampled, *, has_tools: bool
) -> types.CreateMessageResult | types.CreateMessageResultWithTools:
    """Return what the model answered, as the server gets it."""
    blocks = [dict(block) for block in sampled.content]
    several = has_tools or len(blocks) != 1
    shapes = {
        "role": sampled.role,
        "content": blocks if several else blocks[0],
        "model": sampled.model or "unknown",
        "stopReason": sampled.stop_reason,
    }
    kind = types.CreateMessageResultWithTools if several else types.CreateMessageResult
    return kind.model_validate({name: value for name, value in shapes.items() if value is not None}, by_name=False)


async def is_allowed(request: SampleRequest, server: str, ctx: RunContext[Any], seconds: float) -> bool:
    """Return whether a person lets a server ask the model; they see what it asks, and that it is the server's."""
    params = request.params
    shown: dict[str, Any] = {
        "messages": [_shown(message) for message in params.get("messages", ())],
        "system_prompt": cut(params.get("systemPrompt") or "", _SHOWN_CHARS),
        "max_tokens": params.get("maxTokens"),
        "tools": [tool.get("name") for tool in params.get("tools", ())],
    }
    return await granted(
        ApprovalRequest(
            id=f"ask_{secrets.token_hex(8)}",
            call_id=ctx.call_id,
            tool=ctx.tool_name,
            arguments={name: value for name, value in shown.items() if value},
            digest="",
            reason=f"the server {server} wants your model to answer this, during the call",
            run_id=ctx.run_id,
            principal=None if ctx.run is None else ctx.run.principal,
            asked_by=server,
        ),
        ctx,
        seconds,
    )


def _shown(message: Mapping[str, Any]) -> str:
    content: Any = message.get("content")
    blocks: list[Any] = [*cast("list[Any]", content)] if isinstance(content, list) else [content]
    parts = [cast("dict[str, Any]", block) for block in blocks if isinstance(block, dict)]
    texts = [str(part.get("text", f"[{part.get('type')}]")) for part in parts]
    return cut(f"{message.get('role')}: {' '.join(texts)}", _SHOWN_CHARS)
