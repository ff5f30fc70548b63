"""CallProgress: what came so far of a call in a streamed reply, as a listener is given it."""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from itertools import count
from typing import Any, TypeAlias, cast

from pydantic_core import from_json

from toolcrib._json_writer import valid_text
from toolcrib.calls import copied, value_class
from toolcrib.formats import (
    PROVIDERS,
    CallPiece,
    GrowingObject,
    ProviderFormat,
    WireCall,
    WireFormat,
    arguments_object,
    detected,
    json_shape,
    raw_arguments,
)
from toolcrib.rounds._call import DecodedCall, required_call
from toolcrib.rounds._tool_calls import ToolCalls
from toolcrib.toolsets import Toolset

_SHORT, _PART = 1_024, 16  # up to so many characters each piece is reported, and then each growth by a part of them
_SPACE = " \t\r\n"


@value_class
class CallProgress:
    """The received part of a call in a streamed reply. It is for display: nothing of it was checked or run.

    Attributes:
        place: Which of the reply's calls it is, from 0 on; the same in each report of a call.
        id: The provider's; empty where it sends none, until the whole call has the one of the round.
        name: The tool's, as the model sent it.
        arguments: A copy of the arguments received so far: values that are whole, and texts up to the last
            character that came whole.
        is_whole: Whether the reply has ended, and the call is one of the round's `tool_calls`.
    """

    place: int
    id: str
    name: str
    arguments: Mapping[str, Any] = field(repr=False)
    is_whole: bool = False


CallListener: TypeAlias = Callable[[CallProgress], None]
"""A function that is given what came so far of a call in a streamed reply."""


class CallWatcher:
    """Reports the calls of a reply to a listener while they come, for every format in the same way.

    A call is reported with each piece up to 1,024 characters of arguments, then each time they have grown by a
    sixteenth of what is over that, when it seems to be over, and when the round has it. So the work is linear in the
    length of the reply.

    Args:
        listener: The function that is given the reports.
        format: The wire format of the chunks; detected from the first one when None.
        toolset: The tools, to which free texts and renamed parameters belong.
        strict: Whether they were defined in the provider's strict mode.
    """

    def __init__(
        self, listener: CallListener, format: WireFormat | ProviderFormat | None, toolset: Toolset, *, strict: bool
    ) -> None:
        self._listener, self._toolset, self._strict = listener, toolset, strict
        self._format = PROVIDERS[format] if isinstance(format, str) else format
        self._reader: ToolCalls | None = None
        self._calls: list[_ArrivingCall] = []
        self._current: dict[object, _ArrivingCall] = {}

    def add(self, chunk: object) -> None:
        """Add the next chunk."""
        self._format = format = self._format or PROVIDERS[detected(chunk)]
        reader = self._reader = self._reader or ToolCalls(self._toolset, format, strict=self._strict)
        for piece in format.call_pieces(json_shape(chunk)):
            call = self._call_of(piece)
            if call is None:
                continue
            call.add(piece)
            if call.place is None and call.name and (kind := reader.kind_of(call.kind, call.name, call.namespace)):
                call.kind = kind
                if self._calls:
                    self._report_rest(self._calls[-1], reader)
                call.place = len(self._calls)
                self._calls.append(call)
            if piece.ends:
                self._report_rest(call, reader)
            elif call.is_due:
                self._report(call, reader)

    def close(self, calls: Iterable[DecodedCall[Any]]) -> None:
        """Report the calls that the round has, whole: those that could be read."""
        calls_read = [(call, required_call(call).raw_arguments) for call in calls]
        by_id = {call.id: place for place, call in reversed([*enumerate(self._calls)]) if call.id}
        reported = {by_id[call.id] for call, _ in calls_read if call.id in by_id}
        others: defaultdict[str, deque[int]] = defaultdict(deque)  # to which the round gave another id
        for place, call in enumerate(self._calls):
            if place not in reported:
                others[call.name].append(place)
        new = count(len(self._calls))
        for call, raw in calls_read:
            place = by_id.get(call.id)
            if place is None:
                place = others[call.name].popleft() if others[call.name] else next(new)
            self._listener(CallProgress(place, call.id, call.name, copied(arguments_object(raw)), is_whole=True))

    def _call_of(self, piece: CallPiece) -> _ArrivingCall | None:
        """Return the call that a piece belongs to; None for a piece of something else."""
        known = self._current.get(piece.place)
        if known is not None and not (piece.begins or known.ends_before(piece)):
            return known
        self._current.pop(piece.place, None)
        if not (piece.id or piece.name):
            return None
        arriving = self._current[piece.place] = _ArrivingCall(piece.kind, piece.namespace)
        return arriving

    def _report_rest(self, call: _ArrivingCall, reader: ToolCalls) -> None:
        """Report the part of a call since its last report, when it seems to be over; once for each call."""
        if not call.is_over:
            call.is_over = True
            self._report(call, reader)

    def _report(self, call: _ArrivingCall, reader: ToolCalls) -> None:
        arguments = call.read() if call.place is not None and call.has_news else None
        if arguments is None or call.place is None:
            return
        shown = reader.arguments_of(WireCall(call.id, call.name, arguments, call.kind))
        if isinstance(shown, Mapping) and shown != call.shown:
            call.shown = copied(shown)
            self._listener(CallProgress(call.place, call.id, call.name, copied(shown)))


