"""Options of `connect`, and its source as the SDK takes it."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias, cast, get_args
from urllib.parse import urlsplit

import httpx2
from mcp.client import Client, ClientSession
from mcp.client.session import SamplingFnT
from mcp.client.stdio import StdioServerParameters
from mcp.server import Server
from mcp.server.mcpserver import MCPServer
from mcp_types import LoggingLevel
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from typing_extensions import TypedDict  # pydantic reads it on every Python

from toolcrib._numbers import require_numbers
from toolcrib.adapters.mcp_client._values import AskKind, Elicitation, RemoteTool
from toolcrib.approvals import ToolPins
from toolcrib.clock import SYSTEM_CLOCK, Clock
from toolcrib.credentials import Credentials
from toolcrib.formats import Refused
from toolcrib.tools import Effect, Labels, adapter_of, require_prefix

MODES: tuple[str, ...] = ("auto", "older", "legacy", *MODERN_PROTOCOL_VERSIONS)
"""The values of the option `mode`."""
ASK_KINDS: tuple[AskKind, ...] = get_args(AskKind)
DEFAULT_KINDS: frozenset[AskKind] = frozenset({"forms", "urls", "logs"})
"""The default of the option `ask_client`: the kinds of question that a server may ask the client of a call."""
DEFAULT_TIMEOUT = 300.0
"""Seconds for one call of a server, where the option `timeout` does not say it."""
Source: TypeAlias = str | Sequence[str] | StdioServerParameters | Client | ClientSession | Server[Any] | MCPServer
"""The server to connect to: a command or a URL as text, a command in words, parameters of the MCP SDK, or a client
or server object of it.
"""
Approval: TypeAlias = bool | Collection[str] | Callable[[RemoteTool], bool]
"""The tools that need approval: all or none, those of these names, or those for which a function of the tool returns
True.
"""
Elicit: TypeAlias = Callable[[Elicitation], Awaitable[Mapping[str, Any] | bool | None]]
"""Answers what a server asks for: the fields, a bare yes or no, or None where there is no answer."""


class ToolLabels(TypedDict, total=False):
    """The host's labels of a tool for a `Provenance` policy, as the options of `@tool` have them; each may be left out.

    Attributes:
        effect: The effect of the tool.
        source: How far its results can be trusted, or each field of them.
        content: The parameters that say something and decide nothing.
        readers: To whom its results may be sent.
    """

    effect: Effect
    source: Labels
    content: list[str]
    readers: list[str]


class ConnectOptions(TypedDict, total=False):
    """The less usual keywords of `connect`; `Options` says what each means."""

    name: str
    env: Mapping[str, str]
    cwd: str | Path
    mode: str
    include_prompts: bool | None
    resource_tools: bool
    include_instructions: bool
    elicit: Elicit
    sampling: SamplingFnT
    roots: Sequence[str | Path] | None
    ask_client: bool | Collection[AskKind]
    approve_sampling: bool
    question_wait: float
    log_level: LoggingLevel | None
    tasks: bool
    timeout: float | None
    connect_timeout: float
    max_message: int
    max_result_chars: int | None
    refused: Refused
    name_clash: Refused
    required: bool | None
    trusted: bool
    labels: Mapping[str, ToolLabels]
    pins: ToolPins | str | Path | None
    credentials: Credentials | None
    clock: Clock


@dataclass(frozen=True, slots=True)
class Options:
    """The options of `connect`.

    Attributes:
        name: The server's name in messages and tags; target of the source when empty.
        env: More environment variables for a command, which gets few of this process's.
        cwd: The working folder of a command.
        mode: The generation of the protocol. `auto` takes the newer one where the server has it; `older` that of before
            2026 where the server has it, as many servers ask a client something during a call in that one alone;
            `legacy` takes no other than that; a version is used as it is.
        include_prompts: Offer `list_prompts` and `get_prompt` as tools. When None, prompts are there for clients that
            the tools are served to alone, and models see none of them; with False, they are left out.
        resource_tools: Whether resources that are included are tools for models as well.
        include_instructions: Let `get_instructions` return the server's instructions.
        elicit: Answers a question of the server to a person during a call: the fields by name, True or False for yes or
            no, None to leave it open. Without it the client that made the call is asked, else the run's approver, else
            the question waits in the approval store; where there is none of these, it is declined.
        sampling: Answers requests of the server to a model, as the SDK has them; without it they are refused, but for
            those that `ask_client` lets through.
        roots: Folders that the server may work in; of a client's roots only what is inside of them.
        ask_client: The kinds of question and message from the server to the client of a call, where that is known, as
            behind a server of yours: `forms`, `urls` to visit, `sampling` by its model, `roots`, `logs`. True for all,
            False for none; all but `sampling` and `roots` when left out: a stranger's server would spend the user's
            model, and learn the names of folders. `roots` are passed on, too, where the option `roots` bounds them.
        approve_sampling: Whether a person has to approve each request to the client's model.
        question_wait: Seconds that a question waits in the approval store, where there is no one else to ask.
        log_level: The level from which on the server sends log lines; it chooses that itself when None, and most of the
            newer generation then send none.
        tasks: Take tasks where the server may choose: declare them to a server of the newer generation, and call as
            tasks the tools of an older one that may be called so. A call that waits for a person at the server then
            lasts until they have answered, where it is else an error that says so. A tool of an older
            server that requires a task is called as one in any case.
        timeout: Seconds for one call, and for any other request, until a server that has not answered is an error. The
            clock stands while a person is asked. A task has as long as it takes, while the server answers what it is
            asked about it. None waits for ever.
        connect_timeout: Seconds for starting and the handshake, and for each list of what the server has.
        max_message: Bytes of one message of the server. A command that sends more is stopped; a call over HTTP with a
            longer reply fails.
        max_result_chars: The most characters of a result that go back to a model.
        refused: The treatment of a tool whose description cannot be read: `leave_out`, with an error in the log of
            `toolcrib.mcp` that names it; or `raise` that error.
        name_clash: The treatment of a tool whose name another one of the toolset has: `raise` an error when it is
            opened; or `leave_out`, with an error in the log. The server with the longer prefix, else the first, keeps
            the name.
        required: Whether opening the toolset fails with a ServerError where the server does not start. Else it is left
            out with a warning, and tried again; with None only where the toolset has other tools. One to which
            no principal has given access yet counts as started.
        trusted: Whether a `Provenance` policy takes the server's hints at their word: a tool that reads only is not
            asked about, and results of one with `openWorldHint: false` are trusted. Other servers' hints count where
            they ask for more care.
        labels: The labels of a tool for a `Provenance` policy, by its name, in place of the server's hints; `*` is for
            all others.
        pins: Where the tools are kept as they were when the server was first used, or the path of a SQLite file: a
            change has to be accepted by a person. With a `name`, the server is known by it, else by its source.
        credentials: Sign the requests to a URL, those of each principal with their own: `OAuth` or `ApiKeys` of
            `toolcrib.credentials`. A call of a principal who has not consented is suspended, with a link.
        clock: The clock of the pauses between two tries, polls of a task, idle sessions, and what is too much at once.
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
    include_prompts: bool | None = None
    resource_tools: bool = True
    include_instructions: bool = False
    elicit: Elicit | None = None
    sampling: SamplingFnT | None = None
    roots: Sequence[str | Path] | None = None
    ask_client: bool | Collection[AskKind] = DEFAULT_KINDS
    approve_sampling: bool = False
    question_wait: float = 60.0
    log_level: LoggingLevel | None = None
    tasks: bool = False
    timeout: float | None = DEFAULT_TIMEOUT
    connect_timeout: float = 60.0
    max_message: int = 16 * 1024 * 1024
    max_result_chars: int | None = None
    refused: Refused = "leave_out"
    name_clash: Refused = "raise"
    required: bool | None = None
    trusted: bool = False
    labels: Mapping[str, ToolLabels] = field(default_factory=dict[str, "ToolLabels"])
    pins: ToolPins | str | Path | None = None
    credentials: Credentials | None = None
    clock: Clock = SYSTEM_CLOCK

    def __post_init__(self) -> None:
        sizes = {"max_message": 1, "max_result_chars": 1}
        times = ("timeout", "connect_timeout")
        require_prefix("connect: the prefix", self.prefix)
        require_numbers("connect", self, sizes, seconds=times, seconds_from_zero=("question_wait",))
        if self.mode not in MODES:
            raise ValueError(f"mode must be one of {', '.join(MODES)}, not {self.mode!r}")
        if isinstance(cast("object", self.auth), str):
            raise TypeError("auth signs requests; a token goes with them as headers={'Authorization': 'Bearer ...'}")
        if self.credentials is not None and self.auth is not None:
            raise ValueError("give credentials or auth, not both")
        unknown = set[str]() if isinstance(self.ask_client, bool) else {*self.ask_client} - {*ASK_KINDS}
        if isinstance(self.ask_client, str) or unknown:
            example = repr(self.ask_client) if isinstance(self.ask_client, str) else repr(min(unknown))
            raise ValueError(f"ask_client is True, False, or some of {', '.join(ASK_KINDS)}; not {example}")

    def may_ask(self, kind: AskKind) -> bool:
        """Return whether the server may ask the client that made a call for this."""
        if isinstance(self.ask_client, bool):
            return self.ask_client
        return kind in self.ask_client or (
            kind == "roots" and self.ask_client is DEFAULT_KINDS and self.roots is not None
        )

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
            "labels": frozenset(self.labels).difference("*"),
        }
        if not isinstance(self.approval, bool) and not callable(self.approval):
            named["approval"] = frozenset(self.approval)
        return named

    def wants(self, tool: RemoteTool, names: Collection[str]) -> bool:
        """Return whether a tool is included; `names` are all of its names."""
        if self.tool_names is not None and tool.kind == "tool":
            return any(name in self.tool_names for name in names)
        if tool.kind in ("resource", "template") and not isinstance(self.include_resources, bool):
            return any(name in self.include_resources for name in names)
        return True


