"""File of MCP servers, as clients share it: `mcpServers` in JSON or TOML, with a section `toolcrib` for each server."""

from __future__ import annotations

import json
import logging
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from mcp_types import LoggingLevel
from pydantic import BaseModel, ConfigDict, Field

from toolcrib.adapters.mcp_client._api_section import ApiEntry, ApiTexts, toolset_of_entry, with_api_defaults
from toolcrib.adapters.mcp_client._connect import ServerToolset, connect
from toolcrib.adapters.mcp_client._credentials_section import CredentialsOptions, CredentialsSection, Vault
from toolcrib.adapters.mcp_client._file_place import FilePlace, FileTexts, valid_part
from toolcrib.adapters.mcp_client._gateway_section import Checked, GatewayOptions, GatewaySection, gateway_options_of
from toolcrib.adapters.mcp_client._network_section import network_options_of
from toolcrib.adapters.mcp_client._options import DEFAULT_KINDS, DEFAULT_TIMEOUT, MODES, Approval, ToolLabels
from toolcrib.adapters.mcp_client._values import AskKind, RemoteTool
from toolcrib.errors import TargetError, closest
from toolcrib.toolsets import Toolset

__all__ = ["gateway_options", "read_document", "toolset_of_file"]

_log = logging.getLogger("toolcrib.mcp")
_KEYS = ("mcpServers", "servers", "mcp_servers")  # of most clients; of VS Code; of those with TOML
_OF_CLIENTS = frozenset(  # fields of theirs that say nothing about how a server is reached
    {"alwaysAllow", "autoApprove", "description", "dev", "gallery", "note", "oauth", "timeout", "trust", "version"}
)
_COMMENTS = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_LAST_COMMAS = re.compile(r'"(?:\\.|[^"\\])*"|,(?=\s*[}\]])')
_NOT_A_NAME = re.compile(r"[^A-Za-z0-9_-]")
_HTTP = ("http", "streamable-http", "streamableHttp", "streamable_http")


class _Limits(Checked):
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


class _Section(Checked):
    """The section `toolcrib` of a server: how its tools are offered, and what gates they have.

    Attributes:
        prefix: What the name of each tool begins with; in a file of several servers `NAME_` when left out.
        tools: The tools to take; all of them when left out. An option names a tool as the server does.
        resource_tools: Whether resources are tools for models, too.
        prompts: Whether prompts are offered to people at clients; with true, as tools to models, too.
        approval: Which tools need a person: all, none, those named, or `unless_read_only`: all but those that the
            server says change nothing.
        mode: The generation of the protocol: `older` where the server has it, `auto` for the newer one where it has
            that.
        credentials: Those that its requests are signed with: of each principal, or one key for all.
        bearer_env: An environment variable with the token for the address.
        pass_env: Environment variables of this process that the command gets.
        trusted: Whether a policy of provenance takes the server's hints at their word.
        labels: What a policy of provenance goes by for a tool, in place of the server's hints; `*` is for all others.
        record: Whether the calls of its tools are in the gateway's record.
        telemetry: Whether they are in its telemetry.
        pins: A SQLite file, beside this one, in which the tools are kept as they were when the server was first used:
            `mcp.pins.db` for `mcp.json`, `mcp.toml.pins.db` for `mcp.toml` when left out. With false they are kept
            nowhere.
        ask_client: What the server may ask the client of a call for, and send it: all, nothing, or some of `forms`,
            `urls`, `sampling`, `roots` and `logs`; all but `sampling` and `roots` when left out.
        approve_sampling: Whether a person has to approve each of its requests to the client's model.
        roots: Folders that the server may work in; of the client's, those inside of them.
        log_level: The level from which on the server sends log lines.
    """

    prefix: str | None = None
    tools: list[str] | None = None
    resources: bool | list[str] = True
    resource_tools: bool = True
    prompts: bool | None = None
    instructions: bool = False
    descriptions: dict[str, str] = Field(default_factory=dict[str, str])
    approval: bool | list[str] | Literal["unless_read_only"] = False
    mode: str = "older"
    limits: _Limits = Field(default_factory=_Limits)
    required: bool = False
    credentials: CredentialsSection | None = None
    bearer_env: str | None = None
    pass_env: list[str] = Field(default_factory=list[str])
    trusted: bool = False
    labels: dict[str, ToolLabels] = Field(default_factory=dict[str, ToolLabels])
    pins: bool | str = True
    ask_client: bool | list[AskKind] | None = None
    approve_sampling: bool = False
    roots: list[str] | None = None
    log_level: LoggingLevel | None = None
    record: bool = True
    telemetry: bool = True


