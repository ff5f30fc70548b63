"""File of MCP servers, as clients share it: `mcpServers` in JSON or TOML, with a section `toolcrib` for each server."""

from __future__ import annotations

import json
import logging
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from toolcrib.adapters.mcp_client._connect import ServerToolset, connect
from toolcrib.adapters.mcp_client._options import Approval
from toolcrib.adapters.mcp_client._values import RemoteTool
from toolcrib.errors import TargetError, closest
from toolcrib.toolsets import Toolset

__all__ = ["read_document", "toolset_of_file"]

_log = logging.getLogger("toolcrib.mcp")
_KEYS = ("mcpServers", "servers", "mcp_servers")  # of most clients; of VS Code; of those with TOML
_OF_CLIENTS = frozenset(  # fields of theirs that say nothing about how a server is reached
    {"alwaysAllow", "autoApprove", "description", "dev", "gallery", "note", "oauth", "timeout", "trust", "version"}
)
_COMMENTS = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_LAST_COMMAS = re.compile(r'"(?:\\.|[^"\\])*"|,(?=\s*[}\]])')
_VARIABLE = re.compile(r"\$\{([^{}]*)\}")
_NOT_A_NAME = re.compile(r"[^A-Za-z0-9_-]")
_HTTP = ("http", "streamable-http", "streamableHttp", "streamable_http")


