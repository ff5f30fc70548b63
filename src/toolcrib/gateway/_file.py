"""File of MCP servers, as clients share it: `mcpServers` in JSON or TOML, with a section `toolcrib` for each server."""

from __future__ import annotations

import logging
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from pydantic import BaseModel, Field

from toolcrib._json_writer import read_json
from toolcrib.approvers import load_rules, read_rules
from toolcrib.errors import MissingExtraError, PolicyError, TargetError, UnknownTool, closest, explain_options
from toolcrib.gateway._api import ApiEntry, ApiSection, api_toolset
from toolcrib.gateway._credentials import CredentialPlace, Vault
from toolcrib.gateway._fields import FilePlace, FileTexts, Part, Text, read_part
from toolcrib.gateway._misplaced import (
    OF_CLIENTS,
    refuse_misplaced,
    refuse_misplaced_in_entry,
    refuse_options_of_file,
    refuse_options_of_servers,
)
from toolcrib.gateway._options import BudgetSection, GatewayOptions
from toolcrib.gateway._server import ServerEntry, ServerSection, old_transport, server_toolset
from toolcrib.schema import RunContext
from toolcrib.serving import claimed_groups
from toolcrib.toolsets import EntryFilter, ToolEntry, Toolset

_OWN: Final = ("approvers", "budgets", "code_mode", "errors", "groups", "instructions", "limits", "name", "provenance")
_OF_SECTION: Final = (*_OWN, "scopes", "search")
"""The options of the section that an endpoint may have; what it has takes the place of what the section says."""


class _Endpoint(Part):
    """The options of an endpoint besides those of the section.

    Attributes:
        servers: The servers and APIs whose tools are offered there.
        public_url: The whole URL of it as clients write it, behind a proxy.
    """

    servers: list[str] = Field(min_length=1)
    public_url: Text | None = None


