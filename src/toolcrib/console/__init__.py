"""Console: a web page that shows calls and runs as they happen, and on which people answer approval requests.

It reads events and approvals from a database, and runs nothing itself. Needs the extra `console`: jsonschema, starlette
and uvicorn.
"""

from __future__ import annotations

from toolcrib._extras import Extra

with Extra("the console", "console", ("anyio", "h11", "jsonschema", "referencing", "starlette", "uvicorn")):
    from toolcrib.console._app import ConsoleApp, console_app, serve
    from toolcrib.console._options import ConsoleOptions, Role
    from toolcrib.console._webhooks import Notifier, Webhook, webhook_signature
    from toolcrib.console._work_routes import DurableWork

__all__ = [
    "ConsoleApp",
    "ConsoleOptions",
    "DurableWork",
    "Notifier",
    "Role",
    "Webhook",
    "console_app",
    "serve",
    "webhook_signature",
]
