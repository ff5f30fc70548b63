"""A yes for further calls in a client's form: it is shown word for word before it counts, or nothing counts."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import ElicitResult, InputRequiredResult

from tests.adapters.mcp_server.clients import (
    ALLOW,
    APPROVE,
    IN_MEMORY,
    Way,
    answering,
    every_generation,
    every_way,
    text_of,
)
from toolcrib.adapters.mcp_server import McpServer, ServerOptions, build_server
from toolcrib.adapters.mcp_server._elicitation import answers_from_forms, forms_for
from toolcrib.approvals import MemoryApprovalStore
from toolcrib.calls import ApprovalRequest, Denial, Grant
from toolcrib.testing import RecordingSink
from toolcrib.tools import ez_tool

DAY = timedelta(days=1)
BACK = ElicitResult(action="accept", content={"decision": "back"})
ASKED = ApprovalRequest("ask_1", "call_1", "refund", {"order": "A", "euros": 20}, "d")


def always(**content: Any) -> ElicitResult:
    return ElicitResult(action="accept", content={"decision": "always", **content})


WIDE = always(**{"argument order": "any", "argument euros": "<= 50", "uses": 3, "hours": 2.0, "total": 100})


def form_of(unconfirmed: dict[str, Grant] | None = None, longest: timedelta | None = DAY) -> Any:
    [form] = forms_for([ASKED], longest, unconfirmed).values()
    return form.params


def refunding(paid: list[float]) -> Any:
    @ez_tool(requires_approval=True)
    async def refund(order: str, euros: float) -> str:
        """Pay an order back."""
        paid.append(euros)
        return f"refunded {euros:g} on {order}"

    return refund


def shop(paid: list[float], **options: Any) -> McpServer:
    given: dict[str, Any] = {"approve_by": "elicit", "elicit_always": DAY, "principal": "ann", **options}
    return build_server([refunding(paid)], ServerOptions(**given))


@every_way
async def test_a_yes_within_bounds_is_shown_word_for_word_and_then_lets_such_calls_run(way: Way) -> None:
    paid, shown, watch, store = list[float](), list[str](), RecordingSink(), MemoryApprovalStore()
    closed = ElicitResult(action="cancel")

    async with way(
        shop(paid, sinks=(watch,), approvals=store), elicitation_callback=answering(WIDE, ALLOW, closed, asked=shown)
    ) as client:
        for order, euros in (("A", 20), ("B", 50), ("C", 51)):
            await client.call_tool("refund", {"order": order, "euros": euros})

    [grant] = await store.standing()
    assert paid == [20, 50]
    assert shown[1] == grant.text()
    assert shown[1].startswith("refund: order any, euros up to 50; on behalf of ann; until ")
    assert shown[1].endswith("; at most 3 times; 100 of euros in all")
    assert (await store.grant_use(grant)).calls == 2
    assert [record.approval["scope"] for record in watch.records if record.approval] == ["within", "within"]


def test_a_form_takes_bounds_of_parts_of_a_nested_argument() -> None:
    asked = replace(ASKED, arguments={"order": {"to": "ann", "items": [{"price": 5}]}})
    [form] = forms_for([asked], DAY).values()
    params: Any = form.params

    _, standing = answers_from_forms(
        [asked], {asked.id: always(**{"argument order": "", "argument order.items[*].price": "<= 50"})}, DAY
    )

    fields = [name for name in params.requested_schema["properties"] if name.startswith("argument ")]
    assert fields == ["argument order", "argument order.to", "argument order.items[*].price"]
    assert standing[asked.id].text().startswith('refund: order.to exactly "ann", order.items[*].price up to 50; ')


@every_generation
@pytest.mark.parametrize("unsure", [BACK, APPROVE, ElicitResult(action="decline"), ElicitResult(action="cancel")])
async def test_what_is_not_confirmed_counts_for_nothing_and_the_call_waits_on(way: Way, unsure: ElicitResult) -> None:
    paid, store = list[float](), MemoryApprovalStore()

    async with way(shop(paid, approvals=store), elicitation_callback=answering(WIDE, unsure, APPROVE)) as client:
        waiting = await client.call_tool("refund", {"order": "A", "euros": 20})
        before = [*paid], await store.standing()
        await client.call_tool("refund", {"order": "A", "euros": 20})

    assert waiting.structured_content["status"] == "suspended"
    assert before == ([], ())
    assert (paid, await store.standing()) == ([20], ())


@every_generation
@pytest.mark.parametrize(
    ("content", "why"),
    [
        ({"argument euros": "up to 50"}, "`euros`: 'up to 50' is not a bound"),
        ({"argument euros": "<= 5"}, "it does not cover this call"),
        ({"argument euros": "= " + "[" * 400 + "]" * 400}, "nested as deep"),
        ({"argument order": "x" * 2000}, "is longer than 1000 characters"),
        ({"argument all": "any"}, "there is no field 'argument all'"),
        ({"argument order": True}, "`order`: 'true' is not a bound"),
        ({"uses": 0}, "uses must be a number of calls, 1 or more"),
        ({"uses": 1.5}, "number of calls is '1.5'"),
        ({"hours": 25}, "at most, and not for 25 hours"),
        ({"hours": -1}, "number of hours is '-1'"),
        ({"hours": "nan"}, "number of hours is 'nan'"),
        ({"total": 50, "summed": "order"}, "it counts `order`"),
        ({"total": 5}, "it does not cover this call"),
        ({"times": "at night"}, "'at night' is not a time of day"),
    ],
)
async def test_a_form_that_makes_no_sense_or_wants_too_much_is_a_plain_no(
    way: Way, content: dict[str, Any], why: str
) -> None:
    paid, store = list[float](), MemoryApprovalStore()

    async with way(shop(paid, approvals=store), elicitation_callback=answering(always(**content))) as client:
        refused = await client.call_tool("refund", {"order": "A", "euros": 20})

    assert "Rejected: Nothing was approved, this call neither: " in text_of(refused)
    assert why in text_of(refused)
    assert (paid, await store.standing()) == ([], ())


@every_generation
async def test_a_client_may_answer_for_its_call_alone_unless_the_host_lets_it(way: Way) -> None:
    paid, store = list[float](), MemoryApprovalStore()

    async with way(shop(paid, approvals=store, elicit_always=None), elicitation_callback=answering(WIDE)) as client:
        refused = await client.call_tool("refund", {"order": "A", "euros": 20})

    assert "a client may answer for its call alone here" in text_of(refused)
    assert (paid, await store.standing()) == ([], ())
    assert form_of(longest=None).requested_schema["properties"]["decision"]["enum"] == ["approve", "deny"]


async def test_a_client_that_goes_on_as_if_it_had_confirmed_allows_nothing() -> None:
    paid, store = list[float](), MemoryApprovalStore()
    arguments = {"order": "A", "euros": 20}
    server = shop(paid, approvals=store)

    async with IN_MEMORY[1](server, elicitation_callback=answering()) as client:
        first = await client.session.call_tool("refund", arguments, allow_input_required=True)
        assert isinstance(first, InputRequiredResult)
        [key] = first.input_requests or {}
        forged = await client.session.call_tool(
            "refund",
            arguments,
            input_responses={f"{key}.confirm": ALLOW},
            request_state=first.request_state,
            allow_input_required=True,
        )

    assert forged.structured_content["status"] == "suspended"
    assert (paid, await store.standing()) == ([], ())


def test_every_field_of_the_form_is_plain() -> None:
    parts = form_of().requested_schema["properties"]

    assert {part["type"] for part in parts.values()} == {"string", "number", "integer"}
    assert parts["summed"]["enum"] == ["euros"]
    assert parts["hours"]["description"] == "At most 1 day, which it is where this is empty"


_FIELDS = st.sampled_from(
    ["decision", "argument order", "argument euros", "uses", "hours", "times", "total", "summed", "message", "x"]
)
_VALUES = st.one_of(
    st.sampled_from(["always", "any", "<= 50", "20..30", "exactly", "euros", "mon-sun 00:00-24:00", ""]),
    st.integers(),
    st.floats(),
    st.booleans(),
    st.text(max_size=20),
    st.none(),
    st.lists(st.text(max_size=3), max_size=2),
)


@pytest.mark.systems  # a long search
@given(st.dictionaries(_FIELDS, _VALUES), st.dictionaries(_FIELDS, _VALUES))
def test_whatever_a_client_sends_a_standing_grant_is_what_it_was_shown(
    content: dict[str, Any], confirmation: dict[str, Any]
) -> None:
    filled = ElicitResult.model_construct(action="accept", content={"decision": "always", **content})

    answers, unconfirmed = answers_from_forms([ASKED], {"ask_1": filled}, DAY)

    assert not any(isinstance(one, Grant) and one.standing for one in answers)
    assert [type(one) for one in answers] in ([], [Grant], [Denial])
    for grant in unconfirmed.values():
        kept = Grant.from_dict(json.loads(json.dumps(grant.to_dict())))
        closed = ElicitResult.model_construct(action="accept", content=confirmation)
        confirmed, _ = answers_from_forms([ASKED], {"ask_1.confirm": closed}, DAY, {"ask_1": kept})
        assert form_of(unconfirmed).message == kept.text()
        assert grant.expires_at is not None
        assert grant.expires_at - grant.at <= DAY + timedelta(seconds=60)
        assert confirmed == ([kept] if confirmation.get("decision") == "allow" else [])
