"""Endpoint of a front end: a request as JSON, answered by a stream of server-sent events."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from inspect import isawaitable
from typing import Any, Protocol, TypeAlias, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from toolcrib._json_writer import RepeatedKeyError, read_valid_json
from toolcrib._numbers import count_text
from toolcrib.approvals import ApprovalStore
from toolcrib.errors import FrontEndError
from toolcrib.hooks import require_parameters
from toolcrib.serving._front_end import Exchange, FrontEndLimits, FrontEndSessions, OpenSession
from toolcrib.serving._front_end_events import FrontEndRequest
from toolcrib.serving.http._checks import BodyDeadline

M = TypeVar("M", bound=BaseModel)

FindPrincipal: TypeAlias = Callable[[Request], str | Awaitable[str | None] | None]
"""Returns on whose behalf a request is made; None where the caller is not known, and the answer is 401."""

_REQUEST_SECONDS = 30.0  # for a request to arrive
_HEADERS = {"cache-control": "no-cache", "x-accel-buffering": "no"}  # a proxy passes each event on at once


class FrontEndProtocol(Protocol):
    """The translation of a protocol: of a request's JSON, and of the events of an exchange.

    Attributes:
        entry: Which way the calls come, for the record.
        headers: Headers of every answer.
    """

    entry: str
    headers: Mapping[str, str]

    def read(self, body: Mapping[str, Any]) -> FrontEndRequest:
        """Return the parts of a request that count; raise FrontEndError where it is not of the protocol."""
        ...

    def write(self, body: Mapping[str, Any], exchange: Exchange) -> AsyncIterator[str]:
        """Return the text of the events that answer the request."""
        ...


def parse_body(model: type[M], body: Mapping[str, Any], kind: str) -> M:
    """Return the JSON of a request as a model of its protocol; raises FrontEndError where it is not `kind`."""
    try:
        return model.model_validate(body)
    except ValidationError as error:
        problem = f"it has {count_text(error.error_count(), 'wrong field')}"
    except RecursionError:
        problem = "it is too deep"
    raise FrontEndError(f"the request is not {kind}: {problem}", 422)


def front_end_app(
    protocol: FrontEndProtocol,
    open_session: OpenSession,
    *,
    principal: FindPrincipal,
    approvals: ApprovalStore | None,
    limits: FrontEndLimits | None,
) -> ASGIApp:
    """Return the endpoint of a front end as an ASGI application, which answers at any path."""
    sessions = FrontEndSessions(protocol.entry, open_session, approvals, limits or FrontEndLimits())
    return BodyDeadline(_Endpoint(sessions, principal, protocol), _REQUEST_SECONDS)


class _Endpoint:
    def __init__(self, sessions: FrontEndSessions, principal: FindPrincipal, protocol: FrontEndProtocol) -> None:
        require_parameters("function principal", principal, "request", result="the name of the caller", takes_none=True)
        self._sessions, self._principal, self._protocol = sessions, principal, protocol

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise TypeError(f"a front end is served over HTTP, and not over {scope['type']!r}")
        try:
            response = await self._answer(Request(scope, receive))
        except FrontEndError as error:
            response = JSONResponse({"error": str(error), "code": error.code}, error.status)
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> StreamingResponse:
        if request.method != "POST":
            raise FrontEndError("a front end is asked with POST", 405)
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            # a page from elsewhere can send this type only where the browser was told that it may
            raise FrontEndError("send the request as application/json", 415)
        found: Any = self._principal(request)
        principal = await found if isawaitable(found) else found
        if principal is not None and not isinstance(principal, str):
            raise TypeError(f"principal returned {principal!r:.80}; return the name of the caller, or None")
        if not principal:
            raise FrontEndError("who makes this request is not known", 401)
        body = await self._json(request)
        exchange = await self._sessions.open(principal, self._protocol.read(body))
        text = self._protocol.write(body, exchange)
        return StreamingResponse(text, headers={**_HEADERS, **self._protocol.headers}, media_type="text/event-stream")

    async def _json(self, request: Request) -> Mapping[str, Any]:
        most, received = self._sessions.limits.request_bytes, bytearray()
        async for chunk in request.stream():
            received += chunk
            if len(received) > most:
                raise FrontEndError(f"a request has at most {most} bytes", 413)
        try:
            body: object = read_valid_json(bytes(received))
        except RepeatedKeyError as error:
            raise FrontEndError(str(error)) from None
        except (ValueError, RecursionError):
            raise FrontEndError("the request is not JSON") from None
        if not isinstance(body, dict):
            raise FrontEndError("the request must be a JSON object")
        return body  # pyright: ignore[reportUnknownVariableType] -- a protocol looks at what is in it