class _ServerEntry(BaseModel):
    """One server, as the clients write it down."""

    model_config = ConfigDict(extra="allow", strict=True, populate_by_name=True)

    type: str | None = None
    transport: str | None = None
    command: str | None = None
    args: list[str] = Field(default_factory=list[str])
    env: dict[str, str | int | float | bool | None] = Field(default_factory=dict[str, Any])
    env_file: str | None = Field(default=None, alias="envFile")
    cwd: str | None = None
    url: str | None = None
    server_url: str | None = Field(default=None, alias="serverUrl")
    headers: dict[str, str] = Field(default_factory=dict[str, str])
    disabled: bool = False
    enabled: bool = True
    toolcrib: _Section = Field(default_factory=_Section)


# --- the file


def toolset_of_file(path: Path, environment: Mapping[str, str] | None = None) -> Toolset:
    """Return the tools of all servers of a file.

    Args:
        path: The file. A server that is switched off there is left out.
        environment: The environment variables that it may name; this process's when None.

    Raises:
        TargetError: The file cannot be read, or an entry is wrong: the error names the server, the field and the mend.
    """
    variables = os.environ if environment is None else environment
    entries, apis, section = _entries_in(path)
    several = len(entries) + len(apis) > 1
    vault = Vault(_kept_credentials(path, section, FileTexts(FilePlace(path), variables)))
    made = [_toolset(place, entry, FileTexts(place, variables), several, vault) for place, entry in entries.items()]
    for place, entry in apis.items():
        prefix = f"{_NOT_A_NAME.sub('_', place.server)}_" if several else ""
        texts = _api_texts(place, FileTexts(place, variables))
        made.append(toolset_of_entry(place.server, entry, texts, prefix, vault))
    toolsets = [one for one in made if one is not None]
    if not toolsets:
        raise TargetError(str(path), f"it has no server that is switched on; add one under `{_KEYS[0]}`")
    tools = Toolset(toolsets, toolset_id=path.stem)
    try:
        return tools.with_scopes(section.scopes) if section.scopes else tools
    except ValueError as error:
        raise FilePlace(path).wrong("toolcrib.scopes", str(error)) from None


def gateway_options(path: Path, environment: Mapping[str, str] | None = None) -> GatewayOptions:
    """Return what a file of servers says of the gateway as a whole, in its section `toolcrib`.

    Raises:
        TargetError: The file cannot be read, or an option is wrong: the error names the field and the mend.
    """
    entries, apis, section = _entries_in(path, warn=False)
    place = FilePlace(path)
    texts = FileTexts(place, os.environ if environment is None else environment)
    sections = {of.server: entry.toolcrib for of, entry in entries.items()}
    signed = [one.credentials for one in sections.values() if one.credentials is not None]
    signed += [given for api in apis.values() for given in api.toolcrib.credentials.values()]
    return gateway_options_of(
        section,
        path.parent,
        texts.expanded,
        place.wrong,
        network=network_options_of(
            section.http,
            section.auth,
            section.tokens_env,
            bool(section.scopes),
            texts.expanded,
            lambda field, name: texts.variable(field, name, name),
        ),
        unrecorded=frozenset(server for server, one in sections.items() if not one.record),
        untraced=frozenset(server for server, one in sections.items() if not one.telemetry),
        credentials=_kept_credentials(path, section, texts) if any(given.is_kept for given in signed) else None,
    )


