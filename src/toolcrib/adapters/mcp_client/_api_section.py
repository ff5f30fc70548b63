"""Section `openapi` of a file of servers: OpenAPI documents, whose operations have the gates of a server's tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import Field

from toolcrib.adapters.mcp_client._credentials_section import CredentialsSection, Vault
from toolcrib.adapters.mcp_client._gateway_section import Checked, ServerDefaults
from toolcrib.errors import DocumentError, TargetError, ToolConstraintError
from toolcrib.provenance import Effect, Source
from toolcrib.toolsets import Toolset

__all__ = ["ApiEntry", "ApiTexts", "toolset_of_entry", "with_api_defaults"]


class _Limits(Checked):
    """The limits for one API.

    Attributes:
        timeout: Seconds for one call, with its retries.
        max_result_chars: The most characters of a result that go back to a model.
        max_message: Bytes of one answer.
    """

    timeout: Annotated[float, Field(gt=0)] = 30.0
    max_result_chars: Annotated[int | None, Field(ge=1)] = None
    max_message: Annotated[int, Field(ge=1)] = 8 * 1024 * 1024


class _Labels(Checked):
    """What a policy of provenance goes by for an operation, in place of what its method says."""

    effect: Effect | None = None
    source: Source | None = None


class _Section(Checked):
    """The section `toolcrib` of an API: how its operations are offered, and what gates they have.

    Attributes:
        prefix: What the name of each tool begins with; `NAME_` when left out where there is another server or API.
        tools: The operations to take; all of them when left out. An option names operations by tool name, operation
            id, `tag:TAG`, path, or method and path; `*` stands for any text.
        exclude: Those to leave out.
        approval: Which need a person: all, none, those named, or `unless_read_only`: all but those that only read.
        credentials: By the security scheme of the document: of each principal, or one key for all.
        labels: What a policy of provenance goes by for an operation; `*` has the `source` of all others.
        pages: Whether the arguments of the next page are offered, or a number of pages put together.
    """

    prefix: str | None = None
    tools: list[str] | None = None
    exclude: list[str] = Field(default_factory=list[str])
    descriptions: dict[str, str] = Field(default_factory=dict[str, str])
    approval: bool | list[str] | Literal["unless_read_only"] = False
    limits: _Limits = Field(default_factory=_Limits)
    labels: dict[str, _Labels] = Field(default_factory=dict[str, _Labels])
    credentials: dict[str, CredentialsSection] = Field(default_factory=dict[str, CredentialsSection])
    pages: Literal["offer", "off"] | Annotated[int, Field(ge=1)] = "offer"


class ApiEntry(Checked):
    """One API.

    Attributes:
        document: Its OpenAPI document: an address, or a path by the file.
        server: The address of its server, in place of the document's.
        variables: Values for the variables in the document's address of it.
        headers: Sent with each request to the server.
    """

    document: str
    server: str | None = None
    variables: dict[str, str] = Field(default_factory=dict[str, str])
    headers: dict[str, str] = Field(default_factory=dict[str, str])
    disabled: bool = False
    toolcrib: _Section = Field(default_factory=_Section)


@dataclass(frozen=True, slots=True)
class ApiTexts:
    """What the reader of the file lends to the reading of an entry.

    Attributes:
        folder: The folder of the file.
        expanded: Replaces the variables in the text of a field.
        variable: Returns the environment variable that a field names.
        wrong: Makes the error for a field.
    """

    folder: Path
    expanded: Callable[[str, str], str]
    variable: Callable[[str, str], str]
    wrong: Callable[[str, str], TargetError]


def with_api_defaults(entry: Any, defaults: ServerDefaults) -> Any:
    """Return an entry as the file has it, with the `approval` and the `limits` that servers have by default."""
    listed = cast("dict[str, Any]", entry) if isinstance(entry, dict) else {}
    own: Any = listed.get("toolcrib", {})
    if not (listed and isinstance(own, dict)):
        return cast("Any", entry)
    known = {name: value for name, value in (defaults.limits or {}).items() if name in _Limits.model_fields}
    given: dict[str, Any] = {} if defaults.approval is None else {"approval": defaults.approval}
    said: dict[str, Any] = {**given, **cast("dict[str, Any]", own)}
    if known and isinstance(said.get("limits", {}), dict):
        said["limits"] = {**known, **said.get("limits", {})}
    return {**listed, "toolcrib": said}


def toolset_of_entry(name: str, entry: ApiEntry, texts: ApiTexts, prefix: str, vault: Vault) -> Toolset | None:
    """Return the operations of an API as tools; None where it is switched off.

    Raises:
        TargetError: The document cannot be used, or an option fits nothing in it.
    """
    if entry.disabled:
        return None
    section = entry.toolcrib
    openapi: Any = import_module("toolcrib.openapi")  # of an extra, which its error names
    place = texts.expanded("document", entry.document)
    labels = {of: one for of, one in section.labels.items() if of != "*"}
    rest = section.labels.get("*", _Labels())
    if rest.effect is not None:
        raise texts.wrong(
            "toolcrib.labels.*.effect", "what an operation does is said of each; the method says the rest"
        )
    try:
        return openapi.toolset(
            place if "://" in place else texts.folder / place,
            name=name,
            prefix=section.prefix if section.prefix is not None else prefix,
            include=section.tools,
            exclude=section.exclude,
            approval="writes" if section.approval == "unless_read_only" else section.approval,
            server=None if entry.server is None else texts.expanded("server", entry.server),
            variables={of: texts.expanded(f"variables.{of}", text) for of, text in entry.variables.items()},
            headers={of: texts.expanded(f"headers.{of}", text) for of, text in entry.headers.items()},
            credentials=_credentials(section, texts, vault) or None,
            descriptions=section.descriptions,
            effects={of: one.effect for of, one in labels.items() if one.effect is not None},
            sources={of: one.source for of, one in labels.items() if one.source is not None},
            source=rest.source or "untrusted",
            timeout=section.limits.timeout,
            max_bytes=section.limits.max_message,
            max_result_chars=section.limits.max_result_chars,
            pages=section.pages,
        )
    except DocumentError as error:
        raise texts.wrong("document", str(error)) from None
    except (ToolConstraintError, ValueError) as error:
        raise texts.wrong("toolcrib", str(error)) from None


def _credentials(section: _Section, texts: ApiTexts, vault: Vault) -> Mapping[str, Any]:
    """Return the credentials by security scheme."""
    made: dict[str, Any] = {}
    for scheme, given in section.credentials.items():
        field = f"toolcrib.credentials.{scheme}"
        if problem := given.problem():
            raise texts.wrong(field, problem)
        if given.header is not None:
            raise texts.wrong(f"{field}.header", "the document says where the key goes; leave it out")
        if given.api_key_env is None:
            made[scheme] = vault.credentials(given, texts.variable, texts.wrong)
        else:
            made[scheme] = texts.variable(f"{field}.api_key_env", given.api_key_env)
    return made
