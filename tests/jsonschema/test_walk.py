from contextlib import nullcontext
from typing import Any

import pytest

from tests.jsonschema.bombs import KINDS, bomb
from toolcrib.errors import InvalidArguments, SchemaTooLarge
from toolcrib.jsonschema import SchemaWalk, describe_shape
from toolcrib.schema import StubTypes, ToolSpec


async def call(**arguments: Any) -> Any:
    return arguments


def spec_of(schema: dict[str, Any], returns: dict[str, Any] | None = None) -> ToolSpec:
    return ToolSpec.from_schema(call, schema, name="evil", returns=returns)


@pytest.mark.parametrize("kind", ["properties", "anyOf", "prefixItems", "pointer"])
def test_a_shape_that_would_be_too_large_is_an_error_that_names_the_tool(kind: str) -> None:
    with pytest.raises(SchemaTooLarge, match=r"`evil` has a schema that is too large.*leave the tool out"):
        describe_shape(bomb(kind), "evil")


@pytest.mark.parametrize("kind", KINDS)
def test_a_stub_of_any_schema_is_made_or_refused_within_the_budget(kind: str) -> None:
    spec = spec_of(bomb(kind), bomb(kind))

    refused = pytest.raises(SchemaTooLarge, match="`evil`") if kind in ("anyOf", "prefixItems") else nullcontext()
    with refused:
        assert spec.stub().startswith("def evil(")


@pytest.mark.parametrize("keyword", ["anyOf", "prefixItems"])
def test_a_choice_of_many_types_is_refused_as_it_is_written_so_many_levels_deep(keyword: str) -> None:
    types = [{"type": "object", "properties": {f"k{number}": {"type": "string"}}} for number in range(101)]
    part = {"type": "array", "prefixItems": types} if keyword == "prefixItems" else {"anyOf": types}

    with pytest.raises(SchemaTooLarge, match=r"`evil` has a schema .* a choice of types has a level for each"):
        spec_of({"properties": {"at": part}}).stub()


def test_a_choice_of_many_values_is_one_type() -> None:
    values = [{"const": f"v{number}"} for number in range(500)]

    stub = spec_of({"properties": {"at": {"anyOf": [*values, {"type": "null"}]}}, "required": ["at"]}).stub()

    assert stub.startswith("def evil(at: Literal['v0', 'v1', 'v2', ")
    assert "'v499'] | None" in stub


def test_types_of_a_stub_that_became_too_large_are_in_no_other_stub() -> None:
    types = StubTypes()
    schema = bomb("anyOf")
    schema["$defs"]["Point"] = {
        "type": "object",
        "properties": {"n": {"type": "integer"}, "far": {"$ref": "#/$defs/L27"}},
    }
    schema["properties"] = {"at": {"$ref": "#/$defs/Point"}}

    with pytest.raises(SchemaTooLarge):
        spec_of(schema).stub(types=types)

    assert types.render() == []
    assert spec_of({"properties": {"at": {"type": "integer"}}}).stub(types=types).startswith("def evil(at: int")


@pytest.mark.parametrize("kind", KINDS)
def test_problems_of_arguments_are_found_in_any_schema(kind: str) -> None:
    with pytest.raises(InvalidArguments, match="x: missing"):
        spec_of(bomb(kind)).validate_python({})


def test_many_types_that_hold_each_other_are_written_once_each() -> None:
    names = [f"T{n}" for n in range(12)]
    fields = {name.lower(): {"$ref": f"#/$defs/{name}"} for name in names}
    schema = {"properties": fields, "$defs": {name: {"type": "object", "properties": fields} for name in names}}
    types = StubTypes()

    spec_of(schema).stub(types=types)

    assert sorted(text.split("(")[0] for text in types.render()) == sorted(f"class {name}" for name in names)


@pytest.mark.parametrize("keyword", ["items", "anyOf", "properties"])
def test_a_schema_that_is_nested_too_deep_is_refused_when_the_tool_is_made(keyword: str) -> None:
    nested: dict[str, Any] = {"type": "string"}
    for _ in range(250):
        nested = {keyword: {"items": nested, "anyOf": [nested], "properties": {"a": nested}}[keyword]}

    with pytest.raises(SchemaTooLarge, match="100 levels"):
        spec_of({"properties": {"deep": nested}})


