"""Whatever a provider sends, something is read, and the transcript that it makes with its answers holds."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.formats.replies import NAMES, Asked, pieces, whole
from toolcrib.formats import PROVIDERS, WireFormat, WireReply, WireResult

each_provider = pytest.mark.parametrize("provider", NAMES)
CALLS = (Asked("abcdefgh1"), Asked(None, "see"), Asked("abcdefgh1", "see", {"how": None}))
JUNK = (None, "", "x", 0, 7, True, [], ["x"], [None], {}, {"x": 1}, [[]], [{}])


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path to everything in JSON."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inner:
        yield from paths(part, (*path, key))


def spoilt(value: Any, path: tuple[Any, ...], junk: Any) -> Any:
    made = inner = copy.deepcopy(value)
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = junk
    return made


def holds(provider: WireFormat, reply: WireReply) -> None:
    made = PROVIDERS[provider]
    transcript = [*made.user("Hi."), *reply.items]
    transcript += made.answer([WireResult(call, "fine") for call in reply.calls])
    assert made.check(transcript) == []
    assert all(call.name and call.id for call in reply.calls)


@cache
def whole_and_paths(provider: WireFormat) -> tuple[Any, list[tuple[Any, ...]]]:
    reply = whole(provider, "Well.", CALLS)
    return reply, [path for path in paths(reply) if path]


@cache
def pieces_and_paths(provider: WireFormat) -> tuple[Any, list[tuple[Any, ...]]]:
    chunks = pieces(provider, "Well.", CALLS)
    return chunks, [path for path in paths(chunks) if len(path) > 1]


@each_provider
@settings(max_examples=examples(60), deadline=None)
@given(data=st.data())
def test_a_spoilt_reply_is_read(provider: WireFormat, data: st.DataObject) -> None:
    reply, places = whole_and_paths(provider)
    bad = spoilt(reply, data.draw(st.sampled_from(places)), data.draw(st.sampled_from(JUNK)))

    made = PROVIDERS[provider].parse(bad)

    holds(provider, made)


@each_provider
@settings(max_examples=examples(60), deadline=None)
@given(data=st.data())
def test_a_spoilt_stream_is_read(provider: WireFormat, data: st.DataObject) -> None:
    chunks, places = pieces_and_paths(provider)
    bad = spoilt(chunks, data.draw(st.sampled_from(places)), data.draw(st.sampled_from(JUNK)))

    made = PROVIDERS[provider].gather(bad)

    holds(provider, made)
