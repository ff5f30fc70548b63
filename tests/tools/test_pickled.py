"""Tools that are pickled: by the name of their function, as it is."""

import copy
import pickle
from typing import Any

import pytest

from toolcrib.schema import ToolSpec
from toolcrib.tools import Tool, ez_tool, tool


@ez_tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@tool(register=False, name="other-name")
async def look(path: str) -> str:
    """Look."""
    return path


class Shop:
    """What has tools."""

    @ez_tool
    @staticmethod
    def pay(cents: int) -> int:
        """Pay."""
        return cents


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("made", [add, look, Shop.pay], ids=["bare", "registered", "in a class"])
def test_a_tool_of_a_module_is_found_again(made: Tool[..., Any], protocol: int) -> None:
    assert pickle.loads(pickle.dumps(made, protocol)) is made
    assert copy.copy(made) is copy.deepcopy(made) is made


def test_a_tool_that_no_module_has_is_refused_with_the_mend() -> None:
    def inner(a: int) -> int:
        """Be inside."""
        return a

    from_schema: Tool[..., Any] = Tool(ToolSpec.from_schema(inner, {"type": "object"}, name="inner"))
    for made in (ez_tool(inner), from_schema):
        with pytest.raises(pickle.PicklingError, match="at the top of a module"):
            pickle.dumps(made)


@pytest.mark.parametrize("name", ["", " ", "two words", "line\nbreak", "x" * 129, "bell\a"])
def test_a_name_that_no_provider_takes_is_refused_where_it_is_given(name: str) -> None:
    with pytest.raises(ValueError, match="letters, digits"):
        ez_tool(name=name)(lambda: 1)


def test_a_name_is_a_text() -> None:
    with pytest.raises(TypeError, match="name is 3; give a text"):
        ez_tool(name=3)(lambda: 1)  # type: ignore[call-overload]