class _ArrivingCall:
    """A call of which pieces still come.

    Attributes:
        id: As of a `WireCall`, as far as it is known; so are `name`, `kind` and `namespace`.
        place: As of a `CallProgress`; None until the call is known to be one of a tool.
        shown: The arguments that were reported last.
        is_over: Whether the call seemed to be over once.
    """

    def __init__(self, kind: str, namespace: str) -> None:
        self.id, self.name, self.kind, self.namespace = "", "", kind, namespace
        self.place: int | None = None
        self.shown: Mapping[str, Any] | None = None
        self.is_over = False
        self._texts: list[str] = []
        self._values = GrowingObject()
        self._length, self._read = 0, -1
        self._is_broken = False

    @property
    def has_news(self) -> bool:
        """True if anything came since the call was read."""
        return self._length > self._read and not self._is_broken

    @property
    def is_due(self) -> bool:
        """True if so much came since the call was read that it is to be read again."""
        return self._length > self._read + max(0, self._read - _SHORT) // _PART

    def ends_before(self, piece: CallPiece) -> bool:
        """Return whether a piece in its place is of another call: some servers say index 0 for each."""
        return any(
            known and other and known != other for known, other in ((self.id, piece.id), (self.name, piece.name))
        )

    def add(self, piece: CallPiece) -> None:
        """Add a piece."""
        self.id, self.name = self.id or piece.id, self.name or piece.name
        if piece.text:
            self._texts.append(piece.text)
        merged = [self._values.merge(piece.values), *map(self._values.put, piece.placed)]
        self._is_broken = self._is_broken or not all(merged)
        values = [piece.text, *piece.values.values(), *(placed.value for placed in piece.placed)]
        self._length += sum(map(_size, values))

    def read(self) -> str | Mapping[str, Any] | None:
        """Return the arguments received so far, a free text as it is; None where they are not a JSON object."""
        self._read = self._length
        self._texts = ["".join(self._texts)]
        text = self._texts[0]
        if "\ud800" <= text[-1:] <= "\udbff":  # half a character, of which the other half has to come
            text = text[:-1]
        if self.kind != "function":
            return valid_text(text)
        value = _valid_part(raw_arguments(text or self._values.read()))
        self._is_broken = value is None
        return value


def _size(value: object) -> int:
    try:
        return len(value if isinstance(value, str) else json.dumps(value, default=str))
    except (ValueError, RecursionError):  # a number of many digits, or what is nested deeply
        return _SHORT


def _valid_part(text: str | Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the valid part of a JSON object that may be cut anywhere; None for another text.

    A number at the end is left out, because more of its digits may come.
    """
    if isinstance(text, Mapping):
        return text
    head = text.rstrip("0123456789+-.eE")
    if head.rstrip(_SPACE).endswith(("[", ":", ",")):
        text = head
    if not text.strip(_SPACE):
        return {}
    try:
        value: object = from_json(text, allow_inf_nan=False, allow_partial="trailing-strings")
    except (ValueError, TypeError):  # TypeError: half a character
        return None
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else None
