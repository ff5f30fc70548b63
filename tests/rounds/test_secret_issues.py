"""What a host sees of a call that could not be made: no secret of its arguments."""

from __future__ import annotations

from typing import Annotated, Literal

import pytest
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

from toolcrib.calls import ToolCall
from toolcrib.errors import InvalidArguments
from toolcrib.pipeline import Run
from toolcrib.rounds import decode
from toolcrib.schema import Redacted
from toolcrib.testing import RecordingSink, wire_reply
from toolcrib.tools import tool
from toolcrib.toolsets import Toolset


class Card(TypedDict):
    kind: Literal["card"]
    number: str


class Bank(TypedDict):
    kind: Literal["bank"]
    iban: str


class Account(BaseModel):
    model_config = ConfigDict(extra="forbid")
    pin: Annotated[str, Redacted()] = ""


def _no_notes(notes: dict[str, str]) -> dict[str, str]:
    raise ValueError("; ".join(f"no {key.strip()[:6]!r} is {text.upper()}" for key, text in notes.items()))


@tool(register=False)
async def sign_in(
    user: str,
    password: Annotated[str, Redacted()],
    pays: Annotated[Annotated[Card | Bank, Field(discriminator="kind")] | None, Redacted()] = None,
    limits: Annotated[dict[str, int] | None, Redacted()] = None,
    places: Annotated[dict[int, list[Card]] | None, Redacted()] = None,
    account: Account | None = None,
    notes: Annotated[Annotated[dict[str, str], AfterValidator(_no_notes)] | None, Redacted()] = None,
) -> str:
    return "in"


@pytest.mark.parametrize(
    "arguments",
    [
        '"{}"',
        '["{}"]',
        "{}",
        '{{"user": "ann", "password": "{}"',
        '{{"user": "ann", "password": "{}"}} and more',
        '{{"user": "ann", "password": {{"a": "{}"}}}}',
        '{{"user": 1, "password": "{}"}}',
        '{{"user": "ann", "password": "a", "password": "{}"}}',
        '{{"user": "ann", "password": "a", "pays": "{}"}}',
        '{{"user": "ann", "password": "a", "pays": {{"kind": "{}"}}}}',
        '{{"user": "ann", "password": "a", "pays": {{"kind": "bank", "iban": ["{}"]}}}}',
        '{{"user": "ann", "password": "a", "limits": {{"{}": "x"}}}}',
        '{{"user": "ann", "password": "a", "limits": {{"{0}": 1, "{0}": 1}}}}',
        '{{"user": "ann", "password": "a", "places": {{"{}": []}}}}',
        '{{"user": "ann", "password": "a", "places": {{"1": [{{"kind": "card", "number": "1", "{}": 1}}, 2]}}}}',
        '{{"user": "ann", "password": "a", "account": {{"{}": 1}}}}',
        '{{"user": "ann", "password": "a", "notes": {{"{}\\n": "a"}}}}',
        '{{"user": "ann", "password": "a", "notes": {{"a": "{}"}}}}',
    ],
)
async def test_what_is_wrong_with_a_call_says_no_secret(arguments: str) -> None:
    call = ToolCall("sign_in", arguments.format("hunter2"), "call_1")
    events = RecordingSink()
    run = Run(sinks=[events])
    plan = await decode(Toolset([sign_in]), wire_reply("openai", [call]), run=run).apply_hooks()

    (issue,) = plan.issues
    assert issue.outcome.code == "invalid_arguments"
    kept = [event.to_dict() for event in events.events]
    said = f"{plan.issues!r} {issue.reason} {issue.outcome.to_dict()} {issue.outcome.exception!r} {kept}".casefold()
    assert "hunte" not in said


def test_a_path_in_a_secret_names_what_is_declared_and_the_place_in_a_list() -> None:
    given = {"user": "ann", "password": "a", "places": {4711: [{"kind": "card", "number": 1}]}, "account": {"pin": 1}}

    with pytest.raises(InvalidArguments) as caught:
        sign_in.spec.validate_python(given)

    assert {problem.field for problem in caught.value.problems} == {"places.[redacted][0].number", "account.pin"}
