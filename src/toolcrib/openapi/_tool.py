"""Tool of one operation: its schema and gates, and the request that a call is."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import urlsplit

from toolcrib.calls import Consent
from toolcrib.errors import ModelRetry, RemoteToolError
from toolcrib.hooks import ambient_context
from toolcrib.jsonschema.checker import checks_of
from toolcrib.openapi._answers import value_of
from toolcrib.openapi._credentials import Signer
from toolcrib.openapi._document import Document
from toolcrib.openapi._operations import SAFE, Endpoint, Operation, Route, endpoint_of, secret_parameters
from toolcrib.openapi._options import Options
from toolcrib.openapi._pages import Paging, page_schema, paging_of
from toolcrib.openapi._requests import address_of, prepared
from toolcrib.openapi._schemas import Schemas
from toolcrib.openapi._sending import IDEMPOTENT, Sender
from toolcrib.openapi._servers import is_elsewhere, leaders_of, server_of
from toolcrib.openapi._texts import brief
from toolcrib.pipeline import local_user
from toolcrib.schema import RunContext, ToolSpec
from toolcrib.tools import BaseTool, Tool, ToolOptions

_log = logging.getLogger("toolcrib.openapi")
_HINTS: Mapping[bool, tuple[str, ...]] = {True: ("read_only",), False: ()}


class Api:
    """The parts that all operations of a document share.

    Attributes:
        schemes: The security schemes by name.
        secret: The parameters that carry credentials, by place and name.
    """

    def __init__(
        self, document: Document, options: Options, schemes: Mapping[str, Mapping[str, Any]], sender: Sender
    ) -> None:
        self.document, self.options, self.schemes, self.sender = document, options, schemes, sender
        self.secret = secret_parameters(schemes)
        self.requests, self.answers = Schemas(document, "request"), Schemas(document, "answer")


class OperationTool(BaseTool):
    """An operation of a document as a tool."""

    def __init__(self, api: Api, route: Route, operation: Operation) -> None:
        self._api, self._route, self._operation = api, route, operation
        self._endpoint: Endpoint = endpoint_of(api.document, route, api.requests, api.secret)
        options = api.options
        servers = self._endpoint.servers
        self._server = server_of(api.document, servers, options.server, options.variables)
        self._leaders = leaders_of(api.document, servers, options.server, options.variables)
        self._signer = Signer(
            api.sender.server,
            self._server,
            self._endpoint.security,
            api.schemes,
            options.credentials,
            servers is not None
            and urlsplit(self._server).hostname not in options.credential_hosts
            and is_elsewhere(api.document, self._server, options.server, options.variables),
        )
        paging = None if options.pages == "off" else paging_of(api.document, self._endpoint, route.method)
        self._paging: Paging | None = paging
        self._check: Any = None
        self._shown = api.requests.shown(self._endpoint.schema, options.max_schema_chars)

    def tool(self) -> Tool[..., Any]:
        """Return it as a tool."""
        operation, options = self._operation, self._api.options
        spec = ToolSpec.from_schema(
            self._call,
            self._shown,
            name=operation.name,
            description=self._description(),
            returns=self._returns(),
            check=self._checked,
            whole=self._whole_schema,
        )
        spec.is_elsewhere = True
        api_tool: Tool[..., Any] = Tool(
            spec,
            ToolOptions(
                tags=frozenset({"openapi", *_HINTS[operation.method in SAFE], *operation.tags}),
                requires_approval=options.needs_approval(operation),
                effect=options.effect_of(operation),
                source=options.source_of(operation),
                idempotent=operation.method in IDEMPOTENT,
                max_result_chars=options.max_result_chars,
            ),
            source=self,
        )
        api_tool.origin = f"{operation.method} {operation.path} of the OpenAPI document `{self._api.document.title}`"
        if spec.wrong_keywords:
            text = "the schema of %s is wrong at %s, which is left out and not checked"
            _log.warning(text, api_tool.origin, spec.wrong_keywords)
        return api_tool

    def get_definition(self) -> Mapping[str, Any]:
        """Return the request that it makes, and what the document says of it."""
        spec = self._route.spec
        return {"request": self._request_line(), "texts": [spec.get("summary"), spec.get("description")]}

    def get_identity(self) -> Mapping[str, Any]:
        """Return the address of the API."""
        return {"url": self._server}

    @property
    def may_need_consent(self) -> bool:
        """True if the operation needs credentials of each principal."""
        return self._signer.may_need_consent

    async def get_consent(self, ctx: RunContext[Any]) -> Consent | None:
        """Return the consent that the principal must give before the API is used for them."""
        return await self._signer.consent_for(_user_of(ctx))

    def get_call_metadata(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the request that a call makes, without its credentials."""
        method, path = self._route.method, self._route.path
        try:
            return {"request": f"{method} {address_of(self._server, path, self._endpoint, arguments)}"}
        except ModelRetry as error:
            return {"request": f"{self._request_line()} (it cannot be sent: {error})"}

    def get_listing(self) -> Mapping[str, Any]:
        """Return its title and hints; nothing holds answers to the document's word, which is often not quite true."""
        operation = self._operation
        hints = {
            "readOnlyHint": operation.method in SAFE,
            "destructiveHint": operation.method not in SAFE,
            "idempotentHint": operation.method in IDEMPOTENT,
            "openWorldHint": True,
        }
        title = {"title": brief(operation.summary, 80)} if operation.summary else {}
        return {**title, "annotations": hints, "outputSchema": {"type": "object"}}

    def _request_line(self) -> str:
        return f"{self._route.method} {self._server.rstrip('/')}{self._route.path}"

    def _description(self) -> str:
        description = self._api.options.description_of(self._operation)
        if description is not None:
            return description
        most, spec = self._api.options.max_description_chars, self._route.spec
        summary, text = brief(spec.get("summary"), most), brief(spec.get("description"), most)
        first = "Deprecated. " if self._operation.deprecated else ""
        ended = summary if not summary or summary.endswith((".", "!", "?")) else f"{summary}."
        body = text if text.startswith(summary.rstrip(".")) else f"{ended} {text}".strip()
        return brief(f"{first}{body or self._request_line()}", most)

    def _returns(self) -> dict[str, Any] | None:
        answer, api = self._endpoint.answer, self._api
        returned: dict[str, Any] | None = None
        if answer is not None:
            returned = api.answers.shown(api.answers.converted(*answer), api.options.max_schema_chars)
        return returned if self._paging is None else page_schema(returned)

    def _checked(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Hold arguments against all of the document's schema, also where a model was shown a part of it."""
        if self._check is None:
            self._check = checks_of(self._operation.name, self._whole_schema())
        return self._check(arguments)

    def _whole_schema(self) -> dict[str, Any]:
        return self._api.requests.with_definitions(self._endpoint.schema)

    async def _call(self, /, **arguments: Any) -> Any:
        value, following = await self._page(arguments)
        if self._paging is None:
            return value
        pages = self._api.options.pages
        items = _items_of(value)
        for _ in range(pages - 1 if isinstance(pages, int) else 0):
            if following is None or items is None:
                break
            more, further = await self._page(following)
            added = _items_of(more)
            if added is None:
                break
            items += added
            added[:] = items  # all else is what the last page says, such as its cursor
            value, following = more, further
        return {"page": value, "next": following}

    async def _page(self, arguments: Mapping[str, Any]) -> tuple[Any, dict[str, Any] | None]:
        api, route = self._api, self._route
        ctx = ambient_context()
        principal: str | None = None if ctx is None or ctx.run is None else ctx.run.principal
        try:
            user = _user_of(ctx)
            signing = await self._signer.signing(principal, user)
            request = prepared(route.method, self._server, route.path, self._endpoint, arguments, signing)
            answer = await api.sender.answer(request, self._leaders)
            if answer.status == 401 and signing.used and await self._signer.renewed(signing, user):
                signing = await self._signer.signing(principal, user)
                request = prepared(route.method, self._server, route.path, self._endpoint, arguments, signing)
                answer = await api.sender.answer(request, self._leaders)
            value = value_of(api.sender.server, route.method, route.path, answer)
        except RecursionError:
            raise RemoteToolError(api.sender.server, "the arguments are nested too deep to be sent") from None
        paging = self._paging
        return value, None if paging is None else paging.following(arguments, answer, value)


def _user_of(ctx: RunContext[Any] | None) -> str:
    """Return whose kept credentials are taken: the run's principal's, or those of the user of this process."""
    principal = None if ctx is None or ctx.run is None else ctx.run.principal
    return principal or local_user()


def _items_of(value: Any) -> list[Any] | None:
    """Return the list that a page is, or has as its only one; None where that is not plain."""
    if isinstance(value, list):
        return cast("list[Any]", value)
    if not isinstance(value, dict):
        return None
    lists = [cast("list[Any]", part) for part in cast("dict[str, Any]", value).values() if isinstance(part, list)]
    return lists[0] if len(lists) == 1 else None
