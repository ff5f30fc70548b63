"""`Session` with a provider's own client: what the client sends, and what becomes of what it gets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, NotRequired

import anthropic
import cohere
import openai
import pytest
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
from google import genai
from google.genai import interactions
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming
from pydantic import BaseModel, TypeAdapter
from typing_extensions import TypedDict

from tests.formats.replies import Asked, pieces
from toolcrib import Pipeline, Session, Toolset, decode, ez_tool
from toolcrib.calls import ToolCall
from toolcrib.errors import MissingExtraError
from toolcrib.formats import PROVIDERS, WireFormat
from toolcrib.rounds import CallProgress, ClientModel, Finished, NeedsTools, Usage, client_model
from toolcrib.testing import ScriptedModel, wire_reply
from toolcrib.toolsets import ToolRequirement


class CohereRequest(TypedDict):
    """What Cohere's client sends to its server."""

    model: str
    stream: bool
    messages: list[cohere.ChatMessageV2]
    tools: NotRequired[list[cohere.ToolV2]]


class InteractionRequest(TypedDict):
    """What Google's client sends to its server."""

    model: str
    input: list[interactions.Step]
    store: bool
    system_instruction: NotRequired[str]
    tools: NotRequired[list[interactions.Tool]]


PARAMETERS: dict[WireFormat, Any] = {
    "openai": CompletionCreateParamsNonStreaming,
    "openai_responses": ResponseCreateParamsNonStreaming,
    "anthropic": MessageCreateParamsNonStreaming,
    "cohere": CohereRequest,
    "gemini_interactions": InteractionRequest,
}
USAGE: dict[WireFormat, Any] = {
    "openai": {
        "prompt_tokens": 1000,
        "completion_tokens": 10,
        "total_tokens": 1010,
        "prompt_tokens_details": {},
        "completion_tokens_details": {"reasoning_tokens": 4},
    },
    "openai_responses": {
        "input_tokens": 1000,
        "output_tokens": 10,
        "total_tokens": 1010,
        "output_tokens_details": {"reasoning_tokens": 4},
    },
    "anthropic": {
        "input_tokens": 300,
        "cache_read_input_tokens": 600,
        "cache_creation_input_tokens": 100,
        "output_tokens": 10,
        "output_tokens_details": {"thinking_tokens": 4},
    },
    "cohere": {
        "billed_units": {"input_tokens": 1000, "output_tokens": 10},
        "tokens": {"input_tokens": 1000, "output_tokens": 10, "reasoning_tokens": 4},
    },
    "gemini_interactions": {
        "total_input_tokens": 900,
        "total_tool_use_tokens": 100,
        "total_output_tokens": 6,
        "total_thought_tokens": 4,
    },
}
MODELS: dict[WireFormat, str] = {
    "openai": "gpt-4o",
    "openai_responses": "gpt-4o",
    "anthropic": "claude-3-5-haiku-20241022",
    "cohere": "command-r-08-2024",
    "gemini_interactions": "gemini-2.5-flash",
}
each_format = pytest.mark.parametrize("format", [*PARAMETERS])
each_kind = pytest.mark.parametrize("is_async", [True, False])


@ez_tool
def weather(city: str) -> str:
    """Look at the weather."""
    return f"sun in {city}"


class City(BaseModel):
    """A city."""

    name: str
    people: int = 0


@contextmanager
def provider(*replies: object) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Run a server that gives one reply after the other; return its URL, and what it is asked."""
    asked: list[dict[str, Any]] = []
    left = list(replies)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            reply = left.pop(0)
            streamed = isinstance(reply, str)
            data = (reply if isinstance(reply, str) else json.dumps(reply)).encode()
            self.send_response(200)
            self.send_header("content-type", "text/event-stream" if streamed else "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


OPENED: list[genai.Client] = []  # which close their `aio` with themselves


def client(format: WireFormat, url: str, *, is_async: bool) -> Any:
    """Return the provider's own client for a server."""
    if format == "anthropic":
        made = anthropic.AsyncAnthropic if is_async else anthropic.Anthropic
        return made(api_key="k", base_url=url, max_retries=0)
    if format == "cohere":
        kind = cohere.AsyncClientV2 if is_async else cohere.ClientV2
        return kind(api_key="k", base_url=url)
    if format == "gemini_interactions":
        both = genai.Client(api_key="k", http_options={"base_url": url})
        OPENED.append(both)
        return both.aio if is_async else both
    opened = openai.AsyncOpenAI if is_async else openai.OpenAI
    return opened(api_key="k", base_url=url, max_retries=0)