_SECRET = re.compile(r"(?:^|[^a-z])(?:token|(?:api)?key|secret|password)s?(?:[^a-z]|$)", re.IGNORECASE)
_OPTION_SOURCES = (
    ("headers", "a URL", str),
    ("auth", "a URL", str),
    ("credentials", "a URL", str),
    ("env", "a command line", StdioServerParameters),
    ("cwd", "a command line", StdioServerParameters),
)


_FILES: Final = {
    **dict.fromkeys(
        (".json", ".toml"), "the servers of a client's file are toolset_of_file(Path({0!r})) of toolcrib.gateway"
    ),
    ".py": "write what runs it, as in connect(['python', {0!r}])",
    ".js": "write what runs it, as in connect(['node', {0!r}])",
}
"""The remedies for a file that is not a command, by the ending of its name."""


def read_source(source: Any, options: Options) -> Any:
    """Return a source as the SDK takes it: parameters of a command, a URL, a client, a session, a server.

    Raises:
        TypeError: It is another value, or an option does not go with it.
    """
    target: Any = source
    if isinstance(source, list | tuple):
        target = _command(cast("Sequence[str]", source), options)
    elif isinstance(source, str) and not source.startswith(("http://", "https://")):
        if (mend := _FILES.get(Path(source).suffix)) and " " not in source:
            raise TypeError(f"connect() takes a command line or a URL, and {source!r} is a file; {mend.format(source)}")
        target = _command(shlex.split(source), options)
    kinds = (str, StdioServerParameters, Client, ClientSession, Server, MCPServer)
    if not isinstance(target, kinds):
        wanted = "a command line, a URL, or a session, a Client or a server of the SDK"
        mend = "toolset_of_file('mcp.json') has the servers of a client's file"
        if adapter_of(target) is not None:
            mend = "an object of another package runs as a process: connect('python server.py'), or the URL of it"
        raise TypeError(f"connect() takes {wanted}, and got {target!r:.100}; {mend}")
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
            words = [target.command, *target.args]  # by the names of its files: arguments that follow may be secret
            return " ".join(Path(word).name for word in words[:2])
        case Server() | MCPServer():
            return target.name
        case Client():
            return server_name(target.server)
        case _:
            return "session"


