"""What holds for every signature: schemas, stubs and dumps of functions made of a pool of types."""

from __future__ import annotations

import enum
import inspect
import json
import keyword
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Literal, NamedTuple, NotRequired
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel
from typing_extensions import TypedDict

from tests.effort import examples
from toolcrib.errors import InvalidArguments
from toolcrib.jsonschema import describe_shape
from toolcrib.schema import STUB_IMPORTS, StubTypes, ToolSpec


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Node(BaseModel):
    value: int
    children: list[Node] = []


@dataclass
class Point:
    x: int
    y: float = 0.0


class Pair(NamedTuple):
    left: int
    right: str


class Row(TypedDict):
    id: int
    tag: NotRequired[str]


TEXT = st.text(max_size=5).filter(lambda text: text != "$ref")  # pydantic takes it for a reference in a default
NUMBERS = st.integers(-(2**40), 2**40)
FLOATS = st.floats(allow_nan=False, allow_infinity=False, width=32)
NODES = st.recursive(
    NUMBERS.map(lambda value: Node(value=value)),
    lambda inner: st.builds(Node, value=NUMBERS, children=st.lists(inner, max_size=2)),
    max_leaves=4,
)
VALUES: dict[Any, st.SearchStrategy[Any]] = {
    str: TEXT,
    int: NUMBERS,
    float: FLOATS,
    bool: st.booleans(),
    date: st.dates(),
    UUID: st.uuids(),
    timedelta: st.timedeltas(timedelta(0), timedelta(days=9)),
    Color: st.sampled_from(Color),
    Literal["a", 1]: st.sampled_from(["a", 1]),
    Node: NODES,
    Point: st.builds(Point, NUMBERS, FLOATS),
    Pair: st.builds(Pair, NUMBERS, TEXT),
    Row: st.builds(lambda i, t: {"id": i} | t, NUMBERS, st.just({}) | TEXT.map(lambda t: {"tag": t})),
}


def containers(pool: Mapping[Any, st.SearchStrategy[Any]]) -> dict[Any, st.SearchStrategy[Any]]:
    """Return a pool with lists, dicts, tuples, sets and unions with None of another's types."""
    made: dict[Any, st.SearchStrategy[Any]] = {}
    for annotation, values in pool.items():
        made[annotation] = values
        made[list[annotation]] = st.lists(values, max_size=3)
        made[dict[str, annotation]] = st.dictionaries(TEXT, values, max_size=3)
        made[tuple[annotation, int]] = st.tuples(values, NUMBERS)
        made[annotation | None] = st.none() | values
    return made | {set[int]: st.sets(NUMBERS, max_size=3), list[Node | int]: st.lists(NODES | NUMBERS, max_size=3)}


POOL = containers(VALUES)
NAMES = st.one_of(
    st.sampled_from(["schema", "json", "copy", "model_config", "_x", "self", "title", "type", "properties", "default"]),
    st.from_regex(r"[a-zA-Z_][a-z0-9_]{0,5}", fullmatch=True),
).filter(lambda name: not keyword.iskeyword(name) and name != "tool")
Field = tuple[str, Any, int, Any]  # name, annotation, kind, value


@st.composite
def fields(draw: st.DrawFn) -> list[Field]:
    """Draw parameters in an order that Python takes, each with a value of its type."""
    names = draw(st.lists(NAMES, unique=True, max_size=5))
    kinds = sorted(draw(st.lists(st.sampled_from([0, 1, 3]), min_size=len(names), max_size=len(names))))
    drawn: list[Field] = []
    for name, kind in zip(names, kinds, strict=True):
        annotation = draw(st.sampled_from(list(POOL)))
        drawn.append((name, annotation, kind, draw(POOL[annotation])))
    return drawn


def function_of(parameters: list[Field], optional: bool) -> Any:
    def tool(*args: Any, **kwargs: Any) -> None: ...

    made = [
        inspect.Parameter(
            name,
            list(inspect._ParameterKind)[kind],  # pyright: ignore
            default=value if optional else inspect.Parameter.empty,
            annotation=annotation,
        )
        for name, annotation, kind, value in parameters
    ]
    tool.__signature__ = inspect.Signature(made)  # type: ignore[attr-defined] # pyright: ignore
    return tool


def spec_of(parameters: list[Field], optional: bool = False) -> ToolSpec:
    return ToolSpec.from_function(function_of(parameters, optional), name="tool")


def assert_schema(schema: Any, root: Mapping[str, Any]) -> None:
    """Check what makes a JSON Schema one, at every depth."""
    if isinstance(schema, bool):
        return
    kinds = schema.get("type", [])
    for kind in [kinds] if isinstance(kinds, str) else kinds:
        assert kind in {"string", "integer", "number", "boolean", "null", "array", "object"}
    if "$ref" in schema:
        assert schema["$ref"].removeprefix("#/$defs/") in root["$defs"]
    assert set(schema.get("required", ())) <= set(schema.get("properties", ()))
    for key in ("properties", "$defs"):
        for part in schema.get(key, {}).values():
            assert_schema(part, root)
    for part in [*schema.get("anyOf", ()), *schema.get("prefixItems", ()), schema.get("items", True)]:
        assert_schema(part, root)
    assert not isinstance(schema.get("title"), str)


