"""Kinds of stops: why a reply ended, in one vocabulary for all providers."""

from __future__ import annotations

from typing import Literal, TypeAlias

__all__ = ["FINISHED", "StopKind", "ending"]

StopKind: TypeAlias = Literal[
    "finished", "tool_calls", "length", "refusal", "content_filter", "malformed", "paused", "error", "cut", "unknown"
]
"""Why a reply ended.

- `finished`: the model had answered; `tool_calls`: it waits for results.
- `length`: at a limit of tokens; `refusal`: the model refused; `content_filter`: a filter of the provider's stopped it.
- `malformed`: the provider could not read what the model wrote, or found no call where one was announced.
- `paused`: the provider waits to be asked to go on; `error`: it failed.
- `cut`: a stream broke off, or a reply was read before its end.
- `unknown`: the reply does not say, or in a word that is in no list.
"""

FINISHED: frozenset[StopKind] = frozenset({"finished", "tool_calls"})
"""The kinds of replies that are whole."""

_SENTENCES: dict[StopKind, str] = {
    "length": "the reply was cut at the limit of tokens",
    "refusal": "the reply ended in a refusal",
    "content_filter": "the reply was stopped by a content filter",
    "malformed": "the provider could not read what the model wrote",
    "paused": "the reply was paused by the provider",
    "error": "the reply ended in an error",
    "cut": "the reply was cut before its end",
    "unknown": "the reply ended for a reason that is not known",
}


def ending(kind: StopKind, word: str | None) -> str:
    """Return how a reply ended, in words; empty for one that is whole.

    Args:
        kind: Why it ended.
        word: The provider's word for it, or what else it says.
    """
    if kind == "unknown" and not word:
        return "the reply does not say why it ended"
    return f"{_SENTENCES[kind]} ({word})" if kind in _SENTENCES and word else _SENTENCES.get(kind, "")
