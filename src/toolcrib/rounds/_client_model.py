"""Client model: a provider's own client, OpenAI's, Anthropic's, Google's or Cohere's, as the model of a session."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping, Sequence
from functools import reduce
from importlib import import_module
from inspect import isawaitable
from typing import Any, cast

from toolcrib.errors import FormatError, MissingExtraError
from toolcrib.formats import PROVIDERS, Item, ProviderClient, WireFormat
from toolcrib.rounds._chat_model import ChatModel, ChatRequest, closed_stream, joined_tools


def client_model(
    client: Any,
    model: str = "",
    *,
    format: WireFormat | None = None,
    stream: bool = False,
    provider_tools: Sequence[Mapping[str, Any]] = (),
    **settings: Any,
) -> ClientModel:
    """Return a `ChatModel` that asks a provider through its own client.

    Args:
        client: `OpenAI()`, `AsyncOpenAI()`, `Anthropic()`, `AsyncAnthropic()`, `ClientV2()` and `AsyncClientV2()` of
            Cohere, Google's `Client()` and its `aio`, or another of these packages. Or the name of the provider and
            of the model, `"openai:gpt-5"`: the client is made then, and takes its key from the environment, as the
            provider says.
        model: The model's name, where `client` is a client.
        format: `openai_responses` for OpenAI's Responses API; its Chat Completions when None.
        stream: Have each reply come in pieces, also where no `on_text`, `on_call` or `on_chunk` of a step listens.
        provider_tools: Tools of the provider's own, as it describes them, which are offered beside the session's:
            `[{"type": "web_search_20250305", "name": "web_search"}]`.
        settings: The settings of every request, as the client takes them: `temperature=0`, `max_tokens=2000`.

    Raises:
        TypeError: The client is of another package, or a setting is what a session makes itself.
        ValueError: No model is named, or the provider is not known.
        MissingExtraError: The provider's package is not installed.
    """
    owner = None
    if isinstance(client, str):
        owner, client, model = _named(client, model)
    packages = (base.__module__.partition(".")[0] for base in type(client).__mro__)
    found = (_formats_of(package) for package in packages)
    formats = next((known for known in found if known), dict[WireFormat, ProviderClient]())
    if not formats:
        mend = f"give a client of {_packages()}, a ChatModel, or a name such as 'openai:gpt-5'"
        raise TypeError(f"{client!r:.80} is not a model: {mend}")
    if not model:
        raise ValueError(f"{type(client).__name__}() says no model: give its name, Session(client, model_name='...')")
    chosen = format or next(iter(formats))
    if chosen not in formats:
        known = " or ".join(map(repr, formats))
        parameters = f"{type(client).__name__}() has no format {chosen!r}, and a stored session keeps its own"
        raise ValueError(f"{parameters}: give a client of that format, or for a new session format={known}")
    known = formats[chosen]
    always = {*PROVIDERS[chosen].request((), "", None), "tools", "tool_choice"}
    if replaced := [key for key in settings if key in always]:
        raise TypeError(_conflict(replaced[0], known))
    asked = ClientModel(client, model, chosen, known, stream=stream, settings=settings, provider_tools=provider_tools)
    asked.owner = owner
    return asked


class ClientModel:
    """A provider's client, as a session asks it. Made by `client_model`.

    Attributes:
        format: The wire format of its requests and replies, which the session takes over.
        model: The model's name.
        provider: The provider's name.
        owner: The object that has the client as a part, and would close it.
    """

    owner: Any = None

    def __init__(
        self,
        client: Any,
        model: str,
        format: WireFormat,
        known: ProviderClient,
        *,
        stream: bool = False,
        settings: Mapping[str, Any],
        provider_tools: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        self.format: WireFormat = format
        self.model, self.provider, self._known = model, known.package, known
        self._client = client  # some are closed when nobody holds them
        self._stream, self._is_async = stream, _is_async(client)
        self._settings, self._provider_tools = settings, provider_tools

    async def reply(self, request: ChatRequest) -> object:
        """Ask the model once, and return what the client returned.

        Raises:
            ValueError: The session has another format than the client, or makes what is a setting of the client's.
        """
        if request.format != self.format:
            raise ValueError(f"the session's format is {request.format!r}, and the client's {self.format!r}")
        known, stream = self._known, self._stream or request.stream
        endpoint = (stream and known.stream_endpoint) or known.endpoint
        create: Callable[..., Any] = reduce(getattr, endpoint, self._client)
        settings = {**known.settings, **(known.streaming if stream else {}), **self._settings}
        sent = {"model": self.model, **self._parameters(request, settings)}
        if not self._is_async:
            reply = await asyncio.to_thread(create, **sent)
            return _read_in_threads(reply) if stream else reply
        reply = create(**sent)
        return await reply if isawaitable(reply) else reply  # a stream may come without being awaited

    def _parameters(self, request: ChatRequest, settings: Mapping[str, Any]) -> Item:
        rules = PROVIDERS[self.format]
        system = rules.cached_system if request.cache else str
        try:
            parameters = rules.request(request.messages, system(request.system), request.output)
        except FormatError:  # the provider cannot be held to this schema: the model is shown it
            text = f"{request.system}\n\n{request.output_text()}".strip()
            parameters = rules.request(request.messages, system(text), None)
        if tools := joined_tools(request.tools, self._provider_tools):
            parameters |= {"tools": [*tools]}
        if (choice := request.tool_choice) is not None:
            parameters |= rules.choice_parameters(choice) if request.parallel else rules.one_call(choice)
        sent = {**parameters, **settings}
        for key in parameters.keys() & settings.keys():
            sent[key] = _joined(parameters[key], settings[key])
            if sent[key] is None:
                raise ValueError(_conflict(key, self._known))
        return {"container": request.container, **sent} if request.container else sent


async def _read_in_threads(stream: Iterable[object]) -> AsyncGenerator[object]:
    """Yield the chunks of a stream that is not async, each of which is waited for in a thread."""
    chunks, end = iter(stream), object()
    closing = (
        None if isinstance(stream, Generator) else stream
    )  # which may still be read, and closes when it is dropped
    async with closed_stream(closing):
        while (chunk := await asyncio.to_thread(next, chunks, end)) is not end:
            yield chunk


def _joined(value: Any, setting: Any) -> Any:
    """Return a parameter that a session makes with the parts that a setting adds; None where they contradict."""
    if value == setting:
        return value
    if not (isinstance(value, Mapping) and isinstance(setting, Mapping)):
        return None
    parts, added = cast("Item", value), cast("Item", setting)
    return None if any(added[key] != parts[key] for key in parts.keys() & added.keys()) else {**parts, **added}


def _conflict(setting: str, client: ProviderClient) -> str:
    mend = f"give `{client.options[setting]}` in its place"
    return f"the setting `{setting}` would replace what the session makes itself: {mend}"


def as_chat_model(model: Any, name: str, format: WireFormat | None) -> ChatModel:
    """Return the model of a session, from what its host gave."""
    if hasattr(model, "reply") and not name:
        return cast("ChatModel", model)
    return client_model(model, name, format=format)


def _formats_of(package: str) -> dict[WireFormat, ProviderClient]:
    """Return the formats in which the clients of a package ask, the usual one first."""
    return {name: rules.client for name, rules in PROVIDERS.items() if rules.client and rules.client.package == package}


def _packages() -> str:
    """Return the packages whose clients are known, for a message."""
    return ", ".join(dict.fromkeys(rules.client.package for rules in PROVIDERS.values() if rules.client))


def _is_async(client: object) -> bool:
    return type(client).__name__.startswith("Async")


def _named(name: str, model: str) -> tuple[Any, Any, str]:
    """Return the client of a name such as `openai:gpt-5`, after what it is a part of, and the model."""
    provider, colon, rest = name.partition(":")
    known = next(iter(_formats_of(provider).values()), None)
    if not (colon and rest) or model:
        raise ValueError(f"{name!r} is not the name of a model: write 'openai:...' or 'anthropic:...'")
    if known is None:
        mend = f"for others, Session(toolcrib.adapters.pydantic_ai.chat_model({name!r}))"
        raise ValueError(f"{provider!r} is not a provider with a client here: {_packages()}; {mend}")
    try:
        module = import_module(known.module or provider)
    except ImportError as error:
        raise MissingExtraError(f"Session({name!r})", provider) from error
    owner = getattr(module, known.name)()
    return owner, reduce(getattr, known.inner, owner), rest