def reply(format: WireFormat, calls: Sequence[ToolCall] = (), text: str = "") -> dict[str, Any]:
    """Return a reply as the provider's server sends it."""
    made = wire_reply(format, calls, text)
    return {**made, "model": MODELS[format], "usage": USAGE[format]}


@each_kind
@each_format
async def test_a_session_talks_to_the_provider_s_own_client(format: WireFormat, is_async: bool) -> None:
    call = ToolCall("weather", {"city": "Oslo"}, "call_abcdefgh1")
    with provider(reply(format, [call]), reply(format, text="It is sunny.")) as (url, asked):
        session = Session(
            client(format, url, is_async=is_async),
            model_name="some-model",
            format=format,
            system="Be brief.",
            tools=[weather],
        )
        done = await session.say("How is Oslo?").run()

    assert isinstance(done, Finished)
    assert (done.result, session.format, session.transcript.check()) == ("It is sunny.", format, [])
    for request in asked:
        TypeAdapter(PARAMETERS[format]).validate_python(request)
        assert (request["model"], "Be brief." in json.dumps(request)) == ("some-model", True)
    assert "sun in Oslo" in json.dumps(asked[1])


@each_format
async def test_usage_and_cost_are_those_of_all_replies(format: WireFormat) -> None:
    call = ToolCall("weather", {"city": "Oslo"}, "call_abcdefgh1")
    with provider(reply(format, [call]), reply(format, text="Sun."), reply(format, text="Bye.")) as (url, _):
        model = client_model(client(format, url, is_async=True), "some-model", format=format)
        session = Session(model, tools=[weather])
        first = await session.say("How is Oslo?").run()
        second = await session.say("Bye.").run()

    assert isinstance(first, Finished)
    assert isinstance(second, Finished)
    cached, written = (600, 100) if format == "anthropic" else (0, 0)
    assert (first.usage.requests, first.usage.input_tokens, first.usage.output_tokens) == (2, 2000, 20)
    assert first.usage.cached_tokens == 2 * cached
    assert first.usage.cache_written_tokens == 2 * written
    assert first.usage.reasoning_tokens == 2 * 4
    assert (second.usage.requests, session.usage) == (1, first.usage + second.usage)
    assert session.usage.cost is not None
    assert session.usage.cost == 3 * second.usage.cost > 0  # pyright: ignore[reportOperatorIssue] -- not None either


async def test_what_a_reply_cost_is_unknown_where_its_model_or_its_tokens_are() -> None:
    unknown = {**reply("openai", text="Hi."), "model": "nobody-knows-it"}
    with provider(unknown, wire_reply("openai", text="Hi.")) as (url, _):
        session = Session(client("openai", url, is_async=True), model_name="m")
        first = await session.say("Hi.").run()
        second = await session.say("Hi.").run()

    assert isinstance(first, Finished)
    assert isinstance(second, Finished)
    assert first.usage == Usage(1, 1000, 10, reasoning_tokens=4, cost=None)
    assert second.usage == Usage(1, cost=None)
    assert session.usage.cost is None


