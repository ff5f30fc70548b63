"""Toolset of a TARGET: of the object that it names, of an OpenAPI document, or of MCP servers."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import sys
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, cast
from urllib.parse import urlsplit

import typer

from toolcrib import turns
from toolcrib._run_sync import run_sync
from toolcrib._short_repr import kind_of
from toolcrib.cli._target import load
from toolcrib.errors import TargetError, ToolcribError
from toolcrib.tools import BaseTool, Tool, adapter_of, as_tool
from toolcrib.toolsets import Toolset

_SERVER_FILES = (".json", ".jsonc", ".toml")
_TARGET = (
    "package.module:attribute or path/to/file.py[:attribute]: a toolset, tools, an object, or a module with tools. "
    "Or an agent of another framework, an OpenAPI document, a file of MCP servers, or the address of one of these."
)
TargetArgument = Annotated[str, typer.Argument(metavar="TARGET", help=_TARGET, show_default=False)]
_PREFIX = "openapi:"
_YAML = (".yaml", ".yml")
_API_CREDENTIALS, _API_SERVER = "TOOLCRIB_API_CREDENTIALS", "TOOLCRIB_API_SERVER"


def tools_of(target: str) -> Toolset:
    """Return the toolset of a target; raises TargetError.

    It is a Python object, an OpenAPI document, a file of MCP servers, or the address of one.
    """
    if _is_api(target):
        openapi: Any = importlib.import_module("toolcrib.openapi")  # of an extra, which its error names
        server = os.environ.get(_API_SERVER) or None
        # by security scheme, in the environment: `NAME=SECRET`, several parted by spaces
        words = os.environ.get(_API_CREDENTIALS, "").split()
        pairs = [word.partition("=") for word in words]
        if not all(name and secret for name, _, secret in pairs):
            raise TargetError(
                target, f"{_API_CREDENTIALS} is NAME=SECRET, with the name of a security scheme of the document"
            )
        credentials = {name: secret for name, _, secret in pairs} or None
        return openapi.toolset(_api_place(target), approval="writes", server=server, credentials=credentials)
    if is_servers(target):
        is_file = is_file_of_servers(target)  # both modules are of an extra, which their error names
        module: Any = importlib.import_module("toolcrib.gateway" if is_file else "toolcrib.adapters.mcp_client")
        file, endpoint = file_and_endpoint(target)
        return module.toolset_of_file(file, endpoint=endpoint) if is_file else module.connect(target)
    return toolset_of(target, load(target))


def is_servers(target: str) -> bool:
    """Return whether a target is a file of MCP servers, or the address of one."""
    file, _ = file_and_endpoint(target)
    return (target.startswith(("http://", "https://")) or file.suffix in _SERVER_FILES) and not _is_api(target)


def is_file_of_servers(target: str) -> bool:
    """Return whether a target is a file of MCP servers."""
    file, _ = file_and_endpoint(target)
    return is_servers(target) and file.suffix in _SERVER_FILES and "://" not in target


def file_and_endpoint(target: str) -> tuple[Path, str | None]:
    """Return the file of a target, and the endpoint in it that `FILE#/PATH` names, or None."""
    file, _, endpoint = target.partition("#/")
    return Path(file), f"/{endpoint}" if endpoint else None


def read_gateway(target: str) -> Any:
    """Return the settings of the gateway in a file of MCP servers; raises TargetError."""
    gateway: Any = importlib.import_module("toolcrib.gateway")  # of an extra, which its error names
    file, endpoint = file_and_endpoint(target)
    return gateway.read_gateway(file, endpoint=endpoint)


def name_of(target: str) -> str:
    """Return the name of a target: that of the file, the module or the host."""
    if _is_api(target):
        return Path(urlsplit(_api_place(target)).path).stem
    if is_servers(target):
        return urlsplit(target).hostname or file_and_endpoint(target)[0].stem
    place = target.partition(":")[0]
    return Path(place).stem if place.endswith((".py", ".pyw")) else place.rpartition(".")[2]


def absolute_target(target: str) -> str:
    """Return a target, whose tools were loaded, as it is named in any folder."""
    place, colon, attribute = target.partition(":")
    if target.startswith(("http://", "https://")):
        return target
    if _is_api(target):
        place = _api_place(target)
        return target if place.startswith(("http://", "https://")) else f"openapi:{Path(place).resolve()}"
    if is_servers(target):
        return str(Path(target).resolve())
    module = sys.modules.get(place)
    if module is not None and not (place in sys.stdlib_module_names or _is_in_packages(module)):
        place = module.__file__ or place
    return f"{Path(place).resolve()}{colon}{attribute}" if place.endswith((".py", ".pyw")) else target


def listed_tools(target: str) -> Toolset:
    """Return the toolset of a target, with the tools that its members list."""

    async def opened(toolset: Toolset) -> Toolset:
        async with open_toolset(toolset) as bound:
            return bound

    return run_sync(opened(tools_of(target)))


def open_toolset(toolset: Toolset) -> AbstractAsyncContextManager[Toolset]:
    """Open a toolset if it is not open; a tool that is not available now is listed, and its calls are refused."""
    return nullcontext(toolset) if toolset.is_open else toolset.open(hide_unavailable=False)


def _is_api(target: str) -> bool:
    """Return whether a target is an OpenAPI document: by its prefix, its ending, or what is in the file."""
    if target.startswith(_PREFIX):
        return True
    if target.startswith(("http://", "https://")):
        return urlsplit(target).path.endswith((*_YAML, ".json"))
    if target.endswith(_YAML):
        return True
    return target.endswith(".json") and _is_api_document(Path(target))


def _is_api_document(file: Path) -> bool:
    try:
        found = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    document: dict[str, Any] = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    return "swagger" in document or isinstance(document.get("openapi"), str)  # in a file of servers it is a section


def _api_place(target: str) -> str:
    """Return the path or the address of the document that a target is."""
    return target.removeprefix(_PREFIX)


def toolset_of(target: str, value: object) -> Toolset:
    """Return `value` as a toolset: a toolset, an agent's, a list, one tool, a module's, or an object's methods.

    Agents and tools may be those of another framework that has an adapter.

    Raises:
        TargetError: There is no tool in it, or its tools do not go together.
    """
    try:
        toolset = _to_toolset(target, value)
    except TargetError:
        raise
    except (ToolcribError, TypeError, ValueError) as error:
        raise TargetError(target, str(error)) from error
    if toolset.is_open and not len(toolset):
        raise TargetError(target, f"{_describe(value)} holds no tools")
    return toolset


def _to_toolset(target: str, value: object) -> Toolset:
    if isinstance(value, Toolset) or _is_class_of(value, Toolset):
        return Toolset.of(cast("Toolset", value))
    if isinstance(value, ModuleType):
        return _of_module(target, value)
    if isinstance(value, list | tuple | set | frozenset):
        return Toolset([_member_of(target, member) or member for member in cast("list[Any]", value)])
    if _is_tool(value):
        return Toolset([value])
    theirs = _member_of(target, value)
    if theirs is not None:
        return Toolset.of(theirs if isinstance(theirs, Toolset) else [theirs])
    if isinstance(value, type):
        raise TargetError(target, f"{_describe(value)} is a class; name an object of it, whose methods become tools")
    if inspect.isroutine(value):
        return Toolset([value])
    if isinstance(value, turns.Agent):
        return value.toolset
    if type(value).__module__ == "builtins":
        raise TargetError(target, f"it names {_describe(value)}; name a toolset, a list of tools, a tool or an object")
    if adapter_of(value) is None and _is_installed(type(value)):
        kind = type(value)
        raise TargetError(
            target,
            f"it names {_describe(value)} of the package {kind.__module__.partition('.')[0]}, whose methods are tools "
            f"only where a file declares it: write `tools = Toolset.from_object(...)` in the file, and name that",
        )
    return Toolset.from_object(value)


def _of_module(target: str, module: ModuleType) -> Toolset:
    toolsets = {name: value for name, value in _members(module).items() if _is_own_toolset(value, module)}
    if toolsets:
        return Toolset.of(cast("Toolset", _only(target, toolsets, "toolsets")))
    found = [value for value in _members(module).values() if _is_tool(value)]
    classes: set[object] = {type(value) for value in found if isinstance(value, BaseTool)}
    tools = [value for value in found if value not in classes]  # a class whose object is there, too, is that object
    if not tools:
        return _of_framework(target, module)
    return Toolset({id(tool): tool for tool in tools}.values())


def _of_framework(target: str, module: ModuleType) -> Toolset:
    """Return the toolset of other frameworks' objects in a module: of its agent, or else of its tools."""
    found = {name: (value, _member_of(target, value)) for name, value in _members(module).items()}
    agents = {name: value for name, (value, member) in found.items() if isinstance(member, Toolset)}
    if agents:
        agent = _only(target, agents, "agents")
        return Toolset.of(
            next(member for value, member in found.values() if value is agent and isinstance(member, Toolset))
        )
    tools = {id(value): member for value, member in found.values() if member is not None}
    if not tools:
        raise TargetError(
            target,
            f"the module `{module.__name__}` has no tools; decorate functions with @tool, or name an object in it",
        )
    return Toolset(tools.values())


