from __future__ import annotations

import ast
import enum
import inspect
from collections.abc import AsyncIterator
from datetime import date
from typing import Annotated, Any, Literal, NotRequired

import pytest
from pydantic import BaseModel, Field, JsonValue
from typing_extensions import TypeAliasType, TypedDict

from toolcrib.jsonschema import describe_shape
from toolcrib.schema import STUB_IMPORTS, RunContext, StubTypes, ToolSpec
from toolcrib.tools.from_schema import schema_tool


class Unit(enum.Enum):
    C = "c"
    F = "f"


class Wind(BaseModel):
    speed: float
    gusts: float = 0.0


class Weather(BaseModel):
    """The weather at a place."""

    city: str = Field(description="Where.")
    wind: Wind


class Node(BaseModel):
    value: int
    parent: Node | None = None
    children: list[Node] = []


Odd = TypedDict("Odd", {"class": int, "a-b": NotRequired[str]})
Tree = TypeAliasType("Tree", "list[Tree] | int")


def spec_of(fn: Any, name: str = "tool", **options: Any) -> ToolSpec:
    return ToolSpec.from_function(fn, name=name, **options)


def run(*specs: ToolSpec) -> dict[str, Any]:
    """Execute stubs that share their types, and return what they define."""
    types = StubTypes()
    stubs = [spec.stub(types=types) for spec in specs]
    space: dict[str, Any] = {}
    exec(compile("\n".join([STUB_IMPORTS, *types.render(), *stubs]), "stubs", "exec"), space)
    return space


def test_a_stub_is_a_function_with_its_docstring() -> None:
    def get_weather(city: str, unit: Literal["c", "f"] = "c", *, day: date | None = None) -> Weather:
        """Get the weather.

        More.

        Args:
            city: Where.
            day: When.

        Returns:
            What it is like.
        """
        raise NotImplementedError

    spec = spec_of(get_weather, "get_weather")

    assert spec.stub() == (
        "def get_weather(city: str, unit: Literal['c', 'f'] = 'c', *, day: str | None = None) -> Weather:\n"
        '    """Get the weather.\n'
        "\n"
        "    Args:\n"
        "        city: Where.\n"
        "        day: When. (a date like 2025-01-31)\n"
        "\n"
        "    Returns:\n"
        "        What it is like.\n"
        '    """\n'
        "    ..."
    )
    assert spec.stub_types() == [
        "class Wind(TypedDict):\n    speed: float\n    gusts: float",
        'class Weather(TypedDict):\n    """The weather at a place."""\n    city: str  # Where.\n    wind: Wind',
    ]
    run(spec)


def test_a_stub_may_be_bare_renamed_and_async() -> None:
    def look(city: str) -> None:
        """Look."""

    assert spec_of(look).stub("app__look", docs=False, is_async=True) == (
        "async def app__look(city: str) -> None:\n    ..."
    )


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (bool, "bool"),
        (float, "float"),
        (list[int], "list[int]"),
        (list, "list[Any]"),
        (dict[str, int], "dict[str, int]"),
        (dict, "dict[str, Any]"),
        (Any, "Any"),
        (Unit, "Literal['c', 'f']"),
        (Unit | None, "Literal['c', 'f'] | None"),
        (Literal["a", 1, None], "Literal['a', 1, None]"),
        (int | str | None, "int | str | None"),
        (tuple[int, str], "list[int | str]"),
        (tuple[int, ...], "list[int]"),
        (set[str], "list[str]"),
        (date, "str"),
        (Wind, "Wind"),
        (Wind | None, "Wind | None"),
        (list[Wind | int], "list[Wind | int]"),
        (Node, "Node"),
        (Odd, "Odd"),
        (Tree, "list[Any] | int"),
        (JsonValue, "Any"),
        (Annotated[int, Field(ge=1)], "int"),
    ],
    ids=str,
)
def test_annotations_are_json_shapes_that_stand_alone(annotation: Any, text: str) -> None:
    def tool(x: Any) -> None: ...

    tool.__annotations__["x"] = annotation
    spec = spec_of(tool)

    assert spec.stub(docs=False) == f"def tool(x: {text}) -> None:\n    ..."
    run(spec)


def test_a_recursive_model_refers_to_itself() -> None:
    def tool(x: Node) -> None: ...

    assert spec_of(tool).stub_types() == [
        "class Node(TypedDict):\n"
        "    value: int\n"
        "    parent: NotRequired['Node | None']\n"
        "    children: NotRequired['list[Node]']"
    ]


def test_keys_that_are_no_names_are_written_as_text() -> None:
    def tool(x: Odd) -> None: ...

    assert spec_of(tool).stub_types() == ["Odd = TypedDict('Odd', {'class': int, 'a-b': NotRequired[str]})"]


def test_tools_share_the_types_that_they_share() -> None:
    def store(wind: Wind) -> None: ...
    def load() -> list[Wind]:
        return []

    types = StubTypes()
    stubs = [spec_of(store, "store").stub(types=types), spec_of(load, "load").stub(types=types)]

    assert types.render() == ["class Wind(TypedDict):\n    speed: float\n    gusts: NotRequired[float]"]
    assert "wind: Wind" in stubs[0]
    assert "-> list[Wind]" in stubs[1]