@each_format
async def test_an_answer_of_a_type_is_held_to_its_schema(format: WireFormat) -> None:
    answers = ['{"name": "Oslo", "people": null}', '{"value": [{"name": "Oslo"}]}', '[{"name": "Bergen"}]']
    with provider(*(reply(format, text=answer) for answer in answers)) as (url, asked):
        session = Session(client(format, url, is_async=True), model_name="m", format=format)
        made = await session.say("Where?").run(output=City)
        listed = await session.say("Where?").run(output=list[City])
        bare = await session.say("Where?").run(output=list[City])

    for request in asked:
        TypeAdapter(PARAMETERS[format]).validate_python(request)
        assert "people" in json.dumps(request)
    assert isinstance(made, Finished)
    assert isinstance(listed, Finished)
    assert isinstance(bare, Finished)
    assert made.result == City(name="Oslo")  # strict mode fills in a null for what is optional
    assert (listed.result, bare.result) == ([City(name="Oslo")], [City(name="Bergen")])


async def test_a_schema_that_the_provider_cannot_be_held_to_is_said_in_words() -> None:
    with provider(reply("openai", text='{"a": 1}')) as (url, asked):
        session = Session(client("openai", url, is_async=True), model_name="m", system="Be brief.")
        made = await session.say("Count.").run(output=dict[str, int])

    assert isinstance(made, Finished)
    assert made.result == {"a": 1}
    assert "response_format" not in asked[0]
    assert asked[0]["messages"][0]["content"].startswith("Be brief.\n\nAnswer with JSON alone")


async def test_a_required_tool_and_one_call_at_a_time_are_asked_for_in_the_provider_s_words() -> None:
    require = ToolRequirement.specific("weather", parallel=False)
    call = ToolCall("weather", {"city": "Oslo"}, "toolu_abcdefgh1")
    with provider(reply("anthropic", [call])) as (url, asked):
        session = Session(client("anthropic", url, is_async=True), model_name="m", tools=[weather], require=require)
        await session.say("Go.").step()

    assert asked[0]["tool_choice"] == {"type": "tool", "name": "weather", "disable_parallel_tool_use": True}


