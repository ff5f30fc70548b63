"""When approval is needed, and who may be asked at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from toolcrib.calls import ApprovalRequest, Denial, Grant

__all__ = ["AgentContext", "ApprovalPolicy", "Approver", "approve_all", "deny_all"]

ApprovalPolicy: TypeAlias = bool | Callable[[dict[str, Any], Any], bool | str | Awaitable[bool | str]]
"""Whether a tool needs approval: a bool, or a function of the final arguments and the run context.

A text is a yes, and the reason that the person is shown.
"""

Approver: TypeAlias = Callable[[ApprovalRequest], Awaitable[Grant | Denial | None]]
"""Somebody who can be asked while the call waits: returns a grant, a denial, or None to leave it suspended."""


@dataclass(slots=True)
class AgentContext:
    """A base for `deps` of your own that says which tools need approval in this run.

    Attributes:
        need_user_approve_tools: Names of tools that wait for a person, whatever the tools themselves say.
    """

    need_user_approve_tools: list[str] = field(default_factory=list[str])


async def approve_all(request: ApprovalRequest) -> Grant:
    """Approve whatever is asked; for scripts and tests, where nobody is there to be asked."""
    return request.grant(approver="approve_all")


async def deny_all(request: ApprovalRequest) -> Denial:
    """Refuse whatever is asked."""
    return request.deny(f"`{request.tool}` needs approval, and nobody can be asked here", approver="deny_all")
