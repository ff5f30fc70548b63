"""Calls of Gemini whose arguments are streamed in pieces."""

from __future__ import annotations

from typing import Any

import pytest
from google.genai import types as gemini

from toolcrib.formats import PROVIDERS, WireReply


def chunk(*calls: dict[str, Any], stop: str | None = None, **more: Any) -> dict[str, Any]:
    parts = [{"functionCall": call, **more} for call in calls]
    candidate = {"index": 0, "content": {"role": "model", "parts": parts}}
    return {"candidates": [{**candidate, "finishReason": stop} if stop else candidate]}


def piece(path: str, value: Any, more: bool = False) -> dict[str, Any]:
    kind = {str: "stringValue", bool: "boolValue", type(None): "nullValue"}.get(type(value), "numberValue")
    return {"jsonPath": path, kind: "NULL_VALUE" if value is None else value, "willContinue": more}


def streamed(*pieces: dict[str, Any], last: Any = None) -> list[dict[str, Any]]:
    """Return a call that begins, goes on with these pieces, and ends."""
    begun = chunk({"name": "look", "id": "a", "willContinue": True}, thoughtSignature="c2ln")
    between = [chunk({"partialArgs": [one], "willContinue": True}) for one in pieces]
    return [begun, *between, chunk({} if last is None else last, stop="STOP")]


def gathered(chunks: list[dict[str, Any]], sdk: bool = False) -> WireReply:
    given = [gemini.GenerateContentResponse.model_validate(one) for one in chunks] if sdk else chunks
    return PROVIDERS["gemini"].gather(given)


@pytest.mark.parametrize("sdk", [False, True])
def test_pieces_come_to_the_arguments(sdk: bool) -> None:
    chunks = streamed(
        piece("$.city", "New ", more=True),
        piece("$.city", "Delhi"),
        piece("$.days", 3.0),
        piece("$.exact", 1.5),
        piece("$.rain", True),
        piece("$.wind", None),
        piece("$.at[0].hour", 7),
        piece("$.at[0]['minute']", 30),
        piece('$.at[1]["hour"]', 8),
    )

    reply = gathered(chunks, sdk)

    [call] = reply.calls
    expected = {"city": "New Delhi", "days": 3, "exact": 1.5, "rain": True, "wind": None}
    assert (call.id, call.name, reply.problems) == ("a", "look", ())
    assert call.arguments == {**expected, "at": [{"hour": 7, "minute": 30}, {"hour": 8}]}


def test_the_committed_turn_has_one_whole_call() -> None:
    reply = gathered(streamed(piece("$.city", "Oslo")))

    call = {"id": "a", "name": "look", "args": {"city": "Oslo"}}
    assert reply.items == ({"role": "model", "parts": [{"functionCall": call, "thoughtSignature": "c2ln"}]},)
    gemini.Content.model_validate(reply.items[0])


def test_the_last_part_may_bring_a_piece_and_another_call_follow() -> None:
    chunks = streamed(last={"partialArgs": [piece("$.city", "Oslo")]})
    chunks.insert(0, chunk({"name": "see", "args": {"x": 1}}))
    chunks.append(chunk({"name": "see", "partialArgs": [piece("$.x", 2)]}, stop="STOP"))

    reply = gathered(chunks)

    assert [(call.name, call.arguments) for call in reply.calls] == [
        ("see", {"x": 1}),
        ("look", {"city": "Oslo"}),
        ("see", {"x": 2}),
    ]


def test_a_text_begins_anew_where_the_one_before_was_whole() -> None:
    reply = gathered(streamed(piece("$.city", "Rome"), piece("$.city", "Oslo")))

    assert reply.calls[0].arguments == {"city": "Oslo"}


def test_a_call_that_was_cut_is_not_whole_and_goes_back_empty() -> None:
    reply = gathered(streamed(piece("$.city", "Os", more=True))[:-1])

    [call] = reply.calls
    assert (call.arguments, call.fault) == ({"city": "Os"}, "its arguments were cut")
    assert reply.items[0]["parts"][0]["functionCall"] == {"name": "look", "id": "a", "args": {}}
    assert "the arguments of a call of `look` were cut" in " ".join(reply.problems)


@pytest.mark.parametrize("path", ["", "$", "$[0]", "city", "$.at[5]", "$.city.x", "$.city[0]", "$..city", "$.at[*]"])
def test_a_path_that_leads_nowhere_makes_no_whole_call(path: str) -> None:
    reply = gathered(streamed(piece("$.city", "Oslo"), piece(path, "x")))

    assert [bool(call.fault) for call in reply.calls] == [True]
    assert "cut" in reply.problems[0]


def test_a_piece_without_a_value_makes_no_whole_call() -> None:
    assert [bool(call.fault) for call in gathered(streamed({"jsonPath": "$.city"})).calls] == [True]