PROVIDER_TOOLS: dict[WireFormat, dict[str, Any]] = {
    "openai": {"type": "custom", "custom": {"name": "sql"}},
    "openai_responses": {"type": "web_search"},
    "anthropic": {"type": "web_search_20250305", "name": "web_search"},
    "cohere": {"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}},
    "gemini_interactions": {"type": "google_search"},
}


def given_to_client(model: Any, format: WireFormat) -> Session:
    own = [PROVIDER_TOOLS[format]]
    return Session(client_model(model, "m", format=format, provider_tools=own), tools=[weather])


def given_to_session(model: Any, format: WireFormat) -> Session:
    return Session(model, model_name="m", format=format, tools=[weather], provider_tools=[PROVIDER_TOOLS[format]])


@each_format
@pytest.mark.parametrize("given", [given_to_client, given_to_session])
async def test_a_provider_s_own_tools_are_offered_beside_the_session_s(
    format: WireFormat, given: Callable[[Any, WireFormat], Session]
) -> None:
    call = ToolCall("weather", {"city": "Oslo"}, "call_abcdefgh1")
    with provider(reply(format, [call]), reply(format, text="Sun.")) as (url, asked):
        done = await given(client(format, url, is_async=True), format).say("How is Oslo?").run()

    offered = [*Toolset([weather]).definitions(format=format), PROVIDER_TOOLS[format]]
    assert isinstance(done, Finished)
    assert [request["tools"] for request in asked] == [offered, offered]
    for request in asked:
        TypeAdapter(PARAMETERS[format]).validate_python(request)


@each_format
async def test_a_provider_s_own_tools_may_be_the_only_ones(format: WireFormat) -> None:
    with provider(reply(format, text="Sun.")) as (url, asked):
        session = Session(client(format, url, is_async=True), model_name="m", format=format)
        await session.say("Go.").step(provider_tools=[PROVIDER_TOOLS[format]])

    assert asked[0]["tools"] == [PROVIDER_TOOLS[format]]
    assert "tool_choice" not in asked[0]


async def test_a_tool_gives_way_to_the_provider_s_of_its_name_and_takes_its_calls() -> None:
    @ez_tool
    def bash(command: str) -> str:
        """Run a command."""
        return f"ran {command}"

    shell = {"type": "bash_20250124", "name": "bash"}
    call = ToolCall("bash", {"command": "ls"}, "toolu_abcdefgh1")
    with provider(reply("anthropic", [call]), reply("anthropic", text="Done.")) as (url, asked):
        session = Session(client("anthropic", url, is_async=True), model_name="m", tools=[weather, bash])
        await session.say("List.").run(provider_tools=[shell])

    assert [tool["name"] for tool in asked[0]["tools"]] == ["weather", "bash"]
    assert asked[0]["tools"][1] == shell
    assert "ran ls" in json.dumps(asked[1]["messages"])


async def test_a_provider_s_own_tool_does_not_displace_a_tool_that_has_the_name_of_its_type() -> None:
    @ez_tool
    def web_search(query: str) -> str:
        """Search."""
        return query

    model = ScriptedModel("Hi.")
    session = Session(model, tools=[web_search], format="openai_responses")
    await session.say("Go.").step(provider_tools=[{"type": "web_search"}])

    assert [tool["type"] for tool in model.requests[0].tools] == ["function", "web_search"]


ALWAYS = {"messages", "input", "tools", "tool_choice"}  # what a session makes for each request
SETTINGS: list[tuple[WireFormat, str]] = [
    (format, name) for format in PARAMETERS for name in getattr(PROVIDERS[format].client, "options", ())
]


@pytest.mark.parametrize(("format", "name"), SETTINGS)
async def test_a_setting_that_would_replace_what_a_session_makes_is_an_error_that_names_the_option(
    format: WireFormat, name: str
) -> None:
    opened = client(format, "http://127.0.0.1:9", is_async=True)
    require = ToolRequirement.optional(parallel=format == "gemini_interactions")  # which cannot be held to one call
    options: Any = {"system": "Be brief.", "tools": [weather], "require": require, "output": City}

    async def ask() -> object:
        model = client_model(opened, "m", format=format, **{name: "another"})
        return await Session(model, **options).say("Hi.").step()

    with pytest.raises(TypeError if name in ALWAYS else ValueError, match=rf"`{name}` would replace .* give `\w+=`"):
        await ask()


@pytest.mark.parametrize(
    ("format", "name", "setting"),
    [
        ("openai_responses", "text", {"verbosity": "low"}),
        ("anthropic", "output_config", {"effort": "low"}),
    ],
)
async def test_a_setting_is_sent_beside_what_the_session_makes(
    format: WireFormat, name: str, setting: dict[str, str]
) -> None:
    with provider(reply(format, text='{"name": "Oslo"}')) as (url, asked):
        model = client_model(client(format, url, is_async=True), "m", format=format, **{name: setting})
        await Session(model).say("Where?").run(output=City)

    assert asked[0][name].keys() == {*setting, "format"}


def streamed(format: WireFormat, *calls: Asked) -> str:
    """Return a reply as the provider's server streams it."""
    events = pieces(format, "" if calls else "Hello you.", [*calls])
    names = [event.get("type") or event.get("event_type") or "" for event in events]
    return "".join(f"event: {name}\ndata: {json.dumps(event)}\n\n" for name, event in zip(names, events, strict=True))


@each_kind
@each_format
async def test_a_client_streams_when_somebody_listens(format: WireFormat, is_async: bool) -> None:
    said, calls = list[str](), list[CallProgress]()
    with provider(streamed(format, Asked("call_abcdefgh1", "weather")), streamed(format), reply(format)) as (
        url,
        asked,
    ):
        opened = client(format, url, is_async=is_async)
        session = Session(opened, model_name="m", format=format, tools=[weather]).say("Hi.")
        answer = await session.run(on_text=said.append, on_call=calls.append)
        await session.say("Bye.").run()

    assert (answer.result, "".join(said), len(said) > 1) == ("Hello you.", "Hello you.", True)
    assert calls[-1].is_whole
    assert [bool(request.get("stream")) for request in asked] == [True, True, False]


async def test_an_answer_comes_in_pieces_with_its_usage() -> None:
    said: list[str] = []
    base = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o"}
    chunks = [
        {**base, "choices": [{"index": 0, "delta": {"role": "assistant", "content": "Hel"}, "finish_reason": None}]},
        {**base, "choices": [{"index": 0, "delta": {"content": "lo"}, "finish_reason": "stop"}]},
        {**base, "choices": [], "usage": USAGE["openai"]},
    ]
    stream = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
    with provider(stream) as (url, asked):
        model = client_model(client("openai", url, is_async=True), "m", stream=True, temperature=0)
        done = await Session(model).say("Hi.").step(on_text=said.append)

    assert isinstance(done, Finished)
    assert (done.result, said, done.usage.input_tokens) == ("Hello", ["Hel", "lo"], 1000)
    assert done.usage.cost
    assert (asked[0]["temperature"], asked[0]["stream_options"]) == (0, {"include_usage": True})


async def test_cohere_has_another_method_for_an_answer_in_pieces() -> None:
    said: list[str] = []
    chunks = pieces("cohere", "Hello", [])
    stream = "".join(f"event: {chunk['type']}\ndata: {json.dumps(chunk)}\n\n" for chunk in chunks)
    with provider(stream) as (url, asked):
        model = client_model(client("cohere", url, is_async=True), "m", stream=True, strict_tools=True)
        done = await Session(model).say("Hi.").step(on_text=said.append)

    assert isinstance(done, Finished)
    assert (done.result, "".join(said), done.usage.input_tokens) == ("Hello", "Hello", 1)
    assert (asked[0]["stream"], asked[0]["strict_tools"]) == (True, True)


async def test_a_choice_stands_beside_the_settings_of_an_interaction_which_comes_in_pieces() -> None:
    chunks = pieces("gemini_interactions", "", [Asked("call_abcdefgh1", "weather")])
    stream = "".join(f"event: {chunk['event_type']}\ndata: {json.dumps(chunk)}\n\n" for chunk in chunks)
    with provider(stream) as (url, asked):
        opened = client("gemini_interactions", url, is_async=True)
        model = client_model(opened, "m", stream=True, store=True, generation_config={"seed": 1})
        session = Session(model, tools=[weather], require=ToolRequirement.specific("weather"))
        step = await session.say("Go.").step()

    assert isinstance(step, NeedsTools)
    assert [(one.name, one.input.city) for one in step.round.tool_calls] == [("weather", "Oslo")]
    chosen = {"allowed_tools": {"mode": "any", "tools": ["weather"]}}
    assert (asked[0]["generation_config"], asked[0]["store"]) == ({"seed": 1, "tool_choice": chosen}, True)


@each_kind
def test_plain_code_runs_a_session(is_async: bool) -> None:
    call = ToolCall("weather", {"city": "Oslo"}, "call_abcdefgh1")
    with provider(reply("openai", [call]), reply("openai", text="Sun."), reply("openai", text="Bye.")) as (url, _):
        session = Session(client("openai", url, is_async=is_async), model_name="m", tools=Toolset([weather]))
        done = session.say("How is Oslo?").run_sync()
        again = session.say("Bye.").run_sync()

    assert isinstance(done, Finished)
    assert isinstance(again, Finished)
    assert (done.result, again.result) == ("Sun.", "Bye.")


def test_the_provider_and_the_model_may_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    monkeypatch.setenv("CO_API_KEY", "k")
    monkeypatch.setenv("GEMINI_API_KEY", "k")
    names = ("openai:gpt-5", "anthropic:claude-opus-5", "cohere:command-a-plus", "google:gemini-3")

    named = [Session(name).model for name in names]

    assert [(model.model, model.format) for model in named if isinstance(model, ClientModel)] == [
        ("gpt-5", "openai"),
        ("claude-opus-5", "anthropic"),
        ("command-a-plus", "cohere"),
        ("gemini-3", "gemini_interactions"),
    ]
    assert Session("openai:gpt-5", format="openai_responses").format == "openai_responses"


class Own(openai.AsyncOpenAI):
    """A client that its host made its own."""


@pytest.mark.parametrize(
    ("made", "error", "mend"),
    [
        (lambda: Session(42), TypeError, "42 is not a model: give a client"),
        (lambda: Session("gpt-5"), ValueError, "'openai:...'"),
        (lambda: Session("groq:llama-4"), ValueError, "chat_model('groq:llama-4')"),
        (lambda: Session("openai:gpt-5", model_name="gpt-5"), ValueError, "is not the name of a model"),
        (lambda: Session(Own(api_key="k")), ValueError, "model_name="),
        (lambda: Session(Own(api_key="k"), model_name="m", format="anthropic"), ValueError, "no format 'anthropic'"),
        (lambda: Session(Own(api_key="k"), model_name="m", stream=True), TypeError, "Here it is `on_text=...`"),
    ],
)
def test_what_is_no_model_is_an_error_with_its_mend(made: Callable[[], object], error: type, mend: str) -> None:
    with pytest.raises(error) as raised:
        made()

    assert mend in str(raised.value)


def test_a_package_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "anthropic", None)

    with pytest.raises(MissingExtraError, match=r"toolcrib\[anthropic\]"):
        Session("anthropic:claude-opus-5")


