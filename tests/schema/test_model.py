from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any

import pytest
from pydantic import AliasChoices, BaseModel, Field

from toolcrib.errors import InvalidArguments
from toolcrib.schema import ToolSpec

AWKWARD = [
    "self",
    "cls",
    "schema",
    "copy",
    "json",
    "dict",
    "model_config",
    "model_fields",
    "_private",
    "__",
    "mro",
    "values",
]


def spec_of(fn: Any) -> ToolSpec:
    return ToolSpec.from_function(fn, name="tool")


@pytest.mark.parametrize("name", AWKWARD)
def test_any_parameter_name_works(name: str) -> None:
    space: dict[str, Any] = {}
    exec(f"def tool({name}: int, other: str = 'x'): ...", space)
    spec = spec_of(space["tool"])

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = spec.validate_python({name: 1})

    assert spec.arguments(model) == {name: 1, "other": "x"}
    assert spec.canonical(spec.arguments(model)).values == {name: 1, "other": "x"}
    assert spec.canonical({name: 2}).values == {name: 2}
    assert list(spec.parameters["properties"]) == [name, "other"]
    assert spec.stub().startswith(f"def tool({name}: int, other: str = 'x')")


def test_awkward_names_work_together() -> None:
    def tool(schema: int, schema_: int, _schema: int) -> None: ...

    spec = spec_of(tool)
    given = {"schema": 1, "schema_": 2, "_schema": 3}

    assert spec.arguments(spec.validate_python(given)) == given


def test_problems_name_the_parameter_and_not_the_field() -> None:
    def tool(schema: int) -> None: ...

    with pytest.raises(InvalidArguments, match="schema: must be an integer"):
        spec_of(tool).validate_json('{"schema": "x"}')


def test_an_alias_is_what_a_caller_sees_and_the_name_works_too() -> None:
    def mail(
        from_: Annotated[str, Field(alias="from")], to: str = Field(validation_alias=AliasChoices("to", "rcpt"))
    ) -> None:
        """Send.

        Args:
            from_: The sender.
        """

    spec = spec_of(mail)

    assert spec.parameters["properties"]["from"] == {"type": "string", "description": "The sender."}
    assert spec.stub(docs=False).startswith("def tool(from_: str, to: str)")
    for sender, receiver in (("from", "rcpt"), ("from_", "to")):
        model = spec.validate_python({sender: "a", receiver: "b"})
        assert spec.arguments(model) == {"from_": "a", "to": "b"}


def test_arguments_are_python_values() -> None:
    class Place(BaseModel):
        city: str

    def tool(place: Place, *codes: int, **more: float) -> None: ...

    spec = spec_of(tool)

    values = spec.arguments(spec.validate_json('{"place": {"city": "Oslo"}, "codes": [1], "x": 2}'))

    assert values == {"place": Place(city="Oslo"), "codes": (1,), "x": 2.0}
    assert spec.split(values) == ([Place(city="Oslo"), 1], {"x": 2.0})


def test_arguments_are_a_copy() -> None:
    def tool(x: int) -> None: ...

    spec = spec_of(tool)
    model = spec.validate_json('{"x": 1}')

    spec.arguments(model)["x"] = 2

    assert spec.arguments(model) == {"x": 1}


def test_a_default_is_passed_on_as_it_is() -> None:
    marker = object()

    def tool(x: Any = marker, tags: list[int] = []) -> None: ...  # noqa: B006

    values = spec_of(tool).arguments(spec_of(tool).validate_json("{}"))

    assert values["x"] is marker
    assert values["tags"] is not tool.__defaults__[1]  # type: ignore  # pyright: ignore


def test_a_field_as_default_is_understood() -> None:
    def tool(x: int = Field(default=3, ge=1, description="n"), y: int = Field(ge=1)) -> None: ...

    spec = spec_of(tool)

    assert spec.parameters["required"] == ["y"]
    assert spec.parameters["properties"]["x"] == {"type": "integer", "default": 3, "minimum": 1, "description": "n"}
    assert spec.signature == "tool(x: int = 3, *, y: int) -> None"


def test_a_field_with_a_default_in_an_annotation_is_understood() -> None:
    def tool(
        x: Annotated[int, Field(default=3, ge=1, description="n")],
        y: Annotated[list[str], Field(default_factory=list)],
        z: Annotated[int, Field(ge=1)],
    ) -> None: ...

    spec = spec_of(tool)

    assert spec.parameters["required"] == ["z"]
    assert spec.parameters["properties"]["x"] == {"type": "integer", "default": 3, "minimum": 1, "description": "n"}
    assert spec.signature == "tool(x: int = 3, y: list[str] = ..., *, z: int) -> None"
    assert spec.stub().startswith("def tool(x: int = 3, y: list[str] = ..., *, z: int) -> None:")


def test_threads_that_ask_first_get_one_model() -> None:
    def tool(x: int) -> None: ...

    spec = spec_of(tool)
    with ThreadPoolExecutor(8) as pool:
        models = set(pool.map(lambda _: spec.input_model, range(32)))

    assert len(models) == 1