KINDS: dict[str, Any] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
    "array": list,
    "object": dict,
}


def allows(schema: Any, value: Any, root: Mapping[str, Any]) -> bool:
    """Return whether a JSON value fits a schema, as far as the schemas of the pool go."""
    if isinstance(schema, bool):
        return schema
    if "$ref" in schema:
        return allows(root["$defs"][schema["$ref"].removeprefix("#/$defs/")], value, root)
    if "anyOf" in schema and not any(allows(part, value, root) for part in schema["anyOf"]):
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    kinds = schema.get("type", list(KINDS))
    if not any(isinstance(value, KINDS[kind]) for kind in ([kinds] if isinstance(kinds, str) else kinds)):
        return False
    if isinstance(value, list):
        parts = schema.get("prefixItems") or [schema.get("items", True)] * len(value)
        return all(allows(part, item, root) for part, item in zip(parts, value, strict=False))
    if isinstance(value, dict):
        known, rest = schema.get("properties", {}), schema.get("additionalProperties", True)
        inside = all(allows(known.get(name, rest), item, root) for name, item in value.items())
        return inside and set(schema.get("required", ())) <= set(value)
    return True


@settings(max_examples=examples(30))  # each example builds a pydantic model
@given(fields(), st.booleans())
def test_every_signature_has_a_valid_schema(parameters: list[Field], optional: bool) -> None:
    schema = spec_of(parameters, optional).parameters

    assert_schema(json.loads(json.dumps(schema, allow_nan=False)), schema)
    assert list(schema["properties"]) == [name for name, *_ in parameters]
    assert describe_shape(schema).startswith("{" if parameters else "dict")


@settings(max_examples=examples(30))  # each example builds a pydantic model
@given(fields())
def test_the_canonical_form_fits_the_schema_and_validates_again(parameters: list[Field]) -> None:
    spec = spec_of(parameters)
    values = {name: value for name, _, _, value in parameters}

    model = spec.validate_python(values)
    dumped = spec.canonical(spec.arguments(model)).values
    again = spec.validate_json(json.dumps(dumped))

    assert spec.arguments(model) == values
    assert spec.arguments(again) == values
    assert allows(spec.parameters, dumped, spec.parameters)
    assert spec.canonical(values).shown == dumped


@settings(max_examples=examples(30))  # each example builds a pydantic model
@given(fields())
def test_defaults_are_shown_as_they_would_be_sent(parameters: list[Field]) -> None:
    spec = spec_of(parameters, optional=True)

    dumped = spec.canonical(spec.arguments(spec.validate_json("{}"))).values

    for name, part in spec.parameters["properties"].items():
        assert part.get("default", dumped[name]) == dumped[name]


@settings(max_examples=examples(30))  # each example builds a pydantic model
@given(fields(), st.booleans())
def test_every_stub_runs_and_takes_the_same_arguments(parameters: list[Field], optional: bool) -> None:
    spec, types = spec_of(parameters, optional), StubTypes()
    stub = spec.stub(types=types)
    space: dict[str, Any] = {}

    exec(compile("\n".join([STUB_IMPORTS, *types.render(), stub]), "stub", "exec"), space)

    assert list(inspect.signature(space["tool"]).parameters) == [name for name, *_ in parameters]
    assert spec.signature.startswith("tool(")


@settings(max_examples=examples(30))  # each example builds a pydantic model
@given(fields(), st.data())
def test_host_calls_bind_as_python_binds_them(parameters: list[Field], data: st.DataObject) -> None:
    fn = function_of(parameters, optional=False)
    spec = ToolSpec.from_function(fn, name="tool")
    by_position = [value for _, _, kind, value in parameters if kind < 3]
    count = data.draw(st.integers(sum(kind == 0 for _, _, kind, _ in parameters), len(by_position)))
    kwargs = {name: value for name, _, _, value in parameters[count:]}

    bound, dropped = spec.bind_host(by_position[:count], kwargs)
    args, keywords = spec.split(bound)

    assert dropped == ()
    assert bound == inspect.signature(fn).bind(*by_position[:count], **kwargs).arguments
    assert inspect.signature(fn).bind(*args, **keywords).arguments == bound


def refusal(spec: ToolSpec, raw: str | bytes) -> InvalidArguments | None:
    try:
        spec.validate_json(raw)
    except InvalidArguments as error:
        return error
    return None


JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT | FLOATS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=examples(30))  # each example builds a pydantic model
@given(fields(), st.data())
def test_any_json_is_taken_or_explained(parameters: list[Field], data: st.DataObject) -> None:
    spec = spec_of(parameters)
    names = st.sampled_from([name for name, *_ in parameters]) | TEXT if parameters else TEXT
    raw = json.dumps(data.draw(JSON | st.dictionaries(names, JSON, max_size=4)))

    refused = refusal(spec, raw)

    if refused is not None:
        assert refused.problems
        assert all(problem.problem for problem in refused.problems)
        assert len({problem.field for problem in refused.problems}) == len(refused.problems)


@given(st.text() | st.binary())
def test_any_text_is_taken_or_explained(raw: str | bytes) -> None:
    spec = spec_of([("x", int, 1, 0)])

    refused = refusal(spec, raw)

    assert refused is None or str(refused).startswith("`tool` cannot take these arguments: ")
