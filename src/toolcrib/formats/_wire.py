"""The values between a provider's JSON and a round: a reply that was read, its calls, and what answers them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, TypeAlias

from toolcrib.calls import Media, value_class
from toolcrib.formats._growing_object import PlacedValue
from toolcrib.formats._json_reading import text_or_empty
from toolcrib.formats._stop_kinds import FINISHED, StopKind, ending, worst

Item: TypeAlias = dict[str, Any]
"""One message, or another entry, of a transcript in the provider's format."""
Choice: TypeAlias = Literal["optional", "at_least_one", "specific", "validated", "none"]
"""The tools that the model may or has to call: see `ToolRequirement`."""
ProblemKind: TypeAlias = Literal["orphan", "missing", "duplicate", "misplaced", "order", "id", "blank"]
"""The kind of a fault in a transcript: a result without a call, a call without a result, and so on."""


@value_class
class WireCall:
    """A call in a reply.

    Attributes:
        id: The provider's, or one that was made for it where the provider gave none.
        name: The tool's.
        arguments: As the model sent them: JSON text that may be malformed, or an object.
        kind: `function` for a call of a tool of the client's; else the provider's word for what waits for an answer.
        fault: Why it may not run, in words for the model, where its arguments did not come whole; else empty.
        sent: The call as received, where its kind is another, or the answer has to repeat some of it.
        caller: The caller: `direct` is the model itself, another word a program of the model's in the provider's
            sandbox, as in `ProviderOptions.allowed_callers`.
        is_repaired: Whether its arguments came as what is nearly JSON, and were read so.
    """

    id: str
    name: str
    arguments: str | Mapping[str, Any] = field(repr=False)
    kind: str = "function"
    fault: str = ""
    sent: Mapping[str, Any] | None = field(default=None, repr=False)
    caller: str = "direct"
    is_repaired: bool = False

    @property
    def namespace(self) -> str:
        """The namespace of the called tool, in the provider's word; empty where the call has none."""
        return text_or_empty((self.sent or {}).get("namespace"))


class Turn(NamedTuple):
    """The content of a reply of which nothing has to be changed or left out.

    Attributes:
        items: As for a `WireReply`; so are `text` and `calls`.
        stop: The provider's word for why it ended.
        values: The parts of it that may be any JSON, so that their type says nothing of the numbers and texts in them.
    """

    items: list[Item]
    text: str
    calls: list[WireCall]
    stop: str
    values: Sequence[Any] = ()


@value_class
class WireReply:
    """The answer of a model.

    Attributes:
        items: The items for the transcript: as received, in the provider's canonical form, without what it does
            not take back.
        text: Its words, without its thoughts.
        calls: The calls that it asks for, in its order.
        stop: The provider's word for why it ended, None for a stream that never said.
        problems: The faults in it, a sentence each: a cut stream, a call without a name, an id used twice.
        stop_kind: Why it ended, in one vocabulary for all providers. Calls run in a reply that was finished, and in no
            other.
        unknown: The parts of a type that the format does not know, which may wait for an answer.
        container: The id of the provider's sandbox in which a program of it waits; the next request has to name it.
        is_ordered: Whether it is known that its calls wait at the end of its items, in their order, and nothing else.
    """

    items: tuple[Item, ...] = field(repr=False)
    text: str
    calls: tuple[WireCall, ...]
    stop: str | None = None
    problems: tuple[str, ...] = ()
    stop_kind: StopKind = "unknown"
    unknown: tuple[WireCall, ...] = ()
    container: str = ""
    is_ordered: bool = False

    def with_misread(self, misread: Sequence[str]) -> WireReply:
        """Return the reply as malformed, unless it ended worse, where something in it could not be read."""
        if not misread:
            return self
        stop, kind = worst([(self.stop or "", self.stop_kind), (misread[-1], "malformed")]) or ("", "malformed")
        return replace(self, stop=stop, stop_kind=kind)

    def fault_of(self, call: WireCall) -> str:
        """Return why a call of it may not run; empty for one that may, if its arguments fit.

        A call runs when it came whole, in a reply that was finished.
        """
        if self.stop_kind in FINISHED and not call.fault:
            return ""
        return ending(self.stop_kind, self.stop) or call.fault


@dataclass(frozen=True, slots=True)
class CallPiece:
    """A piece of a call in a chunk of a streamed reply.

    Attributes:
        id: The call's; empty where it came before, or never does.
        name: The tool's; as for the id.
        kind: As for a `WireCall`.
        place: Sets calls apart that come at the same time; None where they come one after the other.
        text: The next piece of the arguments as text.
        values: Arguments that came under their own names.
        placed: Arguments that came with the path to their place.
        begins: Whether what came before in this place was of another call, or of none.
        ends: Whether it is the call's last piece.
        namespace: As for a `WireCall`.
    """

    id: str = ""
    name: str = ""
    kind: str = "function"
    place: object = None
    text: str = field(default="", repr=False)
    values: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    placed: Sequence[PlacedValue] = field(default=(), repr=False)
    begins: bool = False
    ends: bool = False
    namespace: str = ""


@value_class
class WireResult:
    """The answer to a call.

    Attributes:
        call: The call that it answers.
        content: The text for the model, with a placeholder for each of the media.
        is_error: Whether the tool failed or was refused; said in the provider's way, where it has one.
        parts: Text and media in their order, for a provider that takes media in a result; empty without them.
        fields: The fields of the provider's own answer, to a call of another kind than `function`.
    """

    call: WireCall
    content: str
    is_error: bool = False
    parts: tuple[str | Media, ...] = ()
    fields: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class TranscriptProblem:
    """A place where a transcript breaks its provider's rules for tool results and for the order of turns.

    Attributes:
        index: Of the item.
        call_id: Of the call; empty when the item has none.
        kind: `orphan`: a result without its call; `missing`: a call without its result (or without an id to answer
            to); `duplicate`: an id or a result that is there twice; `misplaced`: a result in the wrong place,
            or an item in another provider's format; `order`: an item that the provider does not take in its place;
            `id`: an id of a call that it does not take; `blank`: a text of white space alone, where it takes none.
        message: The same in a sentence.
    """

    index: int
    call_id: str
    kind: ProblemKind
    message: str

    def __str__(self) -> str:
        return self.message
