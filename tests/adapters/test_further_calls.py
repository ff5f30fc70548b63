"""A yes for further calls at a front end: it is shown word for word before it counts, or nothing counts."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

import pytest
from starlette.testclient import TestClient

from tests.adapters.front_ends import who
from toolcrib.adapters.ag_ui import ag_ui_app
from toolcrib.adapters.vercel_ai import vercel_ai_app
from toolcrib.approvals import ApprovalStore, MemoryApprovalStore, SqliteApprovalStore
from toolcrib.approvers import ApproverRule, ApproverRules, Groups
from toolcrib.calls import ToolCall
from toolcrib.pipeline import Run
from toolcrib.rounds import Session
from toolcrib.schema import REDACTED
from toolcrib.serving import FrontEndLimits
from toolcrib.testing import RecordingSink, ScriptedModel
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Toolset

WIDE = {"bounds": {"order": "any", "euros": "<= 50"}, "uses": 3, "hours": 2.0, "total": 100}
PLAIN = {"order": "A", "euros": 20}


class Shop:
    """An agent whose model asks for refunds, one after the other, and what was paid."""

    def __init__(self, *orders: tuple[Any, float], store: ApprovalStore | None = None) -> None:
        self.paid, self.watch, self.store = list[float](), RecordingSink(), store or MemoryApprovalStore()
        calls = [
            ToolCall("refund", {"order": order, "euros": euros}, f"call_{number}")
            for number, (order, euros) in enumerate(orders)
        ]
        self.model = ScriptedModel(*calls, "Done.")

        @ez_tool(requires_approval=True)
        async def refund(order: Any, euros: float) -> str:
            """Pay an order back."""
            self.paid.append(euros)
            return f"refunded {euros:g}"

        self.tools, self.gates = [refund], list[Any]()

    def open(self, principal: str) -> Session:
        return Session(self.model, tools=Toolset(self.tools).with_gates(*self.gates), run=Run(sinks=[self.watch]))


class Person(Protocol):
    """A person at a front end of a shop. Each method returns what they are asked next: the form, the words, a text."""

    def begin(self) -> dict[str, Any]: ...
    def say_yes(self, **more: Any) -> dict[str, Any]: ...


OpenFrontEnd = Callable[..., Person]


class AgUiPerson:
    def __init__(self, shop: Shop, always: timedelta | None = timedelta(hours=8)) -> None:
        app = ag_ui_app(shop.open, principal=who, approvals=shop.store, limits=FrontEndLimits(always=always))
        self._http, self._asked = TestClient(app, headers={"x-user": "ada"}), ""

    def begin(self) -> dict[str, Any]:
        return self._send()

    def say_yes(self, **more: Any) -> dict[str, Any]:
        return self.answer({"approved": True, **more})

    def answer(self, *payloads: dict[str, Any]) -> dict[str, Any]:
        answers = [{"interruptId": self._asked, "status": "resolved", "payload": payload} for payload in payloads]
        return self._send(resume=answers)

    def _send(self, **more: Any) -> dict[str, Any]:
        sent = {"threadId": "t", "runId": "r", "messages": [{"id": "m1", "role": "user", "content": "Go."}], **more}
        reply = self._http.post("/", json=sent)
        if reply.status_code != 200:
            return {"error": reply.json()["error"]}
        events = [json.loads(line.removeprefix("data: ")) for line in reply.text.split("\n\n") if line]
        interrupts = events[-1]["outcome"].get("interrupts")
        if not interrupts:
            return {}
        self._asked = interrupts[0]["id"]
        schema = interrupts[0]["responseSchema"]["properties"]
        words = interrupts[0]["metadata"].get("words", "")
        assert schema.get("words", {"const": ""})["const"] == words
        return {"schema": schema.get("further"), "words": words, "text": interrupts[0]["message"]}


class VercelPerson:
    def __init__(self, shop: Shop, always: timedelta | None = timedelta(hours=8)) -> None:
        app = vercel_ai_app(shop.open, principal=who, approvals=shop.store, limits=FrontEndLimits(always=always))
        self._http, self._asked = TestClient(app, headers={"x-user": "ada"}), ""

    def begin(self) -> dict[str, Any]:
        return self._send()

    def say_yes(self, *, approved: bool = True, **more: Any) -> dict[str, Any]:
        return self.answer({"approved": approved, **({"reason": json.dumps(more)} if more else {})})

    def answer(self, *approvals: dict[str, Any]) -> dict[str, Any]:
        part = {"type": "tool-refund", "toolCallId": "c", "state": "approval-responded"}
        parts = [{**part, "approval": {"id": self._asked, **approval}} for approval in approvals]
        return self._send({"id": "a1", "role": "assistant", "parts": parts})

    def _send(self, *messages: dict[str, Any]) -> dict[str, Any]:
        user = {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "Go."}]}
        reply = self._http.post("/", json={"id": "c", "messages": [user, *messages]})
        if reply.status_code != 200:
            return {"error": reply.json()["error"]}
        chunks = [json.loads(line.removeprefix("data: ")) for line in reply.text.split("\n\n")[:-2]]
        asked = {chunk["type"]: chunk for chunk in chunks}.get("tool-approval-request")
        if asked is None:
            return {}
        self._asked = asked["approvalId"]
        forms = [chunk["data"] for chunk in chunks if chunk["type"] == "data-further"]
        form = forms[-1] if forms else {"schema": None, "words": ""}
        return {"schema": form["schema"], "words": form["words"], "text": asked["reason"]}


over_both = pytest.mark.parametrize("person", [AgUiPerson, VercelPerson])


@over_both
async def test_a_yes_within_bounds_is_shown_word_for_word_and_then_lets_such_calls_run(person: OpenFrontEnd) -> None:
    shop = Shop(("A", 20), ("B", 50), ("C", 51))
    ada = person(shop)

    asked = ada.begin()
    shown = ada.say_yes(further=WIDE)
    paid_before = [*shop.paid]
    next_asked = ada.say_yes(words=shown["words"])

    (grant,) = await shop.store.standing()  # type: ignore[attr-defined]
    assert {*asked["schema"]["properties"]} == {"bounds", "uses", "hours", "times", "total", "summed"}
    assert asked["schema"]["properties"]["bounds"]["properties"].keys() == PLAIN.keys()
    assert (shown["text"], shown["words"]) == (grant.text(), grant.text())
    assert shown["words"].startswith("refund: order any, euros up to 50; on behalf of ada; until ")
    assert shown["words"].endswith("; at most 3 times; 100 of euros in all")
    assert (paid_before, shop.paid) == ([], [20, 50])
    assert "51" in next_asked["text"]
    assert (await shop.store.grant_use(grant)).calls == 2  # type: ignore[attr-defined]
    approvals = [record.approval for record in shop.watch.records if record.approval]
    assert [approval["scope"] for approval in approvals] == ["within"] * 2


@over_both
async def test_a_yes_may_be_bound_to_parts_of_a_nested_argument(person: OpenFrontEnd) -> None:
    orders = [{"to": "ada", "items": [{"price": price}] * 2} for price in (5, 9, 60)]
    shop = Shop(*((order, 20) for order in orders))
    ada = person(shop)

    asked = ada.begin()
    shown = ada.say_yes(further={"bounds": {"order": "", "order.items[*].price": "<= 50"}})
    next_asked = ada.say_yes(words=shown["words"])

    assert [*asked["schema"]["properties"]["bounds"]["properties"]] == [
        *("order", "order.to", "order.items[*].price"),
        "euros",
    ]
    assert shown["words"].startswith('refund: order.to exactly "ada", order.items[*].price up to 50, euros exactly 20')
    assert shop.paid == [20, 20]
    assert '"price": 60' in next_asked["text"]


@over_both
@pytest.mark.parametrize("words", ["refund: order any", "yes", None])
async def test_other_words_count_for_nothing_and_a_plain_yes_for_its_call_alone(
    person: OpenFrontEnd, words: str | None
) -> None:
    shop = Shop(("A", 20), ("B", 20))
    ada = person(shop)
    ada.begin()
    ada.say_yes(further=WIDE)

    asked = ada.say_yes(**({"words": words} if words else {}))

    assert await shop.store.standing() == ()  # type: ignore[attr-defined]
    assert shop.paid == ([] if words else [20])
    assert ("Nothing was approved: these are not the words that were shown last." in asked["text"]) == bool(words)


@over_both
async def test_words_that_were_shown_for_another_choice_do_not_count(person: OpenFrontEnd) -> None:
    shop = Shop(("A", 20))
    ada = person(shop)
    ada.begin()
    wide, narrow = ada.say_yes(further=WIDE), ada.say_yes(further={**WIDE, "uses": 1})

    ada.say_yes(words=wide["words"])

    assert wide["words"] != narrow["words"]
    assert (shop.paid, await shop.store.standing()) == ([], ())  # type: ignore[attr-defined]


@over_both
@pytest.mark.parametrize("sent", ["further", "words"])
async def test_a_no_is_a_no_whatever_stands_beside_it(person: OpenFrontEnd, sent: str) -> None:
    shop = Shop(("A", 20))
    ada = person(shop)
    ada.begin()
    shown = ada.say_yes(further=WIDE)

    after = ada.say_yes(approved=False, **({"words": shown["words"]} if sent == "words" else {"further": WIDE}))

    assert (after, shop.paid, await shop.store.standing()) == ({}, [], ())  # type: ignore[attr-defined]


@over_both
@pytest.mark.parametrize(
    ("further", "why"),
    [
        ({"bounds": {"euros": "up to 50"}}, "`euros`: 'up to 50' is not a bound"),
        ({"bounds": {"euros": "<= 5"}}, "it does not cover this call"),
        ({"bounds": {"order": True}}, "`order`: 'true' is not a bound"),
        ({"uses": 1.5}, "number of calls is '1.5'"),
        ({"hours": 25}, "at most, and not for 25 hours"),
        ({"total": 50, "summed": "order"}, "it counts `order`"),
        ({"times": "at night"}, "'at night' is not a time of day"),
        ({"width": "all"}, "there is no field 'width'"),
        ({"bounds": "any"}, "bounds is 'any'; give an object"),
    ],
)
async def test_a_form_that_makes_no_sense_or_wants_too_much_is_said_and_asked_again(
    person: OpenFrontEnd, further: dict[str, Any], why: str
) -> None:
    shop = Shop(("A", 20))
    ada = person(shop)
    ada.begin()

    asked = ada.say_yes(further=further)
    again = ada.say_yes(further=WIDE)

    assert why in asked.get("error", "") + asked.get("text", "")
    assert (shop.paid, again["words"][:17]) == ([], "refund: order any")


@over_both
async def test_a_front_end_without_the_option_asks_for_this_call_alone(person: OpenFrontEnd) -> None:
    shop = Shop(("A", 20))
    ada = person(shop, None)

    asked = ada.begin()
    refused = ada.say_yes(further=WIDE)

    assert (asked["schema"], refused["schema"], refused["words"]) == (None, None, "")
    assert "Nothing was approved: this request is answered for its call alone." in refused["text"]
    assert shop.paid == []


@over_both
async def test_another_process_takes_the_words_up(person: OpenFrontEnd, tmp_path: Path) -> None:
    first = Shop(("A", 20), ("B", 30), store=SqliteApprovalStore(tmp_path / "approvals.db"))
    ada = person(first)
    ada.begin()
    shown = ada.say_yes(further=WIDE)
    second = Shop(("B", 30), store=SqliteApprovalStore(tmp_path / "approvals.db"))
    later = person(second)
    later.begin()  # she opens the page again, and is asked anew

    forgotten = later.say_yes(words=shown["words"])
    again = later.say_yes(further=WIDE)
    later.say_yes(words=again["words"])

    assert "not the words that were shown last" in forgotten["text"]
    assert (first.paid, second.paid) == ([], [20, 30])


async def test_edited_arguments_and_further_calls_are_not_approved_together() -> None:
    shop = Shop(("A", 20), ("B", 20))
    ada = AgUiPerson(shop)
    ada.begin()
    shown = ada.say_yes(further=WIDE)

    asked = ada.say_yes(words=shown["words"], editedArgs={"order": "A", "euros": 1})

    assert "Nothing was approved: this request is answered for its call alone." in asked["text"]
    assert (shop.paid, await shop.store.standing()) == ([], ())  # type: ignore[attr-defined]


@over_both
@pytest.mark.parametrize(
    ("always", "why"),
    [(None, "answered for its call alone"), (timedelta(minutes=5), "it may hold for 5 minutes at most; choose again")],
)
async def test_words_count_by_the_limit_of_when_they_come_back(
    person: OpenFrontEnd, always: timedelta | None, why: str, tmp_path: Path
) -> None:
    shop = Shop(("A", 20), ("B", 20), store=SqliteApprovalStore(tmp_path / "approvals.db"))
    ada = person(shop)
    ada.begin()
    shown = ada.say_yes(further=WIDE)
    later = person(shop, always)
    later._asked = ada._asked  # type: ignore[attr-defined]  # the host has set another limit, and started anew

    asked = later.say_yes(words=shown["words"])

    assert why in asked["text"]
    assert (shop.paid, await shop.store.standing()) == ([], ())  # type: ignore[attr-defined]


NEARLY: list[dict[str, Any]] = [
    {"further": None},
    {"further": "any"},
    {"further": [WIDE]},
    {"further": {"width": "all"}},
    {"Further": WIDE},
    {"FURTHER ": WIDE},
    {"words": None},
    {"words": ""},
    {"words": ["yes"]},
    {"Words": "yes"},
    {"further": WIDE, "note": "please"},
    {"words": "yes", "note": "please"},
]


RULES = ApproverRules(
    [
        ApproverRule(name="small", up_to={"euros": 50}, of="shop", not_requester=False),
        ApproverRule(name="large", over={"euros": 50}, of="bank", not_requester=False),
    ],
    Groups({"shop": ["ada"], "bank": ["bob"]}),
)


@pytest.mark.parametrize(
    ("edited", "why"),
    [
        ({"order": "A", "euros": "many"}, "euros: must be"),
        ({"order": "A"}, "euros: missing"),
        ({"order": "A", "euros": REDACTED}, "euros: type the real value in place of the hidden one"),
        (
            {"order": "A", "euros": 900},
            "`euros` is 900 after the edit, and the approval of ada does not meet the rule large",
        ),
    ],
    ids=lambda value: f"{value}"[:40],
)
def test_why_an_edit_was_not_taken_is_said_where_the_question_is_shown_again(edited: Any, why: str) -> None:
    shop = Shop(("A", 20))
    shop.gates = [RULES]
    ada = AgUiPerson(shop)
    ada.begin()

    asked = ada.say_yes(editedArgs=edited)
    ada.say_yes(editedArgs={"order": "A", "euros": 7})

    assert asked["text"].startswith("Nothing was approved: the approval for `refund` cannot be used: ")
    assert why in asked["text"]
    assert shop.paid == [7]


@over_both
def test_why_somebody_who_may_not_approve_a_call_was_not_heard_is_said(person: OpenFrontEnd) -> None:
    shop = Shop(("A", 70))
    shop.gates = [RULES]
    ada = person(shop)
    ada.begin()

    asked = ada.say_yes()

    assert "Nothing was approved: the approval for `refund` cannot be used: the approval of ada" in asked["text"]
    assert shop.paid == []


@over_both
@pytest.mark.parametrize("more", NEARLY, ids=json.dumps)
async def test_what_is_nearly_a_form_is_no_plain_yes(person: OpenFrontEnd, more: dict[str, Any]) -> None:
    shop = Shop(("A", 20))
    ada = person(shop)
    ada.begin()

    refused = ada.say_yes(**more)
    again = ada.say_yes(further=WIDE)

    assert "of the answer to ask_" in refused["error"]
    assert (shop.paid, again["words"][:17]) == ([], "refund: order any")


@pytest.mark.parametrize(
    "reason",
    [
        '{"further": {"bounds": {}}, "words": ""}',
        '{"result": 1, "more": 2}',
        '{"Result": 1}',
        '{"further": {"uses": ' + "1" * 5000 + "}}",
        '{"further": ' + "[" * 100_000 + "]" * 100_000 + "}",
    ],
    ids=["two forms", "a result and more", "another case", "a long number", "a deep one"],
)
def test_a_reason_that_is_nearly_a_form_is_refused(reason: str) -> None:
    ada = VercelPerson(shop := Shop(("A", 20)))
    ada.begin()

    refused = ada.answer({"approved": True, "reason": reason})

    assert "the reason of the answer to ask_" in refused["error"]
    assert shop.paid == []


@pytest.mark.parametrize("reason", ["further calls, too", '"further"', '["words"]', '{"why": "further"}', "{further}"])
def test_any_other_reason_is_of_a_plain_yes(reason: str) -> None:
    ada = VercelPerson(shop := Shop(("A", 20)))
    ada.begin()

    assert (ada.answer({"approved": True, "reason": reason}), shop.paid) == ({}, [20])


@pytest.mark.parametrize("is_no_last", [True, False])
def test_a_no_among_the_answers_to_a_request_counts(is_no_last: bool) -> None:
    ada = VercelPerson(shop := Shop(("A", 20)))
    ada.begin()

    said = [{"approved": True}, {"approved": False}]
    ada.answer(*(said if is_no_last else reversed(said)))

    assert shop.paid == []


def test_of_two_yeses_in_a_chat_the_last_counts() -> None:
    ada = VercelPerson(shop := Shop(("A", 20)))
    ada.begin()

    bad = {"approved": True, "reason": json.dumps({"further": "any"})}
    shown = ada.answer(bad, {"approved": True, "reason": json.dumps({"further": WIDE})})

    assert (shop.paid, shown["words"][:17]) == ([], "refund: order any")


@pytest.mark.parametrize("second", [True, False])
def test_two_answers_to_an_interrupt_are_refused(second: bool) -> None:
    ada = AgUiPerson(shop := Shop(("A", 20)))
    ada.begin()

    refused = ada.answer({"approved": not second}, {"approved": second})

    assert (refused["error"], shop.paid) == ("an interrupt is answered twice; send one answer to each", [])
    assert (ada.say_yes(), shop.paid) == ({}, [20])
