"""Client of a call: what a tool asks the client that made it, or the host in its place."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from os import urandom
from typing import Any, Final, cast
from urllib.parse import urlsplit

from toolcrib.calls import Media, ToolCall, lenient
from toolcrib.errors import ClientAnswerError, ClientUnavailable, HookError, refuse_unknown_options
from toolcrib.hooks import ModelInput
from toolcrib.schema import (
    ClientFeature,
    ClientLink,
    ClientRoot,
    Elicited,
    ElicitRequest,
    Form,
    LogLine,
    RunContext,
    Sampled,
    SampleRequest,
)
from toolcrib.tools._deadline import stopped_clocks
from toolcrib.tools._questions import ask_person, asking, can_ask_person
from toolcrib.tools._tool import Tool

_LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "notice": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
_log = logging.getLogger("toolcrib.tools")
_MAX_TOKENS = 1_000
_LINE_CHARS = 10_000  # of a line that a tool logs
_TRIES = 2  # times that a client is asked whose answer does not fit
_OPTIONS: Final = {
    "include_context": "includeContext",
    "max_tokens": "maxTokens",
    "metadata": "metadata",
    "model_preferences": "modelPreferences",
    "stop_sequences": "stopSequences",
    "system_prompt": "systemPrompt",
    "temperature": "temperature",
    "tool_choice": "toolChoice",
}
_OF_OTHERS: Final = {"instructions": "system_prompt", "max_output_tokens": "max_tokens", "system": "system_prompt"}


class LinkedClient:
    """The client of one call, with the host in its place where it lacks something.

    The features of the run read what comes from a client.

    Args:
        ctx: The call.
        link: The client that made it, or None.
        sample: The host's own model.
        read: Has the features of the run read an answer; None where it has none.
    """

    def __init__(
        self,
        ctx: RunContext[Any],
        link: ClientLink | None,
        sample: Callable[[SampleRequest], Awaitable[Sampled]] | None,
        read: Callable[[ModelInput], None] | None,
    ) -> None:
        self._ctx, self._link, self._sample, self._read = ctx, link, sample, read

    async def elicit(self, message: str, form: Any, url: str | None, id: str) -> Elicited[Any]:
        """Ask a person: by the client, else by the approver of the run, else in its approval store."""
        if url is not None and form is not None:
            raise TypeError(f"`{self._ctx.tool_name}` asks for a form and names a page; a question is one of the two")
        message = self._ctx.hide(message)
        fields = Form(self._ctx.tool_name, form)
        if url is None:
            request = ElicitRequest(message, fields.schema, id=id)
        else:
            request = ElicitRequest(message, url=url, id=id or f"page_{urandom(8).hex()}")
        kind: ClientFeature = "elicit" if url is None else "elicit_url"
        link = self._link_for(kind)
        if link is None:
            return await self._asked_by_host(request, fields, kind)
        problem = ""
        for _ in range(_TRIES):
            with asking(self._ctx, kind, "client", _about(request)) as asked:
                answer = await link.elicit(request)
                asked.outcome = answer.action
            if not answer.accepted or url is not None:
                return Elicited(answer.action)
            problem = fields.problem(answer.data or {})
            if not problem:
                self._give_to_features(answer.data)
                return Elicited("accept", fields.read(answer.data or {}))
            request = replace(request, message=f"{message}\n(The answer before does not fit: {problem})")
        raise ClientAnswerError(self._ctx.tool_name, problem)

    async def _asked_by_host(self, request: ElicitRequest, fields: Form, kind: ClientFeature) -> Elicited[Any]:
        """Ask the approver of the run to answer a question, or a person who reads its approval store."""
        ctx = self._ctx
        if not can_ask_person(ctx):
            why = f"{self._lack(kind)}; use a client with elicitation, or give the run an approver or an approval store"
            raise ClientUnavailable(ctx.tool_name, "the answer of a person", why)
        with asking(ctx, kind, "approver", _about(request)) as asked:
            answer = await ask_person(
                request, ctx, ctx.tool_name, fields.problem, ctx.run.channel.question_wait, self._report_waiting
            )
            asked.outcome, asked.by = answer.action, answer.by
        if answer.problem:
            raise ClientAnswerError(ctx.tool_name, answer.problem, answer.by)
        if answer.action != "accept" or request.url is not None:
            return Elicited(answer.action)
        return Elicited("accept", fields.read(answer.fields))

    def _report_waiting(self) -> None:
        """Report progress to the client of the call, which else would give it up."""
        if self._link is not None and self._ctx.report is not None:
            self._ctx.report(f"`{self._ctx.tool_name}` asks a question, which waits for a person")

    async def sample(self, messages: Any, tools: Any, options: Mapping[str, Any]) -> Sampled:
        """Ask a model: the client's, else the one that the host gave the run."""
        request = messages if isinstance(messages, SampleRequest) else self._sampling(messages, tools, options)
        kind: ClientFeature = "sample_tools" if request.has_tools else "sample"
        link = self._link_for(kind)
        ask = self._sample if link is None else link.sample
        if ask is None:
            wanted = "a model that takes tools" if request.has_tools else "a model"
            why = (
                f"{self._lack(kind)}; use a client with sampling, or give the run one: Run(channel=Channel(sample=...))"
            )
            raise ClientUnavailable(self._ctx.tool_name, wanted, why)
        about = {"text": request.last_text} if self._ctx.trace is not None else None
        try:
            with asking(self._ctx, kind, "host" if link is None else "client", about) as asked:
                sampled = await ask(request)
                asked.by = sampled.model
        except BaseException as error:
            if link is not None:
                raise
            raise HookError.of(self._ctx.tool_name, "sampling", ask, error)  # noqa: B904 -- it has it as its cause
        self._give_to_features([*sampled.content])
        return sampled

    def _sampling(self, messages: Any, tools: Any, options: Mapping[str, Any]) -> SampleRequest:
        refuse_unknown_options(f"ctx.sample of `{self._ctx.tool_name}`", options, _OPTIONS, _OF_OTHERS)
        params: dict[str, Any] = {
            "messages": [{"role": "user", "content": _content(messages)}]
            if isinstance(messages, str | Media)
            else [{**message, "content": _content(message["content"])} for message in messages],
            "maxTokens": _MAX_TOKENS,
            **{_OPTIONS[name]: value for name, value in options.items() if value is not None},
        }
        offered = [_definition(tool) for tool in tools]
        return SampleRequest({**params, "tools": offered} if offered else params)

    async def roots(self) -> tuple[ClientRoot, ...]:
        """Return the folders that the client names."""
        link = self._link_for("roots")
        if link is None:
            return ()
        with asking(self._ctx, "roots", "client"):
            return tuple(await link.roots())

    async def log(self, line: LogLine) -> None:
        """Log a line here and in the record, and give it to the client."""
        shape = lenient(line.data, limit=_LINE_CHARS)
        hidden = lenient(line.data, limit=_LINE_CHARS, hide=self._ctx.hide)
        data = line.data if hidden == shape else hidden
        named = LogLine(line.level, data, line.logger or self._ctx.tool_name)
        level = _LEVELS.get(line.level, logging.CRITICAL)
        if _log.isEnabledFor(level):
            # in one line of a log
            text = hidden if isinstance(hidden, str) else str(hidden)
            _log.log(level, "%s: %s", named.logger, text if text.isprintable() else repr(text)[1:-1])
        if self._ctx.trace is not None:
            self._ctx.trace.logged(line.level, data, named.logger)
        link = self._link_for("log")
        if link is not None:
            with stopped_clocks():
                await link.log(named)

    # --- inside

    def _link_for(self, feature: ClientFeature) -> ClientLink | None:
        return self._link if self._link is not None and self._link.can(feature) else None

    def _lack(self, feature: ClientFeature) -> str:
        if self._link is None:
            return "no client made this call"
        return f"its client does not take such requests, or the host does not let them through ({feature})"

    def _give_to_features(self, answer: Any) -> None:
        """Read the client's answer into the features of the run."""
        if self._read is not None:
            self._read(ModelInput("client", answer, request=ToolCall(self._ctx.tool_name, {}, self._ctx.call_id)))


