"""Suspended calls as the metadata of deferred ones, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import pydantic_ai

from toolcrib.adapters.pydantic_ai._messages import asked_in
from toolcrib.calls import ApprovalRequest, Grant, Suspended, outcome_from_dict


def object_in(raw: str | bytes | Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the arguments that a call carries, by name; empty for text that is not a JSON object."""
    if isinstance(raw, Mapping):
        return dict(raw)
    try:
        value: Any = json.loads(raw or "{}")
    except ValueError:
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


class RawText(dict[str, Any]):
    """Arguments as a dict, as Pydantic AI wants them, that remembers the JSON text it was read from."""

    def __init__(self, text: str | bytes) -> None:
        super().__init__(object_in(text))
        self._text, self._read = text, dict(self)

    def arguments(self) -> str | bytes | dict[str, Any]:
        """Return the text; or the dict, when a hook of Pydantic AI edited it on the way."""
        return self._text if dict(self) == self._read else dict(self)


class PassThrough:
    """Stands where Pydantic AI wants a validator, and lets everything through to the pipeline."""

    def validate_json(self, input: str | bytes | bytearray, **options: Any) -> RawText:
        """Return the text as arguments."""
        return RawText(input if isinstance(input, str) else bytes(input))

    def validate_python(self, input: Any, **options: Any) -> dict[str, Any]:
        """Return the values as arguments; anything else becomes a text that the pipeline refuses."""
        if isinstance(input, RawText):
            return input
        if isinstance(input, Mapping):
            return dict(cast("Mapping[str, Any]", input))
        return RawText(json.dumps(input, default=repr))


PASS_THROUGH = PassThrough()


KEY = "toolcrib"
"""The entry of ours in the metadata of a deferred call."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A suspended call, and what Pydantic AI does not keep of it.

    Attributes:
        arguments: The arguments as the model sent them, which distinguish an approval from one of another call.
        grant: The answer, once there is one; what Pydantic AI itself says of an approval is only that there was one.
        is_stored: Whether the approval store of the run has the answer.
    """

    suspended: Suspended
    arguments: dict[str, Any] = field(repr=False)
    grant: Grant | None = None
    is_stored: bool = False

    def edited(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments that a person put in the place of the model's; those they left, as they were seen."""
        state: dict[str, Any] = self.suspended.to_dict()["call"] or {}
        shown = state.get("arguments", {})
        unchanged = {
            name for name, value in arguments.items() if name in self.arguments and self.arguments[name] == value
        }
        return {name: shown.get(name, value) if name in unchanged else value for name, value in arguments.items()}

    def metadata(self) -> dict[str, Any]:
        """Return it as the metadata of a deferred call, in JSON shapes; it holds the real arguments."""
        data: dict[str, Any] = {"suspended": self.suspended.to_dict(), "arguments": self.arguments}
        if self.grant is not None:
            data["grant"] = self.grant.to_dict()
        if self.is_stored:
            data["stored"] = True
        return {KEY: data}

    @property
    def request(self) -> ApprovalRequest:
        """The question for a person."""
        return self.suspended.request

    @classmethod
    def of(cls, metadata: object) -> Waiting | None:
        """Return the call in the metadata of a deferred call; None for metadata that is not ours, or broken."""
        data = cast("Mapping[str, Any]", metadata).get(KEY) if isinstance(metadata, Mapping) else None
        if not isinstance(data, Mapping):
            return None
        ours = cast("Mapping[str, Any]", data)
        try:
            suspended = outcome_from_dict(ours["suspended"])
            grant = Grant.from_dict(ours["grant"]) if ours.get("grant") is not None else None
            if not isinstance(suspended, Suspended):
                return None
            return cls(suspended, dict(ours["arguments"]), grant, ours.get("stored") is True)
        except (AttributeError, KeyError, TypeError, ValueError):  # any client may have written it
            return None


def resumed(
    name: str, arguments: Mapping[str, Any], ctx: pydantic_ai.RunContext[Any]
) -> tuple[Suspended, Grant | None] | None:
    """Return the suspended call that an approved one goes on with, and the grant; None without one for it.

    The grant is None where the run's store has the answer.

    An approval without our metadata, or with that of another call or of other arguments, approves nothing.
    """
    waiting = Waiting.of(ctx.tool_call_metadata) if ctx.tool_call_approved else None
    if waiting is None or (waiting.suspended.tool, waiting.suspended.call_id) != (name, ctx.tool_call_id):
        return None
    found, now = asked_in(ctx.messages, ctx.tool_call_id), dict(arguments)
    asked = None if found is None else object_in(found[1].args)
    if (now if asked is None else asked) != waiting.arguments:
        return None
    if waiting.is_stored:
        return (waiting.suspended, None) if now == waiting.arguments else None
    override = None if now == waiting.arguments else waiting.edited(now)
    grant = waiting.grant
    if grant is None:
        return waiting.suspended, waiting.request.grant(override_args=override)
    expected = waiting.arguments if grant.override_args is None else dict(grant.override_args)
    return (waiting.suspended, grant) if now == expected else None
