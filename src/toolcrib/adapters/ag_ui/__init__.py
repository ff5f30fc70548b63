"""AG-UI: a session's runs, calls and approvals as events of the protocol, for its clients in people's own front ends.

This package translates requests to inputs of a session, and its events to those of the protocol. It has no state.
The extra `ag-ui`.
"""

from __future__ import annotations

from toolcrib._extras import Extra

with Extra("AG-UI", "ag-ui", ("ag_ui", "anyio", "h11", "starlette", "uvicorn")):
    from toolcrib.adapters.ag_ui._app import ag_ui_app

__all__ = ["ag_ui_app"]
