"""A round of ten calls: from the JSON text of a provider's reply to a transcript with the calls and their results.

What pydantic itself takes to parse the same JSON is the measure: the reply's text into a model of the provider's wire
format that declares what the reply has and nothing else, which is quicker than the types of any SDK, and then the
arguments of each call into its input model: from their text, or from values where the format sends an object. Toolcrib
starts from the same text, and also pairs and settles ids, asks its gates, takes the ten results, writes those as JSON,
checks the transcript, and extends it.
"""

# ruff: noqa: PLC0415 -- a contender's process imports what that contender needs, and nothing of the others

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks._measure import Contender, Measure, Metric, Sample, Target
from benchmarks._timing import async_sample, check, on_loop, timed_apart
from benchmarks._tools import book_flight

CALLS, COUNT = 10, 4  # a batch that is done before another program is given its turn
FORMATS = (
    "openai",
    "openai_responses",
    "anthropic",
    "gemini",
    "mistral",
    "bedrock",
    "ollama",
    "cohere",
    "gemini_interactions",
)
ARGUMENTS: dict[str, Any] = {
    "origin": "OSL",
    "destination": "LHR",
    "day": "2026-03-01",
    "seats": 2,
    "cabin": "business",
    "notes": ["an aisle seat", "no lounge"],
}
RESULT: dict[str, Any] = {"booking": "X1Y2Z3", "price": 312.5, "seats": ["12A", "12B"]}
LONG, APART = 100, 5  # the rounds of a conversation, and how many at its two ends are timed


# --- replies


def reply(format: str, name: str = "call") -> dict[str, Any]:
    """Return a reply of ten calls as the provider sends it."""
    return _REPLIES[format]([(f"{name}_{number:05}", json.dumps(ARGUMENTS)) for number in range(CALLS)])


def _chat(calls: list[tuple[str, str]], model: str = "gpt-5") -> dict[str, Any]:
    asked = [{"id": id, "type": "function", "function": {"name": "book_flight", "arguments": raw}} for id, raw in calls]
    message = {"role": "assistant", "content": None, "tool_calls": asked}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    return {"id": "reply_1", "object": "chat.completion", "created": 1, "model": model, "choices": [choice]}


def _responses(calls: list[tuple[str, str]]) -> dict[str, Any]:
    kind = {"type": "function_call", "name": "book_flight", "status": "completed"}
    output = [{**kind, "id": f"fc_{id}", "call_id": id, "arguments": raw} for id, raw in calls]
    return {"id": "reply_1", "object": "response", "model": "gpt-5", "status": "completed", "output": output}


def _messages(calls: list[tuple[str, str]]) -> dict[str, Any]:
    content = [{"type": "tool_use", "id": id, "name": "book_flight", "input": json.loads(raw)} for id, raw in calls]
    about = {"id": "reply_1", "type": "message", "role": "assistant", "model": "claude", "stop_reason": "tool_use"}
    return {**about, "content": content}


def _contents(calls: list[tuple[str, str]]) -> dict[str, Any]:
    asked = [{"id": id, "name": "book_flight", "args": json.loads(raw)} for id, raw in calls]
    content = {"role": "model", "parts": [{"functionCall": call} for call in asked]}
    return {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}], "modelVersion": "gemini"}


def _converse(calls: list[tuple[str, str]]) -> dict[str, Any]:
    asked = [{"toolUseId": id, "name": "book_flight", "input": json.loads(raw)} for id, raw in calls]
    message = {"role": "assistant", "content": [{"toolUse": use} for use in asked]}
    return {"output": {"message": message}, "stopReason": "tool_use"}


def _ollama(calls: list[tuple[str, str]]) -> dict[str, Any]:
    asked = [{"id": id, "function": {"name": "book_flight", "arguments": json.loads(raw)}} for id, raw in calls]
    message = {"role": "assistant", "content": "", "tool_calls": asked}
    return {"model": "llama", "message": message, "done": True, "done_reason": "stop"}


def _cohere(calls: list[tuple[str, str]]) -> dict[str, Any]:
    [choice] = _chat(calls)["choices"]
    message = {"role": "assistant", "tool_plan": "I will book.", "tool_calls": choice["message"]["tool_calls"]}
    return {"id": "reply_1", "message": message, "finish_reason": "TOOL_CALL"}


def _interaction(calls: list[tuple[str, str]]) -> dict[str, Any]:
    step = {"type": "function_call", "name": "book_flight"}
    steps = [{**step, "id": id, "arguments": json.loads(raw)} for id, raw in calls]
    return {"id": "reply_1", "object": "interaction", "model": "gemini", "status": "requires_action", "steps": steps}


