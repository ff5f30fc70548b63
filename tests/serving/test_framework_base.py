"""What the adapters of all frameworks share: answers, lost calls, guarded tools, content and counts."""

from typing import Any

import pytest

from toolcrib.calls import ApprovalRequest, Completed, Grant, Media, Suspended, ToolCall, render
from toolcrib.errors import ApprovalError
from toolcrib.pipeline import CallLimits, Pipeline, Run
from toolcrib.rounds import Usage
from toolcrib.serving import GuardPolicy
from toolcrib.serving.frameworks import (
    CountedRequest,
    FrameworkRuns,
    FrameworkTools,
    GuardedTools,
    MediaForms,
    UsageNames,
    answer_of,
    answered,
    request_in,
    request_payload,
    without_others,
)
from toolcrib.tools import Tool, ez_tool

OSLO, ROME = [ToolCall("book", {"city": city}, f"c {city}") for city in ("Oslo", "Rome")]


@ez_tool(requires_approval=True)
async def book(city: str) -> str:
    """Book a room."""
    return f"booked {city}"


async def asked(call: ToolCall) -> ApprovalRequest:
    """Return what a person is asked about a call."""
    waiting = await Pipeline([book]).run(call, Run())
    assert isinstance(waiting, Suspended)
    return waiting.request


async def test_an_answer_is_for_what_it_is_meant_for() -> None:
    oslo, rome = await asked(OSLO), await asked(ROME)
    grant = rome.grant("ann")

    found = [*answered([("first", oslo), ("second", rome)], [grant])]

    assert found == [("second", grant)]
    with pytest.raises(ApprovalError):
        [*answered([("first", oslo)], [grant])]


async def test_a_grant_and_a_denial_of_one_request_are_refused() -> None:
    oslo, rome = await asked(OSLO), await asked(ROME)
    both = [oslo.grant("ann"), oslo.deny(by="bob")]

    for given in (both, both[::-1]):
        with pytest.raises(ApprovalError, match="a grant and a denial of one request"):
            [*answered([("first", oslo)], given)]
    given = [rome.deny(), oslo.grant("ann")]
    assert [*answered([("first", oslo), ("second", rome)], given)] == [("second", given[0]), ("first", given[1])]


async def test_a_request_is_found_in_what_carries_it() -> None:
    request = await asked(OSLO)

    assert request_in({"other": 1, **request_payload(request)}) == request
    assert [request_in(payload) for payload in ({}, None, {"toolcrib": 1})] == [None] * 3


@pytest.mark.parametrize("counts", [True, False])
async def test_an_answer_to_a_lost_call_is_asked_for_when_the_call_waits(counts: bool) -> None:
    inside = FrameworkTools([book], FrameworkRuns("test", None, None))

    def lost(request: ApprovalRequest) -> Grant | None:
        return request.grant("ann") if counts else None

    outcome = await inside.call(OSLO, Run(), lost=lost)

    assert isinstance(outcome, Completed if counts else Suspended)


def test_a_tool_is_guarded_once_and_one_that_cannot_be_is_refused_until_it_is_left() -> None:
    guarded = GuardedTools("test", GuardPolicy(approve=True, leave=["search"]), None)
    made: list[Tool[..., Any]] = []

    def member() -> Tool[..., Any]:
        made.append(book)
        return book

    first, again = [guarded.guard("book", book, member) for _ in range(2)]

    assert first is again is guarded.find("book")
    assert (len(made), first.may_ask("book"), guarded.find("other")) == (1, True, None)
    guarded.refuse("search")
    with pytest.raises(ValueError, match=r"`web` cannot be guarded: .*leave=\['web'\]"):
        guarded.refuse("web")


def test_the_options_of_a_run_that_has_none_are_the_frameworks() -> None:
    runs = FrameworkRuns("test", Run(principal="ann"), None)

    run = runs.find("key", None, principal="ben", conversation_id="c1", provide={str: "theirs"})

    assert (run.principal, run.channel.conversation_id, run.provide[str]) == ("ann", "c1", "theirs")


