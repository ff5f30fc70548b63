"""Kinds of stops: why a reply ended, in one vocabulary for all providers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from toolcrib.calls import cut
from toolcrib.formats._json_reading import is_object, text_or_empty

StopKind: TypeAlias = Literal[
    "finished", "tool_calls", "length", "refusal", "content_filter", "malformed", "paused", "error", "cut", "unknown"
]
"""The reason why a reply ended.

- `finished`: the model had answered; `tool_calls`: it waits for results.
- `length`: at a limit of tokens; `refusal`: the model refused; `content_filter`: a filter of the provider's stopped it.
- `malformed`: the provider could not read what the model wrote, a part of the reply has not the form that it has to
  have, or there is no call where one was announced.
- `paused`: the provider waits to be asked to go on; `error`: it failed.
- `cut`: a stream broke off, or a reply was read before its end.
- `unknown`: the reply does not say, or in a word that is in no list.
"""

FINISHED: frozenset[StopKind] = frozenset({"finished", "tool_calls"})
"""The kinds of replies that are whole."""

_ORDER: tuple[StopKind, ...] = (  # of what a reply says of its end the worst counts, which comes last here
    "paused", "unknown", "cut", "length", "malformed", "refusal", "content_filter", "error",
)  # fmt: skip
_COMMON: dict[StopKind, str] = {  # what servers say that speak for models of another provider, or for their own
    "finished": "stop endturn eos eostoken stopsequence complete completed",
    "tool_calls": "toolcalls toolcall tooluse functioncall functioncalls",
    "length": "length maxtokens modellength maxoutputtokens modelcontextwindowexceeded",
    "refusal": "refusal",
    "content_filter": "contentfilter contentfiltered safety recitation guardrailintervened errortoxic",
    "error": "error abort aborted cancelled timeout",
}
_KINDS: dict[str, StopKind] = {word: kind for kind, words in _COMMON.items() for word in words.split()}
_LONGEST = 300

_SENTENCES: dict[StopKind, str] = {
    "length": "the reply was cut at the limit of tokens",
    "refusal": "the reply ended in a refusal",
    "content_filter": "the reply was stopped by a content filter",
    "malformed": "a part of the reply could not be read",
    "paused": "the reply was paused by the provider",
    "error": "the reply ended in an error",
    "cut": "the reply was cut before its end",
    "unknown": "the reply ended for a reason that is not known",
}


@dataclass(slots=True)
class StreamEnd:
    """The end of a stream, in its own words.

    Attributes:
        words: The words for why it ended, in their order.
        errors: The errors that the provider reports.
        misread: The parts of it that could not be read, a few words each.
        problems: The other faults, a sentence each.
    """

    words: list[object] = field(default_factory=list[object])
    errors: list[str] = field(default_factory=list[str])
    misread: list[str] = field(default_factory=list[str])
    problems: list[str] = field(default_factory=list[str])


def ending(kind: StopKind, word: str | None) -> str:
    """Return how a reply ended, in words; empty for one that is whole.

    Args:
        kind: Why it ended.
        word: The provider's word for it, or what else it says.
    """
    if kind == "unknown" and not word:
        return "the reply does not say why it ended"
    return f"{_SENTENCES[kind]} ({word})" if kind in _SENTENCES and word else _SENTENCES.get(kind, "")


def common_kind(word: str) -> StopKind:
    """Return the kind of a word that is not in the list of its format: `STOP`, `tool-calls`, `end_turn`."""
    return _KINDS.get(re.sub("[^a-z]", "", word.lower()), "unknown")


def worst(ends: Iterable[tuple[str, StopKind]]) -> tuple[str, StopKind] | None:
    """Return the word that counts of all that a reply says of its end: the worst, and of equals the last."""
    return max(reversed([*ends]), key=lambda end: _ORDER.index(end[1]) if end[1] in _ORDER else -1, default=None)


def error_in(shape: Mapping[str, Any]) -> str:
    """Return the error that a reply, a chunk or an event brings: the provider's name for it and its words; or empty."""
    error: object = shape.get("error")
    if not error:
        if "error" not in (shape.get("type"), shape.get("object")):
            return ""
        error = shape
    if not is_object(error):
        return cut(str(error), _LONGEST)
    names = [error.get(key) for key in ("type", "status", "code")]
    name = next((str(value) for value in names if isinstance(value, str | int) and value and value != "error"), "")
    return cut(": ".join(filter(None, (name, text_or_empty(error.get("message"))))) or "error", _LONGEST)