_REPLIES: dict[str, Callable[[list[tuple[str, str]]], dict[str, Any]]] = {
    "openai": _chat,
    "openai_responses": _responses,
    "anthropic": _messages,
    "gemini": _contents,
    "mistral": lambda calls: _chat([(id[-9:].replace("_", "x"), raw) for id, raw in calls], "mistral-large-latest"),
    "bedrock": _converse,
    "ollama": _ollama,
    "cohere": _cohere,
    "gemini_interactions": _interaction,
}


# --- the formats


def _in_each(parse: Callable[[str, str], Callable[[], Any]]) -> Sample:
    """Return a sample with a figure for each format, of what `parse` makes of the format and a reply's text."""
    samples: list[Sample] = []
    for format in FORMATS:
        work = parse(format, json.dumps(reply(format)))

        async def batch(work: Callable[[], Any] = work) -> Any:
            for _ in range(COUNT):
                done = work()
                done = await done if hasattr(done, "__await__") else done
            return done

        samples.append(async_sample(format, batch, COUNT, CALLS))

    def sample() -> Mapping[str, float]:
        return {key: value for one in samples for key, value in one().items()}

    return sample


def bare_pydantic() -> Sample:
    from benchmarks._wire_models import READERS

    def parse(format: str, text: str) -> Callable[[], int]:
        return lambda: len(READERS[format](text))

    return _in_each(parse)


def toolcrib_whole_rounds() -> Sample:
    from pydantic_core import from_json

    from toolcrib.rounds import Transcript, decode
    from toolcrib.tools import tool
    from toolcrib.toolsets import Toolset

    crib = Toolset([tool()(book_flight)])

    def parse(format: Any, text: str) -> Callable[[], Any]:
        async def work() -> int:
            transcript = Transcript(format=format)
            plan = await decode(crib, from_json(text), format=format).apply_hooks()
            results = await plan.run_pending()
            await plan.commit(transcript, results)
            return len(results) if len(transcript) > 1 else 0

        return work

    return _in_each(parse)


def toolcrib_rounds() -> Sample:
    from pydantic_core import from_json

    from toolcrib.rounds import Transcript, decode
    from toolcrib.tools import tool
    from toolcrib.toolsets import Toolset

    crib = Toolset([tool()(book_flight)])

    def parse(format: Any, text: str) -> Callable[[], Any]:
        async def work() -> int:
            transcript = Transcript(format=format)
            round = decode(crib, from_json(text), format=format)
            calls = round.tool_calls
            await round.commit(transcript, [call.complete(RESULT) for call in calls])
            return len(calls) if len(transcript) > 1 else 0

        return work

    return _in_each(parse)


def toolcrib_decode() -> Sample:
    from pydantic_core import from_json

    from toolcrib.rounds import decode
    from toolcrib.tools import tool
    from toolcrib.toolsets import Toolset

    crib = Toolset([tool()(book_flight)])

    def parse(format: Any, text: str) -> Callable[[], int]:
        return lambda: len(decode(crib, from_json(text), format=format).tool_calls)

    return _in_each(parse)


# --- peers, in the one format that each of them reads


def _openai_text() -> str:
    return json.dumps(reply("openai"))


def bare_pydantic_openai() -> Sample:
    from benchmarks._wire_models import READERS

    read, text = READERS["openai"], _openai_text()

    async def batch() -> int:
        for _ in range(COUNT):
            done = len(read(text))
        return done

    return async_sample("us", batch, COUNT, CALLS)


def toolcrib_openai() -> Sample:
    from pydantic_core import from_json

    from toolcrib.rounds import decode
    from toolcrib.tools import tool
    from toolcrib.toolsets import Toolset

    crib, text = Toolset([tool()(book_flight)]), _openai_text()

    async def batch() -> int:
        for _ in range(COUNT):
            messages: list[Any] = []
            round = decode(crib, from_json(text), format="openai")
            await round.commit(messages, [call.complete(RESULT) for call in round.tool_calls])
        return len(messages)

    return async_sample("us", batch, COUNT, CALLS + 1)


def openai_sdk() -> Sample:
    from openai.types.chat import ChatCompletion

    from benchmarks._wire_models import BookFlight

    text = _openai_text()

    async def batch() -> int:
        for _ in range(COUNT):
            message = ChatCompletion.model_validate_json(text).choices[0].message
            messages: list[Any] = [message.model_dump(exclude_none=True)]
            for call in message.tool_calls or ():
                BookFlight.model_validate_json(call.function.arguments)
                messages.append({"role": "tool", "tool_call_id": call.id, "content": json.dumps(RESULT)})
        return len(messages)

    return async_sample("us", batch, COUNT, CALLS + 1)


