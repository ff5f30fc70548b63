"""Resources and prompts: what a person or an application chooses, made of functions as tools are.

Each is a tool that is not offered to models. A way in that has resources or prompts shows it as one, and reads it by a
call, so that every gate holds for it.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import isawaitable
from typing import Any, Literal, ParamSpec, Protocol, TypeAlias, TypeVar, Unpack, cast, overload
from weakref import WeakSet

from toolcrib.errors import explain_options
from toolcrib.schema import ToolSpec
from toolcrib.tools._base import BaseTool
from toolcrib.tools._options import ToolKeywords, ToolOptions, function_name, only_options
from toolcrib.tools._tool import Tool

P = ParamSpec("P")
R = TypeVar("R")

Completions: TypeAlias = Mapping[
    str, Sequence[str] | Callable[[str, Mapping[str, str]], Sequence[str] | Awaitable[Sequence[str]]]
]
"""Values by argument: those there are, or a function of what was typed and of the other arguments that returns some."""

_VARIABLE = re.compile(r"\{[+#./;?&]?([^{}]+)\}")


class ResourceListener(Protocol):
    """A listener for resources that have changed; called in any thread."""

    def changed(self, uri: str) -> None:
        """Record that a resource has changed."""
        ...


@dataclass(frozen=True, slots=True)
class ResourceOffer:
    """A resource as clients see it.

    Attributes:
        uri: Its URI, or the URIs of a family of resources as a template (RFC 6570), whose variables are arguments.
        listing: Fields that lists show, by their names in MCP: `title`, `icons`, `annotations`, `size`, `_meta`.
        meta: The `_meta` of what is read, as MCP Apps have it: `{"ui": {...}}`.
    """

    uri: str
    mime_type: str | None = None
    listing: Mapping[str, Any] | None = None
    meta: Mapping[str, Any] | None = None

    @property
    def is_template(self) -> bool:
        """True if the offer stands for a family of resources."""
        return "{" in self.uri

    @property
    def variables(self) -> frozenset[str]:
        """The names of the variables in its URI."""
        lists = _VARIABLE.findall(self.uri)
        return frozenset(name.strip().rstrip("*").partition(":")[0] for names in lists for name in names.split(","))


@dataclass(frozen=True, slots=True)
class PromptOffer:
    """A prompt as clients see it.

    Attributes:
        listing: Fields that lists show, by their names in MCP: `title`, `icons`, `_meta`; and `name` and `arguments`
            where they are not those of the tool.
    """

    listing: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class PromptText:
    """A message of a prompt: a text, media, or both in a list."""

    content: Any
    role: Literal["user", "assistant"] = "user"


@explain_options()
@dataclass(frozen=True, slots=True)
class FoundValues:
    """Values for an argument that a person types, of which there may be more than these.

    Attributes:
        total: How many there are; None where that is not known.
        has_more: Whether there are more; None where that is not known.
    """

    values: Sequence[str]
    total: int | None = None
    has_more: bool | None = None


class Offering(BaseTool):
    """The offer of a resource or a prompt in place of a tool: the `source` of its tool."""

    def get_offer(self) -> ResourceOffer | PromptOffer | None:
        """Return the resource or prompt that clients see; None for a tool like others."""
        return None

    async def complete(self, argument: str, typed: str, others: Mapping[str, str]) -> Sequence[str] | FoundValues:
        """Return values for an argument that a person types.

        Args:
            argument: Its name.
            typed: The part that is typed so far.
            others: The other arguments so far.
        """
        return ()

    def listen(self, listener: ResourceListener) -> None:
        """Register a listener, as long as it lives, for changes of each resource of this."""

    async def subscribe(self, uri: str) -> None:
        """Start announcing changes of a resource to listeners; called for the first client that wants it."""

    async def unsubscribe(self, uri: str) -> None:
        """Stop that; called when no client wants it any more."""


class _FunctionOffering(Offering):
    """A resource or a prompt made of a function."""

    def __init__(self, offer: ResourceOffer | PromptOffer, values: Completions) -> None:
        self._offer, self._values = offer, values
        self._listeners: WeakSet[Any] = WeakSet()

    def get_offer(self) -> ResourceOffer | PromptOffer:
        return self._offer

    async def complete(self, argument: str, typed: str, others: Mapping[str, str]) -> Sequence[str]:
        values = self._values.get(argument, ())
        if not callable(values):
            return [value for value in values if value.lower().startswith(typed.lower())]
        found = values(typed, others)
        return await found if isawaitable(found) else found

    def listen(self, listener: ResourceListener) -> None:
        self._listeners.add(listener)

    def changed(self, uri: str) -> None:
        for listener in [*self._listeners]:
            listener.changed(uri)


def offering_of(tool: Tool[..., Any]) -> Offering | None:
    """Return the source of a resource or a prompt that this tool stands for; None for a tool like others."""
    source = tool.source
    return source if isinstance(source, Offering) and source.get_offer() is not None else None


def is_for_apps(listing: Mapping[str, Any] | None) -> bool:
    """Return whether a tool is for the pages of MCP Apps alone, as its listing says."""
    part: Any = listing
    for name in ("_meta", "ui", "visibility"):
        part = cast("Mapping[str, Any]", part).get(name) if isinstance(part, Mapping) else None
    return isinstance(part, list) and "model" not in part


def resource(
    uri: str,
    *,
    mime_type: str | None = None,
    complete: Completions | None = None,
    meta: Mapping[str, Any] | None = None,
    **options: Unpack[ToolKeywords],
) -> Callable[[Callable[P, R]], Tool[P, R]]:
    """Make a resource of a function that returns its content: a text, bytes, `Media`, or what is shown as JSON.

    Args:
        uri: Its URI; with variables in braces, those are the function's parameters: `trips://{city}/weather`.
        mime_type: The media type of its content; when None, as the content has it.
        complete: Values for the variables, which a client offers to the person who types.
        meta: The `_meta` of its content.
        options: Options of `@tool`; `listing` may have a `size`, too.

    Raises:
        TypeError: The variables are not the function's parameters, or there is no such option.
        ValueError: `uri` is not a URI.
    """
    if "://" not in uri:
        raise ValueError(f"@resource takes a URI, as in @resource('trips://today'), and not {uri!r}")
    offer = ResourceOffer(uri, mime_type, options.get("listing"), meta)

    def make(fn: Callable[P, R]) -> Tool[P, R]:
        offered = _offer_tool(fn, "@resource", offer, complete, {"effect": "none", "tags": ["read_only"], **options})
        wanted = offer.variables
        names = frozenset(cast("dict[str, Any]", offered.spec.parameters.get("properties", {})))
        if wanted != names:
            differing = ", ".join(f"`{name}`" for name in sorted(wanted ^ names))
            raise TypeError(
                f"the variables of {uri} and the parameters of `{offered.name}` have to be the same: {differing}"
            )
        return offered

    return make


@overload
def prompt(fn: Callable[P, R], /) -> Tool[P, R]: ...
@overload
def prompt(
    *,
    complete: Completions | None = None,
    **options: Unpack[ToolKeywords],
) -> Callable[[Callable[P, R]], Tool[P, R]]: ...
def prompt(
    fn: Callable[P, R] | None = None,
    /,
    *,
    complete: Completions | None = None,
    **options: Unpack[ToolKeywords],
) -> Tool[P, R] | Callable[[Callable[P, R]], Tool[P, R]]:
    """Make a prompt of a function that returns its messages: a text, a `PromptText`, or a list of these and of media.

    Args:
        fn: The function, when used bare; its parameters are the arguments of the prompt.
        complete: Values for the arguments, which a client offers to the person who types.
        options: Options of `@tool`.

    Raises:
        TypeError: There is no such option.
    """

    def make(target: Callable[P, R]) -> Tool[P, R]:
        return _offer_tool(
            target, "@prompt", PromptOffer(options.get("listing")), complete, {"effect": "none", **options}
        )

    return make if fn is None else make(fn)


def resource_changed(tool: Tool[..., Any], **variables: str) -> None:
    """Notify the clients that have subscribed to a resource that it has changed.

    Args:
        tool: The tool that `@resource` returned.
        variables: The values of the variables in its URI.

    Raises:
        TypeError: It is not a resource that `@resource` made, or a variable is missing.
    """
    source = tool.source
    offer = source.get_offer() if isinstance(source, _FunctionOffering) else None
    if not isinstance(source, _FunctionOffering) or not isinstance(offer, ResourceOffer):
        raise TypeError(f"`{tool.name}` is not a resource that @resource made")
    missing = offer.variables ^ variables.keys()
    if missing:
        raise TypeError(f"resource_changed(`{tool.name}`) takes the variables of {offer.uri}: {', '.join(missing)}")
    source.changed(_VARIABLE.sub(lambda found: variables[found[1]], offer.uri))


def _offer_tool(
    fn: Callable[..., Any],
    maker: str,
    offer: ResourceOffer | PromptOffer,
    complete: Completions | None,
    keywords: Mapping[str, Any],
) -> Tool[..., Any]:
    options: ToolOptions = replace(only_options(maker, function_name(fn), keywords), default=False)
    spec = ToolSpec.from_function(
        fn,
        name=options.name or function_name(fn),
        description=options.description,
        fixed=frozenset(),
        return_schema=options.return_schema,
    )
    unknown = (complete or {}).keys() - cast("dict[str, Any]", spec.parameters.get("properties", {})).keys()
    if unknown:
        raise TypeError(f"{maker} of `{spec.name}` completes `{min(unknown)}`, which is not one of its arguments")
    parts: Mapping[str, Any] = spec.parameters.get("properties", {})
    choices = {name: [str(value) for value in part["enum"]] for name, part in parts.items() if "enum" in part}
    values = {**choices, **(complete or {})}
    return Tool(spec, options, bare=True, source=_FunctionOffering(offer, values))
