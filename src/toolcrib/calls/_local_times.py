"""Times in words for a person, by the clock where this process runs."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import datetime, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

_LINK: Final = "/etc/localtime"
_ZONES: Final = "zoneinfo/"


def local_time(at: datetime, zone: str | None = None) -> str:
    """Return a time to the minute with its zone: `2030-01-31 18:00 (Europe/Berlin)`.

    Args:
        at: The time, with a time zone.
        zone: The zone of the clock; that of this process when None.
    """
    clock = _zone(zone or os.environ.get("TZ", "").removeprefix(":") or _linked())
    local = at.astimezone(clock)
    return f"{local:%Y-%m-%d %H:%M} ({clock or local.tzname()})"


def _zone(name: str) -> tzinfo | None:
    """Return the zone of a name; None where it has none that is known here."""
    with suppress(KeyError, ValueError, OSError):
        return ZoneInfo(name) if name else None
    return None


def _linked() -> str:
    """Return the name of the zone of this machine; empty where its file does not say."""
    name = os.path.realpath(_LINK).rpartition(_ZONES)[2] if os.path.islink(_LINK) else ""
    return "UTC" if name == "Etc/UTC" else name