def _member_of(target: str, value: object) -> Toolset | Tool[..., Any] | None:
    """Return the tools of another framework's agent, or its tool; None for any other object.

    Raises:
        MissingExtraError: The extra of the framework's adapter is missing.
        TargetError: An MCP server among the options of an agent cannot be used.
        TypeError: The agent has gates that would be lost.
    """
    name = adapter_of(value)
    if name is None:
        return None
    if name == "mcp_client":
        client: Any = importlib.import_module("toolcrib.adapters.mcp_client")
        try:
            return client.connect(value)
        except TypeError:
            return None
    adapter: Any = importlib.import_module(f"toolcrib.adapters.{name}")  # of an extra, which its error names
    member = adapter.member_of(value)
    servers = adapter.servers_of(value) if member is None and name == "claude_agent_sdk" else None
    return member if servers is None else _connected(target, servers)


def _connected(target: str, servers: Mapping[str, Any] | Path) -> Toolset:
    """Return the tools of MCP servers, as those of a file of servers are named."""
    if isinstance(servers, Path):
        gateway: Any = importlib.import_module("toolcrib.gateway")  # of an extra, which its error names
        return gateway.toolset_of_file(servers)
    client: Any = importlib.import_module("toolcrib.adapters.mcp_client")
    prefixes = {name: f"{name}_" if len(servers) > 1 else "" for name in servers}
    return Toolset(
        [_connected_server(client, target, name, servers[name], prefix) for name, prefix in prefixes.items()]
    )