async def test_a_session_of_another_format_than_its_client_s_is_refused() -> None:
    model = client_model(openai.AsyncOpenAI(api_key="k"), "m")

    with pytest.raises(ValueError, match="the session's format is 'anthropic'"):
        await Session(model, format="anthropic").say("Hi.").step()


async def test_a_stored_session_with_a_client_of_another_provider_says_which_client_it_needs() -> None:
    stored = Session(openai.OpenAI(api_key="k"), model_name="gpt-5").to_json()

    with pytest.raises(ValueError, match="stored session keeps its own: give a client of that format"):
        await Session.from_json(anthropic.Anthropic(api_key="k"), stored, model_name="claude-opus-5")


async def test_usage_is_kept_with_a_session() -> None:
    model = ScriptedModel({**wire_reply("openai", text="Hi."), "model": "gpt-4o", "usage": USAGE["openai"]}, "Bye.")
    session = Session(model)
    await session.say("Hi.").run()

    again = await Session.from_json(model, session.to_json())

    assert again.usage == session.usage
    assert session.usage.cost == Decimal("0.0026")
    assert session.copy().usage == session.usage


def test_plain_code_cannot_block_a_running_loop() -> None:
    async def inside() -> None:
        Session(ScriptedModel("Hi.")).run_sync()

    with pytest.raises(RuntimeError, match=r"await session\.run"):
        asyncio.run(inside())


