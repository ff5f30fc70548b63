from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import BaseModel, RootModel

from toolcrib.code._program_tools import ProgramTool
from toolcrib.errors import InvalidArguments
from toolcrib.schema import Injected, RunContext
from toolcrib.tools import Tool, as_tool, ez_tool, tool_input


def names(made: Tool[..., Any]) -> ProgramTool:
    return ProgramTool(made.name, made, made.name)


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
    assert names(find).bind(["Oslo", 5], {"exact": True}) == {"city": "Oslo", "limit": 5, "exact": True}


def test_what_is_unknown_is_left_to_the_pipeline() -> None:
    assert names(find).bind(["Oslo"], {"town": 1}) == {"city": "Oslo", "town": 1}


def test_further_values_go_to_the_rest() -> None:
    assert names(join).bind(["a", "b", "c"], {"sep": "-"}) == {"first": "a", "rest": ["b", "c"], "sep": "-"}


def test_what_the_host_supplies_has_no_position() -> None:
    assert names(host_knows).bind(["Ada"], {}) == {"name": "Ada"}


@tool_input("ask")
class Ask(BaseModel):
    """Ask somebody."""

    who: str
    what: str


def test_a_declared_input_takes_its_fields_in_order() -> None:
    assert names(as_tool(Ask)).bind(["Ada", "Why?"], {}) == {"who": "Ada", "what": "Why?"}


def test_a_root_model_takes_its_value_by_position_or_as_root() -> None:
    @tool_input("count")
    class Count(RootModel[int | str]): ...

    made = names(as_tool(Count))

    assert made.bind([1], {}) == made.bind([], {"root": 1}) == {"root": 1}
    shape = made.shape
    assert shape is not None
    assert (shape.order, shape.required) == (("root",), {"root"})


def test_a_tool_without_arguments_says_so() -> None:
    with pytest.raises(InvalidArguments, match="takes no arguments by position, and 1 were given; name them"):
        names(ez_tool(nothing)).bind([1], {})


def nothing(*, key: int = 1) -> None:
    """Do nothing."""


def test_too_many_values_are_refused_with_the_names() -> None:
    with pytest.raises(InvalidArguments, match=r"at most 2 arguments by position \(city, limit\), and 3 were given"):
        names(find).bind(["Oslo", 1, True], {})


def test_a_value_given_twice_is_refused() -> None:
    with pytest.raises(InvalidArguments, match="city: given twice"):
        names(find).bind(["Oslo"], {"city": "Rome"})
