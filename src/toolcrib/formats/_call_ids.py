"""Call ids: one for each call that came without one, or with one in use; the same call always gets the same id."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from hashlib import sha256

from toolcrib._json_writer import valid_text
from toolcrib.formats._wire import WireCall

IdMaker = Callable[[str], str]
_UNSENT = "unnamed_"  # begins the ids that were made here
_WRITER = json.JSONEncoder(sort_keys=True, default=str)


def made_id(seed: str) -> str:
    """Return an id for a call that came without one, the same for the same seed."""
    return f"call_{sha256(seed.encode('utf-8', 'replace')).hexdigest()[:24]}"


def unsent_id(seed: str) -> str:
    """Return an id that never goes out, for a call that came without one; the same for the same seed."""
    return made_id(seed).replace("call_", _UNSENT)


def is_sent(id: str) -> bool:
    """Return whether an id goes out: it is one, and was not made here."""
    return bool(id) and not id.startswith(_UNSENT)


def seed_of(value: object, position: int) -> str:
    """Return the seed of a call's id: its content, and its position in the reply."""
    return f"{position}:{_written(value)}"


def seeds_of(value: object, count: int) -> list[str]:
    """Return the seed of each position; the value is written once."""
    written = _written(value)
    return [f"{position}:{written}" for position in range(count)]


def _written(value: object) -> str:
    try:
        return _WRITER.encode(value)
    except (ValueError, RecursionError):  # it is nested too deeply, and its position has to do
        return ""


def is_sendable(id: str) -> bool:
    """Return whether an id can be sent back: it is there, and no character of it is cut in half."""
    return bool(id) and (id.isascii() or valid_text(id) == id)


def why_replaced(id: str, takes: Callable[[str], bool] = is_sendable) -> str:
    """Return why a call's id was replaced, in words for a host; `takes` is the provider's rule."""
    if not id:
        return "no id"
    if not is_sendable(id):
        return f"the id `{id}`, which has half a character in it,"
    return f"the id `{id}`, which {'is in use' if takes(id) else 'the provider does not take'},"


def unused_id(seed: str, make: IdMaker, used_ids: Collection[str], also: Collection[str] = ()) -> str:
    """Return an id for `seed` that is not one of those taken."""
    candidate, count = make(seed), 1
    while candidate in used_ids or candidate in also:
        count += 1
        candidate = make(f"{count}:{seed}")
    return candidate


def are_unique(calls: Sequence[WireCall], used: Collection[str], takes: Callable[[str], bool] = is_sendable) -> bool:
    """Return whether each call has an id that no other has and that the provider takes; as for `unique_ids`."""
    ids = {call.id for call in calls}
    return len(ids) == len(calls) and ids.isdisjoint(used) and all(map(takes, ids))


def unique_ids(
    calls: Sequence[WireCall], make: IdMaker, used_ids: Collection[str], takes: Callable[[str], bool] = is_sendable
) -> tuple[list[str], list[str]]:
    """Return an id for each call that no other has, and what had to be changed for it, a sentence each.

    Args:
        calls: The calls of one reply.
        make: Makes an id in the provider's shape.
        used_ids: The ids of earlier calls.
        takes: Whether the provider takes an id.
    """
    if are_unique(calls, used_ids, takes):
        return [call.id for call in calls], []  # as it nearly always is
    used, ids, problems = set[str](), list[str](), list[str]()  # `used_ids` may be long, and is not copied
    for position, call in enumerate(calls):
        id = call.id
        if not takes(id) or id in used or id in used_ids:
            fault = why_replaced(id, takes)
            # alike but for their ids, they stay apart
            seed_parts = [call.name, call.arguments, *filter(None, [call.id])]
            id = unused_id(seed_of(seed_parts, position), make, used_ids, used)
            problems.append(f"a call of `{call.name}` came with {fault} and is called `{id}`")
        used.add(id)
        ids.append(id)
    return ids, problems