def target_identity(target: Any) -> dict[str, Any]:
    """Return the identity of a server: its URL, its command with environment and folder, or its own name.

    Headers are left out: they carry credentials, which are renewed. So are the values of environment variables whose
    name has the word `TOKEN`, `KEY`, `SECRET` or `PASSWORD` in it; of these the names count. Others may be secret.
    """
    match target:
        case str():
            return {"url": target}
        case StdioServerParameters():
            folder = None if target.cwd is None else str(target.cwd)
            env = {name: None if _SECRET.search(name) else value for name, value in (target.env or {}).items()}
            return {"command": [target.command, *target.args], "env": env, "cwd": folder}
        case Client():
            return target_identity(target.server)
        case _:
            return {"object": server_name(target)}


def pinned_name(target: Any, options: Options) -> str:
    """Return the name by which a server is known where its tools are pinned: of its own, or by all of its source.

    Environment and folder do not count here: with a new token in the environment, pins would begin anew in silence.
    """
    if options.name:
        return options.name
    match target_identity(target):
        case {"url": str(text)}:
            pass
        case {"command": command}:
            text = json.dumps(command)
        case _:
            return server_name(target)
    return f"{server_name(target)} {hashlib.sha256(text.encode()).hexdigest()[:12]}"  # some of it may be secret


def _command(words: Sequence[str], options: Options) -> StdioServerParameters:
    if not words:
        raise ValueError("the command line of the server is empty")
    env = None if options.env is None else dict(options.env)
    if wrong := next((item for item in (env or {}).items() if not isinstance(item[1], str)), None):  # pyright: ignore[reportUnnecessaryIsInstance] -- a host's value
        raise TypeError(f"connect(): env has {wrong[0]}={wrong[1]!r:.40}; its values are texts")
    return StdioServerParameters(command=words[0], args=list(words[1:]), env=env, cwd=options.cwd)
