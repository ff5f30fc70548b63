"""A standing yes with bounds of nested arguments: each part that a call has is within its bound, in every item."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib import Pipeline, Run, Suspended, ToolCall, tool
from toolcrib.approvals import GrantForm, MemoryApprovalStore, misfit
from toolcrib.calls import ApprovalRequest, Bound, Completed, Grant, GrantUse
from toolcrib.schema import REDACTED

ITEMS = [{"sku": "A", "price": 5}, {"sku": "B", "price": 7}]
ORDER = {"id": 7, "items": ITEMS, "to": {"city": "Oslo"}}
UP_TO_50 = Bound.between(high=50)


def asked(order: Any = ORDER, **more: Any) -> ApprovalRequest:
    return ApprovalRequest("ask_1", "call_1", "buy", {"order": order, **more}, "d1", principal="ann")


def grant_of(order: Any = ORDER, **within: Bound) -> Grant:
    return asked(order).always("bob", within=within)


@pytest.mark.parametrize(
    ("items", "why"),
    [
        (ITEMS, ""),
        ([], ""),
        ([{"sku": "A", "price": 50}] * 9, ""),
        ([{"sku": "B"}], "it was given for calls with `order.items[0].price`"),
        ([{"price": 5}], "it was given for calls with `order.items[0].sku`"),
        ([*ITEMS, {"sku": "A", "price": 51}], "`order.items[2].price` is 51, and it was given for up to 50"),
        ([{"sku": "A", "price": -1}], "`order.items[0].price` is -1"),
        ([{"sku": "C", "price": 1}], '`order.items[0].sku` is "C", and it was given for one of "A", "B"'),
        ([{"sku": "A", "price": 1, "gift": True}], "it was given for calls without `order.items[0].gift`"),
        (
            [[{"sku": "A"}]],
            '`order.items[0]` is [{"sku": "A"}], and it was given for an object with sku one of "A", "B"',
        ),
        ({"0": ITEMS[0]}, "`order.items` is {"),
        ("A", '`order.items` is "A", and it was given for a list of items, each an object with sku'),
        (None, "`order.items` is null"),
        (REDACTED, "`order.items` is "),
    ],
    ids=lambda value: f"{value}"[:40],
)
def test_every_item_of_a_list_has_to_fit(items: Any, why: str) -> None:
    grant = grant_of(**{"order.items[*].price": UP_TO_50})
    request = asked({**ORDER, "items": items})

    found = misfit(grant, replace(request, id="ask_2"))

    assert found.startswith(why)
    assert bool(found) is bool(why)


@pytest.mark.parametrize(
    ("path", "bound", "covered", "others"),
    [
        ("order.id", Bound.one_of([7, 8]), [{"id": 8}], [{"id": 9}, {"id": "8"}, {"to": {"city": "Rome"}}, {"new": 1}]),
        ("order.to.city", Bound.any(), [{"to": {"city": REDACTED}}, {"to": {}}], [{"to": "Rome"}, {"to": {"c": 1}}]),
        ("order.to", Bound.any(), [{"to": None}], [{"id": 8}]),
        ("order.items", Bound.exactly([]), [], []),
    ],
)
def test_a_part_is_bound_and_all_else_stays_as_it_is(
    path: str, bound: Bound, covered: list[Any], others: list[Any]
) -> None:
    order = {**ORDER, "items": []} if path == "order.items" else ORDER
    grant = grant_of(order, **{path: bound})

    assert [one for one in covered if misfit(grant, asked({**order, **one}))] == []
    assert [one for one in others if not misfit(grant, asked({**order, **one}))] == []
    assert misfit(grant, asked("a text"))
    assert misfit(grant, asked(order, **{path: 5})).startswith(f"it was given for calls without `{path}`")
    assert Grant.from_dict(grant.to_dict()) == grant


def test_what_the_request_has_may_not_be_left_out_and_what_one_of_its_items_lacks_may() -> None:
    items = [{"price": 1, "to": {"zip": 1}}, {"price": 2}]
    grant = asked({"items": items, "cap": True}).always(
        "bob", within={"order.items[*].price": UP_TO_50, "order.items[*].to.zip": UP_TO_50}
    )

    found = [
        misfit(grant, replace(asked(order), id="ask_2"))
        for order in (
            {"items": [{"price": 5}], "cap": True},
            {"items": [{"to": {"zip": 1}}], "cap": True},
            {"items": [{"price": 5, "to": {}}], "cap": True},
            {"items": []},
        )
    ]

    assert found == [
        "",
        *(f"it was given for calls with `order.{path}`" for path in ("items[0].price", "items[0].to.zip", "cap")),
    ]
    assert "order.items[*].to.zip up to 50, order.items[*].to may be left out, order.cap exactly true" in grant.text()
    assert Grant.from_dict(grant.to_dict()) == grant


def test_an_argument_that_the_request_lacks_may_be_left_out_and_one_that_it_has_only_where_it_may_be_anything() -> None:
    request = ApprovalRequest("a", "c", "buy", {"amount": 5, "note": "x"}, "d", parameters={"properties": {"to": {}}})
    within = {"amount": UP_TO_50, "note": Bound.any(), "to": Bound.one_of(["Oslo"])}
    grant = request.always("bob", within=within)

    found = [
        misfit(grant, replace(request, id="b", arguments=arguments)) for arguments in ({"amount": 9}, {"note": "y"})
    ]

    assert found == ["", "it was given for calls with `amount`"]
    assert 'to one of "Oslo" or left out' in grant.text()
    assert Grant.from_dict(grant.to_dict()) == grant


def test_the_words_have_a_phrase_for_each_part_with_a_bound() -> None:
    grant = grant_of(**{"order.items[*].price": UP_TO_50, "order.id": Bound.any()})

    assert grant.text() == (
        'buy: order.id any, order.items[*].sku one of "A", "B", order.items[*].price up to 50, '
        'order.to exactly {"city": "Oslo"}; on behalf of ann'
    )


@pytest.mark.parametrize(
    ("within", "why"),
    [
        ({"order.amunt": UP_TO_50}, "`order.amunt` is not in this call; there are id, items, to"),
        ({"ordr.id": UP_TO_50}, "`ordr.id` is not an argument of buy; there are order"),
        ({"order[*]": UP_TO_50}, "`order` is not a list"),
        ({"order.items.price": UP_TO_50}, "`order.items` is not an object"),
        ({"order.items[0].price": UP_TO_50}, r"`order.items\[0\].price` is not an argument"),
        ({"order..id": UP_TO_50}, "is not an argument"),
        ({"order": Bound.any(), "order.id": Bound.any()}, "`order` has a bound, and a part of it has one, too"),
        ({"order.to": Bound.any(), "order.to.city": Bound.any()}, "`order.to` has a bound, and a part of it"),
        (
            {"order.items[*].price": Bound.between(high=6)},
            r"`order.items\[1\].price` is 7, and it was given for up to 6",
        ),
    ],
)
def test_a_path_that_leads_nowhere_or_twice_is_refused(within: dict[str, Bound], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        asked().always("bob", within=within)


def test_what_is_no_bound_of_a_part_is_named_with_its_path() -> None:
    within: Any = {"order.id": 5}

    with pytest.raises(TypeError, match=r"within: `order\.id` is 5, which is not a bound"):
        asked().always("bob", within=within)


def test_an_argument_whose_name_is_a_path_is_meant_before_a_part() -> None:
    request = ApprovalRequest("a", "c", "buy", {"order": {"id": 1}, "order.id": 2}, "d", principal="ann")

    grant = request.always("bob", within={"order.id": Bound.any()})

    assert grant.text().startswith('buy: order exactly {"id": 1}, "order.id" any')
    assert list(GrantForm.places(request)) == ["order", "$.order.id", "order.id"]
    rooted = request.always("bob", within={"$.order.id": Bound.any()})
    assert rooted.text().startswith('buy: order.id any, "order.id" exactly 2')


def test_a_form_offers_the_arguments_and_the_parts_of_nested_ones() -> None:
    request = asked({**ORDER, "a.b": 1, "tags": ["x", "y"], "none": {}}, note="n")

    places = GrantForm.places(request)
    schema = GrantForm.schema(request, timedelta(hours=1))["properties"]["bounds"]["properties"]

    assert [*schema] == [*places]
    assert {place: value for place, value in places.items() if place != "order"} == {
        "order.id": 7,
        "order.items[*].sku": ["A", "B"],
        "order.items[*].price": [5, 7],
        "order.to.city": "Oslo",
        "order.tags[*]": ["x", "y"],
        "order.none": {},
        "note": "n",
    }


def test_of_too_many_parts_the_form_offers_the_arguments_alone() -> None:
    assert [*GrantForm.places(asked({f"f{number}": number for number in range(41)}))] == ["order"]
    deep: Any = 1
    for _ in range(900):
        deep = {"a": deep}
    assert [*GrantForm.places(asked(deep))] == ["order"]


LEAVES = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["a", "b.c", ""])
NESTED = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["x", "y", "x.y", "[*]"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(NESTED, st.data())
def test_every_place_that_is_offered_can_be_bound_and_the_call_itself_is_covered(
    value: Any, data: st.DataObject
) -> None:
    request = asked(value)
    places = [place for place in GrantForm.places(request) if place != "order"]
    chosen = data.draw(st.lists(st.sampled_from(places), unique=True)) if places else []
    within_one_another = [one for one in chosen if any(other != one and other.startswith(one) for other in chosen)]

    grant = GrantForm({place: "any" for place in chosen if place not in within_one_another}).grant(request, "bob")

    assert misfit(grant, request) == ""
    assert Grant.from_dict(grant.to_dict()) == grant


async def test_calls_run_within_the_bounds_of_their_parts_and_are_asked_about_beyond() -> None:
    @tool(requires_approval=True, register=False)
    async def buy(order: dict[str, Any]) -> str:
        """Buy something."""
        return "bought"

    pipeline, run = Pipeline([buy]), Run(approvals=MemoryApprovalStore(), principal="ann")
    first = await pipeline.run(ToolCall("buy", {"order": ORDER}), run)
    assert isinstance(first, Suspended)
    grant = first.request.always("bob", within={"order.items[*].price": UP_TO_50})

    outcomes = [await pipeline.run(first, run, grant=grant)]
    for price in (50, 51, -1):
        order = {**ORDER, "items": [*ITEMS, {"sku": "A", "price": price}]}
        outcomes.append(await pipeline.run(ToolCall("buy", {"order": order}), run))

    assert [isinstance(outcome, Completed) for outcome in outcomes] == [True, True, False, False]


# --- sums of parts, and names that are paths

NAMED = {"order.amount": 3, "order": {"amount": 5, "tip": 1}, "items": [{"price": 2}, {"price": 4}]}
OF_PLACES = {"order.amount": 3, "$.order.amount": 5, "order.tip": 1, "items[*].price": 6}
"""The sum of one call at each place that is a number, by the path that the form has for it."""


def bought(arguments: dict[str, Any], id: str = "ask_1") -> ApprovalRequest:
    return ApprovalRequest(id, "call_1", "buy", arguments, "d1", principal="ann")


def test_the_form_has_a_name_for_each_place_and_each_can_be_summed_up() -> None:
    schema = GrantForm.schema(bought(NAMED), timedelta(hours=1))["properties"]

    assert schema["summed"]["enum"] == GrantForm.numbers(bought(NAMED)) == [*OF_PLACES]
    assert [schema["bounds"]["properties"][place]["title"] for place in OF_PLACES][:2] == [
        '"order.amount"',
        "$.order.amount",
    ]


@pytest.mark.parametrize("is_sent", [True, False])
@pytest.mark.parametrize("place", [*OF_PLACES])
def test_the_sum_is_of_the_place_that_is_named_and_of_no_other(place: str, *, is_sent: bool) -> None:
    arguments = NAMED if is_sent or place == "order.amount" else {k: v for k, v in NAMED.items() if k != "order.amount"}
    request = replace(bought(arguments), parameters={"properties": {name: {} for name in NAMED}})
    most = OF_PLACES[place] * 2
    grant = GrantForm(dict.fromkeys(arguments, "any"), total=str(most), summed=place).grant(request, "bob")

    first = grant.used_by(request, GrantUse())
    second = grant.used_by(request, first)
    restored = Grant.from_dict(grant.to_dict())

    named = '"order.amount"' if place == "order.amount" else place.removeprefix("$.")
    assert grant.text().endswith(f"; {most} of {named} in all")
    assert (first.spent, second.spent) == (OF_PLACES[place], most)
    assert (grant.limit_reached(request, first), restored) == ("", grant)
    over = f"would come to {most + OF_PLACES[place]} in all, and it was given for {most}"
    assert grant.limit_reached(request, second).endswith(over)


@pytest.mark.parametrize(
    "items",
    [None, "2", 2, [2], [{"price": -1}], [{"price": "two"}], [{}], [{"price": 2}, {"price": None}], {"price": 2}],
)
def test_a_call_whose_part_cannot_be_counted_is_not_covered(items: Any) -> None:
    grant = bought(NAMED).always("bob", within={name: Bound.any() for name in NAMED}, total=("items[*].price", 100))

    why = misfit(grant, bought({**NAMED, "items": items}, "ask_2"))

    assert "it counts `items[*].price`, which is " in why


@given(prices=st.lists(st.lists(st.integers(0, 9), max_size=4), min_size=1, max_size=5), most=st.integers(0, 40))
def test_no_more_than_the_sum_is_spent_over_all_items(prices: list[list[int]], most: int) -> None:
    calls = [bought({"items": [{"price": price} for price in several]}) for several in prices]
    grant = bought({"items": [{"price": 0}]}).always(
        "bob", within={"items": Bound.any()}, total=("items[*].price", most)
    )
    use, spent = GrantUse(), 0

    for call, several in zip(calls, prices, strict=True):
        if not grant.limit_reached(call, use):
            use, spent = grant.used_by(call, use), spent + sum(several)
        assert spent <= most

    assert use.spent == spent
