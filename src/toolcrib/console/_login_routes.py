"""Routes of a login elsewhere: the way of a browser there, and back."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from toolcrib.console._options import ConsoleOptions, LoginRefused

if TYPE_CHECKING:
    from toolcrib.console.openid import OpenIDLogin

LOGIN_PATHS: Final = ("/login/start", "/login/back")
"""The paths that need no login."""
_TICKET: Final = "toolcrib_login"  # the cookie by which a browser is known when it is back
_SECONDS: Final = 600
_log = logging.getLogger("toolcrib.console")


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
