from __future__ import annotations

from typing import Any, Literal

import pytest
from pydantic import BaseModel

from toolcrib.jsonschema import describe_shape
from toolcrib.schema import ToolSpec


class Weather(BaseModel):
    location: str
    temp: int


class Node(BaseModel):
    value: int
    next: Node | None
    kind: Literal["leaf", "branch"]


@pytest.mark.parametrize(
    ("schema", "shape"),
    [
        (True, "Any"),
        ({}, "Any"),
        ({"type": "string"}, "str"),
        ({"type": "null"}, "None"),
        ({"type": ["integer", "null"]}, "int | None"),
        ({"type": "array"}, "list"),
        ({"type": "array", "items": {"type": "number"}}, "list[float]"),
        ({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}]}, "[int, str]"),
        ({"type": "object"}, "dict"),
        ({"type": "object", "additionalProperties": {"type": "boolean"}}, "dict[str, bool]"),
        ({"enum": ["c", "f"]}, "'c' | 'f'"),
        ({"const": 3}, "3"),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "integer"}]}, "int | str"),
        ({"allOf": [{"type": "string"}]}, "str"),
        ({"properties": {"a-b": {"type": "string"}}}, "{'a-b'?: str}"),
        ({"type": "object", "properties": {"id": {}, "n": {}}, "required": ["id"]}, "{id: Any, n?: Any}"),
    ],
)
def test_a_schema_has_a_short_shape(schema: Any, shape: str) -> None:
    assert describe_shape(schema) == shape


def test_references_are_written_out_and_recursion_is_cut() -> None:
    def tool() -> list[Weather]:
        return []

    def tree() -> Node:
        raise NotImplementedError

    shapes = [describe_shape(ToolSpec.from_function(fn, name="t").return_schema or {}) for fn in (tool, tree)]

    assert shapes == [
        "list[{location: str, temp: int}]",
        "{value: int, next: ... | None, kind: 'leaf' | 'branch'}",
    ]
