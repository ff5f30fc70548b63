"""Handshake with a server: what it says of itself, without the members that cannot be read."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Final

import mcp_types as types
from pydantic import ValidationError

_log = logging.getLogger("toolcrib.mcp")
HANDSHAKES: Final[Mapping[str, type[types.InitializeResult | types.DiscoverResult]]] = {
    "initialize": types.InitializeResult,
    "server/discover": types.DiscoverResult,
}
_IN_PLACE: Final[Mapping[tuple[Any, ...], Any]] = {  # of members that have to be there
    ("capabilities",): {},
    ("serverInfo",): {"name": "", "version": ""},
    ("serverInfo", "name"): "",
    ("serverInfo", "version"): "",
    ("resultType",): "complete",
    ("ttlMs",): 0,
    ("cacheScope",): "private",
}
_MOST = 100  # members that are mended


def readable_handshake(method: str, raw: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a handshake without what cannot be read; as it came where its versions cannot."""
    mended, places = deepcopy(raw), list[str]()
    while (place := _wrong_in(method, mended)) is not None:
        if len(places) == _MOST or not _mend(mended, place):
            return raw
        places.append(f"`{'.'.join(map(str, place)):.200}`")
    if places:
        _log.warning("a server answered %s with what cannot be read and is left out: %s", method, ", ".join(places))
    return mended


def _wrong_in(method: str, result: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """Return the place of the first member that cannot be read; None where there is none."""
    try:
        HANDSHAKES[method].model_validate(result, by_name=False)
    except ValidationError as error:
        return error.errors(include_url=False, include_input=False)[0]["loc"]
    return None


def _mend(result: dict[str, Any], place: tuple[Any, ...]) -> bool:
    """Remove what is at a place, or what lacks it; return whether the result can go without."""
    *inside, name = place
    holder: Any = result
    for step in inside:
        holder = holder[step]
    if place in _IN_PLACE:
        holder[name] = deepcopy(_IN_PLACE[place])
    elif inside == ["capabilities"] and holder[name]:  # it has it, whatever it says of that
        holder[name] = {}
    elif (isinstance(holder, dict) and name in holder) or (isinstance(holder, list) and isinstance(name, int)):
        del holder[name]
    else:
        return bool(inside) and _mend(result, tuple(inside))
    return True
