"""Vercel AI SDK: a session's text, calls and approvals as its UI message stream, for `useChat` and other clients.

This package translates requests to inputs of a session, and its events to chunks of the stream. It has no state.
The extra `vercel-ai`.
"""

from __future__ import annotations

from toolcrib._extras import Extra

with Extra("the Vercel AI SDK", "vercel-ai", ("anyio", "h11", "starlette", "uvicorn")):
    from toolcrib.adapters.vercel_ai._app import vercel_ai_app

__all__ = ["vercel_ai_app"]
