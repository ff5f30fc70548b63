"""Operations of an OpenAPI document: what each takes, where it goes, who may make it and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, cast

from toolcrib.errors import DocumentError
from toolcrib.openapi._bodies import Body, body_of, is_json
from toolcrib.openapi._document import Document
from toolcrib.openapi._schemas import Schemas
from toolcrib.openapi._shapes import list_of, mapping_of
from toolcrib.openapi._styles import Parameter, style_of
from toolcrib.openapi._texts import argument_name, brief

SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
METHODS = ("GET", "PUT", "POST", "DELETE", "OPTIONS", "HEAD", "PATCH")
_OTHERS = ("trace", "query", "additionalOperations")  # one answers with what it was sent, the others are of OpenAPI 3.2
_MOST_PARAMETERS = 1_000  # of one operation
_PLACES = ("path", "query", "header", "cookie")
_NOT_ARGUMENTS = frozenset(  # header parameters that OpenAPI ignores, and those that say where a request goes or ends
    {"accept", "authorization", "content-type"}
    | {"connection", "content-length", "cookie", "expect", "host", "keep-alive", "proxy-authorization", "te", "trailer"}
    | {"transfer-encoding", "upgrade"}
)

Requirement: TypeAlias = Mapping[str, Sequence[str]]
"""Security schemes by name, each with its scopes; all of them are needed."""


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation, as an option of `toolset` is given it to choose by.

    Attributes:
        name: Its tool's name.
        method: In capitals: `GET`.
        path: As the document has it: `/users/{id}`.
        operation_id: The document's name for it; may be empty.
        tags: The document's groups that it is in.
        summary: Its purpose, on one line.
        deprecated: Whether the document says that it is going away.
        effect: Its effect, by its method: `none` for `GET`, `HEAD` and `OPTIONS`, which read, else `execute`.
    """

    name: str
    method: str
    path: str
    operation_id: str = ""
    tags: tuple[str, ...] = ()
    summary: str = ""
    deprecated: bool = False
    effect: Literal["none", "execute"] = "execute"