def _kept_credentials(path: Path, section: GatewaySection, texts: FileTexts) -> CredentialsOptions:
    given = section.credentials
    database = texts.expanded("toolcrib.credentials.database", given.database)
    return CredentialsOptions(path.parent / database, texts.expanded("toolcrib.credentials.pages", given.pages))


def _api_texts(place: FilePlace, texts: FileTexts) -> ApiTexts:
    return ApiTexts(place.path.parent, texts.expanded, lambda at, name: texts.variable(at, name, name), place.wrong)


def _entries_in(
    path: Path, *, warn: bool = True
) -> tuple[dict[FilePlace, _ServerEntry], dict[FilePlace, ApiEntry], GatewaySection]:
    """Return the servers of a file, its APIs, and its own section."""
    document = read_document(path)
    given: Any = document.get("toolcrib", {})
    section = valid_part(FilePlace(path), GatewaySection, given, "toolcrib.")
    defaults: Any = given.get("defaults") or {}
    entries: dict[FilePlace, _ServerEntry] = {}
    for name, entry in _servers_in(path, document).items():
        place = FilePlace(path, name)
        entries[place] = valid_part(place, _ServerEntry, _with_defaults(entry, defaults))
        if warn:
            _warn_of_unknown(place, entries[place])
    apis: dict[FilePlace, ApiEntry] = {}
    for name, entry in _apis_in(path, document).items():
        place = FilePlace(path, name, "API")
        apis[place] = valid_part(place, ApiEntry, with_api_defaults(entry, section.defaults))
    if same := {place.server for place in entries} & {place.server for place in apis}:
        raise FilePlace(path, min(same), "API").wrong("openapi", "a server has the same name; give one another")
    return entries, apis, section


