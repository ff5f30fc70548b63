"""Requests of a server during a call: for a person's answer, a model's text, folders; and its log lines.

Each goes to the client that made the call where the host lets it (`ask_client`), and to the host else. One that cannot
be tied to a call that is running reaches no client: it may belong to another person's call.
"""

from __future__ import annotations

import asyncio
import logging
import posixpath
import secrets
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import unquote, urlsplit

import mcp_types as types
from mcp.client import ClientRequestContext

from toolcrib._numbers import count_text
from toolcrib.adapters.mcp_client._options import Options
from toolcrib.adapters.mcp_client._pace import Pace, cut_line
from toolcrib.adapters.mcp_client._questions import ask_person, elicit_result, granted, oversize, unsafe
from toolcrib.adapters.mcp_client._values import AskKind, Elicitation
from toolcrib.calls import ApprovalRequest, cut
from toolcrib.errors import ClientUnavailable, ToolcribError, exception_of
from toolcrib.schema import (
    ClientFeature,
    ClientLink,
    ClientRoot,
    ElicitRequest,
    LogLine,
    RunContext,
    Sampled,
    SampleRequest,
)
from toolcrib.tools import AskedKind, Deadline, QuestionOutcome, asking, current_deadline, stopped_clocks

_log = logging.getLogger("toolcrib.mcp")
_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "notice": logging.INFO, "warning": logging.WARNING}
_MAX_REQUESTS: Final = 20  # of a server during one call: questions, and requests to a model
_MAX_LINES: Final = 1_000  # of its log that reach the client of one call
_LINES_A_SECOND: Final = 10.0  # that reach the host's log after so many
_MAX_ROOTS: Final = 100
_MAX_PAGES: Final = 1_000  # visits that are remembered
_FEATURES: Final[dict[AskKind, ClientFeature]] = {
    "forms": "elicit",
    "urls": "elicit_url",
    "roots": "roots",
    "logs": "log",
}

current_call: ContextVar[RunContext[Any] | None] = ContextVar("toolcrib_mcp_calling", default=None)
"""The call that the current code is part of."""


