from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.jsonschema.bombs import KINDS, bomb
from tests.rounds.replies import FORMATS
from tests.ways import each_representative, representatives
from toolcrib.calls import Completed, Failed, ToolCall
from toolcrib.errors import InvalidArguments, InvalidSchema, SchemaTooLarge
from toolcrib.formats import definitions
from toolcrib.pipeline import Pipeline
from toolcrib.rounds import decode
from toolcrib.schema import RunContext
from toolcrib.testing import Way
from toolcrib.tools import Tool
from toolcrib.tools.from_schema import schema_tool
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


@each_representative
async def test_a_call_gives_what_the_function_returns(way: Way) -> None:
    ran: list[Any] = []

    outcome = await way([ordering(ran)]).call("order", GOOD)

    assert isinstance(outcome, Completed)
    assert (outcome.value, ran) == ({"id": 1}, [GOOD])


@representatives("model")
@pytest.mark.parametrize(
    ("wrong", "field"),
    [({"item": "wine"}, "item"), ({"item": "tea", "count": 0}, "count"), ({**GOOD, "to": {"city": "oslo"}}, "to.city")],
)
async def test_arguments_that_do_not_fit_run_nothing(way: Way, wrong: dict[str, Any], field: str) -> None:
    ran: list[Any] = []

    outcome = await way([ordering(ran)]).call("order", wrong)

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


@each_representative
async def test_what_the_run_fills_is_no_argument(way: Way) -> None:
    async def place(ctx: RunContext[Any], item: str) -> str:
        return f"{item} by {ctx.tool_name}"

    tool = schema_tool("order", {"type": "object", "properties": {"item": {"type": "string"}}}, place)

    outcome = await way([tool]).call("order", {"item": "tea"})

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
        ({"type": "string"}, InvalidSchema, "`order` cannot be made .*: type: arguments are an object"),
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
            "tree": {"$dynamicRef": "#Tree"},
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


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        (None, "the schema: it is None"),
        ([], "the schema: it is "),
        ({"properties": 3}, "properties: 3 is not of type"),
        ({"properties": []}, "properties: "),
        ({"properties": {"a": None}}, "properties.a: None is not"),
        ({"properties": {"a": {"type": 7}}}, "properties.a.type: 7"),
        ({"properties": {5: {}}}, "properties: the key 5 is not JSON"),
        ({"properties": {"a\ud800": {}}}, "properties: the key 'a.ud800' is not JSON"),
        ({"properties": {"a": {"description": "\ud800"}}}, "properties.a.description: its text has half a character"),
        ({"properties": {"a": {"default": float("nan")}}}, "properties.a.default: nan is not JSON"),
        ({"properties": {"a": {"enum": [1, object()]}}}, r"properties.a.enum\[1\]: <object"),
        ({"$schema": 5}, "\\$schema: it names a version"),
        ({"required": "a"}, "required: 'a' is not of type"),
        ({"properties": {"a": {"items": {"$ref": "#/$defs/B"}}}}, r"properties.a.items.\$ref: '#/\$defs/B' is not in"),
        ({"anyOf": [{}, {"$ref": "https://e.com/A"}]}, r"anyOf\[1\].\$ref: 'https://e.com/A' is not in the schema"),
        ({"type": ["string", "null"]}, "type: arguments are an object"),
    ],
)
def test_what_is_no_schema_is_one_error_that_names_the_place(schema: Any, place: str) -> None:
    with pytest.raises(InvalidSchema, match=f"^`order` cannot be made of a JSON schema: {place}"):
        schema_tool("order", schema)
    if isinstance(schema, dict) and "type" not in schema:
        with pytest.raises(InvalidSchema, match=r"`order` .*: output_schema"):
            schema_tool("order", {}, output_schema=schema)


@pytest.mark.parametrize("name", ["", None, 5, b"order", "a\ud800"])
def test_what_is_no_name_is_the_same_error(name: Any) -> None:
    with pytest.raises(InvalidSchema, match=r"name: .* is not the name of a tool"):
        schema_tool(name, {})


