"""Endpoint for the chat transports of the Vercel AI SDK."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any

from starlette.types import ASGIApp

from toolcrib.adapters.vercel_ai._chunks import ChunkWriter
from toolcrib.adapters.vercel_ai._requests import request_in
from toolcrib.approvals import ApprovalStore
from toolcrib.errors import explain_options
from toolcrib.serving import Exchange, FrontEndLimits, FrontEndRequest, OpenSession
from toolcrib.serving.http import FindPrincipal, front_end_app


@explain_options()
def vercel_ai_app(
    open_session: OpenSession,
    *,
    principal: FindPrincipal,
    approvals: ApprovalStore | None = None,
    limits: FrontEndLimits | None = None,
) -> ASGIApp:
    """Return an ASGI application that answers the chats of the Vercel AI SDK, such as `useChat`, at any path.

    The transcript is kept here. Of what a client sends, the person's last message and the answers to requests for
    approval count.

    Args:
        open_session: Returns a new `Session` for a principal, with its model and tools. It is asked for every request.
        principal: Returns on whose behalf a request is made, from its cookie or token; None is answered with 401.
        approvals: Where approval requests are kept, and the sessions beside them: a database, for several processes or
            across restarts. In memory when None.
        limits: Limits of what a client may send and start.
    """
    return front_end_app(_VercelAi(), open_session, principal=principal, approvals=approvals, limits=limits)


class _VercelAi:
    entry = "vercel-ai"
    headers: Mapping[str, str] = {"x-vercel-ai-ui-message-stream": "v1"}

    def read(self, body: Mapping[str, Any]) -> FrontEndRequest:
        return request_in(body)

    def write(self, body: Mapping[str, Any], exchange: Exchange) -> AsyncIterator[str]:
        return _texts(exchange)


async def _texts(exchange: Exchange) -> AsyncGenerator[str]:
    writer = ChunkWriter()
    async with aclosing(exchange.events()) as events:
        yield _text({"type": "start"})
        async for event in events:
            for chunk in writer.write(event):
                yield _text(chunk)
        yield "data: [DONE]\n\n"


def _text(chunk: Mapping[str, Any]) -> str:
    return f"data: {json.dumps(chunk)}\n\n"