def _connected_server(client: Any, target: str, name: str, server: Any, prefix: str) -> Toolset:
    match server:
        case Toolset():
            return server.prefixed(prefix) if prefix else server
        case {"type": "sdk", "instance": source}:
            return client.connect(source, prefix=prefix, name=name)
        case {"command": command}:
            described = cast("Mapping[str, Any]", server)
            words = [command, *described.get("args", ())]
            return client.connect(words, prefix=prefix, name=name, env=described.get("env") or {})
        case {"type": "http", "url": url}:
            return client.connect(url, prefix=prefix, name=name, headers=server.get("headers"))
        case _:
            raise TargetError(
                target, f"the MCP server `{name}` cannot be used here, where one is a command, http or sdk"
            )


def _only(target: str, found: dict[str, object], what: str) -> object:
    distinct = {id(value) for value in found.values()}
    if len(distinct) > 1:
        names = ", ".join(f"`{name}`" for name in found)
        raise TargetError(target, f"it has {len(distinct)} {what} ({names}); name one: {target}:{next(iter(found))}")
    return next(iter(found.values()))


def _members(module: ModuleType) -> dict[str, object]:
    return {name: value for name, value in vars(module).items() if not name.startswith("_")}


def _is_own_toolset(value: object, module: ModuleType) -> bool:
    if isinstance(value, Toolset):
        return True
    return _is_class_of(value, Toolset) and cast("type", value).__module__ == module.__name__


def _is_class_of(value: object, base: type) -> bool:
    return isinstance(value, type) and issubclass(value, base)


def _is_tool(value: object) -> bool:
    if isinstance(value, Tool | BaseTool):
        return True
    if not isinstance(value, type) or value.__module__.partition(".")[0] == "toolcrib":
        return False
    if issubclass(value, BaseTool):
        return callable(getattr(value, "call", None))  # without it, it is a base class of others
    try:
        as_tool(cast("object", value))
    except TypeError:
        return False
    return True


def _is_installed(kind: type) -> bool:
    """Return whether a class is of the standard library or of an installed package, and not the user's own."""
    root = kind.__module__.partition(".")[0]
    return root in sys.stdlib_module_names - {"__main__"} or _is_in_packages(sys.modules.get(kind.__module__))


def _is_in_packages(module: ModuleType | None) -> bool:
    """Return whether a module is of an installed package."""
    place = str(getattr(module, "__file__", None) or "")
    return "site-packages" in place or "dist-packages" in place


def _describe(value: object) -> str:
    if isinstance(value, ModuleType):
        return f"the module `{value.__name__}`"
    if isinstance(value, type):
        return f"`{value.__name__}`"
    return kind_of(value)
