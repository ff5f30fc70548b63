"""Links to the consent pages: each has a ticket, which stands for one principal and one server."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from typing import Any, Final

from toolcrib.credentials._store import TICKET, CredentialStore, Row

_LINK: Final = "link"  # the ticket that a principal has for a server now
_SECONDS: Final = 7 * 24 * 3600.0  # as long as a suspended call is kept


async def link_for(store: CredentialStore, pages: str, principal: str, server: str, about: Mapping[str, Any]) -> str:
    """Return the link by which a principal consents; the same one while it is valid."""
    fresh = {"ticket": secrets.token_urlsafe(32)}
    ticket: str = (await store.find_or_write(_LINK, principal, server, fresh, _SECONDS)).value["ticket"]
    ticket_data = {**about, "principal": principal, "server": server, "pages": pages}
    await store.write(TICKET, "", name_of(ticket), ticket_data, _SECONDS)
    return f"{pages}/{ticket}"


async def ticket_row(store: CredentialStore, ticket: str) -> Row | None:
    """Return the row of a ticket; None where it is unknown, used or too old."""
    row = await store.read(TICKET, "", name_of(ticket))
    if row is None:
        return None
    link = await store.read(_LINK, row.value["principal"], row.value["server"])
    return row if link is not None and link.value["ticket"] == ticket else None


async def drop_link(store: CredentialStore, principal: str, server: str, ticket: str) -> None:
    """Invalidate a link."""
    await store.take(TICKET, "", name_of(ticket))
    link = await store.read(_LINK, principal, server)
    if link is not None and link.value["ticket"] == ticket:
        await store.swap(_LINK, principal, server, link.version, None)


def name_of(secret: str) -> str:
    """Return the name of a row that a secret leads to: the database does not have the secret itself."""
    return hashlib.sha256(secret.encode()).hexdigest()
