"""The state of a paused program in Monty, as JSON shapes: Monty's snapshot, and what the host keeps beside it."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from pydantic_monty import __version__

from toolcrib.errors import SandboxError
from toolcrib.sandbox._monty_calls import MontyCall, MontyRequest, MontySleep
from toolcrib.sandbox._monty_subset import MontySource
from toolcrib.sandbox._protocol import Raised, Reply, Value

ENGINE = f"monty-{__version__}"


@dataclass(slots=True)
class MontyState:
    """A program between two of its steps.

    Attributes:
        snapshot: Monty's own.
        source: The program as Monty was given it.
        suspended: Calls that wait for a person, to be made again when the program goes on.
        unawaited: Calls and sleeps that were not awaited yet.
        replies: Replies that the program has not asked for yet.
        lines: The tool and the line of each awaited call, by id.
        calls: How many calls it made.
        sleep_left: Seconds it may still sleep.
        output: The kept text of stdout and stderr.
        printed: How many characters it printed to each.
    """

    snapshot: bytes
    source: MontySource
    suspended: list[MontyRequest] = field(default_factory=list[MontyRequest])
    unawaited: list[MontyRequest] = field(default_factory=list[MontyRequest])
    replies: dict[int, Reply] = field(default_factory=dict[int, Reply])
    lines: dict[int, tuple[str, int]] = field(default_factory=dict[int, tuple[str, int]])
    calls: int = 0
    sleep_left: float = 0.0
    output: tuple[str, str] = ("", "")
    printed: tuple[int, int] = (0, 0)

    def to_dict(self) -> dict[str, Any]:
        """Return the state as JSON shapes."""
        return {
            "engine": ENGINE,
            "snapshot": base64.b64encode(self.snapshot).decode(),
            "code": self.source.code,
            "awaited": [list(span) for span in sorted(self.source.awaited)],
            "suspended": [_request(request) for request in self.suspended],
            "unawaited": [_request(request) for request in self.unawaited],
            "settled": [[call, *_reply(reply)] for call, reply in self.replies.items()],
            "lines": [[call, *line] for call, line in self.lines.items()],
            "calls": self.calls,
            "sleep_left": self.sleep_left,
            "output": list(self.output),
            "printed": list(self.printed),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> MontyState:
        """Return the state that `to_dict` described.

        Raises:
            SandboxError: It is not the state of a paused program, or of another version of Monty.
        """
        if data.get("engine") != ENGINE:
            raise SandboxError(f"this state was written by {data.get('engine') or 'no engine'}, and this is {ENGINE}")
        try:
            awaited = frozenset((int(start), int(end)) for start, end in data["awaited"])
            out, err = data["output"]
            out_size, err_size = data["printed"]
            return cls(
                base64.b64decode(data["snapshot"], validate=True),
                MontySource(data["code"], awaited),
                [_request_of(request) for request in data["suspended"]],
                [_request_of(request) for request in data["unawaited"]],
                {int(call): _reply_of(*reply) for call, *reply in data["settled"]},
                {int(call): (name, line) for call, name, line in data["lines"]},
                data["calls"],
                data["sleep_left"],
                (out, err),
                (out_size, err_size),
            )
        except (KeyError, TypeError, ValueError, binascii.Error) as error:
            raise SandboxError("this is not the state of a paused program") from error


def _request(request: MontyRequest) -> list[Any]:
    if isinstance(request, MontySleep):
        return [request.id, request.seconds]
    return [request.id, request.name, request.args, request.kwargs, request.line]


def _request_of(data: list[Any]) -> MontyRequest:
    return MontySleep(*data) if len(data) == 2 else MontyCall(*data)


def _reply(reply: Reply) -> list[Any]:
    return [reply.value] if isinstance(reply, Value) else [cast("Raised", reply).type, cast("Raised", reply).message]


def _reply_of(*data: Any) -> Reply:
    return Value(data[0]) if len(data) == 1 else Raised(*data)
