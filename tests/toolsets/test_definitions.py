"""What a provider is sent of a toolset."""

import pytest

from tests.formats.replies import NAMES, declarations, sdk_accepts_choice, sdk_accepts_tools
from toolcrib.errors import FormatError, ToolConstraintError
from toolcrib.formats import PROVIDERS, WireFormat
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


@each_provider
def test_a_provider_takes_the_definitions(provider: WireFormat) -> None:
    made = Tools.definitions(ToolAvailability.all(), format=provider)

    sdk_accepts_tools(provider, made)
    assert [one["name"] for one in declarations(provider, made)] == ["look", "wipe"]


@each_provider
def test_descriptions_and_results_are_told_on_request(provider: WireFormat) -> None:
    made = Tools().definitions(format=provider, describe={"look": "See."}, return_schemas=True)

    sdk_accepts_tools(provider, made)
    [one] = declarations(provider, made)
    assert one["description"].startswith("See.")
    place = {"gemini": "responseJsonSchema", "openai_responses": "output_schema"}.get(provider, "description")
    assert "array" in str(one[place])


@pytest.mark.parametrize("provider", [name for name in NAMES if PROVIDERS[name].strict])
def test_a_model_is_held_to_the_schema(provider: WireFormat) -> None:
    made = Tools.definitions(format=provider, strict=True)

    sdk_accepts_tools(provider, made)
    by_request = provider == "cohere"  # whose request says it, and not each definition
    assert declarations(provider, made)[0].get("strict", by_request) is True


def test_a_strict_mode_that_there_is_not_is_an_error() -> None:
    with pytest.raises(FormatError, match="no strict mode"):
        Tools.definitions(format="gemini", strict=True)


@each_provider
@pytest.mark.parametrize(
    "requirement", [ToolRequirement.optional(), ToolRequirement.at_least_one(), ToolRequirement.specific("look")]
)
def test_a_requirement_is_a_choice_of_the_provider(provider: WireFormat, requirement: ToolRequirement) -> None:
    if provider == "ollama" and requirement.kind != "optional":
        with pytest.raises(ValueError, match="ollama has no choice of tools; offer the tools that may be called"):
            requirement.tool_choice(provider)
        return
    if provider == "cohere" and requirement.kind == "specific":
        with pytest.raises(ValueError, match="cohere has no choice of one of the tools that are defined; define only"):
            requirement.tool_choice(provider)
        return
    choice = requirement.tool_choice(provider)

    sdk_accepts_choice(provider, choice)
    assert ("look" in str(choice)) == (requirement.kind == "specific")


def test_a_choice_of_a_tool_that_is_not_offered_is_found_before_any_request() -> None:
    wanted = ToolRequirement.specific(Selector("wipe", wipe, wipe))

    with pytest.raises(ToolConstraintError, match="wipe"):
        wanted.check(Tools.offered())


@pytest.mark.parametrize("requirement", [ToolRequirement.optional("look"), ToolRequirement.at_least_one("look")])
@each_provider
def test_a_choice_among_some_is_one_of_the_provider_or_an_error(
    provider: WireFormat, requirement: ToolRequirement
) -> None:
    if provider in ("anthropic", "mistral", "bedrock", "ollama", "cohere"):
        with pytest.raises(ValueError, match=f"{provider} has no choice among some .*ToolAvailability.only"):
            requirement.tool_choice(provider)
    else:
        choice = requirement.tool_choice(provider)
        sdk_accepts_choice(provider, choice)
        assert "look" in str(choice)


def test_a_tool_among_which_to_choose_has_to_be_offered() -> None:
    with pytest.raises(ToolConstraintError, match="`nothing`"):
        ToolRequirement.optional("nothing").check(["look"])


@pytest.mark.parametrize(
    ("provider", "sent"),
    [
        ("openai", {"tool_choice": "auto", "parallel_tool_calls": False}),
        ("openai_responses", {"tool_choice": "auto", "parallel_tool_calls": False}),
        ("mistral", {"tool_choice": "auto", "parallel_tool_calls": False}),
        ("anthropic", {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}),
    ],
)
def test_calls_come_one_at_a_time_where_that_is_asked(provider: WireFormat, sent: dict[str, object]) -> None:
    asked = ToolRequirement.optional(parallel=False).parameters(provider)

    assert asked == sent
    sdk_accepts_choice(provider, asked["tool_choice"])


@pytest.mark.parametrize("provider", ["gemini", "bedrock", "ollama", "cohere", "gemini_interactions"])
def test_some_cannot_be_held_to_one_call(provider: WireFormat) -> None:
    with pytest.raises(ValueError, match="leave `parallel` out"):
        ToolRequirement.optional(parallel=False).parameters(provider)


def test_ollamas_request_has_no_place_for_a_choice() -> None:
    assert ToolRequirement.optional().parameters("ollama") == {}


def test_gemini_takes_its_choice_in_its_tool_config() -> None:
    asked = ToolRequirement.optional(validated=True).parameters("gemini")

    assert asked == {"tool_config": {"functionCallingConfig": {"mode": "VALIDATED"}}}
