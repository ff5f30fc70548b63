"""What a person is asked, and what they may answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, cast

from toolcrib.calls._json import lenient, now, parse_time

__all__ = ["ApprovalRequest", "Denial", "Grant"]


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """What a person is asked, with secrets already hidden.

    Attributes:
        id: Names this question; a call that is asked again has another.
        arguments: The final arguments, which a grant is bound to by `digest`.
        requested: The arguments as the model sent them; they differ from `arguments` when a hook edited them.
        digest: SHA-256 over the tool's name and the final arguments, in hex.
        reason: Why approval is needed.
        metadata: What the tool or a hook adds for the person to see.
    """

    id: str
    call_id: str
    tool: str
    arguments: Mapping[str, Any]
    digest: str
    requested: Any = None
    reason: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    created_at: datetime = field(default_factory=now)
    scope_id: str = ""
    principal: str | None = None

    def grant(self, approver: str = "host", **options: Any) -> Grant:
        """Return a `Grant` for this request; options are the other fields of `Grant`."""
        bound: dict[str, Any] = {"call_id": self.call_id, "digest": self.digest, "request_id": self.id, **options}
        return Grant(tool=self.tool, approver=approver, **bound)

    def deny(self, message: str = "", approver: str = "host") -> Denial:
        """Return a `Denial` of this request; the model is shown `message`."""
        return Denial(tool=self.tool, call_id=self.call_id, request_id=self.id, approver=approver, message=message)

    def changes(self) -> list[str]:
        """Return one line per argument that differs from what the model sent, as `name: before -> after`."""
        before: Any = self.requested
        if not isinstance(before, Mapping):
            return []
        asked = cast("Mapping[str, Any]", before)
        lines: list[str] = []
        for name in [*asked, *(n for n in self.arguments if n not in asked)]:
            old, new = _shown(asked, name), _shown(self.arguments, name)
            if old != new:
                lines.append(f"{name}: {old} -> {new}")
        return lines

    def text(self) -> str:
        """Return what to show a person: the tool, the reason, the final arguments, and what was changed."""
        lines = [f"{self.tool} needs approval" + (f": {self.reason}" if self.reason else "")]
        lines += [f"  {name} = {json.dumps(value, ensure_ascii=False)}" for name, value in self.arguments.items()]
        changed = self.changes()
        if changed:
            lines.append("changed since the model asked:")
            lines += [f"  {line}" for line in changed]
        lines += [f"{name}: {value}" for name, value in self.metadata.items()]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the request as JSON shapes."""
        return {
            "id": self.id,
            "call_id": self.call_id,
            "tool": self.tool,
            "arguments": dict(self.arguments),
            "digest": self.digest,
            "requested": self.requested,
            "reason": self.reason,
            "metadata": lenient(dict(self.metadata)),
            "created_at": self.created_at.isoformat(),
            "scope_id": self.scope_id,
            "principal": self.principal,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ApprovalRequest:
        """Return the request that `to_dict` described."""
        values: dict[str, Any] = dict(data)
        values["created_at"] = parse_time(data["created_at"])
        return cls(**values)


def _shown(values: Mapping[str, Any], name: str) -> str:
    return json.dumps(values[name], ensure_ascii=False, default=str) if name in values else "(not given)"


@dataclass(frozen=True, slots=True)
class Grant:
    """A yes, and to what.

    Attributes:
        tool: The tool it is for.
        call_id: The one call it is for; None for a standing grant.
        digest: The final arguments it is for; None for any (a standing grant for the tool).
        approver: Who said yes.
        override_args: Arguments the person put in place of the model's; they are validated like the model's.
        user_input: What the person typed; reaches the tool as `ctx.user_input`.
        scope: How far it reaches: `once`, `arguments` (this tool with these arguments) or `tool`.
        expires_at: From then on it does not count.
    """

    tool: str
    approver: str = "host"
    call_id: str | None = None
    digest: str | None = None
    request_id: str | None = None
    message: str = ""
    override_args: Mapping[str, Any] | None = None
    user_input: Any = None
    scope: Literal["once", "arguments", "tool"] = "once"
    at: datetime = field(default_factory=now)
    expires_at: datetime | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the grant as JSON shapes."""
        return {
            "kind": "grant",
            "tool": self.tool,
            "approver": self.approver,
            "call_id": self.call_id,
            "digest": self.digest,
            "request_id": self.request_id,
            "message": self.message,
            "override_args": None if self.override_args is None else dict(self.override_args),
            "user_input": lenient(self.user_input),
            "scope": self.scope,
            "at": self.at.isoformat(),
            "expires_at": self.expires_at.isoformat() if self.expires_at else None,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Grant:
        """Return the grant that `to_dict` described."""
        values: dict[str, Any] = {k: v for k, v in data.items() if k != "kind"}
        values["at"], values["expires_at"] = parse_time(data["at"]), parse_time(data.get("expires_at"))
        return cls(**values)


@dataclass(frozen=True, slots=True)
class Denial:
    """A no: the model is shown `message` as what the person said."""

    tool: str
    approver: str = "host"
    call_id: str | None = None
    request_id: str | None = None
    message: str = ""
    at: datetime = field(default_factory=now)

    def to_dict(self) -> dict[str, Any]:
        """Return the denial as JSON shapes."""
        return {
            "kind": "denial",
            "tool": self.tool,
            "approver": self.approver,
            "call_id": self.call_id,
            "request_id": self.request_id,
            "message": self.message,
            "at": self.at.isoformat(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Denial:
        """Return the denial that `to_dict` described."""
        values: dict[str, Any] = {k: v for k, v in data.items() if k != "kind"}
        values["at"] = parse_time(data["at"])
        return cls(**values)
