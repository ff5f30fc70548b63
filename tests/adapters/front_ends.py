"""A trip agent behind a front end: what the tests of each protocol share."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from toolcrib.calls import Media, RunNormally, ToolCall
from toolcrib.errors import ApprovalRequired
from toolcrib.hooks import HookSet
from toolcrib.rounds import Session
from toolcrib.schema import RunContext
from toolcrib.serving import http
from toolcrib.testing import ScriptedModel, Step
from toolcrib.tools import tool
from toolcrib.toolsets import Toolset

PICTURE = b"\x89PNG\r\n\x1a\n"
BOOK = ToolCall("book", {"to": "Oslo"}, "call_book")
CHARTER = ToolCall("charter", {"to": "Rome"}, "call_charter")
WEATHER = ToolCall("weather", {"city": "Oslo"}, "call_weather")


class Trips:
    """An agent with a script for a model, and what its tools did.

    Attributes:
        did: What the tools did, in order.
        asked: What decision hooks were asked about.
    """

    def __init__(self, *steps: Step) -> None:
        self.did: list[str] = []
        self.asked: list[str] = []
        self.model = ScriptedModel(*steps)
        self.tools = self._tools()

    def open(self, principal: str) -> Session:
        """Open a session, as the host of a front end does."""
        return Session(self.model, tools=self.tools, system="Plan trips.")

    def _tools(self) -> Toolset:
        did, asked = self.did, self.asked

        @tool(register=False, requires_approval=True)
        async def book(to: str) -> str:
            """Book a flight."""
            did.append(f"book {to}")
            return f"booked to {to}"

        @tool(register=False)
        async def weather(city: str) -> dict[str, Any]:
            """Say how the weather is."""
            did.append(f"weather {city}")
            return {"city": city, "temp": 4}

        @tool(register=False)
        async def picture() -> Media:
            """Take a picture."""
            return Media("image/png", PICTURE)

        @tool(register=False)
        async def broken() -> str:
            """Fail."""
            raise RuntimeError("the line is dead")

        @tool(register=False)
        async def charter(to: str, ctx: RunContext) -> str:
            """Charter a plane, and ask for approval in the tool itself."""
            if not ctx.approved:
                raise ApprovalRequired
            did.append(f"charter {to}")
            return f"flown to {to}"

        tools = Toolset([book, weather, picture, broken, charter])
        hooks = HookSet(tools)

        @hooks.on("book")
        async def note(call: Any, input: Any) -> RunNormally:
            asked.append(call.id)
            return RunNormally(input)

        return tools.with_hooks(hooks)


def who(request: Request) -> str | None:
    """Return the principal that the tests name in a header."""
    return request.headers.get("x-user")


def me(request: Request) -> str:
    """Return the one principal of a page in the browser."""
    return "ada"


class _Site:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)

    async def close(self) -> None:
        """End nothing: the tests have read their answers."""


@contextmanager
def site(script: str, front_end: ASGIApp) -> Generator[str]:
    """Serve a page with a script, and a front end at /chat, in a thread; the body is given the address."""
    html = '<!doctype html><meta charset="utf-8"><div id="root"></div><script type="module" src="/page.js"></script>'

    async def page(request: Request) -> Response:
        return HTMLResponse(html)

    async def code(request: Request) -> Response:
        return Response(script, media_type="text/javascript")

    routes = [Route("/", page), Route("/page.js", code), Route("/chat", front_end, methods=["POST"])]
    served, started = _Site(Starlette(routes=routes)), threading.Event()
    stops: list[Callable[..., object]] = []

    async def serve() -> None:
        task = asyncio.ensure_future(http.serve_app(served, listener, http.HttpLimits(), started=started.set))
        stops.append(partial(asyncio.get_running_loop().call_soon_threadsafe, task.cancel))
        await asyncio.wait([task])

    with http.listen("127.0.0.1", 0) as listener:
        thread = threading.Thread(target=asyncio.run, args=(serve(),), daemon=True)
        thread.start()
        try:
            assert started.wait(60)
            yield f"{listener.url}/"
        finally:
            stops[0]()
            thread.join(60)
            assert not thread.is_alive()