def _apis_in(path: Path, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the APIs of a document by name, as they are there."""
    found: Any = document.get("openapi", {})
    if not isinstance(found, dict):
        raise FilePlace(path).wrong("openapi", 'it has the APIs by name: {"pets": {"document": "pets.yaml"}}')
    return cast("dict[str, Any]", found)


def _with_defaults(entry: Any, defaults: Mapping[str, Any]) -> Any:
    """Return the entry of a server, whose section has the defaults where it says nothing."""
    given = dict(cast("dict[str, Any]", entry)) if isinstance(entry, dict) else {}
    own: Any = given.get("toolcrib", {})
    if not (given and defaults and isinstance(own, dict)):
        return cast("Any", entry)
    said = {**defaults, **cast("dict[str, Any]", own)}
    if isinstance(said.get("limits"), dict):
        said["limits"] = {**defaults.get("limits", {}), **said["limits"]}
    given["toolcrib"] = said
    return given


def read_document(path: Path) -> dict[str, Any]:
    """Return a file of JSON, which may have comments, or of TOML, as a dict; raises TargetError."""
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = (error.strerror or str(error)) if isinstance(error, OSError) else "it is not UTF-8 text"
        raise TargetError(str(path), f"it cannot be read: {why}") from None
    try:
        read: Any = tomllib.loads(text) if path.suffix == ".toml" else json.loads(_plain_json(text))
    except (ValueError, RecursionError) as error:
        kind = "TOML" if path.suffix == ".toml" else "JSON"
        raise TargetError(str(path), f"it is no {kind}: {error}") from None
    if not isinstance(read, dict):
        raise TargetError(str(path), f'it is no object; begin with {{"{_KEYS[0]}": {{...}}}}')
    return cast("dict[str, Any]", read)


def _servers_in(path: Path, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the servers of a document by name, as they are there; raises TargetError where there is no such part."""
    inner = document.get("mcp")  # in the settings of VS Code
    for part in (document, cast("dict[str, Any]", inner) if isinstance(inner, dict) else {}):
        for key in _KEYS:
            found: Any = part.get(key)
            if isinstance(found, dict):
                return cast("dict[str, Any]", found)
    if isinstance(document.get("openapi"), dict):
        return {}
    raise TargetError(str(path), f"it has no servers: give them by name under `{_KEYS[0]}`")


def _plain_json(text: str) -> str:
    """Return JSON without the comments and the last commas that VS Code allows in it."""
    bare = _COMMENTS.sub(lambda found: found[0] if found[0].startswith('"') else " ", text)
    return _LAST_COMMAS.sub(lambda found: found[0] if found[0].startswith('"') else "", bare)


# --- one server


def _warn_of_unknown(place: FilePlace, made: _ServerEntry) -> None:
    fields = [*_ServerEntry.model_fields, "envFile", "serverUrl"]
    for name in made.model_extra or {}:
        if name not in _OF_CLIENTS:
            _log.warning(
                "%s: the server `%s`: `%s` is not read. %s", place.path, place.server, name, closest(name, fields)
            )


def _toolset(place: FilePlace, entry: _ServerEntry, texts: FileTexts, several: bool, vault: Vault) -> Toolset | None:
    if entry.disabled or not entry.enabled:
        return None
    section = entry.toolcrib
    if _is_sse(entry) and not section.required and several:
        _log.error("%s. It is left out.", _old_transport(place))
        return None
    return _connected(place, entry, texts, _prefix(place.server, section, several), vault)


def _is_sse(entry: _ServerEntry) -> bool:
    return (entry.type or entry.transport) == "sse"


def _old_transport(place: FilePlace) -> TargetError:
    return place.wrong("type", "`sse` is the old transport over HTTP; give the server's address for `http`")


def _prefix(name: str, section: _Section, several: bool) -> str:
    if section.prefix is not None:
        return section.prefix
    return f"{_NOT_A_NAME.sub('_', name)}_" if several else ""


def _may_change(tool: RemoteTool) -> bool:
    """Return whether a tool may change something, as far as its server says."""
    return not tool.read_only


def _connected(place: FilePlace, entry: _ServerEntry, texts: FileTexts, prefix: str, vault: Vault) -> ServerToolset:
    section = entry.toolcrib
    if section.mode not in MODES:
        raise place.wrong("toolcrib.mode", f"{section.mode!r} is none; write one of {', '.join(MODES)}")
    source, options = _source(place, entry, texts)
    if section.credentials is not None:
        options |= _signing(place, section.credentials, source, options, texts, vault)
    approval: Approval = _may_change if section.approval == "unless_read_only" else cast("Any", section.approval)
    return connect(
        source,
        name=place.server,
        prefix=prefix,
        tool_names=section.tools,
        include_resources=section.resources,
        include_prompts=section.prompts,
        resource_tools=section.resource_tools,
        include_instructions=section.instructions,
        descriptions=section.descriptions,
        approval=approval,
        mode=section.mode,
        name_clash="leave_out",
        required=section.required,
        trusted=section.trusted,
        ask_client=DEFAULT_KINDS if section.ask_client is None else section.ask_client,
        approve_sampling=section.approve_sampling,
        roots=None if section.roots is None else [_root(place, texts, root) for root in section.roots],
        log_level=section.log_level,
        labels=section.labels,
        pins=_pins(place, section.pins, texts),
        timeout=section.limits.timeout,
        connect_timeout=section.limits.connect_timeout,
        max_message=section.limits.max_message,
        max_result_chars=section.limits.max_result_chars,
        **options,
    )


def _pins(place: FilePlace, said: bool | str, texts: FileTexts) -> Path | None:
    """Return the file in which a server's tools are kept."""
    folder = place.path.parent
    if isinstance(said, str):
        return folder / texts.expanded("toolcrib.pins", said)
    if said and not os.access(folder, os.W_OK):
        _log.warning("%s: no pins are kept, as its folder cannot be written; name a file as `pins`", place.path)
        return None
    name = place.path.stem if place.path.suffix == ".json" else place.path.name
    return folder / f"{name}.pins.db" if said else None


def _signing(
    place: FilePlace, section: CredentialsSection, source: Any, options: dict[str, Any], texts: FileTexts, vault: Vault
) -> dict[str, Any]:
    """Return the options of `connect` that sign requests."""
    field = "toolcrib.credentials"
    if not isinstance(source, str):
        raise place.wrong(field, "they are for an address; for a command write `pass_env`")
    if problem := section.problem():
        raise place.wrong(field, problem)
    if section.api_key_env is None:
        return {"credentials": vault.credentials(section, lambda at, name: texts.variable(at, name, name), place.wrong)}
    key = texts.variable(f"{field}.api_key_env", section.api_key_env, section.api_key_env)
    header = section.header or "Authorization"
    value = f"Bearer {key}" if header.lower() == "authorization" else key
    return {"headers": {**options.get("headers", {}), header: value}}


def _root(place: FilePlace, texts: FileTexts, root: str) -> str | Path:
    """Return a folder, by the file where it is relative; or a URI as it is."""
    given = texts.expanded("toolcrib.roots", root)
    return given if "://" in given else place.path.parent / given


def _source(place: FilePlace, entry: _ServerEntry, texts: FileTexts) -> tuple[Any, dict[str, Any]]:
    """Return the source of a server for `connect`, and the options that go with it."""
    section, url, kind = entry.toolcrib, entry.url or entry.server_url, entry.type or entry.transport
    if _is_sse(entry):
        raise _old_transport(place)
    if kind is not None and kind not in ("stdio", *_HTTP):
        raise place.wrong("type", f"{kind!r} is no transport; write `stdio` or `http`, or leave it out")
    if (entry.command is None) == (url is None):
        both = "there are a command and an address; leave one out" if url else "it is missing; give it, or a `url`"
        raise place.wrong("command", both)
    if url is not None:
        if section.pass_env:
            raise place.wrong("toolcrib.pass_env", "it is for a command; for an address write `bearer_env`")
        headers = {name: texts.expanded(f"headers.{name}", text) for name, text in entry.headers.items()}
        if section.bearer_env is not None:
            token = texts.variable("toolcrib.bearer_env", section.bearer_env, section.bearer_env)
            headers["Authorization"] = f"Bearer {token}"
        address = texts.expanded("url", url)
        if not address.startswith(("http://", "https://")):
            raise place.wrong("url", f"it begins with http:// or https://, and is {address!r:.60}")
        return address, {"headers": headers}
    if section.bearer_env is not None:
        raise place.wrong("toolcrib.bearer_env", "it is for an address; for a command write `pass_env`")
    words = [entry.command or "", *entry.args]
    command = [texts.expanded(f"args.{at - 1}" if at else "command", word) for at, word in enumerate(words)]
    env = _env_file(place, texts.expanded("envFile", entry.env_file)) if entry.env_file else {}
    env |= {n: texts.expanded(f"env.{n}", _as_text(value)) for n, value in entry.env.items() if value is not None}
    env |= {name: texts.variable("toolcrib.pass_env", name, name) for name in section.pass_env}
    cwd = None if entry.cwd is None else texts.expanded("cwd", entry.cwd)
    return command, {"env": env, "cwd": cwd}


def _as_text(value: str | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _env_file(place: FilePlace, name: str) -> dict[str, str]:
    """Return the variables of a file of lines such as `KEY=value`."""
    try:
        lines = (place.path.parent / name).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise place.wrong("envFile", f"{name} cannot be read: {error}") from None
    pairs = (line.strip().removeprefix("export ").partition("=") for line in lines if not line.lstrip().startswith("#"))
    return {key.strip(): value.strip().strip("\"'") for key, equals, value in pairs if equals}
