"""Resources and prompts made of functions: what they are to clients, and that models are not offered them."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from toolcrib import RunContext, Toolset, tool
from toolcrib.calls import Completed, Failed, ToolCall
from toolcrib.pipeline import Pipeline, Run
from toolcrib.tools import (
    Offering,
    PromptOffer,
    PromptText,
    ResourceOffer,
    Tool,
    offering_of,
    prompt,
    resource,
    resource_changed,
)


@resource("trips://{city}/weather", complete={"city": ["Oslo", "Orleans", "Rome"]})
async def weather(ctx: RunContext[Any], city: str) -> dict[str, Any]:
    """Say what the weather is like."""
    return {"city": city}


@prompt
def plan(city: str, style: Literal["brief", "long"] = "brief") -> PromptText:
    """Plan a trip."""
    return PromptText(f"Plan a trip to {city}, {style}.")


def of(made: Tool[..., Any]) -> Offering:
    offering = offering_of(made)
    assert offering is not None
    return offering


def test_a_resource_and_a_prompt_are_no_tools_for_models() -> None:
    @tool(register=False)
    async def look() -> str:
        """Look."""
        return ""

    toolset = Toolset([weather, plan, look])

    assert toolset.offered() == {"look"}
    assert of(weather).get_offer() == ResourceOffer("trips://{city}/weather")
    assert of(plan).get_offer() == PromptOffer()
    assert offering_of(look) is None


async def test_they_are_read_by_a_call_and_refused_to_a_model() -> None:
    pipeline, call = Pipeline([weather]), ToolCall("weather", {"city": "Oslo"})

    read = await pipeline.run(call, Run(available=frozenset({"weather"})))

    assert isinstance(read, Completed)
    assert read.value == {"city": "Oslo"}
    assert isinstance(await pipeline.run(call), Failed)


async def test_values_are_completed_from_a_list_a_function_and_a_choice() -> None:
    async def cities(typed: str, given: Any) -> list[str]:
        return [f"{typed}o", given["style"]]

    @prompt(complete={"city": cities})
    async def go(city: str, style: str = "") -> str:
        """Go."""
        return city

    assert await of(weather).complete("city", "o", {}) == ["Oslo", "Orleans"]
    assert await of(plan).complete("style", "", {}) == ["brief", "long"]
    assert await of(go).complete("city", "Osl", {"style": "x"}) == ["Oslo", "x"]
    assert await of(go).complete("style", "", {}) == []


def test_a_changed_resource_is_heard_of_by_its_uri() -> None:
    class Ears:
        def __init__(self) -> None:
            self.heard: list[str] = []

        def changed(self, uri: str) -> None:
            self.heard.append(uri)

    ears = Ears()
    of(weather).listen(ears)

    resource_changed(weather, city="Oslo")

    assert ears.heard == ["trips://Oslo/weather"]
    with pytest.raises(TypeError, match="takes the variables of trips"):
        resource_changed(weather)
    with pytest.raises(TypeError, match="`plan` is not a resource"):
        resource_changed(plan)


@pytest.mark.parametrize(
    ("uri", "problem"), [("weather", "takes a URI"), ("trips://{place}", "`city`, `place`"), ("trips://all", "`city`")]
)
def test_what_is_wrong_is_said_when_it_is_made(uri: str, problem: str) -> None:
    def weather(city: str) -> str:
        return city

    with pytest.raises((TypeError, ValueError), match=problem):
        resource(uri)(weather)


def test_a_completion_of_no_argument_is_an_error() -> None:
    with pytest.raises(TypeError, match="completes `town`"):
        prompt(complete={"town": ["Oslo"]})(plan.fn or print)
