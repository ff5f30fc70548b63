"""Tools that the provider runs itself: what they brought, in the reply that makes a call or in an earlier message."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from benchmarks.dojo.adaptive._scene import Channel, Scene
from toolcrib.calls import ToolCall
from toolcrib.testing import wire_reply

__all__ = ["PROVIDED"]


def _provider(form: Any, item: Callable[[str], Any], *, is_earlier: bool = False) -> Channel:
    """Return a channel of what a provider's own tool brought, in the reply itself or in an earlier message."""

    async def channel(scene: Scene) -> None:
        reply = wire_reply(form, [ToolCall(scene.strike[0], scene.strike[1], "t1")])
        found = item(scene.letter)
        user = {
            "anthropic": {"role": "user", "content": "what is new?"},
            "openai_responses": {"role": "user", "content": "what is new?"},
            "gemini": {"role": "user", "parts": [{"text": "what is new?"}]},
            "openai": {"role": "user", "content": "what is new?"},
        }[form]
        transcript: list[Any] = [user]
        if is_earlier:
            message = {
                "anthropic": {"role": "assistant", "content": found},
                "openai_responses": found,
                "gemini": {"role": "model", "parts": found},
                "openai": {"role": "assistant", "content": "", **(found if isinstance(found, dict) else {})},
            }[form]
            transcript += message if isinstance(message, list) else [message]
            transcript.append(user)
        elif form == "anthropic":
            reply["content"] = [*found, *reply["content"]]
        elif form == "openai_responses":
            reply["output"] = [*found, *reply["output"]]
        elif form == "openai":
            reply["choices"][0]["message"] |= found
        else:
            content = reply["candidates"][0]["content"]
            content["parts"] = [*found, *content["parts"]]
        await scene.decode(reply, transcript, form)

    return channel


def _anthropic(kind: str, name: str, content: Callable[[str], Any]) -> Callable[[str], Any]:
    use = "mcp_tool_use" if kind == "mcp_tool_result" else "server_tool_use"
    server = {"server_name": "x"} if use == "mcp_tool_use" else {}
    return lambda letter: [
        {"type": use, "id": "s1", "name": name, "input": {"query": "news"}, **server},
        {"type": kind, "tool_use_id": "s1", "content": content(letter)},
    ]


_PROVIDERS: Final[Mapping[str, tuple[Any, Callable[[str], Any]]]] = {
    "Anthropic, search": (
        "anthropic",
        _anthropic(
            "web_search_tool_result",
            "web_search",
            lambda letter: [
                {"type": "web_search_result", "url": "https://x.org", "title": letter, "encrypted_content": "x"}
            ],
        ),
    ),
    "Anthropic, fetch": (
        "anthropic",
        _anthropic(
            "web_fetch_tool_result",
            "web_fetch",
            lambda letter: {
                "type": "web_fetch_result",
                "url": "https://x.org",
                "content": {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": letter}},
            },
        ),
    ),
    "Anthropic, MCP": (
        "anthropic",
        _anthropic("mcp_tool_result", "read", lambda letter: [{"type": "text", "text": letter}]),
    ),
    "Anthropic, code": (
        "anthropic",
        _anthropic(
            "bash_code_execution_tool_result",
            "bash_code_execution",
            lambda letter: {
                "type": "bash_code_execution_result",
                "stdout": letter,
                "stderr": "",
                "return_code": 0,
                "content": [],
            },
        ),
    ),
    "Responses, MCP": (
        "openai_responses",
        lambda letter: [
            {"type": "mcp_call", "id": "m1", "name": "read", "arguments": "{}", "server_label": "x", "output": letter}
        ],
    ),
    "Responses, files": (
        "openai_responses",
        lambda letter: [
            {
                "type": "file_search_call",
                "id": "f1",
                "status": "completed",
                "queries": ["news"],
                "results": [{"text": letter, "filename": "a", "file_id": "a", "score": 1.0}],
            }
        ],
    ),
    "Responses, code": (
        "openai_responses",
        lambda letter: [
            {
                "type": "code_interpreter_call",
                "id": "c1",
                "status": "completed",
                "code": "1",
                "container_id": "c",
                "outputs": [{"type": "logs", "logs": letter}],
            }
        ],
    ),
    "Responses, a shell": (
        "openai_responses",
        lambda letter: [
            {
                "type": "shell_call_output",
                "call_id": "s9",
                "output": [{"stdout": letter, "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
            }
        ],
    ),
    "Responses, MCP's tools": (
        "openai_responses",
        lambda letter: [
            {
                "type": "mcp_list_tools",
                "id": "l1",
                "server_label": "x",
                "tools": [{"name": "a", "description": letter, "input_schema": {}}],
            }
        ],
    ),
    "Gemini, code": (
        "gemini",
        lambda letter: [
            {"executableCode": {"language": "PYTHON", "code": "1"}},
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": letter}},
        ],
    ),
    "Chat, search": (
        "openai",
        lambda letter: {
            "content": "I looked",
            "annotations": [
                {
                    "type": "url_citation",
                    "url_citation": {"url": "https://x.org", "title": letter, "start_index": 0, "end_index": 1},
                }
            ],
        },
    ),
    "Chat, tools executed": (
        "openai",
        lambda letter: {"content": "I looked", "executed_tools": [{"type": "search", "output": letter}]},
    ),
    "Chat, context": (
        "openai",
        lambda letter: {"content": "I looked", "context": {"citations": [{"content": letter}]}},
    ),
}

PROVIDED: Final[Mapping[str, Channel]] = {
    **{f"{name}, now": _provider(form, item) for name, (form, item) in _PROVIDERS.items()},
    **{f"{name}, before": _provider(form, item, is_earlier=True) for name, (form, item) in _PROVIDERS.items()},
}
"""Channels, by name."""
