"""Replies that are read by their type: to the same turn as field by field, or not at all."""

from __future__ import annotations

from copy import deepcopy
from random import Random
from typing import Any

import pytest

from tests.rounds.moves import FRESH
from tests.rounds.replies import FORMATS
from tests.rounds.spoilt import ARGUMENTS, spoilt_reply
from tests.rounds.streams import whole
from toolcrib.calls import ToolCall
from toolcrib.formats import PROVIDERS
from toolcrib.rounds import WireFormat

IDS = {"mistral": tuple(f"abcdefgh{digit}" for digit in range(4))}
TEXTS = ("", "Well.", " ", "NaN", "ö\U0001f600")
THINKING = frozenset({"anthropic", "gemini", "openai", "openai_responses", "ollama"})  # read with their thoughts


def reply_of(format: WireFormat, random: Random, arguments: tuple[str, ...] = ARGUMENTS) -> dict[str, Any]:
    """Return a reply as the provider sends it, made at random."""
    ids = random.sample(IDS.get(format, FRESH), random.randint(0, 3))
    calls = [ToolCall(random.choice(("purge", "look")), random.choice(arguments), id) for id in ids]
    return whole(format, calls, random.choice(TEXTS[:2] if calls else TEXTS), random.random() < 0.3)


KEYS = (
    "error", "type", "object", "index", "status", "role", "name", "namespace", "caller", "toolset_name", "prefix",
    "function_call", "reasoning_content", "citations", "container", "promptFeedback", "finishMessage", "willContinue",
    "partialArgs", "incomplete_details", "thought", "cachePoint", "serviceException", "new_key",
)  # fmt: skip
VALUES: tuple[Any, ...] = (None, "x", "error", 0, 1, True, {}, {"type": "x", "id": "c1", "message": "m"}, [], ["x"])


def with_key(reply: dict[str, Any], random: Random) -> dict[str, Any]:
    """Return a reply with one key more in an object of it, of those that some provider has or of none."""
    made = deepcopy(reply)
    objects, found = [made], list[dict[str, Any]]()
    while objects:
        value: Any = objects.pop()
        found += [value] if isinstance(value, dict) else []
        objects += value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    random.choice(found).setdefault(random.choice(KEYS), deepcopy(random.choice(VALUES)))
    return made


@pytest.mark.parametrize("format", FORMATS)
def test_a_reply_is_read_by_its_type_as_it_is_field_by_field(format: WireFormat) -> None:
    rules, random = PROVIDERS[format], Random(format)

    for _ in range(300):
        reply = reply_of(format, random)
        for _ in range(random.randrange(3)):
            reply = random.choice((spoilt_reply, with_key))(reply, random)
        taken = random.choice(((), FRESH[:1]))
        try:
            by_field = rules.read_fields(deepcopy(reply), taken)
        except TypeError:  # it is not a reply at all
            continue

        by_type = rules.read_well_formed(deepcopy(reply), taken)

        assert by_type in (None, by_field), reply


@pytest.mark.parametrize("id", ["null", "", "\ud800", "unnamed_1", "a" * 200, "call 1"])
@pytest.mark.parametrize("format", FORMATS)
def test_an_odd_id_is_read_by_type_as_it_is_field_by_field(format: WireFormat, id: str) -> None:
    rules, reply = PROVIDERS[format], whole(format, [ToolCall("look", "{}", id)], "", False)

    assert rules.read_well_formed(reply) in (None, rules.read_fields(reply))


@pytest.mark.parametrize("format", FORMATS)
def test_a_reply_as_the_provider_sends_it_is_read_by_its_type(format: WireFormat) -> None:
    rules = PROVIDERS[format]
    calls = [ToolCall("look", '{"path": "/srv/a"}', id) for id in IDS.get(format, FRESH)[:3]]
    replies = [whole(format, calls[:count], text, False) for count in (1, 3) for text in TEXTS[:2]]
    replies += [whole(format, [], "Well.", False), whole(format, calls, "", format in THINKING)]

    assert all(rules.read_well_formed(reply) for reply in replies)


@pytest.mark.parametrize("format", FORMATS)
def test_a_transcript_shares_no_message_with_the_reply(format: WireFormat) -> None:
    calls = [ToolCall("look", '{"path": "/srv/a"}', id) for id in IDS.get(format, FRESH)[:2]]
    reply = whole(format, calls, "Well.", False)

    read = PROVIDERS[format].parse(reply)
    before = deepcopy(read.items)
    _clear(reply)

    assert read.items == before


def _clear(value: Any, depth: int = 0) -> None:
    """Empty the objects and lists of a reply, down to the calls."""
    inner: list[Any] = [*value.values()] if isinstance(value, dict) else [*value] if isinstance(value, list) else []
    for part in inner if depth < 6 else ():
        _clear(part, depth + 1)
    if isinstance(value, dict | list):
        value.clear()
