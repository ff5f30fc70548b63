"""OpenAPI: the operations of an HTTP API as a toolset. Needs the extra `openapi`.

This package reads a document, makes a tool of each operation, and sends a request for each call. Gates, limits and the
record of calls are in the pipeline.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib._extras import Extra
from toolcrib._lazy_names import lazy_names

with Extra("reading an OpenAPI document", "openapi", ("httpx2", "yaml", "jsonschema", "referencing")):
    import httpx2 as _httpx2
    import yaml as _yaml

    from toolcrib.jsonschema import checker as _checker

from toolcrib.openapi._credentials import Credential, Credentials, CredentialsOf, KeptCredentials
from toolcrib.openapi._operations import Operation
from toolcrib.openapi._options import Approval, Choice, OpenApiOptions, Options
from toolcrib.openapi._pages import Pages
from toolcrib.openapi._toolset import toolset

__all__ = [
    "Approval",
    "Choice",
    "Credential",
    "Credentials",
    "CredentialsOf",
    "KeptCredentials",
    "OpenApiOptions",
    "Operation",
    "Options",
    "Pages",
    "toolset",
]

del _checker, _httpx2, _yaml

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, {})
