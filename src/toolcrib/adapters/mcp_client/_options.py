"""Options of `connect`, and its source as the SDK takes it."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, TypedDict, cast
from urllib.parse import urlsplit

import httpx2
from mcp.client import Client, ClientSession
from mcp.client.session import SamplingFnT
from mcp.client.stdio import StdioServerParameters
from mcp.server import Server
from mcp.server.mcpserver import MCPServer

from toolcrib.adapters.mcp_client._values import Elicitation, RemoteTool
from toolcrib.approvals import ToolPins
from toolcrib.formats import Refused

__all__ = ["Approval", "ConnectOptions", "Elicit", "Options", "Source", "pinned_name", "read_source", "server_name"]

Source: TypeAlias = str | Sequence[str] | StdioServerParameters | Client | ClientSession | Server[Any] | MCPServer
Approval: TypeAlias = bool | Collection[str] | Callable[[RemoteTool], bool]
Elicit: TypeAlias = Callable[[Elicitation], Awaitable[Mapping[str, Any] | bool | None]]


class ConnectOptions(TypedDict, total=False):
    """The less usual keywords of `connect`; `Options` says what each means."""

    name: str
    env: Mapping[str, str]
    cwd: str | Path
    mode: str
    include_prompts: bool
    include_instructions: bool
    elicit: Elicit
    sampling: SamplingFnT
    roots: Sequence[str | Path]
    connect_timeout: float
    max_message: int
    max_result_chars: int | None
    refused: Refused
    required: bool | None
    trusted: bool
    pins: ToolPins | str | Path | None


@dataclass(frozen=True, slots=True)
class Options:
    """The options of `connect`.

    Attributes:
        name: The server's name in messages and tags; target of the source when empty.
        env: More environment variables for a command, which gets few of this process's.
        cwd: The working folder of a command.
        mode: The generation of the protocol: `auto` asks the server, `legacy` shakes hands as before 2026, a
            version is used as it is.
        include_prompts: Offer `list_prompts` and `get_prompt` as tools.
        include_instructions: Let `get_instructions` return the server's instructions.
        elicit: Answers a question of the server to a person during a call: the fields by name, True or False for yes or
            no, None to leave it open. Without it the run's approver is asked; without one, the question is declined.
        sampling: Answers requests of the server to a model, as the SDK has them; without it they are refused.
        roots: Folders that the server may work in.
        connect_timeout: Seconds for starting and for the handshake.
        max_message: Bytes of one message of the server. A command that sends more is stopped; a call over HTTP with a
            longer reply fails.
        max_result_chars: The most characters of a result that go back to a model.
        refused: What becomes of a tool whose description cannot be read: `leave_out`, with an error in the log of
            `toolcrib.mcp` that names it; or `raise` that error.
        required: Whether opening the toolset fails with a ServerError where the server does not start. Else it is left
            out with a warning, and tried again; with None only where the toolset has other tools.
        trusted: Whether a `Provenance` policy takes the server's hints at their word: a tool that reads only is not
            asked about, and results of one with `openWorldHint: false` are trusted. Other servers' hints count where
            they ask for more care.
        pins: Where the tools are kept as they were when the server was first used, or the path of a SQLite file: a
            change has to be accepted by a person. With a `name`, the server is known by it, else by its source.
    """

    prefix: str = ""
    tool_names: Collection[str] | None = None
    include_resources: bool | Collection[str] = True
    descriptions: Mapping[str, str] = field(default_factory=dict[str, str])
    return_schemas: Mapping[str, Any] = field(default_factory=dict[str, Any])
    approval: Approval = False
    headers: Mapping[str, str] | None = None
    auth: httpx2.Auth | None = None
    name: str = ""
    env: Mapping[str, str] | None = None
    cwd: str | Path | None = None
    mode: str = "auto"
    include_prompts: bool = False
    include_instructions: bool = False
    elicit: Elicit | None = None
    sampling: SamplingFnT | None = None
    roots: Sequence[str | Path] | None = None
    connect_timeout: float = 60.0
    max_message: int = 16 * 1024 * 1024
    max_result_chars: int | None = None
    refused: Refused = "leave_out"
    required: bool | None = None
    trusted: bool = False
    pins: ToolPins | str | Path | None = None

    def __post_init__(self) -> None:
        if self.max_message < 1:
            raise ValueError(f"max_message is at least 1 byte, and is {self.max_message}")

    def needs_approval(self, tool: RemoteTool, names: Collection[str]) -> bool:
        """Return whether a tool needs approval; `names` are all of its names."""
        if isinstance(self.approval, bool):
            return self.approval
        if callable(self.approval):
            return bool(self.approval(tool))
        return any(name in self.approval for name in names)

    def named(self) -> dict[str, frozenset[str]]:
        """Return the tools that options name, by the keyword; each has to exist."""
        named: dict[str, frozenset[str]] = {
            "tool_names": frozenset(self.tool_names or ()),
            "descriptions": frozenset(self.descriptions),
            "return_schemas": frozenset(self.return_schemas),
        }
        if not isinstance(self.approval, bool) and not callable(self.approval):
            named["approval"] = frozenset(self.approval)
        return named

    def wants(self, tool: RemoteTool, names: Collection[str]) -> bool:
        """Return whether a tool is included; `names` are all of its names."""
        if self.tool_names is not None and tool.kind in ("tool", "prompt"):
            return any(name in self.tool_names for name in names)
        if tool.kind in ("resource", "template") and not isinstance(self.include_resources, bool):
            return any(name in self.include_resources for name in names)
        return True


_OPTION_SOURCES = (
    ("headers", "a URL", str),
    ("auth", "a URL", str),
    ("env", "a command line", StdioServerParameters),
    ("cwd", "a command line", StdioServerParameters),
)


def read_source(source: Any, options: Options) -> Any:
    """Return a source as the SDK takes it: parameters of a command, a URL, a client, a session, a server.

    Raises:
        TypeError: It is none of these, or an option does not go with it.
    """
    target: Any = source
    if isinstance(source, list | tuple):
        target = _command(cast("Sequence[str]", source), options)
    elif isinstance(source, str) and not _is_url(source):
        target = _command(shlex.split(source), options)
    kinds = (str, StdioServerParameters, Client, ClientSession, Server, MCPServer)
    if not isinstance(target, kinds):
        wanted = "a command line, a URL, or a session, a Client or a server of the SDK"
        raise TypeError(f"connect() takes {wanted}, and got {target!r:.100}")
    for option, kind, fits in _OPTION_SOURCES:
        if getattr(options, option) is not None and not isinstance(target, fits):
            raise TypeError(f"`{option}` goes with {kind}, and the source is {target!r:.100}")
    return cast("Any", target)


def server_name(target: Any) -> str:
    """Return the name of a server in messages, without the parts of its URL that may be secret."""
    match target:
        case str():
            parts = urlsplit(target)
            return f"{parts.hostname}{f':{parts.port}' if parts.port else ''}{parts.path}"
        case StdioServerParameters():
            return _brief([target.command, *target.args])
        case Server() | MCPServer():
            return target.name
        case Client():
            return server_name(target.server)
        case _:
            return "session"


def pinned_name(target: Any, options: Options) -> str:
    """Return the name by which a server is known where its tools are pinned: of its own, or by all of its source."""
    match target:
        case _ if options.name:
            return options.name
        case str():
            whole = target
        case StdioServerParameters():
            whole = json.dumps([target.command, *target.args])
        case _:
            return server_name(target)
    return f"{server_name(target)} {hashlib.sha256(whole.encode()).hexdigest()[:12]}"  # some of it may be secret


def _brief(words: Sequence[str]) -> str:
    """Return a command by the names of its files; arguments that follow may be secret."""
    names = [Path(word).name for word in words[:2]]
    return " ".join(names)


def _is_url(text: str) -> bool:
    return text.startswith(("http://", "https://"))


def _command(words: Sequence[str], options: Options) -> StdioServerParameters:
    if not words:
        raise ValueError("the command line of the server is empty")
    env = None if options.env is None else dict(options.env)
    return StdioServerParameters(command=words[0], args=list(words[1:]), env=env, cwd=options.cwd)