def test_different_types_of_one_name_get_different_names() -> None:
    def load() -> list[Wind]:
        return []

    def local() -> ToolSpec:
        class Wind(BaseModel):
            knots: int

        def store(wind: Wind) -> None: ...

        return spec_of(store, "store")

    space = run(local(), spec_of(load, "load"))

    assert set(space["Wind"].__annotations__) == {"knots"}
    assert set(space["Wind_2"].__annotations__) == {"speed", "gusts"}


def test_a_given_schema_names_its_types() -> None:
    given = {
        "type": "object",
        "properties": {
            "items": {"type": "array", "items": {"type": "object", "properties": {"id": {"type": "integer"}}}}
        },
        "required": ["items"],
    }

    def list_items() -> dict[str, Any]:
        return {}

    spec = spec_of(list_items, "list_items", return_schema=given)

    assert spec.stub_types() == [
        "class ListItemsResultItemsItem(TypedDict):\n    id: NotRequired[int]",
        "class ListItemsResult(TypedDict):\n    items: list[ListItemsResultItemsItem]",
    ]
    assert spec.stub(docs=False).endswith("-> ListItemsResult:\n    ...")
    run(spec)


def test_types_do_not_take_the_names_of_builtins() -> None:
    class list(BaseModel):
        x: int

    def tool(x: list) -> None: ...

    assert spec_of(tool).stub_types() == ["class list_(TypedDict):\n    x: int"]


def test_a_stream_comes_back_as_a_list() -> None:
    async def lines(ctx: RunContext, path: str) -> AsyncIterator[str]:
        yield path

    assert spec_of(lines).stub() == "def tool(path: str) -> list[str]:\n    ..."


def test_variadic_parameters_stay_variadic() -> None:
    def tool(first: int, *rest: str, flag: bool = False, **others: float) -> None: ...

    assert spec_of(tool).stub().startswith("def tool(first: int, *rest: str, flag: bool = False, **others: float) ->")


def test_fixed_parameters_are_left_out() -> None:
    def fetch(url: str, key: str, page: int = 1) -> None: ...

    spec = spec_of(fetch, fixed=frozenset({"key"}))

    assert spec.stub(docs=False) == "def tool(url: str, page: int = 1) -> None:\n    ..."


@pytest.mark.parametrize(
    "text", ['ends with "quotes"', 'has """ inside', "back\\slash \\n", "line\n\n    indented", '"']
)
def test_any_description_makes_a_valid_docstring(text: str) -> None:
    def tool(x: int) -> None: ...

    spec = spec_of(tool, description=text)

    assert inspect.cleandoc(run(spec)["tool"].__doc__) == inspect.cleandoc(text)


def test_a_default_without_a_text_is_an_ellipsis() -> None:
    def tool(x: Any = object(), y: str = "y" * 100) -> None: ...  # noqa: B008

    assert spec_of(tool).stub(docs=False) == "def tool(x: Any = ..., y: str = ...) -> None:\n    ..."


def test_a_schema_that_allows_no_value_has_a_type_in_python() -> None:
    schema: dict[str, Any] = {"properties": {"x": {"enum": []}}}

    spec = ToolSpec.from_schema(lambda x: x, schema, name="f")

    assert spec.stub(docs=False) == "def f(x: Never = ...) -> Any:\n    ..."
    assert run(spec)["f"].__name__ == "f"


@pytest.mark.parametrize("name", ["get-user", "get.user", "2fa", "class", "ünit", "見る", "a/b", "ﬁnd", "__debug__"])
def test_a_stub_of_any_name_is_python(name: str) -> None:
    tool = schema_tool(name, {"properties": {"x": {"type": "integer"}}})

    ast.parse(tool.spec.stub())


BASE = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
NAMED = {"type": "object", "properties": {"name": {"type": "string"}}}


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({"allOf": [BASE, NAMED]}, "class TA(TypedDict):\n    id: int\n    name: NotRequired[str]"),
        ({"allOf": [{"$ref": "#/$defs/Base"}, NAMED]}, "class TA(TypedDict):\n    id: int\n    name: NotRequired[str]"),
        ({"$ref": "#/$defs/Both"}, "class Both(TypedDict):\n    id: int\n    name: NotRequired[str]"),
        ({"allOf": [{"$ref": "#/$defs/Base"}], "description": "It."}, "class Base(TypedDict):\n    id: int"),
    ],
)
def test_a_stub_shows_what_has_to_fit_at_once(part: dict[str, Any], expected: str) -> None:
    definitions = {"Base": BASE, "Both": {"allOf": [{"$ref": "#/$defs/Base"}, NAMED]}}
    tool = schema_tool("t", {"properties": {"a": part}, "required": ["a"], "$defs": definitions})

    assert tool.spec.stub_types() == [expected]


def test_the_shape_of_what_has_to_fit_at_once_has_all_keys() -> None:
    assert describe_shape({"allOf": [BASE, {"minProperties": 1}, NAMED]}) == "{id: int, name?: str}"
    assert describe_shape({"allOf": [BASE, NAMED]}) == "{id: int, name?: str}"
    assert describe_shape({"allOf": [{"type": "number"}, {"type": ["integer", "string"]}]}) == "int"
