"""Errors about tools, agents and hooks that do not exist, or may not be used."""

from __future__ import annotations

from typing import ClassVar

from toolcrib.errors._base import ToolcribError, closest


class UnregisteredError(ToolcribError, KeyError):
    """Nothing of that name is registered."""

    code = "unregistered"
    kind: ClassVar[str] = "object"

    def __init__(self, name: str, known: tuple[str, ...] = ()) -> None:
        super().__init__(name, known)
        self.name, self.known = name, known

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


class UnknownTool(ToolcribError, KeyError):
    """The call names a tool that the toolset does not have, or a turn is of another tool with a name that it has."""

    code = "unknown_tool"

    def __init__(self, tool: str, known: tuple[str, ...] = (), problem: str = "") -> None:
        super().__init__(tool, known, problem)
        self.tool, self.known, self.problem = tool, known, problem

    def __str__(self) -> str:
        if self.problem:
            return f"`{self.tool}`: {self.problem}"
        return f"there is no tool `{self.tool}`. {closest(self.tool, self.known)}"


class NotAvailable(ToolcribError):
    """The tool exists, and may not be used in this run or at this time."""

    code = "not_available"

    def __init__(self, tool: str, reason: str = "") -> None:
        super().__init__(tool, reason)
        self.tool, self.reason = tool, reason

    def __str__(self) -> str:
        why = f": {self.reason}" if self.reason else " now"
        return f"`{self.tool}` is not available{why}. Use one of the tools that were offered."


class InsufficientScope(ToolcribError, PermissionError):
    """The token of the request has not all the scopes that the tool needs; nothing ran."""

    code = "insufficient_scope"

    def __init__(self, tool: str, missing: tuple[str, ...]) -> None:
        super().__init__(tool, missing)
        self.tool, self.missing = tool, missing

    def __str__(self) -> str:
        scopes = " and ".join(f"`{scope}`" for scope in self.missing)
        several = "scopes" if len(self.missing) > 1 else "scope"
        return f"`{self.tool}` needs the {several} {scopes}, which the token of this request does not have"


class DuplicateNameError(ToolcribError, ValueError):
    """Two objects claim one name; both origins are named."""

    code = "duplicate_name"

    def __init__(self, name: str, first: str, second: str, mend: str = "", kind: str = "tool") -> None:
        super().__init__(name, first, second, mend, kind)
        self.name, self.first, self.second, self.mend, self.kind = name, first, second, mend, kind

    def __str__(self) -> str:
        text = f"two {self.kind}s are named `{self.name}`: {self.first} and {self.second}"
        return f"{text}. {self.mend}" if self.mend else text


class ToolConstraintError(ToolcribError, ValueError):
    """Something asked of a model, or offered to it, is impossible; raised before any request."""

    code = "tool_constraint"

    def __init__(self, tool: str, problem: str, known: tuple[str, ...] = ()) -> None:
        super().__init__(tool, problem, known)
        self.tool, self.problem, self.known = tool, problem, known

    def __str__(self) -> str:
        hint = f" {closest(self.tool, self.known)}" if self.known else ""
        return f"`{self.tool}`: {self.problem}.{hint}"


class TargetError(ToolcribError, ValueError):
    """A `TARGET` of the command line cannot be loaded, or holds no tools."""

    code = "bad_target"

    def __init__(self, target: str, problem: str) -> None:
        super().__init__(target, problem)
        self.target, self.problem = target, problem

    def __str__(self) -> str:
        return f"cannot load tools from `{self.target}`: {self.problem}"
