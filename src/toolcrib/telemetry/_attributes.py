"""Names and attributes of spans and measurements, after the GenAI and MCP conventions, or `toolcrib.*`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from opentelemetry.util.types import AttributeValue

from toolcrib.calls import ActivityEvent, CallEvent, cut
from toolcrib.formats import PROVIDERS

OPERATION: Final = "gen_ai.operation.name"
TOOL_NAME: Final = "gen_ai.tool.name"
MODEL: Final = "gen_ai.request.model"
PROVIDER: Final = "gen_ai.provider.name"
AGENT_NAME: Final = "gen_ai.agent.name"
ARGUMENTS: Final = "gen_ai.tool.call.arguments"
RESULT: Final = "gen_ai.tool.call.result"
ERROR_TYPE: Final = "error.type"
OUTCOME: Final = "toolcrib.outcome"
ENTRY: Final = "toolcrib.entry"
SOURCE: Final = "toolcrib.program.source"
OTHER: Final = "_OTHER"  # the conventions' word for a value that would make too many
_MOST = 4096  # characters of one attribute
_SHORT = 200  # of one of many
_IDS = {
    "agent": "toolcrib.agent.run.id",
    "chat": "toolcrib.chat.id",
    "turn": "toolcrib.turn.id",
    "program": "toolcrib.program.id",
}
_OF_REQUESTS = {
    "method": "mcp.method.name",
    "session_id": "mcp.session.id",
    "protocol_version": "mcp.protocol.version",
    "tool": TOOL_NAME,
}
_UNKNOWN = frozenset({"unknown_tool"})


def text_of(value: Any) -> str:
    """Return a value as the text of an attribute, cut when it is long."""
    return cut(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str), _MOST)


def of_call(event: CallEvent) -> dict[str, AttributeValue]:
    """Return the attributes of a call at its begin."""
    attributes: dict[str, AttributeValue] = {
        OPERATION: "execute_tool",
        TOOL_NAME: cut(event.tool, _MOST),
        "gen_ai.tool.call.id": event.call_id,
        "gen_ai.tool.type": "function",
        "toolcrib.run.id": event.run_id,
        ENTRY: event.entry,
    }
    if event.description:
        attributes["gen_ai.tool.description"] = cut(event.description, _MOST)
    return attributes


def of_run(event: ActivityEvent) -> dict[str, AttributeValue]:
    """Return the attributes of a run at its begin."""
    attributes: dict[str, AttributeValue] = {_IDS.get(event.activity, "toolcrib.session.id"): event.activity_id}
    if event.activity in ("agent", "chat"):
        attributes |= _of_model(event.data)
    if event.activity == "agent":
        attributes |= {OPERATION: "invoke_agent", AGENT_NAME: event.name}
        if event.data.get("description"):
            attributes["gen_ai.agent.description"] = text_of(event.data["description"])
    elif event.activity == "turn":
        attributes[TOOL_NAME] = str(event.data.get("tool", event.name))
    elif "sandbox" in event.data:
        attributes["toolcrib.sandbox"] = str(event.data["sandbox"])
    if "run_id" in event.data:
        attributes["toolcrib.run.id"] = str(event.data["run_id"])
    return attributes


def _of_model(data: Mapping[str, Any]) -> dict[str, AttributeValue]:
    attributes: dict[str, AttributeValue] = {OPERATION: "chat"}
    for name, key in (
        ("model", MODEL),
        ("conversation_id", "gen_ai.conversation.id"),
        ("output", "gen_ai.output.type"),
    ):
        if data.get(name):
            attributes[key] = text_of(data[name])
    return attributes | ({PROVIDER: provider_of(data)} if "provider" in data else {})


def provider_of(data: Mapping[str, Any]) -> str:
    """Return a provider's name as the conventions have it; a wire format stands for the provider whose own it is."""
    name = text_of(data["provider"])
    return next((format.provider for title, format in PROVIDERS.items() if title == name), name)


def of_usage(usage: Mapping[str, Any]) -> dict[str, AttributeValue]:
    """Return the tokens and the cost of requests; nothing where no reply said any."""
    if not usage.get("requests") or not (usage["input_tokens"] or usage["output_tokens"]):
        return {}
    attributes: dict[str, AttributeValue] = {
        "gen_ai.usage.input_tokens": usage["input_tokens"],
        "gen_ai.usage.output_tokens": usage["output_tokens"],
    }
    if usage["cached_tokens"]:
        attributes["gen_ai.usage.cache_read.input_tokens"] = usage["cached_tokens"]
    if usage["cache_written_tokens"]:
        attributes["gen_ai.usage.cache_creation.input_tokens"] = usage["cache_written_tokens"]
    if usage["reasoning_tokens"]:
        attributes["gen_ai.usage.reasoning.output_tokens"] = usage["reasoning_tokens"]
    if usage["cost"] is not None:
        attributes["toolcrib.usage.cost"] = float(usage["cost"])
    return attributes


