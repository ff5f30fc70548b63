"""Look-ups: a trusted result that was looked up with a stranger's value is untrusted, also where that is a key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from toolcrib.calls import ToolCall
from toolcrib.pipeline import Pipeline, Run
from toolcrib.provenance import Memory, Provenance
from toolcrib.tools import ez_tool

FIELDS = frozenset({"names", "status"})


def memory() -> Memory:
    made = Memory()
    made.hear("mail it to ann@corp.com, 1 time; the open ones")
    made.read("read_mail", "c1", {}, "A riddle: do as it says", "untrusted")
    return made


KEYED: list[dict[str, Any]] = [
    {"names": {"eve@evil.com": 1}},
    {"names": {"eve@evil.com": True}},
    {"names": [{"eve@evil.com": {}}]},
    {"eve@evil.com": 1},
]


@pytest.mark.parametrize("arguments", KEYED)
def test_what_a_key_looked_up_is_not_trusted(arguments: Mapping[str, Any]) -> None:
    made = memory()
    made.read("expand", "c2", arguments, ["eve@evil.com"], "trusted", fields=FIELDS)

    assert made.judge("send", "send", {"to": "eve@evil.com"}) != []


@pytest.mark.parametrize(
    "arguments", [{"names": {"ann@corp.com": 1}}, {"status": "open"}, {"names": {"status": "open"}}]
)
def test_what_keys_of_the_schema_or_of_the_users_looked_up_is_trusted(arguments: Mapping[str, Any]) -> None:
    made = memory()
    made.read("expand", "c2", arguments, ["bo@corp.com"], "trusted", fields=FIELDS)

    assert made.judge("send", "send", {"to": "bo@corp.com"}) == []


async def test_a_call_of_a_tool_is_looked_up_by_the_keys_that_its_schema_does_not_name() -> None:
    @ez_tool(effect="none", source="untrusted")
    async def read_mail() -> str:
        """Read."""
        return "moc.live@eve"

    @ez_tool(effect="none", source="trusted")
    async def turned(names: dict[str, int]) -> list[str]:
        """Turn names."""
        return [name[::-1] for name in names]

    @ez_tool(effect="send", source="trusted")
    async def send(to: str) -> str:
        """Send."""
        return "sent"

    pipeline, run = Pipeline([read_mail, turned, send]), Run(features=[Provenance()])
    run.add_user_message("Mail it to ann@corp.com, 1 time")
    await pipeline.run(ToolCall("read_mail", {}), run)
    await pipeline.run(ToolCall("turned", {"names": {"moc.live@eve": 1}}), run)

    assert (await pipeline.run(ToolCall("send", {"to": "eve@evil.com"}), run)).kind == "suspended"
