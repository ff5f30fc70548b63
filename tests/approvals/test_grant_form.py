"""Form of a standing grant: what of it is read, which requests have one, and that it says what is wrong."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from toolcrib.approvals import GrantForm
from toolcrib.calls import ApprovalRequest, Consent, now

ASKED = ApprovalRequest("ask_1", "call_1", "refund", {"order": "A", "euros": 20}, "d", principal="ann")
HOUR = timedelta(hours=1)


def test_a_form_that_is_empty_is_for_these_arguments_and_the_longest_time() -> None:
    grant = GrantForm().grant(ASKED, "ben", longest=HOUR)

    assert grant.text().startswith('refund: order exactly "A", euros exactly 20; on behalf of ann; until ')
    assert grant.expires_at is not None
    assert timedelta(0) < grant.expires_at - now() <= HOUR


def test_fields_are_read_as_a_person_types_them() -> None:
    form = GrantForm.from_dict({"bounds": {"euros": 20, "order": None}, "uses": 3.0, "hours": 0.5, "total": "100"})

    assert form == GrantForm({"euros": "20", "order": ""}, uses="3", hours="0.5", total="100")


@pytest.mark.parametrize(
    "request_of",
    [
        {"approvals_needed": 2},
        {"in_doubt": True},
        {"asked_by": "a server"},
        {"consent": Consent("why", "https://login.example", "ann", "https://tools.example")},
        {"arguments": {f"a{number}": number for number in range(41)}},
    ],
)
def test_a_request_that_is_answered_for_its_call_alone_has_no_form(request_of: dict[str, Any]) -> None:
    request = replace(ASKED, **request_of)

    assert GrantForm.fits(ASKED)
    assert not GrantForm.fits(request)
    with pytest.raises(ValueError, match="this request is answered for its call alone"):
        GrantForm().grant(request, "ben")


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"width": "all"}, "there is no field 'width'"),
        ({"bounds": ["any"]}, r"bounds is \['any'\]; give an object"),
        ({"times": "x" * 1001}, "is longer than 1000 characters"),
        ({"bounds": {"order": "x" * 1001}}, "is longer than 1000 characters"),
        ({"uses": -1}, "the number of calls is '-1', and has to be a whole number"),
        ({"uses": "1" * 10}, "the number of calls is '1111111111'"),
        ({"hours": 0}, "the number of hours is '0', and has to be a number of more than 0"),
        ({"hours": 10**5}, "the number of hours is '100000'"),
        ({"hours": 2}, "it may hold for 1 hour at most, and not for 2 hours"),
        ({"total": 50, "summed": "all"}, "a sum counts one argument: say which, of euros"),
    ],
)
def test_a_form_says_what_is_wrong_with_it(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        GrantForm.from_dict(fields).grant(ASKED, "ben", longest=HOUR)


def test_of_two_numbers_the_form_says_which_is_summed_up() -> None:
    request = replace(ASKED, arguments={"euros": 20, "items": 2})

    with pytest.raises(ValueError, match="a sum counts one argument: say which, of euros, items"):
        GrantForm(total="50").grant(request, "ben")
    assert GrantForm(total="50", summed="euros").grant(request, "ben").text().endswith("50 of euros in all")
    assert GrantForm.schema(request, HOUR)["properties"]["summed"]["enum"] == ["euros", "items"]
