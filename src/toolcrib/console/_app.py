"""Console as an ASGI application, which has the page and the API that the page uses; and as a server."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from toolcrib.approvals import ReviewableApprovalStore
from toolcrib.console._answer_form import AnswerError
from toolcrib.console._approval_routes import ApprovalRoutes
from toolcrib.console._feed import Feed
from toolcrib.console._guard import Guard
from toolcrib.console._options import ConsoleOptions, LoginRefused
from toolcrib.console._requests import SURROGATES, JsonReply, choices, json_body, moment, number, visitor_of
from toolcrib.console._views import activity_view, at_path, calls_asked_about, detail_view, full_text, waterfall
from toolcrib.console._webhooks import Notifier
from toolcrib.console._work_routes import DurableWork, FindWork, WorkRoutes
from toolcrib.errors import ApprovalError, explain_options
from toolcrib.record import Activity, ActivityFilter, EventLog, brief_event
from toolcrib.serving import ServerStates
from toolcrib.serving.http import HttpGuard, HttpLimits, Listener, Site, listen, serve_app

if TYPE_CHECKING:
    from toolcrib.console.openid import OpenIDLogin

LOGIN_PATHS: Final = ("/login/start", "/login/back")
"""The paths that need no login."""
_TICKET: Final = "toolcrib_login"  # the cookie by which a browser is known when it is back
_SECONDS: Final = 600


class LoginRoutes:
    """The routes of the login that a console has beside its tokens."""

    def __init__(self, options: ConsoleOptions) -> None:
        self._options = options
        self.routes = [
            Route(path, answer) for path, answer in zip(LOGIN_PATHS, (self._depart, self._come_back), strict=True)
        ]

    async def _depart(self, request: Request) -> Response:
        """Send a browser to where people log in."""
        login = self._login()
        try:
            url, ticket = await login.depart()
        except LoginRefused as error:
            return self._refusal(request, error)
        response, secure = RedirectResponse(url, 303), login.address.startswith("https:")
        response.set_cookie(_TICKET, ticket, max_age=_SECONDS, httponly=True, samesite="lax", secure=secure)
        return response

    async def _come_back(self, request: Request) -> Response:
        """Begin a session of a browser that comes back from there."""
        login, answer = self._login(), dict(request.query_params)
        try:
            if len(answer) != len(request.query_params.multi_items()):
                raise LoginRefused("the answer says something twice")
            session = await login.come_back(request.cookies.get(_TICKET, ""), answer)
        except LoginRefused as error:
            return self._refusal(request, error)
        visitor = login.of_session(session)
        _log.info("%s logged in from %s", "" if visitor is None else visitor.name, self._address(request))
        response, secure = RedirectResponse(f"{login.address}/", 303), login.address.startswith("https:")
        response.set_cookie(self._options.cookie, session, httponly=True, samesite="strict", secure=secure)
        response.delete_cookie(_TICKET, httponly=True, samesite="lax", secure=secure)
        return response

    def _login(self) -> OpenIDLogin:
        if self._options.login is None:
            raise HTTPException(404, "there is no such page")
        return self._options.login

    def _refusal(self, request: Request, error: LoginRefused) -> Response:
        _log.warning("a login from %s failed: %s", self._address(request), error)
        return PlainTextResponse(f"You are not logged in: {error}.", 403)

    def _address(self, request: Request) -> str:
        return self._options.proxies.client_address(request.scope)


_TYPES = {"html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8", "svg": "image/svg+xml"}
_SCRIPT = "text/javascript; charset=utf-8"  # whatever the system takes a script for
_log = logging.getLogger("toolcrib.console")
_WRONG_TOKEN_SECONDS = 0.3
_MAX_ROWS = 200


class ConsoleApp:
    """The console over a log of events and an approval store; an ASGI application, made by `console_app`."""

    def __init__(
        self,
        log: EventLog,
        approvals: ReviewableApprovalStore,
        options: ConsoleOptions,
        work: FindWork,
        servers: ServerStates | None = None,
    ) -> None:
        self._log, self._approvals, self._options = log, approvals, options
        self._feed = Feed(log, approvals)
        self._work, self._servers = WorkRoutes(work, self._feed, log), servers
        self._files = {file.name: file.read_bytes() for file in (files("toolcrib.console") / "page").iterdir()}
        routes = [
            Route("/", self._page),
            Route("/api/state", self._state),
            Route("/api/login", self._login, methods=["POST"]),
            Route("/api/logout", self._logout, methods=["POST"]),
            Route("/api/sessions/end", self._end_sessions, methods=["POST"]),
            *LoginRoutes(options).routes,
            Route("/api/activities", self._activities),
            Route("/api/activity", self._activity),
            Route("/api/waterfall", self._waterfall),
            Route("/api/servers", self._server_states),
            Route("/api/events", self._events),
            Route("/api/value", self._value),
            Route("/api/stream", self._stream),
            *ApprovalRoutes(log, approvals, self._feed).routes,
            *self._work.routes,
            Route("/{name}", self._page),
        ]
        handlers: Mapping[Any, Any] = {AnswerError: _answer_error, ApprovalError: _conflict, HTTPException: _http_error}
        page = frozenset({"", "/", *(f"/{name}" for name in self._files), *LOGIN_PATHS})
        site = Site(options.host, options.allowed_hosts)
        self._requests = HttpGuard(Starlette(routes=routes, exception_handlers=handlers), site)
        self._guard = Guard(self._requests, options, page)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._guard(scope, receive, send)

    async def close(self) -> None:
        """End the open requests, so that the server can stop."""
        await self._requests.close()
        if self._options.login is not None:
            await self._options.login.close()

    # --- the page, and its login

    async def _page(self, request: Request) -> Response:
        name = str(request.path_params.get("name", "index.html"))
        if name not in self._files:
            raise HTTPException(404, "there is no such page")
        kind = _TYPES.get(name.rpartition(".")[2], _SCRIPT)
        return Response(self._files[name], headers={"content-type": kind})

    async def _state(self, request: Request) -> Response:
        last, tools = await asyncio.to_thread(lambda: (self._log.last(), self._log.names()))
        await self._feed.refresh()
        return JsonReply(
            {
                "csrf": self._guard.csrf,
                "name": visitor_of(request).name,
                "role": visitor_of(request).role,
                "work": await self._work.found() is not None,
                "servers": self._servers is not None,
                "token": not self._options.is_open,
                "last": last,
                "pending": list(self._feed.pending),
                "tools": tools,
            }
        )

    async def _server_states(self, request: Request) -> Response:
        """Answer with the servers behind each gateway."""
        found = [] if self._servers is None else await asyncio.to_thread(self._servers.read)
        return JsonReply({"gateways": found})

    async def _login(self, request: Request) -> Response:
        token = (await json_body(request)).get("token")
        holder = self._options.holder(token) if isinstance(token, str) else None
        if holder is None:
            self._guard.refused(request.scope)
            await asyncio.sleep(_WRONG_TOKEN_SECONDS)
            return JsonReply({"error": "This is not a token of this console.", "code": "token"}, 401)
        _log.info("%s logged in from %s", holder or "a user without a name", self._guard.address_of(request.scope))
        response = JsonReply({"name": holder})
        page = request.headers.get("origin", "")  # checked by now; TLS may be that of a proxy
        secure = "https" in (request.url.scheme, page.partition(":")[0])
        session = self._guard.sessions.begin(holder)
        response.set_cookie(self._options.cookie, session, httponly=True, samesite="strict", secure=secure)
        return response

    async def _logout(self, request: Request) -> Response:
        visitor = visitor_of(request)
        self._guard.end(visitor.session)
        await self._feed.look_again()
        _log.info(
            "%s logged out from %s", visitor.name or "a user without a name", self._guard.address_of(request.scope)
        )
        response = JsonReply({})
        response.delete_cookie(self._options.cookie, httponly=True, samesite="strict")
        return response

    async def _end_sessions(self, request: Request) -> Response:
        """End all sessions of a person, for an administrator."""
        visitor, person = visitor_of(request), (await json_body(request)).get("person")
        if visitor.role != "administrator":
            raise HTTPException(403, "only an administrator ends the sessions of others")
        if not isinstance(person, str) or not self._guard.end_of(person):
            raise HTTPException(404, "there is no token and no session of this person")
        await self._feed.look_again()
        _log.info("%s ended the sessions of %r", visitor.name, person)
        return JsonReply({})

    # --- what happens

    async def _activities(self, request: Request) -> Response:
        query = request.query_params
        wanted = ActivityFilter(
            sources=choices(request, "source"),
            statuses=choices(request, "status"),
            name=query.get("name", ""),
            principal=query.get("principal", ""),
            text=query.get("text", "")[:200],
            parent_id=query.get("parent", ""),
            top=query.get("top") == "1",
            since=moment(request, "since"),
            until=moment(request, "until", to_end=True),
        )
        before, limit = number(request, "before"), min(number(request, "limit") or 60, _MAX_ROWS)
        found = await asyncio.to_thread(self._log.activities, wanted, before=before, limit=limit)
        await self._feed.refresh()
        asked = await asyncio.to_thread(calls_asked_about, self._log, self._feed.pending.values())
        shown = await asyncio.to_thread(lambda: [activity_view(self._log, activity, asked) for activity in found])
        return JsonReply({"activities": shown, "more": len(found) == limit})

    async def _activity(self, request: Request) -> Response:
        activity = await self._find_activity(request)
        await self._feed.refresh()
        return JsonReply(await asyncio.to_thread(detail_view, self._log, activity, self._feed.pending))

    async def _waterfall(self, request: Request) -> Response:
        return JsonReply(await asyncio.to_thread(waterfall, self._log, await self._find_activity(request)))

    async def _find_activity(self, request: Request) -> Activity:
        query = request.query_params
        found = await asyncio.to_thread(
            self._log.activity, query.get("source", "call"), query.get("id", ""), query.get("run")
        )
        if found is None:
            raise HTTPException(404, "there is no such activity")
        return found

    async def _events(self, request: Request) -> Response:
        """Answer with a page of the events of one activity, or of all of them."""
        after = number(request, "after") or 0
        if "id" in request.query_params:
            activity = await self._find_activity(request)
            events = await asyncio.to_thread(self._log.events, activity, after=after, limit=_MAX_ROWS)
        else:
            events = await asyncio.to_thread(self._log.since, after, _MAX_ROWS)
        return JsonReply({"events": [brief_event(event) for event in events], "more": len(events) == _MAX_ROWS})

    async def _value(self, request: Request) -> Response:
        """Answer with the whole of a value that was cut, as text."""
        path = request.query_params.getlist("path")
        try:
            if "request" in request.query_params:
                entry = await self._approvals.show(request.query_params["request"])
                value = at_path(entry.request.to_dict(), path)
            else:
                position = number(request, "position") or 0
                events = await asyncio.to_thread(self._log.since, position - 1, 1)
                value = at_path(events[0].data if events and events[0].position == position else {}, path)
        except (KeyError, IndexError):
            raise HTTPException(404, "there is no such value") from None
        return Response(full_text(value).encode("utf-8", SURROGATES), media_type="text/plain")

    async def _stream(self, request: Request) -> Response:
        last_id = request.headers.get("last-event-id") or request.query_params.get("after", "")
        is_valid = partial(self._guard.is_valid, visitor_of(request))
        stream = self._feed.stream(int(last_id) if last_id.isdecimal() else None, is_valid)
        return StreamingResponse(stream, media_type="text/event-stream", headers={"x-accel-buffering": "no"})


@explain_options()
def console_app(
    log: EventLog,
    approvals: ReviewableApprovalStore,
    options: ConsoleOptions | None = None,
    work: DurableWork | FindWork | None = None,
    servers: ServerStates | None = None,
) -> ConsoleApp:
    """Return the console as an ASGI application, for a server of your own; `serve` runs one.

    Args:
        log: The events: `sqlite_events("toolcrib.db")`, or a sink's `log()`.
        approvals: The store of requests and answers: `SqliteApprovalStore("toolcrib.db")`.
        options: Its address and tokens.
        work: The views and actions of durable work: `toolcrib.adapters.dbos.WorkOperator(client)`. Or a function that
            returns it, or None until durable work has begun; it is called in a thread.
        servers: The states of the servers behind gateways: `toolcrib.serving.ServerStates("toolcrib.db")`.
    """
    find = work if callable(work) else lambda: work
    return ConsoleApp(log, approvals, options or ConsoleOptions(), find, servers)


@explain_options()
def serve(
    app: ConsoleApp,
    options: ConsoleOptions,
    started: Callable[[str], None] = lambda url: None,
    notifier: Callable[[str], Notifier] | None = None,
) -> None:
    """Serve the console until SIGINT or SIGTERM.

    Args:
        app: The application that `console_app` made with the same options.
        options: Where to listen.
        started: Receives the URL when the console listens.
        notifier: Makes what sends notices to webhooks, of the URL where the console listens.

    Raises:
        OSError: The console cannot listen there.
    """

    async def serve_and_notify(listener: Listener) -> None:
        ready = partial(started, f"{listener.url}/")
        notices = None if notifier is None else asyncio.create_task(notifier(listener.url).run())
        try:
            await serve_app(app, listener, HttpLimits(), started=ready, signals=True)
        finally:
            if notices is not None:
                notices.cancel()

    with listen(options.host, options.port) as listener:
        asyncio.run(serve_and_notify(listener))


async def _answer_error(request: Request, error: AnswerError) -> Response:
    return JsonReply({"error": " ".join(error.problems), "field": error.field, "problems": error.problems}, 422)


async def _conflict(request: Request, error: ApprovalError) -> Response:
    return JsonReply({"error": error.problem, "code": "answered"}, 409)


async def _http_error(request: Request, error: HTTPException) -> Response:
    return JsonReply({"error": error.detail}, error.status_code)
