"""Credentials of a request: API keys, passwords and tokens, as the document's security schemes place them.

They are the host's own, or those of each principal in a credential store, which are kept for one server each.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import isawaitable
from typing import Any, Protocol, TypeAlias, cast, runtime_checkable
from urllib.parse import quote, urlsplit

import httpx2

from toolcrib.calls import Consent
from toolcrib.errors import CredentialError, HookError, RemoteToolError
from toolcrib.openapi._operations import Requirement

Credential: TypeAlias = str | tuple[str, str]
"""A token or an API key; for HTTP's `basic` a name and a password."""

CredentialsOf: TypeAlias = Mapping[str, Credential]
"""Credentials by the name of their security scheme in the document."""


@runtime_checkable
class KeptCredentials(Protocol):
    """Credentials of each principal for servers: the `OAuth` and `ApiKeys` of `toolcrib.credentials`."""

    async def consent_for(self, principal: str, server: str) -> Consent | None:
        """Return the consent that a principal must give before a server is used for them; None where none is needed."""
        ...

    async def sign(self, principal: str, server: str, request: Any) -> str:
        """Put a principal's credential on a request; return what names the credential for `renew`."""
        ...

    async def renew(self, principal: str, server: str, used: str) -> bool:
        """Renew a credential that a server has refused; return whether there is another one now."""
        ...


Credentials: TypeAlias = (
    Mapping[str, Credential | KeptCredentials]
    | Callable[[str | None], CredentialsOf | Awaitable[CredentialsOf | None] | None]
)
"""Credentials by security scheme: for all, or kept for each principal; or a function of the principal of the run that
returns those of that one, sync or async."""


@dataclass(frozen=True, slots=True)
class Signing:
    """The additions of credentials to a request. It has no text, since all of it is secret.

    Attributes:
        used: The names of the kept credentials among them by scheme, for `Signer.renewed`.
    """

    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    query: Sequence[str] = field(default=(), repr=False)
    cookies: Sequence[str] = field(default=(), repr=False)
    used: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


