"""A number without a fraction is an integer where an integer is wanted, whatever the tool is made of."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from tests.effort import examples
from toolcrib import Tool
from toolcrib.errors import InvalidArguments
from toolcrib.tools import ez_tool
from toolcrib.tools.from_schema import schema_tool


@ez_tool
def count(n: int) -> None:
    """Count."""


def answer(tool: Tool[..., Any], text: str) -> Any:
    try:
        return tool.spec.read(text)["n"]
    except InvalidArguments:
        return "refused"


@pytest.mark.parametrize("seed", range(examples(100)))
def test_a_tool_of_a_schema_reads_numbers_as_one_of_a_function_does(seed: int) -> None:
    random = Random(seed)
    tool = schema_tool("count", {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
    for _ in range(20):
        number = random.choice([random.uniform(-9, 9), float(random.randrange(10**6)), random.uniform(1, 9)])
        number = random.choice(
            [number, number * 10.0 ** random.randrange(30), float(int(number)), 1e22, 1e300, 2.0**63]
        )
        text = json.dumps({"n": random.choice([number, -number, int(number)])})

        one, other = answer(count, text), answer(tool, text)
        assert (type(one), one) == (type(other), other), text


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"n": {"enum": [1, 2]}}},
        {"properties": {"n": {"const": 2}}},
        {"properties": {"n": {"type": "number", "enum": ["x", 2]}}},
        {"patternProperties": {"^n": {"type": "integer"}}, "additionalProperties": {"type": "number"}},
        {"properties": {"n": True}, "patternProperties": {"^n": {"type": "integer"}}},
        {"unevaluatedProperties": {"type": "integer"}},
    ],
    ids=str,
)
def test_an_integer_is_one_wherever_the_schema_has_it(schema: dict[str, Any]) -> None:
    value = answer(schema_tool("count", {"type": "object", **schema}), '{"n": 2.0}')

    assert (type(value), value) == (int, 2)


@pytest.mark.parametrize("schema", [{"enum": [2.0]}, {"type": "number"}, {}, {"type": ["integer", "number"]}], ids=str)
def test_a_float_stays_one_where_the_schema_has_floats(schema: dict[str, Any]) -> None:
    value = answer(schema_tool("count", {"type": "object", "properties": {"n": schema}}), '{"n": 2.0}')

    assert (type(value), value) == (float, 2.0)