def test_a_long_chain_of_references_is_refused() -> None:
    definitions = {f"L{n}": {"type": "array", "items": {"$ref": f"#/$defs/L{n + 1}"}} for n in range(1000)}

    with pytest.raises(SchemaTooLarge):
        describe_shape({"$ref": "#/$defs/L0", "$defs": definitions}, "evil")


@pytest.mark.parametrize(
    ("ref", "found"),
    [
        ("#/$defs/A", {"type": "string"}),
        ("#/$defs/Alias", {"type": "string", "description": "Of A."}),
        ("#/$defs/a~1b", {"type": "integer"}),
        ("#/anyOf/1", {"type": "null"}),
        ("#/anyOf/7", {}),
        ("#/$defs/A/type/x", {}),
        ("#/$defs/Loop", {}),
        ("#/%24defs/a~1b", {"type": "integer"}),
        ("#A", {}),
        ("https://example.com/schema.json", {}),
    ],
)
def test_references_lead_where_they_say(ref: str, found: dict[str, Any]) -> None:
    root = {
        "anyOf": [{"type": "string"}, {"type": "null"}],
        "$defs": {
            "A": {"type": "string"},
            "Alias": {"$ref": "#/$defs/A", "description": "Of A."},
            "a/b": {"type": "integer"},
            "Loop": {"$ref": "#/$defs/Pool"},
            "Pool": {"$ref": "#/$defs/Loop"},
        },
    }

    assert SchemaWalk(root).resolved({"$ref": ref}) == found


def test_a_reference_to_the_whole_is_a_type_that_holds_itself() -> None:
    schema = {"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"]}

    assert describe_shape(schema) == "{next: {next: ...}}"


def repeated(text: str, levels: int = 11) -> dict[str, Any]:
    """Return a schema of little more than a text, which its references repeat thousands of times."""
    definitions: dict[str, Any] = {"L0": {"type": "object", "description": text, "properties": {"z": {"enum": [text]}}}}
    for level in range(1, levels):
        below = {"$ref": f"#/$defs/L{level - 1}"}
        definitions[f"L{level}"] = {"type": "object", "properties": {"a": below, "b": below}}
    return {"type": "object", "$defs": definitions, "properties": {"x": {"$ref": f"#/$defs/L{levels - 1}"}}}


def test_characters_that_references_repeat_are_counted() -> None:
    assert describe_shape(repeated("short"), "evil").count("'short'") == 1024
    with pytest.raises(SchemaTooLarge, match="1,000,000 characters"):
        describe_shape(repeated("x" * 3000), "evil")


def test_parts_of_one_schema_share_its_budget() -> None:
    schema = repeated("x" * 300)
    walk = SchemaWalk(schema, "evil")

    describe_shape(schema["properties"]["x"], walk=walk)
    with pytest.raises(SchemaTooLarge):
        describe_shape(schema["properties"]["x"], walk=walk)


class Counting(dict[str, Any]):
    """Definitions that count how often one is looked up."""

    looked = 0

    def get(self, key: str, default: Any = None) -> Any:
        self.looked += 1
        return super().get(key, default)


def test_a_chain_of_aliases_is_followed_once() -> None:
    definitions = Counting({f"L{n}": {"$ref": f"#/$defs/L{n - 1}", f"x-{n % 7}": n} for n in range(1, 500)})
    definitions["L0"] = {"type": "string", "description": "The end."}
    walk = SchemaWalk({"$defs": definitions})

    made = [walk.resolved({"$ref": f"#/$defs/L{n}"}) for n in reversed(range(500))]

    assert definitions.looked <= 500
    assert all(one["description"] == "The end." for one in made)
    assert made[0]["x-2"] == 499


def test_aliases_that_lead_around_come_to_what_stands_beside_them() -> None:
    walk = SchemaWalk({"$defs": {"A": {"$ref": "#/$defs/B", "title": "a"}, "B": {"$ref": "#/$defs/A", "title": "b"}}})

    assert walk.resolved({"$ref": "#/$defs/A"}) == {"title": "a"}
    assert walk.resolved({"$ref": "#/$defs/B"})["title"] in ("a", "b")