def endpoints_of(path: Path, document: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the section of each endpoint in a document, by its path.

    Raises:
        TargetError: A path is invalid, or an option is unknown; the error names the endpoint and the field.
    """
    entry: Any = document.get("toolcrib")
    section = cast("dict[str, Any]", entry) if isinstance(entry, dict) else {}
    found: Any = section.get("endpoints", {})
    place = FilePlace(path)
    if not isinstance(found, dict):
        raise place.wrong("toolcrib.endpoints", 'it has them by path: {"/finance/mcp": {"servers": ["books"]}}')
    endpoints = cast("dict[str, Any]", found)
    if endpoints and "public_url" in (section.get("http") or {}):
        raise place.wrong("toolcrib.http.public_url", "there are several endpoints: give each its own `public_url`")
    for name, options in endpoints.items():
        if not name.startswith("/") or name.endswith("/") or {*name} & {*"?#{}"} or not isinstance(options, dict):
            raise place.wrong(f"toolcrib.endpoints.{name}", 'write it as "/finance/mcp": {"servers": ["books"]}')
        for option in cast("dict[str, Any]", options):
            if option not in (*_OF_SECTION, *_Endpoint.model_fields):
                known = closest(option, (*_OF_SECTION, *_Endpoint.model_fields))
                raise place.wrong(f"toolcrib.endpoints.{name}.{option}", f"an endpoint has no such option. {known}")
    return endpoints


def document_of(path: Path, document: Mapping[str, Any], endpoint: str | None) -> Mapping[str, Any]:
    """Return a document as it is for one endpoint: with its servers, and its options in place of the section's.

    Raises:
        TargetError: The document has endpoints and none is named, or the one that is named does not exist.
    """
    endpoints = endpoints_of(path, document)
    if endpoint is None and not endpoints:
        return document
    if endpoint is None:
        first, names = next(iter(endpoints)), ", ".join(endpoints)
        raise TargetError(str(path), f"it has the endpoints {names}: name one, as in {path.name}#{first}")
    if endpoint not in endpoints:
        raise TargetError(str(path), f"it has no endpoint `{endpoint}`. {closest(endpoint, endpoints)}")
    fields = {name: value for name, value in endpoints[endpoint].items() if name in _Endpoint.model_fields}
    read = read_part(FilePlace(path), _Endpoint, fields, f"toolcrib.endpoints.{endpoint}.")
    section: dict[str, Any] = {name: value for name, value in document["toolcrib"].items() if name != "endpoints"}
    http = {**section.get("http", {}), "path": endpoint}
    http |= {} if read.public_url is None else {"public_url": read.public_url}
    options = {name: value for name, value in endpoints[endpoint].items() if name in _OF_SECTION}
    return {**document, "toolcrib": {**section, **options, "http": http}, "of_endpoint": read.servers}


_log = logging.getLogger("toolcrib.mcp")
_KEYS = ("mcpServers", "servers", "mcp_servers", "context_servers")  # of most clients; VS Code; those with TOML; Zed
_COMMENTS = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_LAST_COMMAS = re.compile(r'"(?:\\.|[^"\\])*"|,(?=\s*[}\]])')
_NOT_A_NAME = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True, slots=True)
class GatewayFile:
    """The options of a file of servers for the gateway as a whole.

    Attributes:
        options: Its section `toolcrib`.
        credentials: Where the credentials of principals are kept; None where no server has any.
        unrecorded: The servers whose calls are left out of the record.
        untraced: The servers whose calls are left out of telemetry.
        endpoints: The paths at which servers are offered, where the file has several.
    """

    options: GatewayOptions = field(default_factory=GatewayOptions)
    credentials: CredentialPlace | None = None
    unrecorded: frozenset[str] = frozenset()
    untraced: frozenset[str] = frozenset()
    endpoints: tuple[str, ...] = ()


@explain_options()
def toolset_of_file(
    path: str | Path, environment: Mapping[str, str] | None = None, endpoint: str | None = None
) -> Toolset:
    """Return the tools of all servers of a file, or of those of one endpoint.

    Args:
        path: The file. A server that is switched off there is left out.
        environment: The environment variables that it may name; this process's when None.
        endpoint: The path of the endpoint, in a file that has several.

    Raises:
        TargetError: The file cannot be read, or an entry is wrong: the error names the server, the field and the mend.
    """
    path = Path(path)
    contents, texts = read_document(path), FileTexts(path, os.environ if environment is None else environment)
    document = document_of(path, contents, endpoint)
    options = _options(path, document)
    servers, apis = _entries(path, document, texts)
    several = len(_servers_in(path, contents)) + len(_apis_in(path, contents)) > 1
    vault = Vault(_credential_place(path, document, texts))
    toolsets = [*_toolsets_of(servers | apis, vault, several=several)]
    if not toolsets:
        raise TargetError(str(path), f"it has no server that is switched on; add one under `{_KEYS[0]}`")
    tools = Toolset(toolsets, toolset_id=path.stem)
    try:
        tools = tools.with_scopes(options.scopes) if options.scopes else tools
    except ValueError as error:
        raise FilePlace(path).wrong("toolcrib.scopes", str(error)) from None
    for pattern, groups in options.groups.items():
        try:
            tools = tools.filtered(_for_groups(groups, options.group_claim), [pattern])
        except UnknownTool as error:
            raise FilePlace(path).wrong("toolcrib.groups", str(error)) from None
    limits = options.limits.of_calls
    if limits is not None and limits.tool_names:
        tools = tools.requiring(limits.tool_names, "toolcrib.limits.per_tool")
    return _under_rules(path, document, texts, _within_budgets(path, document, texts, tools))


def _toolsets_of(
    entries: Mapping[FilePlace, ServerEntry | ApiEntry], vault: Vault, *, several: bool
) -> Iterator[Toolset]:
    """Yield the tools of each entry that is switched on, with its name before theirs where the file has `several`."""
    for place, entry in entries.items():
        prefix = _prefix(place.server) if several else ""
        if entry.disabled or not getattr(entry, "enabled", True):
            continue
        if isinstance(entry, ApiEntry):
            yield api_toolset(place, entry, prefix, vault)
        elif entry.is_sse and several and not entry.toolcrib.required:
            _log.error("%s. It is left out.", old_transport(place))
        else:
            fields = [*ServerEntry.model_fields, "envFile", "serverUrl"]
            for name in entry.model_extra or {}:
                if name not in OF_CLIENTS:
                    _log.warning(
                        "%s: the server `%s`: `%s` is not read. %s",
                        place.path,
                        place.server,
                        name,
                        closest(name, fields),
                    )
            yield server_toolset(place, entry, prefix, vault)


@explain_options()
def read_gateway(
    path: str | Path, environment: Mapping[str, str] | None = None, endpoint: str | None = None
) -> GatewayFile:
    """Read the settings of the gateway in a file of servers, its section `toolcrib`.

    Args:
        path: The file.
        environment: The environment variables that the section may name; this process's when None.
        endpoint: The path of the endpoint, in a file that has several.

    Raises:
        TargetError: The file cannot be read, or an option is wrong: the error names the field and the mend.
    """
    path = Path(path)
    contents, texts = read_document(path), FileTexts(path, os.environ if environment is None else environment)
    document = contents if endpoint is None else document_of(path, contents, endpoint)
    options = _options(path, document, texts)
    servers, apis = _entries(path, document)
    signed = [entry.toolcrib.credentials for entry in servers.values()]
    signed += [credential for api in apis.values() for credential in api.toolcrib.credentials.values()]
    is_kept = any(credential is not None and credential.is_kept for credential in signed)
    return GatewayFile(
        options,
        _credential_place(path, document, texts) if is_kept else None,
        frozenset(place.server for place, entry in servers.items() if not entry.toolcrib.record),
        frozenset(place.server for place, entry in servers.items() if not entry.toolcrib.telemetry),
        tuple(endpoints_of(path, document)),
    )


def _options(path: Path, document: Mapping[str, Any], texts: FileTexts | None = None) -> GatewayOptions:
    """Return a file's own section; without `texts` as it is written."""
    section: Any = document.get("toolcrib", {})
    refuse_options_of_servers(FilePlace(path), section, GatewayOptions, ServerSection, _prefixes(path, document))
    return read_part(FilePlace(path), GatewayOptions, section, "toolcrib.", texts)


def _entries(
    path: Path, document: Mapping[str, Any], texts: FileTexts | None = None
) -> tuple[dict[FilePlace, ServerEntry], dict[FilePlace, ApiEntry]]:
    """Return the servers and APIs of a file, whose own section is in order; what is not used, as it is written."""
    defaults: Any = document.get("toolcrib", {}).get("defaults") or {}
    servers, apis = _servers_in(path, document), _apis_in(path, document)
    if same := servers.keys() & apis.keys():
        raise FilePlace(path, min(same), "API").wrong("openapi", "a server has the same name; give one another")
    inner: Any = document["mcp"] if any(name.startswith("mcp.") for name in _server_parts(document)) else {}
    if "toolcrib" in inner:
        raise FilePlace(path).wrong("mcp.toolcrib", "it has no effect here; write it beside `mcp`")
    for part in (document, inner):
        others = {name: value for name, value in part.items() if name not in (*_KEYS, "of_endpoint")}
        refuse_misplaced(FilePlace(path), others, GatewayOptions, ServerSection, _prefixes(path, document))
    if (wanted := document.get("of_endpoint")) is not None:
        for name in wanted:
            if name not in {*servers, *apis}:
                known = closest(name, [*servers, *apis])
                raise FilePlace(path).wrong("toolcrib.endpoints", f"there is no server `{name}`. {known}")
        servers, apis = ({name: some[name] for name in some if name in wanted} for some in (servers, apis))

    def read(kind: str, model: Any, section: type[BaseModel], entries: Mapping[str, Any]) -> dict[FilePlace, Any]:
        places = {FilePlace(path, name, kind): entry for name, entry in entries.items()}
        for place, entry in places.items():
            refuse_misplaced_in_entry(place, entry, model, section)
            refuse_options_of_file(place, entry, section)
        return {
            place: read_part(
                place, model, _with_defaults(entry, defaults, section), texts=texts if _is_used(entry) else None
            )
            for place, entry in places.items()
        }

    return read("server", ServerEntry, ServerSection, servers), read("API", ApiEntry, ApiSection, apis)


def _prefixes(path: Path, document: Mapping[str, Any]) -> dict[str, str]:
    """Return the beginning of the names of the tools of each server, also where one server alone has none."""
    found: dict[str, str] = {}
    for name, entry in _servers_in(path, document).items():
        section: Any = cast("dict[str, Any]", entry).get("toolcrib") if isinstance(entry, dict) else None
        prefix: Any = cast("dict[str, Any]", section).get("prefix") if isinstance(section, dict) else None
        found[name] = prefix if isinstance(prefix, str) else _prefix(name)
    return found


def _prefix(server: str) -> str:
    return f"{_NOT_A_NAME.sub('_', server)}_"


def _is_used(entry: Any) -> bool:
    """Return whether a server or an API is neither switched off nor reached by the old transport over HTTP."""
    fields = cast("dict[str, Any]", entry) if isinstance(entry, dict) else {}
    is_off = fields.get("disabled") is True or fields.get("enabled") is False
    return not is_off and (fields.get("type") or fields.get("transport")) != "sse"


def _credential_place(path: Path, document: Mapping[str, Any], texts: FileTexts) -> CredentialPlace:
    section = document.get("toolcrib", {}).get("credentials", {})
    return read_part(FilePlace(path), CredentialPlace, section, "toolcrib.credentials.", texts)


def _within_budgets(path: Path, document: Mapping[str, Any], texts: FileTexts, tools: Toolset) -> Toolset:
    fields = document.get("toolcrib", {}).get("budgets", {})
    section = read_part(FilePlace(path), BudgetSection, fields, "toolcrib.budgets.", texts)
    claim = _options(path, document, texts).group_claim
    try:
        gate = section.gate(claim)
    except ValueError as error:
        raise FilePlace(path).wrong("toolcrib.budgets", str(error)) from None
    return tools if gate is None else tools.with_gates(gate)


def _under_rules(path: Path, document: Mapping[str, Any], texts: FileTexts, tools: Toolset) -> Toolset:
    approvers = _options(path, document, texts).approvers
    try:
        if approvers is None:
            return tools
        return tools.with_gates(
            load_rules(approvers)
            if isinstance(approvers, str)
            else read_rules(approvers, "in the section", path.parent)
        )
    except (MissingExtraError, PolicyError) as error:
        raise FilePlace(path).wrong("toolcrib.approvers", str(error)) from None


def _for_groups(groups: str | list[str], claim: str) -> EntryFilter:
    """Return whether a tool is offered: to those whose token has one of these groups, and where there are no tokens."""
    wanted = {groups} if isinstance(groups, str) else set(groups)

    def is_offered(ctx: RunContext[Any], entry: ToolEntry) -> bool:
        access = None if ctx.run is None else ctx.run.channel.access
        return access is None or not wanted.isdisjoint(claimed_groups(access.claims, claim))

    return is_offered


def _with_defaults(entry: Any, defaults: Mapping[str, Any], section: type[BaseModel]) -> Any:
    """Return an entry whose section has the defaults where it says nothing, as far as the section has such options."""
    values = dict(cast("dict[str, Any]", entry)) if isinstance(entry, dict) else {}
    own_fields: dict[str, Any] = values.get("toolcrib", {})
    if not (values and defaults and isinstance(cast("Any", own_fields), dict)):
        return cast("Any", entry)
    fields = section.model_fields
    merged: dict[str, Any] = {name: value for name, value in defaults.items() if name in fields} | own_fields
    limits, general = cast("Any", fields["limits"].annotation), cast("dict[str, Any]", defaults.get("limits") or {})
    known = {name: value for name, value in general.items() if name in limits.model_fields}
    if known and isinstance(own_fields.get("limits", {}), dict):
        merged["limits"] = known | own_fields.get("limits", {})
    return values | {"toolcrib": merged}


# --- its text


def read_document(path: Path) -> dict[str, Any]:
    """Return a file of JSON, which may have comments, or of TOML, as a dict; raises TargetError."""
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = (error.strerror or str(error)) if isinstance(error, OSError) else "it is not UTF-8 text"
        raise TargetError(str(path), f"it cannot be read: {why}") from None
    try:
        read: Any = tomllib.loads(text) if path.suffix == ".toml" else read_json(_plain_json(text))
    except (ValueError, RecursionError) as error:
        kind = "TOML" if path.suffix == ".toml" else "JSON"
        raise TargetError(str(path), f"it is not {kind}: {error}") from None
    if not isinstance(read, dict):
        raise TargetError(str(path), f'it is not an object; begin with {{"{_KEYS[0]}": {{...}}}}')
    return cast("dict[str, Any]", read)


def _servers_in(path: Path, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the servers of a document by name, as they are there; raises TargetError where there is no such part."""
    parts = _server_parts(document)
    if len(parts) > 1:
        names = " and ".join(f"`{name}`" for name in parts)
        raise TargetError(str(path), f"it has servers under {names}: put all of them under `{_KEYS[0]}`")
    for servers in parts.values():
        return servers
    if isinstance(document.get("openapi"), dict):
        return {}
    raise TargetError(str(path), f"it has no servers: give them by name under `{_KEYS[0]}`")


def _server_parts(document: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the parts of a document that have servers by name; without the empty ones, where one has some."""
    inner = document.get("mcp")  # in the settings of VS Code
    inside = cast("dict[str, Any]", inner) if isinstance(inner, dict) else dict[str, Any]()
    every = {**document, **{f"mcp.{key}": found for key, found in inside.items()}}
    known = {f"{of}{key}" for of in ("", "mcp.") for key in _KEYS}
    parts = {name: cast("dict[str, Any]", every[name]) for name in every if name in known}
    parts = {name: found for name, found in parts.items() if isinstance(cast("Any", found), dict)}
    return {name: found for name, found in parts.items() if found} or dict([*parts.items()][:1])


def _plain_json(text: str) -> str:
    """Return JSON without the comments and the last commas that VS Code allows in it."""
    bare = _COMMENTS.sub(lambda found: found[0] if found[0].startswith('"') else " ", text)
    return _LAST_COMMAS.sub(lambda found: found[0] if found[0].startswith('"') else "", bare)


def _apis_in(path: Path, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the APIs of a document by name, as they are there."""
    found: Any = document.get("openapi", {})
    if not isinstance(found, dict):
        raise FilePlace(path).wrong("openapi", 'it has the APIs by name: {"pets": {"document": "pets.yaml"}}')
    return cast("dict[str, Any]", found)