@dataclass(frozen=True, slots=True)
class Route:
    """One method of one path, as the document has it.

    Attributes:
        items: The path's own entry, and the one that it refers to: what all of its methods share. Each has the address
            by which references in it are read.
        spec: The operation, which may stand elsewhere in the document.
        base: The address by which references in the operation are read.
    """

    method: str
    path: str
    items: tuple[tuple[Mapping[str, Any], str], ...]
    spec: Mapping[str, Any]
    base: str

    @property
    def operation_id(self) -> str:
        """The document's name for it; empty where it has none."""
        found = self.spec.get("operationId")
        return found if isinstance(found, str) else ""

    def operation(self, name: str) -> Operation:
        """Return it as options are given it."""
        return Operation(
            name,
            self.method,
            self.path,
            self.operation_id,
            tuple(map(str, list_of(self.spec.get("tags")))),
            brief(self.spec.get("summary") or self.spec.get("description"), 200),
            self.spec.get("deprecated") is True,
            "none" if self.method in SAFE else "execute",
        )


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The parts of an operation's request, and its answer.

    Attributes:
        parameters: By the name of the argument.
        servers: The addresses that the operation has in the place of the document's; None where it has none.
        security: The requirements, one of which is enough; none of them for an operation that needs no credentials.
        accepts: The media types of its answers, those of success.
        answer: The schema of its answer with its place, if it is JSON.
        links: Whether its answers have a `Link` header.
    """

    parameters: Mapping[str, Parameter]
    body: Body | None
    servers: Sequence[Any] | None
    security: tuple[Requirement, ...]
    accepts: tuple[str, ...]
    answer: tuple[Any, str] | None
    links: bool
    schema: dict[str, Any] = field(repr=False)


def routes_of(document: Document, refuse: Callable[[str, DocumentError], None]) -> Iterator[Route]:
    """Yield each method of each path of a document; one that cannot be read is refused."""
    for path, item in mapping_of(document.root.get("paths")).items():
        if not path.startswith("/"):
            continue  # an extension
        items = [(mapping_of(item), document.address)]
        try:
            items += _referred(document, item)
        except DocumentError as error:
            refuse(path, error)
        for method in [*map(str.lower, METHODS), *_OTHERS]:
            found = next(((methods[method], base) for methods, base in items if mapping_of(methods.get(method))), None)
            if found is None:
                continue
            try:
                yield _route(document, path, method, tuple(items), *found)
            except DocumentError as error:
                refuse(f"{method.upper()} {path}", error)


def _referred(document: Document, item: Any) -> list[tuple[Mapping[str, Any], str]]:
    place = document.place(item)
    if place.value is item:
        return []
    if not (found := mapping_of(place.value)):
        raise document.error("refers to something that is not an entry of a path")
    return [(found, place.base)]


def _route(
    document: Document, path: str, method: str, items: tuple[tuple[Mapping[str, Any], str], ...], spec: Any, base: str
) -> Route:
    if method in _OTHERS:
        raise document.error("has a method that no tool is made of")
    place = document.place(spec, base)
    if not mapping_of(place.value):
        raise document.error("refers to something that is not an operation")
    return Route(method.upper(), path, items, mapping_of(place.value), place.base)


def endpoint_of(document: Document, route: Route, schemas: Schemas, secret: Collection[tuple[str, str]]) -> Endpoint:
    """Return the endpoint of an operation, which creates its requests.

    Args:
        document: The document.
        route: The operation.
        schemas: The document's schemas of requests.
        secret: The parameters that carry credentials, by place and name.

    Raises:
        DocumentError: Something in it cannot be read.
    """
    parameters = _parameters(document, route, schemas, secret)
    body = body_of(document, route.spec.get("requestBody"), route.base, schemas)
    accepts, answer, links = _answers(document, route)
    security: Any = route.spec.get("security", document.root.get("security"))
    parts = (route.spec, *(item for item, _ in route.items))
    properties = {name: parameter.described() for name, parameter in parameters.items()}
    required = [name for name, parameter in parameters.items() if parameter.required]
    if body is not None:
        properties["body"] = body.described()
        required += ["body"] if body.required else []
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return Endpoint(
        parameters=parameters,
        body=body,
        servers=next((found for part in parts if (found := list_of(part.get("servers")))), None),
        security=tuple(cast("Any", entry) for entry in list_of(security) if isinstance(entry, Mapping)),
        accepts=accepts,
        answer=answer,
        links=links,
        schema=({**schema, "required": required} if required else schema),
    )


def _parameters(
    document: Document, route: Route, schemas: Schemas, secret: Collection[tuple[str, str]]
) -> dict[str, Parameter]:
    found: dict[tuple[str, str], tuple[Mapping[str, Any], str]] = {}
    shared = [(declared, base) for item, base in reversed(route.items) for declared in list_of(item.get("parameters"))]
    for declared, base in (*shared, *((declared, route.base) for declared in list_of(route.spec.get("parameters")))):
        place = document.place(declared, base)
        spec = mapping_of(place.value)
        if spec:
            found[str(spec.get("in")), str(spec.get("name"))] = spec, place.base
    if len(found) + route.path.count("{") > _MOST_PARAMETERS:
        raise document.error(f"has more than {_MOST_PARAMETERS} parameters")
    named: dict[str, Parameter] = {}
    for (where, name), (spec, base) in found.items():
        key = name.lower() if where == "header" else name
        is_ignored = (where == "header" and key in _NOT_ARGUMENTS) or (where, key) in secret
        if where not in _PLACES:
            document.log_wrong(f"`in` of {where!r:.60} of a parameter")
        elif not is_ignored:
            argument = argument_name(name, where, named | {"body": None})
            named[argument] = style_of(document, schemas, spec, base)
    for name in [part.partition("}")[0] for part in route.path.split("{")[1:] if "}" in part]:
        if not any(known.place == "path" and known.name == name for known in named.values()):
            argument = argument_name(name, "path", named | {"body": None})
            named[argument] = Parameter(name, "path", {"type": "string"}, required=True)
    return {key: known for key, known in named.items() if known.place != "path" or f"{{{known.name}}}" in route.path}


def secret_parameters(schemes: Mapping[str, Mapping[str, Any]]) -> set[tuple[str, str]]:
    """Return the parameters that carry credentials, by place and name; a model does not give them."""
    secrets: set[tuple[str, str]] = set()
    for scheme in schemes.values():
        if scheme.get("type") == "apiKey":
            where, name = str(scheme.get("in")), str(scheme.get("name"))
            secrets.add((where, name.lower() if where == "header" else name))
    return secrets


def schemes_of(document: Document) -> dict[str, Mapping[str, Any]]:
    """Return the security schemes of a document by name."""
    table = mapping_of(mapping_of(document.root.get("components")).get("securitySchemes"))
    return {name: mapping_of(document.place(scheme).value) for name, scheme in table.items()}


def _answers(document: Document, route: Route) -> tuple[tuple[str, ...], tuple[Any, str] | None, bool]:
    """Return the media types of success, the schema of a JSON answer, and whether a header links to the next page."""
    table = mapping_of(route.spec.get("responses"))
    good = [code for code in map(str, table) if code.startswith("2")] or ["default"]
    kinds: dict[str, None] = {}
    answer: tuple[Any, str] | None = None
    several, links = False, False
    for code in good:
        place = document.place(table.get(code), route.base)
        spec = mapping_of(place.value)
        links = links or any(name.lower() == "link" for name in mapping_of(spec.get("headers")))
        content = mapping_of(spec.get("content"))
        for kind, media in content.items():
            kinds[kind] = None
            if is_json(kind) and "schema" in mapping_of(media):
                several = several or (answer is not None and answer[0] is not media["schema"])
                answer = media["schema"], place.base
            else:
                several = several or not is_json(kind)
        several = several or not content
    return tuple(kinds), None if several else answer, links
