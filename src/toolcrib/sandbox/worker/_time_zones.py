"""Time zones, read while there are files, for `zoneinfo` to find when there are none."""

from __future__ import annotations

import io
import zoneinfo
from pathlib import Path
from typing import Any

__all__ = ["load_zones"]

_zones: dict[str, bytes] = {}
_LARGEST = 1 << 16  # bytes of one zone


def load_zones() -> None:
    """Read the zones that this system has; without any, `ZoneInfo` knows none."""
    for folder in map(Path, zoneinfo.TZPATH):
        for name in _names(folder):
            _zones.setdefault(name, (folder / name).read_bytes())
    zoneinfo.reset_tzpath(to=())
    common: Any = zoneinfo._common  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType] -- where C looks for what is in no folder
    common.load_tzdata = _load


def _names(folder: Path) -> list[str]:
    table = folder / "tzdata.zi"  # names every zone, and every other name of one
    try:
        words = [line.split() for line in table.read_text().splitlines()]
    except OSError:
        return []
    names = [line[1] if line[0] == "Z" else line[2] for line in words if line and line[0] in ("Z", "L")]
    return [name for name in [*names, "UTC"] if _is_zone(folder / name)]


def _is_zone(file: Path) -> bool:
    return file.is_file() and file.stat().st_size < _LARGEST


def _load(key: str) -> io.BytesIO:
    found = _zones.get(key)
    if found is None:
        raise zoneinfo.ZoneInfoNotFoundError(f"No time zone found with key {key}")
    return io.BytesIO(found)