async def test_a_schema_that_is_changed_afterwards_changes_no_tool() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "integer"}}}
    tool = schema_tool("order", schema, lambda a: a)

    schema["properties"]["a"]["type"] = "string"

    with pytest.raises(InvalidArguments):
        tool.spec.validate_python({"a": "x"})


TAKING: list[dict[str, Any]] = [
    {"properties": {"a": {}}},
    {"allOf": [{"properties": {"a": {}}}]},
    {"anyOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]},
    {"oneOf": [{"$ref": "#/$defs/A"}], "$defs": {"A": {"allOf": [{"properties": {"a": {}}}]}}},
    {"propertyNames": {"pattern": "^x"}},
    {"unevaluatedProperties": {"type": "string"}},
    {"patternProperties": {"^x": {}}},
    {"if": {"required": ["a"]}, "then": {}},
]


@pytest.mark.parametrize("raw", ["", "null"])
@pytest.mark.parametrize("schema", TAKING)
def test_nothing_is_no_arguments_for_a_tool_that_takes_some(schema: dict[str, Any], raw: str) -> None:
    tool = schema_tool("order", {"type": "object", **schema}, lambda **given: given)

    with pytest.raises(InvalidArguments, match="no arguments came"):
        tool.spec.validate_json(raw)
    tool.spec.validate_json("{}")


@pytest.mark.parametrize("schema", [{}, {"properties": {}}, {"additionalProperties": False}, {"allOf": [{}, True]}])
def test_nothing_is_enough_for_a_tool_that_takes_none(schema: dict[str, Any]) -> None:
    tool = schema_tool("order", {"type": "object", **schema}, lambda **given: given)

    tool.spec.validate_json("")


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        (r"^\p{L}+$", "née", "n1"),
        (r"^(?<year>\d{4})$", "2024", "24"),
        (r"^(?=.*[a-z])(?=.*\d)(?!.*[()\]])\S{4,}$", "abc1", "abcd"),
        (r"^(?!-)[a-z-]+$", "a-b", "-a"),
    ],
)
async def test_a_pattern_that_no_provider_reads_is_checked(pattern: str, good: str, bad: str) -> None:
    tool = schema_tool("take", {"properties": {"a": {"type": "string", "pattern": pattern}}}, lambda a: a)

    outcomes = [await Pipeline([tool]).run(ToolCall("take", {"a": text})) for text in (good, bad)]

    assert [outcome.kind for outcome in outcomes] == ["completed", "failed"]
    assert "must match the pattern" in outcomes[1].text()


@pytest.mark.parametrize(
    ("part", "good", "bad"),
    [
        ({"type": "string", "pattern": r"^[\w-.]+$"}, "a-b.c", "a b"),
        ({"type": "string", "pattern": r"^[^]*x$"}, "a\nx", "a"),
        ({"type": "string", "pattern": r"^\cA$"}, "\x01", "A"),
        ({"type": "string", "pattern": r"^[\b]$"}, "\b", "b"),
        ({"type": ["string", None]}, None, 1),
        ({"type": "integer", "enum": None, "minimum": None, "items": None, "anyOf": None}, 1, "a"),
    ],
)
@pytest.mark.parametrize("strict", [False, True])
async def test_what_others_write_is_read_as_they_mean_it(
    part: dict[str, Any], good: object, bad: object, strict: bool
) -> None:
    tool = schema_tool("take", {"type": "object", "properties": {"a": part}}, lambda a: [a])

    outcomes = [await Pipeline([tool]).run(ToolCall("take", {"a": value})) for value in (good, bad)]

    assert [outcome.kind for outcome in outcomes] == ["completed", "failed"]
    assert len(definitions([tool], "openai", strict=strict, refused="raise")) == 1


@pytest.mark.parametrize("pattern", ["(", "[", "a{2,1}", r"(?<n>a"])
def test_what_no_reader_takes_for_a_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidSchema, match=r"properties\.a\.pattern"):
        schema_tool("take", {"properties": {"a": {"pattern": pattern}}})
