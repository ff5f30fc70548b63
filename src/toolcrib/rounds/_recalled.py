"""Transcripts that a run goes on from, read into its features: the user's words, and results of tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, cast

from pydantic import BaseModel

from toolcrib.calls import ToolCall
from toolcrib.formats import (
    PROVIDERS,
    ProviderFormat,
    ProviderPart,
    WireFormat,
    json_shape,
    provider_parts,
    reply_parts,
)
from toolcrib.hooks import ModelInput
from toolcrib.pipeline import Run
from toolcrib.rounds._transcript import recalled_of
from toolcrib.toolsets import Toolset

_CALLS: Final = frozenset(
    {"functionCall", "function_call", "tool-call", "toolUse", "tool_use"}
)  # parts, by type or key
_RESULTS: Final = frozenset({"function", "tool"})  # roles of messages that have results
_THOUGHTS: Final = frozenset({"reasoning", "thought"})  # types of items
_SAID: Final = frozenset(  # fields of a message, or of a part, that a model fills
    {"audio", "data", "executableCode", "inlineData", "reasoning", "reasoningContent", "reasoning_content"}
    | {
        "reasoning_details",
        "refusal",
        "signature",
        "summary",
        "text",
        "thinking",
        "thinking_blocks",
        "thoughtSignature",
    }
    | {"transcript"}
)


def recall_transcript(
    run: Run, tools: Toolset, transcript: Sequence[Any], format: WireFormat | ProviderFormat = "openai"
) -> None:
    """Read a transcript into the features of a run, such as a `Provenance` policy.

    What the user says in it are the user's words. What a tool of the provider's own brought is a stranger's, and so are
    the descriptions of tools that other servers list. A result is labelled as its tool's, and one of a tool that is not
    among `tools` is untrusted, as is what is attached to a message. What the model says is nobody's; where it stands
    before the user's last words in the first transcript that a run reads, it may be a summary of what is not there, and
    from then on the model does not choose freely. Each item counts
    once, and so do the results of calls that the run makes itself; of a `Transcript` each item is read once, too, as
    long as it stands there.

    Args:
        run: The run.
        tools: The tools that the results may be of.
        transcript: The messages, as for `decode`.
        format: Their wire format.
    """
    if not run.features:
        return
    rules = PROVIDERS[format] if isinstance(format, str) else format
    run.read_input(ModelInput("tools", tools))
    run.read_input(ModelInput("transcript"))
    recalled, has_said = recalled_of(transcript), False
    for item in recalled.rest_for(run.run, transcript):
        shape = json_shape(item)
        words = rules.words_of(shape)
        has_said = has_said or _says_something(shape)
        if words.texts and has_said:
            run.read_input(ModelInput("model"))
        for text in words.texts:
            run.add_user_message(text)
        for text in words.attached:
            attached = ToolCall("attachment", {}, "")
            run.read_input(ModelInput("restored", text, request=attached, key=f"attachment {text}"))
        results = rules.results_of(shape)
        for result in results:
            call = recalled.calls.get(result.call.id or result.call.name, result.call)
            name, key = call.name or result.call.name, f"{result.call.id} {result.call.name} {result.content}"
            asked, entry = ToolCall(name, call.arguments or "{}", result.call.id), tools.entries.get(name)
            restored = ModelInput("restored", result.content, request=asked, entry=entry, key=key, is_text=True)
            run.read_input(replace(restored, is_error=result.is_error))
        is_misplaced = shape.get("role") in _RESULTS and not results
        read_provider_parts(run, {**shape, "role": "result"} if is_misplaced else shape)
        recalled.calls |= {call.id or call.name: call for call in rules.calls_of(shape)}


def count_as_read(run: Run, old: Sequence[Any], new: Sequence[Any]) -> None:
    """Count the items of a transcript as read by a run: they are those of another one, in another format.

    Args:
        run: The run, which has read the other one.
        old: The other one.
        new: The transcript.
    """
    if run.features and recalled_of(old).reader is run.run:
        recalled_of(new).rest_for(run.run, new)


def _says_something(item: Mapping[str, Any]) -> bool:
    """Return whether the model says or thinks something in an item, besides calls."""
    if item.get("type") in _THOUGHTS:
        return True
    is_models = item.get("role") in ("assistant", "model") or item.get("type") == "model_output"
    if not is_models and item.get("kind") != "response":
        return False
    content: Any = item.get("content") or item.get("parts") or ()
    parts: list[Any] = [{"text": content}] if isinstance(content, str) else [*content]
    shapes = [cast("Mapping[str, Any]", part) for part in parts if isinstance(part, Mapping)]
    spoken = (part for part in shapes if _CALLS.isdisjoint((part.get("type"), part.get("part_kind"), *part)))
    return any(map(item.get, _SAID)) or any(any(map(part.get, (*_SAID, "content"))) for part in spoken)


def read_provider_parts(run: Run, item: Mapping[str, Any]) -> None:
    """Read the results of a provider's own tools into a run, in an item that is not the user's.

    Args:
        run: The run.
        item: The item, as JSON shapes.
    """
    _read_parts(run, provider_parts(item))


def read_reply(run: Run, reply: object) -> None:
    """Read the provider's notes in a reply, beside the model's text, into a run with features.

    Args:
        run: The run.
        reply: The reply of the provider's SDK, the same as a dict, or a list of a stream's chunks.
    """
    if run.features:
        shapes = cast("Sequence[object]", reply) if isinstance(reply, list | tuple) else (reply,)
        for shape in shapes:
            if isinstance(shape, Mapping | BaseModel):  # of another framework's reply the items have all of it
                _read_parts(run, reply_parts(json_shape(cast("object", shape))))


def _read_parts(run: Run, parts: Iterable[ProviderPart]) -> None:
    """Read parts into a run; where one does not show all that the model has read, the run has lost it."""
    for part in parts:
        call = ToolCall(part.tool, {}, part.id)
        for text in part.texts:
            run.read_input(ModelInput("restored", text, request=call, key=f"{part.tool} {part.id} {text}"))
        if part.is_hidden:
            run.read_input(ModelInput("restored", request=call, is_lost=True))
