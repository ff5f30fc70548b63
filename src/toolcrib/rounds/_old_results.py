"""Old results of a transcript: in the place of each a line is sent, and the transcript keeps what it has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from toolcrib.formats import Item, ProviderFormat, WireCall, json_shape
from toolcrib.rounds._transcript import ReadItems


class OldResults(ReadItems):
    """The items of a transcript as they are sent when they are old; each is read once, as long as it stands there.

    Attributes:
        format: The rules that they are read by.
        short: For each item what is sent of it when it is old.
        begins: The place of the first result of each round.
        calls: The calls in the items, by what their results name.
        is_after_result: Whether the last item has results.
    """

    __slots__ = ("begins", "calls", "format", "is_after_result", "short")

    def __init__(self, format: ProviderFormat) -> None:
        self.format = format
        self.forget()

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.format,))

    def forget(self) -> None:
        self.items, self.short, self.begins = [], list[Item](), list[int]()
        self.calls: dict[str, WireCall] = {}
        self.is_after_result = False

    def sent(self, messages: tuple[Item, ...], rounds: int) -> tuple[Item, ...]:
        """Return the messages with a line in the place of each result that is older than so many rounds."""
        for item in self.rest_of(messages):
            self._read(item)
        if len(self.begins) <= rounds:
            return messages
        begin = self.begins[-rounds]
        return (*self.short[:begin], *messages[begin:])

    def _read(self, item: Item) -> None:
        shape = json_shape(item)
        is_result = bool(self.format.raw_results(shape))
        if is_result and not self.is_after_result:
            self.begins.append(len(self.items))
        self.is_after_result = is_result
        self.short.append(self._shortened(item, shape) if is_result else item)
        self.items.append(item)
        self.calls |= {call.id or call.name: call for call in self.format.calls_of(shape)}

    def _shortened(self, item: Item, shape: Mapping[str, Any]) -> Item:
        """Return an item with a line in the place of each result of a tool that is longer than that."""
        rules, raw = self.format, list[Item]()
        results = zip(rules.results_of(shape), rules.raw_results(shape), strict=True)
        for result, before in results:
            call = self.calls.get(result.call.id or result.call.name)
            if call is None or call.kind != "function":  # what answers another call has fields of its own
                raw.append(before)
                continue
            line = f"The result of `{call.name}` was left out here, because it is old."
            [answer] = rules.answer([replace(result, call=call, content=line)])
            [after] = rules.raw_results(answer)
            raw.append(after if len(str(after)) < len(str(before)) else before)
        shortened = rules.pack(raw, rules.rest_of(shape))
        is_valid = len(shortened) == 1 and rules.result_keys(shortened[0]) == rules.result_keys(shape)
        return shortened[0] if is_valid and shortened[0] != shape else item
