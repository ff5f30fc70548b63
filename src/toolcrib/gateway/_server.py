"""Servers of a file: what an entry says of one, and the toolset that it makes."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Annotated, Any, cast

from mcp_types import LoggingLevel
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo

from toolcrib.adapters.mcp_client import (
    DEFAULT_KINDS,
    DEFAULT_TIMEOUT,
    MODES,
    Approval,
    AskKind,
    RemoteTool,
    ServerToolset,
    ToolLabels,
    connect,
)
from toolcrib.errors import TargetError
from toolcrib.gateway._credentials import CredentialsSection, Vault
from toolcrib.gateway._fields import Approval as ApprovalField
from toolcrib.gateway._fields import FilePath, FilePlace, FileTexts, Part, Prefix, Secret, Text, refuse

_log = logging.getLogger("toolcrib.mcp")
_SAME = ("approve_sampling", "descriptions", "labels", "log_level", "mode", "required", "resource_tools", "trusted")
"""The options of a section that `connect` has by the same name."""
_HTTP = ("http", "streamable-http", "streamableHttp", "streamable_http")


class _Limits(Part):
    """The limits for one server.

    Attributes:
        timeout: Seconds for one call; null waits for ever.
        max_result_chars: The most characters of a result that go back to a model.
        max_message: Bytes of one message of the server.
        connect_timeout: Seconds for its start and its lists.
    """

    timeout: Annotated[float | None, Field(gt=0)] = DEFAULT_TIMEOUT
    max_result_chars: Annotated[int | None, Field(ge=1)] = None
    max_message: Annotated[int, Field(ge=1)] = 16 * 1024 * 1024
    connect_timeout: Annotated[float, Field(gt=0)] = 60.0


def _by_name(names: Any) -> Any:
    """Return names of environment variables as what is read for each of them."""
    if not isinstance(names, list):
        refuse("give a list of names")
    return {str(name): name for name in cast("Any", names)}


class ServerSection(Part):
    """The section `toolcrib` of a server: how its tools are offered, and what gates they have.

    Attributes:
        prefix: The beginning of the name of each tool; in a file of several servers `NAME_` when left out.
        tools: The tools to take; all of them when left out. An option names a tool as the server does.
        resource_tools: Whether resources are tools for models, too.
        prompts: Whether prompts are offered to people at clients; with true, as tools to models, too.
        approval: Which tools need a person: all, none, those named, or `unless_read_only`: all but those that the
            server says change nothing.
        mode: The generation of the protocol: `older` where the server has it, `auto` for the newer one where it has
            that.
        credentials: Those that its requests are signed with: of each principal, or one key for all.
        bearer_env: The token for the address, from an environment variable.
        pass_env: Environment variables of this process that the command gets, with their values.
        trusted: Whether a policy of provenance takes the server's hints at their word.
        labels: The labels of tools for a policy of provenance, in place of the server's hints; `*` is for all others.
        record: Whether the calls of its tools are in the gateway's record.
        telemetry: Whether they are in its telemetry.
        pins: A SQLite file, beside this one, in which the tools are kept as they were when the server was first used:
            `mcp.pins.db` for `mcp.json`, `mcp.toml.pins.db` for `mcp.toml` when left out. With false they are kept
            nowhere.
        ask_client: The requests and messages that the server may send the client: all, nothing, or some of `forms`,
            `urls`, `sampling`, `roots` and `logs`; all but `sampling` and `roots` when left out.
        approve_sampling: Whether a person has to approve each of its requests to the client's model.
        roots: Folders that the server may work in; of the client's, those inside of them.
        log_level: The level from which on the server sends log lines.
    """

    prefix: Prefix | None = None
    tools: list[str] | None = None
    resources: bool | list[str] = True
    resource_tools: bool = True
    prompts: bool | None = None
    instructions: bool = False
    descriptions: dict[str, str] = Field(default_factory=dict[str, str])
    approval: ApprovalField = False
    mode: str = "older"
    limits: _Limits = Field(default_factory=_Limits)
    required: bool = False
    credentials: CredentialsSection | None = None
    bearer_env: Secret | None = Field(default=None, repr=False)
    pass_env: Annotated[dict[str, Secret], BeforeValidator(_by_name)] = Field(
        default_factory=dict[str, str], repr=False
    )
    trusted: bool = False
    labels: dict[str, ToolLabels] = Field(default_factory=dict[str, ToolLabels])
    pins: bool | FilePath = True
    ask_client: bool | list[AskKind] | None = None
    approve_sampling: bool = False
    roots: list[FilePath] | None = None
    log_level: LoggingLevel | None = None
    record: bool = True
    telemetry: bool = True


def _as_text(given: Any) -> Any:
    """Return the value of a variable, which a file may write as a number or a truth value, as a text."""
    if isinstance(given, bool):
        return str(given).lower()
    return str(given) if isinstance(given, int | float) else given


def _read_variables(name: Any, info: ValidationInfo) -> Any:
    """Return the variables of a file of lines such as `KEY=value`."""
    if info.context is None or not isinstance(name, str):
        return {} if isinstance(name, str) else name
    texts: FileTexts = info.context
    try:
        lines = (texts.path.parent / texts.expand(name)).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        refuse(f"{name} cannot be read: {error}")
    pairs = (line.strip().removeprefix("export ").partition("=") for line in lines if not line.lstrip().startswith("#"))
    return {key.strip(): value.strip().strip("\"'") for key, equals, value in pairs if equals}


class ServerEntry(BaseModel):
    """One server, as the clients write it down."""

    model_config = ConfigDict(extra="allow", strict=True, populate_by_name=True)

    type: str | None = None
    transport: str | None = None
    command: Text | None = None
    args: list[Text] = Field(default_factory=list[str])
    env: dict[str, Annotated[Text | None, BeforeValidator(_as_text)]] = Field(
        default_factory=dict[str, "str | None"], repr=False
    )
    env_file: Annotated[dict[str, str], BeforeValidator(_read_variables)] = Field(
        default_factory=dict[str, str], alias="envFile", repr=False
    )
    cwd: Text | None = None
    url: Text | None = None
    server_url: Text | None = Field(default=None, alias="serverUrl")
    headers: dict[str, Text] = Field(default_factory=dict[str, str], repr=False)
    disabled: bool = False
    enabled: bool = True
    toolcrib: ServerSection = Field(default_factory=ServerSection)

    @property
    def is_sse(self) -> bool:
        """True if the server is reached by the old transport over HTTP (SSE)."""
        return (self.type or self.transport) == "sse"


def server_toolset(place: FilePlace, entry: ServerEntry, prefix: str, vault: Vault) -> ServerToolset:
    """Return the tools of a server; raises TargetError."""
    section = entry.toolcrib
    if section.mode not in MODES:
        raise place.wrong("toolcrib.mode", f"{section.mode!r} is not a mode; write one of {', '.join(MODES)}")
    source, options = _source(place, entry)
    if section.credentials is not None:
        options |= _signing(place, section.credentials, source, options, vault)
    approval: Approval = _may_change if section.approval == "unless_read_only" else cast("Any", section.approval)
    return connect(
        source,
        name=place.server,
        prefix=prefix if section.prefix is None else section.prefix,
        tool_names=section.tools,
        include_resources=section.resources,
        include_prompts=section.prompts,
        include_instructions=section.instructions,
        approval=approval,
        name_clash="leave_out",
        ask_client=DEFAULT_KINDS if section.ask_client is None else section.ask_client,
        roots=None if section.roots is None else [root if "://" in root else Path(root) for root in section.roots],
        pins=_pins(place, section.pins),
        **{name: getattr(section, name) for name in _SAME},
        **dict(section.limits),
        **options,
    )


def _may_change(tool: RemoteTool) -> bool:
    """Return whether a tool may change something, as far as its server says."""
    return not tool.read_only


def _pins(place: FilePlace, pins: bool | str) -> Path | None:
    """Return the file in which a server's tools are kept."""
    if isinstance(pins, str):
        return Path(pins)
    folder = place.path.parent
    if pins and not os.access(folder, os.W_OK):
        _log.warning("%s: no pins are kept, as its folder cannot be written; name a file as `pins`", place.path)
        return None
    name = place.path.stem if place.path.suffix == ".json" else place.path.name
    return folder / f"{name}.pins.db" if pins else None