def _about(request: ElicitRequest) -> dict[str, Any]:
    """Return a question's data for sinks: of a page its place alone, as its address may be a key."""
    page = "" if request.url is None else urlsplit(request.url)._replace(query="", fragment="").geturl()
    return {"text": request.message, "fields": ", ".join(request.schema.get("properties", {})), "page": page}


def _content(content: Any) -> Any:
    """Return the content of a message as blocks of the protocol."""
    if isinstance(content, str):
        return {"type": "text", "text": content}
    if isinstance(content, Media):
        kind = content.mime_type.partition("/")[0]
        if content.data is None or kind not in ("image", "audio"):
            raise TypeError(f"a model is sent the bytes of images and sounds, and not {content!r}")
        return {"type": kind, "data": content.base64, "mimeType": content.mime_type}
    if isinstance(content, Mapping):
        return cast("Any", content)
    return [_content(part) for part in content]


def _definition(tool: Any) -> Mapping[str, Any]:
    """Return the definition of a tool for the client's model."""
    if isinstance(tool, Mapping):
        return cast("Mapping[str, Any]", tool)
    if not isinstance(tool, Tool):
        raise TypeError(f"a model is offered tools or their definitions, and not {tool!r}")
    shown = cast("Tool[..., Any]", tool)
    return {"name": shown.name, "description": shown.description, "inputSchema": shown.parameters}
