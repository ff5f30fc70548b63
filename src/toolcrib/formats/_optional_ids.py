"""Calls that may come without an id: they get one here that never goes out, and are answered by name and order."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

from toolcrib.formats._call_ids import (
    is_sendable,
    is_sent,
    made_id,
    seed_of,
    seeds_of,
    unsent_id,
    unused_id,
    why_replaced,
)
from toolcrib.formats._canonical_json import raw_arguments
from toolcrib.formats._format import ProviderFormat
from toolcrib.formats._transcript_rules import CallKey
from toolcrib.formats._wire import Item, WireCall, WireReply


class OptionalIds(ProviderFormat):
    """The rules of the formats in which an id may be left out.

    Attributes:
        needs_names: Whether a result has to name the tool; one that names none answers the next call elsewhere.
    """

    needs_names: ClassVar[bool] = True

    @abstractmethod
    def sent_calls(self, item: Mapping[str, Any]) -> list[tuple[str, str, object]]:
        """Return the id (empty where none was sent), name and arguments of the calls in an item, in order."""

    def calls_of(self, item: Mapping[str, Any]) -> tuple[WireCall, ...]:
        return self._calls(item, ())

    def call_keys(self, item: Mapping[str, Any]) -> list[CallKey]:
        return [(id, name) for id, name, _ in self.sent_calls(item)]

    def call_ids(self, item: Mapping[str, Any]) -> list[str]:
        return [call.id for call in self.calls_of(item)]

    def key_of(self, call: WireCall) -> CallKey:
        return (call.id if is_sent(call.id) else "", call.name)

    def answerable(self, keys: Sequence[CallKey]) -> bool:
        ids = [key[0] for key in keys if key[0]]
        return len(set(ids)) == len(ids)

    def still_unanswered(self, waiting: list[CallKey], answered: list[CallKey]) -> list[CallKey] | None:
        """Return the unanswered calls; answers come in the order of the calls, which pairs one without an id."""
        if len(answered) > len(waiting):
            return None
        pairs = zip(waiting, answered, strict=False)
        spare = () if self.needs_names else ("",)
        in_order = all(answer[1] in (call[1], *spare) and answer[0] in ("", call[0]) for call, answer in pairs)
        return waiting[len(answered) :] if in_order else None

    def read_well_formed(self, reply: Mapping[str, Any], taken: Collection[str] = ()) -> WireReply | None:
        read = super().read_well_formed(reply, taken)
        return None if read is None or not all(is_sent(call.id) for call in read.calls) else read

    def with_own_ids(
        self, reply: WireReply, taken: Collection[str]
    ) -> tuple[Sequence[Item], Sequence[WireCall], list[str]]:
        changed = list[str]()
        items = [self._with_unused_ids(item, taken, changed) for item in reply.items]
        if reply.calls and not changed and all(call.id for call in reply.calls):
            return items, reply.calls, changed
        return items, [call for item in items for call in self._calls(item, taken)], changed

    def _calls(self, item: Mapping[str, Any], taken: Collection[str]) -> tuple[WireCall, ...]:
        sent = self.sent_calls(item)
        ids = [id for id, _, _ in sent]
        if "" in ids:
            used, seeds = set(ids), seeds_of(sent, len(sent))
            ids = [id or unused_id(seed, unsent_id, taken, used) for id, seed in zip(ids, seeds, strict=True)]
        return tuple(WireCall(id, name, raw_arguments(sent)) for id, (_, name, sent) in zip(ids, sent, strict=True))

    def _with_unused_ids(self, item: Item, taken: Collection[str], changed: list[str]) -> Item:
        """Return an item whose calls have other ids where their own are in use, and note what was changed."""
        ids, used, before = list[str](), set[str](), len(changed)
        for place, (id, name, sent) in enumerate(self.sent_calls(item)):
            new = id
            if id and (id in used or id in taken or not is_sendable(id)):
                new = unused_id(seed_of([name, sent], place), made_id, taken, used)
                changed.append(f"a call of `{name}` came with {why_replaced(id)} and is called `{new}`")
            ids.append(new)
            used.add(new)
        return item if len(changed) == before else self.with_call_ids(item, ids)
