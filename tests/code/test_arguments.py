from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, RootModel

from toolcrib.code import Toolkit
from toolcrib.code._program_tools import ProgramTool
from toolcrib.schema import Injected, RunContext
from toolcrib.tools import Tool, as_tool, ez_tool, tool_input


def names(made: Tool[..., Any]) -> ProgramTool:
    return ProgramTool(made.name, made, made.name)


def bound(made: Tool[..., Any], *args: Any, **kwargs: Any) -> dict[str, Any]:
    arguments, fault = names(made).bind(list(args), kwargs)
    assert fault == ""
    return arguments


def fault_of(made: Tool[..., Any], *args: Any, **kwargs: Any) -> str:
    return names(made).bind(list(args), kwargs)[1]


@ez_tool
def find(city: str, limit: int = 3, *, exact: bool = False) -> None:
    """Find a city."""


@ez_tool
def join(first: str, *rest: str, sep: str = " ") -> None:
    """Join words."""


@ez_tool(key="k")
def host_knows(ctx: RunContext[Any], key: str, store: Annotated[dict[str, str], Injected], name: str) -> None:
    """Look something up."""


def test_positions_are_the_parameters_in_order() -> None:
    assert bound(find, "Oslo", 5, exact=True) == {"city": "Oslo", "limit": 5, "exact": True}


def test_what_is_unknown_is_left_to_the_pipeline() -> None:
    assert bound(find, "Oslo", town=1) == {"city": "Oslo", "town": 1}


def test_further_values_go_to_the_rest() -> None:
    assert bound(join, "a", "b", "c", sep="-") == {"first": "a", "rest": ["b", "c"], "sep": "-"}


def test_what_the_host_supplies_has_no_position() -> None:
    assert bound(host_knows, "Ada") == {"name": "Ada"}


@tool_input("ask")
class Ask(BaseModel):
    """Ask somebody."""

    who: str
    what: str


def test_a_declared_input_takes_its_fields_in_order() -> None:
    assert bound(as_tool(Ask), "Ada", "Why?") == {"who": "Ada", "what": "Why?"}


def test_a_root_model_takes_its_value_by_position_or_as_root() -> None:
    @tool_input("count")
    class Count(RootModel[int | str]): ...

    assert bound(as_tool(Count), 1) == bound(as_tool(Count), root=1) == {"root": 1}
    shape = names(as_tool(Count)).shape
    assert shape is not None
    assert (shape.order, shape.required) == (("root",), {"root"})


def test_a_tool_without_arguments_says_so() -> None:
    assert fault_of(ez_tool(nothing), 1) == "it takes no arguments by position, and 1 were given; name them"


def nothing(*, key: int = 1) -> None:
    """Do nothing."""


def test_too_many_values_are_refused_with_the_names() -> None:
    said = fault_of(find, "Oslo", 1, True)

    assert said == "it takes at most 2 arguments by position (city, limit), and 3 were given"


def test_a_value_given_twice_is_refused() -> None:
    assert fault_of(find, "Oslo", city="Rome") == "`city` is given twice, by position and by name"


async def test_more_arguments_than_a_tool_has_are_refused_before_anything_else() -> None:
    looked_at: list[Any] = []

    @ez_tool
    def look(city: Annotated[str, BeforeValidator(lambda value: looked_at.append(value) or value)]) -> None:
        """Look at a city."""

    code = """
for names, places in (({f"k{n}": 1 for n in range(30_000)}, ()), ({}, range(30_000))):
    try:
        look(*places, **{**names, "city": "Oslo"} if names else {})
    except TypeError as error:
        print(error)
"""
    result = await Toolkit([look]).execute_async(code)

    by_name, by_position = result.output.splitlines()
    assert "it takes at most 1 argument by name, and more than 21 were given; it has no `k0`, `k1`, `k2`" in by_name
    assert "it takes at most 1 argument by position (city), and more than 21 were given" in by_position
    assert looked_at == []
    assert [len(call["arguments"]) for call in result.tool_calls] == [22, 1]


def test_what_takes_any_argument_takes_many() -> None:
    @ez_tool
    def gather(*values: int, **named: int) -> None:
        """Gather."""

    args, kwargs = names(gather).clipped([1] * 100, {f"k{n}": n for n in range(100)})

    assert (len(args), len(kwargs)) == (100, 100)
    assert fault_of(gather, *args, **kwargs) == ""
