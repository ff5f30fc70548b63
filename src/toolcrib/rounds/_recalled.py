"""Transcripts that a run goes on from, read for its `provenance` policy: the user's words, and results of tools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from toolcrib.calls import ToolCall
from toolcrib.formats import PROVIDERS, ProviderFormat, WireFormat, json_shape
from toolcrib.hooks import ModelInput
from toolcrib.pipeline import Run
from toolcrib.provenance import provenance_of
from toolcrib.rounds._transcript import recalled_of
from toolcrib.toolsets import Toolset

__all__ = ["recall_transcript"]


def recall_transcript(
    run: Run, tools: Toolset, transcript: Sequence[Any], format: WireFormat | ProviderFormat = "openai"
) -> None:
    """Have a run know what a transcript says, where it has a `provenance` policy.

    What the user says in it are the user's words. A result is labelled as its tool's, and one of a tool that is not
    among `tools` is untrusted, as is what is attached to a message. What the model says is nothing. Each item counts
    once, and so do the results of calls that the run makes itself; of a `Transcript` each item is read once, too, as
    long as it stands there.

    Args:
        run: The run.
        tools: The tools that the results may be of.
        transcript: The messages, as for `decode`.
        format: Their wire format.
    """
    provenance = provenance_of(run)
    if provenance is None:
        return
    memory, rules = provenance.memory, PROVIDERS[format] if isinstance(format, str) else format
    recalled = recalled_of(transcript)
    for item in recalled.rest_for(memory, transcript):
        shape = json_shape(item)
        words = rules.words_of(shape)
        for text in words.texts:
            run.hear(text)
        for text in words.attached:
            attached = ToolCall("attachment", {}, "")
            run.read(ModelInput("restored", text, request=attached, key=f"attachment {text}"))
        for result in rules.results_of(shape):
            call = recalled.calls.get(result.call.id or result.call.name, result.call)
            name, key = call.name or result.call.name, f"{result.call.id} {result.call.name} {result.content}"
            if not (memory.expects(result.call.id) and result.call.id):
                asked, entry = ToolCall(name, call.arguments or "{}", result.call.id), tools.entries.get(name)
                given = ModelInput("restored", result.content, request=asked, entry=entry, key=key, is_text=True)
                run.read(replace(given, is_error=result.is_error))
        recalled.calls |= {call.id or call.name: call for call in rules.calls_of(shape)}
