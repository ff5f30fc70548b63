"""Deliveries of a user, refused where they are made when they are none."""

from collections.abc import Callable
from typing import Any

import pytest

from toolcrib.hooks import Delivery, delivery_steps
from toolcrib.pipeline import Run
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Toolset


@ez_tool
async def send(text: str = "") -> str:
    """Send a text."""
    return text


class Mask:
    def deliver(self, call: Any, value: Any) -> Any:
        return value


class OfOne:
    def deliver(self, value: Any) -> Any:
        return value


class NoMethod:
    deliver = 3


def of_one(value: Any) -> Any:
    return value


def mask(call: Any, value: Any) -> Any:
    return value


def toolset_of(deliveries: Any) -> object:
    return Toolset([send]).with_deliveries(*deliveries)


def run_of(deliveries: Any) -> object:
    return Run(deliveries=deliveries)


NOT_DELIVERIES: list[tuple[Any, str]] = [
    ([Mask], r"the delivery Mask is a class; give an object of it, as in deliveries=\[Mask\(\)\]"),
    (["mask"], r"'mask' is not a delivery; give an object with `deliver\(call, value\)`"),
    ([NoMethod()], r"is not a delivery; give an object with `deliver\(call, value\)`"),
    ([OfOne()], "value"),
    ([of_one], "value"),
]


@pytest.mark.parametrize("made", [toolset_of, run_of])
@pytest.mark.parametrize(("deliveries", "text"), NOT_DELIVERIES)
def test_what_is_not_a_delivery_is_refused_where_it_is_given(
    made: Callable[[Any], object], deliveries: Any, text: str
) -> None:
    with pytest.raises(TypeError, match=text):
        made(deliveries)


@pytest.mark.parametrize("deliveries", [Mask(), mask])
def test_the_deliveries_of_a_run_are_a_list(deliveries: Any) -> None:
    with pytest.raises(TypeError, match=r"Run: deliveries must be a list of them, as in deliveries=\[[Mm]ask\]"):
        Run(deliveries=deliveries)


def test_an_object_with_the_method_and_a_function_are_deliveries_with_their_names() -> None:
    assert isinstance(Mask(), Delivery)
    assert [step.name for step in delivery_steps("Run", [Mask(), mask])] == ["Mask", "mask"]