class _Checked(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Limits(_Checked):
    """The limits for one server.

    Attributes:
        timeout: Seconds for one call.
        max_result_chars: The most characters of a result that go back to a model.
        max_message: Bytes of one message of the server.
        connect_timeout: Seconds for its start and its lists.
    """

    timeout: Annotated[float | None, Field(gt=0)] = None
    max_result_chars: Annotated[int | None, Field(ge=1)] = None
    max_message: Annotated[int, Field(ge=1)] = 16 * 1024 * 1024
    connect_timeout: Annotated[float, Field(gt=0)] = 60.0


class _Section(_Checked):
    """The section `toolcrib` of a server: how its tools are offered, and what gates they have.

    Attributes:
        prefix: What the name of each tool begins with; in a file of several servers `NAME_` when left out.
        tools: The tools to take; all of them when left out. An option names a tool as the server does.
        approval: Which tools need a person: all, none, those named, or `unless_read_only`: all but those that the
            server says change nothing.
        bearer_env: An environment variable with the token for the address.
        pass_env: Environment variables of this process that the command gets.
        trusted: Whether a policy of provenance takes the server's hints at their word.
        pins: A SQLite file, beside this one, in which the tools are kept as they were when the server was first used.
    """

    prefix: str | None = None
    tools: list[str] | None = None
    resources: bool | list[str] = True
    prompts: bool = False
    instructions: bool = False
    descriptions: dict[str, str] = Field(default_factory=dict[str, str])
    approval: bool | list[str] | Literal["unless_read_only"] = False
    limits: _Limits = Field(default_factory=_Limits)
    required: bool = False
    bearer_env: str | None = None
    pass_env: list[str] = Field(default_factory=list[str])
    trusted: bool = False
    pins: str | None = None


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
    servers = _servers_in(path, read_document(path))
    several = len(servers) > 1
    made = [
        _toolset(_Place(path, name), _checked(_Place(path, name), entry), variables, several)
        for name, entry in servers.items()
    ]
    toolsets = [one for one in made if one is not None]
    if not toolsets:
        raise TargetError(str(path), f"it has no server that is switched on; add one under `{_KEYS[0]}`")
    return Toolset(toolsets, toolset_id=path.stem)


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
    raise TargetError(str(path), f"it has no servers: give them by name under `{_KEYS[0]}`")


def _plain_json(text: str) -> str:
    """Return JSON without the comments and the last commas that VS Code allows in it."""
    bare = _COMMENTS.sub(lambda found: found[0] if found[0].startswith('"') else " ", text)
    return _LAST_COMMAS.sub(lambda found: found[0] if found[0].startswith('"') else "", bare)


# --- one server


@dataclass(frozen=True, slots=True)
class _Place:
    """The place of a server's entry, for errors."""

    path: Path
    server: str

    def wrong(self, field: str, problem: str) -> TargetError:
        return TargetError(str(self.path), f"the server `{self.server}`: `{field}`: {problem}")


def _checked(place: _Place, entry: Any) -> _ServerEntry:
    try:
        made = _ServerEntry.model_validate(entry)
    except ValidationError as error:
        problems = [_problem(one) for one in error.errors(include_url=False)]
        more = f" (and {len(problems) - 1} more: {'; '.join(f'`{f}`' for f, _ in problems[1:])})"
        raise place.wrong(problems[0][0], problems[0][1] + (more if len(problems) > 1 else "")) from None
    fields = [*_ServerEntry.model_fields, "envFile", "serverUrl"]
    for name in made.model_extra or {}:
        if name not in _OF_CLIENTS:
            _log.warning(
                "%s: the server `%s`: `%s` is not read. %s", place.path, place.server, name, closest(name, fields)
            )
    return made


def _problem(error: Any) -> tuple[str, str]:
    """Return the field of an error of pydantic, and what is wrong with it."""
    parts = [str(part) for part in error["loc"] if not (isinstance(part, str) and ("[" in part or part in _BRANCHES))]
    if error["type"] == "extra_forbidden":
        known = _Limits if "limits" in parts[:-1] else _Section
        return ".".join(parts), f"there is no such option. {closest(parts[-1], known.model_fields)}"
    given = f"; got {error['input']!r:.60}" if error["type"] != "missing" else ""
    return ".".join(parts) or "(all of it)", f"{error['msg'][:1].lower()}{error['msg'][1:]}{given}"


_BRANCHES = frozenset({"bool", "str", "int", "float", "literal['unless_read_only']"})


def _toolset(place: _Place, entry: _ServerEntry, variables: Mapping[str, str], several: bool) -> Toolset | None:
    if entry.disabled or not entry.enabled:
        return None
    section, texts = entry.toolcrib, _Texts(place, variables)
    made = _connected(place, entry, texts, _prefix(place.server, section, several))
    return made if section.limits.timeout is None else made.with_timeout(section.limits.timeout)


def _prefix(name: str, section: _Section, several: bool) -> str:
    if section.prefix is not None:
        return section.prefix
    return f"{_NOT_A_NAME.sub('_', name)}_" if several else ""


def _may_change(tool: RemoteTool) -> bool:
    """Return whether a tool may change something, as far as its server says."""
    return not tool.read_only


def _connected(place: _Place, entry: _ServerEntry, texts: _Texts, prefix: str) -> ServerToolset:
    section = entry.toolcrib
    source, options = _source(place, entry, texts)
    approval: Approval = _may_change if section.approval == "unless_read_only" else cast("Any", section.approval)
    return connect(
        source,
        name=place.server,
        prefix=prefix,
        tool_names=section.tools,
        include_resources=section.resources,
        include_prompts=section.prompts,
        include_instructions=section.instructions,
        descriptions=section.descriptions,
        approval=approval,
        required=section.required,
        trusted=section.trusted,
        pins=None if section.pins is None else place.path.parent / texts.expanded("toolcrib.pins", section.pins),
        connect_timeout=section.limits.connect_timeout,
        max_message=section.limits.max_message,
        max_result_chars=section.limits.max_result_chars,
        **options,
    )


def _source(place: _Place, entry: _ServerEntry, texts: _Texts) -> tuple[Any, dict[str, Any]]:
    """Return the source of a server for `connect`, and the options that go with it."""
    section, url, kind = entry.toolcrib, entry.url or entry.server_url, entry.type or entry.transport
    if kind == "sse":
        raise place.wrong("type", "`sse` is the old transport over HTTP; give the server's address for `http`")
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


def _env_file(place: _Place, name: str) -> dict[str, str]:
    """Return the variables of a file of lines such as `KEY=value`."""
    try:
        lines = (place.path.parent / name).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise place.wrong("envFile", f"{name} cannot be read: {error}") from None
    pairs = (line.strip().removeprefix("export ").partition("=") for line in lines if not line.lstrip().startswith("#"))
    return {key.strip(): value.strip().strip("\"'") for key, equals, value in pairs if equals}


class _Texts:
    """Texts of one server with the variables in them replaced, as the clients do."""

    def __init__(self, place: _Place, variables: Mapping[str, str]) -> None:
        self._place, self._variables = place, variables

    def expanded(self, field: str, text: str) -> str:
        """Return a text with the value of each `${...}` in it."""
        return _VARIABLE.sub(lambda found: self._value(field, found[1]), text)

    def variable(self, field: str, name: str, written: str) -> str:
        """Return an environment variable; raises TargetError where it is not set."""
        value = self._variables.get(name)
        if value is None:
            mend = f"set it, or write ${{{name}:-DEFAULT}}" if written != name or field[:8] != "toolcrib" else "set it"
            raise self._place.wrong(field, f"the environment variable {name} is not set; {mend}")
        return value

    def _value(self, field: str, inside: str) -> str:
        folder = self._place.path.resolve().parent
        if folder.name in (".vscode", ".cursor"):
            folder = folder.parent
        known = {
            "userHome": str(Path.home()),
            "workspaceFolder": str(folder),
            "workspaceFolderBasename": folder.name,
            "pathSeparator": os.sep,
            "/": os.sep,
        }
        if inside in known:
            return known[inside]
        if inside.startswith("input:"):
            name = inside.removeprefix("input:").upper().replace("-", "_")
            mend = f"write ${{{name}}}, and set that variable"
            raise self._place.wrong(field, f"${{{inside}}} is a question that the client asks; {mend}")
        name, has_default, default = inside.removeprefix("env:").partition(":-")
        if has_default:
            return self._variables.get(name) or default
        return self.variable(field, name, inside)
