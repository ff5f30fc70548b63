"""Client link: what a tool asks the client that made its call, in both generations of the protocol."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, cast, get_args
from weakref import WeakKeyDictionary

import mcp_types as types
from mcp.server.connection import allowed_log_levels
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, ValidationError

from toolcrib.adapters.mcp_server._replies import clean
from toolcrib.adapters.mcp_server._tool_changes import connection_of, notify
from toolcrib.calls import lenient
from toolcrib.errors import ClientAnswerError
from toolcrib.schema import ClientFeature, ClientRoot, Elicited, ElicitRequest, LogLine, Sampled, SampleRequest
from toolcrib.serving import OpenCall

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
