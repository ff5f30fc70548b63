"""Requests of a server during a call: for a person's answer, for the folders it may work in, for a log line."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any, cast

import mcp_types as types
from mcp.client import ClientRequestContext
from pydantic import FileUrl

from toolcrib.adapters.mcp_client._options import Options
from toolcrib.adapters.mcp_client._values import Elicitation
from toolcrib.calls import ApprovalRequest, Grant
from toolcrib.schema import RunContext
from toolcrib.schema.checker import misfits

__all__ = ["ServerRequests", "current_call"]

_log = logging.getLogger("toolcrib.mcp")
_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "notice": logging.INFO, "warning": logging.WARNING}

_MAX_QUESTIONS = 20  # of a server during one call

current_call: ContextVar[RunContext[Any] | None] = ContextVar("toolcrib_mcp_calling", default=None)
"""The call that the current code is part of."""


class ServerRequests:
    """Answers the requests of a server.

    Attributes:
        calls: The calls that the server works on now.
    """

    def __init__(self, server: str, options: Options) -> None:
        self._server, self._options = server, options
        self.calls: list[RunContext[Any]] = []
        self._asked: dict[int | None, int] = {}

    def call_ended(self, ctx: RunContext[Any]) -> None:
        """Forget a call that the server has ended."""
        self.calls.remove(ctx)
        self._asked.pop(id(ctx), None)
        if not self.calls:
            self._asked.clear()

    # --- a person

    async def elicit(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        """Return a person's answer to a question of the server."""
        ctx = self._call_of_request()
        if self._too_many(ctx):
            _log.warning("%s asks more than %d questions; the others are declined", self._server, _MAX_QUESTIONS)
            return types.ElicitResult(action="decline")
        if isinstance(params, types.ElicitRequestURLParams):
            schema, url = dict[str, Any](), params.url
        else:
            schema, url = params.requested_schema, None
        asked = Elicitation(self._server, "" if ctx is None else ctx.tool_name, params.message, schema, url)
        try:
            answer = await self._answer(asked, ctx)
        except Exception as error:  # the host's own callback; the server gets an error
            _log.exception("%s: the question %r was not answered", self._server, params.message)
            return types.ErrorData(code=types.INTERNAL_ERROR, message=f"the question was not answered: {error}")
        return _elicit_result(answer, asked)

    async def _answer(self, asked: Elicitation, ctx: RunContext[Any] | None) -> Mapping[str, Any] | bool | None:
        if self._options.elicit is not None:
            return await self._options.elicit(asked)
        if ctx is None or ctx.ask is None:
            _log.warning("%s asks %r; no approver or connect(elicit=...) can answer", asked.server, asked.message)
            return False
        metadata = {"asked by the server": asked.server, "fields": ", ".join(asked.schema.get("properties", {}))}
        shown = {**metadata, "url": asked.url} if asked.url else metadata
        given: Any = await ctx.ask(
            ApprovalRequest(
                id=f"elicit_{ctx.call_id}",
                call_id=ctx.call_id,
                tool=ctx.tool_name,
                arguments={},
                digest="",
                reason=asked.message,
                metadata=shown,
                run_id=ctx.run_id,
            )
        )
        if not isinstance(given, Grant):
            return None if given is None else False
        filled: Any = given.user_input if given.override_args is None else given.override_args
        fields: Mapping[str, Any] = cast("Mapping[str, Any]", filled) if isinstance(filled, Mapping) else {}
        return fields if _fits(fields, asked.schema) else False  # a bare yes does not answer the question

    def _too_many(self, ctx: RunContext[Any] | None) -> bool:
        key = None if ctx is None else id(ctx)
        self._asked[key] = asked = self._asked.get(key, 0) + 1
        return asked > _MAX_QUESTIONS

    def _call_of_request(self) -> RunContext[Any] | None:
        """Return the call that a request of the server belongs to; None where it may be one of several people's."""
        known = current_call.get()
        if known is not None:
            return known
        first = self.calls[0] if self.calls else None
        return first if all(ctx.ask is first.ask for ctx in self.calls if first is not None) else None

    # --- folders, log lines

    async def roots(self, context: ClientRequestContext) -> types.ListRootsResult:
        """Return the folders that the server may work in."""
        return types.ListRootsResult(roots=[_root(place) for place in self._options.roots or ()])

    async def log(self, params: types.LoggingMessageNotificationParams) -> None:
        """Log a line of the server."""
        _log.log(_LEVELS.get(params.level, logging.ERROR), "%s: %s", self._server, params.data)


def _root(place: str | Path) -> types.Root:
    uri = str(place) if "://" in str(place) else Path(place).resolve().as_uri()
    return types.Root(uri=FileUrl(uri))


def _elicit_result(answer: Mapping[str, Any] | bool | None, asked: Elicitation) -> types.ElicitResult | types.ErrorData:
    if answer is None:
        return types.ElicitResult(action="cancel")
    if answer is False:
        return types.ElicitResult(action="decline")
    if asked.url is not None:
        return types.ElicitResult(action="accept")
    content = _filled({} if answer is True else answer, asked.schema)
    problem = next(map(str, misfits(asked.schema, content)), None)
    if problem is not None:
        text = f"the answer does not fit what {asked.server} asked: {problem}"
        _log.error("%s: %s", asked.server, text)
        return types.ErrorData(code=types.INVALID_PARAMS, message=text)
    return types.ElicitResult(action="accept", content=content)


def _filled(content: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields with the defaults that the server gave."""
    parts: Mapping[str, Any] = schema.get("properties", {})
    return {**{name: part["default"] for name, part in parts.items() if "default" in part}, **content}


def _fits(fields: Mapping[str, Any], schema: Mapping[str, Any]) -> bool:
    return not misfits(schema, _filled(fields, schema))
