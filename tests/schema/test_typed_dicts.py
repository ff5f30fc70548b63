"""`typing.TypedDict` works on every Python, also on 3.11, where pydantic alone refuses it."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired, TypedDict

import pytest
from pydantic import Field

from toolcrib.schema import ToolSpec


class Point(TypedDict):
    """A place."""

    x: int
    y: NotRequired[int]


class Route(TypedDict, total=False):
    stops: list[Point]
    best: Point | None


class Tree(TypedDict):
    name: str
    children: list[Tree]


def spec_of(fn: Any) -> ToolSpec:
    return ToolSpec.from_function(fn, name="t")


def test_typed_dict_of_typing_is_a_parameter() -> None:
    def walk(route: Route, start: Annotated[Point, Field(description="where to begin")]) -> None: ...

    spec = spec_of(walk)
    arguments = spec.arguments(spec.validate_json('{"route": {"stops": [{"x": 1}]}, "start": {"x": 2, "y": 3}}'))

    assert arguments == {"route": {"stops": [{"x": 1}]}, "start": {"x": 2, "y": 3}}
    assert spec.parameters["properties"]["start"]["description"] == "where to begin"


def test_typed_dict_of_typing_keeps_what_is_required() -> None:
    def walk(start: Point) -> None: ...

    with pytest.raises(ValueError, match=r"start\.x: missing"):
        spec_of(walk).validate_json('{"start": {"y": 1}}')


@pytest.mark.parametrize("annotation", [Point, list[Point], dict[str, Point], Point | None, Annotated[Point, "note"]])
def test_typed_dict_of_typing_is_a_return_type(annotation: Any) -> None:
    def find() -> Any: ...

    find.__annotations__["return"] = annotation

    assert "'x'" in str(spec_of(find).return_schema)


def test_typed_dict_that_contains_itself_has_a_schema() -> None:
    def grow(tree: Tree) -> Tree: ...

    spec = spec_of(grow)

    assert spec.arguments(spec.validate_json('{"tree": {"name": "a", "children": []}}'))["tree"]["name"] == "a"
    assert spec.return_schema is not None