def test_plain_code_runs_a_round_and_a_call() -> None:
    call = ToolCall("weather", {"city": "Oslo"}, "call_abcdefgh1")
    messages: list[Any] = [{"role": "user", "content": "How is Oslo?"}]

    plan = decode([weather], wire_reply("openai", [call])).run_sync(messages)
    outcome = Pipeline(Toolset([weather])).run_sync(call)

    assert not plan.suspended
    assert messages[-1] == {"role": "tool", "tool_call_id": call.id, "content": "sun in Oslo"}
    assert outcome.text() == "sun in Oslo"


async def test_a_round_that_waits_for_a_person_is_not_committed() -> None:
    ran: list[str] = []

    @ez_tool(requires_approval=True)
    def book(city: str) -> str:
        ran.append(city)
        return "booked"

    messages: list[Any] = [{"role": "user", "content": "Book Oslo."}]
    call = ToolCall("book", {"city": "Oslo"}, "call_abcdefgh1")
    round = decode([book], wire_reply("openai", [call]), transcript=messages)

    plan = await round.run(messages)
    assert (len(messages), round.settled, ran) == (1, False, [])
    await plan.resolve([suspended.request.grant(by="ann") for suspended in plan.suspended])
    await plan.commit(messages, await plan.run_pending())

    assert (messages[-1]["content"], ran) == ("booked", ["Oslo"])
