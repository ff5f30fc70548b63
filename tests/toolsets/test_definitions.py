"""What a provider is sent of a toolset."""

from typing import Any

import pytest

from tests.formats.replies import NAMES, sdk_accepts_choice, sdk_accepts_tools
from toolcrib.errors import FormatError, ToolConstraintError
from toolcrib.formats import WireFormat
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Selector, ToolAvailability, ToolRequirement, Toolset, off, use

each_provider = pytest.mark.parametrize("provider", NAMES)


@ez_tool
async def look(city: str, days: int = 1) -> list[str]:
    """Look at the weather."""
    return [city] * days


@ez_tool
async def wipe(path: str) -> bool:
    """Remove a file."""
    return bool(path)


class Tools(Toolset):
    look = use(look)
    wipe = off(wipe)


def declared(made: list[dict[str, Any]]) -> list[dict[str, Any]]:
    inner = made[0].get("functionDeclarations", made)
    return [one.get("function", one) for one in inner]


@each_provider
def test_a_provider_takes_the_definitions(provider: WireFormat) -> None:
    made = Tools.definitions(ToolAvailability.all(), format=provider)

    sdk_accepts_tools(provider, made)
    assert [one["name"] for one in declared(made)] == ["look", "wipe"]


@each_provider
def test_descriptions_and_results_are_told_on_request(provider: WireFormat) -> None:
    made = Tools().definitions(format=provider, describe={"look": "See."}, return_schemas=True)

    sdk_accepts_tools(provider, made)
    [one] = declared(made)
    assert one["description"].startswith("See.")
    assert ("array" in str(one.get("response"))) if provider == "gemini" else ("array" in one["description"])


@pytest.mark.parametrize("provider", [name for name in NAMES if name != "gemini"])
def test_a_model_is_held_to_the_schema(provider: WireFormat) -> None:
    made = Tools.definitions(format=provider, strict=True)

    sdk_accepts_tools(provider, made)
    assert declared(made)[0]["strict"] is True


def test_a_strict_mode_that_there_is_not_is_an_error() -> None:
    with pytest.raises(FormatError, match="no strict mode"):
        Tools.definitions(format="gemini", strict=True)


@each_provider
@pytest.mark.parametrize(
    "requirement", [ToolRequirement.optional(), ToolRequirement.at_least_one(), ToolRequirement.specific("look")]
)
def test_a_requirement_is_a_choice_of_the_provider(provider: WireFormat, requirement: ToolRequirement) -> None:
    choice = requirement.tool_choice(provider)

    sdk_accepts_choice(provider, choice)
    assert ("look" in str(choice)) == (requirement.kind == "specific")


def test_a_choice_of_a_tool_that_is_not_offered_is_found_before_any_request() -> None:
    wanted = ToolRequirement.specific(Selector("wipe", wipe, wipe))

    with pytest.raises(ToolConstraintError, match="wipe"):
        wanted.check(Tools.offered())
