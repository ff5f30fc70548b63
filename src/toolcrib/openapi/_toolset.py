"""Toolset of an OpenAPI document."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

from toolcrib._numbers import count_text
from toolcrib.errors import DocumentError, SchemaError, ToolConstraintError, refuse_unknown_options
from toolcrib.openapi._credentials import Credentials, credential_problem
from toolcrib.openapi._document import Document, read_document
from toolcrib.openapi._operations import routes_of, schemes_of
from toolcrib.openapi._options import Approval, Choice, OpenApiOptions, Options, chosen, require_values
from toolcrib.openapi._sending import Sender
from toolcrib.openapi._servers import require_variables
from toolcrib.openapi._texts import operation_names
from toolcrib.openapi._tool import Api, OperationTool
from toolcrib.toolsets import Toolset

_log = logging.getLogger("toolcrib.openapi")
_OF_OTHERS = {  # what others call an option, and where it is here
    "requires_approval": "approval",
    **dict.fromkeys(("api_key", "auth", "token"), "credentials"),
    **dict.fromkeys(("base_url", "url"), "server"),
    **dict.fromkeys(("allowed_tools", "operations", "route_maps", "tags", "tool_names", "tools"), "include"),
}


def toolset(
    document: str | Path | Mapping[str, Any],
    *,
    prefix: str = "",
    include: Choice | None = None,
    exclude: Choice = (),
    approval: Approval = "writes",
    server: str | int | None = None,
    credentials: Credentials | None = None,
    **keywords: Unpack[OpenApiOptions],
) -> Toolset:
    """Return a toolset with a tool for each operation of an OpenAPI document, of version 3.0 or 3.1.

    The document is read at once. Operations that only read (`GET`, `HEAD`, `OPTIONS`) have the effect `none`, others
    `execute`. Arguments are checked against the document before anything is sent.

    Args:
        document: A path or an address of JSON or YAML, or the document as a dict.
        prefix: The beginning of each tool's name.
        include: The operations that become tools, by tag, path and name; all when None.
        exclude: Those that do not.
        approval: Those that need approval: `"writes"`, unless the host says otherwise, are all that do not only read.
        server: An address in the place of the document's, or which of its servers it is.
        credentials: By the name of the document's security scheme; or a function of the principal of the run.
        keywords: The other fields of `Options`.

    Raises:
        DocumentError: The document cannot be read or used.
        ToolConstraintError: An option names an operation that the document does not have.
        TypeError: An option is unknown.
    """
    refuse_unknown_options("toolset()", keywords, Options.__dataclass_fields__, _OF_OTHERS)
    options = Options(
        prefix=prefix,
        include=include,
        exclude=exclude,
        approval=approval,
        server=server,
        credentials=credentials,
        **keywords,
    )
    require_values(options)
    read = read_document(document, options.allow_refs)
    schemes = _checked_schemes(read, credentials)
    require_variables(read, options.variables)
    refused: dict[str, list[str]] = {}  # by problem

    def refuse(place: str, error: Exception) -> None:
        is_known = isinstance(error, DocumentError)
        problem = error.problem if is_known else f"describes it in a way that cannot be read: {error}"
        refused.setdefault(problem, []).append(place)
        if options.refused == "raise":
            raise _refused(read, problem, [place]) from error

    routes = list(routes_of(read, refuse))
    names = operation_names([(route.operation_id, route.method, route.path) for route in routes], prefix)
    operations = {route.operation(name): route for name, route in zip(names, routes, strict=True)}
    wanted = chosen(operations, options)
    if not wanted and not refused:
        raise read.error("has no operation that could become a tool; look at `include` and `exclude`")
    name = options.name or read.title
    headers, max_bytes = dict(options.headers), options.max_bytes
    sender = Sender(name, headers, options.timeout, max_bytes, options.retries, options.client, options.clock)
    api = Api(read, options, schemes, sender)
    tools: list[Any] = []
    for operation in wanted:
        try:
            tools.append(OperationTool(api, operations[operation], operation).tool())
        except (DocumentError, SchemaError, AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
            refuse(operation.name, error)  # a document may be anything; its other operations can be used
    if not tools and len(refused) == 1:
        raise read.error(f"has no operation that can be used: each {next(iter(refused))}")
    for problem, operations_left in refused.items():
        _log.error("%s. It is left out of the toolset.", _refused(read, problem, operations_left))
    if not tools:
        raise read.error("has no operation that can be used; the log of `toolcrib.openapi` says why")
    return Toolset(tools, toolset_id=name)


def _refused(document: Document, problem: str, names: Sequence[str]) -> DocumentError:
    """Return the error about the operations that have one problem."""
    others = f" (and {count_text(len(names) - 1, 'other')})" if len(names) > 1 else ""
    return document.error(f"and its operation `{names[0]}`{others}: it {problem}")


def _checked_schemes(document: Document, credentials: Credentials | None) -> Mapping[str, Mapping[str, Any]]:
    """Return the security schemes of a document, when the credentials are those of its schemes.

    Raises:
        ToolConstraintError: The document does not have a scheme, or it takes another kind of credential.
        TypeError: They are not given by scheme.
    """
    schemes = schemes_of(document)
    if credentials is None or callable(credentials):
        return schemes
    if not isinstance(credentials, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] -- a host's value
        mend = "give them by security scheme, as in credentials={'key': 's3cret'}, or a function of the principal"
        raise TypeError(f"openapi.toolset: credentials is a value of the type {type(credentials).__name__}; {mend}")
    for name, credential in credentials.items():
        if name not in schemes:
            problem = "`credentials` has it, and the document has no such security scheme"
            raise ToolConstraintError(name, problem, tuple(schemes))
        if problem := credential_problem(schemes[name], credential):
            raise ToolConstraintError(name, f"the credentials for it {problem}")
    return schemes
