from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.rounds.replies import FORMATS
from tests.schema.bombs import KINDS, bomb
from toolcrib import schema_tool
from toolcrib.calls import Completed, Failed, ToolCall
from toolcrib.errors import InvalidArguments, SchemaTooLarge
from toolcrib.pipeline import Pipeline
from toolcrib.rounds import decode
from toolcrib.schema import RunContext
from toolcrib.testing import Door, doors, every_door
from toolcrib.tools import Tool
from toolcrib.toolsets import Toolset

ORDER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "item": {"type": "string", "enum": ["tea", "coffee"], "description": "What to order."},
        "count": {"type": "integer", "minimum": 1, "maximum": 9},
        "to": {"$ref": "#/$defs/Address"},
    },
    "required": ["item"],
    "additionalProperties": False,
    "$defs": {
        "Address": {
            "type": "object",
            "properties": {"city": {"type": "string", "pattern": "^[A-Z]"}},
            "required": ["city"],
            "additionalProperties": False,
        }
    },
}
GOOD: dict[str, Any] = {"item": "tea", "count": 2, "to": {"city": "Oslo"}}
RECEIPT = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}


def ordering(ran: list[Any], **options: Any) -> Tool[..., Any]:
    async def place(**order: Any) -> dict[str, Any]:
        """Order a drink."""
        ran.append(order)
        return {"id": len(ran)}

    return schema_tool("order", ORDER, place, output_schema=RECEIPT, **options)


@every_door
async def test_a_call_gives_what_the_function_returns(door: Door) -> None:
    ran: list[Any] = []

    outcome = await door([ordering(ran)]).call("order", GOOD)

    assert isinstance(outcome, Completed)
    assert (outcome.value, ran) == ({"id": 1}, [GOOD])


@doors("model")
@pytest.mark.parametrize(
    ("wrong", "field"),
    [({"item": "wine"}, "item"), ({"item": "tea", "count": 0}, "count"), ({**GOOD, "to": {"city": "oslo"}}, "to.city")],
)
async def test_arguments_that_do_not_fit_run_nothing(door: Door, wrong: dict[str, Any], field: str) -> None:
    ran: list[Any] = []

    outcome = await door([ordering(ran)]).call("order", wrong)

    assert isinstance(outcome, Failed)
    assert outcome.code == "invalid_arguments"
    assert f"{field}: must " in outcome.message
    assert ran == []


def test_it_says_what_a_model_has_to_know() -> None:
    tool = ordering([])

    assert tool.description == "Order a drink."
    assert tool.parameters == ORDER
    assert tool.return_schema == RECEIPT
    assert "item: Literal['tea', 'coffee'], count: int = ..., to: Address = ...) -> OrderResult" in tool.stub()


def test_a_sync_function_and_a_generator_are_taken() -> None:
    def place(item: str) -> str:
        return item

    async def watch(item: str) -> AsyncIterator[str]:
        yield item

    schema = {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]}

    assert schema_tool("order", schema, place)("tea") == "tea"
    assert schema_tool("watch", schema, watch).is_streaming


@every_door
async def test_what_the_run_fills_is_no_argument(door: Door) -> None:
    async def place(ctx: RunContext[Any], item: str) -> str:
        return f"{item} by {ctx.tool_name}"

    tool = schema_tool("order", {"type": "object", "properties": {"item": {"type": "string"}}}, place)

    outcome = await door([tool]).call("order", {"item": "tea"})

    assert isinstance(outcome, Completed)
    assert outcome.value == "tea by order"


def test_a_caller_cannot_give_what_the_run_fills() -> None:
    async def place(ctx: RunContext[Any], item: str = "") -> str:
        return item

    tool = schema_tool("order", {"type": "object", "properties": {"item": {"type": "string"}}}, place)

    with pytest.raises(InvalidArguments, match="ctx: set by the host"):
        tool.spec.validate_python({"ctx": None})


async def test_without_a_function_it_is_an_input_of_the_hosts_own() -> None:
    tools = Toolset([schema_tool("order", ORDER, description="Order a drink.")])
    call = {"id": "c1", "type": "function", "function": {"name": "order", "arguments": '{"item": "tea"}'}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    reply = {"choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}]}

    plan = await decode(tools, reply, format="openai").apply_hooks()

    [pending] = plan.pending
    assert pending.name == "order"


@pytest.mark.parametrize(
    ("schema", "error", "said"),
    [
        ({"type": "string"}, TypeError, "must be an object's"),
        ({"type": "object", "properties": {"a": {"type": "text"}}}, ValueError, "is no JSON schema"),
        ({"type": "object", "properties": {"b": {}}}, TypeError, "has the argument `b`, and its function does not"),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused(schema: dict[str, Any], error: type[Exception], said: str) -> None:
    async def take(a: str) -> None: ...

    with pytest.raises(error, match=said):
        schema_tool("order", schema, take)


def test_an_option_that_there_is_not_is_refused() -> None:
    with pytest.raises(TypeError, match="schema_tool has no option `city`"):
        schema_tool("order", ORDER, city="Oslo")


@pytest.mark.parametrize("kind", KINDS)
def test_a_schema_whose_references_double_is_checked_within_its_limits(kind: str) -> None:
    tool = schema_tool("evil", bomb(kind))

    with pytest.raises(InvalidArguments, match="x: missing"):
        tool.spec.validate_python({"y": [{"a": {"b": {}}}] * 50})


def test_a_schema_that_is_nested_too_deep_is_refused() -> None:
    schema: dict[str, Any] = {}
    for _ in range(300):
        schema = {"type": "object", "properties": {"a": schema}}

    with pytest.raises(SchemaTooLarge, match="`deep`"):
        schema_tool("deep", schema)


@pytest.mark.parametrize(
    "arguments",
    [{"ids": [1] * 30_000, "mode": "delete"}, {"ids": [1], "mode": "delete", "tree": {"$": 1}}],
    ids=["takes too long", "refers to nothing"],
)
async def test_arguments_that_could_not_be_checked_to_their_end_are_refused(arguments: dict[str, Any]) -> None:
    ran: list[Any] = []

    def keep(**arguments: Any) -> None:
        ran.append(arguments)

    schema: dict[str, Any] = {
        "properties": {
            "ids": {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 9}},
            "tree": {"$ref": "#/$defs/Tree"},
            "mode": {"enum": ["dry"]},
        }
    }
    remove = schema_tool("remove", schema, keep)

    outcome = await Pipeline([remove]).run(ToolCall("remove", arguments))

    assert isinstance(outcome, Failed)
    assert (outcome.code, ran) == ("invalid_arguments", [])


def echo(**arguments: Any) -> dict[str, Any]:
    return arguments


def test_a_property_that_takes_anything_or_nothing_may_be_a_boolean() -> None:
    ask = schema_tool("ask", {"properties": {"any": True, "none": False}}, echo)

    assert ask.parameters["properties"] == {"any": {}, "none": {"not": {}}}
    assert all(Toolset([ask]).definitions(format=format) for format in FORMATS)


@pytest.mark.parametrize("schema", [None, [], True])
def test_what_is_no_dict_is_no_schema(schema: Any) -> None:
    with pytest.raises(TypeError, match="`ask`: the schema of its arguments must be a dict, and is"):
        schema_tool("ask", schema, echo)
