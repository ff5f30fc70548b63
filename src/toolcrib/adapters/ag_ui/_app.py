"""Endpoint for clients of AG-UI."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any

from ag_ui.core import PROTOCOL_VERSION, BaseEvent, RunAgentInput, RunStartedEvent
from ag_ui.encoder import EventEncoder
from pydantic import ValidationError
from starlette.types import ASGIApp

from toolcrib._numbers import count_text
from toolcrib.adapters.ag_ui._events import EventWriter
from toolcrib.adapters.ag_ui._requests import request_in
from toolcrib.approvals import ApprovalStore
from toolcrib.errors import FrontEndError, explain_options
from toolcrib.serving import Exchange, FrontEndLimits, FrontEndRequest, OpenSession
from toolcrib.serving.http import FindPrincipal, front_end_app


@explain_options()
def ag_ui_app(
    open_session: OpenSession,
    *,
    principal: FindPrincipal,
    approvals: ApprovalStore | None = None,
    limits: FrontEndLimits | None = None,
) -> ASGIApp:
    """Return an ASGI application that answers clients of AG-UI, such as `HttpAgent`, at any path.

    The transcript is kept here. Of what a client sends, the person's last message and the answers to interrupts count.

    Args:
        open_session: Returns a new `Session` for a principal, with its model and tools. It is asked for every request.
        principal: Returns on whose behalf a request is made, from its cookie or token; None is answered with 401.
        approvals: Where approval requests are kept, and the sessions beside them: a database, for several processes or
            across restarts. In memory when None.
        limits: Limits of what a client may send and start.
    """
    return front_end_app(_AgUi(), open_session, principal=principal, approvals=approvals, limits=limits)


class _AgUi:
    entry = "ag-ui"
    headers: Mapping[str, str] = {}

    def read(self, body: Mapping[str, Any]) -> FrontEndRequest:
        return request_in(_input_in(body))

    def write(self, body: Mapping[str, Any], exchange: Exchange) -> AsyncIterator[str]:
        return _texts(_input_in(body), exchange)


def _input_in(body: Mapping[str, Any]) -> RunAgentInput:
    try:
        return RunAgentInput.model_validate(body)
    except (ValidationError, RecursionError) as error:
        is_wrong = isinstance(error, ValidationError)
        what = f"it has {count_text(error.error_count(), 'wrong field')}" if is_wrong else "it is too deep"
        raise FrontEndError(f"the request is not a RunAgentInput of AG-UI: {what}", 422) from None


async def _texts(given: RunAgentInput, exchange: Exchange) -> AsyncGenerator[str]:
    encoder, writer = EventEncoder(), EventWriter(given.thread_id, given.run_id)
    started: BaseEvent = RunStartedEvent(
        thread_id=given.thread_id, run_id=given.run_id, protocol_version=PROTOCOL_VERSION
    )
    async with aclosing(exchange.events()) as events:
        yield encoder.encode(started)
        async for event in events:
            for text in writer.write(event):
                yield encoder.encode(text)