class ServerRequests:
    """Answers the requests of a server."""

    def __init__(self, server: str, options: Options) -> None:
        self._server, self._options = server, options
        self.calls: list[RunContext[Any]] = []
        self._clocks: dict[int, Deadline | None] = {}
        self._asked: dict[int | None, int] = {}
        self._lines: dict[int, int] = {}
        self._pace, self._unlogged = Pace(options.clock, _MAX_LINES, _LINES_A_SECOND), 0
        self._waiting: dict[object, RunContext[Any]] = {}  # the call of each request of the server without an answer
        self._pages: dict[str, asyncio.Event] = {}

    def call_began(self, ctx: RunContext[Any]) -> None:
        """Register a call that the server is about to get, with the deadlines around it."""
        self.calls.append(ctx)
        self._clocks[id(ctx)] = current_deadline()

    def call_ended(self, ctx: RunContext[Any]) -> None:
        """Forget a call that the server has ended."""
        self.calls[:] = [call for call in self.calls if call is not ctx]
        self._clocks.pop(id(ctx), None)
        self._asked.pop(id(ctx), None)
        self._lines.pop(id(ctx), None)
        if not self.calls:
            self._asked.clear()

    # --- a person

    async def elicit(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        """Return a person's answer to a question of the server."""
        ctx = self._call_of_request()
        if self._too_many(ctx):
            return types.ElicitResult(action="decline")
        if isinstance(params, types.ElicitRequestURLParams):
            schema, url = dict[str, Any](), params.url
        else:
            schema, url = params.requested_schema, None
        problem = oversize(params.message, schema) if url is None else unsafe(url) or oversize(params.message, {})
        if problem:
            _log.warning("%s asks a question that is not shown: %s", self._server, problem)
            return types.ErrorData(code=types.INVALID_PARAMS, message=f"the question is not shown: {problem}")
        asked = Elicitation(self._server, "" if ctx is None else ctx.tool_name, params.message, schema, url)
        if ctx is None and self._options.elicit is None:
            return self._untied("question")
        try:
            return await self._answered(asked, ctx, getattr(params, "elicitation_id", None))
        except ClientUnavailable as error:
            _log.warning("%s: a question during %s was not answered: %s", self._server, asked.tool, error)
            return types.ErrorData(code=types.INTERNAL_ERROR, message=f"the question was not answered: {error}")
        except BaseException as raised:  # the host's own callback, a client's reply; the server gets an error
            error = exception_of(raised)
            _log.error("%s: a question during %s was not answered", self._server, asked.tool, exc_info=error)
            return types.ErrorData(code=types.INTERNAL_ERROR, message=f"the question was not answered: {error}")

    async def _answered(
        self, asked: Elicitation, ctx: RunContext[Any] | None, elicitation_id: str | None
    ) -> types.ElicitResult | types.ErrorData:
        """Return the answer of the host's callback, else of the client that made the call, else of its approver."""
        callback, link = self._options.elicit, self._link_for("forms" if asked.url is None else "urls", ctx)
        kind: ClientFeature = "elicit" if asked.url is None else "elicit_url"
        of = "host" if callback is not None else "approver" if link is None else "client"
        with self._asking(ctx, kind, of, asked.message) as note:
            if callback is not None:
                result = elicit_result(await callback(asked), asked)
            elif link is not None:
                result = await _asked_of_client(link, asked, elicitation_id)
            elif ctx is not None:
                answer = await ask_person(asked, ctx, self._options.question_wait)
                note.by = answer.by
                response = {"accept": answer.fields, "cancel": None}.get(answer.action, False)
                result = elicit_result(response, asked)
            else:
                result = self._untied("question")
            note.outcome = result.action if isinstance(result, types.ElicitResult) else "failed"
        return result

    @contextmanager
    def _asking(self, ctx: RunContext[Any] | None, kind: AskedKind, of: str, text: str) -> Generator[QuestionOutcome]:
        """Record that a call waits while a request of the server, which is part of its record, is answered."""
        if ctx is None:
            yield QuestionOutcome()
            return
        question = object()
        self._waiting[question] = ctx
        try:
            with asking(ctx, kind, of, {"server": self._server, "text": text}, self._clocks.get(id(ctx))) as note:
                yield note
        finally:
            del self._waiting[question]

    def _untied(self, what: str) -> types.ErrorData:
        text = f"the {what} cannot be tied to one call that is running, and is refused"
        _log.warning("%s: %s", self._server, text)
        return types.ErrorData(code=types.INVALID_REQUEST, message=text)

    def _too_many(self, ctx: RunContext[Any] | None) -> bool:
        key = None if ctx is None else id(ctx)
        self._asked[key] = asked = self._asked.get(key, 0) + 1
        if asked == _MAX_REQUESTS + 1:
            _log.warning("%s asks more than %d times during a call; the rest is declined", self._server, _MAX_REQUESTS)
        return asked > _MAX_REQUESTS

    def _call_of_request(self) -> RunContext[Any] | None:
        """Return the call that a request of the server belongs to; None where it may be one of several people's.

        Of several calls of one person it is the last of those that wait for no answer: a client may have left a call
        whose question it did not answer.
        """
        known = current_call.get()
        if known is not None:  # it may have ended meanwhile
            return next((ctx for ctx in self.calls if ctx is known), None)
        last = self.calls[-1] if self.calls else None
        if last is None or not all(_is_of_same_party(ctx, last) for ctx in self.calls):
            return None
        idle = (ctx for ctx in reversed(self.calls) if all(ctx is not waiting for waiting in self._waiting.values()))
        return next(idle, last)

    def _link_for(
        self, kind: AskKind, ctx: RunContext[Any] | None, feature: ClientFeature | None = None
    ) -> ClientLink | None:
        """Return the client that made a call, where it takes such requests and the host lets the server make them."""
        link: ClientLink | None = None if ctx is None or ctx.run is None else ctx.run.channel.client
        if link is None or not self._options.may_ask(kind):
            return None
        return link if link.can(feature or _FEATURES[kind]) else None

    def meta_of(self, ctx: RunContext[Any] | None) -> types.RequestParamsMeta | None:
        """Return the `_meta` of a request: it asks for log lines where the client of the call takes them."""
        if self._link_for("logs", ctx) is None:
            return None
        return cast("types.RequestParamsMeta", {types.LOG_LEVEL_META_KEY: self._options.log_level or "debug"})

    # --- pages to visit

    async def visit(self, page: types.ElicitRequestURLParams) -> bool:
        """Ask a person to visit a page that the server wants visited before a call; return whether they will."""
        session: Any = None
        answer = await self.elicit(ClientRequestContext(session=session, request_id=""), page)
        return isinstance(answer, types.ElicitResult) and answer.action == "accept"

    def completed(self, elicitation_id: str) -> None:
        """Record that a person is done with a page."""
        self._page(elicitation_id).set()

    async def wait_for_page(self, elicitation_id: str, seconds: float) -> None:
        """Wait until the server says that a person is done with a page, and no longer than so many seconds."""
        try:
            with stopped_clocks():
                async with asyncio.timeout(seconds):
                    await self._page(elicitation_id).wait()
        except TimeoutError:
            pass

    def _page(self, elicitation_id: str) -> asyncio.Event:
        if len(self._pages) >= _MAX_PAGES and elicitation_id not in self._pages:
            del self._pages[next(iter(self._pages))]
        return self._pages.setdefault(elicitation_id, asyncio.Event())

    # --- a model

    async def sample(
        self, context: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.CreateMessageResultWithTools | types.ErrorData:
        """Return the answer to a server's request for the model of the client that made the call."""
        ctx = self._call_of_request()
        if ctx is None:
            return self._untied("request to a model")
        if self._too_many(ctx):
            return types.ErrorData(code=types.INVALID_REQUEST, message="there were too many requests during the call")
        has_tools = bool(params.tools)
        link = self._link_for("sampling", ctx, "sample_tools" if has_tools else "sample")
        if link is None:
            return types.ErrorData(
                code=types.INVALID_REQUEST, message="the client has no model for this, or none for it"
            )
        try:
            request = sample_request(params, self._server, ctx.tool_name)
            if self._options.approve_sampling:
                with self._asking(ctx, "ask", "approver", f"may it ask the model: {request.last_text}") as note:
                    allowed = await is_allowed(request, self._server, ctx, self._options.question_wait)
                    note.outcome = "accept" if allowed else "decline"
                if not allowed:
                    return types.ErrorData(
                        code=types.INVALID_REQUEST, message="a person refused the request to a model"
                    )
            kind: ClientFeature = "sample_tools" if has_tools else "sample"
            with self._asking(ctx, kind, "client", request.last_text) as note:
                sampled = await link.sample(request)
                note.by = sampled.model
            return sample_result(sampled, has_tools=has_tools)
        except ToolcribError as error:
            return types.ErrorData(code=types.INVALID_REQUEST, message=str(error))
        except Exception as error:  # a client's reply
            _log.exception("%s: its request to a model was not answered", self._server)
            return types.ErrorData(code=types.INTERNAL_ERROR, message=f"the request was not answered: {error}")

    # --- folders, log lines

    async def roots(self, context: ClientRequestContext) -> types.ListRootsResult:
        """Return the folders that the server may work in: of the client's, those that the host allows."""
        ctx = self._call_of_request()
        link = self._link_for("roots", ctx)
        allowed = None if self._options.roots is None else [ClientRoot(root_uri(root)) for root in self._options.roots]
        if link is None:
            return _roots(allowed or ())
        with self._asking(ctx, "roots", "client", ""):
            found = [*await link.roots()][:_MAX_ROOTS]
        return _roots(found if allowed is None else common_roots(found, allowed))

    async def log(self, params: types.LoggingMessageNotificationParams) -> None:
        """Log a line of the server, and give it to the client whose call it belongs to."""
        self._log_line(_LEVELS.get(params.level, logging.ERROR), params.data)
        ctx = self._call_of_request()
        if ctx is not None and ctx.trace is not None:
            ctx.trace.logged(params.level, params.data, f"{self._server}: {params.logger or ''}".rstrip(": "))
        link = self._link_for("logs", ctx)
        if link is None or ctx is None:
            return
        self._lines[id(ctx)] = count = self._lines.get(id(ctx), 0) + 1
        if count > _MAX_LINES + 1:
            return
        name = f"{self._server}: {params.logger}" if params.logger else self._server
        line = LogLine(params.level, cut_line(params.data), name)
        if count > _MAX_LINES:
            line = LogLine("warning", f"it wrote more than {_MAX_LINES} lines; the rest is left out", self._server)
        await link.log(line)

    def _log_line(self, level: int, data: Any) -> None:
        if not self._pace.has_room():
            self._unlogged += 1
            return
        if self._unlogged:
            lines = count_text(self._unlogged, "line")
            _log.warning("%s: left out here, because too many came at once: %s", self._server, lines)
            self._unlogged = 0
        _log.log(level, "%s: %s", self._server, cut_line(data))


async def _asked_of_client(
    link: ClientLink, asked: Elicitation, elicitation_id: str | None
) -> types.ElicitResult | types.ErrorData:
    """Return the answer of the client that made a call."""
    name = f"{asked.server}: {elicitation_id or secrets.token_hex(8)}" if asked.url else ""
    answer = await link.elicit(ElicitRequest(f"{asked.server} asks: {asked.message}", asked.schema, asked.url, name))
    if not answer.accepted:
        return types.ElicitResult(action=answer.action)
    return elicit_result(answer.data or {}, asked)


def _is_of_same_party(ctx: RunContext[Any], other: RunContext[Any]) -> bool:
    """Return whether two calls are made on behalf of one principal; without one, of one client and one approver."""
    if ctx.run is None or other.run is None:
        return ctx.run is other.run and ctx.ask is other.ask
    if ctx.run.principal is not None or other.run.principal is not None:
        return ctx.run.principal == other.run.principal
    return ctx.run.channel.client is other.run.channel.client and ctx.run.approver is other.run.approver


def _roots(found: Iterable[ClientRoot]) -> types.ListRootsResult:
    return types.ListRootsResult.model_validate({"roots": [{"uri": root.uri, "name": root.name} for root in found]})


def root_uri(place: str | Path) -> str:
    """Return the URI of a folder that is given as a path or as a URI."""
    return str(place) if "://" in str(place) else Path(place).resolve().as_uri()


def common_roots(found: Iterable[ClientRoot], allowed: Iterable[ClientRoot]) -> list[ClientRoot]:
    """Return the common folders: those of the client inside allowed ones, and allowed ones inside the client's."""
    common: dict[str, ClientRoot] = {}
    permitted = [*allowed]
    for root in found:
        for other in permitted:
            if _is_inside(root.uri, other.uri):
                common.setdefault(root.uri, root)
            elif _is_inside(other.uri, root.uri):
                common.setdefault(other.uri, other)
    return [*common.values()]


def _is_inside(uri: str, folder: str) -> bool:
    inner, outer = _place(uri), _place(folder)
    return inner[:2] == outer[:2] and inner[2][: len(outer[2])] == outer[2]


def _place(uri: str) -> tuple[str, str, list[str]]:
    """Return scheme, host and the parts of a path, as they are after `..` and escapes."""
    parts = urlsplit(uri)
    path = posixpath.normpath("/" + unquote(parts.path).lstrip("/"))
    host = "" if parts.hostname in (None, "localhost") else str(parts.hostname)
    return parts.scheme.lower(), host, [part for part in path.split("/") if part]


SOURCE: Final = "toolcrib/source"
"""The entry in the `_meta` of a request to a model that names the server that made it, and the tool that was called."""

_MOST_TOKENS: Final = 100_000
_SHOWN_CHARS: Final = 2_000  # of a message, to an approver


def sample_request(params: types.CreateMessageRequestParams, server: str, tool: str) -> SampleRequest:
    """Return a request for the client's model, which says where it comes from.

    It asks for no context: to the client that is all of its servers', and this server is to see its own alone.
    """
    shapes = params.model_dump(by_alias=True, mode="json", exclude_none=True)
    shapes.pop("includeContext", None)
    shapes.pop("task", None)
    shapes["maxTokens"] = min(params.max_tokens, _MOST_TOKENS)
    shapes["_meta"] = {SOURCE: {"server": server, "tool": tool}}
    return SampleRequest(shapes)


def sample_result(
    sampled: Sampled, *, has_tools: bool
) -> types.CreateMessageResult | types.CreateMessageResultWithTools:
    """Return the model's answer for the server."""
    blocks = [dict(block) for block in sampled.content]
    several = has_tools or len(blocks) != 1
    shapes = {
        "role": sampled.role,
        "content": blocks if several else blocks[0],
        "model": sampled.model or "unknown",
        "stopReason": sampled.stop_reason,
    }
    kind = types.CreateMessageResultWithTools if several else types.CreateMessageResult
    return kind.model_validate({name: value for name, value in shapes.items() if value is not None}, by_name=False)


async def is_allowed(request: SampleRequest, server: str, ctx: RunContext[Any], seconds: float) -> bool:
    """Return whether a person lets a server ask the model; they see what it asks, and that it is the server's."""
    params = request.params
    shown: dict[str, Any] = {
        "messages": [_shown(message) for message in params.get("messages", ())],
        "system_prompt": cut(params.get("systemPrompt") or "", _SHOWN_CHARS),
        "max_tokens": params.get("maxTokens"),
        "tools": [tool.get("name") for tool in params.get("tools", ())],
    }
    return await granted(
        ApprovalRequest(
            id=f"ask_{secrets.token_hex(8)}",
            call_id=ctx.call_id,
            tool=ctx.tool_name,
            arguments={name: value for name, value in shown.items() if value},
            digest="",
            reason=f"the server {server} wants your model to answer this, during the call",
            run_id=ctx.run_id,
            principal=None if ctx.run is None else ctx.run.principal,
            asked_by=server,
        ),
        ctx,
        seconds,
    )


def _shown(message: Mapping[str, Any]) -> str:
    content: Any = message.get("content")
    blocks: list[Any] = [*cast("list[Any]", content)] if isinstance(content, list) else [content]
    parts = [cast("dict[str, Any]", block) for block in blocks if isinstance(block, dict)]
    texts = [str(part.get("text", f"[{part.get('type')}]")) for part in parts]
    return cut(f"{message.get('role')}: {' '.join(texts)}", _SHOWN_CHARS)