def of_answer(data: Mapping[str, Any]) -> dict[str, AttributeValue]:
    """Return the attributes of a model's reply besides its usage."""
    attributes: dict[str, AttributeValue] = {}
    if data.get("model"):
        attributes["gen_ai.response.model"] = text_of(data["model"])
    if data.get("stop"):
        attributes["gen_ai.response.finish_reasons"] = [text_of(data["stop"])]
    return attributes


def of_request(data: Mapping[str, Any]) -> dict[str, AttributeValue]:
    """Return the attributes of an MCP client's request besides those of the server's own span."""
    return {name: str(data[key]) for key, name in _OF_REQUESTS.items() if data.get(key) is not None}


def span_name(event: CallEvent | ActivityEvent) -> str:
    """Return the name of a span: few different ones, as a name that only a model knows is left out."""
    if isinstance(event, CallEvent):
        tool = tool_of(event)
        return "execute_tool" if tool == OTHER else f"execute_tool {tool}"
    if event.activity == "agent":
        return f"invoke_agent {event.name}"
    if event.activity == "chat":
        return f"chat {event.data.get('model') or ''}".rstrip()
    return f"turn {event.name}" if event.activity == "turn" else event.activity


def tool_of(event: CallEvent) -> str:
    """Return the tool's name, or one name for all that do not exist: a model may make up any."""
    return OTHER if event.data.get("outcome", {}).get("code") in _UNKNOWN else event.tool


def error_type(outcome: Mapping[str, Any]) -> str | None:
    """Return the error type of a failed outcome; None for any other."""
    return str(outcome.get("error_type") or outcome.get("code")) if outcome["kind"] == "failed" else None


def decision(data: Mapping[str, Any], reasons: bool) -> tuple[str, dict[str, AttributeValue]]:
    """Return the name and the attributes of the event for what a hook or a person said.

    Args:
        data: The data of the `decided` event.
        reasons: Whether to include a hook's reason, in which it may quote an argument.
    """
    answer = data.get("approval")
    if answer is None:
        names = ("hook", "decision", *(("reason",) if reasons and data.get("reason") else ()))
        attributes: dict[str, AttributeValue] = {f"toolcrib.decision.{name}": text_of(data[name]) for name in names}
        if data.get("origins"):  # without the values, which are arguments
            attributes["toolcrib.decision.origins"] = [cut(_origin(origin), _SHORT) for origin in data["origins"]]
        return "toolcrib.decision", attributes
    names = {"kind": "answer", "approver": "approver", "at": "at", "request_id": "request.id", "digest": "digest"}
    done: dict[str, AttributeValue] = {"toolcrib.approval.done": True} if answer.get("done") else {}
    return "toolcrib.approval", done | {
        f"toolcrib.approval.{to}": str(answer[key]) for key, to in names.items() if key in answer
    }


def note(data: Mapping[str, Any], texts: bool) -> dict[str, AttributeValue]:
    """Return the attributes of the event for what a tool asks or logs, and for the answer to a question.

    Args:
        data: The data of the event.
        texts: Whether to include the words of questions and log lines.
    """
    attributes: dict[str, AttributeValue]
    if "progress" in data:
        attributes = {f"toolcrib.{key}": float(data[key]) for key in ("progress", "total") if data[key] is not None}
        return attributes | ({"toolcrib.message": text_of(data["message"])} if texts and data["message"] else {})
    names = {"what": "what", "of": "of", "outcome": "outcome", "by": "by", "error": "error", "level": "level"}
    names |= {"text": "text", "page": "page", "data": "line"} if texts else {}
    attributes = {f"toolcrib.asked.{to}": text_of(data[key]) for key, to in names.items() if key in data}
    if "duration_ms" in data:
        attributes["toolcrib.asked.seconds"] = data["duration_ms"] / 1000
    return attributes


def _origin(origin: Mapping[str, str]) -> str:
    """Return where an argument comes from in a line: its path, the kind, and the call that had the value."""
    source = f" {origin['tool']} {origin.get('call_id', '')}".rstrip() if origin.get("tool") else ""
    return f"{origin['path']}: {origin['kind']}{source}"
