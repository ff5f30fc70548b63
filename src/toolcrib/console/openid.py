"""Login of the console with OpenID Connect: people, roles and groups by the claims of a provider.

Needs the extra `mcp` beside `console`: it brings the libraries for JWT and HTTP.
"""

from __future__ import annotations

import os
import secrets
import time
import tomllib
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from toolcrib._numbers import require_span
from toolcrib.calls import ANYBODY, Identity
from toolcrib.console._guard import Visitor
from toolcrib.console._options import LoginRefused, Role
from toolcrib.errors import explain_options
from toolcrib.serving.oauth import (
    AuthorizationServerUnavailable,
    Departure,
    LoggedIn,
    OpenIDClient,
    OpenIDProvider,
    TokenRefused,
)

__all__ = ["OpenIDLogin", "OpenIDProvider", "load_login"]

_SECONDS_AWAY = 600.0  # for which a login that has begun is waited for
_MOST_AWAY = 1000
_MOST_SESSIONS = 10_000


class _File(BaseModel):
    """The fields of a file of a login; see `load_login`."""

    model_config = ConfigDict(extra="forbid", strict=True)

    issuer: str
    client_id: str
    address: str
    client_secret_env: str | None = None
    client_auth: Literal["basic", "post"] = "basic"
    scopes: list[str] = ["openid", "profile", "email"]
    id_claim: str = "sub"
    groups_claim: str = "groups"
    approvers: list[str]
    viewers: list[str] = []
    administrators: list[str] = []
    hours: float = 8


def load_login(path: str | os.PathLike[str], environment: Mapping[str, str] | None = None) -> OpenIDLogin:
    """Return the login that a TOML file describes, by the fields of `OpenIDProvider` and `OpenIDLogin`.

    Args:
        path: The file. `client_secret_env` is the name of the environment variable with the secret, and `hours` how
            long a session lasts.
        environment: The environment variables; this process's when None.

    Raises:
        ValueError: The file cannot be read, a field is wrong, or the variable is not set.
    """
    try:
        settings = _File.model_validate(tomllib.loads(Path(path).read_text("utf-8")))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(map(str, first["loc"]))
        raise ValueError(f"{path}: `{field}`: {first['msg'][0].lower()}{first['msg'][1:]}") from None
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from None
    secret = None
    if (name := settings.client_secret_env) is not None:
        secret = (os.environ if environment is None else environment).get(name)
        if not secret:
            raise ValueError(f"{path}: the environment variable {name} is not set")
    roles = settings.model_dump(include={"approvers", "viewers", "administrators"})
    others = settings.model_dump(exclude={*roles, "address", "client_secret_env", "hours"})
    provider = OpenIDProvider(client_secret=secret, **others)
    return OpenIDLogin(provider, settings.address, lasts=timedelta(hours=settings.hours), **roles)


@dataclass(frozen=True, slots=True)
class _Session:
    visitor: Visitor
    ends: float


