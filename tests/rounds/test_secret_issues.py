"""What a host sees of a call that could not be made: no secret of its arguments."""

from __future__ import annotations

from typing import Annotated, Literal

import pytest
from pydantic import Field
from typing_extensions import TypedDict

from toolcrib.calls import ToolCall
from toolcrib.rounds import decode
from toolcrib.schema import Redacted
from toolcrib.testing import wire_reply
from toolcrib.tools import tool
from toolcrib.toolsets import Toolset


class Card(TypedDict):
    kind: Literal["card"]
    number: str


class Bank(TypedDict):
    kind: Literal["bank"]
    iban: str


@tool(register=False)
async def sign_in(
    user: str,
    password: Annotated[str, Redacted()],
    pays: Annotated[Annotated[Card | Bank, Field(discriminator="kind")] | None, Redacted()] = None,
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
    ],
)
async def test_what_is_wrong_with_a_call_says_no_secret(arguments: str) -> None:
    call = ToolCall("sign_in", arguments.format("hunter2"), "call_1")
    plan = await decode(Toolset([sign_in]), wire_reply("openai", [call])).apply_hooks()

    (issue,) = plan.issues
    assert issue.outcome.code == "invalid_arguments"
    assert "hunter2" not in f"{plan.issues!r} {issue.reason} {issue.outcome.to_dict()} {issue.outcome.exception!r}"
