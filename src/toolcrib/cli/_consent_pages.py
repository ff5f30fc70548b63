"""Pages of consent beside a gateway of the command line. Needs the extra `credentials`."""

from __future__ import annotations

import errno
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from typing import Any
from urllib.parse import urlsplit

from toolcrib.approvals import ReviewableApprovalStore
from toolcrib.cli._formatting import say
from toolcrib.credentials import SqliteCredentialStore
from toolcrib.gateway import CredentialPlace
from toolcrib.serving.http import is_loopback
from toolcrib.serving.http.consent import consent_routes, consent_server


class ConsentPages:
    """The consent pages of a gateway.

    Args:
        options: Where credentials are kept, and the address of the pages.
        approvals: Where suspended calls wait.

    Attributes:
        is_local: Whether they are of this machine, and not of the gateway's own address.
    """

    def __init__(self, options: CredentialPlace, approvals: ReviewableApprovalStore) -> None:
        self._options, self._approvals = options, approvals
        self._store = SqliteCredentialStore(options.database)
        self.is_local = is_loopback(urlsplit(options.pages).hostname or "")

    def routes(self) -> list[Any]:
        """Return the routes of the pages, for the gateway's own address."""
        return consent_routes(urlsplit(self._options.pages).path, self._store, self._approvals)

    async def beside(self, work: Coroutine[Any, Any, None]) -> None:
        """Serve the pages on this machine while the work is done."""
        async with AsyncExitStack() as stack:
            try:
                await stack.enter_async_context(consent_server(self._options.pages, self._store, self._approvals))
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    work.close()
                    raise
                say(f"another program serves {self._options.pages}; a gateway with the same files does it for this one")
            await work
