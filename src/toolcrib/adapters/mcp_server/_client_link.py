"""Client link: what a tool asks the client that made its call, in both generations of the protocol.

A call whose tool waits for a client of the stateless generation stays open in this process while it fetches the answer.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Collection, Coroutine, Mapping, Sequence
from typing import Any, Final, cast, get_args
from weakref import WeakKeyDictionary

import mcp_types as types
from mcp.server.connection import allowed_log_levels
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, ValidationError

from toolcrib._numbers import count_text
from toolcrib.adapters.mcp_server._replies import clean
from toolcrib.adapters.mcp_server._tool_changes import connection_of, notify
from toolcrib.calls import lenient
from toolcrib.errors import ClientAnswerError
from toolcrib.schema import ClientFeature, ClientRoot, Elicited, ElicitRequest, LogLine, Sampled, SampleRequest
from toolcrib.serving import OpenCall, OpenCalls

_LEVELS: Final[tuple[str, ...]] = get_args(types.LoggingLevel)  # the worst last
_MAX_ROOTS = 1_000
_ANSWERS: Final[Mapping[type[Any], tuple[str, tuple[type[BaseModel], ...]]]] = {
    types.ElicitRequest: ("elicit", (types.ElicitResult,)),
    types.CreateMessageRequest: ("sample", (types.CreateMessageResult, types.CreateMessageResultWithTools)),
    types.ListRootsRequest: ("roots", (types.ListRootsResult,)),
}
_POLICY: Final[Mapping[ClientFeature, str]] = {
    "elicit": "elicit",
    "elicit_url": "elicit",
    "sample": "sample",
    "sample_tools": "sample",
    "roots": "roots",
    "log": "log",
}


class LogLevels:
    """The level from which on each session of the older generation wants log lines; `info` for one that did not say."""

    def __init__(self) -> None:
        self._levels: WeakKeyDictionary[Any, int] = WeakKeyDictionary()

    def set(self, session: ServerSession, level: str) -> None:
        """Keep the level of a session."""
        self._levels[connection_of(session)] = _LEVELS.index(level)

    def wants(self, ctx: ServerRequestContext[Any, Any], level: str) -> bool:
        """Return whether the client of a request wants lines of a level."""
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return level in allowed_log_levels(ctx.protocol_version, cast("Any", ctx.meta))
        return _LEVELS.index(level) >= self._levels.get(connection_of(ctx.session), _LEVELS.index("info"))


class McpClientLink:
    """The client of one call.

    Args:
        call: The call; its `ctx` is the request that it is handled in now.
        policy: The kinds of question and message that the host lets through: `elicit`, `sample`, `roots`, `log`.
        levels: The levels of the sessions.

    Attributes:
        declared: The capabilities that the client declares.
        lacked: The capabilities that were asked for and that the client does not declare.
    """

    def __init__(
        self, call: OpenCall, first: ServerRequestContext[Any, Any], policy: Collection[str], levels: LogLevels
    ) -> None:
        self._call, self._policy, self._levels = call, policy, levels
        self.declared = first.session.client_capabilities
        self.lacked: set[ClientFeature] = set()

    def can(self, feature: ClientFeature) -> bool:
        """Return whether the client declares a feature, and the host lets it through."""
        if not lets_through(self._policy, feature):
            return False
        if feature == "log":
            return True
        if not declares(self.declared, feature):
            self.lacked.add(feature)
            return False
        ctx = self._call.ctx
        return _answers_later(ctx) or ctx.session.can_send_request

    async def elicit(self, request: ElicitRequest) -> Elicited[dict[str, Any]]:
        """Ask the person at the client."""
        message = clean(request.message)
        params: Any
        if request.url is None:
            params = types.ElicitRequestFormParams(message=message, requested_schema=dict(request.schema))
        else:
            params = types.ElicitRequestURLParams(message=message, url=request.url, elicitation_id=request.id)
        result = await self.ask(types.ElicitRequest(params=params), clean(request.id))
        return Elicited(result.action, None if result.content is None else dict(result.content))

    async def sample(self, request: SampleRequest) -> Sampled:
        """Ask the client's model."""
        try:
            params = types.CreateMessageRequestParams.model_validate(lenient(request.params))
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            raise TypeError(f"`{self._call.tool}` asks for an invalid sampling: {place}: {first['msg']}") from None
        result: Any = await self.ask(types.CreateMessageRequest(params=params))
        answer: Any = result.content
        blocks = cast("list[BaseModel]", answer if isinstance(answer, list) else [answer])
        content = [block.model_dump(by_alias=True, mode="json", exclude_none=True) for block in blocks]
        return Sampled(content, result.model, result.stop_reason, result.role)

    async def roots(self) -> Sequence[ClientRoot]:
        """Return the folders that the client names."""
        result = await self.ask(types.ListRootsRequest())
        return [ClientRoot(str(root.uri), root.name) for root in result.roots[:_MAX_ROOTS]]

    async def log(self, line: LogLine) -> None:
        """Send the client a line for its log, if it wants lines of this level."""
        ctx = self._call.ctx
        if ctx is None or not self._levels.wants(ctx, line.level):
            return
        data = clean(line.data) if isinstance(line.data, str) else lenient(line.data)
        params = types.LoggingMessageNotificationParams(level=line.level, data=data, logger=line.logger)
        await notify(ctx.session.send_notification(types.LoggingMessageNotification(params=params), ctx.request_id))

    async def ask(self, request: types.InputRequest, key: str = "") -> Any:
        """Return the answer to a request: sent at once in the older generation, else fetched by the client."""
        ctx = self._call.ctx
        feature, accepts = _ANSWERS[type(request)]
        if _answers_later(ctx):
            return await self._call.ask(request, feature, accepts, key)
        has_tools = isinstance(request, types.CreateMessageRequest) and request.params.tools
        try:
            about = ServerMessageMetadata(related_request_id=ctx.request_id)
            wanted = accepts[-1] if has_tools else accepts[0]
            return await ctx.session.send_request(request, wanted, metadata=about)
        except MCPError as error:
            raise ClientAnswerError(self._call.tool, clean(error.message) or f"error {error.code}") from error
        except ValidationError as error:
            raise ClientAnswerError(self._call.tool, f"it does not keep to the protocol: {error}") from error


