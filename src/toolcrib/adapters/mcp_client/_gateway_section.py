"""Section `toolcrib` of a whole file of servers: what holds for the gateway, and what each server has by default."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from mcp_types import LoggingLevel
from pydantic import BaseModel, ConfigDict, Field

from toolcrib.adapters.mcp_client._credentials_section import CredentialsOptions, GatewayCredentials
from toolcrib.adapters.mcp_client._network_section import (
    AuthSection,
    HttpSection,
    NetworkOptions,
)
from toolcrib.adapters.mcp_client._values import AskKind
from toolcrib.errors import PolicyError, TargetError
from toolcrib.pipeline import CallLimits, ErrorPolicy
from toolcrib.provenance import Provenance

__all__ = ["Checked", "GatewayOptions", "GatewaySection", "ServerDefaults", "Wrong", "gateway_options_of"]

Wrong: TypeAlias = Callable[[str, str], TargetError]
"""Makes the error for a field, and what is wrong with it."""


class Checked(BaseModel):
    """A part of a file whose every field is known."""

    model_config = ConfigDict(extra="forbid", strict=True)


class _Approvals(Checked):
    """Where requests for approval are kept, and who answers them.

    Attributes:
        database: A SQLite file, by this one, or a `postgresql://` URL.
        by: `store`, or `elicit`, which asks the client.
        wait: Seconds that a call waits for its answer.
        place: Where a person answers, as clients are shown it.
    """

    database: str | None = None
    by: Literal["store", "elicit"] | None = None
    wait: Annotated[float | None, Field(ge=0)] = None
    place: str | None = None


class _Limits(Checked):
    """The limits of each principal.

    Attributes:
        total: Calls.
        per_tool: Calls of one tool: a number for each of them, or numbers by name.
        concurrency: Calls at a time.
        pending: Requests for approval that may be pending at a time.
    """

    total: Annotated[int | None, Field(ge=0)] = None
    per_tool: Annotated[int, Field(ge=0)] | dict[str, Annotated[int, Field(ge=0)]] | None = None
    concurrency: Annotated[int | None, Field(ge=1)] = None
    pending: Annotated[int | None, Field(ge=1)] = None


class ServerDefaults(Checked):
    """What a server's section says where it says nothing itself."""

    resources: bool | None = None
    resource_tools: bool | None = None
    prompts: bool | None = None
    instructions: bool | None = None
    approval: bool | Literal["unless_read_only"] | None = None
    limits: dict[str, int | float] | None = None
    required: bool | None = None
    trusted: bool | None = None
    pins: bool | str | None = None
    mode: str | None = None
    ask_client: bool | list[AskKind] | None = None
    approve_sampling: bool | None = None
    log_level: LoggingLevel | None = None
    record: bool | None = None
    telemetry: bool | None = None


class GatewaySection(Checked):
    """The section `toolcrib` beside the servers.

    Attributes:
        record: A file for the records of calls, or a database for their events; True is the database of the approvals.
        telemetry: Whether events go to OpenTelemetry.
        provenance: Whether calls are asked about by the default policy, or the TOML file of a policy, by this one.
        http: Where it listens over HTTP.
        auth: The authorization server whose tokens are accepted.
        scopes: The scopes that tools need, by their names here or by patterns of names.
        tokens_env: The environment variable with the token of each principal, for one machine without `auth`.
        defaults: What the section of each server has where it says nothing.
        credentials: Where those of principals are kept, and the address of the consent pages.
    """

    name: str | None = None
    instructions: str | None = None
    approvals: _Approvals = Field(default_factory=_Approvals)
    limits: _Limits = Field(default_factory=_Limits)
    record: bool | str = False
    telemetry: bool = False
    errors: ErrorPolicy | None = None
    provenance: bool | str = False
    search: bool = False
    code_mode: bool = False
    http: HttpSection = Field(default_factory=HttpSection)
    auth: AuthSection | None = None
    scopes: dict[str, str | list[str]] = Field(default_factory=dict[str, "str | list[str]"])
    tokens_env: dict[str, str] = Field(default_factory=dict[str, str])
    defaults: ServerDefaults = Field(default_factory=ServerDefaults)
    credentials: GatewayCredentials = Field(default_factory=GatewayCredentials)


@dataclass(frozen=True, slots=True)
class GatewayOptions:
    """The options of a gateway, as its file has them; what the file leaves out is None.

    Attributes:
        database: The database of the approvals: a path, or a URL.
        record: The file or database for records; True is the database of the approvals.
        answered_in: The place where a person answers, as clients are shown it.
        limits: The budget of each principal.
        max_pending: Requests of one principal that may be pending at a time.
        provenance: The policy for values of others.
        network: Where it listens, and whose tokens it takes.
        unrecorded: The servers whose calls are left out of the record.
        untraced: The servers whose calls are left out of telemetry.
        credentials: Where those of principals are kept; None where no server has any.
    """

    name: str | None = None
    instructions: str = ""
    database: str | None = field(default=None, repr=False)
    approve_by: Literal["store", "elicit"] | None = None
    wait: float | None = None
    answered_in: str | None = None
    limits: CallLimits | None = None
    max_pending: int | None = None
    record: str | bool = field(default=False, repr=False)
    telemetry: bool = False
    errors: ErrorPolicy | None = None
    provenance: Provenance | None = None
    search: bool = False
    code_mode: bool = False
    network: NetworkOptions = field(default_factory=NetworkOptions)
    unrecorded: frozenset[str] = frozenset()
    untraced: frozenset[str] = frozenset()
    credentials: CredentialsOptions | None = None


def gateway_options_of(
    section: GatewaySection, folder: Path, expanded: Callable[[str, str], str], wrong: Wrong, **more: Any
) -> GatewayOptions:
    """Return the options of a section; paths in it are by the file.

    Args:
        section: The section, as it was read.
        folder: The folder of the file.
        expanded: Replaces the variables in the text of a field.
        wrong: Makes the error for a field.
        more: The options that the sections of the servers give.
    """

    def text(name: str, given: str | None) -> str | None:
        return None if given is None else expanded(f"toolcrib.{name}", given)

    def place(name: str, given: str) -> str:
        made = expanded(f"toolcrib.{name}", given)
        return made if "://" in made else str(folder / made)

    asked, limits = section.approvals, section.limits
    budget: Mapping[str, Any] = limits.model_dump(exclude={"pending"}, exclude_none=True)
    policy: Provenance | None = Provenance() if section.provenance is True else None
    if isinstance(section.provenance, str):
        policy = _policy(place("provenance", section.provenance), wrong)
    return GatewayOptions(
        name=section.name,
        instructions=text("instructions", section.instructions) or "",
        database=None if asked.database is None else place("approvals.database", asked.database),
        approve_by=asked.by,
        wait=asked.wait,
        answered_in=text("approvals.place", asked.place),
        limits=CallLimits(**budget) if budget else None,
        max_pending=limits.pending,
        record=section.record if isinstance(section.record, bool) else place("record", section.record),
        telemetry=section.telemetry,
        errors=section.errors,
        provenance=policy,
        search=section.search,
        code_mode=section.code_mode,
        **more,
    )


def _policy(path: str, wrong: Wrong) -> Provenance:
    try:
        return Provenance.load(path)
    except PolicyError as error:
        raise wrong("toolcrib.provenance", str(error)) from None
    except OSError as error:
        raise wrong("toolcrib.provenance", f"{path} cannot be read: {error.strerror or error}") from None
