"""Replies that are spoilt at random: values of a wrong kind anywhere, items and keys that no provider has, cuts.

What runs of them has arguments that came, what is raised is documented, and what is committed the provider takes.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from copy import deepcopy
from random import Random
from typing import Any

from tests.rounds.moves import FRESH, SENT
from tests.rounds.provider_rules import refused
from tests.rounds.streams import by_turns, moved, of_unknown_type, partial, pieces, whole
from toolcrib.calls import ToolCall
from toolcrib.errors import RoundError
from toolcrib.formats import PROVIDERS
from toolcrib.rounds import CallProgress, ToolRound, Transcript, WireFormat, decode, decode_stream
from toolcrib.tools import ez_tool

JUNK: tuple[Any, ...] = (None, "", "x", 0, 7, True, 1.5, [], ["x"], [None], {}, {"x": 1}, [[]], [{}], "\ud800")
WRONG: tuple[Any, ...] = (7, True, ["x"], {"x": 1})  # in the place of a text
UNKNOWN: tuple[Any, ...] = ({"type": "new_thing", "x": 1}, {"x": 1}, {"newThing": {"x": 1}}, "x", None, 7)
ARGUMENTS = ('{"path": "/srv/a"}', '{"path": "/srv/b", "dry": true}', '{"dry": true}', "{}", '{"path": "', "[1]", "")
HELD: tuple[WireFormat, ...] = tuple(PROVIDERS)
_HOLDERS = frozenset({"arguments", "input", "args", "partial_json"})

ran: list[dict[str, Any]] = []


@ez_tool
def purge(path: str = "*", dry: bool = False) -> str:
    """Delete files."""
    ran.append({"path": path, "dry": dry})
    return "deleted"


@ez_tool
def look(path: str, dry: bool = False) -> str:
    """Look at files."""
    ran.append({"path": path, "dry": dry})
    return "seen"


async def spoil_many(format: WireFormat, rounds: int, seed: int = 0) -> int:
    """Spoil this many replies and return how many; AssertionError has the seed of the first that goes wrong."""
    for at in range(seed, seed + rounds):
        try:
            await spoil(format, at)
        except Exception as error:  # of the library under test, whatever it is
            raise AssertionError(f"{format}, spoilt reply of seed {at}: {type(error).__name__}: {error}") from error
    return rounds


async def spoil(format: WireFormat, seed: int) -> None:
    """Read and commit one reply that is spoilt; AssertionError where it comes to what may not be."""
    random = Random(seed)
    mode = random.choice(("whole", "one piece", "pieces"))
    names = ("look",) if mode == "one piece" else ("purge", "look")  # of which a whole event may be lost, unnoticed
    ids = random.sample(FRESH, random.randint(1, 3))
    calls = [ToolCall(random.choice(names), random.choice(ARGUMENTS), id) for id in ids]
    text, thinks = random.choice(("", "Well.")), random.random() < 0.3
    size = {"whole": 0, "one piece": 10_000, "pieces": random.randint(1, 9)}[mode]
    made: Any = pieces(format, calls, text, thinks, size) if size else whole(format, calls, text, thinks)
    came = _arguments(made) + [call.arguments for call in calls]
    if mode == "pieces":
        made = _mixed(format, made, calls, random)
    for _ in range(random.randint(1, 3)):
        made = _with_wrong_kind(made, random) if mode == "pieces" else spoilt_reply(made, random)
    if size and random.random() < 0.2:
        made = made[: random.randrange(len(made) + 1)]
    await _must_hold(format, made, _read([*came, *_arguments(made)]))


async def disturb_each_piece(format: WireFormat) -> int:
    """Disturb each chunk of a reply in each way and return how often; AssertionError where it comes to what may not be.

    A chunk belongs to no call, or its delta, it itself, or both are of no type that a provider has, and pairs of these.
    """
    calls = [ToolCall("look", ARGUMENTS[1], FRESH[0])]
    chunks, ways = pieces(format, calls, "", False, 3), (moved, of_unknown_type, _of_unknown_kind)
    tried = [(at, one, other) for at in range(len(chunks)) for one in ways for other in ways]
    for at, one, other in tried:
        made = [*chunks[:at], other(one(chunks[at])), *chunks[at + 1 :]]
        await _must_hold(format, made, _read([*_arguments(chunks), calls[0].arguments]))
    return len(tried)


def _of_unknown_kind(chunk: Any) -> Any:
    """Return a chunk whose own type, if it says one, is one that no provider has."""
    return {key: {"x": 1} if key in ("type", "event_type") else value for key, value in chunk.items()}


async def _must_hold(format: WireFormat, made: Any, came: list[Any]) -> None:
    ran.clear()
    transcript = Transcript(PROVIDERS[format].user("go"), format)
    before = list(transcript)
    try:
        round = await _decoded(format, made, transcript)
    except (TypeError, ValueError):  # as `decode` says: it is not a reply, or plainly of another format
        return
    plan = await round.apply_hooks()
    results: list[Any] = await plan.run_pending()
    assert all(_is_among(arguments, came) for arguments in ran), f"arguments that did not come: {ran}"
    results += [one.refuse("not here") if one.is_known else one.leave() for one in plan.unhandled]
    try:
        await plan.commit(transcript, results)
    except RoundError as error:
        raise AssertionError(f"its own results are refused: {error}") from error
    rules = PROVIDERS[format]
    unknown = {str(kind) for item in round.items for kind, _ in rules.parts_of(item)} - rules.asks - rules.carried
    sent = [call for item in round.items for call in item.get("tool_calls") or ()]
    unknown |= {str(call["type"]) for call in sent if call.get("type")} - rules.asks
    wrong = refused(format, transcript, {*SENT, "x"}) if len(transcript) > len(before) and not unknown else []
    assert not wrong, f"the provider refuses the transcript: {wrong}"
    assert not (found := transcript.check()), f"the provider takes the transcript, and check() does not: {found}"


async def _decoded(format: WireFormat, made: Any, transcript: Transcript) -> ToolRound:
    """Return the round of a reply; of a stream a listener is given the calls as they come, and runs nothing."""
    round = decode([purge, look], made, format=format, transcript=transcript)
    if not isinstance(made, list):
        return round

    async def chunks() -> AsyncIterator[Any]:
        for chunk in made:
            yield chunk

    seen: list[CallProgress] = []
    try:
        round = await decode_stream([purge, look], chunks(), on_call=seen.append, format=format, transcript=transcript)
    except (TypeError, ValueError) as error:
        raise AssertionError(f"the listener's part breaks a reply that can be read: {error}") from error
    whole = [one for one in seen if one.is_whole]
    assert [(one.id, one.name) for one in whole] == [(call.id, call.name) for call in round.tool_calls]
    assert len({one.place for one in whole}) == len(whole)
    assert not ran, "a call ran before its reply had ended"
    return round


def _is_among(arguments: dict[str, Any], came: list[Any]) -> bool:
    return any({"path": "*", "dry": False, **one} == arguments for one in came if isinstance(one, dict))


# --- spoiling


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inner:
        yield from _paths(part, (*path, key))


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def spoilt_reply(value: Any, random: Random) -> Any:
    """Return a reply, or the chunks of one, with one value in it of another kind, another value more, or one less."""
    made = deepcopy(value)
    paths = [path for path in _paths(made) if path]
    if not paths:
        return made
    path = random.choice(paths)
    place = _at(made, path[:-1])
    if random.random() < 0.3 and isinstance(place, list):
        place.insert(random.randrange(len(place) + 1), deepcopy(random.choice(UNKNOWN)))
    elif random.random() < 0.2 and isinstance(place, dict):
        del place[path[-1]]
    else:
        place[path[-1]] = deepcopy(random.choice(JUNK))
    return made


def _mixed(format: WireFormat, made: list[Any], calls: list[ToolCall], random: Random) -> list[Any]:
    """Return chunks by turns, or with one of an unknown type or of no call, or with arguments that come one by one."""
    match random.choice(("as it is", "by turns", "moved", "unknown", "partial")):
        case "by turns":
            return by_turns(made)
        case "moved" | "unknown" as how:
            at = random.randrange(len(made))
            return [*made[:at], (moved if how == "moved" else of_unknown_type)(made[at]), *made[at + 1 :]]
        case "partial" if format == "gemini":
            return partial([call for call in calls if isinstance([*_read([call.arguments]), None][0], dict)])
        case _:
            return made


def _with_wrong_kind(value: Any, random: Random) -> Any:
    """Return chunks with another kind of JSON in the place of a text, of a call's number, or of what has parts."""
    made = deepcopy(value)
    if random.random() < 0.3:
        holders = [path for path in _paths(made) if len(path) > 1 and isinstance(_at(made, path), dict | list)]
        if not holders:
            return made
        path = random.choice(holders)
        other: Any = {"x": 1} if isinstance(_at(made, path), list) else ["x"]
        _at(made, path[:-1])[path[-1]] = random.choice((7, True, "x", other))
        return made
    texts = [path for path in _paths(made) if path and path[-1] != "type" and isinstance(_at(made, path), str)]
    places = [path for path in _paths(made) if path and path[-1] == "index" and len(path) > 1]
    if not texts + places:
        return made
    path = random.choice(texts + places)
    _at(made, path[:-1])[path[-1]] = deepcopy(random.choice(("x", *WRONG[2:]) if path in places else WRONG))
    return made


def _arguments(value: Any) -> list[Any]:
    """Return whatever stands in the place of arguments."""
    found = [value[key] for key in value if key in _HOLDERS] if isinstance(value, dict) else []
    call = value.get("functionCall") if isinstance(value, dict) else None
    if isinstance(call, dict) and call.get("args") is None and not (call.get("willContinue") or "partialArgs" in call):
        found += [{}] if "name" in call else []  # Gemini leaves out what is empty
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return found + [one for part in inner for one in _arguments(part)]


def _read(arguments: list[Any]) -> list[Any]:
    made: list[Any] = []
    for one in arguments:
        try:
            made.append(json.loads(one) if isinstance(one, str) else one)
        except ValueError:
            continue
    return made
