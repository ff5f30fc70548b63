"""What a person is shown, and the grants that a request makes."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.approvals import misfit
from toolcrib.calls import ApprovalRequest, Grant, Media


def asked(arguments: dict[str, Any], requested: Any = None, **fields: Any) -> ApprovalRequest:
    return ApprovalRequest("ask_1", "call_1", "ship", arguments, "d5", requested, **fields)


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        ({"n": 1}, {"n": 2}, ["n: 1 -> 2"]),
        ({"n": 1}, {"n": True}, ["n: 1 -> true"]),
        ({"a": 1}, {"b": 1}, ["a: 1 -> (not given)", "b: (not given) -> 1"]),
        ({"to": {"city": "Oslo", "zip": 1}}, {"to": {"city": "Bergen", "zip": 1}}, ['to.city: "Oslo" -> "Bergen"']),
        ({"stops": [{"n": 1}, {"n": 2}]}, {"stops": [{"n": 1}, {"n": 3}]}, ["stops[1].n: 2 -> 3"]),
        ({"stops": [1, 2, 3]}, {"stops": [1, 9, 2, 3]}, ["stops[1]: (not given) -> 9"]),
        ({"stops": [1, 2, 3]}, {"stops": [1, 3]}, ["stops[1]: 2 -> (not given)"]),
        ({"text": "dear\nme\nbye"}, {"text": "dear\nyou\nbye"}, ['text line 2: "me" -> "you"']),
        ({"odd name": 1}, {"odd name": 2}, ['"odd name": 1 -> 2']),
        ({"same": [{"a": None}]}, {"same": [{"a": None}]}, []),
        (None, {"n": 1}, []),
    ],
)
def test_changes_name_the_place(before: Any, after: dict[str, Any], lines: list[str]) -> None:
    assert asked(after, before).changes() == lines


def test_of_long_texts_only_the_part_that_differs_is_shown() -> None:
    before, after = "a" * 500 + "OLD" + "b" * 500, "a" * 500 + "NEW" + "b" * 500

    (line,) = asked({"body": after}, {"body": before}).changes()

    assert line == f'body: "…{"a" * 16}OLD{"b" * 16}…" -> "…{"a" * 16}NEW{"b" * 16}…"'


def test_text_shows_the_question_the_arguments_and_the_changes() -> None:
    request = asked(
        {"to": "Bergen", "parts": [1, 2]},
        {"to": "Oslo", "parts": [1, 2]},
        reason="far away",
        metadata={"preview": "line 1\nline 2"},
    )

    assert request.text() == (
        "ship needs approval: far away\n"
        '  to = "Bergen"\n'
        "  parts = [1, 2]\n"
        "changed since the model asked:\n"
        '  to: "Oslo" -> "Bergen"\n'
        "preview: line 1\n"
        "    line 2"
    )


@pytest.mark.parametrize("hidden", ["\u202e", "\u200b", "\x1b[2K", "\r", "\u2028", "\u0085"])
def test_nothing_in_the_text_can_rearrange_it(hidden: str) -> None:
    request = asked(
        {"a": hidden, f"b{hidden}": 1, "c\n  d = 1\nx": 2}, {"a": "x"}, reason=hidden, metadata={hidden: hidden}
    )

    lines = request.text().split("\n")

    assert all(line.isprintable() for line in lines)
    assert not any(line.startswith("  d") for line in lines)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=4), json_values, max_size=3), st.dictionaries(st.text(max_size=4), json_values))
def test_there_are_changes_exactly_when_something_differs(before: dict[str, Any], after: dict[str, Any]) -> None:
    changes = asked(after, before).changes()

    assert bool(changes) == (
        before != after or repr(sorted(before.items(), key=str)) != repr(sorted(after.items(), key=str))
    )
    assert all(line.isprintable() for line in changes)


def test_a_grant_is_bound_to_the_request() -> None:
    grant = asked({}, principal="bob").grant("ann", message="fine")

    assert grant == Grant(
        "ship", "ann", "call_1", "d5", request_id="ask_1", message="fine", at=grant.at, principal="bob"
    )
    assert not grant.standing


def test_always_lasts_as_long_as_it_says() -> None:
    until = datetime(2099, 1, 1, tzinfo=UTC)

    for_a_day = asked({}).always("ann", expires=timedelta(days=1))
    for_these = asked({}).always(scope="arguments", expires=until)

    assert for_a_day.expires_at is not None
    assert timedelta(hours=23) < for_a_day.expires_at - datetime.now(UTC) <= timedelta(days=1)
    assert (for_a_day.scope, for_these.scope, for_these.expires_at) == ("tool", "arguments", until)


def test_a_standing_grant_fits_another_call_until_it_expires() -> None:
    grant = asked({}).always(expires=timedelta(days=1))
    other = ApprovalRequest("ask_2", "call_2", "ship", {}, "d6")

    assert misfit(grant, other) == ""
    assert "it expired at" in misfit(grant, other, at=datetime.now(UTC) + timedelta(days=2))


def test_a_grant_fits_what_the_tool_was_said_to_be() -> None:
    said = replace(asked({}), definition="d7")
    kept = Grant.from_dict(json.loads(json.dumps(said.always().to_dict())))
    by_name = Grant("ship", scope="tool", principal=said.principal)

    assert misfit(kept, ApprovalRequest.from_dict(said.to_dict())) == ""
    assert [misfit(grant, said) for grant in (asked({}).always(), by_name)] == ["", ""]
    for other in (replace(said, definition="d8"), replace(said, definition=None)):
        assert "the tool has changed after it was given" in misfit(kept, other)
    for other in (replace(said, definition="d7@s1"), replace(said, definition="d8@s1")):
        assert "the server or object behind the tool is another one" in misfit(kept, other)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"expires_at": datetime(2099, 1, 1)}, "expires_at has no time zone"),
        ({"scope": "tool", "override_args": {"a": 1}}, "are for one call"),
        ({"scope": "arguments", "user_input": "yes"}, "are for one call"),
    ],
)
def test_a_grant_that_makes_no_sense_is_not_made(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Grant("ship", **options)


@pytest.mark.parametrize("given", [[1], "amount=5", 5])
def test_edited_arguments_are_given_by_name(given: Any) -> None:
    with pytest.raises(TypeError, match=r"a grant for `ship`: override_args is .* give arguments by name"):
        asked({}).grant("ann", override_args=given)


def test_a_result_keeps_its_media_in_json() -> None:
    given = asked({}).done(["a chart", Media("image/png", b"bytes")])

    assert Grant.from_dict(json.loads(json.dumps(given.to_dict()))) == given


def test_a_grant_turns_to_json_and_back() -> None:
    grant = asked({}, principal="bob").always("ann", expires=timedelta(days=1), message="go on")

    assert Grant.from_dict(grant.to_dict()) == grant
