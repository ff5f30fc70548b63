"""MCP server: the SDK's low-level server, whose calls and reads go through the pipeline."""

from __future__ import annotations

import logging
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from importlib import import_module
from importlib.metadata import version
from typing import Any, cast

import mcp_types as types
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_REQUEST
from pydantic import BaseModel, ValidationError

from toolcrib.adapters.mcp_server._bearer import ScopesOfRequest, access_of, principal_of
from toolcrib.adapters.mcp_server._client_link import ASKING, LogLevels
from toolcrib.adapters.mcp_server._elicitation import is_stateless
from toolcrib.adapters.mcp_server._offers import is_offered_alone
from toolcrib.adapters.mcp_server._options import ServerOptions
from toolcrib.adapters.mcp_server._programs import ProgramServer
from toolcrib.adapters.mcp_server._replies import clean, text_in
from toolcrib.adapters.mcp_server._served import Served, page_of
from toolcrib.adapters.mcp_server._task import TASK, Tasks
from toolcrib.adapters.mcp_server._task_methods import TaskMethods, TaskParams, capability
from toolcrib.adapters.mcp_server._tool_changes import ToolChanges
from toolcrib.adapters.mcp_server._tool_server import ToolServer
from toolcrib.adapters.mcp_server._tools import DirectToolServer
from toolcrib.approvals import (
    ApprovalStore,
    MemoryApprovalStore,
    SuspendedCallStore,
    WaitableApprovalStore,
    suspended_calls_beside,
)
from toolcrib.calls import ResultReader
from toolcrib.errors import InsufficientScope, SchemaError, exception_of, explain_options
from toolcrib.pipeline import Access, Pipeline, Run, local_user, open_run
from toolcrib.serving import OpenCalls, OpenLimit, Principals, check_countable
from toolcrib.tools import PromptOffer, ResourceOffer, Tool, is_for_apps, offering_of
from toolcrib.toolsets import ToolEntry, Toolset, ToolsetLike, sources_of

_log = logging.getLogger("toolcrib.adapters")

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
    """Says which scopes requests need, and refuses those that lack some."""

    def __init__(self, tasks: Tasks | None, principals: Principals) -> None:
        self._tasks, self._principals = tasks, principals

    async def needed(self, served: Served, method: str, params: Any) -> Needed:
        """Return the scopes that a request needs; none for one that is not well formed, or reaches nothing."""
        kind, principal = _PARAMS.get(method), self._principals.current()
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
                if self._tasks is None:
                    return {}
                try:
                    task = await self._tasks.find(principal, read.task_id, served.tools)
                except MCPError:  # there is none, or it is another principal's
                    return {}
                return served.scopes_of_tool(task.params.name)
            case types.SubscriptionsListenRequestParams():
                uris = read.notifications.resource_subscriptions or ()
                found = [await served.offers.scopes_of_uri(str(uri), principal.run) for uri in uris]
                return {name: scopes for scopes_by_name in found for name, scopes in scopes_by_name.items()}
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

    async def hold(self, ctx: ServerRequestContext[Served, Any], call_next: CallNext) -> HandlerResult:
        """Answer a request whose token has the scopes that it needs; a middleware.

        A new call is left to the pipeline, which refuses it in the same way, and has it in the record.

        Raises:
            MCPError: It lacks some.
        """
        served = ctx.lifespan_context
        access = self._principals.current().run.channel.access if served.has_scopes else None
        if access is None or (ctx.method == "tools/call" and not (ctx.params or {}).get("requestState")):
            return await call_next(ctx)
        needed = await self.needed(served, ctx.method, ctx.params)
        for name, scopes in needed.items():
            missing = access.lacks(scopes)
            if missing:
                data = {"reason": InsufficientScope.code, "scopes": [*missing]}
                raise MCPError(INVALID_REQUEST, clean(str(InsufficientScope(name, missing))), data)
        return await call_next(ctx)


_Context = ServerRequestContext[Served, Any]
_MOST_ASKING = 1_000  # calls of all principals that wait for an answer of their clients
_MOST_TASKS = 10_000  # of all principals
_APPS = "io.modelcontextprotocol/ui"  # the extension
_IN_DOUBT = "If the call had begun, it may have taken effect: find out before you make it again"