def _signing(
    place: FilePlace, section: CredentialsSection, source: Any, options: dict[str, Any], vault: Vault
) -> dict[str, Any]:
    """Return the options of `connect` that sign requests."""
    if not isinstance(source, str):
        raise place.wrong("toolcrib.credentials", "they are for an address; for a command write `pass_env`")
    key = section.api_key_env
    if key is None:
        return {"credentials": vault.credentials(place, section)}
    header = section.header or "Authorization"
    value = f"Bearer {key}" if header.lower() == "authorization" else key
    return {"headers": {**options.get("headers", {}), header: value}}


def old_transport(place: FilePlace) -> TargetError:
    """Return the error for a server that is reached by the old transport over HTTP."""
    return place.wrong("type", "`sse` is the old transport over HTTP; give the server's address for `http`")


def _source(place: FilePlace, entry: ServerEntry) -> tuple[Any, dict[str, Any]]:
    """Return the source of a server for `connect`, and the options that go with it."""
    section, url, kind = entry.toolcrib, entry.url or entry.server_url, entry.type or entry.transport
    if entry.is_sse:
        raise old_transport(place)
    if kind is not None and kind not in ("stdio", *_HTTP):
        raise place.wrong("type", f"{kind!r} is not a transport; write `stdio` or `http`, or leave it out")
    if (entry.command is None) == (url is None):
        both = "there are a command and an address; leave one out" if url else "it is missing; give it, or a `url`"
        raise place.wrong("command", both)
    if url is None:
        if section.bearer_env is not None:
            raise place.wrong("toolcrib.bearer_env", "it is for an address; for a command write `pass_env`")
        variables = {name: value for name, value in entry.env.items() if value is not None}
        env = {**entry.env_file, **variables, **section.pass_env}
        return [entry.command or "", *entry.args], {"env": env, "cwd": place.workspace / (entry.cwd or "")}
    if section.pass_env:
        raise place.wrong("toolcrib.pass_env", "it is for a command; for an address write `bearer_env`")
    if not url.startswith(("http://", "https://")):
        raise place.wrong("url", f"it must begin with http:// or https://, and is {url!r:.60}")
    bearer = {} if section.bearer_env is None else {"Authorization": f"Bearer {section.bearer_env}"}
    return url, {"headers": {**entry.headers, **bearer}}
