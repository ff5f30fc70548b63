"""The Python twins of the thirteen examples that Lutum gives in Rust, in their order; docs/rounds-examples.md shows
them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field

from toolcrib.calls import Complete, Reject, RunNormally, ToolCall
from toolcrib.hooks import HookSet
from toolcrib.rounds import DecodedCall, Finished, HandledTool, NeedsTools, RejectedTool, Session, ToolRound, decode
from toolcrib.schema import Injected
from toolcrib.testing import ScriptedModel, wire_reply
from toolcrib.tools import ez_tool, tool_input
from toolcrib.toolsets import ToolAvailability, Toolset, nested, off, use


class Forecast(BaseModel):
    text: str


@tool_input(name="forecast", output=Forecast)
class Weather(BaseModel):
    """Tell the weather."""

    place: str = Field(description="Where.")
    days: int | None = None


@tool_input(output=str)
class OpenPage(BaseModel):
    """Open a page."""

    number: int


@tool_input(output=bool)
class BurnPage(BaseModel):
    """Burn a page."""

    number: int


@ez_tool
async def sum_up(pages: list[int], library: Annotated[dict[int, str], Injected]) -> str:
    """Sum pages up.

    Args:
        pages: Their numbers.
    """
    return " ".join(library[page] for page in pages)


class Tools(Toolset):
    weather = use(Weather)
    open_page = use(OpenPage)
    burn_page = off(BurnPage)


def asking(*calls: tuple[str, dict[str, Any]], tools: Any = Tools) -> ToolRound:
    return decode(
        tools, wire_reply("openai", [ToolCall(name, given, f"c{n}") for n, (name, given) in enumerate(calls)])
    )


async def execute(call: DecodedCall[Any]) -> Any:
    match call.input:
        case Weather(place=place):
            return call.complete(Forecast(text=f"sun in {place}"))
        case OpenPage(number=number):
            return call.complete(f"page {number}")
        case _:
            return call.reject("not here")


def test_1_an_input_is_declared() -> None:
    call: DecodedCall[Weather] = asking(("forecast", {"place": "Oslo"})).expect_one()

    metadata, given = call.into_parts()
    call.input.days = 2

    assert (metadata.id, metadata.name, metadata.arguments) == ("c0", "forecast", '{"place": "Oslo"}')
    assert (given.place, call.input) == ("Oslo", Weather(place="Oslo", days=2))
    assert call.complete(Forecast(text="sun")).output == call.handled({"text": "sun"}).output == Forecast(text="sun")
    assert call.tool.parameters["properties"]["place"]["description"] == "Where."


async def test_2_a_function_is_a_tool_and_runs_by_its_call() -> None:
    call = asking(("sum_up", {"pages": [1, 2]}), tools=[sum_up]).expect_one()

    text = await call.call(library={1: "Once", 2: "upon"})

    assert (text, type(call.input)) == ("Once upon", sum_up.input_model)
    assert list(sum_up.parameters["properties"]) == ["pages"]
    assert sum_up.parameters["properties"]["pages"]["description"] == "Their numbers."


def test_3_tools_make_a_toolset() -> None:
    names = [selector.name for selector in Tools.all()]

    assert names == ["forecast", "open_page", "burn_page"]
    assert Tools.from_name("forecast") == Tools.weather
    assert Tools.try_from_name("nope") is None
    assert Tools.weather.definition() == Tools.definition("forecast") == Tools.definitions()[0]
    assert asking(("open_page", {"number": 1})).expect_one().selector == Tools.open_page


async def test_4_a_tool_that_is_off_is_offered_by_name() -> None:
    model = ScriptedModel("ok")

    await Session(model, tools=Tools).step(available=ToolAvailability.default_plus(Tools.burn_page))

    assert [tool["function"]["name"] for tool in model.requests[0].tools] == ["forecast", "open_page", "burn_page"]


async def test_5_the_host_owns_the_loop() -> None:
    calls = [ToolCall("open_page", {"number": 4}), ToolCall("forecast", {"place": "Oslo"})]
    session = Session(ScriptedModel(calls, "Take a hat."), tools=Tools).say("What to wear?")

    while True:
        match await session.step():
            case NeedsTools(round):
                await round.commit(session, reversed([await execute(call) for call in round.tool_calls]))
            case Finished(result):
                break

    assert result == "Take a hat."
    assert [item["content"] for item in session.transcript[2:4]] == ["page 4", '{"text": "sun in Oslo"}']


class Policy:
    async def forecast_hook(self, call: Any, given: Weather) -> Any:
        return RunNormally(given) if given.place.strip() else Reject("say where")

    async def forecast_description_hook(self, definition: Any) -> str:
        return f"{definition.description} In degrees Celsius."


async def test_6_a_policy_decides_and_describes() -> None:
    hooks = HookSet(Tools)
    hooks.register(Policy())

    refused = await asking(("forecast", {"place": " "})).expect_one().hook(hooks)

    assert isinstance(refused, RejectedTool)
    assert (refused.reason, refused.source) == ("say where", "hook")
    assert await Tools().with_hooks(hooks).description_overrides() == {
        "forecast": "Tell the weather. In degrees Celsius."
    }


def in_order() -> HookSet:
    hooks = HookSet(Tools)

    @hooks.on(Tools.weather)
    async def trim(call: Any, given: Weather) -> Any:
        return RunNormally(given.model_copy(update={"place": given.place.strip()}))

    @hooks.on(Tools.weather)
    async def known(call: Any, given: Weather) -> Any:
        return Complete(Forecast(text="as ever")) if given.place == "Rome" else RunNormally(given)

    return hooks


async def test_7_decisions_are_asked_in_order() -> None:
    hooks, calls = in_order(), asking(("forecast", {"place": " Rome "}), ("forecast", {"place": " Oslo "})).tool_calls

    handled, unhandled = [await call.hook(hooks) for call in calls]

    assert isinstance(handled, HandledTool)
    assert isinstance(unhandled, DecodedCall)
    assert (handled.output, unhandled.input.place) == (Forecast(text="as ever"), "Oslo")


async def test_8_a_plan_says_what_is_left_and_commits_the_rest() -> None:
    hooks, more = HookSet(Tools), in_order()
    hooks.register(Policy())
    places = [("forecast", {"place": place}) for place in (" Rome ", " Oslo ", "")]
    messages: list[Any] = []

    plan = await asking(*places, ("nope", {}), ("burn_page", {"number": 1})).apply_hooks(hooks)
    await plan.apply_hooks(more)
    await plan.commit(messages, [await execute(call) for call in plan.pending])

    assert [len(part) for part in (plan.pending, plan.handled, plan.rejected, plan.issues)] == [1, 1, 1, 2]
    assert plan.continue_suggestion is not None
    texts = [item["content"] for item in messages[1:]]
    assert texts[:3] == ['{"text": "as ever"}', '{"text": "sun in Oslo"}', "Rejected: say where"]
    assert all(text.startswith("Rejected: ") for text in texts[3:])


async def test_9_a_closure_serves_as_hooks() -> None:
    async def hook(call: DecodedCall[Any]) -> Any:
        match call.input:
            case Weather(place="here"):
                return call.reject("look out of the window")
        return call

    plan = await asking(("forecast", {"place": "here"}), ("forecast", {"place": "there"})).apply_hooks(hook)

    assert [one.reason for one in plan.rejected] == ["look out of the window"]
    assert [call.input.place for call in plan.pending] == ["there"]


async def test_10_a_step_is_given_descriptions_and_the_last_one_wins() -> None:
    hooks, model = HookSet(Tools), ScriptedModel("ok")
    hooks.register(Policy())
    texts = {**await Tools().with_hooks(hooks).description_overrides(), Tools.open_page: "Open one of nine pages."}

    await Session(model, tools=Tools).step(describe={**texts, Tools.weather: "Tell tomorrow's weather."})

    described = {tool["function"]["name"]: tool["function"]["description"] for tool in model.requests[0].tools}
    assert described == {"forecast": "Tell tomorrow's weather.", "open_page": "Open one of nine pages."}


async def test_11_one_function_describes_one_tool() -> None:
    hooks = HookSet(Tools)

    @hooks.on(Tools.weather).description
    async def say_more(definition: Any) -> str:
        return f"{definition.description} Say when."

    texts = await Tools().with_hooks(hooks).description_overrides()

    assert texts == {"forecast": "Tell the weather. Say when."}


class Library(Toolset):
    open_page = use(OpenPage)
    burn_page = use(BurnPage)


class Everything(Toolset):
    weather = use(Weather)
    library = nested(Library)


class Quiet(Toolset):
    weather = use(Weather)
    library = nested(Library, off=True)


def test_12_a_toolset_is_flattened_into_another() -> None:
    assert Everything.names() == ["forecast", "open_page", "burn_page"]
    assert Everything.library.open_page.name == "open_page"
    assert Quiet.offered() == {"forecast"}
    assert Quiet.offered(ToolAvailability.default_plus(Quiet.library)) == frozenset(Everything.names())


async def test_13_hooks_of_the_inner_toolset_are_put_on_the_outer_one() -> None:
    hooks = HookSet(Everything)

    @hooks.library.on(Everything.library.open_page)
    async def cached(call: Any, given: OpenPage) -> Any:
        return Complete("the first page") if given.number == 1 else RunNormally(given)

    plan = await asking(("open_page", {"number": 1}), ("open_page", {"number": 2}), tools=Everything).apply_hooks(hooks)

    assert [one.output for one in plan.handled] == ["the first page"]
    assert [call.input.number for call in plan.pending] == [2]