@explain_options()
def build_server(toolset: ToolsetLike, options: ServerOptions | None = None) -> McpServer:
    """Return a server of the SDK that serves a toolset; give it to any of the SDK's transports.

    Args:
        toolset: The tools; members that list themselves are asked when the server starts, and kept open while it runs.
        options: How they are served.

    Raises:
        ToolConstraintError: A limit is about nearly a tool.
        ValueError: A key is too short, or the store cannot wait for an answer, or cannot list its requests.
    """
    return McpServer(Toolset.of(toolset), options or ServerOptions())


class McpServer(Server[Served]):
    """A toolset as a server of the SDK. Made by `build_server`.

    Attributes:
        toolset: The tools.
        options: How they are served.
        approvals: The store of approval requests and their answers.
        suspended_calls: The store of the calls that wait for these answers.
        principals: The principals of the requests.
        changes: Notifies the clients when the lists change.
        levels: The levels of log lines that the sessions want.
        calls: The calls that outlive their requests.
        tasks: Those of them that a client has an id of.
        served: The open toolset, once the server runs.
    """

    def __init__(self, toolset: Toolset, options: ServerOptions) -> None:
        toolset = _checked(toolset, options)
        self.toolset, self.options = toolset, options
        self.approvals: ApprovalStore = MemoryApprovalStore() if options.approvals is None else options.approvals
        self.suspended_calls: SuspendedCallStore = (
            suspended_calls_beside(self.approvals) if options.suspended_calls is None else options.suspended_calls
        )
        self.served: Served | None = None
        if options.wait and not isinstance(self.approvals, WaitableApprovalStore):
            raise ValueError(f"{type(self.approvals).__name__} cannot be waited for; leave `wait` out")
        check_countable(self.approvals, options.max_pending)
        caller = partial(_caller, options.principal or local_user())
        self.principals = Principals(self.approvals, self._open_run, caller, options.max_pending, options.kept_for)
        self.changes, self.levels = ToolChanges(), LogLevels()
        limits = {ASKING: OpenLimit(options.max_asking, _MOST_ASKING)}
        if options.tasks is not None:
            limits[TASK] = OpenLimit(options.tasks.most, _MOST_TASKS)
        self.calls = OpenCalls(self.suspended_calls, limits)
        self.tasks = None if options.tasks is None else Tasks(options.tasks, options, self.calls)
        self._task_methods = None if self.tasks is None else TaskMethods(self.tasks, self.principals)
        self._scopes = RequestScopes(self.tasks, self.principals)
        self._has_sources = bool(sources_of(toolset))
        self._may_change = bool(options.search) or self._has_sources
        super().__init__(
            options.name,
            title=options.title,
            version=version("toolcrib") if options.version is None else options.version,
            lifespan=_open_toolset,
            get_tool_input_schema=self._input_schema,
            on_list_tools=self._list,
            on_call_tool=self._call,
        )
        state = RequestStateBoundary(self._state_security(), default_audience=options.name)
        self.middleware += [_hide_errors, _explain_state, state, self._add_instructions, self._scopes.hold]
        if self._task_methods is not None:
            self._task_methods.add_to(self)
        self.add_request_handler("logging/setLevel", types.SetLevelRequestParams, self._set_level)
        offers = {type(offer.get_offer()) for tool in toolset.tools() if (offer := offering_of(tool)) is not None}
        self._add_offers(self._has_sources or ResourceOffer in offers, self._has_sources or PromptOffer in offers)
        if any(_is_app(tool) for tool in toolset.tools()):
            self.extensions[_APPS] = {}

    @property
    def tools(self) -> ToolServer | None:
        """The server of the tools, once it runs."""
        return None if self.served is None else self.served.tools

    def _add_offers(self, has_resources: bool, has_prompts: bool) -> None:
        """Answer requests for what the toolset has, or may have; what is announced to clients follows from that."""
        add, page = self.add_request_handler, types.PaginatedRequestParams
        if has_resources:
            add("resources/list", page, self._by(Served.resources))
            add("resources/templates/list", page, self._by(Served.templates))
            add("resources/read", types.ReadResourceRequestParams, self._by(Served.read))
            add("resources/subscribe", types.SubscribeRequestParams, self._by(Served.subscribe))
            add("resources/unsubscribe", types.UnsubscribeRequestParams, self._by(Served.unsubscribe))
        if has_prompts:
            add("prompts/list", page, self._by(Served.prompts))
            add("prompts/get", types.GetPromptRequestParams, self._by(Served.prompt))
        if has_resources or has_prompts:
            add("completion/complete", types.CompleteRequestParams, self._by(Served.complete))
        if self._may_change or has_resources:
            self.middleware.append(self.changes.note_session)
            add("subscriptions/listen", types.SubscriptionsListenRequestParams, self._by(Served.listen))

    def _by(self, method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        """Return the handler of a request that a method of `Served` answers, on behalf of its principal."""

        async def handle(ctx: _Context, params: Any) -> Any:
            return await method(ctx.lifespan_context, ctx, params, self.principals.current())

        return handle

    def _input_schema(self, name: str) -> Mapping[str, Any] | None:
        """Return the schema that the SDK compares the headers of a call with; else it would list all tools for each."""
        entry = None if self.tools is None else self.tools.entries.get(name)
        try:
            return None if entry is None else entry.parameters
        except SchemaError:  # such a tool is not listed, either
            return None

    def _state_security(self) -> RequestStateSecurity:
        """Return how the state that clients hand back is sealed: to a call, to a principal, and for a limited time."""
        return RequestStateSecurity(
            keys=list(self.options.keys) or [secrets.token_bytes(32)],
            ttl=self.options.state_seconds,
            bind_principal=lambda ctx: self.principals.name(),
        )

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """Return the options that the SDK sends a client of the older generation at the start."""
        options = notification_options or NotificationOptions(
            tools_changed=self._may_change, resources_changed=self._has_sources, prompts_changed=self._has_sources
        )
        created = super().create_initialization_options(options, experimental_capabilities, extensions)
        if self.tasks is not None:
            created.capabilities.tasks = capability()
        return created

    def _open_run(self, principal: str) -> Run:
        options = self.options
        run = open_run(options.run, principal) or Run(limits=options.limits, deps=options.deps)
        run_options: dict[str, Any] = {"reader": ResultReader(text_in)}
        if options.approvals is None and run.approvals is None:
            run_options["question_wait"] = 0.0  # in a store that this server made no person can find a question
        if self.served is not None:
            Pipeline(self.served.tools.toolset).check_run(run)
        return run.view(**run_options) if options.errors is None else run.view(**run_options, errors=options.errors)

    # --- requests

    async def _list(self, ctx: _Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        stateless = is_stateless(ctx)
        shown = await ctx.lifespan_context.tools.list(self.principals.current(), stateless=stateless)
        page, following = page_of(shown, params, self.options.page, lambda tool: tool.name)
        marked = page if self._task_methods is None else self._task_methods.marked(ctx, page)
        return types.ListToolsResult(tools=marked, next_cursor=following)

    async def _call(self, ctx: _Context, params: types.CallToolRequestParams) -> Any:
        principal = self.principals.current()
        before = len(principal.run.revealed)
        called = ctx.lifespan_context.tools if self._task_methods is None else self._task_methods
        result = await called.call(ctx, params, principal)
        if len(principal.run.revealed) > before:  # the call has found tools
            await ctx.session.send_tool_list_changed()  # a newer client listens for it
            await self.changes.publish(principal)
        return result

    async def _set_level(self, ctx: _Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
        self.levels.set(ctx.session, params.level)
        return types.EmptyResult()

    def request_scopes(self) -> ScopesOfRequest | None:
        """Return the function that finds the scopes of a request; None while nothing that is served needs any."""
        served = self.served
        return partial(self._scopes.needed, served) if served is not None and served.has_scopes else None

    async def _add_instructions(self, ctx: _Context, call_next: CallNext) -> HandlerResult:
        """Add the instructions of the tools to the replies by which a server introduces itself."""
        result = await call_next(ctx)
        if ctx.method not in ("initialize", "server/discover") or not isinstance(result, dict):
            return result
        texts = [self.options.instructions, *await ctx.lifespan_context.tools.instructions(self.principals.current())]
        joined = "\n\n".join(text for text in texts if text)
        return {**result, "instructions": joined} if joined else result


def _checked(toolset: Toolset, options: ServerOptions) -> Toolset:
    """Return the tools of a server, among which have to be those that its limits and deps name."""
    of_calls = Run(limits=options.limits, deps=options.deps)
    if options.run is None and not (options.code_mode or options.search):  # so that there are no other tools
        limited = () if options.limits is None else options.limits.tool_names
        toolset = toolset.requiring((*limited, *of_calls.asking_tools), "limits or deps of ServerOptions")
    if toolset.is_open:
        Pipeline(toolset).check_run(of_calls)
    return toolset


def _caller(local: str) -> tuple[str, Access | None]:
    """Return the principal of the request's token, and what the token allows; the local user where there is none."""
    token: AccessToken | None = get_access_token()
    return (local, None) if token is None else (principal_of(token), access_of(token))


async def _hide_errors(ctx: _Context, call_next: CallNext) -> HandlerResult:
    """Answer a request whose handling raised with an error that says nothing of the host's code; a middleware."""
    try:
        return await call_next(ctx)
    except (MCPError, ValidationError):
        raise
    except BaseException as error:  # also what ends a process
        cause = exception_of(error)
        _log.error("the request %s failed", ctx.method, exc_info=cause)
        raise MCPError(INTERNAL_ERROR, "Internal server error") from cause


async def _explain_state(ctx: _Context, call_next: CallNext) -> HandlerResult:
    """Explain to a client why the state that it sent is refused; a middleware."""
    try:
        return await call_next(ctx)
    except MCPError as error:
        data = error.error.data
        if not isinstance(data, dict) or cast("dict[str, Any]", data).get("reason") != "invalid_request_state":
            raise
        text = f"{error.error.message}: it is too old, was changed, or was made by a server that has ended. {_IN_DOUBT}"
        raise MCPError(error.error.code, text, cast("Any", data)) from error


def _is_app(tool: Tool[..., Any]) -> bool:
    """Return whether a tool is a page of MCP Apps."""
    offering = offering_of(tool)
    offer = None if offering is None else offering.get_offer()
    return isinstance(offer, ResourceOffer) and offer.uri.startswith("ui://")


@asynccontextmanager
async def _open_toolset(server: Server[Served]) -> AsyncGenerator[Served]:
    if not isinstance(server, McpServer):
        raise TypeError("this is the lifespan of an McpServer")
    async with server.toolset.open(hide_unavailable=False) as bound:
        server.served = served = await _served(server, bound)
        try:
            async with (
                server.changes.following(bound, served.renew),
                served.subscriptions.notifying(),
            ):
                yield served
        finally:
            await served.close()


async def _served(server: McpServer, bound: Toolset) -> Served:
    options, calls, levels = server.options, server.calls, server.levels
    known = await calls.suspended.tools()
    listed = 5 if options.search is True else options.search

    def tools() -> Toolset:
        alone = {entry.name for entry in bound if is_offered_alone(entry)}
        return bound.subset(name for name in bound.names() if name not in alone) if alone else bound

    def pipeline() -> Pipeline:
        found = tools()
        offered = _searchable(found, listed) if listed else found
        # a client that shows pages of MCP Apps keeps from its model what is for these alone
        shown = offered.offering(entry.name for entry in found if entry.off and _is_for_apps(entry))
        return Pipeline(shown, sinks=options.sinks, executor=options.executor)

    def reading() -> Pipeline:
        offers = [entry.name for entry in bound if offering_of(entry.tool) is not None]
        return Pipeline(bound.subset(offers), sinks=options.sinks, executor=options.executor)

    direct: ToolServer
    if options.code_mode:
        direct = ProgramServer(tools, options, calls, levels)
    else:
        direct = DirectToolServer(pipeline, options, calls, levels, known)
    reader = DirectToolServer(reading, options, calls, levels, known)
    return Served(bound, direct, reader, server.changes, options.page)


def _is_for_apps(entry: ToolEntry) -> bool:
    """Return whether a tool is for the pages of MCP Apps alone, and is left out by default for that."""
    source, options = entry.tool.source, entry.tool.options
    return not options.default and is_for_apps(options.listing if source is None else source.get_listing())


def _searchable(toolset: Toolset, most: int) -> Toolset:
    """Return a large toolset with some of its tools listed, and a search for the others."""
    offered = [name for name in toolset.names() if name in toolset.offered()]
    if len(offered) <= most:
        return toolset
    search = import_module("toolcrib.toolsets.search")  # with the extra of that name
    return search.searchable(toolset, keep=offered[:most])
