"""Options of the SDK with gates, and the answers with which a session goes on."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, cast

from claude_agent_sdk import ClaudeAgentOptions, HookMatcher, ResultMessage

from toolcrib.adapters.claude_agent_sdk._calls import Gates
from toolcrib.calls import ApprovalRequest
from toolcrib.errors import ApprovalError
from toolcrib.serving.frameworks import Given, require_given, require_stopped, unknown_call

_LONGEST = 7 * 24 * 3600.0
"""Seconds that a person who is asked while the session runs may take."""


@dataclass
class GatedOptions(ClaudeAgentOptions):
    """Options whose sessions have gates. Made by `as_tools` and `guard`."""

    gates: tuple[Gates, ...] = field(default=(), kw_only=True, repr=False)


def approval_requests(options: GatedOptions, session_id: str) -> list[ApprovalRequest]:
    """Return the requests that a person must answer in a session of this process: its result says `tool_deferred`."""
    require_stopped("it takes the options that `as_tools` or `guard` returned", options, GatedOptions)
    return [request for gates in options.gates for request in gates.waiting(session_id)]


async def answers(options: GatedOptions, session_id: str, *given: Given) -> GatedOptions:
    """Return the options with which a session goes on, in this process or in another one with the same stores.

    Args:
        options: Options as those that the session ran with.
        session_id: The session, as its result names it.
        given: The answers of a person; or a request itself, whose answer the approval store has.

    Raises:
        ApprovalError: An answer is for nothing that waits, or a request was answered before.
    """
    require_stopped("it takes the options that `as_tools` or `guard` returned", options, ClaudeAgentOptions)
    for answer in given:
        require_given(answer)
        if not [gates for gates in options.gates if await gates.answer(session_id, answer)]:
            meant = answer.id if isinstance(answer, ApprovalRequest) else answer.request_id or answer.call_id or ""
            if not options.gates:
                raise ApprovalError(
                    answer.tool, "the options have no gates: give those that `as_tools` or `guard` returned"
                )
            raise unknown_call(answer.tool, options.gates[0].run_of({"session_id": session_id}), meant)
    resumed = replace(options, resume=session_id)
    for gates in options.gates:
        gates.resumed = session_id
        resumed = gates.resuming(resumed)
    return resumed


def record_usage(options: GatedOptions, message: object) -> None:
    """Record the usage of a prompt, from the message that ends it: Claude Code gives its hooks no usage.

    Args:
        options: The options that the session runs with.
        message: Any message that `query` or `ClaudeSDKClient` gives; only a `ResultMessage` says it.
    """
    if isinstance(message, ResultMessage) and message.usage:
        for gates in options.gates:
            gates.record(message)


def gated(options: ClaudeAgentOptions, gates: Gates, **changes: Any) -> GatedOptions:
    """Return options with more gates, and other values of these fields."""
    values: dict[str, Any] = {
        attribute.name: getattr(options, attribute.name) for attribute in fields(ClaudeAgentOptions)
    }
    others = options.gates if isinstance(options, GatedOptions) else ()
    return GatedOptions(**{**values, **changes}, gates=(*others, gates))


def hooked(options: ClaudeAgentOptions, **more: Any) -> dict[Any, list[HookMatcher]]:
    """Return the hooks of options with one more callback for each of these events; one that fails blocks the call."""
    hooks: dict[Any, list[HookMatcher]] = {event: [*matchers] for event, matchers in (options.hooks or {}).items()}
    for event, callback in more.items():
        blocks = "block" if event == "PreToolUse" else None
        hooks.setdefault(event, []).append(HookMatcher(hooks=[callback], timeout=_LONGEST, on_failure=blocks))
    return hooks


def asking(options: ClaudeAgentOptions, names: Iterable[str]) -> str:
    """Return the settings of options with a rule that Claude Code asks about each call of these tools."""
    text = str(options.settings or "{}").strip()
    read: Any = json.loads(text if text.startswith("{") else Path(text).read_text("utf-8"))
    settings = cast("dict[str, Any]", read)
    rules = {**settings.get("permissions", {})}
    rules["ask"] = [*dict.fromkeys([*rules.get("ask", []), *names])]
    return json.dumps({**settings, "permissions": rules})