def _answers_later(ctx: ServerRequestContext[Any, Any] | None) -> bool:
    """Return whether a client answers by later requests of its own: of a task, or of the newer generation."""
    return ctx is None or ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def may_ask(ctx: ServerRequestContext[Any, Any]) -> bool:
    """Return whether a client declares anything that a tool can ask it for."""
    declared = ctx.session.client_capabilities
    return declared is not None and not (
        declared.elicitation is None and declared.sampling is None and declared.roots is None
    )


def lets_through(policy: Collection[str], feature: ClientFeature) -> bool:
    """Return whether the host lets tools ask a client for something, by its `ServerOptions.ask_client`."""
    return _POLICY[feature] in policy


def declares(declared: types.ClientCapabilities | None, feature: ClientFeature) -> bool:
    """Return whether a client declares that it can be asked for something; each takes log lines."""
    if declared is None:
        return False
    elicitation, sampling = declared.elicitation, declared.sampling
    match feature:
        case "elicit":
            return elicitation is not None and (elicitation.form is not None or elicitation.url is None)
        case "elicit_url":
            return elicitation is not None and elicitation.url is not None
        case "sample":
            return sampling is not None
        case "sample_tools":
            return sampling is not None and sampling.tools is not None
        case "roots":
            return declared.roots is not None
        case "log":
            return True


def required_capabilities(lacked: Collection[ClientFeature]) -> dict[str, Any]:
    """Return the capabilities that a client would have to declare, for the error that names them."""
    elicitation: dict[str, Any] = {
        **({"form": {}} if "elicit" in lacked else {}),
        **({"url": {}} if "elicit_url" in lacked else {}),
    }
    sampling: dict[str, Any] | None = {"tools": {}} if "sample_tools" in lacked else {} if "sample" in lacked else None
    return {
        **({"elicitation": elicitation} if elicitation else {}),
        **({} if sampling is None else {"sampling": sampling}),
        **({"roots": {}} if "roots" in lacked else {}),
    }


ASKING = "asking"
"""The kind of open calls whose client comes back with a state."""

_QUIET_SECONDS = 0.03  # after a question: what a tool asks within them goes out in the same reply
_MAX_CHANGES = 50  # of a call, until its reply goes out though it asks for more
_GIVES_WAY = 0.1  # of the time that a call may wait: from then on it ends for a later one of its principal


def call_asked_for(text: str | None) -> str | None:
    """Return the id of the call that a client's state asks for; None for a state of another kind."""
    if text is None:
        return None
    state: Any = json.loads(text)  # it was sealed by this server
    return state.get("asking")


