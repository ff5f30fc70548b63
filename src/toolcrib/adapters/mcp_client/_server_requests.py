"""What a server asks of us while a call waits: a person's answer, a model's, the folders it may work in, a log line."""

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

__all__ = ["Answers", "calling"]

_log = logging.getLogger("toolcrib.mcp")
_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "notice": logging.INFO, "warning": logging.WARNING}

_QUESTIONS = 20  # that a server may ask people while one call waits

calling: ContextVar[RunContext[Any] | None] = ContextVar("toolcrib_mcp_calling", default=None)
"""The call that the current code is part of; what a server asks with its result is asked there."""


class Answers:
    """Answers a server's requests.

    Attributes:
        waiting: The calls that the server works on now.
    """

    def __init__(self, server: str, options: Options) -> None:
        self._server, self._options = server, options
        self.waiting: list[RunContext[Any]] = []
        self._asked: dict[int | None, int] = {}

    def done(self, ctx: RunContext[Any]) -> None:
        """Take note that the server does not work on a call any more."""
        self.waiting.remove(ctx)
        self._asked.pop(id(ctx), None)
        if not self.waiting:
            self._asked.clear()

    # --- a person

    async def elicit(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        """Have a person answer, or say that there is none."""
        ctx = self._call()
        if self._too_many(ctx):
            _log.warning("%s asks more than %d questions, and nobody is bothered", self._server, _QUESTIONS)
            return types.ElicitResult(action="decline")
        if isinstance(params, types.ElicitRequestURLParams):
            schema, url = dict[str, Any](), params.url
        else:
            schema, url = params.requested_schema, None
        asked = Elicitation(self._server, "" if ctx is None else ctx.tool_name, params.message, schema, url)
        try:
            answer = await self._answer(asked, ctx)
        except Exception as error:  # the host's own callback; the server is told, and its call fails
            _log.exception("%s: the question %r was not answered", self._server, params.message)
            return types.ErrorData(code=types.INTERNAL_ERROR, message=f"the question was not answered: {error}")
        return _result(answer, asked)

    async def _answer(self, asked: Elicitation, ctx: RunContext[Any] | None) -> Mapping[str, Any] | bool | None:
        if self._options.elicit is not None:
            return await self._options.elicit(asked)
        if ctx is None or ctx.ask is None:
            _log.warning("%s asks %r, and nobody can answer: connect(..., elicit=...)", asked.server, asked.message)
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
        return fields if _fits(fields, asked.schema) else False  # a bare yes says nothing of what was asked

    def _too_many(self, ctx: RunContext[Any] | None) -> bool:
        key = None if ctx is None else id(ctx)
        self._asked[key] = asked = self._asked.get(key, 0) + 1
        return asked > _QUESTIONS

    def _call(self) -> RunContext[Any] | None:
        """Return the call that a question belongs to; None where it may be any of several people's."""
        known = calling.get()
        if known is not None:
            return known
        first = self.waiting[0] if self.waiting else None
        return first if all(ctx.ask is first.ask for ctx in self.waiting if first is not None) else None

    # --- folders, log lines

    async def roots(self, context: ClientRequestContext) -> types.ListRootsResult:
        """Return the folders that the server is told of."""
        return types.ListRootsResult(roots=[_root(place) for place in self._options.roots or ()])

    async def log(self, params: types.LoggingMessageNotificationParams) -> None:
        """Put a line of the server's into our log."""
        _log.log(_LEVELS.get(params.level, logging.ERROR), "%s: %s", self._server, params.data)


def _root(place: str | Path) -> types.Root:
    uri = str(place) if "://" in str(place) else Path(place).resolve().as_uri()
    return types.Root(uri=FileUrl(uri))


def _result(answer: Mapping[str, Any] | bool | None, asked: Elicitation) -> types.ElicitResult | types.ErrorData:
    if answer is None:
        return types.ElicitResult(action="cancel")
    if answer is False:
        return types.ElicitResult(action="decline")
    if asked.url is not None:
        return types.ElicitResult(action="accept")
    content = _filled({} if answer is True else answer, asked.schema)
    problem = next((misfit.text for misfit in misfits(asked.schema, content)), None)
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
