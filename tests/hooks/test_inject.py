"""What the run supplies: the key by which another system knows a call."""

from __future__ import annotations

from tests.ways import each_representative
from toolcrib import Outcome, Pipeline, ToolCall, tool
from toolcrib.calls import Completed
from toolcrib.schema import IdempotencyKey
from toolcrib.testing import Way


@each_representative
async def test_every_way_gives_a_tool_its_idempotency_key(way: Way) -> None:
    @tool()
    async def pay(amount: int, key: IdempotencyKey) -> str:
        return f"{amount}/{key}"

    first, second = [await way([pay]).call("pay", {"amount": 3}) for _ in range(2)]

    assert _key(first).startswith("3/")
    assert len(_key(first)) > 10
    assert _key(first) != _key(second)


async def test_the_key_is_the_call_s_id_and_not_in_the_schema() -> None:
    @tool()
    async def pay(amount: int, key: IdempotencyKey) -> str:
        return key

    outcome = await Pipeline([pay]).run(ToolCall("pay", {"amount": 3}, "call_7"))

    assert _key(outcome) == "call_7"
    assert list(pay.parameters["properties"]) == ["amount"]


async def test_a_direct_call_has_a_key_of_its_own() -> None:
    @tool()
    async def pay(amount: int, key: IdempotencyKey) -> str:
        return key

    assert await pay(3) != await pay(3)  # pyright: ignore[reportCallIssue] -- the run supplies the key


def _key(outcome: Outcome) -> str:
    assert isinstance(outcome, Completed), outcome
    return str(outcome.value)
