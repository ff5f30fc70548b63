"""The modules of time as a program sees them: `time` and `datetime` on its clock in UTC, `zoneinfo` without files."""

from __future__ import annotations

import ctypes
import datetime
import gc
import io
import operator
import time
import timeit
import zoneinfo
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ._clock import CLOCK
from ._exchange import has_threads

_gmtime, _localtime, _ctime, _asctime, _strftime = time.gmtime, time.localtime, time.ctime, time.asctime, time.strftime
_sleep = time.sleep
_LONGEST = 1e9  # seconds
_LARGEST = 1 << 16  # bytes of one time zone
_pause: Callable[[float], None] = _sleep
_REALTIME = {getattr(time, name) for name in ("CLOCK_REALTIME", "CLOCK_TAI") if hasattr(time, name)}
_zones: dict[str, bytes] = {}


def on_sleep(pause: Callable[[float], None]) -> None:
    """Set what `time.sleep` calls in a program without threads; a thread sleeps by itself."""
    global _pause
    _pause = pause


def install() -> None:
    """Replace the functions that read the real clock by those that read the program's, in all loaded modules."""
    if time.sleep is sleep:
        return
    steady = ("monotonic", "perf_counter", "process_time", "thread_time")
    for name, read in {**dict.fromkeys(steady, CLOCK.monotonic), "time": CLOCK.wall}.items():
        setattr(time, f"{name}_ns", read)
        setattr(time, name, _in_seconds(read, name))
    time.sleep = sleep
    for kind, original in {"gmtime": _gmtime, "localtime": _localtime, "ctime": _ctime}.items():
        setattr(time, kind, _of_now(original, kind))
    time.asctime, time.strftime = _asctime_now, _strftime_now
    time.clock_gettime, time.clock_gettime_ns = _clock_gettime, _clock_gettime_ns
    timeit.default_timer = time.perf_counter
    # written in C, the class refuses `setattr`; it stays the one class for `isinstance`, `match`, pickles and
    # subclasses; `date.today` and `datetime.today` ask `time.time`.
    methods = {"now": classmethod(_datetime_now), "utcnow": classmethod(_datetime_utcnow)}
    [names] = gc.get_referents(datetime.datetime.__dict__)
    names.update(methods)
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(datetime.datetime))


def sleep(seconds: float, /) -> None:
    """Wait for that much time."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):  # pyright: ignore[reportUnnecessaryIsInstance] -- a program passes anything
        seconds = operator.index(seconds)
    if seconds != seconds:
        raise ValueError("Invalid value NaN (not a number)")
    if seconds < 0:
        raise ValueError("sleep length must be non-negative")
    if seconds > _LONGEST:
        raise OverflowError("timestamp too large to convert to C PyTime_t")
    if not has_threads():
        _pause(float(seconds))
    else:
        _sleep(seconds)


def _in_seconds(read: Callable[[], int], name: str) -> Callable[[], float]:
    def seconds() -> float:
        return read() / 1e9

    seconds.__name__ = seconds.__qualname__ = name
    return seconds


def _of_now(original: Callable[..., Any], name: str) -> Callable[..., Any]:
    def at(seconds: float | None = None, /) -> Any:
        return original(CLOCK.wall() / 1e9 if seconds is None else seconds)

    at.__name__ = at.__qualname__ = name
    return at


def _asctime_now(at: Any = None, /) -> str:
    return _asctime(_localtime(CLOCK.wall() / 1e9) if at is None else at)


def _strftime_now(form: str, at: Any = None, /) -> str:
    return _strftime(form, _localtime(CLOCK.wall() / 1e9) if at is None else at)


def _clock_gettime(clock: int, /) -> float:
    return _clock_gettime_ns(clock) / 1e9


def _clock_gettime_ns(clock: int, /) -> int:
    return CLOCK.wall() if clock in _REALTIME else CLOCK.monotonic()


def _datetime_now(cls: type[datetime.datetime], tz: datetime.tzinfo | None = None) -> datetime.datetime:
    """Return the time of now; in UTC and without a zone where none is given."""
    now = _now(cls)
    return now.replace(tzinfo=None) if tz is None else now.astimezone(tz)


def _datetime_utcnow(cls: type[datetime.datetime]) -> datetime.datetime:
    """Return the time of now in UTC, without a zone."""
    return _now(cls).replace(tzinfo=None)


def _now(cls: type[datetime.datetime]) -> datetime.datetime:
    seconds, rest = divmod(CLOCK.wall(), 1_000_000_000)
    return cls.fromtimestamp(seconds, datetime.UTC).replace(microsecond=rest // 1000)


# --- time zones -------------------------------------------------------------------------------------------------------


def load_zones() -> None:
    """Read the time zones of this system while there are files; without any, `ZoneInfo` knows none."""
    for folder in map(Path, zoneinfo.TZPATH):
        for name in _zone_names(folder):
            _zones.setdefault(name, (folder / name).read_bytes())
    zoneinfo.reset_tzpath(to=())
    common: Any = zoneinfo._common  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType] -- where C looks for what is in no folder
    common.load_tzdata = _load_zone


def _zone_names(folder: Path) -> list[str]:
    table = folder / "tzdata.zi"  # names every zone, and every other name of one
    try:
        words = [line.split() for line in table.read_text().splitlines()]
    except OSError:
        return []
    names = [line[1] if line[0] == "Z" else line[2] for line in words if line and line[0] in ("Z", "L")]
    return [name for name in [*names, "UTC"] if _is_zone(folder / name)]


def _is_zone(file: Path) -> bool:
    return file.is_file() and file.stat().st_size < _LARGEST


def _load_zone(key: str) -> io.BytesIO:
    found = _zones.get(key)
    if found is None:
        raise zoneinfo.ZoneInfoNotFoundError(f"No time zone found with key {key}")
    return io.BytesIO(found)