@dataclass(frozen=True, slots=True)
class Signer:
    """The credentials of one operation.

    Attributes:
        name: The name of the server in messages.
        address: The address that its requests go to, which kept credentials are for.
        requirements: The credentials that the operation needs; one of the entries is enough.
        schemes: The security schemes of the document by name.
        credentials: Those of the host.
        is_elsewhere: Whether the address is of another host than the API's. Credentials of the host do not go there.
    """

    name: str
    address: str
    requirements: Sequence[Requirement]
    schemes: Mapping[str, Mapping[str, Any]]
    credentials: Credentials | None = field(repr=False)
    is_elsewhere: bool = False

    @property
    def may_need_consent(self) -> bool:
        """True if some of the required credentials are those of each principal."""
        return any(name in self._stored() for requirement in self.requirements for name in requirement)

    def _stored(self) -> dict[str, KeptCredentials]:
        if self.credentials is None or callable(self.credentials):
            return {}
        credentials: Mapping[str, object] = self.credentials
        return {name: entry for name, entry in credentials.items() if isinstance(entry, KeptCredentials)}

    async def consent_for(self, principal: str) -> Consent | None:
        """Return the consent that a principal must give before the operation can be used for them."""
        first: Consent | None = None
        stored = self._stored()
        for requirement in self._within_reach(cast("Any", self.credentials)):
            lacking = [await stored[name].consent_for(principal, self._key) for name in requirement if name in stored]
            consent = next((needed for needed in lacking if needed is not None), None)
            if consent is None:
                return None
            first = first or consent
        return None if any(not requirement for requirement in self.requirements) else first

    def _within_reach(self, has: Mapping[str, Any]) -> list[Requirement]:
        """Return the requirements for which there are all credentials, those that need none left out."""
        return [entry for entry in self.requirements if entry and all(name in has for name in entry)]

    async def signing(self, principal: str | None, user: str) -> Signing:
        """Return the additions of the credentials to a request, by the first requirement for which all are given.

        Args:
            principal: The principal of the run.
            user: Whose kept credentials are taken.

        Raises:
            RemoteToolError: The operation needs credentials, and the host has none of a kind for this principal.
        """
        credentials = self.credentials
        if not self.requirements or credentials is None:
            return Signing()
        has: Mapping[str, Any] = await self._ask(credentials, principal) or {} if callable(credentials) else credentials
        lacking: CredentialError | None = None
        for requirement in self._within_reach(has):
            try:
                return await self._signed(requirement, has, user)
            except CredentialError as error:
                lacking = lacking or error
        if any(not requirement for requirement in self.requirements):  # it may be asked without any
            return Signing()
        if lacking is not None:
            raise RemoteToolError(self.name, f"it was not called: {lacking}. Call again to be given the link")
        names = " or ".join(" with ".join(f"`{name}`" for name in requirement) for requirement in self.requirements)
        whose = f"`{principal}`" if principal else "this run"
        needs = f"the operation needs credentials, {names}, and the host has none for {whose}"
        raise RemoteToolError(self.name, needs)

    async def _signed(self, requirement: Requirement, has: Mapping[str, Any], user: str) -> Signing:
        headers: dict[str, str] = {}
        query: list[str] = []
        cookies: list[str] = []
        used: dict[str, str] = {}
        for name in requirement:
            value = has[name]
            if isinstance(value, KeptCredentials):
                request = httpx2.Request("GET", self.address)
                used[name] = await self._ask(value.sign, user, self._key, request)
                value = _secret_on(request)
            elif self.is_elsewhere:
                where = urlsplit(self.address).hostname
                mend = "say where it is with `server`, or name that host in `credential_hosts`"
                raise RemoteToolError(
                    self.name, f"the operation is on another host, {where}, which gets none of the credentials; {mend}"
                )
            _sign(self.name, name, self.schemes.get(name, {}), value, headers, query, cookies)
        return Signing(headers, query, cookies, used)

    async def renewed(self, signing: Signing, user: str) -> bool:
        """Renew what the server has refused; return whether there is something else to sign with now."""
        stored = self._stored()
        renewals = [await self._ask(stored[name].renew, user, self._key, used) for name, used in signing.used.items()]
        return any(renewals)

    async def _ask(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Ask the host's code for credentials.

        Raises:
            CredentialError: There are no kept ones of this principal.
            HookError: It raised another error.
        """
        try:
            found = function(*arguments)
            return await found if isawaitable(found) else found
        except BaseException as error:
            if isinstance(error, CredentialError) and function is not self.credentials:
                raise
            raise HookError.of(self.name, "credentials", function, error)  # noqa: B904 -- it has it as its cause

    @property
    def _key(self) -> str:
        """The address by which a store keeps the server's credentials, as `server_key` of that room has it."""
        parts = urlsplit(self.address)
        port: Any = parts.port
        default = {"https": 443, "http": 80}.get(parts.scheme)
        host = (parts.hostname or "").lower()
        name = f"[{host}]" if ":" in host else host
        return f"{parts.scheme}://{name}{f':{port}' if port not in (None, default) else ''}{parts.path.rstrip('/')}"


def _secret_on(request: httpx2.Request) -> str:
    """Return the key or token that was put on a request which had none."""
    for _, secret in request.extensions.values():
        return str(secret)
    before = {name.lower() for name in httpx2.Request("GET", request.url).headers}
    added = next((text for name, text in request.headers.items() if name.lower() not in before), "")
    return added.removeprefix("Bearer ")


def _is_basic(scheme: Mapping[str, Any]) -> bool:
    return scheme.get("type") == "http" and str(scheme.get("scheme")).lower() == "basic"


def credential_problem(scheme: Mapping[str, Any], value: object) -> str:
    """Return the problem of a credential for a security scheme, without the credential; empty for none."""
    if isinstance(value, str | KeptCredentials):
        return "are empty" if value == "" else ""
    if not _is_basic(scheme):
        return f"must be a text, and not a value of the type {type(value).__name__}"
    parts = [*cast("Sequence[object]", value)] if isinstance(value, tuple | list) else []
    if [type(part) for part in parts] == [str, str]:
        return ""
    return "must be a name and a password, as in ('ann', 's3cret')"


def _sign(
    server: str,
    name: str,
    scheme: Mapping[str, Any],
    value: Credential,
    headers: dict[str, str],
    query: list[str],
    cookies: list[str],
) -> None:
    kind = scheme.get("type")
    if problem := credential_problem(scheme, value):
        raise RemoteToolError(server, f"the credentials for `{name}` {problem}")
    if _is_basic(scheme):
        pair = value if isinstance(value, str) else ":".join(value)
        headers["Authorization"] = f"Basic {b64encode((pair if ':' in pair else f'{pair}:').encode()).decode()}"
        return
    value = cast("str", value)
    if not value.isascii() or not value.isprintable():
        raise RemoteToolError(server, f"the credentials for `{name}` have characters that no header can have")
    if kind == "apiKey":
        where, key = scheme.get("in"), str(scheme.get("name"))
        if where == "query":
            query.append(f"{quote(key, safe='')}={quote(value, safe='')}")
        elif where == "cookie":
            cookies.append(f"{quote(key, safe='')}={quote(value, safe='')}")
        else:
            headers[key] = value
    elif kind == "http" and str(scheme.get("scheme")).lower() != "bearer":
        headers["Authorization"] = f"{scheme.get('scheme')} {value}"
    elif kind in ("http", "oauth2", "openIdConnect"):
        headers["Authorization"] = f"Bearer {value}"
    elif kind != "mutualTLS":  # the host's own client has the certificate
        raise RemoteToolError(server, f"the document has no security scheme `{name}` that this can use")
