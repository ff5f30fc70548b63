"""Errors about tools, agents and hooks that do not exist, or may not be used."""

from __future__ import annotations

from typing import ClassVar

from toolcrib.errors._base import MessageError, closest


class UnregisteredError(MessageError, KeyError):
    """Nothing of that name is registered."""

    code = "unregistered"
    kind: ClassVar[str] = "object"
    name: str
    known: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"no {self.kind} is registered as `{self.name}`. {closest(self.name, self.known)}"


class UnregisteredToolError(UnregisteredError):
    """No tool of that name is registered."""

    code = "unregistered_tool"
    kind = "tool"


class UnregisteredAgentError(UnregisteredError):
    """No agent of that name is registered."""

    code = "unregistered_agent"
    kind = "agent"


class UnregisteredHookError(UnregisteredError):
    """No hook of that name is registered."""

    code = "unregistered_hook"
    kind = "hook"


class UnknownTool(MessageError, KeyError):
    """The call names a tool that the toolset does not have, or a turn is of another tool with a name that it has."""

    code = "unknown_tool"
    tool: str
    known: tuple[str, ...] = ()
    problem: str = ""

    def __str__(self) -> str:
        if self.problem:
            return f"`{self.tool}`: {self.problem}"
        return f"there is no tool `{self.tool}`. {closest(self.tool, self.known)}"


class NotAvailable(MessageError):
    """The tool exists, and may not be used in this run or at this time."""

    code = "not_available"
    tool: str
    reason: str = ""

    def __str__(self) -> str:
        why = f": {self.reason}" if self.reason else " now"
        return f"`{self.tool}` is not available{why}. Use one of the tools that were offered."


class InsufficientScope(MessageError, PermissionError):
    """The token of the request has not all the scopes that the tool needs; nothing ran."""

    code = "insufficient_scope"
    tool: str
    missing: tuple[str, ...]

    def __str__(self) -> str:
        scopes = " and ".join(f"`{scope}`" for scope in self.missing)
        several = "scopes" if len(self.missing) > 1 else "scope"
        return f"`{self.tool}` needs the {several} {scopes}, which the token of this request does not have"


class DuplicateNameError(MessageError, ValueError):
    """Two objects claim one name; both origins are named."""

    code = "duplicate_name"
    name: str
    first: str
    second: str
    mend: str = ""
    kind: str = "tool"

    def __str__(self) -> str:
        text = f"two {self.kind}s are named `{self.name}`: {self.first} and {self.second}"
        return f"{text}. {self.mend}" if self.mend else text


class ToolConstraintError(MessageError, ValueError):
    """Something asked of a model, or offered to it, is impossible; raised before any request."""

    code = "tool_constraint"
    tool: str
    problem: str
    known: tuple[str, ...] = ()

    def __str__(self) -> str:
        hint = f" {closest(self.tool, self.known)}" if self.known else ""
        return f"`{self.tool}`: {self.problem}.{hint}"


class TargetError(MessageError, ValueError):
    """A `TARGET` of the command line cannot be loaded, or holds no tools."""

    code = "bad_target"
    target: str
    problem: str
    _template = "cannot load tools from `{target}`: {problem}"
