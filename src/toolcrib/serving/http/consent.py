"""Pages of consent: where a principal lets this program use another server for them, and where a browser comes back.

A page names the principal and the server before anything is done. What an authorization server answers counts once, in
the browser that was sent there. The extra `credentials`.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from html import escape
from inspect import isawaitable
from typing import Final, TypeAlias
from urllib.parse import parse_qsl, urlsplit

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from toolcrib.approvals import ReviewableApprovalStore
from toolcrib.credentials import Arrival, ConsentFlow, CredentialStore
from toolcrib.errors import ApprovalError, ConsentError, CredentialKeyError, explain_options
from toolcrib.serving.http._checks import HttpGuard, Site, is_loopback
from toolcrib.serving.http._server import HttpLimits, listen, serve_app

__all__ = ["Identify", "consent_routes", "consent_server"]

Identify: TypeAlias = Callable[[Request], "str | Awaitable[str | None] | None"]
"""Returns the principal who is at a browser, as the host knows them; None where it does not."""

_COOKIE: Final = "toolcrib-consent"
_MOST_FORM: Final = 16 * 1024
_HEADERS: Final = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'",
    "referrer-policy": "same-origin",  # a link must not go to another site, and a form has to say where it is from
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
_STYLE: Final = "body{font:16px/1.5 sans-serif;max-width:36em;margin:3em auto;padding:0 1em}button{font:inherit}"


@explain_options()
def consent_routes(
    path: str,
    store: CredentialStore,
    approvals: ReviewableApprovalStore | None = None,
    identify: Identify | None = None,
) -> list[Route]:
    """Return the routes of the pages, for an application that checks Host and Origin of its requests.

    Args:
        path: The path of the pages, as in the address that the credentials were given.
        store: Where credentials are kept.
        approvals: Where suspended calls wait: those that waited for a consent go on when it is there.
        identify: Says who is at a browser; a link is then for its principal alone. Without it, the person
            who opens a link gives access in its principal's name: right where a link reaches its principal only.
    """
    pages = _Pages(path.rstrip("/"), ConsentFlow(store), approvals, identify)
    return [
        Route(f"{pages.path}/back", pages.back, methods=["GET"]),
        Route(f"{pages.path}/{{ticket}}", pages.show, methods=["GET"]),
        Route(f"{pages.path}/{{ticket}}", pages.agree, methods=["POST"]),
    ]


@asynccontextmanager
@explain_options()
async def consent_server(
    pages: str, store: CredentialStore, approvals: ReviewableApprovalStore | None = None
) -> AsyncGenerator[None]:
    """Serve the pages on this machine while the body runs.

    Args:
        pages: Their address, as the credentials were given it: `http://127.0.0.1:8976/consent`.

    Raises:
        ValueError: The address is not one of this machine.
        OSError: Another program listens there.
    """
    parts = urlsplit(pages)
    if parts.scheme != "http" or not is_loopback(parts.hostname or "") or parts.port is None:
        raise ValueError(f"pages that are served here have an address such as http://127.0.0.1:8976/consent: {pages}")
    host = parts.hostname or ""
    routes = consent_routes(parts.path, store, approvals)
    guard = HttpGuard(Starlette(routes=routes), Site(host))
    ready = asyncio.Event()
    with listen(host, parts.port) as listener:
        serving = asyncio.create_task(serve_app(guard, listener, HttpLimits(50), started=ready.set))
        try:
            await ready.wait()
            yield
        finally:
            serving.cancel()
            await asyncio.wait({serving})


class _Pages:
    def __init__(
        self, path: str, flow: ConsentFlow, approvals: ReviewableApprovalStore | None, identify: Identify | None
    ) -> None:
        self.path, self._flow, self._approvals, self._identify = path, flow, approvals, identify

    async def show(self, request: Request) -> Response:
        """Show what a link is for, and ask."""
        ticket = request.path_params["ticket"]
        try:
            about = await self._flow.look(ticket)
            await self._check_person(request, about)
        except (ConsentError, CredentialKeyError) as error:
            return _refusal(error)
        browser = request.cookies.get(_COOKIE) or secrets.token_urlsafe(32)
        response = _page("Give access", _question(about, _proof(browser, ticket)))
        secure = request.url.scheme == "https" or about.link.startswith("https://")
        response.set_cookie(
            _COOKIE, browser, max_age=3600, path=self.path, httponly=True, samesite="lax", secure=secure
        )
        return response

    async def agree(self, request: Request) -> Response:
        """Accept a yes: keep the key that was entered, or send the browser to the authorization server."""
        ticket, browser = request.path_params["ticket"], request.cookies.get(_COOKIE, "")
        try:
            body = b""
            async for part in request.stream():
                body += part
                if len(body) > _MOST_FORM:
                    raise ConsentError("This form is too long.")
            try:
                pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=10)
            except (UnicodeDecodeError, ValueError):
                raise ConsentError("This form cannot be read.") from None
            form = dict(pairs)
            if not browser or not hmac.compare_digest(form.get("proof", ""), _proof(browser, ticket)):
                raise ConsentError("This page was opened in another browser, or too long ago. Open the link again.")
            about = await self._flow.look(ticket)
            await self._check_person(request, about)
            if not about.wants_key:
                departure = await self._flow.leave(ticket, browser)
                return RedirectResponse(departure.url, 303, headers=_HEADERS)
            about = await self._flow.keep_key(ticket, form.get("key", ""))
        except (ConsentError, CredentialKeyError) as error:
            return _refusal(error)
        await self._let_go_on(about)
        return _done(about)

    async def back(self, request: Request) -> Response:
        """Accept the answer of an authorization server."""
        answer = dict(request.query_params)
        try:
            if len(answer) != len(request.query_params.multi_items()):
                raise ConsentError("This answer says something twice.")
            about = await self._flow.come_back(answer, request.cookies.get(_COOKIE, ""))
        except (ConsentError, CredentialKeyError) as error:
            return _refusal(error)
        await self._let_go_on(about)
        return _done(about)

    async def _check_person(self, request: Request, about: Arrival) -> None:
        if self._identify is None:
            return
        who = self._identify(request)
        who = await who if isawaitable(who) else who
        if who != about.principal:
            raise ConsentError(f"This link is for {about.principal}. Sign in as them first.")

    async def _let_go_on(self, about: Arrival) -> None:
        """Answer the requests of suspended calls that waited for this."""
        if self._approvals is None:
            return
        for entry in await self._approvals.list(pending=True):
            consent = entry.request.consent
            if consent is None or (consent.principal, consent.server) != (about.principal, about.server):
                continue
            try:
                await self._approvals.answer(entry.request.grant(f"the consent of {about.principal}"))
            except ApprovalError:  # somebody has answered it meanwhile
                continue


def _proof(browser: str, ticket: str) -> str:
    """Return the proof that a form comes from a page shown to this browser."""
    return hashlib.sha256(f"{browser} {ticket}".encode()).hexdigest()


def _question(about: Arrival, proof: str) -> str:
    server, principal = escape(about.server), escape(about.principal)
    ask = f"<p>Tools of <b>{server}</b> will be used for <b>{principal}</b>.</p>"
    if about.wants_key:
        ask += '<p><label>API key of that server: <input name="key" type="password" autocomplete="off"></label></p>'
    else:
        ask += "<p>You go to the server's sign-in page now, and come back here. Sign in with your own account.</p>"
    warning = f"<p>If you are not {principal}, or did not ask for this, close this page.</p>"
    button = "Keep the key" if about.wants_key else "Go on"
    hidden = f'<input type="hidden" name="proof" value="{proof}">'
    return f'<form method="post">{ask}{warning}{hidden}<button>{button}</button></form>'


def _done(about: Arrival) -> Response:
    return _page("Access is given", f"<p>{escape(about.server)} is used for {escape(about.principal)} from now on.</p>")


def _refusal(error: ConsentError | CredentialKeyError) -> Response:
    return _page("No access was given", f"<p>{escape(str(error))}</p>", 400)


def _page(title: str, body: str, status: int = 200) -> HTMLResponse:
    text = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
        f"<h1>{title}</h1>{body}</html>"
    )
    return HTMLResponse(text, status, _HEADERS)