@explain_options()
class OpenIDLogin:
    """The logins of a console at one provider; an option of it: `ConsoleOptions(login=OpenIDLogin(...))`.

    A session is kept in the memory of the console. It ends after `lasts`, when its person logs out, when an
    administrator ends the sessions of its person, and with the console; then the browser logs in anew, and the claims
    are read anew.

    Args:
        provider: The provider, and which claims count.
        address: The console as browsers reach it; the provider has to know `ADDRESS/login/back` as its redirect URI.
        approvers: The groups whose people answer; `*` is everybody who can log in.
        viewers: The groups whose people look, and answer nothing. Who is in neither is not let in.
        administrators: The groups whose people answer, and end the sessions of others.
        lasts: How long a session lasts.
        client: Talks to the provider.
        clock: The time, in seconds.

    Raises:
        ValueError: No group may come in, or a session would last no time.
        TypeError: A text stands for a list of groups.
    """

    def __init__(
        self,
        provider: OpenIDProvider,
        address: str,
        *,
        approvers: Sequence[str],
        viewers: Sequence[str] = (),
        administrators: Sequence[str] = (),
        lasts: timedelta = timedelta(hours=8),
        client: OpenIDClient | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        named = {"approvers": approvers, "viewers": viewers, "administrators": administrators}
        for name, groups in named.items():
            if isinstance(groups, str):
                raise TypeError(f"OpenIDLogin: {name} is a list of groups, as in {name}=[{groups!r}]")
        require_span("OpenIDLogin", "lasts", lasts)
        if not any(named.values()):
            raise ValueError("OpenIDLogin: name the groups that may come in")
        self.provider, self.address = provider, address.rstrip("/")
        self._groups: dict[Role, frozenset[str]] = {
            "administrator": frozenset(administrators),
            "approver": frozenset(approvers),
            "viewer": frozenset(viewers),
        }
        self._lasts = lasts
        self._client, self._clock = client or OpenIDClient(provider), clock
        self._away: OrderedDict[str, tuple[float, Departure]] = OrderedDict()
        self._sessions: OrderedDict[str, _Session] = OrderedDict()

    @property
    def name(self) -> str:
        """The name that tells it from the login of another console."""
        return f"{self.provider.issuer} {self.provider.client_id}"

    async def depart(self) -> tuple[str, str]:
        """Begin a login; return the provider's page, and the ticket by which the browser is known when it is back.

        Raises:
            LoginRefused: The provider cannot be asked now.
        """
        try:
            departure = await self._client.depart(f"{self.address}/login/back")
        except AuthorizationServerUnavailable as error:
            raise LoginRefused(str(error)) from None
        ticket = secrets.token_urlsafe(32)
        self._away[ticket] = self._clock() + _SECONDS_AWAY, departure
        while len(self._away) > _MOST_AWAY:
            self._away.popitem(last=False)
        return departure.url, ticket

    async def come_back(self, ticket: str, answer: Mapping[str, str]) -> str:
        """Begin a session by the provider's answer, once; return its cookie.

        Raises:
            LoginRefused: The browser began no login, the answer is not to it, or its person may not come in.
        """
        until, departure = self._away.pop(ticket, (0.0, None))
        if departure is None or until <= self._clock():
            raise LoginRefused("this browser began no login here, or too long ago")
        try:
            person = await self._client.come_back(departure, answer)
        except (TokenRefused, AuthorizationServerUnavailable) as error:
            raise LoginRefused(str(error)) from None
        cookie = secrets.token_urlsafe(32)
        ends = datetime.now(UTC) + self._lasts
        self._sessions[cookie] = _Session(
            self._visitor(person, ends, session=cookie), self._clock() + self._lasts.total_seconds()
        )
        while len(self._sessions) > _MOST_SESSIONS:
            self._sessions.popitem(last=False)
        return cookie

    def of_session(self, cookie: str) -> Visitor | None:
        """Return the user of a session; None where there is none, or it has ended."""
        found = self._sessions.get(cookie)
        if found is not None and found.ends <= self._clock():
            del self._sessions[cookie]
            return None
        return None if found is None else found.visitor

    async def of_token(self, token: str) -> Visitor | None:
        """Return the user whose ID token a program sends; None where it is not valid, or may not come in."""
        try:
            person = await self._client.of_token(token)
            return self._visitor(person, datetime.fromtimestamp(person.expires_at, UTC), by_header=True)
        except (LoginRefused, TokenRefused, AuthorizationServerUnavailable):
            return None

    def end(self, cookie: str) -> None:
        """End a session."""
        self._sessions.pop(cookie, None)

    def end_of(self, person: str) -> int:
        """End all sessions of a person, by an id of theirs; return how many there were."""
        ended = [cookie for cookie, session in self._sessions.items() if session.visitor.is_of(person)]
        for cookie in ended:
            del self._sessions[cookie]
        return len(ended)

    async def close(self) -> None:
        """Close the connections to the provider."""
        await self._client.close()

    def _visitor(self, person: LoggedIn, until: datetime, *, session: str = "", by_header: bool = False) -> Visitor:
        groups = {*person.groups, ANYBODY}
        role: Role | None = next((role for role, of_role in self._groups.items() if groups & of_role), None)
        if role is None:
            raise LoginRefused(f"{person.id} is in no group that this console lets in")
        identity = Identity(person.id, "openid", person.groups, until, aliases=person.aliases)
        return Visitor(person.id, by_header, session, role, identity)
