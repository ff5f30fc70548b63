"""Defaults that have no truth value and no equality of one: arrays and frames."""

from typing import Annotated, Any, Literal

import numpy
import pandas
import pytest

from toolcrib import ez_tool
from toolcrib.calls import Completed, ToolCall
from toolcrib.pipeline import Pipeline

ARRAYS = [numpy.array([1, 2]), numpy.array([]), numpy.zeros((2, 2)), pandas.Series([1]), pandas.DataFrame({"a": [1]})]


@pytest.mark.parametrize("default", ARRAYS, ids=lambda default: type(default).__name__)
@pytest.mark.parametrize(
    "annotation", [Any, list[float], list[float] | Any, Annotated[Any, "x"], Literal["a", 1]], ids=str
)
async def test_an_array_may_be_a_default(annotation: Any, default: Any) -> None:
    def take(n: int, x: Any = default) -> bool:
        return len(x) == len(default)

    take.__annotations__["x"] = annotation
    tool = ez_tool(take)

    outcome = await Pipeline([tool]).run(ToolCall("take", '{"n": 1}'))

    assert isinstance(outcome, Completed), outcome
    assert outcome.value is True
    assert "x" in tool.parameters["properties"]
    assert tool.stub().startswith("def take(n: int, x: ")
