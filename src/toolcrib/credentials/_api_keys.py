"""API keys: one for each principal, kept encrypted; or one of the host's for all of them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

import httpx2

from toolcrib.calls import Consent
from toolcrib.credentials._auth import QUERY, host_key, pages_address
from toolcrib.credentials._store import KEY, CredentialStore, link_for
from toolcrib.errors import CredentialError, explain_options

_HEADER = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)


@explain_options()
class ApiKeys:
    """API keys of principals.

    Args:
        store: Where they are kept.
        pages: The address of the consent pages, where a principal enters a key; none when empty.
        header: The header that the key is sent in.
        prefix: The text before the key there.
        query: The parameter of the address that the key is sent in, in place of the header.

    Attributes:
        list_as: The principal whose key lists what a server has; the first who has one when None.
        in_query: Whether the key is sent in the address.

    Raises:
        ValueError: A key would be sent in two places, the header has a name that no header can have, or the pages have
            no address.
    """

    def __init__(
        self,
        store: CredentialStore,
        *,
        pages: str = "",
        header: str = "Authorization",
        prefix: str | None = None,
        query: str = "",
        list_as: str | None = None,
    ) -> None:
        if query and (header != "Authorization" or prefix is not None):
            raise ValueError("ApiKeys: a key is sent in a header or in the address; leave out `header`, or `query`")
        if _HEADER.fullmatch(header) is None:
            raise ValueError(f"ApiKeys: header is {header!r}; give the name of a header, as in 'X-Api-Key'")
        self._pages = pages_address("ApiKeys", pages)
        self._store, self._header, self._query = store, header, query
        self._prefix = ("Bearer " if header.lower() == "authorization" else "") if prefix is None else prefix
        self.list_as, self.in_query = list_as, bool(query)

    async def add(self, principal: str, server: str, key: str) -> None:
        """Keep a principal's key for a server, in place of an older one.

        Raises:
            ValueError: It is not a key: it is empty, or has a line break in it; the principal has no name, or the
                server no address.
        """
        await self._store.write(KEY, *host_key(principal, server), {"key": checked_key(key)})

    async def consent_for(self, principal: str, server: str) -> Consent | None:
        """Return where a principal enters their key, unless there is one."""
        if await self._store.read(KEY, principal, server) is not None:
            return None
        reason = f"{principal} has no API key for {server}"
        if not self._pages:
            return Consent(f"{reason}; it is added with `toolcrib credentials add {server}`", "", principal, server)
        url = await link_for(self._store, self._pages, principal, server, {"kind": KEY})
        return Consent(f"{reason}; they enter it at the link", url, principal, server)

    async def sign(self, principal: str, server: str, request: httpx2.Request) -> str:
        """Put a principal's key on a request."""
        row = await self._store.read(KEY, principal, server)
        if row is None:
            raise CredentialError(server, f"{principal} has no API key")
        key: str = row.value["key"]
        if self._query:
            request.extensions[QUERY] = (self._query, key)
        else:
            request.headers[self._header] = f"{self._prefix}{key}"
        return hashlib.sha256(key.encode()).hexdigest()

    async def renew(self, principal: str, server: str, used: str) -> bool:
        """Return whether the key is another one by now."""
        row = await self._store.read(KEY, principal, server)
        return row is not None and hashlib.sha256(row.value["key"].encode()).hexdigest() != used

    async def holders(self, server: str) -> tuple[str, ...]:
        """Return the principals who have a key."""
        return await holders_in(self._store, "key", server)

    async def forget(self, principal: str, server: str) -> bool:
        """Remove a key; return whether there was one."""
        return await self._store.take(KEY, *host_key(principal, server)) is not None


async def holders_in(store: CredentialStore, kind: str, server: str) -> tuple[str, ...]:
    """Return the principals with a credential of a kind for a server, the oldest first."""
    holders: Sequence[tuple[str, str]] = sorted(
        (credential.since.isoformat(), credential.principal)
        for credential in await store.credentials()
        if (credential.kind, credential.server) == (kind, server)
    )
    return tuple(principal for _, principal in holders)


def checked_key(key: str) -> str:
    """Return a key without the space around it; raises ValueError for an invalid key."""
    key = key.strip()
    if not key or not key.isprintable() or not key.isascii():
        raise ValueError("a key must be printable ASCII text on one line")
    return key