def langchain() -> Sample:
    from langchain_core.messages import ToolMessage, convert_to_messages, convert_to_openai_messages
    from langchain_core.output_parsers.openai_tools import PydanticToolsParser

    from benchmarks._wire_models import BookFlight

    text = _openai_text()
    parser = PydanticToolsParser(tools=[type("book_flight", (BookFlight,), {})])

    async def batch() -> int:
        for _ in range(COUNT):
            [message] = convert_to_messages([json.loads(text)["choices"][0]["message"]])
            parser.invoke(message)
            answers = [ToolMessage(json.dumps(RESULT), tool_call_id=call["id"]) for call in message.tool_calls]
            messages = convert_to_openai_messages([message, *answers])
        return len(messages)

    return async_sample("us", batch, COUNT, CALLS + 1)


# --- a long conversation


def _conversation(first: int, *, plain: bool = False) -> Sample:
    """Return a sample of ten rounds of a conversation, of which it is given all the rounds before them."""
    from toolcrib.formats import PROVIDERS
    from toolcrib.rounds import Transcript, decode
    from toolcrib.tools import tool
    from toolcrib.toolsets import Toolset

    crib = Toolset([tool()(book_flight)])
    replies = [reply("anthropic", f"toolu_{number:03}") for number in range(first + APART)]

    async def rounds(messages: list[Any], sent: list[dict[str, Any]]) -> None:
        for one in sent:
            messages += PROVIDERS["anthropic"].user("Go on.")
            round = decode(crib, one, format="anthropic", transcript=messages)
            await round.commit(messages, [call.complete(RESULT) for call in round.tool_calls])

    def begun() -> list[Any]:
        messages: list[Any] = [] if plain else Transcript(format="anthropic")
        on_loop(rounds(messages, replies[:first]))
        return messages

    done = begun()
    on_loop(rounds(done, replies[first:]))
    check((len(done), PROVIDERS["anthropic"].check(done)), (3 * (first + APART), []))
    return timed_apart("us", begun, lambda messages: rounds(messages, replies[first:]), APART)


FORMATS_MEASURE = Measure(
    name="rounds",
    title="a round of ten calls, from the JSON text of the reply to the transcript with their results",
    metrics=tuple(Metric(format, f"per round, {format}", "us") for format in FORMATS),
    contenders=(
        Contender("pydantic's parsing alone", bare_pydantic),
        Contender("toolcrib", toolcrib_rounds),
        Contender("toolcrib, and runs them", toolcrib_whole_rounds),
        Contender("toolcrib, decode alone", toolcrib_decode),
    ),
    baseline="pydantic's parsing alone",
    often=3,
    targets=tuple(
        Target(format, contender, "pydantic's parsing alone", 4)
        for contender in ("toolcrib", "toolcrib, and runs them")
        for format in FORMATS
    ),
    notes=(
        "pydantic parses the reply into the leanest model of it, and the arguments of its calls; it does no more.",
        "toolcrib takes results that the host has; in the row that runs them, it also executes the ten calls.",
    ),
)

PEERS_MEASURE = Measure(
    name="rounds_peers",
    title="a round of ten calls in OpenAI's format, beside those who read it as well",
    metrics=(Metric("us", "per round", "us"),),
    contenders=(
        Contender("pydantic's parsing alone", bare_pydantic_openai),
        Contender("toolcrib", toolcrib_openai),
        Contender("openai's types, by hand", openai_sdk),
        Contender("langchain-core messages", langchain),
    ),
    baseline="pydantic's parsing alone",
    often=3,
    notes=("by hand: no gate, no check of the transcript, no care for ids; the same for langchain-core.",),
)

LONG_MEASURE = Measure(
    name="rounds_long",
    title=f"a round of ten calls at the beginning and at the end of a conversation of {LONG} rounds",
    metrics=(Metric("us", "per round", "us"),),
    contenders=(
        Contender(f"toolcrib, rounds 1 to {APART}", lambda: _conversation(0)),
        Contender(f"toolcrib, rounds {LONG - APART + 1} to {LONG}", lambda: _conversation(LONG - APART)),
        Contender(
            f"toolcrib, rounds {LONG - APART + 1} to {LONG}, a plain list",
            lambda: _conversation(LONG - APART, plain=True),
        ),
    ),
    baseline=f"toolcrib, rounds 1 to {APART}",
    often=3,
    targets=(Target("us", f"toolcrib, rounds {LONG - APART + 1} to {LONG}", f"toolcrib, rounds 1 to {APART}", 1.5),),
    notes=("a plain list says nothing of itself, so that all of it is read again in each round.",),
)

MEASURES = (FORMATS_MEASURE, PEERS_MEASURE, LONG_MEASURE)
