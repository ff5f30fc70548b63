"""HTTP: checks of requests, bearer tokens, and the server itself. Needs the extra `console` or `mcp`."""

from toolcrib._extras import Extra

with Extra("a server over HTTP", "mcp", ("anyio", "h11", "starlette", "uvicorn")):
    from toolcrib.serving.http._checks import (
        BodyDeadline,
        HttpGuard,
        Site,
        TokenTable,
        TrustedProxies,
        check_tokens,
        is_loopback,
        refusal,
    )
    from toolcrib.serving.http._front_end_app import FindPrincipal, FrontEndProtocol, front_end_app, parse_body
    from toolcrib.serving.http._server import ClosableApp, HttpLimits, Listener, listen, serve_app

__all__ = [
    "BodyDeadline",
    "ClosableApp",
    "FindPrincipal",
    "FrontEndProtocol",
    "HttpGuard",
    "HttpLimits",
    "Listener",
    "Site",
    "TokenTable",
    "TrustedProxies",
    "check_tokens",
    "front_end_app",
    "is_loopback",
    "listen",
    "parse_body",
    "refusal",
    "serve_app",
]
