"""Message blocks: calls and results that are parts of a message, and which blocks Anthropic and Bedrock refuse."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, TypeAlias, cast

from toolcrib.calls import value_class
from toolcrib.formats._call_ids import is_sent
from toolcrib.formats._canonical_json import arguments_object
from toolcrib.formats._json_reading import is_object, object_or_empty, objects_in, text_or_empty
from toolcrib.formats._transcript_rules import CallKey, RefusedPart, TranscriptRules
from toolcrib.formats._wire import Item

_CALLER = -1  # the place of a call's caller, in the call

BlockKind: TypeAlias = Literal["blank", "thought", "asks", "answers", "result", "other"]


@value_class
class Block:
    """The facts of a block that the rules need.

    Attributes:
        kind: `blank`: a text without a word; `asks`: a call of a tool of the provider's own; `answers`: the result of
            one; `result`: a result of the client's.
        id: Of the provider's own call.
        name: Of its tool.
        inner: The content of a result of the client's.
        caller: Of a call of the client's the id of the provider's own whose program made it.
    """

    kind: BlockKind
    id: str = ""
    name: str = ""
    inner: object = None
    caller: str = ""


OTHER = Block("other")


class MessageParts(TranscriptRules):
    """Rules of a provider whose calls are parts of the model's message, and their results the first ones of the next.

    Attributes:
        parts_key: Where a message has its parts.
        model_role: The role of the model's messages.
        id_key: Where a call has its id.
        input_key: Where a call has its arguments.
        needs_input: Whether a call without arguments has an empty object of them.
    """

    parts_key: ClassVar[str] = "content"
    model_role: ClassVar[str] = "assistant"
    id_key: ClassVar[str] = "id"
    input_key: ClassVar[str] = "input"
    needs_input: ClassVar[bool] = True

    @abstractmethod
    def call_in(self, part: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return the call that a part is and that waits for the client; None for any other part."""

    @abstractmethod
    def with_call(self, part: Mapping[str, Any], call: Item) -> Item:
        """Return a part with another call in the place of its own."""

    @abstractmethod
    def is_result(self, part: Mapping[str, Any]) -> bool:
        """Return whether a part is a result of the client's."""

    @abstractmethod
    def result_key(self, part: Mapping[str, Any]) -> CallKey:
        """Return the key of the call that a result answers."""

    def calls_in(self, item: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Return the calls in an item, in order."""
        parts = objects_in(item.get(self.parts_key)) if item.get("role") == self.model_role else ()
        return [call for part in parts if (call := self.call_in(part)) is not None]

    def results_in(self, item: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Return the parts of an item that are results, in order."""
        return [part for part in objects_in(item.get(self.parts_key)) if self.is_result(part)]

    def result_keys(self, item: Mapping[str, Any]) -> list[CallKey] | None:
        keys = list(map(self.result_key, self.results_in(item)))
        return None if keys and self.leading(item) < len(keys) else keys

    def raw_results(self, item: Mapping[str, Any]) -> list[Item]:
        return list(map(dict, self.results_in(item)))

    def leading(self, item: Mapping[str, Any]) -> int:
        if item.get("role") not in ("user", "function"):
            return 0
        are_results = list(map(self.is_result, objects_in(item.get(self.parts_key))))
        return next((place for place, is_result in enumerate(are_results) if not is_result), len(are_results))

    def rest_of(self, item: Mapping[str, Any]) -> Item | None:
        content = item.get(self.parts_key)
        if not isinstance(content, list | tuple):
            return dict(item)
        rest = [part for part in objects_in(cast("object", content)) if not self.is_result(part)]
        return {**item, self.parts_key: rest} if rest else None

    def pack(self, raw: Sequence[Item], rest: Item | None = None) -> list[Item]:
        if not raw:
            return [] if rest is None else [rest]
        message: Item = {"role": "user", self.parts_key: []} if rest is None else rest
        return [{**message, self.parts_key: [*raw, *message[self.parts_key]]}]

    def with_call_ids(self, item: Mapping[str, Any], ids: Sequence[str]) -> Item:
        new, parts = iter(ids), list[Item]()
        for part in objects_in(item.get(self.parts_key)):
            call = self.call_in(part)
            id_field = {self.id_key: id} if call is not None and is_sent(id := next(new)) else {}
            parts.append(dict(part) if call is None else self.with_call(part, {**call, **id_field}))
        return {**item, self.parts_key: parts}

    def canonical_item(self, item: Item, broken: Collection[int]) -> Item:
        """Return an item with objects as the arguments of its calls; those of `broken` ones are empty."""
        place, parts = -1, list[Item]()
        for part in item[self.parts_key]:
            call = self.call_in(part)
            if call is not None:
                place += 1
                sent = {} if place in broken else arguments_object(call.get(self.input_key))
                if (self.needs_input or self.input_key in call) and sent is not call.get(self.input_key):
                    part = self.with_call(part, {**call, self.input_key: sent})
            parts.append(part)
        return {**item, self.parts_key: parts}


class MessageBlocks(MessageParts):
    """Rules of a provider whose messages are lists of blocks.

    It takes no message and no result of white space alone, and Bedrock no such text; no thought at the end of a
    message; no call of a tool of its own without the result, and no such result without the call. Such a call may wait
    for its result in a reply that was paused, and while the client answers calls of the same reply; where they are of
    its program, by messages of results alone.

    Each was refused: "text content blocks must contain non-whitespace text" by Anthropic, "The text field in the
    ContentBlock object is blank" by Bedrock; "The final block in an assistant message cannot be `thinking`"; "tool use
    was found without a corresponding result block", "Each `advisor_tool_result` block must have a corresponding
    `server_tool_use` block before it".
    """

    @abstractmethod
    def block_of(self, block: Mapping[str, Any], role: str) -> Block:
        """Return the kind of a block in a message of a role."""

    def refused_parts(self, items: Sequence[Mapping[str, Any]], goes_on: bool = False) -> list[RefusedPart]:
        """Return the blocks that the provider refuses.

        Args:
            items: A transcript.
            goes_on: Whether it is the rest of one, and may begin with results of calls before it.
        """
        found, waiting = list[RefusedPart](), dict[str, RefusedPart]()
        programs = dict[str, list[RefusedPart]]()  # what calls say of the program that made them, by its call
        before: Mapping[str, Any] | None = None
        read = list(map(self._blocks, items))
        for index, (item, blocks) in enumerate(zip(items, read, strict=True)):
            ends = waiting and (self.missing_turns(before, item) or not _may_wait(item, blocks))
            ended = [id for id in waiting if ends or (id in programs and _answers_and_says(blocks))]
            for id in ended:
                part = waiting.pop(id)
                text = (
                    part.text if ends else f"{part.text}: results of its program's calls are not alone in item {index}"
                )
                found += [replace(part, text=text), *programs.pop(id, ())]
            for at, block in enumerate(blocks):
                if block.caller in waiting:
                    text = f"a call's mark that the program of `{block.caller}` made it"
                    mark = RefusedPart(index, (at, _CALLER), "orphan", block.caller, text)
                    programs.setdefault(block.caller, []).append(mark)
                match block.kind:
                    case "asks":
                        if block.id in waiting:
                            found.append(waiting[block.id])
                        text = f"a call of `{block.name}`, the provider's own, without its result"
                        waiting[block.id] = RefusedPart(index, (at,), "missing", block.id, text)
                    case "answers" if waiting.pop(block.id, None) is None and not goes_on:
                        text = f"the result of `{block.id}`, a call of the provider's own that is not there"
                        found.append(RefusedPart(index, (at,), "orphan", block.id, text))
                    case "blank":
                        found.append(RefusedPart(index, (at,), "blank", "", "a text of white space alone"))
                    case "result":
                        found += self._blank_inside(index, at, block.inner)
                    case _:
                        pass
            before = item
        found += _last_thoughts(read, {(part.index, *part.place) for part in found})
        return sorted(found, key=lambda part: (part.index, part.place))

    def without_parts(self, item: Mapping[str, Any], places: Collection[tuple[int, ...]]) -> Item | None:
        """Return an item without some of its blocks; None when nothing is left."""
        content, blocks = item.get("content"), list[Any]()
        if not isinstance(content, list | tuple):
            return None
        for at, block in enumerate(cast("Sequence[Any]", content)):
            inside = {place[1] for place in places if len(place) > 1 and place[0] == at}
            if _CALLER in inside:
                block = {key: value for key, value in block.items() if key != "caller"}
            elif inside:
                block = self.without_inner(block, inside)
            if (at,) not in places:
                blocks.append(block)
        return {**item, "content": blocks} if blocks else None

    @abstractmethod
    def without_inner(self, block: Mapping[str, Any], places: Collection[int]) -> Item:
        """Return a result of the client's without some of what it holds."""

    def taken_back(self, blocks: list[Item], waits: bool, problems: list[str]) -> list[Item]:
        """Return the blocks of a reply without those that the provider would refuse; `problems` gets what they were.

        Args:
            blocks: All of them.
            waits: Whether calls of the provider's own may wait: the reply was paused, or the client has calls to
                answer.
            problems: The reply's, to which these are added.
        """
        message: Item = {"role": "assistant", "content": blocks}
        parts = self.refused_parts([message] if waits else [message, *self.user("Go on.")], goes_on=True)
        if not parts:
            return blocks
        problems += [f"{part.text} was left out" for part in parts if part.kind != "blank"]
        rest = self.without_parts(message, {part.place for part in parts})
        return [] if rest is None else rest["content"]

    # --- inside

    def _blocks(self, item: Mapping[str, Any]) -> list[Block]:
        content, role = item.get("content"), text_or_empty(item.get("role"))
        if isinstance(content, str):
            return [Block("blank") if is_blank(content) else OTHER]
        if not isinstance(content, list | tuple):
            return []
        return [self.block_of(object_or_empty(block), role) for block in cast("Sequence[object]", content)]

    def _blank_inside(self, index: int, at: int, inner: object) -> Iterator[RefusedPart]:
        if not isinstance(inner, list | tuple):
            return
        for place, block in enumerate(cast("Sequence[object]", inner)):
            if is_object(block) and self.block_of(block, "user").kind == "blank":
                yield RefusedPart(index, (at, place), "blank", "", "a text of white space alone in a result")


def is_blank(text: object) -> bool:
    """Return whether a text says nothing; what is not text does not either."""
    return not text_or_empty(text).strip()


def _answers_and_says(blocks: Sequence[Block]) -> bool:
    """Return whether results of the client's stand beside something else."""
    kinds = {block.kind for block in blocks}
    return "result" in kinds and len(kinds) > 1


def _last_thoughts(messages: Sequence[Sequence[Block]], refused: Collection[tuple[int, ...]]) -> Iterator[RefusedPart]:
    """Yield the thoughts at the ends of messages, where nothing follows but what is gone."""
    for index, blocks in enumerate(messages):
        for at, block in reversed([*enumerate(blocks)]):
            if block.kind == "thought":
                yield RefusedPart(index, (at,), "order", "", "a last thought that led to nothing")
            elif (index, at) not in refused:
                break


def _may_wait(item: Mapping[str, Any], blocks: Sequence[Block]) -> bool:
    """Return whether calls of the provider's own before an item may still get their results after it."""
    return item.get("role") == "assistant" or any(block.kind == "result" for block in blocks)
