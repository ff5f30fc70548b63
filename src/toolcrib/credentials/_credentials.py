"""Protocol of credentials for servers, as an adapter uses them: who lacks consent, and what signs a request."""

from __future__ import annotations

from typing import Any, Final, Protocol
from urllib.parse import urlsplit

import httpx2

from toolcrib.calls import Consent

QUERY: Final = "toolcrib.query"  # the extension of a request with what is put in its address when it is sent


class Credentials(Protocol):
    """Credentials of each principal for servers, which are known by their addresses.

    Attributes:
        list_as: The principal whose access lists what a server has; the first who gives access when None.
        in_query: Whether they are sent in the address: see `PrincipalAuth.client_options`.
    """

    list_as: str | None
    in_query: bool

    async def consent_for(self, principal: str, server: str) -> Consent | None:
        """Return the consent that a principal must give before a server is used for them; None where none is needed.

        Raises:
            CredentialError: Their access cannot be renewed now.
        """
        ...

    async def sign(self, principal: str, server: str, request: httpx2.Request) -> str:
        """Put a principal's credential on a request; return what names the credential for `renew`.

        Raises:
            CredentialError: The principal has no credentials for it.
        """
        ...

    async def renew(self, principal: str, server: str, used: str) -> bool:
        """Renew a credential that a server has refused; return whether there is another one now."""
        ...

    async def holders(self, server: str) -> tuple[str, ...]:
        """Return the principals who have given access to a server, the first first."""
        ...

    async def forget(self, principal: str, server: str) -> bool:
        """Remove a credential, and have it revoked where that is possible; return whether there was one."""
        ...


def server_key(url: str) -> str:
    """Return the address by which a server's credentials are kept: without query, and in one spelling."""
    parts = urlsplit(url)
    port: Any = parts.port
    default = {"https": 443, "http": 80}.get(parts.scheme)
    host = (parts.hostname or "").lower()
    name = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{name}{f':{port}' if port not in (None, default) else ''}{parts.path.rstrip('/')}"
