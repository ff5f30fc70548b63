"""A server made from an OpenAPI document: it holds each request against the document, and reads it by openapi-core.

It answers what the test says, and keeps the requests as they came.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote

import httpx2
from openapi_core import OpenAPI
from openapi_core.testing import MockRequest
from werkzeug.datastructures import ImmutableMultiDict

from toolcrib import Outcome, Pipeline, Run, ToolCall, Toolset
from toolcrib.openapi import toolset

ADDRESS = "http://api.test/v1"
OK: Mapping[str, Any] = {"200": {"description": "fine"}}


def document(paths: Mapping[str, Any], version: str = "3.1.0", **parts: Any) -> dict[str, Any]:
    """Return a document with these paths, and a server."""
    info = {"title": "Stand-in", "version": "1"}
    return {"openapi": version, "info": info, "servers": [{"url": ADDRESS}], "paths": dict(paths), **parts}


def operation(name: str, parameters: list[Any] | None = None, **parts: Any) -> dict[str, Any]:
    """Return an operation that answers 200."""
    return {"operationId": name, "parameters": parameters or [], "responses": OK, **parts}


def parameter(name: str, where: str, schema: Any, **parts: Any) -> dict[str, Any]:
    return {"name": name, "in": where, "required": where == "path", "schema": schema, **parts}


Answers = Callable[[httpx2.Request], httpx2.Response]


def fine(request: httpx2.Request) -> httpx2.Response:
    return httpx2.Response(200, json={"ok": True})


@dataclass
class StandIn:
    """A server made from a document.

    Attributes:
        requests: As they came.
        read: What openapi-core reads of each: parameters by place, and the body.
        errors: Where they do not fit the document.
    """

    document: dict[str, Any]
    answers: Answers = fine
    requests: list[httpx2.Request] = field(default_factory=list)
    read: list[dict[str, Any]] = field(default_factory=list)
    errors: list[Any] = field(default_factory=list)
    checks: bool = True

    def __post_init__(self) -> None:
        self.client = httpx2.AsyncClient(transport=httpx2.MockTransport(self._answered))
        self._api = OpenAPI.from_dict(self.document) if self.checks else None

    def _answered(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        if self._api is not None:
            self._note(self._api, request)
        return self.answers(request)

    def _note(self, api: OpenAPI, request: httpx2.Request) -> None:
        path, _, query = request.url.raw_path.decode("ascii").partition("?")
        said = request.headers.get("cookie", "")
        result = api.unmarshal_request(
            MockRequest(
                f"http://{request.url.host}",
                request.method.lower(),
                path,
                args=ImmutableMultiDict(parse_qsl(query, keep_blank_values=True)),
                headers=dict(request.headers),
                cookies={name: unquote(text) for name, _, text in (part.partition("=") for part in said.split("; "))},
                data=request.content,
                content_type=request.headers.get("content-type", ""),
            )
        )
        self.errors += result.errors
        if not result.errors:
            places = ("path", "query", "header", "cookie")
            found = {place: dict(getattr(result.parameters, place)) for place in places}
            self.read.append({**found, "body": result.body})

    def tools(self, **options: Any) -> Toolset:
        """Return the tools of the document, which ask this server."""
        return toolset(self.document, client=self.client, **{"approval": False, **options})

    async def call(self, name: str, arguments: Mapping[str, Any], run: Run | None = None, **options: Any) -> Outcome:
        """Make one call through the pipeline."""
        return await Pipeline(self.tools(**options)).run(ToolCall(name, dict(arguments)), run or Run())

    @property
    def last(self) -> httpx2.Request:
        return self.requests[-1]
