"""TLS settings of the clients that speak HTTP: one for all of a process."""

from __future__ import annotations

import ssl
from functools import cache

import httpx2


@cache
def shared_tls() -> ssl.SSLContext:
    """Return the TLS settings of all clients: reading the certificates takes longer than a request."""
    return httpx2.create_ssl_context()
