"""Code as users write it, for the type checkers: pyright and mypy, both strict. Nothing here is run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any, Literal, TypedDict, assert_type

import anthropic
import openai
from google.genai import types as genai
from mistralai.client.models import ToolTypedDict
from openai.types.chat import ChatCompletionToolParam, ChatCompletionToolUnionParam
from openai.types.responses import FunctionToolParam
from pydantic import BaseModel

from toolcrib import (
    Agent,
    Completed,
    HookSet,
    Media,
    Outcome,
    Reject,
    RunNormally,
    Toolset,
    Turn,
    decode,
    ez_tool,
    tool,
    tool_input,
)
from toolcrib.calls import ApprovalRequest, CallMetadata, render
from toolcrib.rounds import Continue, Finished, NeedsTools, Session, SessionResult, Stopped, Unhandled
from toolcrib.tools import Tool
from toolcrib.toolsets import use


class Weather(TypedDict):
    temp: float


@tool()
async def get_weather(city: str, unit: Literal["c", "f"] = "c") -> Weather:
    """Tell the weather."""
    return {"temp": 21.0 if unit == "c" else 70.0}


@tool_input("book_flight", output=str)
class BookFlight(BaseModel):
    """Book a flight."""

    origin: str
    day: int


class Trips(Toolset):
    book_flight = use(BookFlight)
    get_weather = use(get_weather)


# --- definitions are what the providers' own clients take


def definitions_for_openai(client: openai.OpenAI) -> None:
    made = Trips.definitions(format="openai")
    chat: Iterable[ChatCompletionToolParam] = made
    union: Iterable[ChatCompletionToolUnionParam] = Toolset([get_weather]).definitions(format="openai", strict=True)

    assert_type(made[0]["function"]["name"], str)
    client.chat.completions.create(model="m", messages=[], tools=made)
    client.chat.completions.create(model="m", messages=[], tools=union)
    client.chat.completions.create(model="m", messages=[], tools=[*chat])
    client.responses.create(model="m", input="hi", tools=Trips.definitions(format="openai_responses"))


def definitions_for_the_others(client: anthropic.Anthropic) -> None:
    mistral: list[ToolTypedDict] | None = list[ToolTypedDict](Trips.definitions(format="mistral"))
    responses: Iterable[FunctionToolParam] = Trips.definitions(format="openai_responses")
    gemini = genai.GenerateContentConfig(tools=Trips.definitions(format="gemini"))

    client.messages.create(model="m", max_tokens=9, messages=[], tools=Trips.definitions(format="anthropic"))
    print(mistral, responses, gemini)


# --- an outcome is told apart by its kind


def kinds_of_outcomes(outcome: Outcome) -> str:
    if outcome.kind == "completed":
        assert_type(outcome, Completed)
        return outcome.source
    if outcome.kind == "suspended":
        assert_type(outcome.request, ApprovalRequest)
        return outcome.request.tool
    if outcome.kind == "failed":
        return outcome.code
    return outcome.reason


# --- tools and turns


async def a_tool_keeps_its_signature() -> None:
    assert_type(await get_weather("Oslo", unit="f"), Weather)
    declared: Tool[..., Any] = get_weather
    print(declared.name)


async def a_turn_has_the_type_of_its_tool(agent: Agent) -> None:
    turn = Turn(get_weather, kwargs={"city": "Oslo"})

    assert_type(turn, Turn[Weather])
    assert_type(await turn.returning(), Weather)
    assert isinstance(turn.outcome, Completed)
    assert_type(turn.outcome.value, Weather)
    await agent.put(turn)
    async for done, value in agent.run():
        assert_type(done, Turn[Any])
        print(value)


@ez_tool
def add(a: int, b: int = 2) -> int:
    """Add two numbers."""
    return a + b


@ez_tool
async def count(upto: int) -> AsyncIterator[int]:
    """Count."""
    for number in range(upto):
        yield number


async def turns_of_functions_and_streams(by_any_name: Tool[..., Any]) -> None:
    added, counted = Turn(add, kwargs={"a": 1}), Turn(count, args=[3])

    assert_type(added, Turn[int])
    assert_type(await added.returning(), int)
    async for number in counted.yielding():
        assert_type(number, int)
    if added.outcome is not None and added.outcome.kind == "completed":
        assert_type(added.outcome.value, int)
    if counted.outcome is not None and counted.outcome.kind == "completed":
        assert_type(counted.outcome.value, list[int])
    turns: list[Turn[Any]] = [Turn("add"), Turn(by_any_name), added.copy()]
    print(turns)


# --- decision hooks get the input that was declared


hooks = HookSet(Trips)


@hooks.on(Trips.book_flight)
async def not_on_sundays(call: CallMetadata, given: BookFlight) -> Reject | RunNormally:
    return Reject("not on Sundays") if given.day % 7 == 0 else RunNormally(given)


@hooks.on(BookFlight)
async def from_oslo(call: CallMetadata, given: BookFlight) -> RunNormally:
    return RunNormally(given.model_copy(update={"origin": "Oslo"}))


@hooks.on("get_weather")
async def anywhere(call: CallMetadata, given: Any) -> RunNormally:
    return RunNormally(given)


def a_hook_for_another_input_is_an_error() -> None:
    async def of_weather(call: CallMetadata, given: Weather) -> RunNormally:
        return RunNormally(given)

    hooks.on(Trips.book_flight)(of_weather)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] -- shown


# --- rounds and sessions


async def a_round_of_ones_own(client: openai.OpenAI, messages: list[Any]) -> None:
    reply = client.chat.completions.create(model="m", messages=messages, tools=Trips.definitions(format="openai"))
    plan = await decode(Trips, reply).apply_hooks(hooks)
    for call in plan.pending:
        match call.input:
            case BookFlight(origin=origin):
                print(origin)
            case _:
                pass
    await plan.commit(messages, await plan.run_pending())


async def an_answer_has_the_type_that_was_asked_for(session: Session) -> None:
    made = await session.step(output=BookFlight)
    if isinstance(made, NeedsTools | Continue | Stopped):
        return
    assert_type(made, Finished[BookFlight])
    assert_type(made.result, BookFlight)

    ended = await session.run(output=list[int], tools=Trips)
    assert_type(ended, SessionResult[list[int]])
    assert_type(ended.result, list[int])
    assert_type(ended.waits_for, tuple[ApprovalRequest | Unhandled, ...])


# --- outcomes and what a model is shown of them


def outcomes_are_typed_and_frozen(outcome: Completed[int], image: Media) -> None:
    assert_type(outcome.value, int)
    assert_type(render(outcome).parts, tuple[str | Media, ...])
    assert_type(image.data, bytes | None)
    outcome.value = 2  # type: ignore[misc] # pyright: ignore[reportAttributeAccessIssue] -- frozen
