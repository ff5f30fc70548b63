from __future__ import annotations

import pytest
from pydantic import BaseModel, ConfigDict, Field, RootModel, computed_field, model_validator

from toolcrib.errors import InvalidArguments, SchemaError
from toolcrib.schema import ToolSpec


class Query(BaseModel):
    """Search the web.

    In any language.

    Attributes:
        text: What to look for.
    """

    text: str
    top: int = Field(default=3, alias="topK", description="How many.")

    @computed_field
    @property
    def words(self) -> int:
        return len(self.text.split())


class Hit(BaseModel):
    url: str


SEARCH = ToolSpec.from_model(Query, name="search", output=list[Hit])


def test_a_model_describes_itself() -> None:
    assert SEARCH.description == "Search the web."
    assert SEARCH.input_model is Query
    assert SEARCH.signature == "search(text: str, top: int = 3) -> list[Hit]"
    assert SEARCH.parameters == {
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "What to look for."},
            "topK": {"type": "integer", "default": 3, "description": "How many."},
        },
        "required": ["text"],
        "additionalProperties": False,
    }


def test_a_model_has_no_function() -> None:
    assert SEARCH.fn is None
    assert not any((SEARCH.is_sync, SEARCH.is_coroutine, SEARCH.is_generator, SEARCH.is_sync_generator))
    assert SEARCH.accepts("text")
    assert not SEARCH.accepts("other")
    assert SEARCH.injected == {}


def test_arguments_come_by_alias_and_edited_ones_by_name() -> None:
    model = SEARCH.validate_json('{"text": "x", "topK": 5}')

    assert isinstance(model, Query)
    assert SEARCH.arguments(model) == {"text": "x", "top": 5}
    assert SEARCH.validate_python(SEARCH.arguments(model)) == model


def test_what_is_dumped_validates_again() -> None:
    model = SEARCH.validate_json('{"text": "x", "topK": 5}')

    assert SEARCH.dump(model, redact=True) == {"text": "x", "topK": 5}
    assert SEARCH.validate_python(SEARCH.dump(model, redact=False)) == model


def test_unknown_arguments_are_an_error_though_the_model_would_ignore_them() -> None:
    with pytest.raises(InvalidArguments, match="txt: unknown argument; did you mean text"):
        SEARCH.validate_json('{"text": "x", "txt": "y"}')
    with pytest.raises(InvalidArguments, match="other: unknown argument"):
        SEARCH.validate_python({"text": "x", "other": 1})


def test_a_model_that_says_what_to_do_with_extra_keys_is_obeyed() -> None:
    class Open(BaseModel):
        model_config = ConfigDict(extra="allow")

    class Deaf(BaseModel):
        model_config = ConfigDict(extra="ignore")

    allowing, ignoring = (ToolSpec.from_model(model, name="tool") for model in (Open, Deaf))

    assert allowing.arguments(allowing.validate_json('{"x": 1}')) == {"x": 1}
    assert ignoring.arguments(ignoring.validate_json('{"x": 1}')) == {}


def test_a_validator_of_the_whole_model_speaks_for_itself() -> None:
    class Range(BaseModel):
        low: int
        high: int

        @model_validator(mode="after")
        def check(self) -> Range:
            if self.low > self.high:
                raise ValueError("low is above high")
            return self

    with pytest.raises(InvalidArguments, match=r"`range` cannot take these arguments: low is above high$"):
        ToolSpec.from_model(Range, name="range").validate_json('{"low": 2, "high": 1}')


def test_a_recursive_model_is_an_object_at_the_top() -> None:
    class Node(BaseModel):
        value: int
        children: list[Node] = []

    schema = ToolSpec.from_model(Node, name="plant").parameters

    assert schema["type"] == "object"
    assert schema["properties"]["children"]["items"] == {"$ref": "#/$defs/Node"}


def test_a_model_that_is_no_object_is_a_schema_error() -> None:
    with pytest.raises(SchemaError, match="not an object with named arguments"):
        _ = ToolSpec.from_model(RootModel[list[int]], name="tool").parameters


def test_a_model_with_missing_types_is_a_schema_error() -> None:
    class Broken(BaseModel):
        x: Nowhere  # noqa: F821 # pyright: ignore

    with pytest.raises(SchemaError, match="Broken"):
        _ = ToolSpec.from_model(Broken, name="tool").input_model
