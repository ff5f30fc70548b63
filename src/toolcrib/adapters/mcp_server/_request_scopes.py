"""Scopes that a request needs: those of the tool, resource or prompt that it reaches, with any method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_REQUEST
from pydantic import BaseModel, ValidationError

from toolcrib.adapters.mcp_server._replies import clean
from toolcrib.adapters.mcp_server._served import Served
from toolcrib.adapters.mcp_server._task_methods import TaskParams
from toolcrib.adapters.mcp_server._tasks import Tasks
from toolcrib.errors import InsufficientScope
from toolcrib.serving import Principal

_PARAMS: Mapping[str, type[BaseModel]] = {
    "tools/call": types.CallToolRequestParams,
    "resources/read": types.ReadResourceRequestParams,
    "resources/subscribe": types.SubscribeRequestParams,
    "subscriptions/listen": types.SubscriptionsListenRequestParams,
    "prompts/get": types.GetPromptRequestParams,
    "completion/complete": types.CompleteRequestParams,
    "tasks/get": TaskParams,
    "tasks/result": TaskParams,
    "tasks/update": TaskParams,
    "tasks/cancel": TaskParams,
}

Needed = Mapping[str, frozenset[str]]
"""The scopes that a request needs, by the names of the tools that need them."""


class RequestScopes:
    """Says which scopes requests need, and refuses those that lack some.

    Args:
        tasks: The tasks of the server, if it has any.
    """

    def __init__(self, tasks: Tasks | None) -> None:
        self._tasks = tasks

    async def needed(self, method: str, params: Any, served: Served, principal: Principal) -> Needed:
        """Return the scopes that a request needs; none for one that is not well formed, or reaches nothing."""
        kind = _PARAMS.get(method)
        if kind is None:
            return {}
        try:
            read = kind.model_validate(params, by_name=False)
        except ValidationError:  # the server says what is wrong
            return {}
        match read:
            case types.CallToolRequestParams():
                return served.scopes_of_tool(read.name)
            case TaskParams():
                return await self._of_task(read.task_id, served, principal)
            case types.SubscriptionsListenRequestParams():
                uris = read.notifications.resource_subscriptions or ()
                found = [await served.offers.scopes_of_uri(str(uri), principal.run) for uri in uris]
                return {name: scopes for each in found for name, scopes in each.items()}
            case types.GetPromptRequestParams(name=name):
                return await served.offers.scopes_of_prompt(name, principal.run)
            case types.CompleteRequestParams(ref=types.PromptReference(name=name)):
                return await served.offers.scopes_of_prompt(name, principal.run)
            case types.CompleteRequestParams(ref=types.ResourceTemplateReference(uri=uri)):
                return await served.offers.scopes_of_uri(uri, principal.run)
            case types.ReadResourceRequestParams(uri=uri) | types.SubscribeRequestParams(uri=uri):
                return await served.offers.scopes_of_uri(uri, principal.run)
            case _:
                return {}

    async def _of_task(self, task_id: str, served: Served, principal: Principal) -> Needed:
        if self._tasks is None:
            return {}
        try:
            task = await self._tasks.find(principal, task_id, served.tools)
        except MCPError:  # there is none, or it is another principal's
            return {}
        return served.scopes_of_tool(task.params.name)

    async def hold(
        self, ctx: ServerRequestContext[Served, Any], call_next: CallNext, principal: Principal
    ) -> HandlerResult:
        """Answer a request whose token has the scopes that it needs; a middleware.

        A new call is left to the pipeline, which refuses it in the same way, and has it in the record.

        Raises:
            MCPError: It lacks some.
        """
        access = principal.run.channel.access
        if access is None or (ctx.method == "tools/call" and not (ctx.params or {}).get("requestState")):
            return await call_next(ctx)
        needed = await self.needed(ctx.method, ctx.params, ctx.lifespan_context, principal)
        for name, scopes in needed.items():
            missing = access.lacks(scopes)
            if missing:
                data = {"reason": InsufficientScope.code, "scopes": [*missing]}
                raise MCPError(INVALID_REQUEST, clean(str(InsufficientScope(name, missing))), data)
        return await call_next(ctx)
