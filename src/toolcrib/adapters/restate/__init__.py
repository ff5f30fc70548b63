"""Restate: turns that outlive their process, on a Restate server. The extra `restate`."""

from __future__ import annotations

from toolcrib._extras import Extra
from toolcrib.durable import DurableFailure, RetryPolicy

with Extra("durable work on Restate", "restate", ("httpx2", "hypercorn", "restate")):
    from toolcrib.adapters.restate._agent import RestateAgent
    from toolcrib.adapters.restate._client import RestateClient, RestateTurn
    from toolcrib.adapters.restate._handle import RestateHandle
    from toolcrib.adapters.restate._worker import endpoint, serve

__all__ = [
    "DurableFailure",
    "RestateAgent",
    "RestateClient",
    "RestateHandle",
    "RestateTurn",
    "RetryPolicy",
    "endpoint",
    "serve",
]
