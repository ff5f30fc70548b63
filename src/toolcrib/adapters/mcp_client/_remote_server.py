"""Server of MCP while its toolset is open: the requests that can be made of it."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar
from weakref import WeakSet

import anyio
import mcp_types as types
from mcp.client import ClientRequestContext, ClientSession, InputRequiredRoundsExceededError
from mcp.shared.exceptions import MCPError, UrlElicitationRequiredError
from pydantic import ValidationError

from toolcrib._numbers import count_text
from toolcrib.adapters.mcp_client._connection import Connection
from toolcrib.adapters.mcp_client._kept_connection import KeptConnection
from toolcrib.adapters.mcp_client._listing import Change, Listing, pages, without_doubles
from toolcrib.adapters.mcp_client._messages import REFUSED, UNKNOWN_SESSION, UNREADABLE
from toolcrib.adapters.mcp_client._options import Options, target_identity
from toolcrib.adapters.mcp_client._pace import ProgressReport
from toolcrib.adapters.mcp_client._server_requests import ServerRequests, current_call
from toolcrib.adapters.mcp_client._task_calls import TaskCall
from toolcrib.calls import Consent
from toolcrib.errors import RemoteToolError, ServerError
from toolcrib.schema import RunContext
from toolcrib.tools import Deadline, ResourceListener

T = TypeVar("T")
_PAGE_ROUNDS = 3  # of pages that a server may want visited before it makes a call
_MAX_PAGES = 5  # of one error
_PAGE_SECONDS = 120.0  # for a person who said that they visit a page to be done there
_INPUT_ROUNDS = 10  # of input that a server may ask for in one call
_STREAM_FAILED = "SSE stream failed: "  # the SDK's error when it stops reading
_LOST = re.compile(r"Connection closed|SSE stream .*", re.DOTALL)
"""The SDK's errors for a lost connection; servers answer with the same code for what they like."""
_HTTP_CODES = (types.INTERNAL_ERROR, types.INVALID_REQUEST, types.METHOD_NOT_FOUND)
_HTTP_FAILURES = (
    "Server returned an error response",
    "Unexpected content type",
    "Redirect to ",
    "Not Found",
    "server answered a request with 202",
)
"""The prefixes of the SDK's errors for a response that is not an answer."""


