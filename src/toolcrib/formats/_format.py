"""Base classes of the formats: what each provider's module says, and the checks that all of them share."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from types import MappingProxyType
from typing import Any, ClassVar, Self

from toolcrib._json_writer import valid_text
from toolcrib.calls import Media
from toolcrib.errors import FormatError
from toolcrib.formats._call_ids import are_unique, unique_ids
from toolcrib.formats._canonical_json import canonical
from toolcrib.formats._json_reading import json_shape
from toolcrib.formats._nearly_json import repaired_arguments, with_arguments
from toolcrib.formats._provider_client import ProviderClient
from toolcrib.formats._provider_options import NO_OPTIONS, ProviderOptions
from toolcrib.formats._reply_types import are_objects, reader_of
from toolcrib.formats._sent_names import sent_names
from toolcrib.formats._stop_kinds import FINISHED, StopKind, StreamEnd, common_kind, ending, error_in, worst
from toolcrib.formats._transcript_rules import TranscriptRules
from toolcrib.formats._usage import UsageKeys
from toolcrib.formats._wire import CallPiece, Choice, Item, Turn, WireCall, WireReply


@dataclass(frozen=True, slots=True)
class Declaration:
    """A tool as a definition of it is made.

    Attributes:
        name: The name that the model calls it by.
        description: Its purpose.
        parameters: The JSON schema of its arguments, an object.
        strict: Whether the provider is to hold the model to the schema.
        returns: The JSON schema of the result, where the definition has a place for it.
        options: The other options of the provider.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    strict: bool = False
    returns: Mapping[str, Any] | None = None
    options: ProviderOptions = NO_OPTIONS


@lru_cache(maxsize=4096)
def _fits(name: str, names: str) -> bool:
    return re.fullmatch(names, name) is not None


class ToolFormat(ABC):
    """The form of tool definitions.

    Attributes:
        title: The provider's name, for messages.
        names: A regular expression that has to match the whole name of a tool.
        names_rule: The same in words.
        parameter_names: As `names`, of a parameter, empty for any; another one is sent under a name that is
            made of it.
        callers: Who may be named as the only callers of a tool; empty where the model itself is the only one.
        strict: Whether it has a mode that holds the model to the schema.
        returns: Whether a definition has a place for the schema of the result.
        as_it_is: Whether the schema of the arguments goes out as the tool has it, and not as providers take it.
    """

    title: ClassVar[str]
    names: ClassVar[str] = r"[a-zA-Z0-9_-]{1,64}"
    names_rule: ClassVar[str] = "up to 64 letters, digits, `_` and `-`"
    parameter_names: ClassVar[str] = ""
    callers: ClassVar[frozenset[str]] = frozenset()
    strict: ClassVar[bool] = True
    returns: ClassVar[bool] = False
    as_it_is: ClassVar[bool] = False

    @abstractmethod
    def define(self, tool: Declaration) -> Item:
        """Return the definition of one tool."""

    def sent_names(self, parameters: Mapping[str, Any]) -> dict[str, str]:
        """Return the names under which arguments are sent, by their own names; only those that the provider refuses."""
        return sent_names(parameters, self.parameter_names) if self.parameter_names else {}

    def callers_of(self, tool: Declaration) -> list[str] | None:
        """Return who may call a tool, in the provider's words; FormatError where the provider knows none of them."""
        wanted = tool.options.allowed_callers
        if wanted is None:
            return None
        known = [caller for caller in wanted if caller in (self.callers or {"direct"})]
        if not known:
            problem = f"it may only be called by {', '.join(wanted)}, which is not known there; leave the tool out"
            raise FormatError(tool.name, self.title, problem)
        return known if self.callers else None

    def wrap(self, definitions: list[Item]) -> list[Item]:
        """Return the provider's `tools` parameter for these definitions."""
        return definitions

    def check_tool(self, name: str, strict: bool) -> None:
        """Raise FormatError for a name that the provider refuses, or a strict mode that it does not have."""
        if not re.fullmatch(self.names, name):
            raise FormatError(name, self.title, f"a name takes {self.names_rule}; give the tool another one")
        if strict and not self.strict:
            raise FormatError(name, self.title, "it has no strict mode; leave `strict` out")

    def check_strict(self, before: list[Item], definition: Item) -> None:  # noqa: B027 -- most providers have no such limit
        """Raise FormatError where a strict definition is, with those before it, more than one request takes."""