def opens_nothing(context: object) -> None:
    """Return nothing, as a function without `return` does."""


def opens_other(context: object) -> dict[str, int]:
    """Return what is no run."""
    return {}


async def opens_later(context: object) -> Run:
    """Return a run too late: a coroutine comes first."""
    return Run(limits=CallLimits(total=1))


@pytest.mark.parametrize("limits", [None, CallLimits(total=1)], ids=["of runs", "of conversations"])
@pytest.mark.parametrize("opens", [opens_nothing, opens_other, opens_later])
def test_a_function_that_returns_no_run_leaves_no_call_without_limits(opens: Any, limits: CallLimits | None) -> None:
    runs = FrameworkRuns("test", opens, None, limits)

    with pytest.raises(TypeError, match=r"run= is the function `.*`, which returned (None|\{\}|an awaitable), and"):
        runs.find("key", None)


def test_parts_of_a_result_are_the_frameworks_content() -> None:
    forms = MediaForms(text=str.upper, kinds={"image": lambda media: "image", "": lambda media: "file"})
    linked = MediaForms(text=str, kinds=forms.kinds, links={"": lambda media: str(media.url)})
    link = Media("image/png", url="https://example.com/a.png")

    assert [forms.of(part) for part in ("a", Media("image/png", b"x"), Media("a/b", b"x"))] == ["A", "image", "file"]
    assert (forms.of(link), linked.of(link)) == ("image", "https://example.com/a.png")
    assert forms.contents(render(Completed("t", "c", "text"))) == ["TEXT"]


def test_counts_are_read_by_the_frameworks_names() -> None:
    names = UsageNames("read cached", "written", "about.cached", reasoning="absent")

    request = names.request("r1", {"read": 3, "cached": 2, "written": None, "about": {"cached": 2}}, "m")

    assert request == CountedRequest("r1", Usage(1, 5, 0, 2, cost=None), "m")


@pytest.mark.parametrize("rules", [{"additionalProperties": True}, {"patternProperties": {}}, {"anyOf": []}, {}])
def test_arguments_that_a_schema_neither_lists_nor_allows_are_refused(rules: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {"cents": {"type": "integer"}}, **rules}

    assert without_others(schema) == (schema if rules else {**schema, "additionalProperties": False})
    assert without_others({"type": "object"}) == {"type": "object"}


async def test_an_edit_that_does_not_fit_is_refused_where_it_is_made() -> None:
    request = await asked(OSLO)
    for arguments in ({"city": 3}, {}, {"city": "Rome", "citi": "Oslo"}):
        grant = request.grant("ann", override_args=arguments)
        for made in (grant, grant.to_dict(), {"type": "edit", "edited_action": {"name": "book", "args": arguments}}):
            with pytest.raises(ApprovalError, match=r"the edit does not fit the tool: cit[iy]: "):
                answer_of(request, made)
        with pytest.raises(ApprovalError, match=r"the edit does not fit the tool: cit[iy]: "):
            list(answered([("first", request)], [grant]))
    fits = answer_of(request, {"type": "edit", "edited_action": {"name": "book", "args": {"city": "Rome"}}})
    assert isinstance(fits, Grant)


@pytest.mark.parametrize(
    ("decision", "mend"),
    [
        (
            {"type": "edit", "args": {"city": "Rome"}},
            r"'edited_action': \{'name': 'book', 'args': \{'city': 'Oslo'\}\}",
        ),
        ({"type": "edit", "edited_action": {"city": "Rome"}}, "'edited_action': "),
        ({"type": "reject", "mesage": "too far"}, "has `mesage`, .*; give its text as `message`"),
        ({"type": "reject", "reason": "too far"}, "give its text as `message`"),
    ],
)
async def test_a_decision_in_another_shape_says_which_is_wanted(decision: dict[str, Any], mend: str) -> None:
    with pytest.raises(ApprovalError, match=mend):
        answer_of(await asked(OSLO), decision)
