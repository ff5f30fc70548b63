"""Section `openapi` of a file of servers: OpenAPI documents, whose operations have the gates of a server's tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Annotated, Any, Literal

from pydantic import Field

from toolcrib.errors import DocumentError, ToolConstraintError
from toolcrib.gateway._credentials import CredentialsSection, Vault
from toolcrib.gateway._fields import Approval, FilePath, FilePlace, Part, Prefix, Text
from toolcrib.tools import Effect, Source
from toolcrib.toolsets import Toolset


class _Limits(Part):
    """The limits for one API.

    Attributes:
        timeout: Seconds for one call, with its retries.
        max_result_chars: The most characters of a result that go back to a model.
        max_message: Bytes of one answer.
    """

    timeout: Annotated[float, Field(gt=0)] = 30.0
    max_result_chars: Annotated[int | None, Field(ge=1)] = None
    max_message: Annotated[int, Field(ge=1)] = 8 * 1024 * 1024


class _Labels(Part):
    """The labels of an operation for a policy of provenance, in place of those of its method."""

    effect: Effect | None = None
    source: Source | None = None


class ApiSection(Part):
    """The section `toolcrib` of an API: how its operations are offered, and what gates they have.

    Attributes:
        prefix: The beginning of the name of each tool; `NAME_` when left out where there is another server or API.
        tools: The operations to take; all of them when left out. An option names operations by tool name, operation
            id, `tag:TAG`, path, or method and path; `*` stands for any text.
        exclude: Those to leave out.
        approval: Which need a person: all, none, those named, or `unless_read_only`: all but those that only read,
            which is the default.
        credentials: By the security scheme of the document: of each principal, or one key for all.
        labels: The labels of operations for a policy of provenance; `*` has the `source` of all others.
        pages: Whether the arguments of the next page are offered, or a number of pages put together.
    """

    prefix: Prefix | None = None
    tools: list[str] | None = None
    exclude: list[str] = Field(default_factory=list[str])
    descriptions: dict[str, str] = Field(default_factory=dict[str, str])
    approval: Approval = "unless_read_only"
    limits: _Limits = Field(default_factory=_Limits)
    labels: dict[str, _Labels] = Field(default_factory=dict[str, _Labels])
    credentials: dict[str, CredentialsSection] = Field(default_factory=dict[str, CredentialsSection])
    pages: Literal["offer", "off"] | Annotated[int, Field(ge=1)] = "offer"


class ApiEntry(Part):
    """One API.

    Attributes:
        document: Its OpenAPI document: an address, or a path by the file.
        server: The address of its server, in place of the document's.
        variables: Values for the variables in the document's address of it.
        headers: Sent with each request to the server.
    """

    document: FilePath
    server: Text | None = None
    variables: dict[str, Text] = Field(default_factory=dict[str, str])
    headers: dict[str, Text] = Field(default_factory=dict[str, str], repr=False)
    disabled: bool = False
    toolcrib: ApiSection = Field(default_factory=ApiSection)


def api_toolset(place: FilePlace, entry: ApiEntry, prefix: str, vault: Vault) -> Toolset:
    """Return the operations of an API as tools.

    Raises:
        TargetError: The document cannot be used, or an option fits nothing in it.
    """
    section = entry.toolcrib
    make: Callable[..., Toolset] = import_module("toolcrib.openapi").toolset  # of an extra, which its error names
    labels = {of: label for of, label in section.labels.items() if of != "*"}
    rest = section.labels.get("*", _Labels())
    if rest.effect is not None:
        raise place.wrong(
            "toolcrib.labels.*.effect", "the effect of an operation is declared at each; its method says the rest"
        )
    try:
        return make(
            entry.document,
            name=place.server,
            prefix=section.prefix if section.prefix is not None else prefix,
            include=section.tools,
            exclude=section.exclude,
            approval="writes" if section.approval == "unless_read_only" else section.approval,
            **entry.model_dump(include={"server", "variables", "headers"}),
            credentials=_credentials(place, section, vault) or None,
            descriptions=section.descriptions,
            effects={of: label.effect for of, label in labels.items() if label.effect is not None},
            sources={of: label.source for of, label in labels.items() if label.source is not None},
            source=rest.source or "untrusted",
            timeout=section.limits.timeout,
            max_bytes=section.limits.max_message,
            max_result_chars=section.limits.max_result_chars,
            pages=section.pages,
        )
    except DocumentError as error:
        raise place.wrong("document", str(error)) from None
    except (ToolConstraintError, ValueError) as error:
        raise place.wrong("toolcrib", str(error)) from None


def _credentials(place: FilePlace, section: ApiSection, vault: Vault) -> Mapping[str, Any]:
    """Return the credentials by security scheme."""
    for scheme, source in section.credentials.items():
        if source.header is not None:
            raise place.wrong(
                f"toolcrib.credentials.{scheme}.header", "the document says where the key goes; leave it out"
            )
    return {
        scheme: vault.credentials(place, source) if source.api_key_env is None else source.api_key_env
        for scheme, source in section.credentials.items()
    }