class AskingCalls:
    """The calls that ask their clients, each run once, in a task that outlives the request.

    Args:
        seconds: How long one waits; then it is stopped.
    """

    def __init__(self, calls: OpenCalls, seconds: float) -> None:
        self._calls, self._seconds = calls, seconds
        self._mark = secrets.token_urlsafe(6)  # of this process

    async def run(self, call: OpenCall, work: Coroutine[Any, Any, Any]) -> Any:
        """Run the work of a call, and return what it comes to; or what it asks the client."""
        call.start(work)
        return await self._next_reply(call)

    async def go_on(
        self, call_id: str, tool: str, principal: str, ctx: ServerRequestContext[Any, Any], responses: Any
    ) -> Any:
        """Resume a call with the answers of its client, and return as `run` does; what is not answered is asked again.

        Raises:
            MCPError: The call is not open: whether it took effect is not known.
        """
        call = self._calls.find(principal, call_id)
        if call is None or call.kind != ASKING or call.tool != tool:
            raise MCPError(INVALID_PARAMS, self._in_doubt(call_id, tool), {"reason": "in_doubt", "tool": tool})
        self._calls.take(call)  # the state was used
        call.ctx = ctx
        if call.answer(responses or {}) or not call.questions:
            await _let_run(call)
        return await self._next_reply(call)

    async def _next_reply(self, call: OpenCall) -> Any:
        """Wait until a call has ended or asks for something, and return the reply."""
        try:
            while call.state in ("running", "asking"):
                if call.state == "running":
                    await call.wait()
                    await _let_run(call)
                if call.state == "asking" and self._has_room(call):
                    return self._questions_reply(call)
        except BaseException:  # the client has gone, or the server ends
            await call.stop()
            raise
        if isinstance(call.error, asyncio.CancelledError):
            raise MCPError(INTERNAL_ERROR, f"`{call.tool}` was stopped")
        if call.error is not None:
            raise call.error
        return call.result

    def _has_room(self, call: OpenCall) -> bool:
        """Return whether a call may wait for its client; else its questions are refused."""
        if not self._calls.is_full(call.principal, ASKING):
            return True
        others = self._calls.of(call.principal, ASKING)
        oldest = min(others, key=lambda other: other.since, default=None)
        if oldest is not None and _clock() - oldest.since >= self._seconds * _GIVES_WAY:
            self._calls.forget(oldest)  # a client that has left does not say so
            return True
        most = self._calls.limits[ASKING].per_principal
        waiting = count_text(len(others), "call")
        why = f"{call.principal} has {waiting} without an answer already, and may have {most} (max_asking)"
        call.refuse(why)
        return False

    def _questions_reply(self, call: OpenCall) -> types.InputRequiredResult:
        """Return the reply with the questions of a call, which waits for the client from now on."""
        call.id, call.ctx, call.since = f"{self._mark}.{secrets.token_urlsafe(16)}", None, _clock()
        self._calls.add(call, self._seconds)
        asked: dict[str, types.InputRequest] = {key: question.request for key, question in call.questions.items()}
        state = json.dumps({"asking": call.id})
        # requests have no `_meta` of their own in the newer generation: by its names, then by their keys
        merged: dict[str, dict[str, Any]] = {}
        for key, request in asked.items():
            meta = None if request.params is None else request.params.meta
            for name, value in (meta or {}).items():
                merged.setdefault(name, {})[key] = value
        return types.InputRequiredResult(input_requests=asked, request_state=state, _meta=merged or None)

    def _in_doubt(self, call_id: str, tool: str) -> str:
        if call_id.startswith(f"{self._mark}."):
            why = (
                f"this state was used before, or was not answered within {self._seconds:g} s (sooner where others ask, "
                "too), and the call was stopped"
            )
        else:
            why = "the process that ran it has ended"
        return (
            f"`{tool}` had begun when it asked you, and cannot go on: {why}. It is in doubt: it may have taken effect. "
            "Find out before you call it again"
        )


def _clock() -> float:
    return asyncio.get_running_loop().time()


async def _let_run(call: OpenCall) -> None:
    """Wait until a call has ended, or has asked nothing for a moment."""
    for _ in range(_MAX_CHANGES):
        if call.state == "ended":
            return
        try:
            await asyncio.wait_for(call.changed.wait(), _QUIET_SECONDS)
        except TimeoutError:
            return
