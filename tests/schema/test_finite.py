"""Numbers are finite, at any depth, unless the parameter says otherwise."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from math import inf, isnan, nan
from typing import Annotated, Any

import pytest
from pydantic import AllowInfNan, BaseModel, ConfigDict, Field, JsonValue

from toolcrib.errors import InvalidArguments
from toolcrib.schema import ToolSpec


class Reading(BaseModel):
    model_config = ConfigDict(extra="allow")

    value: float = 0
    more: dict[str, float] = {}
    raw: Any = None


@dataclass
class Point:
    x: float


class Own(BaseModel):
    value: float

    def __init__(self, **values: Any) -> None:
        super().__init__(**values)


class Limits(BaseModel):
    most: Annotated[float, AllowInfNan(True)] = 0
    least: Annotated[float, AllowInfNan(False)] = 0


def spec_with(annotation: Any) -> ToolSpec:
    """Return the spec of a tool with one parameter `x` of this type."""

    def tool(x: Any) -> None: ...

    tool.__annotations__["x"] = annotation
    return ToolSpec.from_function(tool, name="tool")


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
@pytest.mark.parametrize(
    ("annotation", "text", "place"),
    [
        (float, "N", "x"),
        (int, "N", "x"),
        (Decimal, "N", "x"),
        (complex, "N", "x"),
        (float | None, "N", "x"),
        (list[float], "[1, N]", r"x\[1\]"),
        (Iterable[float], "[N]", r"x\[0\]"),
        (dict[str, float], '{"a": N}', r"x\.a"),
        (Reading, '{"value": N}', r"x\.value"),
        (list[Reading], '[{"more": {"a": N}}]', r"x\[0\]\.more\.a"),
        (Reading, '{"raw": [{"a": N}]}', r"x\.raw\[0\]\.a"),
        (Reading, '{"unknown": N}', r"x\.unknown"),
        (Point, '{"x": N}', r"x\.x"),
        (Own, '{"value": N}', r"x\.value"),
        (Any, "[N]", r"x\[0\]"),
        (dict, '{"a": N}', r"x\.a"),
        (JsonValue, "[N]", r"x\[0\]"),
    ],
)
def test_numbers_are_finite_at_any_depth(annotation: Any, text: str, place: str, number: str) -> None:
    with pytest.raises(InvalidArguments, match=rf"{place}: must be a finite number"):
        spec_with(annotation).validate_json(f'{{"x": {text.replace("N", number)}}}')


@pytest.mark.parametrize("value", [nan, inf, [inf], {"a": nan}, Decimal("nan")])
def test_python_numbers_are_finite_too(value: Any) -> None:
    with pytest.raises(InvalidArguments, match=r"x.*: must be a finite number"):
        spec_with(Any).validate_python({"x": value})


def test_undeclared_arguments_and_those_of_a_given_schema_are_finite() -> None:
    def tool(**rest: Any) -> None: ...

    given = ToolSpec.from_schema(tool, {"properties": {"x": {"type": "number"}}}, name="tool")

    for spec in (ToolSpec.from_function(tool, name="tool"), given):
        with pytest.raises(InvalidArguments, match="x: must be a finite number"):
            spec.validate_json('{"x": NaN}')


@pytest.mark.parametrize(
    "annotation",
    [
        Annotated[float, AllowInfNan(True)],
        Annotated[float, Field(allow_inf_nan=True)],
        Annotated[Decimal, AllowInfNan(True)],
    ],
)
@pytest.mark.parametrize("number", ["Infinity", "-Infinity"])
def test_a_parameter_may_allow_numbers_that_are_not_finite(annotation: Any, number: str) -> None:
    spec = spec_with(annotation)
    arguments = spec.arguments(spec.validate_json(f'{{"x": "{number}"}}'))

    text = json.dumps(spec.canonical(arguments).values, allow_nan=False)

    assert float(arguments["x"]) == float(number)
    assert spec.arguments(spec.validate_json(text)) == arguments


def test_a_field_may_allow_them_and_its_neighbour_not() -> None:
    spec = spec_with(Limits)

    assert spec.arguments(spec.validate_json('{"x": {"most": 1e999}}')) == {"x": Limits(most=inf)}
    assert spec.canonical({"x": Limits(most=nan)}).values == {"x": {"most": "NaN", "least": 0.0}}
    with pytest.raises(InvalidArguments, match=r"x\.least"):
        spec.validate_json('{"x": {"least": 1e999}}')


@pytest.mark.parametrize("default", [inf, -inf, nan])
def test_a_default_that_is_not_finite_says_that_others_need_not_be(default: float) -> None:
    def tool(seconds: float = default) -> None: ...

    spec = ToolSpec.from_function(tool, name="tool")

    made = spec.canonical(spec.arguments(spec.validate_json("{}")))
    again = spec.arguments(spec.validate_json(json.dumps(made.values)))["seconds"]

    assert again == default or (isnan(again) and isnan(default))
    assert "default" not in spec.parameters["properties"]["seconds"]


def test_text_that_reads_like_a_number_stays_text() -> None:
    spec = spec_with(str | list[str])

    assert spec.arguments(spec.validate_json('{"x": "NaN"}')) == {"x": "NaN"}