class RemoteServer:
    """An MCP server that is open.

    Attributes:
        identity: The identity of the server, which an approval holds for.
        listeners: The listeners to updates of its resources that were subscribed to.
    """

    def __init__(self, target: Any, name: str, options: Options) -> None:
        self.name, self.identity = name, target_identity(target)
        self.listeners: WeakSet[ResourceListener] = WeakSet()
        self._requests = ServerRequests(name, options)
        self._as_tasks, self._timeout, self._clock = options.tasks, options.timeout, options.clock
        self.kept = KeptConnection(target, name, options, self._requests)

    @property
    def listing(self) -> Listing:
        return self.kept.listing

    @property
    def instructions(self) -> str | None:
        """The instructions that the server gives for its use; where they are pinned, as they were accepted last."""
        return self.kept.instructions if self.kept.pins is None else self.kept.pins.known_instructions()

    def changes(self) -> list[Change]:
        """Return the changes since a person accepted the server; empty where nothing is pinned."""
        pins = self.kept
        return [] if pins.pins is None else pins.pins.changes(pins.listing, pins.instructions)

    async def first_try(self) -> ServerError | None:
        return await self.kept.first_try()

    async def close(self) -> None:
        await self.kept.close()

    @property
    def is_locked(self) -> bool:
        """True if the server's tools cannot be listed yet, because no principal has given access."""
        return False

    async def consent_for(self, ctx: RunContext[Any]) -> Consent | None:
        """Return the consent that the principal of a run must give before the server is used for them."""
        return None

    # --- requests

    async def call_tool(
        self, name: str, arguments: dict[str, Any], ctx: RunContext[Any] | None
    ) -> types.CallToolResult:
        """Call a tool, once.

        Raises:
            RemoteToolError: The server refuses.
            ServerError: It cannot be reached; or the connection was lost, the answer cannot be read, or there is none
                in time, and the effect of the call is unknown.
        """
        report = ProgressReport(None if ctx is None else ctx.report, self._clock)
        meta = self._requests.meta_of(ctx)
        listed = next((tool for tool in self.listing.tools if tool.name == name), None)
        task = TaskCall(self.name, listed, self._as_tasks, report, self._clock)

        async def ask(connection: Connection) -> types.CallToolResult:
            client, session = connection.client, connection.session
            if task.id:
                return await task.follow(session)
            if task.begins_in(session):
                result = await self._with_pages(lambda: task.begin(session, arguments, meta))
                await session.validate_tool_result(name, result)
                return result
            if client is None:
                return await _call_with_input(session, name, arguments, report)
            return await self._with_pages(
                lambda: client.call_tool(name, arguments, progress_callback=report, meta=meta)
            )

        when = f"while `{name}` ran. Whether it took effect is unknown"
        with self._as_call(ctx, when, again=False) as limit, task.current(limit):
            try:
                return await self._request(ask, when, again=False)
            except ServerError:
                if not task.id:
                    raise
                return await task.come_back(lambda: self._request(ask, f"while `{name}` ran as a task", again=True))
            finally:
                report.end()

    async def _with_pages(self, send: Callable[[], Awaitable[T]]) -> T:
        """Return a result of the server, once a person has visited the pages that it wants visited before."""
        asked: set[str] = set()
        for _ in range(_PAGE_ROUNDS):
            try:
                return await send()
            except MCPError as error:
                pages = pages_of(error)
                if not pages:
                    raise
                await self._visit(pages, asked)
        return await send()

    async def _visit(self, pages: Sequence[types.ElicitRequestURLParams], asked: set[str]) -> None:
        """Ask a person to visit pages, each once; where the server wants one again, wait until it says they did."""
        for page in pages:
            name = page.elicitation_id or page.url
            if name in asked:
                await self._requests.wait_for_page(name, _PAGE_SECONDS)
            elif not await self._requests.visit(page):
                text = f"a person has to visit {page.url} first, and then the call can be made again: {page.message}"
                raise RemoteToolError(self.name, text)
            asked.add(name)

    async def read_resource(self, uri: str, ctx: RunContext[Any] | None) -> types.ReadResourceResult:
        """Read a resource; raises what `call_tool` does."""
        when = f"while it was asked for {uri}"
        return await self._request_again(lambda to: (to.client or to.session).read_resource(uri), when, ctx)

    async def get_prompt(
        self, name: str, arguments: dict[str, str], ctx: RunContext[Any] | None = None, *, accepted: bool = False
    ) -> types.GetPromptResult:
        """Return a prompt; raises what `call_tool` does, and RemoteToolError for one that has changed."""
        if not accepted:
            self._require_known(name)
        when = f"while it was asked for the prompt `{name}`"
        return await self._request_again(lambda to: (to.client or to.session).get_prompt(name, arguments), when, ctx)

    def _require_known(self, name: str) -> None:
        """Raise RemoteToolError for a prompt that has changed since a person knew it."""
        changed = next((change for change in self.changes() if (change.kind, change.name) == ("prompt", name)), None)
        if changed is not None:
            mend = "`toolcrib pins diff` shows how, and `toolcrib pins accept` accepts it"
            raise RemoteToolError(self.name, f"{changed.reason}; {mend}")

    async def list_prompts(self) -> tuple[types.Prompt, ...]:
        """Return the prompts, those that are pinned as a person knows them; raises what `call_tool` does."""

        async def ask(connection: Connection) -> tuple[types.Prompt, ...]:
            found = await pages(connection.session.list_prompts, lambda page: page.prompts)
            return without_doubles(self.name, "prompts", found)

        listed = await self._request_again(ask, "while it listed prompts")
        pins = self.kept.pins
        changes = [None if pins is None else pins.change_in("prompt", prompt) for prompt in listed]
        return tuple(
            prompt if change is None else change.shown() for prompt, change in zip(listed, changes, strict=True)
        )

    async def complete(
        self,
        reference: types.PromptReference | types.ResourceTemplateReference,
        name: str,
        value: str,
        values: Mapping[str, str],
    ) -> types.Completion:
        """Return the completions of an argument of a prompt or a template; raises the errors of `call_tool`."""
        argument, others = {"name": name, "value": value}, dict(values) or None
        when = f"while it completed `{name}`"
        return (await self._request_again(lambda to: to.session.complete(reference, argument, others), when)).completion

    async def subscribe(self, uri: str, listener: Callable[[str], None]) -> None:
        """Call a listener with the URI whenever a resource is updated; raises what `call_tool` does."""
        add = self.kept.subscriptions.add
        await self._request_again(lambda to: add(to, uri, listener), f"while {uri} was subscribed to")

    def announce(self, uri: str) -> None:
        """Notify the listeners that a resource is updated."""
        for listener in [*self.listeners]:
            listener.changed(uri)

    async def unsubscribe(self, uri: str, listener: Callable[[str], None]) -> None:
        """Call the listener no more."""
        connection = self.kept.connection
        is_gone = connection is None or connection.broken
        await self.kept.subscriptions.remove(None if is_gone else connection, uri, listener)

    async def _request_again(
        self, ask: Callable[[Connection], Awaitable[T]], when: str, ctx: RunContext[Any] | None = None
    ) -> T:
        """Make a request that has no effect, and may be made again; of a call, or of none."""
        with self._as_call(ctx, when):
            return await self._request(ask, when, again=True)

    @contextmanager
    def _as_call(self, ctx: RunContext[Any] | None, when: str, *, again: bool = True) -> Generator[Deadline | None]:
        """Limit the time of the body, and have requests that the server makes meanwhile belong to a call."""
        with self._limited(when, may_have_run=not again) as limit:
            if ctx is None:
                yield limit
                return
            token = current_call.set(ctx)
            self._requests.call_began(ctx)
            try:
                yield limit
            finally:
                self._requests.call_ended(ctx)
                current_call.reset(token)

    @contextmanager
    def _limited(self, when: str, *, may_have_run: bool) -> Generator[Deadline | None]:
        """Raise ServerError when the body takes longer than a call may; the clock stands while a person is asked."""
        if self._timeout is None:
            yield None
            return
        problem = f"did not answer within {self._timeout:g} s {when}"
        limit = Deadline(self._timeout, ServerError, self.name, problem, may_have_run)
        try:
            with limit:
                yield limit
        finally:
            limit.close()

    async def _request(self, ask: Callable[[Connection], Awaitable[T]], when: str, *, again: bool) -> T:
        """Make a request, again over a new connection where the first is lost.

        Args:
            when: During what a failure is, as the end of a sentence.
            again: Whether it may be made twice, as it has no effect.
        """
        try:
            connection = await self.kept.get()
            try:
                return await self._send(ask, connection)
            except _ConnectionLostError as lost:
                connection.drop()
                if not (again or lost.not_done):
                    last = await connection.reason()
                    problem = f"was lost {when}{last or '.'} It was not called again"
                    raise ServerError(self.name, problem, may_have_run=True) from lost
            connection = await self.kept.get()
            try:
                return await self._send(ask, connection)
            except _ConnectionLostError as lost:
                connection.drop()
                problem = f"was lost twice {when}{await connection.reason()}"
                raise ServerError(self.name, problem, may_have_run=not lost.not_done) from lost
        except _UnreadableError as error:
            problem = f"sent an answer that cannot be read {when}. {error.problem:.500}"
            raise ServerError(self.name, problem, may_have_run=not again) from error

    async def _send(self, ask: Callable[[Connection], Awaitable[T]], connection: Connection) -> T:
        try:
            return await ask(connection)
        except MCPError as error:
            if error.code == types.CONNECTION_CLOSED and _LOST.fullmatch(error.message):
                if error.message.startswith(_STREAM_FAILED):
                    connection.fault = connection.fault or error.message
                raise _ConnectionLostError from error
            if error.message == UNKNOWN_SESSION:
                raise _ConnectionLostError(not_done=True) from error
            if error.error.data == REFUSED:
                problem = f"the server `{self.name}` refused the request by HTTP: {error.message}. Nothing of it ran"
                raise RemoteToolError(self.name, problem) from None  # it is no error that the server gave
            if error.code == types.PARSE_ERROR and error.message.startswith(UNREADABLE):
                raise _UnreadableError(error.message) from error
            if error.code in _HTTP_CODES and error.message.startswith(_HTTP_FAILURES):
                raise _UnreadableError(error.message) from error
            raise RemoteToolError(self.name, error.message or f"error {error.code}") from error
        except (anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            raise _ConnectionLostError from error
        except ValidationError as error:
            raise _UnreadableError(f"it does not fit the protocol: {error}") from error
        except InputRequiredRoundsExceededError as error:
            raise RemoteToolError(
                self.name, f"it asked for input more than {count_text(error.max_rounds, 'time')}"
            ) from error
        except RuntimeError as error:  # the SDK: the result does not fit the schema that the server gave for it
            text = f"the server `{self.name}` answered, and the call may have taken effect. {error}"
            raise RemoteToolError(self.name, text) from error


def pages_of(error: MCPError) -> list[types.ElicitRequestURLParams]:
    """Return the pages that a person has to visit before a request is made again; none for another error."""
    if error.code != types.URL_ELICITATION_REQUIRED:
        return []
    try:
        return UrlElicitationRequiredError.from_error(error.error).elicitations[:_MAX_PAGES]
    except (ValidationError, ValueError, TypeError, KeyError, AttributeError):  # what it sent beside the code
        return []


class _UnreadableError(Exception):
    """The server answered, and the answer cannot be read."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem


class _ConnectionLostError(Exception):
    """The connection broke before the reply; `not_done` when the server certainly did nothing."""

    def __init__(self, not_done: bool = False) -> None:
        super().__init__(not_done)
        self.not_done = not_done


async def _call_with_input(
    session: ClientSession, name: str, arguments: dict[str, Any], report: ProgressReport
) -> types.CallToolResult:
    """Call a tool of a session, and answer its requests for input; a `Client` does so by itself."""
    call = partial(session.call_tool, name, arguments, progress_callback=report, allow_input_required=True)
    result = await call()
    for _ in range(_INPUT_ROUNDS):
        if not isinstance(result, types.InputRequiredResult):
            return result
        responses: types.InputResponses = {}
        for key, request in (result.input_requests or {}).items():
            answer = await session.dispatch_input_request(
                ClientRequestContext(session=session, request_id=key), request
            )
            if isinstance(answer, types.ErrorData):
                raise MCPError.from_error_data(answer)
            responses[key] = answer
        result = await call(input_responses=responses or None, request_state=result.request_state)
    raise InputRequiredRoundsExceededError(_INPUT_ROUNDS)
