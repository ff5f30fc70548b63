"""What `connect` may be told besides the source, and how a source is read."""

from __future__ import annotations

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

__all__ = ["Approval", "ConnectOptions", "Elicit", "Options", "Source", "read_source", "server_name"]

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


@dataclass(frozen=True, slots=True)
class Options:
    """Everything that `connect` was told.

    Attributes:
        name: What the server is called in messages and tags; made of the source when not given.
        env: More environment variables for a command, which gets few of ours.
        cwd: The folder that a command runs in.
        mode: Which generation of the protocol is spoken: `auto` asks the server, `legacy` shakes hands as before 2026,
            and a version is taken as it is.
        include_prompts: Offer `list_prompts` and `get_prompt` as tools.
        include_instructions: Let `get_instructions` have what the server says about its own use.
        elicit: Answers what the server asks a person while a call waits: the fields by name, True or False for yes or
            no, None to leave it. Without it the run's approver is asked; without one, the server is told no.
        sampling: Answers requests of the server to a model, as the SDK has them; without it they are refused.
        roots: Folders that the server is told it may work in.
        connect_timeout: Seconds for starting and for the handshake.
        max_message: Bytes of one message of the server's. A command that sends more is stopped, and a call over HTTP
            that is answered by more fails.
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

    def __post_init__(self) -> None:
        if self.max_message < 1:
            raise ValueError(f"max_message is at least 1 byte, and is {self.max_message}")

    def asks(self, tool: RemoteTool, names: Collection[str]) -> bool:
        """Return whether a tool needs approval; `names` are all by which it is known."""
        if isinstance(self.approval, bool):
            return self.approval
        if callable(self.approval):
            return bool(self.approval(tool))
        return any(name in self.approval for name in names)

    def named(self) -> dict[str, frozenset[str]]:
        """Return the tools that were told by name, by the keyword; each has to be there."""
        told: dict[str, frozenset[str]] = {
            "tool_names": frozenset(self.tool_names or ()),
            "descriptions": frozenset(self.descriptions),
            "return_schemas": frozenset(self.return_schemas),
        }
        if not isinstance(self.approval, bool) and not callable(self.approval):
            told["approval"] = frozenset(self.approval)
        return told

    def takes(self, tool: RemoteTool, names: Collection[str]) -> bool:
        """Return whether a tool is wanted; `names` are all by which it is known."""
        if self.tool_names is not None and tool.kind in ("tool", "prompt"):
            return any(name in self.tool_names for name in names)
        if tool.kind in ("resource", "template") and not isinstance(self.include_resources, bool):
            return any(name in self.include_resources for name in names)
        return True


_FITTING = (
    ("headers", "a URL", str),
    ("auth", "a URL", str),
    ("env", "a command line", StdioServerParameters),
    ("cwd", "a command line", StdioServerParameters),
)


def read_source(source: Any, options: Options) -> Any:
    """Return a source as what the SDK takes: parameters of a command, a URL, a client, a session, a server.

    Raises:
        TypeError: It is none of these, or an option does not go with it.
    """
    made: Any = source
    if isinstance(source, list | tuple):
        made = _command(cast("Sequence[str]", source), options)
    elif isinstance(source, str) and not _is_url(source):
        made = _command(shlex.split(source), options)
    kinds = (str, StdioServerParameters, Client, ClientSession, Server, MCPServer)
    if not isinstance(made, kinds):
        wanted = "a command line, a URL, or a session, a Client or a server of the SDK"
        raise TypeError(f"connect() takes {wanted}, and got {made!r:.100}")
    for option, kind, fits in _FITTING:
        if getattr(options, option) is not None and not isinstance(made, fits):
            raise TypeError(f"`{option}` goes with {kind}, and the source is {made!r:.100}")
    return cast("Any", made)


def server_name(made: Any) -> str:
    """Return what a server is called in messages, without what in its URL may be secret."""
    match made:
        case str():
            parts = urlsplit(made)
            return f"{parts.hostname}{f':{parts.port}' if parts.port else ''}{parts.path}"
        case StdioServerParameters():
            return _brief([made.command, *made.args])
        case Server() | MCPServer():
            return made.name
        case Client():
            return server_name(made.server)
        case _:
            return "session"


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
