"""Restate: turns that outlive their process, on a Restate server. The extra `restate`."""

from __future__ import annotations

from toolcrib.errors import MissingExtraError

try:
    import httpx2 as _httpx2
    import hypercorn as _hypercorn
    import restate as _restate
except ModuleNotFoundError as error:
    if error.name not in ("httpx2", "hypercorn", "restate"):
        raise
    raise MissingExtraError("durable work on Restate", "restate") from error

from toolcrib.adapters.restate._agent import RestateAgent
from toolcrib.adapters.restate._client import RestateClient, RestateTurn
from toolcrib.adapters.restate._handle import RestateHandle
from toolcrib.adapters.restate._worker import endpoint, serve
from toolcrib.durable import DurableFailure

__all__ = ["DurableFailure", "RestateAgent", "RestateClient", "RestateHandle", "RestateTurn", "endpoint", "serve"]

del _httpx2, _hypercorn, _restate
