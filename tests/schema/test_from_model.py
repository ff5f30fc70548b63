from __future__ import annotations

from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, RootModel, SecretStr, computed_field, model_validator

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

    made = SEARCH.canonical(SEARCH.arguments(model))
    assert made.shown == {"text": "x", "topK": 5}
    assert SEARCH.validate_python(made.values) == model


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


class Move(BaseModel):
    kind: Literal["move"] = "move"
    x: int = Field(alias="toX")


class Say(BaseModel):
    kind: Literal["say"] = "say"
    text: str


class Act(RootModel[Annotated[Move | Say, Field(discriminator="kind")]]):
    """Do something."""


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Pile(RootModel["list[Pile] | int"]): ...


class Pause(RootModel[float]):
    root: float = Field(default=1.0, description="Seconds.")


ACT = ToolSpec.from_model(Act, name="act", output=str)


def test_a_model_whose_schema_is_no_object_is_a_schema_error() -> None:
    class Odd(BaseModel):
        @classmethod
        def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> dict[str, Any]:
            return {"type": "string"}

    with pytest.raises(SchemaError, match="not an object with named arguments"):
        _ = ToolSpec.from_model(Odd, name="tool").parameters


def test_a_root_model_is_the_argument_root() -> None:
    schema = ACT.parameters

    assert set(schema) == {"type", "properties", "required", "additionalProperties", "$defs"}
    assert schema["properties"]["root"]["oneOf"] == [{"$ref": "#/$defs/Move"}, {"$ref": "#/$defs/Say"}]
    assert schema["$defs"]["Say"]["properties"]["kind"] == {"const": "say", "type": "string"}
    assert set(schema["$defs"]["Say"]["required"]) == {"kind", "text"}  # the default of the tag is none to pydantic
    assert (schema["required"], schema["additionalProperties"]) == (["root"], False)
    assert ACT.description == "Do something."
    assert ACT.input_model is Act
    assert ACT.signature == "act(root: Move | Say) -> str"
    assert "def act(root: Move | Say) -> str:" in ACT.stub()


def test_arguments_of_a_root_model_make_the_model_and_come_out_of_it() -> None:
    model = ACT.validate_json('{"root": {"kind": "move", "toX": 1}}')

    assert model == Act(Move(toX=1))
    assert ACT.arguments(model) == {"root": Move(toX=1)}
    assert ACT.validate_python(ACT.arguments(model)) == model
    assert ACT.canonical(ACT.arguments(model)).shown == {"root": {"kind": "move", "toX": 1}}
    assert ACT.canonical({"kind": "move"}).shown == {"kind": "move"}


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ('{"root": {"kind": "move", "toX": "far"}}', 'root.toX: must be an integer; got "far"'),
        ('{"root": {"kind": "jump"}}', 'root: the key .kind. must be one of .*; got "jump"'),
        ('{"kind": "say", "text": "x"}', "root: missing, it is required; kind: unknown argument"),
        ('"say"', "must be a JSON object with the arguments by name"),
        ("", "no arguments came"),
    ],
)
def test_a_misfit_of_a_root_model_is_told_by_where_it_is(sent: str, said: str) -> None:
    with pytest.raises(InvalidArguments, match=said):
        ACT.validate_json(sent)


def test_a_root_model_may_be_anything() -> None:
    colour, pile, pause = (ToolSpec.from_model(kind, name="tool") for kind in (RootModel[Color], Pile, Pause))

    assert colour.arguments(colour.validate_json('{"root": "red"}')) == {"root": Color.RED}
    assert colour.stub().startswith("def tool(root: Literal['red', 'blue'])")
    assert pile.canonical({"root": [1, [2]]}).shown == {"root": [1, [2]]}
    assert pause.validate_json("{}") == Pause()
    assert pause.parameters["properties"] == {"root": {"type": "number", "default": 1.0, "description": "Seconds."}}
    assert "required" not in pause.parameters


def test_a_secret_in_a_root_model_is_hidden() -> None:
    spec = ToolSpec.from_model(RootModel[Move | SecretStr], name="unlock")
    model = spec.validate_json('{"root": "open sesame"}')

    assert spec.has_secrets
    assert spec.canonical(spec.arguments(model)).shown == {"root": "**********"}
    assert spec.canonical(spec.arguments(model)).values == {"root": "open sesame"}
    assert spec.canonical({"root": "open sesame"}).shown == {"root": "[redacted]"}
    with pytest.raises(InvalidArguments) as raised:
        spec.validate_json('{"root": 12345}')
    assert "12345" not in str(raised.value)


def test_a_model_with_missing_types_is_a_schema_error() -> None:
    class Broken(BaseModel):
        x: Nowhere  # noqa: F821 # pyright: ignore

    with pytest.raises(SchemaError, match="Broken"):
        _ = ToolSpec.from_model(Broken, name="tool").input_model