class ProviderFormat(TranscriptRules, ToolFormat):
    """The form of one provider's tools, replies, results and transcripts.

    A transcript is a list of items as they are in the provider's own request: `messages`, `input` or `contents`.

    Attributes:
        sdk: The provider's Python package, or a module in it, where its replies and chunks come in this format alone.
        reply_type: The type of a well-formed reply; None where each is read field by field.
        stops: The provider's words for why a reply ended, and what they mean; any other word means `unknown`.
        text_stops: Those of them that end a text where the host asked for it, and cut a call.
        asks: The types of what the client answers in a reply: items, blocks, calls or parts, as the provider has them.
        carried: The types of items that are sent back unchanged, and wait for no answer of the client's.
        free_texts: The kinds of calls that bring a text in the place of arguments.
        usage: Where replies and chunks say how many tokens were used.
        client: The provider's own client; None where none is known.
        provider: The provider's name in OpenTelemetry's conventions.
        prices: The provider's name in the package `genai-prices`; empty for one without prices.
        takes_one_call: Whether a request can hold the model to one call at a time.
        repairs: Whether arguments that are nearly JSON are read as what they nearly are; see `repairing`.
    """

    sdk: ClassVar[str] = ""
    reply_type: ClassVar[Any] = None
    stops: ClassVar[Mapping[str, StopKind]] = MappingProxyType({})
    text_stops: ClassVar[frozenset[str]] = frozenset()
    asks: ClassVar[frozenset[str]] = frozenset()
    carried: ClassVar[frozenset[str]] = frozenset()
    free_texts: ClassVar[frozenset[str]] = frozenset()
    usage: ClassVar[UsageKeys]
    client: ClassVar[ProviderClient | None] = None
    provider: ClassVar[str]
    prices: ClassVar[str] = ""
    takes_one_call: ClassVar[bool] = True
    repairs: bool = False

    def repairing(self) -> Self:
        """Return these rules with arguments read that are nearly JSON, of replies that were finished."""
        rules = copy(self)
        rules.repairs = True
        return rules

    def recognises(self, shape: Mapping[str, Any]) -> bool:
        """Return whether a reply, or a chunk of a streamed one, has the shape of this format."""
        return False

    def parse(self, reply: object, taken: Collection[str] = ()) -> WireReply:
        """Parse a reply: a well-formed one by its type, any other by its fields, one by one.

        Args:
            reply: The reply that the provider's SDK returns, or the same as a dict.
            taken: Ids of earlier calls. A call that comes with one of them, with none, or with one that the same
                reply used before gets another, and `problems` says so.

        Raises:
            TypeError: It is neither a dict nor an SDK's object.
        """
        shape = json_shape(reply)
        return self.read_well_formed(shape, taken) or self.read_fields(shape, taken)

    def read_well_formed(self, reply: Mapping[str, Any], taken: Collection[str] = ()) -> WireReply | None:
        """Return the result of `read_fields` for a well-formed reply, at a part of the cost; None for any other."""
        typed = None if self.reply_type is None else reader_of(self.reply_type)(reply)
        turn = None if typed is None or self.errors_in(reply) else self.read_turn(typed)
        if turn is None:
            return None
        items, text, calls, stop, values = turn
        kind = self.stops.get(stop)
        if kind not in FINISHED or not items or (not calls if kind == "tool_calls" else stop in self.text_stops):
            return None
        if not all(map(self.takes_name, {call.name for call in calls})):
            return None
        if not are_unique(calls, taken, self.takes_id):
            return None
        texts = [call.arguments for call in calls if isinstance(call.arguments, str)]
        if not are_objects(texts) or (values and canonical(values) is not values):
            return None
        return WireReply(tuple(items), text, tuple(calls), stop, (), kind, is_ordered=True)

    def errors_in(self, reply: Mapping[str, Any]) -> list[str]:
        """Return the errors in a reply, a chunk or an event: the provider's name for each and its words."""
        return [error] if (error := error_in(reply)) else []

    def read_turn(self, reply: Any) -> Turn | None:
        """Return the turn in a reply of `reply_type`; None where it must be read field by field."""
        raise NotImplementedError(self.title)

    def read_fields(self, reply: Mapping[str, Any], taken: Collection[str] = ()) -> WireReply:
        """Read a reply field by field, despite any fault in it; see `parse`."""
        raise NotImplementedError(self.title)

    @abstractmethod
    def gather(self, chunks: Iterable[object], taken: Collection[str] = ()) -> WireReply:
        """Return the reply of a stream, from all of its chunks; one that was cut has `problems`."""

    def ended(self, words: Iterable[object], errors: Iterable[str] = (), *, streamed: bool) -> WireReply:
        """Return a reply of which is known why it ended, and nothing else yet: the worst counts of what it says.

        Args:
            words: The provider's words for it; what is not text says nothing.
            errors: The errors that `error_in` found in it.
            streamed: Whether it is a stream, which was cut when it does not say why it ended.
        """
        known: list[tuple[str, StopKind]] = [
            (word, self.stops.get(word) or common_kind(word)) for word in words if isinstance(word, str) and word
        ]
        stop, kind = worst([*known, *((error, "error") for error in errors)]) or (
            None,
            "cut" if streamed else "unknown",
        )
        return WireReply((), "", (), stop, (), kind)

    def ended_stream(self, stream: StreamEnd) -> WireReply:
        """Return the result of `ended` for a stream, with its problems."""
        reply = self.ended(stream.words, stream.errors, streamed=True).with_misread(stream.misread)
        return replace(reply, problems=tuple(stream.problems))

    def with_calls(
        self, reply: WireReply, taken: Collection[str], broken: Mapping[int, str] = MappingProxyType({})
    ) -> WireReply:
        """Return a reply with the calls that are in its items, in canonical form, and with how it ended.

        Args:
            reply: The reply as it was read: items as received, and all of their calls where those were read already.
            taken: Ids of earlier calls.
            broken: Which of its calls may not run, by their place, and why.
        """
        items, calls, changed = self.with_own_ids(reply, taken)
        if self.repairs and reply.stop_kind in FINISHED and reply.stop not in self.text_stops:
            items, calls = self._repaired(items, calls, broken)
            changed += [
                f"the arguments of `{call.name}` ({call.id}) were repaired" for call in calls if call.is_repaired
            ]
        if broken:
            calls = [replace(call, fault=broken.get(at, call.fault)) for at, call in enumerate(calls)]
        answered = {key for item in items for key in self.result_keys(item) or ()}  # by the provider itself
        waiting = tuple(call for call in calls if self.key_of(call) not in answered) if answered else tuple(calls)
        typed = [(str(type), part) for item in items for type, part in self.parts_of(item)]
        strange = [part for part in typed if part[0] not in self.carried and part[0] not in self.asks]
        unknown = tuple(WireCall(f"unknown:{at}", type, "", type, sent=part) for at, (type, part) in enumerate(strange))
        kind = reply.stop_kind
        if kind == "tool_calls" and not calls and not unknown:
            kind = "malformed"
        elif kind == "finished" and calls and reply.stop in self.text_stops:
            kind = "cut"
        problems = [*reply.problems, *changed]
        if kind not in FINISHED and kind != "paused":
            problems.insert(0, ending(kind, reply.stop))
        elif kind in FINISHED and not items:
            problems.append("the reply is empty")
        sent = canonical([self.canonical_item(item, broken) if self.call_keys(item) else item for item in items])
        return replace(
            reply,
            items=tuple(sent),
            text=valid_text(reply.text),
            calls=waiting,
            unknown=unknown,
            stop=reply.stop and valid_text(reply.stop),
            problems=tuple(map(valid_text, problems)),
            stop_kind=kind,
            is_ordered=self.unanswered(sent) == list(map(self.key_of, waiting)),
        )

    def _repaired(
        self, items: Sequence[Item], calls: Sequence[WireCall], broken: Collection[int]
    ) -> tuple[Sequence[Item], Sequence[WireCall]]:
        """Return items and calls with the arguments that are nearly JSON as JSON, of calls that came whole."""
        texts, calls_read = dict[str, str](), list[WireCall]()
        for at, call in enumerate(calls):
            raw, is_whole = call.arguments, call.kind == "function" and not call.fault and at not in broken
            text = repaired_arguments(raw) if is_whole and isinstance(raw, str) else None
            if text is not None:
                texts[str(raw)] = text
                call = replace(call, arguments=text, is_repaired=True)
            calls_read.append(call)
        if texts:
            items = [with_arguments(item, texts) if self.call_keys(item) else item for item in items]
        return items, calls_read

    def with_own_ids(
        self, reply: WireReply, taken: Collection[str]
    ) -> tuple[Sequence[Item], Sequence[WireCall], list[str]]:
        """Return the items of a reply and their calls, each with an id of its own, and what was changed for it."""
        items: Sequence[Item] = reply.items
        calls: Sequence[WireCall] = reply.calls or [call for item in items for call in self.calls_of(item)]
        ids, changed = unique_ids(calls, self.make_id, taken, self.takes_id)
        if changed:
            new = iter(ids)
            counted = [(item, len(self.call_keys(item))) for item in items]
            items = [self.with_call_ids(item, list(islice(new, count))) if count else item for item, count in counted]
            calls = [call for item in items for call in self.calls_of(item)]
        return items, calls, changed

    def parts_of(self, item: Mapping[str, Any]) -> Iterable[tuple[object, Mapping[str, Any]]]:
        """Return the typed parts in an item of a reply, each with its type; calls may be left out."""
        return ()

    def needs(self, kind: str) -> tuple[str, ...]:
        """Return the fields without which an answer to a call of this kind says nothing; none where a text will do."""
        return ()

    def canonical_item(self, item: Item, broken: Collection[int]) -> Item:
        """Return an item with calls as every server of the format takes it; `broken` as for `with_calls`."""
        return item

    def text_delta(self, chunk: Mapping[str, Any]) -> str:
        """Return the text that a chunk of a streamed reply adds to the answer, without calls, thoughts and usage."""
        return ""

    def call_pieces(self, chunk: Mapping[str, Any]) -> Iterable[CallPiece]:
        """Return the pieces of calls in a chunk of a streamed reply; of those alone that may be calls of tools."""
        return ()

    def user_message(self, parts: Sequence[str | Media]) -> list[Item]:
        """Return the items for what a user says and shows, in its order; `takes_media` has said yes to the media."""
        raise NotImplementedError(self.title)

    def takes_media(self, media: Media) -> bool:
        """Return whether the provider takes an image, a sound or a file in a message of the user's."""
        raise NotImplementedError(self.title)

    def asking(self, text: str, calls: Sequence[WireCall]) -> list[Item]:
        """Return the items for a turn of the model's with calls of tools; `text` is what it said, perhaps nothing."""
        raise NotImplementedError(self.title)

    def takes_name(self, name: str) -> bool:
        """Return whether a tool may have this name."""
        return _fits(name, self.names)

    def called(self, name: str, problems: list[str]) -> str:
        """Return a call's name as the provider takes it back: one that no tool can have is made into another."""
        if self.takes_name(name):
            return name
        sent = f"unknown_{re.sub('[^a-zA-Z0-9_-]', '_', name)[:56]}"
        problems.append(f"a call came with the name `{name}`, which no tool can have, and is called `{sent}`")
        return sent

    @abstractmethod
    def tool_choice(self, kind: Choice, name: str | None = None, among: Sequence[str] = ()) -> Any:
        """Return the provider's parameter for the choice of a tool.

        Args:
            kind: The choice.
            name: The tool, for a specific one.
            among: The tools that may be called, of all that are defined; all of them when empty.

        Raises:
            ValueError: The provider has no choice among some of the tools.
        """

    def choice_parameters(self, choice: Any) -> Item:
        """Return the parameters of a request with this choice."""
        return {"tool_choice": choice}

    def one_call(self, choice: Any) -> Item:
        """Return the parameters of a request with this choice, in which the model makes one call at a time.

        Raises:
            ValueError: The provider cannot be held to that.
        """
        if not self.takes_one_call:
            raise ValueError(f"{self.title} cannot be held to one call at a time; leave `parallel` out")
        return {"tool_choice": choice, "parallel_tool_calls": False}

    def request(self, messages: Sequence[Item], system: Any, output: Mapping[str, Any] | None) -> Item:
        """Return the parameters of a request with these messages, beside its tools.

        Args:
            messages: The transcript.
            system: The instructions, a text or what `cached_system` made of one; empty for none.
            output: The JSON schema of the answer, an object; None for text.

        Raises:
            FormatError: The provider cannot be held to the schema.
            NotImplementedError: No client of the provider is known.
        """
        raise NotImplementedError(self.title)

    def cached_system(self, text: str) -> Any:
        """Return the provider's parameter for instructions, with a mark of the cache at their end.

        The text itself where the provider has no such mark, and so it is for tools and messages.
        """
        return text

    def cached_tools(self, tools: tuple[Item, ...]) -> tuple[Item, ...]:
        """Return definitions with a mark of the provider's cache at their end."""
        return tools

    def cached_item(self, item: Item) -> Item:
        """Return an item of the user's with a mark of the provider's cache at its end."""
        return item

    def cached_messages(self, messages: tuple[Item, ...]) -> tuple[Item, ...]:
        """Return the messages of a request with a mark of the provider's cache at the end of the user's last one."""
        for at in range(len(messages) - 1, -1, -1):
            if messages[at].get("role") == "user":
                return (*messages[:at], self.cached_item(messages[at]), *messages[at + 1 :])
        return messages

    def refuse_among(self, among: Sequence[str]) -> None:
        """Raise ValueError for a choice among some of the tools."""
        if among:
            mend = "define only these: `available=ToolAvailability.only(...)`"
            raise ValueError(f"{self.title} has no choice among some of the tools that are defined; {mend}")
